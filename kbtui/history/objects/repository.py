"""The git repository that stores the history. Only this module and `transport` use dulwich.

It is bare, has no index and runs no hooks or filters: objects are written, then the branch is moved
by compare-and-swap under the workspace lock. A real git can read and serve it.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import struct
import threading
import time
import weakref
import zlib
from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kbtui.errors import NotFoundError, StorageError
from kbtui.history.objects.branch import NAME, PROPOSALS, Branch, ProposalRefs
from kbtui.history.objects.commit import RawCommit, decode_commit
from kbtui.history.objects.pack_folder import PackFolder, PackRecord
from kbtui.history.objects.trees import (
    FILES,
    FOLDER,
    Tree,
    blob_in_tree,
    compare_trees,
    git_object,
    parse_tree,
    split_tree,
    walk_files,
)
from kbtui.workspace.durable import FileBatch, litter, make_folder, sync_folder
from kbtui.workspace.files import is_path
from kbtui.workspace.layout import is_recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from dulwich.object_store import DiskObjectStore
    from dulwich.pack import UnpackedObject

    from kbtui.history.objects.trees import GitObject, TreeEntry


_CACHE_SIZE = 24
_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """A small LRU cache by id; thread-safe."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, identifier: str) -> _Value | None:
        """Return the cached value of an id, or None."""
        with self._lock:
            value = self._values.get(identifier)
            if value is not None:
                self._values.move_to_end(identifier)
            return value

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._values.clear()

    def put(self, identifier: str, value: _Value) -> None:
        """Cache a value."""
        with self._lock:
            self._values[identifier] = value
            if len(self._values) > _CACHE_SIZE:
                self._values.popitem(last=False)


CONFIG = b"""\
[core]
\trepositoryformatversion = 0
\tfilemode = false
\tbare = true
\tfsync = all
\tquotepath = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
LARGE = "large"
"""The file that lists foreign blobs that are too large for a workspace."""
_FIXED = {"config": CONFIG, "HEAD": f"ref: {NAME}\n".encode()}
_LEVEL = 1  # trees are mostly hashes: a higher zlib level costs time and saves nothing
_TEMPORARY = "tmp_obj_"  # git's own prefix, so that git removes them as well
_FREED_ONCE = 16 << 20  # bytes, never touched
_DELTA_CACHE = 4 << 20  # bytes per pack, of which a history has ten; dulwich's default is 96 MB
_MIN_PACK = 200  # the number of objects from which a pack is faster than loose ones
_SAMPLED = 16 << 10  # bytes
_DENSE = 0.95
_FAN_OUT = 2  # digits of an object's id: the folder it is in
_LOOSE_NAME = 38
_LOCK_SECONDS = 600.0
_ATTEMPTS = 5  # packs are replaced once in thousands of changes


# What reading damaged files raises, here and in dulwich.
_UNREADABLE = (
    KeyError, IndexError, ValueError, AssertionError, EOFError, OSError, zlib.error, struct.error
)  # fmt: skip


def _damage(identifier: str) -> NotFoundError:
    return NotFoundError(
        f"The history has no readable object {identifier[:10]}.",
        "Run `kbtui doctor`; a backup of .kbtui/history.git may have it.",
    )


@cache
def _keep_heap() -> None:
    """Make glibc keep the end of the heap, once in a process.

    glibc returned deflate's 300 KB to the system after each object and took them again page by
    page: 34 µs an object instead of 6, and ten times that on a busy machine. Freeing a larger block
    raises its trim threshold; other systems' allocators don't mind. A second block would come from
    the heap, and be filled with zeros.
    """
    bytes(_FREED_ONCE)  # untouched, which a bytearray isn't


class Repository:
    """Git objects, one branch, and durable writes of both.

    Ids are 40 hex digits. Reading needs no lock; writing requires the workspace lock. Files that
    don't belong to a workspace, such as a README.md or a link that a remote brought, stay in the
    trees, but are neither listed nor compared.
    """

    def __init__(self, folder: Path, confirm: Callable[[], None] = lambda: None) -> None:
        """Prepare without reading anything.

        Args:
            folder: The repository's folder.
            confirm: Called before each write; raises `WorkspaceGoneError` if the workspace that the
                repository belongs to isn't there any more.
        """
        self.branch = Branch(folder, confirm)
        self.proposals = ProposalRefs(folder, confirm)
        self.confirm = confirm
        self._folder = folder
        self._trees: Recent[Tree] = Recent()
        self._entries: Recent[list[bytes]] = Recent()
        self._large: tuple[tuple[int, int], frozenset[str]] = ((0, 0), frozenset())
        self._opened: DiskObjectStore | None = None
        self._pack_lock = threading.Lock()  # dulwich's packs aren't thread-safe

    @property
    def folder(self) -> Path:
        """The folder of the repository."""
        return self._folder

    @property
    def exists(self) -> bool:
        """Whether the repository was created and can be read."""
        return os.path.isdir(f"{self._folder}/objects")  # never raises; asked very often

    def is_prepared(self) -> bool:
        """Return whether `prepare` has nothing to do; writes nothing and needs no lock."""
        return self.exists and not self._damaged_files() and next(self._litter(), None) is None

    def prepare(self) -> bool:
        """Create the repository, or repair HEAD and the configuration and remove litter.

        Returns:
            Whether it was created.
        """
        self.confirm()
        made = not self.exists
        if made:
            for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
                make_folder(self._folder.parent, f"{self._folder.name}/{name}")
            os.chmod(self._folder, 0o700)  # noqa: PTH101 — mkdir's mode holds for the last folder
        with FileBatch(self._folder) as batch:
            for name in self._damaged_files():
                batch.write(name, _FIXED[name], 0o600)
            batch.sync()
        for left in self._litter():
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
        return made

    def _litter(self) -> Iterator[Path]:
        """Yield what killed writers left, both kbtui's and git's."""
        heads = self._folder / "refs" / "heads"
        for folder in (self._folder, heads, self._folder / PROPOSALS):
            yield from litter(folder)
        for folder in self._object_folders():
            yield from litter(folder, temporary=_TEMPORARY)
        yield from PackFolder(self._folder).litter()
        for folder in (self._folder, heads):
            for lock in folder.glob("*.lock"):  # no git program holds one for this long
                with contextlib.suppress(FileNotFoundError):
                    if abs(time.time() - lock.stat().st_mtime) > _LOCK_SECONDS:
                        yield lock

    def _damaged_files(self) -> list[str]:
        """Return the names of files with fixed content that differ from it."""
        return [name for name, data in _FIXED.items() if not self._has_content(name, data)]

    def _has_content(self, name: str, data: bytes) -> bool:
        try:
            return (self._folder / name).read_bytes() == data
        except OSError:
            return False

    # Reading ---------------------------------------------------------------------------------

    def head(self) -> str | None:
        """Return the newest commit, or None before the first one."""
        return self.branch.head() if self.exists else None

    def read_object(self, identifier: str) -> tuple[bytes, bytes]:
        """Return the kind and the content of an object.

        Raises:
            NotFoundError: The object doesn't exist or is damaged.
        """
        try:
            found = self._read_loose(identifier)
            if found is None:
                with self._pack_lock:
                    number, data = self._store.get_raw(identifier.encode())  # type: ignore[arg-type]
                found = _KINDS[number], data
        except _UNREADABLE as error:
            raise _damage(identifier) from error
        except Exception as error:
            if not type(error).__module__.startswith("dulwich."):
                raise
            raise _damage(identifier) from error
        return found

    def __contains__(self, identifier: object) -> bool:
        if self.is_loose(str(identifier)):
            return True
        with self._pack_lock:
            return str(identifier).encode() in self._store  # type: ignore[operator]

    def is_intact(self, identifier: str) -> bool:
        """Return whether an object exists and its content matches its id."""
        try:
            return git_object(*self.read_object(identifier)).id == identifier
        except NotFoundError:
            return False

    def read_blob(self, identifier: str) -> bytes:
        """Return the content of a file."""
        return self.read_object(identifier)[1]

    def read_commit(self, identifier: str) -> RawCommit:
        """Read a commit.

        Raises:
            NotFoundError: The object doesn't exist, is damaged or isn't a commit.
        """
        kind, data = self.read_object(identifier)
        if kind != b"commit":
            raise NotFoundError(f"{identifier[:10]} is not a commit.")
        return decode_commit(data)

    def read_tree(self, identifier: str) -> Tree:
        """Return one level of a tree. The result is cached: don't modify it."""
        tree = self._trees.get(identifier)
        return tree if tree is not None else self.remember_tree(identifier)

    def remember_tree(self, identifier: str, tree: Tree | None = None) -> Tree:
        """Cache a tree, since the next change starts from it."""
        if tree is None:
            tree = parse_tree(self.read_object(identifier)[1])
        self._trees.put(identifier, tree)
        return tree

    def read_entries(self, identifier: str) -> list[bytes]:
        """Return one level of a tree as unparsed entries, for comparing: see `trees.split_tree`."""
        entries = self._entries.get(identifier)
        if entries is None:
            entries = split_tree(self.read_object(identifier)[1])
            self._entries.put(identifier, entries)
        return entries

    @staticmethod
    def keeps(path: str) -> bool:
        """Return whether a path may belong to a workspace."""
        return is_recorded(path) and is_path(path)

    def foreign(self, commit: str | None) -> dict[str, TreeEntry]:
        """Return the entries of a commit that don't belong to a workspace, by path.

        A folder with nothing of a workspace's is one entry.
        """
        return dict(self._foreign(self.read_commit(commit).tree, "")) if commit else {}

    def _foreign(self, tree: str, prefix: str) -> Iterator[tuple[str, TreeEntry]]:
        for name, (mode, sha) in self.read_tree(tree).items():
            path = prefix + name.decode("utf-8", "surrogateescape")
            if mode == FOLDER and self.keeps(f"{path}/-"):
                yield from self._foreign(sha.hex(), f"{path}/")
            elif mode not in FILES or not self.keeps(path) or self._unless_large(sha.hex()) is None:
                yield path, (mode, sha)

    def note_large(self, blobs: Collection[str]) -> None:
        """Record blobs that exceed the size limit of a workspace's files and count as foreign."""
        if blobs:
            known = dict.fromkeys([*sorted(self.large), *sorted(blobs)])
            with FileBatch(self._folder) as batch:
                batch.write(LARGE, "".join(f"{blob}\n" for blob in known).encode(), 0o600)
                batch.sync()

    @property
    def large(self) -> frozenset[str]:
        """The blobs that are too large for a workspace's files."""
        try:
            status = os.stat(f"{self._folder}/{LARGE}")  # noqa: PTH116 — asked very often
        except OSError:
            return frozenset()
        stamp = status.st_mtime_ns, status.st_ino
        if self._large[0] != stamp:
            self._large = stamp, frozenset((self._folder / LARGE).read_text("ascii").split())
        return self._large[1]

    def _unless_large(self, blob: str | None) -> str | None:
        return None if blob in self.large else blob

    def files(self, commit: str | None) -> dict[str, str]:
        """Return the blob id of every path in a commit."""
        if commit is None:
            return {}
        found, large = walk_files(self.read_commit(commit).tree, self.read_tree), self.large
        return {path: blob for path, blob in found if blob not in large and self.keeps(path)}

    def blob_at(self, commit: str | None, path: str) -> str | None:
        """Return the blob id of a path in a commit, or None if it isn't there."""
        return self.blobs_at(commit, [path])[path]

    def content_at(self, commit: str | None, path: str) -> bytes | None:
        """Return the content of a path in a commit, or None if it isn't there."""
        return self.contents_at(commit, [path])[path]

    def contents_at(self, commit: str | None, paths: Iterable[str]) -> dict[str, bytes | None]:
        """Return the content of each path in a commit, None if it isn't there."""
        blobs = self.blobs_at(commit, paths)
        return {p: None if blob is None else self.read_blob(blob) for p, blob in blobs.items()}

    def blobs_at(self, commit: str | None, paths: Iterable[str]) -> dict[str, str | None]:
        """Return the blob id of each path in a commit, None if it isn't there."""
        if commit is None:
            return dict.fromkeys(paths)
        tree = self.read_commit(commit).tree
        read, large = self.read_tree, self.large
        found = {
            path: blob_in_tree(tree, path, read) if self.keeps(path) else None for path in paths
        }
        if not large:
            return found
        return {path: None if blob in large else blob for path, blob in found.items()}

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
        large = self.large
        for path, was, now in compare_trees(old, new, self.read_entries):
            was, now = (None if blob in large else blob for blob in (was, now))  # noqa: PLW2901
            if was != now and self.keeps(path):
                yield path, was, now

    def compare_all(self, old: str, new: str) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield (path, old blob id, new blob id) where two trees of any content differ."""
        return compare_trees(old, new, self.read_entries)

    def with_prefix(self, prefix: str) -> list[str]:
        """Return the ids of commits that begin with `prefix`."""
        if not self.exists:
            return []
        try:
            found = {
                sha.decode()
                for sha in self._query_packs(lambda store: set(store.iter_prefix(prefix.encode())))
            }
        except _UNREADABLE as error:
            raise _damage(prefix) from error
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
        """Write objects durably; call it before anything refers to them."""
        self.confirm()
        wanted = {made.id: made for made in objects if not self.is_loose(made.id)}
        if len(wanted) >= _MIN_PACK:
            self._store_pack(wanted.values())
            return
        self._make_object_folders({identifier[:_FAN_OUT] for identifier in wanted})
        with FileBatch(self._folder / "objects", temporary=_TEMPORARY) as batch:
            for made in wanted.values():
                level = 0 if _is_dense(made.data) else _LEVEL
                packed = zlib.compress(b"%s %d\0%s" % (made.kind, len(made.data), made.data), level)
                batch.write(f"{made.id[:2]}/{made.id[2:]}", packed, 0o444)
            batch.sync()

    def _make_object_folders(self, names: Iterable[str]) -> None:
        """Create those of the 256 folders of loose objects that are missing, and sync them once."""
        made = False
        for name in names:
            with contextlib.suppress(FileExistsError):
                os.mkdir(f"{self._folder}/objects/{name}", 0o700)  # noqa: PTH102 — often
                made = True
        if made:
            sync_folder(self._folder / "objects")

    def _store_pack(self, objects: Collection[GitObject]) -> None:
        """Write new objects as one durable pack, without reading it back as `write_pack` does."""
        from dulwich.object_format import SHA1
        from dulwich.pack import iter_sha1, write_pack_data, write_pack_index

        _keep_heap()
        pack, index = io.BytesIO(), io.BytesIO()
        records = as_unpacked(PackRecord(made.id, made.kind, made.data) for made in objects)
        places, check_sum = write_pack_data(
            pack.write, records, SHA1, num_records=len(objects), compression_level=_LEVEL
        )
        entries = sorted((name, *place) for name, place in places.items())
        write_pack_index(index, entries, check_sum)
        name = f"pack-{iter_sha1(entry[0] for entry in entries).decode()}"
        if PackFolder(self._folder).holds(name):
            return
        with FileBatch(self._folder / "objects", temporary="tmp_pack_") as batch:
            for suffix, data in (("pack", pack), ("idx", index)):  # the index makes it take effect
                batch.write(f"pack/{name}.{suffix}", data.getvalue(), 0o444)
                batch.sync()

    def _object_folders(self) -> list[Path]:
        """Return the folders of loose objects, of which a young history has few."""
        objects = self._folder / "objects"
        with contextlib.suppress(OSError):
            return [objects / name for name in sorted(os.listdir(objects)) if len(name) == _FAN_OUT]
        return []

    def count_loose(self) -> int:
        """Estimate the number of loose objects from one of their 256 folders, as git does."""
        try:
            return len(os.listdir(self._folder / "objects" / "17")) * 256
        except OSError:
            return 0

    def is_loose(self, identifier: str) -> bool:
        """Return whether an object is stored loose, in a file of its own."""
        return os.path.exists(self._loose_path(identifier))  # called very often

    def all_objects(self) -> Iterator[str]:
        """Yield the id of every stored object, reachable or not."""
        for folder in self._object_folders():
            for name in sorted(os.listdir(folder)):
                if len(name) == _LOOSE_NAME:
                    yield folder.name + name
        yield from sorted(
            entry.hex()
            for entry in self._query_packs(
                lambda store: {e[0] for pack in store.packs for e in pack.index.iterentries()}
            )
        )

    def keep_only(self, pack: str) -> None:
        """Delete every object that isn't in the given pack."""
        objects = self._folder / "objects"
        self.close()
        for file in (objects / "pack").iterdir():
            if file.stem != f"pack-{pack}":
                file.unlink()
        for folder in objects.iterdir():
            if folder.name != "pack":
                for file in folder.rglob("*"):
                    if file.is_file():
                        file.unlink()
        sync_folder(objects / "pack")
        self._trees.clear()
        self._entries.clear()

    def write_pack(
        self,
        count: int,
        records: Iterable[PackRecord],
        level: int = _LEVEL,
        objects: Path | None = None,
    ) -> str:
        """Write objects as one durable pack and verify it.

        Args:
            count: The number of records.
            records: The objects.
            level: The compression level of zlib.
            objects: A staging folder to write to instead of the repository's ``objects``.

        Returns:
            The name of the pack: the hex digits in its file names.

        Raises:
            StorageError: The pack doesn't hold exactly the given objects.
        """
        from dulwich.errors import ApplyDeltaError, ChecksumMismatch
        from dulwich.pack import UnresolvedDeltas

        wanted: set[bytes] = set()

        def recorded() -> Iterator[PackRecord]:
            for record in records:
                wanted.add(bytes.fromhex(record.id))
                yield record

        objects = objects or self._folder / "objects"
        # A store of its own, so that readers of the shared one don't wait.
        with contextlib.closing(self._open_store(level, objects)) as store:
            try:
                pack = store.add_pack_data(count, as_unpacked(recorded()))
            except (ApplyDeltaError, ChecksumMismatch, UnresolvedDeltas) as error:
                raise StorageError(f"A pack could not be written: {error}.") from error
            # The index was made by reading the pack back, so it names what is really there.
            held = {entry[0] for entry in pack.index.iterentries()} if pack else set()
            name = pack.name().decode() if pack else ""
        if held != wanted:
            for suffix in (".idx", ".pack"):
                (objects / "pack" / f"pack-{name}{suffix}").unlink(missing_ok=True)
            raise StorageError("A pack was not written as it should be; nothing was removed.")
        sync_folder(objects / "pack")
        return name

    def drop_loose(self, identifiers: Iterable[str]) -> None:
        """Delete the loose copies of packed objects."""
        for identifier in identifiers:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._loose_path(identifier))  # noqa: PTH108 — thousands at once

    # dulwich ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the files; the next access opens them again."""
        store, self._opened = self._opened, None
        if store is not None:
            store.close()

    @property
    def _store(self) -> DiskObjectStore:
        if self._opened is None:
            self._opened = self._open_store()
            weakref.finalize(self, self._opened.close)  # until then, packs stay open
        return self._opened

    def close_missing_packs(self) -> None:
        """Close packs that no longer exist."""
        if self._opened is not None:
            with self._pack_lock:
                self._opened.packs  # noqa: B018 — the property closes missing packs

    def _query_packs(self, query: Callable[[DiskObjectStore], set[Any]]) -> set[Any]:
        """Query all packs, retrying if packs were replaced meanwhile."""
        from dulwich.pack import PackFileDisappeared

        with self._pack_lock:
            for _ in range(_ATTEMPTS):
                self._store.packs  # noqa: B018 — the property closes missing packs
                with contextlib.suppress(PackFileDisappeared):
                    return query(self._store)
        raise StorageError("The history's packs change all the time.", "Try again in a moment.")

    def _open_store(self, level: int = _LEVEL, objects: Path | None = None) -> DiskObjectStore:
        from dulwich.object_store import DiskObjectStore

        return DiskObjectStore(
            objects or self._folder / "objects",
            fsync_object_files=True,
            loose_compression_level=_LEVEL,
            pack_compression_level=level,
            delta_base_cache_limit=_DELTA_CACHE,
        )


def as_unpacked(records: Iterable[PackRecord]) -> Iterator[UnpackedObject]:
    """Convert records to the type that dulwich writes packs from.

    Incompressible data is stored uncompressed.
    """
    from dulwich.object_format import SHA1
    from dulwich.pack import UnpackedObject, pack_object_header

    for record in records:
        unpacked = UnpackedObject(
            _NUMBERS[record.kind],
            delta_base=bytes.fromhex(record.base) if record.base else None,
            decomp_len=len(record.data),
            sha=bytes.fromhex(record.id),
            decomp_chunks=[record.data],
        )
        if record.base is None and _is_dense(record.data):
            head = pack_object_header(_NUMBERS[record.kind], None, len(record.data), SHA1)
            unpacked.comp_chunks = [bytes(head), zlib.compress(record.data, 0)]
        yield unpacked


def _is_dense(data: bytes) -> bool:
    """Sample whether data is incompressible, as pictures are: compressing takes 20 ms/MB."""
    if len(data) < _SAMPLED:
        return False
    middle = (len(data) - _SAMPLED) // 2
    return len(zlib.compress(data[middle : middle + _SAMPLED], _LEVEL)) > _DENSE * _SAMPLED


_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_NUMBERS = {name: number for number, name in _KINDS.items()}


def plain_environment() -> dict[str, str]:
    """Return an environment in which git obeys no settings but the repository's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }
