"""Which texts a pattern can't do without, so that it is tried only where one of them stands.

`re` takes a hundred times as long to try a pattern at each character as to find a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

# What `re` itself reads patterns with; it has no other name.
_PARSER = import_module("re._parser")
_LONGEST = 5
_ENOUGH = 3
_MOST = 500
_FEW = 6  # characters of a class that are taken one by one
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_NO_WIDTH = ("AT", "ASSERT", "ASSERT_NOT")
_EXCLUDED = re.compile(r"\[\^((?:\\.|[^\]\\])*)\]")
_LINE_END = re.compile(r"\\[nsW]")


_Begun = set[tuple[str, bool]]


class Heads(NamedTuple):
    """The texts of which each match holds one, in small letters.

    Attributes:
        texts: Empty, or one of a single character among them: nothing is worth looking for.
        begin: Each match begins with one of them.
        crosses: A match may go over the end of a line.
    """

    texts: frozenset[str]
    begin: bool
    crosses: bool


def heads_of(pattern: str) -> Heads:
    """Find out what a pattern can't do without."""
    parsed = _PARSER.parse(pattern)
    first = _texts(parsed)
    texts = first if _least(first) >= _ENOUGH else max((first, _needed(parsed)), key=_least)
    return Heads(frozenset(texts), texts is first, _crosses(pattern))


def _least(texts: set[str]) -> int:
    return min((len(text.strip()) for text in texts), default=0)


def _needed(nodes: Sequence[Any]) -> set[str]:
    """The first good ones of the texts that stand anywhere in what these nodes match."""
    best: set[str] = set()
    for at, (kind, value) in enumerate(nodes):
        name = str(kind)
        found = _texts(nodes[at:])
        if _least(found) < _ENOUGH:
            if name == "SUBPATTERN":
                found = _needed(value[3])
            elif name in _REPEATS and value[0] > 0:
                found = _needed(value[2])
            elif name == "BRANCH":
                parts = [_needed(each) for each in value[1]]
                found = set().union(*parts) if all(map(_least, parts)) else set()
        best = max(best, found, key=_least)
        if _least(best) >= _ENOUGH:
            break
    return best


def _texts(nodes: Iterable[Any]) -> set[str]:
    return {text for text, _ in _begun(nodes)}


def _begun(nodes: Iterable[Any]) -> _Begun:
    """What these nodes begin with, each with whether nothing unknown may follow yet."""
    begun: _Begun = {("", True)}
    for kind, value in nodes:
        growing = {text for text, is_open in begun if is_open and len(text) < _LONGEST}
        more = _one(str(kind), value) if growing else set()
        if not growing or len(growing) * len(more) > _MOST:
            break
        begun = {(text, False) for text, _ in begun if text not in growing} | {
            (text + other, is_open) for text, (other, is_open) in product(growing, more)
        }
    return begun


def _one(name: str, value: Any) -> _Begun:
    found: _Begun = {("", name in _NO_WIDTH)}
    if name == "LITERAL":
        found = {(chr(value).lower(), True)}
    elif name == "IN" and len(value) <= _FEW and all(str(kind) == "LITERAL" for kind, _ in value):
        found = {(chr(code).lower(), True) for _, code in value}
    elif name == "SUBPATTERN":
        found = _begun(value[3])
    elif name == "BRANCH":
        found = set().union(*map(_begun, value[1]))
    elif name in _REPEATS:
        least, most, part = value
        found = {(text, is_open and most == 1) for text, is_open in _begun(part)}
        found |= {("", most == 1)} if least == 0 else set()
    return found


def _crosses(pattern: str) -> bool:
    """True if something in it, other than what is excluded, may be the end of a line."""
    rest = _EXCLUDED.sub(lambda match: "" if _LINE_END.search(match[1]) else r"\n", pattern)
    return _LINE_END.search(rest) is not None


class TextMatcher:
    """Finds many texts in one pass."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_least: dict[str, list[str]] = {}
        for text in sorted(set(texts)):
            least = next(
                (text[:n] for n in range(1, len(text)) if text[:n] in self._by_least), text
            )
            self._by_least.setdefault(least, []).append(text)
        self._pattern = re.compile(_tree(list(self._by_least)))

    def places(self, text: str) -> dict[str, list[int]]:
        """Where each of the texts stands that does, in order."""
        found: dict[str, list[int]] = {}
        search, match = self._pattern.search, self._pattern.search(text)
        while match:
            at = match.start()
            for head in self._by_least[match[0]]:
                if text.startswith(head, at):
                    found.setdefault(head, []).append(at)
            match = search(text, at + 1)
        return found


def _tree(texts: list[str]) -> str:
    """A pattern of texts, of which none begins with another, that looks at each character once."""
    parts = []
    for first in dict.fromkeys(text[:1] for text in texts):
        rest = [text[1:] for text in texts if text[:1] == first]
        parts.append(re.escape(first) + (_tree(rest) if any(rest) else ""))
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
