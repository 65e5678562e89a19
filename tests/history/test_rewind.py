"""Going back to before a change: everything durable as it was, and nothing that happened undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.errors import NotFoundError, UsageError
from kbtui.history.change import Actor
from kbtui.history.undo import is_exempt

if TYPE_CHECKING:
    from tests.history.conftest import Notes

ALICE, BOB = "knowledge/people/alice.md", "knowledge/people/bob.md"
MEMORY, CURSORS = "memory/MEMORY.md", "memory/cursors.json"
ARCHIVE, SHOWN = "memory/history.jsonl", "memory/HISTORY.md"


def _dreamt(notes: Notes) -> str:
    """Some history, of which a change of Dream is in the middle; its id."""
    notes.write(ALICE, "# Alice\n\nLead.\n")
    notes.write(MEMORY, "# Facts\n\n- one\n")
    with notes.history.change(Actor.CONSOLIDATOR, "condensed") as change:
        change.write(ARCHIVE, '{"cursor": 1, "content": "x"}\n')
        change.write(SHOWN, "[2026-11-21 12:00] x\n\n")
    with notes.history.change(Actor.DREAM, "dreamt") as change:
        change.write(MEMORY, "# Facts\n\n- two\n")
        change.delete(ALICE)
        change.write(BOB, "# Bob\n")
        change.write(CURSORS, '{"dream": {"here": 1}}\n')
    assert change.result is not None
    with notes.history.change(Actor.CONSOLIDATOR, "condensed") as later:
        later.write(ARCHIVE, '{"cursor": 1, "content": "x"}\n{"cursor": 2, "content": "y"}\n')
        later.write("memory/tombstones.jsonl", '{"hash": "x"}\n')
    notes.write("SOUL.md", "Be brief.\n")
    return change.result.id


def test_everything_durable_is_as_it_was_as_one_commit(notes: Notes) -> None:
    dream = _dreamt(notes)
    commit = notes.history.restore_before(dream)
    assert commit is not None
    assert commit.actor is Actor.YOU
    assert commit.body.startswith("Restored from ")
    assert dream[:10] in commit.body
    assert notes.text(MEMORY) == "# Facts\n\n- one\n"
    assert notes.text(ALICE) == "# Alice\n\nLead.\n"
    assert not notes.exists(BOB)
    assert not notes.exists("SOUL.md")
    assert notes.exists(CURSORS), "what was taken back isn't read again"
    notes.check()


def test_what_happened_stays_on_record(notes: Notes) -> None:
    notes.history.restore_before(_dreamt(notes))
    assert notes.text(ARCHIVE).count("\n") == 2
    assert notes.exists(SHOWN)
    assert notes.exists("memory/tombstones.jsonl")


def test_edits_that_nobody_had_recorded_are_recorded_first(notes: Notes) -> None:
    dream = _dreamt(notes)
    notes.put(MEMORY, "# Facts\n\n- by hand\n")
    notes.put("knowledge/topics/new.md", "# New\n")
    commit = notes.history.restore_before(dream)
    assert commit is not None
    assert commit.parent is not None
    mine = notes.history.commit(commit.parent)
    assert mine.actor is Actor.YOU
    assert notes.history.read(MEMORY, mine.id) == b"# Facts\n\n- by hand\n"
    assert notes.history.read("knowledge/topics/new.md", mine.id) == b"# New\n"
    assert not notes.exists("knowledge/topics/new.md")
    notes.check()


def test_a_restore_can_be_undone(notes: Notes) -> None:
    dream = _dreamt(notes)
    commit = notes.history.restore_before(dream)
    assert commit is not None
    notes.history.undo(commit.id)
    assert notes.text(MEMORY) == "# Facts\n\n- two\n"
    assert notes.exists(BOB)
    assert not notes.exists(ALICE)


def test_the_preview_says_what_would_change_and_changes_nothing(notes: Notes) -> None:
    dream = _dreamt(notes)
    notes.put(MEMORY, "# Facts\n\n- by hand\n")
    head = notes.history.head()
    diffs = {diff.path: diff for diff in notes.history.restore_before_preview(dream)}
    assert notes.history.head() == head
    assert set(diffs) == {MEMORY, ALICE, BOB, "SOUL.md"}
    assert (diffs[ALICE].kind, diffs[BOB].kind) == ("added", "deleted")
    lines = [(line.kind, line.text) for hunk in diffs[MEMORY].hunks for line in hunk.lines]
    assert ("-", "- by hand") in lines
    assert ("+", "- one") in lines


def test_a_second_time_there_is_nothing_to_do(notes: Notes) -> None:
    dream = _dreamt(notes)
    notes.history.restore_before(dream)
    head = notes.history.head()
    assert notes.history.restore_before(dream) is None
    assert notes.history.head() == head
    assert notes.history.restore_before_preview(dream) == ()


def test_entries_that_are_gone_come_back_unasked(notes: Notes) -> None:
    for number in range(8):
        notes.write(f"knowledge/topics/t{number}.md", f"# T{number}\n")
    last = notes.history.head()
    assert last is not None
    for number in range(7):
        notes.put(f"knowledge/topics/t{number}.md", None)
    notes.history.restore_before(last)
    assert all(notes.exists(f"knowledge/topics/t{number}.md") for number in range(7))
    assert not notes.exists("knowledge/topics/t7.md")
    notes.check()


def test_there_is_nothing_before_the_first_commit(notes: Notes) -> None:
    first = notes.write(ALICE, "# Alice\n")
    with pytest.raises(UsageError, match="first commit"):
        notes.history.restore_before(first.id)
    with pytest.raises(NotFoundError):
        notes.history.restore_before("feedface")
    assert notes.exists(ALICE)


@pytest.mark.parametrize(
    ("path", "exempt"),
    [
        ("memory/history.jsonl", True),
        ("memory/history-2025.jsonl", True),
        ("memory/history-undated.jsonl", True),
        ("memory/HISTORY.md", True),
        ("memory/HISTORY.md.bak", True),
        ("memory/tombstones.jsonl", True),
        ("knowledge/INDEX.md", True),
        ("memory/cursors.json", True),
        ("memory/MEMORY.md", False),
        ("memory/2026-11-21.md", False),
        ("knowledge/topics/history.md", False),
        ("USER.md", False),
    ],
)
def test_what_goes_back_and_what_does_not(path: str, exempt: bool) -> None:
    assert is_exempt(path) is exempt
