"""A real terminal for tests and benchmarks: a pty with a screen that can be read.

The program under test sees what it would see in a terminal emulator: a window size, answers to
the queries that it sends, and keys. Nothing sleeps: every wait ends when its condition holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

import pyte

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ENTER, ESC, TAB, UP, DOWN = "\r", "\x1b", "\t", "\x1b[A", "\x1b[B"
SHIFT_TAB = "\x1b[Z"
CTRL_C, CTRL_D, CTRL_J, CTRL_S = "\x03", "\x04", "\n", "\x13"
F = {
    n: f"\x1bO{'PQRS'[n - 1]}" if n <= 4 else f"\x1b[{[15, 17, 18, 19, 20, 21][n - 5]}~"
    for n in range(1, 11)
}
DEADLINE = 120.0
"""Seconds: a machine that is ten times as slow, and busy, gets there too."""
_ANSWERS = {"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?62;c"}


class Terminal:
    """One program in one pty.

    Args:
        argv: The program and its arguments.
        env: Its whole environment; TERM and the size are added.
        size: Columns and rows.
        name: What it calls itself.
        answers: What it says to queries of these, besides the usual.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        size: tuple[int, int] = (120, 40),
        name: str = "xterm-256color",
        answers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._answers = {**_ANSWERS, **answers}
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self.output = bytearray()
        self.status: int | None = None
        self.started = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:  # pragma: no cover - the child becomes the program
            _set_size(0, *size)  # before the program can ask
            kept = {k: v for k, v in env.items() if k not in {"COLUMNS", "LINES"}}  # they win
            full = {**kept, "TERM": name, "COLORTERM": "truecolor"}
            os.execvpe(argv[0], list(argv), full)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def text(self) -> str:
        """What stands on the screen, a line a row."""
        return "\n".join(self._screen.display)

    def resize(self, columns: int, rows: int) -> None:
        """Change the window's size, as a window manager would."""
        self._screen.resize(rows, columns)
        _set_size(self._fd, columns, rows)

    def send(self, keys: str) -> float:
        """Type; returns the time of the key press."""
        at = time.perf_counter()
        os.write(self._fd, keys.encode())
        return at

    def wait(self, condition: Callable[[str], bool], timeout: float = DEADLINE) -> float:
        """Read until the screen meets `condition`; returns the time when it did.

        Raises:
            TimeoutError: it never did; the message shows the last screen.
        """
        end = time.perf_counter() + timeout
        while not condition(self.text):
            if time.perf_counter() > end or not self._pump():
                raise TimeoutError(f"the screen never came; it shows:\n{self.text}")
        return time.perf_counter()

    def wait_for(self, *texts: str, timeout: float = DEADLINE) -> float:
        """Read until all `texts` stand on the screen."""
        try:
            return self.wait(lambda screen: all(text in screen for text in texts), timeout)
        except TimeoutError as error:
            raise TimeoutError(f"waiting for {texts}: {error}") from None

    def wait_gone(self, text: str, timeout: float = DEADLINE) -> float:
        """Read until `text` no longer stands on the screen."""
        return self.wait(lambda screen: text not in screen, timeout)

    def wait_silent(self, seconds: float, timeout: float = DEADLINE) -> None:
        """Read until the program has sent nothing for so long.

        Raises:
            TimeoutError: it never stopped; the message shows what it sent last.
        """
        started = last = time.perf_counter()
        while time.perf_counter() - last < seconds:
            before = len(self.output)
            self._pump()
            if len(self.output) > before:
                last = time.perf_counter()
            if last - started > timeout:
                raise TimeoutError(f"it goes on sending: {bytes(self.output[-400:])!r}")

    def wait_exit(self, timeout: float = DEADLINE) -> int:
        """Read until the program ends; returns its exit status (negative: the signal).

        Raises:
            TimeoutError: it is still running.
        """
        end = time.perf_counter() + timeout
        while self.status is None:
            if time.perf_counter() > end:
                raise TimeoutError(f"the program still runs; it shows:\n{self.text}")
            self._pump()
            self._reap()
        return self.status

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send the program a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def close(self) -> None:
        """End the program, whatever it is doing."""
        if self.status is None:
            self.kill()
            with contextlib.suppress(TimeoutError):
                self.wait_exit()
        with contextlib.suppress(OSError):
            os.close(self._fd)

    def _reap(self) -> None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            self.status = 0
        else:
            if pid:
                while self._is_readable(0) and self._pump():  # its last words
                    pass
                self.status = os.waitstatus_to_exitcode(status)

    def _is_readable(self, milliseconds: int) -> bool:
        poll = select.poll()  # unlike select it takes descriptors beyond the 1,024th
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(milliseconds))

    def _pump(self) -> bool:
        """Read what there is, for at most 20 ms; False when the program is gone."""
        if not self._is_readable(20):
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self.output += data
        for query, answer in self._answers.items():
            if query.encode() in data:
                os.write(self._fd, answer.encode())
        self._stream.feed(data)
        return bool(data)


def _set_size(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
