"""Evidence: the message of the user's that says what a place of a proposal would write.

It is looked for among the messages that the proposal was made from: those of its turn or slice, or
for Dream those that the archive entries condense which it had read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kbtui.errors import KbtuiError
from kbtui.history.change import Origin
from kbtui.history.places import Plan, ProposedPlace
from kbtui.memory.records.archive import Archive
from kbtui.memory.records.ranges import holds
from kbtui.offline.language import significant_terms
from kbtui.sessions.log_records import FORGOTTEN_MARK
from kbtui.sessions.store import SessionMessage, SessionStore

_MIN_SHARE = 0.5  # of the words that a place adds
_MAX_ENTRIES = 5  # archive entries of which the messages are read


@dataclass(frozen=True, slots=True)
class Evidence:
    """A message of a session, and its session's title."""

    session: str
    title: str
    message: SessionMessage


@dataclass(slots=True)
class EvidenceFinder:
    """Finds evidence; one object for one look at the inbox, as it keeps what it has read."""

    archive: Archive
    sessions: SessionStore
    _read: dict[str, tuple[str, list[SessionMessage]]] = field(default_factory=dict, init=False)

    def ordered(self, plans: Iterable[Plan]) -> tuple[Plan, ...]:
        """Return the plans with evidence for some place before those without any."""
        return tuple(sorted(plans, key=lambda plan: not self.of_plan(plan)))

    def of_plan(self, plan: Plan) -> dict[str, Evidence]:
        """Return the evidence for the places of a plan that have any, by the places' keys."""
        found = ((place.key, self.of_place(plan, place)) for place in plan.places)
        return {key: evidence for key, evidence in found if evidence is not None}

    def of_place(self, plan: Plan, place: ProposedPlace) -> Evidence | None:
        """Return the message that says most of what a place adds; of several the newest."""
        ours, theirs = (_terms(lines) for lines in (place.ours, place.theirs))
        if place.whole:
            ours = frozenset()
            texts = (file.target or file.text for file in plan.files if place in file.places)
            theirs = _terms(texts)
        wanted = theirs - ours or ours - theirs
        best, found = _MIN_SHARE * len(wanted), None
        for session, message in self._messages(plan.proposal.origin, wanted):
            shared = len(wanted & _terms([message.content]))
            if shared and shared >= best:
                best, found = shared, Evidence(session, self._read[session][0], message)
        return found

    def _messages(
        self, origin: Origin, wanted: frozenset[str]
    ) -> Iterator[tuple[str, SessionMessage]]:
        """Yield what the user said in the messages that a proposal was made from, in order."""
        for each in self._sources(origin, wanted):
            for message in self._log(each.session or ""):
                in_turn = each.turn is not None and message.turn == each.turn
                in_range = each.messages is not None and holds([each.messages], message.id)
                if message.role == "user" and (in_turn or in_range):
                    yield each.session or "", message

    def _sources(self, origin: Origin, wanted: frozenset[str]) -> Sequence[Origin]:
        if origin.session is not None:
            return [origin]
        if origin.cursor is None:
            return []
        read = [
            (len(wanted & _terms([entry.content])), entry)
            for entry in self.archive.entries()
            if entry.session is not None and entry.cursor <= origin.cursor
        ]
        near = sorted(read, key=lambda pair: -pair[0])[:_MAX_ENTRIES]
        found = [entry for shared, entry in near if shared]
        found.sort(key=lambda entry: entry.cursor)
        return [Origin(session=entry.session, messages=entry.messages) for entry in found]

    def _log(self, session: str) -> list[SessionMessage]:
        if session not in self._read:
            try:
                log = self.sessions.read_log(session)
                self._read[session] = log.shown_title, list(log.messages)
            except KbtuiError:  # it was deleted
                self._read[session] = "", []
        return self._read[session][1]


def _terms(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(significant_terms(" ".join(texts).replace(FORGOTTEN_MARK, " ")))
