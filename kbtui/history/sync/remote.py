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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from kbtui.errors import KbtuiError, RemoteError, StoppedError, UsageError
from kbtui.history.sync.git_settings import rewrite
from kbtui.text import clean, clean_line

SCHEMES = ("https", "http", "ssh", "git")
_SSH_SHORT = re.compile(
    r"(?:(?P<user>[\w.+-]+)@)?"
    r"(?:\[(?P<ip>[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)\]|\[(?P<named>[\w.-]+)(?::(?P<port>\d{1,5}))?\]"
    r"|(?P<host>[A-Za-z0-9][\w.-]*)):(?P<path>(?!//)[^\\:].*)"
)
_DRIVE = re.compile(r"[A-Za-z]:/")
_ADDRESS_HINT = (
    "Name a folder (a stick, a shared drive), https://HOST/PATH, ssh://HOST/PATH or"
    " git@HOST:PATH.git."
)


@dataclass(frozen=True, slots=True)
class Address:
    """A validated address; it may contain a password, `shown` never does.

    Attributes:
        text: As a person gave it; what is remembered.
        folder: The folder that it names, if it does.
        known: Whether it was synced with before; then no repository is created there.
        target: Where git's settings say that it leads, for fetching.
        push: The address to send to, if it is another one.
    """

    text: str
    folder: Path | None = None
    known: bool = False
    target: str = ""
    push: Address | None = None

    @property
    def url(self) -> str:
        """Where to connect to."""
        return self.target or self.text

    @property
    def shown(self) -> str:
        """The form for display and logs."""
        shown = shown_address(self.text)
        return f"{shown} ({shown_address(self.target)})" if self.target else shown


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
    """Parse an address typed by a person, and look up where git's settings say that it leads.

    Args:
        text: The address.
        beside: The folder that relative paths start from; None for the current one.

    Raises:
        UsageError: It is no address to sync with.
    """
    text = text.strip()
    _check(text)
    fetched, pushed = rewrite(text)
    address = _parse(text, beside) if fetched == text else _leading(text, fetched, beside)
    if pushed == fetched:
        return address
    return replace(address, push=_leading(text, pushed, beside))


def _leading(text: str, target: str, beside: Path | None) -> Address:
    """Return the address of a target, under the name that a person gave it."""
    _check(target)
    found = _parse(target, beside)
    return replace(found, text=text, target=found.text)


def _check(text: str) -> None:
    if not text or text.startswith("-") or clean(text) != text or "\n" in text:
        raise UsageError("That is no address to sync with.", _ADDRESS_HINT)


def _parse(text: str, beside: Path | None) -> Address:
    if "://" in text:
        return _parse_url(text)
    is_there = os.path.exists(text)  # never raises
    if not is_there and parse_ssh_short(text) is not None:
        return Address(text)
    if ":" in text.partition("/")[0] and not is_there:
        raise UsageError(f"{clean_line(text)} is no address to sync with.", _ADDRESS_HINT)
    found = _folder(Path(text), beside)
    is_path = "/" in text or os.sep in text or text.startswith("~") or text.endswith(".git")
    if not is_path and found.folder is not None and not os.path.lexists(found.folder):
        raise UsageError(  # it may as well be meant as the name that git gives a remote
            f"There is no folder {clean_line(text)} in {clean_line(str(found.folder.parent))}.",
            f"To make a new place to sync with, write ./{clean_line(text)}.",
        )
    return found


def parse_ssh_short(text: str) -> tuple[str | None, str, int | None, str] | None:
    """Parse git's short form of an ssh address, ``USER@HOST:PATH``.

    Returns:
        (user, host, port, path), or None for any other text. An IPv6 address stands in brackets,
        and so may a host with its port.
    """
    found = _SSH_SHORT.fullmatch(text)
    if found is None or _DRIVE.match(text) or found["host"] in (*SCHEMES, "file"):
        return None
    host = found["host"] or found["ip"] or found["named"]
    return found["user"], host, int(found["port"]) if found["port"] else None, found["path"]


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
    if not os.path.exists(place):
        bare = place.with_name(f"{place.name}.git")  # git's habit: `notes` finds notes.git
        place = bare if os.path.isdir(bare / "objects") else place
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


class UnauthorizedError(RemoteError):
    """The other end wants a name and a password, or doesn't take those given."""


_RETRY_HINT = "Nothing is lost: what you have stays here. Try again later."
_ACCESS_HINT = (
    "For https have git remember an access token (a credential helper), or write it into the"
    " address: https://USER:TOKEN@HOST/PATH. For ssh see that `ssh HOST` works without asking"
    " (ssh-agent)."
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
        (HTTPUnauthorized, UnauthorizedError(f"{place} wants to know who you are.", _ACCESS_HINT)),
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
    # What dulwich doesn't implement is asked for by git's settings.
    if isinstance(error, GitProtocolError | HTTPError | OSError | EOFError | NotImplementedError):
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
    short = next((short for words, short in _SHORT_MESSAGES if words in message.lower()), "")
    lowered, message = "" if short else message.lower(), short or message
    if any(word in lowered for word in _DENIED):
        return RemoteError(f"{place} doesn't let us in: {message[:200]}.", _ACCESS_HINT)
    if any(word in lowered for word in _ABSENT):
        return RemoteError(
            f"There is no repository at {place}: {message[:200]}.", "Check the address."
        )
    if "corruption on the remote" in lowered:
        return RemoteError(
            f"{place} can't hand out its history: a part of it is missing or damaged there.",
            "Nothing was taken over. `git fsck` there says more; a copy that was made with --filter"
            " or --depth isn't whole, so sync with the repository that it was copied from.",
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
