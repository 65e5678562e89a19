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
_GOOD_LENGTH = 3
_MAX_TEXTS = 500
_LONGEST_BEGINNING = 4
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
    """

    texts: list[str]
    begin: bool
    crosses: bool


def heads_of(pattern: str) -> Heads:
    """Analyse a pattern."""
    parsed = _PARSER.parse(pattern)
    first = _texts(parsed)
    texts = (
        first
        if _min_length(first) >= _GOOD_LENGTH
        else max((first, _required(parsed)), key=_min_length)
    )
    return Heads(sorted(texts), texts is first, _crosses(pattern))


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
        begun = {(text, False) for text, _ in begun if text not in growing} | {
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
    """Finds many literals in one pass; its arguments are what `trie_of` returns for them."""

    def __init__(self, by_least: dict[str, list[str]], pattern: str) -> None:
        self._by_least = by_least
        self._pattern = re.compile(pattern)

    def places(self, text: str) -> dict[str, list[int]]:
        """Return the offsets of each literal that occurs, in order."""
        found: dict[str, list[int]] = {}
        search, match = self._pattern.search, self._pattern.search(text)
        while match:
            at = match.start()
            for head in self._by_least[match[0]]:
                if text.startswith(head, at):
                    found.setdefault(head, []).append(at)
            match = search(text, at + 1)
        return found


def trie_of(texts: Iterable[str]) -> tuple[dict[str, list[str]], str]:
    """Return literals by a beginning, none of which begins with another, and a pattern of those.

    A pattern of whole literals finds fewer places to look at, and takes longer to compile than a
    short text to search.
    """
    by_least: dict[str, list[str]] = {}
    for text in sorted(set(texts)):
        head = text[:_LONGEST_BEGINNING]
        least = next((head[:n] for n in range(1, len(head)) if head[:n] in by_least), head)
        by_least.setdefault(least, []).append(text)
    return by_least, _trie_pattern(list(by_least))


def _trie_pattern(texts: list[str]) -> str:
    """Return a trie-shaped pattern of texts, none of which is a prefix of another."""
    parts = []
    for first in dict.fromkeys(text[:1] for text in texts):
        rest = [text[1:] for text in texts if text[:1] == first]
        parts.append(re.escape(first) + (_trie_pattern(rest) if any(rest) else ""))
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
