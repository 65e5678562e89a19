"""Progress texts: a bar and the estimated time left."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from kbtui.text import span

_BAR_CELLS = 8
_MIN_ESTIMATE_SECONDS = 2.0
"""Elapsed time from which the time left is estimated."""
_MIN_ESTIMATE_SHARE = 0.02


def bar(share: float) -> str:
    """Return a progress bar of eight cells for a share from 0 to 1."""
    done = round(_BAR_CELLS * min(1.0, max(0.0, share)))
    return "▰" * done + "▱" * (_BAR_CELLS - done)


class Pace:
    """The progress of a task that starts at construction."""

    def __init__(self) -> None:
        self._started = monotonic()

    def text(self, done: int, total: int) -> str:
        """Return a bar and, if it can be estimated, the time left; "" for an unknown total."""
        if total <= 0:
            return ""
        share = done / total
        elapsed = monotonic() - self._started
        if share < _MIN_ESTIMATE_SHARE or elapsed < _MIN_ESTIMATE_SECONDS:
            return bar(share)
        left = elapsed * (1 - share) / share
        return f"{bar(share)} about {span(left)} left" if left >= 1 else bar(share)


def progress_reporter(tell: Callable[[str], None]) -> Callable[[str, int, int], None]:
    """Return a callback (step, done, total) that reports each step's progress to `tell`."""
    by_step: dict[str, Pace] = {}

    def report(step: str, done: int, total: int) -> None:
        pace = by_step.setdefault(step, Pace())
        tell(f"{step[:1].lower()}{step[1:]} {pace.text(done, total)}".rstrip())

    return report
