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
        entries: The number of archive entries read; `remaining` wait for the next run, or, without
            a model, for one.
        commit: The commit; None if nothing was written.
        diffs: What was changed, or in a dry run would be.
        suggestions: What is left to a person, in the inbox unless it is a dry run.
        steps: The number of model calls, which cost `cost_usd` as far as known.
        ended: Why the model was stopped before it was done; empty if it wasn't.
        left: What is out of order and left to a person, in words.
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
    left: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The outcome in words."""
        if self.error is not None:
            return f"Dream is put off: {self.error}"
        would = self.kind == "dry-run"
        read, worked, changed, waits = _WOULD if would else _DONE
        if not self.entries:
            return self._tidied(waits, would=would)
        count = counted(self.entries, "new archive entry", "new archive entries")
        if not self.diffs and not self.suggestions:
            return f"Dream {read} {count}; nothing had to change.{self._limits}"
        text = f"Dream {worked} {count}{f' and {changed} {self._names}' if self._names else ''}."
        return f"{text}{self._waiting(waits)}{self._limits}"

    @property
    def _names(self) -> str:
        return ", ".join(short_name(diff.path) for diff in self.diffs)

    def _waiting(self, waits: str) -> str:
        count = counted(len(self.suggestions), "change")
        return f" {count} of your notes {waits}." if self.suggestions else ""

    def _tidied(self, waits: str, *, would: bool) -> str:
        """Return what came of a run without a model, or without anything new."""
        verb = "would tidy" if would else "tidied"
        text = f"Dream {verb} up {self._names}." if self._names else ""
        text += self._waiting(waits)
        if self.left:
            text += f" Left to you: {'; '.join(self.left)}."
        if self.model == OFFLINE:
            text = f"{text or 'Nothing was out of order.'} Without a model Dream learns nothing."
            if self.remaining:
                count = counted(self.remaining, "archive entry waits", "archive entries wait")
                text += f" {count} for one."
        return text.strip() or "There is nothing new to dream about."

    @property
    def _limits(self) -> str:
        return f" It was stopped early: {self.ended}" if self.ended else ""
