"""Dream: reads what is new in the archive, and curates the lasting files.

It compares what is new with what is known, and makes the smallest honest edits by tools. Without a
model it learns nothing: it puts right links, repeated lines, and what machines wrote twice. All of
a run is one change through the door, with the cursor in the same commit; until then nothing is
written, so a run that fails, is cancelled or killed has not happened.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TypeVar

from kbtui.errors import BudgetError, KbtuiError, ModelAnswerError, ModelError, ModelWindowError
from kbtui.history.change import Actor
from kbtui.memory.consolidation.ask import TRANSIENT, TRIES
from kbtui.memory.consolidation.page import Pending
from kbtui.memory.dream.reading import Batch, Page, Reader, Shares
from kbtui.memory.dream.report import DreamProgress, DreamReport, Phase
from kbtui.memory.dream.tools import FINISH, GO_ON, LAST_STEP, SPECS, Outcome, Toolbox, prompt
from kbtui.memory.dream.writing import Writer
from kbtui.memory.edits.editor import Editor
from kbtui.memory.edits.spotlight import make_lean
from kbtui.memory.edits.working_copy import WorkingCopy
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.archive import ArchiveEntry
from kbtui.memory.records.committing import MemoryLock
from kbtui.memory.records.cursors import Cursors
from kbtui.memory.records.dates import local
from kbtui.memory.records.transcript import said_by_user
from kbtui.memory.records.usable_answers import why_unusable
from kbtui.memory.services import Services
from kbtui.models.port import ChatModel, Message, Reply, ToolCall, prompt_tokens
from kbtui.offline.curate import curate
from kbtui.settings import OFFLINE
from kbtui.text import counted

T = TypeVar("T")
log = logging.getLogger(__name__)
LONGEST_SECONDS = 1800.0
_CHARACTERS_PER_TOKEN = 3


class Dream:
    """Dreams, one batch of archive entries at a time, and one run at a time over all processes.

    `pending` reads sessions, to know what the user said himself; `model` gives that of the role
    ``dream`` and may raise a `ModelError`.
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
        self._reader = Reader(services, cursors)
        self._writer = Writer(services, cursors, inbox)
        self._editor = editor
        self._pending = pending
        self._lock = lock
        self._model = model
        self._settings = services.settings
        self._clock = clock
        self._longest = LONGEST_SECONDS
        self._failures = 0
        self._put_off = ""

    def has_news(self) -> bool:
        """True if there is something that it hasn't read."""
        return bool(self._reader.waiting())

    def standing(self) -> str:
        """Say why it isn't at work: it was put off, nothing is new, or something waits."""
        if self._put_off:
            return self._put_off
        count = self._reader.waiting()
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
        """Dream about the next archive entries; a `dry_run` only reports what it would write.

        Nothing here raises what a model or another process did; the report says it. Cancelling it
        leaves everything as it was.
        """
        run = _Run(on_progress or (lambda _progress: None))
        try:
            async with self._lock.hold():
                report = await self._run_fitted(run, model, dry_run=dry_run)
        except KbtuiError as error:
            log.info("Dream is put off: %s", error)
            self._failures += not dry_run
            report = run.report(DreamReport("postponed", run.entries, error=error))
            self._put_off = report.text
            return report
        self._failures, self._put_off = 0, ""
        return run.report(report)

    async def _run_fitted(
        self, run: _Run, model: ChatModel | None, *, dry_run: bool
    ) -> DreamReport:
        """Run; where the model turns out to hold less than was thought, once more with less."""
        try:
            return await self._run(run, model, dry_run=dry_run)
        except ModelWindowError as error:
            if error.window is None:
                raise
            log.info("Dream begins anew with less: %s", error.message)
            run.done.clear()
            return await self._run(run, run.model, dry_run=dry_run)

    async def _run(self, run: _Run, model: ChatModel | None, *, dry_run: bool) -> DreamReport:
        if not await asyncio.to_thread(self._reader.waiting):
            return DreamReport("nothing")
        if model is None:
            model = await asyncio.to_thread(self._model)
        run.model = model
        shares = Shares(model, self._settings.context.index_tokens)
        # What failed is tried with less of it.
        most = max(1, self._settings.dream.max_batch_size >> self._failures)
        batch = await asyncio.to_thread(self._reader.batch, most, shares, model)
        run.entries = len(batch.entries)
        copy = await asyncio.to_thread(self._working_copy, batch)
        deadline = asyncio.get_running_loop().time() + self._longest
        for number, page in enumerate(batch.pages, 1):
            run.page = f", part {number} of {len(batch.pages)}" if len(batch.pages) > 1 else ""
            await self._work_in(run, model, page, copy, shares, deadline, self._day(batch))
        moved = await asyncio.to_thread(
            make_lean, copy, self._day(batch), self._settings.context.memory_tokens
        )
        if moved:
            run.done.append(f"moved {counted(moved, 'line')} out of MEMORY.md, which was full")
        run.tell("writing", "Dream writes what it has changed")
        return await _whole(self._finish, run, batch, copy, dry_run)

    async def _work_in(
        self,
        run: _Run,
        model: ChatModel,
        page: Page,
        copy: WorkingCopy,
        shares: Shares,
        deadline: float,
        day: date,
    ) -> None:
        run.tell("reading", f"Dream reads {run.entries} new archive entries{run.page}")
        toolbox = Toolbox(copy, day, shares.answer * _CHARACTERS_PER_TOKEN)
        if model.name == OFFLINE:
            run.steps += 1
            await asyncio.to_thread(self._put_in_order, page, copy, toolbox)
            run.done += toolbox.done
            return
        material = await asyncio.to_thread(self._reader.material, page, copy.files, shares, model)
        most = self._settings.dream.max_iterations

        def tell(step: int) -> None:
            run.steps += 1
            run.tell("editing", f"Dream edits, step {step} of {most}{run.page}", step, most)

        limits = Limits(most, shares.window, deadline)
        why = await Editing(model, copy, toolbox, limits, tell).run(prompt(material))
        run.done += toolbox.done
        run.ended = run.ended or why

    def _put_in_order(self, page: Page, copy: WorkingCopy, toolbox: Toolbox) -> None:
        """Without a model: put right what is evidently out of order."""
        found, texts = self._reader.disorder(page, copy)
        for number, edit in enumerate(curate(found, texts), 1):
            arguments = json.dumps(dict(edit.arguments), ensure_ascii=False)
            toolbox.run(ToolCall(str(number), edit.operation, arguments))

    def _finish(self, run: _Run, batch: Batch, copy: WorkingCopy, dry_run: bool) -> DreamReport:  # noqa: FBT001 - passed on to a thread
        if run.ended:
            copy = copy.again(careful=True)
        if dry_run:
            return self._writer.preview(batch, copy)
        return self._writer.write(batch, copy, run.model_name, run.done)

    def _working_copy(self, batch: Batch) -> WorkingCopy:
        said = [each for entry in batch.entries for each in self._said(entry)]
        return self._editor.open(Actor.DREAM, said, shows_private=False)

    def _said(self, entry: ArchiveEntry) -> Iterable[tuple[datetime, str]]:
        """Find what the user said in the messages that an entry condenses."""
        if entry.session is None or entry.messages is None:
            return []
        first, last = entry.messages
        try:
            messages = self._pending.conversation(entry.session).messages
        except KbtuiError:  # the session is gone, or was another machine's
            return []
        return said_by_user(each for each in messages if first <= each.id <= last)

    def _day(self, batch: Batch) -> date:
        return batch.day or local(self._clock()).date()


async def _whole(work: Callable[..., T], *arguments: object) -> T:
    """Run something in a thread to its end: cancelled, it is waited for all the same."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


@dataclass(slots=True)
class _Run:
    """A run, as far as it has come."""

    told: Callable[[DreamProgress], None]
    model: ChatModel | None = None
    entries: int = 0
    steps: int = 0
    page: str = ""
    ended: str = ""
    done: list[str] = field(default_factory=list)

    @property
    def model_name(self) -> str:
        return self.model.name if self.model else ""

    def tell(self, phase: Phase, text: str, step: int = 0, steps: int = 0) -> None:
        self.told(DreamProgress(phase, text, step, steps))

    def report(self, report: DreamReport) -> DreamReport:
        cost = getattr(self.model, "cost_usd", 0.0)
        return replace(
            report, model=self.model_name, steps=self.steps, cost_usd=cost, ended=self.ended
        )


MOST_CALLS = 32
_MOST_USELESS = 3
_DONE = frozenset({"stop", "tool_calls"})
_TOO_MANY = Outcome(f"Error: Not run: at most {MOST_CALLS} calls at once. Ask for the rest next.")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an editing: calls, tokens of the conversation, a time of the event loop."""

    steps: int
    tokens: int
    deadline: float


@dataclass(eq=False)
class Editing:
    """One conversation with a model that edits with tools; it tells of each step before."""

    model: ChatModel
    copy: WorkingCopy
    toolbox: Toolbox
    limits: Limits
    tell: Callable[[int], None]
    _messages: list[Message] = field(default_factory=list, init=False)
    _bad: int = field(default=0, init=False)
    _useless: int = field(default=0, init=False)

    async def run(self, prompt: Sequence[Message]) -> str:
        """Let the model edit until it is done, or something runs out: that is what it gives.

        What it has edited by then stays in the working copy; nothing is written.

        Raises:
            ModelError: It gave no usable answer, or could not be reached.
            BudgetError: Something ran out before it edited anything.
        """
        self._messages = list(prompt)
        try:
            await self._edit()
        except (BudgetError, ModelAnswerError) as error:
            if not self.copy.operations:
                raise
            return error.message
        return ""

    async def _edit(self) -> None:
        for step in range(1, self.limits.steps + 1):
            self.tell(step)
            if step > 1 and step == self.limits.steps:
                self._messages.append(Message("user", LAST_STEP))
            if await self._take(await self._ask()):
                return
        limit = f"Dream has used up its {self.limits.steps} steps."
        raise BudgetError(limit, "dream.max_iterations sets them.")

    async def _ask(self) -> Reply:
        """Get a usable reply; a bad one is asked for again, with what was wrong about it."""
        while True:
            if prompt_tokens(self._messages) > self.limits.tokens:
                raise BudgetError("The conversation has become too long for the model.")
            try:
                async with asyncio.timeout_at(self.limits.deadline):
                    reply = await self.model.complete(self._messages, SPECS)
                _check(reply)
            except TimeoutError:
                raise BudgetError("The time that Dream may take is over.") from None
            except (*TRANSIENT, ModelWindowError):
                raise
            except ModelError as error:
                self._bad += 1
                log.info("%s gave no usable answer: %s", self.model.name, error.message)
                if self._bad >= TRIES:
                    raise ModelAnswerError(error.message, error.hint) from error
                self._messages.append(Message("user", f"{error.message} {GO_ON}"))
                continue
            self._bad = 0
            return reply

    async def _take(self, reply: Reply) -> bool:
        """Run the calls of a reply; whether the model is done."""
        self._messages.append(Message("assistant", reply.text, reply.tool_calls))
        useful = finished = False
        for position, call in enumerate(reply.tool_calls):
            outcome = _TOO_MANY
            if position < MOST_CALLS:
                outcome = await asyncio.to_thread(self.toolbox.run, call)
            useful = useful or outcome.useful
            finished = finished or (call.name == FINISH and outcome.useful)
            message = Message("tool", outcome.output, tool_call_id=call.id, name=call.name)
            self._messages.append(message)
        self._useless = 0 if useful else self._useless + 1
        if self._useless >= _MOST_USELESS:
            raise ModelAnswerError(
                f"{self.model.name} keeps asking for what leads nowhere.",
                "Another model may do better: models.dream.model.",
            )
        return finished


def _check(reply: Reply) -> None:
    """Refuse what is no complete request for tools."""
    if reply.finish == "length":
        raise ModelAnswerError("The answer was cut off at its longest length.")
    if reply.finish not in _DONE:
        raise ModelAnswerError(f"The answer ended with {reply.finish!r}.")
    if not reply.tool_calls:
        why = why_unusable(reply.text)
        raise ModelAnswerError(
            f"The answer {why}." if why else "There was no tool call in the answer."
        )
