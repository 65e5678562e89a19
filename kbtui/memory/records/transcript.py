"""The transcript: a conversation as shown to a model that makes memory of it.

It excludes everything that came from memory: tool results are left out, and so is a model's
reasoning. Whatever is left out has one of the ledger's reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kbtui.memory.records.ledger import FORGOTTEN, drop_reason
from kbtui.memory.records.ranges import Range, holds
from kbtui.offline.lines import sentences
from kbtui.sessions.log_records import FORGOTTEN_MARK, SessionLog
from kbtui.sessions.slices import Unit
from kbtui.sessions.store import SessionMessage
from kbtui.text import moment

CONVERSATION = "## Conversation to Process"
_INDENT = "  "  # of a message's further lines, so that none can pass for a message


@dataclass(frozen=True, slots=True)
class SessionTranscript:
    """A session's messages as they stand, and the ids that the user has `taken_back`.

    `reasons` gives by id why a message is left out. `withheld` are the messages of turns that
    looked at something memory must not tell. `untouched`: the session was imported and not
    continued here.
    """

    id: str
    messages: tuple[SessionMessage, ...]
    reasons: Mapping[int, str] = field(default_factory=dict)
    taken_back: frozenset[int] = frozenset()
    withheld: frozenset[int] = frozenset()
    untouched: bool = False

    def shown(self, message: SessionMessage) -> bool:
        """Return whether a model is shown a message."""
        return message.id not in self.reasons

    def withholds(self, unit: Unit) -> bool:
        """Return whether only the user's own words of a unit may get into memory."""
        return any(each.id in self.withheld and self.shown(each) for each in unit.messages)

    def line(self, message: SessionMessage) -> str:
        """Return a message as a model is shown it, or "" if it is left out."""
        if not self.shown(message):
            return ""
        tools = tuple(dict.fromkeys(call.name for call in message.tool_calls))
        text = self.spoken(message)
        named = f" [tools: {', '.join(tools)}]" if tools else ""
        content = text.strip().replace("\n", f"\n{_INDENT}")
        return f"[{moment(message.time)}] {message.role.upper()}{named}: {content}\n"

    @staticmethod
    def spoken(message: SessionMessage) -> str:
        """Return a message's text without a model's reasoning and the forgotten parts."""
        text = message.content.replace(FORGOTTEN_MARK, "").strip()
        if message.role != "assistant":
            return text
        # Whoever answers without a model loads this module, too, and has none to read.
        from kbtui.models.dialects import without_thoughts

        return without_thoughts(text)

    def text(self, units: Iterable[Unit]) -> str:
        """Return the text of some units as a model is shown it."""
        return "".join(self.line(message) for unit in units for message in unit.messages)

    def dropped(self, first: int, last: int) -> list[tuple[int, str]]:
        """Return the messages of a range that are left out, each with its reason."""
        known = {**self.reasons, **dict.fromkeys(self.taken_back, FORGOTTEN)}
        return sorted((number, why) for number, why in known.items() if first <= number <= last)

    def pending(self, covered: Sequence[Range]) -> list[list[SessionMessage]]:
        """Return the messages to be archived, split at archived or unreadable ones in between.

        An unreadable line of the log must not end up in a range, where it would count as archived.
        Parts of which nothing is shown are left to the ledger.
        """
        parts: list[list[SessionMessage]] = []
        last = None
        for message in self.messages:
            if holds(covered, message.id):
                continue
            between = range((last or 0) + 1, message.id)
            if last is None or any(number not in self.taken_back for number in between):
                parts.append([])
            parts[-1].append(message)
            last = message.id
        return [part for part in parts if any(map(self.shown, part))]


def read_conversation(
    session_id: str,
    records: Iterable[Mapping[str, object]],
    withheld: Callable[[Sequence[SessionMessage]], frozenset[int]] = lambda _messages: frozenset(),
    forgotten: Sequence[Range] = (),
) -> SessionTranscript:
    """Read a session's log into a transcript.

    `withheld` returns the messages that memory must not tell; `forgotten` are the ranges that the
    user wants skipped.
    """
    log = SessionLog()
    known: set[int] = set()
    for record in records:
        log.add(record)
        known.update(message.id for message in log.messages[-1:])
    seen: set[str] = set()
    reasons = {
        message.id: FORGOTTEN if holds(forgotten, message.id) else drop_reason(message, seen)
        for message in log.messages
    }
    return SessionTranscript(
        session_id,
        tuple(log.messages),
        {number: why for number, why in reasons.items() if why is not None},
        frozenset(known - reasons.keys()),
        withheld(log.messages),
        log.untouched,
    )


def tokens_of(
    conversation: SessionTranscript, count: Callable[[str], int]
) -> Callable[[Unit], int]:
    """Return a cached function for the number of tokens that a unit takes in a prompt."""
    known: dict[int, int] = {}

    def cost(unit: Unit) -> int:
        if unit.first not in known:
            known[unit.first] = count(conversation.text([unit])) if conversation.text([unit]) else 0
        return known[unit.first]

    return cost


def said_by_user(messages: Iterable[SessionMessage]) -> list[tuple[datetime, str]]:
    """Return the user's messages with their times, each prefixed with the question it answers.

    That shows when a fact has been stated again: "What's my favorite color?" "It's blue."
    """
    said: list[tuple[datetime, str]] = []
    asked = ""
    for message in messages:
        if message.role == "user":
            said.append((message.time, f"{asked} {message.content}".strip()))
        if message.is_said:
            asked = " ".join(questions_in(message.content))
    return said


def questions_in(text: str) -> list[str]:
    """Return the questions in a text."""
    return [each for each in sentences(text) if each.endswith("?")]


FILE, ARCHIVE, PROBLEMS, CATALOGUE = "file", "archive", "problems", "index"
_TAGS = f"{FILE}|{ARCHIVE}|{PROBLEMS}|{CATALOGUE}"
_LIKE_TAG = re.compile(rf"^(?=</?(?:{_TAGS})\b)", re.MULTILINE | re.IGNORECASE)


def as_block(tag: str, text: str, **attributes: object) -> str:
    """Wrap a text in a tag with attributes, without those that are None.

    A line that looks like a tag is indented by a blank, so nothing that was said can pass for one.
    """
    given = {name: str(value) for name, value in attributes.items() if value is not None}
    plain = {name: " ".join(value.replace('"', "'").split()) for name, value in given.items()}
    said = "".join(f' {name}="{value}"' for name, value in plain.items())
    whole = text if text.endswith("\n") or not text else f"{text}\n"
    return f"<{tag}{said}>\n{_LIKE_TAG.sub(' ', whole)}</{tag}>"
