"""Conversations of a nanobot workspace, or files of its ``sessions/``, brought into another one.

To take a whole workspace over with its memory, open it: `kbtui -w DIR`.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from kbtui.errors import UnreadableError
from kbtui.importers.markup import line_of, words_of
from kbtui.importers.port import Item, Note, Said, Skipped, Source
from kbtui.importers.reading import conversation, json_lines, json_members, read_each
from kbtui.importers.sources.nanobot_sessions import read_old_session
from kbtui.sessions.log_records import SessionLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.importers.opened import Opened
    from kbtui.sessions.log_records import SessionMessage

_OLD = re.compile(rb'\s*\{\s*"key"\s*:\s*"[^"]*"\s*,.*?"messages"\s*:\s*\[', re.DOTALL)
_LOG = re.compile(rb'\s*\{[^{}\n]*"(?:_type"\s*:\s*"metadata|kind"\s*:\s*"session)"')
_LARGEST = 128 << 20
_NOTES = re.compile(r"(?:^|/)(?:memory/[^/]+\.md|USER\.md)\Z")
_SHOWN = ("user", "assistant")


def _sessions(opened: Opened) -> Iterator[str]:
    return (name for name, head in json_members(opened) if _is_session(head))


def _read(opened: Opened) -> Iterator[Item]:
    """The conversations, and what was remembered as notes."""
    yield from read_each(opened, _sessions(opened), _session)
    for name in opened.names if opened.is_folder else ():
        if _NOTES.search(name) and opened.size(name) < _LARGEST:
            with opened.open(name) as stream:
                text = words_of(stream.read().decode("utf-8", "replace"))
            if text:
                yield Note(name, PurePosixPath(name).stem, text, folder="memory")


SOURCE = Source("nanobot", "nanobot", lambda opened: any(True for _ in _sessions(opened)), _read)


def _is_session(head: bytes) -> bool:
    return bool(_OLD.match(head) or _LOG.match(head))


def _session(opened: Opened, name: str) -> Iterator[Item]:
    stem = PurePosixPath(name).stem
    if _OLD.match(opened.head(name)):
        if opened.size(name) > _LARGEST:
            raise UnreadableError(f"It is larger than {_LARGEST >> 20} MB.")
        with opened.open(name) as stream:
            old = read_old_session(stream.read(), stem)
        for problem in old.problems:
            yield Skipped(line_of(name), f"{problem[:1].upper()}{problem[1:]}.")
        title, said = "", list(_said(old.messages))
    else:
        log = SessionLog()
        for record in json_lines(opened, name):
            if isinstance(record, Skipped):
                yield record
            else:
                log.add(record)
        title, said = log.title, list(_said(log.messages))
    if found := conversation(stem, title, said):
        yield found


def _said(messages: Any) -> Iterator[Said]:
    message: SessionMessage
    for message in messages:
        text = words_of(message.content)
        if text and message.role in _SHOWN:
            role: Any = message.role
            yield Said(role, text, message.time if message.time.timestamp() else None)
