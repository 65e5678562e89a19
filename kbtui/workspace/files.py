"""The user's files, by workspace path: checked names, capped reads, writes that survive a crash.

A workspace path is relative, POSIX and NFC. It names no dotfile, leads through no link and never
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
from itertools import islice
from pathlib import Path

from kbtui.errors import NotFoundError, UnreadableError, UnsafePathError
from kbtui.text import clean
from kbtui.workspace.durable import (
    FileBatch,
    Written,
    open_folder,
    real_name,
    storage_error,
    storage_errors,
)
from kbtui.workspace.layout import Layout, located

READ_LIMIT = 50 * 1024 * 1024
# What needs no closer look: the great majority of names.
_PLAIN = re.compile(r"\w[\w.,+-]{0,99}(?:/\w[\w .,+-]{0,99}){0,8}", re.ASCII)
_UNSEEN = frozenset("\\\t\n")
_MAX_NAME = 255
_MAX_PATH = 1024
MAX_DEPTH = 40
"""The most names in a path of what is newly recorded."""
# What other systems take for ".git", and for another stream of a file (git's CVE-2019-1352).
_DISGUISED = re.compile(r"git~\d+|.*:\$[a-z_]+.*|.*::.*", re.IGNORECASE | re.DOTALL)
# What HFS+ ignores in names: ".git" with one of these in it is ".git" there (git's CVE-2014-9390).
_IGNORABLE = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class _FolderError(UnreadableError):
    """Where a file should be there is a folder, so there is no file."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text out of bytes; not `exact`: some bytes were no text and are shown as U+FFFD."""

    text: str
    encoding: str
    exact: bool


def checked_path(path: str) -> str:
    """Normalise a workspace path.

    Raises:
        UnsafePathError: It is absolute, leads outside, names a dotfile or can't be a name.
    """
    if _PLAIN.fullmatch(path):
        return path
    normal = unicodedata.normalize("NFC", path)
    parts = [part for part in normal.split("/") if part not in {"", "."}]
    if normal.startswith("/") or not parts:
        raise _unsafe(path, "it is not a path inside the workspace")
    if not _UNSEEN.isdisjoint(normal) or clean(normal) != normal:
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
    """True if it can be a workspace path: see `checked_path`."""
    try:
        return bool(checked_path(path))
    except UnsafePathError:
        return False


def is_portable(path: str) -> bool:
    """True if every machine that syncs can have a file of that name: no other is newly recorded.

    What was recorded before this was asked keeps its name until a sync gives it another one.
    """
    return not name_trouble(path)


def name_trouble(path: str) -> str:
    """Say why not every machine can have a file of that name; nothing where all can."""
    if _PLAIN.fullmatch(path) and not (" /" in path or "./" in path or path.endswith((" ", "."))):
        return ""
    try:
        normal = checked_path(path)
    except UnsafePathError as error:
        return error.message.rpartition("can't be used: ")[2].rstrip(".")
    parts = path.split("/")
    troubles = (
        ("it ends in a blank or a dot", any(part.endswith((" ", ".")) for part in parts)),
        ("other systems read it otherwise", any(map(_DISGUISED.fullmatch, parts))),
        (f"it lies more than {MAX_DEPTH} folders deep", len(parts) > MAX_DEPTH),
        ("its letters are decomposed", normal != path),
    )
    return next((why for why, is_so in troubles if is_so), "")


def _unsafe(path: str, why: str) -> UnsafePathError:
    shown = clean(path).encode("utf-8", "replace").decode()[:200]
    return UnsafePathError(
        f"{shown!r} can't be used: {why}.",
        "Name a file inside the workspace, such as <folder>/<name>.md.",
    )


def blob_id(data: bytes) -> str:
    """The content hash used everywhere: git's SHA-1 of a blob."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def blob_of(data: bytes | None) -> str | None:
    """The content hash of a file that may not be there: None stays None."""
    return None if data is None else blob_id(data)


def read_bytes(root: Layout, path: str, limit: int = READ_LIMIT) -> bytes:
    """Read one file.

    Raises:
        NotFoundError: It isn't there.
        UnsafePathError: The path leads through a link or outside.
        UnreadableError: It is larger than `limit` bytes, or no regular file.
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
    """Read one file, None where there is none, but a folder, say; raises else as `read_bytes`."""
    try:
        return read_bytes(root, path)
    except (NotFoundError, _FolderError):
        return None


def read_pieces(root: Layout, path: str) -> Iterator[bytes]:
    """Read one file of any size, 50 MB at a time; raises as `read_bytes`."""
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
    """Read many files, each folder opened once; None: it isn't there. Raises as `read_bytes`."""
    with FileBatch(root) as folders:
        for path in paths:
            file = located(root, path)[1]
            with storage_errors(f"Can't read {file}"):
                try:
                    data = read_in(*folders.place(checked_path(path)), file)
                except FileNotFoundError:  # nor is its folder
                    data = None
            yield path, data


def read_in(folder: int, name: str, file: str) -> bytes | None:
    """Read a file of an open folder; None: it isn't there. Raises `OSError`, or as `read_bytes`."""
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
            size, most = status.st_size / 2**20, limit / 2**20
            raise UnreadableError(f"{path} is too large: {size:,.1f} MB, at most {most:,.1f} MB.")
        while piece := os.read(descriptor, min(status.st_size, READ_LIMIT) + 1):
            yield piece
    finally:
        os.close(descriptor)


def decode(data: bytes) -> Decoded:
    """Read bytes as text: UTF-8, or what a byte order mark says; bad bytes become U+FFFD."""
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), "utf-8")
    try:
        return Decoded(data.decode(encoding), encoding, exact=True)
    except UnicodeDecodeError:
        return Decoded(data.decode(encoding, "replace"), encoding, exact=False)


def text_of(data: bytes | None) -> str:
    """The text of a file's bytes, as `decode` reads it; of none that is empty."""
    return decode(data or b"").text


def read_text(root: Layout, path: str) -> str:
    """Read one file as text; raises as `read_bytes`, never for bytes that aren't text."""
    return text_of(read_bytes(root, path))


def exists(root: Layout, path: str) -> bool:
    """True if a regular file is there; False as well for links and whatever can't be reached."""
    return file_status(root, path) is not None


def file_status(root: Layout, path: str) -> os.stat_result | None:
    """The status of a regular file, None where there is none."""
    top, file = located(root, checked_path(path))
    *parts, name = file.split("/")
    try:
        folder = open_folder(top, parts)
        try:
            status = os.stat(real_name(folder, name), dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(folder)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES}:
            return None
        raise storage_error(error, f"Can't look at {file}") from error
    return status if stat.S_ISREG(status.st_mode) else None


def why_closed(folder: Path) -> str:
    """Say why a folder can't be read; nothing where it can, or isn't there."""
    is_closed = folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK)
    return os.strerror(errno.EACCES).lower() if is_closed else ""


def is_gone(root: Layout, path: str) -> bool:
    """True if a file is surely not there; what can't be looked at may well be."""
    top, file = located(root, checked_path(path))
    place = top
    for part in file.split("/"):
        place /= part
        try:
            status = place.lstat()
        except FileNotFoundError:
            if os.path.exists(place.with_name(f".{part}.icloud")):  # never raises
                return False  # it lies in iCloud until somebody opens it
            return unicodedata.is_normalized("NFD", part) or not _has_other_form(place)
        except OSError:
            return False
        if stat.S_ISLNK(status.st_mode):
            return False
        if not stat.S_ISDIR(status.st_mode):
            break
    return place != top / file


def in_the_way(root: Layout, path: str, known: Container[str]) -> bool:
    """True if a file can't be written as something stands there that isn't `known`.

    That is a link or a file above it, or a folder in its place that holds more than known files.
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
    """True if a folder stands where a file of that name would."""
    return root.place(checked_path(path)).is_dir()


def _has_other_form(place: Path) -> bool:
    """True if the folder holds the name in another Unicode form."""
    try:
        return any(
            unicodedata.normalize("NFC", other.name) == place.name
            for other in place.parent.iterdir()
        )
    except OSError:
        return True


def twin(root: Layout, path: str) -> str | None:
    """A file beside `path` whose name differs only in case: one of both would vanish elsewhere."""
    return twins(root, [path]).get(path)


def twins(root: Layout, paths: Iterable[str]) -> dict[str, str]:
    """The files that lie beside others and differ from them only in case, by these others' paths.

    Each folder is listed once, however many of its files are asked about.
    """
    together: dict[str, dict[str, str]] = {}
    for path in paths:
        folder, _, name = checked_path(path).rpartition("/")
        together.setdefault(folder, {})[path] = name
    found: dict[str, str] = {}
    for folder, asked in together.items():
        alike: dict[str, list[str]] = {}
        with contextlib.suppress(OSError):
            for other in _names_beside(root, next(iter(asked))):
                alike.setdefault(other.casefold(), []).append(other)
        for path, name in asked.items():
            others = (each for each in alike.get(name.casefold(), ()) if each != name)
            for first in islice(others, 1):
                found[path] = f"{folder}/{first}" if folder else first
    return found


def listed(root: Layout, paths: Sequence[str]) -> list[str]:
    """Those of some paths in one folder that it lists, in any case; all where it can't be read.

    What has such a name may be no file, and in another case another one: reading it tells.
    """
    try:
        here = {name.casefold() for name in _names_beside(root, paths[0])}
    except FileNotFoundError:
        return []
    except OSError:
        return list(paths)
    return [path for path in paths if path.rpartition("/")[2].casefold() in here]


def _names_beside(root: Layout, path: str) -> list[str]:
    """The names of the files in the folder of a path, composed; raises `OSError`."""
    top, file = located(root, checked_path(path))
    folder = open_folder(top, file.split("/")[:-1])
    try:
        names = os.listdir(folder)  # a descriptor, not a path
    finally:
        os.close(folder)
    return [unicodedata.normalize("NFC", name) for name in names]


def write_atomic(root: Layout, path: str, data: bytes) -> Written:
    """Replace one file so that a crash leaves the old or the new one, never a mixture.

    Returns:
        The file as it was written, by which `Scanner.note` knows it again.

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
    """Like `write_atomic`, 0600, for kbtui's own files, whose folders may start with a dot."""
    with storage_errors(f"Can't write {path}"), FileBatch(root) as batch:
        batch.write(path, data, 0o600)
        batch.sync()


def remove(root: Layout, path: str) -> None:
    """Remove one file durably; it may be gone already."""
    path = checked_path(path)
    with storage_errors(f"Can't remove {located(root, path)[1]}"), FileBatch(root) as batch:
        batch.remove(path)
        batch.sync()
