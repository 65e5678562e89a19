"""The hints at the bottom: the thing to do here stands out, and nothing else."""

from __future__ import annotations

from textual.app import App, ComposeResult

from kbtui.tui.actions.registry import bindings
from kbtui.tui.widgets.hints import Hints
from kbtui.tui.widgets.kinds import HOT


class InboxKeys(App[None]):
    BINDINGS = bindings("inbox")

    def compose(self) -> ComposeResult:
        yield Hints()


async def test_only_the_key_for_what_waits_is_filled_in_the_hot_colour() -> None:
    async with InboxKeys().run_test(size=(120, 5)) as pilot:
        line = pilot.app.query_one(Hints).render()
        (span,) = [span for span in line.spans if span.style == HOT]
        assert line.plain[span.start : span.end] == " a accept "
        assert "x reject" in line.plain
