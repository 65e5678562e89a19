"""Blame beside git's: a long entry with hundreds of versions, among other commits.

Cold: nothing but the log's table is there. Kept: a new start that finds what an earlier one worked
out. Warm: asked again. One more: after one more commit. Both histories are one and the same.
"""

from __future__ import annotations

import random
import re
import subprocess
import time
from typing import TYPE_CHECKING, Any

from tests.benchmarks.report import Table, spread

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kbtui.history.history import History
    from kbtui.knowledge_base import KnowledgeBase

BAR = 1.0
PATH = "knowledge/topics/blamed.md"
LINES = 500
_ROUNDS = 7


def measure(kb: KnowledgeBase, versions: int, others: list[tuple[str, str]]) -> dict[str, Any]:
    """Make the versions, one of `others` (path, text) behind each as long as they last; blame."""
    lines = _grow(kb, versions, others)
    repository = kb.workspace.repository
    loose = _measure_store(kb, repository, lines)
    ours = [origin.commit for origin in kb.history.blame(PATH)]
    agree = sum(a == b for a, b in zip(ours, _git_blame(repository), strict=True))
    while kb.history.tidy():
        pass
    packed = _measure_store(kb, repository, lines)
    return {"versions": versions, "agree": agree, "lines": LINES, "loose": loose, "packed": packed}


def _grow(kb: KnowledgeBase, versions: int, others: list[tuple[str, str]]) -> list[str]:
    rng = random.Random(2)
    lines = [f"Line {number} says {rng.random()}" for number in range(LINES)]
    for version in range(versions):
        for _ in range(3):
            lines[rng.randrange(LINES)] = f"Version {version} says {rng.random()}"
        _write(kb, PATH, "\n".join(lines) + "\n")
        if version < len(others):
            _write(kb, *others[version])
    return lines


def _write(kb: KnowledgeBase, path: str, text: str) -> None:
    from kbtui.history.change import Actor

    with kb.history.change(Actor.YOU, "A version") as change:
        change.write(path, text)


def _measure_store(kb: KnowledgeBase, repository: Path, lines: list[str]) -> dict[str, float]:
    """Medians in seconds; git and we take turns."""
    seconds: dict[str, list[float]] = {
        "git": [],
        "cold": [],
        "kept": [],
        "warm": [],
        "one more": [],
    }
    for number in range(_ROUNDS):
        _timed(seconds["git"], lambda: _git_blame(repository))
        for file in kb.workspace.cache.glob("blame.sqlite*"):
            file.unlink()
        _timed(seconds["cold"], lambda: _reopened(kb).blame(PATH))
        _timed(seconds["kept"], lambda: _reopened(kb).blame(PATH))
        kb.history.blame(PATH)
        _timed(seconds["warm"], lambda: kb.history.blame(PATH))
        lines[number] = f"One more, {time.perf_counter_ns()}"
        _write(kb, PATH, "\n".join(lines) + "\n")
        _timed(seconds["one more"], lambda: kb.history.blame(PATH))
    return {name: spread(each).median for name, each in seconds.items()}


def _timed(seconds: list[float], work: Callable[[], object]) -> None:
    started = time.perf_counter()
    work()
    seconds.append(time.perf_counter() - started)


def _reopened(kb: KnowledgeBase) -> History:
    """The history as a program that has just started has it."""
    from kbtui.history.history import History
    from kbtui.workspace.scan import Scanner

    return History(kb.workspace, Scanner(kb.workspace))


def _git_blame(repository: Path) -> list[str]:
    run = subprocess.run(
        ["git", "--git-dir", repository, "blame", "--porcelain", "main", "--", PATH],
        check=True,
        capture_output=True,
        text=True,
    )
    return re.findall(r"^([0-9a-f]{40}) \d+ \d+", run.stdout, re.MULTILINE)


def table(found: dict[str, Any]) -> Table:
    """The figures for people."""
    shown = Table(
        f"blame of {found['lines']} lines in {found['versions']} versions,"
        f" {found['agree']} of them with git's answer",
        ["figure", "kbtui ms", "git ms", "ratio", "bar"],
    )
    for store in ("loose", "packed"):
        middle = found[store]
        git = middle["git"]
        for name in ("cold", "kept", "warm", "one more"):
            ours = middle[name]
            shown.row(f"{name}, objects {store}", ours * 1e3, git * 1e3, ours / git, BAR)
    return shown


def figures(found: dict[str, Any]) -> dict[str, Any]:
    """The figures for scripts."""
    ratios = {
        f"blame_{name.replace(' ', '_')}_{store}_ratio": {
            "value": found[store][name] / found[store]["git"],
            "bar": BAR,
        }
        for store in ("loose", "packed")
        for name in ("cold", "kept", "warm", "one more")
    }
    return {**ratios, "blame_agrees": found["agree"]}
