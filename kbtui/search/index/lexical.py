"""The segment files of the lexical index: written, opened, and deleted once unused.

The list of live segments is in the store, so that postings and chunks change in one transaction.
"""

from __future__ import annotations

import secrets
import zlib
from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.index.bm25f import Corpus
from kbtui.search.index.segment import Segment, SegmentBuilder, SegmentFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from kbtui.search.index.segment import LexicalDocument

VERSION = "11"
_SUFFIX = ".words"


class LexicalIndex:
    """The segments in a folder; one writer at a time (the caller holds a lock)."""

    def __init__(self, folder: Path) -> None:
        """Open a folder, creating it if needed."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._open: dict[str, Segment] = {}

    def write(
        self,
        present: Sequence[SegmentFile],
        added: Iterable[LexicalDocument],
        removed: Iterable[int] = (),
    ) -> tuple[SegmentFile, ...]:
        """Remove chunks, add others (ascending by id), and return the resulting segments.

        Existing files don't change: `present` stays valid until the result is stored.

        Raises:
            OSError: there is no room.
            ValueError: a segment file is damaged.
        """
        ids = np.fromiter(removed, dtype=np.int64)
        kept = present if not len(ids) else [self._delete_in(file, ids) for file in present]
        written = [file for file in kept if len(file.deleted) < len(self._segment(file).chunks)]
        builder, is_empty = SegmentBuilder(), True
        for document in added:
            builder.add(document)
            is_empty = False
        if not is_empty:
            written.append(self._store(builder.finish()))
        return tuple(written)

    def corpus(self, files: Sequence[SegmentFile]) -> Corpus:
        """Return a snapshot with these segments, reusing those already open.

        Raises:
            OSError: a file can't be read, or is gone.
            ValueError: a segment file is damaged.
        """
        self._open = {file.name: self._segment(file) for file in files}
        return Corpus(tuple(self._open.values()), [file.deleted for file in files])

    def live(self, file: SegmentFile) -> list[int]:
        """Return the ids of a segment's chunks that aren't deleted."""
        chunks = self._segment(file).chunks
        return [int(chunk) for chunk in np.delete(chunks, list(file.deleted))]

    def sweep(self, present: Iterable[SegmentFile]) -> None:
        """Delete unused segment files; processes that have one open can still read it."""
        names = {file.name for file in present}
        for file in self._folder.glob(f"*{_SUFFIX}"):
            if file.name not in names:
                file.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the segments; those in use stay readable."""
        self._open = {}

    def _segment(self, file: SegmentFile) -> Segment:
        segment = self._open.get(file.name)
        if segment is None:
            segment = self._open[file.name] = Segment.open(self._folder, file)
        return segment

    def _delete_in(self, file: SegmentFile, ids: np.typing.NDArray[np.int64]) -> SegmentFile:
        numbers = np.flatnonzero(np.isin(self._segment(file).chunks, ids)).tolist()
        deleted = tuple(sorted({*file.deleted, *numbers}))
        return SegmentFile(file.name, file.size, file.check_sum, deleted)

    def _store(self, data: bytes) -> SegmentFile:
        name = f"{secrets.token_hex(8)}{_SUFFIX}"
        (self._folder / name).write_bytes(data)
        return SegmentFile(name, len(data), zlib.crc32(data))
