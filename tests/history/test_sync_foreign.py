"""What a remote holds among the notes that is no note: kept there, said, and not written here."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from kbtui.redaction.secret import Secret
from kbtui.workspace import files
from tests.history.sync_room import Machine, fsck, plumb
from tests.history.test_sync_hostile import Remote

if TYPE_CHECKING:
    from pathlib import Path

A, B, C = "knowledge/a.md", "knowledge/b.md", "knowledge/c.md"
LARGE = 2000

# Where it lies, its mode (none: a folder with a file in it), and how it is called when it is said.
KINDS = {
    "folder of another program": (b"knowledge", b".obsidian", None, "knowledge/.obsidian"),
    "hidden file": (b"knowledge", b".hidden.md", "100644", "knowledge/.hidden.md"),
    "like our own, among the notes": (b"knowledge", b".kbtui", None, "knowledge/.kbtui"),
    "our own": (b"", b".kbtui", None, ".kbtui"),
    "conversations": (b"", b"sessions", None, "sessions"),
    "settings": (b"", b"kbtui.toml", "100644", "kbtui.toml"),
    "a twin of an area": (b"", b"Knowledge", None, "Knowledge"),
    "a folder for a file": (b"", b"SOUL.md", None, "SOUL.md"),
    "a file for a folder": (b"", b"skills", "100644", "skills"),
    "link": (b"knowledge", b"link.md", "120000", r"knowledge/link\.md \(a link\)"),
    "link to a folder": (b"knowledge", b"people", "120000", r"knowledge/people \(a link\)"),
    "submodule": (b"knowledge", b"theme", "160000", r"knowledge/theme \(a submodule\)"),
    "large file": (b"knowledge", b"film.mp4", "large", r"knowledge/film\.mp4 \(larger than"),
    "backslash": (b"knowledge", b"a\\b.md", "100644", "knowledge/a"),
    "control character": (b"knowledge", b"a\x1b[2J.md", "100644", "knowledge/a"),
    "line break": (b"knowledge", b"a\nb.md", "100644", "knowledge/a b.md"),
    "no text": (b"knowledge", b"\xff\xfe.md", "100644", r"knowledge/\?\?\.md"),
    "direction": (b"knowledge", b"\xe2\x80\xaegpj.md", "100644", "knowledge/gpj.md"),
    "too long": (b"knowledge", b"x" * 300, "100644", "knowledge/xxx"),
}
Kind = tuple[bytes, bytes, "str | None", str]


class Vault(Remote):
    """A remote with A, and with B and something foreign where they are asked for."""

    def push(self, kind: Kind | None, b: str = "theirs\n") -> None:
        notes = [
            ("100644", b"a.md", self.blob(b"mine\n")),
            ("100644", b"b.md", self.blob(b.encode())),
        ]
        top: list[tuple[str, bytes, str]] = []
        if kind is not None:
            where, name, mode, _ = kind
            inside = self.tree(("100644", b"x.md", self.blob(b"foreign\n")))
            blob = self.blob(b"f" * LARGE if mode == "large" else b"/etc/passwd")
            target = inside if mode is None else self.base if mode == "160000" else blob
            entry = ("40000" if mode is None else mode.replace("large", "100644"), name, target)
            (notes if where else top).append(entry)
        top.append(("40000", b"knowledge", self._sorted(notes)))
        who = b"Zoe <z@example.org> 1763700000 +0000"
        data = b"tree %b\nparent %b\nauthor %b\ncommitter %b\n\nhello\n" % (
            self._sorted(top).encode(), self._tip().encode(), who, who,
        )  # fmt: skip
        made = plumb(self.folder, *("hash-object", "-w", "-t", "commit", "--stdin"), stdin=data)
        plumb(self.folder, "update-ref", "refs/heads/main", made)

    def _tip(self) -> str:
        return plumb(self.folder, "rev-parse", "main")

    def _sorted(self, entries: list[tuple[str, bytes, str]]) -> str:
        return self.tree(*sorted(entries, key=lambda e: e[1] + b"/" * (e[0] == "40000")))

    def holds(self, kind: Kind) -> bool:
        listed = ["git", "--git-dir", self.folder, "ls-tree", "-r", "-t", "-z", "--name-only"]
        names = subprocess.run([*listed, "main"], check=True, capture_output=True).stdout
        where, name, _, _ = kind
        return (where + b"/" + name if where else name) in names.split(b"\0")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(files, "READ_LIMIT", LARGE - 1)
    machine = Machine(tmp_path / "here", tmp_path / "remote.git")
    machine.write(A, "mine\n")
    machine.sync()
    return machine


def everything(machine: Machine) -> set[str]:
    """Every file in the workspace's folder that isn't kbtui's own."""
    root = machine.workspace.root
    every = (str(each.relative_to(root)) for each in root.rglob("*") if not each.is_dir())
    return {each for each in every if not each.startswith(".kbtui/")}


@pytest.mark.parametrize("ahead", [False, True], ids=["forward", "merged"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_it_is_said_once_and_kept_there_and_the_rest_syncs(
    here: Machine, tmp_path: Path, kind: Kind, ahead: bool
) -> None:
    vault = Vault(tmp_path / "remote.git")
    vault.push(kind)
    mine = {A: "mine\n", **({C: "new\n"} if ahead else {})}
    if ahead:
        here.write(C, "new\n")
    [note] = here.sync().notes
    assert re.match(kind[3], note)
    assert "kept there, and not written here" in note
    assert here.files() == {**mine, B: "theirs\n"}
    assert everything(here) == {*mine, B}
    here.write(B, "edited\n")
    assert here.sync().notes == ()
    there = Machine(tmp_path / "there", here.remote)
    there.sync()
    assert there.files() == here.files() == {**mine, B: "edited\n"}
    assert vault.holds(kind)
    for folder in (vault.folder, here.workspace.repository, there.workspace.repository):
        fsck(folder)


@pytest.mark.parametrize("ahead", [False, True], ids=["forward", "merged"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_a_later_commit_took_out_is_gone(
    here: Machine, tmp_path: Path, kind: Kind, ahead: bool
) -> None:
    vault = Vault(tmp_path / "remote.git")
    vault.push(kind)
    if ahead:
        here.sync()
        here.write(C, "new\n")
    vault.push(None, "later\n")
    assert here.sync().notes == ()
    assert here.text(B) == "later\n"
    assert not vault.holds(kind)
    here.check()


@pytest.mark.parametrize(
    ("name", "mode"), [("link", "120000"), ("submodule", "160000"), ("large file", "large")]
)
def test_a_note_of_ours_takes_the_place_of_what_is_only_kept(
    here: Machine, tmp_path: Path, name: str, mode: str
) -> None:
    kind = (b"knowledge", b"c.md", mode, "knowledge/c")
    vault = Vault(tmp_path / "remote.git")
    vault.push(kind)
    here.sync()
    here.put(C, "a note\n")
    here.sync()
    there = Machine(tmp_path / "there", here.remote)
    there.sync()
    assert there.files() == here.files() == {A: "mine\n", B: "theirs\n", C: "a note\n"}
    assert plumb(vault.folder, "ls-tree", "main", C).startswith("100644 blob")
    there.check()


def test_a_note_that_grew_too_large_there_is_only_kept_and_comes_back_when_it_shrinks(
    here: Machine, tmp_path: Path
) -> None:
    vault = Vault(tmp_path / "remote.git")
    for text, found in (("b\n", {B: "b\n"}), ("b" * LARGE, {}), ("small\n", {B: "small\n"})):
        vault.push(None, text)
        here.sync()
        assert here.files() == {A: "mine\n", **found}
        here.check()


def test_a_purge_keeps_in_mind_what_is_too_large(here: Machine, tmp_path: Path) -> None:
    Vault(tmp_path / "remote.git").push(KINDS["large file"])
    here.sync()
    with here.history.purging() as purge:
        purge.run(Secret("theirs"), lambda _: None)
    assert here.history.adopt(settle=0) is None
    assert set(here.files()) == {A, B}
