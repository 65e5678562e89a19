"""Every screen of a big workspace: how long it holds the event loop up; and a change of many files.

The real app, without a terminal: keys lead to each screen, once before (what is imported then isn't
counted) and once measured. Beside wall time, which goes with what else the machine does, stands the
processor time of the loop's thread between two of its turns. The change is that a note to which
thousands of others link gets another title, or goes, from the answer to the question until it is
done.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbtui.clock import local_day
from tests.benchmarks.material import make_vault
from tests.benchmarks.report import Table, versions
from tests.pictures import SCREENS
from tests.tui import at_rest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

STALL_BAR_MS, CHANGE_BAR_S = 100.0, 5.0
_BEAT = 0.001
_LEFT_OUT = frozenset({"edit", "delete"})  # nothing is to be open afterwards, or gone
_HUB = "knowledge/topics/hub.md"
_CHANGES = {
    "retitled": (_HUB, ["R", *"bs", "enter"], "every link"),
    "deleted": (_HUB.replace("hub", "hubbs"), ["d"], "Deleted"),
}
"""The note, keys in it, and what is told in the end."""


@dataclass
class _Held:
    """The longest that the loop was held up, in milliseconds, and by what it did itself."""

    wall: float = 0.0
    own: float = 0.0


class _Heart:
    """Beats in the event loop, and notes the longest pause since it was last asked."""

    def __init__(self) -> None:
        self._held = _Held()

    async def beat(self) -> None:
        """Beat for ever."""
        at, used = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(_BEAT)
            now, did = time.perf_counter(), time.thread_time()
            self._held.wall = max(self._held.wall, 1000 * (now - at))
            self._held.own = max(self._held.own, 1000 * (did - used))
            at, used = now, did

    def held(self) -> _Held:
        """The longest pause since the last time."""
        held, self._held = self._held, _Held()
        return held


@asynccontextmanager
async def _app(workspace: Path) -> AsyncIterator[tuple[Any, Any, _Heart]]:
    from kbtui.tui.app.app import KbtuiApp
    from kbtui.tui.terminal.process import collect_rarely

    collect_rarely()  # as where the app starts
    app, heart = KbtuiApp(workspace), _Heart()
    async with app.run_test(size=(140, 42)) as pilot:
        await at_rest.until(app, lambda: app.kb is not None and app.main.chat.model)
        await at_rest.until(app, lambda: app.kb.search.status().state not in _AT_WORK)
        beating = asyncio.create_task(heart.beat())
        yield app, pilot, heart
        beating.cancel()
    app.close_knowledge()


_AT_WORK = ("opening", "syncing", "preparing", "embedding")


async def _screens(workspace: Path, names: list[str]) -> dict[str, tuple[float, _Held, _Held]]:
    """Return the ms until each screen is complete, and the stalls while it opens and closes."""
    found: dict[str, tuple[float, _Held, _Held]] = {}
    for name in names:
        async with _app(workspace) as (app, pilot, heart):
            for _ in range(2):
                *before, last = SCREENS[name] or ("f2",)
                for key in before:
                    await pilot.press(key)
                    await at_rest.rest(app)
                heart.held()
                started = time.perf_counter()
                await pilot.press(last)
                await at_rest.rest(app)
                there, opening = 1000 * (time.perf_counter() - started), heart.held()
                await _back(app, pilot)
                found[name] = there, opening, heart.held()
    return found


async def _back(app: Any, pilot: Any) -> None:
    """Return to an empty prompt."""
    for key in ("escape", "escape", "escape", "f2", "ctrl+u"):
        await pilot.press(key)
        await at_rest.rest(app)


async def _polled(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(_BEAT)


async def _change(workspace: Path, path: str, keys: list[str], told: str) -> dict[str, Any]:
    """Seconds until a word is on the screen and until it is done, and the longest stall."""
    from kbtui.tui.diff.confirm import ConfirmScreen, WorkBox

    async with _app(workspace) as (app, pilot, heart):
        await at_rest.until(app, lambda: app.main.notes.is_filled)
        app.main.notes.open_entry(path)
        await at_rest.until(app, lambda: app.main.notes.current_path == path)
        *before, last = keys
        for key in before:
            await pilot.press(key)
            await at_rest.rest(app)
        heart.held()
        started = time.perf_counter()
        pressed = asyncio.create_task(pilot.press(last))
        await _polled(lambda: isinstance(app.screen, WorkBox | ConfirmScreen))
        word = time.perf_counter() - started
        await pressed
        await at_rest.until(app, lambda: "would be rewritten" in at_rest.picture(app))
        asked = time.perf_counter() - started
        used, began = time.process_time(), time.perf_counter()
        pressed = asyncio.create_task(pilot.press("y"))
        await _polled(lambda: any(told in each.message for each in app._notifications))
        done, processor = time.perf_counter() - began, time.process_time() - used
        await pressed
        return {
            "word_s": word,
            "question_s": asked,
            "done_s": done,
            "done_processor_s": processor,
            "stall": heart.held(),
        }


def _settle_in(home: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("XDG_", "KBTUI_UI"))]:
        del os.environ[name]
    os.environ.update(HOME=str(home), KBTUI_MODEL="offline", KBTUI_SEARCH__SEMANTIC="false")


def _write_hub(folder: Path, links: int) -> None:
    """A note, and so many that link to it."""
    topics = folder / "knowledge" / "topics"
    topics.mkdir(parents=True, exist_ok=True)
    (topics / "hub.md").write_text("---\ntype: topic\n---\n# Hub\n\nAll of it.\n")
    for number in range(links):
        text = f"---\ntype: topic\nrelated: [topics/hub]\n---\n# Note {number}\n\nSee [[hub]].\n"
        (topics / f"note-{number}.md").write_text(text)


def _write_tasks(folder: Path, tasks: int) -> None:
    """Notes with ten tasks each, every other one with a day around now."""
    (folder / "lists").mkdir(parents=True, exist_ok=True)
    for number in range(tasks // 10):
        lines = [f"- [ ] Task {number}.{n} of the list" for n in range(10)]
        days = (local_day() + timedelta(days=(number * 7 + n) % 90 - 30) for n in range(10))
        dated = [
            f"{line} 📅 {day}" if n % 2 else line
            for n, (line, day) in enumerate(zip(lines, days, strict=True))
        ]
        text = "\n".join(["# List", "", *dated, ""])
        (folder / "lists" / f"list-{number}.md").write_text(text)


def run(argv: list[str]) -> dict[str, Any]:
    """Measure; the caller prints the tables and the JSON."""
    from kbtui.cli.root import run as kbtui

    options = argparse.ArgumentParser(prog="screens")
    options.add_argument("--entries", type=int, default=10_000)
    options.add_argument("--tasks", type=int, default=5_000)
    options.add_argument("--links", type=int, default=2_207)
    options.add_argument("--screen", action="append", choices=sorted(SCREENS.keys() - _LEFT_OUT))
    chosen = options.parse_args(argv)
    figures: dict[str, Any] = {"versions": versions("textual"), "entries": chosen.entries}
    tables = []
    with tempfile.TemporaryDirectory(prefix="kbtui-screens-") as folder, at_rest.jobs_watched():
        home = Path(folder)
        _settle_in(home)
        if chosen.entries:
            kbtui(["init", str(home / "notes")])
            make_vault(home / "notes" / "knowledge", chosen.entries)
            _write_tasks(home / "notes" / "knowledge", chosen.tasks)
            kbtui(["-w", str(home / "notes"), "reindex"])
            names = chosen.screen or sorted(SCREENS.keys() - _LEFT_OUT)
            found = asyncio.run(_screens(home / "notes", names))
            table = Table(
                f"screens, {chosen.entries:,} entries (ms)",
                ["screen", "all there", "loop held up", "by itself", "on the way back", "bar"],
            )
            for name, (there, held, back) in found.items():
                table.row(name, there, held.wall, held.own, back.wall, STALL_BAR_MS)
                figures[name] = {"there_ms": there, **vars(held), "back": back.wall}
            tables.append(table)
        if chosen.links:
            kbtui(["init", str(home / "hub")])
            _write_hub(home / "hub", chosen.links)
            kbtui(["-w", str(home / "hub"), "reindex"])
            table = Table(
                f"a note with {chosen.links:,} links to it (s, ms)",
                ["", "word", "question", "done", "processor", "loop held up", "by itself", "bar"],
            )
            for name, each in _CHANGES.items():
                found = asyncio.run(_change(home / "hub", *each))
                held = found.pop("stall")
                figures[name] = {**found, **vars(held)}
                table.row(name, *found.values(), held.wall, held.own, CHANGE_BAR_S)
            tables.append(table)
    return {"tables": tables, "figures": figures}
