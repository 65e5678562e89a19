"""Writes facts into an entry: a new one is rendered, a known one extended, never rewritten.

A known entry gets the statements that it lacks, where they belong. A changed value is replaced in
place, and an ``## Evolution`` section records since when. Everything else stays byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

from kbtui.errors import UnreadableError, UsageError
from kbtui.history.merging.tree_merge import split_front
from kbtui.knowledge.entries.entry import (
    EVOLUTION,
    Entry,
    Front,
    append_to_section,
    render_entry,
    section_text,
)
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import body_of
from kbtui.knowledge.format.document import Part, read_body
from kbtui.knowledge.format.facts import Fact, normalise, plain_fact, statements
from kbtui.knowledge.format.frontmatter import value_text
from kbtui.knowledge.format.lines import bullet_of, heading_of, split_lines
from kbtui.offline.language import of_all, significant_terms
from kbtui.offline.lines import sentences
from kbtui.text import clean_line, fold
from kbtui.workspace.layout import short_name

WORDING = "before until then replaced by replaces"
"""The words that kbtui itself adds in notes of changes, which nobody need have said."""

_PAST = EVOLUTION.casefold()
STRICT = 1.0
LOOSE = 0.6
_RESERVED = frozenset(
    {"type", "created", "updated", "title", "summary", "description", "aliases", "alias"}
)
_EMPTY: tuple[Any, ...] = (None, "", [])
_LISTS = ("tags", "related", "sources")
_KEYED = re.compile(r"^(?P<key>[^\s:][^:\n]{0,59}?):[ \t]+(?P<value>\S.*)$")
_MIN_SHARE = 0.6
_MIN_WORDS_FOR_SHARE = 3
# The headings for statements without one of their own.
_HEADING = {"person": "Notes", "project": "Notes", "reference": "Notes", "decision": EVOLUTION}
_NEW_HEADING = {"person": "Notes", "project": "Notes", "reference": "Notes", "decision": "Decision"}


@dataclass(frozen=True, slots=True)
class BodyItem:
    """A statement of a body: a bullet, a paragraph, or a block that is kept verbatim."""

    heading: str
    text: str
    is_block: bool = False


def new_entry(fact: Fact, front: Front, related: Sequence[str]) -> str:
    """Render a new entry, using the template of its type."""
    body = fact.text
    home = _NEW_HEADING.get(fact.kind)
    sections: Mapping[str, str] | str = body
    if _first_section(body) is not None:
        sections = _by_heading(body)
    elif home:
        sections = {home: body}
    said = statements(body)
    known = bool(said) and normalise(said[0]) == normalise(fact.summary)
    return render_entry(
        fact.kind,
        fact.subject,
        front=front,
        sections=sections,
        tags=fact.tags,
        related=related,
        summary="" if known else fact.summary,
    )


def grown_entry(
    text: str,
    fact: Fact,
    day: date,
    *,
    related: Sequence[str] = (),
    add: bool = True,
    correct: bool = True,
    head: bool = True,
    likeness: float = STRICT,
) -> str:
    """Extend a known entry with what a fact, which may be several statements, adds to it.

    Args:
        text: The whole entry.
        fact: What is known about its subject.
        day: The day that was said.
        related: Names of existing entries to link.
        add: Add statements that it lacks.
        correct: Replace values that are no longer true.
        head: Add tags and links to the frontmatter.
        likeness: The share of a statement's words that must appear, in order, in one of the entry's
            for it to count as known.
    """
    above, body = _split_body(text)
    for item in _items(fact.text):
        place = None if item.is_block else _line_with_key(body, item.text)
        if place is not None:
            body = _with_value(body, place, item.text, day) if correct else body
        elif add and not _has(body, item, likeness):
            body = _with_statement(body, item, fact.kind, day)
    grown = above + body
    if not head:
        return grown
    return _with_front(grown, _front_changes(grown, fact, related, correct=correct))


def _split_body(text: str) -> tuple[str, str]:
    body = body_of(text)
    return text[: len(text) - len(body)], body


def is_said(statement: str, known: Sequence[str], likeness: float = STRICT) -> bool:
    """Return whether one of the `known` statements says the same."""
    words = normalise(statement).split()
    return any(_contains_words(words, normalise(other).split(), likeness) for other in known)


def _contains_words(words: list[str], other: list[str], likeness: float) -> bool:
    """Return whether `other` has the `words` in order, with all numbers and the same denials."""
    content_words = {word for word in words if any(char.isdigit() for char in word)}
    denials = of_all("deny").words
    if not words or content_words - set(other) or (denials & set(words)) != (denials & set(other)):
        return False
    return _common_length(words, other) >= likeness * len(words)


def _common_length(words: list[str], other: list[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for word in words:
        above = row
        row = [0]
        for place, candidate in enumerate(other):
            same = above[place] + 1 if word == candidate else 0
            row.append(max(same, above[place + 1], row[place]))
    return row[-1]


def _has(body: str, item: BodyItem, likeness: float) -> bool:
    if item.is_block:
        return item.text in body
    return is_said(item.text, statements(body), likeness)


def _with_value(body: str, place: int, statement: str, day: date) -> str:
    """Replace the value in the line at `place` with that of a ``key: value`` statement."""
    lines = split_lines(body)
    key, value = key_and_value(statement)
    _, before = key_and_value(plain_fact(lines[place]))
    after = _new_value(before, value)
    if after == before:
        return body
    start = lines[place].rindex(before)
    lines[place] = lines[place][:start] + after + lines[place][start + len(before) :]
    changed = "".join(lines)
    if after != value:  # a list has grown; nothing that was true has ended
        return changed
    note = f"- {day.isoformat()}: {key}: {value} (before: {before})"
    return append_to_section(changed, EVOLUTION, note)


def changed_value(text: str, statement: str) -> tuple[str, str] | None:
    """Return the only line with another value for a statement's key, and its new text."""
    place = _line_with_key(text, statement)
    if place is None:
        return None
    line = plain_fact(split_lines(text)[place])
    key, before = key_and_value(line)
    after = _new_value(before, key_and_value(statement)[1])
    return (line, line[: line.rindex(before)] + after) if after != before and key else None


def _new_value(before: str, value: str) -> str:
    """Return the current value: lists are extended, everything else is replaced."""
    if normalise(before) == normalise(value):
        return before
    old, new = _split_list(before), _split_list(value)
    if len(old) == 1 and len(new) == 1:
        return value
    known = {normalise(each) for each in old}
    fresh = [each for each in new if normalise(each) not in known]
    return ", ".join([before, *fresh])


def _split_list(value: str) -> list[str]:
    parts = re.split(r",[ \t]+(?:and[ \t]+)?|[ \t]+and[ \t]+", value.rstrip("."))
    return [part.strip() for part in parts if part.strip()]


def _line_with_key(body: str, statement: str) -> int | None:
    """Return the only line that has a value for the key of a ``key: value`` statement."""
    wanted, value = key_and_value(statement)
    if not value:
        return None
    found = []
    for place, _, line in _current_lines(body):
        key, value = key_and_value(plain_fact(line))
        if value and normalise(key) == normalise(wanted):
            found.append(place)
    return found[0] if len(found) == 1 else None


def _current_lines(body: str) -> Iterator[tuple[int, str, str]]:
    """Yield the lines outside of Evolution and of code, each with its index and heading."""
    heading, code = "", read_body(body).fenced
    titles = {each.line: each.title.casefold() for each in read_body(body).parts}
    for place, line in enumerate(split_lines(body)):
        heading = titles.get(place, heading)
        if heading != _PAST and place not in code:
            yield place, heading, line


def key_and_value(statement: str) -> tuple[str, str]:
    """Split ``Favorite color: blue``; the value is empty if the statement has another form."""
    match = _KEYED.match(statement)
    return (match["key"], match["value"].strip()) if match else (statement, "")


def _with_statement(body: str, item: BodyItem, type_: str, day: date) -> str:
    """Add a statement where it belongs, below existing text."""
    line = item.text if item.is_block else f"- {item.text}"
    heading = item.heading
    if type_ == "decision" and heading.casefold() in {"", "decision", EVOLUTION.casefold()}:
        # A decision stays as it was decided; later statements are dated.
        dated = line if item.is_block else f"- {day.isoformat()}: {item.text}"
        return append_to_section(body, EVOLUTION, dated)
    heading = heading or _HEADING.get(type_, "")
    return append_to_section(body, heading, line, type_) if heading else _below_lead(body, line)


def _below_lead(body: str, line: str) -> str:
    """Add a line at the end of the text before the first section."""
    section = _first_section(body)
    end = len(body) if section is None else read_body(body).line_starts[section.line]
    lead, rest = body[:end], body[end:]
    newline = "\r\n" if "\r\n" in body else "\n"
    kept = lead.rstrip()
    last = kept.rsplit("\n", 1)[-1]
    gap = newline if bullet_of(last) else newline * 2
    return f"{kept}{gap if kept else ''}{line}{newline}{newline if rest else ''}{rest}"


def _first_section(body: str) -> Part | None:
    return next((each for each in read_body(body).parts if each.level > 1), None)


def _items(body: str) -> Iterator[BodyItem]:
    heading = ""
    for (kind, _), group in groupby(_classified(body), itemgetter(0)):
        lines = [line for _, line in group]
        if kind == "heading":
            level, title = heading_of(lines[-1]) or (0, "")
            heading = title if level > 1 else ""
        elif kind == "block":
            yield BodyItem(heading, "\n".join(lines), is_block=True)
        elif kind == "text":
            yield BodyItem(heading, clean_line(" ".join(map(str.strip, lines))))
        elif kind == "item":
            yield from (BodyItem(heading, plain_fact(line)) for line in lines)


def _classified(body: str) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield each line with its kind and paragraph number; runs of a kind belong together."""
    fenced = read_body(body).fenced
    paragraph = 0
    for number, line in enumerate(body.split("\n")):
        kind = "block" if number in fenced else _kind_of(line)
        # A line of text starting with a tag starts a paragraph; a comment in code doesn't.
        paragraph += kind == "text" and line.startswith("#")
        yield (kind, paragraph), line.removesuffix("\r")


def _kind_of(line: str) -> str:
    if not line.strip():
        return "blank"
    if line.lstrip().startswith("|"):
        return "block"
    if heading_of(line):
        return "heading"
    return "item" if bullet_of(line) else "text"


def _by_heading(body: str) -> dict[str, str]:
    """Split a body by its headings; text before the first is under ``""``."""
    lines = split_lines(body)
    found = [each for each in read_body(body).parts if each.level == 2]  # the level of sections
    ends = [*(each.line for each in found), len(lines)]
    texts = {"": "".join(lines[: ends[0]])}
    for each, end in zip(found, ends[1:], strict=True):
        texts[each.title] = texts.get(each.title, "") + "".join(lines[each.first : end])
    return {name: text.strip("\r\n") for name, text in texts.items() if text.strip()}


def _front_changes(
    text: str, fact: Fact, related: Sequence[str], *, correct: bool
) -> dict[str, Any]:
    """Return the frontmatter changes: new tags and links, and a corrected value in the summary."""
    values = frontmatter.parse(text).values
    if not values:
        return {}
    changes = frontmatter.with_more(values, "tags", fact.tags)
    changes |= frontmatter.with_more(values, "related", related)
    summary = values.get("summary")
    if correct and isinstance(summary, str):
        changes |= _corrected_summary(summary, fact)
    return changes


def _corrected_summary(summary: str, fact: Fact) -> dict[str, str]:
    """Return the summary with a value that a fact corrects."""
    found = {}
    for item in _items(fact.text):
        if _line_with_key(summary, item.text) is not None:
            key, before = key_and_value(summary.strip())
            value = _new_value(before, key_and_value(item.text)[1])
            if value != before:
                found["summary"] = f"{key}: {value}"
    return found


def _with_front(text: str, changes: Mapping[str, Any]) -> str:
    try:
        return frontmatter.set_keys(text, changes) if changes else text
    except UnreadableError:
        return text  # YAML that can't be changed in place is left alone


# Merging entries ----------------------------------------------------------------------------------


def replace_body(entry: Entry, body: str) -> str:
    """Return the text of an entry with another body."""
    return entry.text.removesuffix(entry.body) + body


def evolution_of(text: str) -> list[str]:
    """Return the non-blank lines of an entry's Evolution section."""
    section = section_text(text, EVOLUTION) or ""
    return [line.rstrip() for line in section.splitlines() if line.strip()]


def merged_head(entry: Entry, target: Entry) -> str:
    """Return the text of `target` with what only the frontmatter of `entry` has."""
    if not target.frontmatter:
        return target.text
    front = split_front(entry.text)
    lines: list[str] = []
    changes: dict[str, Any] = {}
    for key, value in entry.frontmatter.items():
        if key in _RESERVED or value in _EMPTY or value == target.frontmatter.get(key):
            continue
        if (joined := _joined_list(key, value, target)) is not None:
            changes |= joined
        elif key not in target.frontmatter:
            unit = front.units.get(key) if front else None
            lines += unit or [f"{key}: {value_text(value)}\n"]
        elif target.frontmatter[key] in _EMPTY:
            changes[key] = value
        else:
            both = f"{short_name(entry.path)} and {short_name(target.path)}"
            raise UsageError(
                f"{both} have another {key!r} each.", "Only their owner can say which one holds."
            )
    if target.created and entry.created:
        changes["created"] = min(entry.created, target.created)
    parts = frontmatter.split(frontmatter.set_keys(target.text, changes).encode())
    return parts.with_head(parts.head.decode() + "".join(lines)).join().decode()


def _joined_list(key: str, value: Any, target: Entry) -> dict[str, Any] | None:
    """Return the change that adds list items to `target`, or None if either isn't a list."""
    listed = "tags" if key == "tag" else key
    place, _ = frontmatter.items(target.frontmatter, listed)
    lists = _is_list(value) and _is_list(target.frontmatter.get(key))
    if listed not in _LISTS or place not in target.frontmatter or not lists:
        return None
    names = {target.path, short_name(target.path), target.slug}
    others = frontmatter.items({key: value}, listed)[1]
    added = [item for item in others if key != "related" or item.strip("[]") not in names]
    return frontmatter.with_more(target.frontmatter, listed, added)


def merged_body(text: str, other: str, target: Entry, day: date) -> str:
    """Return the text of `target` with everything that `other` adds; nothing is lost."""
    body = body_of(other)
    rest = _without_evolution(body)
    fact = Fact(below_title(rest), target.type or "topic", target.title)
    grown = grown_entry(text, fact, day, correct=False, head=False)
    said = statements(grown)
    for statement in statements(other.removesuffix(body) + rest):
        if not is_said(statement, said):
            # Both have a value for the same key, and a merge can't know which one holds.
            grown = append_to_section(grown, "Notes", f"- {statement}")
    known = evolution_of(grown)
    for line in evolution_of(body):
        if line not in known:
            grown = append_to_section(grown, EVOLUTION, line)
    return grown


def former_names(old: Entry, new: Entry) -> list[str]:
    """Return the names of an entry that don't find its successor."""
    known = {fold(name) for name in (new.title, new.slug, *new.aliases)}
    names: dict[str, str] = {}
    for name in (old.title, old.slug, *old.aliases):
        if fold(name) not in known:
            names.setdefault(fold(name), name)
    return list(names.values())


def _without_evolution(body: str) -> str:
    lines = split_lines(body)
    for each in reversed(read_body(body).parts):
        if each.title.casefold() == _PAST:
            del lines[each.line : each.stop]
    return "".join(lines)


def below_title(body: str) -> str:
    """Strip the heading that a body starts with."""
    first, _, rest = body.lstrip().partition("\n")
    return rest if re.match(r"#[ \t]", first) else body


def _is_list(value: Any) -> bool:
    return isinstance(value, str | None) or (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    )


# Outdated statements ------------------------------------------------------------------------------


def current_statements(text: str) -> list[str]:
    """Return the current statements of a document, without its Evolution."""
    items = (item for item in _items(body_of(text)) if item.heading.casefold() != _PAST)
    return [item.text for item in items if not item.is_block]


def content_words(text: str) -> list[str]:
    """Return the stems that tell what a statement is about, or else its words."""
    return significant_terms(text) or normalise(text).split()


def find_statement(wanted: str, known: Sequence[str]) -> str | None:
    """Return the one statement that another, or part of it, refers to; None if not unique."""
    words = set(content_words(wanted))
    if not words:
        return None
    numbers = {word for word in words if any(char.isdigit() for char in word)}
    minimum = len(words) * (_MIN_SHARE if len(words) >= _MIN_WORDS_FOR_SHARE else 1.0)

    def likeness(statement: str) -> float:
        said = set(content_words(statement))
        shared = len(words & said)
        is_like = shared >= minimum and numbers <= said
        return shared / len(words) + shared / len(words | said) if is_like else 0.0

    found = sorted(((likeness(each), each) for each in dict.fromkeys(known)), reverse=True)
    (best, statement), (second, _) = [*found, (0.0, ""), (0.0, "")][:2]
    return statement if best > second else None


def sentence_of(line: str, wanted: str) -> str:
    """Return the sentence of a line that a statement refers to, or the whole line."""
    parts = sentences(line, edited=True)
    return (find_statement(wanted, parts) if len(parts) > 1 else None) or line


def changed_words(old: str, new: str) -> tuple[str, str]:
    """Return the differing middle of two statements, e.g. Thursday and Friday."""
    was, now = old.rstrip(".!").split(), new.rstrip(".!").split()
    start = 0
    while start < min(len(was), len(now)) and was[start].casefold() == now[start].casefold():
        start += 1
    end = 0
    while (
        end < min(len(was), len(now)) - start
        and was[-1 - end].casefold() == now[-1 - end].casefold()
    ):
        end += 1
    return " ".join(was[start : len(was) - end]), " ".join(now[start : len(now) - end])


def with_value(line: str, part: str, new: str) -> str | None:
    """Return a line with only a value replaced by that of a statement.

    `part` is the part of the line that the statement replaces. Return None if the value can't be
    identified, or if more than it would be removed.
    """
    for old in (sentence_of(line, part), part):
        was, now = changed_words(old, new)
        kept = old.replace(was, " ", 1) if was else old
        is_value = now and len(was.split()) <= len(now.split()) + 1 and significant_terms(kept)
        places = re.findall(rf"(?<!\w){re.escape(was or old.rstrip('.!'))}(?!\w)", line)
        if is_value and len(places) == 1:
            return line.replace(places[0], now if was else new.rstrip(".!"), 1)
    return None


def _position_of(body: str, statement: str) -> tuple[str, int | None]:
    """Return the heading and the index of a statement's line; None if only in the Evolution."""
    for number, heading, line in _current_lines(body):
        if statement in plain_fact(line) and not heading_of(line):
            return heading, number
    return "", None


def superseded(text: str, old: str, fact: Fact, day: date) -> str:
    """Return an entry in which a fact has replaced a statement.

    The old statement moves into the Evolution. A decision stays as it was decided, unless its whole
    line is replaced.
    """
    above, body = _split_body(text)
    new = plain_fact(next(filter(str.strip, fact.text.splitlines()), ""))
    lines = split_lines(body)
    heading, place = _position_of(body, old)
    if place is None:
        return text
    is_whole = plain_fact(lines[place]) == plain_fact(fact.replaces)
    was = plain_fact(lines[place]) if is_whole else sentence_of(old, fact.replaces)
    if is_whole or not heading == fact.kind == "decision":
        stop = "." if was.endswith(".") and not new.endswith((".", "!", "?")) else ""
        lines[place] = lines[place].replace(was, f"{new}{stop}", 1)
    # A line stated verbatim stays verbatim: the old text, and until when it held.
    note = f", until then: {was}" if is_whole else f": {new.rstrip('.')} (before: {was})"
    grown = above + append_to_section("".join(lines), EVOLUTION, f"- {day.isoformat()}{note}")
    summary = frontmatter.parse(text).values.get("summary")
    if isinstance(summary, str) and find_statement(was, [summary]):
        return _with_front(grown, {"summary": new})
    return grown
