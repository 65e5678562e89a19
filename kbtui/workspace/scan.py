"""Scanning the workspace for changes: one walk with a cache of hashes, shared by all who need them.

A file is hashed again only if its status changed, or if a change may not show in its status: it was
modified about when it was hashed (git's racy-clean rule), and its timestamps don't prove that a
later write would have changed them.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
import unicodedata
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.text import clean_line, counted, storable
from kbtui.workspace import files
from kbtui.workspace.durable import TEMPORARY, FileBatch, Written, sweep
from kbtui.workspace.layout import (
    BOOTSTRAP_FILES,
    ENTRIES,
    MACHINE,
    RECORDED_FOLDERS,
    Layout,
    Workspace,
    is_conflict_copy,
    is_recorded,
)

if TYPE_CHECKING:
    import sqlite3

    from pathspec import GitIgnoreSpec

    from kbtui.derived import DerivedDatabase

AREAS = ("knowledge", "memory", "skills", "docs", *BOOTSTRAP_FILES)
IGNORE_FILE = ".kbtuiignore"
LEFT_OUT = "Rename it, make it smaller or readable, or name it in .kbtuiignore."
LARGER = "`kbtui config set sync.attachment_megabytes 50` takes more; 0 takes none."
# Timestamps on some file systems have steps of two seconds (FAT), which can hide a change.
_RACY_NS = 2_000_000_000
_COARSE_NS = 10_000_000  # timestamps of a coarse clock are multiples of this
_TEMPORARY_SUFFIXES = ("~", ".swp", ".tmp", ".part", ".crdownload")
_CHUNK = 1 << 20
# Folders that package managers create.
_PACKAGE_FOLDERS = frozenset({"node_modules", "__pycache__", "bower_components"})
_LATEST_NS = 2**62
# Bytes of a file, and number of files, returned in `contents`: 16 MB at most.
_MAX_BYTES, _MAX_COUNT = 1 << 16, 256
LARGEST_ATTACHMENT = 10 << 20
_TEXT_SUFFIXES = frozenset(
    (
        *(".csv", ".tsv", ".bib", ".txt", ".org", ".markdown", ".ics", ".eml"),
        *(".adoc", ".asciidoc", ".norg", ".rst", ".textile", ".typ", ".wiki"),
    )
)
ATTACHMENTS = _TEXT_SUFFIXES | frozenset(
    (
        *(".avif", ".bmp", ".gif", ".heic", ".jpeg", ".jpg", ".png", ".svg", ".tif", ".tiff"),
        *(".webp", ".pdf", ".doc", ".docx", ".epub", ".odp", ".ods", ".odt", ".ppt", ".pptx"),
        *(".rtf", ".xls", ".xlsx", ".excalidraw", ".drawio", ".zip"),
        *(".3gp", ".flac", ".m4a", ".mp3", ".ogg", ".opus", ".wav"),
        *(".mkv", ".mov", ".mp4", ".ogv", ".webm"),
    )
)
"""Suffixes of files that are kept beside notes used in place; none is of code."""
_SCHEMA = (
    """
    CREATE TABLE files (
        path TEXT PRIMARY KEY, size INTEGER, mtime INTEGER, ctime INTEGER, inode INTEGER,
        checked INTEGER, blob TEXT, crc INTEGER
    ) WITHOUT ROWID
    """,
)


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file: its content hash, its size in bytes, and its modification time."""

    path: str
    blob: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class _CachedState:
    """A hash and the file status it belongs to; `checked` is the time before hashing."""

    state: FileState
    ctime: int
    inode: int
    checked: int

    def is_current(self, status: os.stat_result) -> bool:
        return (
            self.state.size == status.st_size
            and self.state.mtime_ns == _clamped(status.st_mtime_ns)
            and self.ctime == status.st_ctime_ns
            and self.inode == status.st_ino
            and (
                max(status.st_mtime_ns, status.st_ctime_ns) < self.checked - _RACY_NS
                or _shows_writes(status)
            )
        )

    def row(self) -> tuple[str | int, ...]:
        state = self.state
        fields = (
            state.path,
            state.size,
            state.mtime_ns,
            self.ctime,
            self.inode,
            self.checked,
            state.blob,
        )
        return (*fields, zlib.crc32(repr(fields).encode()))


class Scanner:
    """Scans a workspace; thread-safe, one per process."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        beside_notes: Callable[[str], bool] | None = None,
        largest: int = LARGEST_ATTACHMENT,
    ) -> None:
        """Prepare without reading anything.

        Args:
            workspace: The workspace to scan.
            beside_notes: For a workspace in place: finds the files that it accepts instead of
                notes.
            largest: The size limit in bytes for recording attachments.
        """
        self._workspace = workspace
        self._beside_notes = beside_notes
        self._largest = largest
        self._lock = threading.RLock()
        self._states: dict[str, _CachedState] | None = None
        self._unsaved: set[str] = set()
        self._database: DerivedDatabase | None = None
        self._ignored: tuple[tuple[int, int], GitIgnoreSpec | None] = ((0, 0), None)
        self._skipped: dict[str, str] = {}
        self._too_large: dict[str, str] = {}
        self.recorded: Callable[[], Collection[str]] = tuple
        """Returns the recorded paths, which may keep names that new files can't have."""
        self._strays: set[Path] = set()

    def sweep(self) -> None:
        """Remove temporary files of dead processes in the folders scanned so far."""
        with self._lock:
            while self._strays:
                sweep(self._strays.pop())

    def left_out(self, *, recorded: bool = True) -> dict[str, str]:
        """Return the files that scans skipped although they should be recorded, with reasons.

        If not `recorded`, those that would only be searched.
        """
        ours = self._beside_notes is None
        with self._lock:
            every = self._skipped.items()
            return {p: why for p, why in every if (ours and is_recorded(p)) is recorded}

    def too_large(self) -> dict[str, str]:
        """Return the attachments that are too large to record, as of the last scan for that."""
        with self._lock:
            return dict(self._too_large)

    def scan(
        self, *areas: str, attachments: float = 0, contents: dict[str, bytes] | None = None
    ) -> dict[str, FileState]:
        """Walk `areas` (by default all recorded or indexed ones) and return file states by path.

        Hidden files, links, temporary files of editors, conflict copies and what ``.kbtuiignore``
        names are skipped, as well as files that can't be read or are too large for the history.

        Args:
            areas: The folders and files to scan.
            attachments: If not 0, scan for the history: in a workspace in place include attachments
                that aren't too large, and new ones only if they have at most this many bytes
                together, since all of them have to be read.
            contents: Receives the contents of small files that had to be read for hashing, by path,
                for a caller that needs them next.
        """
        wanted = areas or AREAS
        with self._lock:
            for reported in (self._skipped, *([self._too_large] if attachments else ())):
                for path in _below(wanted, reported):
                    del reported[path]
            known, found = self._load_states(), dict[str, FileState]()
            unread: dict[str, os.stat_result] = {}  # a dict, since areas may overlap
            new: dict[str, os.stat_result] = {}
            for path, status in self._walk(wanted, attachments=bool(attachments)):
                entry = known.get(path)
                may_be_large = attachments or status.st_size > files.READ_LIMIT
                if may_be_large and self._is_too_large(
                    path, status.st_size, attachments=bool(attachments)
                ):
                    continue
                if entry is not None and entry.is_current(status):
                    found[path] = entry.state
                else:
                    beside = bool(attachments) and self._is_new_attachment(path)
                    (new if beside else unread)[path] = status
            if sum(status.st_size for status in new.values()) <= attachments:
                unread |= new
            for path, status in unread.items():
                if (entry := self._hash(path, status, contents)) is not None:
                    found[path] = entry.state
            self._forget_missing(wanted, found, attachments=bool(attachments))
            self._save()
            return found

    def names(self, *areas: str) -> list[str]:
        """Return the paths that `scan` would find, without reading files."""
        return [path for path, _ in self._walk(areas)]

    def note(self, path: str, blob: str, written: Written) -> None:
        """Record the hash of a file that we wrote ourselves, as `note_all`."""
        self.note_all({path: blob}, {path: written})

    def note_all(self, blobs: Mapping[str, str], written: Mapping[str, Written]) -> None:
        """Record the hashes of files that we wrote ourselves, so that they needn't be read again.

        If somebody else has replaced one since it was `written`, nothing is recorded of it.
        """
        with self._lock, FileBatch(self._workspace) as folders:
            for path, blob in blobs.items():
                try:
                    folder, name = folders.place(path)
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                except OSError:  # gone meanwhile
                    continue
                if stat.S_ISREG(status.st_mode) and Written.of(status) == written[path]:
                    self._store(path, blob, status, time.time_ns())

    def look(self, path: str) -> FileState | None:
        """Return the state of one file that scans skip, such as one that ends in ``~``.

        None if there is no such file, or it can't be read, is too large or ignored.
        """
        with self._lock:
            status = files.file_status(self._workspace, path)
            if status is None or status.st_size > files.READ_LIMIT:
                return None
            if self.ignores(path):
                return None
            entry = self._hash(path, status)
            return None if entry is None else entry.state

    def size(self, path: str) -> int:
        """Return the size in bytes of a file as of the last scan, 0 if it wasn't there."""
        with self._lock:
            known = self._load_states().get(path)
        return known.state.size if known else 0

    def ignores(self, path: str) -> bool:
        """Return whether ``.kbtuiignore`` names a file or a folder above it."""
        ignored = self._ignore_rules()
        return ignored is not None and _is_ignored(
            self._workspace.file(path), ignored, is_file=True
        )

    def passes_over(self, path: str) -> bool:
        """Return whether scans would skip a note at this path."""
        foreign = self._workspace.in_place and not _PACKAGE_FOLDERS.isdisjoint(path.split("/"))
        return foreign or self.ignores(path)

    def conflict_copies(self) -> list[str]:
        """Return the conflict copies, which keep the rejected version of a file."""
        return sorted(
            path for path, _ in self._walk(AREAS, conflicts=True) if is_conflict_copy(path)
        )

    def _skip(self, path: str, why: str) -> None:
        self._skipped[_shown(path)] = why

    def _is_too_large(self, path: str, size: int, *, attachments: bool) -> bool:
        """Return whether a file is too large for the history; recorded attachments aren't."""
        if size > files.READ_LIMIT and is_recorded(path):
            self._skip(path, f"it is larger than {files.READ_LIMIT >> 20} MB")
            return True
        if not attachments or size <= self._largest or not self._is_new_attachment(path):
            return False
        if self._largest:
            self._too_large[_shown(path)] = (
                f"it has {size / 2**20:,.1f} MB; files beside notes are taken up to"
                f" {self._largest / 2**20:g} MB (`sync.attachment_megabytes`)"
            )
        return True

    def _is_new_attachment(self, path: str) -> bool:
        is_beside = path.startswith(ENTRIES) and not _is_recorded_in_place(path)
        return is_beside and path not in self.recorded()

    def _hash(
        self, path: str, status: os.stat_result, contents: dict[str, bytes] | None = None
    ) -> _CachedState | None:
        checked = time.time_ns()
        try:
            if status.st_size > files.READ_LIMIT:
                blob = hash_file(self._workspace.place(path), status.st_size)
            else:
                data = files.read_bytes(self._workspace, path)
                blob = files.blob_id(data)
                if contents is not None and len(data) <= _MAX_BYTES and len(contents) < _MAX_COUNT:
                    contents[path] = data
        except (NotFoundError, FileNotFoundError):
            return None
        except (KbtuiError, OSError):
            self._skip(path, "it can't be read")
            return None
        return self._store(path, blob, status, checked)

    def _store(self, path: str, blob: str, status: os.stat_result, checked: int) -> _CachedState:
        state = FileState(path, blob, status.st_size, _clamped(status.st_mtime_ns))
        entry = _CachedState(state, status.st_ctime_ns, status.st_ino, checked)
        self._load_states()[path] = entry
        self._unsaved.add(path)
        return entry

    def _walk(
        self, areas: tuple[str, ...], *, conflicts: bool = False, attachments: bool = False
    ) -> Iterator[tuple[str, os.stat_result]]:
        notes = self._beside_notes or (
            _is_recorded_or_attached if attachments and self._largest else _is_recorded_in_place
        )
        ignored = self._ignore_rules()
        single = [area for area in areas if area in BOOTSTRAP_FILES]
        there = files.listed(self._workspace, single) if single else ()
        looked_at = [area for area in areas if area not in single or area in there]
        statuses = files.file_statuses(self._workspace, looked_at)
        for area, status in zip(looked_at, statuses, strict=True):
            file = self._workspace.file(area)
            if ignored is not None and _is_ignored(file, ignored, is_file=status is not None):
                continue
            if area in (RECORDED_FOLDERS if status is not None else BOOTSTRAP_FILES):
                if self._workspace.place(area).exists():
                    self._skip(area, "a file stands there for a folder, or a folder for it")
            elif status is not None:
                yield area, status
            else:
                yield from self._walk_folder(area, ignored, notes, conflicts=conflicts)

    def _walk_folder(
        self,
        folder: str,
        ignored: GitIgnoreSpec | None,
        wanted: Callable[[str], bool],
        *,
        conflicts: bool,
    ) -> Iterator[tuple[str, os.stat_result]]:
        notes_only = self._workspace.in_place and f"{folder}/".startswith(ENTRIES)
        stack = [folder]
        while stack:
            for path, entry in self._listed(stack.pop(), ignored, wanted if notes_only else None):
                if _is_kind(entry.is_dir):
                    stack.append(path)
                elif not _is_kind(entry.is_file):
                    kind = "a link" if entry.is_symlink() else "no ordinary file"
                    self._skip(path, f"it is {kind}")
                elif conflicts or not is_conflict_copy(entry.name):
                    try:
                        yield path, entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        pass  # deleted meanwhile
                    except OSError as error:
                        why = (error.strerror or "").lower()
                        self._skip(path, f"it can't be looked at ({why})")

    def _listed(
        self, folder: str, ignored: GitIgnoreSpec | None, wanted: Callable[[str], bool] | None
    ) -> list[tuple[str, os.DirEntry[str]]]:
        """Return the entries of a folder by path that have valid names and aren't ignored."""
        kept = []
        known, layout = self._states or {}, self._workspace
        here = layout.place(folder)
        tell, stray = partial(self._skip_in, folder), partial(self._strays.add, here)
        for name, entry in _entries(here, wanted=wanted, tell=tell, stray=stray):
            path = layout.listed(folder, name)
            trouble = "" if path in known else files.name_trouble(path)
            if trouble and not self._keeps(path):
                tell(name, f"its name can't be used on every machine: {trouble}")
                continue
            if ignored is not None:
                file = layout.file(path)
                if ignored.match_file(f"{file}/" if _is_kind(entry.is_dir) else file):
                    continue
            kept.append((path, entry))
        return kept

    def _keeps(self, path: str) -> bool:
        """Return whether the history has the file already, or a file below the folder."""
        try:
            recorded = self.recorded()
        except KbtuiError:  # a damaged history mustn't prevent reading notes
            return False
        return path in recorded or any(each.startswith(f"{path}/") for each in recorded)

    def _skip_in(self, folder: str, name: str, why: str) -> None:
        self._skip(self._workspace.listed(folder, name) if name else folder, why)

    def _ignore_rules(self) -> GitIgnoreSpec | None:
        file = self._workspace.root / IGNORE_FILE
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._ignored[0]:
                self._ignored = (stamp, _parse_rules(file.read_text("utf-8-sig", "replace")))
        except FileNotFoundError:
            self._ignored = ((0, 0), None)
        except OSError:
            pass  # keep the old rules: they may protect private files
        return self._ignored[1]

    def _forget_missing(
        self, areas: tuple[str, ...], found: dict[str, FileState], *, attachments: bool
    ) -> None:
        known = self._load_states()
        for path in _below(areas, known.keys() - found.keys()):
            if attachments or not is_attachment(path):
                del known[path]
                self._unsaved.add(path)

    def _load_states(self) -> dict[str, _CachedState]:
        if self._states is None:
            self._states = self._cache().run(_read_rows)
        return self._states

    def _save(self) -> None:
        if not self._unsaved:
            return
        known = self._load_states()
        gone = [(path,) for path in self._unsaved if path not in known]
        rows = [known[path].row() for path in self._unsaved if path in known]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM files WHERE path = ?", gone)
            connection.executemany("REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

        self._cache().run(write)
        self._unsaved.clear()

    def _cache(self) -> DerivedDatabase:
        if self._database is None:
            file = self._workspace.cache / (
                "files.sqlite" if self._beside_notes is None else "beside.sqlite"
            )
            from kbtui.derived import DerivedDatabase

            self._database = DerivedDatabase(file, _SCHEMA, "files 1")
        return self._database


def _shown(path: str) -> str:
    return clean_line(storable(path))


def describe_large(layout: Layout, large: Mapping[str, str]) -> str:
    """Format a sentence about attachments that are too large to record."""
    path, why = next(iter(large.items()))
    more = f", and {counted(len(large) - 1, 'other file')}" if len(large) > 1 else ""
    return f"Without a history, and not synced: {layout.file(path)} ({why}){more}."


def _below(areas: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Return the paths that are in one of the areas."""
    wanted = frozenset(areas)

    def is_wanted(path: str) -> bool:
        while path and path not in wanted:
            path = path.rpartition("/")[0]
        return bool(path)

    return [path for path in paths if is_wanted(path)]


def _shows_writes(status: os.stat_result) -> bool:
    """Return whether any later write would change this status.

    True if the file system's clock had ticked between the last write and the last change of the
    inode, as when a written and synced file is renamed into place: a later write gets a later time.
    """
    is_fine = bool(status.st_mtime_ns % _COARSE_NS and status.st_ctime_ns % _COARSE_NS)
    return is_fine and status.st_mtime_ns < status.st_ctime_ns


def _clamped(nanoseconds: int) -> int:
    """Clamp a timestamp to what the database can store: some clocks are far off."""
    return max(0, min(nanoseconds, _LATEST_NS))


def _parse_rules(text: str) -> GitIgnoreSpec:
    """Parse ignore patterns like git: an invalid one doesn't affect the others."""
    from pathspec import GitIgnoreSpec

    lines = []
    for line in text.splitlines():
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        lines.append(line)
    return GitIgnoreSpec.from_lines(lines)


def folders_of(layout: Layout, areas: Iterable[str]) -> Iterator[Path]:
    """Yield the folders to watch so that no edit in `areas` is missed.

    In place it is each folder that may hold notes, individually: watching the root recursively
    would include a project's dependencies and kbtui's own history.
    """
    for area in areas:
        stack = [layout.place(area)] if layout.place(area).is_dir() else []
        while stack:
            folder = stack.pop()
            yield folder
            if layout.in_place and area == ENTRIES[:-1]:
                below = _entries(folder, wanted=_is_note)
                stack += [folder / e.name for _, e in below if _is_kind(e.is_dir)]


def notes_in(layout: Layout) -> Iterator[Path]:
    """Yield the notes of a folder used in place, in no particular order, without reading them."""
    for folder in folders_of(layout, [ENTRIES[:-1]]):
        for _, entry in _entries(folder, wanted=_is_note):
            if _is_kind(entry.is_file) and not is_conflict_copy(entry.name):
                yield folder / entry.name


def attachments_in(layout: Layout) -> Iterator[str]:
    """Yield the paths of files among the entries that aren't notes: pictures, documents."""
    top = layout.place(ENTRIES[:-1])
    stack = [ENTRIES[:-1]]
    while stack:
        folder = stack.pop()
        for name, entry in _entries(top / folder.removeprefix(ENTRIES[:-1]).lstrip("/")):
            if _is_kind(entry.is_dir):
                if _may_hold_notes(entry):
                    stack.append(f"{folder}/{name}")
            elif not _is_note(name):
                yield f"{folder}/{name}"


def _entries(
    folder: Path,
    *,
    wanted: Callable[[str], bool] | None = None,
    tell: Callable[[str, str], None] = lambda _, __: None,
    stray: Callable[[], None] = lambda: None,
) -> list[tuple[str, os.DirEntry[str]]]:
    """Return the relevant entries of a folder by NFC name; a name in two forms counts once.

    In place, entries that aren't `wanted` are skipped. `tell` receives the name of an entry that
    can't be used (empty for the folder itself) and the reason; `stray` is called for a temporary
    file of kbtui's.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=attrgetter("name"))
    except FileNotFoundError:
        return []
    except OSError as error:
        tell("", f"it can't be opened ({(error.strerror or '').lower()})")
        return []
    kept: list[tuple[str, os.DirEntry[str]]] = []
    seen: set[str] = set()
    for entry in found:
        if entry.name.startswith((".", "#")) or entry.name.endswith(_TEMPORARY_SUFFIXES):
            if entry.name.startswith(TEMPORARY):
                stray()
            continue
        if wanted is not None and not _is_wanted(entry, wanted):
            continue
        name = entry.name
        if not name.isascii():
            name = unicodedata.normalize("NFC", name)
            if name in seen:
                tell(entry.name, "another file has the same name in another form")
                continue
            seen.add(name)
        kept.append((name, entry))
    return kept


def _is_wanted(entry: os.DirEntry[str], wanted: Callable[[str], bool]) -> bool:
    """Return whether a file is wanted, or a folder may contain notes."""
    return _may_hold_notes(entry) if _is_kind(entry.is_dir) else wanted(entry.name)


def _is_note(name: str) -> bool:
    return name.lower().endswith(".md")


def _is_recorded_in_place(name: str) -> bool:
    """Return whether a file is a note, or an Obsidian canvas or base."""
    return name.lower().endswith((".md", ".canvas", ".base"))


def is_attachment(name: str) -> bool:
    """Return whether a file is an attachment by its suffix: a picture, a paper, ..."""
    return os.path.splitext(name)[1].lower() in ATTACHMENTS  # noqa: PTH122 — asked very often


def has_no_lines(name: str) -> bool:
    """Return whether a file is an attachment without text lines to compare, by its suffix."""
    return is_attachment(name) and not name.lower().endswith(tuple(_TEXT_SUFFIXES))


def _is_recorded_or_attached(name: str) -> bool:
    return _is_recorded_in_place(name) or is_attachment(name)


def _may_hold_notes(folder: os.DirEntry[str]) -> bool:
    """Return whether a folder isn't a package manager's or another workspace."""
    return folder.name not in _PACKAGE_FOLDERS and not os.path.isdir(f"{folder.path}/{MACHINE}")


def _is_ignored(path: str, ignored: GitIgnoreSpec, *, is_file: bool) -> bool:
    """Return whether the path, or a folder above it, matches an ignore rule."""
    *folders, name = path.split("/")
    above = list(accumulate(folders if is_file else (*folders, name), "{}/{}".format))
    return any(ignored.match_file(f"{folder}/") for folder in above[1:]) or (
        is_file and ignored.match_file(path)
    )


def _is_kind(kind: Callable[..., bool]) -> bool:
    """Return whether an entry is of a kind and not a link; False if the disk refuses to tell."""
    try:
        return kind(follow_symlinks=False)
    except OSError:
        return False


def hash_file(file: Path, size: int) -> str:
    """Hash a file's content like `blob_id`, in pieces."""
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with file.open("rb") as stream:
        while piece := stream.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def _read_rows(connection: sqlite3.Connection) -> dict[str, _CachedState]:
    """Read the cached states, dropping rows with a wrong checksum."""
    known = {}
    for row in connection.execute("SELECT * FROM files"):
        path, size, mtime, ctime, inode, checked, blob, _ = row
        entry = _CachedState(FileState(path, blob, size, mtime), ctime, inode, checked)
        if entry.row() == row:
            known[path] = entry
    return known
