"""The part of a session that fits a prompt, made valid for any provider.

The window is filled before anything is dropped, except that long tool results are cut to one line
after two turns: then older tool results are cut to one line, then enough of the oldest turns are
dropped at once to leave room for long. So prompts keep the same prefix for many turns, and the
prompt cache of a provider or a local server stays valid.
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

LEAST_ROOM = 500
"""The tokens that a session has in any prompt."""
UNFINISHED = "[no result: the turn was interrupted]"
DONE = "Noted."  # which counts as a claim if a model repeats it
UNANSWERED = "Sorry, I could not answer that."  # doesn't mislead if repeated either
SUMMARY_SHARE = 10
"""One over this is the share of the room for the summary of dropped turns, if there are any."""

_WHOLE_TURNS = 2  # the newest turns, whose tool results stay whole
_RESULT_WIDTH = 160
_LONG_RESULTS = 0.125  # share of the room; tool results above it are cut before the room is full
_MIN_FREED = 0.25  # share of the room; if cutting tool results frees less, turns are dropped
_KEPT = 0.55  # share of the room that is kept when turns are dropped


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """The newest turns of a session as prompt messages, and the messages of the dropped turns."""

    messages: tuple[Message, ...]
    left: tuple[SessionMessage, ...] = ()


def session_window(
    messages: Sequence[SessionMessage],
    *,
    most_tokens: int,
    most_messages: int | None = None,
) -> SessionWindow:
    """Return the window of a session with room for `most_tokens`; it begins with a user's message.

    Turns are kept or dropped whole, so that no call is separated from its result; the newest is
    always kept. As turns are added, the beginning stays the same until the room is full.
    """
    builder = _WindowBuilder(most_tokens, math.inf if most_messages is None else most_messages)
    for turn in _turns(messages):
        builder.add(_Turn.of(turn))
    return builder.window


def always_fits(messages: Sequence[SessionMessage], most_messages: int | None = None) -> bool:
    """Return whether a session is whole in its window, whatever room there is."""
    turns = list(map(_Turn.of, _turns(messages)))
    count = sum([len(turn.whole) for turn in turns])
    is_short = most_messages is None or count <= most_messages
    return is_short and sum([turn.tokens for turn in turns]) <= LEAST_ROOM


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn as stored, as prompt messages, and with tool results cut to one line."""

    stored: tuple[SessionMessage, ...]
    whole: tuple[Message, ...]
    short: tuple[Message, ...]
    tokens: int
    short_tokens: int

    @classmethod
    def of(cls, stored: Sequence[SessionMessage]) -> _Turn:
        whole = tuple(_valid_messages(stored))
        short = tuple([_first_line(each) if each.role == "tool" else each for each in whole])
        return cls(tuple(stored), whole, short, prompt_tokens(whole), prompt_tokens(short))


@dataclass(slots=True)
class _WindowBuilder:
    """A window being filled with turns.

    Attributes:
        most_tokens: Its room in tokens.
        max_messages: Its room in messages.
        turns: All turns so far.
        first: The index of the first turn that isn't dropped.
        short: The indexes of turns whose tool results are cut to one line.
        tokens: Its size in tokens.
        message_count: Its size in messages.
    """

    most_tokens: int
    max_messages: float
    turns: list[_Turn] = field(default_factory=list)
    first: int = 0
    short: set[int] = field(default_factory=set)
    tokens: int = 0
    message_count: int = 0

    def add(self, turn: _Turn) -> None:
        """Add the next turn; if there is no room, shorten or drop older ones."""
        self.turns.append(turn)
        self.tokens += turn.tokens
        self.message_count += len(turn.whole)
        older = max(self.first, len(self.turns) - _WHOLE_TURNS)
        if older > self.first:
            self._cut(older - 1, self.most_tokens * _LONG_RESULTS)
        room = self._room if self.first else self.most_tokens
        if self.tokens <= room and self.message_count <= self.max_messages:
            return
        for place in range(self.first, older):
            self._cut(place, 0)
        if self.tokens > room * (1 - _MIN_FREED) or self.message_count > self.max_messages:
            self._drop_turns()

    @property
    def _room(self) -> int:
        """The room in tokens beside the summary of dropped turns."""
        return self.most_tokens - self.most_tokens // SUMMARY_SHARE

    def _cut(self, place: int, threshold: float) -> None:
        """Cut the tool results of a turn, if that frees more than `threshold` tokens."""
        freed = self.turns[place].tokens - self.turns[place].short_tokens
        if place not in self.short and freed > threshold:
            self.short.add(place)
            self.tokens -= freed

    def _drop_turns(self) -> None:
        room = self._room * _KEPT
        for turn in self.turns[self.first : -1]:
            if self.tokens <= room and self.message_count <= self.max_messages * _KEPT:
                break
            self.tokens -= turn.short_tokens if self.first in self.short else turn.tokens
            self.message_count -= len(turn.whole)
            self.first += 1

    @property
    def window(self) -> SessionWindow:
        shown = (
            turn.short if place in self.short else turn.whole
            for place, turn in enumerate(self.turns[self.first :], self.first)
        )
        gone = (turn.stored for turn in self.turns[: self.first])
        return SessionWindow(tuple(chain(*shown)), tuple(chain(*gone)))


def _turns(messages: Sequence[SessionMessage]) -> list[list[SessionMessage]]:
    """Split a session before each user's message; what precedes the first is left out."""
    turns: list[list[SessionMessage]] = []
    for message in messages:
        if message.role == "user":
            turns.append([message])
        elif turns:
            turns[-1].append(message)
    return turns


def _first_line(result: Message) -> Message:
    """Cut a tool result to its first line."""
    text = result.content.strip()
    line = shorten(text.partition("\n")[0], _RESULT_WIDTH)
    return result if line == text else replace(result, content=f"{line}\n[the rest is left out]")


def _valid_messages(turn: Sequence[SessionMessage]) -> Iterator[Message]:
    """Yield the messages of a turn with every tool call followed by its result, and no oddities."""
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
        # The turn wrote something, or failed; some providers require alternating roles.
        wrote = any(each.meta.get("changes") or each.meta.get("proposal") for each in turn)
        yield Message("assistant", DONE if wrote else UNANSWERED)
