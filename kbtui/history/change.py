"""A change: the edits that one user action makes, gathered until the door applies them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


class Unchecked(Enum):
    """The type of `UNCHECKED`."""

    UNCHECKED = "unchecked"


Watch = Callable[[int, int], None]

UNCHECKED: Literal[Unchecked.UNCHECKED] = Unchecked.UNCHECKED
"""For `expecting`: write whatever stands there now (it is recorded before)."""


class Change:
    """Edits that become one commit when the ``with history.change(...)`` block ends.

    Nothing is written inside the block; an exception in it discards everything.

    Attributes:
        actor: Who makes it.
        reason: Why, in the actor's words; the body of the commit.
        origin: Where it comes from.
        adopted: The edits were made outside and stand in the files already. Companions may add
            edits of other paths; those of adopted paths are ignored.
        brings: The other parent of a merge.
        beside: What the merge changes in the tree that isn't a workspace's, by path.
        result: The commit, after the block; None when nothing really changed, or a sink took it.
        repairs: Paths whose edits only repair links, or give a file another name, and say nothing
            new.
        watch: Told how many files of how many are written; what it raises stops the change, and
            then nothing is changed.
    """

    def __init__(
        self, layout: Layout, actor: Actor, reason: str, origin: Origin, *, adopted: bool = False
    ) -> None:
        self.actor = actor
        self.reason = reason
        self.origin = origin
        self.adopted = adopted
        self.brings: str | None = None
        self.beside: Mapping[str, TreeEntry] = {}
        self.result: Commit | None = None
        self.repairs: set[str] = set()
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
    def told(self) -> Mapping[str, bytes | None]:
        """What files held when the change asked, or was told, as far as it did or was."""
        return MappingProxyType(self._before)

    def read(self, path: str) -> bytes | None:
        """Read the pending content of a path, else what the file held; None where there is none."""
        path = files.checked_path(path)
        return self._edits[path] if path in self._edits else self.before(path)

    def tell(self, contents: Mapping[str, bytes | None]) -> None:
        """Say what files hold now; what was told before, or read, is forgotten."""
        self._before = dict(contents)

    def before(self, path: str) -> bytes | None:
        """What a file held when the change first asked, or was told; None where there is none."""
        if path not in self._before:
            self._before[path] = files.read_if_there(self._layout, path)
        return self._before[path]

    def write(
        self, path: str, text: str | bytes, *, expecting: str | Unchecked | None = UNCHECKED
    ) -> None:
        """Write a file.

        Args:
            path: A recorded workspace path.
            text: Its whole new content.
            expecting: The blob id of what the caller had read; None: there must be no file.
                When something else is there as the change is applied, that stays, `text` goes into
                a conflict copy beside it, and the block ends with `ConflictError`.

        Raises:
            UnsafePathError: The path leads outside.
            UsageError: The path isn't one that is recorded.
        """
        data = text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)
        self._edit(path, data, expecting)

    def delete(self, path: str, *, expecting: str | Unchecked | None = UNCHECKED) -> None:
        """Delete a file; `expecting` as in `write`."""
        self._edit(path, None, expecting)

    def put(self, path: str, data: bytes | None, *, over: bytes | None) -> None:
        """Write a file, or delete it where `data` is None, that held `over` when it was read."""
        self._edit(path, data, files.blob_of(over))
        self._before.setdefault(files.checked_path(path), over)

    def rename(self, old: str, new: str) -> None:
        """Move a file.

        Raises:
            NotFoundError: There is no `old`.
            UsageError: There is a `new` already.
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
        """Set adopted edits, which nobody may alter afterwards."""
        self._edits.update(edits)
        self._sealed = frozenset(edits)

    def replace(self, path: str, data: bytes | None) -> None:
        """Replace a pending edit, leaving what is expected of the file."""
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
"""Takes a gathered change: the door makes it a commit, `Proposals.add` a proposal."""
