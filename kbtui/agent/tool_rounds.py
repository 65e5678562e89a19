"""Running the tool calls of an answer, with detection of models that go round in circles.

They run in threads that a cancelled turn waits for, as a thread can't be interrupted.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from kbtui.agent.events import ToolFinished, ToolStarted
from kbtui.agent.tools.base import ToolContext
from kbtui.agent.tools.toolbox import Toolbox, ToolOutcome, in_thread
from kbtui.errors import ModelAnswerError
from kbtui.models.port import ToolCall
from kbtui.models.schema import normal_form
from kbtui.text import slugify

MAX_CALLS = 16
_MAX_USELESS_ROUNDS = 3
_MAX_TRIES = 2  # of the same write that fails
_WORD = re.compile(r"[\w./-]+")
_MOVING_TOOLS = frozenset({"rename_entry"})
_SUBJECT_ARGUMENTS = ("entry", "title", "new_name")
_REPEATED_CALL = ToolOutcome(
    ok=False,
    output="Error: You have made this very call already, and nothing has changed since. "
    "Use what it told you, or do something else.",
    summary="the same call again",
)
_TOO_MANY = ToolOutcome(
    ok=False,
    output=f"Error: Not run: at most {MAX_CALLS} calls at once. Ask for the rest next.",
    summary="too many calls at once",
)
_STOPPED = ToolOutcome(
    ok=False, output="Error: Not run: the user stopped the turn.", summary="stopped"
)


@dataclass(eq=False)
class ToolRounds:
    """The tool calls of one turn, round by round.

    `keep` stores an outcome in a thread before it is reported; `emit` reports events.
    """

    toolbox: Toolbox
    context: ToolContext
    keep: Callable[[ToolCall, ToolOutcome], None]
    emit: Callable[[ToolStarted | ToolFinished], None]
    _made: set[tuple[str, str]] = field(default_factory=set, init=False)
    _failed: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    _useless_rounds: int = field(default=0, init=False)
    _failed_writes: list[tuple[set[str], str]] = field(default_factory=list, init=False)

    @property
    def failed_writes(self) -> tuple[str, ...]:
        """The errors of failed writes that weren't fixed by a later one, a sentence each."""
        return tuple(dict.fromkeys(summary for _, summary in self._failed_writes))

    async def run(self, calls: Sequence[ToolCall]) -> None:
        """Run calls one after the other.

        Every call gets an outcome, even if the turn is cancelled: a session with a call without a
        result couldn't be continued.

        Raises:
            ModelAnswerError: the model asked for nothing new several times in a row.
        """
        useful = False
        for position, call in enumerate(calls):
            self.emit(ToolStarted(call.id, call.name, call.shown))
            work = partial(self._run_and_keep, call, position)
            try:
                outcome = await in_thread(work, partial(self._emit_finished, call))
            except asyncio.CancelledError:
                await in_thread(partial(self._keep_stopped, calls[position + 1 :]))
                raise
            useful = useful or outcome not in (_REPEATED_CALL, _TOO_MANY)
        self._useless_rounds = 0 if useful else self._useless_rounds + 1
        if self._useless_rounds >= _MAX_USELESS_ROUNDS:
            raise ModelAnswerError(
                "The model keeps asking for the same thing.",
                "Say it differently, or choose another model with `/model`.",
            )

    def _run_and_keep(self, call: ToolCall, position: int) -> ToolOutcome:
        outcome = self._outcome(call, position)
        self.keep(call, outcome)
        return outcome

    def _outcome(self, call: ToolCall, position: int) -> ToolOutcome:
        if position >= MAX_CALLS:
            return _TOO_MANY
        identity = (call.name, normal_form(call.arguments))
        if identity in self._made or self._failed[identity] >= _MAX_TRIES:
            return _REPEATED_CALL
        # What stood in the text may be a quotation after all; a person sees it first.
        waits = call.is_written and call.name in _MOVING_TOOLS
        context = replace(self.context, reviewed=True) if waits else self.context
        outcome = self.toolbox.run(call, context)
        if self.toolbox.writes(call.name):
            self._note_write(call, outcome)
        if outcome.changes or outcome.proposal:
            self._failed.clear()
            self._made.clear()  # what was read before may be different now
        elif not outcome.ok and self.toolbox.writes(call.name):
            # A retry may succeed: the file was changed, or somebody else is writing.
            self._failed[identity] += 1
            self._made.clear()
            return outcome
        self._made.add(identity)
        return outcome

    def _note_write(self, call: ToolCall, outcome: ToolOutcome) -> None:
        about = _about(call, outcome)
        if outcome.ok:
            self._failed_writes = [each for each in self._failed_writes if not each[0] & about]
        else:
            self._failed_writes.append((about, outcome.summary))

    def _emit_finished(self, call: ToolCall, outcome: ToolOutcome) -> None:
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

    def _keep_stopped(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self.keep(call, _STOPPED)


def _about(call: ToolCall, outcome: ToolOutcome) -> set[str]:
    """Return the slugs of the entries that a write's arguments and outcome name."""
    arguments = call.shown
    names = [str(arguments.get(name) or "") for name in _SUBJECT_ARGUMENTS]
    named = {slugify(name.rpartition("/")[2]) for name in names if name}
    words = {word for word in _WORD.findall(outcome.output) if "/" in word}
    paths = {word.rstrip(".").removesuffix(".md").rpartition("/")[2] for word in words}
    return {slug for slug in named | paths if slug}
