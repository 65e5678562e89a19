"""Actions on one item of the conversation, by keys of the transcript or slash commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.knowledge.format.document import Document
from kbtui.knowledge_base import KnowledgeBase
from kbtui.sessions.store import Session
from kbtui.text import clean_line, counted, headline
from kbtui.tui.chat.conversation.cards import ReasoningItem, ToolItem, change_items
from kbtui.tui.chat.conversation.items import (
    AnswerItem,
    BeforeItem,
    Item,
    LinkItem,
    MoreItem,
    NotKeptItem,
    UserItem,
)
from kbtui.tui.chat.conversation.transcript import Verb
from kbtui.tui.chat.host import ChatHost, ItemFunction
from kbtui.tui.diff.correct import correct_everywhere
from kbtui.tui.diff.undo_conflict import confirm_and_undo
from kbtui.tui.markdown.syntax import LinkRef
from kbtui.tui.messages import OpenEntry
from kbtui.tui.notes.entry_actions import open_web_link, twin_instead
from kbtui.tui.widgets.dialogs import ask, ask_text, pick
from kbtui.tui.widgets.row_list import Choice


def run_on_last_answer(host: ChatHost, slash: str) -> None:
    """Run a command of the context ``transcript`` on the last answer."""
    answers = [item for item in host.transcript.items if isinstance(item, AnswerItem)]
    if answers:
        COMMANDS[slash](host, answers[-1])
    else:
        host.say("There is no answer yet.", "warning")


def _expand(host: ChatHost, item: Item) -> None:
    if isinstance(item, MoreItem):
        host.run(host.conversation.load_earlier(item))
    elif isinstance(item, ToolItem):
        _toggle_tool(host, item)
    elif isinstance(item, ReasoningItem):
        item.expanded = not item.expanded
        host.transcript.item_changed(item)
    elif isinstance(item, NotKeptItem) and not item.kept:
        _keep(host, item)
    elif len(item.sources) > 1:
        host.run(_open_source(host, item))
    elif item.target is not None:
        host.post_message(OpenEntry(item.target.path, item.target.line))


def _toggle_tool(host: ChatHost, item: ToolItem) -> None:
    transcript = host.transcript
    item.expanded = not item.expanded
    if item.expanded:
        transcript.add_after(item, change_items(item))
    else:
        at = transcript.items.index(item) + 1
        below = transcript.items[at : at + len(item.paths)]
        transcript.take_out(*(link for link in below if isinstance(link, LinkItem)))
        transcript.add_after(item, ())


async def _open_source(host: ChatHost, item: Item) -> None:
    """Open one of several sources of an answer."""
    choices = [Choice(source.label, source.name.plain, source.to) for source in item.sources]
    target = await pick(host.app, f"Sources {len(choices)}", choices)
    if target is not None:
        host.post_message(OpenEntry(target.path, target.line))


def _copy(host: ChatHost, item: Item) -> None:
    if item.source:
        host.app.copy_to_clipboard(item.source)


def _copy_code(host: ChatHost, item: Item) -> None:
    document = Document(item.source, has_head=False)
    blocks = [document.code_of(block).rstrip("\n") for block in document.fenced_blocks]
    if blocks:
        host.app.copy_to_clipboard("\n\n".join(blocks))
    else:
        host.say("There is no code block in this message.", "warning")


def _edit(host: ChatHost, item: Item) -> None:
    host.run(_rewind_to(host, item, partial(_put_in_prompt, host)))


def _retry(host: ChatHost, item: Item) -> None:
    host.run(_rewind_to(host, item, host.conversation.send))


async def _rewind_to(host: ChatHost, item: Item, say: Callable[[str], object]) -> None:
    """Rewind to the message of an item and pass it to `say`, asking if later ones are dropped."""
    message_item = _usable_message(host, item)
    if message_item is None:
        return
    items = host.transcript.items
    later = sum(isinstance(each, UserItem) for each in items[items.index(message_item) + 1 :])
    text = (
        f"{counted(later, 'later message')} and the answers leave this conversation.\n"
        "What they changed in your notes stays."
    )
    if later and await ask(host.app, "Go on from here?", text, {"y": "go on from here"}) != "y":
        return
    host.conversation.rewind_before(message_item)
    say(message_item.text)


def _put_in_prompt(host: ChatHost, text: str) -> None:
    host.clear_prompt()
    host.prompt.replace_text(text)
    host.focus_prompt()


def _usable_message(host: ChatHost, item: Item) -> UserItem | None:
    """Return the message an item belongs to; None, with a toast, if none can be used now."""
    message_item = _message_above(host, item)
    if message_item is None or message_item.message is None:
        host.say("There is no message of yours to go back to.", "warning")
    elif host.conversation.busy:
        host.say("An answer is still coming: Esc stops it.", "warning")
    else:
        return message_item
    return None


def _message_above(host: ChatHost, item: Item) -> UserItem | None:
    """Return the person's message above an item, or the item itself if it is one."""
    above = host.transcript.items[host.transcript.items.index(item) :: -1]
    return next((other for other in above if isinstance(other, UserItem)), None)


def _save(host: ChatHost, item: Item) -> None:
    if host.kb is not None and item.source.strip():
        host.run(_save_entry(host, host.kb, item), "save")


async def _save_entry(host: ChatHost, kb: KnowledgeBase, item: Item) -> None:
    suggested = headline(item.source)
    title = await ask_text(host.app, "Save as entry", suggested, "The title of the new entry.")
    if not title:
        return
    name = clean_line(title)
    path = await twin_instead(host.app, kb, "topic", name)
    if path == "":
        made = await asyncio.to_thread(kb.library.create, "topic", name, body=item.source)
        path = made.path
    if path is not None:
        host.post_message(OpenEntry(path))


def _keep(host: ChatHost, item: Item) -> None:
    message = _message_id(host, item)
    session = host.conversation.session
    if host.kb is None or session is None or message is None:
        host.say("There is no message of yours to keep.", "warning")
    else:
        host.run(_keep_message(host, host.kb, session, message, item), "keep")


def _message_id(host: ChatHost, item: Item) -> int | None:
    """Return the id of the person's message that an item belongs to."""
    message_item = _message_above(host, item)
    return message_item.message if message_item is not None else None


async def _keep_message(
    host: ChatHost, kb: KnowledgeBase, session: Session, message: int, item: Item
) -> None:
    kept = await asyncio.to_thread(kb.agent.keep, session, message)
    if isinstance(item, NotKeptItem):
        item.kept = kept.path
        host.transcript.item_changed(item)
    host.say(kept.message)


def _mark_past(host: ChatHost, item: Item) -> None:
    message = _message_id(host, item)
    session = host.conversation.session
    if isinstance(item, BeforeItem) and not item.past and host.kb and session and message:
        host.run(_strike_line(host, host.kb, session, message, item), "keep")


async def _strike_line(
    host: ChatHost, kb: KnowledgeBase, session: Session, message: int, item: BeforeItem
) -> None:
    said = next((each.content for each in session.messages if each.id == message), "")
    if await asyncio.to_thread(_is_repeated, kb, item, said):
        if await correct_everywhere(host, kb, item.earlier.text, said) is None:
            return
    else:
        await asyncio.to_thread(kb.agent.mark_past, session, item.earlier, message)
        host.say("Struck out, with a pointer to the new line; the history can take it back.")
    item.past = True
    host.transcript.item_changed(item)


def _is_repeated(kb: KnowledgeBase, item: BeforeItem, said: str) -> bool:
    """Return whether another place repeats what an earlier line says."""
    try:
        plan = kb.memory.correcting.plan(item.earlier.text, said)
    except KbtuiError:  # it can't be told what is another value
        return False
    own = item.earlier.path, item.earlier.first
    return any((each.path, each.line) != own and not each.follows for each in plan.places)


def _undo(host: ChatHost, item: Item) -> None:
    if host.kb is None or not item.turn:
        host.say("This belongs to no turn that changed something.", "warning")
    else:
        host.run(_undo_turn(host, host.kb, item.turn), "undo")


async def _undo_turn(host: ChatHost, kb: KnowledgeBase, turn: str) -> None:
    try:
        undo = partial(kb.history.undo_turn, turn)
        commit = await confirm_and_undo(host.app, kb.history, "what this turn changed", undo)
    except NotFoundError:
        host.say("This turn changed nothing in the notes.")
    else:
        if commit is None:
            return
        _strike_cards(host, turn)
        host.say("Undone: what this turn wrote. The history can bring it back.")


def _strike_cards(host: ChatHost, turn: str) -> None:
    """Mark the cards and the receipt of a turn as undone."""
    for item in host.transcript.items:
        if isinstance(item, UserItem) and item.turn == turn and item.receipt is not None:
            item.receipt = replace(item.receipt, undone=True)
            host.transcript.item_changed(item)
        if isinstance(item, ToolItem) and item.turn == turn and item.changes:
            item.undone = True
            host.transcript.item_changed(item)


ACTIONS: Mapping[Verb, ItemFunction] = {
    "expand": _expand,
    "copy": _copy,
    "copy_code": _copy_code,
    "edit": _edit,
    "retry": _retry,
    "save": _save,
    "undo": _undo,
    "mark_past": _mark_past,
}
"""The function of each action that the transcript passes on."""
COMMANDS: Mapping[str, ItemFunction] = {"/copy": _copy, "/retry": _retry, "/keep": _keep}
"""The function of each command of the context ``transcript``."""


async def follow_link(host: ChatHost, link: LinkRef) -> None:
    """Open the target of a link in an answer; a web page only after a confirmation."""
    if link.kind == "web":
        await open_web_link(host.app, link.target)
    elif host.kb is not None:
        name = link.target.removesuffix(".md")
        try:
            entry = await asyncio.to_thread(host.kb.library.find, name)
        except KbtuiError as error:
            host.say(str(error), "warning")
        else:
            host.post_message(OpenEntry(entry.path))
