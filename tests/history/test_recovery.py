"""What an interrupted change leaves, and what the next start makes of it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import ConflictError, StorageError
from kbtui.history.change import Actor
from kbtui.history.door import Door
from kbtui.history.intent import IntentLog
from kbtui.history.objects.branch import Branch
from kbtui.history.objects.repository import CONFIG, Repository
from kbtui.workspace.durable import FileBatch
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.history.history import History
    from tests.history.conftest import Notes

A, B = "knowledge/topics/a.md", "knowledge/topics/b.md"


class Crash(BaseException):
    """The process is gone: nothing cleans up after it."""


def crash_at(patch: pytest.MonkeyPatch, place: object, name: str) -> None:
    """Let the process die when it gets to a step; what would take it back doesn't run either."""

    def die(*_: object, **__: object) -> None:
        raise Crash

    patch.setattr(place, name, die)
    patch.setattr(Door, "_restore", lambda *_: None)


@pytest.fixture
def two_files(notes: Notes) -> Notes:
    notes.write(A, "old a\n")
    notes.write(B, "old b\n")
    return notes


def change_both(history: History) -> None:
    with history.change(Actor.AGENT, "crashing") as change:
        change.write(A, "new a\n")
        change.write(B, "new b\n")
        change.write("knowledge/topics/c.md", "new c\n")


STEPS: list[tuple[object, str, str]] = [
    (Repository, "store", "none"),
    (IntentLog, "write", "none"),
    (Door, "_write_files", "replayed"),
    (FileBatch, "sync", "none"),
    (Branch, "move", "replayed"),
    (IntentLog, "clear", "replayed"),
]


@pytest.mark.parametrize(("place", "name", "outcome"), STEPS)
def test_a_crash_at_any_step_leaves_all_or_nothing(
    two_files: Notes, place: object, name: str, outcome: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, place, name)
        with pytest.raises(Crash):
            change_both(two_files.history)
    history = two_files.reopened()
    texts = [two_files.text(A), two_files.text(B)]
    assert texts == (["old a\n", "old b\n"] if outcome == "none" else ["new a\n", "new b\n"])
    assert two_files.exists("knowledge/topics/c.md") is (outcome != "none")
    assert history.adopt(settle=0) is None, "a machine's text must not become the user's"
    two_files.check()


def test_a_crash_between_two_files_is_completed(two_files: Notes) -> None:
    real = Door._check_unmodified

    def once(self: Door, path: str, *rest: Any) -> None:
        if path == B:
            raise Crash
        real(self, path, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Door, "_check_unmodified", once)
        patch.setattr(Door, "_restore", lambda *_: None)
        with pytest.raises(Crash):
            change_both(two_files.history)
    assert (two_files.text(A), two_files.text(B)) == ("new a\n", "old b\n")
    report = two_files.reopened()
    assert (two_files.text(A), two_files.text(B)) == ("new a\n", "new b\n")
    assert report.commit("HEAD").actor == Actor.AGENT
    two_files.check()


def test_a_crash_whose_objects_were_lost_is_rolled_back(two_files: Notes) -> None:
    before = set((two_files.workspace.repository / "objects").glob("??/*"))
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, Branch, "move")
        with pytest.raises(Crash):
            change_both(two_files.history)
    for file in set((two_files.workspace.repository / "objects").glob("??/*")) - before:
        file.chmod(0o600)
        file.write_bytes(b"")
    for file in set((two_files.workspace.repository / "objects").glob("??/*")) - before:
        file.unlink()
    two_files.reopened()
    assert (two_files.text(A), two_files.text(B)) == ("old a\n", "old b\n")
    assert not two_files.exists("knowledge/topics/c.md")
    two_files.check()


def test_an_edit_between_crash_and_restart_stays_with_ours_beside_it(two_files: Notes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, Branch, "move")
        with pytest.raises(Crash):
            change_both(two_files.history)
    two_files.put(B, "edited by hand\n")
    history = two_files.reopened()
    assert two_files.text(A) == "new a\n"
    assert two_files.text(B) == "edited by hand\n"
    (copy,) = Scanner(two_files.workspace).conflict_copies()
    assert two_files.text(copy) == "new b\n"
    commit = history.adopt(settle=0)
    assert commit is not None
    assert [path.path for path in commit.paths] == [B]


def test_a_running_program_settles_what_another_one_left(two_files: Notes) -> None:
    other = two_files.reopened()
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, Branch, "move")
        with pytest.raises(Crash):
            change_both(two_files.history)
    with other.change(Actor.YOU, "later") as change:
        change.write("memory/MEMORY.md", "fact\n")
    assert [commit.actor for commit in other.log(limit=2)] == [Actor.YOU, Actor.AGENT]
    two_files.check()


def test_a_stale_branch_lock_of_our_own_blocks_no_restart(two_files: Notes) -> None:
    def die(self: Branch, expected: str | None) -> None:
        raise Crash

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Branch, "_check", die)
        patch.setattr("pathlib.Path.unlink", lambda *_, **__: None)
        patch.setattr(Door, "_restore", lambda *_: None)
        with pytest.raises(Crash):
            change_both(two_files.history)
    assert (two_files.workspace.repository / "refs/heads/main.lock").exists()
    two_files.reopened()
    assert two_files.text(A) == "new a\n"
    two_files.write(A, "goes on\n")
    two_files.check()


def test_a_git_program_that_holds_the_branch_is_respected(two_files: Notes) -> None:
    lock = two_files.workspace.repository / "refs/heads/main.lock"
    lock.write_text("")
    with pytest.raises(ConflictError, match="git program"):
        change_both(two_files.history)
    assert (two_files.text(A), two_files.text(B)) == ("old a\n", "old b\n")
    assert lock.exists()
    lock.unlink()
    two_files.check()


def test_a_branch_moved_by_somebody_else_is_not_overwritten(two_files: Notes) -> None:
    real = Repository.store

    def race(self: Repository, objects: Iterator[object]) -> None:
        real(self, objects)  # type: ignore[arg-type]
        two_files.git("update-ref", "refs/heads/main", "HEAD~1")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repository, "store", race)
        with pytest.raises(ConflictError, match="moved on"):
            change_both(two_files.history)
    assert (two_files.text(A), two_files.text(B)) == ("old a\n", "old b\n")


def test_a_failed_change_is_taken_back_at_once(two_files: Notes) -> None:
    real = Door._check_unmodified

    def full(self: Door, path: str, *rest: Any) -> None:
        if path == B:
            raise OSError(28, "No space left on device")
        real(self, path, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Door, "_check_unmodified", full)
        with pytest.raises(StorageError, match="no space"):
            change_both(two_files.history)
    assert (two_files.text(A), two_files.text(B)) == ("old a\n", "old b\n")
    assert not (two_files.workspace.machine / "intent.json").exists()
    two_files.check()


def test_a_file_edited_in_the_last_moment_is_not_overwritten(two_files: Notes) -> None:
    real = Repository.store

    def edit_meanwhile(self: Repository, objects: Iterator[object]) -> None:
        real(self, objects)  # type: ignore[arg-type]
        two_files.put(B, "by hand, just now\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repository, "store", edit_meanwhile)
        with pytest.raises(ConflictError, match="changed by somebody else"):
            change_both(two_files.history)
    assert two_files.text(A) == "old a\n"
    assert two_files.text(B) == "by hand, just now\n"
    (copy,) = Scanner(two_files.workspace).conflict_copies()
    assert two_files.text(copy) == "new b\n"


def test_an_edit_while_the_new_text_is_being_synced_is_not_overwritten(two_files: Notes) -> None:
    real = FileBatch._write_temporary

    def edit_meanwhile(folder: int, name: str, data: bytes, *rest: object) -> None:
        real(folder, name, data, *rest)  # type: ignore[arg-type]
        if data == b"new b\n":
            two_files.put(B, "by hand, at the last moment\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileBatch, "_write_temporary", staticmethod(edit_meanwhile))
        with pytest.raises(ConflictError, match="changed by somebody else"):
            change_both(two_files.history)
    assert two_files.text(A) == "old a\n"
    assert two_files.text(B) == "by hand, at the last moment\n"


def test_an_unreadable_intent_is_set_aside(two_files: Notes) -> None:
    (two_files.workspace.machine / "intent.json").write_text("{broken")
    two_files.reopened()
    assert len(list(two_files.workspace.machine.glob("intent.json.bad-*"))) == 1
    two_files.check()


@pytest.mark.parametrize("path", ["../outside.md", "/etc/outside", "docs/x.md", ".kbtui/format"])
def test_an_intent_of_a_foreign_folder_writes_nothing_outside(two_files: Notes, path: str) -> None:
    head = two_files.history.head()
    blob = two_files.history.tree("HEAD")[A]
    record = {"commit": head, "parent": head, "paths": {path: [None, blob]}}
    (two_files.workspace.machine / "intent.json").write_text(json.dumps(record))
    two_files.reopened()
    assert not (two_files.workspace.root.parent / "outside.md").exists()
    assert (two_files.workspace.machine / "format").read_text() == "1\n"
    assert not (two_files.workspace.docs / "x.md").exists()
    assert len(list(two_files.workspace.machine.glob("intent.json.bad-*"))) == 1


def test_the_repository_comes_back_to_its_known_configuration(notes: Notes) -> None:
    notes.write(A, "x\n")
    config = notes.workspace.repository / "config"
    config.write_text("[core]\n\tfsmonitor = /tmp/evil\n\tbare = false\n")
    (notes.workspace.repository / "HEAD").write_text("ref: refs/heads/elsewhere\n")
    notes.reopened()
    assert config.read_bytes() == CONFIG
    assert notes.git("symbolic-ref", "HEAD").strip() == "refs/heads/main"
    assert notes.git("config", "core.hooksPath").strip() == "/dev/null"
    assert notes.git("config", "core.fsync").strip() == "all"
    assert notes.git("config", "gc.auto").strip() == "0"


def test_a_repository_that_real_git_packed_is_read_on(notes: Notes) -> None:
    for number in range(5):
        notes.write(A, f"version {number}\n")
    notes.git("gc", "-q")
    assert not (notes.workspace.repository / "refs/heads/main").exists()
    again = notes.reopened()
    assert again.read(A, "HEAD~3") == b"version 1\n"
    assert again.resolve(str(again.head())[:8]) == again.head()
    notes.write(A, "after\n")
    assert len(list(notes.history.log())) == 6
    notes.check()


def test_a_damaged_branch_is_said_and_nothing_is_overwritten(notes: Notes) -> None:
    notes.write(A, "x\n")
    (notes.workspace.repository / "refs/heads/main").write_bytes(b"\0" * 41)
    with pytest.raises(StorageError, match="damaged"):
        notes.write(A, "y\n")
    assert notes.text(A) == "x\n"


def test_a_branch_that_cannot_be_read_is_never_started_over(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.write(A, "x\n")
    head = notes.history.head()

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.read_text", refuse)
        with pytest.raises(StorageError, match="Can't read the history"):
            notes.write(A, "y\n")
    assert notes.history.head() == head
    assert notes.text(A) == "x\n"


def test_an_old_lock_of_a_git_that_was_killed_is_removed_and_a_fresh_one_respected(
    notes: Notes,
) -> None:
    notes.write(A, "one\n")
    lock = notes.workspace.repository / "refs" / "heads" / "main.lock"
    lock.write_text("")
    notes.history = notes.reopened()
    with pytest.raises(ConflictError, match="git program"):
        notes.write(A, "two\n")
    os.utime(lock, (1, 1))
    notes.history = notes.reopened()
    notes.write(A, "two\n")
    notes.check()


def test_the_lock_of_an_adoption_that_was_killed_blocks_nothing(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.write(A, "one\n")
    notes.put(A, "edited outside\n")
    with monkeypatch.context() as patch:
        crash_at(patch, Branch, "_check")
        patch.setattr(Branch, "clear_lock", lambda *_: None)
        with pytest.raises(Crash):
            notes.history.adopt(settle=0)
    assert (notes.workspace.repository / "refs" / "heads" / "main.lock").exists()
    notes.history = notes.reopened()
    notes.write(A, "two\n")
    notes.check()


def test_objects_that_a_killed_writer_left_half_written_are_swept_at_start(notes: Notes) -> None:
    notes.write(A, "a\n")
    folder = next((notes.workspace.repository / "objects").glob("[0-9a-f][0-9a-f]"))
    dead = folder / f"tmp_obj_{2**22 + 1}-0123456789ab.tmp"
    alive = folder / f"tmp_obj_{os.getpid()}-0123456789ab.tmp"
    for file in (dead, alive):
        file.write_bytes(b"half")
    notes.reopened()
    assert not dead.exists()
    assert alive.exists(), "somebody writes it right now"
