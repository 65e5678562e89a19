"""LibreChat: the JSON of one conversation, with its messages as a list or nested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kbtui.importers.port import ImportedConversation, ImportedMessage, Item, Role, Skipped
from kbtui.importers.reading import (
    Record,
    dated,
    drained,
    fields_of,
    paragraphs,
    place_of,
    record_source,
    texts_in,
)
from kbtui.importers.trees import branch_of

_MAX_MESSAGES = 100_000
_HIDDEN = {"think": "thought", "tool_call": "step of a tool"}


def _is_export(head: bytes) -> bool:
    fields = fields_of(head)
    is_whole = "conversationId" in fields and fields & {"messages", "messagesTree", "endpoint"}
    return bool(is_whole) and b'"parentMessageId"' in head


def _conversation(name: str, record: Record) -> Iterator[Item]:
    id_, title = record.text("conversationId"), record.line("title")
    said = record.drain("messages" if record.get("messages") else "messagesTree")
    named: Counter[str] = Counter()
    branch, branches = _branch(list(_flat([*said])))
    converted = tuple(found for each in drained(branch) if (found := _message(each, named)))
    if not converted:
        yield Skipped(place_of(name, title, id_), "It holds no messages.")
        return
    yield ImportedConversation(
        id_ or converted[0].id or converted[0].text[:200],
        title,
        *dated(converted, record.time("createdAt"), record.time("updatedAt")),
        converted,
        branches=branches,
        named=named,
    )


def _flat(messages: list[Record]) -> Iterator[Record]:
    stack = messages[::-1]
    for _ in range(_MAX_MESSAGES):
        if not stack:
            return
        message = stack.pop()
        yield message
        stack += message.records("children")[::-1]


def _branch(messages: list[Record]) -> tuple[list[Record], int]:
    known = {each.text("messageId"): each for each in messages}
    if len(known) < len(messages):
        return messages, 0  # some have no ids
    parents = {id_: each.text("parentMessageId") for id_, each in known.items()}
    times = {id_: each.time("createdAt") for id_, each in known.items()}
    line, branches = branch_of(
        parents, times, "", lambda id_: _message(known[id_], Counter()) is not None
    )
    return [known[id_] for id_ in line], branches


def _message(message: Record, named: Counter[str]) -> ImportedMessage | None:
    blocks = message.records("content")
    texts = texts_in(message.get("content"), lambda block: block.get("type") == "text")
    text = paragraphs(dict.fromkeys(each.strip() for each in (message.text("text"), *texts)))
    attached = tuple(message.lines("files", "filename"))
    named.update(filter(None, (_HIDDEN.get(each.text("type")) for each in blocks)))
    named.update(["file"] * len(attached))
    if not text and not attached:
        return None
    return ImportedMessage(
        _role(message), text, message.time("createdAt"), message.text("messageId"), attached
    )


def _role(message: Record) -> Role:
    is_mine = message.get("isCreatedByUser") is True or message.get("sender") == "User"
    return "user" if is_mine else "assistant"


SOURCE = record_source("LibreChat", "librechat", _is_export, _conversation, "")
