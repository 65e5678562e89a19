"""Streaming JSON: yields the elements of a top-level array, or of one array within an object.

Each element is decoded from a window that grows only as far as that element needs; of a long one
each member by itself, so that its text and what came of it are never both there. A malformed
element is reported and skipped; if the text is truncated, the elements before it were already
yielded.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from kbtui.errors import UnreadableError

_WINDOW = 1 << 20
_MAX_ELEMENT = 32 << 20
_STEP = 8 << 20
_LARGE = 2 << 20
"""Characters of an element that is decoded by its members."""
_SPACE = re.compile(r"[\s\x00\ufeff]*")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_ASTRAL = re.compile("[\U00010000-\U0010ffff]+")
_CUT = "the text breaks off in the middle of it"
_MAX_LITERAL = 12  # a truncated number or \\u escape fails to decode at most this far from the end


_MAX_SHARED = 100  # texts
_DECODER = json.JSONDecoder(strict=False)


class _Sharing:
    """Makes what is read twice one: names, and texts that were read shortly before.

    A decoder shares the names that it reads only within one value, which is one of many members
    here. Exports hold the text of a message in two notations.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        texts = self._texts
        while len(texts) > _MAX_SHARED:
            del texts[next(iter(texts))]  # the oldest
        return {
            sys.intern(name): texts.setdefault(value, value) if type(value) is str else value
            for name, value in pairs
        }


@dataclass(frozen=True, slots=True)
class Broken:
    """An unreadable element: its number from 1 and the reason; no more follow if it `ends`."""

    number: int
    why: str
    ends: bool = False


class _Window:
    """The decoded part of a stream that is being parsed."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._read = getattr(stream, "read1", stream.read)  # at once what stands before damage
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self.text, self.at, self.ended = "", 0, False
        self._before = 0  # characters that were let go of
        self._open = 0  # objects and lists that are being decoded by their members
        self._limit = 0  # where the element ends at the latest
        self._members = json.JSONDecoder(strict=False, object_pairs_hook=_Sharing())

    def more(self, size: int = _WINDOW) -> bool:
        """Read more of the stream; return False at its end."""
        if self.ended:
            return False
        data = self._read(size)
        self.ended = not data
        self.pass_on()
        text = self._decode(data, final=self.ended)
        if len(self.text) + len(text) > _LARGE:
            self.text, text = _narrow(self.text), _narrow(text)
        self.text += text
        return not self.ended

    def pass_on(self) -> None:
        """Let go of what stands before the current position."""
        self._before += self.at
        self.text, self.at = self.text[self.at :], 0

    def peek(self) -> str:
        """Skip white space and return the next character, "" at the end."""
        while True:
            found = _SPACE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.text) or not self.more():
                return self.text[self.at : self.at + 1]

    def value(self) -> Any:
        """Decode the value at the current position.

        Raises:
            _ElementError: It is malformed, truncated or too long.
        """
        self.peek()  # skips white space
        if not self._open:
            self._limit = self._before + self.at + _MAX_ELEMENT
        decoder = self._members if self._open else _DECODER
        while True:
            begin = self.at
            try:
                value, end = decoder.raw_decode(self.text, begin)
            except RecursionError:
                raise _ElementError("it is nested too deeply") from None
            except json.JSONDecodeError as error:
                is_cut = len(self.text) - error.pos <= _MAX_LITERAL
                if not is_cut and not error.msg.startswith("Unterminated string"):
                    raise _ElementError(f"it is not valid JSON: {error.msg}") from None
                is_whole = False
            else:
                # A number at the end of the window may continue.
                is_whole = end < len(self.text) or isinstance(value, str | dict | list)
            if is_whole:
                self.at = end
                return value
            self._check_length(len(self.text))
            if self.ended:
                raise _ElementError(_CUT, ends=True)
            if len(self.text) - begin >= _LARGE and self.text[begin] in "[{":
                return self._by_members()
            self.more(min(max(_WINDOW, len(self.text) - begin), _STEP))

    def _by_members(self) -> dict[str, Any] | list[Any]:
        """Decode the object or list at the current position, letting go of its text meanwhile."""
        is_object = self.text[self.at] == "{"
        fields: dict[str, Any] = {}
        items: list[Any] = []
        self._open += 1
        self.at += 1
        sign = self.peek()
        while sign != ("}" if is_object else "]"):
            if is_object:
                name = sys.intern(self.name())
                fields[name] = self.value()
            else:
                items.append(self.value())
            self._check_length(self.at)
            sign = self.peek()
            if sign == ",":
                self.at += 1
            elif not sign:
                raise _ElementError(_CUT, ends=True)
            elif sign not in "]}":
                raise _ElementError("it is not valid JSON: Expecting ',' delimiter")
        self.at += 1
        self._open -= 1
        return fields if is_object else items

    def _check_length(self, at: int) -> None:
        if self._before + at > self._limit:
            raise _ElementError(f"it is longer than {_MAX_ELEMENT >> 20} MB")

    def name(self) -> str:
        """Decode a member's name and the colon after it; raises like `value`."""
        name = self.value()
        if self.peek() != ":" or not isinstance(name, str):
            raise _ElementError("it is not valid JSON")
        self.at += 1
        return name

    def skip(self) -> bool:
        """Skip the value at the current position by its brackets; return False if it has no end.

        What is left of one that was being decoded by its members is skipped as well.
        """
        depth, self._open = self._open, 0
        while True:
            for token in _TOKEN.finditer(self.text, self.at):
                self.at = token.end()
                if not self.ended and self.at == len(self.text) and token[0][0] == '"':
                    self.at = token.start()  # a string that may continue
                    break
                depth += (token[0] in "[{") - (token[0] in "]}")
                if depth <= 0:
                    return True
            else:
                self.at = len(self.text)
            if self.ended or len(self.text) - self.at > _MAX_ELEMENT:
                return False
            self.more(min(max(_WINDOW, len(self.text) - self.at), _STEP))


def _narrow(text: str) -> str:
    """Return JSON with characters beyond U+FFFF as escapes, which Python keeps in half the space.

    A single emoji widens a whole text.
    """
    is_wide = sys.getsizeof(text) > 3 * len(text)
    return _ASTRAL.sub(lambda found: json.dumps(found[0])[1:-1], text) if is_wide else text


class _ElementError(Exception):
    def __init__(self, why: str, *, ends: bool = False) -> None:
        super().__init__(why)
        self.ends = ends


def elements(stream: IO[bytes], key: str = "conversations") -> Iterator[Any]:
    """Yield the elements of a top-level array, or of the array at `key` of a top-level object.

    ``outer.inner`` addresses an array in a nested object. An object without that key is yielded as
    the only element, and what can't be read as a `Broken`.
    """
    window = _Window(stream)
    first = window.peek()
    if first == "[":
        window.at += 1
        yield from _array(window)
    elif first == "{":
        window.at += 1
        yield from _object(window, key)
    else:
        yield Broken(1, "it is no JSON: it begins with neither [ nor {", ends=True)


def _array(window: _Window) -> Iterator[Any]:
    number = 0
    while True:
        try:
            sign = window.peek()
            if sign == ",":
                window.at += 1
                continue
            if sign == "]":
                window.at += 1
                return
            number += 1
            if not sign:
                yield Broken(number, "the text breaks off before the end of the list", ends=True)
                return
            yield window.value()
        except _ElementError as error:
            whole = not error.ends and window.skip()
            yield Broken(number, str(error), ends=not whole)
            if not whole:
                return
        except UnreadableError as error:  # a damaged or truncated zip member
            yield Broken(number + 1, error.message, ends=True)
            return


def _object(window: _Window, key: str) -> Iterator[Any]:
    rest: dict[str, Any] = {}
    found = False
    outer, _, inner = key.partition(".")
    try:
        while (sign := window.peek()) not in ("}", ""):
            if sign == ",":
                window.at += 1
                continue
            name = window.name()
            if name == outer and inner and window.peek() == "{":
                window.at += 1
                found = True
                yield from _object(window, inner)
            elif name == key and window.peek() == "[":
                window.at += 1
                found = True
                for each in _array(window):
                    ends = isinstance(each, Broken) and each.ends
                    yield each
                    if ends:
                        return
                    del each
            else:
                rest[name] = window.value()
    except (_ElementError, UnreadableError) as error:
        yield Broken(1, str(error), ends=True)
        return
    window.at += bool(sign)
    if not sign:
        yield Broken(1, "the text breaks off before its end", ends=True)
    elif not found:
        yield rest
