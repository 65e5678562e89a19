"""Streaming JSON: yields the elements of a top-level array, or of one array within an object.

Each element is decoded from a window that grows only as far as that element needs. A malformed
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
_MAX_ELEMENT = 24 << 20
_STEP = 8 << 20
_LARGE = 4 << 20
"""Characters of an element of which no more is kept than must be."""
_SPACE = re.compile(r"[\s\x00\ufeff]*")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_ASTRAL = re.compile("[\U00010000-\U0010ffff]+")
_MAX_LITERAL = 12  # a truncated number or \\u escape fails to decode at most this far from the end
_DECODER = json.JSONDecoder(strict=False)


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
        while True:
            begin = self.at
            try:
                value, end = _DECODER.raw_decode(self.text, begin)
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
                if end - begin > _LARGE:  # who gets it takes as much again
                    self.pass_on()
                return value
            if len(self.text) - begin > _MAX_ELEMENT:
                raise _ElementError(f"it is longer than {_MAX_ELEMENT >> 20} MB")
            if self.ended:
                raise _ElementError("the text breaks off in the middle of it", ends=True)
            self.more(min(max(_WINDOW, len(self.text) - begin), _STEP))

    def name(self) -> str:
        """Decode a member's name and the colon after it; raises like `value`."""
        name = self.value()
        if self.peek() != ":" or not isinstance(name, str):
            raise _ElementError("it is not valid JSON")
        self.at += 1
        return name

    def skip(self) -> bool:
        """Skip the value at the current position by its brackets; return False if it has no end."""
        depth = 0
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
                    yield each
                    if isinstance(each, Broken) and each.ends:
                        return
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
