"""The commands that look after a knowledge base: check, git, sync, purge."""

from __future__ import annotations

import json
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

A = "knowledge/topics/a.md"


@pytest.fixture
def told(kbtui: Command) -> Command:
    kbtui.file(A).write_text("---\ntype: topic\n---\n# A\n\nSee [[b]].\n")
    kbtui.file("knowledge/topics/b.md").write_text("# B\n")
    kbtui.ok("log")
    return kbtui


def test_a_sound_workspace_has_nothing_wrong(told: Command) -> None:
    done = told.ok("check")
    assert "All is well" in done.err
    assert told.ok("check", "--json").json == []


def test_check_finds_what_is_damaged_and_says_what_to_do(told: Command) -> None:
    told.file("knowledge/topics/b.md").unlink()
    told.file("knowledge/topics/c.md").write_text("---\ntags: [a\n---\n# C\n")
    told.file("knowledge/topics/a.conflict-20260101T000000.md").write_text("other\n")
    told.file(".kbtui/inbox").mkdir(exist_ok=True)
    told.file(".kbtui/inbox/abcdef.json").write_text("{")
    told.file("sessions/s.jsonl").write_text("not json\n")
    told("log")
    loose = [
        file for file in told.file(".kbtui/history.git/objects").glob("??/*") if file.is_file()
    ]
    loose[0].chmod(0o600)
    loose[0].write_bytes(b"damaged")
    done = told("check", "--json")
    assert done.status == 1
    assert {problem["area"] for problem in done.json} >= {
        "history",
        "files",
        "inbox",
        "entries",
        "links",
    }
    assert all(problem["hint"] for problem in done.json)
    assert told("check").status == 1


@pytest.mark.parametrize(
    ("does", "status"), [("exit 3", 3), ("kill -PIPE $$", 141), ("kill -INT $PPID; exit 1", 1)]
)
def test_git_ends_as_in_a_shell_and_gets_the_interrupts_of_its_pager(
    told: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, status: int
) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncase "$*" in *log*) {does};; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    handler = signal.getsignal(signal.SIGINT)
    assert told("git", "log").status == status
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_may_not_rewrite_unasked(told: Command) -> None:
    head = told.ok("log", "-n", "1", "--json").json
    for arguments in (
        ["commit", "-m", "x"],
        ["reset", "--hard"],
        ["gc"],
        ["push"],
        ["-c", "core.pager=sh", "log"],
        ["--git-dir=/tmp", "log"],
        ["log", "--output=x"],
    ):
        done = told("git", *arguments)
        assert done.status == 2, arguments
        assert "--yes" in done.err or "shell" in done.err
    assert told.ok("log", "-n", "1", "--json").json == head


def test_two_workspaces_are_brought_together(told: Command, tmp_path: Path) -> None:
    place, other = str(tmp_path / "place.git"), str(tmp_path / "other")
    assert "sent" in told.ok("sync", place).out
    assert told.bare("init", other).status == 0
    assert told.bare("-w", other, "sync", place).status == 0
    assert (tmp_path / "other" / A).read_text() == told.file(A).read_text()
    for root, line in ((told.root, "here"), (tmp_path / "other", "there")):
        (root / A).write_text(f"---\ntype: topic\n---\n# A\n\nSee [[b]], {line}.\n")
        (root / f"knowledge/topics/{line}.md").write_text(f"# {line}\n")
    told.ok("sync")
    done = told.bare("-w", other, "sync", "--json").json
    assert done["conflicts"] == [A]
    assert len(done["proposals"]) == 1
    told.ok("sync")
    index = told.file("knowledge/INDEX.md").read_text()
    assert index == (tmp_path / "other/knowledge/INDEX.md").read_text()
    assert "- here" in index
    assert "- there" in index
    assert told.bare("-w", other, "inbox", "accept", done["proposals"][0]).status == 0
    assert "here." in (tmp_path / "other" / A).read_text()
    assert told.ok("sync").out.startswith("Up to date")
    assert "brought ■ here" in told.bare("-w", other, "log").out


def test_a_place_that_is_not_there_ends_with_4(told: Command, tmp_path: Path) -> None:
    assert told("sync").status == 2
    done = told("sync", str(tmp_path / "no" / "disk"))
    assert done.status == 4
    assert "Is the disk connected?" in done.err
    assert told("sync", "git://127.0.0.1:1/x").status == 4


def test_a_secret_on_standard_input_is_purged(told: Command) -> None:
    secret = "sk-verysecret-0123456789"
    told.file(A).write_text(f"# A\n\n{secret}\n")
    told.file("sessions").mkdir(exist_ok=True)
    told.file("sessions/s.jsonl").write_text(json.dumps({"text": secret}) + "\n")
    told("log")
    found = told.ok("purge", "--dry-run", "--json", stdin=secret).json
    assert found["objects"] >= 1
    assert {"path": "sessions/s.jsonl", "count": 1} in found["files"]
    done = told.ok("purge", stdin=f"{secret}\n")
    assert "Change the key" in done.err
    assert told.file(A).read_text() == "# A\n\n(removed)\n"
    assert secret not in told.file("sessions/s.jsonl").read_text()
    assert told("purge", "--dry-run", stdin=secret).status == 1
    assert told("purge", stdin="").status == 2
    told.file("sessions/s.jsonl").unlink()
    told.file("knowledge/topics/b.md").write_text("# B\n")
    assert told("check", "--json").json == []


def test_accounts_of_two_machines_are_united() -> None:
    from kbtui.memory.records.record_merge import merge_cursors, merge_lines, merge_shown

    def line(cursor: int, origin: str) -> str:
        return json.dumps({"cursor": cursor, "content": f"{cursor} {origin}", "origin": origin})

    base = f"{line(1, 'a')}\n".encode()
    here = base + f"{line(2, 'a')}\n{line(3, 'a')}\n".encode()
    there = base + f"{line(2, 'b')}\nbroken".encode()
    path = "memory/history.jsonl"
    merged = merge_lines(path, base, here, there)
    assert merged == merge_lines(path, base, there, here)
    wanted = [line(1, "a"), line(2, "a"), line(2, "b"), line(3, "a"), "broken", ""]
    assert (merged or b"").decode().split("\n") == wanted
    assert merge_lines(path, here, base, here) == base  # one side moved lines elsewhere
    shown = [
        b"[2026-01-01 10:00] One.\n\n",
        b"[2026-01-02 10:00] Two.\n\nMore.\n\n",
        b"[2026-01-03 10:00] X.\n\n",
    ]
    assert merge_shown(
        "memory/HISTORY.md", shown[0], shown[0] + shown[2], shown[0] + shown[1]
    ) == b"".join(shown)
    cursors = [
        json.dumps({"dream": each}).encode() for each in ({"a": 5}, {"a": 2}, {"a": 5, "b": 7})
    ]
    united = merge_cursors("memory/cursors.json", *cursors)
    assert json.loads(united or b"") == {"dream": {"a": 2, "b": 7}}  # taken back on purpose
