"""The history from a script: log, diff, undo, restore, git."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor
from kbtui.history.history import History
from kbtui.workspace.opening import open_workspace
from kbtui.workspace.scan import Scanner
from tests.e2e import program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

SHAPE = {"commit", "time", "actor", "subject", "paths", "session", "messages"}


@pytest.fixture
def told(kbtui: Command) -> Command:
    """Three changes: two entries made, and one of them changed from outside."""
    kbtui.ok("new", "topic", "Docker", "-b", "One.\n\nTwo.\n\nThree.")
    kbtui.ok("new", "person", "Ann")
    file = kbtui.file("knowledge/topics/docker.md")
    file.write_text(file.read_text().replace("Two.", "Zwei."))
    return kbtui


def test_the_log_is_newest_first_and_has_the_promised_keys(told: Command) -> None:
    *commits, installed = told.ok("log", "--json").json
    assert len(commits) == 3
    assert installed["actor"] == "import"
    assert all(set(commit) >= SHAPE for commit in commits)
    assert commits[0]["paths"] == ["knowledge/topics/docker.md"]
    assert commits[0]["actor"] == "you"
    assert "people/ann created" in commits[1]["subject"]
    assert len(told.ok("log", "--json", "-n", "2").json) == 2


@pytest.mark.parametrize(
    "name", ["docker", "topics/docker", "knowledge/topics/docker.md", "Docker"]
)
def test_the_log_of_one_entry(told: Command, name: str) -> None:
    assert len(told.ok("log", name, "--json").json) == 2


def test_the_log_of_a_folder_of_an_actor_and_of_nothing(told: Command) -> None:
    assert len(told.ok("log", "people", "--json").json) == 1
    assert told("log", "--actor", "dream", "--json").status == 1
    assert told("log", "never-there").status == 1
    lines = told.ok("log", "knowledge").out.splitlines()
    assert len(lines) == 3
    assert all("You" in line for line in lines)


def test_the_log_of_what_was_deleted(told: Command) -> None:
    told.ok("delete", "ann")
    assert len(told.ok("log", "people/ann", "--json").json) == 2


def test_diff_is_a_patch_and_its_status_says_whether_there_is_one(told: Command) -> None:
    told.ok("log")
    done = told("diff", "HEAD~1", "HEAD", "docker")
    assert done.status == 1
    assert "-Two.\n" in done.out
    assert "+Zwei.\n" in done.out
    assert told("diff", "HEAD~1").out == told("diff", "HEAD~1", "HEAD").out
    assert told("diff", "HEAD~1", "people").status == 0
    same = told("diff", "HEAD", "HEAD")
    assert (same.status, same.out) == (0, "")


def test_undo_takes_one_change_back_and_restore_brings_a_state(told: Command) -> None:
    file = told.file("knowledge/topics/docker.md")
    changed, _ann, made, _skill = told.ok("log", "--json").json
    after = file.read_text()
    assert "Zwei" not in (told.ok("undo", changed["commit"][:10]) and file.read_text())
    assert told("undo", changed["commit"]).status == 2
    restored = told.ok("restore", "docker", "--at", changed["commit"], "--json").json
    assert set(restored) >= SHAPE
    assert file.read_text() == after
    told.ok("restore", "docker", "--at", made["commit"])
    assert "Two." in file.read_text()
    assert "already" in told.ok("restore", "docker", "--at", made["commit"]).err


def test_restore_brings_back_what_is_gone(told: Command) -> None:
    told.ok("delete", "ann")
    told.ok("restore", "people/ann", "--at", "HEAD~1")
    assert told.file("knowledge/people/ann.md").exists()


def test_undo_of_what_was_changed_again_is_a_conflict_and_changes_nothing(told: Command) -> None:
    file = told.file("knowledge/topics/docker.md")
    commit = told.ok("log", "--json").json[0]["commit"]
    text = file.read_text().replace("Zwei.", "Deux.")
    file.write_text(text)
    assert told("undo", commit).status == 5
    assert file.read_text() == text


def test_undo_alone_takes_back_the_last_change_and_says_which(told: Command) -> None:
    ann, file = told.file("knowledge/people/ann.md"), told.file("knowledge/topics/docker.md")
    first = told.ok("undo")
    assert "Taking back: You wrote ● Ann (" in first.out
    assert not ann.exists()
    assert "Zwei" in file.read_text(), "what was edited with another program stays"
    told.ok("undo", first.err.rpartition("kbtui undo ")[2].strip())
    assert ann.exists(), "as it says it comes back"
    told.ok("undo")
    asked = told("undo")
    assert "Taking back: You wrote ■ Docker (" in asked.out
    assert asked.status != 0, "it was edited since: which side is to stand is asked"
    told.ok("undo", "--prefer", "before")
    assert not file.exists()
    done = told("undo")
    assert (done.status, done.out) == (2, "")
    assert "no change to take back" in done.err
    assert told.file("skills/knowledge-base/SKILL.md").exists(), "what kbtui put there stays"


def test_no_undo_takes_a_vault_as_it_was_found_away(kbtui: Command, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    note = vault / "Home.md"
    note.write_text("# Home\n")
    assert kbtui.bare("-w", str(vault), "list").status == 0
    alone = kbtui.bare("-w", str(vault), "undo")
    assert (alone.status, "no change to take back" in alone.err) == (2, True)
    found = kbtui.bare("-w", str(vault), "log", "--json").json[-1]["commit"]
    for arguments in ((found,), (found, "--path", "Home.md"), (found, "--hunk", "1")):
        refused = kbtui.bare("-w", str(vault), "undo", *arguments)
        assert refused.status == 2
        assert "This is how kbtui found your files" in refused.err
    assert note.read_text() == "# Home\n"


def test_undo_alone_takes_back_a_whole_import(kbtui: Command, tmp_path: Path) -> None:
    folder = tmp_path / "old-notes"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nA line of {name}.\n")
    kbtui.ok("import", str(folder), "--yes")
    before = len(kbtui.ok("list").out.splitlines())
    kbtui.ok("undo")
    assert len(kbtui.ok("list").out.splitlines()) == before - 2


def test_undo_of_a_turn(kbtui: Command) -> None:
    kbtui.ok("ask", "remember that the alarm code is in the blue folder")
    commits = kbtui.ok("log", "--json").json
    turn = commits[0]["turn"]
    assert turn
    before = kbtui.ok("list", "--json").json
    for part in (["--hunk", "1"], ["--path", commits[0]["paths"][0]]):
        assert kbtui("undo", "--turn", turn, *part).status == 2  # and not: all of it is undone
    assert kbtui.ok("log", "--json").json == commits
    kbtui.ok("undo", "--turn", turn)
    assert kbtui.ok("list", "--json").json != before or len(before) == 0
    assert kbtui("undo", "--turn", "none").status == 1
    assert kbtui("undo", "HEAD", "--turn", turn).status == 2


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_reads_the_history_with_all_its_options(told: Command) -> None:
    told.ok("log")
    log = program.ok("git", "log", "--format=%s", "-n", "1", workspace=told.root)
    assert log.out == "topics/docker: +1 -1 lines\n"
    assert program.ok("git", "status", "--porcelain", workspace=told.root).out == ""
    program.ok("git", "fsck", "--strict", workspace=told.root)
    assert program.kbtui("git", "no-such-command", workspace=told.root).status != 0


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_of_a_vault_in_place_messages_and_patches_name_the_files_that_are_there(
    kbtui: Command, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Home.md").write_text("# Home\n\nOne.\n")
    assert kbtui.bare("init", str(vault)).status == 0
    first = kbtui.bare("-w", str(vault), "log", "--json").json[0]["commit"]
    (vault / "Home.md").write_text("# Home\n\nTwo.\n")
    patch = kbtui.bare("-w", str(vault), "diff", first).out
    assert "--- a/Home.md\n+++ b/Home.md\n" in patch
    (vault / "Home.md").unlink()
    done = kbtui.bare("-w", str(vault), "why", "knowledge/Home.md")
    assert done.status != 0
    assert "knowledge/" not in patch + done.err


def test_git_takes_what_diff_prints(told: Command, tmp_path: Path) -> None:
    told.ok("log")
    patch = tmp_path / "a.patch"
    patch.write_text(told("diff", "HEAD~1", "HEAD").out)
    program.ok("git", "apply", "-R", str(patch), workspace=told.root)
    assert "Two." in told.file("knowledge/topics/docker.md").read_text()


@pytest.fixture
def changed_again(told: Command) -> tuple[Command, str]:
    """A line that was changed twice; the first of these changes."""
    first = told.ok("log", "--json", "-n", "1").json[0]["commit"]
    file = told.file("knowledge/topics/docker.md")
    file.write_text(file.read_text().replace("Zwei.", "Deux."))
    told.ok("log")
    return told, first


def test_a_conflict_shows_both_sides_and_changes_nothing(
    changed_again: tuple[Command, str],
) -> None:
    told, first = changed_again
    done = told("undo", first)
    assert done.status == 5
    assert "now: Deux." in done.err
    assert "before: Two." in done.err
    assert "--prefer" in done.err
    assert "Deux." in told.file("knowledge/topics/docker.md").read_text()


@pytest.mark.parametrize(("side", "status", "line"), [("now", 2, "Deux."), ("before", 0, "Two.")])
def test_a_conflict_is_settled_by_a_side(
    changed_again: tuple[Command, str], side: str, status: int, line: str
) -> None:
    told, first = changed_again
    done = told("undo", first, "--prefer", side)
    assert done.status == status, done
    assert line in told.file("knowledge/topics/docker.md").read_text()


def test_everything_goes_back_to_before_a_change_and_a_dry_run_only_shows_it(
    told: Command,
) -> None:
    told.ok("log")
    ann = told.ok("log", "people/ann", "--json").json[0]["commit"]
    told.file("knowledge/topics/by-hand.md").write_text("# By hand\n")
    shown = told.ok("restore", "--to-before", ann, "--dry-run").out
    assert "-Zwei.\n" in shown
    assert told.file("knowledge/people/ann.md").exists()
    told.ok("restore", "--to-before", ann)
    assert not told.file("knowledge/people/ann.md").exists()
    assert not told.file("knowledge/topics/by-hand.md").exists()
    assert "Two." in told.file("knowledge/topics/docker.md").read_text()
    told.ok("restore", "by-hand", "--at", "HEAD~1")
    assert told.file("knowledge/topics/by-hand.md").read_text() == "# By hand\n"
    assert told("restore", "docker").status == 2
    assert told("restore", "--at", "HEAD").status == 2


def test_a_dry_run_of_a_restore_shows_it(told: Command) -> None:
    told.ok("log")
    shown = told.ok("restore", "docker", "--at", "HEAD~1", "--dry-run").out
    assert "-Zwei.\n+Two.\n" in shown
    assert "Zwei." in told.file("knowledge/topics/docker.md").read_text()


def test_entries_are_listed_shown_and_searched_as_they_were(told: Command) -> None:
    told.ok("delete", "ann")
    now = [entry["path"] for entry in told.ok("list", "--json").json]
    then = [entry["path"] for entry in told.ok("list", "--json", "--at", "HEAD~1").json]
    assert sorted({*then} - {*now}) == ["knowledge/people/ann.md"]
    today = told.ok("log", "--json", "-n", "1").json[0]["time"][:10]
    assert [e["path"] for e in told.ok("list", "--json", "--at", today).json] == now
    assert "Two." in told.ok("show", "docker", "--at", "HEAD~2").out
    assert "Zwei." in told.ok("show", "docker", "--at", today).out
    hits = told.ok("search", "Two", "--at", "HEAD~2", "--json").json["hits"]
    assert hits[0]["path"] == "knowledge/topics/docker.md"
    assert told("search", "Two", "--at", today).status == 1
    assert told("list", "--at", "1999-01-01").status == 1


def test_an_undo_of_a_batch_that_is_not_there_says_so(told: Command) -> None:
    done = told("undo", "--batch", "i9")
    assert done.status == 1
    assert "The batch i9 changed nothing." in done.err


def test_a_damaged_history_keeps_nobody_from_reading_and_nothing_is_written(
    told: Command,
) -> None:
    told.ok("log")
    repository = told.root / ".kbtui/history.git"
    head = (repository / "refs/heads/main").read_text().strip()
    broken = repository / "objects" / head[:2] / head[2:]
    broken.chmod(0o644)
    broken.write_bytes(b"garbage")
    listed = told.ok("list", "--json")
    assert len(listed.json) == 2
    assert "no readable object" in listed.err
    assert told.ok("show", "docker").out
    assert told.ok("log", "--json").json[0]["commit"] == head
    for command in (["new", "topic", "Kubernetes"], ["undo", "HEAD"], ["diff", "HEAD"]):
        done = told(*command)
        assert done.status == 1, done
        assert "no readable object" in done.err
        assert "kbtui doctor" in done.err
    assert not told.file("knowledge/topics/kubernetes.md").exists()


def test_what_is_taken_back_is_said_by_titles(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Docker [b] engine")
    kbtui.ok("rename", "docker-b-engine", "Podman")
    done = kbtui.ok("undo").out.splitlines()
    assert done[0].startswith("Taking back: You renamed Docker b engine to ")
    assert done[0].partition(" (")[0].endswith("Podman")
    assert "undid a change: renamed Podman to" in done[1]
    assert "topics/" not in "".join(done)
    assert "deleted ■ Docker b engine" in kbtui.ok("delete", "docker-b-engine").out


def test_a_note_is_compared_between_two_days_through_its_renames(
    kbtui: Command,
) -> None:
    now = [datetime(2026, 11, 1, tzinfo=UTC)]
    workspace = open_workspace(kbtui.root)
    history = History(workspace, Scanner(workspace), lambda: now[0])
    history.open()
    for day, name, text in (
        (2, "tap", "# Tap\n\nDrips.\n"),
        (4, "tap", "# Tap\n\nDrips a lot.\n"),
        (6, "kitchen-tap", "# Tap\n\nPlumber on Tuesday.\n"),
    ):
        now[0] = datetime(2026, 11, day, 23, 59, 59).astimezone()
        with history.change(Actor.YOU, f"day {day}") as change:
            change.write(f"knowledge/topics/{name}.md", text)
        if day == 4:
            with history.change(Actor.YOU, "renamed") as change:
                change.rename("knowledge/topics/tap.md", "knowledge/topics/kitchen-tap.md")
    note = ("diff", "--note", "kitchen-tap", "--from")
    whole = kbtui(*note, "2026-11-04")
    assert whole.status == 1
    assert "-Drips.\n" in whole.out
    assert "+Plumber on Tuesday.\n" in whole.out
    assert "rename from knowledge/topics/tap.md" in whole.out
    one_day = kbtui(*note, "4 November 2026", "--to", "2026-11-05").out
    assert "+Drips a lot.\n" in one_day
    assert "Plumber" not in one_day
    assert kbtui(*note, "2026-11-05", "--to", "2026-11-05").status == 0
    assert "+Drips.\n" in kbtui(*note, "2026-11-01", "--to", "2026-11-02").out
    change = kbtui.ok("log", "kitchen-tap", "--json").json[1]["commit"]
    assert "-Drips a lot.\n" in kbtui(*note, change).out, "from a change on"


def test_diff_says_what_it_needs(told: Command) -> None:
    for words in ((), ("--note", "docker"), ("HEAD", "--from", "today"), ("--from", "today")):
        refused = told("diff", *words)
        assert refused.status == 2
        assert "--note NOTE --from DAY" in refused.err
    refused = told("diff", "--note", "docker", "--from", "soonish")
    assert "names neither a past day nor a change" in refused.err
    assert "No calendar has" in told("diff", "--note", "docker", "--from", "2026-02-30").err
