"""What Dream can do to files: each operation works out the new contents, and writes nothing.

Operations are functions of the desk alone, so they can be done again on files that somebody else
has changed meanwhile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError, UsageError
from kbtui.knowledge import frontmatter
from kbtui.knowledge.repair import retargeted
from kbtui.knowledge.retarget import new_target
from kbtui.knowledge.statements import normalise, plain_fact
from kbtui.memory.edits.memory_file import apply_facts
from kbtui.memory.edits.memory_review import is_statement, line_key, split_lines
from kbtui.memory.edits.merging import grown_entry, new_entry
from kbtui.memory.edits.sections import section_of
from kbtui.text import clean_line, shorten
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from kbtui.knowledge.links import Link
    from kbtui.memory.dream.overlay import Edits
    from kbtui.memory.dream.working_copy import Desk
    from kbtui.memory.records.extraction import Draft

SOUL = "SOUL.md"
_STYLE = "Style"
_KEYED = re.compile(r"^(?P<key>[^\s:][^:\n]{0,59}?):[ \t]+\S")
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing to do.

    Attributes:
        name: The tool that asked for it.
        work: Works out the new content of each file; None deletes one.
        optional: Left out, instead of proposed, where it would need a person's consent.
    """

    name: str
    work: Callable[[Desk], Edits]
    optional: bool = False


def edit_file(ref: str, old: str, new: str) -> Operation:
    """Replace a passage that stands in a file exactly once."""

    def work(desk: Desk) -> Edits:
        path = desk.names.file(ref)
        text = desk.view.text(path)
        if text is None:
            raise NotFoundError(f"There is no {path} yet.", "Use add_line.")
        return {path: desk.view.encoded(path, _replaced(text, old, new, path))}

    return Operation("edit_file", work)


def add_line(ref: str, line: str, section: str, day: date) -> Operation:
    """Add a fact to a file, under a heading, where it doesn't say it yet."""
    return Operation("add_line", lambda desk: _with_line(desk, ref, line, section, day))


def move_line(ref: str, line: str, to: str, section: str, day: date) -> Operation:
    """Move a fact to the file where it belongs."""

    def work(desk: Desk) -> Edits:
        path, target = desk.names.file(ref), desk.names.file(to)
        if path == target:
            raise UsageError(f"{short_name(path)} is where it stands already.")
        text = desk.view.text(path) or ""
        lines = split_lines(text)
        key = line_key(line)
        places = [n for n, each in enumerate(lines) if is_statement(each) and line_key(each) == key]
        if len(places) != 1:
            raise NotFoundError(
                f"{shorten(line, _SHOWN)!r} is {len(places)} times in {short_name(path)}.",
                "Give one whole line of it.",
            )
        fact = plain_fact(lines.pop(places[0]))
        moved = _with_line(desk, target, fact, section, day)
        return {path: desk.view.encoded(path, "".join(lines)), **moved}

    return Operation("move_line", work)


def create_entry(draft: Draft, day: date) -> list[Operation]:
    """Make an entry, or where the subject has one let that grow.

    Adding, correcting and linking are operations of their own, so that a correction of the user's
    line can wait for the user while the rest is done.
    """

    def make(desk: Desk) -> Edits:
        path = desk.names.subject(draft)
        if path is None:
            path = desk.names.free_path(draft, day)
            return {path: new_entry(draft, day, _related(desk, draft, path)).encode()}
        return _grown(desk, path, correct=False, head=False)

    def _grown(desk: Desk, path: str, *, correct: bool, head: bool) -> Edits:
        grown = grown_entry(
            desk.view.text(path) or "",
            draft,
            day,
            related=_related(desk, draft, path),
            add=not correct and not head,
            correct=correct,
            head=head,
        )
        return {path: desk.view.encoded(path, grown)}

    def correct(desk: Desk) -> Edits:
        path = desk.names.subject(draft)
        return _grown(desk, path, correct=True, head=False) if path else {}

    def link(desk: Desk) -> Edits:
        path = desk.names.subject(draft)
        return _grown(desk, path, correct=False, head=True) if path else {}

    return [
        Operation("create_entry", make),
        Operation("create_entry", correct),
        Operation("create_entry", link, optional=True),
    ]


def set_summary(ref: str, summary: str) -> Operation:
    """Give an entry another line in the catalogue."""

    def work(desk: Desk) -> Edits:
        path = desk.names.entry(ref)
        text = desk.view.text(path) or ""
        if not frontmatter.parse(text).values:
            raise UsageError(
                f"{short_name(path)} has no frontmatter, and its owner may want none.",
                "Its summary is its first sentence.",
            )
        changed = frontmatter.set_keys(text, {"summary": clean_line(summary)})
        return {path: desk.view.encoded(path, changed)}

    return Operation("set_summary", work)


def fix_link(ref: str, target: str, to: str) -> Operation:
    """Lead the broken links of a file with one target to an entry."""

    def work(desk: Desk) -> Edits:
        path, entry = desk.names.file(ref), desk.names.parsed(desk.names.entry(to))
        index = desk.links.index()
        wanted = clean_line(target).strip("[]").partition("|")[0].partition("#")[0].strip()

        def decide(link: Link) -> str | None:
            if link.target != wanted or index.find(link, path) is not None:
                return None
            how = "path" if "/" in link.target else "name"
            return new_target(link, how, path, entry, index)

        data = desk.view.data(path)
        if data is None:
            raise NotFoundError(f"There is no {path}.")
        fixed = retargeted(data, decide)
        if fixed == data:
            raise NotFoundError(f"{short_name(path)} has no broken link to {wanted!r}.")
        desk.links.repaired.add(path)
        return {path: fixed}

    return Operation("fix_link", work)


def _replaced(whole: str, old: str, new: str, path: str) -> str:
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
        # A whole line that goes takes its line break with it.
        return whole.replace(f"{old}\n", "", 1)
    return whole.replace(old, new, 1)


def _with_line(desk: Desk, ref: str, line: str, section: str, day: date) -> Edits:
    path = desk.names.file(ref)
    text = desk.view.text(path)
    fact, heading = plain_fact(line), section.strip().lstrip("#").strip()
    if not normalise(fact):
        raise UsageError("The line says nothing.")
    if desk.names.is_note(path):
        default = (lambda _fact: _STYLE) if path == SOUL else section_of
        _check_key(text or "", fact, path)
        choose = (lambda _fact: heading) if heading else default
        grown = apply_facts(text or "", [fact], (), section_of=choose).text
    else:
        body = f"## {heading}\n- {fact}" if heading else f"- {fact}"
        draft = desk.names.draft_for(path, body)
        grown = grown_entry(text or "", draft, day, head=False)
    return {path: desk.view.encoded(path, grown)}


def _check_key(text: str, fact: str, path: str) -> None:
    """Refuse a second value beside the one that a file gives to the same name."""
    match = _KEYED.match(fact)
    if match is None:
        return
    wanted = normalise(match["key"])
    for line in filter(is_statement, split_lines(text)):
        known = plain_fact(line)
        other = _KEYED.match(known)
        if other and normalise(other["key"]) == wanted and normalise(known) != normalise(fact):
            raise UsageError(
                f"{short_name(path)} says {shorten(known, _SHOWN)!r}.",
                "If that is no longer true, change that line with edit_file.",
            )


def _related(desk: Desk, draft: Draft, path: str) -> list[str]:
    """The entries that a draft names, as far as they exist."""
    found: dict[str, None] = {}
    for name in draft.related:
        other = desk.names.named(name)
        if other is not None and other != path:
            found.setdefault(short_name(other))
    return list(found)
