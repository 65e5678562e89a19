"""Runs the tool calls of one answer, and notices when a model goes round in circles.

They run in threads that a cancelled turn waits for, as a thread can't be stopped half-way.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from kbtui.agent.events import ToolFinished, ToolStarted
from kbtui.agent.tools.base import ToolContext
from kbtui.agent.tools.toolbox import Toolbox, ToolOutcome, in_thread, shown_arguments
from kbtui.errors import ModelAnswerError
from kbtui.models.port import ToolCall
from kbtui.models.schema import normal_form
from kbtui.text import slugify

MOST_CALLS = 16
_MOST_USELESS_ROUNDS = 3
_MOST_TRIES = 2  # of the same write that fails
_WORD = re.compile(r"[\w./-]+")
_NAMED = ("entry", "title", "new_name")
_AGAIN = ToolOutcome(
    ok=False,
    output="Error: You have made this very call already, and nothing has changed since. "
    "Use what it told you, or do something else.",
    summary="the same call again",
)
_TOO_MANY = ToolOutcome(
    ok=False,
    output=f"Error: Not run: at most {MOST_CALLS} calls at once. Ask for the rest next.",
    summary="too many calls at once",
)
_STOPPED = ToolOutcome(
    ok=False, output="Error: Not run: the user stopped the turn.", summary="stopped"
)


@dataclass(eq=False)
class ToolRounds:
    """The tool calls of one turn, round by round.

    `keep` stores an outcome, in a thread, before anybody is told; `emit` tells who watches the
    turn.
    """

    toolbox: Toolbox
    context: ToolContext
    keep: Callable[[ToolCall, ToolOutcome], None]
    emit: Callable[[ToolStarted | ToolFinished], None]
    _made: set[tuple[str, str]] = field(default_factory=set, init=False)
    _failed: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    _useless_rounds: int = field(default=0, init=False)
    _unmade: list[tuple[set[str], str]] = field(default_factory=list, init=False)

    @property
    def failed_writes(self) -> tuple[str, ...]:
        """Why writes failed that weren't made good later, in a sentence each."""
        return tuple(dict.fromkeys(summary for _, summary in self._unmade))

    async def run(self, calls: Sequence[ToolCall]) -> None:
        """Run calls one after the other.

        Every call gets an outcome, even when the turn is cancelled on the way: a session that
        holds a call without its result couldn't be continued.

        Raises:
            ModelAnswerError: the model has asked for nothing new several times in a row.
        """
        useful = False
        for position, call in enumerate(calls):
            self.emit(ToolStarted(call.id, call.name, shown_arguments(call)))
            work = partial(self._run_and_keep, call, position)
            try:
                outcome = await in_thread(work, partial(self._tell, call))
            except asyncio.CancelledError:
                await in_thread(partial(self._leave, calls[position + 1 :]))
                raise
            useful = useful or outcome not in (_AGAIN, _TOO_MANY)
        self._useless_rounds = 0 if useful else self._useless_rounds + 1
        if self._useless_rounds >= _MOST_USELESS_ROUNDS:
            raise ModelAnswerError(
                "The model keeps asking for the same thing.",
                "Say it differently, or choose another model with `/model`.",
            )

    def _run_and_keep(self, call: ToolCall, position: int) -> ToolOutcome:
        outcome = self._outcome(call, position)
        self.keep(call, outcome)
        return outcome

    def _outcome(self, call: ToolCall, position: int) -> ToolOutcome:
        if position >= MOST_CALLS:
            return _TOO_MANY
        identity = (call.name, normal_form(call.arguments))
        if identity in self._made or self._failed[identity] >= _MOST_TRIES:
            return _AGAIN
        outcome = self.toolbox.run(call, self.context)
        if self.toolbox.writes(call.name):
            self._note_write(call, outcome)
        if outcome.changes or outcome.proposal:
            self._failed.clear()
            self._made.clear()  # what was read before may be different now
        elif not outcome.ok and self.toolbox.writes(call.name):
            # It may be different already: the file was changed, or somebody else is writing.
            self._failed[identity] += 1
            self._made.clear()
            return outcome
        self._made.add(identity)
        return outcome

    def _note_write(self, call: ToolCall, outcome: ToolOutcome) -> None:
        about = _about(call, outcome)
        if outcome.ok:
            self._unmade = [each for each in self._unmade if not each[0] & about]
        else:
            self._unmade.append((about, outcome.summary))

    def _tell(self, call: ToolCall, outcome: ToolOutcome) -> None:
        self.emit(
            ToolFinished(
                call.id,
                call.name,
                outcome.ok,
                outcome.summary,
                outcome.output,
                outcome.changes,
                outcome.proposal,
            )
        )

    def _leave(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self.keep(call, _STOPPED)


def _about(call: ToolCall, outcome: ToolOutcome) -> set[str]:
    """The subjects of a write: slugs of what the call names, and of what its outcome does."""
    arguments = shown_arguments(call)
    names = [str(arguments.get(name) or "") for name in _NAMED]
    named = {slugify(name.rpartition("/")[2]) for name in names if name}
    told = {word for word in _WORD.findall(outcome.output) if "/" in word}
    paths = {word.rstrip(".").removesuffix(".md").rpartition("/")[2] for word in told}
    return {slug for slug in named | paths if slug}
