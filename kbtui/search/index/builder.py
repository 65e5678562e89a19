"""Brings a generation up to date with the files: changed ones are cut and indexed, no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.search.index.chunker import ChunkLimits, Document, is_indexed, read_document
from kbtui.search.index.markdown import Properties
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kbtui.search.index.generation import Generation
    from kbtui.workspace.layout import Layout
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


class Builder:
    """Indexes files of one workspace."""

    def __init__(self, layout: Layout, limits: ChunkLimits, most_bytes: int) -> None:
        """Files over `most_bytes` are listed as skipped."""
        self._layout = layout
        self._limits = limits
        self._most_bytes = most_bytes

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
        wanted = {path: state for path, state in found.items() if is_indexed(path)}
        changed = [path for path in wanted if known.get(path) != wanted[path].blob]
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

    def _lots(self, states: Sequence[FileState]) -> Iterator[list[tuple[Document, str]]]:
        lot: list[tuple[Document, str]] = []
        size, most = 0, _FIRST_LOT
        for state in states:
            document = self._document(state)
            lot.append((document, state.blob))
            size += max(1, len(document.chunks))
            if size >= most:
                yield lot
                lot, size, most = [], 0, min(most * _GROWTH, _LARGEST_LOT)
        if lot:
            yield lot

    def _document(self, state: FileState) -> Document:
        if state.size > self._most_bytes:
            return self._skipped(state.path, f"it is larger than {self._most_bytes >> 20} MB")
        try:
            data = files.read_bytes(self._layout, state.path)
        except (KbtuiError, OSError) as error:
            # Gone or changed since the scan: the next one sees it.
            return self._skipped(state.path, str(error))
        return read_document(state.path, data, self._limits)

    @staticmethod
    def _skipped(path: str, why: str) -> Document:
        return Document(path, Properties(title=path.rpartition("/")[2]), problem=why)


def scan(
    scanner: Scanner, areas: Sequence[str], only: frozenset[str] | None, known: Mapping[str, str]
) -> Mapping[str, FileState]:
    """The files of some areas as they are now; with `only` these, and what is below them."""
    if only is None:
        return scanner.scan(*areas)
    paths = {path for path in only if path.startswith(tuple(f"{area}/" for area in areas))}
    # By name even a passing file is scanned: a new one is looked for in its folder.
    old = paths & known.keys()
    places = old | {path.rpartition("/")[0] for path in paths - old}
    found = scanner.scan(*places) if places else {}
    wanted = tuple(f"{path}/" for path in paths)
    return {
        path: state for path, state in found.items() if path in paths or path.startswith(wanted)
    }
