"""Recognition of names in text by capitalization alone.

A word capitalized inside a clause is a name, and then at the start of one as well; so is a word
that starts two lines and never occurs in lowercase. In languages that capitalize all nouns it must
also never follow an article.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from kbtui.offline.language import (
    CACHE_LIMIT,
    Language,
    folded,
    known_stems,
    language_of,
    languages,
)
from kbtui.search.index import analyser

_MAX_WORDS = 4  # words
_MIN_LETTERS = 3
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
# A clause continues after ``Dr.`` and ``St.``.
_CLAUSE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b[A-Z][a-z])(?<!\b[A-Z][a-z]{2})\.|\d\.|^\W+"
    r"|[!?:;\u2026\n\"\u201c\u201e\u00ab(\[>*/+&\u2013\u2014]|\s-"
)
_CODE_OR_ADDRESS = re.compile(
    r"`[^`\n]*`|https?://\S+|\[\[[^\[\]\n]*\]\]|(?<!\S)(?:[^\s@/\\_]+@|[^\s/\\_]*[/\\_])\S*"
)
_POSSESSIVE = re.compile(r"['\u2019]s?$")


@dataclass(frozen=True, slots=True)
class _Run:
    """Adjacent capitalized words, as typed and folded, and the word before them."""

    shown: tuple[str, ...]
    words: tuple[str, ...]
    before: str
    language: Language


@dataclass(slots=True)
class NameReader:
    """A collector of names, of at least `least` letters; read all lines before asking."""

    least: int = _MIN_LETTERS
    _within_clause: set[str] = field(default_factory=set)
    _at_start: Counter[str] = field(default_factory=Counter)
    _lowercase: set[str] = field(default_factory=set)
    _nouns: set[str] = field(default_factory=set)
    _lines: list[Sequence[_Run]] = field(default_factory=list)

    def read(self, text: str) -> None:
        """Add a line."""
        runs = _runs(text)
        self._lowercase.update(map(folded, filter(str.islower, _WORD.findall(text))))
        for run in runs:
            self._within_clause.update(run.words if run.before else run.words[1:])
            self._at_start.update(() if run.before or run.words[1:] else run.words)
            if run.language.has("articles", run.before):
                self._nouns.add(run.words[0])
        self._lines.append(runs)

    def __or__(self, other: NameReader) -> NameReader:
        """Combine the evidence of two readers, without their lines."""
        return NameReader(
            self.least,
            self._within_clause | other._within_clause,
            self._at_start + other._at_start,
            self._lowercase | other._lowercase,
            self._nouns | other._nouns,
        )

    def names(self) -> list[tuple[str, ...]]:
        """Return the names in each line, in the order the lines were read."""
        return [self._names_of(runs, self._is_name_at_start) for runs in self._lines]

    def names_in(self, text: str) -> tuple[str, ...]:
        """Return the possible names in a line that isn't added, by what was read so far.

        Words at the start of a clause count too, unless listed or seen in lowercase.
        """
        return self._names_of(_runs(text), self._may_be_name_at_start)

    def _names_of(self, runs: Iterable[_Run], at_start: Callable[[_Run], bool]) -> tuple[str, ...]:
        """Return the names in runs, without words that start the clause or aren't names."""
        found: dict[str, None] = {}
        for run in runs:
            named = [self._is_name(word, run.language) for word in run.words]
            named[0] &= bool(run.before) or at_start(run)
            first = named.index(True) if True in named else len(named)
            last = len(named) - named[::-1].index(True) if True in named else 0
            if 0 < last - first <= _MAX_WORDS:
                found[" ".join(run.shown[first:last])] = None
        return tuple(found)

    def _is_name(self, word: str, language: Language) -> bool:
        is_short = len(word) < self.least
        is_day = word in _calendar() or word.removesuffix("s") in _calendar()
        return not (is_short or is_day or language.has("small", word) or word in self._nouns)

    def _is_name_at_start(self, run: _Run) -> bool:
        """Return whether the capitalized word at the start of a clause is a name."""
        is_repeated = self._at_start[run.words[0]] > 1 and self._may_be_name_at_start(run)
        return run.words[0] in self._within_clause or (is_repeated and not run.words[1:])

    def _may_be_name_at_start(self, run: _Run) -> bool:
        """Return whether nothing indicates that the word at a clause start is no name."""
        word = run.words[0]
        return word not in self._lowercase and analyser.terms_of(word)[0] not in known_stems()


@cache
def _calendar() -> frozenset[str]:
    return frozenset().union(*(each.words["calendar"] for each in languages()))


def _runs(text: str) -> tuple[_Run, ...]:
    return _cached_runs(text) if len(text) < CACHE_LIMIT else _cached_runs.__wrapped__(text)


@lru_cache(maxsize=1_024)  # each turn reads its whole conversation
def _cached_runs(text: str) -> tuple[_Run, ...]:
    return tuple(_read_runs(text))


def _read_runs(text: str) -> Iterator[_Run]:
    """Yield the runs of a line, without code and addresses; `before` is empty at clause starts."""
    language = language_of(text)
    bare = _CODE_OR_ADDRESS.sub(lambda match: " " * len(match[0]), text)
    for clause in _CLAUSE_END.split(bare):
        shown: list[str] = []
        before, end = "", 0
        for match in [*_WORD.finditer(clause), None]:
            word = match[0] if match else ""
            joined = match is not None and clause[end : match.start()].strip(" \u00a0") == ""
            if shown and not (joined and _has_capital(word)):
                yield _Run(tuple(shown), tuple(map(folded, shown)), before, language)
                before, shown = folded(shown[-1]), []
            if match and _has_capital(word):
                shown.append(_POSSESSIVE.sub("", word))
                end = match.end() if shown[-1] == word else -1
            elif match:
                before = folded(word)


def _has_capital(word: str) -> bool:
    return word[:1].isupper() and any(map(str.islower, word))


def lines_by_name(lines: Iterable[str]) -> Mapping[str, tuple[int, ...]]:
    """Return the numbers of the lines with each name; a part of one longer name stands for it."""
    reader = NameReader()
    for line in lines:
        reader.read(line)
    found: dict[str, list[int]] = {}
    for number, names in enumerate(reader.names()):
        for name in names:
            found.setdefault(name, []).append(number)
    longer: dict[str, set[str]] = {}
    for name in found:
        for part in name.split():
            if part != name:
                longer.setdefault(part, set()).add(name)
    for part, wholes in longer.items():
        if len(wholes) == 1 and part in found:
            (whole,) = wholes
            found[whole] = sorted({*found[whole], *found.pop(part)})
    return {name: tuple(dict.fromkeys(numbers)) for name, numbers in found.items()}
