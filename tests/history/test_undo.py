"""Undo and restore through the door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import NotFoundError, UndoConflictError, UsageError
from kbtui.history.change import Actor, Origin
from kbtui.history.merging.line_merge import Conflict, Side

if TYPE_CHECKING:
    from kbtui.history.merging.line_merge import Resolution
    from tests.history.conftest import Notes

A, B = "knowledge/topics/a.md", "knowledge/topics/b.md"


def test_an_undo_takes_out_one_change_and_keeps_later_ones(notes: Notes) -> None:
    notes.write(A, "- one\n")
    wrong = notes.write(A, "- one\n- wrong\n", Actor.AGENT)
    notes.write(A, "- one\n- wrong\n- mine\n")
    commit = notes.history.undo(wrong.id)
    assert notes.text(A) == "- one\n- mine\n"
    assert commit.actor == Actor.YOU
    assert commit.origin.undoes == wrong.id
    assert wrong.subject in commit.body
    notes.check()


def test_an_undo_can_be_undone(notes: Notes) -> None:
    notes.write(A, "one\n")
    second = notes.write(A, "one\ntwo\n")
    undo = notes.history.undo(second.id)
    notes.history.undo(undo.id)
    assert notes.text(A) == "one\ntwo\n"


def test_what_an_undo_brought_back_can_be_undone_again_after_other_changes(notes: Notes) -> None:
    notes.write(A, "one\n")
    second = notes.write(A, "one\ntwo\n")
    undo = notes.history.undo(second.id)
    notes.write(A, "zero\none\n")
    notes.history.undo(undo.id)
    assert notes.text(A) == "zero\none\ntwo\n"
    notes.history.undo(second.id)
    assert notes.text(A) == "zero\none\n"


def test_a_line_that_you_wrote_again_yourself_is_yours(notes: Notes) -> None:
    notes.write(A, "one\n")
    second = notes.write(A, "one\ntwo\n", Actor.AGENT)
    notes.write(A, "one\n")
    notes.write(A, "one\ntwo\nthree\n")
    with pytest.raises(UsageError, match="Nothing is left"):
        notes.history.undo(second.id)


def test_hand_edits_that_nobody_recorded_stay(notes: Notes) -> None:
    notes.write(A, "one\n")
    second = notes.write(A, "one\ntwo\n", Actor.AGENT)
    notes.put(A, "one\ntwo\nby hand\n")
    notes.history.undo(second.id)
    assert notes.text(A) == "one\nby hand\n"
    undo, hand = notes.history.log(A, limit=2)
    assert (hand.actor, hand.subject) == (Actor.YOU, "topics/a: +1 line")
    assert undo.origin.undoes == second.id


def test_a_conflict_changes_nothing_and_carries_both_sides(notes: Notes) -> None:
    notes.write(A, "color: red\nother\n")
    with notes.history.change(Actor.AGENT, "") as change:
        change.write(A, "color: blue\nother\n")
        change.write(B, "new\n")
    notes.write(A, "color: green\nother\n")
    head = notes.history.head()
    with pytest.raises(UndoConflictError, match="1 place was changed again") as caught:
        notes.history.undo("HEAD~1")
    assert caught.value.conflicts == (Conflict(A, 1, "color: blue", "color: green", "color: red"),)
    assert caught.value.paths == (A,)
    assert notes.history.head() == head
    assert notes.text(B) == "new\n"


def test_only_some_paths_are_undone(notes: Notes) -> None:
    with notes.history.change(Actor.AGENT, "") as change:
        change.write(A, "a\n")
        change.write(B, "b\n")
    notes.history.undo("HEAD", paths=[A])
    assert not notes.exists(A)
    assert notes.text(B) == "b\n"
    with pytest.raises(UsageError, match="did not change"):
        notes.history.undo("HEAD~1", paths=["knowledge/topics/c.md"])


def test_one_hunk_is_undone(notes: Notes) -> None:
    lines = [f"line {n}\n" for n in range(40)]
    notes.write(A, "".join(lines))
    edited = list(lines)
    edited[2], edited[20], edited[38] = "first\n", "second\n", "third\n"
    del edited[30]
    commit = notes.write(A, "".join(edited))
    assert len(notes.history.changes_of(commit.id)[0].hunks) == 4
    notes.history.undo(commit.id, hunk=2)
    expected = list(edited)
    expected[20] = "line 20\n"
    assert notes.text(A) == "".join(expected)
    notes.history.undo(commit.id, hunk=3)
    expected.insert(30, "line 30\n")
    assert notes.text(A) == "".join(expected)
    with pytest.raises(UsageError, match="no hunk 5"):
        notes.history.undo(commit.id, hunk=5)
    with pytest.raises(UsageError, match="no hunk 0"):
        notes.history.undo(commit.id, hunk=0)


@pytest.mark.parametrize(
    ("codec", "mark"),
    [("latin-1", b""), ("utf-8-sig", b""), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")],
)
def test_one_hunk_is_undone_byte_for_byte(notes: Notes, codec: str, mark: bytes) -> None:
    texts = ["Café\r\n" + "".join(f"line {n}\n" for n in range(20))]
    texts.append(texts[0].replace("line 1\n", "first\n").replace("line 18\n", "second\n"))
    versions = [mark + text.encode(codec) for text in texts]
    commits = []
    for data in versions:
        (notes.workspace.root / A).write_bytes(data)
        commits.append(notes.history.adopt(settle=0))
    assert commits[1] is not None
    notes.history.undo(commits[1].id, hunk=1)
    left = texts[1].replace("first", "line 1")
    assert (notes.workspace.root / A).read_bytes() == mark + left.encode(codec)


def test_hunks_are_counted_through_the_files(notes: Notes) -> None:
    notes.write(A, "a\n")
    notes.write(B, "b\n")
    with notes.history.change(Actor.YOU, "") as change:
        change.write(A, "a\na2\n")
        change.write(B, "b\nb2\n")
    notes.history.undo("HEAD", hunk=2)
    assert (notes.text(A), notes.text(B)) == ("a\na2\n", "b\n")
    notes.history.undo("HEAD~1", paths=[A], hunk=1)
    assert (notes.text(A), notes.text(B)) == ("a\n", "b\n")


def test_a_creation_is_undone_by_removing(notes: Notes) -> None:
    commit = notes.write(A, "---\ntype: topic\nupdated: 1\n---\ntext\n")
    notes.write(A, "---\ntype: topic\nupdated: 2\n---\ntext\n")
    notes.history.undo(commit.id)
    assert not notes.exists(A)


def test_of_a_creation_that_was_built_upon_only_its_own_lines_go(notes: Notes) -> None:
    made = "---\ntype: topic\ntags: [x]\n---\n# T\n\nfirst\n\n## Notes\n\n- one\n"
    commit = notes.write(A, made, Actor.AGENT)
    grown = made.replace("tags: [x]", "tags: [x, y]") + "- mine\n"
    notes.write(A, grown)
    undo = notes.history.undo(commit.id)
    front = "---\ntype: topic\ntags: [x, y]\n---\n"
    assert notes.text(A) == f"{front}# T\n\n## Notes\n\n- mine\n"
    notes.history.undo(undo.id)
    assert notes.text(A) == grown


def test_a_line_of_a_creation_that_was_changed_again_is_a_conflict(notes: Notes) -> None:
    commit = notes.write(A, "one\ntwo\n", Actor.AGENT)
    notes.write(A, "one\ntwo, but mine\n")
    with pytest.raises(UndoConflictError) as caught:
        notes.history.undo(commit.id)
    assert caught.value.conflicts == (Conflict(A, 2, "two", "two, but mine", ""),)
    assert notes.text(A) == "one\ntwo, but mine\n"


def test_a_creation_of_which_a_key_was_changed_again_is_a_conflict(notes: Notes) -> None:
    commit = notes.write(A, "---\nstatus: open\n---\ntext\n", Actor.AGENT)
    notes.write(A, "---\nstatus: done\n---\ntext\n")
    with pytest.raises(UndoConflictError) as caught:
        notes.history.undo(commit.id)
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.ours, conflict.theirs) == ("key", "status: done\n", "")
    notes.history.undo(commit.id, decisions={conflict: Side.OURS})
    assert notes.text(A) == "---\nstatus: done\n---\n"
    notes.history.undo("HEAD")
    notes.history.undo(commit.id, decisions={conflict: Side.THEIRS})
    assert not notes.exists(A)


# What somebody decided about a conflict


def conflict_of(notes: Notes, rev: str) -> Conflict:
    head = notes.history.head()
    with pytest.raises(UndoConflictError) as caught:
        notes.history.undo(rev)
    assert notes.history.head() == head, "nothing is changed before it is decided"
    (conflict,) = caught.value.conflicts
    return conflict


@pytest.mark.parametrize(
    ("decision", "line"),
    [
        (Side.OURS, "green\n"),
        (Side.THEIRS, "red\n"),
        ("teal\nand more", "teal\nand more\n"),
        ("", ""),
    ],
)
def test_a_conflict_is_settled_by_a_side_or_by_another_text(
    notes: Notes, decision: Resolution, line: str
) -> None:
    notes.write(A, "top\nred\nlow\n")
    wrong = notes.write(A, "TOP\nblue\nlow\n", Actor.AGENT)
    notes.write(A, "TOP\ngreen\nlow\nlater\n")
    conflict = conflict_of(notes, wrong.id)
    undo = notes.history.undo(wrong.id, decisions={conflict: decision})
    assert undo.origin.undoes == wrong.id
    assert notes.text(A) == f"top\n{line}low\nlater\n"
    notes.history.undo(undo.id)
    assert notes.text(A) == "TOP\ngreen\nlow\nlater\n"
    notes.check()


def test_where_all_is_decided_to_stay_nothing_is_done_and_that_is_said(notes: Notes) -> None:
    notes.write(A, "red\n")
    wrong = notes.write(A, "blue\n", Actor.AGENT)
    notes.write(A, "green\n")
    conflict = conflict_of(notes, wrong.id)
    with pytest.raises(UsageError, match="what stands there now stays"):
        notes.history.undo(wrong.id, decisions={conflict: Side.OURS})
    assert notes.text(A) == "green\n"


def test_a_decision_about_what_has_changed_since_does_not_hold(notes: Notes) -> None:
    notes.write(A, "red\n")
    wrong = notes.write(A, "blue\n", Actor.AGENT)
    notes.write(A, "green\n")
    conflict = conflict_of(notes, wrong.id)
    notes.put(A, "grey\n")
    with pytest.raises(UndoConflictError) as caught:
        notes.history.undo(wrong.id, decisions={conflict: Side.THEIRS})
    assert caught.value.conflicts[0].ours == "grey"
    assert notes.text(A) == "grey\n"


@pytest.mark.parametrize(("decision", "left"), [(Side.OURS, None), (Side.THEIRS, "one\n")])
def test_a_file_that_is_gone_comes_back_only_if_that_was_decided(
    notes: Notes, decision: Resolution, left: str | None
) -> None:
    notes.write(A, "one\n")
    with notes.history.change(Actor.AGENT, "") as change:
        change.write(A, "two\n")
        change.write(B, "made\n")
    notes.write(A, None)
    conflict = conflict_of(notes, "HEAD~1")
    assert (conflict.kind, conflict.ours, conflict.theirs) == ("file", "", "one\n")
    notes.history.undo("HEAD~1", decisions={conflict: decision})
    assert (notes.text(A) if notes.exists(A) else None) == left
    assert not notes.exists(B)


def test_a_name_that_is_taken_can_be_kept(notes: Notes) -> None:
    notes.write(A, "one\ntwo\nthree\n")
    with notes.history.change(Actor.AGENT, "") as change:
        change.rename(A, B)
        change.write("knowledge/topics/c.md", "made\n")
    notes.write(A, "somebody new\n")
    conflict = conflict_of(notes, "HEAD~1")
    with pytest.raises(UsageError, match="exists already"):
        notes.history.undo("HEAD~1", decisions={conflict: Side.THEIRS})
    notes.history.undo("HEAD~1", decisions={conflict: Side.OURS})
    assert notes.text(B) == "one\ntwo\nthree\n"
    assert not notes.exists("knowledge/topics/c.md")


def test_a_place_that_was_changed_again_is_asked_about(notes: Notes) -> None:
    sections = ["# A\n- a\n", "# B\n- b1\n- b2\n", "# C\n- c1\n- c2\n- c3\n"]
    a, b, c = sections
    notes.write(A, a + b + c)
    moved = notes.write(A, b + c + a, Actor.AGENT)
    notes.write(A, b + a + c)
    head = notes.history.head()
    with pytest.raises(UndoConflictError) as caught:
        notes.history.undo(moved.id)
    conflicts = caught.value.conflicts
    assert {conflict.kind for conflict in conflicts} == {"place"}
    assert notes.history.head() == head
    notes.history.undo(moved.id, decisions=dict.fromkeys(conflicts, Side.THEIRS))
    assert notes.text(A) == a + b + c


def test_a_deletion_is_undone_by_bringing_back(notes: Notes) -> None:
    notes.write(A, "text\n")
    commit = notes.write(A, None)
    notes.history.undo(commit.id)
    assert notes.text(A) == "text\n"


def test_a_line_that_is_back_and_was_changed_since_is_not_brought_back_twice(notes: Notes) -> None:
    notes.write(A, "# A\n\n## Plan\n\n- one\n")
    commit = notes.write(A, "# A\n\n- one\n")
    notes.history.undo(commit.id)
    changed = "# A\n\nMore.\n\n## Plan, reviewed\n\n- one\n"
    notes.write(A, changed)
    head = notes.history.head()
    with pytest.raises(UndoConflictError) as caught:
        notes.history.undo(commit.id)
    assert (notes.text(A), notes.history.head()) == (changed, head)
    [conflict] = caught.value.conflicts
    shown = (conflict.line, conflict.written, conflict.ours, conflict.theirs)
    assert shown == (5, "", "## Plan, reviewed", "## Plan")
    notes.history.undo(commit.id, decisions={conflict: Side.THEIRS})
    assert notes.text(A) == "# A\n\nMore.\n\n## Plan\n\n- one\n"


def test_a_file_that_is_back_under_another_name_is_not_brought_back_twice(notes: Notes) -> None:
    notes.write(A, "text\n")
    commit = notes.write(A, None)
    notes.history.undo(commit.id)
    rename(notes, A, B)
    with pytest.raises(UndoConflictError) as caught:
        notes.history.undo(commit.id)
    assert not notes.exists(A)
    [conflict] = caught.value.conflicts
    assert (conflict.kind, conflict.ours, conflict.theirs) == ("name", B, A)
    notes.history.undo(commit.id, decisions={conflict: Side.THEIRS})
    assert (notes.text(A), notes.exists(B)) == ("text\n", False)


def test_a_deletion_is_not_undone_over_a_new_file(notes: Notes) -> None:
    notes.write(A, "text\n")
    commit = notes.write(A, None)
    notes.write(A, "something else\n")
    with pytest.raises(UndoConflictError):
        notes.history.undo(commit.id)
    assert notes.text(A) == "something else\n"


def rename(notes: Notes, old: str, new: str) -> str:
    with notes.history.change(Actor.YOU, "") as change:
        change.rename(old, new)
    assert change.result is not None
    return change.result.id


def test_an_edit_is_undone_in_the_renamed_file(notes: Notes) -> None:
    notes.write(A, "one\ntwo\nthree\n")
    edit = notes.write(A, "one\nTWO\nthree\n")
    rename(notes, A, B)
    notes.history.undo(edit.id)
    assert notes.text(B) == "one\ntwo\nthree\n"
    assert not notes.exists(A)


def test_a_rename_is_undone_and_later_edits_go_along(notes: Notes) -> None:
    notes.write(A, "one\ntwo\nthree\n")
    renamed = rename(notes, A, B)
    notes.write(B, "one\ntwo\nthree\nfour\n")
    notes.history.undo(renamed)
    assert notes.text(A) == "one\ntwo\nthree\nfour\n"
    assert not notes.exists(B)
    notes.check()


def test_a_rename_that_is_undone_already_leaves_nothing_to_undo(notes: Notes) -> None:
    notes.write(A, "one\ntwo\nthree\n")
    renamed = rename(notes, A, B)
    notes.history.undo(renamed)
    with pytest.raises(UsageError, match="Nothing is left"):
        notes.history.undo(renamed)
    assert notes.exists(A)


def test_a_rename_whose_old_name_is_taken_is_not_undone(notes: Notes) -> None:
    notes.write(A, "one\ntwo\nthree\n")
    renamed = rename(notes, A, B)
    notes.write(A, "somebody new\n")
    with pytest.raises(UndoConflictError):
        notes.history.undo(renamed)
    assert notes.text(A) == "somebody new\n"
    assert notes.text(B) == "one\ntwo\nthree\n"


def test_a_file_that_is_gone_cannot_be_changed_back(notes: Notes) -> None:
    notes.write(A, "one\n")
    edit = notes.write(A, "two\n")
    notes.write(A, None)
    with pytest.raises(UndoConflictError):
        notes.history.undo(edit.id)


def test_undoing_twice_says_that_nothing_is_left(notes: Notes) -> None:
    notes.write(A, "one\n")
    second = notes.write(A, "two\n")
    notes.history.undo(second.id)
    with pytest.raises(UsageError, match="Nothing is left"):
        notes.history.undo(second.id)


def test_bytes_that_are_no_text_are_undone_whole_or_not_at_all(notes: Notes) -> None:
    image = "knowledge/x.png"
    for data in (b"\x89one", b"\x89two", b"\x89three"):
        with notes.history.change(Actor.YOU, "") as change:
            change.write(image, data)
    with pytest.raises(UndoConflictError):
        notes.history.undo("HEAD~1")
    notes.history.undo("HEAD")
    assert notes.history.read(image, "HEAD") == b"\x89two"


def test_the_generated_index_is_left_to_its_companion(notes: Notes) -> None:
    with notes.history.change(Actor.AGENT, "") as change:
        change.write(A, "a\n")
        change.write("knowledge/INDEX.md", "- a\n")
    notes.write("knowledge/INDEX.md", "- a\n- b\n")
    notes.history.undo("HEAD~1")
    assert notes.text("knowledge/INDEX.md") == "- a\n- b\n"
    assert not notes.exists(A)


@pytest.mark.parametrize("part", [{"hunk": 1}, {"paths": [B]}])
def test_a_turn_of_which_a_part_is_undone_can_be_undone(notes: Notes, part: dict[str, Any]) -> None:
    lines = "".join(f"line {n}\n" for n in range(20))
    notes.write(A, lines)
    with notes.history.change(Actor.AGENT, "", Origin(turn="t1")) as change:
        change.write(A, lines.replace("line 1\n", "first\n").replace("line 18\n", "second\n"))
        change.write(B, "made\n")
    assert change.result is not None
    first = notes.history.undo(change.result.id, **part)
    notes.history.undo_turn("t1")
    assert (notes.text(A), notes.exists(B)) == (lines, False)
    notes.history.undo("HEAD")
    notes.history.undo(first.id)
    assert notes.text(B) == "made\n"
    notes.history.undo(change.result.id)
    with pytest.raises(UsageError, match="left to undo"):
        notes.history.undo_turn("t1")


def test_a_turn_is_undone_as_one(notes: Notes) -> None:
    notes.write(A, "start\n")
    notes.write(A, "start\nturn 1\n", Actor.AGENT, turn="t1")
    notes.write(B, "made\n", Actor.AGENT, turn="t1")
    notes.write(A, "start\nturn 1\nby hand\n")
    notes.write(A, "start\nturn 1, improved\nby hand\n", Actor.AGENT, turn="t1")
    commit = notes.history.undo_turn("t1")
    assert notes.text(A) == "start\nby hand\n"
    assert not notes.exists(B)
    assert len((commit.origin.undoes or "").split()) == 3
    with pytest.raises(UsageError, match="Nothing is left"):
        notes.history.undo_turn("t1")
    notes.history.undo(commit.id)
    assert notes.text(A) == "start\nturn 1, improved\nby hand\n"
    notes.history.undo_turn("t1")
    assert notes.text(A) == "start\nby hand\n"


def test_a_turn_leaves_out_what_was_undone_by_itself(notes: Notes) -> None:
    notes.write(A, "start\n")
    first = notes.write(A, "start\nx\n", Actor.AGENT, turn="t1")
    notes.write(B, "made\n", Actor.AGENT, turn="t1")
    notes.history.undo(first.id)
    commit = notes.history.undo_turn("t1")
    assert [path.path for path in commit.paths] == [B]


def test_a_batch_is_undone_as_one_and_what_came_later_stays(notes: Notes) -> None:
    notes.write(A, "start\n")
    for n in range(4):
        notes.write(f"knowledge/topics/i{n}.md", f"imported {n}\n", Actor.IMPORT, batch="i1")
    notes.write("knowledge/topics/i2.md", "imported 2\nmine\n")
    commit = notes.history.undo_batch("i1")
    assert len((commit.origin.undoes or "").split()) == 4
    assert "and 1 more" in commit.body
    assert notes.text("knowledge/topics/i2.md") == "mine\n"
    assert not notes.exists("knowledge/topics/i0.md")
    with pytest.raises(NotFoundError, match="batch i2 changed nothing"):
        notes.history.undo_batch("i2")
    notes.history.undo(commit.id)
    assert notes.text("knowledge/topics/i2.md") == "imported 2\nmine\n"
    assert notes.text("knowledge/topics/i0.md") == "imported 0\n"


def test_an_undo_removes_the_folders_that_were_made_and_are_empty_now(notes: Notes) -> None:
    knowledge = notes.workspace.knowledge
    (knowledge / "here").mkdir()
    made = notes.write("knowledge/new/inner/a.md", "text\n")
    there = notes.write("knowledge/here/a.md", "text\n")
    held = notes.write("knowledge/held/a.md", "text\n")
    (knowledge / "held/mine.txt").write_text("not kept in the history\n")
    for commit in (made, there, held):
        notes.history = notes.reopened()
        undone = notes.history.undo(commit.id)
    assert not (knowledge / "new").exists()
    assert (knowledge / "here").is_dir()
    assert (knowledge / "held/mine.txt").is_file()
    again = notes.history.undo(undone.id)
    assert notes.text("knowledge/held/a.md") == "text\n"
    notes.history.undo(again.id)
    assert (knowledge / "held").is_dir()


def test_the_folder_that_a_move_made_goes_when_the_move_is_undone(notes: Notes) -> None:
    notes.write("knowledge/old/a.md", "text\n")
    notes.write("knowledge/old/b.md", "text\n")
    with notes.history.change(Actor.YOU, "move") as change:
        change.rename("knowledge/old/a.md", "knowledge/new/inner/a.md")
    notes.history.undo("HEAD")
    assert not (notes.workspace.knowledge / "new").exists()
    with notes.history.change(Actor.YOU, "a deletion is no undo") as change:
        change.delete("knowledge/old/a.md")
        change.delete("knowledge/old/b.md")
    assert (notes.workspace.knowledge / "old").is_dir()


def test_a_change_that_is_stopped_leaves_no_folder(notes: Notes) -> None:
    def stop(done: int, total: int) -> None:
        if done == total:
            raise UsageError("That is enough.")

    def write() -> None:
        with notes.history.change(Actor.YOU, "stopped") as change:
            change.write("knowledge/new/inner/a.md", "text\n")
            change.watch = stop

    with pytest.raises(UsageError, match="enough"):
        write()
    assert not (notes.workspace.knowledge / "new").exists()


def test_a_turn_that_changed_nothing_is_said(notes: Notes) -> None:
    with pytest.raises(NotFoundError, match="changed nothing"):
        notes.history.undo_turn("t404")


def test_a_file_is_restored_as_it_was(notes: Notes) -> None:
    notes.write(A, "one\r\n")
    notes.write(A, "two\n")
    notes.put(A, "by hand\n")
    commit = notes.history.restore(A, "HEAD~1")
    assert commit is not None
    assert notes.text(A) == "one\r\n"
    assert notes.history.read(A, "HEAD~1") == b"by hand\n"
    assert notes.history.restore(A, "HEAD") is None
    notes.write(A, None)
    notes.history.restore(A, "HEAD~1")
    assert notes.text(A) == "one\r\n"
    with pytest.raises(NotFoundError):
        notes.history.restore(B, "HEAD")
    notes.check()


@pytest.mark.parametrize("seed", range(3))
def test_every_commit_of_a_random_history_is_undone_through_the_door(
    notes: Notes, seed: int
) -> None:
    """One commit after the other is undone, newest first: the note goes back step by step."""
    from tests.history.random_notes import Note

    note = Note.fresh(seed)
    texts = [note.text()]
    notes.write(A, texts[0])
    while len(texts) < 12:
        note.change()
        if note.text() != texts[-1]:
            texts.append(note.text())
            notes.write(A, texts[-1])
    ids = [commit.id for commit in notes.history.log(A)]
    for commit, expected in zip(ids[:-1], reversed(texts[:-1]), strict=True):
        notes.history.undo(commit)
        assert notes.text(A) == expected
    notes.check()
