"""Pictures in kitty's graphics protocol, placed by characters of the text.

The terminal is sent a picture once; then each cell that holds the placeholder shows a part of it,
which two combining marks name by row and column, and whose colour is the picture's number. So a
picture scrolls, is covered and is cut like any text, and the app needs to know nothing of it.
Source: "Unicode placeholders" in https://sw.kovidgoyal.net/kitty/graphics-protocol/.
"""

from __future__ import annotations

import threading
from base64 import standard_b64encode
from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from textual.color import Color
from textual.content import Content, Span
from textual.style import Style

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from textual.app import App

_TERMINALS: Final = frozenset({"xterm-kitty", "xterm-ghostty"})
"""Those that draw placeholders; others have the protocol, but not this part of it."""
_CHUNK: Final = 4096
_PLACEHOLDER: Final = "\U0010eeee"
_MARKS: Final = tuple(
    map(
        chr,
        # The first of the protocol's list, which are those of class 230 without a decomposition.
        (
            *(0x305, 0x30D, 0x30E, 0x310, 0x312, 0x33D, 0x33E, 0x33F, 0x346, 0x34A, 0x34B, 0x34C),
            *(0x350, 0x351, 0x352, 0x357, 0x35B, *range(0x363, 0x370), *range(0x483, 0x488)),
            *(*range(0x592, 0x596), *range(0x597, 0x59A), *range(0x59C, 0x5A2), 0x5A8, 0x5A9),
            *(0x5AB, 0x5AC, 0x5AF, 0x5C4, *range(0x610, 0x618), *range(0x657, 0x65C)),
            *(0x65D, 0x65E, *range(0x6D6, 0x6DD)),
        ),
    )
)
_MOST_PICTURES: Final = 64
"""Kept by the terminal: more than a note and a preview embed, less than what it has room for."""


class _Place(NamedTuple):
    """A picture in the size in which it is shown, in cells."""

    png: bytes
    columns: int
    rows: int

    @property
    def number(self) -> int:
        """Its number: 24 bits, as many as a colour has, and never 0."""
        found = blake2b(self.png, digest_size=3, key=b"%d %d" % (self.columns, self.rows))
        return int.from_bytes(found.digest(), "big") or 1


def has_graphics(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal draws pictures that are placed by characters.

    A multiplexer between it and the app has a name of its own in TERM.
    """
    return environment.get("TERM") in _TERMINALS


def graphics_of(app: App[Any]) -> Graphics | None:
    """Return the pictures of the terminal that `app` runs in, or None if it draws none.

    With fewer colours a picture's number would be rounded.
    """
    found: Graphics | None = getattr(app._driver, "graphics", None)  # noqa: SLF001
    return found if app.console.color_system == "truecolor" else None


class Graphics:
    """The pictures that the terminal has been sent; may be used by several threads."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._sent: OrderedDict[int, _Place] = OrderedDict()
        self._is_on = True
        self._lock = threading.Lock()

    def lines(self, png: bytes, columns: int, rows: int) -> Iterator[Content]:
        """Send a picture unless the terminal has it, and yield the lines that show it.

        At most 76 columns and rows.
        """
        place = _Place(png, columns, rows)
        number = place.number
        with self._lock:
            told = [] if number in self._sent else _sending(number, place)
            self._sent[number] = place
            self._sent.move_to_end(number)
            while len(self._sent) > _MOST_PICTURES:
                oldest, _ = self._sent.popitem(last=False)
                told.append(_removing(oldest))
            self._tell(told)
        style = Style(foreground=Color(number >> 16, number >> 8 & 255, number & 255))
        for row in range(rows):
            cells = "".join(f"{_PLACEHOLDER}{_MARKS[row]}{_MARKS[at]}" for at in range(columns))
            yield Content(cells, [Span(0, len(cells), style)])

    def send_again(self) -> None:
        """Send what is shown to a screen that is new, as after the app was suspended."""
        with self._lock:
            self._is_on = True
            self._tell([each for sent in self._sent.items() for each in _sending(*sent)])

    def remove(self) -> None:
        """Free what the terminal keeps, and send nothing until there is a screen again."""
        with self._lock:
            self._tell(list(map(_removing, self._sent)))
            self._is_on = False

    def _tell(self, commands: Sequence[str]) -> None:
        """Write commands in one piece: the driver's queue is short, and nobody may wait for it."""
        if commands and self._is_on:
            self._write("".join(commands))


def _sending(number: int, place: _Place) -> list[str]:
    data = standard_b64encode(place.png).decode()
    chunks = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
    told = [
        _command(f"{'' if at else f'a=t,f=100,i={number},'}m={int(at + 1 < len(chunks))}", chunk)
        for at, chunk in enumerate(chunks)
    ]
    return [*told, _command(f"a=p,U=1,i={number},c={place.columns},r={place.rows}")]


def _removing(number: int) -> str:
    return _command(f"a=d,d=I,i={number}")


def _command(keys: str, payload: str = "") -> str:
    # q=2: it is to answer nothing, which would come as keys.
    return f"\x1b_G{keys},q=2;{payload}\x1b\\"
