"""Conversations: one append-only log per session, from which nothing is ever removed.

Every message is on disk, synced, before anything is done with it. Secrets are redacted on the
way; the turn that is running keeps the original for itself.

One process at a time has a session open: a lock file under ``.kbtui/`` claims it, which the kernel
lets go of when the process ends. The log itself is locked only for the moment of each append.
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
from kbtui.sessions import DREW_ON
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
from kbtui.workspace.jsonl import append_line, read_lines
from kbtui.workspace.layout import Workspace

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Claim:
    """A held claim; `release` gives it up."""

    def __init__(self, file: Path, descriptor: int) -> None:
        self._file = file
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, folder: Path, session_id: str) -> Claim:
        """Claim a session for this process.

        Raises:
            ConflictError: another process has it open.
            StorageError: the lock file can't be made.
        """
        file = folder / f"{session_id}.lock"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            while True:
                descriptor = os.open(file, _FLAGS, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
                    os.close(descriptor)
                    raise _taken(session_id, holder) from None
                if _is_still(file, descriptor):
                    break
                os.close(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise StorageError(f"Can't open the session {session_id}: {error.strerror}.") from error
        return cls(file, descriptor)

    def release(self) -> None:
        """Give the session up; a second call does nothing."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            # While it is still locked: whoever waits for it sees that the name is gone.
            self._file.unlink()
        os.close(self._descriptor)
        self._descriptor = None


def _is_still(file: Path, descriptor: int) -> bool:
    """True if the locked file is the one that the name stands for, not one just removed."""
    try:
        named = file.stat()
    except FileNotFoundError:
        return False
    return named.st_ino == os.fstat(descriptor).st_ino


def _taken(session_id: str, holder: str) -> ConflictError:
    by = f" by process {holder}" if holder.isdecimal() else ""
    return ConflictError(
        f"The session {session_id} is open in another window{by}.",
        "Close it there, or start another one with /new.",
    )


# In what is kept with a message: of models, commits, files and proposals.
_NAMES = frozenset({"model", "commit", "paths", "proposal", DREW_ON})
_SUFFIX = ".jsonl"
_ID = re.compile(r"\w[\w.:@+ -]{0,150}", re.UNICODE)


def _now() -> datetime:
    return datetime.now(UTC)


class Session:
    """One open conversation; `id` is its log's name without suffix: ``tui_20261121-223000-ab12``.

    `notices` are what a person should know about the state of the log, one sentence each.
    """

    def __init__(
        self, file: Path, log: SessionLog, claim: Claim | None, clock: Callable[[], datetime]
    ) -> None:
        self.id = file.name.removesuffix(_SUFFIX)
        self.notices: list[str] = []
        self._file = file
        self._log = log
        self._claim = claim
        self._clock = clock
        self._lock = threading.RLock()

    @property
    def title(self) -> str:
        """The title it was given, else the beginning of what the user said first."""
        return self._log.shown_title

    @property
    def channel(self) -> str:
        """The front end that started the session: tui, cli, ..."""
        return self._log.channel

    @property
    def created(self) -> datetime:
        """When it was started."""
        return self._log.created

    @property
    def messages(self) -> Sequence[SessionMessage]:
        """The conversation as it stands: without what was taken back."""
        return tuple(self._log.messages)

    @property
    def is_open(self) -> bool:
        """True if messages can be added."""
        return self._claim is not None

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
        """Store a message, with secrets redacted; it is on disk when this returns.

        Raises:
            StorageError: the file system refused; the log is as it was.
            ConflictError: the session was closed.
        """
        clean = _Clean({"": ""})
        with self._lock:
            message = SessionMessage(
                id=self._log.last_id + 1,
                time=self._clock(),
                role=role,
                content=clean[content],
                tool_calls=tuple(
                    replace(call, arguments=clean[call.arguments]) for call in tool_calls
                ),
                tool_call_id=tool_call_id,
                name=name,
                turn=turn,
                interrupted=interrupted,
                meta=_redacted(dict(meta or {}), clean),
            )
            self._write(message_record(message))
            return message

    def rename(self, title: str) -> None:
        """Give it a title; an empty one gives it back to what the user said first."""
        record = {"kind": "title", "title": clean_line(title), "time": self._stamp()}
        with self._lock:
            self._write(record)

    def rewind(self, to_message: int) -> None:
        """Take back all that was said after a message; the log keeps it.

        Raises:
            NotFoundError: there is no such message; 0 means "before the first one".
        """
        with self._lock:
            if to_message != 0 and all(each.id != to_message for each in self._log.messages):
                raise NotFoundError(f"There is no message {to_message} in {self.id}.")
            record = {"kind": "rewind", "to_message": to_message, "time": self._stamp()}
            self._write(record)

    def add(self, record: dict[str, Any]) -> None:
        """Add a line to the log that isn't a message.

        Raises:
            StorageError: the file system refused.
            ConflictError: the session was closed.
        """
        with self._lock:
            self._write(record)

    def close(self) -> None:
        """Let other processes open it; a second call does nothing."""
        with self._lock:
            if self._claim is not None:
                self._claim.release()
                self._claim = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stamp(self) -> str:
        return self._clock().isoformat(timespec="milliseconds")

    def _write(self, record: dict[str, Any]) -> None:
        if self._claim is None:
            raise ConflictError(
                f"The session {self.id} was closed.", "Open it again to go on with it."
            )
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
        """All sessions, the one last spoken in first."""
        return self._list.refresh()

    @property
    def is_empty(self) -> bool:
        """True where nothing was ever said; no conversation is read for it."""
        return next(self._folder.glob("*.jsonl"), None) is None

    @property
    def unreadable(self) -> dict[str, str]:
        """The conversations that `list` couldn't read, or their folder, and why."""
        return self._list.unreadable

    def create(self, channel: str = "tui", *, title: str = "", id: str = "") -> Session:
        """Start a session; it has a file as soon as this returns.

        `id` is a name instead of one made from channel and time.

        Raises:
            ConflictError: a session of that id exists.
            UsageError: the id can't be a file name.
            StorageError: the file system refused.
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
            claim = self._take(session_id)
            record = session_record(session_id, channel, clean_line(title), now)
            try:
                append_line(file, record)
            except StorageError:
                claim.release()
                raise
            return self._opened(file, SessionLog.of([record]), claim)

    def open(self, ref: str) -> Session:
        """Open a session, as `find` knows it, to go on with it.

        One that this process has open already is given again.

        Raises:
            NotFoundError: there is none.
            UsageError: several fit.
            ConflictError: another process has it open.
        """
        with self._lock:
            session_id = self.find(ref)
            session = self._open.get(session_id)
            if session is not None and session.is_open:
                return session
            self._check_writable()
            claim = self._take(session_id)
            lines = read_lines(self._file(session_id))
            session = self._opened(self._file(session_id), SessionLog.of(lines.records), claim)
            if lines.torn is not None:
                session.notices.append("Its last line was cut short by a crash and is set aside.")
            if lines.bad:
                numbers = ", ".join(str(line.number) for line in lines.bad[:5])
                session.notices.append(f"Lines that can't be read were passed over: {numbers}.")
            return session

    def read(self, ref: str) -> tuple[SessionMessage, ...]:
        """Read a conversation as it stands, whoever has it open.

        Raises:
            NotFoundError: there is none.
        """
        return tuple(self.read_log(ref).messages)

    def read_log(self, ref: str) -> SessionLog:
        """Read a whole log without opening the session, as `read` does."""
        return SessionLog.of(read_lines(self._file(self.find(ref))).records)

    def latest(self, channel: str | None = None) -> Session | None:
        """Open the session last spoken in that no other process has open; None without one."""
        for info in self.list():
            if channel is None or info.channel == channel:
                try:
                    return self.open(info.id)
                except ConflictError:
                    continue
        return None

    def mask(self, ref: str, masks: Iterable[Mask], *, by: str = "") -> None:
        """Have words of a session forgotten by whoever reads it from now on; the log keeps them.

        They are given by places in the messages as they read now, `by` is the commit that forgets
        them, for `unmask`. Somebody may have the session open.

        Raises:
            NotFoundError: there is none.
            StorageError: the file system refused.
        """
        self._append(ref, [mask_record(mask, self._clock(), by) for mask in masks])

    def unmask(self, ref: str, by: str) -> None:
        """Have what a commit forgot of a session read again, or forgotten again; as `mask`."""
        self._append(ref, [unmask_record(by, self._clock())])

    def _append(self, ref: str, records: Iterable[dict[str, Any]]) -> None:
        """Add lines to the log of a session, whoever has it open."""
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
        """Remove a session's log for good.

        Raises:
            NotFoundError: there is none.
            ConflictError: another process has it open.
            StorageError: the file system refused.
        """
        with self._lock:
            session_id = self.find(ref)
            self._check_writable()
            mine = self._open.pop(session_id, None)
            if mine is not None:
                mine.close()
            claim = self._take(session_id)
            try:
                self._file(session_id).unlink()
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

    def _opened(self, file: Path, log: SessionLog, claim: Claim) -> Session:
        session = Session(file, log, claim, self._clock)
        self._open = {each.id: each for each in (*self._open.values(), session) if each.is_open}
        return session

    def _take(self, session_id: str) -> Claim:
        return Claim.take(self._workspace.machine / "sessions", session_id)

    def _check_writable(self) -> None:
        if not self._workspace.writable:
            raise StorageError(
                "The workspace is read-only, so nothing can be said in it.",
                "Searching and reading work; choose another workspace to chat.",
            )

    def _new_id(self, channel: str, now: datetime) -> str:
        stamp = now.astimezone().strftime("%Y%m%d-%H%M%S")
        return f"{slugify(channel, 20)}_{stamp}-{secrets.token_hex(2)}"

    def _file(self, session_id: str) -> Path:
        return self._folder / f"{session_id}{_SUFFIX}"

    def find(self, ref: str) -> str:
        """The id of the session with an id, a title, or the beginning of an id.

        Raises:
            NotFoundError: there is none.
            UsageError: several fit.
        """
        ref = ref.strip().removesuffix(_SUFFIX)
        if _ID.fullmatch(ref) and self._file(ref).is_file():
            return ref
        infos = self.list() if ref else []
        found = [info.id for info in infos if info.title.casefold() == ref.casefold()] or [
            info.id for info in infos if info.id.startswith(ref)
        ]
        if not found:
            raise NotFoundError(
                f"There is no session {clean_line(ref)!r}.", "`kbtui sessions` lists all of them."
            )
        if len(found) > 1:
            raise UsageError(f"{ref!r} could be any of {', '.join(found[:5])}.", "Say more of it.")
        return found[0]


class _Clean(dict[str, str]):
    """Texts of one message without their secrets: a result and its summaries may say the same."""

    def __missing__(self, text: str) -> str:
        self[text] = redact(text).text
        return self[text]


def _redacted(value: Any, clean: _Clean) -> Any:
    """The texts in JSON values without secrets; what only names something has to stay as it is."""
    if isinstance(value, str):
        return clean[value]
    if isinstance(value, dict):
        return {
            key: each if key in _NAMES else _redacted(each, clean) for key, each in value.items()
        }
    return [_redacted(each, clean) for each in value] if isinstance(value, list | tuple) else value


def _checked_id(session_id: str) -> str:
    if not _ID.fullmatch(session_id) or session_id.endswith((".", " ", _SUFFIX)):
        raise UsageError(
            f"{clean_line(session_id)!r} can't name a session.",
            "Use letters, digits, blanks and any of . : @ + _ -",
        )
    return session_id
