"""Worth: fits the weights by which statements are judged offline, and prints them.

    python -m tests.benchmarks worth [SET.jsonl ...] [--write]

Fitted on ``tests/offline/statements.txt`` (but for what is held out there) and on the statements of
labelled weeks: logistic regression that stays near weights chosen by hand, so that a sign that is
rare in the data keeps its meaning. ``--write`` puts them into ``kbtui/offline/words.txt``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from kbtui.offline import judging
from tests.benchmarks.material import DATA

STATEMENTS = Path(__file__).parent.parent / "offline" / "statements.txt"
_WORDS = Path(judging.__file__).with_name("words.txt")
_STEEP = 2.0
_NEAR = 2.0
_LEAST = 0.3
# By hand: what a sign says by itself.
_FIRST = """any -0.6 exact 1.5 number 0.8 names 0.8 nouns 0.25 named 0.7 durable 1.3 copula 0.8 placed 0.5
where 0.2 relation 0.9 mine_durable 0.8 mine 0.8 mine_not 0.8 not 0.2 we 0.3 has 0.3 thing 0.2 does 0.2
ruled_out 1.4 did 0.8 standing 0.8 label 1.4 three 0.3 six 0.3 titled 0.8 cries -2.2 laughs -0.8 mood -0.9
now -1.2 today -0.8 was -0.3 exclaims -2.0 sarcasm -2.5 uncertain -1.2 advice -3.0 you -1.2 pronoun -0.8
bang -0.6 anyone -0.8 body -0.5 short -1.0""".split()  # noqa: SIM905


def run(argv: list[str]) -> dict[str, Any]:
    """Fit the weights; the figures are the share judged right before and after."""
    parser = argparse.ArgumentParser(prog="worth")
    parser.add_argument("sets", nargs="*", default=[str(DATA / "keep" / "dev.jsonl")])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(argv)
    signs = [name.replace("_", " ") for name in _FIRST[::2]]
    first = np.array([float(number) for number in _FIRST[1::2]])
    told = [(line[2:], line[0] == "+") for line in STATEMENTS.read_text("utf-8").splitlines()]
    rows = [row for text, kept in told if not text.startswith("ld ") for row in _rows(text, kept)]
    for path in options.sets:
        for line in Path(path).read_text("utf-8").splitlines():
            message = json.loads(line)
            if message["keep"] != "optional" and message["kind"] not in ("secret", "question"):
                rows += _rows(message["text"], message["keep"], message["kind"])
    x = np.array([[row.get(sign, 0.0) for sign in signs] for row, _ in rows])
    y = np.array([kept for _, kept in rows], float)
    fitted = _fit(x, y, first)
    lines = "".join(f"{sign} {w:.2f}\n" for sign, w in zip(signs, fitted, strict=True))
    if options.write:
        before, _, _ = _WORDS.read_text("utf-8").partition("[weights]\n")
        _WORDS.write_text(f"{before}[weights]\n{lines}", "utf-8")
    print(lines)
    right = [float(((x @ w >= judging.WORTH_KEEPING) == y).mean()) for w in (first, fitted)]
    return {"figures": {"statements": len(y), "by hand": right[0], "fitted": right[1]}}


def _rows(text: str, kept: bool, kind: str = "") -> list[tuple[dict[str, float], bool]]:
    """The statements of a message; of one that is kept only where it is clear which is meant."""
    parts = [s for s in judging.sentences(text) if s.form == "statement" and not s.bullets]
    if judging.is_paste(text) or (kept and (len(parts) != 1 or kind == "correction")):
        return []
    return [(judging.signs_of(each.text, each.said), kept) for each in parts]


def _fit(x: Any, y: Any, first: Any) -> Any:
    """Newton's method; what speaks for keeping never turns against it."""
    weights = first.copy()
    floor = np.where(first > 0, _LEAST * first, -np.inf)
    for _ in range(200):
        p = 1 / (1 + np.exp(-_STEEP * (x @ weights - judging.WORTH_KEEPING)))
        slope = _STEEP * x.T @ (p - y) + _NEAR * (weights - first)
        bend = _STEEP**2 * (x.T * (p * (1 - p))) @ x + _NEAR * np.eye(len(first))
        weights = np.maximum(weights - np.linalg.solve(bend, slope), floor)
    return weights
