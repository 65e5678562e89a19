"""A big vault for the first time: how soon it is searched by words, roughly by meaning, and wholly.

A new workspace in a folder of its own, opened as the app opens it. Seconds are since the start,
beside the processor time of the whole process until then; the model's own vectors are only begun.
The rough model is made again unless `--keep` says otherwise. `--recorded` measures by words alone, with
the notes recorded in the history: of a vault in place, and of a workspace of our own, whose
catalogue is made then as well.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbtui.knowledge_base import KnowledgeBase
from kbtui.search.embedding.prepared import locate, models_folder
from kbtui.search.embedding.rough_embedder import FILE
from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.benchmarks.material import make_vault
from tests.benchmarks.report import Table, versions

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS_BAR, ROUGH_BAR = 10.0, 60.0
_POLL_SECONDS = 0.2
_LONGEST_SECONDS = 3600.0


def run(argv: list[str]) -> dict[str, Any]:
    """Measure, print nothing; the caller prints the table and the JSON."""
    options = argparse.ArgumentParser(prog="vault")
    options.add_argument("--entries", type=int, default=6_600)
    options.add_argument("--keep", action="store_true", help="use the rough model that is there")
    options.add_argument("--watch", type=float, default=20.0, help="seconds of the model at work")
    options.add_argument("--recorded", action="store_true", help="by words, with the history")
    chosen = options.parse_args(argv)
    if chosen.recorded:
        return _recorded(chosen.entries)
    if not chosen.keep:
        (models_folder() / locate(None).fingerprint / FILE).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="kbtui-vault-") as folder:
        workspace = create_workspace(Path(folder) / "kb")
        make_vault(workspace.root / "knowledge", chosen.entries)
        index = SearchIndex(workspace, Scanner(workspace), SearchSettings(), RoleSettings())
        try:
            return _watched(index, chosen.entries, chosen.watch)
        finally:
            index.close()


def _recorded(entries: int) -> dict[str, Any]:
    table = Table("recorded and searched by words", ["kind", "stage", "processor s", "bar"])
    figures: dict[str, Any] = {"entries": entries}
    for kind in ("in place", "our own"):
        with tempfile.TemporaryDirectory(prefix="kbtui-vault-") as folder:
            root = Path(folder) / "kb"
            if kind == "our own":
                create_workspace(root)
            make_vault(root / "knowledge" if kind == "our own" else root, entries)
            began = time.process_time()
            # Of our own is recorded as it is opened; in place after words answer.
            with KnowledgeBase.open(root, create=True, starts=True) as kb:
                opened = time.process_time() - began
                kb.search.sync()
                kb.history.adopt(timeout=5.0)
                kb.library.catalog.flush()
                whole = time.process_time() - began
            table.row(kind, "opened", opened, None)
            table.row(kind, "all", whole, WORDS_BAR)
            figures[kind] = (opened, whole)
    return {"tables": [table], "figures": figures}


def _watched(index: SearchIndex, entries: int, seconds: float) -> dict[str, Any]:
    began, worked = time.perf_counter(), time.process_time()
    table = Table("vault", ["stage", "seconds", "processor s", "bar"])
    figures: dict[str, Any] = {"versions": versions("onnxruntime", "numpy"), "entries": entries}

    def reached(stage: str, bar: float | None, condition: Callable[[], bool]) -> None:
        while not condition():
            if time.perf_counter() - began > _LONGEST_SECONDS:
                raise SystemExit(f"{stage}: not within an hour")
            time.sleep(_POLL_SECONDS)
        took = (time.perf_counter() - began, time.process_time() - worked)
        table.row(stage, *took, bar)
        figures[stage] = took

    index.start()
    reached("words", WORDS_BAR, lambda: index.status().state in {"preparing", "embedding", "ready"})
    # The model itself begins when the rough one has read everything.
    reached("roughly by meaning", ROUGH_BAR, lambda: index.status().embedded > 0)
    before = index.status().embedded
    time.sleep(seconds)
    status = index.status()
    figures["passages a second"] = (status.embedded - before) / seconds
    figures["chunks"] = status.chunks
    return {"tables": [table], "figures": figures}
