"""The hierarchy of errors that are shown to users.

Each has a `message` (what happened and why), a `hint` (what to do about it), and an exit code for
the command line::

    KbtuiError                    1
    ├── NotFoundError             1   an entry, revision or session that isn't there
    ├── UnreadableError           1   a file that isn't in the expected format
    ├── UsageError                2   the request itself is wrong
    │   └── UnsafePathError       2   a path that would leave the workspace
    ├── WorkspaceError            3   no workspace, or one that can't be used
    │   └── StorageError          3   disk full, read-only, permission denied
    │       └── WorkspaceGoneError 3  the open workspace isn't at its path any more
    ├── ConfigurationError        3   an invalid setting
    ├── ModelError                4   a provider or the network
    │   ├── ModelAccessError      4   a missing or refused key, an unknown model
    │   ├── ModelUnreachableError 4   no connection, or a timeout
    │   ├── ModelOverloadedError  4   429 and 5xx after the retries
    │   ├── ModelWindowError      4   a prompt longer than the model's context window
    │   ├── ModelToolsError       4   a model or server that doesn't support tools
    │   └── ModelAnswerError      4   an answer that violates the protocol
    ├── RemoteError               4   the other end of a sync, or the way there
    ├── RefusedHistoryError       5   a remote history that can't be merged with ours
    ├── ConflictError             5   somebody else changed the same thing
    │   ├── WorkspaceBusyError    5   another process holds the lock
    │   └── UndoConflictError     5   the lines to undo were changed again
    ├── BudgetError               6   a limit on steps, tokens, money or time is reached
    └── StoppedError            130   a person stopped it, and nothing half-done is left
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_FOR_PEOPLE = re.compile(r"`(?:kbtui\b|/)|\bF\d")


def without_commands(text: str) -> str:
    """Remove the sentences that mention a command or key, which a model can't use."""
    return " ".join(each for each in _SENTENCE.split(text) if not _FOR_PEOPLE.search(each))


class KbtuiError(Exception):
    """The base of all errors that are shown to users."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        stop = "." if self.hint and self.message[-1:].isalnum() else ""
        return f"{self.message}{stop} {self.hint}".rstrip()

    @property
    def for_models(self) -> str:
        """The error worded for a model, without hints that only a person can follow."""
        return f"{self.message} {without_commands(self.hint)}".rstrip()


class NotFoundError(KbtuiError):
    """An entry, revision, session or setting that isn't there."""

    @property
    def for_models(self) -> str:
        """See `KbtuiError`."""
        hint = without_commands(self.hint) or "Look for it with a search, or list what there is."
        return f"{self.message} {hint}"


class UnreadableError(KbtuiError):
    """A file that isn't in the expected format."""


class UsageError(KbtuiError):
    """An invalid request."""

    exit_code = 2


class UnsafePathError(UsageError):
    """A path that would leave the workspace or hit machine files."""


class WorkspaceError(KbtuiError):
    """There is no workspace, or it can't be used."""

    exit_code = 3


class StorageError(WorkspaceError):
    """The file system is full or read-only, or denied permission."""


class WorkspaceGoneError(StorageError):
    """The open workspace isn't at its path any more; nothing was written there."""


class ConfigurationError(KbtuiError):
    """A setting is invalid."""

    exit_code = 3


class ModelError(KbtuiError):
    """A chat or embedding model could not answer."""

    exit_code = 4


class ModelAccessError(ModelError):
    """The key is missing or refused, or the model is unknown."""


class ModelUnreachableError(ModelError):
    """No connection to the endpoint, or no answer in time."""


class ModelSlowError(ModelUnreachableError):
    """There was no complete answer in time; a shorter one may succeed."""


class ModelOverloadedError(ModelError):
    """The provider kept answering 429 or 5xx."""


class ModelWindowError(ModelError):
    """A prompt is longer than the model's window; its `context_window` has been corrected.

    `window` and `prompt` are the limit and the prompt's length in the model's own tokens, or None
    if the server didn't report them. A shorter prompt can be retried.
    """

    def __init__(
        self, message: str, hint: str = "", window: int | None = None, prompt: int | None = None
    ) -> None:
        super().__init__(message, hint)
        self.window = window
        self.prompt = prompt


class ModelToolsError(ModelError):
    """A model doesn't support tools; its `takes_tools` is False from now on.

    The request can be retried without tools.
    """


class ModelAnswerError(ModelError):
    """The provider's response isn't a valid answer."""


class RemoteError(KbtuiError):
    """The remote of a sync failed or can't be reached."""

    exit_code = 4


class RefusedHistoryError(KbtuiError):
    """A remote history can't be merged with ours; nothing of it was applied."""

    exit_code = 5


class ConflictError(KbtuiError):
    """Somebody else changed the same thing; both versions are kept."""

    exit_code = 5

    def __init__(self, message: str, hint: str = "", paths: Sequence[str] = ()) -> None:
        super().__init__(message, hint)
        self.paths = tuple(paths)


class WorkspaceBusyError(ConflictError):
    """Another process holds the workspace's lock."""


class UndoConflictError(ConflictError):
    """Lines to undo have been changed since; `conflicts` has both sides of each place."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        paths: Sequence[str] = (),
        conflicts: Sequence[Any] = (),
    ) -> None:
        super().__init__(message, hint, paths)
        self.conflicts = tuple(conflicts)


class BudgetError(KbtuiError):
    """A limit on steps, tokens, money or time is reached."""

    exit_code = 6


class StoppedError(KbtuiError):
    """The user stopped the operation; nothing is left half-done."""

    exit_code = 130
