"""Conversations: one append-only log per session, from which nothing is ever removed.

Every message is synced to disk before it is acted on. Secrets are redacted when stored; the running
turn keeps the original in memory.

Only one process at a time can have a session open: it holds a lock file under ``.kbtui/``, which
the kernel releases when the process ends. The log itself is locked only during each append.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from kbtui.errors import ConflictError, NotFoundError, StorageError, UsageError
from kbtui.models.port import Role, ToolCall
from kbtui.redaction.redact import redact
from kbtui.sessions import TAINT
from kbtui.sessions.log_records import (
    Mask,
    SessionInfo as SessionInfo,
    SessionList,
    SessionLog,
    SessionMessage as SessionMessage,
    mask_record,
    message_record,
    session_record,
    unmask_record,
)
from kbtui.text import clean_line, slugify
from kbtui.workspace.jsonl import append_line, each_record, is_same_file, read_lines
from kbtui.workspace.layout import Workspace
from kbtui.workspace.removals import Removals

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Claim:
    """An exclusive lock on a session; `release` gives it up."""

    def __init__(self, file: Path, descriptor: int) -> None:
        self._file = file
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, folder: Path, session_id: str) -> Claim:
        """Claim a session for this process.

        Raises:
            ConflictError: Another process has it open.
            StorageError: The lock file can't be created.
        """
        file = folder / f"{session_id}.lock"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            while True:
                descriptor = os.open(file, _FLAGS, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
                    os.close(descriptor)
                    raise _already_open(session_id, holder) from None
                if is_same_file(file, descriptor):
                    break
                os.close(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise StorageError(f"Can't open the session {session_id}: {error.strerror}.") from error
        return cls(file, descriptor)

    def release(self) -> None:
        """Release the session; a second call does nothing."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            # While still locked, so that a waiting process sees that the file is gone.
            if is_same_file(self._file, self._descriptor):
                self._file.unlink()
        os.close(self._descriptor)
        self._descriptor = None


def _already_open(session_id: str, holder: str) -> ConflictError:
    by = f" by process {holder}" if holder.isdecimal() else ""
    return ConflictError(
        f"The session {session_id} is open in another window{by}.",
        "Close it there, or start another one with /new.",
    )


# Keys in `meta` whose values are identifiers and aren't redacted.
_IDENTIFIER_KEYS = frozenset({"model", "commit", "paths", "proposal", TAINT})
_SUFFIX = ".jsonl"
_ID = re.compile(r"\w[\w.:@+ -]{0,150}", re.UNICODE)


def _now() -> datetime:
    return datetime.now(UTC)


class Session:
    """One open conversation; `id` is its log's name without suffix: ``tui_20261121-223000-ab12``.

    `notices` are what a person should know about the state of the log, one sentence each.
    """

    def __init__(
        self,
        workspace: Workspace,
        file: Path,
        log: SessionLog,
        claim: Claim | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._workspace = workspace
        self.id = file.name.removesuffix(_SUFFIX)
        self.notices: list[str] = []
        self._file = file
        self._log = log
        self._held_claim = claim
        self._clock = clock
        self._lock = threading.RLock()

    @property
    def title(self) -> str:
        """The title, else the beginning of the user's first message."""
        return self._log.shown_title

    @property
    def channel(self) -> str:
        """The front end that started the session: tui, cli, ..."""
        return self._log.channel

    @property
    def created(self) -> datetime:
        """The time when it was started."""
        return self._log.created

    @property
    def messages(self) -> Sequence[SessionMessage]:
        """The current conversation, without rewound messages."""
        return tuple(self._log.messages)

    @property
    def is_open(self) -> bool:
        """Whether messages can be added."""
        return self._held_claim is not None

    def append(
        self,
        role: Role,
        content: str,
        *,
        tool_calls: Sequence[ToolCall] = (),
        tool_call_id: str | None = None,
        name: str | None = None,
        turn: str | None = None,
        interrupted: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> SessionMessage:
        """Store a message with secrets redacted; it is on disk when this returns.

        Raises:
            StorageError: The file system refused; the log is unchanged.
            ConflictError: The session was closed.
        """
        cache = _RedactionCache({"": ""})
        with self._lock:
            message = SessionMessage(
                id=self._log.last_id + 1,
                time=self._clock(),
                role=role,
                content=cache[content],
                tool_calls=tuple(
                    replace(call, arguments=cache[call.arguments]) for call in tool_calls
                ),
                tool_call_id=tool_call_id,
                name=name,
                turn=turn,
                interrupted=interrupted,
                meta=_redacted(dict(meta or {}), cache),
            )
            self._write(message_record(message))
            return message

    def rename(self, title: str) -> None:
        """Set the title; an empty one restores the default, the user's first message."""
        record = {"kind": "title", "title": clean_line(title), "time": self._timestamp()}
        with self._lock:
            self._write(record)

    def rewind(self, to_message: int) -> None:
        """Discard everything after a message; the log keeps it.

        Raises:
            NotFoundError: There is no such message; 0 means "before the first one".
        """
        with self._lock:
            if to_message != 0 and all(each.id != to_message for each in self._log.messages):
                raise NotFoundError(f"There is no message {to_message} in {self.id}.")
            record = {"kind": "rewind", "to_message": to_message, "time": self._timestamp()}
            self._write(record)

    def add(self, record: dict[str, Any]) -> None:
        """Append a line to the log that isn't a message.

        Raises:
            StorageError: The file system refused.
            ConflictError: The session was closed.
        """
        with self._lock:
            self._write(record)

    def close(self) -> None:
        """Release the session for other processes; a second call does nothing."""
        with self._lock:
            if self._held_claim is not None:
                self._held_claim.release()
                self._held_claim = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _timestamp(self) -> str:
        return self._clock().isoformat(timespec="milliseconds")

    def _write(self, record: dict[str, Any]) -> None:
        if self._held_claim is None:
            raise ConflictError(
                f"The session {self.id} was closed.", "Open it again to go on with it."
            )
        self._workspace.confirm()
        append_line(self._file, record)
        self._log.add(record)


class SessionStore:
    """All sessions of a workspace; each is read only when it is opened."""

    def __init__(self, workspace: Workspace, clock: Callable[[], datetime] = _now) -> None:
        self._workspace = workspace
        self._folder = workspace.sessions
        self._clock = clock
        self._list = SessionList(workspace)
        self._open: dict[str, Session] = {}
        self._lock = threading.RLock()

    def list(self) -> list[SessionInfo]:
        """Return all sessions, the one updated last first."""
        return self._list.refresh(self._clock())

    @property
    def is_empty(self) -> bool:
        """Whether there are no sessions; reads none."""
        return next(self._folder.glob("*.jsonl"), None) is None

    @property
    def unreadable(self) -> dict[str, str]:
        """The sessions that `list` couldn't read, or their folder, with the reason."""
        return self._list.unreadable

    def create(self, channel: str = "tui", *, title: str = "", id: str = "") -> Session:
        """Start a session; its file exists when this returns.

        `id` replaces the default id, which is made from channel and time.

        Raises:
            ConflictError: A session of that id exists.
            UsageError: The id can't be a file name.
            StorageError: The file system refused.
        """
        with self._lock:
            now = self._clock()
            session_id = _checked_id(id) if id else self._new_id(channel, now)
            file = self._file(session_id)
            if file.exists():
                raise ConflictError(
                    f"There is a session {session_id} already.", "Open it, or choose another name."
                )
            self._check_writable()
            claim = self._claim(session_id)
            record = session_record(session_id, channel, clean_line(title), now)
            try:
                append_line(file, record)
            except StorageError:
                claim.release()
                raise
            return self._add_open(file, SessionLog.of([record]), claim)

    def open(self, ref: str) -> Session:
        """Open a session to continue it; `ref` is as in `find`.

        If this process has it open already, the same object is returned.

        Raises:
            NotFoundError: There is none.
            UsageError: Several match.
            ConflictError: Another process has it open.
        """
        with self._lock:
            session_id = self.find(ref)
            session = self._open.get(session_id)
            if session is not None and session.is_open:
                return session
            self._check_writable()
            claim = self._claim(session_id)
            lines = read_lines(self._file(session_id))
            session = self._add_open(self._file(session_id), SessionLog.of(lines.records), claim)
            if lines.torn is not None:
                session.notices.append("Its last line was cut short by a crash and is set aside.")
            if lines.bad:
                numbers = ", ".join(str(line.number) for line in lines.bad[:5])
                session.notices.append(f"Lines that can't be read were passed over: {numbers}.")
            return session

    def read(self, ref: str) -> tuple[SessionMessage, ...]:
        """Read the current messages of a session, whoever has it open.

        Raises:
            NotFoundError: There is none.
        """
        return tuple(self.read_log(ref).messages)

    def read_log(self, ref: str) -> SessionLog:
        """Read a whole log without opening the session; raises like `read`."""
        return SessionLog.of(each_record(self._file(self.find(ref))))

    def latest(self, channel: str | None = None) -> Session | None:
        """Open the session updated last that no other process has open; None if there is none."""
        for info in self.list():
            if channel is None or info.channel == channel:
                try:
                    return self.open(info.id)
                except ConflictError:
                    continue
        return None

    def mask(self, ref: str, masks: Iterable[Mask], *, by: str = "") -> None:
        """Hide words of a session from all future readers; the log keeps them.

        Masks are positions in the messages as they read now; `by` is the commit that asks for it,
        for `unmask`. The session may be open anywhere.

        Raises:
            NotFoundError: There is none.
            StorageError: The file system refused.
        """
        self._append(ref, [mask_record(mask, self._clock(), by) for mask in masks])

    def unmask(self, ref: str, by: str) -> None:
        """Withdraw a commit's masks of a session, or reinstate them; raises like `mask`."""
        self._append(ref, [unmask_record(by, self._clock())])

    def _append(self, ref: str, records: Iterable[dict[str, Any]]) -> None:
        """Append lines to the log of a session, whoever has it open."""
        with self._lock:
            session_id = self.find(ref)
            self._check_writable()
            mine = self._open.get(session_id)
            for record in records:
                if mine is not None and mine.is_open:
                    mine.add(record)
                else:
                    append_line(self._file(session_id), record)

    def delete(self, ref: str) -> None:
        """Delete a session's log permanently.

        Raises:
            NotFoundError: There is none.
            ConflictError: Another process has it open.
            StorageError: The file system refused.
        """
        with self._lock:
            session_id = self.find(ref)
            self._check_writable()
            mine = self._open.pop(session_id, None)
            if mine is not None:
                mine.close()
            claim = self._claim(session_id)
            file = self._file(session_id)
            try:
                Removals(self._workspace).note(f"sessions/{file.name}", file.read_bytes())
                file.unlink()
            except OSError as error:
                raise StorageError(f"Can't delete {session_id}: {error.strerror}.") from error
            finally:
                claim.release()

    def close(self) -> None:
        """Close all sessions that this process has open."""
        with self._lock:
            for session in self._open.values():
                session.close()
            self._open.clear()

    def _add_open(self, file: Path, log: SessionLog, claim: Claim) -> Session:
        session = Session(self._workspace, file, log, claim, self._clock)
        self._open = {each.id: each for each in (*self._open.values(), session) if each.is_open}
        return session

    def _claim(self, session_id: str) -> Claim:
        return Claim.take(self._workspace.machine / "sessions", session_id)

    def _check_writable(self) -> None:
        if not self._workspace.writable:
            raise StorageError(
                "The workspace is read-only, so nothing can be said in it.",
                "Searching and reading work; choose another workspace to chat.",
            )
        self._workspace.confirm()

    def _new_id(self, channel: str, now: datetime) -> str:
        stem = f"{slugify(channel, 20)}_{now.astimezone():%Y%m%d-%H%M%S}"
        while self._file(name := f"{stem}-{secrets.token_hex(2)}").exists():
            pass  # of one second
        return name

    def _file(self, session_id: str) -> Path:
        return self._folder / f"{session_id}{_SUFFIX}"

    def find(self, ref: str) -> str:
        """Return the id of a session, given an id, a title, or a prefix of an id.

        Raises:
            NotFoundError: There is none.
            UsageError: Several match.
        """
        ref = ref.strip().removesuffix(_SUFFIX)
        if _ID.fullmatch(ref) and self._file(ref).is_file():
            return ref
        infos = self.list() if ref else []
        found = [info.id for info in infos if info.title.casefold() == ref.casefold()] or [
            info.id for info in infos if info.id.startswith(ref)
        ]
        if not found:
            self._workspace.confirm()  # or there are none at all
            raise NotFoundError(
                f"There is no session {clean_line(ref)!r}.", "`kbtui sessions` lists all of them."
            )
        if len(found) > 1:
            raise UsageError(f"{ref!r} could be any of {', '.join(found[:5])}.", "Say more of it.")
        return found[0]


class _RedactionCache(dict[str, str]):
    """A cache of redacted texts of one message, in which texts often recur."""

    def __missing__(self, text: str) -> str:
        self[text] = redact(text).text
        return self[text]


def _redacted(value: Any, cache: _RedactionCache) -> Any:
    """Redact the texts in JSON values, except identifiers."""
    if isinstance(value, str):
        return cache[value]
    if isinstance(value, dict):
        return {
            key: each if key in _IDENTIFIER_KEYS else _redacted(each, cache)
            for key, each in value.items()
        }
    return [_redacted(each, cache) for each in value] if isinstance(value, list | tuple) else value


def _checked_id(session_id: str) -> str:
    if not _ID.fullmatch(session_id) or session_id.endswith((".", " ", _SUFFIX)):
        raise UsageError(
            f"{clean_line(session_id)!r} can't name a session.",
            "Use letters, digits, blanks and any of . : @ + _ -",
        )
    return session_id
