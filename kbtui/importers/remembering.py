"""Memory of what was imported: condensed by the role ``import``, else only what is stated outright.

With a model the conversations go the way of all others, the oldest first, under the import's
batch, until its budget is spent; what is left waits for the next time. Without one a statement
about oneself becomes a fact, and the conversation stays to be condensed by a model.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.errors import BudgetError, KbtuiError
from kbtui.importers.batches import Batch, batches
from kbtui.memory.background.budget import Budget, MeteredModel
from kbtui.memory.consolidation.answer import Answer
from kbtui.memory.consolidation.consolidator import Consolidator, Trigger
from kbtui.memory.consolidation.page import Page
from kbtui.memory.consolidation.page_writer import MemoryWriter
from kbtui.models.litellm_model import price_of
from kbtui.offline.condensing import Message, facts_of
from kbtui.sessions.imported import Imported
from kbtui.settings import OFFLINE, FlushSettings

if TYPE_CHECKING:
    from kbtui.memory.background.service import Memory
    from kbtui.memory.services import Services
    from kbtui.models.port import ChatModel, Reply, ToolSpec
    from kbtui.models.port import Message as Prompt

_PAGE_TOKENS = 4000
_LONGEST = 1500  # characters: what is longer was pasted
_SHARE_OF_ANSWER = 0.1
_OFFLINE_SECONDS = 0.02
_CALL_SECONDS = 12.0
_STATED = re.compile(
    r"(?i)\b(?:please )?(?:remember|note|keep in mind)\b(?: that|:)"
    r"|\b(?:i|we)(?:'m|\u2019m| am|'re|\u2019re| are) (?:a|an|the|from|based|married|allergic"
    r"|called|vegan|vegetarian|\d|in \w+|living|working as)\b"
    r"|\b(?:i|we) (?:was born|live|work (?:at|as|for|in)|prefer|always|never|own|moved to|decided"
    r"|chose|agreed|study|studied|speak|use|drive|hate|love|have (?:a|an|one|two|three|four|\d+))\b"
    r"|\b(?:my|our) (?:[\w'\u2019-]+ ){1,4}(?:is|are|was|lives|works|has|prefers|likes|hates)\b"
    r"|\b(?:merk dir|ich bin|ich wohne|ich arbeite|ich heiße|wir haben (?:uns )?entschieden)\b"
    r"|\b(?:meine?|unsere?) [\w-]+ (?:ist|heißt|wohnt|arbeitet|hat)\b"
    r"|\b(?:recuerda que|vivo en|trabajo (?:en|como|para)|me llamo|prefiero|decidimos)\b"
    r"|\b(?:mi|nuestr[oa]) [\w-]+ (?:es|se llama|vive|trabaja|tiene)\b"
    r"|\bmy (?:\w+ )?(?:wife|husband|partner|girlfriend|boyfriend|sister|brother|mother|father|mom"
    r"|mum|dad|son|daughter|kids?|child|friend|boss|colleague|manager|doctor|landlord|neighbou?r|dog|cat)\b"
    r"|\b(?:meine?|unsere?) (?:Frau|Mann|Partner(?:in)?|Schwester|Bruder|Mutter|Vater|Sohn|Tochter"
    r"|Freund(?:in)?|Chef(?:in)?|Hund|Katze)\b"
    r"|\bmi (?:mujer|marido|pareja|hermana|hermano|madre|padre|hij[oa]|amig[oa]|jef[ea]|perro)\b"
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What memory of so many tokens costs: `usd` is None where no price is known."""

    model: str
    is_paid: bool
    usd: float | None
    seconds: float


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


def estimate(services: Services, tokens: int, conversations: int) -> Estimate:
    """Say what condensing would cost, and about how long it takes.

    Raises:
        ModelAccessError: The model of the role needs a key that nobody has given.
    """
    model = services.models.chat("import")
    if model.name == OFFLINE:
        return Estimate(OFFLINE, is_paid=False, usd=0.0, seconds=conversations * _OFFLINE_SECONDS)
    calls = max(conversations, tokens // _PAGE_TOKENS)
    if model.is_local:
        return Estimate(model.name, is_paid=False, usd=0.0, seconds=calls * _CALL_SECONDS)
    usd = price_of(model.name, tokens, int(tokens * _SHARE_OF_ANSWER))
    return Estimate(model.name, is_paid=True, usd=usd, seconds=calls * _CALL_SECONDS)


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
    for number, (batch, session) in enumerate(todo):
        watch(number, len(todo), session)
        work = _Work(services, memory, batch.id, metered)
        try:
            if model.name == OFFLINE:
                await asyncio.to_thread(work.state, session)
            else:
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
        rooms, memory = self._services, self._memory
        consolidator = Consolidator(
            memory.pending,
            rooms.library,
            self._writer,
            memory.lock,
            lambda: self._model,
            rooms.settings,
        )
        outcome = await consolidator.run(session, everything=True, trigger=Trigger.IDLE)
        if outcome.error is not None:
            raise outcome.error

    def state(self, session: str) -> None:
        """Keep what the user states in it outright, and nothing else."""
        conversation = self._memory.pending.conversation(session)
        said = [
            Message(each.id, each.role, conversation.spoken(each))
            for each in conversation.messages
            if conversation.shown(each) and each.role in ("user", "assistant")
        ]
        told = [
            each if each.role == "assistant" or _is_statement(each.text) else replace(each, text="")
            for each in said
        ]
        if not any(each.role == "user" and each.text for each in told):
            return
        facts = [fact for fact in facts_of(told) if _STATED.search(fact.text)]
        units = [
            unit for part in self._memory.pending.parts(conversation, closed=True) for unit in part
        ]
        if facts and units:
            self._writer.save_facts(
                Page(conversation, tuple(units)), Answer("", tuple(facts)), OFFLINE
            )


def _is_statement(text: str) -> bool:
    return len(text) <= _LONGEST and "```" not in text and _STATED.search(text) is not None
