"""A model edits with tools, within its budget."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import BudgetError, ModelAnswerError, ModelError
from kbtui.memory.consolidation.ask import TRANSIENT, TRIES
from kbtui.memory.dream.tools import FINISH, GO_ON, LAST_STEP, SPECS, Outcome
from kbtui.memory.records.usable_answers import why_unusable
from kbtui.models.port import Message, prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kbtui.memory.dream.tools import Toolbox
    from kbtui.memory.edits.working_copy import WorkingCopy
    from kbtui.models.port import ChatModel, Reply

log = logging.getLogger(__name__)
MOST_CALLS = 32
_MOST_USELESS = 3
_DONE = frozenset({"stop", "tool_calls"})
_TOO_MANY = Outcome(f"Error: Not run: at most {MOST_CALLS} calls at once. Ask for the rest next.")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an editing.

    Attributes:
        steps: Calls of the model.
        tokens: The length of the conversation.
        deadline: The time of the event loop at which it must be over.
    """

    steps: int
    tokens: int
    deadline: float


class Editing:
    """One conversation with a model that edits.

    Args:
        model: Which one.
        copy: What it edits.
        toolbox: With what.
        limits: How long.
        tell: Told before each step.
    """

    def __init__(
        self,
        model: ChatModel,
        copy: WorkingCopy,
        toolbox: Toolbox,
        limits: Limits,
        tell: Callable[[int], None],
    ) -> None:
        self._model = model
        self._copy = copy
        self._toolbox = toolbox
        self._limits = limits
        self._tell = tell
        self._messages: list[Message] = []
        self._bad = self._useless = 0

    async def run(self, prompt: Sequence[Message]) -> str:
        """Let the model edit until it is done or something runs out.

        What it has edited by then stays in the working copy; nothing is written.

        Returns:
            Why it was stopped; empty if the model said that it was done.

        Raises:
            ModelError: It gave no usable answer, or could not be reached.
            BudgetError: Something ran out before it edited anything.
        """
        self._messages = list(prompt)
        try:
            await self._edit()
        except (BudgetError, ModelAnswerError) as error:
            if not self._copy.operations:
                raise
            return error.message
        return ""

    async def _edit(self) -> None:
        for step in range(1, self._limits.steps + 1):
            self._tell(step)
            if step > 1 and step == self._limits.steps:
                self._messages.append(Message("user", LAST_STEP))
            if await self._take(await self._ask()):
                return
        limit = f"Dream has used up its {self._limits.steps} steps."
        raise BudgetError(limit, "dream.max_iterations sets them.")

    async def _ask(self) -> Reply:
        """Get a usable reply; a bad one is asked for again, with what was wrong about it."""
        while True:
            if prompt_tokens(self._messages) > self._limits.tokens:
                raise BudgetError("The conversation has become too long for the model.")
            try:
                async with asyncio.timeout_at(self._limits.deadline):
                    reply = await self._model.complete(self._messages, SPECS)
                _check(reply)
            except TimeoutError:
                raise BudgetError("The time that Dream may take is over.") from None
            except TRANSIENT:
                raise
            except ModelError as error:
                self._bad += 1
                log.info("%s gave no usable answer: %s", self._model.name, error.message)
                if self._bad >= TRIES:
                    raise ModelAnswerError(error.message, error.hint) from error
                self._messages.append(Message("user", f"{error.message} {GO_ON}"))
                continue
            self._bad = 0
            return reply

    async def _take(self, reply: Reply) -> bool:
        """Run the calls of a reply; whether the model is done.

        Raises:
            ModelAnswerError: nothing it asked for has led anywhere, several times in a row.
        """
        self._messages.append(Message("assistant", reply.text, reply.tool_calls))
        useful = finished = False
        for position, call in enumerate(reply.tool_calls):
            outcome = _TOO_MANY
            if position < MOST_CALLS:
                outcome = await asyncio.to_thread(self._toolbox.run, call)
            useful = useful or outcome.useful
            finished = finished or (call.name == FINISH and outcome.useful)
            message = Message("tool", outcome.output, tool_call_id=call.id, name=call.name)
            self._messages.append(message)
        self._useless = 0 if useful else self._useless + 1
        if self._useless >= _MOST_USELESS:
            raise ModelAnswerError(
                f"{self._model.name} keeps asking for what leads nowhere.",
                "Another model may do better: models.dream.model.",
            )
        return finished


def _check(reply: Reply) -> None:
    """Refuse what is no complete request for tools.

    Raises:
        ModelAnswerError: it says what is wrong.
    """
    if reply.finish == "length":
        raise ModelAnswerError("The answer was cut off at its longest length.")
    if reply.finish not in _DONE:
        raise ModelAnswerError(f"The answer ended with {reply.finish!r}.")
    if not reply.tool_calls:
        why = why_unusable(reply.text)
        raise ModelAnswerError(
            f"The answer {why}." if why else "There was no tool call in the answer."
        )
