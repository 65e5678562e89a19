"""The gutter that says who wrote a line, and how long ago: ``A 3d`` is the agent, three days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from textual.content import Content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.history.looking.blame import LineOrigin
    from kbtui.tui.widgets.line_view import Line

WIDTH = 7
NARROW_WIDTH = 2
"""Without the age, where there is little room."""
NARROW = 44
_UNITS = (
    (timedelta(days=365), "y"),
    (timedelta(days=30), "mo"),
    (timedelta(days=7), "w"),
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "m"),
)


class AuthorsGutter:
    """Draws the gutter of some lines; what one commit wrote in one go is marked once.

    Args:
        lines: The lines on the screen.
        origins: Where each line of the file comes from.
        width: Its cells.
        now: The time that ages are counted from, aware.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        origins: Sequence[LineOrigin],
        width: int,
        now: datetime | None = None,
    ) -> None:
        self._lines = lines
        self._origins = origins
        self._width = width
        self._now = now or datetime.now(UTC)

    def __call__(self, index: int) -> Content:
        """The gutter of one line of the screen."""
        origin = self._origin(index)
        if origin is None:
            return Content()
        letter, style = origin.actor.letter, f"$text-{origin.actor.colour}"
        before = self._origin(index - 1) if index else None
        if before is not None and before.commit == origin.commit:
            return Content.styled("│", f"{style} dim")
        if self._width < WIDTH:
            return Content.styled(letter, style)
        return Content.assemble((letter, style), (f" {age(origin.time, self._now)}", "$text-muted"))

    def _origin(self, index: int) -> LineOrigin | None:
        number = self._lines[index].source - 1
        return self._origins[number] if 0 <= number < len(self._origins) else None


def age(time: datetime | None, now: datetime) -> str:
    """How long ago something was, in at most four cells; ``new`` where it isn't recorded yet."""
    if time is None:
        return "new"
    passed = now - time
    count, unit = next(
        ((passed // length, unit) for length, unit in _UNITS if passed >= length), (0, "")
    )
    return f"{min(count, 99)}{unit}" if unit else "now"
