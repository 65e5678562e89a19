"""Notes of the day and of ended sessions, both written without a model call of their own.

The day's notes, ``memory/YYYY-MM-DD.md``, are written with each condensed slice, from the same
answer. A session's note, ``memory/YYYY-MM-DD-slug.md``, is assembled when it ends from its archive
entries and its last messages, shortened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from kbtui.history.change import Actor, Change, Commit, Origin
from kbtui.history.history import History
from kbtui.knowledge.format.document import read_body
from kbtui.knowledge.format.facts import normalise, statements
from kbtui.knowledge.format.lines import split_lines
from kbtui.memory.consolidation.page import Page, Pending
from kbtui.memory.records.archive import Archive
from kbtui.memory.records.committing import MemoryLock, committed
from kbtui.memory.records.dates import local
from kbtui.memory.records.ranges import Range
from kbtui.memory.records.transcript import SessionTranscript
from kbtui.sessions.store import SessionMessage
from kbtui.settings import SessionNotesSettings
from kbtui.text import shorten, slugify
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace

RAW = "[RAW]"
DayNote = tuple[date, str]
"""A line for the note of a day."""
MAX_SLUG = 40
_EXCERPT_WIDTH = 200
_MAX_NOTES = 50  # of one slice and day
_MAX_NOTE = 4_000  # characters
_SPOKEN = frozenset({"user", "assistant"})
_NO_SUMMARY = f"{RAW} No summary could be made; what was said stands below."


def stage_day_notes(
    change: Change, page: Page, notes: Iterable[DayNote], buried: Callable[[str], bool]
) -> None:
    """Add the notes of a slice, each with the day on which it was said, to those of these days.

    Notes that a day's file already has, in any wording, and `buried` ones are left out.
    """
    for day, said in _by_day(notes):
        before = files.text_of(change.read(_path_of(day)))
        known = {normalise(each) for each in statements(before)}
        fresh: dict[str, str] = {}
        for note in said:
            line = shorten(note, _MAX_NOTE)
            key = normalise(line)
            if key and key not in known and not buried(line):
                fresh.setdefault(key, line)
        _stage(change, day, page, list(fresh.values())[:_MAX_NOTES])


def _by_day(lines: Iterable[tuple[date, str]]) -> list[tuple[date, list[str]]]:
    found: dict[date, list[str]] = {}
    for day, line in lines:
        found.setdefault(day, []).append(line)
    return sorted(found.items())


def _path_of(day: date) -> str:
    return f"memory/{day.isoformat()}.md"


def _stage(change: Change, day: date, page: Page, lines: Sequence[str]) -> None:
    if not lines:
        return
    path = _path_of(day)
    times = [local(each.time) for each in page.messages]
    ended = max((each for each in times if each.date() == day), default=times[-1])
    heading = f"## Flush at {ended:%H:%M} (session: {page.session})"
    block = "\n".join([heading, "", *(f"- {line}" for line in lines)]) + "\n"
    before = change.read(path)
    old = before or b""
    gap = b"" if not old else b"\n" if old.endswith(b"\n") else b"\n\n"
    change.put(path, old + gap + block.encode("utf-8", "replace"), over=before)


@dataclass(frozen=True, slots=True)
class SessionNotes:
    """A written session note; `is_raw` if the archive has no summary of the session."""

    path: str
    commit: str
    is_raw: bool = False


@dataclass(eq=False)
class SessionMemoryWriter:
    """Writes a note for each ended session with enough messages, one at a time."""

    workspace: Workspace
    history: History
    pending: Pending
    archive: Archive
    lock: MemoryLock
    settings: SessionNotesSettings

    async def write_session_memory(self, session: str, title: str = "") -> SessionNotes | None:
        """Write a note about what was said since the session last ended, or None if too short.

        Without a title, its first words are used.

        Raises:
            WorkspaceBusyError: Another process is doing it.
            StorageError: The file system refused.
        """
        if not self.settings.enabled:
            return None
        async with self.lock.hold():
            return await asyncio.to_thread(self._write_new, session, title)

    async def renew(self, session: str) -> None:
        """Add the summary missing from a session's last note, if it can be made now.

        Raises like `write_session_memory`.
        """
        async with self.lock.hold():
            await asyncio.to_thread(self._renew, self.pending.conversation(session))

    def _write_new(self, session: str, title: str) -> SessionNotes | None:
        conversation = self.pending.conversation(session)
        last = self._renew(conversation)
        messages = [each for each in _public_messages(conversation) if each.id > last]
        users = sum(message.role == "user" for message in messages)
        if not messages or users < self.settings.min_user_messages:
            return None
        chosen = messages[-self.settings.max_messages :]
        said = next((each.content for each in chosen if each.role == "user"), "")
        slug = slugify(title or shorten(said, MAX_SLUG) or "session", MAX_SLUG)
        return self._write(conversation, chosen, last + 1, slug)

    def _renew(self, conversation: SessionTranscript) -> int:
        """Rewrite the last note if needed; return the id of the last message that it covers."""
        spoken = _public_messages(conversation)
        written = self._commits_of(conversation.id, spoken)
        newest = next(written, None)
        if newest is None:
            return 0
        commit, (first, last) = newest
        path = commit.paths[0].path
        data = files.read_if_there(self.workspace, path)
        is_raw = data is not None and _NO_SUMMARY.encode() in data
        if is_raw and data == self.history.read(path, commit.id):
            before = next((each for _, each in written if each != (first, last)), (0, 0))
            chosen = [each for each in spoken if first <= each.id <= last]
            self._write(conversation, chosen, before[1] + 1, over=path)
        return last

    def _commits_of(
        self, session: str, spoken: Sequence[SessionMessage]
    ) -> Iterator[tuple[Commit, Range]]:
        """Yield the commits of a session's notes, newest first, each with its message range."""
        if spoken:
            since = spoken[0].time - timedelta(seconds=2)
            for commit in self.history.log(actor=Actor.SESSION_MEMORY, since=since):
                if commit.origin.session == session and commit.origin.messages:
                    yield commit, commit.origin.messages

    def _write(
        self,
        conversation: SessionTranscript,
        chosen: list[SessionMessage],
        since: int,
        slug: str = "",
        *,
        over: str = "",
    ) -> SessionNotes:
        """Write a new note, or replace the unedited note `over`; summarise from id `since` on."""
        span = (chosen[0].id, chosen[-1].id)
        summary = "\n\n".join(
            _below_title(entry.content)
            for entry in self.archive.entries()
            if entry.is_of(conversation.id, (since, span[1])) and entry.content and not entry.raw
        )
        text = render(conversation, chosen, local(chosen[-1].time), summary)

        def work(change: Change) -> str:
            if over:
                change.put(over, text.encode("utf-8", "replace"), over=change.read(over))
                return over
            path = self._free_path(f"{local(chosen[-1].time):%Y-%m-%d}-{slug}")
            change.write(path, text, expecting=None)
            return path

        origin = Origin(session=conversation.id, messages=span)
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
    conversation: SessionTranscript, chosen: list[SessionMessage], ended: datetime, summary: str
) -> str:
    """Return the text of a session's note; without a summary it says so."""
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


def _public_messages(conversation: SessionTranscript) -> list[SessionMessage]:
    """Return what was said, without withheld answers, as any model may read the note."""
    return [
        message
        for message in conversation.messages
        if message.role in _SPOKEN
        and conversation.shown(message)
        and (message.role == "user" or message.id not in conversation.withheld)
    ]


def _below_title(summary: str) -> str:
    """Demote the headings of a summary below those of the note."""
    lines = split_lines(summary)
    for each in read_body(summary).parts:
        if lines[each.line].startswith(("# ", "## ")):
            lines[each.line] = "#" * (3 - each.level) + lines[each.line]
    return "".join(lines).removesuffix("\n")
