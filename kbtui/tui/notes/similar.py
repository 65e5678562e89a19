"""The dialog of the notes that are like the open one, each with the sentence that is alike."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from kbtui.errors import KbtuiError
from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.notes import name_of
from kbtui.search.results import SimilarNote
from kbtui.text import clean, clean_line
from kbtui.tui.messages import OpenEntry, leave_for, tell
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.dialogs import ListDialog
from kbtui.tui.widgets.row_list import Choice, ChoiceList
from kbtui.workspace.layout import ENTRIES


class SimilarScreen(ListDialog[None]):
    """A dialog that lists similar notes, opens one, and links to one."""

    DEFAULT_CLASSES = "wide"
    DEFAULT_CSS = """
    SimilarScreen {
        ChoiceList { display: none; height: 5; }
        &.-found ChoiceList { display: block; }
        &.-found #similar-text { display: none; }
        &.-found.-noted #similar-text { display: block; }
    }
    """
    HINT = "Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("l", "link", "Link to it")]

    def __init__(self, kb: KnowledgeBase, path: str) -> None:
        """Create the dialog for a note."""
        super().__init__()
        self.TITLE_TEXT = f"Like {name_of(path)}"
        self._kb = kb
        self._path = path

    def compose_question(self) -> ComposeResult:
        yield ChoiceList(id="similar-notes")
        yield Static(Content.styled("Looking for them …", "$text-muted"), id="similar-text")

    @latest("similar")
    async def on_mount(self) -> None:
        text = self.query_one("#similar-text", Static)
        try:
            found = await asyncio.to_thread(self._kb.search.similar, self._path)
        except KbtuiError as error:
            text.update(Content.styled(clean(str(error)), "$text-error"))
            return
        notice = found.notice or ("" if found.notes else "No note is like it.")
        text.update(Content.styled(clean(notice), "$text-muted"))
        if not found.notes:
            return
        self.set_class(bool(notice), "-noted")
        self.add_class("-found")
        self.HINT = "Enter opens it · l links to it · Esc close"
        self.say(self.HINT)
        choices = self.choices
        choices.show([Choice(note.title, note.sentence, note) for note in found.notes], 0)
        choices.focus()

    def action_take(self) -> None:
        if note := self._chosen():
            leave_for(self, OpenEntry(note.path, note.line))

    @latest("similar")
    async def action_link(self) -> None:
        note = self._chosen()
        if note is None:
            return
        if not note.path.startswith(ENTRIES):
            tell(self, "Only a note can be linked to, and this is a document.")
            return
        try:
            commit = await asyncio.to_thread(self._kb.library.relate, self._path, note.path)
        except KbtuiError as error:
            tell(self, str(error), "error")
            return
        title = clean_line(note.title)
        tell(self, f"It links to {title} now." if commit else f"It links to {title} already.")

    def _chosen(self) -> SimilarNote | None:
        choice = self.choices.item
        return choice.value if choice is not None else None
