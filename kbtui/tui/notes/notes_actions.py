"""What the notes pane does to entries; imported when the first of it is asked for."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
from functools import partial
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.text import clean_line
from kbtui.tui.messages import tell, tell_error
from kbtui.tui.notes.entry_editor import EntryEditor
from kbtui.tui.terminal.background import run_latest
from kbtui.tui.widgets.dialogs import (
    KeyDialog,
    NewEntry,
    NewEntryDialog,
    PickDialog,
    TextDialog,
)
from kbtui.tui.widgets.row_list import Choice
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.dom import DOMNode

    from kbtui.history.objects.commit import Commit
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.notes.notes_pane import NotesPane

MAX_EDITED = 400_000
"""Characters up to which a file is edited in place; the text field gets slow with more."""
_EDITORS = ("nano", "vim", "vi", "micro")


class NotesActions:
    """New, edit, rename, move, delete, undo: each asks what it needs and says what it did."""

    def __init__(self, pane: NotesPane) -> None:
        self._pane = pane
        self._deleted: Commit | None = None

    @property
    def _kb(self) -> KnowledgeBase | None:
        return self._pane.kb

    def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something that may fail, one thing at a time."""
        run_latest(self._pane, "action", self._guarded, work)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except KbtuiError as error:
            tell_error(self._pane, error)

    # Making

    def new(self, title: str = "", type_: str | None = None) -> None:
        """Ask for title and type, make the entry, and start to write."""
        self._run(partial(self._new, title, type_))

    async def _new(self, title: str, type_: str | None) -> None:
        from kbtui.knowledge.templates import ENTRY_TYPES

        if self._kb is None:
            return
        chosen: NewEntry | None = await self._pane.app.push_screen_wait(
            NewEntryDialog(ENTRY_TYPES, type_ or self._type_here(), title)
        )
        if chosen is not None:
            entry = await asyncio.to_thread(self._kb.library.create, chosen.type, chosen.title)
            self._pane.open_entry(entry.path, first_line_to_fill(entry.text), edit=True)

    def _type_here(self) -> str:
        from kbtui.knowledge.templates import TYPE_OF_FOLDER

        row = self._pane.knowledge_tree.row
        if row is None:
            return "topic"
        category = row.entry.category if row.entry is not None else ""
        if row.folder is not None:
            category = row.folder.path
        return TYPE_OF_FOLDER.get(category.partition("/")[0], "topic")

    def offer_to_make(self, target: str) -> None:
        """A link leads to an entry that isn't there: offer to write it."""
        name = clean_line(target.rpartition("/")[2].removesuffix(".md"))
        self.new(name)

    # Editing

    async def edit(self, path: str, line: int | None = None) -> None:
        """Put the editor in the place of the reader."""
        from kbtui.tui.notes.documents import load_document

        pane = self._pane
        if self._kb is None or pane.editor is not None:
            return
        document = await asyncio.to_thread(load_document, self._kb, path)
        why_not = _why_not_editable(document.editable, len(document.text))
        if why_not:
            tell(pane, why_not, "warning")
            return
        view = pane.view
        if view is None or pane.current_path != path:
            await pane.show(path)
        elif line is None and (view.body.scroll_y > 0 or view.body.has_cursor):
            line = view.body.pointed_source
        await pane.place.open_editor(EntryEditor(self._kb, document, line=line, id="notes-editor"))

    def edit_outside(self) -> None:
        """Hand the file to $VISUAL or $EDITOR; what it saves is the person's own change."""
        path = self._pane.target()
        if path is not None and self._kb is not None:
            self._run(partial(self._edit_outside, self._kb, path))

    async def _edit_outside(self, kb: KnowledgeBase, path: str) -> None:
        command = editor_command()
        if command is None:
            tell(self._pane, "No editor found: set $EDITOR, e.g. to vim.", "warning")
            return
        file = kb.workspace.root / path
        with self._pane.app.suspend():
            try:
                # The app can't draw meanwhile, so there is nothing to keep responsive.
                subprocess.run([*command, str(file)], check=False)  # noqa: ASYNC221
            except OSError as error:
                tell(self._pane, f"{command[0]} didn't start: {error.strerror}.", "error")
                return
        commit = await asyncio.to_thread(kb.history.adopt, settle=0)
        if commit is None:
            tell(self._pane, "Nothing changed.")
        self._pane.refresh_all()

    # Changing

    def rename(self) -> None:
        """Ask for a new title and repair all links."""
        self._run(self._rename)

    async def _rename(self) -> None:
        path = self._pane.target()
        if self._kb is None or path is None:
            return
        entry = await asyncio.to_thread(self._kb.library.get, path)
        new = await self._pane.app.push_screen_wait(
            TextDialog(
                f"Rename {short_name(path)}",
                entry.title,
                "Links to it are repaired; the old name stays as an alias.",
            )
        )
        if new is not None and new != entry.title:
            await self._rename_to(path, new)

    async def _rename_to(self, path: str, new: str) -> None:
        if self._kb is None:
            return
        entry = await asyncio.to_thread(self._kb.library.rename, path, new)
        tell(self._pane, f"{short_name(path)} is now {short_name(entry.path)}.")
        self._pane.moved(path, entry.path)

    def move(self) -> None:
        """Ask for a category and move the entry there."""
        self._run(self._move)

    async def _move(self) -> None:
        path = self._pane.target()
        info = self._pane.entries.get(path or "")
        if path is None or info is None:
            return
        counts: dict[str, int] = {}
        for entry in self._pane.entries.values():
            counts[entry.category] = counts.get(entry.category, 0) + 1
        choices = [
            Choice(category, f"{count:,}", category)
            for category, count in sorted(counts.items())
            if category and category != info.category
        ]
        category = await self._pane.app.push_screen_wait(
            PickDialog(f"Move {short_name(path)} to", choices, new="new category")
        )
        if category is not None:
            await self._rename_to(path, f"{category.strip('/')}/{info.slug}")

    def delete(self) -> None:
        """Delete at once; `u` brings the entry back."""
        path = self._pane.target()
        if self._kb is not None and path is not None:
            self._run(partial(self._delete, self._kb, path))

    async def _delete(self, kb: KnowledgeBase, path: str) -> None:
        self._deleted = await asyncio.to_thread(kb.library.delete, path)
        tell(self._pane, f"Deleted {short_name(path)}. u brings it back.", "warning")
        self._pane.gone(path)

    def undo(self) -> None:
        """Bring back what was just deleted, else undo the entry's last change."""
        if self._kb is not None:
            self._run(partial(self._undo, self._kb))

    async def _undo(self, kb: KnowledgeBase) -> None:
        deleted, self._deleted = self._deleted, None
        if deleted is not None:
            await asyncio.to_thread(kb.history.undo, deleted.id)
            path = next((c.path for c in deleted.paths if c.kind == "deleted"), None)
            tell(self._pane, f"{short_name(path or '')} is back.")
            if path is not None:
                self._pane.open_entry(path)
            return
        path = self._pane.target()
        if path is not None:
            await self._undo_last(kb, path)

    async def _undo_last(self, kb: KnowledgeBase, path: str) -> None:
        """Undo the last change of one file."""
        from kbtui.tui.diff.undo_conflict import undo_settled

        commit = await asyncio.to_thread(_last_change, kb, path)
        if commit is None:
            tell(self._pane, "There is nothing to undo.")
            return
        moved = any(change.path == path and change.kind == "renamed" for change in commit.paths)
        paths = () if moved else (path,)
        done = await undo_settled(
            self._pane, lambda decided: kb.history.undo(commit.id, paths=paths, decisions=decided)
        )
        if done is not None:
            tell(self._pane, f"Undone: {clean_line(commit.subject)}")

    def forget_deletion(self) -> None:
        """From now on `u` means the entry that is shown."""
        self._deleted = None

    # Asking

    def tags(self) -> None:
        """Choose a tag and show only its entries."""
        self._run(self._tags)

    async def _tags(self) -> None:
        if self._kb is None:
            return
        counts = await asyncio.to_thread(self._kb.library.tags)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        tag = await self._pane.app.push_screen_wait(
            PickDialog("Tags", [Choice(f"#{tag}", f"{count:,}", tag) for tag, count in ranked])
        )
        if tag is not None:
            await self._pane.start_filter(f"#{tag}")

    def ask_about_url(self, url: str) -> None:
        """Show where a link leads before anything is opened."""
        self._run(partial(self._ask_about_url, url))

    async def _ask_about_url(self, url: str) -> None:
        answer = await self._pane.app.push_screen_wait(
            KeyDialog("Open in the browser?", url, {"enter": "open", "y": "copy"})
        )
        if answer == "enter":
            self._pane.app.open_url(url)
        elif answer == "y":
            await copy_text(self._pane, url)


def first_line_to_fill(text: str) -> int:
    """Where writing a new entry begins: below its first section, or at the end."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("## "):
            return number + 1
    return len(lines)


def _why_not_editable(editable: bool, length: int) -> str:  # noqa: FBT001
    if not editable:
        return "This file can't be edited here without changing other bytes of it."
    if length > MAX_EDITED:
        return "This file is too long to be edited here; E opens it in your editor."
    return ""


def _last_change(kb: KnowledgeBase, path: str) -> Commit | None:
    return next(iter(kb.history.log(path, limit=1)), None)


def editor_command() -> list[str] | None:
    """The person's editor as a command line without the file."""
    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(os.environ.get(name, ""))
        except ValueError:
            continue
        if words:
            return words
    return next(([name] for name in _EDITORS if shutil.which(name)), None)


async def copy_text(node: DOMNode, text: str) -> None:
    """Copy, and say which way it went."""
    from kbtui.tui.terminal.clipboard import copy

    copied = await asyncio.to_thread(copy, text)
    if copied is None:
        tell(node, "Copying failed: no way to a clipboard was found.", "error")
        return
    if copied.osc52:
        node.app.copy_to_clipboard(text)
    tell(node, f"Copied {copied.way}.")
