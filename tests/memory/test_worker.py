"""The worker: memory is made in the background, put off when it can't be, and told once."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import ModelUnreachableError, UsageError, WorkspaceBusyError
from kbtui.memory.background import worker
from kbtui.memory.background.jobs import JobReport, SessionQueue, WorkerEvent
from kbtui.models.port import OfflineModel, Reply, ToolCall, Usage
from tests.memory.memory_room import SEED, START, Clock, Room, open_room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DEADLINE = 120.0


def until(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + DEADLINE
    while not is_so():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


ANSWERS = {
    "save_memory": {
        "summary": "The user told his favorite color and the languages he knows.",
        "title": "Favorite color",
        "notes": ["The user told his favorite color."],
        "facts": [{"text": "Favorite color: blue", "type": "user", "subject": ""}],
        "corrections": [],
    },
    "curate": {"edits": []},
}


class Model(OfflineModel):
    """A model with a ready answer to everything, at a price, behind a door that can be shut."""

    name = "openai/dear"  # type: ignore[assignment]

    def __init__(self, cost: float = 0.0) -> None:
        super().__init__()
        self.cost = cost
        self.is_local = cost == 0.0  # type: ignore[misc]
        self.down = False
        self.stuck = threading.Event()
        self.hangs = False
        self.calls = 0

    async def complete(self, *args: Any, **options: Any) -> Reply:
        self.calls += 1
        if self.down:
            raise ModelUnreachableError("Can't reach it.", "Start it.")
        if self.hangs:
            self.stuck.set()
            await asyncio.Event().wait()
        usage = Usage(1, 1, self.cost)
        tool = options.get("force_tool")
        if tool is None:
            return Reply("- Favorite color: blue", (), "stop", usage)
        call = ToolCall("1", tool, json.dumps(ANSWERS[tool]))
        return Reply("", (call,), "tool_calls", usage)


@dataclass
class Kept:
    """A workspace with a running worker, and what it told."""

    room: Room
    model: Model
    events: list[WorkerEvent] = field(default_factory=list)

    def told(self, kind: str, job: str = "consolidate") -> list[str]:
        return [event.text for event in self.events if (event.kind, event.job) == (kind, job)]

    @property
    def worker(self) -> Any:
        return self.room.pipeline.worker

    def let_finish(self) -> None:
        """Wait until all that was wanted is done: one thing is done after the other."""
        until(lambda: not self.worker._queue._queued)
        self.worker.submit("nothing", self._nothing).result(DEADLINE)

    async def _nothing(self) -> None:
        return

    def archived(self) -> list[int]:
        if not self.room.exists("memory/history.jsonl"):
            return []
        lines = self.room.read("memory/history.jsonl").splitlines()
        ranges = [json.loads(line)["messages"] for line in lines]
        return sorted(n for first, last in ranges for n in range(first, last + 1))


@pytest.fixture(autouse=True)
def quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for what is due twenty times a second."""
    monkeypatch.setattr(worker, "TICK_SECONDS", 0.05)


def _kept(root: Path, model: Model, *, ask_first: bool = False, **overrides: Any) -> Kept:
    room = open_room(root, Clock(), **overrides)
    registry = room.pipeline.models._registry
    registry.chat = lambda role="chat": model  # type: ignore[method-assign,assignment]
    room.pipeline.models._is_chosen = lambda role: not ask_first  # type: ignore[method-assign]
    kept = Kept(room, model)
    room.pipeline.worker.subscribe(kept.events.append)
    return kept


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = _kept(tmp_path / "notes", Model(), context={"memory_window": 6})
    yield kept
    kept.worker.close()
    kept.room.close()


def test_after_a_turn_a_long_session_is_condensed(kept: Kept) -> None:
    kept.worker.start()
    session = kept.room.talk(SEED[:4])
    kept.worker.turn_ended(session.id)
    kept.let_finish()
    assert kept.archived() == []
    kept.room.talk(SEED[4:], session.id)
    kept.worker.turn_ended(session.id)
    until(kept.archived)
    assert kept.archived() == [1, 2, 3, 4, 5, 6]
    until(lambda: any(event.outcome for event in kept.events))
    kinds = [event.kind for event in kept.events if event.job == "consolidate"]
    assert (kinds[-3:], kinds.count("progress")) == (["started", "progress", "finished"], 1)


def test_a_closed_session_is_condensed_to_its_end_and_leaves_its_notes(kept: Kept) -> None:
    session = kept.room.talk()
    kept.worker.session_closed(session.id)
    kept.worker.start()
    kept.worker.close(DEADLINE)
    assert kept.archived() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(list((kept.room.root / "memory").glob("2026-*-favorite-color.md"))) == 1
    assert kept.worker.status().state == "stopped"


def test_what_was_left_behind_is_found_at_the_next_start(kept: Kept) -> None:
    kept.room.talk()
    kept.room.clock.pass_(minutes=31)
    kept.worker.start()
    until(kept.archived)
    assert kept.archived() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_what_is_never_answered_is_condensed_when_no_answer_can_come(kept: Kept) -> None:
    kept.room.talk([(0, "user", "My favorite color is blue.")])
    kept.room.clock.pass_(minutes=6)
    kept.worker.start()
    until(lambda: kept.worker._quiet_since)
    kept.let_finish()
    assert kept.archived() == []
    kept.room.clock.pass_(minutes=10)
    until(kept.archived)


@pytest.mark.parametrize(("minutes", "files"), [(31, 0), (61, 1)])
def test_a_session_of_single_turns_ends_when_it_was_left_for_an_hour(
    tmp_path: Path, minutes: int, files: int
) -> None:
    kept = _kept(tmp_path / "notes", Model())
    session = kept.room.sessions.create("cli")
    kept.room.talk(session=session.id)
    kept.room.clock.pass_(minutes=minutes)
    assert len(kept.room.pipeline.due.abandoned(kept.room.sessions)) == files
    kept.worker.start()
    memory = kept.room.root / "memory"
    until(lambda: len(list(memory.glob("2026-*-favorite-color.md"))) == files)
    kept.let_finish()
    assert len(kept.archived()) == 8 * files
    assert len(list(memory.glob("2026-03-06.md"))) == files
    kept.worker.close()
    kept.room.close()


def test_a_later_command_condenses_what_was_left(tmp_path: Path) -> None:
    kept = _kept(tmp_path / "notes", Model())
    left = kept.room.sessions.create("cli")
    kept.room.talk(session=left.id)
    kept.room.clock.pass_(minutes=61)
    now = kept.room.sessions.create("cli")
    asyncio.run(kept.room.pipeline.consolidate_if_due(now.id, 60))
    assert kept.archived() == [1, 2, 3, 4, 5, 6, 7, 8]
    kept.room.close()


def test_compact_writes_the_days_note_as_well(kept: Kept) -> None:
    session = kept.room.talk()
    kept.worker.start()
    kept.worker.condense(session.id, everything=True).result(DEADLINE)
    assert list((kept.room.root / "memory").glob("2026-03-06.md"))


def test_switched_off_nothing_happens_by_itself_but_a_closed_session_is_kept(
    tmp_path: Path,
) -> None:
    kept = _kept(tmp_path / "notes", Model(), memory={"consolidate": False})
    session = kept.room.talk()
    kept.room.clock.pass_(days=1)
    kept.worker.start()
    kept.worker.turn_ended(session.id)
    kept.worker.session_closed(session.id)
    kept.worker.close(DEADLINE)
    assert len(kept.archived()) == 8
    assert kept.model.calls == 1, "one call condenses and sums up"
    kept.room.close()


def test_a_model_that_is_down_is_told_once_and_tried_again_later(kept: Kept) -> None:
    kept.model.down = True
    session = kept.room.talk()
    kept.worker.start()
    kept.worker.turn_ended(session.id)
    until(lambda: kept.worker.status().state == "waiting")
    assert kept.archived() == []
    calls = kept.model.calls
    kept.worker.turn_ended(session.id)
    for _ in range(3):
        kept.room.clock.pass_(minutes=31)
        until(lambda before=calls: kept.model.calls > before)
        until(lambda: kept.worker.status().state == "waiting")
        calls = kept.model.calls
    assert len(kept.told("notice")) == 1
    assert "Can't reach it" in kept.told("notice")[0]
    kept.model.down = False
    kept.room.clock.pass_(minutes=31)
    until(kept.archived)
    until(lambda: kept.worker.status().state == "idle")
    kept.model.down = True
    kept.room.talk(SEED, session.id)
    kept.worker.turn_ended(session.id)
    until(lambda: len(kept.told("notice")) == 2)


def test_a_session_that_a_defect_left_undone_is_tried_again(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_args: Any, **_options: Any) -> Reply:
        raise ValueError("a bug")

    session = kept.room.talk()
    with monkeypatch.context() as patch:
        patch.setattr(kept.model, "complete", broken)
        kept.worker.start()
        kept.worker.turn_ended(session.id)
        until(lambda: kept.worker.status().state == "waiting")
        until(lambda: kept.told("notice"))
    assert kept.worker.status().waiting == (session.id,)
    kept.room.clock.pass_(minutes=31)
    until(kept.archived)


def test_a_paid_model_that_was_only_found_is_asked_about_once(tmp_path: Path) -> None:
    quiet = {"flush": {"enabled": False}}
    kept = _kept(tmp_path / "notes", Model(0.01), ask_first=True, memory=quiet)
    session = kept.room.talk()
    kept.room.clock.pass_(minutes=31)
    kept.worker.start()
    until(lambda: kept.told("consent"))
    kept.room.clock.pass_(minutes=31)
    until(lambda: kept.worker.status().state == "waiting")
    assert kept.model.calls == 0
    assert [event.model for event in kept.events if event.kind == "consent"] == ["openai/dear"]
    assert kept.worker.status().consent == "openai/dear"
    kept.worker.agree("openai/dear", yes=True)
    until(kept.archived)
    until(lambda: kept.worker.status().consent == "")
    until(lambda: kept.worker.status().spent_usd == pytest.approx(0.01))
    assert session.id
    kept.worker.close()
    kept.room.close()


def test_a_no_is_respected_and_nothing_is_lost(tmp_path: Path) -> None:
    kept = _kept(tmp_path / "notes", Model(0.01), ask_first=True)
    kept.worker.agree("openai/dear", yes=False)
    session = kept.room.talk()
    kept.worker.session_closed(session.id)
    kept.worker.start()
    until(lambda: kept.told("notice"))
    assert kept.model.calls == 0
    assert kept.told("consent") == []
    assert kept.room.pipeline.ledger.account().pending == 8
    kept.worker.close()
    kept.room.close()


def test_the_days_cap_stops_background_work_until_tomorrow(tmp_path: Path) -> None:
    quiet = {"flush": {"enabled": False}}
    kept = _kept(tmp_path / "notes", Model(0.6), budget={"daily_usd": 1.0}, memory=quiet)
    kept.room.pipeline.budget._clock = kept.room.clock
    sessions = [kept.room.talk().id for _ in range(3)]
    kept.room.clock.pass_(minutes=31)
    kept.worker.start()
    until(lambda: kept.told("notice"))
    until(lambda: kept.worker.status().state == "waiting")
    assert kept.model.calls == 2
    assert "cap is $1.00" in kept.told("notice")[0]
    kept.room.clock.pass_(days=1)
    until(lambda: kept.model.calls >= 3)
    until(lambda: kept.room.pipeline.ledger.account().pending == 0)
    assert len(sessions) == 3
    kept.worker.close()
    kept.room.close()


def test_two_processes_condense_a_session_once(tmp_path: Path) -> None:
    one = _kept(tmp_path / "notes", Model())
    session = one.room.talk()
    one.room.sessions.close()
    two = _kept(tmp_path / "notes", Model())
    two.room.clock.now = one.room.clock.now
    for kept in (one, two):
        kept.room.clock.pass_(minutes=31)
        kept.worker.start()
    until(one.archived)

    def is_done(kept: Kept) -> bool:
        kept.room.clock.pass_(minutes=31)  # whoever found the other one at it tries again
        return not kept.worker._queue._queued and kept.worker.status().state == "idle"

    for kept in (one, two):
        until(lambda kept=kept: is_done(kept))
    assert one.archived() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert one.told("notice") == two.told("notice") == []
    assert session.id
    for kept in (one, two):
        kept.worker.close()
        kept.room.close()


def test_what_runs_can_be_cancelled_and_stays_pending(kept: Kept) -> None:
    kept.model.hangs = True
    session = kept.room.talk()
    kept.worker.start()
    kept.worker.turn_ended(session.id)
    until(kept.model.stuck.is_set)
    assert kept.worker.status().state == "working"
    kept.worker.cancel()
    until(lambda: kept.worker.status().state == "waiting")
    assert kept.archived() == []
    kept.model.hangs = False
    kept.room.clock.pass_(minutes=2)
    until(kept.archived)


def test_leaving_doesnt_wait_for_a_model_that_hangs(kept: Kept) -> None:
    kept.model.hangs = True
    session = kept.room.talk()
    kept.worker.session_closed(session.id)
    kept.worker.start()
    until(kept.model.stuck.is_set)
    kept.worker.close(0.3)
    assert kept.worker.status().state == "stopped"
    assert kept.room.pipeline.ledger.account().pending == 8
    again = _kept(kept.room.root, Model())
    again.room.clock.pass_(hours=1)
    again.worker.start()
    until(again.archived)
    again.worker.close()
    again.room.close()


def test_compact_is_answered_with_its_outcome(kept: Kept) -> None:
    session = kept.room.talk()
    kept.worker.start()
    outcome = kept.worker.condense(session.id, everything=True).result(DEADLINE)
    assert (outcome.kind, outcome.messages) == ("archived", (1, 8))
    assert any(event.kind == "progress" and event.pages == 1 for event in kept.events)


def test_a_call_that_takes_too_long_is_put_off(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbtui.memory.consolidation.ask.LONGEST_CALL_SECONDS", 0.05)
    kept.model.hangs = True
    session = kept.room.talk()
    kept.worker.start()
    outcome = kept.worker.condense(session.id, everything=True).result(DEADLINE)
    assert outcome.kind == "postponed"
    assert "took longer than" in outcome.notice


@dataclass
class Nightly:
    """A job that is due every hour."""

    clock: Clock
    name: str = "nightly"
    runs: int = 0
    last: datetime | None = None
    error: Exception | None = None

    def next_due(self, now: datetime) -> datetime | None:
        return now if self.last is None else self.last + timedelta(hours=1)

    async def run(self) -> JobReport:
        self.runs += 1
        if self.error is not None:
            raise self.error
        self.last = self.clock()
        return JobReport("Two facts were merged.", changed=True)


def test_a_job_runs_when_it_is_due_and_when_it_is_asked_for(kept: Kept) -> None:
    job = Nightly(kept.room.clock)
    kept.worker.add_job(job)
    kept.worker.start()
    until(lambda: kept.told("notice", "nightly"))
    assert (job.runs, kept.told("notice", "nightly")) == (1, ["Two facts were merged."])
    assert kept.worker.submit("nightly", job.run).result(DEADLINE).changed
    assert job.runs == 2
    kept.room.clock.pass_(hours=2)
    until(lambda: job.runs == 3)


@pytest.mark.parametrize("error", [UsageError("It can't."), ValueError("a bug")])
def test_a_job_that_fails_is_told_once_and_ends_nothing(kept: Kept, error: Exception) -> None:
    job = Nightly(kept.room.clock, error=error)
    kept.worker.add_job(job)
    kept.worker.start()
    for runs in (1, 2, 3):
        until(lambda runs=runs: job.runs == runs)
        until(lambda: kept.worker.status().state == "idle")
        kept.room.clock.pass_(minutes=2)
    until(lambda: kept.told("notice", "nightly"))
    assert len(kept.told("notice", "nightly")) == 1
    session = kept.room.talk()
    kept.worker.session_closed(session.id)
    until(kept.archived)


def test_the_queue_puts_off_and_prefers_what_is_closing() -> None:
    queue = SessionQueue()
    queue.enqueue("a")
    queue.enqueue("b", closing=True)
    queue.enqueue("a")
    first = queue.dequeue(START)
    assert first is not None
    assert (first.session, first.closing) == ("b", True)
    queue.defer(first, ModelUnreachableError("x"), START)
    assert queue.waiting == ("b",)
    second = queue.dequeue(START)
    assert second is not None
    assert second.session == "a"
    assert queue.dequeue(START) is None
    queue.enqueue("b")
    assert queue.dequeue(START) is None, "put off stays put off"
    again = queue.dequeue(START + timedelta(minutes=1))
    assert again is not None
    assert (again.session, again.closing, again.tries) == ("b", True, 1)
    queue.defer(again, WorkspaceBusyError("x"), START)
    assert queue._queued["b"].not_before == START + timedelta(seconds=15)
    queue.retry_now()
    assert queue.dequeue(START) is not None


def test_pauses_grow_up_to_half_an_hour() -> None:
    queue = SessionQueue()
    queue.enqueue("a")
    now = START
    pauses = []
    for _ in range(8):
        wanted = queue.dequeue(now)
        assert wanted is not None
        queue.defer(wanted, ModelUnreachableError("x"), now)
        later = queue._queued["a"].not_before
        assert later is not None
        pauses.append((later - now).total_seconds() / 60)
        now = later
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
