"""Notes of the day, taken shortly before a conversation is condensed (seed 001, phase 2).

`maybe_flush` asks for bullet points and appends them to ``memory/YYYY-MM-DD.md``: once between two
condensings, and never what the file says already. When it was done last follows from the log, so
that holds over restarts and processes.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from kbtui.errors import ModelAnswerError, ModelError, NotFoundError
from kbtui.history.change import Actor, Origin
from kbtui.knowledge.statements import normalise, plain_fact, statements
from kbtui.memory.consolidation.ask import ask_text
from kbtui.memory.consolidation.offline import notes_of_page
from kbtui.memory.consolidation.pending import pages_for
from kbtui.memory.consolidation.prompts import SILENT, flush_prompt
from kbtui.memory.records.committing import committed
from kbtui.memory.records.dates import absolute_dates, local
from kbtui.memory.records.usable_answers import is_placeholder, usable_text, why_unusable
from kbtui.sessions.slices import split_text
from kbtui.settings import OFFLINE
from kbtui.text import shorten
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import date, datetime

    from kbtui.history.change import Change
    from kbtui.history.history import History
    from kbtui.memory.consolidation.page import Page
    from kbtui.memory.consolidation.pending import Pending
    from kbtui.memory.records.lock import MemoryLock
    from kbtui.memory.records.tombstones import Tombstones
    from kbtui.models.port import ChatModel
    from kbtui.settings import FlushSettings
    from kbtui.workspace.layout import Workspace

log = logging.getLogger(__name__)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S")
_MOST_BULLETS = 50
_BULLET_WIDTH = 500
_EXCERPTS = 20
_EXCERPT_WIDTH = 200
_INSTRUCTIONS = 600
_SHORTEST_PAGE = 200


@dataclass(frozen=True, slots=True)
class _Flush:
    """What is to be noted: the pages, and where the notes go."""

    session: str
    pages: tuple[Page, ...]

    @property
    def time(self) -> datetime:
        return local(self.pages[-1].messages[-1].time)

    @property
    def path(self) -> str:
        return notes_path(self.time.date())

    @property
    def range(self) -> tuple[int, int]:
        return self.pages[0].range[0], self.pages[-1].range[1]


def notes_path(day: date) -> str:
    """The file with the notes of a day."""
    return f"memory/{day.isoformat()}.md"


class MemoryFlusher:
    """Takes the notes of the day.

    Args:
        workspace: Where they go.
        history: The door, and when it was done last.
        pending: What isn't archived yet.
        tombstones: What must not be noted again.
        lock: One at a time, over all processes.
        model: Gives the model of the role ``consolidate``; may raise a `ModelError`.
        settings: Whether, and how long before condensing.
    """

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        pending: Pending,
        tombstones: Tombstones,
        lock: MemoryLock,
        model: Callable[[], ChatModel],
        settings: FlushSettings,
    ) -> None:
        self._root = workspace.root
        self._history = history
        self._pending = pending
        self._tombstones = tombstones
        self._lock = lock
        self._model = model
        self._settings = settings
        # Sessions in which there was nothing to note, with where their pending part began.
        self._silent: set[tuple[str, int]] = set()

    def is_near(self, estimated_tokens: int, limit_tokens: int) -> bool:
        """Whether a session is near the point at which it is condensed."""
        near = estimated_tokens > limit_tokens - self._settings.threshold_tokens
        return self._settings.enabled and near

    async def maybe_flush(self, session: str, estimated_tokens: int, limit_tokens: int) -> bool:
        """Note what matters, if the session is near the point at which it is condensed.

        Args:
            session: Its id.
            estimated_tokens: How long its pending part is.
            limit_tokens: At which length it is condensed.

        Returns:
            Whether something was written.

        Raises:
            BudgetError: a limit on what background work may cost.
            WorkspaceBusyError: another process is at it.
            StorageError: the file system refused.
        """
        if not self.is_near(estimated_tokens, limit_tokens):
            return False
        async with self._lock.hold():
            model = await asyncio.to_thread(self._model)
            flush = await asyncio.to_thread(self._todo, session, model)
            if flush is None:
                return False
            notes, is_raw = await self._notes(flush, model)
            if not notes:
                self._silent.add((session, flush.pages[0].range[0]))
                return False
            return await asyncio.to_thread(self._write, flush, notes, model.name, is_raw=is_raw)

    def _todo(self, session: str, model: ChatModel) -> _Flush | None:
        """What hasn't been noted since the session was condensed last."""
        conversation = self._pending.conversation(session)
        units = [unit for part in self._pending.parts(conversation) for unit in part]
        if not units:
            return None
        noted = self._noted(session, conversation.messages[0].time)
        if noted is None:
            return None
        fresh = [unit for unit in units if unit.first > noted and not unit.open]
        limit = max(_SHORTEST_PAGE, int(model.context_window * 0.5) - _INSTRUCTIONS)
        found = tuple(pages_for(conversation, fresh, limit, model.count_tokens))
        if not found or (session, found[0].range[0]) in self._silent:
            return None
        return _Flush(session, found)

    def _noted(self, session: str, since: datetime) -> int | None:
        """The last message that was noted, 0 without one; None: since the last condensing."""
        condensed = False
        for commit in self._history.log(since=since - timedelta(seconds=2)):
            origin = commit.origin
            if origin.session != session or origin.messages is None:
                continue
            if commit.actor is Actor.FLUSHER:
                return origin.messages[1] if condensed else None
            condensed = condensed or commit.actor is Actor.CONSOLIDATOR
        return 0

    async def _notes(self, flush: _Flush, model: ChatModel) -> tuple[list[str], bool]:
        """The bullets of all pages; a raw excerpt where the model gives none that can be used."""
        notes: list[str] = []
        existing = await asyncio.to_thread(self._existing, flush.path)
        private = await asyncio.to_thread(self._pending.is_private, flush.path)
        for page in filter(lambda each: each.shown, flush.pages):
            if page.private or model.name == OFFLINE:
                notes += [absolute_dates(line, page.day) for line in notes_of_page(page)]
                continue
            limit = max(_SHORTEST_PAGE, int(model.context_window * 0.5) - _INSTRUCTIONS)
            for text in split_text(page.text, limit, model.count_tokens):
                known = existing if model.is_local or not private else ""
                prompt = flush_prompt(text, flush.time.date(), known)
                try:
                    found = await ask_text(model, prompt, read_bullets)
                except ModelError as error:
                    log.info("notes of %s are raw: %s", flush.session, error.message)
                    return list(_excerpts(flush.pages)), True
                notes += [absolute_dates(line, page.day) for line in found]
        return self._fresh(notes, existing, flush), False

    def _fresh(self, notes: Sequence[str], existing: str, flush: _Flush) -> list[str]:
        """The notes that say something new and haven't been forgotten."""
        known = {normalise(each) for each in statements(existing)}
        said = [each for page in flush.pages for each in page.said]
        fresh: dict[str, str] = {}
        for note in notes:
            key = normalise(note)
            if key and key not in known and not self._tombstones.buried(note, said=said):
                fresh.setdefault(key, note)
        return list(fresh.values())

    def _write(self, flush: _Flush, notes: Sequence[str], model: str, *, is_raw: bool) -> bool:
        mark = " [RAW]" if is_raw else ""
        heading = f"## Flush at {flush.time:%H:%M} (session: {flush.session}){mark}"
        block = "\n".join([heading, "", *(f"- {note}" for note in notes)]) + "\n"

        def work(change: Change) -> None:
            append(change, flush.path, block)

        origin = Origin(session=flush.session, messages=flush.range, model=model)
        reason = f"Noted what messages {flush.range[0]} to {flush.range[1]} said."
        _, commit = committed(self._history, self._root, Actor.FLUSHER, reason, origin, work)
        return commit is not None

    def _existing(self, path: str) -> str:
        try:
            return files.read_text(self._root, path)
        except NotFoundError:
            return ""


def read_bullets(answer: str) -> list[str]:
    """The bullets of an answer; none for ``[silent]``.

    Raises:
        ModelAnswerError: there are none, or they are an echo, a refusal or an error text.
    """
    plain = answer.strip().strip("`\"'. ").casefold()
    if plain in {SILENT, SILENT.strip("[]")}:
        return []
    text = usable_text(answer)
    lines = [plain_fact(line) for line in text.splitlines() if _BULLET.match(line)]
    notes = [shorten(line, _BULLET_WIDTH) for line in lines if not is_placeholder(line)]
    if not notes:
        raise ModelAnswerError("There are no bullet points in the answer.")
    if why := why_unusable("\n".join(notes)):
        raise ModelAnswerError(f"The answer {why}.")
    return notes[:_MOST_BULLETS]


def append(change: Change, path: str, block: str) -> None:
    """Add a block behind everything that a file holds, in a running change."""
    before = change.read(path)
    old = before or b""
    gap = b"" if not old else b"\n" if old.endswith(b"\n") else b"\n\n"
    expected = None if before is None else files.blob_id(before)
    change.write(path, old + gap + block.encode(), expecting=expected)


def _excerpts(pages: Iterable[Page]) -> Iterable[str]:
    """The last things that were said, a line each."""
    said = [(page, message) for page in pages for message in page.messages if page.shows(message)]
    for page, message in said[-_EXCERPTS:]:
        text = page.conversation.spoken(message)
        yield f"{message.role}: {shorten(text, _EXCERPT_WIDTH)}"
