"""A change to be looked at before it is made, or two versions of a text to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from kbtui.text import clean, clean_line
from kbtui.tui.diff.diff_view import DiffView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.dom import DOMNode

    from kbtui.history.looking.diff import FileDiff


class ConfirmScreen(ModalScreen[str | None]):
    """Answers with the key of the choice; None for leaving everything as it is."""

    DEFAULT_CSS = """
    ConfirmScreen {
        align: center middle;
        background: $background 60%;
        #confirm {
            width: 110; max-width: 95%; height: auto; max-height: 90%;
            background: $surface; border: round $primary 60%; padding: 0 1;
            border-title-color: $primary; border-subtitle-color: $text-muted;
        }
        #confirm-text { height: auto; max-height: 80vh; }
        .-diffs #confirm-text { max-height: 50%; }
        #confirm-text Static { height: auto; }
        #confirm.-diffs { height: 90%; }
        DiffView { height: 1fr; margin-top: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "answer", "Leave it", show=False),
        Binding("j,down", "scroll(1)", "Down", show=False),
        Binding("k,up", "scroll(-1)", "Up", show=False),
        Binding("n", "hunk(1)", "Next place", show=False),
        Binding("p", "hunk(-1)", "Place before", show=False),
    ]

    def __init__(
        self,
        title: str,
        text: str,
        choices: Mapping[str, str],
        diffs: Sequence[FileDiff] = (),
        *,
        leave: str = "leaves it",
    ) -> None:
        """Ask with `title`; `choices` maps each key to what it does, `leave` is what Esc does."""
        super().__init__()
        self._title = clean_line(title)
        self._text = clean(text)
        self._choices = dict(choices)
        self._diffs = tuple(diffs)
        self._leave = leave
        for key, label in choices.items():
            self._bindings.bind(key, f"answer('{key}')", label)

    def compose(self) -> ComposeResult:
        """The question, the difference, the choices below."""
        with Vertical(id="confirm", classes="-diffs" if self._diffs else "") as box:
            box.border_title = Content(self._title)
            named = {"enter": "Enter"}
            keys = [f"{named.get(key, key)} {label}" for key, label in self._choices.items()]
            box.border_subtitle = Content(" · ".join([*keys, f"Esc {self._leave}"]))
            with VerticalScroll(id="confirm-text"):
                yield Static(Content(self._text))
            if self._diffs:
                yield DiffView()

    def on_mount(self) -> None:
        """Show the differences."""
        for view in self.query(DiffView):
            view.show(self._diffs)
            view.focus()

    def action_scroll(self, lines: int) -> None:
        """Scroll the differences, else the text."""
        places = [*self.query(DiffView), *self.query(VerticalScroll)]
        places[0].scroll_relative(y=lines, animate=False)

    def action_hunk(self, by: int) -> None:
        """Go to another changed place."""
        for view in self.query(DiffView):
            view.go_to_hunk(by)

    def action_answer(self, key: str | None = None) -> None:
        """Take a choice."""
        self.dismiss(key)


async def choose_version(
    node: DOMNode, path: str, *, theirs: str, mine: str, base: str
) -> str | None:
    """Show `theirs` (in the file now) against `mine` (typed); both grew out of `base`.

    Returns:
        The text to save; None to go on editing.
    """
    from kbtui.history.looking.diff import diff_file

    both = merged(path, base, mine, theirs)
    choices = {"m": "saves mine over it", "t": "takes the file's"}
    screen = ConfirmScreen(
        f"{path.removeprefix('knowledge/')} changed meanwhile",
        "Removed lines (-) are in the file now, added ones (+) are yours. Your text is kept as a "
        "draft until you decide.",
        {"b": "saves both merged", **choices} if both is not None else choices,
        [diff_file(path, theirs.encode(), mine.encode())],
        leave="goes on editing",
    )
    answer = await node.app.push_screen_wait(screen)
    return {"m": mine, "t": theirs, "b": both}.get(answer or "")


def merged(path: str, base: str, mine: str, theirs: str) -> str | None:
    """Both changes in one text; None where they touch the same lines."""
    from kbtui.history.merging.undo_merge import take_out

    # Going from `mine` to `base` and further to `theirs`: taking out the first step leaves both.
    merge = take_out(path, [base, theirs], mine)
    return None if merge.conflicts else merge.text
