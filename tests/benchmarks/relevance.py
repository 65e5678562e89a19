"""How well an answer is told from none: fits the weights of `kbtui.search.query.ranking`.

Each set's own questions have an answer, and so have a few rare words of a passage. None have the
questions of other conversations, of another encyclopedia, a list of personal and general ones
(`unanswerable.txt`), gibberish, and words drawn at random. Half of the queries fit the weights, the
other half is reported, and the other way round: false hits are queries without an answer that get
some, lost is what recall at 10 loses to the threshold, in points. `--fit` prints new weights,
`--words` leaves the embedding model out, and `--most` takes that many queries of each kind.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.query.parser import parse
from kbtui.search.query.ranking import BY_BOTH, BY_WORDS, rank
from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.benchmarks.embedding_cache import RememberingModel
from tests.benchmarks.judged_sets import CONVERSATIONS, JudgedSet, load
from tests.benchmarks.material import DATA
from tests.benchmarks.report import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kbtui.search.query.fusion import Comparison
    from kbtui.search.results import Hit

    Floats = NDArray[np.float64]

TALKS = tuple(f"locomo-{number}" for number in CONVERSATIONS)
# How much each set counts in the fit; `keep` are eight small notebooks.
SETS: Mapping[str, float] = {
    **dict.fromkeys(TALKS, 1.0),
    "keep": 0.2,
    "xquad_en": 0.4,
    "xquad_de": 0.3,
    "xquad_zh": 0.2,
    "chunking_eval": 0.2,
}
# How much each kind of query counts; the first three have an answer.
KINDS: Mapping[str, float] = {
    "own": 3.0,
    "typed": 1.0,
    "keywords": 1.5,
    "foreign": 1.5,
    "foreign typed": 0.5,
    "general": 1.0,
    "listed": 1.5,
    "gibberish": 0.7,
    "drawn": 0.5,
}
ANSWERED = ("own", "typed", "keywords")
MOST_LOST = {"both": 0.25, "words": 1.2}  # points of recall at 10 on LoCoMo
_TOP = 10
_RARE = 8  # passages at most that hold a keyword


@dataclass(frozen=True)
class Asked:
    """One query to one set, with what was measured; `recall` is at 10, None without judgements."""

    set: str
    kind: str
    text: str
    features: Mapping[str, tuple[float, ...]]
    recall: Mapping[str, float]

    @property
    def half(self) -> int:
        """0 or 1, by chance, and the same for a text and its lower case."""
        return hashlib.sha256(self.text.lower().encode()).digest()[0] % 2


def ask_all(chance: random.Random, options: argparse.Namespace) -> Iterator[Asked]:
    """Ask every set all queries."""
    model = None if options.words else RememberingModel()
    settings = SearchSettings(semantic=not options.words)
    for name in options.sets:
        for judged in _notebooks() if name == "keep" else [load(name)]:
            with tempfile.TemporaryDirectory(prefix="kbtui-relevance-") as folder:
                workspace = create_workspace(Path(folder) / "kb")
                judged.write(workspace.root)
                index = SearchIndex(
                    workspace, Scanner(workspace), settings, RoleSettings(), model=model
                )
                index.search("x", "all", wait=model is not None)
                asked: Counter[str] = Counter()
                for kind, text, wanted in _queries(chance, name, judged, index):
                    if asked[kind] < options.most and parse(text).text.strip():
                        asked[kind] += 1
                        yield _asked(index, judged, name, kind, text, wanted)
                index.close()


def _asked(
    index: SearchIndex,
    judged: JudgedSet,
    name: str,
    kind: str,
    text: str,
    wanted: Mapping[str, float],
) -> Asked:
    generation = index._generations().serving
    query = parse(text)
    ways: dict[str, Comparison | None] = {"words": None}
    if index._settings.semantic:
        ways["both"] = index._semantic().compare(query.text, generation.corpus(), generation.store)
    scope = index._scopes.folders("all")
    features, recall = {}, {}
    for way, compared in ways.items():
        evidence = rank(generation.corpus(), query, scope, compared).evidence
        features[way] = evidence.features()
        if kind == "own":
            hits = index.search(text, "all", 4 * _TOP, semantic=way == "both").hits
            found = dict.fromkeys(each for hit in hits for each in judged.names_of(hit))
            best = list(found)[:_TOP]
            recall[way] = sum(each in wanted for each in best) / len(wanted)
    return Asked(name, kind, text, features, recall)


def _queries(
    chance: random.Random, name: str, judged: JudgedSet, index: SearchIndex
) -> Iterator[tuple[str, str, Mapping[str, float]]]:
    own = [(text, judged.wanted[number]) for number, text in judged.questions.items()]
    for text, wanted in chance.sample(own, min(200, len(own))):
        yield "own", text, wanted
        if chance.random() < 0.4:
            yield "typed", text.lower(), wanted
    yield from (("keywords", text, {}) for text in _keywords(chance, index))
    for other in TALKS:
        if other != name:
            questions = list(load(other).questions.values())
            for text in chance.sample(questions, 60 if name in TALKS else 25):
                yield "foreign", text, {}
                if chance.random() < 0.4:
                    yield "foreign typed", text.lower(), {}
    general = list(load("xquad_en").questions.values())
    if not name.startswith("xquad"):
        yield from (("general", text, {}) for text in chance.sample(general, 60))
    listed = Path(__file__).with_name("unanswerable.txt").read_text("utf-8").splitlines()
    yield from (("listed", text, {}) for text in listed)
    yield from (("gibberish", _gibberish(chance), {}) for _ in range(60))
    words = sorted({w for q in general for w in re.findall(r"[a-z]{4,}", q.lower())})
    drawn = (" ".join(chance.sample(words, chance.randint(2, 6))) for _ in range(40))
    yield from (("drawn", text, {}) for text in drawn)


def _keywords(chance: random.Random, index: SearchIndex) -> Iterator[str]:
    """One to three rare words of a passage."""
    generation = index._generations().serving
    corpus = generation.corpus()
    numbers = corpus.chunks.tolist()
    for row in generation.store.rows(chance.sample(numbers, min(80, len(numbers)))).values():
        words = dict.fromkeys(re.findall(r"[^\W\d_]{4,}", row.chunk.text))
        rare = [
            word
            for word in words
            if word.lower() not in analyser.STOP_WORDS
            and len(corpus.impacts(analyser.terms(word)[0])[0]) <= _RARE
        ]
        if rare:
            yield " ".join(chance.sample(rare, min(len(rare), chance.randint(1, 3)))).lower()


def _gibberish(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.2:
        return "".join(chance.choice("!?%&/()=#*+1234567890 ") for _ in range(8)) + "xq"
    if kind < 0.5:
        letters = "asdfghjklqwertyuiopzxcvbnm"
        lengths = [chance.randint(4, 9) for _ in range(chance.randint(1, 4))]
        return " ".join("".join(chance.choices(letters, k=length)) for length in lengths)
    return " ".join(
        "".join(
            chance.choice("bdfgklmnprstvz") + chance.choice("aeiou")
            for _ in range(chance.randint(2, 4))
        )
        for _ in range(chance.randint(1, 5))
    )


def _notebooks() -> Iterator[JudgedSet]:
    """What eight people typed, one conversation each, with the questions that it answers."""
    file = DATA / "keep" / "dev.jsonl"
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for week in dict.fromkeys(line["week"] for line in lines):
        typed = [line for line in lines if line["week"] == week]
        said = [line["text"] for line in typed if line["kind"] != "question"]
        questions = {str(line["n"]): line for line in typed if line.get("answer_must")}
        wanted = {
            number: {str(i): 1.0 for i, text in enumerate(said, 1) if _answers(line, text)}
            for number, line in questions.items()
        }

        def write(root: Path, said: Sequence[str] = said) -> None:
            records = ({"id": i, "role": "user", "content": t} for i, t in enumerate(said, 1))
            text = "".join(f"{json.dumps(record)}\n" for record in records)
            (root / "sessions/s.jsonl").write_text(text, "utf-8")

        def names_of(hit: Hit) -> Iterable[str]:
            return [str(hit.messages[0])] if hit.messages else []

        kept = {n: line["text"] for n, line in questions.items() if wanted[n]}
        yield JudgedSet(week, kept, wanted, {}, write, names_of)


def _answers(line: Mapping[str, Any], text: str) -> bool:
    accepted = (each for group in line["answer_must"] for each in group)
    return any(each.strip("*").lower() in text.lower() for each in accepted)


def fit(asked: Sequence[Asked], way: str) -> Floats:
    """The weights of a logistic model, the constant first, by Newton's method."""
    features = np.array([(1.0, *each.features[way]) for each in asked])
    wanted = np.array([each.kind in ANSWERED for each in asked], dtype=np.float64)
    groups: dict[tuple[str, str], int] = {}
    for each in asked:
        groups[each.set, each.kind] = groups.get((each.set, each.kind), 0) + 1
    count = np.array([SETS[e.set] * KINDS[e.kind] / groups[e.set, e.kind] for e in asked])
    count *= len(asked) / count.sum()
    weights = np.zeros(features.shape[1])
    damping = 0.01 * np.eye(len(weights))
    for _ in range(60):
        likely = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        slope = features.T @ (count * (likely - wanted)) + damping @ weights
        bend = (features * (count * likely * (1 - likely))[:, None]).T @ features + damping
        weights -= np.linalg.solve(bend, slope)
    talks = [each for each in asked if each.set in TALKS and each.kind == "own"]
    scores = np.sort(_scores(talks, way, weights))
    bearable = [s for s in scores if lost(talks, way, weights, float(s)) <= MOST_LOST[way]]
    weights[0] -= max(bearable)  # a relevance of 0.5 is where the threshold lies
    return weights


def _scores(asked: Sequence[Asked], way: str, weights: Floats) -> Floats:
    found: Floats = np.array([(1.0, *each.features[way]) for each in asked]) @ weights
    return found


def lost(asked: Sequence[Asked], way: str, weights: Floats, least: float = 0.0) -> float:
    """Points of recall at 10 that a threshold costs."""
    own = [each for each in asked if each.kind == "own"]
    missed = _scores(own, way, weights) < least
    return 100 * float(
        np.mean([each.recall[way] * no for each, no in zip(own, missed, strict=True)])
    )


def run(argv: list[str]) -> dict[str, Any]:
    """Report the shipped weights, or fit new ones and report them on the other half."""
    cli = argparse.ArgumentParser(prog="relevance", description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    cli.add_argument("--fit", action="store_true", help="fit each half and report the other")
    cli.add_argument("--words", action="store_true", help="leave the embedding model out")
    cli.add_argument("--most", type=int, default=1_000, help="queries of each kind to a set")
    cli.add_argument("sets", nargs="*", default=list(SETS), help=f"of {', '.join(SETS)}")
    options = cli.parse_args(argv)
    asked = list(ask_all(random.Random(7), options))
    kinds = [kind for kind in KINDS if kind not in ANSWERED]
    columns = ["set", "way", "half", "lost", "keywords lost", *kinds, "false"]
    table = Table("Relevance", columns)
    figures: dict[str, Any] = {}
    shipped_weights = {"words": BY_WORDS} if options.words else {"both": BY_BOTH, "words": BY_WORDS}
    for way, shipped in shipped_weights.items():
        for half in (0, 1):
            known = [each for each in asked if each.half != half]
            weights = fit(known, way) if options.fit else np.array(shipped)
            for name in options.sets:
                part = [each for each in asked if each.set == name and each.half == half]
                table.row(name, way, half, *_row(part, way, weights, kinds))
        figures[way] = [round(float(w), 2) for w in fit(asked, way)] if options.fit else shipped
    return {"tables": [table], "figures": figures}


def _row(part: Sequence[Asked], way: str, weights: Floats, kinds: Sequence[str]) -> list[str]:
    passed = {
        kind: _scores(of_kind, way, weights) >= 0
        for kind in (*kinds, "keywords")
        if (of_kind := [each for each in part if each.kind == kind])
    }
    shares = [f"{passed[kind].mean():.3f}" if kind in passed else "-" for kind in kinds]
    false = np.concatenate([passed[kind] for kind in kinds if kind in passed]).mean()
    keywords = 1 - passed["keywords"].mean() if "keywords" in passed else 0.0
    return [f"{lost(part, way, weights):.2f}", f"{keywords:.3f}", *shares, f"{false:.3f}"]
