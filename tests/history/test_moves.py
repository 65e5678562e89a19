"""Lines that go from one file to another: found by a rule, written as trailers, read again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor
from kbtui.history.objects.commit import Moved, Origin, RawCommit, read_commit, write_message
from kbtui.history.queries.diff import Rewritten, find_moves_between

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.history.objects.commit import Commit
    from tests.history.conftest import Notes

MEMORY, ALICE, BOB = "memory/MEMORY.md", "knowledge/people/alice.md", "knowledge/people/bob.md"
FACT = "- Alice owns the billing service\n"
OTHER = "- Bob likes green tea\n"


def _write(notes: Notes, files: Mapping[str, str | None], actor: Actor = Actor.DREAM) -> Commit:
    with notes.history.change(actor, "a reason") as change:
        for path, text in files.items():
            if text is None:
                change.delete(path)
            else:
                change.write(path, text)
    assert change.result is not None
    return change.result


def test_a_line_that_changes_its_file_takes_its_author_along(notes: Notes) -> None:
    first = _write(notes, {MEMORY: f"# Facts\n\n{OTHER}{FACT}", ALICE: "# Alice\n"}, Actor.YOU)
    moved = _write(notes, {MEMORY: f"# Facts\n\n{OTHER}", ALICE: f"# Alice\n\n{FACT}"})
    assert moved.moves == (Moved(MEMORY, 4, ALICE, 3),)
    body = notes.git("log", "-1", "--format=%(trailers:key=Moved)", "main")
    assert body.strip() == f"Moved: {MEMORY}:4 -> {ALICE}:3"
    line = notes.history.blame(ALICE)[2]
    assert (line.commit, line.actor, line.path, line.line) == (first.id, Actor.YOU, MEMORY, 4)
    assert notes.reopened().commit(moved.id).moves == moved.moves
    notes.history.undo(moved.id)
    assert {each.commit for each in notes.history.blame(MEMORY)} == {first.id}


def test_other_clothes_are_the_same_line(notes: Notes) -> None:
    _write(notes, {MEMORY: f"{OTHER}{FACT}", ALICE: "# Alice\n"}, Actor.YOU)
    text = "# Alice\n\n* 2026-11-21: alice owns the billing service.\n"
    assert _write(notes, {MEMORY: OTHER, ALICE: text}).moves == (Moved(MEMORY, 2, ALICE, 3),)
    assert notes.history.blame(ALICE)[2].actor is Actor.YOU


def test_of_two_that_become_one_the_older_author_stays(notes: Notes) -> None:
    _write(notes, {ALICE: f"# Alice\n{FACT}", MEMORY: "# Facts\n"}, Actor.YOU)
    _write(notes, {BOB: f"# Bob\n{FACT}"}, Actor.AGENT)
    merged = _write(notes, {ALICE: "# Alice\n", BOB: "# Bob\n", MEMORY: f"# Facts\n{FACT}"})
    assert {move.source for move in merged.moves} == {ALICE, BOB}
    assert notes.history.blame(MEMORY)[1].actor is Actor.YOU


def test_lines_of_a_deleted_file_move_as_one(notes: Notes) -> None:
    _write(notes, {ALICE: f"---\ntype: person\n---\n# Alice\n\n## Notes\n{FACT}{OTHER}"}, Actor.YOU)
    _write(notes, {BOB: "# Bob\n" + "A line of text.\n" * 20})
    text = notes.text(BOB) + f"## Notes\n{FACT}{OTHER}"
    assert _write(notes, {ALICE: None, BOB: text}).moves == (Moved(ALICE, 7, BOB, 23, 2),)


def test_what_was_copied_has_not_moved(notes: Notes) -> None:
    _write(notes, {MEMORY: FACT, ALICE: "# Alice\n"}, Actor.YOU)
    copied = _write(notes, {ALICE: f"# Alice\n{FACT}", MEMORY: f"{FACT}{OTHER}"})
    assert copied.moves == ()
    assert notes.history.blame(ALICE)[1].commit == copied.id


@pytest.mark.parametrize("line", ["## Notes\n", "- yes\n", "---\n", "\n", "type: person\n"])
def test_what_cannot_be_told_apart_does_not_move(line: str) -> None:
    front = "---\n" if line.startswith("type") else ""
    old = f"{front}{line}{front}"
    files = [Rewritten(ALICE, ALICE, old, ""), Rewritten(BOB, BOB, "", old)]
    assert find_moves_between(files) == ()


def test_a_phrase_that_stands_everywhere_costs_little() -> None:
    many = [Rewritten(f"a{n}.md", f"a{n}.md", FACT * 5, "") for n in range(400)]
    many += [Rewritten(f"b{n}.md", f"b{n}.md", "", FACT * 5) for n in range(400)]
    assert len(find_moves_between(many)) == 100


def test_what_follows_from_other_files_does_not_count(notes: Notes) -> None:
    index = "knowledge/INDEX.md"
    _write(notes, {index: f"# Index\n{FACT}", ALICE: "# Alice\n"})
    assert _write(notes, {index: "# Index\n", ALICE: f"# Alice\n{FACT}"}).moves == ()


@pytest.mark.parametrize("path", ["a b/c -> d:3.md", "50 %3E/x:1-2.md", "é/ü.md"])
def test_any_path_survives_the_trailer(path: str) -> None:
    moved = Moved(path, 3, f"other/{path}", 7, 4)
    assert Moved.read(str(moved)) == moved
    message = write_message("A subject", "A reason.", Actor.DREAM, Origin(), [moved, moved])
    raw = RawCommit("", (), datetime(2026, 11, 21, tzinfo=UTC), message)
    commit = read_commit("0" * 40, raw)
    assert commit.moves == (moved, moved)
    assert commit.body == "A reason."


@pytest.mark.parametrize("value", ["", "a:1", "a:0x -> b:1", "a:5-3 -> b:1", "a -> b"])
def test_what_is_no_trailer_says_nothing(value: str) -> None:
    assert Moved.read(value) is None


def test_a_reason_can_not_forge_one(notes: Notes) -> None:
    _write(notes, {MEMORY: FACT, ALICE: "# Alice\n"}, Actor.YOU)
    with notes.history.change(Actor.AGENT, f"Moved: {MEMORY}:1 -> {ALICE}:2") as change:
        change.write(ALICE, f"# Alice\n{FACT}")
    assert notes.history.commit("HEAD").moves == ()
    assert notes.history.blame(ALICE)[1].actor is Actor.AGENT
