"""Writing what shall stand in one place of a proposal, below the difference that it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from kbtui.text import clean_line
from kbtui.tui.actions.registry import bindings
from kbtui.tui.notes.line_endings import for_editor, restore
from kbtui.tui.notes.note_area import NoteArea

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from kbtui.memory.inbox.conflict_markers import Draft


class PlaceEditor(Vertical):
    """A text field with the proposed lines; where the file was changed, with both sides."""

    DEFAULT_CSS = """
    PlaceEditor {
        height: 1fr; border-top: solid $primary 60%;
        #place-title { height: auto; padding: 0 1; background: $boost; color: $text-muted; }
        NoteArea { height: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("editor")]

    class Saved(Message):
        """The text shall stand there."""

        def __init__(self, proposal: str, place: str, text: str, seen: str) -> None:
            super().__init__()
            self.proposal = proposal
            self.place = place
            self.text = text
            self.seen = seen

    class Closed(Message):
        """The editor may go; `unsaved` says whether something was typed."""

        def __init__(self, *, unsaved: bool) -> None:
            super().__init__()
            self.unsaved = unsaved

    def __init__(self, proposal: str, place: str, draft: Draft, *, conflict: bool) -> None:
        super().__init__(id="place-editor")
        self.proposal = proposal
        self.place = place
        self._draft = draft
        self._conflict = conflict

    def compose(self) -> ComposeResult:
        """What it is about, and the text."""
        name = clean_line(self._draft.path.removeprefix("knowledge/").removesuffix(".md"))
        what = f"all of {name}" if self._draft.whole else f"lines of {name}"
        hint = "Ctrl+S takes your text, Esc leaves it"
        if self._conflict:
            hint = f"both sides are marked: leave what shall stand there. {hint}"
        yield Static(Content(f"Your text for {what}: {hint}"), id="place-title")
        yield NoteArea(for_editor(self._draft.text), id="place-text")

    def on_mount(self) -> None:
        """Begin to write at once."""
        self.area.focus()

    @property
    def area(self) -> NoteArea:
        """The field."""
        return self.query_one("#place-text", NoteArea)

    def action_save(self) -> None:
        """Take the text."""
        text = restore(self._draft.text, self.area.text)
        if text and not text.endswith("\n") and not self._draft.whole:
            text += "\n"  # a place is made of whole lines
        self.post_message(self.Saved(self.proposal, self.place, text, self._draft.seen))

    def action_close(self) -> None:
        """Leave the proposal as it is."""
        unsaved = self.area.text != for_editor(self._draft.text)
        self.post_message(self.Closed(unsaved=unsaved))
