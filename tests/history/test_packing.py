"""Packing: smaller, checked, and invisible to who reads."""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import StorageError
from kbtui.history.objects import packing
from kbtui.history.objects.lineage import newer
from kbtui.history.objects.pack_folder import PackFolder
from kbtui.history.objects.packing import make_delta
from kbtui.history.objects.repository import Repository
from kbtui.history.objects.trees import git_object
from kbtui.workspace.opening import WorkspaceLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def _line(rng: random.Random) -> bytes:
    return rng.randbytes(rng.randint(4, 30)).hex().encode() + b"\n"


def _entry(rng: random.Random) -> bytes:
    return b"100644 %d.md\0%b" % (rng.randrange(10**6), rng.randbytes(20))


@pytest.mark.parametrize("make", [_line, _entry])
def test_edits_at_several_places_survive_a_small_delta(
    make: Callable[[random.Random], bytes],
) -> None:
    rng = random.Random(4)
    for _ in range(100):
        lines = [make(rng) for _ in range(rng.randint(40, 90))]
        base = b"".join(lines)
        for _ in range(3):
            lines[rng.randrange(len(lines))] = make(rng)
        lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
        target = b"".join(lines)
        delta = make_delta(base, target)
        assert apply_delta(base, delta) == target
        assert len(delta) < 350


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
    packed = packing.Packing(long_history.history._repository, enough=0).run()
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
    packing.Packing(long_history.history._repository, enough=0).run()
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
    packing.Packing(long_history.history._repository, enough=0).run()
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
        packing.Packing(long_history.history._repository, enough=0).run()
    assert loose(long_history) == before
    assert list((long_history.workspace.repository / "objects" / "pack").iterdir()) == []
    long_history.check()


def test_packing_twice_adds_only_what_is_new(long_history: Notes) -> None:
    repository = long_history.history._repository
    packing.Packing(repository, enough=0).run()
    long_history.write(A, "one\n")
    assert packing.Packing(repository, enough=0).run() == 5
    assert packing.Packing(repository, enough=0).run() == 0
    long_history.check()


def packs(notes: Notes) -> list[str]:
    return sorted(f.stem for f in (notes.workspace.repository / "objects/pack").glob("*.idx"))


def chopped(notes: Notes, every: int) -> None:
    """Pack after every few changes with nothing rolled up, as packs come in by sync."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "packs_to_merge", lambda counts, loose: [])
        for number in range(12 * every):
            notes.write(A, "".join(f"line {n} {number * (n % 9 == 0)}\n" for n in range(300)))
            if number % every == every - 1:
                packing.Packing(notes.history._repository, enough=0).run()


def test_packs_stay_in_a_geometric_row() -> None:
    assert packing.packs_to_merge({"a": 100, "b": 300, "c": 1000}, 0) == []
    assert packing.packs_to_merge({"a": 100, "b": 300, "c": 1000}, 60) == ["a", "b"]
    assert packing.packs_to_merge({"a": 100, "b": 300, "c": 800}, 60) == ["a", "b", "c"]
    assert packing.packs_to_merge({"a": 5, "b": 5, "c": 900}, 0) == ["a", "b"]
    assert packing.packs_to_merge({}, 3000) == []


def test_many_packs_become_one_that_a_real_git_takes(notes: Notes) -> None:
    chopped(notes, 3)
    assert len(packs(notes)) == 12
    texts = [notes.history.read(A, commit.id) for commit in notes.history.log()]
    before = sum(f.stat().st_size for f in (notes.workspace.repository / "objects/pack").iterdir())
    reader = notes.reopened()
    assert reader.read(A, "HEAD~5") == texts[5]
    assert notes.history.tidy() > 0
    (pack,) = packs(notes)
    folder = notes.workspace.repository / "objects/pack"
    assert sum(f.stat().st_size for f in folder.iterdir()) < before * 0.8
    subprocess.run(["git", "verify-pack", folder / f"{pack}.idx"], check=True)
    for history in (reader, notes.history, notes.reopened()):  # `reader` had the old packs open
        assert [history.read(A, commit.id) for commit in history.log()] == texts
    assert notes.history.tidy() == 0
    notes.write(A, "goes on\n")
    notes.check()


def test_many_new_objects_are_one_pack_that_is_never_written_over(notes: Notes) -> None:
    repository = notes.history._repository
    made = [git_object(b"blob", b"%d" % number * number) for number in range(250)]
    repository.store(made)
    (pack,) = packs(notes)
    folder = notes.workspace.repository / "objects/pack"
    subprocess.run(["git", "verify-pack", folder / f"{pack}.idx"], check=True)
    written = (folder / f"{pack}.pack").stat()
    repository.store(reversed(made))
    assert packs(notes) == [pack]
    assert (folder / f"{pack}.pack").stat() == written
    fresh = notes.reopened()._repository
    assert all(fresh.read_object(each.id) == (each.kind, each.data) for each in made)


def test_what_no_commit_needs_yet_outlives_its_pack(notes: Notes) -> None:
    chopped(notes, 1)
    repository = notes.history._repository
    made = git_object(b"blob", b"fetched, and not yet merged")
    repository.write_pack(1, [packing.PackRecord(made.id, made.kind, made.data)])
    assert notes.history.tidy() > 0
    assert len(packs(notes)) == 1
    assert notes.reopened()._repository.is_intact(made.id)


def test_what_a_purge_threw_away_meanwhile_does_not_come_back(notes: Notes) -> None:
    chopped(notes, 1)
    repository = notes.history._repository

    @contextlib.contextmanager
    def after_a_purge() -> Iterator[None]:
        count, records = packing.pack_commits(repository, newer(repository, repository.head()))
        repository.keep_only(repository.write_pack(count, records))
        yield

    made = git_object(b"blob", b"secret")
    repository.write_pack(1, [packing.PackRecord(made.id, made.kind, made.data)])
    assert packing.Packing(repository, alone=after_a_purge).run() == 0
    assert made.id not in notes.reopened()._repository
    assert not list(notes.workspace.repository.glob("incoming-*"))
    notes.check()


def test_packing_gives_up_between_two_objects(notes: Notes) -> None:
    chopped(notes, 1)
    before = packs(notes)
    asked = itertools.count()
    assert notes.history.tidy(lambda: next(asked) > 60) == 0
    assert next(asked) == 62
    assert packs(notes) == before
    assert not list(notes.workspace.repository.glob("incoming-*"))
    notes.check()


def test_packing_waits_for_no_writer(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    chopped(notes, 1)
    before = packs(notes)
    door = notes.history._door
    monkeypatch.setattr(door, "entered", functools.partial(door.entered, 0.01))
    with WorkspaceLock(notes.workspace).hold():
        assert notes.history.tidy() == 0
    assert packs(notes) == before


def test_a_crash_while_packs_are_exchanged_loses_nothing(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    chopped(notes, 1)
    before = packs(notes)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PackFolder, "remove", killed)
        with pytest.raises(KeyboardInterrupt):
            notes.history.tidy()
    assert len(packs(notes)) == len(before) + 1
    notes.reopened().read(A, "HEAD~9")
    notes.check()
    assert notes.history.tidy() == 0, "the same objects are in one pack already"


def test_a_deep_chain_goes_on_from_where_its_run_began() -> None:
    chain = packing._Chain()
    lines = [f"{n:08d}\n".encode() for n in range(4000)]
    texts: dict[str, bytes] = {}
    whole, depths = 0, {}
    for number in range(130):
        lines[number * 31 % 4000] = f"edit {number}\n".encode()
        texts[str(number)] = data = b"".join(lines)
        record = chain.add(str(number), b"blob", data)
        depths[record.id] = depths[record.base] + 1 if record.base else 0
        whole += record.base is None
        if record.base:
            assert apply_delta(texts[record.base], record.data) == data
            assert len(record.data) < 2000
    assert whole == 1
    assert max(depths.values()) == 50


def test_a_lock_that_a_killed_packing_left_blocks_nothing(long_history: Notes) -> None:
    folder = long_history.workspace.repository / "objects" / "pack"
    (folder / f"pack-{'0' * 40}.idx.lock").write_bytes(b"")
    long_history.reopened()
    assert list(folder.iterdir()) == []
    assert Repository(long_history.workspace.repository).count_loose() >= 0
