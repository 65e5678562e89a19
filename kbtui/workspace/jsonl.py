"""Crash-safe JSON Lines logs: whole lines are appended, and a torn last one is set aside.

Writers hold a file lock while appending, and a reader takes it before judging the end of the file,
since a line that looks torn may still be being written. Files that go through the door are
rewritten as a whole; there a torn last line is terminated with a newline, never removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbtui.text import json_object
from kbtui.workspace.durable import Data, FileBatch, storage_errors, sync_folder, write_all

_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_WRITING = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_TAIL = 64 * 1024
_NO_OBJECT = "not a JSON object"


@dataclass(frozen=True, slots=True)
class BadLine:
    """An unusable line, which is kept; `number` is 1-based."""

    path: str
    number: int
    data: bytes
    reason: str

    def __str__(self) -> str:
        start = self.data[:80].decode("utf-8", "backslashreplace")
        return f"{self.path}:{self.number}: {self.reason}: {start}"


@dataclass(frozen=True, slots=True)
class Record:
    """A line with a JSON object, raw and parsed."""

    number: int
    data: bytes
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JsonLines:
    """The objects of a file, in order, and its `bad` lines, which stay in the file.

    `torn` is the end of the file, if an append was interrupted.
    """

    records: tuple[dict[str, Any], ...]
    torn: bytes | None = None
    bad: tuple[BadLine, ...] = ()


def append_line(file: Path, record: Mapping[str, Any]) -> None:
    """Append one record durably; a new file gets mode 0600, its folder 0700.

    Raises:
        StorageError: The file system refused; the file is unchanged.
    """
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "backslashreplace"
    )
    with storage_errors(f"Can't write {file.name}"), _locked(file, make=True) as (descriptor, new):
        size = _repair_end(file, descriptor)
        try:
            os.lseek(descriptor, size, os.SEEK_SET)
            write_all(descriptor, line + b"\n")
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
        if new:
            sync_folder(file.parent)


def read_lines(file: Path) -> JsonLines:
    """Read all records; move a torn end to ``<name>.torn-<time>`` if possible.

    A missing file has no records.

    Raises:
        StorageError: The file system refused.
    """
    data, torn = _read(file)
    values: list[dict[str, Any]] = []
    bad: list[BadLine] = []
    for number, line, value in _parsed(data):
        if value is None:
            bad.append(BadLine(file.name, number, line, _NO_OBJECT))
        else:
            values.append(value)
    return JsonLines(tuple(values), torn, tuple(bad))


def each_record(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of `read_lines` one by one, as all of a long log take much memory."""
    data, _ = _read(file)
    return (value for _, _, value in _parsed(data) if value is not None)


def _read(file: Path) -> tuple[bytes, bytes | None]:
    """Return the whole lines of a file, and its torn end, which is set aside."""
    with storage_errors(f"Can't read {file.name}"):
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            return b"", None
        return _read_locked(file) if data and not data.endswith(b"\n") else (data, None)


def _parsed(data: bytes) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
    """Yield number, line and value of each line that isn't empty; None for what is no object."""
    for number, line in enumerate(io.BytesIO(data), 1):
        if line.strip():
            yield number, line.removesuffix(b"\n"), json_object(line)


def rewrite(file: Path, change: Callable[[bytes], Data]) -> None:
    """Replace the whole content of a file while appends wait.

    Raises:
        StorageError: The file system refused; the file is unchanged.
    """
    with (
        storage_errors(f"Can't write {file.name}"),
        _locked(file, make=False, flags=_READING) as (descriptor, _),
        open(descriptor, "rb", closefd=False) as old,
        FileBatch(file.parent) as batch,
    ):
        batch.write(file.name, change(old.read()), 0o600)
        batch.sync()


def parse_records(data: bytes, path: str) -> tuple[list[Record], list[BadLine]]:
    """Parse all lines of a file's content; never raises."""
    records: list[Record] = []
    bad: list[BadLine] = []
    for number, line, value in _parsed(data):
        if value is None:
            bad.append(BadLine(path, number, line, _NO_OBJECT))
        else:
            records.append(Record(number, line, value))
    return records, bad


def add_record(data: bytes, record: Mapping[str, Any]) -> bytes:
    """Append a record to a file's content."""
    line = json.dumps(record, ensure_ascii=False, separators=(", ", ": "))
    gap = b"" if not data or data.endswith(b"\n") else b"\n"
    return data + gap + line.encode("utf-8", "replace") + b"\n"


def _read_locked(file: Path) -> tuple[bytes, bytes | None]:
    """Read again under the lock, and set a torn end aside if the file is writable."""
    try:
        with _locked(file, make=False) as (descriptor, _):
            before = os.fstat(descriptor).st_size
            data = os.pread(descriptor, before, 0)
            size = _repair_end(file, descriptor)
            return data[:size], data[size:] or None
    except FileNotFoundError:
        return b"", None
    except PermissionError:
        return _split_end(file.read_bytes())
    except OSError as error:
        if error.errno != 30:  # EROFS: a read-only disk can still be read
            raise
        return _split_end(file.read_bytes())


def _split_end(data: bytes) -> tuple[bytes, bytes | None]:
    end = data.rfind(b"\n") + 1
    tail = data[end:]
    if not tail or json_object(tail) is not None:
        return data, None
    return data[:end], tail


@contextlib.contextmanager
def _locked(file: Path, *, make: bool, flags: int = _WRITING) -> Iterator[tuple[int, bool]]:
    """Open and lock a file; yield its descriptor and whether it was created."""
    while True:
        new = make and not file.exists()
        if new:
            file.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(file, flags | (os.O_CREAT if make else 0), 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if is_same_file(file, descriptor):
                yield descriptor, new
                return
        finally:
            os.close(descriptor)


def is_same_file(file: Path, descriptor: int) -> bool:
    """Return whether a file wasn't replaced or removed while waiting for its lock."""
    try:
        return os.path.samestat(file.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _repair_end(file: Path, descriptor: int) -> int:
    """Make the file end with a complete line; return the resulting size.

    A last line without a newline is kept if it is a complete record, else set aside.
    """
    size = os.fstat(descriptor).st_size
    if not size or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    wanted = _TAIL
    while b"\n" not in (tail := os.pread(descriptor, wanted, max(0, size - wanted))):
        if wanted >= size:
            break
        wanted *= 2
    tail = tail[tail.rfind(b"\n") + 1 :]
    if json_object(tail) is not None:
        os.pwrite(descriptor, b"\n", size)
        return size + 1
    _set_aside(file, tail)
    os.ftruncate(descriptor, size - len(tail))
    os.fsync(descriptor)
    return size - len(tail)


def _set_aside(file: Path, tail: bytes) -> None:
    stamp = time.strftime("%Y%m%dT%H%M%S")
    aside = file.with_name(f"{file.name}.torn-{stamp}-{os.getpid()}")
    descriptor = os.open(aside, _WRITING | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        write_all(descriptor, tail)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(file.parent)
