"""Memory of what was imported: condensed by the role ``import``.

The conversations go the way of all others, the oldest first, under the import's batch, until its
budget is spent; what is left waits for the next time. Without a model all of it waits: the
conversations are searched and quoted as they are.
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
    """The memory of an import: of how many sessions, at what cost; `left` wait for another time.

    `notice` says why it stopped early; empty where it didn't.
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
    """Make memory of imported conversations that have none yet; a run that was stopped goes on.

    It spends at most `usd`, in place of what the day allows. `watch` is told how many conversations
    of how many are done, and which is next; it may raise `StoppedError`.
    """
    model = services.models.chat("import")
    done = Remembered(model.name)
    metered = _Capped(model, _budget(memory.budget, usd), usd)
    todo = [(batch, session) for batch in wanted for session in _waiting(services, batch)]
    todo.sort(key=lambda pair: pair[1].partition("_")[2])  # by when they were begun
    done.left = len(todo)
    if model.name == OFFLINE:
        return done
    for number, (batch, session) in enumerate(todo):
        watch(number, len(todo), session)
        work = _Work(services, memory, batch.id, metered)
        try:
            await work.condense(session)
        except KbtuiError as error:
            done.notice = str(error)
            break
        done.sessions, done.left = number + 1, len(todo) - number - 1
        batch.remembered(session)
    done.usd = metered.cost_usd
    for batch in wanted:
        commits = services.history.log("knowledge", batch=batch.id)
        done.entries += [each.path for commit in commits for each in commit.paths]
    done.entries = sorted({path for path in done.entries if _is_entry(path)})
    return done


def _is_entry(path: str) -> bool:
    return path.startswith("knowledge/") and not path.endswith("/INDEX.md")


def batches_of(services: Services, paths: Sequence[Path]) -> list[Batch]:
    """The imports of some exports, the oldest first; memory of them may not be made yet."""
    wanted = {str(path.resolve()) for path in paths}
    return [each for each in batches(services.workspace) if each.read().get("path") in wanted]


def _waiting(services: Services, batch: Batch) -> Iterator[str]:
    done = batch.done()
    for session in Imported(services.workspace).of_batch(batch.id):
        if session not in done:
            yield session


def _budget(budget: Budget, usd: float | None) -> Budget:
    """What a day allows, or what the user allows now."""
    if usd is None:
        return budget
    return Budget(max(budget.daily_usd, budget.spent_today() + usd))


class _Capped(MeteredModel):
    """A model that may spend so much and no more; the user has agreed to it."""

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


class _Work:
    """Makes memory of one conversation."""

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
        """Condense it with the model."""
        services, memory = self._services, self._memory
        consolidator = Consolidator(
            memory.pending,
            services.seen_by,
            self._writer,
            memory.lock,
            lambda: self._model,
            services.settings,
        )
        outcome = await consolidator.run(session, everything=True, trigger=Trigger.IDLE)
        if outcome.error is not None:
            raise outcome.error
