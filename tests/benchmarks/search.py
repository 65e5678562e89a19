"""Search at 1,000, 10,000 and 50,000 entries: building, opening, asking and following an edit.

The peers for the words are SQLite FTS5 with its Porter tokenizer, over the same chunks, in the same
run, query by query in turn, and ripgrep (or grep) over the files. Vectors of passages are random,
as only their cost matters; queries are embedded by the model, if it is prepared. It is timed by
itself as well, beside sentence-transformers (``--peer``).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbtui.search.embedding.prepared import ConfiguredModel, locate, models_folder
from kbtui.search.index.bm25f import Corpus
from kbtui.search.query.fusion import best_first
from kbtui.search.query.parser import parse
from kbtui.search.query.ranking import weighted_terms
from kbtui.search.results import Preparation
from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.benchmarks.material import ROOT, make_vault
from tests.benchmarks.report import Table, spread, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TOP = 10
OPENING = """
import json, sys, time
started = time.perf_counter()
from pathlib import Path
from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import open_workspace
from kbtui.workspace.scan import Scanner
workspace = open_workspace(Path(sys.argv[1]))
imported = time.perf_counter()
index = SearchIndex(workspace, Scanner(workspace), SearchSettings(semantic=False), RoleSettings())
generations = index._generations()
generations.serving.corpus()
opened = time.perf_counter()
index.search("which decisions were made about storage")
answered = time.perf_counter()
print(json.dumps([imported - started, opened - imported, answered - opened]))
"""
PEER = """
import json, sys, time
import torch
torch.set_num_threads(1)
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu", local_files_only=True)
texts = json.load(sys.stdin)
model.encode(texts[:4], show_progress_bar=False)
started = time.perf_counter()
model.encode(texts, batch_size=16, show_progress_bar=False)
print(len(texts) / (time.perf_counter() - started))
"""


class RandomEmbedder:
    """Vectors as long as MiniLM's that cost nothing to make."""

    identity = "random-384"
    name = "random"
    dimension = 384
    is_local = True

    def __init__(self) -> None:
        self._random = np.random.default_rng(1)

    def preparation(self) -> Preparation:
        return Preparation("prepared")

    def load(self, stop: threading.Event) -> RandomEmbedder:
        return self

    def earlier(self, _identity: str) -> None:
        """There is none."""

    def documents(self, texts: Sequence[str]) -> Any:
        made = self._random.normal(size=(len(texts), self.dimension)).astype(np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    def query(self, text: str) -> Any:
        vector = self._random.normal(size=self.dimension).astype(np.float32)
        return vector / np.linalg.norm(vector)

    def rough(self, _stop: threading.Event) -> None:
        """There is none to `make`."""

    def close(self) -> None:
        pass


class RealQueries(RandomEmbedder):
    """Random passages, and queries that the prepared model embeds."""

    def __init__(self) -> None:
        super().__init__()
        model = ConfiguredModel(RoleSettings())
        self.real = model.load(threading.Event()) if model.preparation().is_done else None
        self.embeds = False

    def query(self, text: str) -> Any:
        found = super().query(text)
        return self.real.query(text) if self.real and self.embeds else found


class Bench:
    """A workspace with an index to measure."""

    def __init__(self, root: Path, entries: int, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        make_vault(root / "knowledge", entries)
        self.workspace = create_workspace(root)
        self.scanner = Scanner(self.workspace)
        self.embedder = RealQueries()
        self.index = SearchIndex(
            self.workspace, self.scanner, SearchSettings(), RoleSettings(), model=self.embedder
        )

    def queries(self, count: int) -> list[str]:
        """Distinct queries of two to eight words that stand together in some chunk."""
        store = self.index._generations().serving.store
        numbers = [number for number, _, _ in store.passage_keys()]
        found: dict[str, None] = {}
        while len(found) < count:
            row = store.rows([self.random.choice(numbers)]).popitem()[1]
            words = [word for word in row.chunk.text.split() if word.isalpha() and len(word) > 2]
            length = self.random.randint(2, 8)
            if len(words) > length:
                start = self.random.randrange(len(words) - length)
                found[" ".join(words[start : start + length])] = None
        return list(found)


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def measure_build(bench: Bench, table: Table) -> dict[str, float]:
    bench.scanner.scan("knowledge")  # hashing is the scanner's
    seconds = _timed(bench.index.sync) / 1000
    chunks = bench.index.status().chunks
    again = spread([_timed(bench.index.sync) for _ in range(5)])
    table.row("build, chunks/s", chunks / seconds, None, 700)
    table.row("sync with nothing to do, ms", again.median, again.p95, None)
    return {"chunks": chunks, "chunks_per_s": chunks / seconds, "idle_sync_ms": again.median}


def measure_opening(bench: Bench, table: Table, times: int) -> dict[str, float]:
    runs = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", OPENING, str(bench.root)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        )
        runs.append([1000 * value for value in json.loads(done.stdout)])
    opened = spread([run[1] for run in runs])
    answered = spread([run[2] for run in runs])
    table.row("cold open, new process, ms", opened.median, opened.p95, 300)
    table.row("  then sync and first answer, ms", answered.median, answered.p95, None)
    return {"open_ms": opened.median, "first_answer_ms": answered.median}


def measure_words(bench: Bench, table: Table, count: int) -> dict[str, float]:
    """Ours and FTS5 in turn: words that were never asked for, and the same ones again."""
    generation = bench.index._generations().serving
    numbers = [number for number, _, _ in generation.store.passage_keys()]
    peer = sqlite3.connect(":memory:")
    peer.execute("CREATE VIRTUAL TABLE t USING fts5(title, body, tokenize='porter unicode61')")
    rows = generation.store.rows(numbers)
    peer.executemany(
        "INSERT INTO t VALUES (?, ?)", [(r.file.title, r.chunk.text) for r in rows.values()]
    )
    sql = f"SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT {TOP}"
    figures: dict[str, float] = {}
    queries = bench.queries(count)
    segments = generation.corpus().segments
    corpus = Corpus(segments, [() for _ in segments])
    corpus.scores([("warm", 1.0)])  # lengths
    for state in ("never asked", "asked before"):
        ours, theirs = [], []
        for query in queries:
            asked = parse(query)

            def answer(asked: Any = asked) -> None:
                scores = corpus.scores(weighted_terms(corpus, asked).items())
                best_first(scores, scores > 0, TOP)

            words = " OR ".join(f'"{word}"' for word in asked.words)
            ours.append(_timed(answer))
            theirs.append(_timed(lambda words=words: peer.execute(sql, (words,)).fetchall()))
        mine, other = spread(ours), spread(theirs)
        table.row(f"words, {state}, ms", mine.median, mine.p95, None)
        table.row("  SQLite FTS5, ms", other.median, other.p95, None)
        table.row("  ratio", mine.median / other.median, mine.p95 / other.p95, 0.2)
        name = state.replace(" ", "_")
        figures[f"words_{name}_p50_ms"], figures[f"words_{name}_p95_ms"] = mine.median, mine.p95
        figures[f"fts5_{name}_p50_ms"], figures[f"fts5_{name}_p95_ms"] = other.median, other.p95
        figures[f"words_{name}_ratio_p50"] = mine.median / other.median
        figures[f"words_{name}_ratio_p95"] = mine.p95 / other.p95
    peer.close()
    packed = sum(file.stat().st_size for file in generation.folder.rglob("*.words")) / 2**20
    table.row("postings, mapped, MB", packed, None, None)
    return {**figures, "postings_mb": packed}


def measure_grep(bench: Bench, table: Table, times: int = 10) -> dict[str, float]:
    """Looking for one word through all files, as one does without an index."""
    program = shutil.which("rg")
    command = [program, "-l", "-i", "--"] if program else ["grep", "-rli", "--"]
    took = []
    for query in bench.queries(times):
        word = max(query.split(), key=len)
        took.append(
            _timed(
                lambda word=word: subprocess.run(
                    [*command, word, str(bench.root / "knowledge")],
                    check=False,
                    capture_output=True,
                )
            )
        )
    found = spread(took)
    table.row(f"  {command[0]}, one word, ms", found.median, found.p95, None)
    return {"grep_p50_ms": found.median, "grep_p95_ms": found.p95}


def measure_hybrid(bench: Bench, table: Table, count: int) -> dict[str, float]:
    bench.index.search("anything", wait=True)  # random vectors for all passages
    queries = bench.queries(count)
    figures: dict[str, float] = {}
    for name, semantic, embeds, bar in (
        ("words", False, False, None),
        ("hybrid", True, False, 15),
        ("hybrid_embedding", True, True, 50),
    ):
        bench.embedder.embeds = embeds
        if embeds and bench.embedder.real is None:
            table.row(f"hybrid with embedding: no model in {models_folder()}", None, None, None)
            continue
        took = [
            _timed(lambda q=q, semantic=semantic: bench.index.search(q, semantic=semantic))
            for q in queries
        ]
        found = spread(took)
        label = name.replace("_", ", the query embedded too, ").strip()
        table.row(f"whole search, {label}, ms", found.median, found.p95, bar)
        figures[f"{name}_p50_ms"], figures[f"{name}_p95_ms"] = found.median, found.p95
    bench.embedder.embeds = False
    return figures


def measure_refresh(bench: Bench, table: Table, times: int = 30) -> dict[str, float]:
    files = sorted((bench.root / "knowledge").rglob("*.md"))
    took, tidied = [], []
    for number in range(times):
        file = bench.random.choice(files)
        file.write_text(file.read_text("utf-8") + f"\nAn added line, number{number}.\n", "utf-8")
        bench.index.refresh([file.relative_to(bench.root).as_posix()])
        took.append(_timed(bench.index.refresh_now))
        if number % 10 == 9:
            tidied.append(_timed(bench.index.tidy))
    found = spread(took)
    table.row("one edited entry, indexed, ms", found.median, found.p95, 150)
    bench.index.start()
    while bench.index.status().state not in {"ready", "lexical-only"}:
        time.sleep(0.05)
    visible = spread([_until_visible(bench, files, n) for n in range(10)])
    table.row("  visible in a search, ms", visible.median, visible.p95, 1000)
    return {
        "refresh_p50_ms": found.median,
        "refresh_p95_ms": found.p95,
        "visible_p95_ms": visible.p95,
        "tidy_ms": max(tidied),
    }


def _until_visible(bench: Bench, files: list[Path], number: int) -> float:
    file = bench.random.choice(files)
    word = f"zebra{number}quagga"
    file.write_text(file.read_text("utf-8") + f"\n{word}\n", "utf-8")
    started = time.perf_counter()
    bench.index.refresh([file.relative_to(bench.root).as_posix()])
    while not bench.index.search(word, semantic=False).hits:
        time.sleep(0.002)
    return (time.perf_counter() - started) * 1000


def measure_model(bench: Bench, table: Table, *, peer: bool) -> dict[str, float]:
    """How fast the prepared model embeds; nothing is prepared here."""
    model = ConfiguredModel(RoleSettings())
    if not model.preparation().is_done:
        table.row(f"embedding: no model in {models_folder()}", None, None, None)
        return {}
    load_ms = _timed(lambda: model.load(threading.Event()))
    embedder = model.load(threading.Event())
    store = bench.index._generations().serving.store
    numbers = [number for number, _, _ in store.passage_keys()]
    rows = store.rows(bench.random.sample(numbers, 150))
    texts = [text for row in rows.values() for text in row.chunk.passage_texts()][:200]
    rate = len(texts) / (_timed(lambda: embedder.documents(texts)) / 1000)
    asked = spread([_timed(lambda q=q: embedder.query(q)) for q in bench.queries(50)])
    table.row("model: load, ms", load_ms, None, None)
    table.row("model: one query, ms", asked.median, asked.p95, None)
    table.row("model: passages/s, one thread", rate, None, None)
    figures = {"load_ms": load_ms, "query_p50_ms": asked.median, "passages_per_s": rate}
    if peer:
        done = subprocess.run(
            [sys.executable, "-c", PEER, str(locate("").folder)],
            input=json.dumps(texts).encode(),
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=True,
            capture_output=True,
        )
        figures["peer_passages_per_s"] = float(done.stdout.split()[-1])
        table.row("  sentence-transformers, one thread", figures["peer_passages_per_s"], None, None)
        table.row("  ratio", rate / figures["peer_passages_per_s"], None, 1.0)
    return figures


def measure_size(entries: int, asked: argparse.Namespace) -> tuple[Table, dict[str, Any]]:
    """Everything at one size."""
    table = Table(f"Search, {entries:,} entries", ["what", "p50", "p95", "bar"])
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="kbtui-bench-") as folder:
        bench = Bench(Path(folder) / "kb", entries, asked.seed)
        try:
            figures |= measure_build(bench, table)
            figures |= measure_opening(bench, table, asked.starts)
            figures |= measure_words(bench, table, asked.queries)
            figures |= measure_grep(bench, table)
            figures |= measure_hybrid(bench, table, asked.queries)
            figures |= measure_refresh(bench, table)
            if asked.model:
                figures |= measure_model(bench, table, peer=asked.peer)
        finally:
            bench.index.close()
            shutil.rmtree(bench.workspace.cache)
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table.row("peak memory so far, peers included, MB", figures["peak_mb"], None, 600)
    return table, figures


def _growth(sizes: dict[int, dict[str, Any]]) -> Table:
    """How much longer each thing takes at a larger size; building a chunk is to stay the same."""
    table = Table("Growth", ["what", *[f"{a:,} to {b:,}" for a, b in pairwise(sizes)]])
    for name in ("chunks", "chunks_per_s", "open_ms", "words_p50_ms", "hybrid_p50_ms", "hybrid_p95_ms", "refresh_p50_ms"):  # fmt: skip
        table.row(name, *[sizes[b][name] / sizes[a][name] for a, b in pairwise(sizes)])
    return table


def run(argv: list[str]) -> dict[str, Any]:
    """Measure; gives tables for people and figures for scripts."""
    cli = argparse.ArgumentParser(prog="search", description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    cli.add_argument("--sizes", default="10000", help="entries, e.g. 1000,10000,50000")
    cli.add_argument("--queries", type=int, default=200)
    cli.add_argument("--starts", type=int, default=5, help="of a new process")
    cli.add_argument("--seed", type=int, default=1)
    cli.add_argument("--model", action="store_true", help="time the embedding model by itself")
    cli.add_argument("--peer", action="store_true", help="time sentence-transformers as well")
    asked = cli.parse_args(argv)
    asked.model = asked.model or asked.peer
    tables: list[Table] = []
    sizes: dict[int, dict[str, Any]] = {}
    for entries in sorted(int(size) for size in asked.sizes.split(",")):
        table, sizes[entries] = measure_size(entries, asked)
        tables.append(table)
    if len(sizes) > 1:
        tables.append(_growth(sizes))
    return {
        "tables": tables,
        "figures": {
            "versions": versions("whoosh-reloaded", "numpy", "onnxruntime"),
            "sqlite": sqlite3.sqlite_version,
            "sizes": sizes,
        },
    }
