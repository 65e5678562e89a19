"""Condenses the oldest part of a conversation: into the archive, MEMORY.md and entries.

One call a page gives all that it leaves behind. It runs beside
the conversation and never blocks it; one at a time, over all processes: the memory lock is held
while a model works. Session logs are never trimmed; what is archived follows from the archive
itself, so a crash at any point leaves a page either pending or archived.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Literal

from kbtui.errors import (
    KbtuiError,
    ModelError,
    ModelSlowError,
    ModelWindowError,
    WorkspaceBusyError,
)
from kbtui.memory.consolidation.answer import Answer
from kbtui.memory.consolidation.ask import TRANSIENT, Condenser
from kbtui.memory.consolidation.page import Page, Pending, pages_for
from kbtui.memory.consolidation.page_writer import MemoryWriter, SavedPage
from kbtui.memory.records.committing import MemoryLock
from kbtui.memory.records.ranges import Range
from kbtui.memory.records.transcript import SessionTranscript
from kbtui.models.port import ChatModel
from kbtui.offline.condensing import SliceMessage, history_entry, slug_of
from kbtui.sessions.window import session_window
from kbtui.settings import OFFLINE, Settings
from kbtui.views.view import Audience, View

log = logging.getLogger(__name__)
_MOST_RAW_IN_A_ROW = 3
LONGEST_TURN = timedelta(minutes=15)
# Tokens; what is shorter fails for other reasons than its length.
_WORTH_HALVING = 1_000
Kind = Literal["archived", "raw", "proposed", "nothing", "postponed", "late"]


class Trigger(StrEnum):
    """Why a conversation is condensed."""

    FULL = "full"
    IDLE = "idle"
    CLOSED = "closed"
    ASKED = "asked"


@dataclass(frozen=True, slots=True)
class CondensingOutcome:
    """The outcome of one run.

    Attributes:
        kind: ``archived``; ``raw``: at least one page was kept whole; ``proposed``: archived, and
            something waits in the inbox; ``nothing`` was to be done; ``postponed``: the rest stays
            pending, for the reason in `error`; ``late``: there wasn't time for all of it.
        cursor: That of the last archive entry made; `pages` is how many.
        messages: The range that is archived now and wasn't.
        commit: The last commit made.
        proposals: The ids of what waits in the inbox.
        notice: What a person should be told; empty: nothing.
        title: What the session was about, as far as a model said so.
    """

    kind: Kind
    session: str
    cursor: int | None = None
    messages: Range | None = None
    commit: str | None = None
    pages: int = 0
    proposals: tuple[str, ...] = ()
    notice: str = ""
    title: str = ""
    error: KbtuiError | None = None


@dataclass(eq=False)
class Consolidator:
    """Condenses sessions.

    Args:
        pending: What isn't archived yet.
        seen_by: What is known already, for the prompt, as a model may see it.
        writer: What writes the outcome.
        lock: One at a time, over all processes.
        model: Gives the model of the role ``consolidate``; may raise a `ModelError`.
        settings: Limits and triggers.
        clock: The time, aware.
        room: Gives the tokens that a session has in the prompts of whoever answers; None: as many
            as the settings allow.
    """

    pending: Pending
    seen_by: Callable[[Audience], View]
    writer: MemoryWriter
    lock: MemoryLock
    model: Callable[[], ChatModel]
    settings: Settings
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    room: Callable[[], int] | None = None

    def trigger(self, session: str) -> Trigger | None:
        """Say why a session should be condensed now; None: it needn't. Not on an event loop."""
        conversation = self.pending.conversation(session)
        parts = self.pending.parts(conversation)
        if not parts:
            return None
        idle = timedelta(minutes=self.settings.memory.idle_minutes)
        last = conversation.messages[-1]
        if last.role != "assistant" or last.tool_calls:
            idle = idle and max(idle, LONGEST_TURN)  # it may still be answered
        if idle and self.clock() - last.time >= idle:
            return Trigger.IDLE
        return Trigger.FULL if parts[0][0].last <= self._left(conversation) else None

    def _left(self, conversation: SessionTranscript) -> int:
        """The id of the last message that prompts have no room for any more; 0: they hold all."""
        context = self.settings.context
        window = session_window(
            conversation.messages,
            most_tokens=context.session_tokens if self.room is None else self.room(),
            most_messages=context.memory_window,
        )
        return window.left[-1].id if window.left else 0

    async def run(
        self,
        session: str,
        *,
        everything: bool = False,
        by_model: bool = False,
        trigger: Trigger = Trigger.ASKED,
        on_page: Callable[[int, int], None] = lambda _number, _count: None,
    ) -> CondensingOutcome:
        """Condense a session: what left its prompts, or `everything`; tells of each page before.

        With `by_model` what was archived without a model is pending as well, if there is one.

        A call without a result is waited for unless the session is over, as `trigger` says. Nothing
        here raises what a model or another process did; the outcome says it.
        """
        run = _CondensingRun(session)
        try:
            async with self.lock.hold():
                model = await asyncio.to_thread(self.model)
                by_model = by_model and model.name != OFFLINE
                todo = await asyncio.to_thread(
                    self._pages, session, model, trigger, everything=everything, by_model=by_model
                )
                log.info("condensing %s (%s): %d pages", session, trigger, len(todo))
                for number, page in enumerate(todo, 1):
                    on_page(number, len(todo))
                    await self._condense(run, page, model)
        except KbtuiError as error:
            log.info("condensing %s is postponed: %s", session, error)
            run.error = error
        return run.outcome()

    # Pages -----------------------------------------------------------------------------------

    def _pages(
        self,
        session: str,
        model: ChatModel,
        trigger: Trigger,
        *,
        everything: bool,
        by_model: bool,
    ) -> list[Page]:
        """The messages to be condensed, in pages that the model can hold."""
        conversation = self.pending.conversation(session)
        closed = everything and self._is_over(conversation, trigger)
        limit = self._condenser(model).page_limit(self.writer.memory_text())
        last = conversation.messages[-1].id if everything and conversation.messages else 0
        last = last or self._left(conversation)
        return [
            page
            for part in self.pending.parts(conversation, closed=closed, by_model=by_model)
            for page in pages_for(
                conversation,
                [unit for unit in part if unit.last <= last],
                limit,
                model.count_tokens,
            )
        ]

    def _is_over(self, conversation: SessionTranscript, trigger: Trigger) -> bool:
        """True if no result can come any more for a call that has none."""
        if trigger in (Trigger.CLOSED, Trigger.IDLE) or not conversation.messages:
            return True
        return self.clock() - conversation.messages[-1].time >= LONGEST_TURN

    def _condenser(self, model: ChatModel) -> Condenser:
        view = self.seen_by(Audience.of(model))
        return Condenser(model, view, self.settings.context.index_tokens)

    # One page --------------------------------------------------------------------------------

    async def _condense(self, run: _CondensingRun, page: Page, model: ChatModel) -> None:
        """Condense a page; where that fails for good, parts of it; else keep it whole."""
        if not page.shown or page.withheld or model.name == OFFLINE:
            told = await asyncio.to_thread(_without_model, page)
            saved = await asyncio.to_thread(self.writer.save, page, told, OFFLINE)
            run.add(page, saved, title=told.title)
            return
        live = await asyncio.to_thread(self.writer.live_edits, page)
        memory = await asyncio.to_thread(self.writer.memory_text)
        window = model.context_window
        try:
            answer = await self._condenser(model).extract(page, memory, live.files)
        except TRANSIENT as error:  # that says nothing of the page, unless it took too long
            slow = isinstance(error, ModelSlowError)
            parts = _smaller(run, page, model, error, window) if slow else ()
            if not parts:
                raise
        except ModelError as error:
            parts = _smaller(run, page, model, error, window)
            if not parts:
                await self._keep_whole(run, page, model, error)
                return
        else:
            saved = await asyncio.to_thread(self.writer.save, page, answer, model.name)
            run.add(page, saved, title=answer.title)
            return
        before, run.halving = run.halving, True
        for part in parts:
            await self._condense(run, part, model)
        run.halving = before

    async def _keep_whole(
        self, run: _CondensingRun, page: Page, model: ChatModel, error: ModelError
    ) -> None:
        if run.raw_in_a_row >= _MOST_RAW_IN_A_ROW:
            raise error  # this model can't do it; what is left waits for another
        saved = await asyncio.to_thread(self.writer.save_raw, page, model.name, error.message)
        run.add(page, saved, why_raw=f"{model.name} could not condense them. {error.message}")


def _smaller(
    run: _CondensingRun, page: Page, model: ChatModel, error: ModelError, window: int
) -> tuple[Page, ...]:
    """What is tried in a page's place: its halves; `window` is what the model was taken to hold.

    Of a page that was too long as often as it takes; one message goes in parts of its own, once
    it is known how long they may be.
    """
    if isinstance(error, ModelWindowError):
        return page.halves() or ((page,) if model.context_window < window else ())
    worth_it = not run.halving and model.count_tokens(page.text) >= _WORTH_HALVING
    return (page.halves() or ()) if worth_it else ()


@dataclass(slots=True)
class _CondensingRun:
    """The progress of a run; `halving`: it works on the halves of a page that failed."""

    session: str
    pages: list[tuple[Page, SavedPage]] = field(default_factory=list)
    title: str = ""
    why_raw: str = ""
    raw_in_a_row: int = 0
    halving: bool = False
    error: KbtuiError | None = None

    def add(
        self, page: Page, saved: SavedPage | None, *, why_raw: str = "", title: str = ""
    ) -> None:
        """Note what became of a page; None: another process had archived it."""
        self.title = title or self.title
        if saved is None:
            return
        self.pages.append((page, saved))
        self.why_raw = self.why_raw or why_raw
        self.raw_in_a_row = self.raw_in_a_row + 1 if why_raw else 0

    def outcome(self) -> CondensingOutcome:
        """Sum it up."""
        if not self.pages:
            kind: Kind = "postponed" if self.error else "nothing"
            return CondensingOutcome(kind, self.session, notice=self._notice(), error=self.error)
        last = self.pages[-1][1]
        return CondensingOutcome(
            self._kind(),
            self.session,
            cursor=last.cursor,
            messages=self._range(),
            commit=last.commit,
            pages=len(self.pages),
            proposals=tuple(each for _, saved in self.pages for each in saved.proposals),
            notice=self._notice(),
            title=self.title,
            error=self.error,
        )

    def _kind(self) -> Kind:
        if self.error is not None:
            return "postponed"
        if self.why_raw:
            return "raw"
        return "proposed" if any(saved.proposals for _, saved in self.pages) else "archived"

    def _range(self) -> Range:
        return self.pages[0][0].range[0], self.pages[-1][0].range[1]

    def _notice(self) -> str:
        said: list[str] = []
        if self.why_raw:
            first, last = self._range()
            said.append(f"Messages {first} to {last} are archived as they are: {self.why_raw}")
        said += [notice for _, saved in self.pages for notice in saved.notices]
        waiting = sum(len(saved.proposals) for _, saved in self.pages)
        if waiting:
            said.append(f"{waiting} change{'s' * (waiting > 1)} of your notes wait in the inbox.")
        # That another program is at it is no news to anybody.
        if self.error is not None and not isinstance(self.error, WorkspaceBusyError):
            said.append(f"Messages stay to be condensed later: {self.error}")
        return " ".join(said)


def _without_model(page: Page) -> Answer:
    """The remains of a page where no model condenses it: a choice of what was said.

    What was stated stands in the journal since it was said.
    """
    if not page.shown:
        return Answer("An answer that drew on private entries isn't condensed.")
    of = page.conversation
    said = [
        SliceMessage(each.role, of.spoken(each))
        for each in filter(page.shows, page.messages)
        if each.role in ("user", "assistant")
    ]
    return Answer(history_entry(said), title=slug_of(said))
