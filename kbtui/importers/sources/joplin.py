"""Joplin: a .jex, which is a tar, or a folder with the same text files for notes and notebooks.

Notebooks become folders; links to notes, pictures and documents are rewritten to their new paths.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from kbtui.errors import UnreadableError
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of, to_markdown, words_of
from kbtui.importers.note_paths import free_path, relative, safe_name
from kbtui.importers.port import ImportedNote, Item, Skipped, Source
from kbtui.importers.reading import IN_BIN, time_of
from kbtui.text import counted

_ITEM = re.compile(r"(?:^|/)([0-9a-f]{32})\.md\Z")
_RESOURCE = re.compile(r"(?:^|/)resources/([0-9a-f]{32})(?:\.\w+)?\Z")
_MEMBER = re.compile(f"{_ITEM.pattern}|{_RESOURCE.pattern}")
_FIELDS = re.compile(r"(?:[a-z_]+:[^\n]*(?:\n|\Z))+\Z")
_LINK = re.compile(r"(\]\(|(?:src|href)=\")(?::/)([0-9a-f]{32})(#[^)\s\"]*)?")
_CONFLICT = "conflict"  # the tag of a note's other version, which Joplin keeps apart
_MAGIC = slice(257, 262)
_NOTE, _NOTEBOOK, _FILE, _TAG, _TAGGED = "1", "2", "4", "5", "6"
_HTML = "2"  # how a page that was clipped is written
_MAX_TEXT, _MAX_FILE = 16 << 20, 100 << 20
_MAX_DEPTH = 20


def _recognises(opened: OpenedExport) -> bool:
    if opened.is_folder:
        first = next((name for name in opened.names if _ITEM.search(name)), None)
        return first is not None and b"\ntype_: " in opened.head(first, 1 << 20)
    head = opened.head(opened.names[0], 1024)
    name = head[:100].partition(b"\0")[0].decode("utf-8", "replace")
    return head[_MAGIC] == b"ustar" and bool(_ITEM.search(name) or _RESOURCE.search(name))


def _read(opened: OpenedExport) -> Iterator[Item]:
    """Read the export twice: first to assign paths, then to yield notes and files."""
    index = _Index()
    for _, data in _members(opened, _ITEM, []):
        index.add(_Record(data.decode("utf-8", "replace")))
    index.assign_paths()
    problems: list[Skipped] = []
    for name, data in _members(opened, _MEMBER, problems):
        if _ITEM.search(name):
            yield from index.note(_Record(data.decode("utf-8", "replace")))
        elif (found := _RESOURCE.search(name)) and (at := index.places.get(found[1])):
            yield ImportedNote(found[1], at.rpartition("/")[2], "", data=data, at=at)
    yield from problems
    yield from index.others()


SOURCE = Source("Joplin", "joplin", _recognises, _read, is_alone=True)


def _members(
    opened: OpenedExport, wanted: re.Pattern[str], problems: list[Skipped]
) -> Iterator[tuple[str, bytes]]:
    """Yield the members with `wanted` names, all intact ones if the export is damaged."""
    try:
        for name, size, stream in _streams(opened, wanted):
            most = _MAX_TEXT if _ITEM.search(name) else _MAX_FILE
            if size > most:
                why = f"It is larger than {most >> 20} MB."
                problems.append(Skipped(line_of(name), why, lost=True))
            else:
                yield name, stream.read()
    except (tarfile.TarError, UnreadableError) as error:
        place = line_of(opened.path.name)
        why = f"It is cut or damaged: {str(error).rstrip('.')}. Export it again."
        problems.append(Skipped(place, why, lost=True))


def _streams(opened: OpenedExport, wanted: re.Pattern[str]) -> Iterator[tuple[str, int, IO[bytes]]]:
    if opened.is_folder:
        for name in filter(wanted.search, opened.names):
            with opened.open(name) as stream:
                yield name, opened.size(name), stream
        return
    with opened.open(opened.names[0]) as file, tarfile.open(fileobj=file, mode="r|") as tar:
        for member in tar:
            inner = tar.extractfile(member) if wanted.search(member.name) else None
            if inner is not None:
                yield member.name, member.size, inner


class _Record:
    """An item of Joplin's (note, notebook, ...): title, text and fields."""

    def __init__(self, data: str) -> None:
        text = data.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n")
        found = _FIELDS.search(text if "\n\n" not in text else text[text.rindex("\n\n") + 2 :])
        lines = found[0].splitlines() if found else []
        self._fields = {key: value for key, _, value in (line.partition(": ") for line in lines)}
        body = text[: len(text) - len(found[0])] if found else text
        title, _, rest = body.partition("\n")
        self.title, self.text = line_of(title), words_of(rest)

    def __getitem__(self, name: str) -> str:
        return self._fields.get(name, "").strip()


@dataclass(slots=True)
class _Index:
    """Index by id of all items: paths of notes and files, notebooks, and tags of notes."""

    places: dict[str, str] = field(default_factory=dict)
    _books: dict[str, tuple[str, str]] = field(default_factory=dict)
    _notes: dict[str, tuple[str, str]] = field(default_factory=dict)
    _files: dict[str, str] = field(default_factory=dict)
    _tags: dict[str, str] = field(default_factory=dict)
    _tagged: dict[str, list[str]] = field(default_factory=dict)
    _rest: int = 0
    binned: int = 0

    def add(self, record: _Record) -> None:
        id_, kind = record["id"], record["type_"]
        if kind == _NOTE:
            self._notes[id_] = (record["parent_id"], record.title)
        elif kind == _NOTEBOOK:
            self._books[id_] = (record["parent_id"], record.title)
        elif kind == _FILE:
            suffix = record["file_extension"]
            name = safe_name(record.title) or id_
            self._files[id_] = name if "." in name or not suffix else f"{name}.{suffix}"
        elif kind == _TAG:
            self._tags[id_] = record.title
        elif kind == _TAGGED:
            self._tagged.setdefault(record["note_id"], []).append(record["tag_id"])
        else:
            self._rest += 1

    def assign_paths(self) -> None:
        taken: set[str] = set()
        for id_, (book, title) in sorted(self._notes.items()):
            name = f"{safe_name(title) or 'Untitled'}.md"
            self.places[id_] = free_path("/".join([*self._folders(book), name]), taken)
        for id_, name in sorted(self._files.items()):
            self.places[id_] = free_path(f"resources/{name}", taken)

    def _folders(self, book: str) -> list[str]:
        names: list[str] = []
        while book in self._books and len(names) < _MAX_DEPTH:
            book, title = self._books[book]
            names.insert(0, safe_name(title) or "Untitled")
        return names

    def note(self, record: _Record) -> Iterator[Item]:
        """Yield a note; nothing for other items."""
        id_ = record["id"]
        at = self.places.get(id_)
        if record["type_"] != _NOTE or at is None:
            return
        if record["deleted_time"].strip("0"):
            self.binned += 1
            return
        if record["encryption_applied"] == "1":
            why = "It is encrypted. Export it again as JEX, unlocked."
            yield Skipped(record.title or id_, why, lost=True)
            return
        tags = map(line_of, map(self._tags.get, self._tagged.get(id_, ())))
        url = record["source_url"]
        done = {"0": "[ ] ", "": ""}.get(record["todo_completed"], "[x] ")
        due = time_of(record["todo_due"]) if record["todo_due"].strip("0") else None
        until = f" 📅 {due.astimezone():%Y-%m-%d}" if due else ""
        text = to_markdown(record.text) if record["markup_language"] == _HTML else record.text
        head = f"- {done}{record.title}{until}\n\n" if record["is_todo"] == "1" else ""
        yield ImportedNote(
            id_,
            record.title or "Untitled",
            head + _LINK.sub(lambda link: self._rewritten_link(link, at), text),
            time_of(record["user_updated_time"] or record["updated_time"]),
            time_of(record["user_created_time"] or record["created_time"]),
            tags=tuple(
                filter(None, [*tags, *([_CONFLICT] if record["is_conflict"] == "1" else [])])
            ),
            url=url if url.startswith("http") else "",
            at=at,
        )

    def _rewritten_link(self, link: re.Match[str], at: str) -> str:
        target = self.places.get(link[2])
        return f"{link[1]}{relative(target, at)}{link[3] or ''}" if target else link[0]

    def others(self) -> Iterator[Item]:
        if self.binned:
            yield Skipped(counted(self.binned, "note"), IN_BIN)
        if self._rest:
            yield Skipped(counted(self._rest, "other item"), "Old versions and settings of Joplin.")
