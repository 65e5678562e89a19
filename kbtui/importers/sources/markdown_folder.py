"""A folder of Markdown, copied with its tree, including pictures and documents.

File names are kept, so that links between notes and to pictures stay valid.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import decoded, line_of
from kbtui.importers.port import ImportedNote, Item, Skipped, Source
from kbtui.importers.reading import IN_BIN, data_of, read_each
from kbtui.knowledge.catalog.catalog import is_generated_only
from kbtui.text import clean, counted
from kbtui.workspace.layout import is_conflict_copy
from kbtui.workspace.scan import ATTACHMENTS

_NOTES = (".md", ".markdown")
BESIDE = ATTACHMENTS - {*_NOTES} | {".canvas", ".base"}
_IGNORED = frozenset({"node_modules", "__pycache__", "__MACOSX"})
_INDEX = "INDEX.md"
_BINS = frozenset({".trash", ".Trash", ".recycle"})
_MAX_NAMED = 5
_HEADING = re.compile(r"^#[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_MAX_NOTE = 16 << 20


def _recognises(opened: OpenedExport) -> bool:
    return opened.is_folder and any(name.lower().endswith(_NOTES) for name in opened.names)


def _read(opened: OpenedExport) -> Iterator[Item]:
    """Read each note, picture and document; report the number of other files."""
    others: Counter[str] = Counter()
    copies: list[str] = []
    binned = 0
    taken: list[str] = []
    for name in opened.names:
        path = PurePosixPath(name)
        suffix = path.suffix.lower()
        if _IGNORED.intersection(path.parts):
            continue
        if any(part.startswith(".") for part in path.parts):  # in a zip
            binned += suffix in _NOTES and not _BINS.isdisjoint(path.parts)
        elif suffix in _NOTES and is_conflict_copy(name):
            copies.append(name)
        elif suffix in _NOTES or suffix in BESIDE:
            taken.append(name)
        else:
            others[suffix or path.name] += 1
    yield from read_each(opened, taken, _read_one)
    opened.taken.update(opened.names)
    if binned:
        yield Skipped(counted(binned, "note"), IN_BIN)
    if copies:
        place = counted(len(copies), "conflict copy", "conflict copies")
        why = "They are other versions of notes, which two programs wrote at once:"
        yield Skipped(place, f"{why} {', '.join(map(line_of, copies[:_MAX_NAMED]))}.")
    if others:
        kinds = ", ".join(line_of(kind) for kind, _ in others.most_common(5))
        place = counted(others.total(), "other file")
        yield Skipped(place, f"Neither a note nor a picture or paper: {kinds}.")


def _read_one(opened: OpenedExport, name: str) -> Iterator[Item]:
    path = PurePosixPath(name)
    is_note = path.suffix.lower() in _NOTES
    item = read_note(opened, name, path) if is_note else read_file(opened, name, name)
    is_index = (
        path.name == _INDEX and isinstance(item, ImportedNote) and is_generated_only(item.text)
    )
    if not is_index:  # kbtui makes a new one
        yield item


SOURCE = Source("a folder of Markdown", "markdown", _recognises, _read, is_any=True)


def read_file(opened: OpenedExport, name: str, at: str) -> Item:
    """Read a picture or document that lies beside notes, to be stored at path `at`.

    Raises:
        UnreadableError: It is damaged, or too large.
    """
    return ImportedNote(name, PurePosixPath(at).name, "", data=data_of(opened, name), at=at)


def read_note(opened: OpenedExport, name: str, path: PurePosixPath) -> Item:
    """Read a note, to be stored at `path` below the folder of its source.

    Raises:
        UnreadableError: It is damaged, or too large.
    """
    return note_of(name, data_of(opened, name, _MAX_NOTE), path, opened.modified(name))


def note_of(name: str, data: bytes, path: PurePosixPath, updated: datetime | None = None) -> Item:
    """Read a note from its bytes, to be stored at `path`, as `read_note`."""
    text = decoded(data)
    if "\x00" in text:
        why = "It is no text: it has bytes that no text has."
        return Skipped(line_of(name), why, lost=True)
    text = clean(text)
    heading = _HEADING.search(text)
    title = line_of(heading[1]) if heading else path.stem
    if heading and not text[: heading.start()].strip():
        text = text[heading.end() :]  # written again from the title
    at = str(path.with_suffix(".md"))
    return ImportedNote(name, title, text, updated=updated, at=at, has_head=True)
