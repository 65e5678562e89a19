"""The state of the workspace now: one walk with a stat cache, shared by all who need hashes.

A file is hashed again only when its status changed, or when it may have changed without showing:
it was modified about when it was hashed (git's racy-clean rule), and its status doesn't prove that
a later write would have shown.
"""

from __future__ import annotations

import hashlib
import os
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
from kbtui.text import clean_line, counted
from kbtui.workspace import files
from kbtui.workspace.durable import TEMPORARY, Written, sweep
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
# Clocks of file systems tick in up to two seconds (FAT); within that a change may not show.
_RACY_NS = 2_000_000_000
_COARSE_NS = 10_000_000  # the times that a coarse clock gives are multiples of this
_PASSING = ("~", ".swp", ".tmp", ".part", ".crdownload")
_CHUNK = 1 << 20
# In somebody's own folder: what a package manager brought.
_NO_NOTES = frozenset({"node_modules", "__pycache__", "bower_components"})
_LATEST_NS = 2**62
_SMALL, _FEW = 1 << 16, 256  # bytes of a file, and files, that are handed on: 16 MB at most
LARGEST_ATTACHMENT = 10 << 20
_TEXTS = frozenset((".csv", ".tsv", ".bib", ".txt", ".org", ".markdown", ".ics", ".eml"))
ATTACHMENTS = _TEXTS | frozenset(
    (
        *(".avif", ".bmp", ".gif", ".heic", ".jpeg", ".jpg", ".png", ".svg", ".tif", ".tiff"),
        *(".webp", ".pdf", ".doc", ".docx", ".epub", ".odp", ".ods", ".odt", ".ppt", ".pptx"),
        *(".rtf", ".xls", ".xlsx", ".excalidraw", ".drawio", ".zip"),
        *(".3gp", ".flac", ".m4a", ".mp3", ".ogg", ".opus", ".wav"),
        *(".mkv", ".mov", ".mp4", ".ogv", ".webm"),
    )
)
"""Endings of what is kept beside notes in somebody's own folder; none of them is of code."""
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
    """A file as it is: its content's hash, its size in bytes, and when it was modified."""

    path: str
    blob: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class _Known:
    """A hash and the status it was taken at; `checked` is when hashing began."""

    state: FileState
    ctime: int
    inode: int
    checked: int

    def holds(self, status: os.stat_result) -> bool:
        return (
            self.state.size == status.st_size
            and self.state.mtime_ns == _clamped(status.st_mtime_ns)
            and self.ctime == status.st_ctime_ns
            and self.inode == status.st_ino
            and (
                _shows_writes(status)
                or max(status.st_mtime_ns, status.st_ctime_ns) < self.checked - _RACY_NS
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
    """Scans a workspace; one object serves all threads of a process."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        beside_notes: Callable[[str], bool] | None = None,
        largest: int = LARGEST_ATTACHMENT,
    ) -> None:
        """Read nothing yet.

        Args:
            workspace: What is scanned.
            beside_notes: In somebody's own folder such files are found in place of notes.
            largest: The bytes of a picture or another file beside notes that the history takes up.
        """
        self._workspace = workspace
        self._beside_notes = beside_notes
        self._largest = largest
        self._lock = threading.RLock()
        self._known: dict[str, _Known] | None = None
        self._unsaved: set[str] = set()
        self._database: DerivedDatabase | None = None
        self._ignored: tuple[tuple[int, int], GitIgnoreSpec | None] = ((0, 0), None)
        self._left_out: dict[str, str] = {}
        self._too_large: dict[str, str] = {}
        self.recorded: Callable[[], Collection[str]] = tuple
        """The paths that the history keeps already, which keep their names whatever these are."""
        self._strays: set[Path] = set()

    def sweep(self) -> None:
        """Remove what dead processes left half-written in the folders of the scans so far."""
        with self._lock:
            while self._strays:
                sweep(self._strays.pop())

    def left_out(self, *, recorded: bool = True) -> dict[str, str]:
        """The files that scans passed over though the history would keep them: path and reason.

        Unless `recorded` those that it wouldn't keep, which could only be searched.
        """
        ours = self._beside_notes is None
        with self._lock:
            every = self._left_out.items()
            return {p: why for p, why in every if (ours and is_recorded(p)) is recorded}

    def too_large(self) -> dict[str, str]:
        """The files beside notes that the history doesn't take up, as of the last scan for it."""
        with self._lock:
            return dict(self._too_large)

    def scan(
        self, *areas: str, attachments: float = 0, contents: dict[str, bytes] | None = None
    ) -> dict[str, FileState]:
        """Walk `areas`, else all that is recorded or indexed, and return each file's state by path.

        Dotfiles, links, passing files of editors, conflict copies and what ``.kbtuiignore`` names
        are left out, as is what can't be read, or is too large for the history.

        Args:
            areas: The folders and files to look at.
            attachments: If any, as the history needs it: in somebody's own folder pictures and
                papers as well, none that are too large to be taken up, and new ones only if they
                are so many bytes together, as all of them have to be read.
            contents: Is given what small files held that had to be read for their hashes, by path,
                for a caller who would read them next.
        """
        wanted = areas or AREAS
        with self._lock:
            for told in (self._left_out, *([self._too_large] if attachments else ())):
                for path in _below(wanted, told):
                    del told[path]
            known, found = self._load(), dict[str, FileState]()
            unread: dict[str, os.stat_result] = {}  # an area may lie in another
            new: dict[str, os.stat_result] = {}
            for path, status in self._walk(wanted, attachments=bool(attachments)):
                entry = known.get(path)
                may_be_large = attachments or status.st_size > files.READ_LIMIT
                if may_be_large and self._is_too_large(
                    path, status.st_size, attachments=bool(attachments)
                ):
                    continue
                if entry is not None and entry.holds(status):
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
        """The paths that `scan` would find, as the folders list them; nothing is read."""
        return [path for path, _ in self._walk(areas)]

    def note(self, path: str, blob: str, written: Written) -> None:
        """Remember what we wrote ourselves, so that it needn't be read again.

        What somebody else has put there since it was `written` isn't ours, and is read.
        """
        with self._lock:
            status = files.file_status(self._workspace, path)
            if status is not None and Written.of(status) == written:
                self._remember(path, blob, status, time.time_ns())

    def look(self, path: str) -> FileState | None:
        """The state of one file that scans pass over, such as one that ends in ``~``.

        None: there is no such file, it can't be read, is too large, or is to be ignored.
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
        """The bytes of a file as of the last scan; of one that wasn't there none."""
        with self._lock:
            known = self._load().get(path)
        return known.state.size if known else 0

    def ignores(self, path: str) -> bool:
        """True if ``.kbtuiignore`` names a file, or a folder that it lies in."""
        ignored = self._ignore_rules()
        return ignored is not None and _is_ignored(
            self._workspace.file(path), ignored, is_file=True
        )

    def passes_over(self, path: str) -> bool:
        """True if scans would find no note at a path, whoever put it there."""
        foreign = self._workspace.in_place and not _NO_NOTES.isdisjoint(path.split("/"))
        return foreign or self.ignores(path)

    def conflict_copies(self) -> list[str]:
        """The versions that were kept when two wrote the same file at once."""
        return sorted(
            path for path, _ in self._walk(AREAS, conflicts=True) if is_conflict_copy(path)
        )

    def _leave_out(self, path: str, why: str) -> None:
        self._left_out[_shown(path)] = why

    def _is_too_large(self, path: str, size: int, *, attachments: bool) -> bool:
        """True of what the history can't take, or doesn't take up: what it has it keeps."""
        if size > files.READ_LIMIT and is_recorded(path):
            self._leave_out(path, f"it is larger than {files.READ_LIMIT >> 20} MB")
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
        """True of a file beside notes that the history doesn't have."""
        is_beside = path.startswith(ENTRIES) and not _is_recorded_in_place(path)
        return is_beside and path not in self.recorded()

    def _hash(
        self, path: str, status: os.stat_result, contents: dict[str, bytes] | None = None
    ) -> _Known | None:
        checked = time.time_ns()
        try:
            if status.st_size > files.READ_LIMIT:
                blob = hash_file(self._workspace.place(path), status.st_size)
            else:
                data = files.read_bytes(self._workspace, path)
                blob = files.blob_id(data)
                if contents is not None and len(data) <= _SMALL and len(contents) < _FEW:
                    contents[path] = data
        except (NotFoundError, FileNotFoundError):
            return None
        except (KbtuiError, OSError):
            self._leave_out(path, "it can't be read")
            return None
        return self._remember(path, blob, status, checked)

    def _remember(self, path: str, blob: str, status: os.stat_result, checked: int) -> _Known:
        state = FileState(path, blob, status.st_size, _clamped(status.st_mtime_ns))
        entry = _Known(state, status.st_ctime_ns, status.st_ino, checked)
        self._load()[path] = entry
        self._unsaved.add(path)
        return entry

    def _walk(
        self, areas: tuple[str, ...], *, conflicts: bool = False, attachments: bool = False
    ) -> Iterator[tuple[str, os.stat_result]]:
        notes = self._beside_notes or (
            _is_recorded_or_attached if attachments and self._largest else _is_recorded_in_place
        )
        ignored = self._ignore_rules()
        for area in areas:
            status = files.file_status(self._workspace, area)
            file = self._workspace.file(area)
            if ignored is not None and _is_ignored(file, ignored, is_file=status is not None):
                continue
            if area in (RECORDED_FOLDERS if status is not None else BOOTSTRAP_FILES):
                if self._workspace.place(area).exists():
                    self._leave_out(area, "a file stands there for a folder, or a folder for it")
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
        waiting = [folder]
        while waiting:
            for path, entry in self._listed(waiting.pop(), ignored, wanted if notes_only else None):
                if _is(entry.is_dir):
                    waiting.append(path)
                elif not _is(entry.is_file):
                    kind = "a link" if entry.is_symlink() else "no ordinary file"
                    self._leave_out(path, f"it is {kind}")
                elif conflicts or not is_conflict_copy(entry.name):
                    try:
                        yield path, entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        pass  # gone meanwhile
                    except OSError as error:
                        why = (error.strerror or "").lower()
                        self._leave_out(path, f"it can't be looked at ({why})")

    def _listed(
        self, folder: str, ignored: GitIgnoreSpec | None, wanted: Callable[[str], bool] | None
    ) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """What a folder holds that may have the name it has, and isn't to be ignored, by path."""
        known, layout = self._known or {}, self._workspace
        here = layout.place(folder)
        tell, stray = partial(self._leave_out_below, folder), partial(self._strays.add, here)
        for name, entry in _entries(here, wanted=wanted, tell=tell, stray=stray):
            path = layout.listed(folder, name)
            trouble = "" if path in known else files.name_trouble(path)
            if trouble and not self._keeps(path):
                tell(name, f"its name can't be used on every machine: {trouble}")
                continue
            if ignored is not None:
                file = layout.file(path)
                if ignored.match_file(f"{file}/" if _is(entry.is_dir) else file):
                    continue
            yield path, entry

    def _keeps(self, path: str) -> bool:
        """True if the history has a file, or something in a folder, already."""
        try:
            recorded = self.recorded()
        except KbtuiError:  # a damaged history: the notes are read all the same
            return False
        return path in recorded or any(each.startswith(f"{path}/") for each in recorded)

    def _leave_out_below(self, folder: str, name: str, why: str) -> None:
        self._leave_out(self._workspace.listed(folder, name) if name else folder, why)

    def _ignore_rules(self) -> GitIgnoreSpec | None:
        file = self._workspace.root / IGNORE_FILE
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._ignored[0]:
                self._ignored = (stamp, _rules(file.read_text("utf-8-sig", "replace")))
        except FileNotFoundError:
            self._ignored = ((0, 0), None)
        except OSError:
            pass  # what was ignored stays so: it may be private
        return self._ignored[1]

    def _forget_missing(
        self, areas: tuple[str, ...], found: dict[str, FileState], *, attachments: bool
    ) -> None:
        known = self._load()
        for path in _below(areas, known.keys() - found.keys()):
            if attachments or not is_attachment(path):  # they weren't looked for
                del known[path]
                self._unsaved.add(path)

    def _load(self) -> dict[str, _Known]:
        if self._known is None:
            self._known = self._cache().run(_read_rows)
        return self._known

    def _save(self) -> None:
        if not self._unsaved:
            return
        known = self._load()
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
    return clean_line(path.encode("utf-8", "replace").decode())


def said_of_large(layout: Layout, large: Mapping[str, str]) -> str:
    """Name the files beside notes that aren't kept, as they are too large: one sentence."""
    path, why = next(iter(large.items()))
    more = f", and {counted(len(large) - 1, 'other file')}" if len(large) > 1 else ""
    return f"Without a history, and not synced: {layout.file(path)} ({why}){more}."


def _below(areas: Iterable[str], paths: Iterable[str]) -> list[str]:
    """The paths that lie in one of the areas."""
    wanted = frozenset(areas)

    def is_wanted(path: str) -> bool:
        while path and path not in wanted:
            path = path.rpartition("/")[0]
        return bool(path)

    return [path for path in paths if is_wanted(path)]


def _shows_writes(status: os.stat_result) -> bool:
    """True if any write since this status was taken gives the file another one.

    The file system's own clock had ticked between the last write and the last change of the inode,
    as when a file that was written and synced is moved into place: a later write gets a later time.
    """
    is_fine = bool(status.st_mtime_ns % _COARSE_NS and status.st_ctime_ns % _COARSE_NS)
    return is_fine and status.st_mtime_ns < status.st_ctime_ns


def _clamped(nanoseconds: int) -> int:
    """A file's time as a database can hold it: some clocks are before 1970, or far ahead."""
    return max(0, min(nanoseconds, _LATEST_NS))


def _rules(text: str) -> GitIgnoreSpec:
    """Read patterns as git does: one that can't be understood leaves the others in force."""
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
    """The folders to watch so that no edit in `areas` is missed.

    In place it is each folder that may hold notes, without what lies below it: a watch on the whole
    would follow every module that a project has, and each object of our own history.
    """
    for area in areas:
        waiting = [layout.place(area)] if layout.place(area).is_dir() else []
        while waiting:
            folder = waiting.pop()
            yield folder
            if layout.in_place and area == ENTRIES[:-1]:
                below = _entries(folder, wanted=_is_note)
                waiting += [folder / e.name for _, e in below if _is(e.is_dir)]


def notes_in(layout: Layout) -> Iterator[Path]:
    """The notes of somebody's own folder, as they come; nothing is read."""
    for folder in folders_of(layout, [ENTRIES[:-1]]):
        for _, entry in _entries(folder, wanted=_is_note):
            if _is(entry.is_file) and not is_conflict_copy(entry.name):
                yield folder / entry.name


def attachments_in(layout: Layout) -> Iterator[str]:
    """The workspace paths of the files among the entries that are no notes: pictures, documents."""
    top = layout.place(ENTRIES[:-1])
    waiting = [ENTRIES[:-1]]
    while waiting:
        folder = waiting.pop()
        for name, entry in _entries(top / folder.removeprefix(ENTRIES[:-1]).lstrip("/")):
            if _is(entry.is_dir):
                if _may_hold_notes(entry):
                    waiting.append(f"{folder}/{name}")
            elif not _is_note(name):
                yield f"{folder}/{name}"


def _entries(
    folder: Path,
    *,
    wanted: Callable[[str], bool] | None = None,
    tell: Callable[[str, str], None] = lambda _, __: None,
    stray: Callable[[], None] = lambda: None,
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Our part of a folder, by NFC name; a name that exists in both forms counts once.

    What isn't `wanted` is left out in somebody's own folder. `tell` is told the name of what can't
    be taken (of the folder itself none), and why; `stray` is called for a half-written file of
    ours.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=attrgetter("name"))
    except FileNotFoundError:
        return
    except OSError as error:
        tell("", f"it can't be opened ({(error.strerror or '').lower()})")
        return
    seen: set[str] = set()
    for entry in found:
        if entry.name.startswith((".", "#")) or entry.name.endswith(_PASSING):
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
        yield name, entry


def _is_wanted(entry: os.DirEntry[str], wanted: Callable[[str], bool]) -> bool:
    """Of somebody's own folder the files that are wanted, and the folders that may hold some."""
    return _may_hold_notes(entry) if _is(entry.is_dir) else wanted(entry.name)


def _is_note(name: str) -> bool:
    return name.lower().endswith(".md")


def _is_recorded_in_place(name: str) -> bool:
    """True for notes, and for the texts by which Obsidian lays notes out: canvases and bases."""
    return name.lower().endswith((".md", ".canvas", ".base"))


def is_attachment(name: str) -> bool:
    """True if this is, by its name, what people put beside their notes: a picture, a paper, ..."""
    return os.path.splitext(name)[1].lower() in ATTACHMENTS  # noqa: PTH122 — asked very often


def has_no_lines(name: str) -> bool:
    """True of such a file that is no text, by its name: there are no lines to compare in it."""
    return is_attachment(name) and not name.lower().endswith(tuple(_TEXTS))


def _is_recorded_or_attached(name: str) -> bool:
    return _is_recorded_in_place(name) or is_attachment(name)


def _may_hold_notes(folder: os.DirEntry[str]) -> bool:
    """True for folders that are no other program's and no other workspace."""
    return folder.name not in _NO_NOTES and not os.path.isdir(  # never raises
        f"{folder.path}/{MACHINE}"
    )


def _is_ignored(path: str, ignored: GitIgnoreSpec, *, is_file: bool) -> bool:
    """True if a walk from the top would leave it out: for its own name, or for a folder above."""
    *folders, name = path.split("/")
    above = list(accumulate(folders if is_file else (*folders, name), "{}/{}".format))
    return any(ignored.match_file(f"{folder}/") for folder in above[1:]) or (
        is_file and ignored.match_file(path)
    )


def _is(kind: Callable[..., bool]) -> bool:
    """True if an entry is of a kind, and no link; some disks have to be asked, and may refuse."""
    try:
        return kind(follow_symlinks=False)
    except OSError:
        return False


def hash_file(file: Path, size: int) -> str:
    """The hash of a file's content, as `blob_id` makes it, read piece by piece."""
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with file.open("rb") as stream:
        while piece := stream.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def _read_rows(connection: sqlite3.Connection) -> dict[str, _Known]:
    """Read what is known; a row whose checksum is wrong counts as unknown."""
    known = {}
    for row in connection.execute("SELECT * FROM files"):
        path, size, mtime, ctime, inode, checked, blob, _ = row
        entry = _Known(FileState(path, blob, size, mtime), ctime, inode, checked)
        if entry.row() == row:
            known[path] = entry
    return known
