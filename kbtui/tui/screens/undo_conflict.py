"""Why a change can't be undone by itself: what stands there now against what undoing wants."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from kbtui.text import clean, clean_line
from kbtui.tui.messages import OpenEntry
from kbtui.tui.widgets.diff_view import DiffView
from kbtui.tui.widgets.line_view import Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from kbtui.errors import UndoConflictError
    from kbtui.history.merge import Conflict


class UndoConflictScreen(ModalScreen[None]):
    """Shows both sides of each place; nothing was changed."""

    DEFAULT_CSS = """
    UndoConflictScreen {
        align: center middle;
        background: $background 60%;
        #conflicts {
            width: 90%; max-width: 110; height: auto; max-height: 90%; background: $surface;
            border: round $warning; border-title-color: $text-warning; padding: 0 1;
        }
        Static { height: auto; }
        DiffView { height: auto; max-height: 24; margin: 1 0; }
        #conflicts-keys { color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Close", show=False),
        Binding("e", "edit", "Edit the entry", show=False),
        Binding("j", "scroll(1)", "Down", show=False),
        Binding("k", "scroll(-1)", "Up", show=False),
    ]

    def __init__(self, error: UndoConflictError) -> None:
        super().__init__()
        self._error = error
        self._conflicts: Sequence[Conflict] = tuple(getattr(error, "conflicts", ()))

    def compose(self) -> ComposeResult:
        """What happened, both sides, the keys."""
        with Vertical(id="conflicts") as box:
            box.border_title = Content("Nothing was changed")
            text = f"{self._error.message} {self._error.hint}".strip()
            yield Static(Content(clean(text)))
            yield DiffView()
            keys: list[str | tuple[str, str]] = [("Esc", "bold $text-accent"), " close   "]
            if self._conflicts:
                keys += [("e", "bold $text-accent"), " edit the entry there"]
            yield Static(Content.assemble(*keys), id="conflicts-keys")

    def on_mount(self) -> None:
        """Show both sides."""
        view = self.query_one(DiffView)
        view.show_lines([line for conflict in self._conflicts for line in _lines(conflict)])
        view.focus()

    def action_scroll(self, by: int) -> None:
        """Scroll the places."""
        self.query_one(DiffView).scroll_relative(y=by, animate=False)

    def action_edit(self) -> None:
        """Settle it by hand, where it stands."""
        if self._conflicts:
            first = self._conflicts[0]
            main = self.app.screen_stack[0]
            while self.app.screen_stack[-1] is not main:
                self.app.pop_screen()
            main.post_message(OpenEntry(first.path, first.line or None, edit=True))

    def action_close(self) -> None:
        """Leave everything as it is."""
        self.dismiss(None)


def _lines(conflict: Conflict) -> Iterator[Line]:
    name = clean_line(conflict.path.removeprefix("knowledge/").removesuffix(".md"))
    place = f"{name}:{conflict.line}" if conflict.line else name
    yield Line(Content.styled(f" {place}", ".diff--name"), fill="diff--file")
    for title, text, sign, fill in (
        ("stands there now", conflict.ours, "-", "diff--removed"),
        ("undoing would put there", conflict.theirs, "+", "diff--added"),
    ):
        yield Line(Content.styled(f"  {title}", ".diff--muted"))
        for part in clean(text).rstrip("\n").split("\n") if text else ["(nothing)"]:
            for index, piece in enumerate(Content(part.expandtabs(4)).wrap(96)):
                yield Line(Content(f"  {sign if not index else ' '} ") + piece, 0, fill)
    yield Line(Content())
