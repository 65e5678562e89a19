"""Codex CLI: a session or a folder of sessions, in three generations of the format.

Lines with a `payload` (since autumn 2025), bare lines after a header, and before that one JSON
object with `items`. A message may be logged twice, as an event for display and as an item for the
model, and since 2026 as a completed item; a log that is resumed by another version may go on in
another notation. The items also contain user messages that the program made up.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
from kbtui.importers.port import ImportedConversation, ImportedMessage, Item, Role, Skipped
from kbtui.importers.reading import (
    OF_A_SUBAGENT,
    Record,
    Records,
    conversation,
    json_lines,
    log_source,
    paragraphs,
    record_of,
    time_of,
    unseen,
)
from kbtui.importers.trees import one_notation

_PAYLOADS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_SHOWN: dict[str, Role] = {"user_message": "user", "agent_message": "assistant"}
_COMPLETED: dict[str, Role] = {
    "usermessage": "user",
    "agentmessage": "assistant",
    "plan": "assistant",
}
"""Kinds of completed items that are shown, which are written ``AgentMessage`` or otherwise."""
_NOTATIONS = ("event", "item", "completed")
_WRAPPED = re.compile(
    r"<([a-z]+_[a-z_]+|INSTRUCTIONS|skill|permissions instructions)>.*</\1>\Z", re.DOTALL
)
_OMITTED = {"agent_reasoning": "thought", "reasoning": "thought"}
"""Records left out besides tool calls; they may be logged as an event and as an item."""
_OMITTED_TYPE = re.compile(r"\A(?:agent_reasoning|reasoning|.*_call)\Z")
_MAX_OLD = 32 << 20
_REQUEST = "## My request for Codex:"


def _is_session(records: Records) -> bool:
    lines = records[0].records("items") if len(records) == 1 else []
    return any(map(_is_line, lines or records))


def _is_line(record: Record) -> bool:
    if isinstance(record.get("payload"), dict):
        return record.get("type") in _PAYLOADS
    is_message = record.get("type") == "message" and record.get("role") in ("user", "assistant")
    kinds = (block.get("type") for block in record.records("content"))
    return is_message and any(kind in ("input_text", "output_text") for kind in kinds)


class _Session:
    def __init__(self) -> None:
        self.id = ""
        self.title = ""
        self.is_hidden = False
        self._time: Any = None
        self._logged: list[tuple[str, ImportedMessage]] = []
        self._named: dict[str, Counter[str]] = {each: Counter() for each in _NOTATIONS}

    def take(self, line: Record) -> None:
        kind, payload, time = line.get("type"), line.record("payload"), line.get("timestamp")
        if omitted := _OMITTED_TYPE.search(payload.line("type") or line.line("type")):
            notation = "event" if kind == "event_msg" else "item"
            self._named[notation][_OMITTED.get(omitted[0], "step of a tool")] += 1
        item = payload if kind == "response_item" else line
        if kind == "session_meta":
            self._take_header(payload)
        elif kind == "event_msg":
            self._take_event(payload, time)
        elif item.get("type") == "message":
            self._take_item(item, time or self._time)
        elif "type" not in line and line.get("id"):
            self.id, self._time = self.id or line.line("id"), time

    def _take_header(self, payload: Record) -> None:
        if not self.id:  # a fork repeats the header of its origin
            self.id = payload.line("id")
            self.is_hidden = "subagent" in payload.record("source")

    def conversation(self, name: str) -> ImportedConversation | None:
        """Return the conversation with each message once, or None if there is none."""
        messages = one_notation(self._logged)
        named = Counter[str]()
        for each in self._named.values():
            named |= each  # logged twice: the larger count
        named += Counter({"picture": sum(len(each.attached) for each in messages)})
        return conversation(self.id or name, self.title, messages, named=named)

    def _take_event(self, payload: Record, time: Any) -> None:
        role, text = _SHOWN.get(payload.text("type")), payload.words("message")
        if role == "user":
            lists = (payload.get("images"), payload.get("local_images"))
            images = sum(len(each) for each in lists if isinstance(each, list))
            self._add(role, _user_text(text), time, images, notation="event")
        elif role:
            self._add(role, text, time, notation="event")
        elif payload.get("type") == "item_completed":
            self._take_completed(payload.record("item"), time)
        elif payload.get("type") == "thread_name_updated":
            self.title = payload.line("thread_name") or self.title

    def _take_completed(self, item: Record, time: Any) -> None:
        """Take an item in the notation of 2026, which is an event and an item in one."""
        kind = item.text("type").lower().replace("_", "")
        role = _COMPLETED.get(kind)
        if role is None:
            self._named["completed"]["thought" if kind == "reasoning" else "step of a tool"] += 1
            return
        blocks = item.records("content")
        kinds = [block.line("type").lower() for block in blocks]
        texts = [block.words("text") for block in blocks] or [item.words("text")]
        images = sum("image" in each for each in kinds)
        text = paragraphs(map(_user_text, texts) if role == "user" else texts)
        self._add(role, text, time, images, notation="completed")

    def _take_item(self, item: Record, time: Any) -> None:
        role, blocks = item.get("role"), item.records("content")
        texts = [block.words("text") for block in blocks]
        if role == "user":
            images = sum(block.get("type") == "input_image" for block in blocks)
            self._add(role, paragraphs(map(_user_text, texts)), time, images)
        elif role == "assistant":
            self._add(role, paragraphs(texts), time)

    def _add(
        self, role: Role, text: str, time: Any, images: int = 0, *, notation: str = "item"
    ) -> None:
        if text or images:
            message = ImportedMessage(role, text, time_of(time), "", ("image",) * images)
            self._logged.append((notation, message))


def _session(opened: OpenedExport, name: str) -> Iterator[Item]:
    session, stem = _Session(), PurePosixPath(name).stem
    lines = _old_lines(opened, name) or json_lines(opened, name)
    for line in unseen(lines, _mark):
        if isinstance(line, Skipped):
            yield line
        else:
            session.take(line)
    if session.is_hidden:
        yield Skipped(line_of(name), OF_A_SUBAGENT)
    elif found := session.conversation(stem):
        yield found


def _mark(line: Record) -> object:
    """Return what a copy of a message has in common with it: some logs hold history again."""
    time, payload = line.text("timestamp"), line.record("payload")
    is_exact = "." in time and (payload.text("type") in _SHOWN or payload.get("type") == "message")
    return hash((time, line.text("type"), str(payload))) if is_exact else None  # texts are long


def _old_lines(opened: OpenedExport, name: str) -> Records:
    """Return the lines of a file in the one-object format, which is small, else none."""
    if b'"items"' not in opened.head(name) or opened.size(name) > _MAX_OLD:
        return []
    with opened.open(name) as stream, suppress(ValueError, RecursionError):
        whole = record_of(json.loads(stream.read(), strict=False))
        return [whole.record("session"), *whole.records("items")]
    return []


def _user_text(text: str) -> str:
    """Return a prompt without text added by the program, "" if all of it is."""
    if _REQUEST in text:
        return text.split(_REQUEST, 1)[1].strip()
    if text.startswith("# AGENTS.md instructions for") or _WRAPPED.match(text):
        return ""
    return text


SOURCE = log_source("Codex CLI", "codex", _is_session, _session)
