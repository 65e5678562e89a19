"""Every error that a person may read.

Each carries what happened and why (`message`), what to do about it (`hint`), and the exit code
that the command line ends with::

    KbtuiError                    1
    ├── NotFoundError             1   an entry, revision or session that isn't there
    ├── UnreadableError           1   a file that can't be read as what it should be
    ├── UsageError                2   the request itself is wrong
    │   └── UnsafePathError       2   a path that would leave the workspace
    ├── WorkspaceError            3   no workspace, or one that can't be used
    │   └── StorageError          3   disk full, read-only, permission denied
    ├── ConfigurationError        3   a setting that can't be understood
    ├── ModelError                4   a provider or the network
    │   ├── ModelAccessError      4   a missing or refused key, an unknown model
    │   ├── ModelUnreachableError 4   no connection, or none in time
    │   ├── ModelOverloadedError  4   429 and 5xx after the retries
    │   ├── ModelWindowError      4   a prompt that is longer than the model's window
    │   ├── ModelToolsError       4   a model, or its server, that takes no tools
    │   └── ModelAnswerError      4   an answer that breaks the protocol
    ├── RemoteError               4   the other end of a sync, or the way there
    ├── RefusedHistoryError       5   what a remote holds can't be brought together with ours
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
    """A text for models: without the sentences that name a command or a key of people's."""
    return " ".join(each for each in _SENTENCE.split(text) if not _FOR_PEOPLE.search(each))


class KbtuiError(Exception):
    """The base of all errors that are shown: what happened, and what to do."""

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
        """It as a model is told it, with what a model can do about it."""
        return f"{self.message} {without_commands(self.hint)}".rstrip()


class NotFoundError(KbtuiError):
    """An entry, revision, session or setting that isn't there."""

    @property
    def for_models(self) -> str:
        """See `KbtuiError`."""
        hint = without_commands(self.hint) or "Look for it with a search, or list what there is."
        return f"{self.message} {hint}"


class UnreadableError(KbtuiError):
    """A file that cannot be read as what it should be."""


class UsageError(KbtuiError):
    """A request that can't be carried out as it was said."""

    exit_code = 2


class UnsafePathError(UsageError):
    """A path that would leave the workspace or hit machine files."""


class WorkspaceError(KbtuiError):
    """There is no workspace, or it can't be used."""

    exit_code = 3


class StorageError(WorkspaceError):
    """The file system refused: full, read-only, or not permitted."""


class ConfigurationError(KbtuiError):
    """A setting that can't be understood."""

    exit_code = 3


class ModelError(KbtuiError):
    """A chat or embedding model could not answer."""

    exit_code = 4


class ModelAccessError(ModelError):
    """The key is missing or refused, or the model is unknown."""


class ModelUnreachableError(ModelError):
    """No connection to the endpoint, or no answer in time."""


class ModelSlowError(ModelUnreachableError):
    """No whole answer in time; a shorter one may come."""


class ModelOverloadedError(ModelError):
    """The provider kept answering 429 or 5xx."""


class ModelWindowError(ModelError):
    """A prompt is longer than the model holds; the model's `context_window` is right from now on.

    `window` is what it holds and `prompt` how long the prompt was, in the model's own tokens; None
    where it didn't say. So it can be asked once more with what fits.
    """

    def __init__(
        self, message: str, hint: str = "", window: int | None = None, prompt: int | None = None
    ) -> None:
        super().__init__(message, hint)
        self.window = window
        self.prompt = prompt


class ModelToolsError(ModelError):
    """A model takes no tools; its `takes_tools` says so from now on.

    It can be asked once more without them.
    """


class ModelAnswerError(ModelError):
    """The provider answered with something that isn't an answer."""


class RemoteError(KbtuiError):
    """The other end of a sync, or the way there, doesn't work."""

    exit_code = 4


class RefusedHistoryError(KbtuiError):
    """A remote can't be brought together with ours; nothing of it was applied."""

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
    """Places to be undone were changed again since; `conflicts` holds both sides of each."""

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
    """A person stopped it; nothing half-done is left."""

    exit_code = 130
