"""Two versions of one text: both are shown, the person decides, nothing is lost before."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from kbtui.text import clean_line
from kbtui.tui.diff.diff_view import DiffView

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType


class ConflictScreen(ModalScreen[str | None]):
    """Shows what stands in the file against what was typed; answers with the text to save."""

    DEFAULT_CSS = """
    ConflictScreen {
        align: center middle;
        background: $background 60%;
        #conflict {
            width: 95%; height: 90%; background: $surface; border: round $warning;
            border-title-color: $text-warning;
        }
        #conflict-why, #conflict-keys { height: auto; padding: 0 1; }
        #conflict-keys { color: $text-muted; }
        DiffView { height: 1fr; margin: 1 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mine", "Keep mine", show=False),
        Binding("t", "theirs", "Take the file's", show=False),
        Binding("b", "both", "Merge both", show=False),
        Binding("escape", "edit", "Go on editing", show=False),
        Binding("j,down", "scroll(1)", "Down", show=False),
        Binding("k,up", "scroll(-1)", "Up", show=False),
        Binding("n", "hunk(1)", "Next place", show=False),
        Binding("p", "hunk(-1)", "Place before", show=False),
    ]

    def __init__(self, path: str, theirs: str, mine: str, base: str) -> None:
        """Compare `theirs` (in the file now) with `mine`; both grew out of `base`."""
        super().__init__()
        self._path = path
        self._theirs = theirs
        self._mine = mine
        self._merged = merged(path, base, mine, theirs)

    def compose(self) -> ComposeResult:
        """What happened, the differences, the choices."""
        with Vertical(id="conflict") as box:
            box.border_title = Content(
                f"{clean_line(self._path.removeprefix('knowledge/'))} changed meanwhile"
            )
            yield Static(
                Content(
                    "Removed lines (-) are in the file now, added ones (+) are yours. "
                    "Your text is kept as a draft until you decide."
                ),
                id="conflict-why",
            )
            yield DiffView(id="conflict-diff")
            yield Static(self._keys(), id="conflict-keys")

    def _keys(self) -> Content:
        keys = {"m": "save mine over it", "t": "take the file's", "Esc": "go on editing"}
        if self._merged is not None:
            keys = {"b": "save both merged", **keys}
        parts: list[str | tuple[str, str]] = []
        for key, label in keys.items():
            parts += [(key, "bold $text-accent"), f" {label}   "]
        return Content.assemble(*parts)

    def on_mount(self) -> None:
        """Show the differences."""
        from kbtui.history.looking.diff import diff_file

        view = self.query_one(DiffView)
        view.show([diff_file(self._path, self._theirs.encode(), self._mine.encode())])
        view.focus()

    def action_mine(self) -> None:
        """Save what was typed; the file's version stays in the history."""
        self.dismiss(self._mine)

    def action_theirs(self) -> None:
        """Give up what was typed."""
        self.dismiss(self._theirs)

    def action_both(self) -> None:
        """Save both changes, where they don't touch the same lines."""
        if self._merged is not None:
            self.dismiss(self._merged)

    def action_edit(self) -> None:
        """Decide later."""
        self.dismiss(None)

    def action_scroll(self, by: int) -> None:
        """Scroll the differences."""
        self.query_one(DiffView).scroll_relative(y=by, animate=False)

    def action_hunk(self, by: int) -> None:
        """Go to another changed place."""
        self.query_one(DiffView).go_to_hunk(by)


def merged(path: str, base: str, mine: str, theirs: str) -> str | None:
    """Both changes in one text; None where they touch the same lines."""
    from kbtui.history.merging.undo_merge import take_out

    # Going from `mine` to `base` and further to `theirs`: taking out the first step leaves both.
    merge = take_out(path, [base, theirs], mine)
    return None if merge.conflicts else merge.text
