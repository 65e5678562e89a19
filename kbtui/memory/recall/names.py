"""Names: a page for each name in a person's lines, built on reading.

Nothing is stored. A name that belongs to an entry has no page; the entry is its page.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kbtui.errors import KbtuiError
from kbtui.knowledge.library.library import Library
from kbtui.memory.records.journal import Journal, day_of
from kbtui.offline.lines import TextLine, lines_of
from kbtui.offline.names import lines_by_name
from kbtui.workspace import files
from kbtui.workspace.layout import MEMORY, Workspace

_DECISIONS = "knowledge/decisions/"
_MAX_DECISIONS = 500


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A line with a name, and its file."""

    path: str
    line: TextLine

    @property
    def is_past(self) -> bool:
        """Whether it is struck out."""
        return self.line.text.startswith("~~")

    @property
    def when(self) -> str:
        """When it was written, ``2026-11-23 09:14``; empty if unknown."""
        day = day_of(self.path)
        return f"{day.isoformat()} {self.line.time}".strip() if day else ""


@dataclass(eq=False)
class NameIndex:
    """The names in a person's statements, past or not: journal, MEMORY.md, decisions."""

    workspace: Workspace
    library: Library
    journal: Journal

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[str, tuple[tuple[int, int], list[NamedLine]]] = {}
        self._known: tuple[list[NamedLine], Mapping[str, tuple[int, ...]]] = ([], {})

    def pages(self) -> dict[str, list[NamedLine]]:
        """Return the lines by name, newest first; rereads the files that changed."""
        with self._lock:
            lines = list(self._lines())
            if lines != self._known[0]:
                self._known = lines, lines_by_name(each.line.text for each in lines)
            found = self._known[1]
        return {
            name: sorted((lines[n] for n in numbers), key=lambda each: each.when, reverse=True)
            for name, numbers in sorted(found.items(), key=lambda pair: pair[0].casefold())
            if self.library.named(name) is None
        }

    def lines(self, name: str) -> list[NamedLine]:
        """Return the lines with a name, newest first."""
        return self.pages().get(name, [])

    def _lines(self) -> Iterator[NamedLine]:
        public = self.library.public
        decisions = [each.path for each in public.infos() if each.path.startswith(_DECISIONS)]
        paths = [*self.journal.days(), MEMORY, *decisions[:_MAX_DECISIONS]]
        for path in filter(public.exists, paths):
            yield from self._lines_of(path)
        for gone in self._read.keys() - set(paths):
            del self._read[gone]

    def _lines_of(self, path: str) -> list[NamedLine]:
        try:
            status = self.workspace.place(path).stat()
            state = (status.st_mtime_ns, status.st_size)
            known = self._read.get(path)
            if known is None or known[0] != state:
                text = files.read_text(self.workspace, path)
                is_day = day_of(path) is not None
                found = [
                    NamedLine(path, line)
                    for line in lines_of(text, struck_too=True)
                    if line.time or not is_day
                ]
                known = self._read[path] = (state, found)
        except (OSError, KbtuiError):
            return []
        return known[1]
