"""Condensing of imported conversations into memory, by the model of the role ``import``.

They are consolidated like all others, oldest first and under the import's batch, until the budget
is spent; the rest waits for the next run. Without a model all of them wait, and are searched and
quoted as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.errors import BudgetError, KbtuiError
from kbtui.importers.batches import Batch, batches
from kbtui.memory.background.service import (
    Budget,
    Consolidator,
    Due,
    MemoryWriter,
    MeteredModel,
    Trigger,
)
from kbtui.sessions.imported import Imported
from kbtui.settings import OFFLINE, FlushSettings

if TYPE_CHECKING:
    from kbtui.memory.background.service import Memory
    from kbtui.memory.services import Services
    from kbtui.models.port import ChatModel, Message as Prompt, Reply, ToolSpec


@dataclass(slots=True)
class Remembered:
    """The outcome of condensing imports: how many sessions, the entries written, and the cost.

    `left` is the number of sessions that still wait; `notice` says why it stopped early, if it did.
    """

    model: str
    sessions: int = 0
    left: int = 0
    entries: list[str] = field(default_factory=list)
    usd: float = 0.0
    notice: str = ""


async def remember(
    services: Services,
    memory: Memory,
    wanted: Sequence[Batch],
    *,
    usd: float | None = None,
    watch: Callable[[int, int, str], None] = lambda _done, _of, _what: None,
) -> Remembered:
    """Condense imported conversations that weren't yet, resuming a run that was stopped.

    It spends at most `usd`, instead of the daily budget. `watch` is called with the number of
    conversations done, the total and the next session's id; it may raise `StoppedError`.
    """
    model = services.models.chat("import")
    done = Remembered(model.name)
    metered = _LimitedModel(model, _budget(memory.budget, usd), usd)
    todo = [(batch, session) for batch in wanted for session in _not_remembered(services, batch)]
    todo.sort(
        key=lambda pair: pair[1].partition("_")[2]
    )  # oldest first: ids contain the time of creation
    done.left = len(todo)
    if model.name == OFFLINE:
        return done
    for number, (batch, session) in enumerate(todo):
        watch(number, len(todo), session)
        work = _SessionCondenser(services, memory, batch.id, metered)
        try:
            await work.condense(session)
        except KbtuiError as error:
            done.notice = str(error)
            break
        done.sessions, done.left = number + 1, len(todo) - number - 1
        batch.mark_remembered(session)
    done.usd = metered.cost_usd
    for batch in wanted:
        commits = services.history.log("knowledge", batch=batch.id)
        done.entries += [each.path for commit in commits for each in commit.paths]
    done.entries = sorted({path for path in done.entries if _is_entry(path)})
    return done


def _is_entry(path: str) -> bool:
    return path.startswith("knowledge/") and not path.endswith("/INDEX.md")


def batches_of(services: Services, paths: Sequence[Path]) -> list[Batch]:
    """Return the imports of these exports, oldest first, condensed or not."""
    wanted = {str(path.resolve()) for path in paths}
    return [each for each in batches(services.workspace) if each.read().get("path") in wanted]


def _not_remembered(services: Services, batch: Batch) -> Iterator[str]:
    done = batch.remembered()
    for session in Imported(services.workspace).of_batch(batch.id):
        if session not in done:
            yield session


def _budget(budget: Budget, usd: float | None) -> Budget:
    """Return the daily budget, raised to what the user allows now."""
    if usd is None:
        return budget
    return Budget(max(budget.daily_usd, budget.spent_today() + usd))


class _LimitedModel(MeteredModel):
    """A model with a spending limit that the user has agreed to."""

    def __init__(self, model: ChatModel, budget: Budget, usd: float | None) -> None:
        super().__init__(model, budget, ask_first=False)
        self._usd = usd

    async def complete(
        self,
        messages: Sequence[Prompt],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        if self._usd is not None and self.cost_usd >= self._usd and not self.is_local:
            raise BudgetError(
                f"The import has spent ${self.cost_usd:.2f} of ${self._usd:.2f}.",
                "The same import goes on where it stopped, with another --budget.",
            )
        return await super().complete(messages, tools, force_tool=force_tool)


class _SessionCondenser:
    def __init__(self, services: Services, memory: Memory, batch: str, model: MeteredModel) -> None:
        self._memory = memory
        self._model = model
        self._services = services
        self._writer = MemoryWriter(
            services.workspace,
            services.history,
            memory.archive,
            memory.inbox,
            memory.editor,
            FlushSettings(enabled=False),
            batch,
        )

    async def condense(self, session: str) -> None:
        """Condense a session, raising the error of the consolidator if there is one."""
        services, memory = self._services, self._memory
        consolidator = Consolidator(
            Due(memory.pending, services.settings),
            services.seen_by,
            self._writer,
            memory.lock,
            lambda: self._model,
        )
        outcome = await consolidator.run(session, everything=True, trigger=Trigger.IDLE)
        if outcome.error is not None:
            raise outcome.error
