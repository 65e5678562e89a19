"""Pictures in kitty's graphics protocol: sent once, and placed by cells of the text.

Source: https://sw.kovidgoyal.net/kitty/graphics-protocol/.
"""

from __future__ import annotations

import threading
from base64 import standard_b64encode
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from kbtui.tui.terminal.picture_cells import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from textual.app import App
    from textual.content import Content

    from kbtui.tui.terminal.picture_cells import Pictures

_TERMINALS: Final = frozenset({"xterm-kitty", "xterm-ghostty"})
"""Those that draw placeholders; others have the protocol, but not this part of it."""
_CHUNK: Final = 4096
_MOST_PICTURES: Final = 64
"""Kept by the terminal: more than a note and a preview embed, less than what it has room for."""


def has_graphics(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal draws pictures that are placed by characters.

    A multiplexer between it and the app has a name of its own in TERM.
    """
    return environment.get("TERM") in _TERMINALS


def graphics_of(app: App[Any]) -> Pictures | None:
    """Return the pictures of the terminal that `app` runs in, or None if it draws none.

    With fewer colours a picture's number would be rounded.
    """
    found: Pictures | None = getattr(app._driver, "graphics", None)  # noqa: SLF001
    return found if app.console.color_system == "truecolor" else None


class Graphics:
    """The pictures that the terminal has been sent; may be used by several threads."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._sent: OrderedDict[int, Place] = OrderedDict()
        self._is_on = True
        self._lock = threading.Lock()

    def lines(self, png: bytes, columns: int, rows: int) -> Iterator[Content]:
        """Send a picture unless the terminal has it, and yield the lines that show it.

        At most 76 columns and rows.
        """
        place = Place(png, columns, rows)
        number = place.number
        with self._lock:
            told = [] if number in self._sent else _sending(number, place)
            self._sent[number] = place
            self._sent.move_to_end(number)
            while len(self._sent) > _MOST_PICTURES:
                oldest, _ = self._sent.popitem(last=False)
                told.append(_removing(oldest))
            self._tell(told)
        yield from place.lines()

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


def _sending(number: int, place: Place) -> list[str]:
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
