"""How far something is, as it is said in the corner: a bar, and how long it may take."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from kbtui.text import span

_BAR_CELLS = 8
_SURE_SECONDS = 2.0
"""Seconds after which what is left is told by what was done in them."""
_LEAST_SHARE = 0.02


def bar(share: float) -> str:
    """How far something is, from 0 to 1, as a bar of eight cells."""
    done = round(_BAR_CELLS * min(1.0, max(0.0, share)))
    return "▰" * done + "▱" * (_BAR_CELLS - done)


class Pace:
    """Tells how far a piece of work is that begins now."""

    def __init__(self) -> None:
        self._started = monotonic()

    def said(self, done: int, total: int) -> str:
        """A bar, and how long it may take where that can be told; empty for unknown work."""
        if total <= 0:
            return ""
        share = done / total
        took = monotonic() - self._started
        if share < _LEAST_SHARE or took < _SURE_SECONDS:
            return bar(share)
        left = took * (1 - share) / share
        return f"{bar(share)} about {span(left)} left" if left >= 1 else bar(share)


def paces(tell: Callable[[str], None]) -> Callable[[str, int, int], None]:
    """Tells how far each step is, with a bar and the time left: step, done, total."""
    paces: dict[str, Pace] = {}

    def count(step: str, done: int, total: int) -> None:
        pace = paces.setdefault(step, Pace())
        tell(f"{step[:1].lower()}{step[1:]} {pace.said(done, total)}".rstrip())

    return count
