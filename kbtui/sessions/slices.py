"""Which messages are consolidated together: safe slices, cut into pages that a model can hold.

A slice never splits a tool call from its result, and ends where a turn ends whenever there is such
a place. What is too long for one page goes to the next; nothing is left out for its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbtui.sessions.store import SessionMessage

_WORD = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that must stay together: one message, or tool calls with all their results.

    A unit that `starts_turn` begins with what the user said. One that is `open` waits for the
    result of a call, and can't be consolidated yet.
    """

    messages: tuple[SessionMessage, ...]
    starts_turn: bool
    open: bool = False

    @property
    def first(self) -> int:
        """The id of its first message."""
        return self.messages[0].id

    @property
    def last(self) -> int:
        """The id of its last message."""
        return self.messages[-1].id


def split_units(messages: Sequence[SessionMessage], *, closed: bool = False) -> list[Unit]:
    """Cut a session's messages at every place where no call stands before and its result behind it.

    Nothing will be added to a `closed` one: calls without a result have none.
    """
    cuts = _safe_cuts(messages)
    waiting = None if closed else _first_waiting_call(messages)
    units: list[Unit] = []
    begin = 0
    for end in cuts:
        part = tuple(messages[begin:end])
        units.append(Unit(part, part[0].role == "user", waiting is not None and end > waiting))
        begin = end
    return units


def _safe_cuts(messages: Sequence[SessionMessage]) -> list[int]:
    """The positions behind which no result belongs to a call before them; the end is one."""
    depth = [0] * (len(messages) + 1)
    for call, result in _pairs(messages):
        depth[call + 1] += 1
        depth[result + 1] -= 1
    cuts = []
    inside = 0
    for position in range(1, len(messages) + 1):
        inside += depth[position]
        if not inside:
            cuts.append(position)
    return cuts


def _pairs(messages: Sequence[SessionMessage]) -> list[tuple[int, int]]:
    """The positions of each call and its result; ids may be used again in later turns."""
    waiting: dict[str, int] = {}
    pairs = []
    for position, message in enumerate(messages):
        for call in message.tool_calls:
            waiting[call.id] = position
        if message.role == "tool":
            # A result that says no id, or a foreign one, belongs to what stands before it.
            begin = waiting.pop(message.tool_call_id or "", max(0, position - 1))
            pairs.append((begin, position))
    return pairs


def _first_waiting_call(messages: Sequence[SessionMessage]) -> int | None:
    """The position of a call in the last turn that has no result yet."""
    waiting: dict[str, int] = {}
    for position, message in enumerate(messages):
        if message.role == "user":
            waiting.clear()
        for call in message.tool_calls:
            waiting[call.id] = position
        waiting.pop(message.tool_call_id or "", None)
    return min(waiting.values(), default=None)


def pages(
    units: Iterable[Unit],
    limit: int,
    cost: Callable[[Unit], int],
    kept_apart: Callable[[Unit], bool] = lambda _unit: False,
) -> list[list[Unit]]:
    """Cut units into pages of at most `limit` tokens; one that is longer has a page of its own.

    Pages break before a user's message where that leaves them at least half full, and between
    what is private and what isn't.
    """
    found: list[list[Unit]] = []
    for _, group in groupby((unit for unit in units if not unit.open), kept_apart):
        found += _pages_of(list(group), limit, cost)
    return found


def _pages_of(units: Sequence[Unit], limit: int, cost: Callable[[Unit], int]) -> list[list[Unit]]:
    found: list[list[Unit]] = []
    page: list[Unit] = []
    size = 0
    for unit in units:
        if page and size + cost(unit) > limit:
            keep = _break(page, unit, limit, cost)
            found.append(page[:keep])
            page = page[keep:]
            size = sum(map(cost, page))
        page.append(unit)
        size += cost(unit)
    return [*found, page] if page else found


def _break(page: Sequence[Unit], following: Unit, limit: int, cost: Callable[[Unit], int]) -> int:
    """How many units of a full page stay on it."""
    if following.starts_turn:
        return len(page)
    for number in range(len(page) - 1, 0, -1):
        carried = sum(map(cost, page[number:])) + cost(following)
        if carried > limit // 2:
            break
        if page[number].starts_turn:
            return number
    return len(page)


def split_text(text: str, limit: int, count: Callable[[str], int]) -> list[str]:
    """Cut a text into parts of at most about `limit` tokens, between lines where possible.

    Joined again, the parts are the text.
    """
    if count(text) <= limit:
        return [text]
    parts: list[str] = []
    part = ""
    for piece in _pieces(text, max(1, limit // 2), count):
        if part and count(part + piece) > limit:
            parts.append(part)
            part = ""
        part += piece
    return [*parts, part] if part else parts


def _pieces(text: str, limit: int, count: Callable[[str], int]) -> Iterable[str]:
    """Lines, and pieces of those that are longer than `limit` tokens, whole words if possible."""
    for line in text.splitlines(keepends=True):
        if count(line) <= limit:
            yield line
            continue
        piece = ""
        # Hardly ever more than one token a character, so `limit` characters nearly always fit.
        for word in _WORD.findall(line):
            if piece and len(piece) + len(word) > limit:
                yield piece
                piece = ""
            piece += word
            while len(piece) > limit:
                yield piece[:limit]
                piece = piece[limit:]
        if piece:
            yield piece
