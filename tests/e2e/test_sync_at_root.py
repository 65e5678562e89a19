"""Syncing a vault with a remote that holds notes at its root, as git programs for notes do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.program import kbtui, ok

PICTURE = bytes(range(256))
ZOE = ["-c", "user.name=Zoe Quist", "-c", "user.email=zoe@example.org"]


class Person:
    """Somebody with a clone and a git program for notes."""

    def __init__(self, folder: Path, remote: Path) -> None:
        self.folder = folder
        self.git("clone", "-q", remote, folder, cwd=folder.parent)
        self.git("checkout", "-q", "-B", "main")

    def git(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            ["git", *ZOE, *arguments],
            cwd=cwd or self.folder,
            env=env,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def push(self, files: dict[str, str | bytes]) -> None:
        for name, text in files.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "vault backup")
        self.git("push", "-q", "origin", "main")

    def pull(self) -> dict[str, bytes]:
        self.git("pull", "-q", "--ff-only", "origin", "main")
        return notes_of(self.folder)


def notes_of(folder: Path) -> dict[str, bytes]:
    every = (file for file in folder.rglob("*") if file.is_file())
    names = {file.relative_to(folder).as_posix(): file for file in every}
    return {name: file.read_bytes() for name, file in names.items() if name[0] != "."}


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", folder], check=True)
    return folder


@pytest.fixture
def zoe(tmp_path: Path, remote: Path) -> Person:
    zoe = Person(tmp_path / "zoe", remote)
    zoe.push(
        {
            "Home.md": "# Home\n\n- one\n- two\n\n![[nest.png]]\n",
            "INDEX.md": "My own index.\n",
            "Work/Plan.md": "Build it in spring.\n",
            "Work/INDEX.md": "Of work.\n",
            "nest.png": PICTURE,
            ".obsidian/app.json": "{}",
        }
    )
    return zoe


def new_vault(folder: Path, remote: Path) -> Path:
    ok("init", folder, "--in-place")
    ok("sync", remote, workspace=folder)
    return folder


def test_its_notes_come_and_edits_go_back_to_where_they_lie(
    tmp_path: Path, remote: Path, zoe: Person
) -> None:
    before = notes_of(zoe.folder)
    vault = tmp_path / "vault"
    ok("init", vault, "--in-place")
    assert "root" in ok("sync", remote, workspace=vault).err
    assert notes_of(vault) == before
    assert not (vault / ".obsidian").exists()
    assert "Zoe Quist" in ok("log", "Home", workspace=vault).out
    (vault / "Home.md").write_text("# Home\n\n- one\n- three\n\n![[nest.png]]\n")
    (vault / "Work/New.md").write_text("New.\n")
    (vault / "Work/Plan.md").unlink()
    ok("sync", workspace=vault)
    assert zoe.pull() == notes_of(vault)
    assert (zoe.folder / ".obsidian/app.json").exists()
    assert zoe.git("ls-files").split() == sorted(
        [".obsidian/app.json", "Home.md", "INDEX.md", "Work/INDEX.md", "Work/New.md", "nest.png"]
    )
    zoe.push({"Work/New.md": "New.\n\nAnd more.\n"})
    ok("sync", workspace=vault)
    assert (vault / "Work/New.md").read_text() == "New.\n\nAnd more.\n"
    zoe.git("fetch", "-q")
    assert zoe.git("rev-list", "--count", "origin/main").strip() == "3"
    assert zoe.git("fsck", "--full", "--strict") == ""
    ok("check", workspace=vault)


def test_a_vault_that_holds_the_same_notes_already_joins(
    tmp_path: Path, remote: Path, zoe: Person
) -> None:
    vault = tmp_path / "vault"
    shutil.copytree(zoe.folder, vault, ignore=shutil.ignore_patterns(".git"))
    (vault / "Mine.md").write_text("Only here.\n")
    (vault / "Home.md").write_text("# Home\n\n- one\n- two\n- here\n\n![[nest.png]]\n")
    ok("init", vault)
    ok("new", "decision", "No boats", workspace=vault)
    ok("sync", remote, workspace=vault)
    assert zoe.pull() == notes_of(vault)
    assert (zoe.folder / "Mine.md").read_text() == "Only here.\n"
    assert "- here" in (zoe.folder / "Home.md").read_text()
    ok("check", workspace=vault)
    assert ok("sync", workspace=vault).out.startswith("Up to date")


def test_what_both_changed_waits_in_the_inbox_and_all_end_alike(
    tmp_path: Path, remote: Path, zoe: Person
) -> None:
    one, other = (new_vault(tmp_path / name, remote) for name in ("one", "other"))
    (one / "Home.md").write_text("# Home\n\n- one here\n- two\n\n![[nest.png]]\n")
    zoe.push({"Home.md": "# Home\n\n- one of Zoe's\n- two\n\n![[nest.png]]\n"})
    (other / "Work/Plan.md").write_text("Build it in summer.\n")
    assert "kbtui inbox" in ok("sync", workspace=one).err
    assert "one here" in (one / "Home.md").read_text()
    [waiting] = ok("inbox", "list", "--json", workspace=one).json
    assert "one of Zoe's" in ok("inbox", "show", waiting["id"], workspace=one).out
    ok("sync", workspace=other)
    ok("sync", workspace=one)
    assert notes_of(one) == notes_of(other) == zoe.pull()
    assert "summer" in (one / "Work/Plan.md").read_text()
    for vault in (one, other):
        ok("check", workspace=vault)


def test_what_was_purged_here_does_not_come_back_from_there(
    tmp_path: Path, remote: Path, zoe: Person
) -> None:
    vault = new_vault(tmp_path / "vault", remote)
    zoe.push({"Keys.md": "The key is lavender-7781-omega.\n"})
    ok("sync", workspace=vault)
    ok("purge", "lavender-7781-omega", "--yes", workspace=vault)
    refused = kbtui("sync", workspace=vault)
    assert refused.status != 0
    assert "filter-repo" in refused.err
    assert "lavender-7781-omega" not in (vault / "Keys.md").read_text()


def test_a_file_whose_name_is_taken_here_is_refused_and_stays_there(
    tmp_path: Path, remote: Path, zoe: Person
) -> None:
    vault = new_vault(tmp_path / "vault", remote)
    zoe.push({"Work/INDEX.MD": "Zoe's other index.\n"})
    (vault / "Home.md").write_text("# Home\n\n- mine\n")
    refused = kbtui("sync", workspace=vault)
    assert refused.status == 5
    assert "Work/INDEX.MD" in refused.err
    assert zoe.pull()["Work/INDEX.MD"] == b"Zoe's other index.\n"
    zoe.git("mv", "Work/INDEX.MD", "Work/Other.md")
    zoe.push({})
    ok("sync", workspace=vault)
    assert zoe.pull() == notes_of(vault)
    assert (vault / "Work/Other.md").read_text() == "Zoe's other index.\n"
