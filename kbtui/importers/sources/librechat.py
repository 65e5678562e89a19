"""LibreChat: the JSON of one conversation, its messages in a list or one within the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kbtui.importers.markup import line_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.port import ImportedConversation, Item, Said, Skipped
from kbtui.importers.reading import (
    dated,
    fields_of,
    json_list,
    json_source,
    mapping,
    mappings,
    place_of,
    text_of,
    time_of,
)
from kbtui.importers.trees import branch_of

_DEEPEST = 100_000
_HIDDEN = {"think": "thought", "tool_call": "step of a tool"}


def _is_export(head: bytes) -> bool:
    fields = fields_of(head)
    is_whole = "conversationId" in fields and fields & {"messages", "messagesTree", "endpoint"}
    return bool(is_whole) and b'"parentMessageId"' in head


def _conversations(opened: OpenedExport, name: str) -> Iterator[Item]:
    for each in json_list(opened, name, ""):
        yield each if isinstance(each, Skipped) else _conversation(name, each)


SOURCE = json_source("LibreChat", "librechat", _is_export, _conversations)


def _conversation(name: str, record: dict[str, Any]) -> Item:
    id_ = text_of(record.get("conversationId"))
    title = line_of(record.get("title"))
    messages = list(_flat(mappings(record.get("messages") or record.get("messagesTree"))))
    named: Counter[str] = Counter()
    branch, branches = _line(messages)
    said = tuple(found for each in branch if (found := _said(each, named)))
    if not said:
        return Skipped(place_of(name, title, id_), "It holds no messages.")
    return ImportedConversation(
        id_ or said[0].id or said[0].text[:200],
        title,
        *dated(said, record.get("createdAt"), record.get("updatedAt")),
        said,
        branches=branches,
        named=tuple(named.items()),
    )


def _flat(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All messages, those within others behind them."""
    waiting = messages[::-1]
    for _ in range(_DEEPEST):
        if not waiting:
            return
        message = waiting.pop()
        yield message
        waiting += mappings(message.get("children"))[::-1]


def _line(messages: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    known = {text_of(each.get("messageId")): each for each in messages}
    if len(known) < len(messages):
        return messages, 0  # some have no ids
    parents = {id_: text_of(each.get("parentMessageId")) for id_, each in known.items()}
    if sum(parent not in known for parent in parents.values()) > 1:
        return messages, 0  # a part of them: what lies between is missing
    times = {id_: time_of(each.get("createdAt")) for id_, each in known.items()}
    line, branches = branch_of(parents, times)
    return [known[id_] for id_ in line], branches


def _said(message: dict[str, Any], named: Counter[str]) -> Said | None:
    texts = [text_of(message.get("text")).strip()]
    for block in mappings(message.get("content")):
        kind = text_of(block.get("type"))
        named.update([_HIDDEN[kind]] if kind in _HIDDEN else ())
        inner = block.get("text")
        if kind == "text":
            texts.append((text_of(inner) or text_of(mapping(inner).get("value"))).strip())
    attached = tuple(
        filter(None, (line_of(each.get("filename")) for each in mappings(message.get("files"))))
    )
    named.update(["file"] * len(attached))
    text = "\n\n".join(dict.fromkeys(filter(None, texts)))
    if not text and not attached:
        return None
    is_mine = message.get("isCreatedByUser") is True or text_of(message.get("sender")) == "User"
    return Said(
        "user" if is_mine else "assistant",
        text,
        time_of(message.get("createdAt")),
        text_of(message.get("messageId")),
        attached,
    )
