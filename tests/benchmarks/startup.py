"""Startup: first paint and the first typed character, beside a hello-world Textual app.

Both programs run in turn in a real pty, so the ratio holds while the machine's speed drifts. The
peer imports only what it shows: a label and an Input that has the focus.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.report import Table, spread, versions
from tests.terminal import Terminal

HELLO = """
from textual.app import App
from textual.widgets import Input, Label
class Hello(App):
    def compose(self):
        yield Label("hello")
        yield Input()
Hello().run()
"""
ROOT = Path(__file__).resolve().parents[2]
PAINT_BAR, ECHO_BAR = 1.6, 2.0


def _environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "KBTUI_MODEL": "offline",
        "PYTHONPATH": str(ROOT),
    }


def _one(argv: list[str], env: dict[str, str]) -> dict[str, float]:
    """Seconds from the start to the first paint and to the echo, and from the key to the echo."""
    with Terminal(argv, env) as terminal:
        painted = terminal.wait(lambda screen: bool(screen.strip()))
        key = terminal.send("~")
        echoed = terminal.wait_for("~")
        return {
            "first_paint_s": painted - terminal.started,
            "echo_s": echoed - terminal.started,
            "key_to_echo_s": echoed - key,
        }


def run(argv: list[str]) -> dict[str, Any]:
    """Measure, print nothing; the caller prints the table and the JSON."""
    options = argparse.ArgumentParser(prog="startup")
    options.add_argument("--pairs", type=int, default=30)
    options.add_argument("--workspace", type=Path, help="open this workspace instead of a new one")
    chosen = options.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = _environment(home)
        workspace = chosen.workspace or home / "notes"
        workspace.mkdir(exist_ok=True)
        ours = [sys.executable, "-m", "kbtui", "-w", str(workspace)]
        theirs = [sys.executable, "-c", HELLO]
        _one(ours, env), _one(theirs, env)
        runs = [(_one(ours, env), _one(theirs, env)) for _ in range(chosen.pairs)]
    return _summary(runs)


def _summary(runs: list[tuple[dict[str, float], dict[str, float]]]) -> dict[str, Any]:
    table = Table(
        "startup", ["figure", "kbtui median", "kbtui p95", "hello median", "ratio", "bar"]
    )
    figures: dict[str, Any] = {"versions": versions("textual"), "pairs": len(runs)}
    for name, bar in (("first_paint_s", PAINT_BAR), ("echo_s", ECHO_BAR), ("key_to_echo_s", None)):
        ours, theirs = spread([a[name] for a, _ in runs]), spread([b[name] for _, b in runs])
        ratio = spread([a[name] / b[name] for a, b in runs]).median
        table.row(name, ours.median, ours.p95, theirs.median, ratio, bar)
        figures[name] = {
            "kbtui": ours.median,
            "p95": ours.p95,
            "hello": theirs.median,
            "ratio": ratio,
            "bar": bar,
        }
    return {"tables": [table], "figures": figures}
