"""Notes of an export: texts become entries, through the door, and files go under ``docs/``.

An entry says by its key ``imported`` which note it is and what it said, so a second import finds it
wherever it lies by now. What was changed here since is never written over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from hashlib import sha256

from kbtui.errors import WorkspaceBusyError
from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.importers.port import ImportedNote, Skipped
from kbtui.knowledge.entries.entry import Front, render_entry
from kbtui.knowledge.format.frontmatter import value_text
from kbtui.text import clean, clean_line, counted, slugify
from kbtui.workspace import files
from kbtui.workspace.durable import FileBatch, storage_errors
from kbtui.workspace.layout import Workspace

_MOST = 300
_MOST_BYTES = 16 << 20
_TRIES = 24
"""Times that a lot waits for whoever writes, 5 seconds each."""
_HEAD = 8192
_KEY = re.compile(r'(?m)^imported: *"?(?P<of>[^\n"]+?) (?P<hash>[0-9a-f]{12})"?[ \t]*$')
_FRONT = re.compile(r"---[ \t]*\n(?:.*\n)*?---[ \t]*(?:\n|\Z)")
_UNSAFE_NAME = re.compile(r"[\x00-\x1f/\\:*?\"<>|]+")


@dataclass(slots=True)
class Notes:
    """Brings the notes of one import, in lots: paths that `came`, notes `known` or `skipped`.

    `keep_file` is told of a file under ``docs/`` before it is written, with its blob's id.
    """

    workspace: Workspace
    history: History
    source: str
    name: str
    batch: str
    came: list[str] = field(default_factory=list)
    known: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    keep_file: Callable[[str, str], None] = lambda _path, _blob: None
    _lot: dict[str, tuple[bytes, bytes | None]] = field(default_factory=dict)
    _size: int = 0
    _here: dict[str, str] | None = None

    def add(self, note: ImportedNote) -> None:
        """Take in a note."""
        if note.data is not None:
            add = self._add_beside if note.at else self._add_file
            add(note, note.data)
            return
        body = clean(note.text).strip("\n").encode("utf-8", "replace").decode()
        mark = sha256(body.encode()).hexdigest()[:12]
        identity = clean_line(f"{self.source}:{note.id}").replace('"', "'")
        text = self._entry(note, body, f"{identity} {mark}")
        path = self._known().get(identity)
        if path is None:
            folder, name = self._folder(note), slugify(note.title or "untitled")
            if note.at:
                folder, _, name = self._place(note.at).removesuffix(".md").rpartition("/")
            path = self._free(folder, name)
            self._known()[identity] = path
            self._put(path, text.encode(), None)
            return
        there = self._now(path)
        found = _KEY.search(there[:_HEAD].decode("utf-8", "replace"))
        why = f"It was changed here, in {self.workspace.file(path)}, and there; that stays."
        is_known = found is None or found["hash"] == mark
        self._replace(note, path, there, text.encode(), why, is_known=is_known)

    def _replace(
        self, note: ImportedNote, path: str, there: bytes, data: bytes, why: str, *, is_known: bool
    ) -> None:
        """Write over what an import brought; what somebody changed stays, and is said."""
        if is_known:
            self.known += 1
        elif path in self._lot or self._is_as_imported(path, there):
            self._put(path, data, self._lot[path][1] if path in self._lot else there)
        else:
            self.skipped.append(Skipped(clean_line(note.title), why))

    def _now(self, path: str) -> bytes:
        """What a file holds, or will once the lot is written."""
        return self._lot[path][0] if path in self._lot else self._read(path)

    def _is_as_imported(self, path: str, there: bytes) -> bool:
        """True if an import wrote a file as it is."""
        last = next(iter(self.history.log(path, limit=1)), None)
        if last is None or last.actor != Actor.IMPORT:
            return False
        blob = files.blob_id(there)
        return any(each.path == path and each.blob == blob for each in last.paths)

    def flush(self) -> None:
        """Write what has gathered, as one commit."""
        lot, self._lot, self._size = self._lot, {}, 0
        if not lot:
            return
        reason = f"Imported {counted(len(lot), 'note')} from {self.name}."
        for tries_left in reversed(range(_TRIES)):
            try:
                with self.history.change(Actor.IMPORT, reason, Origin(batch=self.batch)) as change:
                    for path, (data, before) in lot.items():
                        change.put(path, data, over=before)
                break
            except WorkspaceBusyError:  # somebody else writes much; who waits anyway can wait on
                if not tries_left:
                    raise
        self.came += lot

    def _put(self, path: str, data: bytes, before: bytes | None) -> None:
        self._lot[path] = (data, before)
        self._size += len(data)
        if len(self._lot) >= _MOST or self._size >= _MOST_BYTES:
            self.flush()

    def _entry(self, note: ImportedNote, body: str, key: str) -> str:
        line = f"imported: {value_text(key)}\n"
        own = _FRONT.match(body)
        if own:
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

    def _free(self, folder: str, name: str) -> str:
        number = 1
        while True:
            path = f"{folder}/{name}{f'-{number}' if number > 1 else ''}.md"
            if path not in self._lot and files.is_gone(self.workspace, path):
                return path
            number += 1

    def _known(self) -> dict[str, str]:
        """The entries that were imported, by which note they are."""
        if self._here is None:
            self._here = {}
            for place in sorted(self.workspace.knowledge.rglob("*.md")):
                if place.is_symlink() or not place.is_file():
                    continue
                with storage_errors(f"Can't read {place.name}"), place.open("rb") as file:
                    found = _KEY.search(file.read(_HEAD).decode("utf-8", "replace"))
                if found:
                    name = place.relative_to(self.workspace.root).as_posix()
                    self._here[found["of"]] = self.workspace.path_of(name)
        return self._here

    def _read(self, path: str) -> bytes:
        return files.read_bytes(self.workspace, path)

    def _place(self, at: str) -> str:
        """The path of what has its own place below the source's folder."""
        parts = (_UNSAFE_NAME.sub("-", clean_line(part)).strip(". ") for part in at.split("/"))
        return "/".join(["knowledge/references", self.source, *filter(None, parts)])

    def _add_beside(self, note: ImportedNote, data: bytes) -> None:
        """Bring a file to where the notes that show it lie, through the door."""
        path = self._place(note.at)
        if len(data) > files.READ_LIMIT:
            why = f"It is larger than {files.READ_LIMIT >> 20} MB, the most the history keeps."
            self.skipped.append(Skipped(clean_line(note.title), why))
        elif path not in self._lot and files.is_gone(self.workspace, path):
            self._put(path, data, None)
        else:
            there = self._now(path)
            why = f"Another file is in {self.workspace.file(path)} already; that stays."
            self._replace(note, path, there, data, why, is_known=there == data)

    def _add_file(self, note: ImportedNote, data: bytes) -> None:
        folder = self._folder(note).replace("knowledge/references", "docs", 1)
        name = _UNSAFE_NAME.sub("-", clean_line(note.title)).strip(". -")[-120:] or "file"
        stem, dot, suffix = name.rpartition(".")
        stem, suffix = (stem, f"{dot}{suffix}") if stem else (name, "")
        blob = files.blob_id(data)
        number = 1
        while True:
            path = f"{folder}/{stem}{f'-{number}' if number > 1 else ''}{suffix}"
            if files.is_gone(self.workspace, path):
                break
            if files.blob_id(self._read(path)) == blob:
                self.known += 1
                return
            number += 1
        self.keep_file(path, blob)
        with (
            storage_errors(f"Can't write {self.workspace.file(path)}"),
            FileBatch(self.workspace) as batch,
        ):
            batch.write(path, data)
            batch.sync()
        self.came.append(path)


def _day(time: datetime | None) -> date:
    return (time or datetime.now(UTC)).astimezone().date()
