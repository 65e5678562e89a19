"""Import of notes: texts become entries, committed through the door, and files go to ``docs/``.

An entry's frontmatter key ``imported`` holds the identity of the note and a hash of its text, so a
second import finds it even if it was moved. Nothing that was changed here is overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from hashlib import sha256

from kbtui.documents.documents import document_name, place_for
from kbtui.errors import WorkspaceBusyError
from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.importers.port import ImportedNote, Skipped
from kbtui.knowledge.entries.entry import Front, render_entry
from kbtui.knowledge.format.document import head_end
from kbtui.knowledge.format.frontmatter import value_text
from kbtui.text import clean, clean_line, counted, slugify, storable
from kbtui.workspace import files
from kbtui.workspace.durable import FileBatch, storage_errors
from kbtui.workspace.layout import Workspace

_MAX_NOTES = 500  # what is parsed and hashed of so many is kept until it is asked for again
_MAX_BYTES = 16 << 20
_MAX_ATTEMPTS = 24
"""Attempts to commit a lot while another process writes, 5 seconds each."""
_HEAD = 8192
_KEY = re.compile(r'(?m)^imported: *"?(?P<of>[^\n"]+?) (?P<hash>[0-9a-f]{12})"?[ \t]*$')
_GENERATED = "INDEX"
"""The name of the list of a folder, which kbtui writes itself."""
_UNSAFE_NAME = re.compile(r"[\x00-\x1f/\\:*?\"<>|]+")


@dataclass(slots=True)
class Notes:
    """Writes the notes of one import, in lots.

    Attributes:
        written: Workspace paths of the entries and files that were written.
        known: Number of notes that were unchanged.
        skipped: Notes that couldn't be imported.
        before_file: Called with the path and blob id of a file before it is written to ``docs/``.
    """

    workspace: Workspace
    history: History
    source: str
    name: str
    batch: str
    written: list[str] = field(default_factory=list)
    known: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    before_file: Callable[[str, str], None] = lambda _path, _blob: None
    _lot: dict[str, tuple[bytes, bytes | None]] = field(default_factory=dict)
    _size: int = 0
    _beside: set[str] = field(default_factory=set)
    _names: dict[str, set[str]] = field(default_factory=dict)  # in each folder of the lot's notes
    _known_paths: dict[str, str] | None = None

    def add(self, note: ImportedNote) -> None:
        """Queue a note to be written, or write the file that it is."""
        if note.data is not None:
            add = self._add_beside if note.at else self._add_file
            add(note, note.data)
            return
        body = storable(clean(note.text).strip("\n"))
        mark = sha256(body.encode()).hexdigest()[:12]
        identity = clean_line(f"{self.source}:{note.id}").replace('"', "'")
        text = self._entry(note, body, f"{identity} {mark}")
        path = self._paths_by_identity().get(identity)
        if path is None:
            folder, name = self._folder(note), slugify(note.title or "untitled")
            if note.at:
                folder, _, name = self._place(note.at).removesuffix(".md").rpartition("/")
            path = self._free_path(folder, name)
            self._paths_by_identity()[identity] = path
            self._queue(path, text.encode(), None)
            return
        old = self._current(path)
        found = _KEY.search(old[:_HEAD].decode("utf-8", "replace"))
        why = f"It was changed here, in {self.workspace.file(path)}, and there; that stays."
        is_known = found is None or found["hash"] == mark
        self._replace(note, path, old, text.encode(), why, is_known=is_known)

    def _replace(
        self, note: ImportedNote, path: str, old: bytes, data: bytes, why: str, *, is_known: bool
    ) -> None:
        """Replace what an import wrote; if somebody changed it, keep it and report why."""
        if is_known:
            self.known += 1
        elif path in self._lot or self._is_as_imported(path, old):
            self._queue(path, data, self._lot[path][1] if path in self._lot else old)
        else:
            self.skipped.append(Skipped(clean_line(note.title), why))

    def _current(self, path: str) -> bytes:
        """Return the content of a file as it will be once the lot is written."""
        return self._lot[path][0] if path in self._lot else self._read(path)

    def _is_as_imported(self, path: str, old: bytes) -> bool:
        """Return whether a file is exactly as an import wrote it last."""
        last = next(iter(self.history.log(path, limit=1)), None)
        if last is None or last.actor != Actor.IMPORT:
            return False
        blob = files.blob_id(old)
        return any(each.path == path and each.blob == blob for each in last.paths)

    def flush(self) -> None:
        """Write the queued notes as one commit."""
        lot, self._lot, self._size = self._lot, {}, 0
        self._names.clear()
        if not lot:
            return
        reason = f"Imported {counted(len(lot), 'note')} from {self.name}."
        for tries_left in reversed(range(_MAX_ATTEMPTS)):
            try:
                with self.history.change(Actor.IMPORT, reason, Origin(batch=self.batch)) as change:
                    for path, (data, before) in lot.items():
                        change.put(path, data, over=before)
                break
            except WorkspaceBusyError:  # another process writes a lot; an import can wait
                if not tries_left:
                    raise
        self.written += lot

    def _queue(self, path: str, data: bytes, before: bytes | None) -> None:
        self._lot[path] = (data, before)
        self._size += len(data)
        if len(self._lot) >= _MAX_NOTES or self._size >= _MAX_BYTES:
            self.flush()

    def _entry(self, note: ImportedNote, body: str, key: str) -> str:
        line = f"imported: {value_text(key)}\n"
        if note.has_head and head_end(body):
            return f"---\n{line}{body.partition(chr(10))[2]}\n"
        front = Front(_day(note.created or note.updated))
        text = render_entry(
            "reference",
            note.title or "Untitled",
            front=front,
            sections=body,
            tags=[clean_line(tag) for tag in note.tags],
            sources=[clean_line(note.url) or self.name],
        )
        if note.updated is not None:
            text = re.sub(r"(?m)^updated: .*$", f"updated: {_day(note.updated)}", text, count=1)
        return text.replace("\n---\n", f"\n{line}---\n", 1)

    def _folder(self, note: ImportedNote) -> str:
        parts = [slugify(part, 60) for part in note.folder.split("/") if part.strip(". ")]
        return "/".join(["knowledge/references", self.source, *parts])

    def _free_path(self, folder: str, name: str) -> str:
        names = self._names.get(folder)
        if names is None:
            names = self._names[folder] = files.names_in(self.workspace, folder)
        name = f"{name} page" if name == _GENERATED else name
        file, number = f"{name}.md", 1
        while file.casefold() in names or f"{folder}/{file}" in self._lot:
            number += 1
            file = f"{name}-{number}.md"
        names.add(file.casefold())
        return f"{folder}/{file}"

    def _paths_by_identity(self) -> dict[str, str]:
        """Return the paths of imported entries by the identity of their note, scanned once."""
        if self._known_paths is None:
            self._known_paths = {}
            for place in sorted(self.workspace.knowledge.rglob("*.md")):
                if place.is_symlink() or not place.is_file():
                    continue
                with storage_errors(f"Can't read {place.name}"), place.open("rb") as file:
                    found = _KEY.search(file.read(_HEAD).decode("utf-8", "replace"))
                if found:
                    name = place.relative_to(self.workspace.root).as_posix()
                    self._known_paths[found["of"]] = self.workspace.path_of(name)
        return self._known_paths

    def _read(self, path: str) -> bytes:
        return files.read_bytes(self.workspace, path)

    def _place(self, at: str) -> str:
        """Return the path of a note with a fixed place below the source's folder."""
        parts = (_UNSAFE_NAME.sub("-", clean_line(part)).strip(". ") for part in at.split("/"))
        return "/".join(["knowledge/references", self.source, *filter(None, parts)])

    def _add_beside(self, note: ImportedNote, data: bytes) -> None:
        """Queue a file that lies beside the notes that embed it."""
        path = self._place(note.at)
        if len(data) > files.READ_LIMIT:
            why = f"It is larger than {files.READ_LIMIT >> 20} MB, the most the history keeps."
            self.skipped.append(Skipped(clean_line(note.title), why, lost=True))
        elif path not in self._lot and files.is_gone(self.workspace, path):
            self._queue(path, data, None)
        else:
            old = self._current(path)
            why = f"Another file is in {self.workspace.file(path)} already; that stays."
            if path in self._beside and old != data:  # two names that are one when made safe
                self.skipped.append(Skipped(clean_line(note.at), why, lost=True))
            else:
                self._replace(note, path, old, data, why, is_known=old == data)
        self._beside.add(path)

    def _add_file(self, note: ImportedNote, data: bytes) -> None:
        folder = self._folder(note).replace("knowledge/references", "docs", 1)
        path, is_new = place_for(self.workspace, folder, document_name(note.title), data)
        if not is_new:
            self.known += 1
            return
        self.before_file(path, files.blob_id(data))
        with (
            storage_errors(f"Can't write {self.workspace.file(path)}"),
            FileBatch(self.workspace) as batch,
        ):
            batch.write(path, data)
            batch.sync()
        self.written.append(path)


def _day(time: datetime | None) -> date:
    return (time or datetime.now(UTC)).astimezone().date()
