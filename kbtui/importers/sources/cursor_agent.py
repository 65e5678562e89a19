"""Cursor's ``agent-transcripts``: a log per conversation, without times.

They are JSON Lines, and in 2025 were plain text, in which a line says who speaks.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath

from kbtui.errors import UnreadableError
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
    read_each,
    role_of,
    texts_in,
)

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*(?:</user_query>|\Z)", re.DOTALL)
_SPEAKER = re.compile(r"(user|assistant):[ \t\r]*\n")
_STEP = re.compile(
    r"^\[(?:(Thinking)\](?:.+\n?)*|Tool (?:call|result)\].*(?:\n[ \t]+.*)*)", re.MULTILINE
)
"""A thought, to its blank line, and a step of a tool with what is indented below it."""
_MAX_TEXT = 32 << 20
_HIDDEN = {"thinking": "thought", "redacted_thinking": "thought", "image": "picture"}
_HIDDEN |= {"tool_use": "step of a tool"}


def _is_log(records: Records) -> bool:
    return any(
        "type" not in each and role_of(each.get("role")) and each.record("message").get("content")
        for each in records
    )


def _texts(opened: OpenedExport) -> Iterator[str]:
    """Yield the logs in plain text, of which only those in their own folder are looked into."""
    for name in opened.names:
        is_one = name.lower().endswith(".txt") and "agent-transcripts" in PurePosixPath(name).parts
        if is_one and _SPEAKER.match(opened.head(name, 64).decode("utf-8-sig", "replace")):
            yield name


def _recognises(opened: OpenedExport) -> bool:
    return _LOGS.recognises(opened) or any(True for _ in _texts(opened))


def _read(opened: OpenedExport) -> Iterator[Item]:
    yield from _LOGS.read(opened)
    yield from read_each(opened, [*_texts(opened)], _plain_session, are_known=True)


def _plain_session(opened: OpenedExport, name: str) -> Iterator[Item]:
    named = Counter[str]()
    messages: list[ImportedMessage] = []
    for who, part in _parts(opened, name):
        named.update("thought" if kind else "step of a tool" for kind in _STEP.findall(part))
        if message := _said(who, _STEP.sub("", part).strip()):
            messages.append(message)
    time, stem = opened.modified(name), PurePosixPath(name).stem
    if found := conversation(stem, "", messages, created=time, updated=time, named=named):
        yield found


def _parts(opened: OpenedExport, name: str) -> Iterator[tuple[str, str]]:
    """Yield who speaks and what they say, which begins below their name."""
    if opened.size(name) > _MAX_TEXT:
        raise UnreadableError(f"It is longer than {_MAX_TEXT >> 20} MB.")
    who, lines = "", list[str]()
    with opened.open(name) as stream:
        first = stream.readline().removeprefix(BOM_UTF8)
        for line in chain([first], iter(stream.readline, b"")):
            text = line.decode("utf-8", "replace").replace("\r\n", "\n")
            if not (speaker := _SPEAKER.match(text)):
                lines.append(text)
                continue
            if who:
                yield who, "".join(lines)
            who = speaker[1]
            lines.clear()
    if who:
        yield who, "".join(lines)


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
    message = line.record("message")
    blocks = message.records("content")
    named.update(filter(None, (_HIDDEN.get(each.line("type")) for each in blocks)))
    text = paragraphs(texts_in(message.get("content")))
    return _said(line.get("role"), text)


def _said(who: object, text: str) -> ImportedMessage | None:
    role = role_of(who)
    if role == "user" and (queries := _QUERY.findall(text)):
        text = paragraphs(queries)
    return ImportedMessage(role, text) if role and text else None


_LOGS = log_source("Cursor", "cursor-agent", _is_log, _session)
SOURCE = replace(_LOGS, recognises=_recognises, read=_read)
