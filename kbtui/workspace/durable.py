"""Crash-safe file writes: atomic, synced to disk, and never through a symbolic link.

The sequence for one file is that of SQLite and restic: a temporary file in the same folder, write,
fsync, rename over the old one, fsync the folder. After a crash the file is the old or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

from kbtui.errors import KbtuiError, NotFoundError, StorageError, UnsafePathError
from kbtui.workspace.layout import Layout, located

TEMPORARY = ".kbtui-"
SYNC_TOGETHER = 50
"""The number of files synced together: large enough to be fast, small enough to cancel soon."""
_SYNC_THREADS = 16
_MAX_OPEN_FOLDERS = 200
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_NAMES = frozenset({"", ".", ".."})
_STILL_READABLE = " Reading and searching still work."
_HINTS = {
    errno.ENOSPC: "Free some space on that disk and try again; what was there before is intact.",
    errno.EDQUOT: "Your disk quota is used up. Free some space and try again.",
    errno.EROFS: f"The disk is mounted read-only.{_STILL_READABLE}",
    errno.EACCES: f"Check who owns the folder: `ls -ld FOLDER`.{_STILL_READABLE}",
    errno.EPERM: f"Check who owns the folder: `ls -ld FOLDER`.{_STILL_READABLE}",
    errno.EIO: "The disk reported a failure. Check it before you trust it with more.",
}


def storage_error(error: OSError, doing: str) -> KbtuiError:
    """Describe what the file system refused, with a hint."""
    reason = (error.strerror or str(error)).lower()
    if error.errno == errno.ENOENT:
        return NotFoundError(f"{doing}: there is no such file or folder.")
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return UnsafePathError(
            f"{doing}: a link or a file stands where a folder should be.",
            "kbtui follows no links inside a workspace. Replace it with a real folder.",
        )
    hint = _HINTS.get(error.errno or 0, "")
    if doing.startswith(("Can't read", "Can't open", "Can't look")):
        hint = hint.removesuffix(_STILL_READABLE)  # reading is what failed
    return StorageError(f"{doing}: {reason}.", hint)


@contextlib.contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Convert an `OSError` in the block to a `KbtuiError`."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing) from error


def real_name(folder: int, name: str) -> str:
    """Return a file's name on disk, which may be decomposed (NFD) if `name` is NFC."""
    if name.isascii():
        return name
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        for other in os.listdir(folder):
            if unicodedata.normalize("NFC", other) == name:
                return other
    return name


def open_folder(root: Path, parts: Sequence[str], *, make: bool = False, mode: int = 0o777) -> int:
    """Open a folder below `root` step by step without following links; the caller closes it.

    A folder below a regular file counts as missing.
    """
    if not _NO_NAMES.isdisjoint(parts):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), "/".join(parts))
    folder = os.open(root, _FOLDER)
    try:
        for part in parts:
            below = _open_part(folder, part, make=make, mode=mode)
            os.close(folder)
            folder = below
    except BaseException:
        os.close(folder)
        raise
    return folder


def _open_part(folder: int, part: str, *, make: bool, mode: int) -> int:
    name = real_name(folder, part)
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    except NotADirectoryError:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if make or not stat.S_ISREG(status.st_mode):
            raise
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
    with contextlib.suppress(FileExistsError):  # created concurrently
        os.mkdir(name, mode, dir_fd=folder)
        os.fsync(folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def temporary_name(prefix: str = TEMPORARY) -> str:
    """Return a unique name that identifies this process."""
    return f"{prefix}{os.getpid()}-{secrets.token_hex(6)}.tmp"


def sweep(folder: Path, *, everybody: bool = False) -> None:
    """Remove the temporary files that dead processes left in a folder.

    With `everybody`, also those of live ones: for folders that are written only under a lock that
    the caller holds.
    """
    for file in litter(folder, everybody=everybody):
        with contextlib.suppress(OSError):
            file.unlink()


def litter(folder: Path, *, everybody: bool = False, temporary: str = TEMPORARY) -> Iterator[Path]:
    """Yield the temporary files that dead processes left in a folder; with `everybody`, all."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        owner = name.removeprefix(temporary).partition("-")[0]
        is_ours = name.startswith(temporary) and name.endswith(".tmp") and owner.isdecimal()
        if is_ours and (everybody or not is_alive(int(owner))):
            yield folder / name


def is_alive(process: int) -> bool:
    """Return whether a process is running, including other users' processes."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def write_all(file: int, data: bytes) -> None:
    """Write all bytes, since the operating system may accept fewer at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that renames and removals in it are durable."""
    descriptor = os.open(folder, _FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(root: Path | Layout, path: str) -> None:
    """Create a folder below an existing one, and those above it, without following links.

    Raises:
        OSError: `root` isn't there, or the file system refused.
    """
    if isinstance(root, Layout):
        root.confirm()
    top, folder = located(root, path)
    os.close(open_folder(top, folder.split("/"), make=True, mode=0o700))


def remove_folder(root: Path | Layout, path: str) -> None:
    """Remove an empty folder.

    Raises:
        OSError: It isn't empty, or doesn't exist.
    """
    top, folder = located(root, path)
    *parts, name = folder.split("/")
    above = open_folder(top, parts)
    try:
        os.rmdir(real_name(above, name), dir_fd=above)
        os.fsync(above)
    finally:
        os.close(above)


USUAL_MODE = 0o644
"""The mode of new files, before the umask."""


Data: TypeAlias = bytes | Iterable[bytes]
"""The content of a file; parts of a long one are made as they are written."""


class Written(NamedTuple):
    """The identity of a file as written, to detect that others have replaced or changed it."""

    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """Return the identity of a file with this status."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


class FileBatch:
    """Files below one folder, each replaced atomically; `sync` makes all of them durable.

    Folders stay open until `close`, so each is opened and synced once.
    """

    def __init__(
        self,
        root: Path | Layout,
        temporary: str = TEMPORARY,
        known: Mapping[str, tuple[str, int]] | None = None,
    ) -> None:
        """Prepare without opening anything; `known` has unusual names and modes of new files."""
        self._root = root
        self._temporary = temporary
        self._known = {} if known is None else known
        self._folders: dict[tuple[Path, tuple[str, ...]], int] = {}
        self._touched: set[int] = set()
        self._pool: ThreadPoolExecutor | None = None
        self.written: dict[str, Written] = {}
        """The files written, with their identity at that time."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(
        self,
        path: str,
        data: Data,
        mode: int = USUAL_MODE,
        just_before: Callable[[str, int, str], None] = lambda _path, _folder, _name: None,
    ) -> None:
        """Replace one file, like `write_together`."""
        self.write_together({path: data}, mode, just_before)

    def write_together(
        self,
        files: Mapping[str, Data],
        mode: int = USUAL_MODE,
        just_before: Callable[[str, int, str], None] = lambda _path, _folder, _name: None,
    ) -> None:
        """Replace files one after the other after syncing them all at once, which is faster.

        Existing files keep their mode and, if permitted, their owner. `just_before` is called with
        the path, its open folder and its name there just before the rename; an exception in it
        stops the writing.
        """
        self._confirm()
        self._close_some()
        ready: list[tuple[str, int, str, str]] = []
        try:
            for path, data in files.items():
                root, file = located(self._root, path)
                *parts, last = file.split("/")
                folder = self._folder(root, tuple(parts))
                name = real_name(folder, last)
                old = _regular(folder, name)
                usual = name, mode
                name, its_mode = self._known.get(path, usual) if old is None else usual
                temporary = temporary_name(self._temporary)
                ready.append((path, folder, name, temporary))
                self.written[path] = self._write_temporary(folder, temporary, data, its_mode, old)
            self._sync_all([(folder, temporary) for _path, folder, _name, temporary in ready])
            while ready:
                path, folder, name, temporary = ready[0]
                just_before(path, folder, name)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                self._touched.add(folder)
                del ready[0]
        except BaseException:
            for _path, folder, _name, temporary in ready:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
            raise

    def place(self, path: str) -> tuple[int, str]:
        """Return a file's open folder, valid until the next call, and its name there."""
        if len(self._folders) > _MAX_OPEN_FOLDERS:
            self._close_some()
        root, file = located(self._root, path)
        *parts, name = file.split("/")
        folder = self._folder(root, tuple(parts), make=False)
        return folder, real_name(folder, name)

    def remove(self, path: str) -> None:
        """Remove one file, if it exists."""
        self._confirm()
        root, file = located(self._root, path)
        *parts, name = file.split("/")
        with contextlib.suppress(FileNotFoundError):
            folder = self._folder(root, tuple(parts), make=False)
            os.unlink(real_name(folder, name), dir_fd=folder)
            self._touched.add(folder)

    def sync(self) -> None:
        """Make all renames and removals so far durable."""
        for folder in self._touched:
            os.fsync(folder)
        self._touched.clear()

    def _confirm(self) -> None:
        """Make sure that the workspace is still the one that was opened."""
        if isinstance(self._root, Layout):
            self._root.confirm()

    def _close_some(self) -> None:
        """Limit the number of open folders."""
        if len(self._folders) > _MAX_OPEN_FOLDERS:
            self.sync()
            self.close()

    def close(self) -> None:
        """Close the folders."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        for folder in self._folders.values():
            os.close(folder)
        self._folders.clear()

    def _folder(self, root: Path, parts: tuple[str, ...], *, make: bool = True) -> int:
        folder = self._folders.get((root, parts))
        if folder is None:
            folder = self._folders[root, parts] = open_folder(root, parts, make=make)
        return folder

    def _sync_all(self, files: Sequence[tuple[int, str]]) -> None:
        """Sync files, given by folder and name, concurrently; a part of them in this thread."""
        ours, *parts = [files[start::_SYNC_THREADS] for start in range(_SYNC_THREADS)]
        if self._pool is None and any(parts):
            self._pool = ThreadPoolExecutor(_SYNC_THREADS - 1)
        others = [self._pool.submit(_sync_files, part) for part in parts if self._pool and part]
        try:
            _sync_files(ours)
        finally:
            wait(others)
        for each in others:
            each.result()

    @staticmethod
    def _write_temporary(
        folder: int, name: str, data: Data, mode: int, old: os.stat_result | None
    ) -> Written:
        file = os.open(name, _NEW_FILE, mode, dir_fd=folder)
        try:
            if old is not None:
                os.fchmod(file, stat.S_IMODE(old.st_mode))
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    with contextlib.suppress(PermissionError):
                        os.fchown(file, old.st_uid, old.st_gid)
            elif mode != USUAL_MODE:
                os.fchmod(file, mode)
            for part in (data,) if isinstance(data, bytes) else data:
                write_all(file, part)
            # Linux gives the rename that follows a later time than those read here.
            return Written.of(os.fstat(file))
        finally:
            os.close(file)


def _sync_files(files: Sequence[tuple[int, str]]) -> None:
    for folder, name in files:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _regular(folder: int, name: str) -> os.stat_result | None:
    """Return the status of a replaceable file; None if there is none, or only empty folders."""
    try:
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(old.st_mode):
            _remove_empty_tree(folder, name)
            return None
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(old.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return old


def _remove_empty_tree(folder: int, name: str) -> None:
    """Remove a folder that contains only folders; leave one with a file as it is."""
    walked = [(each, held) for each, _, held, _ in os.fwalk(name, topdown=False, dir_fd=folder)]
    if any(held for _, held in walked):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    for each, _ in walked:
        os.rmdir(each, dir_fd=folder)
