"""Brings a generation up to date with the files, indexing only those that changed."""

from __future__ import annotations

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

# Batches grow, so that the first chunks of a large folder are searchable soon.
_FIRST_BATCH = 500
_MAX_BATCH = 16_000
_GROWTH = 4


# Stored in place of the blob of a document whose text hasn't been extracted.
_UNREAD = "unread"
WAITING = "its text is still to be read"


class Builder:
    """Indexes files of one workspace.

    Attributes:
        waiting: The documents whose text must be extracted first, as of the last update: blob by
            path.
    """

    def __init__(
        self, workspace: Workspace, limits: ChunkLimits, max_bytes: int, roots: Sequence[str] = ()
    ) -> None:
        """Create a builder that skips text files over `max_bytes`; `roots` are extra folders."""
        self._layout = workspace
        self._limits = limits
        self._max_bytes = max_bytes
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
        """Scan the files of some areas; with `only`, just these paths and what is below them."""
        if only is None:
            return scanner.scan(*areas, contents=self._contents)
        paths = {path for path in only if path.startswith(tuple(f"{area}/" for area in areas))}
        # Only scanning a folder skips temporary files, so a new file's folder is scanned.
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
        """Index the differences between the files `found` and the blobs `known`.

        Args:
            generation: The generation to update.
            found: The current state of all files, or of those that were scanned.
            known: The indexed blob of each of these; an empty one counts as changed.
            progress: Called with the numbers of files done and in all; stops if it returns False.

        Returns:
            The numbers of files added, changed and removed.
        """
        wanted = {path: state for path, state in found.items() if self._is_wanted(path)}
        self.waiting = {}
        changed = [path for path in wanted if self._has_changed(wanted[path], known.get(path))]
        # Recent files come last and get the highest chunk ids, which are embedded first.
        changed.sort(key=lambda path: wanted[path].mtime_ns)
        deleted = [path for path in known if path not in wanted]
        if deleted:
            generation.commit([], deleted)
        done = 0
        for batch in self._batches([wanted[path] for path in changed]):
            generation.commit(batch, [])
            done += len(batch)
            if not progress(done, len(changed)):
                break
        added = sum(path not in known for path in changed)
        return added, len(changed) - added, len(deleted)

    def keep_texts_of(self, found: Mapping[str, FileState]) -> None:
        """Delete the extracted texts of all documents except these."""
        self._documents.keep_only(
            [(path, state.blob) for path, state in found.items() if self._is_document(path)]
        )

    def _is_wanted(self, path: str) -> bool:
        return is_indexed(path) or self._is_document(path)

    def _is_document(self, path: str) -> bool:
        return is_document(path, self._roots)

    def _has_changed(self, state: FileState, known: str | None) -> bool:
        """Return whether to index a file now; queue documents whose text isn't extracted yet."""
        if not self._is_document(state.path):
            return known != state.blob
        if known == _version_of(state):
            return False
        if state.size > MAX_BYTES or self._documents.has(state.path, state.blob):
            return True
        if can_read(kind_of(state.path)):
            self.waiting[state.path] = state.blob
        return not known

    def _batches(self, states: Sequence[FileState]) -> Iterator[list[tuple[IndexedDocument, str]]]:
        batch: list[tuple[IndexedDocument, str]] = []
        size, limit = 0, _FIRST_BATCH
        for state in states:
            document, version = self._document(state)
            batch.append((document, version))
            size += max(1, len(document.chunks))
            if size >= limit:
                yield batch
                batch, size, limit = [], 0, min(limit * _GROWTH, _MAX_BATCH)
        if batch:
            yield batch

    def _document(self, state: FileState) -> tuple[IndexedDocument, str]:
        """Return a file's chunks, and the version to store as its blob."""
        if not self._is_document(state.path):
            return self._text(state), state.blob
        text = self._documents.stored(state.path, state.blob)
        if state.size > MAX_BYTES:
            text = TOO_LARGE
        if text is not None:
            return read_parts(state.path, text, self._limits), _version_of(state)
        if is_indexed(state.path):  # a web page can be searched in its raw form
            return self._text(state), _UNREAD
        why = WAITING if can_read(kind_of(state.path)) else missing()
        return self._skipped(state.path, why), _UNREAD

    def _text(self, state: FileState) -> IndexedDocument:
        if state.size > self._max_bytes:
            return self._skipped(state.path, f"it is larger than {self._max_bytes >> 20} MB")
        try:
            data = self._contents.pop(state.path, None)
            if data is None:
                data = files.read_bytes(self._layout, state.path)
        except (KbtuiError, OSError) as error:
            # Deleted or changed since the scan: the next scan finds it.
            return self._skipped(state.path, str(error))
        return read_document(state.path, data, self._limits)

    @staticmethod
    def _skipped(path: str, why: str) -> IndexedDocument:
        return IndexedDocument(path, Properties(title=path.rpartition("/")[2]), problem=why)


def _version_of(state: FileState) -> str:
    return f"{state.blob}+{VERSION}"
