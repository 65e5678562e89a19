"""Gemini CLI: a session in ``chats``, as one JSON object or, since 2026, as JSON Lines.

In lines, a message may be written again with more of it, and ``$rewindTo`` takes back what follows,
which counts as a branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
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
)

_NOTICES = ("info", "error", "warning")


def _is_session(head: bytes) -> bool:
    return {"sessionId", "projectHash"} <= fields_of(head)


class _Session:
    def __init__(self) -> None:
        self.about = Record()
        self._messages: dict[str, Record] = {}
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
            self.about.update({key: each[key] for key in each if key not in ("messages", "$set")})
            for message in each.records("messages"):
                self._add(message)
        if "type" in record:
            self._add(record)

    def _add(self, message: Record) -> None:
        self._messages[message.text("id") or f"{len(self._messages)}"] = message

    def conversation(self, name: str) -> ImportedConversation | None:
        named: Counter[str] = Counter()
        messages = [one for each in self._messages.values() if (one := _message(each, named))]
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
            session.take(record)
    if session.about.get("kind") == "subagent":
        yield Skipped(line_of(name), OF_A_SUBAGENT)
    elif found := session.conversation(name):
        yield found


def _message(message: Record, named: Counter[str]) -> ImportedMessage | None:
    kind = message.line("type")
    named.update(["notice of the program"] if kind in _NOTICES else [])
    named.update(["thought"] * len(message.records("thoughts")))
    named.update(["step of a tool"] * len(message.records("toolCalls")))
    parts = records_of(message.get("displayContent") or message.get("content"))
    named.update(["file"] * sum("inlineData" in part or "fileData" in part for part in parts))
    text = paragraphs([message.text("content"), *(part.text("text") for part in parts)])
    role = "assistant" if kind in ("gemini", "model") else role_of(kind)
    if role is None or not text:
        return None
    return ImportedMessage(role, text, message.time("timestamp"), message.text("id"))


SOURCE = json_source("Gemini CLI", "gemini-cli", _is_session, _session)
