"""Search paired with an earlier build: plain words, operators, one-shot commands, a cold question.

Both builds index the same made notes and are asked the same in turn, each in a process of its own
that stays open; commands are processes of their own. All times are of the processor, as other work
on the machine doubles those of a clock. The earlier build is a folder with its own ``.venv``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbtui.search.embedding.prepared import models_folder
from tests.benchmarks.commands import processor_seconds
from tests.benchmarks.material import ROOT, make_vault
from tests.benchmarks.report import Table, spread, versions

if TYPE_CHECKING:
    from collections.abc import Sequence

_PASSAGES_AN_ENTRY = 1.343  # of the made folders
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_NOTES = 300  # of the folder that commands are asked in
_WITH_OPERATORS = (
    "{0} AND {1}",
    "({0} OR {1}) AND {2}",
    "title:{0} {1}",
    "{0} -{1}",
    "+{0} {1} {2}",
    '"{0} {1}"',
    "{0}* {1}",
    "folder:topics {0} {1}",
)
_QUESTION = "who looks after the warm water in winter?"
_OPEN = """
import json, sys, time
from pathlib import Path
from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
workspace = create_workspace(Path(sys.argv[1]))
index = SearchIndex(workspace, Scanner(workspace), SearchSettings(semantic=False), RoleSettings())
index.sync()
index.search("anything")
print(json.dumps(index.status().chunks), flush=True)
for line in sys.stdin:
    began = time.process_time()
    found = index.search(json.loads(line), semantic=False)
    took = time.process_time() - began
    print(json.dumps([1000 * took, [hit.text for hit in found.hits]]), flush=True)
index.close()
"""
_COMPLETE = """
import sys
from pathlib import Path
from kbtui.knowledge_base import KnowledgeBase
with KnowledgeBase.open(Path(sys.argv[1])) as kb:
    if hasattr(kb, "newer"):
        kb.newer.update()
"""
"""What the app does in the background, and a command has no time for."""


def environment_of(build: Path, cache: Path | None = None) -> dict[str, str]:
    """Return what a build is run with; its cache is its own, but for the prepared model.

    Python may keep bytecode: a process that compiles what it imports takes twice the time. It must
    not look for modules in the current folder, which is this build's: ``-m kbtui`` would run that.
    """
    own = {
        "PYTHONPATH": str(build),
        "PYTHONSAFEPATH": "1",
        "KBTUI_SEARCH__BACKGROUND": "false",
    }
    kept = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
    if cache is None:
        return {**kept, **own}
    if not cache.exists():
        (cache / "kbtui").mkdir(parents=True)
        (cache / "kbtui" / "models").symlink_to(models_folder())
    bytecode = {"PYTHONPYCACHEPREFIX": str(cache / "bytecode")}
    return {**kept, **own, **bytecode, "XDG_CACHE_HOME": str(cache)}


def python_of(build: Path) -> str:
    """Return the interpreter of a build."""
    own = build / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


class Build:
    """One build with its own copy of the notes, asked by lines of JSON."""

    def __init__(self, build: Path, root: Path, entries: int) -> None:
        """Start a process that indexes as many made notes."""
        make_vault(root / "knowledge", entries)
        self._process = subprocess.Popen(
            [python_of(build), "-c", _OPEN, str(root)],
            env=environment_of(build, root.with_suffix(".cache")),
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.chunks = int(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, query: str) -> tuple[float, list[str]]:
        """Return the processor time of a search in milliseconds, and the texts of its hits."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(query) + "\n")
        self._process.stdin.flush()
        took, texts = self._answer()
        return took, texts

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _queries(texts: Sequence[str], count: int) -> tuple[list[str], list[str]]:
    """Return queries of two to eight words that stand together in notes, and with operators."""
    chosen = random.Random(1)
    plain: dict[str, None] = {}
    operators: dict[str, None] = {}
    forms = cycle(_WITH_OPERATORS)
    while len(operators) < count:
        words = [word for word in chosen.choice(texts).split() if word.isalpha() and len(word) > 3]
        length = chosen.randint(2, 8)
        if len(words) > length + 3:
            start = chosen.randrange(len(words) - length)
            plain[" ".join(words[start : start + length])] = None
            operators[next(forms).format(*chosen.sample(words, 3))] = None
    return list(plain)[:count], list(operators)[:count]


def _size(base: Path, passages: int, count: int, table: Table) -> dict[str, float]:
    entries = max(2, round(passages / _PASSAGES_AN_ENTRY))
    with tempfile.TemporaryDirectory(prefix="kbtui-paired-") as folder:
        old = Build(base, Path(folder) / "old", entries)
        new = Build(ROOT, Path(folder) / "new", entries)
        files = sorted((Path(folder) / "new" / "knowledge").rglob("*.md"))
        plain, operators = _queries([file.read_text("utf-8") for file in files], count)
        took: dict[str, list[float]] = {"old": [], "new": [], "operators": []}
        for words, conditions in zip(plain, operators, strict=True):
            took["old"].append(old.ask(words)[0])
            took["new"].append(new.ask(words)[0])
            took["operators"].append(new.ask(conditions)[0])
        old.close()
        new.close()
    before, now, asked = (spread(took[name]) for name in ("old", "new", "operators"))
    name = f"{new.chunks:,} passages"
    table.row(f"{name}: plain words, the earlier build, ms", before.median, before.p95, None)
    table.row("  this build, ms", now.median, now.p95, None)
    table.row("  ratio", now.median / before.median, now.p95 / before.p95, 0.6)
    table.row("  with operators, ms", asked.median, asked.p95, None)
    table.row("  to plain words of this build", asked.median / now.median, asked.p95 / now.p95, 2)
    table.row("  to the earlier one's", asked.median / before.median, asked.p95 / before.p95, None)
    return {
        "words_p50": now.median / before.median,
        "words_p95": now.p95 / before.p95,
        "operators_p50": asked.median / now.median,
        "operators_p95": asked.p95 / now.p95,
    }


def _commands(base: Path, rounds: int, table: Table, *, meaning: bool) -> dict[str, float]:
    """Time one-shot searches of an index that is complete."""
    figures: dict[str, float] = {}
    kinds = {"one-shot search, by words": ("search", "plan", "--lexical")}
    if meaning:
        kinds["cold question, by meaning"] = ("search", _QUESTION)
    with tempfile.TemporaryDirectory(prefix="kbtui-paired-") as folder:
        roots = {name: Path(folder) / name for name in ("old", "new")}
        builds = {"old": base, "new": ROOT}
        for name, root in roots.items():
            make_vault(root / "knowledge", _NOTES)
            for command in (
                ("init",),
                ("search", _QUESTION, "--semantic") if meaning else ("reindex",),
            ):
                _command(builds[name], root, command)
            processor_seconds(
                [python_of(builds[name]), "-c", _COMPLETE, str(root)],
                environment_of(builds[name], root.with_suffix(".cache")),
            )
        for label, arguments in kinds.items():
            took: dict[str, list[float]] = {"old": [], "new": []}
            for _ in range(rounds + 1):
                for name, root in roots.items():
                    took[name].append(_command(builds[name], root, arguments))
            before, now = (spread(took[name][1:]) for name in ("old", "new"))
            bar = 1.5 if "cold" in label else 1.1
            table.row(f"{label}, the earlier build, s", before.median, before.p95, None)
            table.row("  this build, s", now.median, now.p95, None)
            figures[label] = now.median / before.median
            table.row("  ratio", figures[label], now.p95 / before.p95, bar)
    return figures


def _command(build: Path, root: Path, arguments: Sequence[str]) -> float:
    command = [python_of(build), "-m", "kbtui", "-w", str(root), *arguments]
    return processor_seconds(command, environment_of(build, root.with_suffix(".cache")))


def run(argv: list[str]) -> dict[str, Any]:
    """Measure; gives a table for people and figures for scripts."""
    cli = argparse.ArgumentParser(prog="paired")
    cli.add_argument("--base", type=Path, default=ROOT, help="the earlier build")
    cli.add_argument("--passages", default="10000,50000", help="sizes; empty for none")
    cli.add_argument("--queries", type=int, default=200)
    cli.add_argument("--rounds", type=int, default=10, help="of each command; 0 for none")
    cli.add_argument("--meaning", action="store_true", help="needs the prepared model")
    asked = cli.parse_args(argv)
    table = Table("paired, processor time", ["what", "p50", "p95", "bar"])
    figures: dict[str, Any] = {"versions": versions("whoosh-reloaded", "numpy")}
    for passages in filter(None, asked.passages.split(",")):
        figures[passages] = _size(asked.base, int(passages), asked.queries, table)
    if asked.rounds:
        figures |= _commands(asked.base, asked.rounds, table, meaning=asked.meaning)
    return {"tables": [table], "figures": figures}
