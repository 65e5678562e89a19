"""Appending and reading JSON lines, whole and torn."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import StorageError
from kbtui.workspace.jsonl import append_line, each_record, read_lines, rewrite
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path


def asides(file: Path) -> list[bytes]:
    return [path.read_bytes() for path in file.parent.glob(f"{file.name}.torn-*")]


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    file = tmp_path / "sessions" / "a.jsonl"
    append_line(file, {"id": 1, "content": "Grüße\n\u2028 \ud83d"})
    append_line(file, {"id": 2})
    read = read_lines(file)
    assert [record["id"] for record in read.records] == [1, 2]
    assert read.records[0]["content"].startswith("Grüße\n\u2028")
    assert read.torn is None
    assert len(file.read_bytes().splitlines()) == 2


def test_the_file_and_its_folder_are_private(tmp_path: Path) -> None:
    file = tmp_path / "sessions" / "a.jsonl"
    append_line(file, {})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_missing_file_has_no_records(tmp_path: Path) -> None:
    assert read_lines(tmp_path / "none.jsonl").records == ()


def test_a_torn_end_is_set_aside_and_reported(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"id":1}\n{"id":2,"conte')
    read = read_lines(file)
    assert read.records == ({"id": 1},)
    assert read.torn == b'{"id":2,"conte'
    assert asides(file) == [b'{"id":2,"conte']
    assert file.read_bytes() == b'{"id":1}\n'
    assert read_lines(file).torn is None


def test_a_torn_end_does_not_spoil_the_next_append(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"id":1}\n\0\0\0\0')
    append_line(file, {"id": 2})
    assert [record["id"] for record in read_lines(file).records] == [1, 2]
    assert asides(file) == [b"\0\0\0\0"]


def test_a_long_torn_end_is_set_aside_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    tail = b'{"content":"' + b"x" * 300_000
    file.write_bytes(b'{"id":1}\n' + tail)
    append_line(file, {"id": 2})
    assert asides(file) == [tail]
    assert [record["id"] for record in read_lines(file).records] == [1, 2]


def test_a_whole_last_record_without_its_newline_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"id":1}\n{"id":2}')
    assert [record["id"] for record in read_lines(file).records] == [1, 2]
    append_line(file, {"id": 3})
    assert [record["id"] for record in read_lines(file).records] == [1, 2, 3]
    assert asides(file) == []


def test_bad_lines_in_the_middle_are_reported_and_stay(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    data = b'{"id":1}\nnot json\n[1]\n\n{"id":2}\n'
    file.write_bytes(data)
    read = read_lines(file)
    assert [record["id"] for record in read.records] == [1, 2]
    assert tuple((line.number, line.data) for line in read.bad) == ((2, b"not json"), (3, b"[1]"))
    assert file.read_bytes() == data


def test_a_failed_append_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.jsonl"
    append_line(file, {"id": 1})
    real, calls = os.write, []

    def fills_up(descriptor: int, data: bytes) -> int:
        calls.append(1)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real(descriptor, bytes(data)[:4])

    monkeypatch.setattr(os, "write", fills_up)
    with pytest.raises(StorageError):
        append_line(file, {"id": 2})
    monkeypatch.undo()
    assert file.read_bytes() == b'{"id":1}\n'
    append_line(file, {"id": 3})
    assert [record["id"] for record in read_lines(file).records] == [1, 3]


def test_a_torn_end_in_a_read_only_place_is_only_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"id":1}\n{"id"')
    real = os.open

    def refuse(path: object, flags: int, *rest: object, **more: object) -> int:
        if flags & os.O_RDWR:
            raise OSError(30, "Read-only file system")
        return real(path, flags, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    read = read_lines(file)
    assert read.records == ({"id": 1},)
    assert read.torn == b'{"id"'
    assert file.read_bytes() == b'{"id":1}\n{"id"'


def test_who_waits_for_a_file_that_is_replaced_appends_to_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.jsonl"
    append_line(file, {"text": "secret"})
    waits, lock = threading.Event(), fcntl.flock

    def tell(descriptor: int, operation: int) -> None:
        waits.set()
        lock(descriptor, operation)

    appender = threading.Thread(target=append_line, args=(file, {"text": "mine"}))

    def without(data: bytes) -> bytes:
        monkeypatch.setattr(fcntl, "flock", tell)
        appender.start()
        assert waits.wait(PATIENCE)
        return data.replace(b"secret", b"[removed]")

    rewrite(file, without)
    appender.join(PATIENCE)
    assert read_lines(file).records == ({"text": "[removed]"}, {"text": "mine"})


def test_the_line_of_each_record_is_json(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    append_line(file, {"text": "a\r\nb\x00c"})
    assert json.loads(file.read_text("utf-8")) == {"text": "a\r\nb\x00c"}


def test_one_by_one_records_are_those_of_all_and_take_the_memory_of_one(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    said = (json.dumps({"id": number, "content": "leeks " * 9}) for number in range(9_000))
    file.write_text("\n".join(["no object", *said, '{"torn', ""])[:-1])
    whole = read_lines(file).records
    assert len(whole) == 9_000
    assert tuple(each_record(file)) == whole
    assert [*each_record(tmp_path / "none.jsonl")] == []
    del whole
    tracemalloc.start()
    assert sum(1 for _ in each_record(file)) == 9_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * file.stat().st_size
