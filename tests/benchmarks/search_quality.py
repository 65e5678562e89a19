"""How well search finds: recall@10 and nDCG@10 on judged sets, through the whole pipeline.

LoCoMo's conversations become session logs and a hit counts by its message; the passages of the
other sets become documents. By words alone, and with the embedding model (prepared if need be).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbtui.search.index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.layout import create_workspace
from kbtui.workspace.scan import Scanner
from tests.benchmarks.report import Table, versions

if TYPE_CHECKING:
    from kbtui.search.results import Hit

DATA = Path(os.environ.get("KBTUI_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
TOP = 10
SETS = {f"locomo-{n}": DATA / "locomo" / f"conv-{n}" for n in (26, 30, 41)} | {
    name: DATA / "retrieval" / name
    for name in ("chunking_eval", "cranfield", "scifact_train", "xquad_zh", "xquad_en", "xquad_de")
}


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def _judgements(file: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for line in file.read_text("utf-8").splitlines()[1:]:
        query, document, score = line.split("\t")
        if float(score) > 0:
            found.setdefault(query, {})[document] = float(score)
    return found


def write_conversation(root: Path, turns: list[dict[str, Any]]) -> dict[tuple[str, int], str]:
    """Write each session as a log; gives the id of each (path, message)."""
    ids: dict[tuple[str, int], str] = {}
    logs: dict[str, list[str]] = {}
    for turn in turns:
        path = f"sessions/s{turn['session']}.jsonl"
        said = logs.setdefault(path, [])
        time = datetime.strptime(turn["date"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        ids[path, len(said) + 1] = turn["id"]
        record = {"id": len(said) + 1, "time": time.isoformat(), "role": "user"}
        said.append(json.dumps({**record, "name": turn["speaker"], "content": turn["text"]}))
    for path, said in logs.items():
        (root / path).write_text("\n".join(said) + "\n", "utf-8")
    return ids


def write_documents(root: Path, documents: list[dict[str, Any]]) -> dict[tuple[str, int], str]:
    """Write each passage as a document; gives its id by path."""
    ids = {}
    (root / "docs/set").mkdir(parents=True)
    for number, document in enumerate(documents):
        path = f"docs/set/{number}.md"
        title = re.sub(r"\s+", " ", document.get("title") or "")
        (root / path).write_text(f"---\ntitle: {json.dumps(title)}\n---\n{document['text']}\n", "utf-8")  # fmt: skip
        ids[path, 0] = document["id"]
    return ids


def _id_of(hit: Hit, ids: dict[tuple[str, int], str]) -> str:
    return ids[hit.path, hit.messages[0] if hit.messages else 0]


def score(found: list[str], wanted: dict[str, float]) -> tuple[float, float]:
    """Recall and nDCG of the first ten."""
    top = list(dict.fromkeys(found))[:TOP]
    gain = sum(wanted.get(name, 0) / math.log2(i + 2) for i, name in enumerate(top))
    ideal = sorted(wanted.values(), reverse=True)[:TOP]
    best = sum(value / math.log2(i + 2) for i, value in enumerate(ideal))
    return sum(name in wanted for name in top) / len(wanted), gain / best


def measure(name: str, *, semantic: bool) -> dict[str, tuple[float, float]]:
    """Index one set and ask all its questions, in each way."""
    source = SETS[name]
    documents = _lines(source / "corpus.jsonl")
    wanted = _judgements(source / "qrels.tsv")
    queries = [query for query in _lines(source / "queries.jsonl") if query["id"] in wanted]
    results: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="kbtui-quality-") as folder:
        root = Path(folder) / "kb"
        workspace = create_workspace(root)
        write = write_conversation if name.startswith("locomo") else write_documents
        ids = write(root, documents)
        index = SearchIndex(workspace, Scanner(workspace), SearchSettings(), RoleSettings())
        for way in ("words", "hybrid") if semantic else ("words",):
            scores = []
            for query in queries:
                result = index.search(
                    query["text"], "all", 3 * TOP, semantic=way == "hybrid", wait=way == "hybrid"
                )
                found = [_id_of(hit, ids) for hit in result.hits]
                scores.append(score(found, wanted[query["id"]]))
            recalls, gains = zip(*scores, strict=True)
            results[way] = (sum(recalls) / len(scores), sum(gains) / len(scores))
        index.close()
        shutil.rmtree(workspace.cache)
    return results


def run(argv: list[str]) -> dict[str, Any]:
    """Measure the named sets."""
    cli = argparse.ArgumentParser(prog="search_quality", description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    cli.add_argument("sets", nargs="*", default=[name for name in SETS if "locomo" in name])
    cli.add_argument("--words", action="store_true", help="leave the embedding model out")
    asked = cli.parse_args(argv)
    table = Table("Search quality", ["set", "way", "recall@10", "nDCG@10"])
    figures: dict[str, Any] = {"versions": versions("whoosh-reloaded", "onnxruntime")}
    for name in asked.sets:
        for way, (recall, gain) in measure(name, semantic=not asked.words).items():
            table.row(name, way, recall, gain)
            figures[f"{name} {way}"] = {"recall": recall, "ndcg": gain}
    return {"tables": [table], "figures": figures}
