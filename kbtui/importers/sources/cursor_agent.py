"""Cursor's ``agent-transcripts``: a log per conversation, as JSON Lines without times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
from kbtui.importers.port import ImportedMessage, Item, Skipped
from kbtui.importers.reading import (
    OF_A_SUBAGENT,
    Record,
    Records,
    conversation,
    json_lines,
    log_source,
    paragraphs,
    role_of,
)

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*(?:</user_query>|\Z)", re.DOTALL)
_HIDDEN = {"thinking": "thought", "redacted_thinking": "thought", "image": "picture"}
_HIDDEN |= {"tool_use": "step of a tool"}


def _is_log(records: Records) -> bool:
    return any(
        "type" not in each and role_of(each.get("role")) and each.record("message").get("content")
        for each in records
    )


def _session(opened: OpenedExport, name: str) -> Iterator[Item]:
    path, named = PurePosixPath(name), Counter[str]()
    messages: list[ImportedMessage] = []
    for line in json_lines(opened, name):
        if isinstance(line, Skipped):
            yield line
        elif message := _message(line, named):
            messages.append(message)
    time = opened.modified(name)
    if "subagents" in path.parts:  # its questions are the program's
        yield Skipped(line_of(name), OF_A_SUBAGENT)
    elif found := conversation(path.stem, "", messages, created=time, updated=time, named=named):
        yield found


def _message(line: Record, named: Counter[str]) -> ImportedMessage | None:
    role, message = role_of(line.get("role")), line.record("message")
    blocks = message.records("content")
    named.update(filter(None, (_HIDDEN.get(each.line("type")) for each in blocks)))
    text = paragraphs([message.text("content"), *(each.text("text") for each in blocks)])
    if role == "user" and (queries := _QUERY.findall(text)):
        text = paragraphs(queries)
    return ImportedMessage(role, text) if role and text else None


SOURCE = log_source("Cursor", "cursor-agent", _is_log, _session)
