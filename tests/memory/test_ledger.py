"""The ledger: every message is pending, archived, or dropped for a reason; or the audit says so."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.archive import ARCHIVE, Archive
from kbtui.memory.records.cursors import Cursors
from kbtui.memory.records.ledger import DROP_REASONS, Ledger, drop_reason
from kbtui.memory.records.ranges import count, holds, merged, ranges_of, read_range
from kbtui.memory.records.tombstones import Tombstones
from kbtui.models.port import ToolCall
from kbtui.sessions.store import SessionStore
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.sessions.store import Session
    from kbtui.workspace.layout import Workspace


@dataclass
class Said:
    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = field(default=())


@pytest.fixture
def ledger(sessions: SessionStore, archive: Archive, history: History) -> Ledger:
    return Ledger(sessions, archive, history, Tombstones(archive.workspace, history))


@pytest.fixture
def session(sessions: SessionStore) -> Session:
    return sessions.create()


def talk(session: Session, turns: int) -> None:
    for turn in range(turns):
        session.append("user", f"question {len(session.messages)} of turn {turn}")
        session.append("assistant", f"answer {len(session.messages)} of turn {turn}")


def store(
    history: History,
    archive: Archive,
    session: Session,
    messages: tuple[int, int],
    dropped: list[tuple[int, str]] | None = None,
) -> None:
    with history.change(Actor.CONSOLIDATOR, "condensed") as change:
        archive.stage(
            change,
            "Something was said.",
            session=session.id,
            messages=messages,
            timestamp="2026-03-06 10:00",
            dropped=dropped or (),
        )


def test_a_fresh_session_is_pending_until_it_is_archived(
    ledger: Ledger, history: History, archive: Archive, session: Session
) -> None:
    assert ledger.pending(session.id) is None
    talk(session, 3)
    assert ledger.pending(session.id) == (1, 6)
    store(history, archive, session, (1, 4))
    assert ledger.pending(session.id) == (5, 6)
    store(history, archive, session, (5, 6))
    assert ledger.pending(session.id) is None


def test_the_audit_has_the_promised_shape(
    ledger: Ledger, history: History, archive: Archive, session: Session
) -> None:
    talk(session, 3)
    store(history, archive, session, (1, 4), [(2, "tool noise")])
    audit = ledger.account().as_json()
    json.dumps(audit)
    assert {key: value for key, value in audit.items() if key != "details"} == {
        "sessions": 1,
        "messages": 6,
        "pending": 2,
        "archived": 3,
        "dropped": 1,
        "unaccounted": 0,
        "in_entries": 0,
        "not_grounded": 0,
    }
    assert audit["details"] == [
        {
            "session": session.id,
            "count": 6,
            "pending": [[5, 6]],
            "archived": [
                {"cursor": 1, "messages": [1, 1]},
                {"cursor": 1, "messages": [3, 4]},
            ],
            "dropped": [{"message": 2, "reason": "tool noise"}],
        }
    ]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Said("user", "hello"), None),
        (Said("assistant", "hi"), None),
        (Said("user", " \n"), "empty"),
        (Said("assistant", ""), "empty"),
        (Said("assistant", "", (ToolCall("1", "grep", "{}"),)), "tool noise"),
        (Said("assistant", "Let me look.", (ToolCall("1", "grep", "{}"),)), None),
        (Said("tool", "42 hits"), "tool noise"),
        (Said("user", "/new"), "command"),
        (Said("user", "/dream-log abc"), "command"),
        (Said("user", "/remember my cat is called Tom"), None),
        (Said("user", "/etc is full, what now?"), None),
        (Said("user", "/newest first, please"), None),
        (Said("assistant", "/new starts a session"), None),
    ],
)
def test_why_a_message_is_dropped(message: Said, reason: str | None) -> None:
    assert drop_reason(message, set()) == reason
    assert reason is None or reason in DROP_REASONS


def test_only_what_is_long_enough_to_mean_itself_is_a_duplicate() -> None:
    long = "Please summarise the notes of the meeting with Alice."
    seen: set[str] = set()
    assert drop_reason(Said("user", long), seen) is None
    assert drop_reason(Said("assistant", long), seen) is None
    assert drop_reason(Said("user", f" {long}\n"), seen) == "exact duplicate"
    assert [drop_reason(Said("user", "Yes."), seen) for _ in range(2)] == [None, None]


def test_what_was_passed_over_is_unaccounted_and_named(
    ledger: Ledger, history: History, archive: Archive, session: Session
) -> None:
    talk(session, 4)
    store(history, archive, session, (1, 2))
    store(history, archive, session, (5, 6))
    audit = ledger.account()
    assert (audit.unaccounted, audit.pending) == (2, 2)
    assert audit.details[0]["unaccounted"] == [[3, 4]]
    assert ledger.pending(session.id) == (3, 4), "the next run makes it good"


def test_what_was_taken_back_is_dropped_as_forgotten(ledger: Ledger, session: Session) -> None:
    talk(session, 2)
    session.rewind(2)
    session.append("user", "something else")
    audit = ledger.account()
    assert audit.messages == 5
    assert audit.pending == 3
    assert audit.details[0]["dropped"] == [
        {"message": 3, "reason": "forgotten"},
        {"message": 4, "reason": "forgotten"},
    ]
    assert ledger.pending(session.id) == (1, 5)


def test_what_was_taken_back_and_said_again_is_no_duplicate(
    ledger: Ledger, session: Session
) -> None:
    session.append("user", "Please summarise the notes of the meeting with Alice.")
    session.rewind(0)
    session.append("user", "Please summarise the notes of the meeting with Alice.")
    audit = ledger.account()
    assert (audit.pending, audit.dropped) == (1, 1)


def test_a_line_that_cannot_be_read_is_unaccounted(
    workspace: Workspace, ledger: Ledger, sessions: SessionStore, session: Session
) -> None:
    talk(session, 2)
    sessions.close()
    file = workspace.sessions / f"{session.id}.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[2] = b"garbage\n"
    file.write_bytes(b"".join(lines) + b"\xff\xff\n")
    account = ledger.account()
    assert (account.messages, account.unaccounted, account.pending) == (5, 2, 3)
    assert account.details[0]["problems"] == ["line 3 can't be read", "line 6 can't be read"]
    assert account.details[0]["unaccounted"] == [[2, 2]]


@pytest.mark.parametrize("begins", ["-5", "0", "true", '"2"', "null", "1e9", "7"])
def test_a_beginning_that_is_no_number_of_a_message_adds_none(
    workspace: Workspace, ledger: Ledger, begins: str
) -> None:
    said = '{"id": 1, "role": "user", "content": "The kestrel nests in the tower."}'
    file = workspace.sessions / "came.jsonl"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'{{"kind": "session", "begins": {begins}}}\n{said}\n')
    audit = ledger.account()
    assert (audit.messages, audit.pending, audit.unaccounted) == (1, 1, 0)


def test_a_line_cut_by_a_crash_was_never_said_and_is_reported(
    workspace: Workspace, ledger: Ledger, sessions: SessionStore, session: Session
) -> None:
    talk(session, 1)
    sessions.close()
    with (workspace.sessions / f"{session.id}.jsonl").open("ab") as file:
        file.write(b'{"id": 3, "role": "us')
    audit = ledger.account()
    assert (audit.messages, audit.pending, audit.unaccounted) == (2, 2, 0)
    assert "cut short" in audit.details[0]["problems"][0]


def test_a_lost_archive_leaves_nothing_unaccounted(
    workspace: Workspace, ledger: Ledger, history: History, archive: Archive, session: Session
) -> None:
    talk(session, 2)
    store(history, archive, session, (1, 4))
    (workspace.root / ARCHIVE).unlink()
    audit = ledger.account()
    assert (audit.archived, audit.pending, audit.unaccounted) == (4, 0, 0)


def test_bad_lines_of_the_archive_are_named(workspace: Workspace, ledger: Ledger) -> None:
    (workspace.root / ARCHIVE).write_text("garbage\n")
    assert ledger.account().details == [
        {"problem": "memory/history.jsonl:1: not a JSON object: garbage"}
    ]


def test_messages_that_entries_were_written_from_are_counted(
    ledger: Ledger, history: History, session: Session
) -> None:
    talk(session, 2)
    origin = Origin(session=session.id, messages=(1, 1))
    for number in (1, 2):
        with history.change(Actor.AGENT, "told", origin) as change:
            change.write(f"knowledge/facts/fact-{number}.md", "# A fact\n")
    audit = ledger.account()
    assert audit.in_entries == 1
    assert audit.details[0]["in_entries"] == [[1, 1]]
    assert audit.pending == 4, "the words themselves are still to be archived"


ids = st.integers(1, 30)
ranges = st.lists(st.tuples(ids, ids).map(sorted).map(tuple), max_size=8)


@given(ranges)
def test_ranges_add_up(values: list[tuple[int, int]]) -> None:
    joined = merged(values)
    numbers = {n for first, last in values for n in range(first, last + 1)}
    assert {n for n in range(40) if holds(joined, n)} == numbers
    assert count(joined) == len(numbers)
    assert ranges_of(numbers) == joined
    assert all(a[1] + 1 < b[0] for a, b in pairwise(joined))


@pytest.mark.parametrize(
    "value", [None, 3, "1-2", [1], [1, 2, 3], [2, 1], [0, 1], ["1", 2], [True, 2], [1.0, 2]]
)
def test_what_is_no_range(value: Any) -> None:
    assert read_range(value) is None
    assert read_range([1, 2]) == (1, 2)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(["user", "assistant", "tool"]), ids),
        st.tuples(st.just("archive"), st.integers(1, 6), st.integers(0, 3)),
        st.tuples(st.just("rewind"), st.integers(0, 9), st.none()),
        st.tuples(st.just("lose line"), st.integers(0, 9), st.none()),
        st.tuples(st.just("tear"), st.integers(1, 60), st.none()),
    ),
    max_size=14,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps)
def test_nothing_is_lost_and_nothing_archived_twice(
    tmp_path_factory: Any, steps: list[Any]
) -> None:
    """Whatever happens to the archive's file, the sums hold and no message is archived twice."""
    machine = _Machine(tmp_path_factory.mktemp("w"))
    for name, first, second in steps:
        getattr(machine, name.replace(" ", "_"))(first, second)
        machine.check()
    while machine.ledger.pending(machine.session.id):
        machine.archive(50, 0)
    audit = machine.check()
    assert audit.pending == 0
    assert audit.unaccounted == 0


class _Machine:
    """A session, its archive, and what happens to both."""

    def __init__(self, folder: Path) -> None:
        self.workspace = create_workspace(folder / "notes")
        self.history = History(self.workspace, Scanner(self.workspace))
        self.history.open()
        self.store = SessionStore(self.workspace)
        self.session = self.store.create()
        self.written = Archive(self.workspace, self.history, "here")
        self.ledger = Ledger(
            self.store, self.written, self.history, Tombstones(self.written.workspace, self.history)
        )
        self.archived: list[int] = []

    def say(self, role: Any, number: int) -> None:
        self.session.append(role, f"this is what was said, number {number} of many things")

    def archive(self, length: int, drop: int) -> None:
        pending = self.ledger.pending(self.session.id)
        if pending is None:
            return
        first, last = pending[0], min(pending[1], pending[0] + length - 1)
        dropped = [(first + n, "tool noise") for n in range(drop) if first + n <= last]
        present = {message.id for message in self.session.messages}
        again = [n for n in range(first, last + 1) if n in present and n in self.archived]
        assert not again, f"archived twice: {again}"
        self.archived += range(first, last + 1)
        store(self.history, self.written, self.session, (first, last), dropped)

    def rewind(self, to: int, _: None) -> None:
        present = [0, *(message.id for message in self.session.messages)]
        self.session.rewind(present[to % len(present)])

    def lose_line(self, number: int, _: None) -> None:
        file = self.workspace.root / ARCHIVE
        lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
        if lines:
            del lines[number % len(lines)]
            file.write_bytes(b"".join(lines))

    def tear(self, bytes_: int, _: None) -> None:
        file = self.workspace.root / ARCHIVE
        if file.exists():
            file.write_bytes(file.read_bytes()[: -min(bytes_, file.stat().st_size)])

    def check(self) -> Any:
        audit = self.ledger.account()
        parts = audit.pending + audit.archived + audit.dropped + audit.unaccounted
        assert parts == audit.messages
        assert audit.unaccounted == 0
        return audit


def test_a_read_only_workspace_is_accounted_for_all_the_same(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path / "shared")
    with SessionStore(workspace).create() as session:
        talk(session, 1)
    locked = replace(workspace, writable=False)
    history = History(locked, Scanner(locked))
    history.open()
    archive = Archive(locked, history, "here")
    audit = Ledger(
        SessionStore(locked), archive, history, Tombstones(archive.workspace, history)
    ).account()
    assert (audit.messages, audit.pending, audit.unaccounted) == (2, 2, 0)
    assert Cursors(locked, history).seen() == {}
    assert not Tombstones(locked, history).buried("Likes tea")
    assert Inbox(locked, history).list() == []
