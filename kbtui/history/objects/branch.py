"""The branch of the history, and the refs of proposals beside it.

The branch is moved by git's own protocol (a lock file beside the ref, renamed into place), so that
a real git that packs or pushes refs at the same moment can't lose an update.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from kbtui.errors import ConflictError, NotFoundError, StorageError, UsageError
from kbtui.text import clean_line
from kbtui.workspace.durable import (
    FileBatch,
    make_folder,
    storage_errors,
    sync_folder,
    temporary_name,
    write_all,
)

NAME = "refs/heads/main"
PROPOSALS = "refs/proposals"
_ID = re.compile(r"[0-9a-f]{40}")
_PROPOSAL = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)
_PACKED = "packed-refs"
_PACKED_HEAD = "# pack-refs with: sorted \n"


class Branch:
    """The branch of the repository in `folder`; `confirm` is as in `Repository`."""

    def __init__(self, folder: Path, confirm: Callable[[], None] = lambda: None) -> None:
        self._folder = folder
        self._confirm = confirm
        self._file = folder / NAME
        self._lock = self._file.with_name("main.lock")

    def head(self) -> str | None:
        """Return the commit that the branch points to, or None before the first one.

        Raises:
            StorageError: The ref doesn't hold a commit id.
        """
        text = self._read()
        if text is None:
            return None
        if not _ID.fullmatch(text):
            raise StorageError(
                f"{self._file} is damaged.",
                "Restore .kbtui/history.git from a backup, or move it away to start a new history;"
                " your notes are not affected.",
            )
        return text

    def _read(self) -> str | None:
        """Read the loose ref, falling back to ``packed-refs``."""
        with storage_errors("Can't read the history"), contextlib.suppress(FileNotFoundError):
            return self._file.read_text("ascii", "replace").strip()
        return packed_refs(self._folder).get(NAME)

    def move(self, old: str | None, new: str) -> None:
        """Move the branch from `old` to `new` (compare-and-swap).

        Raises:
            ConflictError: The branch doesn't point to `old` any more, or a git program holds its
                lock.
        """
        self._confirm()
        make_folder(self._folder, NAME.rpartition("/")[0])
        try:
            self._acquire_lock(new)
            self._check(old)
            self._lock.rename(self._file)
        except BaseException:
            with contextlib.suppress(OSError):  # the original error matters more
                self.clear_lock(new)
            raise
        sync_folder(self._file.parent)

    def rewrite_packed_refs(self, commit: str) -> None:
        """Rewrite ``packed-refs`` so that it names only this branch.

        The file is replaced rather than removed, since the branch may be named only there.
        """
        if (self._folder / _PACKED).exists():
            _write_packed(self._folder, {NAME: commit})

    def _acquire_lock(self, new: str) -> None:
        """Create the lock file atomically with its content, which identifies its owner."""
        temporary = self._lock.with_name(temporary_name())
        try:
            _write_synced(temporary, f"{new}\n".encode())
            os.link(temporary, self._lock)
        except FileExistsError as error:
            raise ConflictError(
                "A git program is writing the history.",
                f"Wait for it to finish; if none is running, remove {self._lock}.",
            ) from error
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()

    def _check(self, expected: str | None) -> None:
        if self.head() != expected:
            raise ConflictError("The history moved on meanwhile.", "Try again.")

    def clear_lock(self, commit: str) -> None:
        """Remove the lock if our own move to `commit` created it."""
        with contextlib.suppress(FileNotFoundError):
            if self._lock.read_bytes() == f"{commit}\n".encode():
                self._lock.unlink()


class ProposalRefs:
    """The refs of proposals, each a commit beside the branch; write under the workspace lock."""

    def __init__(self, folder: Path, confirm: Callable[[], None] = lambda: None) -> None:
        self._folder = folder
        self._refs = folder / PROPOSALS
        self._confirm = confirm

    def all(self) -> dict[str, str]:
        """Return the commit id of each proposal by its name."""
        prefix = f"{PROPOSALS}/"
        found = {
            name.removeprefix(prefix): commit
            for name, commit in packed_refs(self._folder).items()
            if name.startswith(prefix)
        }
        with storage_errors("Can't read the proposals"):
            for file in self._refs.glob("*"):
                with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                    found[file.name] = file.read_text("ascii", "replace").strip()
        return {
            name: commit
            for name, commit in sorted(found.items())
            if _PROPOSAL.fullmatch(name) and _ID.fullmatch(commit)
        }

    def put(self, name: str, commit: str) -> None:
        """Point a name at a commit, durably.

        Raises:
            UsageError: The name isn't valid for a proposal.
        """
        if not _PROPOSAL.fullmatch(name):
            raise UsageError(f"{clean_line(name)!r} is no name for a proposal.")
        self._confirm()
        make_folder(self._folder, PROPOSALS)
        with FileBatch(self._refs) as batch:
            batch.write(name, f"{commit}\n".encode(), 0o600)
            batch.sync()

    def drop(self, name: str) -> None:
        """Remove a name; do nothing if it doesn't exist."""
        self._confirm()
        packed = packed_refs(self._folder)
        if packed.pop(f"{PROPOSALS}/{name}", None) is not None:
            _write_packed(self._folder, packed)
        if _PROPOSAL.fullmatch(name):
            (self._refs / name).unlink(missing_ok=True)
            if self._refs.exists():
                sync_folder(self._refs)

    def stamp(self) -> int:
        """Return a number that changes whenever any process adds, drops or changes a proposal."""
        newest = 0
        for place in (self._refs, self._folder / _PACKED):
            with contextlib.suppress(OSError):
                newest = max(newest, place.stat().st_mtime_ns)
        return newest


def packed_refs(folder: Path) -> dict[str, str]:
    """Read ``packed-refs``, git's file of packed refs, as commit ids by ref name."""
    try:
        with storage_errors("Can't read the history"):
            text = (folder / _PACKED).read_text("ascii", "replace")
    except NotFoundError:
        return {}
    pairs = (line.partition(" ") for line in text.splitlines() if line[:1] not in {"#", "^"})
    return {name: identifier for identifier, _, name in pairs}


def _write_packed(folder: Path, refs: Mapping[str, str]) -> None:
    lines = "".join(f"{commit} {name}\n" for name, commit in sorted(refs.items()))
    with FileBatch(folder) as batch:
        batch.write(_PACKED, f"{_PACKED_HEAD}{lines}".encode())
        batch.sync()


def _write_synced(file: Path, data: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
