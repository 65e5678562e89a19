"""Interactive actions on entries: each asks for its input, acts, and notifies the user.

All take a node of the app, raise `KbtuiError` on failure, and return None if the user cancels.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial

from textual.dom import DOMNode

from kbtui.documents.documents import is_beside_notes
from kbtui.errors import UsageError
from kbtui.history.change import Actor, Commit, Origin, Sink
from kbtui.history.history import HistoryReader
from kbtui.knowledge.entries.entry import TYPE_OF_FOLDER, Entry
from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.between import EXAMPLES, between_of, told_moment
from kbtui.presentation.notes import Names, name_of, names_of, title_of
from kbtui.text import clean_line, counted, headline
from kbtui.tui.diff.confirm import Question, confirm, make_change
from kbtui.tui.diff.undo_conflict import confirm_and_undo
from kbtui.tui.messages import LONG_SECONDS, tell
from kbtui.tui.notes.documents import load_mentions
from kbtui.tui.terminal import outside
from kbtui.tui.widgets.dialogs import NewEntryDialog, ask, ask_text, pick
from kbtui.tui.widgets.kinds import draw_sentence
from kbtui.tui.widgets.row_list import Choice
from kbtui.workspace.files import blob_of, is_protected
from kbtui.workspace.layout import CATEGORIES, NAME_PREFIX, is_recorded, short_name


async def entry_of_name(node: DOMNode, kb: KnowledgeBase, path: str) -> Entry | None:
    """Ask for title and type, and create an entry from the lines that mention a name."""
    name = path.removeprefix(NAME_PREFIX)
    lines = [each for each in await asyncio.to_thread(kb.names.lines, name) if not each.is_past]
    items = (f"- {each.line.text}{f' ({each.when[:10]})' if each.when else ''}" for each in lines)
    return await new_entry(node, kb, name, "people", "\n".join(items))


async def entry_of_message(
    node: DOMNode, kb: KnowledgeBase, session: str, message: int
) -> Entry | None:
    """Ask for title and type, and create an entry from a message of a conversation.

    The suggested title is that of the conversation for its first message, else the first words.
    """
    log = await asyncio.to_thread(kb.sessions.read_log, session)
    first, chosen = log.messages[0], next(each for each in log.messages if each.id == message)
    title = log.shown_title if chosen is first else headline(chosen.content)
    origin = Origin(session=session, messages=(message, message))
    return await new_entry(node, kb, clean_line(title), body=chosen.content, origin=origin)


async def new_entry(
    node: DOMNode,
    kb: KnowledgeBase,
    title: str = "",
    category: str = "",
    body: str | None = None,
    origin: Origin | None = None,
) -> Entry | None:
    """Ask for title and type, with one suggested by `category`, and create the entry."""
    types = await asyncio.to_thread(kb.library.kinds)
    type_ = TYPE_OF_FOLDER.get(category.partition("/")[0], "topic")
    chosen = await node.app.push_screen_wait(NewEntryDialog(types, type_, title))
    if chosen is None:
        return None
    folder, name = await asyncio.to_thread(kb.library.split_folder, chosen.title)
    twin = await twin_instead(node, kb, chosen.type, name)
    if twin != "":
        return await asyncio.to_thread(kb.library.get, twin) if twin else None
    if not folder and body is None:
        folder = await asyncio.to_thread(_folder_for, kb, types[chosen.type], category)
    made = await asyncio.to_thread(
        kb.library.create,
        chosen.type,
        name,
        folder=folder,
        body=body,
        origin=origin or Origin(),
    )
    return await asyncio.to_thread(kb.library.get, made.path)


async def twin_instead(node: DOMNode, kb: KnowledgeBase, type_: str, name: str) -> str | None:
    """Ask what to do if an entry of this name exists, of whatever type.

    Return its path to open it instead, "" to make a new one, or None if that was cancelled.
    """
    known = await asyncio.to_thread(kb.library.same_name, type_, name)
    if not known:
        return ""
    keys = {"o": "open it", "y": "make a second one"}
    about = f"{clean_line(known[0].title)} ({short_name(known[0].path)})"
    answer = await ask(node, "There is one of that name", about, keys)
    return {"y": "", "o": known[0].path}.get(answer or "")


def _folder_for(kb: KnowledgeBase, folder: str, category: str) -> str:
    """Return the folder for a new entry: the current one, unless it belongs to another type."""
    if kb.library.in_place:
        return category
    top = category.partition("/")[0]
    if top != folder and top in CATEGORIES:
        return ""
    return category if any(info.category == category for info in kb.library.infos()) else ""


def first_line_to_fill(text: str) -> int:
    """Return the line to start editing a new entry: below its first section, or the last."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("## "):
            return number + 1
    return len(lines)


async def rename_entry(node: DOMNode, kb: KnowledgeBase, path: str) -> str | None:
    """Ask for a new title, rename the entry, repair links to it, and return its new path."""
    entry = await asyncio.to_thread(kb.library.get, path)
    what = f"Rename {clean_line(entry.title)}"
    about = "Links to it are repaired; the old name stays as an alias."
    title = await ask_text(node, what, entry.title, about)
    if title is None or title == entry.title:
        return None
    return await _rename(node, kb, path, title, what)


async def move_entry(node: DOMNode, kb: KnowledgeBase, path: str) -> str | None:
    """Ask for another category, move the entry there, and return its new path."""
    infos = await asyncio.to_thread(kb.library.infos)
    info = next((info for info in infos if info.path == path), None)
    if info is None:
        return None
    counts = Counter(each.category for each in infos)
    choices = [
        Choice(category, f"{count:,}", category)
        for category, count in sorted(counts.items())
        if category and category != info.category
    ]
    title = f"Move {clean_line(info.title)} to"
    category = await pick(node, title, choices, new="new category")
    if category is None:
        return None
    new = f"{category.strip('/')}/{info.slug}"
    return await _rename(node, kb, path, new, f"Move {clean_line(info.title)}")


async def _rename(node: DOMNode, kb: KnowledgeBase, path: str, new: str, title: str) -> str | None:
    own = [path]

    def gather(sink: Sink) -> None:
        own.append(kb.library.rename(path, new, sink=sink).path)

    text = "{files} would be rewritten: their links follow it. You can take it back with u."
    question = Question(title, text, "does it", own, names=await _load_names(kb))
    if await make_change(node, kb.history, gather, question) is None:
        return None
    renamed = await asyncio.to_thread(kb.library.info, own[-1])
    now = title_of(renamed) if renamed is not None else name_of(own[-1])
    tell(node, f"It is {clean_line(now)} now, and every link to it follows.")
    return own[-1]


async def link_mentions(node: DOMNode, kb: KnowledgeBase, path: str) -> None:
    """Turn mentions of an entry in other entries into links."""
    mentions = await asyncio.to_thread(load_mentions, kb, path)
    if not mentions:
        tell(node, "No other note says its name without a link.")
        return
    others = {each.path for each in mentions}
    names = await _load_names(kb)
    title = names[path].title
    text = "{files} would be changed: what says the name would link to it. F4 takes it back."
    question = Question(f"Link what names {title}", text, "links them", unasked=0, names=names)
    link = partial(kb.library.link_mentions, path, others)
    commit = await make_change(node, kb.history, link, question)
    if commit is not None:
        tell(node, f"{counted(len(commit.paths), 'note')} link to {title} now.")


async def may_replace(node: DOMNode, kb: KnowledgeBase, path: str) -> bool:
    """Return whether a file may be replaced; of a read-only one the user is asked."""
    if not await asyncio.to_thread(is_protected, kb.workspace, path):
        return True
    text = f"{short_name(path)} is read-only: its mode doesn't allow writing."
    return await ask(node, "Read-only", text, {"r": "replace it anyway"}) == "r"


async def delete_entry(node: DOMNode, kb: KnowledgeBase, path: str) -> Commit | None:
    """Delete an entry, with confirmation if links to it in other files would change."""
    info = await asyncio.to_thread(kb.library.info, path)
    title = clean_line(title_of(info) if info is not None else name_of(path))
    text = "{files} would be rewritten: links to it become plain text. You can take it back with u."
    names = await _load_names(kb)
    question = Question(f"Delete {title}", text, "deletes it", (path,), unasked=0, names=names)
    commit = await make_change(node, kb.history, partial(kb.library.delete, path), question)
    if commit is not None:
        tell(node, f"Deleted {title}. u brings it back.", "warning")
    return commit


async def undelete(node: DOMNode, kb: KnowledgeBase, deleted: Commit) -> str | None:
    """Undo a deletion and return the path of the restored entry."""
    path = next((c.path for c in deleted.paths if c.kind == "deleted"), "")
    if await _undo(node, kb, deleted, (), (path,)) is None:
        return None
    tell(node, f"{name_of(path)} is back.")
    return path


async def compare_note(node: DOMNode, kb: KnowledgeBase, path: str) -> None:
    """Ask for a day or two, and show what changed in a note of now between them."""
    names = await asyncio.to_thread(names_of, kb.library, [path])
    await compare(node, kb.history, path, names[path].title)


async def compare(
    node: DOMNode, history: HistoryReader, path: str, title: str, since: Commit | None = None
) -> None:
    """Ask for a day or a change, or two, and show what changed in a note between them.

    The change `since` is offered by its time.
    """
    offered = f"{since.time.astimezone():%Y-%m-%d %H:%M}" if since is not None else ""
    typed = await ask_text(node, f"What changed in {clean_line(title)} since", offered, EXAMPLES)
    if not typed:
        return
    if since is not None:  # others may have been made in the same minute
        typed = typed.replace(offered, since.id, 1)
    first, last = await asyncio.to_thread(between_of, history, typed)
    found = await asyncio.to_thread(history.between, path, first, last)
    begin = await asyncio.to_thread(told_moment, history, first)
    end = await asyncio.to_thread(told_moment, history, last, is_end=True)
    if found is None:
        tell(node, f"Nothing was changed in {clean_line(title)} from {begin} to {end}.")
        return
    await confirm(node, clean_line(title), f"What changed from {begin} to {end}.", {}, (found,))


async def undo_last(node: DOMNode, kb: KnowledgeBase, path: str) -> None:
    """Undo the last change of one file."""
    commit = await asyncio.to_thread(lambda: next(iter(kb.history.log(path, limit=1)), None))
    if commit is None:
        tell(node, "There is nothing to undo.")
        return
    moved = any(change.path == path and change.kind == "renamed" for change in commit.paths)
    paths = () if moved else (path,)
    if await _undo(node, kb, commit, paths, (path,)) is not None:
        tell(node, f"Undone: {draw_sentence(commit, await _load_names(kb)).plain}.")


async def _undo(
    node: DOMNode, kb: KnowledgeBase, commit: Commit, paths: Sequence[str], own: Sequence[str]
) -> Commit | None:
    undo = partial(kb.history.undo, commit.id, paths=paths)
    summary = draw_sentence(commit, await _load_names(kb)).plain
    return await confirm_and_undo(node, kb.history, summary, undo, own)


async def _load_names(kb: KnowledgeBase) -> Names:
    """Return the names of notes, in a thread because it may read files that changed."""
    return await asyncio.to_thread(lambda: Names(kb.library.infos()))


async def edit_outside(node: DOMNode, kb: KnowledgeBase, path: str) -> None:
    """Open the file in the user's editor, and commit what it saves as the user's change.

    A document is opened by what the desktop has for it. An editor that fails replaces nothing: the
    file is put back, and what the editor left is in its history.
    """
    file = kb.workspace.place(path)
    if is_beside_notes(path):
        why_not = await outside.open_outside(node.app, str(file))
        if why_not:
            raise UsageError(f"{why_not} The document is {file}", "It opens where a desktop is.")
        return
    before = await asyncio.to_thread(kb.library.read, path)
    edited = outside.edit_file(node.app, file)
    adopted = await asyncio.to_thread(kb.history.adopt, settle=0)
    if edited.failure:
        text = "The note is as it was."
        if edited.changed:
            await asyncio.to_thread(_put_back, kb, path, before)
            text += " What the editor left is in its history: u brings it."
        raise UsageError(edited.failure, text)
    if edited.at_once:
        said = f"{edited.at_once} What you save there is taken all the same."
        tell(node, said, "warning", seconds=LONG_SECONDS)
    elif adopted is None and not edited.changed:
        tell(node, "Nothing changed.")


def _put_back(kb: KnowledgeBase, path: str, data: bytes) -> None:
    """Take back what an editor that failed has saved; nothing if the file isn't recorded."""
    if not is_recorded(path):
        return
    kb.history.undo(next(iter(kb.history.log(path, limit=1))).id, paths=(path,))
    if kb.library.read(path) == data:
        return
    # It saved several times, and the first ones were recorded in between.
    with kb.history.change(Actor.YOU, "put back, because the editor failed") as change:
        change.write(path, data, expecting=blob_of(change.read(path)))


async def pick_tag(node: DOMNode, kb: KnowledgeBase) -> str | None:
    """Let the user choose a tag from all, shown with their counts."""
    counts = await asyncio.to_thread(kb.library.tags)
    choices = [Choice(f"#{tag}", f"{count:,}", tag) for tag, count in counts.items()]
    return await pick(node, f"Tags {len(counts):,}", choices, nothing="No note has a tag.")


async def open_web_link(node: DOMNode, url: str) -> None:
    """Show the URL of a link; on confirmation open it, or copy it where nothing can."""
    address = outside.address(url)
    if outside.can_open(url):
        keys = {"enter": "open", "y": "copy"}
        answer = await ask(node, "Open in the browser?", address, keys)
        why_not = await outside.open_outside(node.app, url) if answer == "enter" else ""
        if not why_not:
            if answer == "y":
                node.app.copy_to_clipboard(url)
            return
    else:
        why_not = "There is no desktop here to open it on."
    hint = f"\n\n{why_not} Copy it, or follow it in your terminal."
    keys = {"enter": "copy"}
    if await ask(node, "Open in your own browser?", address + hint, keys) == "enter":
        node.app.copy_to_clipboard(url)
