"""Evernote's ENEX: notes in XML, with their text as ENML and their files in base64.

Parsed as a stream. Entities and DTDs are never resolved, and a file that declares entities is
refused. After a malformed note, parsing resumes at the next.
"""

from __future__ import annotations

import binascii
import hashlib
import mimetypes
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from kbtui.errors import UnreadableError
from kbtui.importers.markup import digest, line_of, relative_link, to_markdown, words_of
from kbtui.importers.note_paths import relative
from kbtui.importers.port import ImportedNote, Item, Skipped, Source
from kbtui.importers.reading import has_any, read_each
from kbtui.text import counted, slugify

if TYPE_CHECKING:
    from kbtui.importers.export_files import OpenedExport
    from kbtui.importers.markup import Tree

_SIGNATURE = re.compile(rb"<en-export[\s>]")
_ROOT = b"<en-export>"
_NOTE = re.compile(rb"<note\s*>")
_LINK = re.compile(
    r"\[([^\[\]\n]+)\]\((?:evernote:///view/|https?://(?:www\.)?evernote\.com/shard/)[^()\s]*?"
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?/?\)"
)
_MIN_WORDS = 4
_MAX_HELD = 32 << 20  # characters
_CHUNK = 1 << 18
_MAX_TEXT = 32 << 20
_MAX_FILE = 100 << 20
_ILLEGAL = bytes(each for each in range(32) if each not in (9, 10, 13))
_UTF16_STARTS = (b"\xff\xfe", b"\xfe\xff", b"\x00<", b"<\x00")
_FIELDS = frozenset(
    (
        *("title", "content", "created", "updated", "tag", "guid", "source-url"),
        *("reminder-time", "reminder-done-time"),
        *("file-name", "mime", "taskStatus", "dueDate"),  # of files and tasks
    )
)


def _read(opened: OpenedExport) -> Iterator[Item]:
    """Read the notes of each file, which is a notebook."""
    notes = _Notes()

    def read(opened: OpenedExport, name: str) -> Iterator[Item]:
        notes.folder = slugify(PurePosixPath(name).stem, 60)
        return _notes_in(opened, name, notes)

    yield from read_each(opened, _files(opened), read)
    yield from notes.held_back()
    if notes.left_out:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in notes.left_out.most_common(5))
        place = counted(notes.left_out.total(), "text")
        yield Skipped(place, f"The notes don't show it, or kbtui doesn't know it: {kinds}.")


def _files(opened: OpenedExport) -> Iterator[str]:
    for name in opened.names:
        is_likely = not opened.is_folder or name.lower().endswith((".enex", ".xml"))
        if is_likely and _SIGNATURE.search(opened.head(name, 4096).replace(b"\x00", b"")):
            yield name


SOURCE = Source("Evernote", "evernote", has_any(_files), _read)


def _notes_in(opened: OpenedExport, name: str, notes: _Notes) -> Iterator[Item]:
    with opened.open(name) as stream:
        data = stream.read(_CHUNK)
        is_utf16 = data.startswith(_UTF16_STARTS)
        reader = _EnexReader(notes)
        while True:
            last = not data
            data = data if is_utf16 else data.translate(None, _ILLEGAL)
            problem = reader.feed(data, last=last)
            yield from notes.done
            notes.done.clear()
            if problem is None:
                if last:
                    return
                data = stream.read(_CHUNK)
                continue
            why, rest = problem
            title = line_of(reader.note.text("title")) if reader.note else ""
            yield Skipped(f"{title or 'A note'} ({line_of(name)})", why, lost=True)
            while not (found := _NOTE.search(rest)):
                if last or is_utf16 or not (more := stream.read(_CHUNK)):
                    return
                rest = rest[-16:] + more
            data, reader = rest[found.start() :], _EnexReader(notes)
            reader.feed(_ROOT)


@dataclass(slots=True)
class _OpenNote:
    parts: dict[str, list[str]] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    files: dict[str, tuple[str, str]] = field(default_factory=dict)  # by hash: path and media type
    tasks: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        return "".join(self.parts.get(name, ()))


@dataclass(slots=True)
class _Notes:
    """The finished notes and files, and the names already used."""

    folder: str = ""
    done: list[Item] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)  # by what holds it
    _held: list[ImportedNote] = field(default_factory=list)
    _held_size: int = 0
    _places: dict[str, str] = field(default_factory=dict)  # by title, "" if two notes have it
    _taken: dict[str, int] = field(default_factory=dict)
    _ids: dict[str, int] = field(default_factory=dict)

    def add(self, note: _OpenNote) -> None:
        title = line_of(note.text("title")) or "Untitled"
        created, text = note.text("created").strip(), note.text("content")
        name = self._unique_id(line_of(note.text("guid")) or digest(created, title))
        body = to_markdown(text, lambda tree: _prepare(tree, note.files), dropped=self.left_out)
        unlinked = [path for path, _ in note.files.values() if relative_link(path) not in body]
        lines = [f"[{PurePosixPath(path).name}]({relative_link(path)})" for path in unlinked]
        tasks = "\n".join(filter(None, [_reminder(note, title), *note.tasks]))
        body = "\n\n".join(filter(None, [body, tasks, "\n".join(lines)]))
        at = f"{self.folder}/{self._unique_name(slugify(title))}.md"
        self._places[title] = "" if title in self._places else at
        if guid := line_of(note.text("guid")):
            self._places[guid] = at
        made = ImportedNote(
            id=name,
            title=title,
            text=body,
            created=_time(created),
            updated=_time(note.text("updated").strip()),
            tags=tuple(filter(None, map(line_of, note.tags))),
            url=line_of(note.text("source-url")),
            at=at,
        )
        if _LINK.search(body) and self._held_size < _MAX_HELD:
            self._held.append(made)  # until the notes that it links to are known
            self._held_size += len(body)
        else:
            self.done.append(made)

    def held_back(self) -> Iterator[ImportedNote]:
        """Yield the notes with links to others, which lead to those that were read."""
        for note in self._held:
            text = _LINK.sub(lambda link, at=note.at: self._rewritten_link(link, at), note.text)  # type: ignore[misc]
            yield replace(note, text=text)
        self._held.clear()

    def _rewritten_link(self, link: re.Match[str], at: str) -> str:
        target = self._places.get(link[2]) or self._places.get(line_of(link[1]))
        return f"[{link[1]}]({relative(target, at)})" if target else link[0]

    def add_file(self, note: _OpenNote, name: str, mime: str, data: bytes, mark: str) -> None:
        """Finish a file of a note; `mark` is its MD5, by which the text refers to it."""
        suffix = PurePosixPath(name).suffix or mimetypes.guess_extension(mime) or ""
        stem = slugify(PurePosixPath(name).stem or "file", 60)
        path = f"files/{stem}-{mark[:8]}{suffix.lower()}"
        note.files[mark] = (path, mime)
        title = PurePosixPath(path).name
        self.done.append(ImportedNote(mark, title, "", data=data, at=f"{self.folder}/{path}"))

    def _unique_id(self, name: str) -> str:
        self._ids[name] = number = self._ids.get(name, 0) + 1
        return name if number == 1 else f"{name}-{number}"

    def _unique_name(self, name: str) -> str:
        key = f"{self.folder}/{name}"
        self._taken[key] = number = self._taken.get(key, 0) + 1
        return name if number == 1 else f"{name}-{number}"


class _EnexReader:
    """Parser for one file, or for the rest of it after an error."""

    def __init__(self, notes: _Notes) -> None:
        self.note: _OpenNote | None = None
        self._notes = notes
        self._path: list[str] = []
        self._values: dict[str, str] = {}  # fields of the current file or task
        self._file: _File | None = None
        self._size = 0
        self._parsed = 0
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.EntityDeclHandler = _refuse

    def feed(self, data: bytes, *, last: bool = False) -> tuple[str, bytes] | None:
        """Parse more data; on an error, return the reason and the data after it, else None.

        Raises:
            UnreadableError: The file declares entities or has an unknown encoding.
        """
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            place = max(0, self._parser.ErrorByteIndex - self._parsed)
            return f"The XML is broken: {expat.ErrorString(error.code)}.", data[place:]
        except (LookupError, ValueError) as error:  # an unknown encoding
            raise UnreadableError(f"It can't be read: {error}.") from None
        except _TooLongError:
            place = max(0, self._parser.CurrentByteIndex - self._parsed)
            return f"It is longer than {_MAX_TEXT >> 20} MB.", data[place:]
        self._parsed += len(data)
        return None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        if name == "note":
            self.note, self._size = _OpenNote(), 0
        elif name in ("resource", "task"):
            self._values = {}
            self._file = _File() if name == "resource" else None
        elif name == "data" and self._file and attributes.get("encoding", "base64") != "base64":
            self._file.problem = "it isn't in base64"

    def _end(self, name: str) -> None:
        if self._path:
            self._path.pop()
        note = self.note
        if note is None:
            return
        if name == "note":
            self._notes.add(note)
            self.note = None
        elif name == "tag":
            note.tags.append(note.text("tag"))
            note.parts.pop("tag", None)
        elif name == "resource" and self._file:
            self._end_file(note, self._file)
        elif name == "task":
            is_done = self._values.get("taskStatus", "").strip() == "completed"
            title = line_of(self._values.get("title"))
            due = _until(self._values.get("dueDate", ""))
            note.tasks += [f"- [{'x' if is_done else ' '}] {title}{due}"] if title else []

    def _end_file(self, note: _OpenNote, file: _File) -> None:
        name, mime = line_of(self._values.get("file-name")), line_of(self._values.get("mime"))
        self._file = None
        data = file.end()
        if file.problem:
            place = f"{name or 'A file'} in {line_of(note.text('title')) or 'a note'}"
            self._notes.done.append(Skipped(place, f"It is not taken: {file.problem}.", lost=True))
        elif data:
            mark = hashlib.md5(data, usedforsecurity=False).hexdigest()
            self._notes.add_file(note, name, mime, data, mark)

    def _add_text(self, text: str) -> None:
        parent, name = ["", "", *self._path][-2:]
        if self.note is None:
            return
        if name == "data" and parent == "resource" and self._file:
            self._file.take(text)
        elif name not in _FIELDS:
            if len(text.split(None, _MIN_WORDS)) >= _MIN_WORDS:
                self._notes.left_out["/".join(self._path[2:])] += 1
        elif parent in ("note", "note-attributes"):
            self._size += len(text)
            if self._size > _MAX_TEXT:
                raise _TooLongError
            self.note.parts.setdefault(name, []).append(text)
        elif parent in ("resource", "resource-attributes", "task") and len(text) < _CHUNK:
            self._values[name] = self._values.get(name, "") + text


class _TooLongError(Exception):
    pass


class _File:
    """An incremental base64 decoder for one file."""

    def __init__(self) -> None:
        self.problem = ""
        self._data = bytearray()
        self._left = ""

    def take(self, text: str) -> None:
        if self.problem:
            return
        text = self._left + "".join(text.split())
        whole = len(text) // 4 * 4
        self._left = text[whole:]
        self._decode(text[:whole])

    def end(self) -> bytes:
        """Return the decoded file, empty if there is a `problem`."""
        if not self.problem and self._left:
            self._decode(f"{self._left}{'=' * (-len(self._left) % 4)}")
        return b"" if self.problem else bytes(self._data)

    def _decode(self, text: str) -> None:
        try:
            self._data += binascii.a2b_base64(text)
        except (binascii.Error, ValueError):
            self.problem = "its base64 is broken"
        if len(self._data) > _MAX_FILE:
            self.problem = f"it is larger than {_MAX_FILE >> 20} MB"
        if self.problem:
            self._data.clear()


def _refuse(*_: Any) -> None:
    raise UnreadableError("It declares entities, which no export of Evernote does.")


def _prepare(tree: Tree, files: dict[str, tuple[str, str]]) -> None:
    """Replace ENML's own tags by plain HTML."""
    for tag in tree.find_all("en-media"):
        path, mime = files.get(str(tag.get("hash") or "").lower(), ("", ""))
        tag.replace_with(_file(tree, tag, path, mime))
    for tag in tree.find_all("en-crypt"):
        tag.replace_with("[encrypted by Evernote]")
    _mark_todos(tree)
    for tag in tree.find_all(style=re.compile("-en-codeblock")):
        lines = [line.get_text() for line in tag.find_all("div", recursive=False)]
        code = tree.new_tag("pre")
        code.string = "\n".join(lines) if lines else tag.get_text()
        tag.replace_with(code)


def _file(tree: Tree, tag: Any, path: str, mime: str) -> Any:
    """Return the image, link or text that stands for a file."""
    if not path:
        return "[a file that the export lacks]"
    if mime.startswith("image/"):
        name = line_of(tag.get("alt")) or PurePosixPath(path).stem
        return tree.new_tag("img", src=relative_link(path), alt=name)
    link = tree.new_tag("a", href=relative_link(path))
    link.string = PurePosixPath(path).name
    return link


def _mark_todos(tree: Tree) -> None:
    for tag in tree.find_all("en-todo"):
        is_done = str(tag.get("checked")).lower() in ("true", "checked")
        mark = "[x] " if is_done else "[ ] "
        is_listed = tag.find_parent("li") is not None
        tag.insert_before(mark if is_listed else f"- {mark}")
        tag.unwrap()
    for tag in tree.find_all("li", style=re.compile("--en-checked")):
        is_done = re.search(r"--en-checked\s*:\s*true", str(tag.get("style"))) is not None
        tag.insert(0, "[x] " if is_done else "[ ] ")
        for inner in tag.find_all("div", recursive=False):
            inner.unwrap()


def _reminder(note: _OpenNote, title: str) -> str:
    """Return a task for the date that a note reminds of, or "" if it reminds of none."""
    due, done = _until(note.text("reminder-time")), _time(note.text("reminder-done-time"))
    if not (due or done):
        return ""
    ended = f" ✅ {done.astimezone():%Y-%m-%d}" if done else ""
    return f"- [{'x' if done else ' '}] {title}{due}{ended}"


def _until(value: str) -> str:
    time = _time(value)
    return f" 📅 {time.astimezone():%Y-%m-%d}" if time else ""


def _time(value: str) -> datetime | None:
    try:
        return datetime.strptime(words_of(value), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
