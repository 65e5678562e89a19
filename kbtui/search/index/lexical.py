"""The words index: segments in a folder, and what is deleted of them.

Which segments there are stands in the store, so that words and chunks change in one transaction:
here files are made, opened, and deleted once nothing names them.
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

VERSION = "6"
_SUFFIX = ".words"


class LexicalIndex:
    """The segments of a folder; one writer at a time (the caller holds a lock)."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, which is made where there is none."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._open: dict[str, Segment] = {}

    def write(
        self,
        present: Sequence[SegmentFile],
        added: Iterable[LexicalDocument],
        removed: Iterable[int] = (),
    ) -> tuple[SegmentFile, ...]:
        """Take chunks out and put others in, which ascend by id; gives the segments after that.

        Nothing that is there changes: until what this gives is stored, `present` holds.

        Raises:
            OSError: there is no room.
            ValueError: a file isn't what was written.
        """
        gone = np.fromiter(removed, dtype=np.int64)
        kept = present if not len(gone) else [self._without(file, gone) for file in present]
        written = [file for file in kept if len(file.deleted) < len(self._segment(file).chunks)]
        builder, is_empty = SegmentBuilder(), True
        for document in added:
            builder.add(document)
            is_empty = False
        if not is_empty:
            written.append(self._store(builder.finish()))
        return tuple(written)

    def corpus(self, files: Sequence[SegmentFile]) -> Corpus:
        """The state of the index with these segments; those open already are used again.

        Raises:
            OSError: a file can't be read, or is gone.
            ValueError: a file isn't what was written.
        """
        self._open = {file.name: self._segment(file) for file in files}
        return Corpus(tuple(self._open.values()), [file.deleted for file in files])

    def live(self, file: SegmentFile) -> list[int]:
        """The chunks of a segment that aren't deleted."""
        chunks = self._segment(file).chunks
        return [int(chunk) for chunk in np.delete(chunks, list(file.deleted))]

    def sweep(self, present: Iterable[SegmentFile]) -> None:
        """Delete the files that no segment is in; who has one open can go on reading it."""
        names = {file.name for file in present}
        for file in self._folder.glob(f"*{_SUFFIX}"):
            if file.name not in names:
                file.unlink(missing_ok=True)

    def close(self) -> None:
        """Let the segments go; those in use stay readable."""
        self._open = {}

    def _segment(self, file: SegmentFile) -> Segment:
        segment = self._open.get(file.name)
        if segment is None:
            segment = self._open[file.name] = Segment.open(self._folder, file)
        return segment

    def _without(self, file: SegmentFile, gone: np.typing.NDArray[np.int64]) -> SegmentFile:
        numbers = np.flatnonzero(np.isin(self._segment(file).chunks, gone)).tolist()
        deleted = tuple(sorted({*file.deleted, *numbers}))
        return SegmentFile(file.name, file.size, file.check_sum, deleted)

    def _store(self, data: bytes) -> SegmentFile:
        name = f"{secrets.token_hex(8)}{_SUFFIX}"
        (self._folder / name).write_bytes(data)
        return SegmentFile(name, len(data), zlib.crc32(data))
