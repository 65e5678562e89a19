"""Access to an export, which is a file, a folder or a zip: its members are read as streams.

A zip is never unpacked to disk. Member names that escape it are refused, and reading a member stops
with an error if its compression ratio is that of a zip bomb.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, Self, cast

from kbtui.errors import NotFoundError, UnreadableError
from kbtui.importers.json_stream import sketch
from kbtui.text import clean_line, counted
from kbtui.workspace.durable import storage_errors

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MAX_RATIO = 200
_ALWAYS_ALLOWED = 64 << 20
_MAX_CACHED = 32 << 20
_MAX_MEMBERS = 200_000
PACKED = (".zip", ".jex")
"""Suffixes of files that are each an export of their own, in a folder too."""
_HIDDEN_EXPORTS = (".aider.chat.history.md",)
"""Hidden files that contain conversations."""
_AGENTS = frozenset({".claude", ".codex", ".cursor", ".gemini", ".continue"})
"""Hidden folders of agents, of which only logs are read."""
_LOGS = (".jsonl", ".json", ".gz", ".zst")
_TRANSCRIPTS = "agent-transcripts"
"""The folder in which Cursor's logs are, of which older ones are plain text."""
_PACKED_LOGS = (".json.gz", ".jsonl.gz", ".json.zst", ".jsonl.zst")
_ELSEWHERE = "It is a link to another place, which isn't followed."
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError)
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_TEXT_SUFFIXES = (".json", ".jsonl", ".md", ".html", ".htm", ".txt", ".enex", ".csv")


class TakesRecords(Protocol):
    """What takes the records of an export's members as they are read."""

    def begin(self, name: str) -> bool:
        """Begin to read a member; return False if that was done before."""

    def add(self, name: str, record: Mapping[str, Any]) -> None:
        """Take a record of a member."""


class OpenedExport:
    """A file, a folder or a zip that is being imported.

    Attributes:
        names: Names of its members, sorted.
        refused: Names of members that are never read, each with the reason.
        done: Bytes read so far.
        taken: Names of members that a source has read, or knows to contain nothing more.
        head_size: How many bytes of a member tell sources what it is.
        sketches: What tells it instead of members whose beginning doesn't.
        account: What counts the texts of its records that come to nothing, during an import.
    """

    def __init__(self, path: Path) -> None:
        """Open an export and list its members.

        Raises:
            NotFoundError: The path doesn't exist.
            UnreadableError: It is a truncated or damaged zip.
        """
        self.path = path
        self.names: list[str] = []
        self.refused: list[tuple[str, str]] = []
        self.done = 0
        self.taken: set[str] = set()
        self.head_size = 64 << 10
        self.sketches: dict[str, bytes] = {}
        self.account: TakesRecords | None = None
        self._heads: dict[str, bytes] = {}
        self._cached_size = 0
        self._zip: zipfile.ZipFile | None = None
        self._infos: dict[str, zipfile.ZipInfo] = {}
        if not path.exists():
            raise NotFoundError(f"There is no file {path}.", "Give the path of an export.")
        with storage_errors(f"Can't read {path}"):
            self._is_dir = path.is_dir()  # every source asks for every member
            if self._is_dir:
                self.names = sorted(_walk(path, self.refused))
            elif _is_zip(path):
                self._open_zip()
            else:
                self.names = [path.name]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the zip, if it is one."""
        if self._zip is not None:
            self._zip.close()

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder or a zip, which counts as a packed folder."""
        return self._zip is not None or self._is_dir

    @property
    def total(self) -> int:
        """Unpacked bytes to read; only those of text files, if there are any."""
        texts = [name for name in self.names if name.lower().endswith(_TEXT_SUFFIXES)]
        return sum(map(self.size, texts or self.names))

    def size(self, name: str) -> int:
        """Return the unpacked size of a member in bytes."""
        if self._zip is not None:
            return self._infos[name].file_size
        return self._status(name).st_size

    def open(self, name: str) -> IO[bytes]:
        """Open a member as a stream and mark it as taken.

        Raises:
            UnreadableError: It is damaged, encrypted or a zip bomb (also raised while reading).
        """
        self.taken.add(name)
        whole = self._heads.pop(name, None)
        if whole is None:
            return self._open(name)
        self._cached_size -= len(whole)
        self._count(len(whole))
        return io.BytesIO(whole)

    def _open(self, name: str) -> IO[bytes]:
        if self._zip is None:
            with storage_errors(f"Can't read {clean_line(name)}"):
                file: IO[bytes] = open(self._place(name), "rb", buffering=0)  # noqa: PTH123, SIM115
            is_packed = name.lower().endswith(_PACKED_LOGS)
            limit = max(_ALWAYS_ALLOWED, self.size(name) * _MAX_RATIO) if is_packed else None
            return self._limited(file, name, limit)
        info = self._infos[name]
        if info.flag_bits & 1:
            raise UnreadableError(f"{clean_line(name)} is encrypted.", "Unpack it, then import.")
        try:
            file = self._zip.open(info)
        except (zipfile.BadZipFile, RuntimeError, ValueError, OSError) as error:
            raise UnreadableError(f"{clean_line(name)} is damaged: {error}.") from None
        return self._limited(file, name, max(_ALWAYS_ALLOWED, info.compress_size * _MAX_RATIO))

    def _limited(self, file: IO[bytes], name: str, limit: int | None) -> IO[bytes]:
        stream, damage = _unpacked(file, name)
        shown = clean_line(name)
        limited = _LimitedStream(stream, file, shown, self._count, limit, damage)
        return io.BufferedReader(limited, 1 << 18)

    def modified(self, name: str) -> datetime | None:
        """Return when a file on disk was changed last, for what says no time itself."""
        if self._zip is not None:
            return None
        return datetime.fromtimestamp(self._status(name).st_mtime, UTC)

    def file(self, name: str) -> Path | None:
        """Return a member's file on disk, for what can't be streamed, or None in a zip."""
        return None if self._zip is not None else Path(self._place(name))

    def head(self, name: str, size: int = 0) -> bytes:
        """Read the beginning of a member; if it can't be read, add it to `refused` and return b"".

        Every source looks at the heads of all members, by `head_size`, so whole small members are
        cached until they are opened.
        """
        size = size or self.head_size
        if name in self.sketches:
            return self.sketches[name]
        if name in self._heads:
            return self._heads[name][:size]
        try:
            with self._open(name) as stream:
                head = stream.read(size)
        except UnreadableError as error:
            if (refusal := (clean_line(name), str(error))) not in self.refused:
                self.refused.append(refusal)
            return b""
        if len(head) < size and self._cached_size + len(head) < _MAX_CACHED:
            self._heads[name] = head
            self._cached_size += len(head)
        return head

    def draw(self, name: str) -> None:
        """Sketch a member in JSON, whose first bytes don't tell what it is."""
        with contextlib.suppress(UnreadableError), self._open(name) as stream:
            self.sketches[name] = sketch(stream)

    def _count(self, size: int) -> None:
        self.done += size

    def _status(self, name: str) -> os.stat_result:
        return os.stat(self._place(name))  # noqa: PTH116 — asked of every member

    def _place(self, name: str) -> str:
        return f"{self.path}/{name}" if self._is_dir else f"{self.path}"

    def _open_zip(self) -> None:
        try:
            self._zip = zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise UnreadableError(
                f"{self.path.name} is a zip that is damaged or cut short: {error}.",
                "Download it again.",
            ) from None
        infos = self._zip.infolist()
        # Some programs of Windows separate folders as Windows does, against the standard.
        is_of_windows = not any("/" in info.filename for info in infos)
        left = 0
        for info in infos:
            name = info.filename
            if info.is_dir() or (is_of_windows and name.endswith("\\")):
                continue
            if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/"):
                self.refused.append((clean_line(name), "Its name leads out of the zip."))
            elif stat.S_ISLNK(info.external_attr >> 16):
                self.refused.append((clean_line(name), "It is a link."))
            elif len(self.names) < _MAX_MEMBERS:
                name = name.replace("\\", "/") if is_of_windows else name
                self._infos[name] = info
                self.names.append(name)
            else:
                left += 1
        if left:
            place = counted(left, "more file")
            self.refused.append((place, f"The first {_MAX_MEMBERS:,} of a zip are read."))
        self.names.sort()


class _LimitedStream(io.RawIOBase):
    """A stream that raises `UnreadableError` once it yields more than `limit` bytes."""

    def __init__(
        self,
        stream: IO[bytes],
        file: IO[bytes],
        name: str,
        count: Callable[[int], None],
        limit: int | None,
        damage: tuple[type[Exception], ...],
    ) -> None:
        self._stream, self._file, self._name, self._count = stream, file, name, count
        self._limit, self._read, self._damage = limit, 0, damage
        # What was unpacked before the damage must not be lost with what follows it.
        self._read_some = getattr(stream, "read1", stream.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        size = self._fill(view)
        self._count(size)
        self._read += size
        if self._limit is not None and self._read > self._limit:
            raise UnreadableError(
                f"{self._name} unpacks to more than {self._limit >> 20:,} MB, far more than it"
                " weighs; it isn't read further."
            )
        return size

    def _fill(self, view: memoryview) -> int:
        """Read into a buffer; what stands before a damaged place is returned first."""
        size = 0
        while size < len(view):
            try:
                data = self._read_some(len(view) - size)
            except self._damage as error:
                if size:
                    break
                raise UnreadableError(f"{self._name} is damaged: {error}.") from None
            if not data:
                break
            view[size : size + len(data)] = data
            size += len(data)
        return size

    def close(self) -> None:
        self._stream.close()
        self._file.close()
        super().close()


def _unpacked(file: IO[bytes], name: str) -> tuple[IO[bytes], tuple[type[Exception], ...]]:
    """Return a stream of what a log packed with gzip or zstd unpacks to, or any other file itself.

    The second value are the errors that reading it raises if it is damaged.
    """
    start = file.read(4) if name.lower().endswith(_PACKED_LOGS) else b""
    if start:
        file.seek(0)
    if start[:2] == _GZIP:
        return cast("IO[bytes]", gzip.open(file)), _DAMAGE
    if start != _ZSTD:
        return file, _DAMAGE
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return cast("IO[bytes]", zstd.open(file)), (*_DAMAGE, zstd.ZstdError)


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def _walk(folder: Path, refused: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the paths of the files under a folder, without hidden files and symbolic links.

    Of the hidden folders of agents, their logs are among them. Links to what is elsewhere are
    added to `refused`.
    """
    real = folder.resolve()
    for base, folders, names in os.walk(folder):
        parts = Path(base).relative_to(folder).parts
        is_agents = not _AGENTS.isdisjoint(parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".") or name in _AGENTS)
        for name in names:
            logs = (*_LOGS, ".txt") if _TRANSCRIPTS in parts else _LOGS
            if is_agents and not name.lower().endswith(logs):
                continue
            is_shown = not name.startswith(".") or name in _HIDDEN_EXPORTS
            if is_shown and _is_ordinary(f"{base}/{name}"):
                yield "/".join((*parts, name))
            elif is_shown and _leads_out(f"{base}/{name}", real):
                refused.append((clean_line("/".join((*parts, name))), _ELSEWHERE))
        links = (name for name in folders if _leads_out(f"{base}/{name}", real))
        refused += [(clean_line("/".join((*parts, name))), _ELSEWHERE) for name in links]


def _leads_out(file: str, folder: Path) -> bool:
    """Return whether a link leads to what is there, and not in a folder."""
    place = Path(file)
    with contextlib.suppress(OSError, RuntimeError):
        return place.is_symlink() and not place.resolve(strict=True).is_relative_to(folder)
    return False


def _is_ordinary(file: str) -> bool:
    """Return whether there is a regular file, and no link to one."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_ISREG(os.lstat(file).st_mode)
    return False
