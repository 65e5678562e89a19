"""DeepSeek: an export of all conversations, with trees as ChatGPT's and messages in fragments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kbtui.importers.port import ImportedMessage, Item, Role, Skipped
from kbtui.importers.reading import (
    Record,
    conversation,
    fields_of,
    paragraphs,
    place_of,
    record_source,
    role_of,
)
from kbtui.importers.trees import branch_of, parents_of

_HIDDEN = {"THINK": "thought"}
_SHOWN: dict[str, Role] = {"REQUEST": "user", "RESPONSE": "assistant"}


def _is_export(head: bytes) -> bool:
    return {"mapping", "inserted_at"} <= fields_of(head, "conversations")


def _conversation(name: str, record: Record) -> Iterator[Item]:
    id_, title, current = record.text("id"), record.line("title"), record.text("current_node")
    created, updated = record.time("inserted_at"), record.time("updated_at")
    tree = record.record("mapping")
    whole = {key: tree.record(key) for key in tree}
    nodes = {key: each.record("message") for key, each in whole.items()}
    line, branches = branch_of(
        parents_of(whole, "parent", "children"),
        {key: node.time("inserted_at") for key, node in nodes.items()},
        current,
        lambda key: _message(key, nodes[key], Counter()) is not None,
    )
    for each in (record, tree, whole):  # they are as large as what comes of them
        each.clear()
    named: Counter[str] = Counter()
    messages = [one for key in line if (one := _message(key, nodes.pop(key), named))]
    found = conversation(
        id_,
        title,
        messages,
        created=created,
        updated=updated,
        branches=branches,
        named=named,
    )
    yield found or Skipped(place_of(name, title, id_), "It holds no messages.")


def _message(id_: str, message: Record, named: Counter[str]) -> ImportedMessage | None:
    fragments = message.records("fragments")
    kinds = [each.line("type") for each in fragments]
    hidden = (_HIDDEN.get(kind, "step of a tool") for kind in kinds if kind not in _SHOWN)
    named.update(hidden)
    shown = (each.text("content") for each in fragments if each.line("type") in _SHOWN)
    text = paragraphs([message.text("content"), *shown])
    roles = (_SHOWN[kind] for kind in kinds if kind in _SHOWN)
    role = next(roles, role_of(message.get("role")))
    files = tuple(message.lines("files", "file_name", "name"))
    named.update(["file"] * len(files))
    if role is None or not (text or files):
        return None
    return ImportedMessage(role, text, message.time("inserted_at"), id_, files)


SOURCE = record_source("DeepSeek", "deepseek", _is_export, _conversation)
