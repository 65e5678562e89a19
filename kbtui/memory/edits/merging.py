"""Puts what was learned into an entry: new ones from a draft, known ones grown, never rewritten.

A known entry gets the statements that it doesn't make yet, where they belong; a value that
changed is changed in its place, and an ``## Evolution`` section says since when. Everything else
stays byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kbtui.errors import UnreadableError
from kbtui.knowledge import frontmatter
from kbtui.knowledge.statements import normalise, plain_fact, statements
from kbtui.knowledge.templates import EVOLUTION, append_to_section, render_entry
from kbtui.text import clean_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date

    from kbtui.memory.records.extraction import Draft

STRICT = 1.0
LOOSE = 0.6
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t]*#*$")
_BULLET = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_KEYED = re.compile(r"^(?P<key>[^\s:][^:\n]{0,59}?):[ \t]+(?P<value>\S.*)$")
_MINE = re.compile(r"^My (?P<key>\w[\w' -]{1,59}?) (?:is|are) (?P<value>\S.*?)\.?$", re.IGNORECASE)
_SECTION = re.compile(r"^#{2,6}[ \t]", re.MULTILINE)
_NOT = frozenset({"not", "no", "never", "without"})
# Where statements without a heading of their own belong.
_HOME = {"person": "Notes", "project": "Notes", "reference": "Notes", "decision": EVOLUTION}
_FIRST_HOME = {"person": "Notes", "project": "Notes", "reference": "Notes", "decision": "Decision"}


@dataclass(frozen=True, slots=True)
class Item:
    """One statement of a body: a bullet, a paragraph, or a block that stays as it is."""

    heading: str
    text: str
    is_block: bool = False


def new_entry(draft: Draft, day: date, related: Sequence[str]) -> str:
    """Write a new entry out of a draft, in the template of its type."""
    body = draft.body or draft.summary
    home = _FIRST_HOME.get(draft.type)
    sections: Mapping[str, str] | str = body
    if _SECTION.search(body):
        sections = _by_heading(body)
    elif home:
        sections = {home: body}
    said = statements(body)
    known = bool(said) and normalise(said[0]) == normalise(draft.summary)
    return render_entry(
        draft.type,
        draft.title,
        created=day,
        sections=sections,
        tags=draft.tags,
        related=related,
        summary="" if known else draft.summary,
    )


def grown_entry(
    text: str,
    draft: Draft,
    day: date,
    *,
    related: Sequence[str] = (),
    add: bool = True,
    correct: bool = True,
    head: bool = True,
    likeness: float = STRICT,
) -> str:
    """Add to a known entry what a draft says beyond it.

    Args:
        text: The whole entry.
        draft: What was learned about its subject.
        day: When that was said.
        related: Names of entries to link, all of which exist.
        add: Add what it doesn't say.
        correct: Change values that are no longer true in their place.
        head: Add tags and links to the frontmatter.
        likeness: What share of a statement's words, in their order, must stand in one of the
            entry's for it to count as known.
    """
    parts = frontmatter.split(text.encode("utf-8", "surrogatepass"))
    body = parts.body.decode("utf-8", "surrogatepass")
    for item in _items(draft.body or draft.summary):
        place = None if item.is_block else _line_of(body, item.text)
        if place is not None:
            body = _with_value(body, place, item.text, day) if correct else body
        elif add and not _has(body, item, likeness):
            body = _added(body, item, draft.type, day)
    grown = text[: len(text) - len(parts.body.decode("utf-8", "surrogatepass"))] + body
    if not head:
        return grown
    return _with_head(grown, _head_changes(grown, draft, related, correct=correct))


def is_said(statement: str, known: Sequence[str], likeness: float = STRICT) -> bool:
    """Whether one of the `known` statements says a statement already."""
    words = normalise(statement).split()
    return any(_within(words, normalise(other).split(), likeness) for other in known)


def _within(words: list[str], other: list[str], likeness: float) -> bool:
    """Whether `words` stand in `other` in their order, all numbers and negations included."""
    telling = {word for word in words if any(char.isdigit() for char in word)}
    if not words or telling - set(other) or (_NOT & set(words)) != (_NOT & set(other)):
        return False
    return _common(words, other) >= likeness * len(words)


def _common(words: list[str], other: list[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for word in words:
        above = row
        row = [0]
        for place, candidate in enumerate(other):
            same = above[place] + 1 if word == candidate else 0
            row.append(max(same, above[place + 1], row[place]))
    return row[-1]


def _has(body: str, item: Item, likeness: float) -> bool:
    if item.is_block:
        return item.text in body
    return is_said(item.text, statements(body), likeness)


def _with_value(body: str, place: int, statement: str, day: date) -> str:
    """Change the value of the line at `place` to that of a ``key: value`` statement."""
    lines = body.splitlines(keepends=True)
    key, value = _key_and_value(statement)
    _, before = _key_and_value(plain_fact(lines[place]))
    after = _new_value(before, value)
    if after == before:
        return body
    start = lines[place].rindex(before)
    lines[place] = lines[place][:start] + after + lines[place][start + len(before) :]
    changed = "".join(lines)
    if after != value:  # a list has grown; nothing is over that was true
        return changed
    note = f"- {day.isoformat()}: {key}: {value} (before: {before})"
    return append_to_section(changed, EVOLUTION, note)


def _new_value(before: str, value: str) -> str:
    """The value that holds now: lists grow, everything else is replaced."""
    if normalise(before) == normalise(value):
        return before
    old, new = _listed(before), _listed(value)
    if len(old) == 1 and len(new) == 1:
        return value
    known = {normalise(each) for each in old}
    fresh = [each for each in new if normalise(each) not in known]
    return ", ".join([before, *fresh])


def _listed(value: str) -> list[str]:
    parts = re.split(r",[ \t]+(?:and[ \t]+)?|[ \t]+and[ \t]+", value.rstrip("."))
    return [part.strip() for part in parts if part.strip()]


def _line_of(body: str, statement: str) -> int | None:
    """The one line that gives a value to the key of a ``key: value`` statement."""
    wanted, value = _key_and_value(statement)
    if not value:
        return None
    found = []
    evolving = False
    for place, line in enumerate(body.splitlines()):
        if heading := _HEADING.match(line):
            evolving = heading[2].casefold() == EVOLUTION.casefold()
        key, value = _key_and_value(plain_fact(line))
        if value and not evolving and normalise(key) == normalise(wanted):
            found.append(place)
    return found[0] if len(found) == 1 else None


def _key_and_value(statement: str) -> tuple[str, str]:
    """Read ``Favorite color: blue`` or ``My favorite color is blue.``; else the value is empty."""
    match = _KEYED.match(statement) or _MINE.match(statement)
    return (match["key"], match["value"].strip()) if match else (statement, "")


def _added(body: str, item: Item, type_: str, day: date) -> str:
    """Put a statement where it belongs; what stands there already stays above it."""
    line = item.text if item.is_block else f"- {item.text}"
    heading = item.heading
    if type_ == "decision" and heading.casefold() in {"", "decision", EVOLUTION.casefold()}:
        # What was decided stays as it was decided; what came later is dated.
        dated = line if item.is_block else f"- {day.isoformat()}: {item.text}"
        return append_to_section(body, EVOLUTION, dated)
    heading = heading or _HOME.get(type_, "")
    return append_to_section(body, heading, line) if heading else _below_lead(body, line)


def _below_lead(body: str, line: str) -> str:
    """Add a line at the end of what stands above the first section."""
    section = _SECTION.search(body)
    end = section.start() if section else len(body)
    lead, rest = body[:end], body[end:]
    newline = "\r\n" if "\r\n" in body else "\n"
    kept = lead.rstrip()
    last = kept.rsplit("\n", 1)[-1]
    gap = newline if _BULLET.match(last) else newline * 2
    return f"{kept}{gap if kept else ''}{line}{newline}{newline if rest else ''}{rest}"


def _items(body: str) -> Iterator[Item]:
    """The statements of a body, in order."""
    heading = ""
    paragraph: list[str] = []
    block: list[str] = []
    fence = ""
    for line in [*body.splitlines(), ""]:
        mark = _FENCE.match(line)
        in_block = bool(fence) or bool(mark) or line.lstrip().startswith("|")
        if paragraph and (in_block or not line.strip() or _BULLET.match(line) or line[0] == "#"):
            yield Item(heading, clean_line(" ".join(paragraph)))
            paragraph = []
        if in_block:
            block.append(line)
            fence = (mark[1] if not fence else "" if mark[1] == fence else fence) if mark else fence
            continue
        if block:
            yield Item(heading, "\n".join(block), is_block=True)
            block = []
        if title := _HEADING.match(line):
            heading = title[2].strip() if len(title[1]) > 1 else ""
        elif _BULLET.match(line):
            yield Item(heading, plain_fact(line))
        elif line.strip():
            paragraph.append(line.strip())
    if block:
        yield Item(heading, "\n".join(block), is_block=True)


def _by_heading(body: str) -> dict[str, str]:
    """A body by its headings; what stands above the first one is under ``""``."""
    parts: dict[str, list[str]] = {}
    heading = ""
    for line in body.splitlines():
        title = _HEADING.match(line)
        if title and len(title[1]) == 2:  # noqa: PLR2004 - the level of sections
            heading = title[2].strip()
            parts.setdefault(heading, [])
        else:
            parts.setdefault(heading, []).append(line)
    texts = {name: "\n".join(lines).strip("\n") for name, lines in parts.items()}
    return {name: text for name, text in texts.items() if text.strip()}


def _head_changes(
    text: str, draft: Draft, related: Sequence[str], *, correct: bool
) -> dict[str, Any]:
    """What the frontmatter doesn't say yet: tags, links, and a value that its summary names."""
    values = frontmatter.parse(text).values
    changes: dict[str, Any] = {}
    for key, wanted in (("tags", draft.tags), ("related", related)):
        known = values.get(key) or []
        if not isinstance(known, list) or not all(isinstance(each, str) for each in known):
            continue
        seen = {each.strip("#[]").casefold() for each in known}
        fresh = [each for each in wanted if each.casefold() not in seen]
        if values and fresh:
            changes[key] = [*known, *fresh]
    summary = values.get("summary")
    if correct and isinstance(summary, str):
        for item in _items(draft.body or draft.summary):
            if _line_of(summary, item.text) is not None:
                key, before = _key_and_value(summary.strip())
                value = _new_value(before, _key_and_value(item.text)[1])
                if value != before:
                    changes["summary"] = f"{key}: {value}"
    return changes


def _with_head(text: str, changes: Mapping[str, Any]) -> str:
    try:
        return frontmatter.set_keys(text, changes) if changes else text
    except UnreadableError:
        return text  # a form of YAML that can't be changed in place: it stays as it is
