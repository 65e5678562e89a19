"""A change: the edits of one user action, collected until the door applies them together."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Literal

from kbtui.errors import NotFoundError, UsageError
from kbtui.history.objects.commit import (
    RESTORED as RESTORED,
    SHIPPED as SHIPPED,
    Actor as Actor,
    Changed as Changed,
    Commit as Commit,
    Origin as Origin,
    PathChange as PathChange,
    describe as describe,
    is_derived as is_derived,
)
from kbtui.history.objects.trees import TreeEntry
from kbtui.workspace import files
from kbtui.workspace.layout import Layout, is_recorded, short_name

_IMPORT = "import"
_ID_BYTES = 6  # two batches of one second are two batches


def new_batch_id(now: datetime, kind: str = _IMPORT) -> str:
    """Return a new id for the changes of one import, or of another process of a `kind`.

    They are found and undone together by it, so no two batches may ever have the same.
    """
    return f"{kind}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(_ID_BYTES)}"


def is_import(batch: str | None) -> bool:
    """Return whether a batch, if it is one, is an import."""
    return batch is not None and batch.startswith(f"{_IMPORT}-")


class Unchecked(Enum):
    """The type of `UNCHECKED`."""

    UNCHECKED = "unchecked"


Watch = Callable[[int, int], None]

UNCHECKED: Literal[Unchecked.UNCHECKED] = Unchecked.UNCHECKED
"""For `expecting`: overwrite whatever is there (it is recorded first)."""


class Change:
    """Edits that become one commit when the ``with history.change(...)`` block ends.

    Nothing is written inside the block; an exception in it discards everything.

    Attributes:
        actor: The author of the change.
        reason: The reason in the actor's words; the body of the commit.
        origin: The session, model, undone commit etc. that it comes from.
        adopted: The edits were made outside and are in the files already. Companions may add edits
            of other paths; those of adopted paths are ignored.
        second_parent: The second parent of a merge.
        foreign: Tree entries that a merge changes outside the workspace's files, by path.
        result: The commit, after the block; None if nothing changed or a sink took the change.
        repairs: Paths whose edits only repair links or rename a file, and add no new statement.
        restores: The commit from which text is brought back, if links in it are to follow what was
            renamed since.
        watch: A callback, told the number of files written, of how many; an exception in it cancels
            the change, and then nothing is changed.
    """

    def __init__(
        self, layout: Layout, actor: Actor, reason: str, origin: Origin, *, adopted: bool = False
    ) -> None:
        self.actor = actor
        self.reason = reason
        self.origin = origin
        self.adopted = adopted
        self.second_parent: str | None = None
        self.foreign: Mapping[str, TreeEntry] = {}
        self.result: Commit | None = None
        self.repairs: set[str] = set()
        self.restores: str | None = None
        self.watch: Watch = lambda _done, _total: None
        self._layout = layout
        self._edits: dict[str, bytes | None] = {}
        self._expected: dict[str, str | None] = {}
        self._before: dict[str, bytes | None] = {}
        self._sealed: frozenset[str] = frozenset()

    @property
    def edits(self) -> Mapping[str, bytes | None]:
        """The pending content of each path; None is a deletion."""
        return MappingProxyType(self._edits)

    @property
    def expected(self) -> Mapping[str, str | None]:
        """The blob id that each checked path must have when the change is applied."""
        return MappingProxyType(self._expected)

    @property
    def known(self) -> Mapping[str, bytes | None]:
        """The previous contents of files, as far as they were read or given by `set_known`."""
        return MappingProxyType(self._before)

    @property
    def is_restoration(self) -> bool:
        """Whether it is an undo or a restore, as `Commit.is_restoration`."""
        return self.origin.undoes is not None or self.reason.startswith(RESTORED)

    def read(self, path: str) -> bytes | None:
        """Return the pending content of a path, else its file's; None if there is no file."""
        path = files.checked_path(path)
        return self._edits[path] if path in self._edits else self.before(path)

    def set_known(self, contents: Mapping[str, bytes | None]) -> None:
        """Replace the previous contents of files that were read or given before."""
        self._before = dict(contents)

    def before(self, path: str) -> bytes | None:
        """Return the previous content of a file, first read or set; None if there was none."""
        if path not in self._before:
            self._before[path] = files.read_if_there(self._layout, path)
        return self._before[path]

    def write(
        self, path: str, text: str | bytes, *, expecting: str | Unchecked | None = UNCHECKED
    ) -> None:
        """Write a file.

        Args:
            path: A recorded workspace path.
            text: The complete new content.
            expecting: The blob id of what the caller had read; None if no file may exist. If the
                file differs when the change is applied, it is kept, `text` goes into a conflict
                copy beside it, and the block ends with `ConflictError`.

        Raises:
            UnsafePathError: The path leads outside the workspace.
            UsageError: Files at this path aren't recorded.
        """
        data = text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)
        self._edit(path, data, expecting)

    def delete(self, path: str, *, expecting: str | Unchecked | None = UNCHECKED) -> None:
        """Delete a file; `expecting` as in `write`."""
        self._edit(path, None, expecting)

    def put(self, path: str, data: bytes | None, *, over: bytes | None) -> None:
        """Write a file, or delete it if `data` is None, expecting its content to be `over`."""
        self._edit(path, data, files.blob_of(over))
        self._before.setdefault(files.checked_path(path), over)

    def rename(self, old: str, new: str) -> None:
        """Move a file.

        Raises:
            NotFoundError: `old` doesn't exist.
            UsageError: `new` exists already.
        """
        old, new = files.checked_path(old), files.checked_path(new)
        data = self.read(old)
        if data is None:
            raise NotFoundError(f"There is no {short_name(old)}.")
        if old == new:
            return
        if old.casefold() != new.casefold() and self.read(new) is not None:
            raise UsageError(
                f"{short_name(new)} exists already.", "Choose another name, or delete that first."
            )
        self._edit(old, None, UNCHECKED)
        self._edit(new, data, UNCHECKED)

    def seal(self, edits: Mapping[str, bytes | None]) -> None:
        """Set adopted edits, which later edits can't alter."""
        self._edits.update(edits)
        self._sealed = frozenset(edits)

    def replace(self, path: str, data: bytes | None) -> None:
        """Replace a pending edit, leaving the expected content as it is."""
        self._edits[path] = data

    def _edit(self, path: str, data: bytes | None, expecting: str | Unchecked | None) -> None:
        path = files.checked_path(path)
        if not is_recorded(path):
            raise UsageError(
                f"{path} is not a file that the history keeps.",
                "It keeps entries, the notes under memory/ and how-tos under skills/.",
            )
        if path in self._sealed:
            return
        if expecting is not UNCHECKED:
            self._expected.setdefault(path, expecting)
        self._edits[path] = data


Sink = Callable[[Change], object]
"""Consumes a collected change: the door commits it, `Proposals.add` makes it a proposal."""
