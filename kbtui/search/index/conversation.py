"""Reads the messages of a session log and the records of the archive, for searching them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kbtui.sessions.log_records import FORGOTTEN_MARK, masked, read_spans
from kbtui.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPOKEN = frozenset({"user", "assistant"})
_TITLE_WIDTH = 60
_MARKS_OF_QUESTIONS = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
_SENTENCE = re.compile(
    "(?<=[.!?\N{ARABIC QUESTION MARK}])\\s+|\n+"
    "|(?<=[\N{IDEOGRAPHIC FULL STOP}\N{FULLWIDTH QUESTION MARK}\N{FULLWIDTH EXCLAMATION MARK}])"
)
_ASKS = re.compile(
    r"""(?:so |and |but |ok(?:ay)?,? |hey,? |again,? )?(?:
        (?:who|what|when|where|which|why|how|whose|whom)(?:[^\w\s]?s\b|[^\w\s]?re\b|
            (?!\s+(?:i|we|you|he|she|they|a|an)\b)(?:\s+\S+){0,4}?\s+
            (?:is|are|was|were|do|does|did|can|could|should|shall|will|would|has|have|had)\b)
        |(?:do|does|did|is|are|was|were|can|could|will|would|should|shall|has|have)\s+
            (?:i|we|you|he|she|it|they|my|our|your|his|her|their|there|this|that)\b
        |(?:wer|wie(?!\s+gesagt)|wann|wo|warum|wieso|welche[rsnm]?|wohin|woher)\s
        |(?:qui|quand|où|comment|pourquoi|combien|quién|quien|cuándo|cuando|dónde|cómo|cuál)\s+\S+\s+\S
    )""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Message:
    """Something said; `range` are the message ids it covers, `line` is where it is stored.

    `role` is ``user`` or ``assistant``; empty for a record of the archive.
    """

    line: int
    speaker: str
    time: str
    text: str
    session: str | None
    range: tuple[int, int] | None
    role: str = ""

    @property
    def day(self) -> str:
        """The day it was said on, as ``2026-03-25``; empty where that isn't known."""
        moment = _moment(self.time)
        return moment.strftime("%Y-%m-%d") if moment else ""

    @property
    def label(self) -> str:
        """Who said it and when, as people write it: ``Kim, 25 March 2026``."""
        moment = _moment(self.time)
        said = f"{moment.day} {moment:%B %Y}" if moment else self.time
        return ", ".join(part for part in (self.speaker, said) if part)


def is_question(text: str) -> bool:
    """True if a message only asks: each sentence ends with a question mark, or begins as one."""
    sentences = [part.strip() for part in _SENTENCE.split(text) if part.strip()]
    return bool(sentences) and all(
        part.endswith(_MARKS_OF_QUESTIONS) or (part[-1] not in ".!" and _ASKS.match(part))
        for part in sentences
    )


def session_name(path: str) -> str:
    """The id of the session that a log is of."""
    return path.rpartition("/")[2].removesuffix(".jsonl")


def session_messages(path: str, text: str) -> tuple[str, list[Message]]:
    """The title that a session was given, and what was said in it and not taken back since."""
    session = session_name(path)
    title = ""
    last = 0
    messages: list[Message] = []
    for line, record in _records(text):
        kind = record.get("kind") or record.get("_type")
        if kind in {None, "message"} and isinstance(record.get("role"), str):
            number = record.get("id")
            number = number if isinstance(number, int) else last + 1
            last = max(last, number)
            messages += _said(line, record, session, number)
        elif kind == "rewind" and isinstance(record.get("to_message"), int):
            messages = [m for m in messages if m.range and m.range[1] <= record["to_message"]]
        elif kind == "forget":
            messages = [*_masked(messages, record)]
        else:
            title = _text(record.get("title")) or title
    return title, messages


def _masked(messages: list[Message], record: dict[str, Any]) -> Iterator[Message]:
    """The messages without what the user wants forgotten of one; of which nothing is left, none."""
    for message in messages:
        if message.range is None or message.range[0] != record.get("message"):
            yield message
            continue
        text = masked(message.text, read_spans(record))
        if text.replace(FORGOTTEN_MARK, "").strip():
            yield replace(message, text=text)


def shown_title(path: str, title: str, messages: list[Message]) -> str:
    """The title of a session, else how it began, else its id."""
    begun = messages[0].text if messages else ""
    return title or shorten(begun, _TITLE_WIDTH) or session_name(path)


def archive_messages(text: str) -> list[Message]:
    """The records of the archive, ``memory/history.jsonl``."""
    return [
        Message(
            line,
            "",
            _text(record.get("timestamp")) or "",
            record["content"],
            _text(record.get("session")),
            _range(record.get("messages")),
        )
        for line, record in _records(text)
        if _text(record.get("content"))
    ]


def _said(line: int, record: dict[str, Any], session: str, number: int) -> Iterator[Message]:
    text = _content(record.get("content"))
    if record["role"] in _SPOKEN and text.strip():
        speaker = _text(record.get("name")) or _text(record.get("speaker")) or record["role"]
        keys = ("time", "timestamp", "ts")
        time = next((said for key in keys if (said := _text(record.get(key)))), "")
        yield Message(line, speaker, time, text, session, (number, number), record["role"])


def _content(content: Any) -> str:
    """The text of a message; of one in parts, that of its text parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


def _records(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line that holds a JSON object; a torn or foreign line is passed over."""
    for number, line in enumerate(text.split("\n"), 1):
        try:
            record = json.loads(line, object_hook=_storable) if line else None
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield number, record


def _storable(record: dict[str, Any]) -> dict[str, Any]:
    """Replace half surrogate pairs, which JSON can hold and UTF-8 can't."""
    return {
        key: value.encode("utf-8", "replace").decode()
        if isinstance(value, str) and not value.isascii()
        else value
        for key, value in record.items()
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _range(value: Any) -> tuple[int, int] | None:
    match value:
        case [int(first), int(last)]:
            return first, last
    return None


def _moment(time: str) -> datetime | None:
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        return None
