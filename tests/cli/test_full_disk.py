"""On a full disk, with an edit from outside that can't be recorded, all that only reads works."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.cli.root import cli
from tests.faults.disk import Call, Disk
from tests.faults.test_failing_disk import REFUSED

if TYPE_CHECKING:
    from tests.cli.conftest import Command

# What reads, and what it must answer with; {out} lies on another disk.
READING = {
    "list": (("list",), "topics/carol"),
    "show": (("show", "alice"), "edited outside"),
    "show --json": (("show", "bob", "--json"), "Bob"),
    "show --at": (("show", "alice", "--at", "HEAD"), "She lives in Graz"),
    "search": (("search", "boat"), "topics/bob.md"),
    "links": (("links", "alice"), "topics/bob.md"),
    "similar": (("similar", "alice"), ""),
    "log": (("log",), "Bob"),
    "diff": (("diff", "HEAD"), "+edited outside"),
    "why": (("why", "topics/bob:9"), "You wrote it."),
    "tasks": (("tasks",), ""),
    "sessions": (("sessions",), "Where does Alice live?"),
    "inbox": (("inbox",), "Nothing waits."),
    "audit": (("audit",), "0 unaccounted"),
    "dream-log": (("dream-log",), "Dream has changed nothing yet"),
    "doctor": (("doctor",), "free"),
    "check": (("check",), "not recorded"),
    "workspaces": (("workspaces",), "notes"),
    "config": (("config", "list"), "models.chat.model"),
    "git": (("git", "log", "--oneline"), ""),
    "help": (("help", "search"), "Search for passages"),
    "completion": (("completion", "bash"), "kbtui"),
    "export": (("export", "-o", "{out}/notes"), "written to"),
    "export a zip": (("export", "-o", "{out}/notes.zip"), "written to"),
}
WRITING = {
    *("init", "setup", "ask", "chat", "new", "edit", "rename", "delete", "undo", "restore"),
    *(
        "add",
        "remember",
        "forget",
        "correct",
        "import",
        "consolidate",
        "dream",
        "dream-restore",
        "sync",
    ),
    *("purge", "reindex", "mcp"),
}


@contextmanager
def simulated(folder: Path) -> Iterator[Callable[[], None]]:
    def before(call: Call) -> None:
        if call.name in REFUSED[errno.ENOSPC]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), call.path)

    disk = Disk(folder)
    disk.before = before
    with disk.installed():
        yield lambda: None


@contextmanager
def filled(folder: Path) -> Iterator[Callable[[], None]]:
    """A real disk, full to the last byte after each call: what is derived may be given up."""
    large, small = folder / "large", folder / "small"

    def fill() -> None:
        for file, size in ((large, 1 << 16), (small, 1)):
            with (
                pytest.raises(OSError, match="No space left"),
                file.open("ab", buffering=0) as opened,
            ):
                opened.writelines(itertools.repeat(b"x" * size))

    yield fill
    large.unlink()
    small.unlink()


@pytest.fixture(params=["a real disk", "calls that are refused"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param != "a real disk":
        yield folder
        return
    size = ["-o", "size=8m", "none", folder]
    if subprocess.run(["mount", "-t", "tmpfs", *size], check=False, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_every_command_is_known_to_read_or_to_write() -> None:
    known = {arguments[0] for arguments, _ in READING.values()} | WRITING
    assert known == set(cli.commands)


def test_whatever_reads_works(kbtui: Command, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "CACHE", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(disk / name.lower()))
    monkeypatch.setenv("KBTUI_SEARCH__BACKGROUND", "false")
    kbtui.root = disk / "notes"
    kbtui.bare("init", str(kbtui.root))
    kbtui.ok("new", "topic", "Alice", "--body", "She lives in Graz. See [[Bob]].")
    kbtui.ok("new", "topic", "Bob", "--body", "He has a boat.")
    kbtui("ask", "Where does Alice live?")
    alice = kbtui.file("knowledge/topics/alice.md")
    before = kbtui.ok("log").out
    with alice.open("a") as file:
        file.write("edited outside\n")
    kbtui.file("knowledge/topics/carol.md").write_text("# Carol\n")
    wrong = {}
    full = filled if os.path.ismount(disk) else simulated
    with tempfile.TemporaryDirectory() as out, full(disk) as fill:
        for name, (arguments, wanted) in READING.items():
            fill()
            done = kbtui(*(argument.format(out=out) for argument in arguments))
            if wanted not in done.out + done.err or done.status not in {0, 1}:
                wrong[name] = done
        exported = {file.name for file in Path(out).rglob("*.md")}
        fill()
        refused = kbtui("new", "topic", "Dora")
    assert wrong == {}
    assert exported >= {"alice.md", "bob.md", "carol.md"}
    assert refused.status == 3
    assert "no space left" in refused.err
    shutil.rmtree(disk / "cache", ignore_errors=True)
    after = kbtui.ok("log").out
    assert after.endswith(before), "what is recorded stays"
    assert "carol" in after.removesuffix(before).lower(), "and with room again the rest is recorded"
