"""The editor of an entry, and its drafts.

Typed text is never lost: it is saved, kept as a draft, or discarded on the user's command.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from kbtui.documents.documents import kind_of
from kbtui.errors import KbtuiError
from kbtui.history.change import Actor
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import renamed_headings
from kbtui.knowledge_base import KnowledgeBase
from kbtui.text import clean_line, counted
from kbtui.tui.actions.registry import bindings
from kbtui.tui.diff.confirm import choose_version
from kbtui.tui.messages import tell, tell_error
from kbtui.tui.notes.completion import Completer, Vocabulary
from kbtui.tui.notes.documents import Document, load_document
from kbtui.tui.notes.entry_actions import may_replace
from kbtui.tui.notes.find_bar import FindBar
from kbtui.tui.notes.note_area import NoteArea
from kbtui.tui.terminal.background import Debounce, latest, run_latest
from kbtui.tui.terminal.state import (
    DRAFT_LONGEST_SECONDS,
    read_json,
    workspace_state,
    write_state,
)
from kbtui.tui.widgets.dialogs import ask
from kbtui.tui.widgets.pane import Pane
from kbtui.tui.widgets.popup import Popup
from kbtui.tui.widgets.text_field import why_too_long
from kbtui.workspace.files import is_gone
from kbtui.workspace.layout import short_name

_DRAFT_AFTER_SECONDS = 0.8
"""Seconds without a change after which the draft is stored."""
_CHECK_AFTER_SECONDS = 0.4
"""Seconds without a key press after which the frontmatter is checked."""
_LINE_END = re.compile(r"(?:\r\n|[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029])\Z")

_PROPERTY = re.compile(r"[^\W\d][\w -]*:")


class Draft(NamedTuple):
    """Unsaved text, with hash (None for a new file) and text of the version it is based on."""

    text: str
    base: str | None
    base_text: str


class EntryEditor(Pane):
    """An editor of one document, which saves only over the version it loaded."""

    DEFAULT_CSS = """
    EntryEditor {
        height: 1fr;
        #editor-status { height: auto; padding: 0 1; color: $text-warning; }
        NoteArea { height: 1fr; }
    }
    """
    BINDINGS = bindings("editor")

    class Closed(Message):
        """Posted when the editor can be removed; it has no unsaved text."""

    def __init__(
        self,
        kb: KnowledgeBase,
        document: Document,
        *,
        line: int | None = None,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id, classes="framed")
        self._kb = kb
        self.path = document.path
        self._title = document.named.title
        self._base_blob = document.blob
        self._base_text = document.text
        self._line = line
        self._notice = ""
        self._saving = False
        self._is_discarded = False
        self._is_deleted = False
        self._replaces_protected = False
        self._problem = ""
        self._draft_debounce = Debounce(
            self, self._start_storing, pause=_DRAFT_AFTER_SECONDS, longest=DRAFT_LONGEST_SECONDS
        )
        draft = find_draft(kb.workspace.root, document.path)
        if draft is not None and draft.text != document.text:
            self._base_blob, self._base_text = draft.base, draft.base_text
            text = draft.text
            self._notice = "Unsaved text of an earlier time is back."
        else:
            text = normalize_line_ends(document.text)
        self.text_area = area = NoteArea(text, id="editor-text")
        self.find_bar = FindBar(area)
        self.popup = Popup(id="editor-popup")
        self._completer = Completer(self, area, self.popup, Vocabulary(kb, self.path))
        area.takes_key = self._completer.key

    def compose(self) -> ComposeResult:
        yield Static(id="editor-status")
        yield self.text_area
        yield self.popup
        yield self.find_bar

    def on_mount(self) -> None:
        area = self.text_area
        area.move_cursor((min(max(0, (self._line or 1) - 1), area.document.line_count - 1), 0))
        area.scroll_cursor_visible(center=True)
        area.focus()
        self._show_state()

    @property
    def text(self) -> str:
        """The text to save, with the line endings of the file."""
        return restore_line_ends(self._base_text, self.text_area.text)

    @property
    def dirty(self) -> bool:
        """Whether there is unsaved text."""
        return self.text_area.text != normalize_line_ends(self._base_text)

    def action_find(self) -> None:
        self.find_bar.open()

    def action_find_next(self) -> None:
        self.find_bar.go_on()

    def action_replace_all(self) -> None:
        if self.find_bar.display:
            self.find_bar.replace_all()
        else:
            self.find_bar.open()

    # State

    @on(NoteArea.Changed)
    def _text_changed(self) -> None:
        self._show_state()
        if self.text_area.has_focus:
            self._completer.typed()
        self._check()
        self._draft_debounce.request()

    @on(NoteArea.SelectionChanged)
    def _selection_changed(self) -> None:
        self._completer.moved()

    @on(Popup.Picked)
    def _completion_picked(self) -> None:
        self._completer.accept()

    def _show_state(self) -> None:
        state = ("● not saved", "$text-warning") if self.dirty else ("saved", "$text-muted")
        self.label_with(f"✎ {self._title}", Content.styled(*state), place=short_name(self.path))
        message = "\n".join(filter(None, (self._notice, self._problem)))
        status = self.query_one("#editor-status", Static)
        status.update(Content(message))
        status.display = bool(message)

    @latest("check")
    async def _check(self) -> None:
        """Show problems of the frontmatter, debounced."""
        await asyncio.sleep(_CHECK_AFTER_SECONDS)
        problem = await asyncio.to_thread(head_problem, self.text_area.text)
        if problem != self._problem:
            self._problem = problem
            self._show_state()

    def _start_storing(self) -> None:
        run_latest(self, "draft", self._store_draft)

    async def _store_draft(self) -> None:
        root = self._kb.workspace.root
        if self.dirty:
            draft = Draft(self.text_area.text, self._base_blob, self._base_text)
            await asyncio.to_thread(keep_draft, root, self.path, draft)
        else:
            await asyncio.to_thread(drop_draft, root, self.path)

    def on_unmount(self) -> None:
        """Store unsaved text when the app ends with the editor open."""
        if self.dirty and not self._is_discarded:
            draft = Draft(self.text_area.text, self._base_blob, self._base_text)
            keep_draft(self._kb.workspace.root, self.path, draft)

    def file_changed(self) -> None:
        """Handle a commit to this file: load it, or announce the conflict with unsaved text."""
        if not self._saving:
            self._check_file()

    @latest("notice")
    async def _check_file(self) -> None:
        document = await asyncio.to_thread(load_document, self._kb, self.path)
        if document.blob == self._base_blob or self._saving:
            return
        if document.blob is None:
            await self._lose_file(document)
        elif not self.dirty or normalize_line_ends(document.text) == self.text_area.text:
            self._load_version(document)
        else:
            self._notice = "The file changed meanwhile: Ctrl+S shows both."
        self._show_state()

    async def _lose_file(self, document: Document) -> None:
        """Keep the text of a file that is deleted, as unsaved, or can't be read any more."""
        if not await asyncio.to_thread(is_gone, self._kb.workspace, self.path):
            self._notice = document.reason
            return
        self._is_deleted = True
        self._base_blob, self._base_text = None, ""
        self._notice = "The note was deleted outside. Ctrl+S writes it again."
        await self._store_draft()

    def _load_version(self, document: Document) -> None:
        """Load a newer version of the file, keeping the cursor."""
        self._base_blob, self._base_text, self._notice = document.blob, document.text, ""
        self._is_deleted = False
        replace_lines(self.text_area, normalize_line_ends(document.text))

    # Saving

    @latest("save")
    async def action_save(self) -> None:
        await self.save()

    async def save(self) -> bool:
        """Save the text, and return whether nothing is left unsaved."""
        if not self.dirty:
            return True
        if not await self._may_write():
            return False
        typed = self.text_area.text
        self._saving = True
        try:
            headings = await self._headings_to_follow()
            theirs = await asyncio.to_thread(self._write, self.text, self._base_blob, headings)
        except KbtuiError as error:
            await self._store_draft()
            tell_error(self, error)
            return False
        finally:
            self._saving = False
        if theirs is not None:
            if theirs.blob is not None:
                return await self._resolve_conflict(theirs)
            await self._lose_file(theirs)
            self._show_state()
            return self._is_deleted and await self.save()
        await self._saved(typed)
        return not self.dirty

    async def _may_write(self) -> bool:
        """Ask before a deleted note is written again, or a read-only one replaced."""
        if self._is_deleted:
            text = f"{short_name(self.path)} was deleted outside while you edited it."
            return await ask(self, "Deleted meanwhile", text, {"w": "write it again"}) == "w"
        if not self._replaces_protected:
            self._replaces_protected = await may_replace(self, self._kb, self.path)
        return self._replaces_protected

    async def _headings_to_follow(self) -> Mapping[str, str]:
        """Return the renamed headings whose links the user wants updated."""
        renamed, linking = await asyncio.to_thread(
            self._renamed_headings, self._base_text, self.text
        )
        if not linking:
            return {}
        old, new = next(iter(renamed.items()))
        more = f", and {counted(len(renamed) - 1, 'other heading')}" if len(renamed) > 1 else ""
        links = counted(len(linking), "note links", "notes link")
        text = f"{links} to “{old}”, which is “{new}” now{more}."
        keys = {"m": "mend the links", "l": "leave them"}
        answer = await ask(self, "Heading renamed", text, keys)
        return renamed if answer == "m" else {}

    def _renamed_headings(self, before: str, after: str) -> tuple[dict[str, str], list[str]]:
        """Return the renamed headings that have links, and the notes that link to them."""
        renamed = renamed_headings(before, after)
        library = self._kb.library
        if not renamed or not library.exists(self.path):
            return {}, []
        linking = {each: library.notes_naming(self.path, [each]) for each in renamed}
        linked = {old: new for old, new in renamed.items() if linking[old]}
        return linked, sorted({note for notes in linking.values() for note in notes})

    def _write(
        self, text: str, expecting: str | None, headings: Mapping[str, str]
    ) -> Document | None:
        """Write the file, or return its current version if that isn't the expected one."""
        # Checked here first, because on a conflict the door would store the text in a copy beside
        # the file. The door still guards the moment between this check and the write.
        self._kb.workspace.confirm()
        document = load_document(self._kb, self.path)
        if document.blob != expecting:
            return document
        self._kb.library.write(
            self.path,
            text,
            expecting=expecting,
            actor=Actor.YOU,
            reason="edited in kbtui",
            headings=headings,
        )
        return None

    async def _saved(self, typed: str) -> None:
        document = await asyncio.to_thread(load_document, self._kb, self.path)
        self._notice, self._is_deleted = "", False
        if self.text_area.text == typed:
            # The door may have set `updated`; show the file as it is now.
            self._load_version(document)
        else:
            self._base_blob, self._base_text = document.blob, document.text
        await self._store_draft()
        self._show_state()

    async def _resolve_conflict(self, theirs: Document) -> bool:
        await self._store_draft()
        choice = await choose_version(
            self, self.path, theirs=theirs.text, mine=self.text, base=self._base_text
        )
        if choice is None:
            return False
        self._base_blob, self._base_text = theirs.blob, theirs.text
        replace_lines(self.text_area, normalize_line_ends(choice))
        self._show_state()
        return await self.save()

    # Leaving

    def action_close(self) -> None:
        if not self.find_bar.close():
            self._close()

    @latest("close")
    async def _close(self) -> None:
        if await self.leave():
            self.post_message(self.Closed())

    async def leave(self) -> bool:
        """Ask what to do with unsaved text, and return whether the editor may close."""
        if not self.dirty:
            await self._discard_draft()
            return True
        keys = {"s": "save", "d": "discard", "k": "keep as a draft"}
        answer = await ask(self, "Not saved", "What you wrote is not saved.", keys)
        if answer == "s":
            return await self.save()
        if answer == "d":
            await self._discard_draft()
            return True
        if answer == "k":
            await self._store_draft()
            tell(self, "Kept. Editing the note again brings your text back.")
            return True
        self.text_area.focus()
        return False

    async def _discard_draft(self) -> None:
        self._draft_debounce.cancel()
        self.workers.cancel_group(self, "draft")
        self._is_discarded = True
        await asyncio.to_thread(drop_draft, self._kb.workspace.root, self.path)


def replace_lines(area: NoteArea, text: str) -> None:
    """Replace only the lines that differ, to preserve cursor and undo history."""
    old, new = area.text.split("\n"), text.split("\n")
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, start, end, new_start, new_end in reversed(matcher.get_opcodes()):
        if tag == "equal":
            continue
        lines = new[new_start:new_end]
        if end < len(old):
            area.replace("".join(f"{line}\n" for line in lines), (start, 0), (end, 0))
        elif start:
            # The replaced lines end the text, without a line ending after them.
            before = (start - 1, len(old[start - 1]))
            area.replace("".join(f"\n{line}" for line in lines), before, area.document.end)
        else:
            area.replace("\n".join(lines), (0, 0), area.document.end)


def head_problem(text: str) -> str:
    """Return the problem of a text's frontmatter in one line, or an empty string."""
    first, _, rest = text.partition("\n")
    if first.rstrip() != "---":
        return ""
    parts = frontmatter.split(text.encode("utf-8", "replace"))
    if not parts.opening:
        has_property = _PROPERTY.match(rest)
        return "Properties: the line --- that ends them is missing." if has_property else ""
    problem = frontmatter.read(parts).problem
    return f"Properties can't be read: {clean_line(problem)}." if problem else ""


def why_not_editable(document: Document) -> str:
    """Return the reason why a document can't be edited here, or an empty string."""
    if not document.editable:
        if kind_of(document.path):
            return "This is the text that was read out of a document; the document stays as it is."
        return "This file can't be edited here without changing other bytes of it."
    why_not = why_too_long(document.text)
    return f"{why_not} E opens it in your editor." if why_not else ""


# Preserving unedited bytes: the text area knows only one kind of line ending.


def normalize_line_ends(text: str) -> str:
    r"""Return a text with all line endings normalized to ``\\n``."""
    return "\n".join(text.splitlines()) + ("\n" if _LINE_END.search(text) else "")


def restore_line_ends(original: str, edited: str) -> str:
    """Return an edit of `normalize_line_ends(original)` with the line endings of `original`.

    New lines get the most common one of the file.
    """
    if normalize_line_ends(original) == original:
        return edited
    old = original.splitlines(keepends=True)
    bare = [_LINE_END.sub("", line) for line in old]
    ends = [line[len(text) :] for line, text in zip(old, bare, strict=True)]
    new = edited.split("\n")
    usual = Counter(filter(None, ends)).most_common(1)
    default = usual[0][0] if usual else "\n"
    result = [default] * len(new)
    matcher = SequenceMatcher(None, bare, new, autojunk=False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            result[block.b + offset] = ends[block.a + offset] or default
    # No line ending follows the last piece of `split`.
    result[-1] = ""
    return "".join(text + end for text, end in zip(new, result, strict=True))


# Drafts are stored in the state directory until they are saved or discarded.


def _draft_file(root: Path, path: str) -> Path:
    name = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return workspace_state(root) / "edits" / f"{name}.json"


def keep_draft(root: Path, path: str, draft: Draft) -> bool:
    """Store a draft, and return whether that succeeded."""
    record = {"path": path, **draft._asdict()}
    return write_state(_draft_file(root, path), json.dumps(record, ensure_ascii=True))


def find_draft(root: Path, path: str) -> Draft | None:
    """Return the draft of a file, or None."""
    try:
        record = read_json(_draft_file(root, path))
        if record["path"] != path:
            return None
        return Draft(str(record["text"]), record["base"], str(record["base_text"]))
    except (KeyError, TypeError):
        return None


def drop_draft(root: Path, path: str) -> None:
    """Delete a draft that was saved or discarded."""
    with contextlib.suppress(OSError):
        _draft_file(root, path).unlink()
