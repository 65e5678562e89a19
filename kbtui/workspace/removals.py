"""What was removed on purpose from documents and conversations, for the next syncs.

These files have no history, so a sync can't see whether a file that is gone, or a conversation that
is shorter, was meant so or is damaged. Whoever removes something therefore puts down which content
of which file was replaced, and by what. Paths and contents are named by hashes alone, so a record
tells nothing of what was removed. Syncs carry the records along (`history/sync/file_plan.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from kbtui.workspace import files
from kbtui.workspace.jsonl import append_line, read_lines, rewrite
from kbtui.workspace.layout import MACHINE, Layout

_NAME = re.compile(
    r"(?P<path>[0-9a-f]{40})-(?P<was>[0-9a-f]{40})-(?P<size>\d{1,12})"
    r"(?:-(?P<now>[0-9a-f]{40})-(?P<now_size>\d{1,12}))?"
)


def hidden_name(path: str) -> str:
    """Return a hash to recognise a path that is gone, or that contained a secret."""
    return files.blob_id(os.fsencode(path))


@dataclass(frozen=True, slots=True)
class Content:
    """A file's content: its blob id, and its size in bytes."""

    blob: str
    size: int

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Return what identifies a content."""
        return cls(files.blob_id(data), len(data))

    def begins(self, data: bytes) -> bool:
        """Return whether a content is this one, or goes on from it."""
        return len(data) >= self.size and files.blob_id(data[: self.size]) == self.blob


@dataclass(frozen=True, slots=True)
class Removal:
    """A person's removal of a file, or (with `now`) of a part of it.

    Attributes:
        path: The hash of its workspace path.
        was: The content that was removed or replaced.
        now: The content in its place; None if the file was deleted.
    """

    path: str
    was: Content
    now: Content | None = None

    @property
    def name(self) -> str:
        """The record as one word."""
        contents = (self.was, *([self.now] if self.now else []))
        return "-".join([self.path, *(f"{each.blob}-{each.size}" for each in contents)])

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Read a record; None if it is none."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        now = Content(found["now"], int(found["now_size"])) if found["now"] else None
        return cls(found["path"], Content(found["was"], int(found["size"])), now)


class Removals:
    """The records of one workspace."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._file = layout.root / MACHINE / "removals.jsonl"

    def note(self, path: str, before: bytes, after: bytes | None = None) -> None:
        """Put down that a person removes a file, or what `after` lacks, just before it is done.

        Raises:
            StorageError: The file system refused.
        """
        self._layout.confirm()
        now = None if after is None else Content.of(after)
        made = Removal(hidden_name(path), Content.of(before), now)
        append_line(self._file, {"removal": made.name})

    def all(self) -> list[Removal]:
        """Return the records, in the order in which they were made.

        Raises:
            StorageError: The file system refused.
        """
        lines = read_lines(self._file).records
        found = (Removal.parse(str(each.get("removal"))) for each in lines)
        return list(dict.fromkeys(each for each in found if each is not None))

    def drop(self, names: Iterable[str]) -> None:
        """Forget records that no longer hold, as the file was put back.

        Raises:
            StorageError: The file system refused.
        """
        gone = {each.encode() for each in names}
        if gone and self._file.exists():
            self._layout.confirm()
            rewrite(
                self._file,
                lambda data: b"".join(
                    line
                    for line in data.splitlines(keepends=True)
                    if not any(name in line for name in gone)
                ),
            )
