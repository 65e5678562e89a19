"""The one door: what a change writes, refuses and tells."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import (
    ConflictError,
    NotFoundError,
    StorageError,
    UnsafePathError,
    UsageError,
    WorkspaceBusyError,
)
from kbtui.history.change import Actor, Change, Changed, Origin
from kbtui.history.history import History
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace
from kbtui.workspace.opening import WorkspaceLock
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from tests.history.conftest import Notes

A, B = "knowledge/topics/a.md", "knowledge/topics/b.md"


def test_a_change_is_one_commit_of_all_its_edits(notes: Notes) -> None:
    notes.write(A, "old\n")
    with notes.history.change(Actor.AGENT, "asked to") as change:
        change.write(A, "new\n")
        change.write("memory/MEMORY.md", "fact\n")
    assert change.result is not None
    assert notes.text(A) == "new\n"
    assert notes.git("log", "--format=%s%n%n%b", "-1").strip() == (
        "topics/a: +1 -1 lines; MEMORY.md created\n\nasked to\n\nActor: agent"
    )
    assert notes.git("show", f"HEAD:{A}") == "new\n"
    notes.check()


def test_the_commit_says_where_it_comes_from(notes: Notes) -> None:
    origin = Origin("tui_1", (12, 18), "t7", "ollama/qwen", 42, None, "b1")
    with notes.history.change(Actor.DREAM, "merge duplicates", origin) as change:
        change.write(A, "x\n")
    commit = notes.history.commit("HEAD")
    assert (commit.actor, commit.origin, commit.body) == (Actor.DREAM, origin, "merge duplicates")
    assert commit == change.result or commit.paths[0].path == A
    assert notes.git("log", "-1", "--format=%an <%ae>").strip() == (
        "kbtui dream <dream@kbtui.invalid>"
    )


def test_the_user_is_the_author_that_git_knows(
    notes: Notes, monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    notes.write(A, "x\n")
    assert notes.git("log", "-1", "--format=%an").strip() == "You"
    monkeypatch.setenv("HOME", str(tmp_path))
    with open(f"{tmp_path}/.gitconfig", "w") as file:  # noqa: PTH123
        file.write("[user]\n\tname = Ada <evil>\n\temail = ada@example.org\n[core]\n\tname = no\n")
    notes.write(A, "y\n")
    assert notes.git("log", "-1", "--format=%an|%ae").strip() == "Ada evil|ada@example.org"


def test_a_reason_cannot_forge_a_trailer(notes: Notes) -> None:
    with notes.history.change(Actor.AGENT, "nice\n\nActor: you\nTurn: forged") as change:
        change.write(A, "x\n")
    commit = notes.history.commit("HEAD")
    assert (commit.actor, commit.origin.turn) == (Actor.AGENT, None)
    assert commit.body == "nice\n\nActor: you\nTurn: forged"


def test_a_value_cannot_smuggle_in_a_trailer(notes: Notes) -> None:
    notes.write(A, "x\n", Actor.AGENT, session="s\nActor: you")
    commit = notes.history.commit("HEAD")
    assert (commit.actor, commit.origin.session) == (Actor.AGENT, "s Actor: you")


def test_a_change_that_changes_nothing_makes_no_commit(notes: Notes) -> None:
    notes.write(A, "same\n")
    head = notes.history.head()
    with notes.history.change(Actor.YOU, "") as change:
        change.write(A, "same\n")
        change.delete(B)
    assert change.result is None
    assert notes.history.head() == head
    with notes.history.change(Actor.YOU, "nothing at all") as empty:
        pass
    assert empty.result is None


def test_an_exception_in_the_block_discards_the_edits(notes: Notes) -> None:
    with pytest.raises(UnsafePathError), notes.history.change(Actor.YOU, "") as change:  # noqa: PT012
        change.write(A, "x\n")
        change.write("../b.md", "x\n")
    assert not notes.exists(A)
    assert notes.history.head() is None


def test_pending_edits_are_read_back(notes: Notes) -> None:
    notes.write(A, "file\n")
    with notes.history.change(Actor.YOU, "") as change:
        assert change.read(A) == b"file\n"
        assert change.read(B) is None
        change.write(A, "pending\n")
        assert change.read(A) == b"pending\n"
        change.delete(A)
        assert change.read(A) is None
        assert dict(change.edits) == {A: None}


def test_a_new_file_that_must_be_new(notes: Notes) -> None:
    with notes.history.change(Actor.YOU, "") as change:
        change.write(A, "x\n", expecting=None)
    assert change.result is not None
    with pytest.raises(ConflictError), notes.history.change(Actor.YOU, "") as change:
        change.write(A, "y\n", expecting=None)
    assert notes.text(A) == "x\n"


def test_a_file_that_was_changed_meanwhile_keeps_both_versions(notes: Notes) -> None:
    read = notes.write(A, "one\n")
    assert read is not None
    seen = files.blob_id(b"one\n")
    notes.write(A, "theirs\n")
    head = notes.history.head()
    with (  # noqa: PT012 — the block's end is what raises
        pytest.raises(ConflictError, match="topics/a was changed") as caught,
        notes.history.change(Actor.AGENT, "") as change,
    ):
        change.write(A, "ours\n", expecting=seen)
        change.write(B, "other\n", expecting=None)
    assert caught.value.paths == (A,)
    assert notes.text(A) == "theirs\n"
    (copy,) = Scanner(notes.workspace).conflict_copies()
    assert notes.text(copy) == "ours\n"
    assert copy in str(caught.value)
    assert not notes.exists(B), "a change is all or nothing"
    assert notes.history.head() == head
    assert Scanner(notes.workspace).scan().keys() == {A}
    notes.check()


def test_a_conflict_about_the_same_text_is_none(notes: Notes) -> None:
    notes.write(A, "same in the end\n")
    with notes.history.change(Actor.AGENT, "") as change:
        change.write(A, "same in the end\n", expecting=files.blob_id(b"older\n"))
    assert change.result is None


def test_deleting_what_somebody_changed_is_refused(notes: Notes) -> None:
    notes.write(A, "one\n")
    notes.put(A, "edited outside\n")
    with pytest.raises(ConflictError), notes.history.change(Actor.AGENT, "") as change:
        change.delete(A, expecting=files.blob_id(b"one\n"))
    assert notes.text(A) == "edited outside\n"
    assert Scanner(notes.workspace).conflict_copies() == []


def test_an_outside_edit_is_recorded_as_the_users_before_it_is_built_upon(notes: Notes) -> None:
    notes.write(A, "one\n", Actor.AGENT)
    notes.put(A, "one\nmine\n")
    notes.write(A, "one\nmine\nagent's\n", Actor.AGENT)
    agent, user, _ = notes.history.log(A)
    assert (agent.actor, user.actor) == (Actor.AGENT, Actor.YOU)
    assert "+mine" in notes.git("show", user.id)
    assert "+mine" not in notes.git("show", agent.id)
    notes.check()


def test_an_outside_deletion_is_recorded_as_the_users(notes: Notes) -> None:
    notes.write(A, "one\n", Actor.AGENT)
    notes.put(A, None)
    notes.write(A, "again\n", Actor.AGENT)
    agent, user, _ = notes.history.log(A)
    assert [path.kind for path in agent.paths + user.paths] == ["added", "deleted"]
    assert user.actor == Actor.YOU


def test_a_rename_moves_the_file(notes: Notes) -> None:
    notes.write(A, "text\n")
    with notes.history.change(Actor.YOU, "") as change:
        change.rename(A, "knowledge/people/a.md")
    assert change.result is not None
    assert not notes.exists(A)
    assert notes.text("knowledge/people/a.md") == "text\n"
    assert change.result.subject == "topics/a renamed to people/a"
    (path,) = change.result.paths
    assert (path.kind, path.old_path) == ("renamed", A)
    notes.check()


def test_a_rename_overwrites_nothing(notes: Notes) -> None:
    notes.write(A, "a\n")
    notes.write(B, "b\n")
    with (
        pytest.raises(UsageError, match="exists already"),
        notes.history.change(Actor.YOU, "") as change,
    ):
        change.rename(A, B)
    with pytest.raises(NotFoundError), notes.history.change(Actor.YOU, "") as change:
        change.rename("knowledge/topics/none.md", "knowledge/topics/c.md")
    assert (notes.text(A), notes.text(B)) == ("a\n", "b\n")


def test_a_name_may_change_its_case_only(notes: Notes) -> None:
    notes.write(A, "text\n")
    with notes.history.change(Actor.YOU, "") as change:
        change.rename(A, "knowledge/topics/A.md")
    assert notes.text("knowledge/topics/A.md") == "text\n"
    notes.check()


def test_a_new_name_that_differs_only_in_case_is_refused(notes: Notes) -> None:
    notes.write(A, "text\n")
    with pytest.raises(UsageError, match="only in case"):
        notes.write("knowledge/topics/A.md", "other\n")
    assert notes.text(A) == "text\n"


@pytest.mark.parametrize("path", ["docs/p/readme.md", "sessions/x.jsonl", "notes.md"])
def test_only_recorded_areas_are_written(notes: Notes, path: str) -> None:
    with pytest.raises(UsageError, match="not a file that the history keeps"):
        notes.write(path, "x\n")


@pytest.mark.parametrize("path", ["../a.md", ".kbtui/format", "knowledge/.git/config"])
def test_unsafe_paths_are_refused(notes: Notes, path: str) -> None:
    with pytest.raises(UnsafePathError):
        notes.write(path, "x\n")


def test_a_file_keeps_its_mode(notes: Notes) -> None:
    notes.write(A, "one\n")
    (notes.workspace.root / A).chmod(0o600)
    notes.write(A, "two\n")
    assert stat.S_IMODE((notes.workspace.root / A).stat().st_mode) == 0o600


def test_companions_add_edits_in_their_order(notes: Notes) -> None:
    def first(change: Change) -> None:
        change.write(B, f"{len(change.edits)} edits\n")

    def second(change: Change) -> None:
        change.write(B, (change.read(B) or b"") + b"second\n")

    notes.history.add_companion(first)
    notes.history.add_companion(second)
    commit = notes.write(A, "x\n")
    assert notes.text(B) == "1 edits\nsecond\n"
    assert {path.path for path in commit.paths} == {A, B}
    notes.check()


def test_a_companion_that_fails_stops_the_change(notes: Notes) -> None:
    def fail(_: Change) -> None:
        raise UsageError("no")

    notes.history.add_companion(fail)
    with pytest.raises(UsageError):
        notes.write(A, "x\n")
    assert not notes.exists(A)


def test_listeners_hear_of_every_commit_after_the_lock_is_released(notes: Notes) -> None:
    heard: list[Changed] = []

    def listen(event: Changed) -> None:
        with WorkspaceLock(notes.workspace).hold(timeout=0):
            heard.append(event)

    unsubscribe = notes.history.subscribe(listen)
    notes.put(A, "outside\n")
    commit = notes.write(A, "agent\n", Actor.AGENT)
    assert [event.actor for event in heard] == [Actor.YOU, Actor.AGENT]
    assert heard[1] == Changed(commit.id, (A,), Actor.AGENT)
    unsubscribe()
    unsubscribe()
    notes.write(A, "more\n")
    assert len(heard) == 2


def test_an_event_names_what_a_renamed_file_was_called(notes: Notes) -> None:
    notes.write(A, "some text\n")
    heard: list[Changed] = []
    notes.history.subscribe(heard.append)
    with notes.history.change(Actor.YOU, "rename") as change:
        change.rename(A, B)
    assert heard[0].paths == (B,)
    assert set(heard[0].all_paths) == {A, B}


def test_a_sink_takes_a_change_and_nothing_is_written(notes: Notes) -> None:
    taken: list[Change] = []
    with notes.history.change(Actor.AGENT, "edit", sink=taken.append) as change:
        change.write(A, "text\n")
    with notes.history.change(Actor.AGENT, "nothing", sink=taken.append):
        pass
    assert taken == [change]
    assert change.result is None
    assert not notes.exists(A)


def test_a_busy_workspace_names_the_holder(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    real = WorkspaceLock.hold
    monkeypatch.setattr(WorkspaceLock, "hold", lambda self, timeout=5.0: real(self, 0.01))
    with WorkspaceLock(notes.workspace).hold():
        with pytest.raises(WorkspaceBusyError, match=f"process {os.getpid()}"):
            notes.write(A, "x\n")
        assert notes.history.adopt(settle=0) is None
    assert not notes.exists(A)


def test_a_read_only_workspace_can_be_read_but_not_written(notes: Notes) -> None:
    notes.write(A, "text\n")
    notes.put(A, "text\nmore\n")
    closed = Workspace(notes.workspace.root, writable=False)
    history = History(closed, Scanner(closed))
    assert history.open().created is False
    assert history.adopt() is None
    assert history.read(A, "HEAD") == b"text\n"
    assert [commit.subject for commit in history.log()] == ["topics/a created"]
    assert len(history.diff("HEAD")) == 1
    with (
        pytest.raises(StorageError, match="read-only") as caught,
        history.change(Actor.YOU, "") as change,
    ):
        change.write(A, "x\n")
    assert "make the folder writable" in caught.value.hint


def test_a_read_only_workspace_without_history_is_an_empty_history(workspace: Workspace) -> None:
    closed = Workspace(workspace.root, writable=False)
    history = History(closed, Scanner(closed))
    assert history.head() is None
    assert list(history.log()) == []
    assert history.diff(None) == ()
    with pytest.raises(NotFoundError):
        history.resolve("HEAD")


def test_machines_store_no_secret_that_they_bring(notes: Notes) -> None:
    secret = "ghp_" + "a1B2" * 9
    own = "ghp_" + "z9Y8" * 9
    notes.put(A, f"my own: {own}\n")
    with notes.history.change(Actor.AGENT, f"because {secret}") as change:
        change.write(A, f"my own: {own}\ntheirs: {secret}\n")
    assert notes.text(A) == f"my own: {own}\ntheirs: [redacted: GitHub token]\n"
    for commit in notes.git("rev-list", "HEAD").split():
        assert secret not in notes.git("show", commit)


def test_a_secret_that_a_companion_adds_to_a_machines_change_is_not_stored(notes: Notes) -> None:
    first, second, own = (f"ghp_{each}" + "a1B2" * 8 + "a1B" for each in "xyz")
    notes.put(B, f"{own}\n")

    def add(change: Change) -> None:
        for path, data in change.edits.items():
            change.replace(path, (data or b"") + f"added: {second}\n".encode())

    notes.history.add_companion(add)
    with notes.history.change(Actor.AGENT, "") as change:
        change.write(A, f"Words.\n{first}\n")
        change.write(B, f"{own}\n{first}\n")
    added = "added: [redacted: GitHub token]\n"
    assert notes.text(A) == f"Words.\n[redacted: GitHub token]\n{added}"
    assert notes.text(B) == f"{own}\n[redacted: GitHub token]\n{added}"


def test_a_machines_refused_version_is_kept_without_its_secrets(notes: Notes) -> None:
    secret = "ghp_" + "a1B2" * 9
    notes.put(A, "one\n")
    with pytest.raises(ConflictError), notes.history.change(Actor.AGENT, "") as change:
        change.write(A, f"theirs: {secret}\n", expecting=files.blob_id(b"another\n"))
    (copy,) = (notes.workspace.root / A).parent.glob("*.conflict-*")
    assert copy.read_text() == "theirs: [redacted: GitHub token]\n"


def test_of_two_versions_that_are_refused_at_one_moment_both_are_kept(notes: Notes) -> None:
    notes.put(A, "one\n")
    now = notes.clock()
    history = History(notes.workspace, Scanner(notes.workspace), lambda: now)
    for theirs in ("first\n", "second\n", "second\n"):
        with pytest.raises(ConflictError), history.change(Actor.YOU, "") as change:
            change.write(A, theirs, expecting=files.blob_id(b"another\n"))
    copies = (notes.workspace.root / A).parent.glob("*.conflict-*")
    assert sorted(copy.read_text() for copy in copies) == ["first\n", "second\n"]


def test_what_the_user_writes_is_never_altered(notes: Notes) -> None:
    secret = "ghp_" + "a1B2" * 9
    notes.write(A, f"key: {secret}\n", Actor.YOU)
    assert notes.text(A) == f"key: {secret}\n"


def test_long_subjects_are_cut_at_a_path(notes: Notes) -> None:
    with notes.history.change(Actor.IMPORT, "") as change:
        for number in range(40):
            change.write(f"knowledge/topics/entry-number-{number:02}.md", "x\n")
    assert change.result is not None
    assert len(change.result.subject) < 130
    assert change.result.subject.endswith("; and 37 more")


def test_what_was_deleted_stands_before_the_links_that_it_takes_along(notes: Notes) -> None:
    notes.put(A, "See [[zoo]].\n")
    notes.put("knowledge/topics/zoo.md", "Animals.\n")
    with notes.history.change(Actor.YOU, "") as change:
        change.write(A, "See zoo.\n")
        change.delete("knowledge/topics/zoo.md")
    assert change.result is not None
    assert change.result.subject.startswith("topics/zoo deleted; ")


def test_the_generated_index_does_not_crowd_the_subject(notes: Notes) -> None:
    with notes.history.change(Actor.YOU, "") as change:
        change.write("knowledge/INDEX.md", "- a\n")
        change.write(A, "x\n")
    assert change.result is not None
    assert change.result.subject == "topics/a created"


def test_many_files_at_once_become_one_pack(notes: Notes) -> None:
    with notes.history.change(Actor.IMPORT, "") as change:
        for number in range(300):
            change.write(f"knowledge/topics/{number}.md", f"text {number}\n")
    packs = list((notes.workspace.repository / "objects" / "pack").glob("*.pack"))
    assert len(packs) == 1
    assert notes.history.read("knowledge/topics/7.md", "HEAD") == b"text 7\n"
    notes.write(A, "one more\n")
    notes.check()


def test_a_file_becomes_a_folder_and_back(notes: Notes) -> None:
    notes.write("knowledge/x", "file\n")
    with notes.history.change(Actor.YOU, "") as change:
        change.delete("knowledge/x")
    notes.write("knowledge/x/deep/y.md", "below\n")
    assert notes.history.tree("HEAD").keys() == {"knowledge/x/deep/y.md"}
    notes.check()


def test_bytes_that_are_no_text_are_kept(notes: Notes) -> None:
    data = bytes(range(256)) * 10
    with notes.history.change(Actor.AGENT, "") as change:
        change.write("knowledge/picture.png", data)
    assert notes.history.read("knowledge/picture.png", "HEAD") == data
    assert files.read_bytes(notes.workspace.root, "knowledge/picture.png") == data
