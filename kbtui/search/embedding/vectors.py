"""The vectors of all passages: append-only files with checksums, a byte a number.

A vector is stored under the hash of the text it was made from, so a file that is renamed, or
edited in one place, keeps the vectors of all other passages. A segment file is written whole and
renamed into place; one that is damaged is dropped, and what was in it is embedded again. Large
segments are mapped into memory and not copied. Files of earlier versions, with four bytes a number,
are rewritten as they are opened.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kbtui.whole_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Part = tuple[NDArray[np.int8], NDArray[np.float32]]

KEY_BYTES = 16
_HEADER = struct.Struct("<8sII")
_CHECK_BYTES = 32
_MAGIC, _SUFFIX = b"KBVEC2\0\0", ".rows"
_OLD_MAGIC, _OLD_SUFFIX = b"KBVEC1\0\0", ".vectors"
_MANY_SEGMENTS = 24
_MOST_ROWS = 32_768
_PART_ROWS = 4096  # of one array in memory; a file with more is mapped
_LARGEST = 127


class Matrix:
    """Rows as they are at one moment: small whole numbers, and a scale a row."""

    def __init__(self, parts: Sequence[Part], dimension: int) -> None:
        self._parts = parts
        self._dimension = dimension
        self._starts = np.cumsum([0, *(len(scales) for _, scales in parts)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, rows: NDArray[np.int64]) -> Vectors:
        """Some rows, as they were stored but for rounding."""
        small, scales = self.take(rows)
        return small * scales[:, None]

    def take(self, rows: NDArray[np.int64]) -> Part:
        """Copy some rows."""
        if len(self._parts) == 1:
            small, scales = self._parts[0]
            return small[rows], scales[rows]
        small = np.empty((len(rows), self._dimension), dtype=np.int8)
        scales = np.empty(len(rows), dtype=np.float32)
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        for n in np.unique(owners).tolist():
            where = np.flatnonzero(owners == n)
            own = rows[where] - self._starts[n]
            small[where], scales[where] = self._parts[n][0][own], self._parts[n][1][own]
        return small, scales

    def products(self, query: Vectors, rows: NDArray[np.int64] | None = None) -> Vectors:
        """The product of a vector with every row, or with some, on one thread.

        BLAS would use all cores and take six times as long for it (21 ms to 1 for 14,000 rows), the
        more so while others are busy.
        """
        parts = self._parts if rows is None else [self.take(rows)]
        found = [np.einsum("ij,j->i", small, query) * scales for small, scales in parts]
        return np.concatenate(found) if found else np.empty(0, dtype=np.float32)


class VectorStore:
    """All vectors of one model; threads share it, and processes its files."""

    def __init__(self, folder: Path, dimension: int) -> None:
        """Open the store in `folder`, or start one; what isn't whole, or isn't ours, is deleted.

        Raises:
            OSError: there can be no such folder.
        """
        for place in (folder.parent, folder):
            if not place.is_dir():
                place.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._dimension = dimension
        self._lock = threading.RLock()
        self._rows: dict[bytes, int] = {}
        self._parts: list[Part] = []  # all but the last are full
        self._filled = 0  # of the last part
        self._count = 0
        self._read: set[str] = set()
        self.refresh()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: bytes) -> bool:
        return key in self._rows

    @property
    def matrix(self) -> Matrix:
        """One row a vector; rows are only ever added."""
        with self._lock:
            parts = list(self._parts)
            if parts:
                small, scales = parts[-1]
                parts[-1] = (small[: self._filled], scales[: self._filled])
            return Matrix(parts, self._dimension)

    def rows(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """The row of each key, -1 where there is none."""
        get = self._rows.get
        return np.fromiter((get(key, -1) for key in keys), dtype=np.int64, count=len(keys))

    def refresh(self) -> None:
        """Read the segments that others have written since."""
        with self._lock:
            for file in sorted(self._folder.glob(f"*{_OLD_SUFFIX}")):
                self._convert(file)
            for file in self._files():
                if file.name not in self._read:
                    self._read.add(file.name)
                    self._load(file)

    def add(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Store vectors durably, and use them from now on."""
        part = _rounded(vectors)
        with self._lock:
            self._read.add(self._write(keys, part))
            self._append(keys, part)

    @property
    def is_scattered(self) -> bool:
        """True if there are many small segments, for `compact` to write as one."""
        return len(self._small_files()) >= _MANY_SEGMENTS

    def compact(self, wanted: Container[bytes]) -> bool:
        """Write many small segments as one, without what nobody wants; tells if it did."""
        with self._lock:
            small = self._small_files()
            if len(small) < _MANY_SEGMENTS:
                return False
            keys: dict[bytes, None] = {}
            for file in small:
                found = self._parse(file)
                keys.update(
                    dict.fromkeys(key for key in found[0] if key in wanted) if found else {}
                )
            kept = [key for key in keys if key in self._rows]
            if kept:
                self._read.add(self._write(kept, self.matrix.take(self.rows(kept))))
            for file in small:
                file.unlink(missing_ok=True)
            return True

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{_SUFFIX}"))

    def _small_files(self) -> list[Path]:
        return [file for file in self._files() if self._count_of(file) < _MOST_ROWS]

    def _append(self, keys: Sequence[bytes], part: Part) -> None:
        """Take rows; a large part as it is, of others copies."""
        small, scales = part
        fresh = [i for i, key in enumerate(keys) if key not in self._rows]
        if len(keys) > _PART_ROWS and len(fresh) > len(keys) // 2:
            self._begin(part)
            self._filled = len(keys)
            self._number(keys, range(len(keys)))
            return
        while fresh:
            if not self._parts or self._filled == len(self._parts[-1][1]):
                self._begin(
                    (
                        np.empty((_PART_ROWS, self._dimension), dtype=np.int8),
                        np.empty(_PART_ROWS, dtype=np.float32),
                    )
                )
            into, into_scales = self._parts[-1]
            now = fresh[: len(into_scales) - self._filled]
            del fresh[: len(now)]
            place = slice(self._filled, self._filled + len(now))
            into[place], into_scales[place] = small[now], scales[now]
            self._filled = place.stop
            self._number(keys, now)

    def _begin(self, part: Part) -> None:
        if self._parts:
            last, scales = self._parts[-1]
            self._parts[-1] = (last[: self._filled], scales[: self._filled])
        self._parts.append(part)
        self._filled = 0

    def _number(self, keys: Sequence[bytes], taken: Sequence[int]) -> None:
        for row, i in enumerate(taken, self._count):
            self._rows.setdefault(bytes(keys[i]), row)
        self._count += len(taken)

    def _write(self, keys: Sequence[bytes], part: Part) -> str:
        small, scales = part
        body = b"".join(
            (
                _HEADER.pack(_MAGIC, self._dimension, len(keys)),
                *keys,
                scales.astype("<f4").tobytes(),
                small.tobytes(),
            )
        )
        check = hashlib.sha256(body)
        name = f"{check.hexdigest()[:24]}{_SUFFIX}"
        replace_file(self._folder / name, body + check.digest())
        return name

    def _load(self, file: Path) -> None:
        found = self._parse(file)
        if found is not None:
            keys, small, scales = found
            self._append(keys, (small, scales))
        else:
            _remove(file)

    def _convert(self, file: Path) -> None:
        """Rewrite a segment of an earlier version; where there is no room, it stays as it is."""
        if file.name in self._read:
            return
        data = self._whole(file, _OLD_MAGIC, KEY_BYTES + 4 * self._dimension)
        if data is None:
            _remove(file)
            return
        keys, rest = _split(data)
        part = _rounded(np.frombuffer(rest, dtype="<f4").reshape(len(keys), self._dimension))
        try:
            self._write(keys, part)
        except OSError:
            self._read.add(file.name)
            self._append(keys, part)
        else:
            _remove(file)

    def _parse(self, file: Path) -> tuple[list[bytes], NDArray[np.int8], Vectors] | None:
        """The keys, rows and scales of a segment; None if it isn't whole."""
        data = self._whole(file, _MAGIC, KEY_BYTES + 4 + self._dimension)
        if data is None:
            return None
        keys, rest = _split(data)
        scales = np.frombuffer(rest, dtype="<f4", count=len(keys))
        small = np.frombuffer(rest, dtype=np.int8, offset=4 * len(keys))
        return keys, small.reshape(len(keys), self._dimension), scales

    def _whole(self, file: Path, expected: bytes, row_bytes: int) -> memoryview | None:
        """The bytes of a segment without its checksum; None if it isn't whole, or another's."""
        with suppress(OSError, ValueError, struct.error), file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            is_large = size > _PART_ROWS * row_bytes
            data = memoryview(
                mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
                if is_large
                else stream.read()
            )
            magic, dimension, count = _HEADER.unpack_from(data)
            end = _HEADER.size + count * row_bytes
            if (magic, dimension, len(data)) == (expected, self._dimension, end + _CHECK_BYTES):
                body = data[:end]
                return body if hashlib.sha256(body).digest() == data[end:] else None
        return None

    def _count_of(self, file: Path) -> int:
        try:
            size = file.stat().st_size - _HEADER.size - _CHECK_BYTES
        except OSError:
            return 0
        return max(0, size) // (KEY_BYTES + 4 + self._dimension)


def _rounded(vectors: Vectors) -> Part:
    """Each number as one of 255 steps between the row's largest and its opposite.

    Costs no quality that can be measured: cosines change by less than 0.002.
    """
    scales = (np.abs(vectors).max(axis=1, initial=0.0) / _LARGEST).astype(np.float32)
    with np.errstate(invalid="ignore"):
        steps = vectors / np.where(scales > 0, scales, 1)[:, None]
        return np.rint(steps).astype(np.int8), scales


def _split(data: memoryview) -> tuple[list[bytes], memoryview]:
    """The keys of a segment, and what comes behind them."""
    _, _, count = _HEADER.unpack_from(data)
    end = _HEADER.size + count * KEY_BYTES
    keys = bytes(data[_HEADER.size : end])
    return [keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES)], data[end:]


def _remove(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file, ignore_errors=True)
    else:
        file.unlink(missing_ok=True)
