"""Sync: both sides' changes, the same history on all machines, and never a lost side."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import KbtuiError, RefusedHistoryError, RemoteError, StoppedError, UsageError
from kbtui.history.change import Actor
from kbtui.history.door import Door
from kbtui.history.intent import IntentLog
from kbtui.history.objects.branch import Branch
from kbtui.history.objects.lineage import diverge
from kbtui.history.objects.repository import Repository
from kbtui.history.sync import shared_folder
from kbtui.history.sync.remote import SyncWatcher, parse_address, shown_address
from tests.history.sync_room import Machine, fsck, plumb
from tests.history.test_recovery import Crash, crash_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

A = "knowledge/topics/a.md"
B = "knowledge/topics/b.md"
TEXT = """\
---
title: A
created: 2026-01-02
updated: 2026-01-02
tags: [x]
---
# A

- one
- two

The end.
"""


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "here", tmp_path / "remote.git")
    machine.write(A, TEXT)
    machine.sync()
    return machine


@pytest.fixture
def there(here: Machine, tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "there", here.remote)
    machine.sync()
    return machine


def in_step(*machines: Machine) -> dict[str, str]:
    """All machines at the same commit with the same files, everything sound."""
    for machine in machines:
        machine.check()
    files = machines[0].files()
    assert all(machine.files() == files for machine in machines)
    assert len({machine.history.head() for machine in machines}) == 1
    return files


def test_an_empty_folder_becomes_a_place_to_sync_with(here: Machine, tmp_path: Path) -> None:
    fsck(tmp_path / "remote.git")
    again = here.sync()
    assert (again.received, again.sent, again.merge) == (0, 0, None)


def _git(*arguments: str | Path) -> str:
    who = ["-c", "user.name=me", "-c", "user.email=me@localhost"]
    done = subprocess.run(["git", *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize("told", ["", "updateInstead", "ignore"])
def test_a_branch_that_is_checked_out_is_not_written_unless_that_is_wanted(
    here: Machine, tmp_path: Path, told: str
) -> None:
    folder = tmp_path / "clone"
    _git("clone", "-q", here.remote, folder)
    if told:
        _git("-C", folder, "config", "receive.denyCurrentBranch", told)
    here.write(B, TEXT)
    here.remote = str(folder)
    if told == "ignore":
        assert here.sync().sent == 1
        return
    with pytest.raises(RemoteError, match="checked out"):
        here.sync()
    assert _git("-C", folder, "status", "--porcelain") == ""
    assert here.text(B) == TEXT


@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_a_folder_whose_git_is_a_file_is_synced_with(
    here: Machine, tmp_path: Path, kind: str
) -> None:
    outer, folder = tmp_path / "outer", tmp_path / "outer" / "notes"
    _git("init", "-q", "-b", "other", outer)
    _git("-C", outer, "commit", "-q", "--allow-empty", "-m", "first")
    if kind == "worktree":
        _git("-C", outer, "worktree", "add", "-q", "-b", "main", folder)
    else:
        allowed = ["-c", "protocol.file.allow=always"]
        _git("-C", outer, *allowed, "submodule", "add", "-q", here.remote, "notes")
    assert (folder / ".git").is_file()
    _git("-C", folder, "checkout", "-q", "--detach")
    here.write(B, "# B\n")
    here.remote = str(folder)
    here.sync()
    other = Machine(tmp_path / "other", folder)
    other.sync()
    in_step(here, other)


def test_a_remote_that_is_tidied_up_meanwhile_takes_the_changes(
    here: Machine, there: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program there repacks: what was just sent lies in another file already."""
    here.write(B, "# B\n")
    listed = Path.iterdir
    swept: list[Path] = []

    def sweep_first(folder: Path) -> Iterator[Path]:
        files = list(listed(folder))
        if folder == Path(here.remote) / "objects" / "pack":
            swept.extend(files)
            _git("--git-dir", here.remote, "repack", "-a", "-d", "-q")
        return iter(files)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", sweep_first)
        assert here.sync().sent == 1
    assert any(not file.exists() for file in swept)
    there.sync()
    in_step(here, there)


def test_a_folder_keeps_few_packs_and_those_that_others_may_be_reading_for_a_while(
    here: Machine, there: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_folder, "MAX_PACKS", 3)
    folder = Path(here.remote) / "objects" / "pack"
    seen: set[Path] = set()
    for number in range(6):
        here.write(B, f"# B\n\n- {number}\n")
        here.sync()
        assert seen <= set(folder.iterdir())
        seen = set(folder.iterdir())
    fsck(Path(here.remote))
    for file in seen:
        os.utime(file, (0, 0))
    there.write(A, TEXT + "\nMore.\n")
    there.sync()
    here.sync()
    assert len(list(folder.glob("*.pack"))) <= 4
    fsck(Path(here.remote))
    in_step(here, there)


def test_packs_of_a_repository_with_other_branches_are_left_to_git(
    here: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_folder, "MAX_PACKS", 1)
    _git("--git-dir", here.remote, "branch", "other", "main")
    for number in range(3):
        here.write(B, f"# B\n\n- {number}\n")
        here.sync()
    packs = (Path(here.remote) / "objects" / "pack").glob("*.pack")
    assert len(list(packs)) == 4


@pytest.mark.parametrize("head", ["refs/heads/master", "refs/heads/gone"])
def test_a_remote_that_has_only_a_branch_of_another_name_is_synced_with_there(
    here: Machine, there: Machine, head: str
) -> None:
    _git("--git-dir", here.remote, "branch", "-m", "main", "master")
    _git("--git-dir", here.remote, "symbolic-ref", "HEAD", head)
    for machine in (there, here):
        machine.write(A, machine.text(A).replace("The end.", "The end is near."))
        machine.sync()
    there.sync()
    assert "near" in in_step(here, there)[A]
    assert [each.name for each in Path(here.remote, "refs/heads").iterdir()] == ["master"]


def test_of_several_branches_the_one_in_use_is_synced_with_and_without_one_it_is_refused(
    here: Machine,
) -> None:
    git = "--git-dir", here.remote
    _git(*git, "branch", "-m", "main", "master")
    _git(*git, "branch", "drafts", "master")
    _git(*git, "symbolic-ref", "HEAD", "refs/heads/gone")
    with pytest.raises(RefusedHistoryError, match=r"several others: drafts, master\."):
        here.sync()


def test_a_new_workspace_takes_what_is_there(here: Machine, there: Machine) -> None:
    assert in_step(here, there) == {A: TEXT}


def test_edits_of_both_sides_end_in_one_text(here: Machine, there: Machine) -> None:
    here.write(A, TEXT.replace("- one\n", "- one\n- here\n").replace("[x]", "[x, h]"))
    there.write(A, TEXT.replace("- two\n", "- two\n- there\n").replace("[x]", "[t, x]"))
    here.sync()
    report = there.sync()
    here.sync()
    assert report.merge is not None
    assert report.merge.actor is Actor.SYNC
    assert not there.clashes
    text = in_step(here, there)[A]
    assert "- one\n- here\n- two\n- there\n" in text
    assert "tags: [t, x, h]" in text
    assert len(there.git("cat-file", "-p", "HEAD").split("parent ")) == 3


def test_of_dates_the_later_update_and_the_earlier_creation_win(
    here: Machine, there: Machine
) -> None:
    here.write(A, TEXT.replace("updated: 2026-01-02", "updated: 2026-03-01"))
    there.write(
        A,
        TEXT.replace("updated: 2026-01-02", "updated: 2026-02-01").replace(
            "created: 2026-01-02", "created: 2025-12-31"
        ),
    )
    here.sync()
    there.sync()
    here.sync()
    text = in_step(here, there)[A]
    assert "updated: 2026-03-01" in text
    assert "created: 2025-12-31" in text
    assert not there.clashes


def test_of_one_line_changed_on_both_sides_ours_stays_and_theirs_is_handed_over(
    here: Machine, there: Machine
) -> None:
    here.write(A, TEXT.replace("The end.", "The end of here."))
    there.write(A, TEXT.replace("The end.", "The end of there."))
    here.sync()
    there.sync()
    here.sync()
    assert "The end of there." in in_step(here, there)[A]
    [clash] = there.clashes
    assert clash.path == A
    assert clash.kept == there.text(A).encode()
    assert clash.theirs.decode() == there.text(A).replace("end of there", "end of here")


def test_an_edit_wins_over_a_deletion(here: Machine, there: Machine) -> None:
    here.write(B, "# B\n")
    here.sync()
    there.sync()
    here.write(A, None)
    there.write(A, TEXT + "More.\n")
    there.write(B, None)
    here.write(B, "# B\n\nMore.\n")
    here.sync()
    report = there.sync()
    here.sync()
    assert in_step(here, there) == {A: TEXT + "More.\n", B: "# B\n\nMore.\n"}
    assert [note.split(" ", 2)[:2] for note in report.notes] == [
        ["topics/a", "stays:"],
        ["topics/b", "is"],
    ]


@pytest.mark.parametrize("first", ["rename", "edit"])
def test_an_edit_follows_a_rename(here: Machine, there: Machine, first: str) -> None:
    with there.history.change(Actor.YOU, "rename") as change:
        change.rename(A, B)
    here.write(A, TEXT.replace("- two", "- two, and more"))
    order = (there, here) if first == "rename" else (here, there)
    for machine in (*order, *order):
        machine.sync()
    assert in_step(here, there) == {B: TEXT.replace("- two", "- two, and more")}


def test_a_file_renamed_on_both_sides_keeps_one_name(here: Machine, there: Machine) -> None:
    with here.history.change(Actor.YOU, "rename") as change:
        change.rename(A, "knowledge/topics/here.md")
    with there.history.change(Actor.YOU, "rename") as change:
        change.rename(A, "knowledge/topics/there.md")
    here.sync()
    report = there.sync()
    here.sync()
    assert in_step(here, there) == {"knowledge/topics/there.md": TEXT}
    assert report.notes


def test_files_made_on_both_sides_under_one_name_become_one(here: Machine, there: Machine) -> None:
    front = "---\ntype: topic\ncreated: 2026-01-0{}\ntags: [{}]\n---\n# B\n\n"
    here.write(B, front.format(1, "h") + "Here.\n")
    there.write(B, front.format(2, "t") + "There.\n")
    here.sync()
    there.sync()
    here.sync()
    text = in_step(here, there)[B]
    assert text.count("---\n") == 2
    assert text.count("# B") == 1
    assert "created: 2026-01-01" in text
    assert {"Here.", "There."} <= set(text.splitlines())


def test_what_no_text_can_hold_lies_beside(here: Machine, there: Machine) -> None:
    file = "knowledge/topics/a.bin"
    for machine, data in ((here, b"\0here"), (there, b"\0there")):
        (machine.workspace.root / file).write_bytes(data)
    here.sync()
    there.sync()
    here.sync()
    [copy] = there.workspace.root.glob("knowledge/topics/a.conflict-*.bin")
    assert copy.read_bytes() == b"\0here"
    assert (here.workspace.root / file).read_bytes() == b"\0there"
    in_step(here, there)


def test_outside_edits_are_recorded_first(here: Machine, there: Machine) -> None:
    here.put(A, TEXT + "From an editor.\n")
    here.sync()
    there.put(B, "Not recorded yet.\n")
    there.sync()
    here.sync()
    assert in_step(here, there) == {A: TEXT + "From an editor.\n", B: "Not recorded yet.\n"}


def test_a_merge_can_be_undone(here: Machine, there: Machine) -> None:
    here.write(A, TEXT.replace("- one\n", "- one\n- here\n"))
    there.write(B, "# B\n")
    here.sync()
    merge = there.sync().merge
    assert merge is not None
    there.history.undo(merge.id)
    assert there.text(A) == TEXT
    assert there.text(B) == "# B\n"
    there.sync()
    here.sync()
    assert in_step(here, there) == {A: TEXT, B: "# B\n"}


def test_another_knowledge_base_is_refused(here: Machine, tmp_path: Path) -> None:
    stranger = Machine(tmp_path / "stranger", here.remote)
    stranger.write(B, "Something else.\n")
    before = stranger.history.head()
    with pytest.raises(RefusedHistoryError, match="no past in common"):
        stranger.sync()
    assert stranger.history.head() == before
    assert stranger.files() == {B: "Something else.\n"}


class _Race(SyncWatcher):
    """Does something on another machine in the moment before our push."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(self._hear)
        self._act: Callable[[], object] | None = act

    def _hear(self, text: str) -> None:
        if text.startswith("Sending") and self._act is not None:
            act, self._act = self._act, None
            act()


def test_who_was_slower_takes_over_and_tries_again(here: Machine, there: Machine) -> None:
    there.write(A, TEXT + "There.\n")
    here.write(B, "# B\n")
    report = there.sync(_Race(here.sync))
    assert report.merge is not None
    here.sync()
    assert in_step(here, there) == {A: TEXT + "There.\n", B: "# B\n"}


@pytest.mark.parametrize("what", ["merge", "forward"])
def test_an_edit_in_the_very_moment_of_applying_is_taken_along(
    here: Machine, there: Machine, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    here.write(A, TEXT.replace("- one", "- one here"))
    here.sync()
    if what == "merge":
        there.write(B, "# B\n")
    saves = iter([TEXT.replace("The end.", "The end there.")])
    check = Door._check_unmodified

    def save_first(door: Door, path: str, *rest: Any) -> None:
        for text in saves:
            there.put(A, text)
        check(door, path, *rest)

    monkeypatch.setattr(Door, "_check_unmodified", save_first)
    there.sync()
    here.sync()
    text = in_step(here, there)[A]
    assert "- one here" in text
    assert "The end there." in text
    assert not there.clashes


@pytest.mark.parametrize("goes", [True, False])
@pytest.mark.parametrize("what", ["merge", "forward"])
def test_a_git_program_that_writes_meanwhile_is_waited_for(
    here: Machine, there: Machine, what: str, *, goes: bool
) -> None:
    here.write(A, TEXT + "Here.\n")
    here.sync()
    if what == "merge":
        there.write(B, "# B\n")
    before = there.history.head()
    lock = there.workspace.repository / "refs/heads/main.lock"
    lock.touch()
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        if "once more" in text and goes:
            lock.unlink(missing_ok=True)

    if goes:
        there.sync(SyncWatcher(tell))
        here.sync()
        in_step(here, there)
    else:
        with pytest.raises(RemoteError, match="git program is writing") as caught:
            there.sync(SyncWatcher(tell))
        assert str(lock) in caught.value.hint
        assert there.history.head() == before
        assert there.text(A) == TEXT
    assert sum("once more" in text for text in told) == (1 if goes else 6)


@pytest.mark.parametrize("moment", ["Looking", "Sending"])
def test_a_stopped_sync_leaves_everything_and_can_be_repeated(
    here: Machine, there: Machine, moment: str
) -> None:
    here.write(A, TEXT + "Here.\n")
    here.sync()
    there.write(B, "# B\n")
    stopped: list[bool] = []
    watcher = SyncWatcher(
        lambda text: stopped.append(True) if text.startswith(moment) else None,
        lambda: bool(stopped),
    )
    with pytest.raises(StoppedError):
        there.sync(watcher)
    assert there.text(B) == "# B\n"
    there.check()
    there.sync()
    here.sync()
    in_step(here, there)
    assert not list(there.workspace.repository.glob("incoming-*"))


@pytest.mark.parametrize("what", ["merge", "forward"])
@pytest.mark.parametrize("step", [(Branch, "move"), (IntentLog, "clear")])
def test_a_sync_that_is_killed_while_it_applies_is_finished_by_the_next_start(
    here: Machine,
    there: Machine,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    step: tuple[type, str],
) -> None:
    here.write(A, TEXT.replace("- one", "- one here"))
    here.write(B, "# B\n")
    here.sync()
    if what == "merge":
        there.write(A, TEXT.replace("The end.", "The end there."))
    before = there.files()
    with monkeypatch.context() as patch:
        crash_at(patch, *step)
        with pytest.raises(Crash):
            there.sync()
    there.history = there.reopened()
    there.check()
    assert there.files() == before or "- one here" in there.text(A)
    there.sync()
    here.sync()
    text = in_step(here, there)[A]
    assert "- one here" in text
    assert ("The end there." in text) is (what == "merge")


def test_a_missing_disk_and_a_wrong_address_are_sentences(here: Machine, tmp_path: Path) -> None:
    for remote in (tmp_path / "gone" / "remote.git", here.workspace.root, "git://127.0.0.1:1/x"):
        here.remote = str(remote)
        with pytest.raises(RemoteError) as caught:
            here.sync()
        assert caught.value.exit_code == 4
        assert caught.value.hint


@pytest.mark.parametrize(
    "text", ["", "-oProxyCommand=x", "ext::sh -c x", "ftp://h/x", "https://", "a\nb"]
)
def test_what_is_no_address_is_refused(text: str, tmp_path: Path) -> None:
    try:
        address = parse_address(text, tmp_path)
    except UsageError:
        return
    assert address.folder is not None
    assert address.folder.is_relative_to(tmp_path)


def test_a_folder_may_be_named_by_an_encoded_url(here: Machine, tmp_path: Path) -> None:
    here.remote = (tmp_path / "a stick, 100 % ü#?").as_uri()
    assert "%20" in here.remote
    here.sync()
    fsck(tmp_path / "a stick, 100 % ü#?")
    assert [each.name for each in tmp_path.iterdir() if "%" in each.name] == ["a stick, 100 % ü#?"]


@pytest.mark.parametrize(
    "text",
    ["file://", "file://host/x", "file:///a%00b", "file:///a%0Ab", "file:///a?b", "~nobody-here/x"],
)
def test_what_names_no_folder_is_a_sentence(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(text)
    assert caught.value.hint


def test_a_folder_that_cannot_be_is_a_sentence(here: Machine, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert parse_address(f"a:{'x' * 300}").folder is None
    for remote in ("x" * 300, str(tmp_path / "circle")):
        here.remote = remote
        with pytest.raises(KbtuiError) as caught:
            here.sync()
        assert "\n" not in caught.value.message


def test_a_token_is_never_shown() -> None:
    assert shown_address("https://me:geheim@host.example/x.git") == "https://host.example/x.git"
    assert shown_address("https://geheim@host.example/x.git") == "https://host.example/x.git"
    assert shown_address("ssh://me@host.example/x.git") == "ssh://me@host.example/x.git"


def test_three_machines_in_a_ring_without_a_centre_agree(tmp_path: Path) -> None:
    """Two places, synced with crosswise: merges of merges."""
    one, two = tmp_path / "one.git", tmp_path / "two.git"
    first, second = Machine(tmp_path / "first", one), Machine(tmp_path / "second", one)
    first.write(A, TEXT)
    first.sync()
    second.sync()
    for round_ in range(2):
        first.write(A, first.text(A) + f"- first {round_}\n")
        second.write(A, second.text(A).replace("- one", f"- second {round_}\n- one"))
        for machine, remote in ((first, one), (second, two), (first, two), (second, one)):
            machine.remote = str(remote)
            machine.sync()
    for machine, remote in ((first, one), (first, two), (second, one), (second, two), (first, one)):
        machine.remote = str(remote)
        machine.sync()
    text = in_step(first, second)[A]
    assert all(f"- first {n}" in text and f"- second {n}" in text for n in range(2))


def test_how_far_two_histories_are_apart(here: Machine, there: Machine) -> None:
    base = here.history.head()
    mine = here.write(B, "b\n").id
    theirs = there.write(A, TEXT + "x\n").id
    here.sync()
    merge = there.sync().merge
    assert merge is not None
    repository = Repository(there.workspace.repository)
    apart = diverge(repository, mine, theirs)
    assert apart.base == base
    assert [each for each, _ in apart.ours] == [mine]
    assert [each for each, _ in apart.theirs] == [theirs]
    assert diverge(repository, merge.id, mine).base == mine
    repository.close()


def test_what_a_dead_process_left_in_the_folder_keeps_nobody_from_syncing(tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    one = Machine(tmp_path / "one", remote)
    one.write("knowledge/topics/a.md", "one\n")
    one.sync()
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    (remote / f"kbtui-writes-{platform.node()}-{dead.stdout.strip()}").touch()
    (remote / "refs/heads/main.lock").touch()
    (remote / "objects/pack/tmp1234.pack").write_bytes(b"half")
    one.write("knowledge/topics/a.md", "two\n")
    assert one.sync().sent == 1
    assert [*remote.rglob("*.lock"), *remote.rglob("tmp*"), *remote.glob("kbtui-*")] == []


@pytest.mark.parametrize("age", [3600, -8e9], ids=["an hour ago", "the year 2200 or so"])
def test_a_lock_of_another_program_is_believed_for_some_minutes(tmp_path: Path, age: float) -> None:
    remote = tmp_path / "remote.git"
    one = Machine(tmp_path / "one", remote)
    one.write("knowledge/topics/a.md", "one\n")
    one.sync()
    lock = remote / "refs/heads/main.lock"
    lock.touch()
    one.write("knowledge/topics/a.md", "two\n")
    with pytest.raises(RemoteError, match="Another program is writing"):
        one.sync()
    os.utime(lock, (time.time() - age,) * 2)
    assert one.sync().sent == 1


def test_a_folder_that_somebody_was_cut_off_in_making_a_repository_is_made_one(
    tmp_path: Path,
) -> None:
    remote = tmp_path / "remote.git"
    for name in ("branches", "refs/heads", "objects/pack"):
        (remote / name).mkdir(parents=True)
    one = Machine(tmp_path / "one", remote)
    one.write("knowledge/topics/a.md", "one\n")
    assert one.sync().sent == 1
    fsck(remote)


def test_a_folder_that_git_has_tidied_up_can_be_synced_with_after_the_next_push(
    tmp_path: Path,
) -> None:
    remote = tmp_path / "remote"
    here, there = (Machine(tmp_path / name, remote) for name in ("here", "there"))
    here.write("knowledge/a.md", "one\n")
    here.sync()
    plumb(remote, "repack", "-adb", "-q")
    here.write("knowledge/a.md", "two\n")
    here.sync()
    assert there.sync().received == 2
    here.write("knowledge/a.md", "three\n")
    here.sync()
    assert there.sync().received == 1
    assert there.text("knowledge/a.md") == "three\n"
