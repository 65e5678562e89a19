"""Whose words a line has, whoever committed it.

Memory keeps the user's sentences as they were said, so that a machine's commit may have written a
person's own sentence. Such a line is the person's, and a machine only proposes to change it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor, Origin
from kbtui.knowledge.format.facts import normalise, plain_fact
from kbtui.memory.records.dates import without_dates
from kbtui.memory.records.ranges import holds
from kbtui.offline.lines import sentences

if TYPE_CHECKING:
    from kbtui.history.history import LineOrigin
    from kbtui.sessions.store import SessionMessage, SessionStore

_ADDED = re.compile(r"[ \t]*\[[^\]\n]*\](?!\()|^\d\d:\d\d[ \t]+")
_MIN_WORDS = 2


@dataclass(slots=True)
class OwnWords:
    """Knows whose words lines have; one object for one run, as it keeps what it has read."""

    sessions: SessionStore
    _logs: dict[str, list[SessionMessage]] = field(default_factory=dict, init=False)
    _said: dict[Origin, frozenset[str]] = field(default_factory=dict, init=False)

    def author_of(self, line: str, origin: LineOrigin) -> Actor:
        """Return who wrote a line; the user, if it is a sentence of theirs."""
        source = origin.origin
        if origin.actor.writes_human_text or source.session is None:
            return origin.actor
        told = sentences(_ADDED.sub("", without_dates(plain_fact(line))).strip(), edited=True)
        said = [normalise(each) for each in told[-1:]]
        if not said or len(said[0].split()) < _MIN_WORDS:
            return origin.actor
        key = Origin(session=source.session, messages=source.messages, turn=source.turn)
        if key not in self._said:
            self._said[key] = frozenset(self._sentences(key))
        return Actor.YOU if said[0] in self._said[key] else origin.actor

    def _sentences(self, source: Origin) -> set[str]:
        """Return the normal forms of what the user said in the messages of an origin."""
        found: set[str] = set()
        for each in self._messages(source.session or ""):
            in_turn = source.turn is not None and each.turn == source.turn
            in_range = source.messages is not None and holds([source.messages], each.id)
            if each.role == "user" and (in_turn or in_range):
                found |= sentences_said(each.content)
        return found

    def _messages(self, session: str) -> list[SessionMessage]:
        if session not in self._logs:
            try:
                self._logs[session] = list(self.sessions.read_log(session).messages)
            except KbtuiError:  # it was deleted
                self._logs[session] = []
        return self._logs[session]


def sentences_said(text: str) -> set[str]:
    """Return the normal forms of a message and of each of its sentences."""
    return {normalise(each) for each in (text, *sentences(text))}
