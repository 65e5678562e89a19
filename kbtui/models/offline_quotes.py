"""Chooses the lines of search results that answer a question, without adding a word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.text import fold, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RESULT = re.compile(
    r"^\[(?P<n>\d+)\] (?P<path>\S.*?) \(lines (?P<first>\d+)-(?P<last>\d+)(?P<note>[^)\n]*)\)"
    r"[^\n]*\n<data (?P<mark>\w+)>\n(?P<text>.*?)\n</data (?P=mark)>",
    re.DOTALL | re.MULTILINE,
)
_WORD = re.compile(r"\w+")
_WIKI = re.compile(r"\[\[(?:[^\]|\n]*\|)?([^\]\n]*)\]\]")
_FRONTMATTER_KEY = re.compile(r"^[\w-]+:(?:\s|$)")
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+|^\s*>\s*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_BECAUSE = re.compile(r"\b(?:because|since|due to|reason|so that|therefore)\b", re.IGNORECASE)
_WHY = re.compile(r"\b(?:why|reason|how come)\b", re.IGNORECASE)
_COMMON = frozenset(
    """a about am an and any are as at be been by can could did do does for from had has have he her
    his how i if in into is it its know me my no not of on or our she should so some tell than that
    the their them then there these they this to us was we were what when where which who whom whose
    why will with would you your find show list search""".split()  # noqa: SIM905
)
_NOT_SAID = ("#", "```", "~~~", "---", "|--", "<!--")
_STEM = 5
_QUOTE_WIDTH = 400
_LONG = 240
_MOST_QUOTES = 5
_MOST_OF_ONE = 2
_BECAUSE_WEIGHT = 1.5
_SHARE_OF_BEST = 0.6


@dataclass(frozen=True, slots=True)
class Result:
    """One numbered result of a search tool."""

    n: int
    path: str
    first: int
    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A line from a result; `score` counts the words that it shares with the question."""

    n: int
    path: str
    text: str
    score: float


def results_in(output: str) -> list[Result]:
    """Read the results out of what a search tool answered."""
    return [
        Result(int(match["n"]), match["path"], int(match["first"]), match["text"])
        for match in _RESULT.finditer(output)
    ]


def best_quotes(question: str, results: Sequence[Result]) -> list[Quote]:
    """The lines that share most with the question, in the order of the results.

    Where no line shares a word with it, the first line of the first result stands for the
    nearest by meaning, with a score of 0.
    """
    # What was kept says it better than the conversation that it was kept from.
    kept = [result for result in results if not result.path.startswith("sessions/")]
    return _matching(question, kept) or _matching(question, results) or _nearest(results)


def _matching(question: str, results: Sequence[Result]) -> list[Quote]:
    wanted = _stems(question)
    why = _WHY.search(question) is not None
    found: list[Quote] = []
    seen: set[str] = set()
    for result in results:
        quotes = [quote for quote in _quotes(result, wanted, why=why) if quote.text not in seen]
        ranked = sorted((quote for quote in quotes if quote.score), key=lambda q: -q.score)
        kept = [quote for quote in quotes if quote in ranked[:_MOST_OF_ONE]]
        seen |= {quote.text for quote in kept}
        found += kept
    best = max((quote.score for quote in found), default=0.0)
    return [quote for quote in found if quote.score > best * _SHARE_OF_BEST][:_MOST_QUOTES]


def _nearest(results: Sequence[Result]) -> list[Quote]:
    """The first line of the first result."""
    return list(_quotes(results[0], frozenset(), why=False))[:1] if results else []


def _quotes(result: Result, wanted: frozenset[str], *, why: bool) -> Iterator[Quote]:
    name = _stems(result.path.rpartition("/")[2])
    for line in _lines(result.text):
        own = wanted & _stems(line)
        # The name of the entry helps a line that says something itself, and only that one.
        score = len(own) + (len(wanted & name - own) / 2 if own or why else 0)
        if why and score and _BECAUSE.search(line):
            score += _BECAUSE_WEIGHT
        yield Quote(result.n, result.path, line, score)


def _lines(text: str) -> Iterator[str]:
    """What the text says: no heading, property, fence, table or rule; what is long in parts."""
    lines = text.split("\n")
    if lines[0].strip() == "---":
        end = next((n for n, line in enumerate(lines[1:], 1) if line.strip() in ("---", "...")), 0)
        lines = lines[end + 1 :] if end else [ln for ln in lines if not _FRONTMATTER_KEY.match(ln)]
    for plain in _paragraphs(lines):
        if len(plain) <= _LONG:
            yield plain
        else:
            yield from (shorten(part, _QUOTE_WIDTH) for part in _SENTENCE_END.split(plain) if part)


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Each paragraph, list item and table row as one line, however it was wrapped."""
    gathered: list[str] = []
    for line in lines:
        plain = _WIKI.sub(r"\1", _BULLET.sub("", line)).strip()
        silent = not plain or plain.startswith(_NOT_SAID)
        begins = plain.startswith("|") or _BULLET.match(line)
        if (silent or begins) and gathered:
            yield " ".join(gathered)
            gathered = []
        if not silent:
            gathered.append(plain)
    if gathered:
        yield " ".join(gathered)


def _stems(text: str) -> frozenset[str]:
    """The words that carry meaning, cut so that their forms meet."""
    words = (word for word in _WORD.findall(fold(text.replace("_", " "))) if word not in _COMMON)
    return frozenset(
        word if len(word) <= _STEM else word[: max(_STEM, len(word) - 3)] for word in words
    )
