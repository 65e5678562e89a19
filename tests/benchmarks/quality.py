"""How well search finds, through the whole pipeline: by words, by meaning, by both.

Recall at 5 and 10, nDCG at 10 and the reciprocal rank of the first right answer, on every judged
set, beside plain BM25. Vectors are remembered between runs (see `embedding_cache`).
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbtui.search.search_index import SearchIndex
from kbtui.settings import MULTILINGUAL_EMBEDDING_MODEL, RoleSettings, SearchSettings
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.benchmarks.embedding_cache import RememberingModel
from tests.benchmarks.judged_sets import (
    CONVERSATIONS,
    NAMES,
    STYLES,
    JudgedSet,
    half,
    is_held,
    load,
    some,
)
from tests.benchmarks.plain_bm25 import PlainBm25
from tests.benchmarks.report import Table, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Figures = dict[str, float]
    Scores = dict[str, Figures]  # by question

TOP = 10
# Hits asked for at first, and where they name fewer than `TOP`: several are of one session.
_ASKED = (TOP, 4 * TOP)
WAYS = ("bm25", "words", "rough", "meaning", "hybrid")
# What must hold: figure, way, at least.
BARS: Mapping[str, tuple[str, str, float]] = {
    "locomo": ("R@10", "hybrid", 0.83),
    "locomo-sessions": ("R@10", "hybrid", 0.96),
    "locomo-turns": ("R@10", "hybrid", 0.765),
    "chunking_eval": ("nDCG@10", "hybrid", 0.80),
    "cranfield": ("nDCG@10", "hybrid", 0.44),
    "scifact_train": ("nDCG@10", "hybrid", 0.74),
    "xquad_zh": ("R@10", "words", 0.80),
}
_CONVERSATION_KINDS = ("", "-sessions", "-notes", "-turns")
MOST_BELOW_A_PART = 0.005
LEAST_ROUGH = 0.95  # of the hybrid's nDCG


def score(found: Sequence[str], wanted: Mapping[str, float]) -> Figures:
    """The figures of one ranking."""
    names = list(dict.fromkeys(found))
    gain = sum(wanted.get(name, 0) / math.log2(i + 2) for i, name in enumerate(names[:TOP]))
    ideal = sorted(wanted.values(), reverse=True)[:TOP]
    best = sum(value / math.log2(i + 2) for i, value in enumerate(ideal))
    first = next((i for i, name in enumerate(names[:TOP], 1) if name in wanted), 0)
    return {
        "R@5": sum(name in wanted for name in names[:5]) / len(wanted),
        "R@10": sum(name in wanted for name in names[:TOP]) / len(wanted),
        "nDCG@10": gain / best,
        "MRR": 1 / first if first else 0.0,
    }


def _mean(scores: Sequence[Figures]) -> Figures:
    return {key: statistics.fmean(figures[key] for figures in scores) for key in scores[0]}


def _read_roughly(index: SearchIndex) -> None:
    """Embed all by the rough model, as if the model itself hadn't read anything yet."""
    index.load_model()
    queue, store = index._semantic().queue, index._generations().serving.store
    if queue.rough.load(threading.Event()):
        queue._read_all(queue.rough, queue._missing(store, queue.rough), store, lambda: True)


def measure(
    judged: JudgedSet,
    model: RememberingModel | None,
    settings: SearchSettings,
    second: RememberingModel | None = None,
) -> dict[str, Scores]:
    """Index one set and ask all its questions, in each way."""
    found: dict[str, Scores] = {}
    if judged.texts:
        plain = PlainBm25(judged.texts)
        found["bm25"] = _ask(judged, plain.best)
    with tempfile.TemporaryDirectory(prefix="kbtui-quality-") as folder:
        workspace = create_workspace(Path(folder) / "kb")
        judged.write(workspace.root)
        alone = settings.model_copy(update={"vector_weight": 1.0, "text_weight": 0.0})
        for way in WAYS[1:] if model else ("words",):
            index = SearchIndex(
                workspace,
                Scanner(workspace),
                alone if way == "meaning" else settings,
                RoleSettings(),
                model=model,
                second=second,
            )
            index.sync()
            if way == "rough":
                _read_roughly(index)

            def names(
                question: str, most: int, index: SearchIndex = index, way: str = way
            ) -> list[str]:
                result = index.search(
                    question,
                    "all",
                    most,
                    semantic=way != "words",
                    wait=way in {"meaning", "hybrid"},
                )
                return [name for hit in result.hits for name in judged.names_of(hit)]

            found[way] = _ask(judged, names)
            index.close()
        shutil.rmtree(workspace.cache)
    return found


def _ask(judged: JudgedSet, names: Callable[[str, int], list[str]]) -> Scores:
    """The figures of each question."""
    scores = {}
    for number, text in judged.questions.items():
        for most in _ASKED:
            found = names(text, most)
            if len(set(found)) >= TOP or len(found) < most:
                break
        scores[number] = score(found, judged.wanted[number])
    return scores


def _averages(found: dict[str, dict[str, Figures]]) -> dict[str, dict[str, Figures]]:
    """LoCoMo as a whole: the mean of its conversations."""
    means: dict[str, dict[str, Figures]] = {}
    for kind in _CONVERSATION_KINDS:
        parts = [found.get(f"locomo-{number}{kind}") for number in CONVERSATIONS]
        whole = [part for part in parts if part]
        if len(whole) == len(CONVERSATIONS):
            means[f"locomo{kind}"] = {way: _mean([part[way] for part in whole]) for way in whole[0]}
    return means | found


def _halves(found: Mapping[str, Mapping[str, Scores]]) -> Table:
    """nDCG@10 of the half to tune on and of the other, and what is gained over plain BM25 there.

    The questions of the halves aren't equally hard, so that the gains are compared; beside them
    stands how far they lie apart by chance (one standard error).
    """
    columns = ["set", "way", "tuned", "held", "gain tuned", "gain held", "held behind", "by chance"]
    table = Table("Halves, nDCG@10", columns)
    for name, ways in found.items():
        for way in (way for way in WAYS[1:] if way in ways and "bm25" in ways):
            values, gains = [], []
            for held in (False, True):
                asked = [q for q in ways[way] if is_held(q) == held]
                values.append(statistics.fmean(ways[way][q]["nDCG@10"] for q in asked))
                gains.append([ways[way][q]["nDCG@10"] - ways["bm25"][q]["nDCG@10"] for q in asked])
            if min(map(len, gains)) < 2:
                continue
            tuned, held_back = map(statistics.fmean, gains)
            chance = math.sqrt(sum(statistics.variance(gain) / len(gain) for gain in gains))
            shown = (*values, tuned, held_back, tuned - held_back, chance)
            table.row(name, way, *(f"{value:.3f}" for value in shown))
    return table


def _conversations(found: Mapping[str, Mapping[str, Scores]]) -> Table:
    """Recall at 10 of LoCoMo's three conversations by half, each as the mean of the three."""
    table = Table("LoCoMo, R@10", ["set", "way", "tuned", "held", "all"])
    for kind in _CONVERSATION_KINDS:
        parts = [found.get(f"locomo-{number}{kind}") for number in CONVERSATIONS]
        whole = [part for part in parts if part]
        for way in WAYS if len(whole) == len(CONVERSATIONS) else ():
            asked = [part[way] for part in whole if way in part]
            shown = [_recall(asked, held) for held in ({False}, {True}, {False, True})]
            if asked:
                table.row(f"locomo{kind}", way, *shown)
    return table


def _recall(asked: Sequence[Scores], held: set[bool]) -> str:
    """Recall at 10 of a half of each conversation's questions, or of all."""
    of = [[s["R@10"] for q, s in scores.items() if is_held(q) in held] for scores in asked]
    return f"{statistics.fmean(map(statistics.fmean, of)):.3f}" if all(of) else "-"


def _styles(found: Mapping[str, Mapping[str, Figures]]) -> Table:
    """nDCG@10 of each set in each style of saying its titles, and how far the worst is behind."""
    columns = ["frontmatter", *(style.strip(".") for style in STYLES[1:])]
    table = Table("Styles, nDCG@10", ["set", "way", *columns, "worst behind best"])
    for name in (name for name in found if all(f"{name}{style}" in found for style in STYLES)):
        for way in (way for way in WAYS if way in found[name] and way != "bm25"):
            values = [found[f"{name}{style}"][way]["nDCG@10"] for style in STYLES]
            table.row(name, way, *(f"{v:.3f}" for v in values), f"{max(values) - min(values):.3f}")
    return table


def _bar(name: str, way: str, ways: Mapping[str, Figures]) -> str:
    what, of, least = BARS.get(name, ("", "", 0.0))
    said = []
    if way == of:
        said.append(f"{what} {least:.3f} {'held' if ways[way][what] >= least else 'MISSED'}")
    if way == "rough":
        share = ways[way]["nDCG@10"] / ways["hybrid"]["nDCG@10"]
        said.append(f"{share:.3f} of hybrid{' MISSED' if share < LEAST_ROUGH else ''}")
    if way == "hybrid" and _below(ways) > MOST_BELOW_A_PART:
        said.append(f"below a part by {_below(ways):.3f} MISSED")
    return ", ".join(said) or "-"


def _below(ways: Mapping[str, Figures]) -> float:
    """How far the hybrid falls below the better of its parts, in nDCG; negative: it is above."""
    if not {"words", "meaning", "hybrid"} <= ways.keys():
        return -1.0
    parts = max(ways[way]["nDCG@10"] for way in ("words", "meaning"))
    return parts - ways["hybrid"]["nDCG@10"]


def run(argv: list[str]) -> dict[str, Any]:
    """Measure the named sets, or all."""
    cli = argparse.ArgumentParser(prog="quality", description=__doc__)
    cli.add_argument("sets", nargs="*", help=f"of {', '.join(NAMES)}; a beginning will do")
    cli.add_argument("--words", action="store_true", help="leave the embedding model out")
    cli.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of search"
    )
    cli.add_argument("--most", type=int, default=10_000, help="questions of a set, evenly chosen")
    cli.add_argument("--half", choices=("tune", "held"), help="ask half of the questions only")
    asked = cli.parse_args(argv)
    settings = SearchSettings.model_validate(dict(each.split("=", 1) for each in asked.set))
    names = [n for n in NAMES if not asked.sets or n.startswith(tuple(asked.sets))]
    model = None if asked.words else RememberingModel()
    second = None if asked.words else RememberingModel(MULTILINGUAL_EMBEDDING_MODEL)
    found = {}
    for name in names:
        judged = half(load(name), asked.half) if asked.half else load(name)
        found[name] = measure(some(judged, asked.most), model, settings, second)
    means = _averages(
        {
            name: {way: _mean(list(scores.values())) for way, scores in ways.items()}
            for name, ways in found.items()
        }
    )
    table = Table("Search quality", ["set", "way", "R@5", "R@10", "nDCG@10", "MRR", "bar"])
    for name, ways in means.items():
        for way, figures in ways.items():
            shown = (f"{value:.3f}" for value in figures.values())
            table.row(name, way, *shown, _bar(name, way, ways))
    tables = [table, _conversations(found), _styles(means)]
    tables += [] if asked.half else [_halves(found)]
    packages = ("whoosh-reloaded", "numpy", "onnxruntime", "tokenizers")
    return {
        "tables": [each for each in tables if each.rows],
        "figures": {"versions": versions(*packages), "sets": means},
    }
