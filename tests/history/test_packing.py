"""Packing: smaller, checked, and invisible to who reads."""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import StorageError
from kbtui.history import packing
from kbtui.history.packing import make_delta
from kbtui.history.repository import Repository

if TYPE_CHECKING:
    from tests.history.conftest import Notes

A = "knowledge/topics/a.md"


def apply_delta(base: bytes, delta: bytes) -> bytes:
    from dulwich.pack import apply_delta as apply

    return b"".join(apply([base], [delta]))


@pytest.mark.parametrize(
    ("base", "target"),
    [
        (b"", b"new"),
        (b"old", b""),
        (b"same", b"same"),
        (b"abcdef", b"abXdef"),
        (b"aaaa", b"aaaaaaaa"),
        (b"x" * 70_000 + b"1" + b"y" * 70_000, b"x" * 70_000 + b"22" + b"y" * 70_000),
        (b"a", b"b" * 1000),
    ],
)
def test_a_delta_makes_the_target_out_of_the_base(base: bytes, target: bytes) -> None:
    assert apply_delta(base, make_delta(base, target)) == target


def test_random_edits_survive_a_delta() -> None:
    rng = random.Random(3)
    for _ in range(300):
        base = rng.randbytes(rng.randint(0, 500))
        start, end = sorted(rng.choices(range(len(base) + 1), k=2))
        target = base[:start] + rng.randbytes(rng.randint(0, 300)) + base[end:]
        assert apply_delta(base, make_delta(base, target)) == target


@pytest.fixture
def long_history(notes: Notes) -> Notes:
    lines = [f"line {number}\n" for number in range(200)]
    for number in range(45):
        lines[number % 7] = f"edit {number}\n"
        notes.write(A, "".join(lines))
        notes.write(f"knowledge/people/{number}.md", f"person {number}\n")
    return notes


def loose(notes: Notes) -> int:
    return len(list((notes.workspace.repository / "objects").glob("??/*")))


def test_packing_keeps_every_version(long_history: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {
        commit.id: {path: long_history.history.read(path, commit.id) for path in (A,)}
        for commit in long_history.history.log()
    }
    packed = packing.pack_history(long_history.history._repository, enough=0)
    assert packed > 300
    assert loose(long_history) == 0
    again = long_history.reopened()
    for commit, texts in before.items():
        for path, data in texts.items():
            assert again.read(path, commit) == data
    sizes = long_history.git("count-objects", "-v")
    assert "packs: 1" in sizes
    long_history.write(A, "goes on\n")
    long_history.check()


def test_versions_are_stored_as_differences(long_history: Notes) -> None:
    packing.pack_history(long_history.history._repository, enough=0)
    (pack,) = (long_history.workspace.repository / "objects/pack").glob("*.idx")
    listed = subprocess.run(
        ["git", "verify-pack", "-v", pack], check=True, capture_output=True, text=True
    ).stdout
    chains = [line for line in listed.splitlines() if line.startswith("chain length")]
    assert len(chains) > 20
    assert max(int(line.split()[3].rstrip(":")) for line in chains) <= 50


def test_another_process_reads_on_while_objects_move(long_history: Notes) -> None:
    other = long_history.reopened()
    assert other.read(A, "HEAD~3")
    packing.pack_history(long_history.history._repository, enough=0)
    assert other.read(A, "HEAD~40")
    assert len(list(other.log(A))) == 45


def test_few_objects_are_left_alone(long_history: Notes) -> None:
    before = loose(long_history)
    assert long_history.history.tidy() == 0
    assert loose(long_history) == before


def test_a_pack_that_is_not_what_it_should_be_removes_nothing(
    long_history: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = loose(long_history)
    monkeypatch.setattr(packing, "make_delta", lambda a, b: make_delta(a, b[:-1] + b"!"))
    with pytest.raises(StorageError, match="not written as it should"):
        packing.pack_history(long_history.history._repository, enough=0)
    assert loose(long_history) == before
    assert list((long_history.workspace.repository / "objects" / "pack").iterdir()) == []
    long_history.check()


def test_packing_twice_adds_only_what_is_new(long_history: Notes) -> None:
    repository = long_history.history._repository
    packing.pack_history(repository, enough=0)
    long_history.write(A, "one\n")
    assert packing.pack_history(repository, enough=0) == 5
    assert packing.pack_history(repository, enough=0) == 0
    long_history.check()


def test_a_lock_that_a_killed_packing_left_blocks_nothing(long_history: Notes) -> None:
    folder = long_history.workspace.repository / "objects" / "pack"
    (folder / f"pack-{'0' * 40}.idx.lock").write_bytes(b"")
    long_history.reopened()
    assert list(folder.iterdir()) == []
    assert Repository(long_history.workspace.repository).count_loose() >= 0
