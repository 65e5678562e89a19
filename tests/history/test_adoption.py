"""What was edited outside becomes the user's own change."""

from __future__ import annotations

import os
import time
import unicodedata
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ConflictError
from kbtui.history import adoption
from kbtui.history.change import Actor, Change
from kbtui.history.history import MassDeletionError
from kbtui.knowledge_base import KnowledgeBase
from kbtui.workspace import files
from kbtui.workspace.opening import WorkspaceLock, create_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.history.conftest import Notes

A, B = "knowledge/topics/a.md", "knowledge/topics/b.md"


def test_outside_edits_become_one_commit_of_the_users(notes: Notes) -> None:
    notes.write(A, "one\n", Actor.AGENT)
    notes.write(B, "gone soon\n", Actor.AGENT)
    notes.put(A, "two\n")
    notes.put(B, None)
    notes.put("knowledge/topics/c.md", "new\n")
    commit = notes.history.adopt(settle=0)
    assert commit is not None
    assert commit.actor == Actor.YOU
    assert commit.subject == "topics/b deleted; topics/a: +1 -1 lines; topics/c created"
    assert notes.history.adopt(settle=0) is None
    notes.check()


def test_the_first_adoption_records_what_was_there(notes: Notes) -> None:
    notes.put(A, "mine\n")
    notes.put("SOUL.md", "soul\n")
    notes.put("docs/p/x.md", "not recorded\n")
    notes.put("sessions/s.jsonl", "{}\n")
    commit = notes.history.adopt(settle=0)
    assert commit is not None
    assert commit.parent is None
    assert notes.history.tree("HEAD").keys() == {A, "SOUL.md"}


def test_adopted_bytes_are_never_touched(notes: Notes) -> None:
    def meddle(change: Change) -> None:
        assert change.adopted
        change.write(A, "meddled\n")
        change.write("knowledge/INDEX.md", "- a\n")

    notes.history.add_companion(meddle)
    notes.put(A, "mine\r\nno newline at the end")
    commit = notes.history.adopt(settle=0)
    assert commit is not None
    assert notes.text(A) == "mine\r\nno newline at the end"
    assert notes.history.read(A, "HEAD") == b"mine\r\nno newline at the end"
    assert notes.text("knowledge/INDEX.md") == "- a\n"
    assert {path.path for path in commit.paths} == {A, "knowledge/INDEX.md"}
    assert notes.git("rev-list", "--count", "HEAD").strip() == "1"
    notes.check()


def test_a_file_that_is_being_written_is_waited_for(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.put(A, "fresh\n")
    clock = [(notes.workspace.root / A).stat().st_ctime + 1]
    waited: list[float] = []

    def wait(seconds: float) -> None:
        clock[0] += seconds
        waited.append(seconds)

    monkeypatch.setattr(adoption, "time", SimpleNamespace(time=lambda: clock[0], sleep=wait))
    assert notes.history.adopt(settle=3.0) is not None
    assert waited == [pytest.approx(2.0)]


def test_a_file_that_stays_restless_is_left_for_later(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.put(B, "done\n")
    notes.put(A, "still typing\n")
    clock = [1000.0]
    waited: list[float] = []
    changed = {A: 1000.0, B: 1000.0}

    def wait(seconds: float) -> None:
        clock[0] += seconds
        if not waited:
            notes.put(A, "still typing, and on\n")
            changed[A] = clock[0]
        waited.append(seconds)

    def status(_: object, path: str) -> SimpleNamespace:
        return SimpleNamespace(st_ctime=changed[path])

    monkeypatch.setattr(adoption, "time", SimpleNamespace(time=lambda: clock[0], sleep=wait))
    looked_at = SimpleNamespace(file_status=status, is_gone=files.is_gone)
    monkeypatch.setattr(adoption, "files", looked_at)
    assert notes.history.adopt(settle=10.0) is not None
    assert notes.history.tree("HEAD").keys() == {B}
    clock[0] += 10.0
    assert notes.history.adopt(settle=10.0) is not None
    assert notes.history.tree("HEAD").keys() == {A, B}
    assert waited == [10.0, 0.0]


def test_a_file_dated_in_the_future_is_adopted(notes: Notes) -> None:
    notes.put(A, "from a machine whose clock is wrong\n")
    later = time.time() + 5000
    os.utime(notes.workspace.root / A, (later, later))
    assert notes.history.adopt(settle=0.1) is not None


def test_a_busy_workspace_is_read_on_without_adopting(notes: Notes) -> None:
    notes.put(A, "mine\n")
    with WorkspaceLock(notes.workspace).hold():
        assert notes.history.adopt(timeout=0.01, settle=0) is None
    assert notes.history.adopt(settle=0) is not None


def test_a_deletion_of_many_entries_is_asked_about(notes: Notes) -> None:
    with notes.history.change(Actor.YOU, "") as change:
        for number in range(10):
            change.write(f"knowledge/topics/{number}.md", f"entry {number}\n")
    for number in range(4):
        notes.put(f"knowledge/topics/{number}.md", None)
    notes.put("knowledge/topics/9.md", "edited\n")
    with pytest.raises(MassDeletionError, match="4 of 10 files are gone") as caught:
        notes.history.adopt(settle=0)
    assert isinstance(caught.value, ConflictError)
    assert caught.value.paths == tuple(f"knowledge/topics/{n}.md" for n in range(4))
    head = notes.history.commit("HEAD")
    assert [path.path for path in head.paths] == ["knowledge/topics/9.md"], "other edits are kept"
    assert len(notes.history.tree("HEAD")) == 10
    commit = notes.history.adopt(settle=0, confirmed=True)
    assert commit is not None
    assert len(commit.paths) == 4
    notes.check()


def test_a_few_deletions_are_no_mass(notes: Notes) -> None:
    for path in (A, B, "knowledge/topics/c.md"):
        notes.write(path, f"{path}\n")
    notes.put(A, None)
    notes.put(B, None)
    assert notes.history.adopt(settle=0) is not None


def test_moving_a_folder_is_no_deletion(notes: Notes) -> None:
    for number in range(6):
        notes.write(f"knowledge/topics/{number}.md", f"entry {number}\n")
    (notes.workspace.knowledge / "topics").rename(notes.workspace.knowledge / "subjects")
    commit = notes.history.adopt(settle=0)
    assert commit is not None
    assert {(path.kind, path.old_path) for path in commit.paths} == {
        ("renamed", f"knowledge/topics/{number}.md") for number in range(6)
    }


def test_a_folder_replaced_by_a_link_is_no_deletion(notes: Notes) -> None:
    notes.write(A, "one\n")
    topics = notes.workspace.knowledge / "topics"
    topics.rename(notes.workspace.root / "elsewhere")
    topics.symlink_to(notes.workspace.root / "elsewhere")
    assert notes.history.adopt(settle=0) is None
    assert notes.history.tree("HEAD").keys() == {A}


def test_a_folder_that_cannot_be_looked_into_is_no_deletion(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.write(A, "one\n")
    real_scandir, real_lstat = os.scandir, os.lstat

    def scandir(path: str = ".") -> object:
        if str(path).endswith("topics"):
            raise PermissionError(13, "Permission denied")
        return real_scandir(path)

    def lstat(path: object, **more: object) -> os.stat_result:
        if str(path).endswith("a.md"):
            raise PermissionError(13, "Permission denied")
        return real_lstat(path, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "lstat", lstat)
    monkeypatch.setattr("pathlib.Path.lstat", lstat)
    assert notes.history.adopt(settle=0) is None


def test_an_ignored_file_stays_recorded(notes: Notes) -> None:
    notes.write(A, "one\n")
    notes.put(".kbtuiignore", "topics/\n")
    assert notes.history.adopt(settle=0) is None
    assert notes.history.tree("HEAD").keys() == {A}


def test_a_decomposed_name_is_recorded_composed(notes: Notes) -> None:
    notes.put(unicodedata.normalize("NFD", "knowledge/topics/é.md"), "one\n")
    assert notes.history.adopt(settle=0) is not None
    assert notes.history.tree("HEAD").keys() == {"knowledge/topics/é.md"}
    notes.check()


def test_many_files_are_adopted_at_once(notes: Notes) -> None:
    for number in range(500):
        notes.put(f"knowledge/topics/{number}.md", f"entry {number}\n")
    commit = notes.history.adopt(settle=0)
    assert commit is not None
    assert len(commit.paths) == 500
    notes.check()


def test_an_empty_file_and_one_without_newline_are_kept_as_they_are(notes: Notes) -> None:
    notes.put(A, "")
    notes.put(B, "no end")
    notes.history.adopt(settle=0)
    assert notes.history.read(A, "HEAD") == b""
    assert notes.history.read(B, "HEAD") == b"no end"
    notes.check()


def test_a_text_beside_notes_that_is_renamed_and_edited_at_once_is_a_rename(tmp_path: Path) -> None:
    create_workspace(tmp_path, in_place=True)
    with KnowledgeBase.open(tmp_path) as kb:
        for name in ("plan.org", "plan.txt", "plan.markdown"):
            lines = [f"{name}: line {number}\n" for number in range(20)]
            old, new = tmp_path / name, tmp_path / f"new {name}"
            old.write_text("".join(lines))
            kb.history.adopt(settle=0)
            old.unlink()
            new.write_text("".join([*lines, "one more\n"]))
            commit = kb.history.adopt(settle=0)
            assert commit is not None
            [change] = [each for each in commit.paths if name in each.path]
            assert (change.kind, change.old_path) == ("renamed", f"knowledge/{name}")
