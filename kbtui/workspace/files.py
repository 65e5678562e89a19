"""Access to the user's files by workspace path: checked names, capped reads, crash-safe writes.

A workspace path is relative, POSIX and NFC. It has no hidden parts, goes through no link and never
leaves the workspace.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from kbtui.errors import NotFoundError, UnreadableError, UnsafePathError
from kbtui.text import clean, is_damaged_unicode, storable
from kbtui.workspace.durable import (
    FileBatch,
    Written,
    open_folder,
    real_name,
    storage_error,
    storage_errors,
)
from kbtui.workspace.layout import Layout, conflict_copy_of, located

READ_LIMIT = 50 * 1024 * 1024
_CACHE_LIMIT = 32_768  # bytes; hashes of longer files aren't kept
# Matches the great majority of paths, which need no closer look.
_SIMPLE_PATH = re.compile(r"\w[\w.,+-]{0,99}(?:/\w[\w .,+-]{0,99}){0,8}", re.ASCII)
_FORBIDDEN = frozenset("\\\t\n")
_MAX_NAME = 255
_MAX_PATH = 1024
MAX_DEPTH = 40
"""The maximum number of parts in a newly recorded path."""
# Names that other systems resolve to ".git" or to another stream of a file (git's CVE-2019-1352).
_ALIASES = re.compile(r"git~\d+|.*:\$[a-z_]+.*|.*::.*", re.IGNORECASE | re.DOTALL)
# Characters that HFS+ ignores in names, such as in a disguised ".git" (git's CVE-2014-9390).
_IGNORABLE = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OF_WINDOWS = "cp1252"


class _FolderError(UnreadableError):
    """A folder is where a file should be, so there is no file."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded text; not `exact` if its bytes weren't valid in the encoding that files are in."""

    text: str
    encoding: str
    exact: bool


def checked_path(path: str) -> str:
    """Normalise a workspace path.

    Raises:
        UnsafePathError: It is absolute, leads outside, is hidden or can't be a name.
    """
    if _SIMPLE_PATH.fullmatch(path):
        return path
    normal = unicodedata.normalize("NFC", path)
    parts = [part for part in normal.split("/") if part not in {"", "."}]
    if normal.startswith("/") or not parts:
        raise _unsafe(path, "it is not a path inside the workspace")
    if not _FORBIDDEN.isdisjoint(normal) or clean(normal) != normal:
        raise _unsafe(path, "it holds a backslash or characters that can't be seen")
    if any(part.translate(_IGNORABLE).startswith(".") for part in parts):
        raise _unsafe(path, "hidden files and `..` are not for notes")
    try:
        longest = max(len(part.encode()) for part in parts)
    except UnicodeEncodeError as error:
        raise _unsafe(path, "it is not valid Unicode") from error
    if longest > _MAX_NAME or len(normal.encode()) > _MAX_PATH:
        raise _unsafe(path, "it is too long for a file name")
    return "/".join(parts)


def is_path(path: str) -> bool:
    """Return whether it can be a workspace path: see `checked_path`."""
    try:
        return bool(checked_path(path))
    except UnsafePathError:
        return False


def is_portable(path: str) -> bool:
    """Return whether every system can store a file of this name, as is required of new ones.

    Files that were recorded before this rule keep their names until a sync renames them.
    """
    return not name_trouble(path)


def name_trouble(path: str) -> str:
    """Describe why some systems can't store a file of this name; empty if all can."""
    if _SIMPLE_PATH.fullmatch(path) and not (
        " /" in path or "./" in path or path.endswith((" ", "."))
    ):
        return ""
    try:
        normal = checked_path(path)
    except UnsafePathError as error:
        return error.message.rpartition("can't be used: ")[2].rstrip(".")
    parts = path.split("/")
    troubles = (
        ("it ends in a blank or a dot", any(part.endswith((" ", ".")) for part in parts)),
        ("other systems read it otherwise", any(map(_ALIASES.fullmatch, parts))),
        (f"it lies more than {MAX_DEPTH} folders deep", len(parts) > MAX_DEPTH),
        ("its letters are decomposed", normal != path),
    )
    return next((why for why, is_so in troubles if is_so), "")


def _unsafe(path: str, why: str) -> UnsafePathError:
    shown = storable(clean(path))[:200]
    return UnsafePathError(
        f"{shown!r} can't be used: {why}.",
        "Name a file inside the workspace, such as <folder>/<name>.md.",
    )


def blob_id(data: bytes) -> str:
    """Return the content hash used everywhere: git's SHA-1 of a blob."""
    return _blob_id(data) if len(data) < _CACHE_LIMIT else _blob_id.__wrapped__(data)


# The door, the intent, the catalogue and the index each ask for it of everything that is written.
@lru_cache(maxsize=512)
def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def blob_of(data: bytes | None) -> str | None:
    """Return the content hash of a file, or None if there is no file."""
    return None if data is None else blob_id(data)


def read_bytes(root: Layout, path: str, limit: int = READ_LIMIT) -> bytes:
    """Read one file.

    Raises:
        NotFoundError: It doesn't exist.
        UnsafePathError: The path leads through a link or outside.
        UnreadableError: It is larger than `limit` bytes, or not a regular file.
        StorageError: The file system refused.
    """
    path = checked_path(path)
    top, file = located(root, path)
    *parts, name = file.split("/")
    with storage_errors(f"Can't read {file}"):
        folder = open_folder(top, parts)
        try:
            return _read(folder, real_name(folder, name), file, limit)
        finally:
            os.close(folder)


def read_if_there(root: Layout, path: str) -> bytes | None:
    """Read one file; None if there is none, or a folder. Otherwise raises like `read_bytes`."""
    try:
        return read_bytes(root, path)
    except (NotFoundError, _FolderError):
        return None


def read_pieces(root: Layout, path: str) -> Iterator[bytes]:
    """Yield a file of any size in pieces of up to 50 MB; raises like `read_bytes`."""
    path = checked_path(path)
    top, file = located(root, path)
    *parts, name = file.split("/")
    with storage_errors(f"Can't read {file}"):
        folder = open_folder(top, parts)
        try:
            yield from _pieces(folder, real_name(folder, name), file, None)
        finally:
            os.close(folder)


def read_each(root: Layout, paths: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
    """Yield many files, None if missing, opening each folder once; raises like `read_bytes`."""
    with FileBatch(root) as folders:
        for path in paths:
            file = located(root, path)[1]
            with storage_errors(f"Can't read {file}"):
                try:
                    data = read_in(*folders.place(checked_path(path)), file)
                except FileNotFoundError:  # the folder is missing as well
                    data = None
            yield path, data


def read_in(folder: int, name: str, file: str) -> bytes | None:
    """Read a file in an open folder; None if missing. Raises `OSError`, or like `read_bytes`."""
    try:
        return _read(folder, name, file, READ_LIMIT)
    except (FileNotFoundError, _FolderError):
        return None


def _read(folder: int, name: str, path: str, limit: int) -> bytes:
    return b"".join(_pieces(folder, name, path, limit))


def _pieces(folder: int, name: str, path: str, limit: int | None) -> Iterator[bytes]:
    # O_NONBLOCK: opening a named pipe would otherwise wait for its writer forever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = _FolderError if stat.S_ISDIR(status.st_mode) else UnreadableError
            raise kind(f"{path} is not a file.")
        if limit is not None and status.st_size > limit:
            size, maximum = status.st_size / 2**20, limit / 2**20
            raise UnreadableError(
                f"{path} is too large: {size:,.1f} MB, at most {maximum:,.1f} MB."
            )
        while piece := os.read(descriptor, min(status.st_size, READ_LIMIT) + 1):
            yield piece
    finally:
        os.close(descriptor)


def decode(data: bytes) -> Decoded:
    """Decode bytes as UTF-8, or according to a byte order mark; bad bytes become U+FFFD.

    A text that is from old Windows is read as such, though not `exact`: nothing in it says so.
    """
    encoding = "utf-8"
    for mark, name in _BOMS:
        if data.startswith(mark):
            encoding = name
    try:
        return Decoded(data.decode(encoding), encoding, exact=True)
    except UnicodeDecodeError as error:
        text = data.decode(encoding, "replace")
        first = error.start
    if encoding == "utf-8" and b"\0" not in data and not is_damaged_unicode(data, text, first):
        with contextlib.suppress(UnicodeDecodeError):
            return Decoded(data.decode(_OF_WINDOWS), _OF_WINDOWS, exact=False)
    return Decoded(text, encoding, exact=False)


def encoded_as(text: str, old: Decoded) -> bytes:
    """Encode a text as another one; in UTF-8 if old Windows has no sign for a part of it."""
    if old.encoding == _OF_WINDOWS:
        with contextlib.suppress(UnicodeEncodeError):
            return text.encode(_OF_WINDOWS)
        return text.encode("utf-8", "replace")
    return text.encode(old.encoding, "replace")


def text_of(data: bytes | None) -> str:
    """Return a file's text as by `decode`; empty for None."""
    return decode(data or b"").text


def read_text(root: Layout, path: str) -> str:
    """Read one file as text; raises like `read_bytes`, but not for undecodable bytes."""
    return text_of(read_bytes(root, path))


def exists(root: Layout, path: str) -> bool:
    """Return whether there is a regular file; False also for links and unreachable files."""
    return file_status(root, path) is not None


def file_status(root: Layout, path: str) -> os.stat_result | None:
    """Return the status of a regular file, or None if there is none."""
    top, file = located(root, checked_path(path))
    *parts, name = file.split("/")
    try:
        folder = open_folder(top, parts)
        try:
            status = os.stat(real_name(folder, name), dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(folder)
    except OSError as error:
        _check_absent(file, error)
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def file_statuses(root: Layout, paths: Iterable[str]) -> Iterator[os.stat_result | None]:
    """Yield the status of each file like `file_status`, opening each folder once."""
    with FileBatch(root) as folders:
        for path in map(checked_path, paths):
            try:
                folder, name = folders.place(path)
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except OSError as error:
                _check_absent(located(root, path)[1], error)
                yield None
            else:
                yield status if stat.S_ISREG(status.st_mode) else None


def _check_absent(file: str, error: OSError) -> None:
    """Raise unless an error says that there is no such file."""
    if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES}:
        raise storage_error(error, f"Can't look at {file}") from error


def is_protected(root: Layout, path: str) -> bool:
    """Return whether a file's mode forbids its user to write it, although it could be replaced."""
    status = file_status(root, path)
    if status is None:
        return False
    is_closed = not os.access(root.place(checked_path(path)), os.W_OK)  # never so for root
    return is_closed or not status.st_mode & stat.S_IWUSR


def why_closed(folder: Path) -> str:
    """Return why a folder can't be read; empty if it can, or doesn't exist."""
    is_closed = folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK)
    return os.strerror(errno.EACCES).lower() if is_closed else ""


def is_gone(root: Layout, path: str) -> bool:
    """Return whether a file certainly doesn't exist; False if that can't be determined."""
    top, file = located(root, checked_path(path))
    above, depth = f"{top}", file.count("/")
    for level, part in enumerate(file.split("/")):  # with strings, as an import asks for each note
        place = f"{above}/{part}"
        try:
            mode = os.lstat(place).st_mode
        except FileNotFoundError:
            if os.path.exists(f"{above}/.{part}.icloud"):
                return False  # iCloud has it and downloads it on demand
            return unicodedata.is_normalized("NFD", part) or not _has_other_form(Path(place))
        except OSError:
            return False
        if stat.S_ISLNK(mode):
            return False
        if not stat.S_ISDIR(mode):
            return level < depth
        above = place
    return False


def is_blocked(root: Layout, path: str, known: Container[str]) -> bool:
    """Return whether something that isn't `known` prevents a file from being written.

    This is a link or a file above it, or a folder in its place with other than known files.
    """
    file = located(root, checked_path(path))[1]
    place, parts = root.root, file.split("/")
    for depth, part in enumerate(parts, 1):
        place /= part
        try:
            mode = place.lstat().st_mode
        except OSError:
            return False
        if not stat.S_ISDIR(mode):
            above = root.path_of("/".join(parts[:depth]))
            return not stat.S_ISREG(mode) or (depth < len(parts) and above not in known)
    inside = place.rglob("*")
    others = (each for each in inside if each.is_symlink() or not each.is_dir())
    return any(root.path_of(each.relative_to(root.root).as_posix()) not in known for each in others)


def is_folder(root: Layout, path: str) -> bool:
    """Return whether there is a folder at the path."""
    top, file = located(root, checked_path(path))
    return os.path.isdir(f"{top}/{file}")  # asked of each new file


def _has_other_form(place: Path) -> bool:
    """Return whether the folder contains the name in another Unicode form."""
    try:
        return any(
            unicodedata.normalize("NFC", other.name) == place.name
            for other in place.parent.iterdir()
        )
    except OSError:
        return True


def twin(root: Layout, path: str) -> str | None:
    """Return a file beside `path` whose name differs only in case, or None."""
    return twins(root, [path]).get(path)


def twins(root: Layout, paths: Iterable[str]) -> dict[str, str]:
    """Return the files that differ from other paths only in case, by these paths.

    Each folder is listed once, however many of its files are asked about.
    """
    together: dict[str, dict[str, str]] = {}
    for path in paths:
        folder, _, name = checked_path(path).rpartition("/")
        together.setdefault(folder, {})[path] = name
    found: dict[str, str] = {}
    for folder, asked in together.items():
        by_name: dict[str, list[str]] = {}
        with contextlib.suppress(OSError):
            for other in _names_beside(root, next(iter(asked))):
                by_name.setdefault(other.casefold(), []).append(other)
        for path, name in asked.items():
            others = (each for each in by_name.get(name.casefold(), ()) if each != name)
            for first in islice(others, 1):
                found[path] = f"{folder}/{first}" if folder else first
    return found


def listed(root: Layout, paths: Sequence[str]) -> list[str]:
    """Return those paths of one folder that it lists, ignoring case; all if it can't be read.

    A listed path may be a folder, or differ in case: only reading it tells.
    """
    try:
        here = {name.casefold() for name in _names_beside(root, paths[0])}
    except FileNotFoundError:
        return []
    except OSError:
        return list(paths)
    return [path for path in paths if path.rpartition("/")[2].casefold() in here]


def names_in(root: Layout, folder: str) -> set[str]:
    """Return the names of the files and folders in a folder, in one case; none if it's missing.

    Those of files that iCloud downloads on demand are among them.

    Raises:
        UnsafePathError: The folder is reached through a link.
        StorageError: The file system refused.
    """
    try:
        names = _names_beside(root, f"{folder}/-")
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise storage_error(error, f"Can't look at {folder}") from error
    later = [name[1:-7] for name in names if name.startswith(".") and name.endswith(".icloud")]
    return {name.casefold() for name in (*names, *later)}


def _names_beside(root: Layout, path: str) -> list[str]:
    """Return the NFC names in the folder of a path; raises `OSError`."""
    top, file = located(root, checked_path(path))
    folder = open_folder(top, file.split("/")[:-1])
    try:
        names = os.listdir(folder)
    finally:
        os.close(folder)
    return [unicodedata.normalize("NFC", name) for name in names]


def free_conflict_copy(root: Layout, path: str, stamp: str, blob: str) -> str:
    """Return the path for the conflict copy of a file with this content.

    It is another one's only if that has the same content: a clock may say one time twice.
    """
    copy, number = conflict_copy_of(path, stamp), 1
    while blob_of(read_if_there(root, copy)) not in {None, blob}:
        number += 1
        copy = conflict_copy_of(path, f"{stamp}-{number}")
    return copy


def write_atomic(root: Layout, path: str, data: bytes) -> Written:
    """Replace one file so that a crash leaves the old or the new one, never a mixture.

    Returns:
        The identity of the written file, for `Scanner.note`.

    Raises:
        UnsafePathError: The path leads through a link or outside.
        StorageError: The file system refused; the old file is intact.
    """
    path = checked_path(path)
    with storage_errors(f"Can't write {located(root, path)[1]}"), FileBatch(root) as batch:
        batch.write(path, data)
        batch.sync()
        return batch.written[path]


def write_machine_file(root: Path | Layout, path: str, data: bytes) -> None:
    """Like `write_atomic`, with mode 0600, for kbtui's own files in hidden folders."""
    with storage_errors(f"Can't write {path}"), FileBatch(root) as batch:
        batch.write(path, data, 0o600)
        batch.sync()


def remove(root: Layout, path: str) -> None:
    """Remove one file durably, if it exists."""
    path = checked_path(path)
    with storage_errors(f"Can't remove {located(root, path)[1]}"), FileBatch(root) as batch:
        batch.remove(path)
        batch.sync()
