"""Condenses the oldest part of a conversation into the archive, MEMORY.md and entries.

One model call per page returns everything that it leaves behind. This runs beside the conversation
and never blocks it, one run at a time over all processes: the memory lock is held during the
model's work. Session logs are never trimmed; what is archived follows from the archive itself, so
after a crash at any point a page is either pending or archived.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
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
from kbtui.memory.consolidation.due import LONGEST_TURN, Due, Trigger as Trigger
from kbtui.memory.consolidation.page import Page, pages_for
from kbtui.memory.consolidation.page_writer import MemoryWriter, SavedPage
from kbtui.memory.records.committing import MemoryLock
from kbtui.memory.records.ranges import Range
from kbtui.memory.records.transcript import SessionTranscript
from kbtui.models.port import ChatModel
from kbtui.offline.condensing import SliceMessage, history_entry, slug_of
from kbtui.settings import OFFLINE
from kbtui.views.view import Audience, View

log = logging.getLogger(__name__)
_MAX_RAW_IN_A_ROW = 3
# In tokens; shorter pages fail for other reasons than their length.
_WORTH_HALVING = 1_000
Kind = Literal["archived", "raw", "proposed", "nothing", "postponed", "late"]


@dataclass(frozen=True, slots=True)
class CondensingOutcome:
    """The outcome of one run.

    Attributes:
        kind: ``archived``; ``raw``: at least one page was kept in full; ``proposed``: archived, and
            something waits in the inbox; ``nothing`` had to be done; ``postponed``: the rest stays
            pending because of `error`; ``late``: there wasn't time for everything.
        cursor: The cursor of the last of `pages` archive entries.
        messages: The newly archived range.
        commit: The last commit.
        proposals: The ids of the proposals in the inbox.
        notice: A message to the user, or "".
        title: What the session was about, if a model said so.
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
        due: Tells what is due, and reads it.
        seen_by: Returns existing knowledge, for the prompt, as the model may see it.
        writer: Writes the results.
        lock: Allows one run at a time, over all processes.
        model: Returns the model of the role ``consolidate``; may raise a `ModelError`.
    """

    due: Due
    seen_by: Callable[[Audience], View]
    writer: MemoryWriter
    lock: MemoryLock
    model: Callable[[], ChatModel]

    async def run(
        self,
        session: str,
        *,
        everything: bool = False,
        by_model: bool = False,
        trigger: Trigger = Trigger.ASKED,
        on_page: Callable[[int, int], None] = lambda _number, _count: None,
    ) -> CondensingOutcome:
        """Condense what no longer fits into a session's prompts, or `everything`.

        With `by_model` and a model, what no model has condensed is condensed again. `on_page` is
        called before each page. A pending tool call is waited for unless the session is over
        according to `trigger`. Errors of the model or of other processes are in the outcome, not
        raised.
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
        """Return the messages to condense, in pages that fit the model."""
        conversation = self.due.pending.conversation(session)
        closed = everything and self._is_over(conversation, trigger)
        limit = self._condenser(model).page_limit(self.writer.memory_text())
        last = conversation.messages[-1].id if everything and conversation.messages else 0
        last = last or self.due.last_outside_prompt(conversation)
        return [
            page
            for part in self.due.pending.parts(conversation, closed=closed, by_model=by_model)
            for page in pages_for(
                conversation,
                [unit for unit in part if unit.last <= last],
                limit,
                model.count_tokens,
            )
        ]

    def _is_over(self, conversation: SessionTranscript, trigger: Trigger) -> bool:
        """Return whether a tool call without a result can't get one any more."""
        if trigger in (Trigger.CLOSED, Trigger.IDLE) or not conversation.messages:
            return True
        return self.due.clock() - conversation.messages[-1].time >= LONGEST_TURN

    def _condenser(self, model: ChatModel) -> Condenser:
        view = self.seen_by(Audience.of(model))
        return Condenser(model, view, self.due.settings.context.index_tokens)

    # One page --------------------------------------------------------------------------------

    async def _condense(self, run: _CondensingRun, page: Page, model: ChatModel) -> None:
        """Condense a page; if that fails permanently, in parts; else archive it in full."""
        if not page.shown or page.withheld or model.name == OFFLINE:
            answer = await asyncio.to_thread(_without_model, page)
            saved = await asyncio.to_thread(self.writer.save, page, answer, OFFLINE)
            run.add(page, saved, title=answer.title)
            return
        live = await asyncio.to_thread(self.writer.live_edits, page)
        memory = await asyncio.to_thread(self.writer.memory_text)
        names = await asyncio.to_thread(self.writer.user_names)
        window = model.context_window
        try:
            answer = await self._condenser(model).extract(page, memory, live.files, names)
        except TRANSIENT as error:  # unrelated to the page, unless it took too long
            slow = isinstance(error, ModelSlowError)
            parts = _retry_pages(run, page, model, error, window) if slow else ()
            if not parts:
                raise
        except ModelError as error:
            parts = _retry_pages(run, page, model, error, window)
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
        if run.raw_in_a_row >= _MAX_RAW_IN_A_ROW:
            raise error  # this model can't do it; leave the rest for another
        saved = await asyncio.to_thread(
            self.writer.save, page, Answer(""), model.name, why_raw=error.message
        )
        run.add(page, saved, why_raw=f"{model.name} could not condense them. {error.message}")


def _retry_pages(
    run: _CondensingRun, page: Page, model: ChatModel, error: ModelError, window: int
) -> tuple[Page, ...]:
    """Return the pages to try instead of a failed one: its halves.

    A page that was too long is halved as often as needed; a single message is retried, and split,
    once the model's real window (smaller than `window`) is known.
    """
    if isinstance(error, ModelWindowError):
        return page.halves() or ((page,) if model.context_window < window else ())
    worth_it = not run.halving and model.count_tokens(page.text) >= _WORTH_HALVING
    return (page.halves() or ()) if worth_it else ()


@dataclass(slots=True)
class _CondensingRun:
    """The progress of a run; `halving` while it works on the halves of a failed page.

    `why_raw` is why a page was kept in full, `still_raw` why one stays as it was archived.
    """

    session: str
    pages: list[tuple[Page, SavedPage]] = field(default_factory=list)
    title: str = ""
    why_raw: str = ""
    still_raw: str = ""
    raw_in_a_row: int = 0
    halving: bool = False
    error: KbtuiError | None = None

    def add(
        self, page: Page, saved: SavedPage | None, *, why_raw: str = "", title: str = ""
    ) -> None:
        """Record the result of a page; None if it was archived already."""
        self.title = title or self.title
        self.raw_in_a_row = self.raw_in_a_row + 1 if why_raw else 0
        if saved is not None:
            self.pages.append((page, saved))
            self.why_raw = self.why_raw or why_raw
        elif why_raw:
            self.still_raw = self.still_raw or why_raw

    def outcome(self) -> CondensingOutcome:
        """Return the outcome of the run."""
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
        parts: list[str] = []
        if self.why_raw:
            first, last = self._range()
            parts.append(f"Messages {first} to {last} are archived as they are: {self.why_raw}")
        if self.still_raw:
            parts.append(f"Some messages stay archived as they are: {self.still_raw}")
        parts += [notice for _, saved in self.pages for notice in saved.notices]
        waiting = sum(len(saved.proposals) for _, saved in self.pages)
        if waiting:
            parts.append(f"{waiting} change{'s' * (waiting > 1)} of your notes wait in the inbox.")
        # Another process working on it isn't news to anybody.
        if self.error is not None and not isinstance(self.error, WorkspaceBusyError):
            parts.append(f"Messages stay to be condensed later: {self.error}")
        return " ".join(parts)


def _without_model(page: Page) -> Answer:
    """Condense a page without a model: a selection of what was said.

    What was stated has been in the journal since it was said.
    """
    if not page.shown:
        return Answer("An answer that drew on private entries isn't condensed.")
    conversation = page.conversation
    parts = [
        SliceMessage(each.role, conversation.spoken(each))
        for each in filter(page.shows, page.messages)
        if each.role in ("user", "assistant")
    ]
    return Answer(history_entry(parts), title=slug_of(parts))
