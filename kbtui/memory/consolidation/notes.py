"""Notes of the day, and the note that a session leaves behind: no model is asked for either.

The day's notes, ``memory/YYYY-MM-DD.md``, are written with each slice that is condensed, out of the
same answer. A session's note, ``memory/YYYY-MM-DD-slug.md``, is put together at its end out of what
the archive says of it, and of its last messages, shortened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kbtui.history.change import Actor, Change, Origin
from kbtui.history.history import History
from kbtui.knowledge.format.facts import normalise, statements
from kbtui.memory.consolidation.page import Page, Pending
from kbtui.memory.records.archive import Archive
from kbtui.memory.records.committing import MemoryLock, committed
from kbtui.memory.records.dates import absolute_dates, local
from kbtui.memory.records.transcript import Conversation
from kbtui.sessions.store import SessionMessage
from kbtui.settings import SessionNotesSettings
from kbtui.text import shorten, slugify
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace

RAW = "[RAW]"
MAX_SLUG = 40
_EXCERPT_WIDTH = 200
_SPOKEN = frozenset({"user", "assistant"})
_NO_SUMMARY = f"{RAW} No summary could be made; what was said stands below."


def stage_day_notes(
    change: Change, page: Page, notes: Iterable[str], buried: Callable[[str], bool]
) -> None:
    """Add what a slice says to the notes of its day, in a running change.

    Notes that the file has already, in whatever words, and those that are `buried` are left out.
    """
    path = f"memory/{page.day.isoformat()}.md"
    before = files.text_of(change.read(path))
    known = {normalise(each) for each in statements(before)}
    fresh: dict[str, str] = {}
    for note in notes:
        line = absolute_dates(shorten(note, 500), page.day)
        key = normalise(line)
        if key and key not in known and not buried(line):
            fresh.setdefault(key, line)
    _stage(change, path, page, list(fresh.values())[:50])


def stage_raw_notes(change: Change, page: Page) -> None:
    """Add an excerpt of a slice that no model could condense to the notes of its day."""
    said = [message for message in page.messages if page.shows(message)][-20:]
    excerpts = [
        f"{message.role}: {shorten(page.conversation.spoken(message), _EXCERPT_WIDTH)}"
        for message in said
    ]
    _stage(change, f"memory/{page.day.isoformat()}.md", page, excerpts, f" {RAW}")


def _stage(change: Change, path: str, page: Page, lines: Sequence[str], mark: str = "") -> None:
    if not lines:
        return
    ended = local(page.messages[-1].time)
    heading = f"## Flush at {ended:%H:%M} (session: {page.session}){mark}"
    block = "\n".join([heading, "", *(f"- {line}" for line in lines)]) + "\n"
    before = change.read(path)
    old = before or b""
    gap = b"" if not old else b"\n" if old.endswith(b"\n") else b"\n\n"
    change.put(path, old + gap + block.encode("utf-8", "replace"), over=before)


@dataclass(frozen=True, slots=True)
class SessionNotes:
    """The file that was written; `is_raw`: the archive has no summary of it."""

    path: str
    commit: str
    is_raw: bool = False


@dataclass(eq=False)
class SessionMemoryWriter:
    """Writes a file for each ended session of enough messages, one at a time."""

    workspace: Workspace
    history: History
    pending: Pending
    archive: Archive
    lock: MemoryLock
    settings: SessionNotesSettings

    async def write_session_memory(self, session: str, title: str = "") -> SessionNotes | None:
        """Write the file about what was said since the session ended last; None: it is too short.

        Without a title its first words stand for what it was about.

        Raises:
            WorkspaceBusyError: another process is at it.
            StorageError: the file system refused.
        """
        if not self.settings.enabled:
            return None
        async with self.lock.hold():
            return await asyncio.to_thread(self._written, session, title)

    def _written(self, session: str, title: str) -> SessionNotes | None:
        conversation = self.pending.conversation(session)
        messages = self._fresh(conversation)
        users = sum(message.role == "user" for message in messages)
        if not messages or users < self.settings.min_user_messages:
            return None
        chosen = messages[-self.settings.max_messages :]
        slug = slugify(title or _first_words(chosen), MAX_SLUG)
        summary = "\n\n".join(self._summaries(session, messages[0].id))
        return self._write(conversation, chosen, slug, summary)

    def _fresh(self, conversation: Conversation) -> list[SessionMessage]:
        spoken = [
            message
            for message in conversation.messages
            if message.role in _SPOKEN
            and conversation.shown(message)
            # What answers took from private entries must not get where other models read.
            and (message.role == "user" or message.id not in conversation.private)
        ]
        if not spoken:
            return []
        last = 0
        since = spoken[0].time - timedelta(seconds=2)
        for commit in self.history.log(actor=Actor.SESSION_MEMORY, since=since):
            if commit.origin.session == conversation.id and commit.origin.messages:
                last = commit.origin.messages[1]
                break
        return [message for message in spoken if message.id > last]

    def _summaries(self, session: str, first: int) -> Iterator[str]:
        for entry in self.archive.entries():
            is_its = entry.session == session and entry.messages is not None
            if is_its and entry.messages[1] >= first and not entry.raw and entry.content:  # type: ignore[index]
                yield _below_title(entry.content)

    def _write(
        self, conversation: Conversation, chosen: list[SessionMessage], slug: str, summary: str
    ) -> SessionNotes:
        text = render(conversation, chosen, local(chosen[-1].time), summary)

        def work(change: Change) -> str:
            path = self._free_path(f"{local(chosen[-1].time):%Y-%m-%d}-{slug}")
            change.write(path, text, expecting=None)
            return path

        origin = Origin(session=conversation.id, messages=(chosen[0].id, chosen[-1].id))
        path, commit = committed(
            self.history,
            self.workspace,
            Actor.SESSION_MEMORY,
            f"What the session {conversation.id} was about.",
            origin,
            work,
        )
        return SessionNotes(path, commit.id if commit else "", is_raw=not summary)

    def _free_path(self, name: str) -> str:
        number = 1
        while True:
            path = f"memory/{name}{f'-{number}' if number > 1 else ''}.md"
            if not files.exists(self.workspace, path) and files.twin(self.workspace, path) is None:
                return path
            number += 1


def render(
    conversation: Conversation, chosen: list[SessionMessage], ended: datetime, summary: str
) -> str:
    """The text of a session's file; without a summary it says so."""
    said = "\n".join(
        f"{message.role}: {shorten(conversation.spoken(message), _EXCERPT_WIDTH)}"
        for message in chosen
    )
    return f"""# Session Memory: {ended:%Y-%m-%d %H:%M}

- **Session**: {conversation.id}
- **Date**: {ended:%Y-%m-%d %H:%M:%S}

## Summary

{summary or _NO_SUMMARY}

## Key Messages

{said}
"""


def _below_title(summary: str) -> str:
    """A summary whose headings stand below the file's own."""
    lines = [
        f"#{line}" if line.startswith("## ") else f"##{line}" if line.startswith("# ") else line
        for line in summary.splitlines()
    ]
    return "\n".join(lines)


def _first_words(messages: list[SessionMessage]) -> str:
    said = next((message.content for message in messages if message.role == "user"), "")
    return shorten(said, MAX_SLUG) or "session"
