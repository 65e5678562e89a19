"""Sentences: what a text says one by one, what it denies, and how it is framed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from difflib import SequenceMatcher
from functools import cached_property, lru_cache, partial
from itertools import combinations, groupby

from kbtui.memory.comparing.figures import Figure, Meant, days_meant, figures_and_dates
from kbtui.offline.frames import QUOTED, frames_of
from kbtui.offline.language import (
    CACHE_LIMIT,
    Token,
    begins,
    holds,
    language_of,
    of_all,
    significant_terms,
    stems_of,
    tokens,
    unmatched,
)
from kbtui.search.index import analyser

_PART = re.compile(r"[,;]\s")
_APOSTROPHE = re.compile(r"['\u2019]")
_MAX_LENGTH = 200  # characters of a sentence that replaces a line
_HALF = 0.5
_MIN_STEMS = 2  # content words that another sentence adds to a line
_PAIR = 2
_SMALL_TALK = ("talk", "thanks", "greeting")
_UNTIMED = Meant()
_MIN_BEGINNING = 5  # letters that forms of a word have in common
_MAX_ENDING = 3  # letters by which they differ in length
_SELF = ""  # the speaker, by whatever name


@dataclass(frozen=True, eq=False)
class Sentence:
    """A sentence: its stems and, if it `denies` anything, the denied ones.

    Attributes:
        text: The sentence, verbatim.
        within: The message, or the line of a file, that contains it.
        denied: Each denied stem with its replacement: tabs, in *tabs, not spaces*.
        asks: Whether it is a question, or a request to the model, and states nothing.
        said: When it was said, in the user's time zone, if that is known.
        meant: The days that it may mean.
        is_borrowed: Whether it is somebody else's, such as a line of a letter.
    """

    text: str
    stems: frozenset[str]
    denied: frozenset[tuple[str, str]] = frozenset()
    denies: bool = False
    asks: bool = False
    within: str = field(default="", repr=False)
    said: datetime | date | None = None
    meant: Meant = _UNTIMED
    is_borrowed: bool = False

    @classmethod
    def of(
        cls,
        text: str,
        within: str = "",
        *,
        may_ask: bool = False,
        said: datetime | date | None = None,
        is_borrowed: bool = False,
    ) -> Sentence:
        """Parse a sentence; without `may_ask`, it always counts as a statement.

        The days that it means are known if it is known when it was `said`.
        """
        asks = (
            may_ask
            and (text.endswith("?") or begins(text, of_all("work")) is not None)
            and not holds(text, of_all("remember"))
        )
        read = _stems_and_denials if len(text) < CACHE_LIMIT else _stems_and_denials.__wrapped__
        meant = days_meant(text, said) if said is not None else _UNTIMED
        return cls(text, *read(text), asks, within or text, said, meant, is_borrowed)

    @cached_property
    def frames(self) -> frozenset[str]:
        """The kinds of its frames; see `kbtui.offline.frames`."""
        found = frames_of(self.text)
        return found | {QUOTED} if self.is_borrowed else found

    def contradictions(self, other: Sentence) -> frozenset[str]:
        """Return the shared stems that exactly one of both sentences denies."""
        if self.denies == other.denies:
            return frozenset()
        return self._denied_in(other) | other._denied_in(self)

    def _denied_in(self, other: Sentence) -> frozenset[str]:
        denied = (stem for stem, instead in self.denied if instead not in other.stems)
        return frozenset(denied) & other.stems

    def covers(self, other: Sentence, besides: frozenset[str] = frozenset()) -> bool:
        """Return whether it has at least half of another sentence's stems, apart from `besides`."""
        rest = other.stems - besides
        return bool(other.stems) and len(self.stems & rest) >= _HALF * len(rest)

    @cached_property
    def parts(self) -> list[Sentence]:
        """The sentence itself, and its clauses between commas that say something alone."""
        found = [
            Sentence.of(each, self.within, is_borrowed=self.is_borrowed)
            for each in _PART.split(self.text)
        ]
        return [self, *(each for each in found if found[1:] and len(each.stems) >= _MIN_STEMS)]

    def displaced_by(self, name: frozenset[str], other: Sentence) -> list[str]:
        """Return its words where an otherwise similar sentence has a name; ``""`` is the speaker.

        A passage longer than its replacement is something else, and not returned.
        """
        own, theirs = self._comparable_words, other._comparable_words
        if len(own) * len(theirs) > _MAX_LENGTH**2:
            return []
        codes = SequenceMatcher(None, own, theirs, autojunk=False).get_opcodes()
        return [
            word
            for kind, start, end, first, last in codes
            if kind == "replace" and end - start <= last - first + _MIN_STEMS
            if name & set(theirs[first:last])
            for word in own[start:end]
        ]

    @cached_property
    def _comparable_words(self) -> list[str]:
        speaker = stems_of("self")
        words = (self.text[each.start : each.end] for each in tokens(self.text))
        stems = [(analyser.terms_of(_APOSTROPHE.split(each)[0])[:1], each) for each in words]
        return [
            _SELF if speaker & {*head} else (*analyser.terms_of(word), word)[0]
            for head, word in stems
        ]


def beyond_small_talk(text: str) -> Iterator[Token]:
    """Yield the words of a text that aren't thanks, a greeting or the like."""
    return unmatched(text, map(of_all, _SMALL_TALK))


def shared_stems(stems: Iterable[str], others: Collection[str]) -> set[str]:
    """Return the stems that are among others, or a form of one: *schwimmt* of *schwimme*."""
    return {each for each in stems if form_among(each, others)}


def form_among(stem: str, others: Collection[str]) -> str:
    """Return the one of other stems that is the same, or a form of it; "" if none is."""
    if stem in others:
        return stem
    sizes = range(max(_MIN_BEGINNING, len(stem) - _MAX_ENDING), len(stem) + _MAX_ENDING + 1)
    if len(stem) < _MIN_BEGINNING:
        return ""
    near = sorted([each for each in others if len(each) in sizes])
    return next(filter(partial(_is_form, stem), near), "")


def _is_form(stem: str, other: str) -> bool:
    """Return whether two words share all but their last letters; only English is stemmed."""
    begin = max(_MIN_BEGINNING, min(len(stem), len(other)) - _PAIR)
    return stem[:begin] == other[:begin] or stem in other or other in stem


@lru_cache(maxsize=1_024)  # each turn asks for all sentences of its conversation
def _stems_and_denials(text: str) -> tuple[frozenset[str], frozenset[tuple[str, str]], bool]:
    """Return the stems of a sentence, the denied ones, and whether it denies anything."""
    found = tokens(text)
    counts = language_of(text).list("deny").places(text, found)
    places = [(found[at].start, found[at + count - 1].end) for at, count in counts]
    denied: set[tuple[str, str]] = set()
    for start, end in places:
        before = text[max(0, start - _MAX_LENGTH) : start].rstrip()
        behind = significant_terms(text[end : end + _MAX_LENGTH])[:1]
        instead = significant_terms(before)[-1:] if before.endswith(",") else []
        denied.update([(stem, "".join(instead)) for stem in behind])
    return frozenset(significant_terms(text)), frozenset(denied), bool(places)


def swapped_number(said: Sequence[Sentence], claim: Sentence) -> str:
    """Return a number in a line that was said of something else, swapped with that one's number."""
    numbers = figures_and_dates(claim.text)[0] if len(claim.text) <= _MAX_LENGTH else ()
    if len(numbers) < _PAIR:
        return ""
    short = [each for each in said if len(each.text) <= _MAX_LENGTH][:_PAIR]
    stems = claim.stems & frozenset().union(*(each.stems for each in short))
    own = _stems_by_number(claim.text, numbers, stems)
    theirs = _stems_by_number("\n".join(each.text for each in short), numbers, stems)

    def is_turned(first: int, second: int) -> bool:
        kept = own[first] & theirs[first] or own[second] & theirs[second]
        return bool(not kept and own[first] & theirs[second] and own[second] & theirs[first])

    pairs = combinations(sorted(own.keys() & theirs.keys()), _PAIR)
    return next((numbers[first].text for first, second in pairs if is_turned(first, second)), "")


def _stems_by_number(
    text: str, numbers: Sequence[Figure], stems: frozenset[str]
) -> dict[int, frozenset[str]]:
    """Return the stems next to each number, by its index among `numbers`.

    Empty if the text doesn't pair stems and numbers one to one.
    """
    marks = [each for each in _items(text, numbers) if isinstance(each, int) or each in stems]
    runs = [[*run] for _, run in groupby(marks, lambda each: isinstance(each, int))]
    counted = [run[0] for run in runs if len(run) == 1 and isinstance(run[0], int)]
    named = [frozenset(map(str, run)) for run in runs if not isinstance(run[0], int)]
    is_paired = len(counted) == len(named) == len(runs) / 2 == len({*counted})
    return dict(zip(counted, named, strict=True)) if is_paired else {}


def _items(text: str, numbers: Sequence[Figure]) -> Iterator[str | int]:
    """Yield the stems of a text in order, with the index of each number in its place."""
    places: dict[int, str | int] = {}
    for token in tokens(text):
        places[token.start] = "".join(significant_terms(text[token.start : token.end])[:1])
    for figure in figures_and_dates(text)[0]:
        meant = (at for at, each in enumerate(numbers) if each.readings & figure.readings)
        places[text.find(figure.text)] = next(meant, "")
    return (each for _, each in sorted(places.items()))
