"""Keeps MEMORY.md short: lines that exceed its limits move into the entry of their subject.

It is in every prompt, so it has a limit of 60 lines and a token budget. Lines that were never used
move first, of these the ones about an existing entry, then the oldest; the ten newest never do, nor
does an instruction. The user's own lines stay: only what was never used of them is proposed to be
moved, and only by Dream.

If it is too long all the same, a prompt has what matters most of it: `fitted`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.knowledge.format.document import read
from kbtui.knowledge.format.facts import Fact, plain_fact
from kbtui.knowledge.format.lines import bullet_of, heading_of, split_lines
from kbtui.knowledge.library.overlay import shown_text
from kbtui.memory.edits.memory_file import FACTS, is_statement
from kbtui.models.port import estimate_tokens
from kbtui.offline.frames import is_instruction
from kbtui.text import clean_line, counted
from kbtui.workspace.layout import MEMORY

if TYPE_CHECKING:
    from kbtui.memory.edits.working_copy import Operation, WorkingCopy

MOST_LINES = 60
_NEARLY_FULL = 0.85
_NEWEST = 10  # lines that never move
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_UNUSED = "MEMORY.md is full, and no conversation has used it"
Uses = Callable[[Sequence[str]], Mapping[str, int]]
"""Returns how often each of some lines was used, as `recall.usage` does."""


def fullness(text: str, most_tokens: int) -> float:
    """Return how full MEMORY.md is: 1.0 at the limit of lines or tokens."""
    lines = count_lines(text)
    tokens = estimate_tokens(text) / most_tokens if most_tokens else 0.0
    return max(lines / MOST_LINES, tokens)


def count_lines(text: str) -> int:
    """Return the number of statements in MEMORY.md."""
    return sum(map(is_statement, split_lines(text)))


def is_near_full(text: str, most_tokens: int) -> bool:
    """Return whether a person should know that MEMORY.md is nearly full."""
    return fullness(text, most_tokens) >= _NEARLY_FULL


def why_full(text: str, most_tokens: int) -> str:
    """Return a sentence for a person on a MEMORY.md that is over its limit, or "" if it isn't."""
    lines = count_lines(text)
    if lines <= MOST_LINES and estimate_tokens(text) <= most_tokens:
        return ""
    size = f"{counted(lines, 'line')} of at most {MOST_LINES}"
    if lines <= MOST_LINES:
        size = f"{estimate_tokens(text):,} tokens of at most {most_tokens:,}"
    return (
        f"MEMORY.md is full: {size}. What doesn't fit into a prompt is left out: all but the"
        " newest and the most used lines, and instructions. Dream moves what was never used to"
        " entries, and asks you about your own lines: `kbtui dream`, or /dream."
    )


def fitted(
    lines: Sequence[str],
    most_tokens: int,
    told: Callable[[int], datetime | None],
    uses: Callable[[int], int],
) -> str:
    """Return the text of as many lines as a prompt has room for, in order, with their headings.

    First every instruction, then by turns the newest and the most used. `told` and `uses` are about
    the line at an index. An item stays with the lines that belong to it.
    """
    groups = list(_groups(lines))
    newest = sorted(groups, key=lambda each: (told(each[0]) or _LONG_AGO, each[0]), reverse=True)
    used = [each for each in newest if uses(each[0])]
    used.sort(key=lambda each: -uses(each[0]))
    ruling = [each for each in newest if is_instruction(plain_fact(lines[each[0]]))]
    by_turns = chain.from_iterable(zip_longest(newest, used))
    chosen: set[int] = set()
    for group in dict.fromkeys([*ruling, *filter(None, by_turns)]):
        added = {*group, *_headings_of(lines, group[0])} - chosen
        cost = sum(estimate_tokens(lines[number]) for number in added)
        if cost <= most_tokens:
            most_tokens -= cost
            chosen |= added
    return "".join(lines[number] for number in sorted(chosen))


def _groups(lines: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """Yield the indexes of each item or paragraph."""
    group: list[int] = []
    for number, line in enumerate(lines):
        begins = bool(bullet_of(line)) and not line[0].isspace()
        if group and (begins or not is_statement(line)):
            yield tuple(group)
            group = []
        if is_statement(line):
            group.append(number)
    if group:
        yield tuple(group)


def _headings_of(lines: Sequence[str], number: int) -> Iterator[int]:
    """Yield the index of the heading above a line, and of the blank line below that."""
    above = next((n for n in range(number, -1, -1) if heading_of(lines[n])), None)
    if above is not None:
        yield above
        if not lines[above + 1].strip():
            yield above + 1


def _none_used(_lines: Sequence[str]) -> Mapping[str, int]:
    return {}


def trim_memory(
    copy: WorkingCopy,
    day: date,
    most_tokens: int = 0,
    uses: Uses = _none_used,
    *,
    is_asking: bool = False,
) -> int:
    """Move lines out of MEMORY.md until it is within its limits; return how many.

    If `is_asking`, the user's own lines that were never used are proposed to be moved, as many as
    are still too many.
    """
    if fullness(shown_text(copy.files.data(MEMORY)), most_tokens) <= 1.0:
        return 0
    movable = _movable_lines(copy, uses)
    moved = 0
    for each in (each for each in movable if each.by_machine):
        if fullness(shown_text(copy.files.data(MEMORY)), most_tokens) <= 1.0:
            break
        with contextlib.suppress(KbtuiError):  # it is there twice, or its entry can't be changed
            moved += not copy.perform(_moving(copy, each, day)).proposed
    if is_asking:
        _propose_moves(copy, [each for each in movable if not each.by_machine], day, most_tokens)
    return moved


def _propose_moves(copy: WorkingCopy, own: Sequence[_Movable], day: date, most_tokens: int) -> None:
    left = split_lines(shown_text(copy.files.data(MEMORY)))
    for each in own:
        if fullness("".join(left), most_tokens) <= 1.0:
            return
        with contextlib.suppress(KbtuiError):  # it is there twice, or its entry can't be changed
            copy.perform(replace(_moving(copy, each, day), reason=_UNUSED))
            left = [line for line in left if plain_fact(line) != each.line]


def _moving(copy: WorkingCopy, movable: _Movable, day: date) -> Operation:
    """Return the operation that moves a line into the entry of its subject."""
    # Whoever only counts lines has no working copy, and so no use for these.
    from kbtui.memory.edits.operations import move_to_entry

    subjects = copy.services.subjects
    named = [path for path in subjects.named_in(movable.line) if copy.files.exists(path)]
    if len(named) == 1:
        entry = copy.files.parsed(named[0])
        fact = Fact(movable.line, entry.type or "topic", entry.title)
    else:
        fact = Fact(movable.line, "fact", movable.heading or FACTS)
    return move_to_entry(movable.line, fact, day)


@dataclass(frozen=True, slots=True)
class _Movable:
    """A line of MEMORY.md, its heading, and whether a machine wrote it."""

    line: str
    heading: str
    by_machine: bool


def _movable_lines(copy: WorkingCopy, uses: Uses) -> list[_Movable]:
    """Return the lines that may move, in the order of moving."""
    text = shown_text(copy.files.data(MEMORY))
    origins = copy.services.history.blame(MEMORY, text=text) if text else ()
    facts = [*_facts_in(text)]
    used = uses([fact for _, fact, _ in facts])
    found: list[tuple[bool, bool, datetime, int, _Movable]] = []
    for number, fact, heading in facts:
        origin = origins[number] if number < len(origins) else None
        if origin is None or origin.time is None or is_instruction(fact):
            continue
        by_machine, is_used = not origin.actor.writes_human_text, bool(used.get(fact))
        if by_machine or not is_used:
            has_entry = by_machine and bool(copy.services.subjects.named_in(fact))
            movable = _Movable(fact, heading, by_machine)
            found.append((is_used, not has_entry, origin.time, number, movable))
    by_age = sorted(found, key=lambda each: each[2:4])
    newest = [
        each
        for by_machine in (True, False)
        for each in [one for one in by_age if one[-1].by_machine is by_machine][-_NEWEST:]
    ]
    leaving = sorted((each for each in found if each not in newest), key=lambda each: each[:4])
    return [each[-1] for each in leaving]


def _facts_in(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the statements outside of code: the line's index, the fact, and the heading above."""
    document, heading = read(text), ""
    titles = {each.line: clean_line(each.title) for each in document.parts}
    for number, line in enumerate(split_lines(text)):
        heading = titles.get(number, heading)
        if is_statement(line) and number not in document.fenced:
            yield number, plain_fact(line), heading
