"""Damage on one machine takes no text from the others, whatever it is and whatever it hits.

Three machines are in step. On the third something breaks; then all sync, it first.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kbtui.knowledge_base import KnowledgeBase
from kbtui.workspace.opening import create_workspace

TALK, OTHER = "sessions/talk.jsonl", "sessions/other.jsonl"
TEXT, PDF, LIST = "docs/notes.txt", "docs/house/plan.pdf", "docs/house/list.txt"
STATE = ".kbtui/history.git/beside"
NAMES = ("first", "second", "third")
OVERRIDES = {"sync": {"documents": True, "conversations": True}, "search": {"semantic": False}}


class Machines:
    """Three machines and the place between them; the third, `broken`, is where things break."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.roots = [folder / name for name in NAMES]
        self.broken = self.roots[-1]
        self.clock = lambda: datetime(2026, 11, 20, 10, tzinfo=UTC)

    def file(self, path: str, root: Path | None = None) -> Path:
        return (root or self.broken) / path

    def say(self, text: str, path: str = TALK, root: Path | None = None) -> None:
        file = self.file(path, root)
        data = file.read_bytes()
        end = b"" if data.endswith(b"\n") else b"\n"
        file.write_bytes(data + end + _message(1 + _lines(data), text))

    def sync(self, *roots: Path) -> list[str]:
        """Sync machines one after the other, and return what was said."""
        said: list[str] = []
        for root in roots:
            with KnowledgeBase.open(root, overrides=OVERRIDES, clock=self.clock) as kb:
                said += kb.syncing.run(str(self.folder / "remote.git")).report.notes
        return said

    def texts(self, root: Path) -> set[bytes]:
        """What is kept on a machine: what was said, and each document whole."""
        kept: set[bytes] = set()
        for file in (root / "sessions").glob("*.jsonl"):
            kept |= {
                each["content"].encode()
                for line in file.read_bytes().split(b"\n")
                if (each := _parsed(line)) and "content" in each
            }
        return kept | {file.read_bytes() for file in (root / "docs").rglob("*") if file.is_file()}

    def files(self, root: Path) -> dict[str, bytes]:
        return {
            str(file.relative_to(root)): file.read_bytes()
            for area in ("docs", "sessions")
            for file in sorted((root / area).rglob("*"))
            if file.is_file() and ".torn-" not in file.name
        }


def _message(number: int, text: str) -> bytes:
    time = f"2026-11-20T10:{number:02}:00+00:00"
    record = {"id": number, "time": time, "role": "user", "content": text}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _lines(data: bytes) -> int:
    return data.count(b"\n") - 1  # without the header


def _parsed(line: bytes) -> dict[str, str] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Machines in step, in a folder that keeps its path: it names the place that they sync with."""
    folder = tmp_path_factory.mktemp("damage")
    machines = Machines(folder / "world")
    for root in machines.roots:
        create_workspace(root)
    first, chance = machines.roots[0], random.Random(5)
    for path, count in ((TALK, 12), (OTHER, 8), ("sessions/third.jsonl", 3)):
        name = Path(path).stem
        head = {"kind": "session", "format": 1, "id": name, "channel": "tui", "title": ""}
        data = json.dumps(head).encode() + b"\n"
        for number in range(1, 1 + count):
            data += _message(
                number, f"In {name} the heron {chance.getrandbits(60):x}, naïve {number}."
            )
        machines.file(path, first).write_bytes(data)
    (first / "docs/house").mkdir()
    text = "".join(f"Line {number} of the notes, naïve.\n" for number in range(60))
    body = b"%PDF-1.7\n" + chance.randbytes(3000) + b"\n%%EOF\n"
    png = b"\x89PNG\r\n\x1a\n" + chance.randbytes(900) + b"IEND\xaeB`\x82"
    for path, data in (
        *((TEXT, text.encode()), (PDF, body), (LIST, b"one\ntwo\nthree\n")),
        *(("docs/house/roof.png", png), ("docs/a.txt", b"a\n"), ("docs/b.txt", b"b\n")),
    ):
        machines.file(path, first).write_bytes(data)
    machines.sync(*machines.roots, *machines.roots)
    (folder / "world").rename(folder / "kept")
    return folder


@pytest.fixture
def machines(prepared: Path) -> Iterator[Machines]:
    shutil.copytree(prepared / "kept", prepared / "world")
    yield Machines(prepared / "world")
    shutil.rmtree(prepared / "world")


Way = Callable[[Machines], object]


def _change(path: str, make: Callable[[bytes], bytes]) -> Way:
    def damage(machines: Machines) -> None:
        file = machines.file(path)
        file.write_bytes(make(file.read_bytes()))

    return damage


def _both(*ways: Way) -> Way:
    return lambda machines: [way(machines) for way in ways]


def _shorter(size: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * size)]


def _without_end(lines: int) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(data.splitlines(keepends=True)[:-lines])


def _zeroed(start: float, end: float) -> Callable[[bytes], bytes]:
    def make(data: bytes) -> bytes:
        first, last = int(len(data) * start), int(len(data) * end)
        return data[:first] + bytes(last - first) + data[last:]

    return make


def _order(numbers: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(numbers(data.splitlines(keepends=True)))


def _empty(_data: bytes) -> bytes:
    return b""


def _garbage(data: bytes) -> bytes:
    return random.Random(7).randbytes(len(data))


def _flipped(data: bytes) -> bytes:
    place = data.index(b"heron") + 1
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def _gone(path: str) -> Way:
    return lambda machines: machines.file(path).unlink()


def _folder_gone(path: str) -> Way:
    return lambda machines: shutil.rmtree(machines.file(path))


def _as(path: str, other: str) -> Way:
    return lambda machines: shutil.copyfile(machines.file(other), machines.file(path))


def _state_lost(machines: Machines) -> None:
    machines.file(STATE).unlink()


def _elsewhere(number: int, way: Way) -> Way:
    """The same on another machine."""

    def damage(machines: Machines) -> None:
        there = Machines(machines.folder)
        there.broken = machines.roots[number]
        way(there)

    return damage


def _said(text: str, path: str = TALK, number: int = -1) -> Way:
    return lambda machines: machines.say(text, path, machines.roots[number])


def _clock(year: int) -> Way:
    def damage(machines: Machines) -> None:
        machines.clock = lambda: datetime(year, 1, 1, tzinfo=UTC)
        for path in (TALK, TEXT):
            os.utime(machines.file(path), (machines.clock().timestamp(),) * 2)

    return damage


def _backup(machines: Machines) -> None:
    """The whole machine is put back from a backup; meanwhile the others went on."""
    kept = machines.folder / "backup"
    shutil.copytree(machines.broken, kept)
    machines.say("Said after the backup.", TALK, machines.roots[0])
    machines.file(TEXT, machines.roots[0]).write_bytes(b"Written after the backup.\n")
    machines.sync(*machines.roots)
    shutil.rmtree(machines.broken)
    kept.rename(machines.broken)


WAYS: dict[str, Way] = {
    "log cut within a line": _change(TALK, _shorter(0.55)),
    "log cut at a line's end": _change(TALK, _without_end(4)),
    "log cut to its head": _change(TALK, _without_end(12)),
    "log cut to half of its head": _change(TALK, lambda data: data[:20]),
    "half of the last line": _change(TALK, lambda data: data[:-30]),
    "log emptied": _change(TALK, _empty),
    "log all zero bytes": _change(TALK, _zeroed(0, 1)),
    "zero bytes within a line": _change(TALK, _zeroed(0.5, 0.51)),
    "zero bytes over some lines": _change(TALK, _zeroed(0.3, 0.7)),
    "zero bytes at the end": _change(TALK, _zeroed(0.8, 1)),
    "zero bytes after the end": _change(TALK, lambda data: data + bytes(512)),
    "lines twice": _change(TALK, _order(lambda lines: lines + lines[3:6])),
    "lines swapped": _change(
        TALK, _order(lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]])
    ),
    "a line lost within": _change(TALK, _order(lambda lines: lines[:5] + lines[6:])),
    "the head lost": _change(TALK, _order(lambda lines: lines[1:])),
    "log with another's content": _as(TALK, OTHER),
    "a line of no JSON": _change(
        TALK, _order(lambda lines: [*lines[:5], b'{"id": \n', *lines[6:]])
    ),
    "log of random bytes": _change(TALK, _garbage),
    "log in UTF-16": _change(TALK, lambda data: data.decode().encode("utf-16")),
    "log with a byte order mark": _change(TALK, lambda data: b"\xef\xbb\xbf" + data),
    "log with other line ends": _change(TALK, lambda data: data.replace(b"\n", b"\r\n")),
    "one bit of a message": _change(TALK, _flipped),
    "log gone, its neighbour emptied": _both(_gone(TALK), _change(OTHER, _empty)),
    "log gone, its neighbour cut": _both(_gone(TALK), _change(OTHER, _shorter(0.5))),
    "all logs gone": _folder_gone("sessions"),
    "an older log from a backup": _both(_change(TALK, _without_end(6))),
    "an older log, gone on with": _both(_change(TALK, _without_end(6)), _said("Gone on.")),
    "log cut within a line, gone on with": _both(_change(TALK, _shorter(0.5)), _said("More.")),
    "log cut while another goes on": _both(
        _change(TALK, _shorter(0.55)), _said("Meanwhile.", number=0)
    ),
    "log emptied while another goes on": _both(
        _change(TALK, _empty), _said("Meanwhile.", number=0)
    ),
    "log emptied, the state lost": _both(_change(TALK, _empty), _state_lost),
    "log cut, the state lost": _both(_change(TALK, _shorter(0.4)), _state_lost),
    "zero bytes, the state lost": _both(_change(TALK, _zeroed(0.3, 0.6)), _state_lost),
    "damage on two machines": _both(
        _change(TALK, _shorter(0.3)), _elsewhere(1, _change(TALK, _zeroed(0.5, 0.9)))
    ),
    "other damage on two machines": _both(
        _change(TALK, _empty), _change(PDF, _empty), _elsewhere(1, _change(PDF, _shorter(0.6)))
    ),
    "log cut, the clock in the past": _both(_change(TALK, _shorter(0.5)), _clock(1971)),
    "document cut, the clock in the future": _both(_change(TEXT, _shorter(0.5)), _clock(2090)),
    "PDF cut": _change(PDF, _shorter(0.5)),
    "PDF emptied": _change(PDF, _empty),
    "PDF all zero bytes": _change(PDF, _zeroed(0, 1)),
    "zero bytes within a PDF": _change(PDF, _zeroed(0.5, 0.8)),
    "PDF without its head": _change(PDF, lambda data: _garbage(data[:900]) + data[900:]),
    "PDF with another's content": _as(PDF, "docs/house/roof.png"),
    "text cut within a line": _change(TEXT, _shorter(0.41)),
    "text cut at a line's end": _change(TEXT, _without_end(20)),
    "zero bytes within a text": _change(TEXT, _zeroed(0.4, 0.5)),
    "text in another encoding": _change(TEXT, lambda data: data.decode().encode("latin-1")),
    "text of random bytes": _change(TEXT, _garbage),
    "document gone, its neighbour emptied": _both(_gone(LIST), _change(PDF, _empty)),
    "a folder of documents gone": _folder_gone("docs/house"),
    "all documents gone": _folder_gone("docs"),
    "document emptied, the state lost": _both(_change(TEXT, _empty), _state_lost),
    "the machine back from a backup": _backup,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_damage_on_one_machine_takes_no_text_from_the_others(machines: Machines, way: Way) -> None:
    first, second, third = machines.roots
    way(machines)
    kept = machines.texts(first)
    new = {b"Gone on.", b"More."} & machines.texts(third)
    others = [root for root in (first, second) if kept <= machines.texts(root)]
    said = machines.sync(third, first, second)
    for root in others:
        assert kept <= machines.texts(root), "a text was lost"
    said += machines.sync(third, first, second)
    for root in machines.roots:
        assert kept | new <= machines.texts(root), "a text was lost"
        assert machines.files(root) == machines.files(first)
    assert said or way is _backup
