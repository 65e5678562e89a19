"""Reports of Dream: how far it is, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kbtui.errors import KbtuiError
from kbtui.history.queries.diff import FileDiff
from kbtui.settings import OFFLINE
from kbtui.text import counted
from kbtui.workspace.layout import short_name

Phase = Literal["reading", "editing", "writing"]
_DONE = "has read", "has worked in", "changed", "wait in the inbox"
_WOULD = "would read", "would work in", "change", "would be proposed"
Kind = Literal["changed", "proposed", "read", "nothing", "dry-run", "postponed"]


@dataclass(frozen=True, slots=True)
class DreamProgress:
    """How far a run is: `step` is the call of the model in this phase, of `steps`; 0: not known."""

    phase: Phase
    text: str
    step: int = 0
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change left to a person, and why. `id` is empty in a dry run."""

    why: str
    diffs: tuple[FileDiff, ...]
    id: str = ""


@dataclass(frozen=True, slots=True)
class DreamReport:
    """The outcome of a run.

    Attributes:
        kind: ``changed``; ``proposed``: nothing but proposals came of it; ``read``: there was
            nothing to change; ``nothing`` is new; ``dry-run``: nothing was written;
            ``postponed``: for the reason in `error`, and nothing is lost.
        entries: How many archive entries were read; `remaining` wait for the next run.
        commit: The commit; None: nothing was written.
        diffs: What was changed, or in a dry run would be.
        suggestions: What is left to a person, in the inbox unless it is a dry run.
        steps: How often the model was asked, at `cost_usd` as far as that is known.
        ended: Why the model was stopped before it said that it was done; empty: it wasn't.
    """

    kind: Kind
    entries: int = 0
    remaining: int = 0
    commit: str | None = None
    diffs: tuple[FileDiff, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    model: str = ""
    steps: int = 0
    cost_usd: float = 0.0
    ended: str = ""
    error: KbtuiError | None = None

    @property
    def text(self) -> str:
        """It in words, ready to be shown."""
        if self.error is not None:
            return f"Dream is put off: {self.error}"
        if self.kind == "nothing":
            return "There is nothing new to dream about."
        would = self.kind == "dry-run"
        read, worked, changed, waits = _WOULD if would else _DONE
        count = counted(self.entries, "new archive entry", "new archive entries")
        if not self.diffs and not self.suggestions:
            return f"Dream {read} {count}; nothing had to change.{self._limits}"
        names = ", ".join(short_name(diff.path) for diff in self.diffs)
        text = f"Dream {worked} {count}{f' and {changed} {names}' if names else ''}."
        if self.suggestions:
            text += f" {counted(len(self.suggestions), 'change')} of your notes {waits}."
        return text + self._limits

    @property
    def _limits(self) -> str:
        if self.model == OFFLINE:
            return (
                " Without a model it learns nothing: it mends links and repeated lines, and merges"
                " what machines wrote twice."
            )
        return f" It was stopped early: {self.ended}" if self.ended else ""
