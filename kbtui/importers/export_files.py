"""An export as it came: a file, a folder, or a zip, its members listed and read as streams.

A zip is never unpacked to disk. A name that leads out of it is refused, and a member that unpacks
to far more than it weighs stops being read where the limit is.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from kbtui.errors import NotFoundError, UnreadableError
from kbtui.text import clean_line
from kbtui.workspace.durable import storage_errors

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MOST_RATIO = 200
_SMALL = 64 << 20
_MOST_KEPT = 32 << 20
_MOST_MEMBERS = 200_000
PACKED = (".zip", ".jex")
"""Endings of files that are an export each, within a folder as well."""
_WANTED = (".aider.chat.history.md",)
"""Hidden files that are somebody's conversations."""
_TEXTS = (".json", ".jsonl", ".md", ".html", ".htm", ".txt", ".enex", ".csv")


class OpenedExport:
    """A file, a folder or a zip that is being imported, with the `names` of its members, sorted.

    `refused` are members that are not read, with the reason; `done` bytes were read so far. `taken`
    are those that a source has read, or knows to hold nothing more.
    """

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            NotFoundError: There is nothing there.
            UnreadableError: A zip that is cut short or damaged.
        """
        self.path = path
        self.names: list[str] = []
        self.refused: list[tuple[str, str]] = []
        self.done = 0
        self.taken: set[str] = set()
        self._heads: dict[str, bytes] = {}
        self._kept = 0
        self._zip: zipfile.ZipFile | None = None
        if not path.exists():
            raise NotFoundError(f"There is no file {path}.", "Give the path of an export.")
        with storage_errors(f"Can't read {path}"):
            if path.is_dir():
                self.names = sorted(_walk(path))
            elif _is_zip(path):
                self._open_zip()
            else:
                self.names = [path.name]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close a zip's file."""
        if self._zip is not None:
            self._zip.close()

    @property
    def is_folder(self) -> bool:
        """True for a folder, and for a zip, which is one that is packed."""
        return self._zip is not None or self.path.is_dir()

    @property
    def total(self) -> int:
        """How many bytes there are to read, unpacked; of a folder only what may hold texts."""
        texts = [name for name in self.names if name.lower().endswith(_TEXTS)]
        return sum(map(self.size, texts or self.names))

    def size(self, name: str) -> int:
        """How many bytes a member has, unpacked."""
        if self._zip is not None:
            return self._zip.getinfo(name).file_size
        return self._place(name).stat().st_size

    def open(self, name: str) -> IO[bytes]:
        """Open a member to read it as a stream.

        Raises:
            UnreadableError: It is damaged, encrypted, or a bomb (raised while it is read, too).
        """
        self.taken.add(name)
        return self._open(name)

    def _open(self, name: str) -> IO[bytes]:
        if self._zip is None:
            with storage_errors(f"Can't read {clean_line(name)}"):
                file = self._place(name).open("rb", buffering=0)
            return io.BufferedReader(_Limited(file, clean_line(name), self._count), 1 << 18)
        info = self._zip.getinfo(name)
        if info.flag_bits & 1:
            raise UnreadableError(f"{clean_line(name)} is encrypted.", "Unpack it, then import.")
        try:
            stream = self._zip.open(info)
        except (zipfile.BadZipFile, RuntimeError, ValueError, OSError) as error:
            raise UnreadableError(f"{clean_line(name)} is damaged: {error}.") from None
        limit = max(_SMALL, info.compress_size * _MOST_RATIO)
        return io.BufferedReader(_Limited(stream, clean_line(name), self._count, limit), 1 << 18)

    def file(self, name: str) -> Path | None:
        """A member as a file on the disk, for what can't be read as a stream; None in a zip."""
        return None if self._zip is not None else self._place(name)

    def head(self, name: str, size: int = 64 << 10) -> bytes:
        """Read the beginning of a member; empty if it can't be read, and then it's `refused`.

        Every source looks at those of all members: small ones are kept.
        """
        if name in self._heads:
            return self._heads[name][:size]
        try:
            with self._open(name) as stream:
                head = stream.read(size)
        except UnreadableError as error:
            if (refusal := (clean_line(name), str(error))) not in self.refused:
                self.refused.append(refusal)
            return b""
        if len(head) < size and self._kept + len(head) < _MOST_KEPT:
            self._heads[name] = head
            self._kept += len(head)
        return head

    def _count(self, size: int) -> None:
        self.done += size

    def _place(self, name: str) -> Path:
        return self.path / name if self.path.is_dir() else self.path

    def _open_zip(self) -> None:
        try:
            self._zip = zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise UnreadableError(
                f"{self.path.name} is a zip that is damaged or cut short: {error}.",
                "Download it again.",
            ) from None
        for info in self._zip.infolist():
            name = info.filename
            if info.is_dir():
                continue
            if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/"):
                self.refused.append((clean_line(name), "Its name leads out of the zip."))
            elif stat.S_ISLNK(info.external_attr >> 16):
                self.refused.append((clean_line(name), "It is a link."))
            elif len(self.names) < _MOST_MEMBERS:
                self.names.append(name)
        self.names.sort()


class _Limited(io.RawIOBase):
    """A stream that ends in an error once more has come out of it than a real file would hold."""

    def __init__(
        self, stream: IO[bytes], name: str, count: Callable[[int], None], limit: int | None = None
    ) -> None:
        self._stream, self._name, self._count = stream, name, count
        self._limit, self._read = limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            data = self._stream.read(len(view))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise UnreadableError(f"{self._name} is damaged: {error}.") from None
        self._count(len(data))
        self._read += len(data)
        if self._limit is not None and self._read > self._limit:
            raise UnreadableError(
                f"{self._name} unpacks to more than {self._limit >> 20:,} MB, far more than it"
                " weighs; it isn't read further."
            )
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def _walk(folder: Path) -> Iterator[str]:
    """The files under a folder, without hidden ones; links aren't followed."""
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            file = Path(base, name)
            if (
                (not name.startswith(".") or name in _WANTED)
                and file.is_file()
                and not file.is_symlink()
            ):
                yield file.relative_to(folder).as_posix()
