"""Codex CLI: a session, or a folder of them, of three generations.

Lines with a `payload` (since autumn 2025), bare lines after a first one that says what the session
is, and before that one JSON object with `items`. Messages may be told twice, as an event for people
and as an item for the model, where also what the program puts in the user's mouth stands.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from kbtui.importers.markup import line_of, words_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.port import ImportedConversation, Item, Said, Skipped, Source
from kbtui.importers.reading import (
    Records,
    conversation,
    has_log,
    json_lines,
    logs,
    mapping,
    mappings,
    read_each,
    time_of,
)

_PAYLOADS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_SHOWN = {"user_message": "user", "agent_message": "assistant"}
_WRAPPED = re.compile(
    r"<([a-z]+_[a-z_]+|INSTRUCTIONS|skill|permissions instructions)>.*</\1>\Z", re.DOTALL
)
_NAMED = {"agent_reasoning": "thought", "reasoning": "thought"}
"""What doesn't come besides calls of tools; it may be told as an event and as an item, too."""
_MOST_OLD = 32 << 20
_REQUEST = "## My request for Codex:"


def _is_session(records: Records) -> bool:
    lines = mappings(records[0].get("items")) if len(records) == 1 else []
    return any(
        (each.get("type") in _PAYLOADS and isinstance(each.get("payload"), dict))
        or (
            each.get("type") == "message"
            and each.get("role") in ("user", "assistant")
            and any(
                block.get("type") in ("input_text", "output_text")
                for block in mappings(each.get("content"))
            )
        )
        for each in lines or records
    )


class _Session:
    def __init__(self) -> None:
        self.id = ""
        self.title = ""
        self.is_hidden = False
        self._time: Any = None
        self._order: list[tuple[bool, Said]] = []
        self._named: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}

    def take(self, line: dict[str, Any]) -> None:
        """Take in the next line."""
        payload = line.get("payload")
        time, kind = line.get("timestamp"), line.get("type")
        told = line_of(mapping(payload).get("type") or kind)
        step = "step of a tool" if told.endswith("_call") else ""
        self._named[kind == "event_msg"].update(filter(None, (_NAMED.get(told, step),)))
        if not isinstance(payload, dict):
            if kind == "message":
                self._take_item(line, time or self._time)
            elif "type" not in line and line.get("id"):
                self.id, self._time = self.id or line_of(line.get("id")), time
        elif kind == "session_meta":
            if not self.id:  # a fork repeats what it came from
                self.id = line_of(payload.get("id"))
                source = payload.get("source")
                self.is_hidden = isinstance(source, dict) and "subagent" in source
        elif kind == "response_item" and payload.get("type") == "message":
            self._take_item(payload, time)
        elif kind == "event_msg":
            self._take_event(payload, time)

    def conversation(self, name: str) -> ImportedConversation | None:
        """The whole; for each side the events, which are what was shown, if there are any."""
        if self.is_hidden:
            return None
        by_events = {said.role for is_event, said in self._order if is_event}
        said = [one for is_event, one in self._order if is_event == (one.role in by_events)]
        named = self._named[True] | self._named[False]  # of what is told twice the larger number
        named += Counter({"picture": sum(len(each.attached) for each in said)})
        return conversation(self.id or name, self.title, said, named=tuple(sorted(named.items())))

    def _take_event(self, payload: dict[str, Any], time: Any) -> None:
        role = _SHOWN.get(str(payload.get("type")))
        if role == "user":
            images = [*_list(payload.get("images")), *_list(payload.get("local_images"))]
            text = _users_words(words_of(payload.get("message")))
            self._say("user", text, time, len(images), is_event=True)
        elif role:
            self._say(role, words_of(payload.get("message")), time, is_event=True)
        elif payload.get("type") == "thread_name_updated":
            self.title = line_of(payload.get("thread_name")) or self.title

    def _take_item(self, item: dict[str, Any], time: Any) -> None:
        role, blocks = item.get("role"), mappings(item.get("content"))
        texts = [words_of(block.get("text")) for block in blocks]
        images = sum(block.get("type") == "input_image" for block in blocks)
        if role == "user":
            text = "\n\n".join(filter(None, map(_users_words, texts)))
            self._say(role, text, time, images)
        elif role == "assistant":
            self._say(role, "\n\n".join(filter(None, texts)), time)

    def _say(
        self, role: Any, text: str, time: Any, images: int = 0, *, is_event: bool = False
    ) -> None:
        if text or images:
            self._order.append((is_event, Said(role, text, time_of(time), "", ("image",) * images)))


def _session(opened: OpenedExport, name: str) -> Iterator[Item]:
    session, stem = _Session(), PurePosixPath(name).stem
    lines = _old_lines(opened, name) or json_lines(opened, name)
    for line in lines:
        if isinstance(line, Skipped):
            yield line
        else:
            session.take(line)
    if found := session.conversation(stem):
        yield found


def _old_lines(opened: OpenedExport, name: str) -> Records:
    """The lines of the form that is one object; those files are small."""
    if b'"items"' not in opened.head(name) or opened.size(name) > _MOST_OLD:
        return []
    with opened.open(name) as stream, suppress(ValueError, RecursionError):
        whole = mapping(json.loads(stream.read(), strict=False))
        return [mapping(whole.get("session")), *mappings(whole.get("items"))]
    return []


def _users_words(text: str) -> str:
    """What the user said, without what the program put around it; empty if it is all its own."""
    if _REQUEST in text:
        return text.split(_REQUEST, 1)[1].strip()
    if text.startswith("# AGENTS.md instructions for") or _WRAPPED.match(text):
        return ""
    return text


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


SOURCE = Source(
    "Codex CLI",
    "codex",
    lambda opened: has_log(opened, _is_session),
    lambda opened: read_each(opened, logs(opened, _is_session), _session),
    is_alone=True,
)
