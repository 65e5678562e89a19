"""The app's terminal: one door for everything that it sends, and the way out of it.

Textual's driver knows the modes of a terminal and how to stop and go on; what comes in is read
here. The list in `kbtui/README.md` says why.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import struct
import sys
import time
from typing import TYPE_CHECKING, Any, Final, TextIO

from textual import events
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from kbtui.text import counted
from kbtui.tui.terminal import first_keys, modes, sixel
from kbtui.tui.terminal.frame import Frame
from kbtui.tui.terminal.graphics import Graphics, has_graphics
from kbtui.tui.terminal.input_events import InputEvents
from kbtui.tui.terminal.input_tokens import (
    MOST_PASTED_BYTES,
    QUIET_PASTE_SECONDS,
    InputTokenizer,
    Pasted,
    PasteRefused,
    PasteUnfinished,
    Sequence,
    Token,
    Typed,
)
from kbtui.tui.terminal.type_ahead import KeysInOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual.app import App

    from kbtui.tui.terminal.picture_cells import Pictures

_READ_BYTES: Final = 65_536
_MOST_CELLS: Final = 1_000_000
"""Of a size that a terminal reports; the largest screens have a third of it."""
_MOST_WAITING: Final = 1_000
"""Events that the app hasn't taken: whoever sends more has to wait, as for any slow program."""
_WAIT_SECONDS: Final = 0.02
_ESCAPE_SECONDS: Final = 0.1
_REMOTE_ESCAPE_SECONDS: Final = 0.5
_LONGEST_ESCAPE_SECONDS: Final = 5.0


class TerminalNotice(Message):
    """Something about the input that the user should know."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class TerminalFailed(Message):
    """Nothing more can be read or written; the app can only end."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _Output:
    """What the writing thread writes to; it goes on when the terminal fails.

    If it died, nobody would empty its queue, and the app would stand still at the next drawing.
    """

    def __init__(self, file: TextIO, fail: Callable[[OSError], None]) -> None:
        self._fileno = file.fileno()
        self._encoding = file.encoding
        self._fail = fail
        self._parts: list[str] = []
        self._has_failed = False

    def fileno(self) -> int:
        return self._fileno

    def write(self, text: str) -> None:
        self._parts.append(text)

    def flush(self) -> None:
        data = memoryview("".join(self._parts).encode(self._encoding, "backslashreplace"))
        self._parts.clear()
        while data and not self._has_failed:
            try:
                data = data[os.write(self._fileno, data) :]
            except BlockingIOError:  # another program has made the terminal so
                os.set_blocking(self._fileno, True)
            except OSError as error:
                self._has_failed = True
                if error.errno != errno.EIO:  # it has hung up; `SignalWatch` sees to that
                    self._fail(error)


def escape_seconds(environment: Mapping[str, str], milliseconds: int = 0) -> float:
    """Return how long the rest of a key may come after an Esc.

    Args:
        environment: ESCDELAY, in milliseconds, is ncurses' variable; over SSH the parts of a key
            may be sent one by one.
        milliseconds: The user's setting, which wins; 0 for none.
    """
    told = environment.get("ESCDELAY", "")
    if not milliseconds and told.isdecimal() and len(told) < 10:
        milliseconds = int(told)
    if milliseconds:
        return min(milliseconds / 1000, _LONGEST_ESCAPE_SECONDS)
    is_remote = any(environment.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))
    return _REMOTE_ESCAPE_SECONDS if is_remote else _ESCAPE_SECONDS


def _never_held_up(attributes: list[Any] | None) -> list[Any] | None:
    """Return the attributes of a terminal whose output no key stops."""
    import termios

    return attributes and [attributes[0] & ~termios.IXON, *attributes[1:]]


def _restore(terminal: int, attributes: list[Any] | None) -> None:
    import termios

    if attributes is not None:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, attributes)


class TerminalDriver(LinuxDriver):
    """Textual's driver with a reader of our own, and the terminal's own size."""

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self.frame = Frame()
        self.graphics: Pictures | None = None
        if has_graphics(os.environ):
            self.graphics = Graphics(self.write)
        if sys.__stderr__ is not None:
            self._file: Any = _Output(sys.__stderr__, self._fail)
        self._size = size or self._get_terminal_size()
        # They outlive a suspension: a paste may go on after it.
        self._tokenizer = InputTokenizer(escape_seconds(os.environ))
        self._events = InputEvents(debug=debug)
        self._wakeup: tuple[int, int] | None = None
        self._colours: int | None = None

    def wait_after_escape(self, milliseconds: int) -> None:
        """Use the user's setting; 0 for what suits the line."""
        self._tokenizer.escape_seconds = escape_seconds(os.environ, milliseconds)

    def use_mouse(self, *, wanted: bool) -> None:
        """Turn the reports of the mouse on or off; Textual chooses only before it starts."""
        if self._mouse == wanted:
            return
        self._mouse = True  # both methods do nothing without it
        if wanted:
            self._enable_mouse_support()
        else:
            self._disable_mouse_support()
        self._mouse = wanted

    # The size

    def _get_terminal_size(self) -> tuple[int, int]:
        """Ask the terminal; COLUMNS and LINES, often exported for others, count if it can't say."""
        self.frame.forget()  # it is asked when the terminal has changed
        for number in (self._file.fileno(), self.fileno):
            with contextlib.suppress(OSError):
                columns, rows = os.get_terminal_size(number)
                if columns > 0 and rows > 0:
                    return columns, rows
        columns, rows = shutil.get_terminal_size()
        return columns, rows

    # Starting and stopping

    def start_application_mode(self) -> None:
        """Start, and restore in the end what the terminal was before anything was imported."""
        self._wakeup = self._wakeup or os.pipe()
        modes.turned_on()
        self.frame.forget()
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self.attrs_before = first_keys.saved_attributes() or self.attrs_before
        if self.graphics is not None:
            self.graphics.send_again()
        else:
            self.write(sixel.ASKED)

    def stop_application_mode(self) -> None:
        """Stop, and free the pictures that the terminal keeps.

        Until `close` all is restored but that Ctrl+S holds the output up: `close` would wait for
        the Ctrl+Q of somebody who sees no reason to press it.
        """
        if self.graphics is not None:
            self.graphics.remove()
        restored, self.attrs_before = self.attrs_before, _never_held_up(self.attrs_before)
        super().stop_application_mode()
        self.attrs_before = restored

    def disable_input(self) -> None:
        """Wake the reader, which waits for nothing but input, and stop it."""
        self.exit_event.set()
        if self._wakeup is not None:
            os.write(self._wakeup[1], b"\0")
        if self._key_thread is not None:
            self._key_thread.join()
        self.exit_event.clear()
        super().disable_input()

    def close(self) -> None:
        """Stop writing, restore the terminal, and close what woke the reader."""
        super().close()
        _restore(self.fileno, self.attrs_before)
        modes.turned_off()
        wakeup, self._wakeup = self._wakeup, None
        for number in wakeup or ():
            os.close(number)

    # Input

    def run_input_thread(self) -> None:
        """Read until `disable_input`."""
        try:
            self._read_all()
        except Exception as error:  # noqa: BLE001 - the app ends with it
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.process_message(TerminalFailed(error))

    def _read_all(self) -> None:
        if self._wakeup is None:
            return
        poll = select.poll()
        poll.register(self.fileno, select.POLLIN)
        poll.register(self._wakeup[0], select.POLLIN)
        while not self.exit_event.is_set():
            deadline = self._tokenizer.deadline
            wait = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            # Asked again: on a busy machine more may have come since the wait was over.
            if any(
                number == self.fileno for timeout in (wait, 0) for number, _ in poll.poll(timeout)
            ):
                if not self._read():
                    return
            else:
                for token in self._tokenizer.tick(time.monotonic()):
                    self._handle(token)
            self._wait_for_app()

    def _read(self) -> bool:
        """Read and handle what there is; return False when nothing can come any more."""
        try:
            data = os.read(self.fileno, _READ_BYTES)
        except BlockingIOError:  # another program has made the terminal so
            os.set_blocking(self.fileno, True)
            return True
        except OSError as error:
            if error.errno == errno.EIO:  # it has hung up; `SignalWatch` sees to that
                return False
            raise
        for token in self._tokenizer.feed(data, time.monotonic()):
            self._handle(token)
        return bool(data)

    def _handle(self, token: Token) -> None:
        match token:
            case Sequence(text) if (colours := sixel.colours_of(text)) is not None:
                self._colours = colours
            case Sequence(text) if sixel.can_draw(text):
                self._draw_sixels()
            case Typed() | Sequence():
                for message in self._events.read(token):
                    if self._is_possible(message):
                        self.process_message(message)
            case Pasted(text, escapes):
                self.process_message(events.Paste(text))
                if escapes:
                    verb = "was" if escapes == 1 else "were"
                    self._tell(
                        f"{counted(escapes, 'escape sequence')} in it (colours and the"
                        f" like) {verb} left out of what was pasted."
                    )
            case PasteRefused(size):
                self._tell(
                    f"What was pasted is too large for a text ({size / 1e6:,.1f} MB, at most"
                    f" {MOST_PASTED_BYTES / 1e6:.0f}), so nothing of it was put in. Save it as a"
                    " file; /import FILE shows what is in it."
                )
            case PasteUnfinished(size):
                self._tell(
                    f"A paste hasn't ended ({counted(size, 'byte')} so far), and until it does no"
                    f" key works. When nothing more has come for {QUIET_PASTE_SECONDS:.0f} seconds,"
                    " Ctrl+C ends it; what has come is kept."
                )

    def _draw_sixels(self) -> None:
        """Draw pictures that come from now on as sixels."""
        if self.graphics is None:
            self.graphics = self.frame.sixels = sixel.Sixels(self._pixels_of_cell, self._colours)

    def _pixels_of_cell(self) -> tuple[int, int]:
        """Return the columns and rows of pixels in a cell."""
        import fcntl
        import termios

        with contextlib.suppress(OSError):
            told = fcntl.ioctl(self._file.fileno(), termios.TIOCGWINSZ, bytes(8))
            rows, columns, wide, high = struct.unpack("4H", told)
            if rows and columns and wide >= columns and high >= rows:
                return wide // columns, high // rows
        return sixel.VT340_CELL

    def _is_possible(self, message: Message) -> bool:
        """Return whether a report fits the terminal: garbage can look like one."""
        if isinstance(message, events.Resize):
            columns, rows = message.size
            return columns > 0 and rows > 0 and columns * rows <= _MOST_CELLS
        if isinstance(message, events.MouseEvent):
            columns, rows = self._app.size
            return message.x < columns and message.y < rows
        return True

    def _tell(self, text: str) -> None:
        self.process_message(TerminalNotice(text))

    def _wait_for_app(self) -> None:
        """Wait while the app has much to do: without an end, input would fill the memory."""
        app = self._app
        while isinstance(app, KeysInOrder) and app.backlog > _MOST_WAITING:
            if self.exit_event.wait(_WAIT_SECONDS):
                return
