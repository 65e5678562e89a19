"""A streaming answer makes way for what somebody types meanwhile."""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING

from textual.widgets import Input

from kbtui.tui.chat.conversation import flow_view
from kbtui.tui.chat.conversation.items import AnswerItem
from kbtui.tui.chat.conversation.transcript import Transcript
from kbtui.tui.terminal.type_ahead import KeysInOrder
from kbtui.tui.widgets.line_view import Line
from tests.tui.notes_support import until

if TYPE_CHECKING:
    import pytest
    from textual.app import ComposeResult
    from textual.pilot import Pilot


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = monotonic()

    def __call__(self) -> float:
        return self.now


class Streaming(KeysInOrder):
    """An answer that comes in above a field."""

    def compose(self) -> ComposeResult:
        yield Transcript()
        yield Input()

    def on_mount(self) -> None:
        self.query_one(Input).focus()


def drawn(app: Streaming) -> str:
    return "\n".join(line.text for line in app.query_one(Transcript).lines)


async def begun(pilot: Pilot[None], clock: Clock) -> AnswerItem:
    """Show an answer that has begun, and let a piece of it come just after a letter."""
    app = pilot.app
    assert isinstance(app, Streaming)
    transcript, answer = app.query_one(Transcript), AnswerItem(streaming=True)
    transcript.add(answer)
    await pilot.press("a")
    clock.now = app.typed_at + 0.01
    answer.add("one ")
    transcript.item_changed(answer)
    return answer


async def test_what_comes_while_somebody_types_waits_for_their_next_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(flow_view, "monotonic", clock)
    async with Streaming().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Streaming)
        await begun(pilot, clock)
        await pilot.pause(0.1)  # some frames
        assert "one" not in drawn(app)
        clock.now += 0.2
        await pilot.press("b")
        await until(pilot, lambda: "one" in drawn(app), "the piece")
        assert app.query_one(Input).value == "ab"


async def test_what_came_is_drawn_when_somebody_stops_typing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(flow_view, "monotonic", clock)
    async with Streaming().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Streaming)
        await begun(pilot, clock)
        clock.now += 1
        await until(pilot, lambda: "one" in drawn(app), "the piece")


async def test_the_letter_is_on_the_screen_before_the_answer_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(flow_view, "monotonic", clock)
    async with Streaming().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Streaming)
        field = app.query_one(Input)
        seen: list[tuple[str, bool]] = []
        lay_out = Transcript._lay_out_from

        def noting(self: Transcript, at: int) -> None:
            waits = field in app.screen._dirty_widgets or app.screen._compositor._dirty_regions
            seen.append((field.value, bool(waits)))
            lay_out(self, at)

        await begun(pilot, clock)
        monkeypatch.setattr(Transcript, "_lay_out_from", noting)
        clock.now += 0.2
        await pilot.press("z")
        await until(pilot, lambda: "one" in drawn(app), "the piece")
        assert seen[0] == ("az", False)


async def test_what_comes_while_much_is_laid_out_is_shown_too() -> None:
    laid_out, goes_on = threading.Event(), threading.Event()

    class Slow(AnswerItem):
        def lay_out(self, width: int) -> list[Line]:
            lines = AnswerItem.lay_out(self, width)
            laid_out.set()
            goes_on.wait(10)
            return lines

    async with Streaming().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Streaming)
        transcript, answer = app.query_one(Transcript), Slow(text="word " * 2_000)
        transcript.add(answer)
        while not laid_out.is_set():
            await pilot.pause(0.01)
        answer.add("at last")
        transcript.item_changed(answer)
        goes_on.set()
        await until(pilot, lambda: "at last" in drawn(app), "the end")
