r"""Cuts what a terminal sends into tokens: typed text, control sequences and pastes.

The bytes may come in any pieces, and be any bytes: the tokenizer never raises, and what it keeps is
bounded. A sequence is passed on whole or not at all, so the parser behind it never has to guess
whether a key has ended. Nothing between ``ESC[200~`` and ``ESC[201~`` is ever anything but a paste.

The forms of sequences are those of ECMA-48 (5.4, 5.6), which lets anything be skipped whose meaning
isn't known, and a few older ones: X10 mouse reports, rxvt's ``ESC[7$``, Linux's ``ESC[[A``. Answers
to questions (``ESC]11;rgb:…``, ``ESC[?62;22c``) have these forms too, and so are no text.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kbtui.text import without_escapes

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

MOST_PASTED_BYTES: Final = 1_000_000
"""What is longer is a file: no field shows it, no model reads it, and the app would stand still."""
SLOW_PASTE_SECONDS: Final = 5.0
"""After this time the user is told that a paste hasn't ended."""
QUIET_PASTE_SECONDS: Final = 10.0
"""After this time without a byte, a lone Ctrl+C ends a paste."""
_REST_SECONDS: Final = 1.0
"""How long the rest of a sequence may take, once it can't be the Escape key any more."""
_LONGEST_SEQUENCE: Final = 32
"""Characters. Textual's parser takes a longer one for typed text."""

_ESC: Final = b"\x1b"
_PASTE_START: Final = b"\x1b[200~"
_PASTE_END: Final = b"\x1b[201~"
_PASTE_END_CUT: Final = re.compile(rb"\x1b(?:\[(?:2(?:0(?:1)?)?)?)?\Z")
_ALT: Final = (  # a key with Alt: one character of UTF-8
    rb"[\x00-\x1a\x1c-\x7f]|[\xc2-\xdf][\x80-\xbf]"
    rb"|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_WHOLE: Final = re.compile(
    rb"\x1b(?:"
    rb"\[(?:M[^\x1b]{3}|\[[@-~]|\d+\$|(?![M\[])[-0-?]*[ -/]*[@-~])"  # Ghostty has a minus
    rb"|O[0-9;]*[@-~]"
    rb"|[\]P_^X](?=[^\x1b])"  # the introducer of a string, whose end is looked for elsewhere
    rb"|(?![\[O\]P_^X])(?:" + _ALT + rb"))"
)
_BEGUN: Final = re.compile(
    rb"\x1b(?:\[(?:M[^\x1b]{0,2}|\[|[-0-?]*[ -/]*)|O[0-9;]*|[\]P_^X]"
    rb"|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2}|[\xc2-\xdf])?"
)
_IN_STRING: Final = re.compile(rb"[^\x07\x18\x1a\x1b]*")
_CTRL_C: Final = re.compile(rb"\x03|\x1b\[99;(?:5|69|133|197)(?::1)?(?:;[\d:]*)?u")
_REPORTS: Final = re.compile(  # mouse, focus, modifiers alone, modes: what comes unasked
    rb"(?:\x1b\[(?:<[\d;]*[Mm]|[IO]|574\d\d[\d;:]*u|\?[\d;]*\$y))+"
)


@dataclass(frozen=True, slots=True)
class Typed:
    """Characters, controls among them, but no escape."""

    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """A whole control sequence; ``ESC`` and one character is a key with Alt, ``ESC`` is Escape."""

    text: str


@dataclass(frozen=True, slots=True)
class Pasted:
    """A paste without its escape sequences, and how many those were."""

    text: str
    escapes: int


@dataclass(frozen=True, slots=True)
class PasteRefused:
    """A paste of `size` bytes, which is too large to be taken."""

    size: int


@dataclass(frozen=True, slots=True)
class PasteUnfinished:
    """A paste has brought `size` bytes so far, and its end is still to come."""

    size: int


Token = Typed | Sequence | Pasted | PasteRefused | PasteUnfinished


@dataclass(slots=True)
class _Paste:
    started: float
    body: bytearray = field(default_factory=bytearray)
    size: int = 0
    is_announced: bool = False

    def add(self, data: bytes) -> None:
        self.size += len(data)
        if self.size <= MOST_PASTED_BYTES:
            self.body += data
        else:
            self.body.clear()

    def token(self) -> Pasted | PasteRefused:
        if self.size > MOST_PASTED_BYTES:
            return PasteRefused(self.size)
        text = self.body.decode("utf-8", "replace").replace("\0", "")
        text = text.replace("\x9b", "\x1b[")  # the same in one character
        return Pasted(*without_escapes(text))


class InputTokenizer:
    """Bytes in, tokens out. Times are in seconds of any clock that doesn't go back.

    Args:
        escape_seconds: How long after an ``ESC`` the rest of a key may come.
    """

    def __init__(self, escape_seconds: float) -> None:
        self.escape_seconds = escape_seconds
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = b""  # a sequence, or the end of a paste, that has begun
        self._given_up = b""  # a sequence whose rest didn't come in time
        self._paste: _Paste | None = None
        self._is_in_string = False
        self._fed_at = 0.0

    @property
    def deadline(self) -> float | None:
        """When `tick` has to be called unless bytes come before; None for never."""
        if self._paste is not None:
            is_announced = self._paste.is_announced
            return None if is_announced else self._paste.started + SLOW_PASTE_SECONDS
        if self._is_in_string or len(self._rest) > 2:
            return self._fed_at + max(_REST_SECONDS, self.escape_seconds)
        if self._rest or self._decoder.getstate()[0]:
            return self._fed_at + self.escape_seconds
        return None

    def tick(self, now: float) -> Iterator[Token]:
        """Give up waiting for what should have come by now."""
        if self.deadline is None or now < self.deadline:
            return
        if self._paste is not None:
            self._paste.is_announced = True
            yield PasteUnfinished(self._paste.size)
            return
        yield from self._decoded(b"", is_end=True)
        self._given_up, self._rest = self._rest, b""
        if not self._is_in_string:
            yield from _cut_short(self._given_up)
        self._is_in_string = False

    def feed(self, data: bytes, now: float) -> Iterator[Token]:
        """Take the next bytes."""
        if self._paste is not None and not self._rest and _REPORTS.fullmatch(data):
            return  # the mouse was moved: no byte of the paste
        quiet, self._fed_at = now - self._fed_at, now
        if self._paste is not None and quiet >= QUIET_PASTE_SECONDS and _CTRL_C.fullmatch(data):
            self._rest = b""
            yield self._end_paste(self._paste)
            return
        data = self._take_up(data, quiet) + data
        at = 0
        while at < len(data):
            if self._paste is not None:
                at = yield from self._in_paste(self._paste, data, at)
            elif self._is_in_string:
                at = self._in_string(data, at)
            else:
                at = yield from self._outside(data, at, now)

    def _take_up(self, data: bytes, quiet: float) -> bytes:
        """Return what `data` continues, even if it was given up a moment ago.

        ``ESC`` and, much later, ``[D`` or ``[200~`` in one piece isn't typed by anybody.
        """
        rest, self._rest = self._rest, b""
        given_up, self._given_up = self._given_up, b""
        if not given_up or len(data) == 1:
            return rest
        joined = given_up + data
        key = _WHOLE.match(joined)
        is_key = key is not None and key.end() > 2 and joined[1:2] == b"["
        soon = max(_REST_SECONDS, self.escape_seconds) * 2
        if joined.startswith(_PASTE_START) or _PASTE_START.startswith(joined):
            return given_up
        return given_up if is_key and quiet < soon else rest

    def _in_paste(self, paste: _Paste, data: bytes, at: int) -> Generator[Token, None, int]:
        end = data.find(_PASTE_END, at)
        if end < 0:
            cut = _PASTE_END_CUT.search(data, max(at, len(data) - len(_PASTE_END)))
            stop = cut.start() if cut is not None else len(data)
            paste.add(data[at:stop])
            self._rest = data[stop:]
            return len(data)
        # One that isn't the last before the next start is text that somebody wants to be typed.
        following = data.find(_PASTE_START, end)
        end = data.rfind(_PASTE_END, at, following if following >= 0 else len(data))
        paste.add(data[at:end])
        yield self._end_paste(paste)
        return end + len(_PASTE_END)

    def _end_paste(self, paste: _Paste) -> Pasted | PasteRefused:
        self._paste = None
        return paste.token()

    def _in_string(self, data: bytes, at: int) -> int:
        body = _IN_STRING.match(data, at)
        end = body.end() if body is not None else at
        if end == len(data):
            return end
        if data[end:] == _ESC:
            self._rest = _ESC
            return len(data)
        self._is_in_string = False
        if data[end : end + 2] == b"\x1b\\":
            return end + 2
        return end if data[end : end + 1] == _ESC else end + 1

    def _outside(self, data: bytes, at: int, now: float) -> Generator[Token, None, int]:
        escape = data.find(_ESC, at)
        if escape != at:
            stop = escape if escape >= 0 else len(data)
            yield from self._decoded(data[at:stop], is_end=escape >= 0)
            return stop
        yield from self._decoded(b"", is_end=True)
        whole = _WHOLE.match(data, at)
        if whole is None:
            begun = _BEGUN.match(data, at)
            end = begun.end() if begun is not None else at + 1
            if end == len(data):
                self._rest = _shortened(data[at:])
            else:
                yield from _cut_short(data[at:end])
            return end
        found = whole[0]
        if found == _PASTE_START:
            self._paste = _Paste(now)
        elif len(found) == 2 and found[1:] in b"]P_^X":
            self._is_in_string = True
        elif found != _PASTE_END and len(found) <= _LONGEST_SEQUENCE and found[:3] != b"\x1b[M":
            yield Sequence(found.decode("utf-8", "replace"))
        return whole.end()

    def _decoded(self, data: bytes, *, is_end: bool) -> Iterator[Token]:
        text = self._decoder.decode(data, is_end)
        if text:
            yield Typed(text)


def _cut_short(begun: bytes) -> Iterator[Token]:
    """Yield the key that the beginning of a sequence is when nothing follows."""
    if len(begun) <= 2 and begun.isascii() and begun:
        yield Sequence(begun.decode("ascii"))


def _shortened(begun: bytes) -> bytes:
    """Return a beginning that ends like `begun`, which is too long to be read anyway."""
    return begun[:2] + begun[-1:] * (_LONGEST_SEQUENCE + 1) if len(begun) > 1_000 else begun
