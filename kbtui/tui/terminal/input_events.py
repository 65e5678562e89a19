"""Textual's events from the tokens of the terminal's input.

Textual's parser reads what is whole; what it doesn't know is dropped, with everything that it has
remembered of it. It is given one sequence at a time, so it never waits for another character.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from textual import events
from textual._xterm_parser import XTermParser

from kbtui.text import clean
from kbtui.tui.terminal.input_tokens import Sequence, Typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.message import Message

_ALT_ENTER: Final = "\x1b\r"
_NEW_LINE: Final = "\n"
_RELEASED: Final = "3"
_KITTY: Final = re.compile(r"\x1b\[(\d+)(?::[\d:]*)?;(\d*)(?::(\d))?(;[\d:]*)?([u~A-S])")
"""A key of kitty's protocol: code, with other layouts' ones; modifiers, with the kind of event."""
_ANSWER: Final = re.compile(r"\x1b\[(?:\?[\d;]*[^\d;$]|[>=].*|\d+;\d+R)")
_COPIED: Final = ("last_x", "last_y", "mouse_pixels", "terminal_size", "terminal_pixel_size")


class Key(events.Key):
    """A key whose character is text unless it is a control, which `text.clean` decides.

    Textual's `is_printable` is Python's, which is false for no-break and ideographic spaces, for
    joiners, which Persian words and emoji need, for soft hyphens, and for signs newer than Python.
    """

    @property
    def is_printable(self) -> bool:
        """Whether the character goes into a text."""
        character = self.character
        if not character or character in "\t\n" or "\ud800" <= character <= "\udfff":
            return False  # the last are halves of a character, which no file can hold
        return clean(character) == character


class InputEvents:
    """Tokens in, events out; never raises, whatever numbers a sequence holds."""

    def __init__(self, *, debug: bool = False) -> None:
        self._debug = debug
        self._parser = XTermParser(debug)

    def read(self, token: Typed | Sequence) -> Iterator[Message]:
        """Yield the events of typed characters or of one sequence."""
        text = token.text
        if isinstance(token, Typed):
            yield from self._parsed(text)
            return
        if text == _ALT_ENTER:  # which Textual takes for Escape
            text = _NEW_LINE
        elif (key := _KITTY.fullmatch(text)) is not None:
            if key[3] == _RELEASED:
                return
            text = f"\x1b[{key[1]};{key[2]}{key[4] or ''}{key[5]}"  # what Textual can read
        elif _ANSWER.match(text):
            return
        known = self._parsed(text)
        yield from known
        if not known and len(text) == 2:
            yield from map(_with_alt, self._parsed(text[1]))

    def _parsed(self, text: str) -> list[Message]:
        """Return what the parser makes of `text`, and forget what it waits for."""
        if text == "\x1b":
            return [Key("escape", text)]
        found: list[Message] = []
        try:
            found.extend(map(_with_text, self._parser.feed(text)))
        except Exception:  # noqa: BLE001 - it converts numbers that it hasn't checked
            found.clear()
        if not found:
            before, self._parser = self._parser, XTermParser(self._debug)
            for name in _COPIED:
                setattr(self._parser, name, getattr(before, name))
        return found


def _with_text(message: Message) -> Message:
    return Key(message.key, message.character) if isinstance(message, events.Key) else message


def _with_alt(message: Message) -> Message:
    if not isinstance(message, events.Key):
        return message
    name = f"shift+{message.key.lower()}" if message.key.isupper() else message.key
    return Key(f"alt+{name}", None)
