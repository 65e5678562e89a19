"""Keeps what the user stated: in turns without a model, and where a model wrote nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kbtui.agent.events import TurnChange
from kbtui.agent.tools.base import ToolContext, ToolResult
from kbtui.agent.tools.review import is_reviewed, reviewed
from kbtui.agent.tools.toolbox import Outcome
from kbtui.errors import KbtuiError
from kbtui.history.objects.commit import describe
from kbtui.text import counted, shorten
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from kbtui.knowledge.fact import Fact
    from kbtui.memory.edits.editor import Editor
    from kbtui.memory.edits.editor import Outcome as FactOutcome

_REASON = "The user said so."
_SUMMARY_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of the facts of a turn; `outcome` is the step as cards show it."""

    outcome: Outcome
    facts: tuple[FactOutcome, ...] = ()
    refused: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()

    def names(self, *kinds: str) -> list[str]:
        """The files with whose facts this became, as links that show their titles."""
        found = {each.path: each.title for each in self.facts if each.kind in kinds and each.path}
        return [_link(path, title) for path, title in found.items()]


class Capture:
    """Writes the facts of a turn through the one edit engine.

    Args:
        editor: Gives the engine.
        now: The clock.
    """

    def __init__(self, editor: Callable[[], Editor], now: Callable[[], datetime]) -> None:
        self._editor = editor
        self._now = now

    def keep(self, facts: Sequence[Fact], context: ToolContext, said: str) -> Kept:
        """Write facts, or propose them where the user reviews every change.

        Args:
            facts: What to keep.
            context: The turn.
            said: The message that states them.

        Returns:
            What became of them, what went wrong included; nothing is raised for that.
        """
        found: list[FactOutcome] = []
        changes: list[TurnChange] = []
        write = partial(self._write, facts, context, said, found, changes)
        try:
            if is_reviewed(context):
                result, proposal = reviewed(context, write, is_new=False)
            else:
                result, proposal = write(), ""
        except KbtuiError as error:
            summary = shorten(error.message, _SUMMARY_WIDTH)
            failed = Outcome(False, f"Error: {error}", summary, tuple(changes))
            return Kept(failed, refused=(str(error),))
        outcome = Outcome(True, result.output, result.summary, tuple(changes), proposal=proposal)
        refused = tuple(each.why for each in found if each.kind == "refused")
        waiting = tuple(dict.fromkeys(fact.subject for fact in facts)) if proposal else ()
        return Kept(outcome, tuple(found), refused, waiting)

    def _write(
        self,
        facts: Sequence[Fact],
        context: ToolContext,
        said: str,
        found: list[FactOutcome],
        changes: list[TurnChange],
    ) -> ToolResult:
        now = self._now()
        kept = self._editor().keep(
            facts,
            actor=context.actor,
            origin=context.origin,
            day=now.date(),
            reason=_REASON,
            said=[(now, said)],
        )
        found += kept.outcomes
        if kept.commit is not None:
            paths = tuple(each.path for each in kept.commit.paths)
            changes.append(TurnChange(kept.commit.id, paths, describe(kept.commit.paths)))
        told = [f"{each.kind}: {each.fact.text} ({each.title or each.why})" for each in found]
        written = sum(each.kind in ("created", "added", "corrected") for each in found)
        return ToolResult("\n".join(told), f"{counted(written, 'fact')} kept")


def _link(path: str, title: str) -> str:
    if not path.startswith("knowledge/"):
        return title or path
    name = short_name(path)
    return f"[[{name}|{title}]]" if title else f"[[{name}]]"
