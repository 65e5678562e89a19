"""Whoever listens is told of every commit once, whichever process made it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.history.change import Actor
from kbtui.history.objects.commit import Changed

if TYPE_CHECKING:
    from kbtui.history.history import History
    from tests.history.conftest import Notes

ALICE, BOB = "knowledge/people/alice.md", "knowledge/people/bob.md"


def _told_by(history: History) -> list[Changed]:
    told: list[Changed] = []
    history.subscribe(told.append)
    return told


def _write(history: History, path: str, text: str | None, actor: Actor = Actor.MCP) -> str:
    with history.change(actor, "a reason") as change:
        if text is None:
            change.delete(path)
        else:
            change.write(path, text)
    assert change.result is not None
    return change.result.id


def test_what_another_process_recorded_is_told_when_somebody_looks(notes: Notes) -> None:
    told, other = _told_by(notes.history), notes.reopened()
    _write(other, ALICE, "one")
    newest = _write(other, BOB, "two")
    assert told == []
    notes.history.adopt(settle=0)
    assert told == [Changed(newest, (ALICE, BOB), Actor.MCP)]
    notes.history.adopt(settle=0)
    assert len(told) == 1


def test_it_is_told_before_what_is_recorded_here_and_that_only_once(notes: Notes) -> None:
    told, other = _told_by(notes.history), notes.reopened()
    foreign = _write(other, ALICE, "one")
    own = _write(notes.history, BOB, "two", Actor.YOU)
    notes.history.adopt(settle=0)
    assert told == [
        Changed(foreign, (ALICE,), Actor.MCP),
        Changed(own, (BOB,), Actor.YOU),
    ]


def test_what_came_and_went_meanwhile_is_nothing_to_tell(notes: Notes) -> None:
    told, other = _told_by(notes.history), notes.reopened()
    _write(other, ALICE, "one")
    _write(other, ALICE, None)
    notes.history.adopt(settle=0)
    assert told == []


def test_a_listener_may_look_while_a_commit_is_made(notes: Notes) -> None:
    """As the thread does that waits for outside edits; it must not tell of our own commit."""
    told = _told_by(notes.history)
    notes.history.subscribe(lambda _changed: notes.history.adopt(settle=0) and None)
    own = _write(notes.history, ALICE, "one")
    assert told == [Changed(own, (ALICE,), Actor.MCP)]
