"""Slices of a session for consolidation, split into pages that fit a model.

A slice never separates a tool call from its result, and ends at the end of a turn where possible.
What doesn't fit on one page goes to the next; nothing is left out for its length.
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

    A unit that `starts_turn` begins with a user's message. One that is `open` waits for the result
    of a call, and can't be consolidated yet.
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
    """Split a session's messages wherever this doesn't separate a call from its result.

    A `closed` session will get no more messages, so calls without a result don't keep units open.
    """
    cuts = _safe_cuts(messages)
    pending = None if closed else _first_waiting_call(messages)
    units: list[Unit] = []
    begin = 0
    for end in cuts:
        part = tuple(messages[begin:end])
        units.append(Unit(part, part[0].role == "user", pending is not None and end > pending))
        begin = end
    return units


def _safe_cuts(messages: Sequence[SessionMessage]) -> list[int]:
    """Return the positions that don't separate a call from its result, including the end."""
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
    """Return the positions of each call and its result; ids may be reused in later turns."""
    pending: dict[str, int] = {}
    pairs = []
    for position, message in enumerate(messages):
        for call in message.tool_calls:
            pending[call.id] = position
        if message.role == "tool":
            # A result with no known id is taken to belong to the previous message.
            begin = pending.pop(message.tool_call_id or "", max(0, position - 1))
            pairs.append((begin, position))
    return pairs


def _first_waiting_call(messages: Sequence[SessionMessage]) -> int | None:
    """Return the position of the first call in the last turn that has no result yet."""
    pending: dict[str, int] = {}
    for position, message in enumerate(messages):
        if message.role == "user":
            pending.clear()
        for call in message.tool_calls:
            pending[call.id] = position
        pending.pop(message.tool_call_id or "", None)
    return min(pending.values(), default=None)


def pages(
    units: Iterable[Unit],
    limit: int,
    cost: Callable[[Unit], int],
    kept_apart: Callable[[Unit], bool] = lambda _unit: False,
) -> list[list[Unit]]:
    """Split units into pages of at most `limit` tokens; a larger unit gets a page of its own.

    Pages break before a user's message if that leaves them at least half full, and where
    `kept_apart` changes, i.e. between private and other units.
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
    """Return the number of units to keep on a full page."""
    if following.starts_turn:
        return len(page)
    for number in range(len(page) - 1, 0, -1):
        moved = sum(map(cost, page[number:])) + cost(following)
        if moved > limit // 2:
            break
        if page[number].starts_turn:
            return number
    return len(page)


def split_text(text: str, limit: int, count: Callable[[str], int]) -> list[str]:
    """Split a text into parts of about `limit` tokens at most, between lines where possible.

    Joined, the parts are the text.
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
    """Yield lines, split between words where possible if they exceed `limit` tokens."""
    for line in text.splitlines(keepends=True):
        if count(line) <= limit:
            yield line
            continue
        piece = ""
        # A character is hardly ever more than one token, so `limit` characters nearly always fit.
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
