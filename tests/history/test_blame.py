"""Who wrote a line: checked against an independent model, and against git where both mean one."""

from __future__ import annotations

import os
import random
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor, Origin
from kbtui.history.objects.commit import encode_commit
from kbtui.history.objects.trees import git_object, update_tree
from kbtui.history.queries.matching import match_lines
from tests.history.blame_model import Model
from tests.patience import be_like_users

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kbtui.history.history import History
    from tests.history.conftest import Notes

SEEDS = range(60 if os.environ.get("KBTUI_LONG") else 2)
STEPS = 60 if os.environ.get("KBTUI_LONG") else 30
NOTE = "knowledge/topics/note.md"
OTHER = "knowledge/topics/other.md"


@pytest.mark.parametrize("seed", SEEDS)
def test_it_says_what_an_independent_model_says(notes: Notes, seed: int) -> None:
    model = Model(notes.history, seed)
    for number in range(STEPS):
        model.step()
        if number % 6 == 5:
            _check(notes.history, model, "HEAD")
            for path, lines in model.files.items():
                assert _commits(notes.history, path) == [model.origins[line] for line in lines]
    again = notes.reopened()
    _check(again, model, "HEAD")
    for rev, state in model.random.sample(model.snapshots, 8):
        for path, known in state.items():
            assert _commits(again, path, rev) == [commit for _, commit in known], (path, rev)


def _check(history: History, model: Model, rev: str) -> None:
    _, state = model.snapshots[-1]
    for path, lines in state.items():
        assert _commits(history, path, rev) == [commit for _, commit in lines], path


def _commits(history: History, path: str, at: str | None = None) -> list[str | None]:
    return [origin.commit for origin in history.blame(path, at)]


def test_it_agrees_with_git_where_lines_are_appended_and_replaced(notes: Notes) -> None:
    rng = random.Random(5)
    lines = [f"line {number}" for number in range(40)]
    for version in range(12):
        lines[rng.randrange(len(lines))] = f"changed in {version}"
        lines.append(f"added in {version}")
        notes.write(NOTE, "\n".join(lines) + "\n")
    found = notes.git("blame", "--porcelain", "main", "--", NOTE)
    theirs = re.findall(r"^([0-9a-f]{40}) \d+ (\d+)", found, re.MULTILINE)
    assert [(each.commit, str(n)) for n, each in enumerate(notes.history.blame(NOTE), 1)] == theirs


def test_a_line_knows_where_it_comes_from(notes: Notes) -> None:
    notes.write(NOTE, "one line\n")
    commit = notes.write(
        NOTE, "one line\nanother line\n", Actor.AGENT, session="s", messages=(3, 5), turn="t"
    )
    line = notes.history.blame(NOTE)[1]
    assert (line.commit, line.actor, line.time) == (commit.id, Actor.AGENT, commit.time)
    assert (line.origin.session, line.origin.messages, line.origin.turn) == ("s", (3, 5), "t")
    assert (line.path, line.line) == (NOTE, 2)


def test_what_is_not_recorded_yet_is_the_users(notes: Notes) -> None:
    commit = notes.write(NOTE, "one line\n", Actor.DREAM)
    notes.put(NOTE, "a new line\none line\n")
    first, second = notes.history.blame(NOTE)
    assert (first.commit, first.actor, first.time) == (None, Actor.YOU, None)
    assert second.commit == commit.id
    assert [line.commit for line in notes.history.blame(OTHER, text="a\nb")] == [None, None]


def test_only_a_line_feed_ends_a_line_and_its_kind_changes_nobody(notes: Notes) -> None:
    first = notes.write(NOTE, "a\x0bb\u2028c\nsecond\n", Actor.AGENT)
    notes.write(NOTE, "a\x0bb\u2028c\r\nsecond\r\nthird\r\n")
    found = notes.history.blame(NOTE)
    assert [line.commit == first.id for line in found] == [True, True, False]


def test_what_is_not_there_is_said_so(notes: Notes) -> None:
    notes.write(NOTE, "one line\n")
    with pytest.raises(NotFoundError):
        notes.history.blame(OTHER)
    with pytest.raises(NotFoundError):
        notes.history.blame(OTHER, "HEAD")


def test_a_line_that_comes_back_keeps_its_first_author(notes: Notes) -> None:
    first = notes.write(NOTE, "keep this\nsay this too\n", Actor.AGENT)
    gone = notes.write(NOTE, "keep this\n", Actor.DREAM)
    notes.history.undo(gone.id)
    assert _commits(notes.history, NOTE) == [first.id, first.id]
    notes.write(NOTE, None)
    notes.history.restore(NOTE, first.id)
    assert _commits(notes.history, NOTE) == [first.id, first.id]


def test_a_line_that_somebody_writes_again_is_theirs(notes: Notes) -> None:
    notes.write(NOTE, "keep this\nsay this too\n", Actor.DREAM)
    notes.write(NOTE, "keep this\n")
    again = notes.write(NOTE, "keep this\nsay this too\n")
    assert notes.history.blame(NOTE)[1].commit == again.id


def test_the_other_side_of_a_merge_keeps_its_origins(notes: Notes) -> None:
    base = notes.write(NOTE, "base line\n")
    ours = notes.write(NOTE, "our line\nbase line\n")
    theirs = _commit_beside(notes, base.id, "base line\ntheir line\n")
    merged = _commit_beside(notes, ours.id, "our line\nbase line\ntheir line\nboth\n", theirs)
    notes.history._repository.branch.move(ours.id, merged)
    expected = [ours.id, base.id, theirs, merged]
    assert _commits(notes.reopened(), NOTE, "HEAD") == expected


def test_the_other_side_of_a_merge_may_know_the_file_by_its_former_name(notes: Notes) -> None:
    base = notes.write(NOTE, "base line\n")
    with notes.history.change(Actor.YOU, "a reason") as change:
        change.rename(NOTE, OTHER)
    ours = change.result
    assert ours is not None
    theirs = _commit_beside(notes, base.id, "base line\ntheir line\n")
    merged = _commit_beside(notes, ours.id, "base line\ntheir line\n", theirs, OTHER)
    notes.history._repository.branch.move(ours.id, merged)
    assert _commits(notes.reopened(), OTHER, "HEAD") == [base.id, theirs]


def _commit_beside(
    notes: Notes, parent: str, text: str, also: str | None = None, path: str = NOTE
) -> str:
    repository = notes.history._repository
    blob = git_object(b"blob", text.encode())
    raw = repository.read_commit(parent)
    tree, trees = update_tree(raw.tree, {path: blob.id}, repository.read_tree)
    when = datetime(2026, 11, 21, 13, tzinfo=UTC)
    commit = git_object(
        b"commit", encode_commit(tree, parent, "A <a@b.c>", when, "Merge\n", also=also)
    )
    repository.store([blob, *trees, commit])
    return commit.id


# What it costs ------------------------------------------------------------------------------


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One item for each comparison of two versions that differ."""
    done: list[int] = []

    def counted(old: Sequence[str], new: Sequence[str]) -> list[int]:
        if old or new:
            done.append(len(new))
        return match_lines(old, new)

    monkeypatch.setattr("kbtui.history.queries.blame.match_lines", counted)
    return done


def test_what_is_known_is_not_worked_out_again(notes: Notes, comparisons: list[int]) -> None:
    for number in range(12):
        notes.write(NOTE, "".join(f"line {n} of {max(n, number)}\n" for n in range(20)))
    notes.history.blame(NOTE)
    assert len(comparisons) == 12
    notes.write(OTHER, "another file\n")
    notes.history.blame(NOTE)
    assert len(comparisons) == 12
    notes.write(NOTE, "a new line\n" + notes.text(NOTE))
    notes.history.blame(NOTE)
    assert len(comparisons) == 13


def test_a_later_start_goes_on_from_there(notes: Notes, comparisons: list[int]) -> None:
    for number in range(12):
        notes.write(NOTE, f"line of {number}\n" + (notes.text(NOTE) if number else ""))
    known = notes.history.blame(NOTE)
    del comparisons[:]
    notes.write(NOTE, "a new line\n" + notes.text(NOTE))
    assert notes.reopened().blame(NOTE)[1:] == known
    assert len(comparisons) == 1


@pytest.mark.parametrize("damage", [b"nothing like it", b""])
def test_a_damaged_cache_changes_nothing(
    notes: Notes, damage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_like_users(monkeypatch)
    for number in range(12):
        notes.write(NOTE, f"line of {number}\n" + (notes.text(NOTE) if number else ""))
    known = notes.history.blame(NOTE)
    _cache(notes).write_bytes(damage)
    assert notes.reopened().blame(NOTE) == known


def test_the_cache_holds_no_text(notes: Notes) -> None:
    for number in range(12):
        notes.write(NOTE, f"sesame {number}\n")
    notes.history.blame(NOTE)
    assert b"sesame" not in b"".join(
        file.read_bytes() for file in _cache(notes).parent.glob("blame.sqlite*")
    )


def _cache(notes: Notes) -> Path:
    return notes.workspace.cache / "blame.sqlite"


def test_an_origin_survives_being_kept(notes: Notes) -> None:
    origin = Origin("s", (1, 2), "t", "m", 3, None, "b")
    for number in range(12):
        with notes.history.change(Actor.AGENT, "a reason", origin) as change:
            change.write(NOTE, f"line of {number}\n" + (notes.text(NOTE) if number else ""))
    known = notes.history.blame(NOTE)
    assert notes.reopened().blame(NOTE) == known
    assert {line.origin for line in known} == {origin}
