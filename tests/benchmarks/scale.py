"""How search grows with the number of passages: building, opening, asking, editing; memory, disk.

Each size is a made folder, and each stage a process of its own, so that its memory is its own. Times
are of the processor, as other work on the machine doubles those of a clock. Vectors are random.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbtui.knowledge_base import KnowledgeBase
from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.scan import Scanner
from tests.benchmarks.material import ROOT, make_vault
from tests.benchmarks.report import Table, spread, versions
from tests.benchmarks.search import RandomEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

_PASSAGES_AN_ENTRY = 1.907  # of the made folders
_QUERIES = 200
_EDITS = 20
_LABELS = {
    "chunks": "chunks",
    "adopt_s": "taken into the history, processor s",
    "build_s": "indexed by words, processor s",
    "peak_mb": "peak of both and the vectors, MB",
    "disk_words_mb": "disk: words and texts, MB",
    "disk_vectors_mb": "disk: vectors, MB",
    "open_s": "opened and looked through, a new process, processor s",
    "first_ms": "first question, by words and meaning, processor ms",
    "rest_mb": "memory at rest after it, MB",
    "mapped_mb": "of it files, which processes share, MB",
    "words_p50_ms": "by words, p50, processor ms",
    "words_p95_ms": "by words, p95, processor ms",
    "hybrid_p50_ms": "by words and meaning, p50, processor ms",
    "hybrid_p95_ms": "by words and meaning, p95, processor ms",
    "asked_mb": "memory at rest then, MB",
    "asked_mapped_mb": "of it files, MB",
    "edit_p50_ms": "one edited entry indexed, p50, processor ms",
    "edit_p95_ms": "one edited entry indexed, p95, processor ms",
}


def run(argv: list[str]) -> dict[str, Any]:
    """Measure; gives a table for people and figures for scripts."""
    cli = argparse.ArgumentParser(prog="scale")
    cli.add_argument("--passages", default="10000,50000,200000")
    sizes: dict[int, dict[str, float]] = {}
    for passages in sorted(int(each) for each in cli.parse_args(argv).passages.split(",")):
        with tempfile.TemporaryDirectory(prefix="kbtui-scale-") as folder:
            root = Path(folder) / "kb"
            make_vault(root / "knowledge", round(passages / _PASSAGES_AN_ENTRY))
            sizes[passages] = {**_child("build", root), **_child("ask", root)}
    columns = [
        "what",
        *(f"{size:,}" for size in sizes),
        *(f"x {b / a:g}" for a, b in pairwise(sizes)),
    ]
    table = Table("scale", columns)
    for name, label in _LABELS.items():
        found = [sizes[size][name] for size in sizes]
        table.row(label, *found, *(f"{b / a:.1f}" if a else "-" for a, b in pairwise(found)))
    figures = {"versions": versions("whoosh-reloaded", "numpy"), "sizes": sizes}
    return {"tables": [table], "figures": figures}


def _child(stage: str, root: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.scale", stage, str(root)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(root.parent)},
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _processor_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _memory(what: str) -> float:
    """Megabytes that this process has (``VmRSS``), of files (``RssFile``), or had (``VmHWM``)."""
    (line,) = (
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what)
    )
    return int(line.split()[1]) / 1024


def _size(*folders: Path) -> float:
    files = (file for folder in folders for file in folder.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files) / 2**20


def _index(kb: KnowledgeBase) -> SearchIndex:
    settings = SearchSettings()
    scanner = Scanner(kb.workspace)
    return SearchIndex(kb.workspace, scanner, settings, RoleSettings(), model=RandomEmbedder())


def _build(root: Path) -> dict[str, float]:
    began = time.process_time()
    kb = KnowledgeBase.open(root, create=True)
    adopted = time.process_time()
    index = _index(kb)
    index.sync()
    built = time.process_time()
    index.search("anything", wait=True)
    chunks = index.status().chunks
    index.tidy()
    index.close()
    kb.close()
    search = kb.workspace.cache / "search"
    return {
        "chunks": chunks,
        "adopt_s": adopted - began,
        "build_s": built - adopted,
        "peak_mb": _memory("VmHWM"),
        "disk_words_mb": _size(*search.glob("g*-*")),
        "disk_vectors_mb": _size(search / "vectors"),
    }


def _ask(root: Path) -> dict[str, float]:
    figures: dict[str, float] = {}
    chosen = random.Random(1)

    def open_all() -> tuple[KnowledgeBase, SearchIndex]:
        kb = KnowledgeBase.open(root)
        index = _index(kb)
        index.sync()
        return kb, index

    began = time.process_time()
    kb, index = open_all()
    figures["open_s"] = time.process_time() - began
    question = "which decisions were made about storage"
    figures["first_ms"] = 1000 * _processor_seconds(lambda: index.search(question))
    figures["rest_mb"] = _memory("VmRSS")
    figures["mapped_mb"] = _memory("RssFile")
    store = index._generations().serving.store
    numbers = [number for number, _, _ in store.passage_keys()]
    rows = store.rows(chosen.sample(numbers, min(len(numbers), 2 * _QUERIES)))
    texts = [words for row in rows.values() if len(words := row.chunk.text.split()) > 12]
    queries = [" ".join(words[4 : 4 + chosen.randint(2, 8)]) for words in texts[:_QUERIES]]
    for name, semantic, own in (("words", False, queries[::2]), ("hybrid", True, queries[1::2])):
        took = [
            1000 * _processor_seconds(lambda q=q, s=semantic: index.search(q, semantic=s))
            for q in own
        ]
        figures[f"{name}_p50_ms"], figures[f"{name}_p95_ms"] = spread(took).median, spread(took).p95
    figures["asked_mb"], figures["asked_mapped_mb"] = _memory("VmRSS"), _memory("RssFile")
    files = sorted((root / "knowledge").rglob("*.md"))
    took = []
    for number in range(_EDITS):
        file = chosen.choice(files)
        file.write_text(f"{file.read_text('utf-8')}\nAn added line, number{number}.\n", "utf-8")
        index.refresh([file.relative_to(root).as_posix()])
        took.append(1000 * _processor_seconds(index.refresh_now))
    figures["edit_p50_ms"], figures["edit_p95_ms"] = spread(took).median, spread(took).p95
    index.close()
    kb.close()
    shutil.rmtree(kb.workspace.cache)
    return figures


if __name__ == "__main__":
    print(json.dumps({"build": _build, "ask": _ask}[sys.argv[1]](Path(sys.argv[2]))))
