"""Brings a generation up to date with the files: changed ones are cut and indexed, no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.documents.documents import (
    MAX_BYTES,
    TOO_LARGE,
    VERSION,
    Documents,
    can_read,
    is_document,
    kind_of,
    missing,
)
from kbtui.errors import KbtuiError
from kbtui.search.index.chunker import (
    ChunkLimits,
    IndexedDocument,
    is_indexed,
    read_document,
    read_parts,
)
from kbtui.search.index.markdown import Properties
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kbtui.search.index.generation import Generation
    from kbtui.workspace.layout import Workspace
    from kbtui.workspace.scan import FileState, Scanner


DEFAULT = "default"
ALL = "all"
SESSIONS = "sessions"
_AREAS = ("knowledge", "memory", "docs")


@dataclass(frozen=True, slots=True)
class Scopes:
    """The folders of one workspace that are indexed; `roots` are further ones of its own."""

    roots: tuple[str, ...] = ()

    @property
    def default(self) -> tuple[str, ...]:
        """The folders that are searched unless said otherwise: all but the conversations."""
        return (*_AREAS, *self.roots)

    @property
    def all(self) -> tuple[str, ...]:
        """All that is indexed."""
        return (*_AREAS, SESSIONS, *self.roots)

    def folders(self, scope: str) -> list[str]:
        """The folders that a scope names, e.g. ``memory,docs/nanobot`` or ``all``."""
        found: list[str] = []
        for part in scope.split(","):
            name = part.strip().strip("/")
            if name in {"", DEFAULT}:
                found += self.default
            elif name == ALL:
                found += self.all
            else:
                found.append(name)
        return found


# The first chunks of a large folder are searchable at once, later ones come in larger lots.
_FIRST_LOT = 500
_LARGEST_LOT = 16_000
_GROWTH = 4


# In place of the blob of a document whose text isn't known yet.
_UNREAD = "unread"
WAITING = "its text is still to be read"


class Builder:
    """Indexes files of one workspace.

    Attributes:
        waiting: The documents whose text has to be read first, as of the last update, with the
            hashes of what they hold.
    """

    def __init__(
        self, workspace: Workspace, limits: ChunkLimits, most_bytes: int, roots: Sequence[str] = ()
    ) -> None:
        """Text files over `most_bytes` are listed as skipped; `roots` are further folders."""
        self._layout = workspace
        self._limits = limits
        self._most_bytes = most_bytes
        self._roots = roots
        self._documents = Documents(workspace)
        self.waiting: dict[str, str] = {}
        self._contents: dict[str, bytes] = {}

    def scan(
        self,
        scanner: Scanner,
        areas: Sequence[str],
        only: frozenset[str] | None,
        known: Mapping[str, str],
    ) -> Mapping[str, FileState]:
        """The files of some areas as they are now; with `only` these, and what is below them."""
        if only is None:
            return scanner.scan(*areas, contents=self._contents)
        paths = {path for path in only if path.startswith(tuple(f"{area}/" for area in areas))}
        # By name even a passing file is scanned: a new one is looked for in its folder.
        old = paths & known.keys()
        places = old | {path.rpartition("/")[0] for path in paths - old}
        found = scanner.scan(*places, contents=self._contents) if places else {}
        wanted = tuple(f"{path}/" for path in paths)
        return {
            path: state for path, state in found.items() if path in paths or path.startswith(wanted)
        }

    def update(
        self,
        generation: Generation,
        found: Mapping[str, FileState],
        known: Mapping[str, str],
        progress: Callable[[int, int], bool] = lambda _done, _of: True,
    ) -> tuple[int, int, int]:
        """Index what differs between the files `found` and the blobs `known`.

        Args:
            generation: Where to.
            found: The files as they are now; all of them, or those that are looked at.
            known: The blob of each of these as it is indexed; empty texts count as changed.
            progress: Told how many files are done, of how many; False stops after this lot.

        Returns:
            How many files were added, changed and removed.
        """
        wanted = {path: state for path, state in found.items() if self._is_wanted(path)}
        self.waiting = {}
        changed = [path for path in wanted if self._has_changed(wanted[path], known.get(path))]
        changed.sort(key=lambda path: wanted[path].mtime_ns)  # what is recent is embedded first
        gone = [path for path in known if path not in wanted]
        if gone:
            generation.commit([], gone)
        done = 0
        for lot in self._lots([wanted[path] for path in changed]):
            generation.commit(lot, [])
            done += len(lot)
            if not progress(done, len(changed)):
                break
        added = sum(path not in known for path in changed)
        return added, len(changed) - added, len(gone)

    def keep_texts_of(self, found: Mapping[str, FileState]) -> None:
        """Delete the texts of all documents but these."""
        self._documents.keep_only(
            [(path, state.blob) for path, state in found.items() if self._is_document(path)]
        )

    def _is_wanted(self, path: str) -> bool:
        return is_indexed(path) or self._is_document(path)

    def _is_document(self, path: str) -> bool:
        return is_document(path, self._roots)

    def _has_changed(self, state: FileState, known: str | None) -> bool:
        """True if a file is to be indexed now; the old text of a document serves until then."""
        if not self._is_document(state.path):
            return known != state.blob
        if known == _mark_of(state):
            return False
        if state.size > MAX_BYTES or self._documents.has(state.path, state.blob):
            return True
        if can_read(kind_of(state.path)):
            self.waiting[state.path] = state.blob
        return not known

    def _lots(self, states: Sequence[FileState]) -> Iterator[list[tuple[IndexedDocument, str]]]:
        lot: list[tuple[IndexedDocument, str]] = []
        size, most = 0, _FIRST_LOT
        for state in states:
            document, mark = self._document(state)
            lot.append((document, mark))
            size += max(1, len(document.chunks))
            if size >= most:
                yield lot
                lot, size, most = [], 0, min(most * _GROWTH, _LARGEST_LOT)
        if lot:
            yield lot

    def _document(self, state: FileState) -> tuple[IndexedDocument, str]:
        """A file as it is searched, and what stands for its content."""
        if not self._is_document(state.path):
            return self._text(state), state.blob
        text = self._documents.stored(state.path, state.blob)
        if state.size > MAX_BYTES:
            text = TOO_LARGE
        if text is not None:
            return read_parts(state.path, text, self._limits), _mark_of(state)
        if is_indexed(state.path):  # a web page can be searched as it is
            return self._text(state), _UNREAD
        why = WAITING if can_read(kind_of(state.path)) else missing()
        return self._skipped(state.path, why), _UNREAD

    def _text(self, state: FileState) -> IndexedDocument:
        if state.size > self._most_bytes:
            return self._skipped(state.path, f"it is larger than {self._most_bytes >> 20} MB")
        try:
            data = self._contents.pop(state.path, None)
            if data is None:
                data = files.read_bytes(self._layout, state.path)
        except (KbtuiError, OSError) as error:
            # Gone or changed since the scan: the next one sees it.
            return self._skipped(state.path, str(error))
        return read_document(state.path, data, self._limits)

    @staticmethod
    def _skipped(path: str, why: str) -> IndexedDocument:
        return IndexedDocument(path, Properties(title=path.rpartition("/")[2]), problem=why)


def _mark_of(state: FileState) -> str:
    return f"{state.blob}+{VERSION}"
