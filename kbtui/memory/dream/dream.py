"""Dream: reads what is new in the archive, and curates the lasting files.

The model compares what is new with what is known, and returns a list of the smallest honest edits
in one answer; edits that couldn't be made are reported back to it once. A run is one change through
the door, with the cursor in the same commit. Until then nothing is written, so a run that fails, is
cancelled or killed has no effect, and its archive entries are read again.

Without a model nothing is learned, and nothing counts as read: links, repeated lines and what
machines wrote twice are repaired, and what people wrote twice is named. The same is done if nothing
is new.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from typing import Any, TypeVar

from kbtui.errors import (
    BudgetError,
    KbtuiError,
    ModelAnswerError,
    ModelError,
    ModelSlowError,
    ModelWindowError,
)
from kbtui.history.change import Actor
from kbtui.memory.consolidation.ask import TRANSIENT, ask_tool
from kbtui.memory.consolidation.completing import is_small, user_sentences
from kbtui.memory.consolidation.page import Pending
from kbtui.memory.dream.reading import (
    ArchiveBatch,
    ArchivePage,
    DreamReader,
    Problem,
    TokenBudget,
)
from kbtui.memory.dream.report import DreamProgress, DreamReport, Phase
from kbtui.memory.dream.tools import CURATE, CURATE_BRIEF, Wording, make_edits, prompt, read_edits
from kbtui.memory.dream.writing import Writer
from kbtui.memory.edits.editor import Editor
from kbtui.memory.edits.grounding import Ground, ground_of
from kbtui.memory.edits.memory_limits import trim_memory
from kbtui.memory.edits.working_copy import Author, WorkingCopy
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.recall.usage import uses_of
from kbtui.memory.records.archive import ArchiveEntry
from kbtui.memory.records.committing import MemoryLock
from kbtui.memory.records.cursors import Cursors
from kbtui.memory.records.dates import local
from kbtui.memory.records.transcript import said_by_user
from kbtui.memory.services import Services
from kbtui.models.port import ChatModel, Message
from kbtui.sessions.store import SessionMessage
from kbtui.settings import OFFLINE
from kbtui.text import counted

T = TypeVar("T")
log = logging.getLogger(__name__)
LONGEST_SECONDS = 1800.0
_TIDY_SECONDS = 20.0
_ROUNDS = 2  # all edits, then the failed ones once more


class Dream:
    """Runs Dream on one batch of archive entries at a time, one run at a time over all processes.

    `pending` reads sessions, to know what the user said; `model` returns the model of the role
    ``dream``, and may raise a `ModelError`.
    """

    def __init__(
        self,
        services: Services,
        inbox: Inbox,
        editor: Editor,
        pending: Pending,
        lock: MemoryLock,
        model: Callable[[], ChatModel],
        clock: Callable[[], datetime],
    ) -> None:
        cursors = Cursors(services.workspace, services.history)
        self._reader = DreamReader(services, cursors)
        self._writer = Writer(services, cursors, inbox)
        self._view = services.for_memory
        self._editor = editor
        self._pending = pending
        self._lock = lock
        self._model = model
        self._settings = services.settings
        self._sessions = services.sessions
        self._clock = clock
        self._max_seconds = LONGEST_SECONDS
        self._failures = 0
        self._postponed = ""

    def has_news(self) -> bool:
        """Return whether there are unread archive entries."""
        return bool(self._reader.waiting())

    def waiting(self) -> list[ArchiveEntry]:
        """Return the unread archive entries, oldest first."""
        return self._reader.waiting()

    def standing(self) -> str:
        """Return why Dream isn't running: it was postponed, nothing is new, or entries wait."""
        if self._postponed:
            return self._postponed
        count = len(self._reader.waiting())
        if not count:
            return "Nothing is new in the archive: it has read all of it."
        waits = counted(count, "archive entry waits", "archive entries wait")
        return f"{waits} to be read."

    async def run(
        self,
        *,
        dry_run: bool = False,
        on_progress: Callable[[DreamProgress], None] | None = None,
        model: ChatModel | None = None,
    ) -> DreamReport:
        """Process the next archive entries; a `dry_run` only reports what it would write.

        Errors of the model or of other processes are in the report, not raised. Cancelling the run
        leaves everything as it was.
        """
        run = _DreamRun(on_progress or (lambda _progress: None))
        try:
            async with self._lock.hold():
                report = await self._run_fitted(run, model, dry_run=dry_run)
        except KbtuiError as error:
            log.info("Dream is put off: %s", error)
            self._failures += not dry_run
            report = run.report(DreamReport("postponed", run.entries, error=error))
            self._postponed = report.text
            return report
        self._failures, self._postponed = 0, ""
        return run.report(report)

    async def _run_fitted(
        self, run: _DreamRun, model: ChatModel | None, *, dry_run: bool
    ) -> DreamReport:
        """Run, and retry once with less if the model's window is smaller than assumed.

        Likewise if the model is too slow for so many entries.
        """
        try:
            return await self._run(run, model, dry_run=dry_run)
        except ModelWindowError as error:
            if error.window is None:
                raise
            fewer, why = self._limit, error.message
        except ModelSlowError as error:
            fewer, why = run.entries // 2, error.message
            if not fewer:
                raise
        log.info("Dream starts over with less: %s", why)
        run.done.clear()
        return await self._run(run, run.model, dry_run=dry_run, limit=fewer)

    @property
    def _limit(self) -> int:
        """The maximum number of entries in a run, halved after each failure."""
        return max(1, self._settings.dream.max_batch_size >> self._failures)

    async def _run(
        self, run: _DreamRun, model: ChatModel | None, *, dry_run: bool, limit: int = 0
    ) -> DreamReport:
        is_news = await asyncio.to_thread(self.has_news)
        if is_news and model is None:
            model = await asyncio.to_thread(self._model)
        run.model = model
        if model is None or model.name == OFFLINE or not is_news:
            return await self._tidy(run, dry_run=dry_run)
        budget = TokenBudget(model, self._settings.context.index_tokens)
        batch = await asyncio.to_thread(self._reader.batch, limit or self._limit, budget, model)
        run.entries = len(batch.entries)
        said = await asyncio.to_thread(self._condensed_messages, batch)
        copy = self._working_copy(batch, said)
        spoken = user_sentences(each for one in said for each in one)
        deadline = asyncio.get_running_loop().time() + self._max_seconds
        for number, page in enumerate(batch.pages, 1):
            run.page = f", part {number} of {len(batch.pages)}" if len(batch.pages) > 1 else ""
            words = Wording(copy, self._day(batch), spoken, is_small(model))
            await self._process(run, model, page, copy, budget, deadline, words)
        await asyncio.to_thread(self._trim_memory, run, copy, self._day(batch))
        run.report_progress("writing", "Dream writes what it has changed")
        return await _to_completion(self._finish, run, batch, copy, dry_run)

    async def _tidy(self, run: _DreamRun, *, dry_run: bool) -> DreamReport:
        """Fix evident problems without a model, around what is unread in the archive."""
        run.report_progress("reading", "Dream looks for what is out of order")
        today = local(self._clock()).date()
        pages = await asyncio.to_thread(self._reader.unread, self._limit, today)
        copy = self._editor.open(Author(Actor.DREAM, cites_files=True, view=self._view))
        unread = ArchiveBatch((), (), sum(len(each.entries) for each in pages))
        newest = ArchiveBatch(pages[0].entries if pages else (), (), 0)
        words = Wording(copy, self._day(newest), user_sentences(()), is_small=False)
        end = asyncio.get_running_loop().time() + _TIDY_SECONDS
        for number, page in enumerate(pages or [ArchivePage((), ())]):
            is_late = bool(number)  # the newest page has its time
            while not (is_late and asyncio.get_running_loop().time() > end):
                if not await asyncio.to_thread(self._repair, run, page, words):
                    break  # only the first problems of each kind are named at once
                is_late = True
        await asyncio.to_thread(self._trim_memory, run, copy, self._day(newest))
        return await _to_completion(self._finish, run, unread, copy, dry_run)

    def _trim_memory(self, run: _DreamRun, copy: WorkingCopy, day: date) -> None:
        most_tokens = self._settings.context.memory_tokens
        today = local(self._clock()).date()
        uses = partial(uses_of, self._sessions, before=today)
        if moved := trim_memory(copy, day, most_tokens, uses, is_asking=True):
            run.done.append(f"moved {counted(moved, 'line')} out of MEMORY.md, which was full")

    async def _process(
        self,
        run: _DreamRun,
        model: ChatModel,
        page: ArchivePage,
        copy: WorkingCopy,
        budget: TokenBudget,
        deadline: float,
        words: Wording,
    ) -> None:
        run.report_progress("reading", f"Dream reads {run.entries} new archive entries{run.page}")
        material = await asyncio.to_thread(self._reader.material, page, copy.files, budget, model)
        await self._edit(run, model, material, words, deadline)

    async def _edit(
        self, run: _DreamRun, model: ChatModel, material: str, words: Wording, deadline: float
    ) -> None:
        """Have a model make the edits that a page calls for.

        Raises:
            ModelError: It gave no edits, or none that could be made, or couldn't be reached.
            BudgetError: The time is up.
        """
        refused: list[tuple[Any, str]] = []
        made = 0
        for number in range(1, _ROUNDS + 1):
            run.steps += 1
            run.report_progress("editing", f"Dream edits{run.page}", number, _ROUNDS)
            try:
                edits = await _ask_for_edits(model, prompt(material, refused), deadline)
            except (*TRANSIENT, ModelWindowError):
                raise
            except (BudgetError, ModelError) as error:
                if not made:
                    raise
                run.ended = run.ended or error.message
                return
            done, refused = await asyncio.to_thread(make_edits, edits, words)
            run.done += done
            made += len(edits) - len(refused)
            if not refused:
                return
        if not made:
            raise ModelAnswerError(
                f"No edit of {model.name}'s could be made: {refused[0][1]}",
                "Another model may do better: models.dream.model.",
            )

    def _repair(self, run: _DreamRun, page: ArchivePage, words: Wording) -> bool:
        """Fix evident problems without a model, and name what is left to a person.

        Returns:
            Whether anything was fixed.
        """
        found, texts = self._reader.find_problems(page, words.copy)
        found = [each for each in found if each not in run.tried]
        run.tried.update(found)  # what waits for a person stands there still
        edits = {each: each.edit(texts.get(each.path, "")) for each in found}
        done = make_edits([each for each in edits.values() if each is not None], words)[0]
        run.done += done
        left = [each.named for each, edit in edits.items() if edit is None and each.named]
        run.left = list(dict.fromkeys([*run.left, *left]))
        return bool(done)

    def _finish(
        self,
        run: _DreamRun,
        batch: ArchiveBatch,
        copy: WorkingCopy,
        dry_run: bool,  # noqa: FBT001 - passed on to a thread
    ) -> DreamReport:
        if run.ended:
            copy = copy.replay(careful=True)
        if dry_run:
            return self._writer.preview(batch, copy)
        return self._writer.write(batch, copy, run.model_name, run.done)

    def _condensed_messages(self, batch: ArchiveBatch) -> list[list[SessionMessage]]:
        """Return the messages that each entry of a batch condenses."""
        return [self._messages(entry) for entry in batch.entries]

    def _working_copy(
        self, batch: ArchiveBatch, said: Sequence[list[SessionMessage]]
    ) -> WorkingCopy:
        """Open a working copy; what a model writes into it must have been said."""
        ground = Ground.of([(self._day(batch), "")])
        for entry, messages in zip(batch.entries, said, strict=True):
            ground |= ground_of(messages) if messages else _entry_ground(entry)
        author = Author(
            Actor.DREAM,
            [each for messages in said for each in said_by_user(messages)],
            ground=ground,
            cites_files=True,
            view=self._view,
        )
        return self._editor.open(author)

    def _messages(self, entry: ArchiveEntry) -> list[SessionMessage]:
        """Return the messages that an entry condenses; none if their session isn't here."""
        if entry.session is None or entry.messages is None:
            return []
        first, last = entry.messages
        try:
            chat = self._pending.conversation(entry.session)
        except KbtuiError:
            return []
        found = (each for each in chat.messages if first <= each.id <= last and chat.shown(each))
        return [replace(each, content=chat.spoken(each)) for each in found]

    def _day(self, batch: ArchiveBatch) -> date:
        return batch.day or local(self._clock()).date()


async def _ask_for_edits(model: ChatModel, prompt: list[Message], deadline: float) -> list[Any]:
    """Return the edits that a model wants; `deadline` is a time of the event loop.

    Raises:
        BudgetError: The time is up.
        ModelError: It gave none, or couldn't be reached.
    """
    try:
        async with asyncio.timeout_at(deadline):
            tool = CURATE_BRIEF if is_small(model) else CURATE
            return await ask_tool(model, prompt, tool, read_edits, "dream")
    except TimeoutError:
        raise BudgetError("The time that Dream may take is over.") from None


def _entry_ground(entry: ArchiveEntry) -> Ground:
    """Return an entry's own text as ground, if the messages that it condenses are gone."""
    return Ground.of([(entry.day, entry.content)])


async def _to_completion(work: Callable[..., T], *arguments: object) -> T:
    """Run `work` in a thread to its end; if cancelled, wait for it all the same."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


@dataclass(slots=True)
class _DreamRun:
    """The progress of a run."""

    on_progress: Callable[[DreamProgress], None]
    model: ChatModel | None = None
    entries: int = 0
    steps: int = 0
    page: str = ""
    ended: str = ""
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    tried: set[Problem] = field(default_factory=set)

    @property
    def model_name(self) -> str:
        return self.model.name if self.model else ""

    def report_progress(self, phase: Phase, text: str, step: int = 0, steps: int = 0) -> None:
        self.on_progress(DreamProgress(phase, text, step, steps))

    def report(self, report: DreamReport) -> DreamReport:
        cost = getattr(self.model, "cost_usd", 0.0)
        return replace(
            report,
            model=self.model_name,
            steps=self.steps,
            cost_usd=cost,
            ended=self.ended,
            left=tuple(self.left),
        )
