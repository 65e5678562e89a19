"""Imported conversations among the sessions: written, extended, and taken back.

An import writes a block into a log: a line with the source, then the messages. The block also
records what was imported already, so there is no separate index; a log is always replaced as a
whole.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from kbtui.errors import ConflictError
from kbtui.sessions.store import Claim
from kbtui.workspace.durable import SYNC_TOGETHER, FileBatch, make_folder, storage_errors
from kbtui.workspace.jsonl import rewrite
from kbtui.workspace.layout import Workspace
from kbtui.workspace.removals import Removals

_SUFFIX = ".jsonl"
_NAME = re.compile(r"(?P<of>[\w.-]+_[\d-]+-(?P<mark>[0-9a-f]{10}))(?:-(?P<part>[2-9]|\d{2,4}))?")
_BLOCK = b'{"kind":"import",'
_MASKS = (b'{"kind":"forget"', b'{"kind":"remember"')
_NOT_MESSAGES = frozenset({"import", "title", "forget", "remember"})
_WRITTEN_AT_ONCE, _MARKS_AT_ONCE = 256 << 10, 1000
Line = list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class ImportedBlock:
    """The last imported block of a conversation.

    `line` has the hash and the id of each message, id 0 if it is in an earlier session of the same
    conversation. `updated` and `title` are those at the source; `last` is the highest message id in
    the log. `went_on` tells whether the session was continued here since.
    """

    session: str
    line: Line
    updated: str
    title: str
    last: int
    went_on: bool


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What became of a session when its import was taken back; `why` it was kept."""

    session: str
    outcome: Literal["removed", "shortened", "kept"]
    why: str = ""


def is_imported(session: str) -> bool:
    """Return whether a session was begun by an import, so that its answers aren't kbtui's."""
    return _NAME.fullmatch(session) is not None


def speaker(role: str, session: str) -> str:
    """Return the speaker of a role in a session: You, kbtui or another program's Assistant."""
    if role == "user":
        return "You"
    return "Assistant" if is_imported(session) else "kbtui"


def mark_of(source: str, conversation: str) -> str:
    """Return the part of a session's name that identifies its conversation."""
    return sha256(f"{source}\0{conversation}".encode("utf-8", "replace")).hexdigest()[:10]


def block(
    batch: str,
    source: str,
    conversation: str,
    url: str,
    updated: str,
    title: str,
    line: Iterable[tuple[str, int]],
    lines: int,
) -> dict[str, Any]:
    """Return the line that begins a block; so many `lines` follow that belong to it."""
    return {
        "kind": "import",
        "lines": lines,
        "batch": batch,
        "source": source,
        "conversation": conversation,
        "url": url,
        "updated": updated,
        "name": title,
        "line": line,
    }


class Imported:
    """The imported sessions of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._folder = workspace.sessions
        self._by_mark: dict[str, list[str]] | None = None

    def sessions_of(self, mark: str) -> list[str]:
        """Return the sessions of one conversation, in the order of import."""
        if self._by_mark is None:
            self._by_mark = {}
            for name in sorted(self._names(), key=_sort_key):
                if found := _NAME.fullmatch(name):
                    self._by_mark.setdefault(found["mark"], []).append(name)
        return self._by_mark.get(mark, [])

    def brought(self, session: str) -> ImportedBlock | None:
        """Return the last block of a session, or None if there is none."""
        file = self._file(session)
        with storage_errors(f"Can't read {file.name}"):
            data = file.read_bytes()
        at = data.rfind(b"\n" + _BLOCK) + 1
        if not at:
            return None
        lines = io.BytesIO(data)  # shares it
        lines.seek(at)
        try:
            header = json.loads(lines.readline())
            line = [(str(mark), int(number)) for mark, number in header["line"]]
            own = [each.get("id") for each in _records(islice(lines, header["lines"]))]
            after = [(each.get("id"), each.get("kind")) for each in _records(lines)]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        ids = [each for each in (*own, *(id_ for id_, _ in after)) if isinstance(each, int)]
        return ImportedBlock(
            session,
            line,
            str(header.get("updated") or ""),
            str(header.get("name") or ""),
            max([*ids, *(number for _, number in line)], default=0),
            any(kind not in _NOT_MESSAGES for _, kind in after),
        )

    def write(self, logs: Mapping[str, Iterable[dict[str, Any]]]) -> None:
        """Create new sessions, each completely or not at all; the first line of each is its header.

        The lines of a log are asked for when it is written.

        Raises:
            StorageError: The file system refused; the previous ones are kept.
        """
        names = list(logs)
        with (
            storage_errors("Can't write the imported conversations"),
            FileBatch(self._workspace) as batch,
        ):
            make_folder(self._workspace, "sessions")
            for begin in range(0, len(names), SYNC_TOGETHER * 4):
                some = names[begin : begin + SYNC_TOGETHER * 4]
                batch.write_together(
                    {f"sessions/{name}{_SUFFIX}": _serialized(logs[name]) for name in some}, 0o600
                )
            batch.sync()
        for name in names:
            if self._by_mark is not None and (found := _NAME.fullmatch(name)):
                self._by_mark.setdefault(found["mark"], []).append(name)

    def extend(self, session: str, records: Iterable[dict[str, Any]]) -> None:
        """Append a block to a session atomically.

        Raises:
            ConflictError: It is open in a window.
            StorageError: The file system refused; it is unchanged.
        """
        self._workspace.confirm()
        claim = Claim.take(self._workspace.machine / "sessions", session)
        try:
            rewrite(
                self._file(session), lambda data: chain([_with_newline(data)], _serialized(records))
            )
        finally:
            claim.release()

    def of_batch(self, batch: str) -> Iterator[str]:
        """Yield the sessions that an import created or extended."""
        wanted = f'"batch":{json.dumps(batch)}'.encode()
        for name in sorted(self._names(), key=_sort_key):
            if _NAME.fullmatch(name) and wanted in self._file(name).read_bytes():
                yield name

    def take_back(self, batch: str) -> list[TakenBack]:
        """Remove what an import added; a session that was continued since is kept."""
        self._workspace.confirm()
        self._by_mark = None
        return [self._take_back_one(name, batch) for name in [*self.of_batch(batch)][::-1]]

    def _take_back_one(self, session: str, batch: str) -> TakenBack:
        try:
            claim = Claim.take(self._workspace.machine / "sessions", session)
        except ConflictError:
            return TakenBack(session, "kept", "It is open in a window.")
        file = self._file(session)
        try:
            with storage_errors(f"Can't take back {session}"):
                data = file.read_bytes()
                rest = _without(data, batch)
                if rest is None:
                    why = "It was gone on with since, or a later import added to it."
                    return TakenBack(session, "kept", why)
                is_whole = rest.count(b"\n") <= 1  # only the header is left
                path = f"sessions/{file.name}"
                Removals(self._workspace).note(path, data, None if is_whole else rest)
                if is_whole:
                    file.unlink()
                    return TakenBack(session, "removed")
                rewrite(file, lambda _data: rest)
                return TakenBack(session, "shortened")
        finally:
            claim.release()

    def _file(self, session: str) -> Path:
        return self._folder / f"{session}{_SUFFIX}"

    def _names(self) -> Iterable[str]:
        return [file.name.removesuffix(_SUFFIX) for file in self._folder.glob(f"[!.]*{_SUFFIX}")]


def _sort_key(name: str) -> tuple[str, int]:
    found = _NAME.fullmatch(name)
    return (found["of"], int(found["part"] or 1)) if found else (name, 0)


def _records(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    return (json.loads(each) for each in lines if each.strip())


def _without(data: bytes, batch: str) -> bytes | None:
    """Remove the last blocks if they belong to a batch; return None if the log was continued."""
    rest = data
    while True:
        at = rest.rfind(b"\n" + _BLOCK) + 1
        try:
            header = json.loads(rest[at:].split(b"\n", 1)[0]) if at else {}
        except ValueError:
            header = {}
        if header.get("batch") != batch:
            break
        after = rest[at:].split(b"\n")[header.get("lines", 0) + 1 : -1]
        is_whole = rest.count(b"\n" + _BLOCK) == 1 and all(
            each.startswith(_MASKS) for each in after
        )
        if after and not is_whole:
            return None
        rest = rest[:at]
    still = f'"batch":{json.dumps(batch)}'.encode() in rest
    return None if still or len(rest) == len(data) else rest


def forgotten_in(data: bytes) -> frozenset[bytes]:
    """Return the lines of a log that mask words or withdraw masks."""
    return frozenset(line for line in data.split(b"\n") if line.startswith(_MASKS))


def _with_newline(data: bytes) -> bytes:
    return data if not data or data.endswith(b"\n") else data + b"\n"


def _line_of(record: dict[str, Any]) -> Iterator[str]:
    """Yield the parts of a line: that which begins a block of many messages is long."""
    if record.get("kind") != "import":
        yield _json(record) + "\n"
        return
    yield _json({**record, "line": []}).removesuffix("]}")
    marks, comma = iter(record["line"]), ""
    while some := [*islice(marks, _MARKS_AT_ONCE)]:
        yield comma + _json(some)[1:-1]
        comma = ","
    yield "]}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _serialized(records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield the lines of records, many at a time."""
    lines: list[bytes] = []
    size = 0
    for text in chain.from_iterable(map(_line_of, records)):
        lines.append(text.encode("utf-8", "replace"))
        size += len(lines[-1])
        if size >= _WRITTEN_AT_ONCE:
            yield b"".join(lines)
            lines.clear()
            size = 0
    yield b"".join(lines)
