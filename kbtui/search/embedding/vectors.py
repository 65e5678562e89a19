"""The vectors of all passages: append-only files with checksums, one matrix in memory.

A vector is stored under the hash of the text it was made from, so a file that is renamed, or
edited in one place, keeps the vectors of all other passages. A segment file is written whole and
renamed into place; one that is damaged is dropped, and what was in it is embedded again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

KEY_BYTES = 16
_MAGIC = b"KBVEC1\0\0"
_HEADER = struct.Struct("<8sII")
_CHECK_BYTES = 32
_SUFFIX = ".vectors"
_MANY_SEGMENTS = 24
_MOST_ROWS = 32_768


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
        self._matrix: Matrix = np.empty((0, dimension), dtype=np.float32)
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
            return self._matrix[: len(self._rows)]

    def rows(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """The row of each key, -1 where there is none."""
        get = self._rows.get
        return np.fromiter((get(key, -1) for key in keys), dtype=np.int64, count=len(keys))

    def refresh(self) -> None:
        """Read the segments that others have written since."""
        with self._lock:
            for file in sorted(self._folder.glob(f"*{_SUFFIX}")):
                if file.name not in self._read:
                    self._read.add(file.name)
                    self._load(file)

    def add(self, keys: Sequence[bytes], vectors: Matrix) -> None:
        """Store vectors durably, and use them from now on."""
        with self._lock:
            self._read.add(self._write(keys, vectors))
            self._append(keys, vectors)

    def compact(self, wanted: Container[bytes]) -> bool:
        """Write many small segments as one, without what nobody wants; tells if it did."""
        with self._lock:
            files = sorted(self._folder.glob(f"*{_SUFFIX}"))
            small = [file for file in files if self._count(file) < _MOST_ROWS]
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
                self._read.add(self._write(kept, self._matrix[self.rows(kept)]))
            for file in small:
                file.unlink(missing_ok=True)
            return True

    def _append(self, keys: Sequence[bytes], vectors: Matrix) -> None:
        fresh = [i for i, key in enumerate(keys) if key not in self._rows]
        count = len(self._rows)
        needed = count + len(fresh)
        if needed > len(self._matrix):
            # A new array, as searches may be reading the old one.
            grown = np.empty((max(needed, needed * 5 // 4), self._dimension), dtype=np.float32)
            grown[:count] = self._matrix[:count]
            self._matrix = grown
        for row, i in enumerate(fresh, count):
            self._matrix[row] = vectors[i]
        for row, i in enumerate(fresh, count):
            self._rows[bytes(keys[i])] = row

    def _write(self, keys: Sequence[bytes], vectors: Matrix) -> str:
        rows = np.ascontiguousarray(vectors, dtype="<f4")
        body = _HEADER.pack(_MAGIC, self._dimension, len(keys)) + b"".join(keys) + rows.tobytes()
        descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=self._folder)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(body)
                stream.write(hashlib.sha256(body).digest())
                stream.flush()
                os.fsync(stream.fileno())
            name = f"{hashlib.sha256(body).hexdigest()[:24]}{_SUFFIX}"
            Path(temporary).rename(self._folder / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return name

    def _load(self, file: Path) -> None:
        found = self._parse(file)
        if found is not None:
            self._append(*found)
        elif file.is_dir() and not file.is_symlink():
            shutil.rmtree(file, ignore_errors=True)
        else:
            file.unlink(missing_ok=True)

    def _parse(self, file: Path) -> tuple[list[bytes], Matrix] | None:
        """The keys and vectors of a segment; None if it isn't whole."""
        try:
            data = file.read_bytes()
            magic, dimension, count = _HEADER.unpack_from(data)
        except (OSError, struct.error):
            return None
        end = _HEADER.size + count * (KEY_BYTES + 4 * dimension)
        if magic != _MAGIC or dimension != self._dimension or len(data) != end + _CHECK_BYTES:
            return None
        if hashlib.sha256(memoryview(data)[:end]).digest() != data[end:]:
            return None
        middle = _HEADER.size + count * KEY_BYTES
        keys = [data[i : i + KEY_BYTES] for i in range(_HEADER.size, middle, KEY_BYTES)]
        vectors = np.frombuffer(data, dtype="<f4", count=count * dimension, offset=middle)
        return keys, vectors.reshape(count, dimension)

    def _count(self, file: Path) -> int:
        try:
            return max(0, file.stat().st_size - _HEADER.size) // (KEY_BYTES + 4 * self._dimension)
        except OSError:
            return 0
