"""The event loop: does the screen stay quick while everything is at work?

The real app in a real terminal, on a vault of many entries, two ways in turn: idle (everything
indexed, nothing asked), and busy (all entries still to be embedded, and a server on loopback that
streams an answer all the time). Inside, a heartbeat notes how long the event loop is held up, and a
thread asks the search now and then; outside, letters are typed into the prompt and looked for on
the screen. What the terminal's side of this measurement costs is part of both. `--words` leaves
the embedding out, which prepares the model first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.material import ROOT, make_vault
from tests.benchmarks.report import Table, spread, versions
from tests.terminal import ENTER, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.knowledge_base import KnowledgeBase

STALL_BAR_MS, KEY_BAR, QUERY_BAR = 100.0, 1.5, 2.0
_BEAT = 0.002
_EMBEDDING = "reading for meaning"
_AT_WORK = (_EMBEDDING, "opening", "indexing", "preparing")
_QUERY_EVERY = 0.25
_KEY_EVERY = 0.06
_LETTERS = "àáâãåæçèéêëìíîïðñòóôõøùúûýþ"
_WORDS = [
    "plan",
    "review",
    "budget",
    "postgres",
    "alice",
    "decision",
    "meeting",
    "storage",
    "auth",
    "release",
]
_PARAGRAPH = (
    "Some **words** of an answer that goes on, with `code` and [a link](x.md).\n\n- one\n\n"
)


# Inside the app


@dataclass
class _Notes:
    """What is measured in the app: (when, seconds) of each stall and each query, and its state.

    Stalls are told twice: as seconds that passed, which a busy machine adds to, and as seconds of
    processor time of the loop's thread, which it doesn't.
    """

    stalls: list[tuple[float, float]] = field(default_factory=list)
    work: list[tuple[float, float]] = field(default_factory=list)
    queries: list[tuple[float, float]] = field(default_factory=list)
    states: list[tuple[float, str]] = field(default_factory=list)


async def _beat(notes: _Notes) -> None:
    last, used = time.perf_counter(), time.thread_time()
    while True:
        await asyncio.sleep(_BEAT)
        now, worked = time.perf_counter(), time.thread_time()
        notes.stalls.append((now, now - last - _BEAT))
        notes.work.append((now, worked - used))
        last, used = now, worked


def _ask(kb: KnowledgeBase, notes: _Notes) -> None:
    """Search by words now and then, for ever."""
    chance = random.Random(1)
    while True:
        time.sleep(_QUERY_EVERY)
        query = " ".join(chance.sample(_WORDS, 2))
        started = time.perf_counter()
        kb.search.search(query, semantic=False)
        notes.queries.append((started, time.perf_counter() - started))
        notes.states.append((started, kb.search.status().state))


def _child(workspace: Path, report: Path) -> None:
    """Be the app, with a heartbeat in it."""
    from kbtui.tui.app import app as app_module

    notes = _Notes()

    class Measured(app_module.KbtuiApp):
        CSS_PATH = Path(app_module.__file__).with_name("kbtui.tcss")

        def _opened(self, kb: KnowledgeBase) -> None:
            super()._opened(kb)
            self._heart = asyncio.create_task(_beat(notes))
            threading.Thread(target=_ask, args=(kb, notes), daemon=True).start()

    app_module.KbtuiApp = Measured  # type: ignore[misc]
    try:
        app_module.run_app(workspace)
    finally:
        report.write_text(json.dumps(asdict(notes)))


# Outside


@dataclass
class _Run:
    """One run of the app: seconds."""

    keys: list[float]
    stalls: list[float]
    work: list[float]
    queries: list[float]


@contextmanager
def _stage(entries: int) -> Iterator[tuple[Path, dict[str, str]]]:
    """A workspace of `entries` entries whose words are indexed, and whose meaning is not."""
    with tempfile.TemporaryDirectory(prefix="kbtui-loop-") as folder:
        home = Path(folder)
        workspace = home / "notes"
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "KBTUI_MODEL": "offline",
            "KBTUI_SEARCH__BACKGROUND": "false",
        }
        kbtui = [sys.executable, "-m", "kbtui", "-w", str(workspace)]
        _do([*kbtui[:3], "init", str(workspace)], env)
        make_vault(home / "vault", entries)
        shutil.copytree(home / "vault", workspace / "knowledge", dirs_exist_ok=True)
        words_only = {**env, "KBTUI_SEARCH__SEMANTIC": "false"}
        _do([*kbtui, "reindex"], words_only)
        yield workspace, env


def _do(command: list[str], env: dict[str, str]) -> None:
    subprocess.run(command, env=env, check=True, capture_output=True)


def _type(terminal: Terminal, seconds: float) -> list[float]:
    """Type into the prompt, a letter at a time; seconds from each key to its echo.

    The letters occur nowhere else, so the bytes that come tell; emulating a screen of streamed
    text would take longer than what is measured.
    """
    took: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        terminal.send("\x15")
        for letter in _LETTERS:
            _read(terminal, time.perf_counter() + _KEY_EVERY, b"")
            pressed = terminal.send(letter)
            _read(terminal, pressed + 10, letter.encode())
            took.append(time.perf_counter() - pressed)
    return took


def _read(terminal: Terminal, end: float, wanted: bytes) -> None:
    """Read what the app writes until `wanted` came, or until a time."""
    seen = b""
    while (left := end - time.perf_counter()) > 0:
        if select.select([terminal._fd], [], [], left)[0]:
            seen += os.read(terminal._fd, 65536)
            if wanted and wanted in seen:
                return
            seen = seen[-8:]
    if wanted:
        raise TimeoutError("a key was never echoed")


def is_at_rest(screen: str) -> bool:
    """True once the notes are there, and nothing goes on in the corner."""
    return ("▾" in screen or "▸" in screen) and not any(work in screen for work in _AT_WORK)


def _measure(
    workspace: Path, env: dict[str, str], seconds: float, *, busy: bool, embeds: bool
) -> _Run:
    report = workspace.parent / "report.json"
    argv = [sys.executable, "-m", "tests.benchmarks.loop", str(workspace), str(report)]
    with Terminal(argv, env) as terminal:
        if embeds:
            terminal.wait_for(_EMBEDDING, timeout=300)
        else:
            terminal.wait(is_at_rest, timeout=300)
        if busy:
            terminal.send("go on" + ENTER)
            terminal.wait_for("Some words")
        started = time.perf_counter()
        keys = _type(terminal, seconds)
        ended = time.perf_counter()
        terminal.send("\x15\x11")  # no draft for the next run
        terminal.wait_exit(60)
    found = json.loads(report.read_text())
    states = {state for at, state in found["states"] if started < at < ended}
    if embeds and states != {"embedding"}:
        raise ValueError(f"it wasn't at work all the time: {states or 'nobody looked'}")
    inside = {
        name: [took for at, took in found[name] if started < at < ended]
        for name in ("stalls", "work", "queries")
    }
    return _Run(keys, **inside)


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """A server that never stops answering, in a process of its own; gives its address."""
    script = folder / "script.json"
    script.write_text(json.dumps([{"text": _PARAGRAPH * 2_000, "delay": 0.02}]))
    argv = [sys.executable, "-m", "tests.scripted_server", "--script", str(script)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip() if process.stdout else ""
        finally:
            process.terminate()


def _runs(chosen: argparse.Namespace) -> tuple[list[_Run], list[_Run]]:
    idle, busy = [], []
    with _stage(chosen.entries) as (workspace, env), _server(workspace.parent) as url:
        words_only = {**env, "KBTUI_SEARCH__SEMANTIC": "false"}
        asking = {
            **(words_only if chosen.words else env),
            "KBTUI_MODEL": "openai/scripted",
            "KBTUI_API_BASE": url,
            "KBTUI_API_KEY": "none",
        }
        for _ in range(chosen.rounds):
            seconds = chosen.seconds
            idle.append(_measure(workspace, words_only, seconds, busy=False, embeds=False))
            _forget_vectors(workspace.parent)
            busy.append(_measure(workspace, asking, seconds, busy=True, embeds=not chosen.words))
    return idle, busy


def _forget_vectors(home: Path) -> None:
    """All is to be embedded again."""
    for folder in [*(home / ".cache").rglob("vectors*")]:
        shutil.rmtree(folder) if folder.is_dir() else folder.unlink()


def run(argv: list[str]) -> dict[str, Any]:
    """Measure, print nothing; the caller prints the table and the JSON."""
    options = argparse.ArgumentParser(prog="loop")
    options.add_argument("--entries", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--words", action="store_true", help="leave the embedding out")
    chosen = options.parse_args(argv)
    idle, busy = _runs(chosen)
    return _summary(idle, busy, chosen.entries)


def _summary(idle: list[_Run], busy: list[_Run], entries: int) -> dict[str, Any]:
    table = Table(
        f"loop, {entries:,} entries: while embedding and streaming, beside the same app idle (ms)",
        ["figure", "idle median", "idle p95", "busy median", "busy p95", "ratio", "bar", "count"],
    )
    figures: dict[str, Any] = {"versions": versions("textual"), "entries": entries}
    for name, bar in (("keys", KEY_BAR), ("queries", QUERY_BAR)):
        one, other = (
            spread([1000 * value for each in runs for value in getattr(each, name)])
            for runs in (idle, busy)
        )
        ratio = other.p95 / one.p95 if name == "keys" else other.median / one.median
        table.row(name, one.median, one.p95, other.median, other.p95, ratio, bar, other.count)
        figures[name] = {"idle": vars(one), "busy": vars(other), "ratio": ratio, "bar": bar}
    for name, key, label in (
        ("stalls", "longest_stall_ms", "longest stall"),
        ("work", "longest_work_ms", "the same, processor time"),
    ):
        worst = [
            max(1000 * value for each in runs for value in getattr(each, name))
            for runs in (idle, busy)
        ]
        figures[key] = {"idle": worst[0], "busy": worst[1], "bar": STALL_BAR_MS}
        table.row(label, worst[0], None, worst[1], None, None, STALL_BAR_MS, None)
    return {"tables": [table], "figures": figures}


if __name__ == "__main__":
    _child(Path(sys.argv[1]), Path(sys.argv[2]))
