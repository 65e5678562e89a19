"""The cached facts and links of every entry, kept in sync with the files.

Parsed facts are stored in a derived SQLite database, keyed by content hash; after a change only the
changed files are parsed. Memory notes, skills and bootstrap files are indexed too, because they
link to entries.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from kbtui.derived import DerivedDatabase
from kbtui.errors import KbtuiError
from kbtui.knowledge.entries import privacy
from kbtui.knowledge.entries.dendron import dendron_at
from kbtui.knowledge.entries.entry import (
    COLUMNS,
    EntryInfo,
    info_from,
    info_of,
    is_entry,
    is_indexed,
    parse_entry,
    row_of,
    unread,
)
from kbtui.knowledge.entries.logseq import Journals, journals_at
from kbtui.knowledge.entries.privacy import originals, says_private
from kbtui.knowledge.format.links import Link, pack_links
from kbtui.knowledge.linking.resolve import LinkGraph, LinkIndex
from kbtui.workspace import files
from kbtui.workspace.layout import BOOTSTRAP_FILES, Workspace
from kbtui.workspace.scan import FileState, Scanner, attachments_in

if TYPE_CHECKING:
    import sqlite3

    from pathspec import GitIgnoreSpec


AREAS = ("knowledge", "memory", "skills", *BOOTSTRAP_FILES)
# Increment the number whenever the same bytes would be parsed differently.
_IDENTITY = f"entries 12 {privacy.VERSION}"
_SCHEMA = (
    f"CREATE TABLE entries ({COLUMNS}) WITHOUT ROWID",
    "CREATE TABLE links (path TEXT PRIMARY KEY, found TEXT) WITHOUT ROWID",
)
# With more changes than this at once, index and graph are rebuilt instead of updated.
_REBUILD_LIMIT = 50
_MAX_KEPT_CONTENT = 4 << 20  # bytes, of all marked files
_INSERT = "REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def _copies_of_private(known: Mapping[str, EntryInfo]) -> dict[str, EntryInfo]:
    """Return public entries that are copies of private ones by their names, as private."""
    if not any(info.private for info in known.values()):
        return {}
    return {
        path: replace(info, private=True)
        for path, info in known.items()
        if not info.private and any(_is_private(known.get(each)) for each in originals(path))
    }


def _is_private(info: EntryInfo | None) -> bool:
    return info is not None and info.private


class EntryIndex:
    """All infos and links of a workspace; thread-safe."""

    def __init__(
        self, workspace: Workspace, scanner: Scanner, private_paths: Sequence[str] = ()
    ) -> None:
        self._workspace = workspace
        self._scanner = scanner
        self._private_paths = private_paths
        self._private: GitIgnoreSpec | None = None
        self._journals: Journals | None = None
        self._lock = threading.RLock()
        self._database: DerivedDatabase | None = None
        self._infos: dict[str, EntryInfo] | None = None
        self._links: dict[str, str] | None = None  # serialized by `pack_links`
        self._sorted: tuple[EntryInfo, ...] | None = None
        self._count: int | None = None
        self._index: LinkIndex | None = None
        self._public: tuple[tuple[EntryInfo, ...], LinkIndex] | None = None
        self._graph: LinkGraph | None = None
        self._attachments: Mapping[str, str] | None = None
        self._attached: tuple[str, ...] = ()
        self._stale: dict[str, bytes | None] = {}  # with their new content, if known
        self._kept = 0  # bytes of it
        self._declared: dict[str, tuple[tuple[int, ...], bool]] = {}  # by path of files not indexed

    def refresh(self) -> None:
        """Scan every file's status and index what changed."""
        with self._lock:
            self._attachments = None
            self._rescan(AREAS, self._load())

    def mark(
        self, paths: Iterable[str], contents: Mapping[str, bytes | None] = MappingProxyType({})
    ) -> None:
        """Mark files as changed; they are read on the next lookup.

        `contents` are their new bytes, kept for a few megabytes of files to save reading them.
        """
        with self._lock:
            for path in filter(is_indexed, paths):
                data = contents.get(path)
                is_kept = data is not None and self._kept + len(data) <= _MAX_KEPT_CONTENT
                self._kept += len(data) if data is not None and is_kept else 0
                self._stale[path] = data if is_kept else None

    def keep_up(self) -> None:
        """Index the marked files, unless that requires a full scan."""
        with self._lock:
            if self._infos is not None:
                self._up_to_date()

    def infos(self) -> tuple[EntryInfo, ...]:
        """Return all entries by category and slug."""
        with self._lock:
            known = self._up_to_date()
            if self._sorted is None:
                entries = [info for info in known.values() if info.is_entry]
                entries.sort(key=lambda info: (info.category.casefold(), info.slug.casefold()))
                self._sorted = tuple(entries)
                self._count = len(entries)
            return self._sorted

    def listing(self) -> tuple[EntryInfo, ...]:
        """Return all entries from a directory listing; those never read are placeholders."""
        known = dict(self._infos or self._cache().run(_read_infos))
        paths = filter(is_entry, self._scanner.names("knowledge"))
        return tuple(known.get(path) or unread(path) for path in paths)

    def get(self, path: str) -> EntryInfo | None:
        """Return the info of one file, or None."""
        with self._lock:
            return self._up_to_date().get(path)

    def peek(self, path: str) -> EntryInfo | None:
        """Return the info of one file if that needs no scan and no reading, else None."""
        with self._lock:
            known = self._infos is not None and path not in self._stale
            return self._infos.get(path) if known and self._infos else None

    def count(self) -> int:
        """Return the number of entries as of the last scan, without scanning again."""
        with self._lock:
            if self._count is None:
                self._count = self._cache().run(_count)
            return self._count

    def index(self) -> LinkIndex:
        """Return the index of entries by name."""
        with self._lock:
            self._up_to_date()
            if self._index is None:
                self._index = LinkIndex(self.infos(), dendron=dendron_at(self._workspace.root))
            return self._index

    def public_index(self) -> LinkIndex:
        """Return the index of public entries by name."""
        with self._lock:
            infos = self.infos()
            if not any(info.private for info in infos):
                return self.index()
            if self._public is None or self._public[0] is not infos:
                public = (info for info in infos if not info.private)
                self._public = infos, LinkIndex(public, dendron=dendron_at(self._workspace.root))
            return self._public[1]

    def read(self, path: str, limit: int = files.READ_LIMIT) -> bytes:
        """Read any file of the workspace; raises as `files.read_bytes`."""
        return files.read_bytes(self._workspace, path, limit)

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        return files.exists(self._workspace, path)

    def attachments(self) -> Mapping[str, str]:
        """Return the non-note files among the entries by casefolded name, as of `refresh`."""
        if self._attachments is None:
            found = tuple(attachments_in(self._workspace))
            self._attached = found
            self._attachments = {path.rpartition("/")[2].casefold(): path for path in found}
        return self._attachments

    def attached(self) -> tuple[str, ...]:
        """Return the paths of all attachments, including those with the same name."""
        self.attachments()
        return self._attached

    def is_private(self, path: str) -> bool:
        """Return whether only local models may read a file, which need not be indexed.

        A copy, judging by its name, is as private as its original. Files that aren't indexed are
        read for their own declaration.
        """
        info = self.get(self.index().at_path(path) or path)
        if info is not None:
            return info.private
        return any(
            _is_private(self.get(each))
            or self.is_named_private(each)
            or self._declares_private(each)
            for each in (path, *originals(path))
        )

    def is_named_private(self, path: str) -> bool:
        """Return whether the settings make a path private; the file need not exist."""
        if not self._private_paths:
            return False
        if self._private is None:
            from pathspec import GitIgnoreSpec

            self._private = GitIgnoreSpec.from_lines(self._private_paths)
        below = path.removeprefix("knowledge/")
        return self._private.match_file(path) or self._private.match_file(below)

    def graph(self) -> LinkGraph:
        """Return the graph of links."""
        with self._lock:
            self._up_to_date()
            if self._graph is None:
                self._graph = LinkGraph(self.index(), self._all_links())
            return self._graph

    def same_links(
        self, blobs: Mapping[str, str], names: Iterable[str]
    ) -> tuple[dict[str, tuple[Link, ...]], list[str]]:
        """Return the links of files that still have these blob ids, and the paths of the others.

        Only files with a link that uses one of `names` are included in the former.
        """
        with self._lock:
            known, graph = self._up_to_date(), self.graph()
            changed = [
                path
                for path, blob in blobs.items()
                if path not in known or known[path].blob != blob
            ]
            unchanged = graph.sources_naming(names).intersection(blobs).difference(changed)
            return {path: graph.links_of(path) for path in unchanged}, changed

    def clear(self) -> None:
        """Discard everything derived; it is read from the files again."""
        with self._lock:
            self._cache().clear()
            self._infos = self._links = self._count = None
            self._invalidate()

    def _up_to_date(self) -> dict[str, EntryInfo]:
        if self._infos is not None and not self._stale:
            return self._infos
        if self._infos is None:
            self.refresh()
        else:
            self._rescan(sorted(self._stale), tuple(self._stale))
        return self._load()

    def _rescan(self, areas: Iterable[str], among: Iterable[str]) -> None:
        """Index what changed in some areas, and remove the files of `among` that are gone."""
        contents_by_path, self._stale, self._kept = self._stale, {}, 0
        contents: dict[str, bytes] = {}
        states = self._scanner.scan(*areas, contents=contents)
        known = self._load()
        gone = [path for path in among if path not in states and path in known]
        changed = [
            state
            for path, state in states.items()
            if (path not in known or known[path].blob != state.blob) and is_indexed(path)
        ]
        for state in changed:
            data = contents_by_path.get(state.path)
            if data is not None and files.blob_id(data) == state.blob:
                contents[state.path] = data
        self._apply(changed, gone, contents)

    def _apply(
        self, changed: list[FileState], gone: list[str], contents: Mapping[str, bytes]
    ) -> None:
        """Parse changed files, remove gone ones, and store both; some `contents` are known."""
        known = self._load()
        if len(changed) + len(gone) > _REBUILD_LIMIT:
            self._invalidate()
        was_private = sum(_is_private(known.get(state.path)) for state in changed)
        rows: list[tuple[object, ...]] = []
        found: list[tuple[str, str]] = []
        for state in changed:
            data = contents.get(state.path)
            if data is None:
                data = self._read(state.path)
            if data is None:
                gone.append(state.path)
                continue
            entry = parse_entry(state.path, data)
            info = info_of(entry, state.size, state.mtime_ns)
            links = pack_links(entry.links)
            self._replace(known, info, links)
            rows.append(row_of(info))
            found.append((state.path, links))
        gone = [path for path in gone if path in known]
        for path in gone:
            self._remove(known, path)
        if rows or gone:
            self._cache().run(lambda connection: _store(connection, rows, found, gone))
        if was_private < sum(_is_private(known.get(state.path)) for state in changed):
            self._mark_copies_private(known)

    def _replace(self, known: dict[str, EntryInfo], info: EntryInfo, links: str) -> None:
        before = known.get(info.path)
        info = self._with_settings(info)
        if any(_is_private(known.get(each)) for each in originals(info.path)):
            info = replace(info, private=True)
        known[info.path] = info
        self._sorted = None
        if self._links is not None:
            self._links[info.path] = links
        if before is None or before.names != info.names:
            self._update_names(before, info)
        if self._graph is not None:
            self._graph.put(info.path, links)

    def _remove(self, known: dict[str, EntryInfo], path: str) -> None:
        before = known.pop(path)
        self._sorted = None
        if self._links is not None:
            self._links.pop(path, None)
        if self._graph is not None:
            self._graph.drop(path)
        self._update_names(before, None)

    def _read(self, path: str) -> bytes | None:
        with suppress(KbtuiError):  # gone meanwhile, too large, or unreadable
            return files.read_bytes(self._workspace, path)
        return None

    def _update_names(self, before: EntryInfo | None, after: EntryInfo | None) -> None:
        """Update index and graph after an entry was added, removed or renamed."""
        info = after or before
        if info is None or not info.is_entry or self._index is None:
            return
        self._index = self._index.changed(before, after)
        if self._graph is not None:
            names = {name for one in (before, after) if one for name in one.names}
            self._graph.follow(self._index, names, before.path if before else None)

    def _invalidate(self) -> None:
        self._sorted = None
        self._index = None
        self._graph = None

    def _load(self) -> dict[str, EntryInfo]:
        if self._infos is None:
            self._infos = self._cache().run(_read_infos)
            self._journals = journals_at(self._workspace.root) if self._workspace.in_place else None
            if self._private_paths or self._journals:
                self._infos = {
                    path: self._with_settings(info) for path, info in self._infos.items()
                }
            if any(info.private for info in self._infos.values()):
                self._mark_copies_private(self._infos)
        return self._infos

    def _with_settings(self, info: EntryInfo) -> EntryInfo:
        """Return the info, private if the settings say so; a day's title is as Logseq's say."""
        if self._journals and (title := self._journals.titled(info)) != info.title:
            info = replace(info, title=title)
        return replace(info, private=True) if self.is_named_private(info.path) else info

    def _mark_copies_private(self, known: dict[str, EntryInfo]) -> None:
        """Mark copies of private entries, by name, as private."""
        if copies := _copies_of_private(known):
            known.update(copies)
            self._sorted = self._public = None

    def marked(self, infos: Iterable[EntryInfo]) -> list[EntryInfo]:
        """Return the infos as they will be indexed: private by settings or as copies too."""
        known = {info.path: self._with_settings(info) for info in infos}
        return list((known | _copies_of_private(known)).values())

    def _declares_private(self, path: str) -> bool:
        """Return whether a file that isn't indexed declares itself private."""
        try:
            status = files.file_status(self._workspace, path)
            if status is None:
                return False
            state = status.st_size, status.st_mtime_ns
            if self._declared.get(path, ((), False))[0] != state:
                is_declared = says_private(files.read_bytes(self._workspace, path))
                self._declared[path] = state, is_declared
            return self._declared[path][1]
        except KbtuiError:
            return False

    def _all_links(self) -> dict[str, str]:
        if self._links is None:
            self._links = self._cache().run(_read_links)
        return self._links

    def _cache(self) -> DerivedDatabase:
        if self._database is None:
            file = self._workspace.cache / "entries.sqlite"
            self._database = DerivedDatabase(file, _SCHEMA, _IDENTITY)
        return self._database


def _count(connection: sqlite3.Connection) -> int:
    where = "path >= 'knowledge/' AND path < 'knowledge0'"
    row = connection.execute(f"SELECT count(*) FROM entries WHERE {where}").fetchone()
    return int(row[0])


def _read_infos(connection: sqlite3.Connection) -> dict[str, EntryInfo]:
    return {row[0]: info_from(row) for row in connection.execute("SELECT * FROM entries")}


def _read_links(connection: sqlite3.Connection) -> dict[str, str]:
    return dict(connection.execute("SELECT path, found FROM links"))


def _store(
    connection: sqlite3.Connection,
    rows: list[tuple[object, ...]],
    found: list[tuple[str, str]],
    gone: list[str],
) -> None:
    connection.executemany(_INSERT, rows)
    connection.executemany("REPLACE INTO links VALUES (?, ?)", found)
    removed = [(path,) for path in gone]
    connection.executemany("DELETE FROM entries WHERE path = ?", removed)
    connection.executemany("DELETE FROM links WHERE path = ?", removed)
