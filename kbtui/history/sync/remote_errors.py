"""What can go wrong on the way to a remote, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, RemoteError
from kbtui.text import clean_line

if TYPE_CHECKING:
    from kbtui.history.sync.remote import Address

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
