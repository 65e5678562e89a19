"""Chooses the lines that answer a question, and says how sure that is; no word is added to a line.

Search has found the passages; here their sentences and items are weighed by how much of what the
question names they hold. Two thresholds part what answers from what is only near, and that from
nothing; `tests/benchmarks/keep.py` fits them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kbtui.offline.language import telling_terms
from kbtui.offline.message import asks
from kbtui.search.index import analyser

Tier = Literal["sure", "near", "none"]
MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line that may answer.

    Attributes:
        path: The file, by its workspace path.
        text: The line.
        number: Where it stands: a line of the file, from 1; of a conversation, the message's id.
        title: What the file is called, with the heading that the line stands under.
        when: When it was said or written, so that what is newer sorts later.
        score: How well search found its passage to fit, in 0..1; compares within one question.
        relevance: How likely its passage answers, in 0..1.
        cosine: How near its passage is by meaning; 0 where that isn't known.
        alone: True where the passage is this line and nothing else.
        told: Who told it, of a conversation: ``user`` or ``assistant``; empty elsewhere.
        place: The page or sheet that it stands on.
        time: Its time, of a line of the journal.
    """

    path: str
    text: str
    number: int
    title: str = ""
    when: str = ""
    score: float = 0.0
    relevance: float = 0.0
    cosine: float = 0.0
    alone: bool = False
    told: str = ""
    place: str = ""
    time: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The lines that answer, the best first, and how sure that is; none where nothing is near."""

    tier: Tier
    lines: tuple[Candidate, ...] = ()


# Of the words of a question that a line holds by its title alone.
_BY_TITLE = 0.6
# Of a line's standing: its own words beside its passage's, and its meaning.
_OWN = 0.4
_MEANING = 0.6
# Two lines say something about the same thing where they share so much of the shorter one.
_SAME_THING = 0.4
_SAME_WORDS = 0.8
_NEAR_BEST = 0.45
# Fitted: how likely search thinks an answer is, and how much of the question the lines hold.
_SURE, _SURE_HELD = 0.8, 0.3
_NEAR, _NEAR_BY_MEANING = 0.05, 0.2
_BESIDE = 0.3
_NEAR_STATEMENT = 0.28
# How much words count for that where meaning isn't known.
_BY_WORDS = 0.7


def choose(question: str, candidates: Sequence[Candidate]) -> Answer:
    """The lines that answer a question."""
    asked = Asked(question, [each.text for each in candidates])
    told = [each for each in candidates if not asks(each.text)]
    scored = sorted(((asked.score(each), each) for each in told), key=lambda pair: -pair[0])
    if not scored:
        return Answer("none")
    best = scored[0][0]
    near = [each for score, each in scored if score >= _NEAR_BEST * best]
    if any(map(asked.held, near)):  # beside what says something of it, what is no more than there
        near = [each for each in near if asked.held(each) or each.cosine >= _BESIDE]
    shown = _distinct(near)
    return Answer(_tier(asked, shown), tuple(shown))


def _tier(asked: Asked, shown: Sequence[Candidate]) -> Tier:
    held = max(asked.held(each) for each in shown)
    answered = max(each.relevance for each in shown)
    if answered >= _SURE and held >= _SURE_HELD:
        return "sure"
    nearest = max(each.cosine for each in shown)
    return "near" if max(answered, held) >= _NEAR or nearest >= _NEAR_BY_MEANING else "none"


class Asked:
    """The telling words of a question, each weighed by how rare it is among some lines."""

    def __init__(self, question: str, lines: Iterable[str]) -> None:
        known = Counter(term for line in lines for term in set(_terms(line)))
        count = known.total() / 8 + 20
        self.weights = {
            term: math.log(1 + count / (known[term] + 0.5)) for term in telling_terms(question)
        }

    def held(self, line: Candidate) -> float:
        """The share of the question that a line holds, in 0..1; by its title counts less."""
        whole = sum(self.weights.values())
        if not whole:
            return 0.0
        own, titled = set(_terms(line.text)), set(_terms(line.title))
        return (
            sum(
                weight * (1.0 if term in own else _BY_TITLE if term in titled else 0.0)
                for term, weight in self.weights.items()
            )
            / whole
        )

    def score(self, line: Candidate) -> float:
        """How well a line answers beside others."""
        own = line.score * (1 - _OWN + _OWN * self.held(line))
        return own + _MEANING * max(0.0, line.cosine)


def _terms(text: str) -> list[str]:
    return analyser.terms(text)


def _distinct(lines: Sequence[Candidate]) -> list[Candidate]:
    """The first lines without repetitions; of those about one thing the newest first."""
    kept: list[tuple[Candidate, frozenset[str]]] = []
    for line in lines:
        told = _told(line)
        same = [n for n, (_, other) in enumerate(kept) if _shared(told, other) >= _SAME_WORDS]
        if not same:
            kept.append((line, told))
        elif _age(line) > _age(kept[same[0]][0]):
            kept[same[0]] = (line, told)
    ordered: list[tuple[Candidate, frozenset[str]]] = []
    for line, told in kept[:MOST_SHOWN]:
        older = (
            n
            for n, (other, words) in enumerate(ordered)
            if _age(line) > _age(other)
            and len(told & words) >= _SAME_THING * max(1, min(len(told), len(words)))
        )
        ordered.insert(next(older, len(ordered)), (line, told))
    return [line for line, _ in ordered]


def _age(line: Candidate) -> tuple[str, int]:
    """When a line was written; of one minute the later stands below."""
    return line.when, line.number


def _told(line: Candidate) -> frozenset[str]:
    return frozenset(telling_terms(line.text) or _terms(line.text))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one), len(other))


def nearest(statement: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """The line that a new statement is most likely about; None where none surely is.

    It shares telling words with it, and is near by meaning where that is known.
    """
    asked = Asked(statement, [each.text for each in candidates])
    best = max(candidates, key=lambda each: nearness(asked, each), default=None)
    return best if best is not None and nearness(asked, best) >= _NEAR_STATEMENT else None


def nearness(asked: Asked, line: Candidate) -> float:
    """How likely a line is about the same thing as a statement, in about 0..1."""
    told = set(_terms(line.text))
    shared = sum(weight for term, weight in asked.weights.items() if term in told)
    whole = sum(asked.weights.values())
    held = shared / whole if whole else 0.0
    return (held + max(0.0, line.cosine)) / 2 if line.cosine else _BY_WORDS * held
