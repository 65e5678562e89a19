"""Search with a damaged cache: it still answers, and rebuilds the index from the files."""

from __future__ import annotations

import errno
import gc
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import StorageError
from kbtui.search.index.chunker import ChunkLimits
from kbtui.search.index.generation import Generation, generation_name
from kbtui.search.index.lexical import LexicalIndex
from kbtui.search.index.segment import SegmentBuilder
from kbtui.search.index.store import StateStore
from kbtui.settings import SearchSettings
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import eventually, paths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.index.segment import SegmentFile
    from tests.search.helpers import Desk

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def notes(desk: Desk) -> Desk:
    for i in range(40):
        desk.write(f"knowledge/topics/n{i}.md", f"# Note {i}\n\nwombat number{i} {'word ' * 20}\n")
    desk.index(model=ReadyModel(WordEmbedder())).search("wombat", wait=True)
    desk.close()
    return desk


def cached_files(desk: Desk) -> list[Path]:
    folder = desk.workspace.cache / "search"
    return sorted(f for f in folder.rglob("*") if f.is_file() and f.stat().st_size)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for i in range(0, len(data), max(1, len(data) // 50)):
        data[i] ^= 0xFF
    file.write_bytes(bytes(data))


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip_behind_the_head(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[100:] = bytes(byte ^ 1 for byte in data[100:])
    file.write_bytes(bytes(data))


def replace(file: Path) -> None:
    file.write_bytes(b"something else entirely\n" * 100)


@pytest.mark.faults
@pytest.mark.parametrize("damage", [flip, cut, replace, Path.unlink])
def test_every_damaged_file_of_the_cache_is_healed(notes: Desk, damage) -> None:
    expected = [
        (hit.path, hit.score) for hit in notes.index().search("number7 wombat", limit=50).hits
    ]
    notes.close()
    names = [file.relative_to(notes.workspace.cache) for file in cached_files(notes)]
    assert any(name.suffix == ".words" for name in names)
    for name in names:
        file = notes.workspace.cache / name
        if not file.exists():  # the words index gave its files other names when it was healed
            continue
        damage(file)
        index = notes.index(model=ReadyModel(WordEmbedder()))
        found = [
            (hit.path, hit.score)
            for hit in index.search("number7 wombat", limit=50, semantic=False).hits
        ]
        assert found == expected, name
        assert index.search("wombat", wait=True).semantic
        index.close()


@pytest.mark.faults
@pytest.mark.parametrize("damage", [flip_behind_the_head, cut, replace, Path.unlink])
def test_damaged_postings_are_made_again(notes: Desk, damage: Callable[[Path], None]) -> None:
    expected = [(hit.path, hit.score) for hit in notes.index().search("number7 wombat").hits]
    notes.close()
    (file,) = notes.generation.rglob("*.words")
    whole = file.read_bytes()
    damage(file)
    found = [(hit.path, hit.score) for hit in notes.index().search("number7 wombat").hits]
    assert found == expected
    assert [each.read_bytes() for each in notes.generation.rglob("*.words")] == [whole]
    notes.close()
    assert notes.index().sync().rebuilt == ""


@pytest.mark.faults
def test_a_rebuild_says_why_and_happens_once(notes: Desk) -> None:
    (state,) = notes.workspace.cache.rglob("state.sqlite")
    replace(state)
    report = notes.index().sync()
    assert "DatabaseError" in report.rebuilt
    assert report.added == 40
    assert notes.index().sync().rebuilt == ""


@pytest.mark.faults
def test_of_an_index_that_was_replaced_nothing_is_kept(notes: Desk) -> None:
    kinds = (Generation, StateStore, LexicalIndex)
    others = [thing for thing in gc.get_objects() if isinstance(thing, kinds)]
    index = notes.index(model=ReadyModel(WordEmbedder()))
    for _ in range(2):
        index.search("wombat", wait=True)
        index.rebuild()
    index.search("wombat", wait=True)
    gc.collect()
    kept = [thing for thing in gc.get_objects() if isinstance(thing, kinds)]
    ours = [thing for thing in kept if not any(thing is other for other in others)]
    assert sorted(type(thing).__name__ for thing in ours) == sorted(kind.__name__ for kind in kinds)


def test_the_cache_can_vanish_while_it_is_in_use(notes: Desk) -> None:
    index = notes.index()
    index.start()
    eventually(lambda: index.status().state == "lexical-only")
    shutil.rmtree(notes.workspace.cache)
    assert index.search("wombat").hits
    notes.write("knowledge/topics/new.md", "# Quokka\n")
    index.refresh(["knowledge/topics/new.md"])
    eventually(lambda: index.search("quokka").hits)
    assert len(index.search("wombat", limit=50).hits) == 40


@pytest.mark.faults
def test_a_foreign_database_in_our_place_is_replaced(notes: Desk) -> None:
    (state,) = notes.workspace.cache.rglob("state.sqlite")
    for file in state.parent.glob("state.sqlite*"):
        file.unlink()
    with sqlite3.connect(state) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    assert len(notes.index().search("wombat", limit=50).hits) == 40


@pytest.mark.faults
def test_a_cache_that_cannot_be_written_is_replaced_for_now(
    notes: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(notes.workspace.cache / "search")
    (notes.workspace.cache / "search").write_text("a file stands where the folder should be")
    index = notes.index()
    assert len(index.search("wombat", limit=50).hits) == 40
    temporary = index._generations().folder
    assert not temporary.is_relative_to(notes.workspace.cache)
    index.close()
    assert not temporary.exists()


@pytest.mark.faults
def test_where_nothing_can_be_written_at_all_no_folder_is_left(
    notes: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(notes.workspace.cache / "search")
    (notes.workspace.cache / "search").write_text("a file stands where the folder should be")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def refused(_self: Generation, _folder: Path) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Generation, "__init__", refused)
    with pytest.raises(StorageError, match="Free some space"):
        notes.index().search("wombat")
    assert not list(tmp_path.glob("kbtui-search-*"))


@pytest.mark.faults
@pytest.mark.parametrize("step", [(LexicalIndex, "write"), (SegmentBuilder, "finish")])
def test_a_full_disk_is_said_and_loses_nothing(
    notes: Desk, monkeypatch: pytest.MonkeyPatch, step: tuple[type, str]
) -> None:
    index = notes.index()
    index.sync()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    notes.write("knowledge/topics/new.md", "# Quokka\n")
    with monkeypatch.context() as patch:
        patch.setattr(*step, full)
        with pytest.raises(StorageError, match="no room"):
            index.sync()
        assert len(index.search("wombat", limit=50).hits) == 40
    assert index.sync().rebuilt == ""
    assert index.search("quokka").hits
    segments = index._generations().serving.corpus().segments
    assert len(list(notes.generation.rglob("*.words"))) == len(segments)


@pytest.mark.faults
@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE])
def test_an_index_that_a_full_disk_keeps_closed_is_whole_afterwards(
    notes: Desk, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    notes.index().sync()
    real = StateStore.__init__

    def full(self: StateStore, file: Path) -> None:
        if file.is_relative_to(notes.workspace.cache):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = code
            raise error
        real(self, file)

    kept = set(notes.workspace.cache.rglob("*.words"))
    with monkeypatch.context() as patch:
        patch.setattr(StateStore, "__init__", full)
        assert len(notes.index().search("wombat", limit=50).hits) == 40
    assert kept
    assert kept == set(notes.workspace.cache.rglob("*.words"))
    assert notes.index().sync().rebuilt == ""


@pytest.mark.faults
@pytest.mark.parametrize("step", ["write", "corpus"])
def test_an_indexing_that_fails_half_way_is_made_good(
    notes: Desk, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    index = notes.index()
    index.sync()
    notes.write("knowledge/topics/n3.md", "# Note 3\n\nquokka now\n")
    notes.write("knowledge/topics/n4.md", "# Note 4\n\nquokka as well\n")
    real = getattr(LexicalIndex, step)
    calls: list[int] = []

    def broken(self: LexicalIndex, *arguments: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise AttributeError("a damaged pickle says anything")
        return real(self, *arguments)

    monkeypatch.setattr(LexicalIndex, step, broken)
    index.refresh(["knowledge/topics/n3.md", "knowledge/topics/n4.md"])
    assert len(index.search("quokka").hits) == 2
    assert len(index.search("wombat", limit=50).hits) == 38


KILLED = """
import os, sys
from pathlib import Path
from kbtui.search.index import lexical, segment, store
from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import open_workspace
from kbtui.workspace.scan import Scanner
where, nth = sys.argv[2], int(sys.argv[3])
count = 0
def die_at(owner, name):
    real = getattr(owner, name)
    def wrapped(*arguments, **options):
        global count
        count += 1
        if count == nth:
            os._exit(9)
        return real(*arguments, **options)
    setattr(owner, name, wrapped)
owner, name = {
    "begin": (store.StateStore, "begin"), "write": (lexical.LexicalIndex, "write"),
    "flush": (segment.SegmentBuilder, "finish"), "finish": (store.StateStore, "finish"),
    "sweep": (lexical.LexicalIndex, "sweep"),
}[where]
die_at(owner, name)
workspace = open_workspace(Path(sys.argv[1]))
index = SearchIndex(workspace, Scanner(workspace), SearchSettings(semantic=False), RoleSettings())
index.sync()
"""


@pytest.mark.faults
@pytest.mark.parametrize("where", ["begin", "write", "flush", "finish", "sweep"])
def test_a_kill_at_any_step_of_an_update_costs_nothing(notes: Desk, where: str) -> None:
    notes.write("knowledge/topics/n3.md", "# Note 3\n\nquokka now\n")
    (notes.root / "knowledge/topics/n5.md").unlink()
    # The first commit removes the deleted file, the second indexes the changed one.
    for nth in (1,) if where in {"flush", "sweep"} else (1, 2):
        command = [sys.executable, "-c", KILLED, str(notes.root), where, str(nth)]
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, capture_output=True
        )
        assert done.returncode == 9, done.stderr.decode()
    index = notes.index()
    report = index.sync()
    assert report.rebuilt == ""
    assert paths(index.search("quokka")) == ["knowledge/topics/n3.md"]
    found = paths(index.search("wombat", limit=50))
    assert len(found) == len(set(found)) == 38
    assert not index.search("number5 -number5x", limit=50).hits or "n5.md" not in str(found)


def test_other_chunk_sizes_make_a_new_generation_while_the_old_one_answers(
    notes: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SearchSettings(semantic=False, chunk_tokens=128)
    index = notes.index(settings=settings)
    generations = index._generations()
    assert generations.serving is not generations.building
    assert generations.serving.corpus().count == 40
    index.sync()
    assert generations.serving is generations.building
    assert notes.generation.name == generation_name(ChunkLimits(128, 64))
    assert len(index.search("wombat", limit=50).hits) == 40


def test_a_generation_in_use_by_another_program_is_left_alone(notes: Desk) -> None:
    old = notes.index()
    old.sync()
    new = notes.index(settings=SearchSettings(semantic=False, chunk_tokens=128))
    new.sync()
    assert len(list((notes.workspace.cache / "search").glob("g*-*"))) == 2
    assert len(old.search("wombat", limit=50).hits) == 40


def test_what_another_program_is_just_changing_is_no_damage(
    notes: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LexicalIndex.corpus
    looks = []

    def changing(self: LexicalIndex, files: Sequence[SegmentFile]) -> Corpus:
        looks.append(1)
        if len(looks) < 5:
            raise FileNotFoundError("a segment that has just been merged away")
        return whole(self, files)

    monkeypatch.setattr(LexicalIndex, "corpus", changing)
    index = notes.index()
    assert len(index.search("wombat", limit=50).hits) == 40
    assert index.sync().rebuilt == ""
    monkeypatch.setattr(Generation, "_check_counts", _once(OSError("it was there a moment ago")))
    assert notes.index().sync().rebuilt == ""


def _once(error: Exception) -> Callable[[Generation], None]:
    errors = [error]

    def fail(_: Generation) -> None:
        if errors:
            raise errors.pop()

    return fail


def test_programs_that_make_the_cache_at_once_share_it(tmp_path: Path) -> None:
    for turn in range(10):
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    StateStore(tmp_path / f"{turn}.sqlite").close()
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4


def test_binary_and_huge_files_are_listed_and_not_searched(desk: Desk) -> None:
    desk.write("docs/p/picture.dat", b"\x89PNG\0\0" + bytes(range(256)))
    desk.write("docs/p/huge.txt", b"wombat " * 8_000_000)
    desk.write("docs/p/one_line.txt", "x" * 3_000_000 + " quokka")
    desk.write("docs/p/good.txt", "wombat\n")
    index = desk.index()
    report = index.sync()
    assert dict(report.skipped) == {
        "docs/p/picture.dat": "it is not text",
        "docs/p/huge.txt": "it is larger than 5 MB",
    }
    assert paths(index.search("wombat")) == ["docs/p/good.txt"]
    assert paths(index.search("quokka")) == ["docs/p/one_line.txt"]
    assert index.sync().changed == 0


def test_a_file_that_goes_while_it_is_read_is_no_problem(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kbtui.workspace import files

    desk.write("docs/p/a.txt", "wombat\n")
    desk.write("docs/p/b.txt", "wombat\n")
    index = desk.index()
    real = files.read_bytes

    def vanish(root: Path, path: str, *limit: int) -> bytes:
        (desk.root / "docs/p/b.txt").unlink(missing_ok=True)
        return real(root, path, *limit)

    with monkeypatch.context() as patch:
        patch.setattr("kbtui.search.index.builder.files.read_bytes", vanish)
        assert paths(index.search("wombat")) == ["docs/p/a.txt"]
    index.sync()
    assert paths(index.search("wombat")) == ["docs/p/a.txt"]


def test_odd_names_are_indexed_or_passed_over(desk: Desk) -> None:
    rng = random.Random(1)
    for name in ("Ünïcödé 漢字.md", "with  blanks.md", "a'b\"c.md", "x" * 200 + ".md", "#hash.md"):
        desk.write(f"knowledge/topics/{name}", f"wombat {rng.random()}\n")
    (desk.root / "knowledge/topics/link.md").symlink_to("/etc/passwd")
    found = paths(desk.index().search("wombat", limit=20))
    assert "knowledge/topics/Ünïcödé 漢字.md" in found
    assert not any("link" in path for path in found)


def test_a_damaged_session_log_is_searched_as_far_as_it_can_be_read(desk: Desk) -> None:
    said = json.dumps({"id": 1, "role": "user", "content": "wombat"})
    desk.write("sessions/a.jsonl", said.encode() + b'\n\xff\xfe\0 broken\n{"id": 2, "ro')
    assert len(desk.index().search("wombat", "sessions").hits) == 1
