"""The transcript: a conversation as it is shown to a model that makes memory of it.

Never what was put into the conversation from memory: tools' results stay out, and so does a
model's reasoning. What is left out has one of the ledger's reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kbtui.memory.records.ledger import FORGOTTEN, drop_reason
from kbtui.memory.records.ranges import Range, holds
from kbtui.memory.records.usable_answers import without_thoughts
from kbtui.offline.lines import sentences
from kbtui.sessions.log_records import FORGOTTEN_MARK, SessionLog
from kbtui.sessions.slices import Unit
from kbtui.sessions.store import SessionMessage
from kbtui.text import moment

CONVERSATION = "## Conversation to Process"
_INDENT = "  "  # of a message's further lines, so that none of them can pass for a message


@dataclass(frozen=True, slots=True)
class SessionTranscript:
    """A session as it stands: what was said, and the ids of what the user has `taken_back`.

    `reasons` say by id why a message is left out. `withheld` are those of turns in which something
    was looked at that memory must not tell. `untouched`: it was imported, and nothing was said in
    it here since.
    """

    id: str
    messages: tuple[SessionMessage, ...]
    reasons: Mapping[int, str] = field(default_factory=dict)
    taken_back: frozenset[int] = frozenset()
    withheld: frozenset[int] = frozenset()
    untouched: bool = False

    def shown(self, message: SessionMessage) -> bool:
        """True if a model is shown a message at all."""
        return message.id not in self.reasons

    def withholds(self, unit: Unit) -> bool:
        """True if of a unit only what the user said may get into memory."""
        return any(each.id in self.withheld and self.shown(each) for each in unit.messages)

    def line(self, message: SessionMessage) -> str:
        """A message as a model is shown it; empty for what is left out."""
        if not self.shown(message):
            return ""
        tools = tuple(dict.fromkeys(call.name for call in message.tool_calls))
        text = self.spoken(message)
        named = f" [tools: {', '.join(tools)}]" if tools else ""
        told = text.strip().replace("\n", f"\n{_INDENT}")
        return f"[{moment(message.time)}] {message.role.upper()}{named}: {told}\n"

    @staticmethod
    def spoken(message: SessionMessage) -> str:
        """The text of a message, without a model's reasoning and what the user wants forgotten."""
        return without_thoughts(message.content.replace(FORGOTTEN_MARK, "").strip())

    def text(self, units: Iterable[Unit]) -> str:
        """All that a model is shown of some units."""
        return "".join(self.line(message) for unit in units for message in unit.messages)

    def dropped(self, first: int, last: int) -> list[tuple[int, str]]:
        """The messages of a range that are left out, with the reasons."""
        known = {**self.reasons, **dict.fromkeys(self.taken_back, FORGOTTEN)}
        return sorted((number, why) for number, why in known.items() if first <= number <= last)

    def pending(self, covered: Sequence[Range]) -> list[list[SessionMessage]]:
        """Messages that aren't archived yet, cut where archived or unreadable ones lie in between.

        A line of the log that can't be read must not end up in a range: it would count as
        archived. Parts of which nothing is shown are left to the ledger.
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
    """Read a session's log, whoever has it open.

    `withheld` says which messages memory must not tell, `forgotten` are those that the user wants
    passed over.
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
    """A function that counts what a unit costs in a prompt; it remembers what it has counted."""
    known: dict[int, int] = {}

    def cost(unit: Unit) -> int:
        if unit.first not in known:
            known[unit.first] = count(conversation.text([unit])) if conversation.text([unit]) else 0
        return known[unit.first]

    return cost


def said_by_user(messages: Iterable[SessionMessage]) -> list[tuple[datetime, str]]:
    """The words of the user and when they were said, each with the question that it answers.

    That is how a fact is known to have been stated again: "What's my favorite color?" "It's blue."
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
    """The questions in a text."""
    return [each for each in sentences(text) if each.endswith("?")]


FILE, ARCHIVE, PROBLEMS, CATALOGUE = "file", "archive", "problems", "index"
_TAGS = f"{FILE}|{ARCHIVE}|{PROBLEMS}|{CATALOGUE}"
_LIKE_TAG = re.compile(rf"^(?=</?(?:{_TAGS})\b)", re.MULTILINE | re.IGNORECASE)


def as_block(tag: str, text: str, **attributes: object) -> str:
    """Write a block between tags; attributes that are None are left out.

    A line like a tag is moved in by a blank, so nothing that was said can pass for one.
    """
    said = "".join(
        f' {name}="{_plain(str(value))}"' for name, value in attributes.items() if value is not None
    )
    whole = text if text.endswith("\n") or not text else f"{text}\n"
    return f"<{tag}{said}>\n{_LIKE_TAG.sub(' ', whole)}</{tag}>"


def _plain(value: str) -> str:
    return " ".join(value.replace('"', "'").split())
