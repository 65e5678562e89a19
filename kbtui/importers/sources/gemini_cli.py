"""Gemini CLI: a session in ``chats``, as one JSON object or, since 2026, as JSON Lines.

A checkpoint, which a person saves under a name, holds what was said as it was sent to the model.

In lines, a message may be written again with more of it, and ``$rewindTo`` takes back what follows,
which counts as a branch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, groupby
from pathlib import PurePosixPath
from typing import Any

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of, words_of
from kbtui.importers.port import ImportedConversation, ImportedMessage, Item, Skipped
from kbtui.importers.reading import (
    OF_A_SUBAGENT,
    Record,
    conversation,
    fields_of,
    json_lines,
    json_list,
    json_source,
    paragraphs,
    records_of,
    role_of,
    texts_in,
)

_SETUP = re.compile(
    r"This is the Gemini CLI\. We are setting up|Got it\. Thanks for the context!|<session_context>"
)
"""How what a program and a model say before the first prompt begins, in a checkpoint."""
_STEPS = frozenset(("functionCall", "functionResponse", "inlineData", "fileData"))
_NESTED = ("messages", "history", "$set")
_NOTICES = ("info", "error", "warning")


def _is_session(head: bytes) -> bool:
    fields = fields_of(head)
    is_checkpoint = {"role", "parts"} <= fields_of(head, "history")  # older ones are a bare list
    return {"sessionId", "projectHash"} <= fields or is_checkpoint


class _Session:
    def __init__(self) -> None:
        self.about = Record()
        # Each message with the counts of what is left out of it: records take more memory.
        self._messages: dict[str, tuple[ImportedMessage | None, Counter[str] | None]] = {}
        self._rewinds = 0

    def take(self, record: Record) -> None:
        target = record.text("$rewindTo")
        if target in self._messages:
            self._rewinds += 1
            ids = list(self._messages)
            for id_ in ids[ids.index(target) :]:
                del self._messages[id_]
        changes = record.record("$set")
        for each in (record, changes):
            self.about.update({key: each[key] for key in each if key not in _NESTED})
            for message in chain(each.drain("messages"), each.drain("history")):
                self._add(message)
        if "type" in record:
            self._add(record)

    def _add(self, message: Record) -> None:
        named: Counter[str] = Counter()
        read = _message(message, named)
        self._messages[message.text("id") or f"{len(self._messages)}"] = read, named or None

    def conversation(self, name: str) -> ImportedConversation | None:
        named: Counter[str] = Counter()
        for _, counted in self._messages.values():
            named.update(counted or {})
        messages = [message for message, _ in self._messages.values() if message]
        about = self.about
        return conversation(
            about.text("sessionId") or PurePosixPath(name).stem,
            about.line("summary"),
            messages,
            created=about.time("startTime"),
            updated=about.time("lastUpdated"),
            branches=self._rewinds,
            named=named,
        )


def _session(opened: OpenedExport, name: str) -> Iterator[Item]:
    session = _Session()
    is_lines = name.lower().endswith(".jsonl")
    for record in json_lines(opened, name) if is_lines else json_list(opened, name, ""):
        if isinstance(record, Skipped):
            yield record
        else:
            session.take(Record(history=[record]) if "parts" in record else record)
    if session.about.get("kind") == "subagent":
        yield Skipped(line_of(name), OF_A_SUBAGENT)
    elif found := session.conversation(name):
        yield found


def _message(message: Record, named: Counter[str]) -> ImportedMessage | None:
    kind = message.line("type", "role")
    named.update(["notice of the program"] if kind in _NOTICES else [])
    named.update(["thought"] * len(message.records("thoughts")))
    named.update(["step of a tool"] * len(message.records("toolCalls")))
    said = message.get("displayContent") or message.get("content") or message.get("parts")
    parts = records_of(said if isinstance(said, list) else [said])
    named.update(["step of a tool"] * sum("functionCall" in part for part in parts))
    named.update(["file"] * sum("inlineData" in part or "fileData" in part for part in parts))
    text = words_of(_text(said))
    if "parts" in message and _SETUP.match(text):
        named.update(["notice of the program"])
        return None
    role = "assistant" if kind in ("gemini", "model") else role_of(kind)
    if role is None or not text:
        return None
    return ImportedMessage(role, text, message.time("timestamp"), message.text("id"))


def _text(said: Any) -> str:
    """Return what a message says: pieces of one text, and a paragraph after each step between."""
    runs = groupby(said if isinstance(said, list) else [said], _is_step)
    return paragraphs("".join(texts_in([*run])) for is_step, run in runs if not is_step)


def _is_step(part: Any) -> bool:
    return isinstance(part, dict) and bool(part.get("thought") or _STEPS.intersection(part))


SOURCE = json_source("Gemini CLI", "gemini-cli", _is_session, _session)
