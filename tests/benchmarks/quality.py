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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.benchmarks.embedding_cache import RememberingModel
from tests.benchmarks.judged_sets import CONVERSATIONS, NAMES, STYLES, JudgedSet, half, load
from tests.benchmarks.plain_bm25 import PlainBm25
from tests.benchmarks.report import Table, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kbtui.search.results import SearchResult

    Figures = dict[str, float]

TOP = 10
_ASKED = 40  # hits; a question may have several answers in one session
_ONE_CHUNK_A_FILE = 3
WAYS = ("bm25", "words", "meaning", "hybrid")
# What must hold: figure, way, at least.
BARS: Mapping[str, tuple[str, str, float]] = {
    "locomo": ("R@10", "hybrid", 0.72),
    "chunking_eval": ("nDCG@10", "hybrid", 0.80),
    "cranfield": ("nDCG@10", "hybrid", 0.44),
    "scifact_train": ("nDCG@10", "hybrid", 0.74),
    "xquad_zh": ("R@10", "words", 0.80),
}
MOST_BELOW_A_PART = 0.005


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


def measure(
    judged: JudgedSet, model: RememberingModel | None, settings: SearchSettings
) -> dict[str, Figures]:
    """Index one set and ask all its questions, in each way."""
    found: dict[str, Figures] = {}
    if judged.texts:
        plain = PlainBm25(judged.texts)
        found["bm25"] = _ask(judged, lambda question: plain.best(question, _ASKED))
    with tempfile.TemporaryDirectory(prefix="kbtui-quality-") as folder:
        workspace = create_workspace(Path(folder) / "kb")
        judged.write(workspace.root)
        weights = {"words": None, "meaning": (1.0, 0.0), "hybrid": ()}
        for way, weight in weights.items():
            if way != "words" and model is None:
                continue
            changed = dict(zip(("vector_weight", "text_weight"), weight or (), strict=False))
            index = SearchIndex(
                workspace,
                Scanner(workspace),
                settings.model_copy(update=changed),
                RoleSettings(),
                model=model,
            )

            def names(question: str, index: SearchIndex = index, way: str = way) -> list[str]:
                semantic = way != "words"
                result = index.search(question, "all", _ASKED, semantic=semantic, wait=semantic)
                return _names(judged, result)

            found[way] = _ask(judged, names)
            index.close()
        shutil.rmtree(workspace.cache)
    return found


def _names(judged: JudgedSet, result: SearchResult) -> list[str]:
    return [name for hit in result.hits for name in judged.names_of(hit)]


def _ask(judged: JudgedSet, names: Callable[[str], list[str]]) -> Figures:
    return _mean([score(names(text), judged.wanted[q]) for q, text in judged.questions.items()])


def _averages(found: dict[str, dict[str, Figures]]) -> dict[str, dict[str, Figures]]:
    """LoCoMo as a whole: the mean of its conversations."""
    means: dict[str, dict[str, Figures]] = {}
    for kind in ("", "-sessions", "-notes"):
        name, suffix = f"locomo{kind}", kind
        parts = [found.get(f"locomo-{number}{suffix}") for number in CONVERSATIONS]
        whole = [part for part in parts if part]
        if len(whole) == len(CONVERSATIONS):
            means[name] = {way: _mean([part[way] for part in whole]) for way in whole[0]}
    return means | found


def _styles(found: Mapping[str, Mapping[str, Figures]]) -> Table:
    """nDCG@10 of each set in each style of saying its titles, and how far the worst is behind."""
    columns = ["frontmatter", *(style.strip(".") for style in STYLES[1:])]
    table = Table("Styles, nDCG@10", ["set", "way", *columns, "worst behind best"])
    for name in (name for name in found if all(f"{name}{style}" in found for style in STYLES)):
        for way in (way for way in WAYS if way in found[name] and way != "bm25"):
            values = [found[f"{name}{style}"][way]["nDCG@10"] for style in STYLES]
            table.row(name, way, *(f"{v:.3f}" for v in values), f"{max(values) - min(values):.3f}")
    return table


def _bar(name: str, way: str, figures: Figures) -> str:
    what, of, least = BARS.get(name, ("", "", 0.0))
    if way != of:
        return "-"
    return f"{what} {least:.2f} {'held' if figures[what] >= least else 'MISSED'}"


def _below(ways: Mapping[str, Figures]) -> float:
    """How far the hybrid falls below the better of its parts, in nDCG; negative: it is above."""
    if not {"words", "meaning", "hybrid"} <= ways.keys():
        return -1.0
    parts = max(ways[way]["nDCG@10"] for way in ("words", "meaning"))
    return parts - ways["hybrid"]["nDCG@10"]


def run(argv: list[str]) -> dict[str, Any]:
    """Measure the named sets, or all."""
    cli = argparse.ArgumentParser(prog="quality", description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    cli.add_argument("sets", nargs="*", help=f"of {', '.join(NAMES)}; a beginning will do")
    cli.add_argument("--words", action="store_true", help="leave the embedding model out")
    cli.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of search"
    )
    cli.add_argument("--half", choices=("tune", "held"), help="ask half of the questions only")
    asked = cli.parse_args(argv)
    settings = SearchSettings.model_validate(dict(each.split("=", 1) for each in asked.set))
    names = [n for n in NAMES if not asked.sets or n.startswith(tuple(asked.sets))]
    model = None if asked.words else RememberingModel()
    found = {}
    for name in names:
        judged = half(load(name), asked.half) if asked.half else load(name)
        found[name] = measure(judged, model, settings)
    styles = _styles(found)
    table = Table("Search quality", ["set", "way", "R@5", "R@10", "nDCG@10", "MRR", "bar"])
    found = _averages(found)
    for name, ways in found.items():
        for way, figures in ways.items():
            bar = _bar(name, way, figures)
            if way == "hybrid" and _below(ways) > MOST_BELOW_A_PART:
                bar += f" below a part by {_below(ways):.3f}"
            table.row(name, way, *(f"{value:.3f}" for value in figures.values()), bar)
    tables = [table, styles] if styles.rows else [table]
    packages = ("whoosh-reloaded", "numpy", "onnxruntime", "tokenizers")
    return {"tables": tables, "figures": {"versions": versions(*packages), "sets": found}}
