"""Slash commands of the chat, such as ``/resume``, ``/model``, ``/cost`` and ``/export``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from kbtui.errors import ConflictError, KbtuiError, UsageError
from kbtui.knowledge_base import KnowledgeBase
from kbtui.maintenance.export import session_markdown
from kbtui.models.roles import ModelStatus
from kbtui.sessions.store import Session, SessionInfo
from kbtui.settings import OFFLINE
from kbtui.text import clean_line, counted, fold, usd
from kbtui.tui.chat.commands.memory_commands import show_memory
from kbtui.tui.chat.commands.pickers import ModelScreen, conversations, use_model
from kbtui.tui.chat.conversation.items import NoticeItem, failure
from kbtui.tui.chat.host import ChatHost, CommandFunction
from kbtui.tui.messages import OpenEntry, go_to
from kbtui.tui.terminal.process import new_file
from kbtui.tui.widgets.dialogs import UnaskedDialog

# Sessions


async def _new(host: ChatHost, kb: KnowledgeBase, title: str) -> None:
    if _is_answering(host):
        return
    session = None
    if title:
        session = await asyncio.to_thread(
            lambda: kb.sessions.create("tui", title=clean_line(title))
        )
    await host.conversation.show(session)
    host.focus_prompt()


async def _sessions(host: ChatHost, kb: KnowledgeBase, _argument: str = "") -> None:
    infos = await asyncio.to_thread(kb.sessions.list)
    if not infos:
        host.say("There are no conversations yet.")
        return
    chosen = await host.app.push_screen_wait(conversations(infos))
    if chosen and not _is_answering(host):
        await _open(host, kb, chosen)


async def _resume(host: ChatHost, kb: KnowledgeBase, wanted: str) -> None:
    if not wanted:
        await _sessions(host, kb)
    elif not _is_answering(host):
        found = _find_session(await asyncio.to_thread(kb.sessions.list), wanted)
        if found is None:
            host.say(f"There is no conversation called {clean_line(wanted)!r}.", "warning")
        else:
            await _open(host, kb, found.id)


async def _rename(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    conversation, title = host.conversation, clean_line(argument)
    if not title:
        raise UsageError("A conversation needs a title.", "Say it: /rename <title>")
    if conversation.session is None:
        conversation.use(await asyncio.to_thread(kb.sessions.create, "tui"))
    if conversation.session is not None:
        await asyncio.to_thread(conversation.session.rename, title)
    host.changed()


async def go_to_message(host: ChatHost, kb: KnowledgeBase, session: str, message: int) -> None:
    """Open a session and select one of its messages."""
    conversation, transcript = host.conversation, host.transcript
    if conversation.session is None or conversation.session.id != session:
        if _is_answering(host):
            return
        try:
            await _open(host, kb, session)
        except ConflictError:  # it is open elsewhere, but may be read
            host.post_message(OpenEntry(f"sessions/{session}.jsonl", message))
            return
    item = await conversation.find(message)
    if item is None or item.message != message:
        host.say("That message was taken back since.", "warning")
    transcript.select(item)
    go_to(transcript)
    transcript.call_after_refresh(transcript.select, item)


async def _open(host: ChatHost, kb: KnowledgeBase, session_id: str) -> None:
    session = await asyncio.to_thread(kb.sessions.open, session_id)
    await host.conversation.show(session)
    for notice in session.notices:
        host.say(notice, "warning")
    host.focus_prompt()


def _is_answering(host: ChatHost) -> bool:
    """Return whether an answer is being generated, with a toast if so."""
    if host.conversation.busy:
        host.say("An answer is still coming: Esc stops it.", "warning")
    return host.conversation.busy


def _find_session(infos: list[SessionInfo], wanted: str) -> SessionInfo | None:
    """Find the newest session by title or id; exact matches win over partial ones."""
    folded = fold(wanted)
    exact = [info for info in infos if folded in (fold(info.title), fold(info.id))]
    matches = [info for info in infos if folded in fold(info.title) or info.id.startswith(wanted)]
    return next(iter(exact or matches), None)


# Model, context, cost


async def read_model(host: ChatHost, kb: KnowledgeBase) -> ModelStatus:
    """Read the model's status in a thread, as it may probe servers or a keyring."""
    status = host.model = await asyncio.to_thread(lambda: kb.models.describe(look=True))
    await read_figures(host, kb)
    return status


async def read_figures(host: ChatHost, kb: KnowledgeBase) -> None:
    """Read the model's context window, which answers may reveal, and today's cost."""
    if host.model is None or host.model.offline:
        host.context_window = 0
    else:
        host.context_window, host.spent_today = await asyncio.to_thread(_figures, kb)
    host.changed()


def _figures(kb: KnowledgeBase) -> tuple[int, float]:
    budget = kb.memory.budget
    spent = budget.conversations_today() + budget.spent_today()
    try:
        return kb.models.window(), spent
    except KbtuiError:
        return 0, spent  # the error is shown with the next answer


async def _model(host: ChatHost, kb: KnowledgeBase, name: str) -> None:
    models = kb.models
    if name:
        chosen = await asyncio.to_thread(models.destination, name)
        if not await use_model(host, models, chosen):
            return
    else:
        picked = await host.app.push_screen_wait(ModelScreen(kb))
        if picked is None:
            return
        chosen = picked
    await read_model(host, kb)
    host.say(chosen.message)
    await _offer_unread(host, kb)


async def _offer_unread(host: ChatHost, kb: KnowledgeBase) -> None:
    """Offer to have the model condense what none has condensed, naming the cost."""
    unread = await asyncio.to_thread(kb.memory.unread)
    if unread is None or unread.cost.model == OFFLINE or not unread.sessions:
        return
    text = counted(len(unread.sessions), "conversation")
    dialog = UnaskedDialog(
        f"Have {unread.cost.model} read what it hasn't?",
        f"{unread.describe()}: {unread.cost.describe(unread.tokens)}. What they say goes into"
        " memory and notes; each line that you wrote stays as it is.",
        {"y": "yes", "n": "not now"},
    )
    if await host.app.push_screen_wait(dialog) != "y":
        host.say("`kbtui consolidate --all` has it done another time.")
        return
    host.say(f"{unread.cost.model} reads them; /background shows how far it is.")
    condense = partial(kb.memory.worker.condense, everything=True, by_model=True)
    outcomes = await asyncio.gather(*map(asyncio.wrap_future, map(condense, unread.sessions)))
    if failed := next((each.error for each in outcomes if each.error is not None), None):
        host.tell(failure(failed))
        return
    notices = [each.notice for each in outcomes if each.notice]
    host.tell(NoticeItem(title=f"{text} condensed by {unread.cost.model}", text=" ".join(notices)))


async def _cost(host: ChatHost, kb: KnowledgeBase, _argument: str) -> None:
    spent, budget = host.conversation.spent, kb.memory.budget
    talked, behind = await asyncio.to_thread(
        lambda: (budget.conversations_today(), budget.spent_today())
    )
    today = f"Today, in all workspaces: {usd(talked)} for talking, {usd(behind)} in the background."
    if not talked and not behind:
        today = "Nothing was spent today in any workspace, as far as prices are known."
    if not spent.calls:
        host.tell(NoticeItem(title="No model was asked in this conversation yet", text=today))
        return
    price = usd(spent.cost_usd) if spent.cost_usd else "free, on this machine"
    if spent.unpriced == spent.calls:
        price = "no price known"
    elif spent.unpriced:
        price += f", and {counted(spent.unpriced, 'call')} without a known price"
    text = (
        f"{counted(spent.calls, 'call')} · {spent.prompt_tokens:,} tokens read · "
        f"{spent.completion_tokens:,} written · {price}\n{today}"
    )
    host.tell(NoticeItem(title="This conversation since it was opened", text=text))


# Export


async def _export(host: ChatHost, _kb: KnowledgeBase, wanted: str) -> None:
    session = host.conversation.session
    if session is None or not session.messages:
        host.say("There is nothing to export yet.", "warning")
        return
    file = await asyncio.to_thread(export_session, session, wanted)
    host.say(f"Written to {file}")


def export_session(session: Session, wanted: str) -> Path:
    """Write a conversation to a Markdown file, without tool output.

    Args:
        session: The conversation.
        wanted: The file or folder to write to; empty for a new file in the current folder.

    Returns:
        The new file; no file is ever overwritten.

    Raises:
        UsageError: The file already exists.
        StorageError: The file can't be written.
    """
    text = "\n".join(session_markdown(session.id, session.title, session.messages))
    return new_file(session.title, "md", text, wanted)


COMMANDS: Mapping[str, CommandFunction] = {
    "/new": _new,
    "/sessions": _sessions,
    "/resume": _resume,
    "/rename": _rename,
    "/model": _model,
    "/context": show_memory,
    "/cost": _cost,
    "/export": _export,
}
"""The function of each command of the context ``chat``."""
