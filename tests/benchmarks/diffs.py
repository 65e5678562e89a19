"""A long difference: how soon it is on the screen, and how long it holds up the event loop.

The real app in a real terminal, on a workspace whose last but one change rewrote every line of a
long entry, and whose last is a small one. F4 shows the small one, `j` goes on to the long one:
unified in a narrow terminal, before and after beside each other in a wide one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.benchmarks.loop import is_at_rest
from tests.benchmarks.material import ROOT
from tests.benchmarks.report import Table, versions
from tests.terminal import F, Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

STALL_BAR_MS = 100.0
_WAYS = {"unified": (110, 40), "side by side": (230, 40)}
_LINE = "- {n}: the {what} of a meeting about `storage` and [[postgresql]], told by Alice\n"
_SETTLED = 4.0
"""Seconds in which all of it is laid out."""


class _Run(NamedTuple):
    """Milliseconds: from the key to the first lines, and the longest stall while opening."""

    shown: float
    stall: float


def run(argv: list[str]) -> dict[str, Any]:
    """Measure, print nothing; the caller prints the table and the JSON."""
    options = argparse.ArgumentParser(prog="diffs")
    options.add_argument("--lines", type=int, default=5_000, help="that one change rewrote")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--way", action="append", choices=_WAYS)
    chosen = options.parse_args(argv)
    table = Table(
        f"a difference of {chosen.lines:,} changed lines (ms)",
        ["way", "what", "shown median", "stall median", "stall worst", "bar", "count"],
    )
    figures: dict[str, Any] = {"versions": versions("textual"), "lines": chosen.lines}
    with tempfile.TemporaryDirectory(prefix="kbtui-diffs-") as folder:
        env = _stage(Path(folder), chosen.lines)
        for way in chosen.way or _WAYS:
            size = _WAYS[way]
            runs = [_measure(Path(folder), env, size) for _ in range(chosen.rounds)]
            for what in ("small", "long"):
                found = [each[what] for each in runs]
                shown, stall = (statistics.median(each[n] for each in found) for n in (0, 1))
                worst = max(each.stall for each in found)
                table.row(way, what, shown, stall, worst, STALL_BAR_MS, len(found))
                figures[f"{way}, {what}"] = {"shown": shown, "stall": stall, "worst": worst}
    return {"tables": [table], "figures": figures}


def _stage(home: Path, lines: int) -> dict[str, str]:
    """A workspace with the two changes; gives the environment to open it in."""
    env = {
        "PATH": str(Path(sys.executable).parent),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "KBTUI_MODEL": "offline",
        "KBTUI_SEARCH__SEMANTIC": "false",
    }
    notes = home / "notes"
    entry = notes / "knowledge" / "topics" / "long.md"
    kbtui = [sys.executable, "-m", "kbtui"]
    _do([*kbtui, "init", str(notes)], env)
    for what in ("plan", "budget"):
        _write(entry, "".join(_LINE.format(n=n, what=what) for n in range(lines)))
        _do([*kbtui, "-w", str(notes), "log", "-n", "1"], env)
    _write(entry.with_name("small.md"), "# Small\n\nA small change.\n")
    _do([*kbtui, "-w", str(notes), "log", "-n", "1"], env)
    return env


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _do(command: list[str], env: Mapping[str, str]) -> None:
    subprocess.run(command, env=env, check=True, capture_output=True)


def _measure(home: Path, env: Mapping[str, str], size: tuple[int, int]) -> dict[str, _Run]:
    """Open both, one after the other, in an app with a heartbeat."""
    report = home / "report.json"
    argv = [sys.executable, "-m", "tests.benchmarks.loop", str(home / "notes"), str(report)]
    times = {}
    with Terminal(argv, env, size) as terminal:
        terminal.wait(is_at_rest)
        for what, key, text in (("small", F[4], "A small change."), ("long", "j", "the plan of")):
            pressed = terminal.send(key)
            shown = terminal.wait_for(text)
            with contextlib.suppress(TimeoutError):
                terminal.wait(lambda _screen: False, _SETTLED)
            times[what] = (pressed, shown, shown + _SETTLED)
        terminal.send("\x11")
        terminal.wait_exit(60)
    stalls = json.loads(report.read_text())["stalls"]
    return {
        what: _Run(
            1000 * (shown - pressed),
            1000 * max(took for at, took in stalls if pressed < at < end),
        )
        for what, (pressed, shown, end) in times.items()
    }
