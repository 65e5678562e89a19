"""Sessions of nanobot, imported into another workspace or read in place.

When a nanobot workspace is opened, its newer logs (``.jsonl`` with a metadata line) are read as
they are. Older sessions (``.json``) are converted to our logs, and the original is kept as
``.json.bak``. Messages that nanobot had condensed aren't condensed again.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from kbtui.errors import KbtuiError, UnreadableError
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of, words_of
from kbtui.importers.port import ImportedMessage, ImportedNote, Item, Skipped, Source
from kbtui.importers.reading import (
    Record,
    conversation,
    data_of,
    drained,
    has_any,
    json_lines,
    json_members,
    read_each,
)
from kbtui.importers.sources.nanobot_condensed import (
    CONSOLIDATED,
    CONVERTED,
    LOG,
    ROLES,
    count_of,
    first_of,
    is_file,
)
from kbtui.redaction.redact import redact
from kbtui.sessions import TAINT
from kbtui.sessions.log_records import (
    SessionLog,
    SessionMessage,
    message_from,
    message_record,
    session_record,
)
from kbtui.text import Packed, clean_line, pack, unpack
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.layout import Workspace

log = logging.getLogger(__name__)
_OLD, _BACKUP = ".json", ".json.bak"
_META_KEYS = ("tools_used", "media", "reasoning_content")
_OLD_SIGNATURE = re.compile(rb'\s*\{\s*"key"\s*:\s*"[^"]*"\s*,.*?"messages"\s*:\s*\[', re.DOTALL)
LOG_SIGNATURE = re.compile(rb'\s*\{[^{}\n]*"(?:_type"\s*:\s*"metadata|kind"\s*:\s*"session)"')
_MAX_FILE = 128 << 20
_NOTES = re.compile(r"(?:^|/)(?:memory/[^/]+\.md|USER\.md)\Z")
_SHOWN = ("user", "assistant")
_NO_META: Mapping[str, Any] = MappingProxyType({})


def _sessions(opened: OpenedExport) -> Iterator[str]:
    return (name for name, head in json_members(opened) if _is_session(head))


def _read(opened: OpenedExport) -> Iterator[Item]:
    yield from read_each(opened, _sessions(opened), read_session)
    yield from read_each(opened, filter(_NOTES.search, opened.names), _note)


def _note(opened: OpenedExport, name: str) -> Iterator[Item]:
    if text := words_of(data_of(opened, name).decode("utf-8", "replace")):
        yield ImportedNote(name, PurePosixPath(name).stem, text, folder="memory")


SOURCE = Source("nanobot", "nanobot", has_any(_sessions), _read, is_alone=True)


def _is_session(head: bytes) -> bool:
    return bool(_OLD_SIGNATURE.match(head) or LOG_SIGNATURE.match(head))


def read_session(opened: OpenedExport, name: str) -> Iterator[Item]:
    """Yield the conversation of a session file of either generation, and its problems."""
    stem = PurePosixPath(name).stem
    if _OLD_SIGNATURE.match(opened.head(name)):
        old = read_old_session(data_of(opened, name, _MAX_FILE), stem)
        for problem in old.problems:
            yield Skipped(line_of(name), f"{problem[:1].upper()}{problem[1:]}.", lost=True)
        title, messages = "", list(_shown_messages(old.messages))
    else:
        log = _PackedLog()
        for record in json_lines(opened, name):
            if isinstance(record, Skipped):
                yield record
            else:
                log.add(record)
        title, messages = log.title, list(_shown_messages(log.messages()))
    if found := conversation(stem, title, messages):
        yield found


class _PackedLog:
    """The state of a session as of its log, which keeps the texts of a long one packed."""

    def __init__(self) -> None:
        self._log = SessionLog()
        self._texts: list[Packed] = []  # a message that is packed says the number of its own

    @property
    def title(self) -> str:
        return self._log.title

    def add(self, record: Record) -> None:
        said, edited = self._log.messages, self._edited_by(record)
        for number in edited:
            said[number] = self._unpacked(said[number])
        before = len(said)
        self._log.add(record)
        said = self._log.messages
        for number in (*edited, *range(before, len(said))):
            each = said[number]
            self._texts.append(pack(each.content))
            meta = each.meta or _NO_META  # one for all
            said[number] = replace(each, content=f"{len(self._texts) - 1}", meta=meta)

    def _edited_by(self, record: Record) -> list[int]:
        """Return which messages a line may edit, of which the texts have to be there."""
        said, kind = self._log.messages, record.get("kind")
        if kind == "forget":
            return [n for n, each in enumerate(said) if each.id == record.get("message")]
        return [*range(len(said))] if kind == "remember" else []

    def _unpacked(self, message: SessionMessage) -> SessionMessage:
        return replace(message, content=unpack(self._texts[int(message.content)]))

    def messages(self) -> Iterator[SessionMessage]:
        """Yield the messages, which aren't kept any more by then."""
        for each in drained(self._log.messages):
            yield self._unpacked(each)


def _shown_messages(messages: Iterable[SessionMessage]) -> Iterator[ImportedMessage]:
    for message in messages:
        text = words_of(message.content)
        if text and message.role in _SHOWN:
            role: Any = message.role
            time = message.time if message.time.timestamp() else None
            yield ImportedMessage(role, text, time, taint=_taint_of(message))


def _taint_of(message: SessionMessage) -> tuple[str, ...]:
    found = message.meta.get(TAINT)
    if isinstance(found, list):
        return tuple(map(str, found))
    return ("",) if found else ()  # of another form, but marked


@dataclass(frozen=True, slots=True)
class OldSession:
    """An old session of nanobot, the first `consolidated` messages of which were condensed."""

    key: str
    created: datetime
    messages: tuple[SessionMessage, ...]
    consolidated: int
    problems: tuple[str, ...] = ()

    @property
    def channel(self) -> str:
        """The program it was started from, which is the part of the key before the colon."""
        return self.key.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Conversion:
    """The outcome of converting one file; `session` is None if it couldn't be read."""

    file: str
    session: str | None
    problems: tuple[str, ...] = ()


def read_old_session(data: bytes, name: str) -> OldSession:
    """Parse a ``.json`` session of nanobot, redacting secrets.

    Raises:
        UnreadableError: The data isn't such a session.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"The old session {name} is not valid JSON: {error}.") from None
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise UnreadableError(f"{name} is no session: it has no list of messages.")
    created = _time(value.get("created_at")) or datetime.fromtimestamp(0, UTC)
    problems: list[str] = []
    messages = tuple(_messages(value["messages"], created, problems))
    key = clean_line(str(value.get("key") or ""))
    consolidated = min(count_of(value.get(CONSOLIDATED)), len(messages))
    return OldSession(key, created, messages, consolidated, tuple(problems))


def convert_sessions(workspace: Workspace) -> list[Conversion]:
    """Convert every old ``.json`` session to our log format; unreadable ones are left as they are.

    It is idempotent, also after a crash midway.
    """
    if not workspace.writable:
        return []
    old = sorted(workspace.sessions.glob(f"[!.]*{_OLD}"))
    return [_convert(workspace, file) for file in old if is_file(file)]


def _convert(workspace: Workspace, file: Path) -> Conversion:
    try:
        with storage_errors(f"Can't read {file.name}"):
            session = read_old_session(file.read_bytes(), file.name)
        name = _converted_name(file)
        if not file.with_name(f"{name}{LOG}").exists():
            lines = [_first_record(name, file, session), *map(message_record, session.messages)]
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            data = text.encode("utf-8", "replace")
            files.write_machine_file(workspace, f"sessions/{name}{LOG}", data)
        with storage_errors(f"Can't put {file.name} aside"):
            file.rename(_free_backup(file))
    except KbtuiError as error:
        log.warning("%s", error)
        return Conversion(file.name, None, (str(error),))
    return Conversion(file.name, name, session.problems)


def _first_record(name: str, file: Path, session: OldSession) -> dict[str, Any]:
    channel = session.channel or name.partition("_")[0]
    return {
        **session_record(name, channel, "", session.created),
        "key": session.key,
        CONVERTED: file.name,
        CONSOLIDATED: session.consolidated,
    }


def _converted_name(file: Path) -> str:
    """Return a free name for the log, or that of this file's earlier conversion."""
    name, number = file.stem, 1
    while (taken := file.with_name(f"{name}{LOG}")).exists():
        if first_of(taken).get(CONVERTED) == file.name:
            return name
        number += 1
        name = f"{file.stem}-{number}"
    return name


def _free_backup(file: Path) -> Path:
    backup, number = file.with_name(file.stem + _BACKUP), 1
    while backup.exists():
        number += 1
        backup = file.with_name(f"{file.stem}{_BACKUP}{number}")
    return backup


def _messages(
    values: list[Any], created: datetime, problems: list[str]
) -> Iterator[SessionMessage]:
    number, last = 0, created
    for place, value in enumerate(values, 1):
        if not isinstance(value, dict) or value.get("role") not in ROLES:
            problems.append(f"item {place} is no message; it stays in the backup")
            continue
        number += 1
        last = _time(value.get("timestamp")) or last
        message = message_from({**value, "id": number}, number)
        yield replace(
            message,
            time=last,
            content=redact(message.content).text,
            tool_calls=tuple(
                replace(call, arguments=redact(call.arguments).text) for call in message.tool_calls
            ),
            meta={key: _redacted(value[key]) for key in _META_KEYS if value.get(key)},
        )


def _redacted(value: Any) -> Any:
    if isinstance(value, list):
        return [_redacted(each) for each in value]
    if isinstance(value, dict):
        return {key: _redacted(each) for key, each in value.items()}
    return redact(value).text if isinstance(value, str) else value


def _time(value: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo else time.astimezone()
