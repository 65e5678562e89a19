"""The part of a session that a prompt holds, made sound for any provider.

It is filled before anything leaves it, but for long results of tools, which are cut to a line after
two turns: then what tools said a while ago is cut to a line, then so many of the oldest turns leave
at once that there is room for long. So prompts begin with the same words for many turns, and what a
provider or a local server has cached of them holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from kbtui.models.port import Message, prompt_tokens
from kbtui.sessions import KEEP
from kbtui.sessions.store import SessionMessage
from kbtui.text import shorten

UNFINISHED = "[no result: the turn was interrupted]"
DONE = "Noted."  # which counts as a claim where a model repeats it
UNANSWERED = "Sorry, I could not answer that."  # nor does this mislead anybody
SUMMARY_SHARE = 10
"""The part of the room that the summary of what left may have, once something did."""

_WHOLE_TURNS = 2  # of which results of tools stay whole
_RESULT_WIDTH = 160
_HEAVY = 0.125  # of the room; results that take more of it don't wait until it is full
_FREED = 0.25  # of the room; where short results free less, turns leave
_KEPT = 0.55  # of the room, when turns leave


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """The newest turns of a session as a prompt has them, and the messages of those that left."""

    messages: tuple[Message, ...]
    left: tuple[SessionMessage, ...] = ()


def session_window(
    messages: Sequence[SessionMessage],
    *,
    most_tokens: int,
    most_messages: int | None = None,
) -> SessionWindow:
    """What a prompt with room for `most_tokens` holds of a session; it begins with the user.

    Turns are there or left out whole, so that no call is parted from its result; the newest always
    is there. With one turn more the beginning is the same, until the room is full.
    """
    filling = _Filling(most_tokens, math.inf if most_messages is None else most_messages)
    for turn in _turns(messages):
        filling.take(_Turn.of(turn))
    return filling.window


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn as it was stored, as a prompt has it, and with results of tools in a line."""

    stored: tuple[SessionMessage, ...]
    whole: tuple[Message, ...]
    short: tuple[Message, ...]
    tokens: int
    short_tokens: int

    @classmethod
    def of(cls, stored: Sequence[SessionMessage]) -> _Turn:
        whole = tuple(_sound(stored))
        short = tuple([_in_short(each) if each.role == "tool" else each for each in whole])
        return cls(tuple(stored), whole, short, prompt_tokens(whole), prompt_tokens(short))


@dataclass(slots=True)
class _Filling:
    """A window that turns are put into.

    Attributes:
        most_tokens: Its room.
        most: Its room in messages.
        turns: What was put into it.
        first: The turns before this one have left.
        short: In these results of tools are cut to a line.
        tokens: What it holds.
        number: The same in messages.
    """

    most_tokens: int
    most: float
    turns: list[_Turn] = field(default_factory=list)
    first: int = 0
    short: set[int] = field(default_factory=set)
    tokens: int = 0
    number: int = 0

    def take(self, turn: _Turn) -> None:
        """Put the next turn into it; what there is no room for gets shorter, or leaves."""
        self.turns.append(turn)
        self.tokens += turn.tokens
        self.number += len(turn.whole)
        older = max(self.first, len(self.turns) - _WHOLE_TURNS)
        if older > self.first:
            self._cut(older - 1, self.most_tokens * _HEAVY)
        room = self._room if self.first else self.most_tokens
        if self.tokens <= room and self.number <= self.most:
            return
        for place in range(self.first, older):
            self._cut(place, 0)
        if self.tokens > room * (1 - _FREED) or self.number > self.most:
            self._let_go()

    @property
    def _room(self) -> int:
        """The tokens beside the summary of what left."""
        return self.most_tokens - self.most_tokens // SUMMARY_SHARE

    def _cut(self, place: int, least: float) -> None:
        """Cut results of a turn, where that frees more tokens than so many."""
        freed = self.turns[place].tokens - self.turns[place].short_tokens
        if place not in self.short and freed > least:
            self.short.add(place)
            self.tokens -= freed

    def _let_go(self) -> None:
        room = self._room * _KEPT
        for turn in self.turns[self.first : -1]:
            if self.tokens <= room and self.number <= self.most * _KEPT:
                break
            self.tokens -= turn.short_tokens if self.first in self.short else turn.tokens
            self.number -= len(turn.whole)
            self.first += 1

    @property
    def window(self) -> SessionWindow:
        """What it holds."""
        shown = (
            turn.short if place in self.short else turn.whole
            for place, turn in enumerate(self.turns[self.first :], self.first)
        )
        gone = (turn.stored for turn in self.turns[: self.first])
        return SessionWindow(tuple(chain(*shown)), tuple(chain(*gone)))


def _turns(messages: Sequence[SessionMessage]) -> list[list[SessionMessage]]:
    """Cut a session before each message of the user's; what stands before the first is left out."""
    turns: list[list[SessionMessage]] = []
    for message in messages:
        if message.role == "user":
            turns.append([message])
        elif turns:
            turns[-1].append(message)
    return turns


def _in_short(result: Message) -> Message:
    """The first line of what a tool said."""
    said = result.content.strip()
    line = shorten(said.partition("\n")[0], _RESULT_WIDTH)
    return result if line == said else replace(result, content=f"{line}\n[the rest is left out]")


def _sound(turn: Sequence[SessionMessage]) -> Iterator[Message]:
    """A turn in which every tool call has its result right behind it, and nothing else is odd."""
    results = {each.tool_call_id: each.as_prompt() for each in turn if each.role == "tool"}
    last: Message | None = None
    for stored in turn:
        if stored.role == "tool" or any(call.name == KEEP for call in stored.tool_calls):
            # A model that is shown a call which it can't make writes such calls into its answers.
            continue
        message = stored.as_prompt()
        if not message.content and not message.tool_calls:
            continue
        yield (last := message)
        for call in message.tool_calls:
            nothing = Message("tool", UNFINISHED, tool_call_id=call.id, name=call.name)
            yield (last := results.get(call.id, nothing))
    if last is not None and last.role != "assistant":
        # A turn that ended with what it wrote, or failed; roles must alternate for some providers.
        wrote = any(each.meta.get("changes") or each.meta.get("proposal") for each in turn)
        yield Message("assistant", DONE if wrote else UNANSWERED)
