"""Reports of Dream: its progress, and the outcome of a run."""

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
    """The progress of a run: `step` of `steps` model calls in this phase; 0 if unknown."""

    phase: Phase
    text: str
    step: int = 0
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change left to a person, and why; `id` is empty in a dry run."""

    why: str
    diffs: tuple[FileDiff, ...]
    id: str = ""


@dataclass(frozen=True, slots=True)
class DreamReport:
    """The outcome of a run.

    Attributes:
        kind: ``changed``; ``proposed``: there were only proposals; ``read``: nothing had to change;
            ``nothing`` is new; ``dry-run``: nothing was written; ``postponed``: because of `error`,
            without a loss.
        entries: The number of archive entries read; `remaining` wait for the next run.
        commit: The commit; None if nothing was written.
        diffs: What was changed, or in a dry run would be.
        suggestions: What is left to a person, in the inbox unless it is a dry run.
        steps: The number of model calls, which cost `cost_usd` as far as known.
        ended: Why the model was stopped before it was done; empty if it wasn't.
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
        """The outcome in words."""
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
