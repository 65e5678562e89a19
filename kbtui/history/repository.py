"""The git repository behind the history. Only this file imports dulwich.

It is bare, has no index and runs no hook and no filter: objects are written, then the branch is
moved by compare-and-swap under the workspace lock. A real git reads it, and may serve it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
import zlib
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from kbtui.errors import ConflictError, NotFoundError, StorageError
from kbtui.history.commit import RawCommit, decode_commit
from kbtui.history.trees import (
    Tree,
    blob_in_tree,
    compare_trees,
    git_object,
    parse_tree,
    split_tree,
    walk_files,
)
from kbtui.workspace.durable import FileBatch, sweep, temporary_name, write_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from dulwich.object_store import DiskObjectStore

    from kbtui.history.trees import GitObject

BRANCH = "refs/heads/main"
CONFIG = b"""\
[core]
\trepositoryformatversion = 0
\tfilemode = false
\tbare = true
\tfsync = all
\tfsyncObjectFiles = true
\tquotepath = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
_HEAD = f"ref: {BRANCH}\n".encode()
_LEVEL = 1  # trees are mostly hashes: a higher level costs time and saves nothing
_PACK_FROM = 200  # objects at once that are better written as one pack
_RECENT = 24
_HEX = 40


_Value = TypeVar("_Value")


class _Recent(Generic[_Value]):
    """The values that were asked for last, by id; several threads may use it."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, identifier: str) -> _Value | None:
        with self._lock:
            value = self._values.get(identifier)
            if value is not None:
                self._values.move_to_end(identifier)
            return value

    def put(self, identifier: str, value: _Value) -> None:
        with self._lock:
            self._values[identifier] = value
            if len(self._values) > _RECENT:
                self._values.popitem(last=False)


class Repository:
    """Objects, one branch, and how they get to the disk.

    Ids are 40 hex digits. Reading needs no lock; writing is done under the workspace lock.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._trees: _Recent[Tree] = _Recent()
        self._entries: _Recent[list[bytes]] = _Recent()
        self._engine = threading.Lock()  # dulwich's packs are not made for several threads

    @property
    def exists(self) -> bool:
        """Whether it has been made, and may be looked at."""
        return os.path.isdir(self._folder / "objects")  # noqa: PTH112 — never raises

    def prepare(self) -> bool:
        """Make the repository, or bring HEAD and the configuration back to what they must be.

        Returns whether it was made now.
        """
        made = not self.exists
        if made:
            for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
                (self._folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            for number in range(256):  # now, so that no change has to make and sync them
                (self._folder / "objects" / f"{number:02x}").mkdir(mode=0o700, exist_ok=True)
            os.chmod(self._folder, 0o700)  # noqa: PTH101 — mkdir's mode holds for the last folder
        with FileBatch(self._folder) as batch:
            for name, data in (("config", CONFIG), ("HEAD", _HEAD)):
                if not self._holds(name, data):
                    batch.write(name, data, 0o600)
            batch.sync()
        sweep(self._folder / "refs" / "heads")
        for stale in (self._folder / "objects" / "pack").glob("pack-*.idx.lock"):
            stale.unlink(missing_ok=True)  # only we write packs so, and only under the lock
        return made

    def _holds(self, name: str, data: bytes) -> bool:
        try:
            return (self._folder / name).read_bytes() == data
        except OSError:
            return False

    # Reading ---------------------------------------------------------------------------------

    def head(self) -> str | None:
        """The newest commit, None before the first."""
        text = self._read_branch()
        if text is None:
            return None
        if len(text) != _HEX or not all(char in "0123456789abcdef" for char in text):
            raise StorageError(
                f"{self._folder / BRANCH} is damaged.",
                "Restore .kbtui/history.git from a backup, or move it away to start a new history;"
                " your notes are not affected.",
            )
        return text

    def _read_branch(self) -> str | None:
        """Where the branch points to; git moves it into one file with others when it packs."""
        if not self.exists:
            return None
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / BRANCH).read_text("ascii", "replace").strip()
        with contextlib.suppress(FileNotFoundError):
            for line in (self._folder / "packed-refs").read_text("ascii", "replace").splitlines():
                identifier, _, name = line.partition(" ")
                if name == BRANCH:
                    return identifier
        return None

    def read_object(self, identifier: str) -> tuple[bytes, bytes]:
        """Read an object: its kind and its content.

        Raises:
            NotFoundError: It isn't there, or is damaged.
        """
        try:
            found = self._read_loose(identifier)
            if found is None:
                with self._engine:
                    number, data = self._store.get_raw(identifier.encode())  # type: ignore[arg-type]
                found = _KINDS[number], data
        except (KeyError, ValueError, AssertionError, zlib.error, OSError) as error:
            raise NotFoundError(
                f"The history has no readable object {identifier[:10]}.",
                "Run `kbtui doctor`; a backup of .kbtui/history.git may have it.",
            ) from error
        return found

    def is_intact(self, identifier: str) -> bool:
        """Whether an object is there and holds what its id says."""
        try:
            return git_object(*self.read_object(identifier)).id == identifier
        except NotFoundError:
            return False

    def read_blob(self, identifier: str) -> bytes:
        """Read the content of a file."""
        return self.read_object(identifier)[1]

    def read_commit(self, identifier: str) -> RawCommit:
        """Read a commit."""
        kind, data = self.read_object(identifier)
        if kind != b"commit":
            raise NotFoundError(f"{identifier[:10]} is not a commit.")
        return decode_commit(data)

    def read_tree(self, identifier: str) -> Tree:
        """Read one level of a tree; don't change what you get."""
        tree = self._trees.get(identifier)
        return tree if tree is not None else self.remember_tree(identifier)

    def remember_tree(self, identifier: str, tree: Tree | None = None) -> Tree:
        """Keep a tree at hand: the next change starts from it."""
        if tree is None:
            tree = parse_tree(self.read_object(identifier)[1])
        self._trees.put(identifier, tree)
        return tree

    def _read_entries(self, identifier: str) -> list[bytes]:
        entries = self._entries.get(identifier)
        if entries is None:
            entries = split_tree(self.read_object(identifier)[1])
            self._entries.put(identifier, entries)
        return entries

    def files(self, commit: str | None) -> dict[str, str]:
        """Every path of a commit with its blob id."""
        if commit is None:
            return {}
        return dict(walk_files(self.read_commit(commit).tree, self.read_tree))

    def blob_at(self, commit: str | None, path: str) -> str | None:
        """The blob id of a path in a commit, None where it isn't."""
        return self.blobs_at(commit, [path])[path]

    def blobs_at(self, commit: str | None, paths: Iterable[str]) -> dict[str, str | None]:
        """The blob id of each path in a commit."""
        if commit is None:
            return dict.fromkeys(paths)
        tree = self.read_commit(commit).tree
        return {path: blob_in_tree(tree, path, self.read_tree) for path in paths}

    def compare(
        self, old: str | None, new: str | None
    ) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield (path, old blob id, new blob id) where two commits differ."""
        trees = [self.read_commit(commit).tree if commit else None for commit in (old, new)]
        return self.compare_trees(trees[0], trees[1])

    def compare_trees(
        self, old: str | None, new: str | None
    ) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield (path, old blob id, new blob id) where two trees differ."""
        return compare_trees(old, new, self._read_entries)

    def with_prefix(self, prefix: str) -> list[str]:
        """The ids of commits that begin with `prefix`."""
        if not self.exists:
            return []
        with self._engine:
            found = {sha.decode() for sha in self._store.iter_prefix(prefix.encode())}
        return sorted(sha for sha in found if self.read_object(sha)[0] == b"commit")

    def _read_loose(self, identifier: str) -> tuple[bytes, bytes] | None:
        try:
            with open(self._loose_path(identifier), "rb") as file:  # noqa: PTH123 — twice as fast
                packed = file.read()
        except FileNotFoundError:
            return None
        header, _, data = zlib.decompress(packed).partition(b"\0")
        kind, _, size = header.partition(b" ")
        if int(size) != len(data):
            raise ValueError(identifier)
        return kind, data

    def _loose_path(self, identifier: str) -> str:
        return f"{self._folder}/objects/{identifier[:2]}/{identifier[2:]}"

    # Writing ---------------------------------------------------------------------------------

    def store(self, objects: Iterable[GitObject]) -> None:
        """Make objects durable before anything refers to them."""
        wanted = {made.id: made for made in objects if not self._is_stored(made.id)}
        if len(wanted) >= _PACK_FROM:
            self._store_pack(wanted.values())
            return
        with FileBatch(self._folder / "objects", temporary="tmp_obj_") as batch:
            for made in wanted.values():
                packed = zlib.compress(
                    b"%s %d\0%s" % (made.kind, len(made.data), made.data), _LEVEL
                )
                batch.write(f"{made.id[:2]}/{made.id[2:]}", packed, 0o444)
            batch.sync()

    def _is_stored(self, identifier: str) -> bool:
        return os.path.exists(self._loose_path(identifier))  # noqa: PTH110 — as above

    def _store_pack(self, objects: Iterable[GitObject]) -> None:
        """Write many objects as one pack: two syncs instead of one for each."""
        from dulwich.objects import ShaFile

        numbers = {name: number for number, name in _KINDS.items()}
        shaped = [
            (ShaFile.from_raw_string(numbers[made.kind], made.data), None) for made in objects
        ]
        self._store.add_objects(shaped)
        folder = os.open(self._folder / "objects" / "pack", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def move_branch(self, old: str | None, new: str) -> None:
        """Let the branch point to `new`, if it still points to `old`.

        git's own lock file is taken, so that a real git that packs refs at the same moment can't
        lose the move. It appears with its content in one step (link), so a lock that a crash left
        behind tells whose it was: see `clear_branch_lock`.

        Raises:
            ConflictError: The branch is somewhere else, or a git program holds it.
        """
        folder = self._folder / "refs" / "heads"
        folder.mkdir(parents=True, exist_ok=True)
        lock = folder / "main.lock"
        try:
            self._take_branch_lock(lock, new)
            self._check_head(old)
            lock.rename(folder / "main")
        except BaseException:
            with contextlib.suppress(OSError):  # what stopped us is worse
                self.clear_branch_lock(new)
            raise
        _sync_folder(folder)

    def _take_branch_lock(self, lock: Path, new: str) -> None:
        temporary = lock.with_name(temporary_name())
        try:
            _write_synced(temporary, f"{new}\n".encode())
            os.link(temporary, lock)
        except FileExistsError as error:
            raise ConflictError(
                "A git program is writing the history.",
                f"Wait for it to finish; if none is running, remove {lock}.",
            ) from error
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()

    def _check_head(self, expected: str | None) -> None:
        if self.head() != expected:
            raise ConflictError("The history moved on meanwhile.", "Try again.")

    def clear_branch_lock(self, commit: str) -> None:
        """Remove the branch's lock if it is the one of our own move to `commit`."""
        lock = self._folder / "refs" / "heads" / "main.lock"
        with contextlib.suppress(FileNotFoundError):
            if lock.read_bytes() == f"{commit}\n".encode():
                lock.unlink()

    # Engine ----------------------------------------------------------------------------------

    @cached_property
    def _store(self) -> DiskObjectStore:
        from dulwich.object_store import DiskObjectStore

        store = DiskObjectStore(
            self._folder / "objects",
            fsync_object_files=True,
            loose_compression_level=_LEVEL,
            pack_compression_level=_LEVEL,
        )
        weakref.finalize(self, store.close)  # packs stay open until nobody needs them
        return store


_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}


def _write_synced(file: Path, data: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
