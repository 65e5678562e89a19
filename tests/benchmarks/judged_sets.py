"""Sets of questions with judged answers, and how each becomes a workspace.

LoCoMo's conversations become session logs and a hit counts by its message (or by its session), or
a note a session, or a note a turn under a heading of who spoke and when; the passages of the other sets become documents, in one of four `STYLES` of saying
their title. `chunking_spans` has whole documents and the exact characters that answer, so the
program's own chunks are measured.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.benchmarks.material import DATA, needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from kbtui.search.results import Hit

    Judgements = dict[str, dict[str, float]]

_RETRIEVAL = ("chunking_eval", "cranfield", "scifact_train", "xquad_en", "xquad_de", "xquad_zh")
_IN_A_LONG_NOTE = 6
_CROSS = ("xquad_de-en", "xquad_zh-en")  # questions of one language, texts of another
CONVERSATIONS = ("26", "30", "41")
STYLES = ("", ".heading", ".name", ".long")  # the first one has it in the frontmatter
NAMES = (
    *(f"locomo-{number}" for number in CONVERSATIONS),
    *(f"locomo-{number}-sessions" for number in CONVERSATIONS),
    *(f"locomo-{number}-notes" for number in CONVERSATIONS),
    *(f"locomo-{number}-turns" for number in CONVERSATIONS),
    *(f"{name}{style}" for name in _RETRIEVAL for style in STYLES),
    *_CROSS,
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


def half(judged: JudgedSet, which: str) -> JudgedSet:
    """The same set with half of its questions: those to ``tune`` on, or those ``held`` back."""
    kept = {q: text for q, text in judged.questions.items() if is_held(q) == (which == "held")}
    return replace(judged, questions=kept)


def some(judged: JudgedSet, most: int) -> JudgedSet:
    """The same set with at most so many of its questions, evenly chosen."""
    step = max(1, math.ceil(len(judged.questions) / most))
    return replace(judged, questions=dict(list(judged.questions.items())[::step]))


def is_held(question: str) -> bool:
    """True if a question, by its id, is of the half that nothing is tuned on."""
    return hashlib.sha256(question.encode()).digest()[0] % 2 == 1


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
    _, number, *kind = name.split("-")
    folder = needed(DATA / "locomo" / f"conv-{number}")
    suffix = "_sessions" if kind in (["sessions"], ["notes"]) else ""
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
        ids[path, counts[path]] = f"S{turn['session']}" if suffix else turn["id"]

    def names_of(hit: Hit) -> Iterable[str]:
        if hit.path.startswith("docs/"):
            return [hit.path.rpartition("/")[2].removesuffix(".md").replace("_", ":")]
        return [ids[hit.path, hit.messages[0]]] if hit.messages else []

    ways = {"notes": _write_as_notes, "turns": _write_turns}
    write = ways.get("".join(kind), _write_conversation)
    return JudgedSet(
        name,
        _questions(folder, wanted),
        wanted,
        texts,
        lambda root: write(root, turns),
        names_of,
    )


def _write_as_notes(root: Path, turns: list[dict[str, Any]]) -> None:
    """A note a session, as somebody would paste it: the day as its heading, a paragraph a turn."""
    (root / "docs/set").mkdir(parents=True)
    notes: dict[str, list[str]] = {}
    for turn in turns:
        note = notes.setdefault(f"S{turn['session']}.md", [f"# {turn['date']}"])
        note.append(f"**{turn['speaker']}**: {turn['text']}")
    for name, parts in notes.items():
        (root / "docs/set" / name).write_text("\n\n".join(parts) + "\n", "utf-8")


def _write_turns(root: Path, turns: list[dict[str, Any]]) -> None:
    """A note a turn, headed by who spoke, in which session, and when."""
    (root / "docs/set").mkdir(parents=True)
    for turn in turns:
        heading = f"# {turn['speaker']} — session {turn['session']} — {turn['date']}"
        name = turn["id"].replace(":", "_")
        (root / f"docs/set/{name}.md").write_text(f"{heading}\n\n{turn['text']}\n", "utf-8")


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
    base, _, style = name.partition(".")
    base, _, texts_of = base.partition("-")  # xquad_de-en: German questions, English texts
    folder = needed(DATA / "retrieval" / base)
    wanted = _judgements(folder / "qrels.tsv")
    corpus = folder.with_name(f"xquad_{texts_of}") if texts_of else folder
    documents = _lines(corpus / "corpus.jsonl")
    ids: dict[str, list[tuple[int, str]]] = {}
    notes: dict[str, str] = {}
    for number, document in enumerate(documents):
        title = re.sub(r"\s+", " ", document.get("title") or "").strip()
        path, part = _note(number, title, document["text"], style)
        before = notes.get(path, "")
        ids.setdefault(path, []).append((before.count("\n") + 1, document["id"]))
        notes[path] = before + part

    def write(root: Path) -> None:
        for path, text in notes.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, "utf-8")

    def names_of(hit: Hit) -> Iterable[str]:
        begun = [each for line, each in ids[hit.path] if line <= hit.line]
        return begun[-1:] or [ids[hit.path][0][1]]

    return JudgedSet(
        name,
        _questions(folder, wanted),
        wanted,
        {d["id"]: f"{d.get('title') or ''}\n{d['text']}" for d in documents},
        write,
        names_of,
    )


def _note(number: int, title: str, text: str, style: str) -> tuple[str, str]:
    """Where a document is written in a style, and what."""
    if style == "long":
        heading = f"## {title}\n\n" if title else "---\n\n"
        return f"docs/set/{number // _IN_A_LONG_NOTE}.md", f"{heading}{text}\n\n"
    if style == "heading":
        return f"docs/set/{number}.md", f"# {title}\n\n{text}\n" if title else f"{text}\n"
    if style == "name":
        name = re.sub(r'[\\/:*?"<>|#^\[\]]', " ", title).strip(" .")[:100].strip() or "note"
        return f"docs/set/{number}/{name}.md", f"{text}\n"
    return f"docs/set/{number}.md", f"---\ntitle: {json.dumps(title)}\n---\n{text}\n"


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
