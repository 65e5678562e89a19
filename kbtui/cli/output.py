"""Standard output, which is data, standard error, which is for people, and how an error is told.

Text out of notes is shown to a terminal without the characters that could steer it; into a pipe
or a file it goes as it is.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from typing import Any

import click

from kbtui.errors import KbtuiError
from kbtui.text import clean, clean_line

INTERRUPTED = 130
UNEXPECTED = 1
# JSON escapes C0 itself; these would reach a terminal as they are.
_PROGRESS_WIDTH = 76
_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def prepare_streams() -> None:
    """Let no character of a note break the output, whatever the terminal's encoding is.

    A stream that was closed before the start leads nowhere. Otherwise the first file that is opened
    would become it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def to_terminal() -> bool:
    """True if a person reads the output as it comes."""
    return sys.stdout.isatty()


def _takes_all() -> bool:
    """True if every character can be written as it is; else JSON escapes it."""
    return (sys.stdout.encoding or "utf-8").lower().replace("_", "-") in {"utf-8", "utf8"}


def coloured() -> bool:
    """True if colours are wanted: on a terminal, unless NO_COLOR says otherwise."""
    return to_terminal() and not os.environ.get("NO_COLOR")


def say(text: str = "", *, newline: bool = True) -> None:
    """Write text to standard output."""
    shown = clean(text) if to_terminal() else text
    sys.stdout.write(f"{shown}\n" if newline else shown)


def say_styled(text: str, **style: Any) -> str:
    """Dress a piece of one line, where colours are wanted."""
    shown = clean_line(text)
    return click.style(shown, **style) if coloured() else shown


def say_line(*pieces: str) -> None:
    """Write one line of pieces that `say_styled` or `clean_line` made safe already."""
    sys.stdout.write("".join(pieces) + "\n")


def say_json(document: Any) -> None:
    """Write one JSON document."""
    indent = 2 if to_terminal() else None
    text = json.dumps(document, ensure_ascii=not _takes_all(), indent=indent, default=str)
    sys.stdout.write(_escaped(text) + "\n")


def say_json_line(document: Any) -> None:
    """Write one line of a JSON stream, at once."""
    text = json.dumps(document, ensure_ascii=not _takes_all(), default=str)
    sys.stdout.write(_escaped(text) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Tell a person something beside the data."""
    sys.stderr.write(f"{clean(text)}\n")
    sys.stderr.flush()


class ProgressLine:
    """Shows what is being done on one line of a terminal, for a person who waits."""

    def __init__(self) -> None:
        self._shown = False

    def __call__(self, text: str) -> None:
        """Show what is being done now."""
        if sys.stderr.isatty():
            self._shown = True
            sys.stderr.write(f"\r\x1b[K{clean_line(text)[:_PROGRESS_WIDTH]}")
            sys.stderr.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _escaped(text: str) -> str:
    return _STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def complain(message: str, hint: str = "") -> None:
    """Write ``kbtui: message`` and, on a line of its own, what to do about it."""
    sys.stderr.write(f"kbtui: {clean_line(message)}\n")
    if hint:
        sys.stderr.write(f"  {clean(hint).strip()}\n")
    sys.stderr.flush()


def report(error: Exception) -> int:
    """Say what went wrong and give the exit code; what nobody foresaw goes into the log whole."""
    if isinstance(error, KbtuiError):
        complain(error.message, error.hint)
        return error.exit_code
    from kbtui.logs import log_file, start_logging

    start_logging()
    logging.getLogger("kbtui").error("unexpected", exc_info=error)
    what = clean_line(str(error))[:200]
    complain(
        f"Something unexpected happened: {type(error).__name__}{': ' if what else ''}{what}",
        f"Your notes are as they were. The details are in {log_file()}.",
    )
    return UNEXPECTED
