"""Names in what somebody wrote, told by their capitals alone: no name is made up.

A word is a name where it has a capital inside a clause, and then at the beginning of one as well;
so is what begins two lines and never stands in small letters. In a language in which all nouns have
capitals it must never stand behind an article either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from kbtui.offline.language import LONG, Language, folded, language_of, languages
from kbtui.search.index import analyser

_LONGEST = 4  # words
_LEAST_LETTERS = 3
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
# After ``Dr.`` and ``St.`` a clause goes on.
_CLAUSE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b[A-Z][a-z])(?<!\b[A-Z][a-z]{2})\.|\d\.|^\W+"
    r"|[!?:;\u2026\n\"\u201c\u201e\u00ab(\[>*/+&\u2013\u2014]|\s-"
)
_IN_CODE = re.compile(
    r"`[^`\n]*`|https?://\S+|\[\[[^\[\]\n]*\]\]|(?<!\S)(?:[^\s@/\\_]+@|[^\s/\\_]*[/\\_])\S*"
)
_POSSESSIVE = re.compile(r"['\u2019]s?$")


@dataclass(frozen=True, slots=True)
class _Run:
    """Words with capitals side by side, as they stand and folded, and the word before them."""

    shown: tuple[str, ...]
    words: tuple[str, ...]
    before: str
    language: Language


@dataclass(slots=True)
class NameReader:
    """Reads line after line, and knows the names of `least` letters once all are read."""

    least: int = _LEAST_LETTERS
    _inside: set[str] = field(default_factory=set)
    _begun: Counter[str] = field(default_factory=Counter)
    _small: set[str] = field(default_factory=set)
    _nouns: set[str] = field(default_factory=set)
    _lines: list[Sequence[_Run]] = field(default_factory=list)

    def read(self, text: str) -> None:
        """Take in one more line."""
        runs = _runs(text)
        self._small.update(map(folded, filter(str.islower, _WORD.findall(text))))
        for run in runs:
            self._inside.update(run.words if run.before else run.words[1:])
            self._begun.update(() if run.before or run.words[1:] else run.words)
            if run.language.has("articles", run.before):
                self._nouns.add(run.words[0])
        self._lines.append(runs)

    def __or__(self, other: NameReader) -> NameReader:
        """Both together, without the lines that they read."""
        return NameReader(
            self.least,
            self._inside | other._inside,
            self._begun + other._begun,
            self._small | other._small,
            self._nouns | other._nouns,
        )

    def names(self) -> list[tuple[str, ...]]:
        """The names in each line, in the order in which the lines were read."""
        return [self._names(runs, self._is_subject) for runs in self._lines]

    def names_in(self, text: str) -> tuple[str, ...]:
        """What may be names in a line that isn't taken in, by what was read so far.

        What begins a clause counts as well, unless it is listed or stands in small letters.
        """
        return self._names(_runs(text), self._may_begin)

    def _names(self, runs: Iterable[_Run], may_begin: Callable[[_Run], bool]) -> tuple[str, ...]:
        """The names that runs are, without what begins the clause or is none."""
        found: dict[str, None] = {}
        for run in runs:
            named = [self._is_name(word, run.language) for word in run.words]
            named[0] &= bool(run.before) or may_begin(run)
            first = named.index(True) if True in named else len(named)
            last = len(named) - named[::-1].index(True) if True in named else 0
            if 0 < last - first <= _LONGEST:
                found[" ".join(run.shown[first:last])] = None
        return tuple(found)

    def _is_name(self, word: str, language: Language) -> bool:
        is_short = len(word) < self.least
        is_day = word in _calendar() or word.removesuffix("s") in _calendar()
        return not (is_short or is_day or language.has("small", word) or word in self._nouns)

    def _is_subject(self, run: _Run) -> bool:
        """True if the word that begins a clause with a capital does so as a name."""
        twice = self._begun[run.words[0]] > 1 and self._may_begin(run)
        return run.words[0] in self._inside or (twice and not run.words[1:])

    def _may_begin(self, run: _Run) -> bool:
        """True if nothing says that the word that begins a clause is none."""
        word = run.words[0]
        return word not in self._small and analyser.terms_of(word)[0] not in _listed()


@cache
def _calendar() -> frozenset[str]:
    return frozenset().union(*(each.words["calendar"] for each in languages()))


@cache
def _listed() -> frozenset[str]:
    """The stems of all listed words."""
    return frozenset(analyser.terms_of(word)[0] for each in languages() for word in each.known)


def _runs(text: str) -> tuple[_Run, ...]:
    return _known_runs(text) if len(text) < LONG else _known_runs.__wrapped__(text)


@lru_cache(maxsize=1_024)  # each turn asks for those of its whole conversation
def _known_runs(text: str) -> tuple[_Run, ...]:
    return tuple(_read_runs(text))


def _read_runs(text: str) -> Iterator[_Run]:
    """The runs of a line, without code and addresses; of what begins a clause nothing is before."""
    language = language_of(text)
    bare = _IN_CODE.sub(lambda match: " " * len(match[0]), text)
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
    """The numbers of the lines that have each name; a part of one longer name means that name."""
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
