"""Sets of questions with judged answers, and how each becomes a workspace.

LoCoMo's conversations become session logs and a hit counts by its message (or by its session); the
passages of the other sets become documents. `chunking_spans` has whole documents and the exact
characters that answer, so the program's own chunks are measured.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.benchmarks.material import DATA, needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from kbtui.search.results import Hit

    Judgements = dict[str, dict[str, float]]

_RETRIEVAL = ("chunking_eval", "cranfield", "scifact_train", "xquad_en", "xquad_de", "xquad_zh")
CONVERSATIONS = ("26", "30", "41")
NAMES = (
    *(f"locomo-{number}" for number in CONVERSATIONS),
    *(f"locomo-{number}-sessions" for number in CONVERSATIONS),
    *_RETRIEVAL,
    "chunking_spans",
)


@dataclass(frozen=True)
class JudgedSet:
    """Questions by id, what answers each, the texts for plain BM25, and how hits are named."""

    name: str
    questions: dict[str, str]
    wanted: Judgements
    texts: dict[str, str]
    write: Callable[[Path], None]
    names_of: Callable[[Hit], Iterable[str]]


def load(name: str) -> JudgedSet:
    """Read a set; a name is one of `NAMES`."""
    if name.startswith("locomo-"):
        return _conversation(name)
    return _spans(name) if name == "chunking_spans" else _passages(name)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def _judgements(file: Path) -> Judgements:
    found: Judgements = {}
    for line in file.read_text("utf-8").splitlines()[1:]:
        query, document, score = line.split("\t")
        if float(score) > 0:
            found.setdefault(query, {})[document] = float(score)
    return found


def _questions(folder: Path, wanted: Judgements) -> dict[str, str]:
    return {q["id"]: q["text"] for q in _lines(folder / "queries.jsonl") if q["id"] in wanted}


def _conversation(name: str) -> JudgedSet:
    _, number, *sessions = name.split("-")
    folder = needed(DATA / "locomo" / f"conv-{number}")
    suffix = "_sessions" if sessions else ""
    wanted = _judgements(folder / f"qrels{suffix}.tsv")
    turns = _lines(folder / "corpus.jsonl")
    texts = {
        d["id"]: f"{d['title']}\n{d['text']}" for d in _lines(folder / f"corpus{suffix}.jsonl")
    }
    ids: dict[tuple[str, int], str] = {}
    counts: dict[str, int] = {}
    for turn in turns:
        path = f"sessions/s{turn['session']}.jsonl"
        counts[path] = counts.get(path, 0) + 1
        ids[path, counts[path]] = f"S{turn['session']}" if sessions else turn["id"]

    def names_of(hit: Hit) -> Iterable[str]:
        return [ids[hit.path, hit.messages[0]]] if hit.messages else []

    return JudgedSet(
        name,
        _questions(folder, wanted),
        wanted,
        texts,
        lambda root: _write_conversation(root, turns),
        names_of,
    )


def _write_conversation(root: Path, turns: list[dict[str, Any]]) -> None:
    logs: dict[str, list[str]] = {}
    for turn in turns:
        said = logs.setdefault(f"sessions/s{turn['session']}.jsonl", [])
        time = datetime.strptime(turn["date"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        record = {"id": len(said) + 1, "time": time.isoformat(), "role": "user"}
        said.append(json.dumps({**record, "name": turn["speaker"], "content": turn["text"]}))
    for path, said in logs.items():
        (root / path).write_text("\n".join(said) + "\n", "utf-8")


def _passages(name: str) -> JudgedSet:
    folder = needed(DATA / "retrieval" / name)
    wanted = _judgements(folder / "qrels.tsv")
    documents = _lines(folder / "corpus.jsonl")
    ids = {f"docs/set/{number}.md": d["id"] for number, d in enumerate(documents)}
    return JudgedSet(
        name,
        _questions(folder, wanted),
        wanted,
        {d["id"]: f"{d.get('title') or ''}\n{d['text']}" for d in documents},
        lambda root: _write_documents(root, documents),
        lambda hit: [ids[hit.path]],
    )


def _write_documents(root: Path, documents: list[dict[str, Any]]) -> None:
    (root / "docs/set").mkdir(parents=True)
    for number, document in enumerate(documents):
        title = json.dumps(re.sub(r"\s+", " ", document.get("title") or ""))
        text = f"---\ntitle: {title}\n---\n{document['text']}\n"
        (root / f"docs/set/{number}.md").write_text(text, "utf-8")


def _spans(name: str) -> JudgedSet:
    """Each wanted piece of text is an answer of its own, found by a chunk that holds half of it."""
    folder = needed(DATA / "retrieval" / "chunking_eval")
    questions: dict[str, str] = {}
    wanted: Judgements = {}
    pieces: dict[str, list[tuple[str, str]]] = {}
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream)):
            questions[str(number)] = row["question"]
            for n, reference in enumerate(json.loads(row["references"])):
                piece = f"{number}.{n}"
                wanted.setdefault(str(number), {})[piece] = 1.0
                found = (piece, _squeezed(reference["content"]))
                pieces.setdefault(f"docs/set/{row['corpus_id']}.md", []).append(found)

    def write(root: Path) -> None:
        (root / "docs/set").mkdir(parents=True)
        for file in sorted((folder / "corpora").glob("*.md")):
            (root / "docs/set" / file.name).write_bytes(file.read_bytes())

    def names_of(hit: Hit) -> Iterable[str]:
        text = _squeezed(hit.text)
        return [name for name, piece in pieces.get(hit.path, ()) if _holds(text, piece)] or [
            f"{hit.path}:{hit.lines[0]}:{len(hit.text)}"
        ]

    return JudgedSet(name, questions, wanted, {}, write, names_of)


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _holds(text: str, piece: str) -> bool:
    half = len(piece) // 2
    return piece[: half or 1] in text or piece[half:] in text
