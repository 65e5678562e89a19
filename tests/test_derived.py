"""Derived data: any damage means a new one."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from kbtui.derived import DerivedDatabase

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = ("CREATE TABLE words (word TEXT PRIMARY KEY)",)


def words(database: DerivedDatabase) -> list[str]:
    return database.run(lambda db: [row[0] for row in db.execute("SELECT word FROM words")])


def add(database: DerivedDatabase, word: str) -> None:
    database.run(lambda db: db.execute("INSERT INTO words VALUES (?)", (word,)), write=True)


@pytest.fixture
def database(tmp_path: Path) -> DerivedDatabase:
    return DerivedDatabase(tmp_path / "cache" / "words.sqlite", SCHEMA, "words 1")


def test_what_is_written_is_there_when_opened_again(
    database: DerivedDatabase, tmp_path: Path
) -> None:
    add(database, "kept")
    database.close()
    again = DerivedDatabase(tmp_path / "cache" / "words.sqlite", SCHEMA, "words 1")
    assert words(again) == ["kept"]


def test_another_identity_starts_again(database: DerivedDatabase, tmp_path: Path) -> None:
    add(database, "old")
    database.close()
    again = DerivedDatabase(tmp_path / "cache" / "words.sqlite", SCHEMA, "words 2")
    assert words(again) == []


def test_an_exception_of_the_work_takes_everything_back(database: DerivedDatabase) -> None:
    def fail(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO words VALUES ('half')")
        raise KeyError

    with pytest.raises(KeyError):
        database.run(fail)
    assert words(database) == []


@pytest.mark.parametrize("size", [0, 10, 5000])
def test_a_damaged_file_is_replaced_and_that_can_be_told(
    database: DerivedDatabase, tmp_path: Path, size: int
) -> None:
    add(database, "lost")
    database.close()
    (tmp_path / "cache" / "words.sqlite").write_bytes(b"\xde\xad" * size)
    before = database.generation
    assert words(database) == []
    assert size == 0 or database.generation > before
    add(database, "new")
    assert words(database) == ["new"]


def test_wrong_data_found_by_the_work_starts_again(database: DerivedDatabase) -> None:
    add(database, "wrong")

    def check(db: sqlite3.Connection) -> list[str]:
        found = [row[0] for row in db.execute("SELECT word FROM words")]
        if "wrong" in found:
            raise sqlite3.DatabaseError("wrong")
        return found

    assert database.run(check) == []


def test_a_database_that_stays_locked_is_left_alone(
    database: DerivedDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.derived._BUSY_SECONDS", 0.05)
    add(database, "theirs")
    other = sqlite3.connect(tmp_path / "cache" / "words.sqlite")
    other.execute("BEGIN EXCLUSIVE")
    mine = DerivedDatabase(tmp_path / "cache" / "words.sqlite", SCHEMA, "words 1")
    add(mine, "mine")
    assert words(mine) == ["mine"]
    other.rollback()
    other.close()
    assert words(database) == ["theirs"]


def test_threads_share_one(database: DerivedDatabase) -> None:
    threads = [threading.Thread(target=add, args=(database, str(n))) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(words(database)) == 20


def test_two_that_open_at_once_make_it_once(tmp_path: Path) -> None:
    places = [DerivedDatabase(tmp_path / "w.sqlite", SCHEMA, "words 1") for _ in range(6)]
    threads = [threading.Thread(target=add, args=(place, str(n))) for n, place in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(words(places[0])) == 6
