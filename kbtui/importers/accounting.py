"""What of an export came in: every text that a record holds is found in an item, or is counted.

Sources say what they leave out on purpose. What they don't know of, nobody would miss, so the
engine compares the records that were read with the items that came of them. A text of some words
that is in none of these is counted under the pattern of its path, ``mapping.*.message.content``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from typing import Any

from kbtui.importers.port import ImportedNote, Item, Skipped
from kbtui.text import Packed, pack, unpack

_MIN_WORDS = 4
_KEY = 32  # letters and digits that tell a text from others
_MAX_LENGTH = 4096  # characters of a text that are compared
_MAX_PENDING = 200_000  # texts whose items may still come
_MAX_SEARCHED = 2_000  # texts that are looked for anywhere in an item, not only where lines begin
_HOPELESS = 100  # texts of one pattern, none of which came in: no other is waited for
_ID = re.compile(r"(?=.*[0-9])[\w.:/+\- ]{8,}|[0-9]+|.*[/\\].*")
_WORDS = re.compile(rf"\s*\S+(?:\s+\S+){{{_MIN_WORDS - 1}}}")
_NESTED = (dict, list)
_IN_LIST = "[]"
_SHORT = 2 * _MIN_WORDS - 2  # characters: fewer than of so many words
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MARKS = re.compile(r"[\W_]+")
_MAX_NAME = 80
_MAX_DEPTH = 60
Leaf = tuple[str, str]
"""The pattern of a text's path, and the text."""
_Place = tuple[str, str]
"""The pattern of a text's path, and the member that it is in."""


@dataclass(slots=True)
class Account:
    """The texts of the records of one import that are in no item yet.

    Attributes:
        missing: Counts of texts that are in no item, by the pattern of their path.
        firsts: The member in which the first of each is.
    """

    missing: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, str] = field(default_factory=dict)
    _pending: dict[int, Sequence[_Place]] = field(default_factory=dict)  # by the hash of a key
    _alone: dict[_Place, tuple[_Place]] = field(default_factory=dict)  # for most of a member's keys
    _fresh: list[tuple[int, Packed]] = field(default_factory=list)  # keys, texts since an item
    _came: set[str] = field(default_factory=set)  # patterns
    _lost: Counter[str] = field(default_factory=Counter)  # patterns
    _read: Counter[str] = field(default_factory=Counter)  # members
    _has_marks: bool = False  # of HTML, which are in no item
    _size: int = 0

    def begin(self, name: str) -> bool:
        """Begin to read a member; return False if that was done before: its texts count once."""
        self._read[name] += 1
        self._alone.clear()
        return self._read[name] == 1

    def add(self, name: str, record: Mapping[str, Any]) -> None:
        """Take the texts of a record of a member."""
        for pattern, text in leaves_of(record):
            if self._lost[pattern] >= _HOPELESS and pattern not in self._came:
                self._miss(pattern, name)
                continue
            has_marks = "<" in text or "&" in text
            self._has_marks = self._has_marks or has_marks
            key = hash(bare(text)[:_KEY] if has_marks else _start(text))
            self._expect(key, (pattern, name))
            if len(self._fresh) < _MAX_SEARCHED:
                self._fresh.append((key, pack(text)))
        while self._size > _MAX_PENDING:
            for pattern, member in self._take(next(iter(self._pending))):
                self._miss(pattern, member)

    def _expect(self, key: int, place: _Place) -> None:
        before = self._pending.get(key)
        if before is None:
            self._pending[key] = self._alone.setdefault(place, (place,))
        elif isinstance(before, list):
            before.append(place)
        else:
            self._pending[key] = [*before, place]
        self._size += 1

    def settle(self, item: Item) -> None:
        """Strike out what is in an item."""
        if not self._pending:
            return
        for line in (line for text in _texts_of(item) for line in text.split("\n")):
            self._strike(hash(_start(line)))
            if ": " in line[:_MAX_NAME]:  # behind the name of who said it
                self._strike(hash(_start(line.partition(": ")[2])))
            if self._has_marks:
                self._strike(hash(bare(line)[:_KEY]))
        whole = None
        for key, leaf in self._fresh:
            if key not in self._pending:
                continue
            whole = "".join(map(bare, _texts_of(item))) if whole is None else whole
            own = bare(unpack(leaf))
            if own[:_KEY] in whole or own[-_KEY // 2 :] in whole:
                self._strike(key)
            else:
                self._lost.update(pattern for pattern, _ in self._pending[key])
        self._fresh.clear()

    def close(self) -> None:
        """Count what is in no item."""
        for key in list(self._pending):
            for pattern, name in self._take(key):
                self._miss(pattern, name)

    def _strike(self, key: int) -> None:
        if key in self._pending:
            self._came.update(pattern for pattern, _ in self._take(key))

    def _take(self, key: int) -> Sequence[_Place]:
        found = self._pending.pop(key)
        self._size -= len(found)
        return found

    def _miss(self, pattern: str, name: str) -> None:
        self.missing[pattern] += 1
        self.firsts.setdefault(pattern, name)


def _start(text: str) -> str:
    """Return how a text begins, which is how a line of an item does that has it as it is."""
    return text.lstrip()[:_KEY].partition("\n")[0].rstrip()


def bare(text: str) -> str:
    """Return the letters and digits of a text outside of tags, which survive any conversion."""
    if "&" in text:
        text = unescape(text)
    if "<" in text:
        text = _TAG.sub("", text)
    return _MARKS.sub("", text)


@lru_cache(maxsize=4096)
def _below(pattern: str, key: str) -> str:
    """Return the pattern of a value under a key, in which all ids are one."""
    if not key:
        return pattern
    name = "*" if _ID.fullmatch(key) else key
    return f"{pattern}.{name}" if pattern and key != _IN_LIST else f"{pattern}{name}"


def leaves_of(value: Any) -> Iterator[Leaf]:
    """Yield the texts of four words or more within a value, with the patterns of their paths."""
    if _is_text(value):
        yield "", value[:_MAX_LENGTH]
    stack: list[tuple[str, Any, int]] = [("", value, 0)]
    while stack:
        pattern, value, depth = stack.pop()
        for key, each in _members(value):
            if type(each) is str:
                if len(each) > _SHORT and _WORDS.match(each):
                    yield _below(pattern, key), each[:_MAX_LENGTH]
            elif each and depth < _MAX_DEPTH and isinstance(each, _NESTED):
                stack.append((_below(pattern, key), each, depth + 1))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and _WORDS.match(value) is not None


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    """Return what is within a value, each with its key; that of all in a list is ``[]``."""
    if isinstance(value, list):
        return [(_IN_LIST, each) for each in value]
    return _pairs(value) if isinstance(value, dict) else ()


def _pairs(record: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Return the members of a record, the names of which count as one if they are ids."""
    pairs = record.items()
    if len(pairs) > 1 and all(isinstance(each, dict) for _, each in pairs):
        return (("*", each) for _, each in pairs)
    return pairs


def _texts_of(item: Item) -> Iterator[str]:
    """Yield the texts of an item, which are packed meanwhile and together long."""
    if isinstance(item, Skipped):
        yield from (item.place, item.why)
    elif isinstance(item, ImportedNote):
        yield from (item.title, item.text, *item.tags, item.url, item.folder)
    else:
        yield item.title
        for each in item.messages:
            yield from (each.text, *each.attached)
