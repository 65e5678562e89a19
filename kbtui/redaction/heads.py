"""Required literals of regular expressions, so that a pattern is tried only where one occurs.

`re` takes a hundred times as long to try a pattern at each character as to find a literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

# The parser that `re` itself uses; it has no public name.
_PARSER = import_module("re._parser")
_MAX_LENGTH = 5
_GOOD_LENGTH, _SHORT_LENGTH = 3, 2
_MAX_TEXTS = 500
_LONGEST_BEGINNING, _LONGEST_PHRASE = 4, 7
_MAX_KNOWN, _MAX_KNOWN_LENGTH = 100_000, 40
_MAX_CLASS = 6  # size of a character class that is expanded
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_NO_WIDTH = ("AT", "ASSERT", "ASSERT_NOT")
_EXCLUDED = re.compile(r"\[\^((?:\\.|[^\]\\])*)\]")
_LINE_END = re.compile(r"\\[nsW]")


_Prefixes = set[tuple[str, bool]]


class Heads(NamedTuple):
    """Lowercase literals, one of which is in each match of a pattern.

    Attributes:
        texts: The literals; useless if empty or if one has a single character.
        begin: Whether each match begins with one of them.
        crosses: Whether a match may contain a line break.
        also: Further literals, one of which is in each match, too; none if there are no such.
    """

    texts: list[str]
    begin: bool
    crosses: bool
    also: list[str]


def heads_of(pattern: str) -> Heads:
    """Analyse a pattern."""
    parsed = _PARSER.parse(pattern)
    first = _texts(parsed)
    texts = (
        first
        if _min_length(first) >= _GOOD_LENGTH
        else max((first, _required(parsed)), key=_min_length)
    )
    also = set[str]() if texts is first else _also(parsed, texts)
    return Heads(sorted(texts), texts is first, _crosses(pattern), sorted(also))


def _min_length(texts: set[str]) -> int:
    return min((len(text.strip()) for text in texts), default=0)


def _required(nodes: Sequence[Any]) -> set[str]:
    """Return the first good set of literals required anywhere in a match of these nodes."""
    best: set[str] = set()
    for at, (kind, value) in enumerate(nodes):
        name = str(kind)
        found = _texts(nodes[at:])
        if _min_length(found) < _GOOD_LENGTH:
            if name == "SUBPATTERN":
                found = _required(value[3])
            elif name in _REPEATS and value[0] > 0:
                found = _required(value[2])
            elif name == "BRANCH":
                parts = [_required(each) for each in value[1]]
                found = set().union(*parts) if all(map(_min_length, parts)) else set()
        best = max(best, found, key=_min_length)
        if _min_length(best) >= _GOOD_LENGTH:
            break
    return best


def _also(nodes: Sequence[Any], texts: set[str]) -> set[str]:
    """Return other literals, of which each match of these nodes contains one as well."""
    for at in reversed(range(len(nodes))):
        found = _texts(nodes[at:])
        is_other = not any(each in text for each in found for text in texts)
        if is_other and _min_length(found) >= _SHORT_LENGTH:
            return found
    return set()


def _texts(nodes: Iterable[Any]) -> set[str]:
    return {text for text, _ in _prefixes(nodes)}


def _prefixes(nodes: Iterable[Any]) -> _Prefixes:
    """Return the possible prefixes of a match, each with whether it can still be extended."""
    begun: _Prefixes = {("", True)}
    for kind, value in nodes:
        growing = {text for text, is_open in begun if is_open and len(text) < _MAX_LENGTH}
        more = _prefixes_of_node(str(kind), value) if growing else set()
        if not growing or len(growing) * len(more) > _MAX_TEXTS:
            break
        closed = {(text, False) for text, is_open in begun if not is_open or text not in growing}
        begun = closed | {
            (text + other, is_open) for text, (other, is_open) in product(growing, more)
        }
    return begun


def _prefixes_of_node(name: str, value: Any) -> _Prefixes:
    found: _Prefixes = {("", name in _NO_WIDTH)}
    if name == "LITERAL":
        found = {(chr(value).lower(), True)}
    elif (
        name == "IN"
        and len(value) <= _MAX_CLASS
        and all(str(kind) == "LITERAL" for kind, _ in value)
    ):
        found = {(chr(code).lower(), True) for _, code in value}
    elif name == "SUBPATTERN":
        found = _prefixes(value[3])
    elif name == "BRANCH":
        found = set().union(*map(_prefixes, value[1]))
    elif name in _REPEATS:
        least, most, part = value
        found = {(text, is_open and most == 1) for text, is_open in _prefixes(part)}
        found |= {("", most == 1)} if least == 0 else set()
    return found


def _crosses(pattern: str) -> bool:
    """Return whether a match may contain a line break."""
    rest = _EXCLUDED.sub(lambda match: "" if _LINE_END.search(match[1]) else r"\n", pattern)
    return _LINE_END.search(rest) is not None


class TextMatcher:
    """Finds many literals in texts; its arguments are what `matcher_of` returns for them.

    Which literals a word may be a part of is remembered: most words of a text are in others, too,
    and to look a word up takes a tenth of searching it.
    """

    def __init__(self, *tries: tuple[dict[str, list[str]], str]) -> None:
        self._words, self._phrases = (_Trie(*each) for each in tries)
        self._known: dict[str, list[str] | None] = {}

    def places(self, text: str) -> dict[str, list[int]]:
        """Return the offsets of each literal that occurs, in order; a tab counts as a space."""
        text = text.replace("\t", " ")
        found = self._phrases.places(text)
        for literal in self._likely(set(text.split())):
            if places := _offsets(literal, text):
                found[literal] = places
        return found

    def _likely(self, words: set[str]) -> set[str]:
        """Return the literals of one word that may be in a text of these words."""
        known = self._known
        fresh = words.difference(known)
        found = set[str]()
        for word in words:
            if literals := known.get(word):
                found.update(literals)
        if len(known) > _MAX_KNOWN:
            known = self._known = {}
        short = {each for each in fresh if len(each) <= _MAX_KNOWN_LENGTH}
        telling = self._telling(short) if short else {}
        known.update({each: telling.get(each) for each in short})
        found.update(*telling.values())
        if long := fresh - short:
            found.update(self._words.places(_joined(long)))
        return found

    def _telling(self, words: set[str]) -> dict[str, list[str]]:
        """Return the words that hold literals, with these."""
        text = _joined(words)
        found: dict[str, list[str]] = {}
        for literal, places in self._words.places(text).items():
            for at in places:
                word = text[text.rindex(" ", 0, at + 1) + 1 : text.index(" ", at + 1)]
                found.setdefault(word, []).append(literal)
        return found


def _joined(words: Iterable[str]) -> str:
    return f" {' '.join(words)} "


class _Trie:
    """Finds literals in one pass: `begun_by` has them by a beginning, `pattern` has those."""

    def __init__(self, begun_by: dict[str, list[str]], pattern: str) -> None:
        self._begun_by = begun_by
        self._pattern = re.compile(pattern)

    def places(self, text: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        search, match = self._pattern.search, self._pattern.search(text)
        while match:
            at = match.start()
            for literal in self._begun_by[match[0]]:
                if text.startswith(literal, at):
                    found.setdefault(literal, []).append(at)
            match = search(text, at + 1)
        return found


def _offsets(literal: str, text: str) -> list[int]:
    places: list[int] = []
    at = text.find(literal)
    while at >= 0:
        places.append(at)
        at = text.find(literal, at + 1)
    return places


def matcher_of(texts: Iterable[str]) -> list[tuple[dict[str, list[str]], str]]:
    """Return two tries of literals, of those of one word and of those that have spaces inside."""
    every = sorted({canonical(text) for text in texts})
    phrases = [text for text in every if " " in text.strip()]
    words = [text for text in every if text not in phrases]
    return [_trie_of(words, _LONGEST_BEGINNING), _trie_of(phrases, _LONGEST_PHRASE)]


def _trie_of(texts: Iterable[str], longest: int) -> tuple[dict[str, list[str]], str]:
    """Return sorted literals by a beginning, none of which begins with another, and a pattern.

    A pattern of whole literals finds fewer places to look at, and takes longer to compile than a
    short text to search.
    """
    begun_by: dict[str, list[str]] = {}
    for text in texts:
        head = text[:longest]
        least = next((head[:n] for n in range(1, len(head)) if head[:n] in begun_by), head)
        begun_by.setdefault(least, []).append(text)
    return begun_by, _trie_pattern(list(begun_by))


def canonical(literal: str) -> str:
    """Return a literal as `TextMatcher` names it."""
    return literal.replace("\t", " ")


def _trie_pattern(texts: list[str]) -> str:
    """Return a trie-shaped pattern of texts, none of which is a prefix of another."""
    parts = []
    for first in dict.fromkeys(text[:1] for text in texts):
        rest = [text[1:] for text in texts if text[:1] == first]
        parts.append(re.escape(first) + (_trie_pattern(rest) if any(rest) else ""))
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
