"""Names in what somebody wrote, told by their capitals alone: no name is made up.

A word is a name where it has a capital in the middle of a clause, or at the beginning of one where
it never stands in small letters anywhere, nor among the words that begin clauses. In a language in
which all nouns have capitals it must never stand behind an article either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from kbtui.offline.language import Language, Token, language_of, languages, tokens

_LONGEST = 4  # words
_LEAST_LETTERS = 3
_NEAR = 40  # characters in which the end of the clause before a word is looked for
_JOINS = re.compile(r"[ \u00a0]|'s? |-")
_BEGINS_CLAUSE = re.compile(
    r"(?:^|[.!?:;\u2026\n\"\u201c\u201e\u00ab(\[>*/+&\u2013\u2014-]\s*|^\W+)$"
)
_IN_CODE = re.compile(
    r"`[^`\n]*`|https?://\S+|\[\[[^\]\n]*\]\]|(?<!\S)(?:[^\s@/\\_]+@|[^\s/\\_]*[/\\_])\S*"
)
_POSSESSIVE = re.compile(r"['\u2019]s?$")


@dataclass(slots=True)
class NameReader:
    """Reads line after line, and knows the names of `least` letters once all are read."""

    least: int = _LEAST_LETTERS
    _small: set[str] = field(default_factory=set)
    _behind_articles: set[str] = field(default_factory=set)
    _lines: list[tuple[list[_Run], Language]] = field(default_factory=list)

    def read(self, text: str) -> None:
        """Take in one more line."""
        language, bare, found = _reading(text)
        self._small |= {each.word for each in found if bare[each.start].islower()}
        if language.nouns_have_capitals:
            self._behind_articles |= {
                each.word
                for before, each in pairwise(found)
                if language.has("articles", before.word)
            }
        self._lines.append((list(_runs(bare, found)), language))

    def __or__(self, other: NameReader) -> NameReader:
        """Both together, without the lines that they read."""
        small, behind = self._small | other._small, self._behind_articles | other._behind_articles
        return NameReader(self.least, small, behind)

    def names(self) -> list[tuple[str, ...]]:
        """The names in each line, in the order in which the lines were read."""
        return [
            tuple(dict.fromkeys(name for run in runs for name in self._names(run, language)))
            for runs, language in self._lines
        ]

    def names_in(self, text: str) -> tuple[str, ...]:
        """The names in a line that isn't taken in, by what was read so far."""
        language, bare, found = _reading(text)
        names = (self._names(run, language) for run in _runs(bare, found))
        return tuple(dict.fromkeys(name for each in names for name in each))

    def _names(self, run: _Run, language: Language) -> Iterator[str]:
        """The name that a run of words with capitals is, without what begins the clause."""
        shown, words = list(run.shown), list(run.words)
        while words and not self._is_name(words[0], language, begins=run.begins_clause):
            del shown[0], words[0]
            run = _Run((), (), begins_clause=False)
        while words and not self._is_name(words[-1], language, begins=False):
            del shown[-1], words[-1]
        if 0 < len(words) <= _LONGEST:
            yield " ".join(shown)

    def _is_name(self, word: str, language: Language, *, begins: bool) -> bool:
        if len(word) < self.least or any(
            each.has("calendar", word) or each.has("calendar", word.removesuffix("s"))
            for each in languages()
        ):
            return False
        if language.has("beginners", word) or language.has("small", word):
            return False
        if word in self._behind_articles:
            return False
        return not begins or word not in self._small


def _reading(text: str) -> tuple[Language, str, list[Token]]:
    """The language of a line, the line without code and addresses, and its words."""
    bare = _IN_CODE.sub(lambda match: " " * len(match[0]), text)
    return language_of(text), bare, tokens(bare)


@dataclass(frozen=True, slots=True)
class _Run:
    """Words with capitals, side by side."""

    shown: tuple[str, ...]
    words: tuple[str, ...]
    begins_clause: bool


def _runs(text: str, found: list[Token]) -> Iterator[_Run]:
    run: list[Token] = []
    for each in found:
        joined = bool(run) and _JOINS.fullmatch(text[run[-1].end : each.start])
        ends = bool(run) and _POSSESSIVE.search(text[run[-1].start : run[-1].end]) is not None
        if run and (not joined or ends or not _has_capital(text, each)):
            yield _run(text, run)
            run = []
        if _has_capital(text, each):
            run.append(each)
    if run:
        yield _run(text, run)


def _run(text: str, run: list[Token]) -> _Run:
    shown = tuple(_POSSESSIVE.sub("", text[each.start : each.end]) for each in run)
    words = tuple(
        each.word if name == text[each.start : each.end] else tokens(name)[0].word
        for each, name in zip(run, shown, strict=True)
    )
    start = run[0].start
    begins = _BEGINS_CLAUSE.search(text, max(0, start - _NEAR), start) is not None
    return _Run(shown, words, begins)


def _has_capital(text: str, token: Token) -> bool:
    word = text[token.start : token.end]
    return word[0].isupper() and any(char.islower() for char in word)


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
