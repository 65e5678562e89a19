"""Chooses the lines that answer a question, and says how sure that is; no word is added to a line.

Search has found the passages; here their sentences and items are weighed by how much of what the
question names they hold. Two thresholds part what answers from what is only near, and that from
nothing; `tests/benchmarks/keep.py` fits them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kbtui.offline.language import begins, language_of, of_all, telling_terms, tokens
from kbtui.offline.message import asks
from kbtui.offline.names import NameReader
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
        told: Who told it, of a conversation: ``user`` or ``assistant``; empty elsewhere.
        place: The page or sheet that it stands on.
        time: Its time, of a line of the journal.
        whole: The paragraph that it stands in, where that is short; empty elsewhere.
    """

    path: str
    text: str
    number: int
    title: str = ""
    when: str = ""
    score: float = 0.0
    relevance: float = 0.0
    cosine: float = 0.0
    told: str = ""
    place: str = ""
    time: str = ""
    whole: str = ""

    @property
    def shown(self) -> str:
        """What is quoted: a sentence with its paragraph, where a reason may stand beside it."""
        return self.whole or self.text


@dataclass(frozen=True, slots=True)
class QuotedAnswer:
    """The lines that answer, the best first, and how sure that is; none where nothing is near."""

    tier: Tier
    lines: tuple[Candidate, ...] = ()


# Of the words of a question that a line holds by its title alone.
_BY_TITLE = 0.6
# Of a line's standing: its own words beside its passage's, and its meaning.
_OWN, _MEANING = 0.4, 0.6
# Two lines say something about the same thing, or the same, where they share so many words.
_SAME_THING, _SAME_WORDS = 0.4, 0.8
_NEAR_BEST = 0.45
# Fitted: how likely search thinks an answer is, and how much of the question the lines hold.
_SURE, _SURE_HELD = 0.8, 0.3
_NEAR, _NEAR_BY_MEANING = 0.05, 0.2
_BESIDE = 0.3
_NEAR_STATEMENT = 0.28
# How much words count for that where meaning isn't known.
_BY_WORDS = 0.7


def choose(question: str, candidates: Sequence[Candidate]) -> QuotedAnswer:
    """The lines that answer a question."""
    asked = _Asked(question, candidates)
    near = _near(asked, [each for each in candidates if not asks(each.text)])
    if not near:
        return QuotedAnswer("none")
    shown = _distinct(near, asked)
    if (begins(question, of_all("who")) or "")[:1].isupper():  # what was said first tells who it is
        shown.sort(key=_age)
    held = max(map(asked.held, shown))
    answered = max(each.relevance for each in shown)
    nearest = max(each.cosine for each in shown)
    if answered >= _SURE and held >= _SURE_HELD:
        return QuotedAnswer("sure", tuple(shown))
    if max(answered, held) >= _NEAR or nearest >= _NEAR_BY_MEANING:
        return QuotedAnswer("near", tuple(shown))
    return QuotedAnswer("none")


def _near(asked: _Asked, told: Sequence[Candidate]) -> list[Candidate]:
    """The lines that say about as much of what was asked as the best one, the best first."""
    scored = sorted(((asked.score(each), each) for each in told), key=lambda pair: -pair[0])
    near = [each for score, each in scored if score >= _NEAR_BEST * scored[0][0]]
    if any(map(asked.held, near)):  # beside what says something of it, what is no more than there
        near = [each for each in near if asked.held(each) or each.cosine >= _BESIDE]
    return near


class _Asked:
    """The telling words of a text, each weighed by how rare it is among some lines."""

    def __init__(self, text: str, lines: Iterable[Candidate]) -> None:
        known = Counter(term for line in lines for term in set(analyser.terms(line.text)))
        count = known.total() / 8 + 20
        self._weights = {
            term: math.log(1 + count / (known[term] + 0.5)) for term in telling_terms(text)
        }
        self._whole = sum(self._weights.values()) or 1.0

    def held(self, line: Candidate, by_title: float = _BY_TITLE) -> float:
        """The share of the text that a line holds, in 0..1; by its title alone counts less."""
        own, titled = set(analyser.terms(line.text)), set(analyser.terms(line.title))
        shares = ((1.0 if t in own else by_title if t in titled else 0.0) for t in self._weights)
        pairs = zip(self._weights.values(), shares, strict=True)
        return sum(weight * share for weight, share in pairs) / self._whole

    def is_told_by(self, line: Candidate) -> bool:
        """True if a line of the journal holds the whole text by its own words."""
        return bool(line.time and self._weights.keys() <= set(analyser.terms(line.text)))

    def score(self, line: Candidate) -> float:
        """How well a line answers beside others."""
        own = line.score * (1 - _OWN + _OWN * self.held(line))
        return own + _MEANING * max(0.0, line.cosine)


def _distinct(lines: Sequence[Candidate], asked: _Asked) -> list[Candidate]:
    """The first lines without repetitions; of those about one thing the newest first.

    So are lines of the journal that each hold all that is asked for.
    """
    kept: list[Candidate] = []
    for line in lines:
        if line.whole and any((line.path, line.whole) == (each.path, each.whole) for each in kept):
            continue
        same = [n for n, each in enumerate(kept) if _shared(line, each, max) >= _SAME_WORDS]
        if same:
            kept[same[0]] = max(kept[same[0]], line, key=_age)
        else:
            kept.append(line)
    return _newest_first(kept[:MOST_SHOWN], asked)


def _newest_first(lines: Sequence[Candidate], asked: _Asked) -> list[Candidate]:
    """Put what is newer before the older ones about the same."""
    ordered: list[Candidate] = []
    for line in lines:
        older = (n for n, each in enumerate(ordered) if _age(line) > _age(each))
        alike = (
            n
            for n in older
            if (asked.is_told_by(line) and asked.is_told_by(ordered[n]))
            or _shared(line, ordered[n], min) >= _SAME_THING
        )
        ordered.insert(next(alike, len(ordered)), line)
    return ordered


def _age(line: Candidate) -> tuple[str, int]:
    """When a line was written; of one minute the later stands below."""
    return line.when, line.number


def _shared(one: Candidate, other: Candidate, of: Callable[[int, int], int]) -> float:
    """The share of telling words that two lines have in common, of the shorter or longer one's."""
    words, others = (
        frozenset(telling_terms(each.text) or analyser.terms(each.text)) for each in (one, other)
    )
    return len(words & others) / max(1, of(len(words), len(others)))


def nearest(statement: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """The line that a new statement is most likely about; None where none surely is.

    It shares telling words with it, and is near by meaning where that is known. What a statement
    corrects has another value where it has one, or shares a name or more than one word with it.
    """
    asked = _Asked(statement, candidates)

    def nearness(line: Candidate) -> float:
        held = asked.held(line, by_title=0.0)
        return (held + max(0.0, line.cosine)) / 2 if line.cosine else _BY_WORDS * held

    best = max(candidates, key=nearness, default=None)
    if best is None or nearness(best) < _NEAR_STATEMENT:
        return None
    shared = {*telling_terms(statement)} & {*telling_terms(best.text)}
    values, others = _values(statement), _values(best.text)
    is_named = shared & _named(statement) & _named(best.text)
    is_about = is_named or len(shared) > 1 or (others and values - others)
    return best if shared and is_about else None


def _values(text: str) -> set[str]:
    """The numbers of a text, and the days and months that it names."""
    language = language_of(text)
    lists = [language.places[name] for name in ("numbers", "weekdays", "months")]
    return {
        word
        for word, _, _ in tokens(text)
        if any(map(str.isdigit, word)) or any(word in places for places in lists)
    }


def _named(text: str) -> set[str]:
    """The terms of the names in a text."""
    names = NameReader()
    names.read(text)
    return {term for name in names.names_in(text) for term in analyser.terms(name)}
