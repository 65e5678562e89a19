"""Streaming JSON: yields the elements of a top-level array, or of one array within an object.

Each element is decoded from a window that grows only as far as that element needs; of a long one
each member by itself, so that its text and what came of it are never both there, and its texts are
packed. A malformed element is reported and skipped; if the text is truncated, the elements before
it were already yielded.
"""

from __future__ import annotations

import codecs
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, TypeAlias

from kbtui.errors import UnreadableError
from kbtui.text import pack, unpack

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
_SKETCHED = 4  # levels of a file in small, and then of a value in it
_BEGUN, _MAX_MEMBERS = 200, 100  # characters of a text, members of an object in a file in small
_DECODER = json.JSONDecoder(strict=False)
Pairs: TypeAlias = Sequence[tuple[str, Any]]
"""The members of an object. A text may be packed; a list with such a text is a tuple."""


def unpacked(value: Any) -> Any:
    """Return a value as it stands in the JSON, if it was packed."""
    if type(value) is bytes:
        return unpack(value)
    return [unpacked(each) for each in value] if type(value) is tuple else value


def plain(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object with its values as they stand in the JSON."""
    return {name: unpacked(value) for name, value in pairs}


class _Sharing:
    """Packs texts, and makes what is read twice one: names, and texts that were read just before.

    A decoder shares the names that it reads only within one value, which is one of many members
    here. Exports hold the text of a message in two notations.
    """

    def __init__(self, make: Callable[[Pairs], dict[str, Any]]) -> None:
        self._make = make
        self._texts: dict[Any, Any] = {}

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        while len(self._texts) > _MAX_SHARED:
            del self._texts[next(iter(self._texts))]  # the oldest
        return self._make([(sys.intern(name), self._packed(value)) for name, value in pairs])

    def _packed(self, value: Any) -> Any:
        if type(value) is str:
            kept = pack(value)
            return self._texts.setdefault(kept, kept)
        if type(value) is list:
            some = [self._packed(each) if type(each) is str else each for each in value]
            return tuple(some) if bytes in map(type, some) else some
        return value


@dataclass(frozen=True, slots=True)
class Broken:
    """An unreadable element: its number from 1 and the reason; no more follow if it `ends`."""

    number: int
    why: str
    ends: bool = False


class _Window:
    """The decoded part of a stream that is being parsed."""

    def __init__(
        self, stream: IO[bytes], make: Callable[[Pairs], dict[str, Any]], most: int = _MAX_ELEMENT
    ) -> None:
        self._most = most
        self._read = getattr(stream, "read1", stream.read)  # at once what stands before damage
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self.text, self.at, self.ended = "", 0, False
        self._before = 0  # characters that were let go of
        self._open = 0  # objects and lists that are being decoded by their members
        self._limit = 0  # where the element ends at the latest
        self._made = _Sharing(make)
        self._members = json.JSONDecoder(strict=False, object_pairs_hook=self._made)

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
            self._limit = self._before + self.at + self._most
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
        fields: list[tuple[str, Any]] = []
        items: list[Any] = []
        self._open += 1
        self.at += 1
        sign = self.peek()
        while sign != ("}" if is_object else "]"):
            if is_object:
                fields.append((self.name(), self.value()))
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
        return self._made(fields) if is_object else items

    def _check_length(self, at: int) -> None:
        if self._before + at > self._limit:
            raise _ElementError(f"it is longer than {self._most >> 20} MB")

    def name(self) -> str:
        """Decode a member's name and the colon after it; raises like `value`."""
        name = self.value()
        if self.peek() != ":" or not isinstance(name, str):
            raise _ElementError("it is not valid JSON")
        self.at += 1
        return name

    def skip(self, within: int = 0) -> bool:
        """Skip the value at the current position by its brackets; return False if it has no end.

        What is left of one that was being decoded by its members is skipped as well, and so is that
        of the lists and objects `within` which the position is.
        """
        depth, self._open = self._open + within, 0
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


def value_of(data: bytes, make: Callable[[Pairs], dict[str, Any]] = plain) -> Any:
    """Decode one value, if it is long as `elements` does; `make` as there.

    Raises:
        ValueError: It is malformed.
    """
    if len(data) < _LARGE:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    window = _Window(io.BytesIO(data), make, sys.maxsize)
    try:
        value = window.value()
    except _ElementError as error:
        raise ValueError(str(error)) from None
    if window.peek():
        raise ValueError("more follows it")
    return value


def elements(
    stream: IO[bytes],
    key: str = "conversations",
    make: Callable[[Pairs], dict[str, Any]] = plain,
    beside: Callable[[dict[str, Any]], object] = lambda _members: None,
) -> Iterator[Any]:
    """Yield the elements of a top-level array, or of the array at `key` of a top-level object.

    ``outer.inner`` addresses an array in a nested object. An object without that key is yielded as
    the only element, and what can't be read as a `Broken`. `make` makes an object within a long
    element; those of others are plain ones. `beside` gets the other members of an object with it.
    """
    window = _Window(stream, make)
    first = window.peek()
    if first == "[":
        window.at += 1
        yield from _array(window)
    elif first == "{":
        window.at += 1
        rest: dict[str, Any] = {}
        yield from _object(window, key, rest)
        beside(rest)
    else:
        yield Broken(1, "it is no JSON: it begins with neither [ nor {", ends=True)


def sketch(stream: IO[bytes]) -> bytes:
    """Return a file of JSON in small: of each list the first item, of each text how it begins.

    What stands behind a damaged place is not in it.
    """
    return json.dumps(_sketched(_Window(stream, plain), _SKETCHED)).encode()


def _sketched(window: _Window, depth: int) -> Any:
    sign = window.peek() if depth else ""
    if sign not in ("[", "{"):
        with suppress(_ElementError, UnreadableError):
            return _small(window.value(), _SKETCHED)
        return None
    window.at += 1
    if sign == "[":
        if window.peek() == "]":
            window.at += 1
            return []
        first = _sketched(window, depth - 1)
        window.skip(within=1)
        return [first]
    members: dict[str, Any] = {}
    with suppress(_ElementError, UnreadableError):
        while (sign := window.peek()) not in ("}", ""):
            if sign == ",":
                window.at += 1
                continue
            name = window.name()
            members[name] = _sketched(window, depth - 1)
        window.at += 1
    return members


def _small(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value[:_BEGUN]
    if not depth or not isinstance(value, dict | list):
        return value if isinstance(value, int | float) else None
    if isinstance(value, list):
        return [_small(each, depth - 1) for each in value[:1]]
    return {key: _small(value[key], depth - 1) for key in islice(value, _MAX_MEMBERS)}


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


def _object(window: _Window, key: str, rest: dict[str, Any]) -> Iterator[Any]:
    """Yield the elements at `key`; `rest` gets the other members, unless they are the element."""
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
                rest[name] = members = dict[str, Any]()
                yield from _object(window, inner, members)
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
        yield _moved(rest)


def _moved(members: dict[str, Any]) -> dict[str, Any]:
    """Return members that are held here no more, so that who gets them can let go of them."""
    found = {**members}
    members.clear()
    return found
