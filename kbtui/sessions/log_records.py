"""The records of a session log, and the list of all sessions, cached by log file.

A log is JSON Lines: first the session, then one line per message, and lines that rename the
session, rewind it, or mask words of a message that the user wants forgotten. Nothing is ever
removed; the last line about something wins. Logs of older programs, whose messages have no ids, can
be read as well.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from kbtui.errors import StorageError
from kbtui.freed import give_back
from kbtui.models.port import Message, Role, ToolCall
from kbtui.sessions import MARKS, TAINT
from kbtui.text import shorten
from kbtui.workspace.files import why_closed
from kbtui.workspace.jsonl import each_record
from kbtui.workspace.layout import Workspace

FORMAT = 1
FORGOTTEN_MARK = "[forgotten]"
"""The replacement for words that the user wants forgotten, wherever a log is read."""

TITLE = 0
"""The message number that stands for the title in masks."""

_MAX_ID_GAP = 100_000  # ids missing because of unreadable lines
_ROLES = frozenset({"system", "user", "assistant", "tool"})
_SPEAKERS = frozenset({"user", "assistant"})
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """One stored message.

    Attributes:
        id: Counts from 1 within the session; never reused, not even after a rewind.
        time: The time when it was stored.
        role: The speaker: user, assistant or tool.
        content: The text, with secrets redacted.
        tool_calls: The tool calls of an assistant's message.
        tool_call_id: The call that a tool's message answers; `name` is the tool's.
        turn: The id of the turn that it belongs to.
        interrupted: Whether the turn was stopped or failed during this message.
        meta: Additional data, e.g. ``citations``; JSON values.
    """

    id: int
    time: datetime
    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    turn: str | None = None
    interrupted: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_said(self) -> bool:
        """Return whether the user said or the assistant answered something."""
        return self.role in _SPEAKERS and bool(self.content.strip())

    @property
    def tainted(self) -> bool:
        """Whether the model was shown a private entry before this message."""
        return bool(self.meta.get(TAINT))

    def as_prompt(self) -> Message:
        """Return the message for a prompt, without what kbtui added below an answer.

        A model that is shown such text as its own words repeats it.
        """
        text = self.content.removesuffix(str(self.meta.get(MARKS, "")))
        return Message(self.role, text, self.tool_calls, self.tool_call_id, self.name)


@dataclass(frozen=True, slots=True)
class Mask:
    """Words of a message to be forgotten: `spans` of its current content, ends exclusive.

    `calls` masks the arguments of its tool calls as well. Message 0 is the title.
    """

    message: int
    spans: tuple[tuple[int, int], ...]
    calls: bool = False


@dataclass(slots=True)
class SessionLog:
    """The state of a session after all lines of its log.

    `messages` is the current conversation, `last_id` the highest id ever used. An imported session
    has the `url` of its origin, and is `untouched` until something is added to it.
    """

    title: str = ""
    created: datetime = _EPOCH
    channel: str = ""
    messages: list[SessionMessage] = field(default_factory=list)
    last_id: int = 0
    url: str = ""
    untouched: bool = False
    _import_lines_left: int = 0
    _originals: dict[int, SessionMessage] = field(default_factory=dict)
    _edits: list[Mapping[str, Any]] = field(default_factory=list)  # titles and masks

    @property
    def updated(self) -> datetime:
        """The time of the last message."""
        return self.messages[-1].time if self.messages else self.created

    @property
    def shown_title(self) -> str:
        """The title, else the beginning of the user's first message."""
        if self.title:
            return self.title
        first_text = next((each.content for each in self.messages if each.role == "user"), "")
        return shorten(first_text, 60) or "New session"

    def info(self, session: str) -> SessionInfo:
        """Return the summary of the session for lists; `session` is its id."""
        fields = self.shown_title, self.created, self.updated, len(self.messages), self.channel
        return SessionInfo(session, *fields, self.url, self.untouched)

    def add(self, record: Mapping[str, Any]) -> None:
        """Apply the next line; unknown ones are ignored."""
        kind = record.get("kind") or record.get("_type")
        self._import_lines_left -= 1
        if kind == "import":
            self._begin_import(record)
        elif str(record.get("role")) in _ROLES and kind in (None, "message"):
            message = message_from(record, self.last_id + 1)
            self.last_id = max(self.last_id, message.id)
            self.messages.append(message)
            self.untouched &= self._import_lines_left >= 0
        elif kind in ("session", "metadata"):
            self.created = _time(record.get("created") or record.get("created_at"))
            self.channel = str(record.get("channel") or "")
            self._apply(record)
        elif kind == "rewind" and isinstance(record.get("to_message"), int):
            self.messages = [each for each in self.messages if each.id <= record["to_message"]]
        elif kind in ("title", "forget"):
            self._apply(record)
        elif kind == "remember":
            self._withdraw(record)

    def _begin_import(self, record: Mapping[str, Any]) -> None:
        self._import_lines_left = record["lines"] if isinstance(record.get("lines"), int) else 0
        self.url = str(record.get("url") or self.url)
        self.untouched = True

    def _withdraw(self, record: Mapping[str, Any]) -> None:
        """Reapply all titles and masks without those that are withdrawn."""
        edits, self._edits, self.title = [*self._edits, record], [], ""
        self.messages = [self._originals.get(each.id, each) for each in self.messages]
        for each, line in zip(settled(edits), edits, strict=True):
            self._apply(each)
            self._edits[-1] = line

    def _apply(self, record: Mapping[str, Any]) -> None:
        """Apply a title or a mask."""
        self._edits.append(record)
        if record.get("kind") == "forget":
            self._mask(record)
        elif "title" in record:
            self.title = str(record["title"] or "")

    def _mask(self, record: Mapping[str, Any]) -> None:
        if record.get("message") == TITLE:
            self.title = masked(self.title, read_spans(record))
        for number, message in enumerate(self.messages):
            if message.id == record.get("message"):
                self._originals.setdefault(message.id, message)
                calls = message.tool_calls
                if record.get("calls") is True:
                    calls = tuple(replace(call, arguments="{}") for call in calls)
                content = masked(message.content, read_spans(record))
                self.messages[number] = replace(message, content=content, tool_calls=calls)

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]]) -> SessionLog:
        """Apply all lines of a log."""
        log = cls()
        for record in records:
            log.add(record)
        return log


def mask_record(mask: Mask, now: datetime, by: str = "") -> dict[str, Any]:
    """Return the line that masks words of a message for a commit, without repeating them."""
    record: dict[str, Any] = {
        "kind": "forget",
        "message": mask.message,
        "spans": [list(span) for span in mask.spans],
        "time": now.isoformat(timespec="milliseconds"),
    }
    record |= {"by": by} if by else {}
    return record | {"calls": True} if mask.calls else record


def unmask_record(by: str, now: datetime) -> dict[str, Any]:
    """Return the line that withdraws a commit's masks, or reinstates them if withdrawn."""
    return {"kind": "remember", "by": by, "time": now.isoformat(timespec="milliseconds")}


Span = tuple[int, int]


def settled(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of a log with withdrawn masks replaced by empty lines.

    The positions of the remaining masks are adjusted to the resulting text.
    """
    back = Counter(str(each.get("by")) for each in records if each.get("kind") == "remember")
    if not back:
        return [dict(record) for record in records]
    gone = {by for by, times in back.items() if times % 2}
    all_cuts: dict[Any, list[Span]] = {}
    live_cuts: dict[Any, list[Span]] = {}
    lines: list[dict[str, Any]] = []
    for record in records:
        if record.get("kind") != "forget" or not isinstance(record.get("message"), int):
            if "title" in record:  # positions in the previous title don't apply to it
                all_cuts.pop(TITLE, None)
                live_cuts.pop(TITLE, None)
            lines.append(dict(record))
            continue
        cuts = all_cuts.setdefault(record.get("message"), [])
        live = live_cuts.setdefault(record.get("message"), [])
        whole = [
            (_to_original(first, cuts, at_end=False), _to_original(last, cuts, at_end=True))
            for first, last in read_spans(record)
            if 0 <= first < last
        ]
        cuts[:] = _merge_spans([*cuts, *whole])
        if str(record.get("by")) in gone:
            lines.append({})
            continue
        spans = [
            [_to_masked(first, live, at_end=False), _to_masked(last, live, at_end=True)]
            for first, last in whole
        ]
        live[:] = _merge_spans([*live, *whole])
        lines.append({**record, "spans": spans})
    return lines


def _merge_spans(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _to_original(place: int, cuts: Iterable[Span], *, at_end: bool) -> int:
    """Map a position in a masked text to the original one.

    Inside a mark, to an end of the words.
    """
    shift = 0
    for first, last in cuts:
        if place <= first + shift:
            break
        if place < first + shift + len(FORGOTTEN_MARK):
            return last if at_end else first
        shift += len(FORGOTTEN_MARK) - (last - first)
    return place - shift


def _to_masked(place: int, cuts: Iterable[Span], *, at_end: bool) -> int:
    """Map a position in the original text to the masked one; inside masked words, to an end."""
    shift = 0
    for first, last in cuts:
        if place <= first:
            break
        if place < last:
            return first + shift + (len(FORGOTTEN_MARK) if at_end else 0)
        shift += len(FORGOTTEN_MARK) - (last - first)
    return place + shift


def read_spans(record: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the spans of a mask line, skipping invalid ones."""
    spans = record.get("spans")
    return [
        (span[0], span[1])
        for span in (spans if isinstance(spans, list) else ())
        if isinstance(span, list) and [type(end) for end in span] == [int, int]
    ]


def masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace spans of a text by marks."""
    for first, last in sorted(spans, reverse=True):
        if 0 <= first < last:
            text = f"{text[:first]}{FORGOTTEN_MARK}{text[last:]}"
    return text


def session_record(session_id: str, channel: str, title: str, now: datetime) -> dict[str, Any]:
    """Return the first line of a log."""
    return {
        "kind": "session",
        "format": FORMAT,
        "id": session_id,
        "channel": channel,
        "created": now.isoformat(timespec="seconds"),
        "title": title,
    }


def message_record(message: SessionMessage) -> dict[str, Any]:
    """Return the line of a message, without empty fields."""
    record: dict[str, Any] = {
        "id": message.id,
        "time": message.time.isoformat(timespec="milliseconds"),
        "role": message.role,
        "content": message.content,
    }
    if message.tool_calls:
        record["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    optional = {
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "turn": message.turn,
        "interrupted": message.interrupted or None,
        "meta": dict(message.meta) or None,
    }
    return record | {key: value for key, value in optional.items() if value is not None}


_TEXTS = ("tool_call_id", "name", "turn")


def message_from(record: Mapping[str, Any], next_id: int) -> SessionMessage:
    """Parse the line of a message, ours or an older program's."""
    texts = {key: value for key in _TEXTS if isinstance(value := record.get(key), str) and value}
    calls = record.get("tool_calls")
    return SessionMessage(
        id=_number(record.get("id"), next_id),
        time=_time(record.get("time") or record.get("timestamp")),
        role=cast("Role", record["role"]),
        content=_content(record.get("content")),
        tool_calls=tuple(_calls(calls)) if calls else (),
        tool_call_id=texts.get("tool_call_id"),
        name=texts.get("name"),
        turn=texts.get("turn"),
        interrupted=record.get("interrupted") is True,
        meta=meta if isinstance(meta := record.get("meta"), dict) else {},
    )


def _number(value: Any, next_id: int) -> int:
    """Return the id of a message, or `next_id` if it is implausibly large."""
    is_id = isinstance(value, int) and not isinstance(value, bool)
    return value if is_id and 1 <= value < next_id + _MAX_ID_GAP else next_id


def _calls(value: Any) -> Iterable[ToolCall]:
    """Parse tool calls, ours or those of providers with the name in ``function``."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            inner = item.get("function")
            named = inner if isinstance(inner, dict) else item
            yield ToolCall(
                str(item.get("id") or ""),
                str(named.get("name") or ""),
                str(named.get("arguments") or "{}"),
            )


def _content(value: Any) -> str:
    if isinstance(value, list):
        parts = (part.get("text") for part in value if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _time(value: Any) -> datetime:
    try:
        time = datetime.fromisoformat(str(value))
        return time if time.tzinfo else time.astimezone()
    except (ValueError, OverflowError):
        return _EPOCH


log = logging.getLogger(__name__)
_SUFFIX = ".jsonl"
_CACHE = "sessions.json"
_VERSION = 2
_MUCH = 4 << 20  # bytes of logs


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The summary of a session for lists; `messages` is the number of current messages.

    `url` and `untouched` are as in `SessionLog`.
    """

    id: str
    title: str
    created: datetime
    updated: datetime
    messages: int
    channel: str
    url: str = ""
    untouched: bool = False


class SessionList:
    """Lists the sessions of a workspace, caching each log's summary by size and mtime."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, tuple[tuple[int, int], SessionInfo]] = {}
        self._loaded = False
        self._lock = threading.Lock()
        self.unreadable: dict[str, str] = {}
        """Logs that can't be read, with the reason; they are left alone."""

    def refresh(self, now: datetime) -> list[SessionInfo]:
        """Read new and changed logs; return all sessions, the one updated last first.

        A time after `now` means that the clock was wrong, so that such sessions come last.
        """
        with self._lock:
            if not self._loaded:
                self._known = _load(self._workspace)
                self._loaded = True
            self.unreadable = {}
            known = {name: self._read_info(file) for name, file in self._files().items()}
            current = {name: item for name, item in known.items() if item is not None}
            if current != self._known:
                read = sum(
                    state[0]
                    for name, (state, _) in current.items()
                    if current[name] != self._known.get(name)
                )
                self._known = current
                _store(self._workspace, current)
                if read > _MUCH:
                    give_back()
            infos = [info for _, info in current.values()]
        return sorted(
            infos, key=lambda info: (info.updated <= now, info.updated, info.id), reverse=True
        )

    def _files(self) -> dict[str, Path]:
        folder = self._workspace.sessions
        if why := why_closed(folder):
            self.unreadable[folder.name] = why
        return {
            file.name.removesuffix(_SUFFIX): file
            for file in folder.glob(f"[!.]*{_SUFFIX}")
            if os.path.isfile(file) and not file.is_symlink()
        }

    def _read_info(self, file: Path) -> tuple[tuple[int, int], SessionInfo] | None:
        session_id = file.name.removesuffix(_SUFFIX)
        try:
            status = file.stat()
            state = (status.st_size, status.st_mtime_ns)
            before = self._known.get(session_id)
            if not os.access(file, os.R_OK):
                self.unreadable[session_id] = "permission denied"
                return None
            if before is not None and before[0] == state:
                return before
            info = SessionLog.of(each_record(file)).info(session_id)
        except (OSError, StorageError) as error:
            log.warning("the session %s can't be read: %s", session_id, error)
            self.unreadable[session_id] = "it can't be read"
            return None
        return state, info


def _load(workspace: Workspace) -> dict[str, tuple[tuple[int, int], SessionInfo]]:
    """Read the cache, or return an empty one if it is invalid."""
    try:
        value = json.loads((workspace.cache / _CACHE).read_bytes())
        if value["version"] != _VERSION:
            return {}
        return {name: _from_json(item) for name, item in value["sessions"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _store(workspace: Workspace, known: Mapping[str, tuple[tuple[int, int], SessionInfo]]) -> None:
    sessions = {name: _as_json(state, info) for name, (state, info) in known.items()}
    try:
        file = workspace.cache / _CACHE
        scratch = file.with_suffix(".new")
        scratch.write_text(json.dumps({"version": _VERSION, "sessions": sessions}), "utf-8")
        scratch.replace(file)
    except OSError as error:
        log.info("the list of sessions can't be cached: %s", error)


def _as_json(state: tuple[int, int], info: SessionInfo) -> dict[str, Any]:
    times = {"created": info.created.isoformat(), "updated": info.updated.isoformat()}
    return {"state": state, **asdict(info), **times}


def _from_json(item: Mapping[str, Any]) -> tuple[tuple[int, int], SessionInfo]:
    size, changed = item["state"]
    info = SessionInfo(
        str(item["id"]),
        str(item["title"]),
        datetime.fromisoformat(item["created"]),
        datetime.fromisoformat(item["updated"]),
        int(item["messages"]),
        str(item["channel"]),
        str(item["url"]),
        item["untouched"] is True,
    )
    return (int(size), int(changed)), info
