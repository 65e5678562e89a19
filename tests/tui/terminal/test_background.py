"""Work beside the screen: what is to be done a little later is done, however late it is."""

from __future__ import annotations

import time

from textual.app import App

from kbtui.tui.terminal.background import Debounce, SerialQueue, call_after, run_latest
from tests.tui.at_rest import until


async def test_what_is_to_be_done_after_next_to_nothing_is_done_each_time() -> None:
    app: App[None] = App()
    done: list[int] = []
    async with app.run_test():
        for number in range(50):
            call_after(app, 1e-9, lambda number=number: done.append(number))
        await until(app, lambda: len(done) == 50)
    assert done == list(range(50))


async def test_what_was_due_while_the_process_stood_still_is_done_afterwards() -> None:
    app: App[None] = App()
    done: list[str] = []
    async with app.run_test():
        call_after(app, 0.01, lambda: done.append("late"))
        time.sleep(0.05)  # noqa: ASYNC251 - the loop is to stand still
        await until(app, lambda: done)
    assert done == ["late"]


async def test_starting_work_writes_no_description_of_the_notes_it_is_given() -> None:
    class Note:
        def __repr__(self) -> str:
            described.append("whole")
            return "text " * 100_000

    async def work(_note: Note) -> None:
        done.append("work")

    described: list[str] = []
    done: list[str] = []
    app: App[None] = App()
    async with app.run_test():
        run_latest(app, "layout", work, Note())
        SerialQueue(app, "keys").run(work, Note())
        await until(app, lambda: len(done) == 2)
    assert described == []


async def test_a_debounce_calls_although_requests_never_pause() -> None:
    app: App[None] = App()
    done: list[str] = []
    async with app.run_test():
        debounce = Debounce(app, lambda: done.append("stored"), pause=60, longest=0.1)

        def asked_on_and_on() -> bool:
            debounce.request()
            return len(done) == 2

        await until(app, asked_on_and_on)


async def test_a_debounce_calls_once_for_requests_that_pause_and_not_when_they_are_dropped() -> (
    None
):
    app: App[None] = App()
    done: list[str] = []
    async with app.run_test():
        dropped = Debounce(app, lambda: done.append("dropped"), pause=0.01, longest=60)
        kept = Debounce(app, lambda: done.append("kept"), pause=0.02, longest=60)
        for _ in range(5):
            dropped.request()
            kept.request()
        dropped.cancel()
        await until(app, lambda: done)
    assert done == ["kept"]
