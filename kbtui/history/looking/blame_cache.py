"""What blame has worked out, kept between starts: no text, only which line is whose."""

from __future__ import annotations

import json
import sqlite3
import zlib
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from kbtui.history.looking.origins import LineOrigin, Version
from kbtui.history.objects.commit import Actor, Origin
from kbtui.workspace.derived import DerivedDatabase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_IDENTITY = "blame 1"
_FIELDS = tuple(each.name for each in fields(Origin))
_SCHEMA = ('CREATE TABLE files (path TEXT PRIMARY KEY, "commit" TEXT, blob TEXT, data BLOB)',)


class Kept(NamedTuple):
    """One file's version as it was kept; its lines are those of the blob (None: it was gone)."""

    blob: str | None
    origins: Sequence[LineOrigin]
    gone: Mapping[bytes, LineOrigin]


class BlameCache:
    """Keeps the last known version of each file that blame was asked about."""

    def __init__(self, file: Path) -> None:
        self._database = DerivedDatabase(file, _SCHEMA, _IDENTITY)

    def commit_of(self, path: str) -> str | None:
        """The commit that a file is known up to."""
        row = self._one('SELECT "commit" FROM files WHERE path = ?', path)
        return row[0] if row else None

    def load(self, path: str) -> Kept | None:
        """What is kept of a file."""
        row = self._one("SELECT blob, data FROM files WHERE path = ?", path)
        return self._read(*row) if row else None

    def _one(self, query: str, path: str) -> Any:
        return self._database.run(lambda db: db.execute(query, (path,)).fetchone())

    def store(self, path: str, commit: str, blob: str | None, version: Version) -> None:
        """Keep a file's version in place of the one before."""
        row = (path, commit, blob, _packed(version))
        self._database.run(
            lambda db: db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row),
            write=True,
        )

    def _read(self, blob: str | None, data: bytes) -> Kept | None:
        try:
            kept = json.loads(zlib.decompress(data))
            written = [_read_written(*each) for each in kept["written"]]
            origins = [each for run in kept["runs"] for each in _read_run(written, run)]
            gone = {
                bytes.fromhex(mark): next(_read_run(written, [*place, 1]))
                for mark, place in kept["gone"].items()
            }
        except (zlib.error, ValueError, TypeError, KeyError, IndexError, sqlite3.Error):
            self._database.clear()  # damaged, or another version's
            return None
        return Kept(blob, origins, gone)


def _packed(version: Version) -> bytes:
    written: dict[tuple[str | None, str], int] = {}
    table: list[list[Any]] = []

    def number(origin: LineOrigin) -> int:
        key = origin.commit, origin.path
        if key not in written:
            written[key] = len(table)
            table.append(_as_row(origin))
        return written[key]

    document = {
        "runs": list(_runs((number(origin), origin.line) for origin in version.origins)),
        "gone": {mark.hex(): [number(each), each.line] for mark, each in version.gone.items()},
        "written": table,
    }
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 1)


def _as_row(origin: LineOrigin) -> list[Any]:
    of = origin.origin
    known = {name: value for name in _FIELDS if (value := getattr(of, name)) is not None}
    seconds = origin.time.timestamp() if origin.time else None
    return [origin.commit, origin.actor.value, seconds, known, origin.path]


def _runs(places: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Lines of one commit that stood below each other count as one."""
    run: list[int] | None = None
    for number, line in places:
        if run and run[0] == number and run[1] + run[2] == line:
            run[2] += 1
            continue
        if run:
            yield run
        run = [number, line, 1]
    if run:
        yield run


def _read_written(
    commit: str, actor: str, seconds: float | None, known: dict[str, Any], path: str
) -> LineOrigin:
    if "messages" in known:
        first, last = known["messages"]
        known["messages"] = (first, last)
    time = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return LineOrigin(commit, Actor(actor), time, Origin(**known), path)


def _read_run(written: list[LineOrigin], run: list[int]) -> Iterator[LineOrigin]:
    number, first, count = run
    of = written[number]
    for line in range(first, first + count):
        yield LineOrigin(of.commit, of.actor, of.time, of.origin, of.path, line)
