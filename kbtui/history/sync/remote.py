"""Where the history is synced to: an address, how it is shown and told, and the line to it.

The other machine may fall silent: a line waits a while, and only as long as somebody wants it.
"""

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
_HOW = (
    "Name a folder (a stick, a shared drive), https://HOST/PATH, ssh://HOST/PATH or"
    " git@HOST:PATH.git."
)


@dataclass(frozen=True, slots=True)
class Address:
    """A checked address; `text` may hold a password, `shown` never does.

    One that is `known` was synced with before: nothing is made there any more.
    """

    text: str
    folder: Path | None = None
    known: bool = False

    @property
    def shown(self) -> str:
        """The form that may be shown and logged."""
        return shown_address(self.text)


class SyncWatcher:
    """Who watches a sync: is told how far it is, and may stop it."""

    def __init__(
        self,
        tell: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] | None = None,
        count: Callable[[str, int, int], None] | None = None,
    ) -> None:
        """Tell `tell` each step, and `count` how much of how much of one is done; None: `tell`."""
        self._tell = tell
        self._stopped = stopped or (lambda: False)
        self._count = count or (lambda step, done, of: tell(f"{step} {done:,} of {of:,}"))

    def tell(self, text: str) -> None:
        """Say what is being done; raises as `check`."""
        self.check()
        self._tell(clean_line(text))

    def count(self, step: str, done: int, total: int) -> None:
        """Say how much of a step is done; raises as `check`."""
        self.check()
        self._count(clean_line(step), done, total)

    def check(self) -> None:
        """Give up if somebody wants that.

        Raises:
            StoppedError: They do.
        """
        if self._stopped():
            raise StoppedError("The sync was stopped.", "Nothing is lost. Start it again.")


def parse_address(text: str, beside: Path | None = None) -> Address:
    """Understand what a person typed.

    Args:
        text: The address.
        beside: What relative folders start from; the current one if None.

    Raises:
        UsageError: It is no address that can be synced with.
    """
    text = text.strip()
    if not text or text.startswith("-") or clean(text) != text or "\n" in text:
        raise UsageError("That is no address to sync with.", _HOW)
    if "://" in text:
        return _parse_url(text)
    is_there = os.path.exists(text)  # never raises
    if _SSH_SHORT.fullmatch(text) and not is_there:
        return Address(text)
    if ":" in text.partition("/")[0] and not is_there:
        raise UsageError(f"{clean_line(text)} is no address to sync with.", _HOW)
    return _folder(Path(text), beside)


def _parse_url(text: str) -> Address:
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{shown_address(text)} is no address: {error}.", _HOW) from error
    scheme = parts.scheme.lower()
    if scheme == "file":
        return _parse_file_url(parts)
    if scheme not in SCHEMES or not host or host.startswith("-") or not parts.path.strip("/"):
        raise UsageError(f"{shown_address(text)} is no address to sync with.", _HOW)
    return Address(text)


def _parse_file_url(parts: SplitResult) -> Address:
    """A folder as RFC 8089 writes it: percent-encoded, on this machine."""
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
    except (OSError, RuntimeError) as error:  # nobody's home, links in a circle
        raise UsageError(f"{clean_line(str(path))} can't be found: {error}", _HOW) from error
    return Address(str(place), place)


def shown_address(text: str) -> str:
    """An address without what must stay secret in it."""
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
        user = ""  # a token may stand there alone
    return clean_line(urlunsplit((parts.scheme, f"{user}{host}{port}", parts.path, "", "")))


_AGAIN = "Nothing is lost: what you have stays here. Try again later."
_ACCESS = (
    "For https use an access token: https://USER:TOKEN@HOST/PATH. For ssh see that"
    " `ssh HOST` works without asking (ssh-agent)."
)
_DENIED = ("permission denied", "authentication", "access denied", "401", "403", "not authorized")
_ABSENT = ("not found", "does not appear to be a git", "no such", "does not exist", "404")


def remote_error(error: Exception, address: Address) -> KbtuiError | None:
    """Say what a failed connection means; None for a fault of our own."""
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
        (HTTPUnauthorized, RemoteError(f"{place} wants to know who you are.", _ACCESS)),
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
        return _by_words(" ".join(lines) or "the connection was closed", place)
    if isinstance(error, GitProtocolError | HTTPError | OSError | EOFError):
        return _by_words(str(error), place)
    if isinstance(error, AssertionError | ValueError | KeyError):  # an answer that is no git's
        return RemoteError(f"{place} doesn't answer as git does.", "Check the address.")
    return None


_SHORTLY = (
    ("connection refused", "the connection was refused"),
    ("failed to resolve", "there is no such machine, or no network"),
    ("name or service not known", "there is no such machine, or no network"),
    ("temporary failure in name resolution", "there is no network"),
    ("timed out", "no answer in time"),
    ("certificate", "its certificate is not trusted"),
    ("reset by peer", "the connection broke"),
    ("broken pipe", "the connection broke"),
)


def _by_words(said: str, place: str) -> RemoteError:
    said = clean_line(said).strip(". ")
    said = next((short for words, short in _SHORTLY if words in said.lower()), said)
    low = said.lower()
    if any(word in low for word in _DENIED):
        return RemoteError(f"{place} doesn't let us in: {said[:200]}.", _ACCESS)
    if any(word in low for word in _ABSENT) and "name or service" not in low:
        return RemoteError(
            f"There is no repository at {place}: {said[:200]}.", "Check the address."
        )
    return RemoteError(f"{place} can't be reached: {said[:200]}.", _AGAIN)


_LOOK_SECONDS = 0.2


class HangUp:
    """Notes the connections that a pool manager of urllib3's makes, and can cut them."""

    def __init__(self, manager: Any) -> None:
        from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

        self._sockets: list[socket.socket] = []
        manager.pool_classes_by_scheme = {
            "http": self._noting(HTTPConnectionPool),
            "https": self._noting(HTTPSConnectionPool),
        }

    def _noting(self, pool: Any) -> Any:
        sockets = self._sockets

        def connect(connection: Any) -> None:
            pool.ConnectionCls.connect(connection)
            sockets.append(connection.sock)

        noting = type("NotingConnection", (pool.ConnectionCls,), {"connect": connect})
        return type("NotingPool", (pool,), {"ConnectionCls": noting})

    @contextlib.contextmanager
    def when_stopped(self, watcher: SyncWatcher) -> Iterator[None]:
        """Cut all connections of the block as soon as somebody wants it to end."""
        done = threading.Event()

        def look() -> None:
            while not done.wait(_LOOK_SECONDS):
                try:
                    watcher.check()
                except StoppedError:
                    self._cut()

        thread = threading.Thread(target=look, name="hang-up", daemon=True)
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
    """Both directions of a connection, as file descriptors.

    Args:
        coming: What is read from.
        going: What is written to; may be the same.
        watcher: May stop the waiting.
        seconds: How long the other end may be silent.

    Attributes:
        kept: What has to live as long as the line.
    """

    def __init__(self, coming: int, going: int, watcher: SyncWatcher, seconds: float) -> None:
        super().__init__()
        self._coming = coming
        self._going = going
        self._watcher = watcher
        self._seconds = seconds
        self._ends: list[Callable[[], None]] = []
        self.kept: object = None
        for descriptor in (coming, going):
            os.set_blocking(descriptor, False)
        self.read_fully = io.BufferedReader(self).read

    def on_end(self, end: Callable[[], None]) -> None:
        """Add what ends the connection when it is waited for no longer."""
        self._ends.append(end)

    def readable(self) -> bool:
        """It can be read from."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Wait for something; nothing is the end.

        Raises:
            TimeoutError: The other end is silent.
            StoppedError: Nobody wants to wait any longer.
        """
        self._wait(self._coming, going=False)
        data = os.read(self._coming, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def has_come(self) -> bool:
        """True if something can be read at once."""
        return bool(select.select([self._coming], [], [], 0)[0])

    def send(self, data: bytes) -> int:
        """Write all of it; raises as `readinto`."""
        rest = memoryview(data)
        while rest:
            self._wait(self._going, going=True)
            rest = rest[os.write(self._going, rest) :]
        return len(data)

    def _wait(self, descriptor: int, *, going: bool) -> None:
        deadline = time.monotonic() + self._seconds
        look = select.poll()
        look.register(descriptor, select.POLLOUT if going else select.POLLIN)
        try:
            while True:
                self._watcher.check()
                left = deadline - time.monotonic()
                if look.poll(1000 * max(0.0, min(_LOOK_SECONDS, left))):
                    return
                if left <= 0:
                    raise TimeoutError("timed out")  # noqa: TRY301 — the line is given up below
        except BaseException:
            for end in self._ends:
                end()
            raise
