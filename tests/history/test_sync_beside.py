"""A remote like any other: what it has beside the notes is kept and ignored, its authors named."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import RefusedHistoryError
from tests.history.sync_room import Machine, fsck, plumb

if TYPE_CHECKING:
    from pathlib import Path

A, B = "knowledge/a.md", "knowledge/b.md"
BESIDE = {"README.md": "# Hello\n", "LICENSE": "MIT\n", ".github/workflows/ci.yml": "on: push\n"}
ZOE = ["-c", "user.name=Zoe Quist", "-c", "user.email=zoe@example.org"]


class Clone:
    """Somebody without kbtui, who works on the remote with git."""

    def __init__(self, folder: Path, remote: Path) -> None:
        self.folder = folder
        self._git("clone", "-q", str(remote), str(folder), cwd=folder.parent)
        self._git("checkout", "-q", "-B", "main")

    def _git(self, *arguments: str, cwd: Path | None = None) -> None:
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(["git", *ZOE, *arguments], cwd=cwd or self.folder, env=env, check=True)

    def push(self, files: dict[str, str], subject: str = "by hand") -> None:
        for path, text in files.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self._git("add", "-A")
        self._git("commit", "-q", "-m", subject)
        self._git("push", "-q", "origin", "main")

    def pull(self) -> None:
        self._git("pull", "-q", "origin", "main")


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", folder], check=True)
    return folder


def _kept(remote: Path) -> set[str]:
    return set(plumb(remote, "ls-tree", "-r", "--name-only", "main").splitlines())


def test_a_new_repository_with_a_readme_takes_a_workspace_in(tmp_path: Path, remote: Path) -> None:
    Clone(tmp_path / "clone", remote).push(BESIDE)
    here = Machine(tmp_path / "here", remote)
    here.write(A, "# A\n")
    report = here.sync()
    assert any("README.md" in note and "not written here" in note for note in report.notes)
    assert _kept(remote) == {*BESIDE, A}
    assert here.files() == {A: "# A\n"}
    assert not (here.workspace.root / "README.md").exists()
    assert not (here.workspace.root / ".github").exists()
    there = Machine(tmp_path / "there", remote)
    there.sync()
    assert there.files() == {A: "# A\n"}
    there.write(B, "# B\n")
    there.sync()
    assert here.sync().notes == ()
    assert here.files() == {A: "# A\n", B: "# B\n"}
    assert _kept(remote) == {*BESIDE, A, B}
    fsck(remote)
    fsck(here.workspace.repository)


def test_what_is_changed_beside_the_notes_is_merged_and_never_deleted(
    tmp_path: Path, remote: Path
) -> None:
    here = Machine(tmp_path / "here", remote)
    here.write(A, "# A\n")
    here.sync()
    clone = Clone(tmp_path / "clone", remote)
    clone.push(BESIDE)
    here.write(A, "# A\n\nMore.\n")
    here.sync()
    assert _kept(remote) == {*BESIDE, A}
    clone.pull()
    (clone.folder / "LICENSE").unlink()
    clone.push({"README.md": "# Changed\n"})
    here.write(B, "# B\n")
    here.sync()
    assert _kept(remote) == {*BESIDE, A, B} - {"LICENSE"}
    assert plumb(remote, "show", "main:README.md") == "# Changed"
    here.history.undo(next(iter(here.history.log(B))).id)
    assert here.files() == {A: "# A\n\nMore.\n"}
    here.sync()
    assert "README.md" in _kept(remote)
    (here.workspace.root / "README.md").write_text("Mine alone.\n")
    here.write(A, "# A\n\nEven more.\n")
    here.sync()
    assert plumb(remote, "show", "main:README.md") == "# Changed"


def test_a_repository_of_other_notes_is_not_taken_for_a_new_one(
    tmp_path: Path, remote: Path
) -> None:
    Clone(tmp_path / "clone", remote).push({"README.md": "x\n", "Projects/Kestrel.md": "x\n"})
    here = Machine(tmp_path / "here", remote)
    here.write(A, "# A\n")
    with pytest.raises(RefusedHistoryError, match="holds no knowledge base") as caught:
        here.sync()
    assert "init NEW-FOLDER --in-place" in caught.value.hint
    assert _kept(remote) == {"README.md", "Projects/Kestrel.md"}


def test_an_author_elsewhere_keeps_the_name_in_log_and_blame(tmp_path: Path, remote: Path) -> None:
    here = Machine(tmp_path / "here", remote)
    here.write(A, "mine\n")
    here.sync()
    Clone(tmp_path / "clone", remote).push({A: "mine\nhers\n"}, "Add a line")
    here.sync()
    newest = next(iter(here.history.log(A)))
    assert (newest.subject, newest.who) == ("Add a line", "Zoe Quist")
    assert [commit.who for commit in here.history.log()] == ["Zoe Quist", "you"]
    assert [origin.who for origin in here.history.blame(A)] == ["you", "Zoe Quist"]
    here.write(A, "mine\nhers\nmine again\n")
    assert [origin.who for origin in here.history.blame(A)] == ["you", "Zoe Quist", "you"]
