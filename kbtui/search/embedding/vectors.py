"""The store of passage vectors: append-only segment files with checksums, quantised to int8.

A vector's key is the hash of the text it was computed from, so renaming a file, or editing one part
of it, keeps the vectors of all other passages. Segment files are written atomically; a damaged one
is deleted, and its passages are embedded again. Large segments are memory-mapped. Segments of
earlier versions (float32) are converted when they are opened.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kbtui.cache import discard
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
_MAX_ROWS = 32_768
_PART_ROWS = 4096  # of one array in memory; files with more rows are memory-mapped
_INT8_MAX = 127


class Matrix:
    """A snapshot of the rows: int8 values, and a scale per row."""

    def __init__(self, parts: Sequence[Part], dimension: int) -> None:
        self._parts = parts
        self.dimension = dimension
        self._starts = np.cumsum([0, *(len(scales) for _, scales in parts)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, rows: NDArray[np.int64]) -> Vectors:
        """Return the given rows, dequantised; shape (len(rows), dimension)."""
        values, scales = self.take(rows)
        return values * scales[:, None]

    def take(self, rows: NDArray[np.int64]) -> Part:
        """Copy the given rows, as int8 values and scales."""
        if len(self._parts) == 1:
            values, scales = self._parts[0]
            return values[rows], scales[rows]
        values = np.empty((len(rows), self.dimension), dtype=np.int8)
        scales = np.empty(len(rows), dtype=np.float32)
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        for n in np.unique(owners).tolist():
            where = np.flatnonzero(owners == n)
            own = rows[where] - self._starts[n]
            values[where], scales[where] = self._parts[n][0][own], self._parts[n][1][own]
        return values, scales

    def products(self, query: Vectors, rows: NDArray[np.int64] | None = None) -> Vectors:
        """Return the dot products of a vector with all rows, or the given ones, on one thread.

        BLAS would use all cores and still be slower (21 ms against 1 for 14,000 rows), more so when
        they are busy.
        """
        parts = self._parts if rows is None else [self.take(rows)]
        found = [np.einsum("ij,j->i", values, query) * scales for values, scales in parts]
        return np.concatenate(found) if found else np.empty(0, dtype=np.float32)

    def weighted_sum(self, weights: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the sum of all rows, each as often as its weight says."""
        found = np.zeros(self.dimension)
        for (values, scales), start in zip(self._parts, self._starts.tolist(), strict=False):
            shares = weights[start : start + len(scales)] * scales.astype(np.float64)
            found += np.einsum("i,ij->j", shares, values)
        return found


class VectorStore:
    """All vectors of one model; thread-safe, and its files may be shared between processes."""

    def __init__(self, folder: Path, dimension: int) -> None:
        """Open or create the store in `folder`; damaged and foreign segments are deleted.

        Raises:
            OSError: the folder can't be created.
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
        self._loaded: set[str] = set()
        self.refresh()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: bytes) -> bool:
        return key in self._rows

    @property
    def matrix(self) -> Matrix:
        """A snapshot with one row per vector; rows are only ever appended."""
        with self._lock:
            parts = list(self._parts)
            if parts:
                values, scales = parts[-1]
                parts[-1] = (values[: self._filled], scales[: self._filled])
            return Matrix(parts, self._dimension)

    def rows(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the row number of each key, -1 for unknown ones."""
        get = self._rows.get
        return np.fromiter((get(key, -1) for key in keys), dtype=np.int64, count=len(keys))

    def refresh(self) -> None:
        """Load segments that other processes have written."""
        with self._lock:
            for file in sorted(self._folder.glob(f"*{_OLD_SUFFIX}")):
                self._convert(file)
            for file in self._segments():
                if file.name not in self._loaded:
                    self._loaded.add(file.name)
                    self._load(file)

    def add(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Store vectors durably and make them available."""
        part = _quantise(vectors)
        with self._lock:
            self._loaded.add(self._write(keys, part))
            self._append(keys, part)

    @property
    def is_scattered(self) -> bool:
        """Whether there are enough small segments for `compact` to merge."""
        return len(self._small_segments()) >= _MANY_SEGMENTS

    def compact(self, wanted: Container[bytes]) -> bool:
        """Merge small segments if there are many, dropping unwanted keys; return whether it did."""
        with self._lock:
            segments = self._small_segments()
            if len(segments) < _MANY_SEGMENTS:
                return False
            keys: dict[bytes, None] = {}
            for file in segments:
                found = self._parse(file)
                keys.update(
                    dict.fromkeys(key for key in found[0] if key in wanted) if found else {}
                )
            kept = [key for key in keys if key in self._rows]
            if kept:
                self._loaded.add(self._write(kept, self.matrix.take(self.rows(kept))))
            for file in segments:
                file.unlink(missing_ok=True)
            return True

    def _segments(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{_SUFFIX}"))

    def _small_segments(self) -> list[Path]:
        return [file for file in self._segments() if self._count_of(file) < _MAX_ROWS]

    def _append(self, keys: Sequence[bytes], part: Part) -> None:
        """Add rows in memory: a large part as it is, others copied into a shared array."""
        values, scales = part
        fresh = [i for i, key in enumerate(keys) if key not in self._rows]
        if len(keys) > _PART_ROWS and len(fresh) > len(keys) // 2:
            self._add_part(part)
            self._filled = len(keys)
            self._assign_rows(keys, range(len(keys)))
            return
        while fresh:
            if not self._parts or self._filled == len(self._parts[-1][1]):
                self._add_part(
                    (
                        np.empty((_PART_ROWS, self._dimension), dtype=np.int8),
                        np.empty(_PART_ROWS, dtype=np.float32),
                    )
                )
            into, into_scales = self._parts[-1]
            now = fresh[: len(into_scales) - self._filled]
            del fresh[: len(now)]
            place = slice(self._filled, self._filled + len(now))
            into[place], into_scales[place] = values[now], scales[now]
            self._filled = place.stop
            self._assign_rows(keys, now)

    def _add_part(self, part: Part) -> None:
        if self._parts:
            last, scales = self._parts[-1]
            self._parts[-1] = (last[: self._filled], scales[: self._filled])
        self._parts.append(part)
        self._filled = 0

    def _assign_rows(self, keys: Sequence[bytes], taken: Sequence[int]) -> None:
        for row, i in enumerate(taken, self._count):
            self._rows.setdefault(bytes(keys[i]), row)
        self._count += len(taken)

    def _write(self, keys: Sequence[bytes], part: Part) -> str:
        values, scales = part
        body = b"".join(
            (
                _HEADER.pack(_MAGIC, self._dimension, len(keys)),
                *keys,
                scales.astype("<f4").tobytes(),
                values.tobytes(),
            )
        )
        check = hashlib.sha256(body)
        name = f"{check.hexdigest()[:24]}{_SUFFIX}"
        replace_file(self._folder / name, body + check.digest())
        return name

    def _load(self, file: Path) -> None:
        found = self._parse(file)
        if found is not None:
            keys, values, scales = found
            self._append(keys, (values, scales))
        else:
            discard(file)

    def _convert(self, file: Path) -> None:
        """Rewrite a segment of an earlier version; if there is no room, keep it and load it."""
        if file.name in self._loaded:
            return
        data = self._verified(file, _OLD_MAGIC, KEY_BYTES + 4 * self._dimension)
        if data is None:
            discard(file)
            return
        keys, rest = _split_keys(data)
        part = _quantise(np.frombuffer(rest, dtype="<f4").reshape(len(keys), self._dimension))
        try:
            self._write(keys, part)
        except OSError:
            self._loaded.add(file.name)
            self._append(keys, part)
        else:
            discard(file)

    def _parse(self, file: Path) -> tuple[list[bytes], NDArray[np.int8], Vectors] | None:
        """Return the keys, rows and scales of a segment, or None if it is damaged."""
        data = self._verified(file, _MAGIC, KEY_BYTES + 4 + self._dimension)
        if data is None:
            return None
        keys, rest = _split_keys(data)
        scales = np.frombuffer(rest, dtype="<f4", count=len(keys))
        values = np.frombuffer(rest, dtype=np.int8, offset=4 * len(keys))
        return keys, values.reshape(len(keys), self._dimension), scales

    def _verified(self, file: Path, expected: bytes, row_bytes: int) -> memoryview | None:
        """Return a segment's bytes without its checksum; None if damaged or of another format."""
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


def _quantise(vectors: Vectors) -> Part:
    """Quantise each row to int8, scaled by its largest absolute value.

    There is no measurable loss of quality: cosines change by less than 0.002.
    """
    scales = (np.abs(vectors).max(axis=1, initial=0.0) / _INT8_MAX).astype(np.float32)
    with np.errstate(invalid="ignore"):
        steps = vectors / np.where(scales > 0, scales, 1)[:, None]
        return np.rint(steps).astype(np.int8), scales


def _split_keys(data: memoryview) -> tuple[list[bytes], memoryview]:
    """Split a segment into its keys and the rest."""
    _, _, count = _HEADER.unpack_from(data)
    end = _HEADER.size + count * KEY_BYTES
    keys = bytes(data[_HEADER.size : end])
    return [keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES)], data[end:]
