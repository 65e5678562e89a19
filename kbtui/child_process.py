"""A child process that answers each input line with an output line, in order."""

from __future__ import annotations

import math
import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_POLL_SECONDS = 0.1
_CHUNK = 1 << 16
_MAX_PENDING = 4


def own_program(module: str, *arguments: str) -> list[str]:
    """The command line of a module of this package, to run with `own_paths` in its environment."""
    # -P: import no modules from the current directory.
    return [sys.executable, "-P", "-m", module, *arguments]


def own_paths() -> dict[str, str]:
    """The environment variable by which a child finds this very package."""
    package = str(Path(__file__).resolve().parents[1])
    paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": paths}


def start_detached(
    command: Sequence[str], environment: Mapping[str, str], pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a process that belongs to no terminal, and goes on after this one.

    Raises:
        OSError: It can't be started.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        pass_fds=pass_fds,
        start_new_session=True,
    )


class StuckError(Exception):
    """The child hasn't written anything for too long."""


class BusyError(Exception):
    """There was no answer before the deadline."""


class ClosedError(Exception):
    """The caller gave up waiting."""


class ChildProcess:
    """A child process; not thread-safe.

    Args:
        command: Its command line.
        environment: Its complete environment.
        patience: Seconds without output after which a child with a pending request is stuck.

    Raises:
        OSError: The child can't be started.
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
            start_new_session=True,  # shields it from Ctrl-C in the terminal
            bufsize=0,
        )
        assert self._process.stdin is not None  # noqa: S101 - for mypy
        assert self._process.stdout is not None  # noqa: S101
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        self._unsent = b""
        self._unread: list[bytes] = []  # output since the last line break
        self._answers: deque[bytes] = deque()
        self._pending = 0
        self._last_activity = time.monotonic()

    @property
    def is_alive(self) -> bool:
        """Whether the child is running."""
        return self._process.poll() is None

    def ask(
        self,
        line: bytes,
        seconds: float | None,
        closing: Callable[[], bool],
        limit: float = math.inf,
    ) -> bytes:
        """Send a line and return its answer.

        Args:
            line: The request, without a line break.
            seconds: The timeout; None waits until the child is stuck.
            closing: Polled; returns whether to give up.
            limit: The maximum length of an answer in bytes.

        Raises:
            StuckError: The child hasn't written anything for too long.
            BusyError: The timeout has passed; the answer is discarded when it arrives.
            ClosedError: `closing` returned True.
            OSError: The child has exited, or its answer is too long.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        sent = False
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while True:
                if not sent and self._pending < _MAX_PENDING:
                    self._send(line)
                    sent = True
                answer = self._next_answer()
                if answer is None:
                    if sum(map(len, self._unread)) > limit:
                        raise BrokenPipeError("the answer is too long")
                    self._check(deadline, closing)
                    self._transfer(selector)
                elif sent and not self._pending:
                    return answer

    def end(self) -> int:
        """Kill the child, which has no state to save, and return its exit status."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        return self._process.wait()

    def _send(self, line: bytes) -> None:
        if not self._pending:
            self._last_activity = time.monotonic()
        self._unsent += line + b"\n"
        self._pending += 1

    def _next_answer(self) -> bytes | None:
        if not self._answers:
            return None
        self._pending -= 1
        return self._answers.popleft()

    def _receive(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._answers.append(b"".join([*self._unread, line]))
            self._unread.clear()
        self._unread.append(rest)

    def _check(self, deadline: float | None, closing: Callable[[], bool]) -> None:
        now = time.monotonic()
        if closing():
            raise ClosedError
        if now - self._last_activity > self._patience:
            raise StuckError
        if deadline is not None and now > deadline:
            raise BusyError

    def _transfer(self, selector: selectors.BaseSelector) -> None:
        """Wait briefly until the pipes are ready, then write and read."""
        sending = self._stdin in selector.get_map()
        if self._unsent and not sending:
            selector.register(self._stdin, selectors.EVENT_WRITE)
        elif sending and not self._unsent:
            selector.unregister(self._stdin)
        for key, _ in selector.select(_POLL_SECONDS):
            self._last_activity = time.monotonic()
            if key.fd == self._stdin:
                self._unsent = self._unsent[os.write(self._stdin, self._unsent[:_CHUNK]) :]
            elif data := os.read(self._stdout, _CHUNK):
                self._receive(data)
            else:
                raise BrokenPipeError("the child has ended")
