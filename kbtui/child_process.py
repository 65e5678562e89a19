"""A child process that answers each line with a line, in turn."""

from __future__ import annotations

import math
import os
import selectors
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

_POLL_SECONDS = 0.1
_CHUNK = 1 << 16
_MOST_OWED = 4


class StuckError(Exception):
    """The child has been silent for too long."""


class BusyError(Exception):
    """There is no answer yet, and no time to wait for it."""


class ClosedError(Exception):
    """Nobody waits for an answer any more."""


class ChildProcess:
    """One child; for one thread at a time.

    Args:
        command: Its command line.
        environment: All its variables.
        patience: Seconds without a byte after which a child that owes an answer is stuck.

    Raises:
        OSError: it can't be started.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], patience: float = math.inf
    ) -> None:
        self._patience = patience
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C in the terminal is not for it
            bufsize=0,
        )
        assert self._process.stdin is not None  # noqa: S101 — told to mypy
        assert self._process.stdout is not None  # noqa: S101
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._unsent = b""
        self._unread: list[bytes] = []  # what came since the last line break
        self._answers: deque[bytes] = deque()
        self._owed = 0
        self._heard = time.monotonic()

    @property
    def is_alive(self) -> bool:
        """True while it runs."""
        return self._process.poll() is None

    def ask(
        self,
        line: bytes,
        seconds: float | None,
        closing: Callable[[], bool],
        most: float = math.inf,
    ) -> bytes:
        """Send a line, and get the one that answers it.

        Args:
            line: What to send, without a line break.
            seconds: How long there is time for it; None: as long as it isn't stuck.
            closing: Whether to give up now.
            most: Bytes of an answer, after which it isn't read on.

        Raises:
            StuckError: it has been silent for too long.
            BusyError: the time is over; the answer is passed over when it comes.
            ClosedError: `closing` said so.
            OSError: it has ended, or its answer is too long.
        """
        until = None if seconds is None else time.monotonic() + seconds
        asked = False
        with selectors.DefaultSelector() as selector:
            selector.register(self._from, selectors.EVENT_READ)
            while True:
                if not asked and self._owed < _MOST_OWED:
                    self._send(line)
                    asked = True
                answer = self._next_answer()
                if answer is None:
                    if sum(map(len, self._unread)) > most:
                        raise BrokenPipeError("the answer is too long")
                    self._check(until, closing)
                    self._move(selector)
                elif asked and not self._owed:
                    return answer

    def end(self) -> int:
        """End it, as it has nothing to put away; tells how it ended, as `subprocess` does."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        return self._process.wait()

    def _send(self, line: bytes) -> None:
        if not self._owed:
            self._heard = time.monotonic()
        self._unsent += line + b"\n"
        self._owed += 1

    def _next_answer(self) -> bytes | None:
        if not self._answers:
            return None
        self._owed -= 1
        return self._answers.popleft()

    def _take(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._answers.append(b"".join([*self._unread, line]))
            self._unread.clear()
        self._unread.append(rest)

    def _check(self, until: float | None, closing: Callable[[], bool]) -> None:
        now = time.monotonic()
        if closing():
            raise ClosedError
        if now - self._heard > self._patience:
            raise StuckError
        if until is not None and now > until:
            raise BusyError

    def _move(self, selector: selectors.BaseSelector) -> None:
        """Wait a moment until something can be sent or read, and do that."""
        sending = self._to in selector.get_map()
        if self._unsent and not sending:
            selector.register(self._to, selectors.EVENT_WRITE)
        elif sending and not self._unsent:
            selector.unregister(self._to)
        for key, _ in selector.select(_POLL_SECONDS):
            self._heard = time.monotonic()
            if key.fd == self._to:
                self._unsent = self._unsent[os.write(self._to, self._unsent[:_CHUNK]) :]
            elif data := os.read(self._from, _CHUNK):
                self._take(data)
            else:
                raise BrokenPipeError("the child has ended")
