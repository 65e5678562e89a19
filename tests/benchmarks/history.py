"""The door beside git: committing one edit among many entries, log, blame, and what fsck says.

Both sides edit the same notes with the same text, in turn, with everything synced. Ours goes the
whole way: hash check, companions (dates, index), objects, intent, file, branch, log table, event.
The peer is ``git add`` and ``git commit`` with ``core.fsync=all``.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks import blame, growth
from tests.benchmarks.material import make_vault
from tests.benchmarks.report import Table, spread, versions

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.history.history import History
    from kbtui.knowledge_base import KnowledgeBase

DOOR_BAR, FIRST_ROWS_BAR_MS, WARM_BAR, COLD_BAR = 0.5, 50, 1.0, 3.0
ROWS = 200


def run(argv: list[str]) -> dict[str, Any]:
    """Measure the door and the log; returns tables and figures."""
    options = argparse.ArgumentParser(prog="history")
    options.add_argument("--entries", type=int, default=10_000)
    options.add_argument("--pairs", type=int, default=40, help="edits made by both, in turn")
    options.add_argument("--commits", type=int, default=400, help="commits that the log has")
    options.add_argument("--versions", type=int, default=300, help="of the entry that is blamed")
    chosen = options.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        _settle_in(Path(folder))
        return _measure(Path(folder), chosen)


def _settle_in(folder: Path) -> None:
    """Keep the user's settings, caches and git configuration out of it."""
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    os.environ.update({name: str(folder / "home") for name in names})
    os.environ["KBTUI_MODEL"] = "offline"
    os.environ.pop("KBTUI_WORKSPACE", None)


def _measure(folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    from kbtui.knowledge_base import KnowledgeBase

    ours, theirs = folder / "ours", folder / "theirs"
    make_vault(ours / "knowledge", chosen.entries)
    shutil.copytree(ours / "knowledge", theirs / "knowledge")
    peer = _Peer(theirs)
    started = time.perf_counter()
    with KnowledgeBase.open(ours, create=True) as kb:
        first = time.perf_counter() - started
        edits = _edits(ours, max(chosen.pairs, chosen.commits))
        kb.library.flush()  # nothing is written in the background while it is copied
        grown = growth.Growth(ours / ".kbtui/history.git", folder / "growth")
        door, git = _commit_in_turn(kb, peer, edits[: chosen.pairs])
        for path, text in edits[chosen.pairs :]:
            _write(kb, path, text)
        kb.library.flush()
        weight = grown.measure(len(edits))
        log = _measure_log(kb.history, ours / ".kbtui/history.git", edits[0][0])
        blamed = blame.measure(kb, chosen.versions, _edits(ours, chosen.versions))
        fsck = _fsck(ours / ".kbtui/history.git")
    found = _summary(chosen, first, door, git, log, fsck)
    found["tables"].append(blame.table(blamed))
    found["tables"].append(growth.table(weight))
    found["figures"] |= blame.figures(blamed) | growth.figures(weight)
    return found


class _Peer:
    """The same notes under a git that syncs everything."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._git("init", "-q")
        self._git("add", ".")
        self._git("commit", "-qm", "Start")

    def _git(self, *arguments: str) -> None:
        identity = ("-c", "user.name=Peer", "-c", "user.email=peer@example.org")
        command = ["git", "-C", self._root, "-c", "core.fsync=all", *identity, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    def edit(self, path: str, text: str) -> float:
        """Write a note (not timed) and commit it; seconds."""
        (self._root / path).write_text(text, newline="")
        started = time.perf_counter()
        self._git("add", path)
        self._git("commit", "-qm", "Edit")
        return time.perf_counter() - started


def _edits(root: Path, count: int) -> list[tuple[str, str]]:
    """One line added to notes chosen at random."""
    rng = random.Random(1)
    notes = [path for path in sorted((root / "knowledge").rglob("*.md")) if path.name != "INDEX.md"]
    chosen = [rng.choice(notes) for _ in range(count)]
    return [
        (path.relative_to(root).as_posix(), f"{path.read_text()}\nAn afterthought, {number}.\n")
        for number, path in enumerate(chosen)
    ]


def _write(kb: KnowledgeBase, path: str, text: str) -> float:
    from kbtui.history.change import Actor

    entry = kb.library.get(path)
    started = time.perf_counter()
    commit = kb.library.write(
        path, text, expecting=entry.blob, actor=Actor.YOU, reason="An afterthought"
    )
    seconds = time.perf_counter() - started
    if commit is None:
        raise RuntimeError(f"nothing was written to {path}")
    return seconds


def _commit_in_turn(
    kb: KnowledgeBase, peer: _Peer, edits: list[tuple[str, str]]
) -> tuple[list[float], list[float]]:
    """Time both on the same edits; the side that begins alternates."""
    ours, theirs = [], []
    for number, (path, text) in enumerate(edits):
        if number % 2:
            theirs.append(peer.edit(path, text))
            ours.append(_write(kb, path, text))
        else:
            ours.append(_write(kb, path, text))
            theirs.append(peer.edit(path, text))
    return ours, theirs


def _timed(work: Callable[[], object], times: int) -> list[float]:
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return seconds


def _measure_log(history: History, repository: Path, path: str) -> dict[str, list[float]]:
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "--git-dir", repository, *arguments], check=True, capture_output=True
        )

    def cold() -> None:
        history._log._database.clear()
        list(islice(history.log(), 1))

    return {
        "first rows": _timed(lambda: list(history.log(limit=ROWS)), 30),
        "path": _timed(lambda: list(history.log(path)), 30),
        "git path": _timed(lambda: git("log", "--format=%H%s", "--", path), 5),
        "cold": _timed(cold, 3),
        "git names": _timed(lambda: git("log", "--name-only"), 3),
    }


def _fsck(repository: Path) -> str:
    run = subprocess.run(
        ["git", "--git-dir", repository, "fsck", "--full", "--strict", "--no-dangling"],
        check=False,
        capture_output=True,
        text=True,
    )
    return "clean" if run.returncode == 0 and not run.stdout else run.stdout + run.stderr


def _summary(
    chosen: argparse.Namespace,
    first: float,
    door: list[float],
    git: list[float],
    log: dict[str, list[float]],
    fsck: str,
) -> dict[str, Any]:
    ours, theirs = spread(door), spread(git)
    ratio = spread([a / b for a, b in zip(door, git, strict=True)]).median
    commit = Table(
        f"one edit among {chosen.entries:,} entries, {len(door)} pairs in turn",
        ["side", "median ms", "p95 ms", "ratio", "bar"],
    )
    commit.row("kbtui, the whole door", ours.median * 1e3, ours.p95 * 1e3, ratio, DOOR_BAR)
    commit.row(
        "git add + git commit, core.fsync=all", theirs.median * 1e3, theirs.p95 * 1e3, None, None
    )
    rows, middle = spread(log["first rows"]), {name: spread(s).median for name, s in log.items()}
    reading = Table(
        f"the log of {chosen.commits:,} commits and more",
        ["figure", "kbtui ms", "git ms", "ratio", "bar"],
    )
    reading.row(f"first {ROWS} rows", rows.median * 1e3, None, None, f"{FIRST_ROWS_BAR_MS} ms")
    warm = middle["path"] / middle["git path"]
    cold = middle["cold"] / middle["git names"]
    reading.row("log PATH, warm", middle["path"] * 1e3, middle["git path"] * 1e3, warm, WARM_BAR)
    reading.row("table from cold", middle["cold"] * 1e3, middle["git names"] * 1e3, cold, COLD_BAR)
    version = subprocess.run(["git", "--version"], check=True, capture_output=True, text=True)
    figures = {
        "versions": versions("dulwich") | {"git": version.stdout.split()[-1]},
        "entries": chosen.entries,
        "pairs": len(door),
        "commit_ms": {"median": ours.median * 1e3, "p95": ours.p95 * 1e3},
        "git_ms": {"median": theirs.median * 1e3, "p95": theirs.p95 * 1e3},
        "commit_ratio": {"value": ratio, "bar": DOOR_BAR},
        "first_rows_ms": {"median": rows.median * 1e3, "p95": rows.p95 * 1e3, "bar": 50},
        "log_path_ratio": {"value": warm, "bar": WARM_BAR},
        "cold_table_ratio": {"value": cold, "bar": COLD_BAR},
        "first_open_s": first,
        "fsck": fsck,
    }
    return {"tables": [commit, reading], "figures": figures}
