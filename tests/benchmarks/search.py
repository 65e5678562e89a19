"""Search at 10,000 entries: building, opening, asking and following an edit.

The peer for the words is SQLite FTS5 with its Porter tokenizer, over the same chunks, in the same
run, query by query in turn. Vectors are random where only their cost matters; the embedding model
is timed by itself, beside sentence-transformers (``--peer``), if it is prepared.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbtui.search import analyser, searcher
from kbtui.search.fusion import best_first
from kbtui.search.index import SearchIndex
from kbtui.search.model_source import locate, models_folder
from kbtui.search.prepared import ConfiguredModel
from kbtui.search.query import parse
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.layout import create_workspace
from kbtui.workspace.scan import Scanner
from tests.benchmarks.report import Table, spread, versions

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
TOP = 10
OPENING = """
import json, sys, time
started = time.perf_counter()
from pathlib import Path
from kbtui.search.index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.layout import open_workspace
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

    def is_prepared(self) -> bool:
        return True

    def load(self, stop: threading.Event) -> RandomEmbedder:
        return self

    def documents(self, texts: Sequence[str]) -> Any:
        return np.stack([self.query(text) for text in texts])

    def query(self, text: str) -> Any:
        vector = self._random.normal(size=self.dimension).astype(np.float32)
        return vector / np.linalg.norm(vector)

    def close(self) -> None:
        pass


class Bench:
    """A workspace with an index to measure."""

    def __init__(self, root: Path, entries: int, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        tool = SHARED / "tools" / "make_vault.py"
        data = os.environ.get("KBTUI_DATA", str(SHARED / "data"))
        command = [sys.executable, str(tool), str(root / "knowledge"), "--entries", str(entries)]
        subprocess.run([*command, "--data", data], check=True, capture_output=True)
        self.workspace = create_workspace(root)
        self.scanner = Scanner(self.workspace)
        self.index = SearchIndex(
            self.workspace, self.scanner, SearchSettings(), RoleSettings(), model=RandomEmbedder()
        )

    def queries(self, count: int) -> list[str]:
        """Distinct queries of two to eight words that stand together in some chunk."""
        store = self.index._generations().serving.store
        numbers = [number for number, _, _ in store.passage_keys()]
        found: dict[str, None] = {}
        while len(found) < count:
            row = store.rows([self.random.choice(numbers)]).popitem()[1]
            words = [word for word in row.text.split() if word.isalpha() and len(word) > 2]
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


def measure_opening(bench: Bench, table: Table, times: int = 5) -> dict[str, float]:
    import json

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
    """Ours and FTS5 in turn, first with cold postings, then warm."""
    generation = bench.index._generations().serving
    corpus = generation.corpus()
    numbers = [number for number, _, _ in generation.store.passage_keys()]
    peer = sqlite3.connect(":memory:")
    peer.execute("CREATE VIRTUAL TABLE t USING fts5(title, body, tokenize='porter unicode61')")
    rows = generation.store.rows(numbers)
    peer.executemany("INSERT INTO t VALUES (?, ?)", [(r.title, r.text) for r in rows.values()])
    sql = f"SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT {TOP}"
    figures: dict[str, float] = {}
    queries = bench.queries(count)
    for state in ("cold", "warm"):
        ours, theirs = [], []
        for query in queries:
            asked = parse(query)

            def answer(asked: Any = asked) -> None:
                scores = corpus.scores(searcher.weighted_terms(corpus, asked).items())
                best_first(scores, scores > 0, TOP)

            words = " OR ".join(f'"{word}"' for word in asked.words)
            ours.append(_timed(answer))
            theirs.append(_timed(lambda words=words: peer.execute(sql, (words,)).fetchall()))
        mine, other = spread(ours), spread(theirs)
        table.row(f"words, {state} postings, ms", mine.median, mine.p95, None)
        table.row("  SQLite FTS5, ms", other.median, other.p95, None)
        table.row("  ratio", mine.median / other.median, mine.p95 / other.p95, 0.2)
        figures[f"words_{state}_p50_ms"], figures[f"words_{state}_p95_ms"] = mine.median, mine.p95
        figures[f"fts5_{state}_p50_ms"] = other.median
        figures[f"words_{state}_ratio_p95"] = mine.p95 / other.p95
    peer.close()
    cache = generation._lexical._cache._bytes / 2**20
    table.row("postings cache, MB", cache, None, 64)
    return {**figures, "postings_cache_mb": cache}


def measure_hybrid(bench: Bench, table: Table, count: int) -> dict[str, float]:
    bench.index.search("anything", wait=True)  # random vectors for all passages
    queries = bench.queries(count)
    for query in queries:
        bench.index.search(query)
    found = spread([_timed(lambda q=q: bench.index.search(q)) for q in queries])
    table.row("whole hybrid search, warm, ms", found.median, found.p95, 15)
    words = spread([_timed(lambda q=q: bench.index.search(q, semantic=False)) for q in queries])
    table.row("whole search by words, warm, ms", words.median, words.p95, None)
    return {"hybrid_p50_ms": found.median, "hybrid_p95_ms": found.p95, "words_p95_ms": words.p95}


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
    import json
    import threading

    model = ConfiguredModel(RoleSettings())
    if not model.is_prepared():
        table.row(f"embedding: no model in {models_folder()}", None, None, None)
        return {}
    load_ms = _timed(lambda: model.load(threading.Event()))
    embedder = model.load(threading.Event())
    store = bench.index._generations().serving.store
    numbers = [number for number, _, _ in store.passage_keys()]
    rows = store.rows(bench.random.sample(numbers, 150))
    texts = [text for row in rows.values() for text in row.passage_texts()][:200]
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


def run(argv: list[str]) -> dict[str, Any]:
    """Measure; gives tables for people and figures for scripts."""
    cli = argparse.ArgumentParser(prog="search", description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    cli.add_argument("--entries", type=int, default=10_000)
    cli.add_argument("--queries", type=int, default=200)
    cli.add_argument("--seed", type=int, default=1)
    cli.add_argument("--peer", action="store_true", help="time sentence-transformers as well")
    asked = cli.parse_args(argv)
    table = Table(f"Search, {asked.entries:,} entries", ["what", "p50", "p95", "bar"])
    figures: dict[str, Any] = {"versions": versions("whoosh-reloaded", "numpy", "onnxruntime")}
    with tempfile.TemporaryDirectory(prefix="kbtui-bench-") as folder:
        bench = Bench(Path(folder) / "kb", asked.entries, asked.seed)
        try:
            figures |= measure_build(bench, table)
            figures |= measure_opening(bench, table)
            figures |= measure_words(bench, table, asked.queries)
            figures |= measure_hybrid(bench, table, asked.queries)
            figures |= measure_refresh(bench, table)
            figures |= measure_model(bench, table, peer=asked.peer)
        finally:
            bench.index.close()
            shutil.rmtree(bench.workspace.cache)
        figures["sqlite"] = sqlite3.sqlite_version
        figures["terms_remembered"] = len(analyser._remembered)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        figures["peak_mb"] = peak
        table.row("peak memory of all of this, MB", peak, None, 600)
    return {"tables": [table], "figures": figures}
