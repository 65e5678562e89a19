"""Grok: an export of all conversations, each with its answers as a tree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from kbtui.importers.port import ImportedMessage, Item, Skipped
from kbtui.importers.reading import (
    Record,
    conversation,
    fields_of,
    place_of,
    record_source,
    role_of,
)
from kbtui.importers.trees import branch_of

_RENDERED = re.compile(r"[ \t]?<grok:render\b[^<>]*>.*?</grok:render>", re.DOTALL)
"""Where the program shows a card of a source."""


def _is_export(head: bytes) -> bool:
    return {"conversation", "responses"} <= fields_of(head, "conversations")


def _conversation(name: str, record: Record) -> Iterator[Item]:
    about = record.record("conversation")
    said = [each.record("response") or each for each in record.drain("responses")]
    nodes = {each.text("_id", "id") or f"{number}": each for number, each in enumerate(said)}
    line, branches = branch_of(
        {id_: each.text("parent_response_id") for id_, each in nodes.items()},
        {id_: each.time("create_time") for id_, each in nodes.items()},
        about.text("leaf_response_id"),
        lambda id_: bool(nodes[id_].words("message")),
    )
    if not any("parent_response_id" in each for each in said):
        line, branches = [*nodes], 0
    said.clear()
    named: Counter[str] = Counter()
    messages = [one for id_ in line if (one := _message(id_, nodes.pop(id_), named))]
    found = conversation(
        about.text("id"),
        about.line("title"),
        messages,
        created=about.time("create_time"),
        updated=about.time("modify_time"),
        branches=branches,
        named=named,
    )
    yield found or Skipped(place_of(name, about.get("title"), about.get("id")), "It is empty.")


def _message(id_: str, message: Record, named: Counter[str]) -> ImportedMessage | None:
    role, text = role_of(message.get("sender")), _RENDERED.sub("", message.words("message"))
    named.update(["thought"] if message.get("thinking_trace") else [])
    named.update(["step of a tool"] * len(message.records("steps")))
    attached = message.get("file_attachments")
    files = len(attached) if isinstance(attached, list) else 0
    named.update(["file"] * files)
    if role is None or not (text or files):
        return None
    return ImportedMessage(role, text, message.time("create_time"), id_, ("file",) * files)


SOURCE = record_source("Grok", "grok", _is_export, _conversation)
