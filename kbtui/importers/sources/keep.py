"""Google Keep, as Takeout gives it: a JSON file a note, beside the same as a web page.

Notes in the bin stay there. Pictures and recordings of a note come as files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from kbtui.importers.markup import line_of, words_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.port import ImportedNote, Item, Skipped, Source
from kbtui.importers.reading import (
    fields_of,
    file_of,
    json_list,
    json_members,
    mappings,
    read_each,
    time_of,
)
from kbtui.text import counted, shorten

_TITLE_WIDTH = 80
_OWN = {"userEditedTimestampUsec", "createdTimestampUsec"}
_STATE = {"isTrashed", "isPinned", "isArchived", "color"}
_BINNED = "It was in the bin there."


def _exports(opened: OpenedExport) -> Iterator[str]:
    for name, head in json_members(opened):
        fields = fields_of(head)
        if fields & _OWN and fields & _STATE:
            yield name


def _read(opened: OpenedExport) -> Iterator[Item]:
    files = {_stem(name): name for name in opened.names if not name.endswith((".json", ".html"))}
    binned = 0

    def notes(opened: OpenedExport, name: str) -> Iterator[Item]:
        nonlocal binned
        for record in json_list(opened, name, ""):
            if isinstance(record, Skipped):
                yield record
            elif record.get("isTrashed") is True:
                binned += 1
            else:
                yield from _note(opened, name, record, files)

    names = [*_exports(opened)]
    yield from read_each(opened, names, notes)
    opened.taken.update({f"{_stem(name)}.html" for name in names}.intersection(opened.names))
    if binned:
        yield Skipped(counted(binned, "note"), _BINNED)


SOURCE = Source("Google Keep", "keep", lambda opened: any(True for _ in _exports(opened)), _read)


def _stem(name: str) -> str:
    # A picture may be .jpg in the note and .jpeg in the folder.
    return str(PurePosixPath(name).with_suffix("")) if "." in name else name


def _note(
    opened: OpenedExport, name: str, record: dict[str, Any], files: dict[str, str]
) -> Iterator[Item]:
    attached = [line_of(each.get("filePath")) for each in mappings(record.get("attachments"))]
    attached = list(filter(None, attached))
    body = "\n\n".join(filter(None, _parts(record, attached)))
    text = line_of(words_of(record.get("textContent")))
    title = line_of(record.get("title")) or shorten(text, _TITLE_WIDTH)
    if not body and not title:
        yield Skipped(line_of(name), "It is empty.")
        return
    created = _time(record.get("createdTimestampUsec"))
    updated = _time(record.get("userEditedTimestampUsec"))
    labels = (line_of(each.get("name")) for each in mappings(record.get("labels")))
    stem = PurePosixPath(name).stem
    yield ImportedNote(
        f"note {record.get('createdTimestampUsec') or stem} {stem}",
        title or stem,
        body,
        updated or created,
        created or updated,
        folder="archive" if record.get("isArchived") is True else "",
        tags=tuple(filter(None, labels)),
    )
    folder = PurePosixPath(name).parent
    for path in attached:
        place = files.get(_stem(str(folder / path)))
        yield file_of(opened, place, path) if place else Skipped(path, "The export lacks it.")


def _parts(record: dict[str, Any], attached: Sequence[str]) -> Iterator[str]:
    """Text, boxes, links and the names of files, each as Markdown; what isn't there is empty."""
    yield words_of(record.get("textContent"))
    yield "\n".join(
        f"- [{'x' if each.get('isChecked') is True else ' '}] {line_of(each.get('text'))}"
        for each in mappings(record.get("listContent"))
    )
    links = (
        (line_of(each.get("title")), line_of(each.get("url")))
        for each in mappings(record.get("annotations"))
    )
    yield "\n".join(f"- [{name or url}]({url})" for name, url in links if url.startswith("http"))
    yield f"Attached: {', '.join(attached)}" if attached else ""


def _time(micros: Any) -> datetime | None:
    try:
        return time_of(float(micros) / 1e6)
    except (TypeError, ValueError, OverflowError):
        return None
