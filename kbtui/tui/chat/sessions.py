"""Choosing the conversation to go on with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.widgets import Input

from kbtui.text import clean_line, counted, fold
from kbtui.tui.actions.registry import bindings
from kbtui.tui.widgets.dialogs import Dialog
from kbtui.tui.widgets.row_list import Choice, ChoiceList, RowList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from kbtui.sessions.store import SessionInfo


class SessionsScreen(Dialog[str]):
    """All conversations, the last one first; typing filters. The answer is an id."""

    DEFAULT_CSS = """
    SessionsScreen {
        & > Vertical { width: 90; max-height: 80%; }
        ChoiceList { max-height: 24; }
    }
    """
    TITLE_TEXT = "Sessions"
    HINT = "Enter goes on · Esc leaves"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("sessions")]

    def __init__(self, infos: Sequence[SessionInfo]) -> None:
        super().__init__()
        self._infos = list(infos)

    def compose_question(self) -> ComposeResult:
        """The filter and the list."""
        yield Input(placeholder="filter")
        yield ChoiceList([_choice(info) for info in self._infos])

    @property
    def _list(self) -> ChoiceList:
        return self.query_one(ChoiceList)

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        event.stop()
        wanted = fold(event.value).strip()
        self._list.show_choices(
            [_choice(info) for info in self._infos if wanted in fold(f"{info.title} {info.id}")]
        )

    @on(Input.Submitted)
    @on(RowList.Selected)
    def action_open(self) -> None:
        """Go on with the chosen one."""
        choice = self._list.choice
        if choice is not None:
            self.dismiss(str(choice.value))

    def action_down(self) -> None:
        """Go to the next one."""
        self._list.cursor += 1

    def action_up(self) -> None:
        """Go to the one before."""
        self._list.cursor -= 1

    def action_back(self) -> None:
        """Stay where we are."""
        self.dismiss(None)


def _choice(info: SessionInfo) -> Choice:
    import humanize

    when = humanize.naturaltime(datetime.now(UTC) - info.updated)
    return Choice(
        clean_line(info.title) or info.id,
        f"{counted(info.messages, 'message')} · {info.channel} · {when}",
        info.id,
    )
