"""Required literals of regular expressions, so that a pattern is tried only where one occurs.

`re` takes a hundred times as long to try a pattern at each character as to find a literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

# The parser that `re` itself uses; it has no public name.
_PARSER = import_module("re._parser")
_MAX_LENGTH = 5
_GOOD_LENGTH, _SHORT_LENGTH = 3, 2
_MAX_TEXTS = 500
_LONGEST_BEGINNING = 4
_MAX_KNOWN, _MAX_KNOWN_LENGTH = 30_000, 40
_MAX_CLASS = 6  # size of a character class that is expanded
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_NO_WIDTH = ("AT", "ASSERT", "ASSERT_NOT")
_EXCLUDED = re.compile(r"\[\^((?:\\.|[^\]\\])*)\]")
_LINE_END = re.compile(r"\\[nsW]")
DIGIT = "\0"
"""Stands for any digit in a literal."""
_IS_DIGIT = re.compile(r"\d")
_DIGITS = str.maketrans(dict.fromkeys("0123456789", DIGIT))
_NO_BLANKS = ("CATEGORY_DIGIT", "CATEGORY_WORD")
_BLANKS = [chr(code) for code in range(0x3001) if chr(code).isspace()]


_Prefixes = set[tuple[str, bool]]


class Heads(NamedTuple):
    """Lowercase literals, one of which is in each match of a pattern.

    Attributes:
        texts: The literals; useless if empty or if one has a single character.
        begin: Whether each match begins with one of them.
        crosses: Whether a match may contain a line break.
        also: Further literals, one of which is in each match, too; none if there are no such.
        word: How long the one word is at least that holds a match; 0 if one may hold a blank.
    """

    texts: list[str]
    begin: bool
    crosses: bool
    also: list[str]
    word: int


def heads_of(pattern: str) -> Heads:
    """Analyse a pattern."""
    parsed = _PARSER.parse(pattern)
    nodes: Sequence[Any] = parsed
    texts, begin = _best(nodes)
    if _min_length(texts) < _SHORT_LENGTH:  # digits are seldom that many together
        nodes = _with_digits(nodes)
        texts, begin = _best(nodes)
    also = set[str]() if begin else _also(nodes, texts)
    word = 0 if _may_hold_blank(parsed) else parsed.getwidth()[0]
    return Heads(sorted(texts), begin, _crosses(pattern), sorted(also), word)


def _best(nodes: Sequence[Any]) -> tuple[set[str], bool]:
    """Return literals of which each match of these nodes contains one, and if it begins with it."""
    first = _texts(nodes)
    if _min_length(first) >= _GOOD_LENGTH:
        return first, True
    other = _required(nodes)
    return (other, False) if _min_length(other) > _min_length(first) else (first, True)


def _with_digits(nodes: Iterable[Any]) -> list[tuple[str, Any]]:
    """Return nodes in which any digit is a literal, as often as a match must have it."""
    found: list[tuple[str, Any]] = []
    digit = ("LITERAL", ord(DIGIT))
    for kind, value in nodes:
        name = str(kind)
        if name == "IN" and [str(each) for _, each in value] == ["CATEGORY_DIGIT"]:
            found.append(digit)
        elif name == "SUBPATTERN":
            found.append((name, (*value[:3], _with_digits(value[3]))))
        elif name == "BRANCH":
            found.append((name, (value[0], [_with_digits(each) for each in value[1]])))
        elif name in _REPEATS:
            least, most, part = value[0], value[1], _with_digits(value[2])
            if part == [digit]:
                found += [digit] * min(least, _MAX_LENGTH)
                least, most = 0, most - least
            found += [(name, (least, most, part))] if most else []
        else:
            found.append((name, value))
    return found


def _may_hold_blank(nodes: Iterable[Any]) -> bool:
    """Return whether a match of these nodes may contain white space."""
    return any(_may_be_blank(str(kind), value) for kind, value in nodes)


def _may_be_blank(name: str, value: Any) -> bool:
    if name in ("LITERAL", "RANGE"):
        low, high = (value, value) if name == "LITERAL" else value
        return any(low <= ord(blank) <= high for blank in _BLANKS)
    if name == "CATEGORY":
        return str(value) not in _NO_BLANKS
    if name == "IN":
        return _may_hold_blank(value)
    if name == "SUBPATTERN" or name in _REPEATS:
        return _may_hold_blank(value[-1])
    if name == "BRANCH":
        return any(map(_may_hold_blank, value[1]))
    return name not in (*_NO_WIDTH, "GROUPREF")


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

    def __init__(
        self,
        texts: Iterable[str],
        phrases: Iterable[tuple[str, str, str]],
        *tries: tuple[dict[str, list[str]], str],
    ) -> None:
        self._texts = frozenset(texts)
        self._phrases: dict[str, list[tuple[str, str]]] = {}
        for begin, end, phrase in phrases:
            self._phrases.setdefault(begin, []).append((end, phrase))
        self._words, self._numbers = (_Trie(*each) for each in tries)
        self._known: dict[str, list[str] | None] = {}

    def places(self, text: str, words: set[str]) -> dict[str, list[int]]:
        """Return the offsets of each literal that occurs in a text of these words, in order.

        A tab counts as a space.
        """
        text, numbers = text.replace("\t", " "), ""
        found: dict[str, list[int]] = {}
        for literal in self._likely(words):
            if DIGIT in literal:
                numbers = numbers or _without_digits(text)
            if places := _offsets(literal, numbers if DIGIT in literal else text):
                found[literal] = places
        return found

    def _likely(self, words: set[str]) -> Iterator[str]:
        """Yield the literals that may be in a text of these words."""
        found = self._parts_in(words)
        yield from found & self._texts
        for begin in found & self._phrases.keys():
            yield from (phrase for end, phrase in self._phrases[begin] if end in found)

    def _parts_in(self, words: set[str]) -> set[str]:
        """Return the literals of one word, and the ends of phrases, that are in these words."""
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
            found.update(self._places_in(_joined(long)))
        return found

    def _telling(self, words: set[str]) -> dict[str, list[str]]:
        """Return the words that hold literals, with these."""
        text = _joined(words)
        found: dict[str, list[str]] = {}
        for literal, places in self._places_in(text).items():
            for at in places:
                word = text[text.rindex(" ", 0, at + 1) + 1 : text.index(" ", at + 1)]
                found.setdefault(word, []).append(literal)
        return found

    def _places_in(self, words: str) -> dict[str, list[int]]:
        found = self._words.places(words)
        if _IS_DIGIT.search(words):
            found |= self._numbers.places(_without_digits(words))
        return found


def _without_digits(text: str) -> str:
    """Return a text with `DIGIT` in place of each digit."""
    return text.translate(_DIGITS) if text.isascii() else _IS_DIGIT.sub(DIGIT, text)


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


def matcher_of(texts: Iterable[str]) -> tuple[Any, ...]:
    """Return the arguments of a `TextMatcher`: literals, phrases, and the tries of what words hold.

    A phrase is a literal with a space inside. Words hold what it begins and ends with: the end of
    one and the beginning of another, or a whole one.
    """
    every = {canonical(text) for text in texts}
    phrases = sorted((*_ends(text), text) for text in every if " " in text.strip())
    words = {text for text in every if " " not in text.strip()}
    parts = sorted(words.union(*(each[:2] for each in phrases)))
    numbers = [text for text in parts if DIGIT in text]
    tries = [_trie_of(each) for each in ([p for p in parts if DIGIT not in p], numbers)]
    return (sorted(words), phrases, *tries)


def _ends(phrase: str) -> tuple[str, str]:
    """Return the first and the last part of a phrase, as words with spaces around hold them."""
    text = phrase.strip()
    begin, end = phrase.index(text), len(phrase.rstrip())
    return phrase[: phrase.index(" ", begin) + 1], phrase[phrase.rindex(" ", 0, end) :]


def _trie_of(texts: Iterable[str]) -> tuple[dict[str, list[str]], str]:
    """Return sorted literals by a beginning, none of which begins with another, and a pattern.

    A pattern of whole literals finds fewer places to look at, and takes longer to compile than a
    short text to search.
    """
    begun_by: dict[str, list[str]] = {}
    for text in texts:
        head = text[:_LONGEST_BEGINNING]
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
