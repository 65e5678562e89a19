"""Conversations of other programs among the sessions: brought whole, grown, and taken back.

What an import brings is a block of a log: a line that says from where, then the messages. The
block tells what is known already, so no other book is kept; a log is always replaced as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from kbtui.errors import ConflictError
from kbtui.sessions.store import Claim
from kbtui.workspace.durable import SYNC_TOGETHER, FileBatch, storage_errors
from kbtui.workspace.jsonl import rewrite
from kbtui.workspace.layout import Workspace

_SUFFIX = ".jsonl"
_NAMED = re.compile(r"(?P<of>[\w.-]+_[\d-]+-(?P<mark>[0-9a-f]{10}))(?:-(?P<part>[2-9]|\d{2,4}))?")
_BLOCK = b'{"kind":"import",'
_MASKS = (b'{"kind":"forget"', b'{"kind":"remember"')
_NOT_SAID = frozenset({"import", "title", "forget", "remember"})
Line = list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Brought:
    """The last that an import brought of a conversation.

    `line` has of each of its messages the hash and the id, 0 where that is of an earlier session of
    the same conversation. `updated` and `title` are those that it had there; `last` is the highest
    message id in the log. `went_on`: something was said in the session here since.
    """

    session: str
    line: Line
    updated: str
    title: str
    last: int
    went_on: bool


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What became of a session whose import is taken back; `kept` needs `why`."""

    session: str
    outcome: Literal["removed", "shortened", "kept"]
    why: str = ""


def is_imported(session: str) -> bool:
    """True if a session was begun by an import: others answered in it, not kbtui."""
    return _NAMED.fullmatch(session) is not None


def speaker(role: str, session: str) -> str:
    """Who says what has a role in a session: You, kbtui or the Assistant of another program."""
    if role == "user":
        return "You"
    return "Assistant" if is_imported(session) else "kbtui"


def mark_of(source: str, conversation: str) -> str:
    """The part of a session's name by which its conversation is found."""
    return sha256(f"{source}\0{conversation}".encode("utf-8", "replace")).hexdigest()[:10]


def block(
    batch: str, source: str, conversation: str, url: str, updated: str, title: str, line: Line
) -> dict[str, Any]:
    """The line that begins a block; `Imported` adds how long the block is."""
    return {
        "kind": "import",
        "lines": 0,
        "batch": batch,
        "source": source,
        "conversation": conversation,
        "url": url,
        "updated": updated,
        "name": title,
        "line": line,
    }


class Imported:
    """The sessions of a workspace that were imported."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._folder = workspace.sessions
        self._marks: dict[str, list[str]] | None = None

    def sessions_of(self, mark: str) -> list[str]:
        """The sessions of one conversation, in the order in which they came."""
        if self._marks is None:
            self._marks = {}
            for name in sorted(self._names(), key=_order):
                if found := _NAMED.fullmatch(name):
                    self._marks.setdefault(found["mark"], []).append(name)
        return self._marks.get(mark, [])

    def brought(self, session: str) -> Brought | None:
        """The last block of a session; None where it has none."""
        file = self._file(session)
        with storage_errors(f"Can't read {file.name}"):
            data = file.read_bytes()
        at = data.rfind(b"\n" + _BLOCK) + 1
        if not at:
            return None
        first, *rest = data[at:].split(b"\n")
        try:
            said = json.loads(first)
            line = [(str(mark), int(number)) for mark, number in said["line"]]
            after = [json.loads(each) for each in rest[said["lines"] :] if each.strip()]
            new = [json.loads(each) for each in rest[: said["lines"]] if each.strip()]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        ids = [each["id"] for each in (*new, *after) if isinstance(each.get("id"), int)]
        return Brought(
            session,
            line,
            str(said.get("updated") or ""),
            str(said.get("name") or ""),
            max([*ids, *(number for _, number in line)], default=0),
            any(each.get("kind") not in _NOT_SAID for each in after),
        )

    def write(self, logs: Mapping[str, list[dict[str, Any]]]) -> None:
        """Make new sessions, each whole or not at all; the first line of each is its header.

        Raises:
            StorageError: The file system refused; the ones before are there.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = list(logs)
        with (
            storage_errors("Can't write the imported conversations"),
            FileBatch(self._workspace) as batch,
        ):
            for begin in range(0, len(names), SYNC_TOGETHER * 4):
                some = names[begin : begin + SYNC_TOGETHER * 4]
                batch.write_together(
                    {f"sessions/{name}{_SUFFIX}": _bytes(logs[name]) for name in some}, 0o600
                )
            batch.sync()
        for name in names:
            if self._marks is not None and (found := _NAMED.fullmatch(name)):
                self._marks.setdefault(found["mark"], []).append(name)

    def extend(self, session: str, records: list[dict[str, Any]]) -> None:
        """Add a block to a session, all of it or nothing.

        Raises:
            ConflictError: It is open in a window.
            StorageError: The file system refused; it is as it was.
        """
        claim = Claim.take(self._workspace.machine / "sessions", session)
        try:
            rewrite(self._file(session), lambda data: _ended(data) + _bytes(records))
        finally:
            claim.release()

    def of_batch(self, batch: str) -> Iterator[str]:
        """The sessions that an import brought or made longer."""
        wanted = f'"batch":{json.dumps(batch)}'.encode()
        for name in sorted(self._names(), key=_order):
            if _NAMED.fullmatch(name) and wanted in self._file(name).read_bytes():
                yield name

    def take_back(self, batch: str) -> list[TakenBack]:
        """Take out what an import brought; a session that was gone on with since is kept."""
        self._marks = None
        return [self._taken_back(name, batch) for name in [*self.of_batch(batch)][::-1]]

    def _taken_back(self, session: str, batch: str) -> TakenBack:
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
                if rest.count(b"\n") <= 1:  # nothing but the header
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


def _order(name: str) -> tuple[str, int]:
    found = _NAMED.fullmatch(name)
    return (found["of"], int(found["part"] or 1)) if found else (name, 0)


def _without(data: bytes, batch: str) -> bytes | None:
    """A log without the last blocks, which are of a batch; None where something follows them."""
    rest = data
    while True:
        at = rest.rfind(b"\n" + _BLOCK) + 1
        try:
            said = json.loads(rest[at:].split(b"\n", 1)[0]) if at else {}
        except ValueError:
            said = {}
        if said.get("batch") != batch:
            break
        after = rest[at:].split(b"\n")[said.get("lines", 0) + 1 : -1]
        is_whole = rest.count(b"\n" + _BLOCK) == 1 and all(
            each.startswith(_MASKS) for each in after
        )
        if after and not is_whole:
            return None
        rest = rest[:at]
    still = f'"batch":{json.dumps(batch)}'.encode() in rest
    return None if still or len(rest) == len(data) else rest


def forgotten_in(data: bytes) -> frozenset[bytes]:
    """The lines of a log that have words of it forgotten, or read again."""
    return frozenset(line for line in data.split(b"\n") if line.startswith(_MASKS))


def _ended(data: bytes) -> bytes:
    return data if not data or data.endswith(b"\n") else data + b"\n"


def _bytes(records: list[dict[str, Any]]) -> bytes:
    """The lines of some records; each block is told how long it is."""
    starts = [number for number, each in enumerate(records) if each.get("kind") == "import"]
    for start, end in zip(starts, [*starts[1:], len(records)], strict=True):
        records[start]["lines"] = end - start - 1
    return b"".join(
        json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        + b"\n"
        for each in records
    )
