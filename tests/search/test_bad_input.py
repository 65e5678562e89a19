"""Search with odd files, clocks and caches: it still answers, and recovers."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kbtui.search.embedding.vectors import VectorStore
from kbtui.workspace import scan
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import paths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.search.helpers import Desk

MANY = 100_000 if os.environ.get("KBTUI_LONG") else 2000
A_YEAR_NS = 365 * 86_400 * 10**9


def test_very_many_tiny_files_are_all_found(desk: Desk) -> None:
    for i in range(MANY):
        desk.write(f"docs/many/{i % 50}/n{i}.txt", f"w{i}")
    index = desk.index()
    report = index.sync()
    assert (report.files, report.added, report.skipped) == (MANY, MANY, ())
    for i in (0, 7, MANY - 1):
        assert paths(index.search(f"w{i}", limit=1)) == [f"docs/many/{i % 50}/n{i}.txt"]
    shutil.rmtree(desk.root / "docs/many/7")
    report = index.sync()
    assert (report.files, report.removed) == (MANY - MANY // 50, MANY // 50)
    assert not index.search('"w7"').hits


def test_a_file_that_becomes_readable_is_indexed_and_one_that_no_longer_is_goes(
    desk: Desk,
) -> None:
    huge = desk.write("docs/p/huge.txt", "wombat\n")
    os.truncate(huge, 50 << 20)  # a hole of zeros: as large as 50 MB, without writing them
    binary = desk.write("docs/p/binary.txt", b"\x7fELF\0\0wombat" + bytes(range(256)))
    other = desk.write("docs/p/other.txt", "wombat\n")
    index = desk.index()
    assert len(index.sync().skipped) == 2
    assert paths(index.search("wombat")) == ["docs/p/other.txt"]
    for file in (huge, binary):
        file.write_text("wombat\n")
    other.write_bytes(b"\0\1\2wombat")
    assert [path for path, _ in index.sync().skipped] == ["docs/p/other.txt"]
    assert sorted(paths(index.search("wombat"))) == ["docs/p/binary.txt", "docs/p/huge.txt"]


@pytest.mark.parametrize("gone", ["docs/p", "docs/p/deep"])
def test_a_folder_that_vanishes_while_it_is_scanned_costs_nothing_else(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    for name in ("docs/p/a.txt", "docs/p/deep/b.txt", "docs/q/c.txt"):
        desk.write(name, "wombat\n")
    index = desk.index()
    index.sync()
    real = scan._entries

    def vanish(folder: Path, **options: Any) -> list[tuple[str, os.DirEntry[str]]]:
        found = list(real(folder, **options))
        if folder == desk.root / "docs/p":
            shutil.move(desk.root / gone, desk.root / "away")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(scan, "_entries", vanish)
        index.sync()
    found = paths(index.search("wombat"))
    assert "docs/q/c.txt" in found
    assert not [path for path in found if path.startswith(f"{gone}/")]
    shutil.move(desk.root / "away", desk.root / gone)
    index.sync()
    assert len(index.search("wombat").hits) == 3


def test_edits_are_seen_when_the_clock_was_set_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = desk.write("knowledge/topics/a.md", "wombat\n")
    index = desk.index()
    index.sync()
    real = time.time_ns
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: real() - A_YEAR_NS)
        file.write_text("quokka\n")  # of the same length
        os.utime(file, ns=(real() - A_YEAR_NS,) * 2)
        assert index.sync().changed == 1
        file.write_text("walrus\n")
        os.utime(file, ns=(real() - 2 * A_YEAR_NS,) * 2)
        index.refresh(["knowledge/topics/a.md"])
        assert paths(index.search("walrus")) == ["knowledge/topics/a.md"]
        assert not index.search("wombat").hits
    again = desk.index()
    assert (again.sync().changed, paths(again.search("walrus"))) == (0, ["knowledge/topics/a.md"])


@pytest.mark.parametrize("told", [True, False])
def test_a_name_that_changes_its_case_only_is_found_once_under_the_new_one(
    desk: Desk, told: bool
) -> None:
    file = desk.write("docs/Plans/Note.md", "wombat\n")
    embedder = WordEmbedder()
    index = desk.index(model=ReadyModel(embedder))
    index.search("wombat", wait=True)
    moves = [("docs/Plans/note.md", file), ("docs/plans/note.md", None)]
    old = "docs/Plans/Note.md"
    for new, source in moves:
        target = desk.root / new
        if source is not None:
            source.rename(target)
        else:
            (desk.root / "docs/Plans").rename(target.parent)
        if told:
            index.refresh([old, new])
        else:
            index.sync()
        assert paths(index.search("wombat", wait=True)) == [new]
        assert not index.search(f"path:{old}" if old.lower() != new.lower() else "-wombat").hits
        old = new
    assert index.search("wombat", "docs/plans").hits
    assert not index.search("wombat", "docs/Plans").hits


def older_schema(cache: Path) -> None:
    (file,) = cache.rglob("state.sqlite")
    with sqlite3.connect(file) as connection:
        connection.execute("ALTER TABLE chunks DROP COLUMN signature")
    connection.close()


def other_version(cache: Path) -> None:
    (file,) = cache.rglob("state.sqlite")
    newer = file.parent.with_name("g999-0123456789abcdef")
    file.parent.rename(newer)
    (newer / "lexical" / "from-the-future").write_bytes(b"\0\1\2")


def folder_for_file(name: str) -> Callable[[Path], None]:
    def damage(cache: Path) -> None:
        for file in sorted(cache.rglob(name)):
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink()
            (file / "in the way").mkdir(parents=True)

    damage.__name__ = f"folder for {name}"
    return damage


def file_for_vectors(cache: Path) -> None:
    shutil.rmtree(cache / "vectors")
    (cache / "vectors").write_text("no folder")


def other_dimension(cache: Path) -> None:
    (file,) = cache.rglob("*.rows")
    other = VectorStore(cache / "elsewhere", 8)
    other.add([b"k" * 16], np.full((1, 8), 0.5, dtype=np.float32))
    (made,) = (cache / "elsewhere").glob("*.rows")
    made.replace(file)


@pytest.mark.faults
@pytest.mark.parametrize(
    "damage",
    [
        older_schema,
        other_version,
        folder_for_file("state.sqlite"),
        folder_for_file("lock"),
        folder_for_file("in-use"),
        folder_for_file("*.rows"),
        folder_for_file("words-1"),
        file_for_vectors,
        other_dimension,
    ],
    ids=lambda damage: getattr(damage, "__name__", str(damage)),
)
def test_a_cache_of_another_version_or_kind_is_healed(
    desk: Desk, damage: Callable[[Path], None]
) -> None:
    for i in range(5):
        desk.write(f"knowledge/topics/n{i}.md", f"# Note {i}\n\nwombat number{i} automobile\n")
    desk.index(model=ReadyModel(WordEmbedder())).search("wombat", wait=True)
    desk.close()
    damage(desk.workspace.cache / "search")
    for _ in range(2):
        index = desk.index(model=ReadyModel(WordEmbedder()))
        assert len(index.search("wombat", semantic=False).hits) == 5
        result = index.search("car", wait=True)
        assert (result.semantic, result.notice, len(result.hits)) == (True, "", 5)
        desk.write("knowledge/topics/n3.md", "# Note 3\n\nwombat number3, a quokka\n")
        index.refresh(["knowledge/topics/n3.md"])
        assert len(index.search("quokka", semantic=False).hits) == 1
        index.close()


@pytest.mark.faults
@pytest.mark.parametrize("step", ["__init__", "_write"])
def test_where_vectors_cannot_be_kept_words_answer_and_a_notice_says_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    desk.write("knowledge/topics/a.md", "An automobile needs oil.\n")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    index = desk.index(model=ReadyModel(WordEmbedder()))
    with monkeypatch.context() as patch:
        patch.setattr(VectorStore, step, full)
        for wait in (False, True):
            result = index.search("automobile", wait=wait)
            assert (result.semantic, len(result.hits)) == (False, 1)
            assert "No space left" in result.notice
            assert index.sync().rebuilt == ""
    index.load_model()
    result = index.search("car", wait=True)
    assert (result.semantic, result.notice, len(result.hits)) == (True, "", 1)


def test_a_model_that_is_swapped_and_back_compares_with_its_own_vectors_only(desk: Desk) -> None:
    desk.write("knowledge/topics/a.md", "An automobile needs oil.\n")

    class Short(WordEmbedder):
        dimension = 16

    one, other = "words-1", "short-1"
    swaps = [
        (WordEmbedder(identity=one), True),
        (Short(identity=other), True),
        (WordEmbedder(identity=one), False),
        (Short(identity=one), True),  # says it is another than it is: the length tells
        (WordEmbedder(identity=one), True),
    ]
    for embedder, fresh in swaps:
        index = desk.index(model=ReadyModel(embedder))
        result = index.search("car", wait=True)
        assert (result.semantic, paths(result)) == (True, ["knowledge/topics/a.md"])
        assert bool(embedder.seen) == fresh
        index.close()
