"""The operations on files: each computes new contents, and writes nothing.

An operation is a function of the working copy alone, so it can be repeated on files that somebody
else has changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from kbtui.errors import NotFoundError, UsageError
from kbtui.knowledge.entries.entry import EVOLUTION, append_to_section
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.facts import Fact, normalise, plain_fact
from kbtui.knowledge.format.lines import split_lines
from kbtui.knowledge.library.overlay import Edits, with_aliases
from kbtui.memory.edits.entry_updates import (
    STRICT,
    former_names,
    grown_entry,
    key_and_value,
    merged_body,
    merged_head,
    new_entry,
    replace_body,
    superseded,
)
from kbtui.memory.edits.memory_file import (
    MEMORY,
    is_statement,
    line_key,
    with_correction,
    with_facts,
)
from kbtui.memory.edits.working_copy import NOTES, Operation, WorkingCopy
from kbtui.text import clean_line, shorten
from kbtui.workspace.layout import short_name

SOUL = "SOUL.md"
_STYLE = "Style"
_SHOWN = 80


# Lines --------------------------------------------------------------------------------------------


def add_line(ref: str, line: str, section: str, day: date) -> Operation:
    """Add a fact to a file, under a heading, unless the file has it."""
    return Operation(lambda copy: _with_line(copy, ref, line, section, day))


def move_line(ref: str, line: str, to: str, section: str, day: date) -> Operation:
    """Move a fact to the file where it belongs."""

    def work(copy: WorkingCopy) -> Edits:
        path, target = copy.file(ref), copy.file(to)
        if path == target:
            raise UsageError(f"{short_name(path)} is where it stands already.")
        fact, rest = _extract_line(copy, path, line)
        moved = _with_line(copy, target, fact, section, day)
        return {path: copy.files.encoded(path, rest), **moved}

    return Operation(work)


def without_line(ref: str, line: str) -> Operation:
    """Remove one line from a file."""

    def work(copy: WorkingCopy) -> Edits:
        path = copy.file(ref)
        return copy.files.edit(path, _extract_line(copy, path, line)[1])

    return Operation(work)


def correct_memory(old: str, new: str) -> Operation:
    """Replace a line of MEMORY.md, or part of one; an empty `new` removes it."""
    return _edit_text(MEMORY, lambda text: with_correction(text, old, new))


def remember(line: str) -> Operation:
    """Add a fact to MEMORY.md under the heading where it belongs."""
    return _edit_text(MEMORY, lambda text: with_facts(text, [line]))


def note(path: str, line: str) -> Operation:
    """Add a fact to a daily note, unless the note has it."""
    return _edit_text(path, lambda text: with_facts(text, [line], "Noted"))


def _edit_text(path: str, change: Callable[[str], str]) -> Operation:
    return Operation(lambda copy: copy.files.edit(path, change(copy.files.text(path) or "")))


# Facts --------------------------------------------------------------------------------------------


def keep_in_entry(fact: Fact, day: date, likeness: float = STRICT) -> tuple[Operation, ...]:
    """Return the operations that make an entry of a fact, or extend the subject's entry.

    Adding, correcting and linking are separate operations, so that a correction of the user's line
    can wait for the user while the rest is done.
    """

    def extend(*, add: bool = False, correct: bool = False, head: bool = False) -> Operation:
        def work(copy: WorkingCopy) -> Edits:
            path = copy.subject(fact)
            if path is None:
                return create(copy) if add else {}
            grown = grown_entry(
                copy.files.text(path) or "",
                fact,
                day,
                related=_related(copy, fact, path),
                add=add,
                correct=correct,
                head=head,
                likeness=likeness,
            )
            return copy.files.edit(path, grown)

        return Operation(work, optional=head)

    def create(copy: WorkingCopy) -> Edits:
        path = copy.files.free_path(fact.kind, fact.subject, day)
        text = new_entry(fact, copy.files.habits().front(day), _related(copy, fact, path))
        return {path: text.encode()}

    summarised = extend(correct=True, head=True)
    return extend(add=True), extend(correct=True), summarised, extend(head=True)


def supersede(ref: str, old: str, fact: Fact, day: date) -> Operation:
    """Replace a statement of an entry with a fact, moving it into the Evolution."""

    def work(copy: WorkingCopy) -> Edits:
        path = copy.file(ref)
        text = superseded(copy.files.text(path) or "", old, fact, day)
        return copy.files.edit(path, text)

    return Operation(work)


def supersede_decision(ref: str, fact: Fact, day: date) -> Operation:
    """Record in a decision which other one replaced it, and vice versa."""

    def work(copy: WorkingCopy) -> Edits:
        old, new = copy.entry(ref), copy.subject(fact)
        if new is None or new == old.path:
            return {}
        line = f"{day.isoformat()}: Replaced by [[{short_name(new)}]]"
        back = f"{day.isoformat()}: Replaces [[{short_name(old.path)}]]"
        return {
            old.path: _evolve(copy, old.path, line),
            new: _evolve(copy, new, back),
        }

    return Operation(work)


# Entries ------------------------------------------------------------------------------------------


def set_summary(ref: str, summary: str) -> Operation:
    """Set an entry's line in the catalogue."""

    def work(copy: WorkingCopy) -> Edits:
        entry = copy.entry(ref)
        if not entry.frontmatter:
            raise UsageError(
                f"{short_name(entry.path)} has no frontmatter, and its owner may want none.",
                "Its summary is its first sentence.",
            )
        changed = frontmatter.set_keys(entry.text, {"summary": clean_line(summary)})
        return copy.files.edit(entry.path, changed)

    return Operation(work)


def fix_link(ref: str, target: str, to: str) -> Operation:
    """Point the broken links of a file that have one target to an entry."""

    def work(copy: WorkingCopy) -> Edits:
        path, entry = copy.file(ref), copy.entry(to)
        wanted = clean_line(target).strip("[]").partition("|")[0].partition("#")[0].strip()
        fixed = copy.files.linked(path, wanted, entry.path)
        if fixed is None:
            raise NotFoundError(f"{short_name(path)} has no broken link to {wanted!r}.")
        return {path: fixed}

    return Operation(work)


def link_entries(ref: str, to: str, day: date) -> Operation:
    """Add an entry to those related to another; optional, so nobody is asked."""

    def work(copy: WorkingCopy) -> Edits:
        entry, other = copy.entry(ref), copy.entry(to)
        if entry.path == other.path:
            raise UsageError("An entry isn't related to itself.")
        fact = Fact("", entry.type or "topic", entry.title)
        related = [short_name(other.path)]
        grown = grown_entry(entry.text, fact, day, related=related, add=False, correct=False)
        return copy.files.edit(entry.path, grown)

    return Operation(work, optional=True)


def rename_entry(ref: str, new: str) -> Operation:
    """Rename an entry; the old name becomes an alias."""

    def work(copy: WorkingCopy) -> Edits:
        entry = copy.entry(ref)
        name = copy.files.new_name(entry, new)
        if name.path == entry.path and name.title is None:
            return {}
        return copy.files.renamed(entry.path, name)

    return Operation(work, ref=ref)


def merge_entries(ref: str, into: str, day: date) -> Operation:
    """Move everything an entry says into another, redirect its links, and delete it."""

    def work(copy: WorkingCopy) -> Edits:
        entry, target = copy.entry(ref), copy.entry(into)
        if entry.path == target.path:
            raise UsageError("An entry can't be merged into itself.")
        apart = copy.files.unlinked
        body = apart(target.path, entry.body.encode(), entry.path).decode()
        text = merged_body(merged_head(entry, target), replace_body(entry, body), target, day)
        data = apart(entry.path, text.encode(), target.path)
        data = with_aliases(data, former_names(entry, target), target)
        whole = copy.files.encoded(target.path, data.decode())
        return copy.files.merged(entry.path, target.path, whole)

    return Operation(work)


def delete_entry(ref: str) -> Operation:
    """Delete an entry; links to it become plain text."""
    return Operation(lambda copy: copy.files.removed(copy.entry(ref).path), ref=ref)


def replaced(whole: str, old: str, new: str, path: str) -> str:
    """Return a text with one passage replaced; a removed whole line takes its line break along.

    Raises:
        NotFoundError: The passage isn't there.
        UsageError: It occurs more than once.
    """
    count = whole.count(old) if old else 0
    if not count:
        raise NotFoundError(
            f"{short_name(path)} doesn't contain {shorten(old, _SHOWN)!r}.",
            "Read it again and copy the passage exactly.",
        )
    if count > 1:
        raise UsageError(
            f"{shorten(old, _SHOWN)!r} is in {short_name(path)} {count} times.",
            "Give more of the text around it.",
        )
    if not new and f"{old}\n" in whole and (whole.startswith(old) or f"\n{old}\n" in whole):
        return whole.replace(f"{old}\n", "", 1)
    return whole.replace(old, new, 1)


def _extract_line(copy: WorkingCopy, path: str, line: str) -> tuple[str, str]:
    """Return the one line of a file that states a fact, and the file without it."""
    lines = split_lines(copy.files.text(path) or "")
    key = line_key(line)
    places = [n for n, each in enumerate(lines) if is_statement(each) and line_key(each) == key]
    if len(places) != 1:
        raise NotFoundError(
            f"{shorten(line, _SHOWN)!r} is {len(places)} times in {short_name(path)}.",
            "Give one whole line of it.",
        )
    fact = plain_fact(lines.pop(places[0]))
    return fact, "".join(lines)


def _with_line(copy: WorkingCopy, ref: str, line: str, section: str, day: date) -> Edits:
    path = copy.file(ref)
    text = copy.files.text(path)
    said, heading = plain_fact(line), section.strip().lstrip("#").strip()
    if not normalise(said):
        raise UsageError("The line says nothing.")
    if path in NOTES:
        _check_single_value(text or "", said, path)
        grown = with_facts(text or "", [said], heading or (_STYLE if path == SOUL else ""))
    else:
        body = f"## {heading}\n- {said}" if heading else f"- {said}"
        entry = copy.files.parsed(path)
        grown = grown_entry(
            text or "", Fact(body, entry.type or "topic", entry.title), day, head=False
        )
    return copy.files.edit(path, grown)


def _evolve(copy: WorkingCopy, path: str, line: str) -> bytes:
    text = copy.files.text(path) or ""
    if line in text:
        return copy.files.data(path) or b""
    return copy.files.encoded(path, append_to_section(text, EVOLUTION, f"- {line}"))


def _check_single_value(text: str, fact: str, path: str) -> None:
    """Reject a second value for a key of the file."""
    name, value = key_and_value(fact)
    if not value:
        return
    for line in filter(is_statement, split_lines(text)):
        other, its = key_and_value(known := plain_fact(line))
        if its and normalise(other) == normalise(name) and normalise(known) != normalise(fact):
            raise UsageError(
                f"{short_name(path)} says {shorten(known, _SHOWN)!r}.",
                "If that is no longer true, change that line with edit_file.",
            )


def _related(copy: WorkingCopy, fact: Fact, path: str) -> list[str]:
    found: dict[str, None] = {}
    for name in fact.related:
        other = copy.named(name)
        if other is not None and other != path:
            found.setdefault(short_name(other))
    habits = copy.files.habits()
    return [habits.reference(name) for name in found]
