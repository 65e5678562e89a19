"""The ledger: what became of every message, derived from the logs instead of counted.

A message is archived (in the range of an archive entry), dropped for one of five reasons, or
pending. One that precedes an archived message without being either was skipped: it is unaccounted
for, as is a line of a session log that can't be read.
"""

from __future__ import annotations

import glob
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from kbtui.history.history import History
from kbtui.memory.records.archive import Archive, Holding
from kbtui.memory.records.ranges import Range, count, holds, merged, ranges_of
from kbtui.memory.records.tombstones import Tombstones
from kbtui.sessions.log_records import FORGOTTEN_MARK, SessionLog, SessionMessage
from kbtui.sessions.store import SessionStore
from kbtui.workspace.jsonl import read_lines

DROP_REASONS = ("empty", "command", "tool noise", "exact duplicate", "forgotten")
EMPTY, COMMAND, TOOL_NOISE, DUPLICATE, FORGOTTEN = DROP_REASONS
# nanobot's commands; kbtui's own never enter a conversation.
_COMMANDS = re.compile(r"/(?:help|new|dream(?:-log|-restore)?|stop|restart|status)(?!\S)")
# Shorter messages depend on what they answer: a second "Yes." isn't a duplicate.
_MIN_DUPLICATE = 40
_KNOWLEDGE = "knowledge"


class _MessageLike(Protocol):
    @property
    def role(self) -> str: ...
    @property
    def content(self) -> str: ...


def drop_reason(message: _MessageLike, seen: set[str]) -> str | None:
    """Return why a message needs no archiving, or None if it does; add it to `seen`."""
    text = " ".join(message.content.split())
    if FORGOTTEN_MARK in text and not text.replace(FORGOTTEN_MARK, "").strip():
        return FORGOTTEN
    if message.role in ("tool", "system"):
        return TOOL_NOISE
    if not text:
        return TOOL_NOISE if getattr(message, "tool_calls", ()) else EMPTY
    if message.role == "user" and _COMMANDS.match(text):
        return COMMAND
    fingerprint = f"{message.role}:{text}"
    if len(text) >= _MIN_DUPLICATE:
        if fingerprint in seen:
            return DUPLICATE
        seen.add(fingerprint)
    return None


@dataclass(frozen=True, slots=True)
class SessionAccount:
    """What became of the messages of one session, as ranges of ids.

    `archived` are (cursor, range), `dropped` (id, reason). `unreadable` counts the log's unreadable
    lines whose ids are unknown. `not_grounded` are lines that a model wanted to write about the
    session although nobody had said them.
    """

    session: str
    messages: int
    pending: tuple[Range, ...] = ()
    archived: tuple[tuple[int, Range], ...] = ()
    dropped: tuple[tuple[int, str], ...] = ()
    unaccounted: tuple[Range, ...] = ()
    in_entries: tuple[Range, ...] = ()
    unreadable: int = 0
    not_grounded: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the account as JSON values, without empty ones."""
        values: dict[str, Any] = {
            "pending": [list(each) for each in self.pending],
            "archived": [
                {"cursor": cursor, "messages": list(each)} for cursor, each in self.archived
            ],
            "dropped": [{"message": number, "reason": why} for number, why in self.dropped],
            "unaccounted": [list(each) for each in self.unaccounted],
            "unreadable": self.unreadable,
            "in_entries": [list(each) for each in self.in_entries],
            "not_grounded": list(self.not_grounded),
            "problems": list(self.problems),
        }
        kept = {key: value for key, value in values.items() if value}
        return {"session": self.session, "count": self.messages, **kept}


@dataclass(frozen=True, slots=True)
class Audit:
    """The totals over all sessions, in messages, and the accounts they are made of.

    `not_grounded` counts the lines left unwritten because nobody had said them; `by_dream` are
    those that Dream wanted to write.
    """

    sessions: int
    messages: int
    pending: int
    archived: int
    dropped: int
    unaccounted: int
    in_entries: int = 0
    not_grounded: int = 0
    by_dream: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    accounts: tuple[SessionAccount, ...] = field(default=(), repr=False)

    @property
    def details(self) -> list[dict[str, Any]]:
        """One item per session, one for Dream, and one for each problem outside of sessions."""
        return [
            *(account.as_json() for account in self.accounts),
            *([{"dream": True, "not_grounded": list(self.by_dream)}] if self.by_dream else []),
            *({"problem": problem} for problem in self.problems),
        ]

    @property
    def sums(self) -> list[tuple[str, int, str]]:
        """Each total with its name, and a description of what it counts."""
        return [
            ("sessions", self.sessions, ""),
            ("messages", self.messages, ""),
            ("archived", self.archived, "condensed into the archive, or kept there whole"),
            ("dropped", self.dropped, "steps of tools, empty, commands, said before, taken back"),
            ("pending", self.pending, "not condensed yet"),
            ("unaccounted", self.unaccounted, "should be 0"),
            ("in entries", self.in_entries, "of all these, entries were written from so many"),
            ("not grounded", self.not_grounded, "lines of a model's that nobody had said"),
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the output of ``kbtui audit --json``."""
        sums = (
            "sessions messages pending archived dropped unaccounted in_entries not_grounded details"
        )
        return {name: getattr(self, name) for name in sums.split()}


@dataclass(eq=False)
class Ledger:
    """Accounts for messages using the session logs, the archive and the log of commits."""

    sessions: SessionStore
    archive: Archive
    history: History
    tombstones: Tombstones

    def pending(self, session_id: str, *, by_model: bool = False) -> Range | None:
        """Return the first range of messages that aren't archived, or None if all are.

        It includes messages that will be dropped: dropping is up to the Consolidator. With
        `by_model`, archived messages that no model has condensed count as pending too.
        """
        covered = self.archive.covered(session_id, by_model=by_model)
        first = last = None
        for message in self.sessions.read(session_id):
            if not holds(covered, message.id):
                first = first or message.id
                last = message.id
            elif first is not None:
                break
        return (first, last) if first is not None and last is not None else None

    def account(self) -> Audit:
        """Account for every message of every session."""
        written = self._entry_sources()
        holdings = self.archive.all_holdings()
        not_grounded = self._not_grounded()
        accounts = tuple(
            replace(
                self._account(info.id, holdings.get(info.id, []), written.get(info.id, [])),
                not_grounded=tuple(not_grounded.get(info.id, ())),
            )
            for info in sorted(self.sessions.list(), key=lambda info: info.id)
        )
        return Audit(
            sessions=len(accounts),
            messages=sum(account.messages for account in accounts),
            pending=sum(count(account.pending) for account in accounts),
            archived=sum(count(each for _, each in account.archived) for account in accounts),
            dropped=sum(len(account.dropped) for account in accounts),
            unaccounted=sum(
                count(account.unaccounted) + account.unreadable for account in accounts
            ),
            in_entries=sum(count(account.in_entries) for account in accounts),
            not_grounded=sum(map(len, not_grounded.values())),
            by_dream=tuple(not_grounded.get(None, ())),
            problems=(
                *(
                    f"{name} can't be read: {why}."
                    for name, why in self.sessions.unreadable.items()
                ),
                *map(str, self.archive.problems()),
            ),
            accounts=accounts,
        )

    def _account(
        self, session_id: str, holdings: list[Holding], written: list[Range]
    ) -> SessionAccount:
        log = _FullLog(self.archive.workspace.sessions / f"{session_id}.jsonl")
        newest = max((holding.messages[1] for holding in holdings), default=0)
        pending: list[int] = []
        lost: list[int] = []
        dropped: dict[int, str] = {}
        archived: defaultdict[int, list[int]] = defaultdict(list)
        reasons = _drop_reasons(log, self.tombstones.dropped(session_id))
        for number in range(log.first_id, log.last_id + 1):
            holding = next((each for each in holdings if each.holds(number)), None)
            why = (holding.dropped if holding is not None else reasons).get(number)
            if why is not None:
                dropped[number] = why
            elif holding is not None:
                archived[holding.cursor].append(number)
            else:
                is_lost = number not in log.messages or number < newest
                (lost if is_lost else pending).append(number)
        numbers = log.last_id - log.first_id + 1
        unreadable = max(0, log.bad - (numbers - len(log.messages)))
        return SessionAccount(
            session_id,
            numbers + unreadable,
            pending=tuple(ranges_of(pending)),
            archived=tuple((c, each) for c in sorted(archived) for each in ranges_of(archived[c])),
            dropped=tuple(dropped.items()),
            unaccounted=tuple(ranges_of(lost)),
            in_entries=tuple(merged(written)),
            unreadable=unreadable,
            problems=log.problems,
        )

    def _not_grounded(self) -> dict[str | None, list[str]]:
        """Return the lines left unwritten as nobody had said them, by session; Dream's by None."""
        found: dict[str | None, list[str]] = {}
        for entry in self.archive.entries():
            if entry.not_grounded:
                found.setdefault(entry.session, []).extend(entry.not_grounded)
        return found

    def _entry_sources(self) -> dict[str, list[Range]]:
        """Return the message ranges of each session that entries were written from."""
        written: dict[str, list[Range]] = {}
        for commit in self.history.log(_KNOWLEDGE):
            origin = commit.origin
            if origin.session and origin.messages:
                written.setdefault(origin.session, []).append(origin.messages)
        return written


class _FullLog:
    """Everything a session's file ever held, including what was taken back."""

    def __init__(self, file: Path) -> None:
        lines = read_lines(file)
        log = SessionLog()
        self.messages: dict[int, SessionMessage] = {}
        for record in lines.records:
            log.add(record)
            if log.messages:
                self.messages.setdefault(log.messages[-1].id, log.messages[-1])
        begins = next((record.get("begins") for record in lines.records), None)
        first = begins if isinstance(begins, int) else 1  # of a session that diverged
        self.first_id = max(1, min((first, *self.messages)))
        self.last_id = log.last_id
        self.taken_back = self.messages.keys() - {message.id for message in log.messages}
        self.bad = len(lines.bad)
        self.problems = (
            *(f"line {line.number} can't be read" for line in lines.bad),
            *(
                f"{torn.name} holds a line cut short"
                for torn in sorted(file.parent.glob(f"{glob.escape(file.name)}.torn-*"))
            ),
        )


def _drop_reasons(log: _FullLog, forgotten: list[Range]) -> dict[int, str]:
    """Return why messages are dropped regardless of the archive, by id."""
    seen: set[str] = set()
    found = dict.fromkeys(log.taken_back, FORGOTTEN)
    for number, message in sorted(log.messages.items()):
        if number in found:
            continue
        reason = drop_reason(message, seen)
        if holds(forgotten, number):
            found[number] = FORGOTTEN
        elif reason is not None:
            found[number] = reason
    return found
