"""Estimates what condensing conversations with a model costs."""

from __future__ import annotations

from dataclasses import dataclass

from kbtui.models.litellm_model import price_of
from kbtui.models.roles import ModelRegistry
from kbtui.settings import OFFLINE
from kbtui.text import counted, enumerated, span

_PAGE_TOKENS = 4000
_SHARE_OF_ANSWER = 0.1
_CALL_SECONDS = 12.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of condensing some tokens; `usd` is None if no price is known."""

    model: str
    is_paid: bool
    usd: float | None
    seconds: float

    def describe(self, tokens: int) -> str:
        """Return a description: the tokens, the price of a paid model, and the time."""
        cost = ""
        if self.is_paid:
            cost = ", price unknown" if self.usd is None else f", ${self.usd:.2f}"
        return f"about {counted(tokens, 'token')}{cost}, {span(self.seconds)}"


@dataclass(frozen=True, slots=True)
class Unread:
    """Conversations that no model has condensed, with their remaining tokens.

    `entries` is the number of further archive entries that wait for Dream.
    """

    sessions: tuple[str, ...]
    tokens: int
    cost: Estimate
    entries: int = 0

    def describe(self) -> str:
        """Return what it is, in words: ``2 conversations that no model has condensed``."""
        what = [f"{counted(len(self.sessions), 'conversation')} that no model has condensed"]
        if self.entries:
            what.append(f"{counted(self.entries, 'archive entry', 'archive entries')} for Dream")
        return enumerated(what)


def estimate(models: ModelRegistry, role: str, tokens: int, conversations: int) -> Estimate:
    """Estimate what condensing would cost, and how long it would take.

    Raises:
        ModelAccessError: The model of the role needs a key that nobody has given.
    """
    model = models.chat(role)
    if model.name == OFFLINE:
        return Estimate(OFFLINE, is_paid=False, usd=0.0, seconds=0.0)
    seconds = max(conversations, tokens // _PAGE_TOKENS) * _CALL_SECONDS
    if model.is_local:
        return Estimate(model.name, is_paid=False, usd=0.0, seconds=seconds)
    usd = price_of(model.name, tokens, int(tokens * _SHARE_OF_ANSWER))
    return Estimate(model.name, is_paid=True, usd=usd, seconds=seconds)
