"""Where the history is synced to: an address, and how it is shown and told from others."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from kbtui.errors import ConflictError, KbtuiError, UsageError
from kbtui.text import clean, clean_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from urllib.parse import SplitResult

SCHEMES = ("https", "http", "ssh", "git")
_SSH_SHORT = re.compile(r"(?:[\w.+-]+@)?[A-Za-z0-9][\w.-]*:[^/\\:].*")
_HOW = (
    "Name a folder (a stick, a shared drive), https://HOST/PATH, ssh://HOST/PATH or"
    " git@HOST:PATH.git."
)


class SyncCancelledError(KbtuiError):
    """Somebody stopped a sync; nothing was applied that isn't whole."""

    exit_code = 130


class MovedError(ConflictError):
    """Somebody else was faster, and nothing is applied: look again and try once more."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint or "Try again.")


@dataclass(frozen=True, slots=True)
class Address:
    """A checked address; `text` may hold a password, `shown` never does."""

    text: str
    folder: Path | None = None

    @property
    def shown(self) -> str:
        """What may be shown and logged."""
        return shown_address(self.text)


class Watcher:
    """Who watches a sync: is told how far it is, and may stop it."""

    def __init__(
        self,
        tell: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] | None = None,
    ) -> None:
        self._tell = tell
        self._stopped = stopped or (lambda: False)

    def tell(self, text: str) -> None:
        """Say what is being done; raises as `check`."""
        self.check()
        self._tell(clean_line(text))

    def check(self) -> None:
        """Give up if somebody wants that.

        Raises:
            SyncCancelledError: They do.
        """
        if self._stopped():
            raise SyncCancelledError("The sync was stopped.", "Nothing is lost. Start it again.")


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
    is_there = os.path.exists(text)  # noqa: PTH110 — never raises
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
