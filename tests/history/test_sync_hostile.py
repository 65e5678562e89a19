"""A remote may be anybody's: what no git program would make is refused whole."""

from __future__ import annotations

import struct
import zlib
from hashlib import sha1
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import RefusedHistoryError
from kbtui.history.change import Actor
from kbtui.history.sync import inspection
from kbtui.history.sync.inspection import check_pack
from tests.history.sync_room import Machine, plumb

if TYPE_CHECKING:
    from pathlib import Path

A, B = "knowledge/a.md", "knowledge/b.md"
_OUTSIDE = b"escaped"


class Remote:
    """A repository whose owner wants to do harm; real git writes whatever is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = plumb(folder, "rev-parse", "main")

    def blob(self, data: bytes = _OUTSIDE) -> str:
        return plumb(self.folder, "hash-object", "-w", "--stdin", stdin=data)

    def tree(self, *entries: tuple[str, bytes, str]) -> str:
        data = b"".join(
            mode.encode() + b" " + name + b"\0" + bytes.fromhex(sha) for mode, name, sha in entries
        )
        return plumb(
            self.folder, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=data
        )

    def offer(self, knowledge: str, top: bytes = b"knowledge", commit: bytes | None = None) -> None:
        """Let the branch point to a commit with this folder in it."""
        root = self.tree(("40000", top, knowledge))
        who = b"Mallory <m@example.org> 1763700000 +0000"
        data = commit or b"author %b\ncommitter %b\n\nhello\n" % (who, who)
        head = b"tree %b\nparent %b\n" % (root.encode(), self.base.encode())
        made = plumb(
            self.folder,
            *("hash-object", "-w", "-t", "commit", "--literally", "--stdin"),
            stdin=head + data,
        )
        plumb(self.folder, "update-ref", "refs/heads/main", made)


@pytest.fixture(scope="module")
def home_of_module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture
def victim(home_of_module: Path) -> Machine:
    """One workspace for all cases: nothing may ever be applied, so it stays as it is."""
    machine = Machine(home_of_module / "notes", home_of_module / "remote.git")
    if machine.history.head() is None:
        machine.write(A, "mine\n")
        machine.sync()
    return machine


@pytest.fixture
def remote(victim: Machine, home_of_module: Path) -> Remote:
    folder = home_of_module / "remote.git"
    plumb(folder, "update-ref", "refs/heads/main", victim.history.head() or "")
    return Remote(folder)


def refused(victim: Machine, saying: str) -> None:
    """Nothing at all is applied, inside or outside, and it is a sentence."""
    head, around = victim.history.head(), sorted(victim.workspace.root.parent.iterdir())
    with pytest.raises(RefusedHistoryError, match=saying) as caught:
        victim.sync()
    assert caught.value.exit_code == 5
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert victim.history.head() == head
    assert victim.files() == {A: "mine\n"}
    assert sorted(victim.workspace.root.parent.iterdir()) == around
    assert not [
        file
        for file in victim.workspace.root.rglob("*")
        if file.is_file() and file.read_bytes() == _OUTSIDE
    ]
    assert not list(victim.workspace.repository.glob("incoming-*"))


@pytest.mark.parametrize(
    "name",
    [
        b".git",
        b".GIT",
        b".git\xe2\x80\x8c",
        b"git~1",
        b"..",
        b".",
        b"a/b.md",
        b"/etc",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(
    victim: Machine, remote: Remote, name: bytes
) -> None:
    remote.offer(remote.tree(("100644", name, remote.blob())))
    refused(victim, "it holds the name")


def test_a_folder_with_such_a_name_is_refused(victim: Machine, remote: Remote) -> None:
    inside = remote.tree(("100644", b"config", remote.blob()))
    for name in (b".git", b"..", b"git~1"):
        remote.offer(remote.tree(("40000", name, inside)))
        refused(victim, "it holds the name")


@pytest.mark.parametrize(
    ("mode", "saying"),
    [
        ("100600", "no plain"),
        ("40001", "no plain"),
    ],
)
def test_modes_that_git_does_not_have_are_refused(
    victim: Machine, remote: Remote, mode: str, saying: str
) -> None:
    remote.offer(remote.tree((mode, b"b.md", remote.blob(b"/etc/passwd"))))
    refused(victim, saying)


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        (b"A.md", "A-2.md"),
        (b"b.md:x:$DATA", "b.md:x-DATA"),
        (b"b.md::$INDEX_ALLOCATION", "b.md-INDEX_ALLOCATION"),
        (b"b.md ", "b.md"),
        (b"e\xcc\x81.md", "\u00e9.md"),
    ],
)
def test_a_name_that_not_every_machine_can_have_becomes_another(
    tmp_path: Path, name: bytes, becomes: str
) -> None:
    victim = Machine(tmp_path / "notes", tmp_path / "remote.git")
    victim.write(A, "mine\n")
    victim.sync()
    remote = Remote(tmp_path / "remote.git")
    entries = [
        ("100644", name, remote.blob(b"theirs\n")),
        ("100644", b"a.md", remote.blob(b"mine\n")),
    ]
    remote.offer(remote.tree(*sorted(entries, key=lambda entry: entry[1])))
    assert victim.sync().notes
    assert victim.files() == {A: "mine\n", f"knowledge/{becomes}": "theirs\n"}
    assert sorted(
        plumb(remote.folder, "ls-tree", "-r", "--name-only", "-z", "main").split("\0")
    ) == [
        "",
        *sorted(victim.files()),
    ]


def test_a_name_twice_and_a_wrong_order_are_refused(victim: Machine, remote: Remote) -> None:
    one, two = remote.blob(b"1"), remote.blob(b"2")
    remote.offer(remote.tree(("100644", b"b.md", one), ("100644", b"b.md", two)))
    refused(victim, "malformed")
    remote.offer(remote.tree(("100644", b"c.md", one), ("100644", b"b.md", two)))
    refused(victim, "malformed")


@pytest.mark.parametrize("name", [b".git", b".GIT", b".git\xe2\x80\x8c", b"git~1", b".."])
def test_what_lies_beside_the_notes_has_no_such_name_either(
    victim: Machine, remote: Remote, name: bytes
) -> None:
    inside = remote.tree(("100644", name, remote.blob()))
    remote.offer(inside, top=b".github")
    refused(victim, "it holds the name")
    remote.offer(inside, top=name)
    refused(victim, "it holds the name")


def test_a_commit_that_is_none_is_refused(victim: Machine, remote: Remote) -> None:
    folder = remote.tree(("100644", b"a.md", remote.blob()))
    for commit in (
        b"\nhello",
        b"author x\ncommitter x\n\nhello",
        b"author A <a> 99999999999999 +0",
    ):
        remote.offer(folder, commit=commit)
        refused(victim, "malformed|missing or damaged")


def test_a_file_where_a_folder_should_be_is_refused(victim: Machine, remote: Remote) -> None:
    remote.offer(remote.tree(("40000", b"people", remote.blob())))
    refused(victim, "no folder|missing or damaged")


def test_a_file_that_is_too_large_is_refused(
    victim: Machine, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "MAX_OBJECT", 4096)
    remote.offer(remote.tree(("100644", b"a.md", remote.blob(b"\0" * 5000))))
    refused(victim, "a file of")


def _pack(size: int, data: bytes) -> BytesIO:
    head = bytearray()
    byte, rest = 3 << 4 | size & 15, size >> 4
    while rest:
        head.append(byte | 0x80)
        byte, rest = rest & 0x7F, rest >> 7
    head.append(byte)
    body = b"PACK" + struct.pack(">LL", 2, 1) + bytes(head) + zlib.compress(data)
    return BytesIO(body + sha1(body, usedforsecurity=False).digest())


@pytest.mark.parametrize(
    ("size", "data", "saying"),
    [
        (1 << 40, b"x", "a file of"),
        (10, b"\0" * (1 << 22), "larger than it says"),
        (10, b"x", "smaller than it says"),
    ],
)
def test_a_bomb_is_not_unpacked(size: int, data: bytes, saying: str) -> None:
    with pytest.raises(RefusedHistoryError, match=saying):
        check_pack(_pack(size, data))


@pytest.mark.parametrize(
    "data", [b"", b"PACK", b"PACK\0\0\0\2\0\0\0\5", b"<html>", b"PACK" + b"\xff" * 40]
)
def test_what_is_no_pack_is_refused(data: bytes) -> None:
    with pytest.raises(RefusedHistoryError):
        check_pack(BytesIO(data))


@pytest.mark.parametrize(
    "number", ["9" * 5000, "0", "1-999999999999", "٣"], ids=["long", "none", "many", "arabic"]
)
def test_trailers_may_claim_anything(tmp_path: Path, number: str) -> None:
    """They are read whenever the log is, so a number in them can't stand in its way."""
    here = Machine(tmp_path / "here", tmp_path / "remote.git")
    here.write(A, "a line of words\nmine\n")
    here.sync()
    remote = Remote(tmp_path / "remote.git")
    who = b"Mallory <m@example.org> 1763700000 +0000"
    claims = ["Actor: agent", "Session: s", f"Messages: {number}-{number}", f"Cursor: {number}"]
    claims += [f"Epoch: {number}", f"Moved: {A}:{number} -> {B}:{number}"]
    message = "hello\n\n" + "\n".join(claims)
    head = b"author %b\ncommitter %b\n\n" % (who, who)
    files = [(b"a.md", b"mine\n"), (b"b.md", b"other words\n")]
    tree = remote.tree(*(("100644", name, remote.blob(data)) for name, data in files))
    remote.offer(tree, commit=head + message.encode() + b"\n")
    here.sync()
    first, *_ = here.history.log()
    assert first.actor is Actor.AGENT
    assert first.origin.session == "s"
    assert [line.commit for line in here.history.blame(B)] == [first.id]
    here.check()


def test_an_honest_remote_is_taken(victim: Machine, remote: Remote) -> None:
    remote.offer(remote.tree(("100644", b"a.md", remote.blob(b"mine\n"))))
    assert victim.sync().received == 1
