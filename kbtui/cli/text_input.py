"""Where a TEXT comes from: the command line, standard input named by `-`, or a pipe.

A missing TEXT is read from what standard input was redirected to, a pipe or a file. A `-` alone
reads standard input whatever it is; after `--` it is a text of one dash. A TEXT that is given
leaves standard input alone, so that a loop such as ``while read`` goes on; if something waits
there, it says so. No command reads a TEXT in any other way.
"""

from __future__ import annotations

import array
import fcntl
import os
import re
import select
import stat
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from kbtui.cli.output import note
from kbtui.errors import UsageError
from kbtui.text import counted, without_escapes

MOST_OF_FACT = 10_000
"""The most bytes of a TEXT that is a fact or a query: a line, not a document."""
MOST_OF_TEXT = 1_000_000
"""The most bytes of a TEXT that is said, or kept in the journal."""
MOST_OF_BODY = 50_000_000
"""The most bytes of a note's body, with which a file is still read (`READ_LIMIT`)."""

_Command = TypeVar("_Command", bound=Callable[..., Any])
_DASH = "-"
_LITERAL = f"{__name__}.literal"
_PATIENCE = 3.0  # seconds without a byte before it says what it waits for
_PIECE = 1 << 16
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


class TextCommand(click.Command):
    """A command with a TEXT, which remembers whether a `-` was given after `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments as usual; click itself forgets where `--` was."""
        ctx.meta[_LITERAL] = "--" in args and _DASH in args[args.index("--") :]
        return super().parse_args(ctx, args)


@dataclass(frozen=True, slots=True)
class GivenText:
    """A TEXT as it stands on the command line, before standard input is read.

    Attributes:
        words: What was given; None if nothing was.
        by_dash: Whether it is the `-` that names standard input.
        name: What takes standard input: `-`, or an option such as `-b -`.
    """

    words: str | None
    by_dash: bool = False
    name: str = _DASH

    def read(self, what: str, *, most: int = MOST_OF_TEXT) -> str:
        """Return the text, from standard input if it is named or nothing else was given.

        `what` completes the sentence "There is nothing to".

        Raises:
            UsageError: There is none, or more than `most` bytes of it.
        """
        if self.by_dash or (self.words is None and is_redirected()):
            return _checked(read_input(most).strip(), what, most)
        self._leave_input()
        return _checked(self.words or "", what, most)

    def read_option(self, *, most: int) -> str | None:
        """Return the text of an option, from standard input only by `-`; None if it isn't given.

        Raises:
            UsageError: There are more than `most` bytes of it.
        """
        if not self.by_dash:
            self._leave_input()
            return self.words
        text = read_input(most)
        if not text.strip():
            note("kbtui: Standard input was empty, so there is no text.")
        return text

    def read_appended(self, what: str) -> str:
        """Return the text with what standard input was redirected to below it; else as `read`."""
        if self.by_dash or self.words is None or not is_redirected():
            return self.read(what)
        parts = (self.words.strip(), read_input(MOST_OF_TEXT).strip())
        return _checked("\n\n".join(filter(None, parts)), what, MOST_OF_TEXT)

    def _leave_input(self) -> None:
        """Say at the end of the command if something waits on standard input, and leave it."""

        def mention() -> None:
            if is_redirected() and _waiting_bytes():
                note(f"kbtui: What waits on standard input was left there; `{self.name}` takes it.")

        click.get_current_context().call_on_close(mention)


def text_argument(
    name: str = "text", *, metavar: str = "[TEXT|-]", one_word: bool = False
) -> Callable[[_Command], _Command]:
    """Declare the TEXT of a `TextCommand`; the command gets a `GivenText`.

    It may be several words without quotes, unless it is to be `one_word`.
    """
    nargs = 1 if one_word else -1
    return click.argument(
        name, nargs=nargs, required=False, metavar=metavar, callback=_from_argument
    )


def text_option(*names: str, help: str) -> Callable[[_Command], _Command]:
    """Declare an option with a text, which `-` reads from standard input."""
    return click.option(*names, metavar="TEXT|-", help=help, callback=_from_option)


def _from_argument(
    ctx: click.Context, _param: click.Parameter, value: str | tuple[str, ...] | None
) -> GivenText:
    words = " ".join(value) if isinstance(value, tuple) else value
    return GivenText(words or None, words == _DASH and not ctx.meta.get(_LITERAL))


def _from_option(_ctx: click.Context, param: click.Parameter, value: str | None) -> GivenText:
    return GivenText(value, value == _DASH, f"{param.opts[0]} {_DASH}")


def is_redirected() -> bool:
    """Return whether standard input is a pipe, a socket or a file: something that has an end."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # it is closed, or an object of whoever calls us
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)


def read_input(most: int) -> str:
    r"""Read standard input to its end, without control characters and with ``\n`` between lines.

    What doesn't survive is said on standard error.

    Raises:
        UsageError: It has more than `most` bytes, or can't be read.
    """
    from kbtui.workspace.files import decode

    try:
        data = _read_bytes(most)
    except OSError as error:
        raise UsageError(
            f"Standard input can't be read: {error.strerror}.",
            "Give the text as an argument, or pipe it in.",
        ) from error
    decoded = decode(data)
    text = decoded.text
    if not decoded.exact:
        text = _in_locale(data) or text
        if bad := text.count("\ufffd"):
            note(
                f"kbtui: {counted(bad, 'character')} can't be read as UTF-8 and became \ufffd;"
                " `iconv -t utf-8` before it may help."
            )
        elif text is decoded.text:
            note(
                f"kbtui: The text isn't UTF-8 and was read as {decoded.encoding};"
                " `iconv -t utf-8` before it helps if letters are wrong."
            )
    plain, escapes = without_escapes(text.replace("\r\n", "\n").replace("\r", "\n"))
    plain, controls = _CONTROLS.subn("", plain)
    if escapes or controls:
        note("kbtui: Control characters and colour codes were left out of the text.")
    return plain


def _read_bytes(most: int) -> bytes:
    if sys.stdin.isatty():
        note("Type the text. Ctrl-D on a line of its own ends it, Ctrl-C stops.")
    descriptor, data, waits = sys.stdin.fileno(), bytearray(), not sys.stdin.isatty()
    while True:
        if waits and not select.select([descriptor], [], [], _PATIENCE)[0]:
            waits = False
            note("kbtui: Waiting for standard input to end. Ctrl-C stops; `</dev/null` gives none.")
        select.select([descriptor], [], [])  # it may have been made non-blocking
        if not (piece := os.read(descriptor, _PIECE)):
            return bytes(data)
        data += piece
        if len(data) > most:
            raise _too_long(most)


def _in_locale(data: bytes) -> str:
    """Decode bytes that aren't UTF-8 in the terminal's encoding; "" if that can't be either."""
    try:
        return data.decode(sys.stdin.encoding, "strict")
    except (UnicodeDecodeError, LookupError):
        return ""


def _checked(text: str, what: str, most: int) -> str:
    if not text.strip():
        raise UsageError(
            f"There is nothing to {what}.",
            "Give the text as an argument, or pipe it in; `-` reads standard input.",
        )
    if len(text.encode("utf-8", "surrogatepass")) > most:
        raise _too_long(most)
    return text


def _too_long(most: int) -> UsageError:
    return UsageError(
        f"The text is too long: this command takes {most // 1000:,} kB at most.",
        "`kbtui new reference TITLE -b -` makes a note of it, `kbtui import FILE` a document.",
    )


def _waiting_bytes() -> int:
    count = array.array("i", [0])
    try:
        fcntl.ioctl(sys.stdin.fileno(), termios.FIONREAD, count)
    except OSError:
        return 0
    return count[0]
