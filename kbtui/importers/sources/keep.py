"""Google Keep from Takeout: a JSON file per note, next to the same note as a web page.

Notes in the bin aren't imported. Pictures and recordings become files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from mimetypes import guess_type
from pathlib import PurePosixPath
from typing import Any

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of, relative_link, to_markdown
from kbtui.importers.port import ImportedNote, Item, Skipped, Source
from kbtui.importers.reading import (
    IN_BIN,
    Record,
    fields_of,
    file_of,
    has_any,
    json_list,
    json_members,
    read_each,
    read_records,
    time_of,
)
from kbtui.text import counted, shorten

_TITLE_WIDTH = 80
_STAMPS = ("createdTimestampUsec", "userEditedTimestampUsec")
_STATE = {"isTrashed", "isPinned", "isArchived", "color"}
_FILES = "files"
_MARKED = re.compile(
    r"<(?:h\d|b|strong|i|em|s|del)\b|font-weight:\s*(?:bold|[6-9]00)|font-style:\s*italic"
    r"|line-through"
)


def _exports(opened: OpenedExport) -> Iterator[str]:
    for name, head in json_members(opened):
        fields = fields_of(head)
        if fields.intersection(_STAMPS) and fields & _STATE:
            yield name


def _read(opened: OpenedExport) -> Iterator[Item]:
    files = {
        _without_suffix(name): name
        for name in opened.names
        if not name.endswith((".json", ".html"))
    }
    binned: list[Record] = []

    def notes(opened: OpenedExport, name: str) -> Iterator[Item]:
        def read(record: Record) -> Iterator[Item]:
            if record.get("isTrashed") is True:
                binned.append(record)
            else:
                yield from _note(opened, name, record, files)

        return read_records(json_list(opened, name, ""), read)

    names = [*_exports(opened)]
    yield from read_each(opened, names, notes)
    opened.taken.update(
        {f"{_without_suffix(name)}.html" for name in names}.intersection(opened.names)
    )
    if binned:
        yield Skipped(counted(len(binned), "note"), IN_BIN)


SOURCE = Source("Google Keep", "keep", has_any(_exports), _read)


def _without_suffix(name: str) -> str:
    # A picture may be named .jpg in the note and .jpeg in the folder.
    return str(PurePosixPath(name).with_suffix("")) if "." in name else name


def _note(opened: OpenedExport, name: str, record: Record, files: dict[str, str]) -> Iterator[Item]:
    attached = record.lines("attachments", "filePath")
    here = {path: place for path in attached if (place := _place(name, path, files))}
    note = _text_of(name, record, attached, here)
    yield note
    if isinstance(note, ImportedNote):
        for path in attached:
            yield _attachment(opened, path, here)


def _text_of(
    name: str, record: Record, attached: Sequence[str], here: Mapping[str, str]
) -> ImportedNote | Skipped:
    """Read the text of a note, in which the attachments that are `here` hang."""
    folder = "archive" if record.get("isArchived") is True else ""
    up = "../" if folder else ""
    links = {path: relative_link(f"{up}{_beside(path)}") for path in here}
    body = "\n\n".join(filter(None, _parts(record, attached, links)))
    title = record.line("title") or shorten(record.line("textContent"), _TITLE_WIDTH)
    if not body and not title:
        return Skipped(line_of(name), "It is empty.")
    stem = PurePosixPath(name).stem
    created, updated = (_time(record.get(key)) for key in _STAMPS)
    return ImportedNote(
        f"note {record.get(_STAMPS[0]) or stem} {stem}",
        title or stem,
        body,
        updated or created,
        created or updated,
        folder=folder,
        tags=tuple(record.lines("labels", "name")),
    )


def _attachment(opened: OpenedExport, path: str, here: Mapping[str, str]) -> Item:
    """Read an attached file, or report that the export lacks it."""
    if path not in here:
        return Skipped(path, "The export lacks it.", lost=True)
    file = file_of(opened, here[path], path)
    return replace(file, at=_beside(path)) if isinstance(file, ImportedNote) else file


def _beside(path: str) -> str:
    """Return where an attached file is stored."""
    return f"{_FILES}/{PurePosixPath(path).name}"


def _place(name: str, path: str, files: dict[str, str]) -> str:
    """Return the member that is an attached file, or "" if the export lacks it."""
    return files.get(_without_suffix(str(PurePosixPath(name).parent / path)), "")


def _parts(record: Record, attached: Sequence[str], links: Mapping[str, str]) -> Iterator[str]:
    """Yield text, checklist, links and attachments as Markdown, "" for what is missing."""
    yield _written(record, "textContent")
    yield "\n".join(
        f"- [{'x' if each.get('isChecked') is True else ' '}] {line_of(_written(each, 'text'))}"
        for each in record.records("listContent")
    )
    pages = ((each.line("title"), each.line("url")) for each in record.records("annotations"))
    yield "\n".join(f"- [{name or url}]({url})" for name, url in pages if url.startswith("http"))
    for path, link in links.items():
        sign = "!" if (guess_type(path)[0] or "").startswith("image/") else ""
        yield f"{sign}[{PurePosixPath(path).name}]({link})"
    missing = [path for path in attached if path not in links]
    yield f"Attached: {', '.join(missing)}" if missing else ""


def _written(record: Record, name: str) -> str:
    """Return a text as it was written: as Markdown if it has marks, which only its page says."""
    text, page = record.words(name), record.words(f"{name}Html")
    if not _MARKED.search(page) and name in record:
        return text
    written = to_markdown(page)
    return written if _letters(written) >= _letters(text) else text  # nothing may be lost by it


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _time(micros: Any) -> datetime | None:
    try:
        return time_of(float(micros) / 1e6)
    except (TypeError, ValueError, OverflowError):
        return None
