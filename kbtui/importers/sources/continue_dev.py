"""Continue: a session file of ``~/.continue/sessions``, or the whole folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedMessage, Item, Skipped, Source
from kbtui.importers.reading import (
    Record,
    conversation,
    fields_of,
    has_any,
    json_list,
    json_members,
    paragraphs,
    place_of,
    read_each,
    read_records,
    role_of,
    texts_in,
    time_of,
)

_SIGNATURE_FIELDS = {"contextItems", "editorState", "workspaceDirectory", "promptLogs"}
_INDEX_FIELDS = {"sessionId", "dateCreated"}
_HIDDEN = {"thinking": "thought", "tool": "step of a tool"}


def _sessions(opened: OpenedExport) -> Iterator[str]:
    for name, head in json_members(opened):
        fields = fields_of(head, "history")
        if {"history", "message"} <= fields and fields & _SIGNATURE_FIELDS:
            yield name


def _read(opened: OpenedExport) -> Iterator[Item]:
    names = [*_sessions(opened)]
    dates: dict[str, Any] = {}
    for name, head in json_members(opened):
        if fields_of(head) >= _INDEX_FIELDS and name not in names:
            for each in json_list(opened, name, ""):
                if not isinstance(each, Skipped):
                    dates[each.text("sessionId")] = each.get("dateCreated")

    def one(opened: OpenedExport, name: str) -> Iterator[Item]:
        records = json_list(opened, name, "")
        return read_records(records, lambda each: _conversation(name, each, dates))

    yield from read_each(opened, names, one, are_known=True)


def _conversation(name: str, record: Record, dates: dict[str, Any]) -> Iterator[Item]:
    id_ = record.text("sessionId")
    time = time_of(dates.get(id_, record.get("dateCreated")))
    named: Counter[str] = Counter()
    said = [one for each in record.drain("history") if (one := _message(each, named))]
    found = conversation(id_, record.line("title"), said, created=time, updated=time, named=named)
    yield found or Skipped(place_of(name, record.get("title"), id_), "It holds no messages.")


def _message(item: Record, named: Counter[str]) -> ImportedMessage | None:
    message = item.record("message")
    role = role_of(message.get("role"))
    if role is None:
        named.update(filter(None, [_HIDDEN.get(message.text("role"))]))
        return None
    parts = message.records("content")
    text = paragraphs(texts_in(message.get("content")))
    pictures = ["picture" for part in parts if part.get("type") == "imageUrl"]
    context = item.lines("contextItems", "name")
    named.update(["step of a tool"] * len(message.records("toolCalls")))
    named.update([*pictures, *(["file"] * len(context) if role == "user" else ())])
    attached = (*context, *pictures)
    return ImportedMessage(role, text, None, "", attached) if text or attached else None


SOURCE = Source("Continue", "continue", has_any(_sessions), _read)
