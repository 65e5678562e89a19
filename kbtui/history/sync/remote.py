"""Remote addresses, translation of connection errors, and streams with timeout and cancellation."""

from __future__ import annotations

import contextlib
import io
import os
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from kbtui.errors import KbtuiError, RemoteError, StoppedError, UsageError
from kbtui.text import clean, clean_line

SCHEMES = ("https", "http", "ssh", "git")
_SSH_SHORT = re.compile(r"(?:[\w.+-]+@)?[A-Za-z0-9][\w.-]*:[^/\\:].*")
_ADDRESS_HINT = (
    "Name a folder (a stick, a shared drive), https://HOST/PATH, ssh://HOST/PATH or"
    " git@HOST:PATH.git."
)


@dataclass(frozen=True, slots=True)
class Address:
    """A validated address; `text` may contain a password, `shown` never does.

    If it is `known`, it was synced with before, and no repository is created there.
    """

    text: str
    folder: Path | None = None
    known: bool = False

    @property
    def shown(self) -> str:
        """The form for display and logs."""
        return shown_address(self.text)


class SyncWatcher:
    """Receives the progress of a sync and may cancel it."""

    def __init__(
        self,
        tell: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] | None = None,
        count: Callable[[str, int, int], None] | None = None,
    ) -> None:
        """Call `tell` for each step, and `count` (default: `tell`) for progress within one."""
        self._tell = tell
        self._stopped = stopped or (lambda: False)
        self._count = count or (lambda step, done, of: tell(f"{step} {done:,} of {of:,}"))

    def tell(self, text: str) -> None:
        """Report a step; raises the same errors as `check`."""
        self.check()
        self._tell(clean_line(text))

    def count(self, step: str, done: int, total: int) -> None:
        """Report how much of a step is done; raises the same errors as `check`."""
        self.check()
        self._count(clean_line(step), done, total)

    def check(self) -> None:
        """Raise if the sync was cancelled.

        Raises:
            StoppedError: It was.
        """
        if self._stopped():
            raise StoppedError("The sync was stopped.", "Nothing is lost. Start it again.")


def parse_address(text: str, beside: Path | None = None) -> Address:
    """Parse an address typed by a person.

    Args:
        text: The address.
        beside: The folder that relative paths start from; None for the current one.

    Raises:
        UsageError: It is no address to sync with.
    """
    text = text.strip()
    if not text or text.startswith("-") or clean(text) != text or "\n" in text:
        raise UsageError("That is no address to sync with.", _ADDRESS_HINT)
    if "://" in text:
        return _parse_url(text)
    is_there = os.path.exists(text)  # never raises
    if _SSH_SHORT.fullmatch(text) and not is_there:
        return Address(text)
    if ":" in text.partition("/")[0] and not is_there:
        raise UsageError(f"{clean_line(text)} is no address to sync with.", _ADDRESS_HINT)
    return _folder(Path(text), beside)


def _parse_url(text: str) -> Address:
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{shown_address(text)} is no address: {error}.", _ADDRESS_HINT) from error
    scheme = parts.scheme.lower()
    if scheme == "file":
        return _parse_file_url(parts)
    if scheme not in SCHEMES or not host or host.startswith("-") or not parts.path.strip("/"):
        raise UsageError(f"{shown_address(text)} is no address to sync with.", _ADDRESS_HINT)
    return Address(text)


def _parse_file_url(parts: SplitResult) -> Address:
    """Parse the URL of a folder on this machine as in RFC 8089, percent-encoded."""
    path = unquote(parts.path)
    is_here = parts.netloc in {"", "localhost"} and path.startswith("/")
    if not is_here or parts.query or parts.fragment or clean(path) != path or "\n" in path:
        raise UsageError(
            f"{shown_address(parts.geturl())} names no folder of this machine.",
            "Write file:///PATH, with %3F for a question mark and %23 for a hash, or just /PATH.",
        )
    return _folder(Path(path), None)


def _folder(path: Path, beside: Path | None) -> Address:
    try:
        place = path.expanduser()
        place = place if place.is_absolute() else (beside or Path.cwd()) / place
        place = place.resolve()
    except (OSError, RuntimeError) as error:  # an unknown user's home, circular links
        raise UsageError(
            f"{clean_line(str(path))} can't be found: {error}", _ADDRESS_HINT
        ) from error
    return Address(str(place), place)


def shown_address(text: str) -> str:
    """Return an address without secrets."""
    if "://" not in text:
        return clean_line(text)
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
        user = f"{parts.username}@" if parts.username and parts.password is None else ""
    except ValueError:
        return "the address"
    if parts.scheme in {"http", "https"}:
        user = ""  # may be a token
    return clean_line(urlunsplit((parts.scheme, f"{user}{host}{port}", parts.path, "", "")))


_RETRY_HINT = "Nothing is lost: what you have stays here. Try again later."
_ACCESS_HINT = (
    "For https use an access token: https://USER:TOKEN@HOST/PATH. For ssh see that"
    " `ssh HOST` works without asking (ssh-agent)."
)
_DENIED = ("permission denied", "authentication", "access denied", "401", "403", "not authorized")
_ABSENT = ("not found", "does not appear to be a git", "no such", "does not exist", "404")


def remote_error(error: Exception, address: Address) -> KbtuiError | None:
    """Translate the error of a failed connection, or return None for a bug of our own."""
    from dulwich.client import (
        HTTPProxyUnauthorized,
        HTTPUnauthorized,
        InvalidWants,
        StrangeHostname,
    )
    from dulwich.errors import GitProtocolError, HangupException, NotGitRepository
    from dulwich.file import FileLocked
    from urllib3.exceptions import HTTPError

    place = address.shown
    known: list[tuple[type[Exception], RemoteError]] = [
        (HTTPUnauthorized, RemoteError(f"{place} wants to know who you are.", _ACCESS_HINT)),
        (
            HTTPProxyUnauthorized,
            RemoteError("The proxy on the way wants a password.", "Set https_proxy with it."),
        ),
        (
            NotGitRepository,
            RemoteError(f"There is no repository at {place}.", "Check the address, or make it."),
        ),
        (StrangeHostname, RemoteError(f"{place} names no machine.", "Check the address.")),
        (InvalidWants, RemoteError(f"{place} changed while it was read.", "Try again.")),
        (
            FileLocked,
            RemoteError(
                f"Another program is writing to {place}.",
                "Try again in a moment. What one that was cut off left there is removed after ten"
                " minutes.",
            ),
        ),
    ]
    found = next((sentence for kind, sentence in known if isinstance(error, kind)), None)
    if found is not None:
        return found
    if isinstance(error, HangupException):
        lines = [line.decode("utf-8", "replace") for line in error.stderr_lines or []]
        return _from_message(" ".join(lines) or "the connection was closed", place)
    if isinstance(error, GitProtocolError | HTTPError | OSError | EOFError):
        return _from_message(str(error), place)
    if isinstance(error, AssertionError | ValueError | KeyError):  # not a git server's answer
        return RemoteError(f"{place} doesn't answer as git does.", "Check the address.")
    return None


_SHORT_MESSAGES = (
    ("connection refused", "the connection was refused"),
    ("failed to resolve", "there is no such machine, or no network"),
    ("name or service not known", "there is no such machine, or no network"),
    ("temporary failure in name resolution", "there is no network"),
    ("timed out", "no answer in time"),
    ("certificate", "its certificate is not trusted"),
    ("reset by peer", "the connection broke"),
    ("broken pipe", "the connection broke"),
)


def _from_message(message: str, place: str) -> RemoteError:
    message = clean_line(message).strip(". ")
    message = next((short for words, short in _SHORT_MESSAGES if words in message.lower()), message)
    lowered = message.lower()
    if any(word in lowered for word in _DENIED):
        return RemoteError(f"{place} doesn't let us in: {message[:200]}.", _ACCESS_HINT)
    if any(word in lowered for word in _ABSENT) and "name or service" not in lowered:
        return RemoteError(
            f"There is no repository at {place}: {message[:200]}.", "Check the address."
        )
    return RemoteError(f"{place} can't be reached: {message[:200]}.", _RETRY_HINT)


_POLL_SECONDS = 0.2


class ConnectionTracker:
    """Tracks the connections of a urllib3 pool manager, to cut them on cancellation."""

    def __init__(self, manager: Any) -> None:
        from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

        self._sockets: list[socket.socket] = []
        manager.pool_classes_by_scheme = {
            "http": self._tracking(HTTPConnectionPool),
            "https": self._tracking(HTTPSConnectionPool),
        }

    def _tracking(self, pool: Any) -> Any:
        sockets = self._sockets

        def connect(connection: Any) -> None:
            pool.ConnectionCls.connect(connection)
            sockets.append(connection.sock)

        noting = type("NotingConnection", (pool.ConnectionCls,), {"connect": connect})
        return type("NotingPool", (pool,), {"ConnectionCls": noting})

    @contextlib.contextmanager
    def cut_when_stopped(self, watcher: SyncWatcher) -> Iterator[None]:
        """Cut all connections of the block as soon as the sync is cancelled."""
        done = threading.Event()

        def poll() -> None:
            while not done.wait(_POLL_SECONDS):
                try:
                    watcher.check()
                except StoppedError:
                    self._cut()

        thread = threading.Thread(target=poll, name="hang-up", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _cut(self) -> None:
        for each in list(self._sockets):
            with contextlib.suppress(OSError):  # it may be closed already
                socket.socket.shutdown(each, socket.SHUT_RDWR)


class DuplexStream(io.RawIOBase):
    """Both directions of a connection, as non-blocking file descriptors with a timeout.

    Args:
        input_fd: The descriptor to read from.
        output_fd: The descriptor to write to; may be the same.
        watcher: May cancel waiting.
        seconds: The timeout while the other end is silent.

    Attributes:
        kept: An object to keep alive as long as the stream.
    """

    def __init__(self, input_fd: int, output_fd: int, watcher: SyncWatcher, seconds: float) -> None:
        super().__init__()
        self._input = input_fd
        self._output = output_fd
        self._watcher = watcher
        self._seconds = seconds
        self._ends: list[Callable[[], None]] = []
        self.kept: object = None
        for descriptor in (input_fd, output_fd):
            os.set_blocking(descriptor, False)
        self.read_fully = io.BufferedReader(self).read

    def on_end(self, end: Callable[[], None]) -> None:
        """Add a function that closes the connection on timeout or cancellation."""
        self._ends.append(end)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Wait for data and read it; 0 bytes mean the end.

        Raises:
            TimeoutError: The other end is silent.
            StoppedError: The sync was cancelled.
        """
        self._wait(self._input, writing=False)
        data = os.read(self._input, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def has_data(self) -> bool:
        """Return whether data can be read at once."""
        return bool(select.select([self._input], [], [], 0)[0])

    def send(self, data: bytes) -> int:
        """Write all data; raises the same errors as `readinto`."""
        rest = memoryview(data)
        while rest:
            self._wait(self._output, writing=True)
            rest = rest[os.write(self._output, rest) :]
        return len(data)

    def _wait(self, descriptor: int, *, writing: bool) -> None:
        deadline = time.monotonic() + self._seconds
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT if writing else select.POLLIN)
        try:
            while True:
                self._watcher.check()
                left = deadline - time.monotonic()
                if poll.poll(1000 * max(0.0, min(_POLL_SECONDS, left))):
                    return
                if left <= 0:
                    raise TimeoutError("timed out")  # noqa: TRY301 — the line is given up below
        except BaseException:
            for end in self._ends:
                end()
            raise
