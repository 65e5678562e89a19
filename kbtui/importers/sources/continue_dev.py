"""Continue: a session as it keeps them in ``~/.continue/sessions``, or the whole folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kbtui.importers.markup import line_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.port import ImportedConversation, Item, Said, Skipped, Source
from kbtui.importers.reading import (
    conversation,
    fields_of,
    json_list,
    json_members,
    mapping,
    mappings,
    place_of,
    read_each,
    text_of,
    time_of,
)

_KNOWN_BY = {"contextItems", "editorState", "workspaceDirectory", "promptLogs"}
_INDEX = {"sessionId", "dateCreated"}
_HIDDEN = {"thinking": "thought", "tool": "step of a tool"}


def _sessions(opened: OpenedExport) -> Iterator[str]:
    for name, head in json_members(opened):
        fields = fields_of(head, "history")
        if {"history", "message"} <= fields and fields & _KNOWN_BY:
            yield name


def _read(opened: OpenedExport) -> Iterator[Item]:
    names = [*_sessions(opened)]
    dates: dict[str, Any] = {}
    for name, head in json_members(opened):
        if fields_of(head) >= _INDEX and name not in names:
            for each in json_list(opened, name, ""):
                if not isinstance(each, Skipped):
                    dates[text_of(each.get("sessionId"))] = each.get("dateCreated")

    def one(opened: OpenedExport, name: str) -> Iterator[Item]:
        for each in json_list(opened, name, ""):
            yield each if isinstance(each, Skipped) else _conversation(name, each, dates)

    yield from read_each(opened, names, one)


def _conversation(name: str, record: dict[str, Any], dates: dict[str, Any]) -> Item:
    id_ = text_of(record.get("sessionId"))
    time = time_of(dates.get(id_, record.get("dateCreated")))
    named: Counter[str] = Counter()
    said = [one for each in mappings(record.get("history")) if (one := _said(each, named))]
    found = conversation(id_, line_of(record.get("title")), said, named=tuple(named.items()))
    if found is None:
        return Skipped(place_of(name, record.get("title"), id_), "It holds no messages.")
    return ImportedConversation(
        found.id, found.title, time, time, found.messages, named=found.named
    )


def _said(item: dict[str, Any], named: Counter[str]) -> Said | None:
    message = mapping(item.get("message"))
    role, content = message.get("role"), message.get("content")
    if isinstance(role, str) and role in _HIDDEN:
        named[_HIDDEN[role]] += 1
    if role not in ("user", "assistant"):
        return None
    named.update(["step of a tool"] * len(mappings(message.get("toolCalls"))))
    parts = mappings(content)
    texts = [text_of(content), *(text_of(part.get("text")) for part in parts)]
    text = "\n\n".join(each.strip() for each in texts if each.strip())
    pictures = sum(part.get("type") == "imageUrl" for part in parts)
    named.update(["picture"] * pictures)
    context = (line_of(each.get("name")) for each in mappings(item.get("contextItems")))
    attached = (*filter(None, context), *("picture",) * pictures)
    named += Counter({"file": len(attached) - pictures}) if role == "user" else Counter()
    if not text and not attached:
        return None
    return Said("user" if role == "user" else "assistant", text, None, "", attached)


SOURCE = Source(
    "Continue",
    "continue",
    lambda opened: any(True for _ in _sessions(opened)),
    _read,
)
