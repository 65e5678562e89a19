"""Undo with confirmation, and the dialog that resolves its conflicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.dom import DOMNode
from textual.widgets import Static

from kbtui.errors import UndoConflictError
from kbtui.history.change import Commit
from kbtui.history.history import History
from kbtui.history.merging.tree_merge import Conflict, Resolution, Side
from kbtui.presentation.notes import name_of
from kbtui.text import clean, clean_line
from kbtui.tui.diff.confirm import Question, make_change
from kbtui.tui.diff.diff_view import DiffView
from kbtui.tui.messages import OpenEntry, leave_for, tell
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.dialogs import Dialog, TextEditScreen
from kbtui.tui.widgets.line_view import Line

Decisions = dict["Conflict", "Resolution"]
_SIDE_COLUMNS = 96
_SIDE_LINES = 40
_KINDS = {
    "line": "was changed again",
    "key": "this key was changed again",
    "place": "was moved again",
    "file": "the file was changed as a whole",
    "name": "was renamed again, or the old name is taken",
}
_TITLES = {"place": ("where it stands now", "where it stood before")}


async def confirm_and_undo(
    node: DOMNode,
    history: History,
    what: str,
    undo: Callable[..., object],
    own: Collection[str] = (),
    unasked: int = 1,
) -> Commit | None:
    """Undo a change like `make_change`, with confirmation if that touches several files.

    Conflicts are shown until all are resolved. `undo` takes the `decisions` made so far, and the
    `sink` to pass the change to; `own` are the files it is about, `unasked` is how many others may
    be touched without confirmation.
    """
    text = f"{clean_line(what)}\n{{files}} would change. The undo can be undone as well."
    question = Question("Undo this change", text, "undoes it", own, unasked)
    decisions: Decisions = {}
    while True:
        try:
            gather = partial(undo, decisions=decisions)
            return await make_change(node, history, gather, question)
        except UndoConflictError as error:
            answer = await node.app.push_screen_wait(UndoConflictScreen(error))
            if answer is None:
                return None
            decisions |= answer


class UndoConflictScreen(Dialog[Decisions]):
    """A dialog that resolves every conflict of an undo; returns None if cancelled."""

    DEFAULT_CLASSES = "wide"
    DEFAULT_CSS = """
    UndoConflictScreen {
        & > Vertical { border: round $warning; border-title-color: $text-warning; }
        DiffView { height: auto; max-height: 24; margin: 1 0; }
        #conflicts-keys { dock: bottom; color: $text-muted; }
        &.-low DiffView { margin: 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "cancel", "Close", show=False),
        Binding("j,down,n", "go(1)", "Next place", show=False),
        Binding("k,up,p", "go(-1)", "Place before", show=False),
        Binding("m", "take('ours')", "Keep what stands there", show=False),
        Binding("t", "take('theirs')", "Take what was before", show=False),
        Binding("M", "take_all('ours')", "Keep all", show=False),
        Binding("T", "take_all('theirs')", "Take all", show=False),
        Binding("e", "edit", "Write another text", show=False),
        Binding("o", "open", "Open the note there", show=False),
        Binding("enter", "apply", "Undo so", show=False),
    ]

    TITLE_TEXT = "Nothing was changed yet"
    HINT = ""

    def __init__(self, error: UndoConflictError) -> None:
        super().__init__()
        self._error = error
        self._conflicts: Sequence[Conflict] = error.conflicts
        self._decisions: Decisions = {}
        self._index = 0

    def compose_question(self) -> ComposeResult:
        yield Static(Content(clean(self._error.message)))
        yield DiffView()
        yield Static(id="conflicts-keys")

    def on_mount(self) -> None:
        self._show()
        self.query_one(DiffView).focus()

    # Showing

    def _show(self) -> None:
        lines: list[Line] = []
        start = 0
        for number, conflict in enumerate(self._conflicts):
            if number == self._index:
                start = len(lines)
            lines += self._lines(number, conflict)
        view = self.query_one(DiffView)
        view.show_lines(lines)
        view.scroll_to(y=max(0, start - 1), animate=False)
        self.query_one("#conflicts-keys", Static).update(self._keys())

    def _lines(self, number: int, conflict: Conflict) -> Iterator[Line]:
        is_selected = number == self._index
        name = name_of(conflict.path)
        place = f"{name}:{conflict.line}" if conflict.line else name
        yield Line(
            Content.assemble(
                ("▸ " if is_selected else "  ", ".diff--name"),
                (place, ".diff--name"),
                (f"  {_KINDS[conflict.kind]}", ".md--muted"),
            ),
            fill="diff--file",
        )
        decision = self._decisions.get(conflict)
        now, before = _TITLES.get(conflict.kind, ("stands there now", "undoing would put there"))
        yield from _side(f"m  {now}", conflict.ours, "-", chosen=decision is Side.OURS)
        yield from _side(f"t  {before}", conflict.theirs, "+", chosen=decision is Side.THEIRS)
        if isinstance(decision, str):
            yield from _side("e  your own text", decision, "+", chosen=True)
        yield Line(Content())

    def _keys(self) -> Content:
        left = len(self._conflicts) - len(self._decisions)
        keys = {"m": "keep what stands there", "t": "what was before", "e": "another text"}
        if len(self._conflicts) > 1:
            keys |= {"j/k": "next", "M/T": "all"}
        keys |= {"o": "open the note", "Esc": "leave it"}
        parts: list[str | tuple[str, str]] = []
        if left:
            parts.append((f"{left} to decide   ", "$text-warning"))
        else:
            parts += [("Enter", "bold $text-success"), (" undoes it so   ", "$text-success")]
        for key, label in keys.items():
            parts += [(key, "bold $text-accent"), f" {label}   "]
        return Content.assemble(*parts)

    # Deciding

    def action_go(self, by: int) -> None:
        self._index = max(0, min(len(self._conflicts) - 1, self._index + by))
        self._show()

    def action_take(self, side: str) -> None:
        if self._conflicts:
            self._decide(Side(side))

    def action_take_all(self, side: str) -> None:
        self._decisions = dict.fromkeys(self._conflicts, Side(side))
        self._show()

    def _decide(self, decision: Resolution) -> None:
        self._decisions[self._conflicts[self._index]] = decision
        following = (*range(self._index + 1, len(self._conflicts)), *range(self._index))
        left = (n for n in following if self._conflicts[n] not in self._decisions)
        self._index = next(left, self._index)
        self._show()

    @latest("edit")
    async def action_edit(self) -> None:
        if not self._conflicts:
            return
        conflict = self._conflicts[self._index]
        if conflict.kind not in {"line", "key"}:
            tell(self, "This can't be given another text here; o opens the entry.", "warning")
            return
        decision = self._decisions.get(conflict)
        text = decision if isinstance(decision, str) else conflict.ours or conflict.theirs
        written = await self.app.push_screen_wait(
            TextEditScreen("What is to stand there", text.rstrip("\n"))
        )
        if written is not None:
            self._decide(written)

    def action_apply(self) -> None:
        if self._conflicts and len(self._decisions) == len(self._conflicts):
            self.dismiss(self._decisions)
        elif self._conflicts:
            tell(self, "Say of each place what is to stand there: m, t or e.")
        else:
            self.dismiss(None)

    def action_open(self) -> None:
        if self._conflicts:
            conflict = self._conflicts[self._index]
            leave_for(self, OpenEntry(conflict.path, conflict.line or None, edit=True))


def _side(title: str, text: str, sign: str, *, chosen: bool) -> Iterator[Line]:
    fill = "diff--added" if sign == "+" else "diff--removed"
    mark, style = ("● ", ".diff--name") if chosen else ("○ ", ".md--muted")
    yield Line(Content.styled(f"  {mark}{title}", style))
    shown = clean(text).rstrip("\n").split("\n") if text else ["(nothing)"]
    for part in shown[:_SIDE_LINES]:
        for index, piece in enumerate(Content(part.expandtabs(4)).wrap(_SIDE_COLUMNS)):
            yield Line(Content(f"  {sign if not index else ' '} ") + piece, 0, fill)
    if len(shown) > _SIDE_LINES:
        yield Line(Content.styled(f"    … {len(shown) - _SIDE_LINES} more lines", ".md--muted"))
