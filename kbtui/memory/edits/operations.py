"""The table of operations: every edit that tools, Dream and the keeping of facts can make.

Each is a name, arguments, and a function of a working copy that computes new contents and writes
nothing, so it can be repeated on files that somebody else has changed meanwhile. Calling a row with
its arguments returns the `Operation`, which `WorkingCopy.perform` puts in place or lets wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Concatenate, Generic, ParamSpec

from kbtui.errors import NotFoundError, UsageError
from kbtui.knowledge.entries.entry import EVOLUTION, Entry, append_to_section, parse_entry
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import body_of
from kbtui.knowledge.format.facts import Fact, normalise, plain_fact, statements
from kbtui.knowledge.format.lines import split_lines
from kbtui.knowledge.library.library import Content
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
    is_statement,
    line_key,
    with_correction,
    with_facts,
)
from kbtui.memory.edits.subjects import MOST_RELATED, named_entries
from kbtui.memory.edits.working_copy import NOTES, Operation, WorkingCopy
from kbtui.text import clean_line, shorten
from kbtui.workspace.layout import MEMORY, short_name

P = ParamSpec("P")
SOUL = "SOUL.md"
_STYLE = "Style"
_SHOWN = 80
_BULLETS = ("- ", "* ")


@dataclass(frozen=True, slots=True)
class Row(Generic[P]):
    """A row of the table; `optional` is as in `Operation`."""

    name: str
    arguments: tuple[str, ...]
    perform: Callable[Concatenate[WorkingCopy, P], Edits]
    optional: bool = False

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> Operation:
        """Return the operation with these arguments."""
        return Operation(self.name, self.perform, (arguments, named), self.optional)


OPERATIONS: dict[str, Row[...]] = {}
"""The table of operations, by name."""


def _operation(perform: Callable[Concatenate[WorkingCopy, P], Edits]) -> Row[P]:
    """Make a function a row of the table."""
    code = perform.__code__
    arguments = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    row = Row(perform.__name__, arguments, perform)
    OPERATIONS[row.name] = row
    return row


def _upkeep(perform: Callable[Concatenate[WorkingCopy, P], Edits]) -> Row[P]:
    """Make a function a row of the table, for operations that are optional."""
    row = replace(_operation(perform), optional=True)
    OPERATIONS[row.name] = row
    return row


# Passages -----------------------------------------------------------------------------------------


@_operation
def edit_entry(
    copy: WorkingCopy,
    path: str,
    *,
    old: str = "",
    new: str = "",
    append: str = "",
    section: str = "",
    body: str = "",
    summary: str = "",
    lists: Mapping[str, tuple[str, ...]] | None = None,
) -> Edits:
    """Edit an entry, or one of the notes above them, which is created if missing.

    `new` replaces the passage `old`, which occurs once; `append` is added at the end or under the
    heading `section`, created if missing; `body` is the new text below the frontmatter; `summary`
    is the line for the catalogue, and `lists` are items to add to lists of the frontmatter, by key.
    """
    path = copy.file(path)
    text = copy.files.text(path)
    if text is None and path not in NOTES:
        copy.files.parsed(path)  # raises that it isn't there
    before = text if text is not None else "# Memory\n" if path == MEMORY else ""
    edited, below = before, body_of(before)
    if old:
        above = before.removesuffix(below)
        whole, kept = (below, above) if below.count(old) == 1 else (before, "")
        edited = kept + _replaced(whole, old, new, path)
    if body:
        edited = edited.removesuffix(below) + body.strip("\n") + "\n"
    if append:
        known = copy.files.entry(path)
        edited = _appended(edited, append.strip("\n"), section, known.type if known else None)
    if summary or lists:
        entry = parse_entry(path, before.encode("utf-8", "replace"))
        keys = _new_keys(entry, summary, lists or {})
        edited = frontmatter.set_keys(edited, keys) if keys else edited
    return {} if edited == before else copy.files.edit(path, edited)


# Lines --------------------------------------------------------------------------------------------


@_operation
def add_line(copy: WorkingCopy, path: str, line: str, section: str, day: date) -> Edits:
    """Add a fact to a file, under a heading, unless the file has it."""
    path = copy.file(path)
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


@_operation
def move_line(copy: WorkingCopy, path: str, line: str, to: str, section: str, day: date) -> Edits:
    """Move a fact to the file where it belongs."""
    path, target = copy.file(path), copy.file(to)
    if path == target:
        raise UsageError(f"{short_name(path)} is where it stands already.")
    fact, rest = _extract_line(copy, path, line)
    moved = add_line.perform(copy, target, fact, section, day)
    return copy.files.edit(path, rest) | moved


@_operation
def without_line(copy: WorkingCopy, path: str, line: str) -> Edits:
    """Remove one line from a file."""
    path = copy.file(path)
    return copy.files.edit(path, _extract_line(copy, path, line)[1])


@_operation
def correct_memory(copy: WorkingCopy, old: str, new: str) -> Edits:
    """Replace a line of MEMORY.md, or part of one; an empty `new` removes it."""
    return copy.files.edit(MEMORY, with_correction(copy.files.text(MEMORY) or "", old, new))


@_operation
def note(copy: WorkingCopy, path: str, line: str, section: str = "") -> Edits:
    """Add a fact to MEMORY.md or a daily note, unless it is there; by default where it fits."""
    return copy.files.edit(path, with_facts(copy.files.text(path) or "", [line], section))


# Facts --------------------------------------------------------------------------------------------


def keep_in_entry(fact: Fact, day: date, likeness: float = STRICT) -> tuple[Operation, ...]:
    """Return the operations that make an entry of a fact, or extend the subject's entry.

    Adding, correcting and linking are separate operations, so that a correction of the user's line
    can wait for the user while the rest is done.
    """
    return (
        add_statements(fact, day, likeness),
        correct_values(fact, day),
        correct_summary(fact, day),
        add_tags_and_links(fact, day),
    )


@_operation
def add_statements(copy: WorkingCopy, fact: Fact, day: date, likeness: float = STRICT) -> Edits:
    """Add a fact to its subject's entry, which is made if there is none."""
    path = copy.subject(fact)
    if path is not None:
        return _grown(copy, path, fact, day, add=True, likeness=likeness)
    path = copy.files.free_path(fact.kind, fact.subject, day)
    text = new_entry(fact, copy.files.habits().front(day), _related(copy, fact, path))
    return {path: text.encode()}


@_operation
def move_to_entry(copy: WorkingCopy, line: str, fact: Fact, day: date) -> Edits:
    """Move a line of MEMORY.md into the entry of the subject that a fact gives it."""
    removed = without_line.perform(copy, MEMORY, line)
    return add_statements.perform(copy, fact, day) | removed


@_operation
def correct_values(copy: WorkingCopy, fact: Fact, day: date) -> Edits:
    """Replace values in its subject's entry that a fact says are no longer true."""
    return _grown(copy, copy.subject(fact), fact, day, correct=True)


@_upkeep
def correct_summary(copy: WorkingCopy, fact: Fact, day: date) -> Edits:
    """Replace such values in the entry's summary too, and add tags and links."""
    return _grown(copy, copy.subject(fact), fact, day, correct=True, head=True)


@_upkeep
def add_tags_and_links(copy: WorkingCopy, fact: Fact, day: date) -> Edits:
    """Add the tags and links of a fact to its subject's entry."""
    return _grown(copy, copy.subject(fact), fact, day, head=True)


@_operation
def supersede(copy: WorkingCopy, path: str, old: str, fact: Fact, day: date) -> Edits:
    """Replace a statement of an entry with a fact, moving it into the Evolution."""
    path = copy.file(path)
    return copy.files.edit(path, superseded(copy.files.text(path) or "", old, fact, day))


@_operation
def supersede_decision(copy: WorkingCopy, path: str, fact: Fact, day: date) -> Edits:
    """Record in a decision which other one replaced it, and vice versa."""
    old, new = copy.entry(path), copy.subject(fact)
    if new is None or new == old.path:
        return {}
    line = f"{day.isoformat()}: Replaced by [[{short_name(new)}]]"
    back = f"{day.isoformat()}: Replaces [[{short_name(old.path)}]]"
    return _evolved(copy, old.path, line) | _evolved(copy, new, back)


# Entries ------------------------------------------------------------------------------------------


@_operation
def write_entry(copy: WorkingCopy, kind: str, title: str, content: Content, day: date) -> Edits:
    """Create an entry of one of `ENTRY_TYPES` by its template, unless its subject has one."""
    name = clean_line(title)
    if not name:
        raise UsageError("An entry needs a title.", "Say in a few words what it is about.")
    for called in (name, *content.get("aliases", ())):
        _check_new(copy, kind, called)
    said = content | {"sections": content.get("sections") or {}}
    said["related"] = _related_of(copy, said)
    text = copy.files.habits().entry(kind, name, day, said)
    path = copy.files.free_path(kind, name, day, content.get("folder", ""))
    return {path: text.encode("utf-8", "replace")}


@_operation
def set_summary(copy: WorkingCopy, path: str, summary: str) -> Edits:
    """Set an entry's line in the catalogue."""
    entry = copy.entry(path)
    if not entry.frontmatter:
        raise UsageError(
            f"{short_name(entry.path)} has no frontmatter, and its owner may want none.",
            "Its summary is its first sentence.",
        )
    changed = frontmatter.set_keys(entry.text, {"summary": clean_line(summary)})
    return copy.files.edit(entry.path, changed)


@_operation
def fix_link(copy: WorkingCopy, path: str, old: str, to: str) -> Edits:
    """Point the broken links of a file that have one target to an entry."""
    path, entry = copy.file(path), copy.entry(to)
    wanted = clean_line(old).strip("[]").partition("|")[0].partition("#")[0].strip()
    fixed = copy.files.linked(path, wanted, entry.path)
    if fixed is None:
        raise NotFoundError(f"{short_name(path)} has no broken link to {wanted!r}.")
    return {path: fixed}


@_upkeep
def link_entries(copy: WorkingCopy, path: str, to: str, day: date) -> Edits:
    """Add an entry to those related to another."""
    entry, other = copy.entry(path), copy.entry(to)
    if entry.path == other.path:
        raise UsageError("An entry isn't related to itself.")
    fact = Fact("", entry.type or "topic", entry.title)
    related = [short_name(other.path)]
    grown = grown_entry(entry.text, fact, day, related=related, add=False, correct=False)
    return copy.files.edit(entry.path, grown)


@_operation
def relate(copy: WorkingCopy, path: str, others: Sequence[str], day: date) -> Edits:
    """Add entries to those related to one, up to `MOST_RELATED` in all; private ones to none else.

    Left out are those that its text links to.
    """
    entry = copy.files.parsed(path)
    private = {info.path for info in copy.services.library.infos() if info.private}
    names = [
        short_name(other)
        for other in others
        if other != path and (path in private or other not in private)
    ]
    names = [name for name in names if f"[[{name}" not in entry.text]
    room = max(0, MOST_RELATED - len(entry.related))
    fresh = [name for name in names if name not in entry.related][:room]
    related = [copy.files.habits().reference(name) for name in fresh]
    fact = Fact("", entry.type or "topic", entry.title)
    grown = grown_entry(entry.text, fact, day, related=related, add=False, correct=False)
    return copy.files.edit(path, grown)


@_operation
def rename_entry(copy: WorkingCopy, path: str, new: str) -> Edits:
    """Rename an entry; the old name becomes an alias."""
    entry = copy.entry(path)
    name = copy.files.new_name(entry, new)
    if name.path == entry.path and name.title is None:
        return {}
    return copy.files.renamed(entry.path, name)


@_operation
def merge_entries(copy: WorkingCopy, path: str, to: str, day: date) -> Edits:
    """Move everything an entry says into another, redirect its links, and delete it."""
    entry, target = copy.entry(path), copy.entry(to)
    if entry.path == target.path:
        raise UsageError("An entry can't be merged into itself.")
    apart = copy.files.unlinked
    body = apart(target.path, entry.body.encode(), entry.path).decode()
    text = merged_body(merged_head(entry, target), replace_body(entry, body), target, day)
    data = apart(entry.path, text.encode(), target.path)
    data = with_aliases(data, former_names(entry, target), target)
    whole = copy.files.encoded(target.path, data.decode())
    return copy.files.merged(entry.path, target.path, whole)


@_operation
def delete_entry(copy: WorkingCopy, path: str) -> Edits:
    """Delete an entry; links to it become plain text."""
    return copy.files.removed(copy.entry(path).path)


# Parts --------------------------------------------------------------------------------------------


def _grown(
    copy: WorkingCopy,
    path: str | None,
    fact: Fact,
    day: date,
    *,
    add: bool = False,
    correct: bool = False,
    head: bool = False,
    likeness: float = STRICT,
) -> Edits:
    """Return an entry, if there is one, with what a fact adds to it; see `grown_entry`."""
    if path is None:
        return {}
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


def _replaced(whole: str, old: str, new: str, path: str) -> str:
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


def _appended(whole: str, addition: str, section: str, type_: str | None) -> str:
    """Append text at the end or under a heading, without items that are already there."""
    addition = _new_items(whole, addition)
    heading = section.strip().lstrip("#").strip()
    if not addition:
        return whole
    if heading:
        return append_to_section(whole, heading, addition, type_)
    if not whole.strip():
        return f"{addition}\n"
    last = whole.rstrip().rpartition("\n")[2].lstrip()
    continues = addition.lstrip().startswith(_BULLETS) and last.startswith(_BULLETS)
    gap = "\n" if continues or whole.endswith("\n\n") else "\n\n"
    return f"{whole.rstrip()}{gap}{addition}\n"


def _new_items(whole: str, addition: str) -> str:
    """Return only the new items of a list; any other text unchanged."""
    lines = addition.splitlines()
    if not all(line.startswith(_BULLETS) for line in lines):
        return addition
    known = set(map(normalise, statements(whole)))
    return "\n".join(line for line in lines if normalise(plain_fact(line)) not in known)


def _new_keys(entry: Entry, summary: str, lists: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the changed keys of an entry's frontmatter."""
    keys: dict[str, Any] = {"summary": clean_line(summary)} if summary else {}
    for name, added in lists.items():
        there = {"tags": entry.tags, "related": entry.related, "aliases": entry.aliases}[name]
        fresh = (word for word in map(clean_line, added) if word.strip("[]") not in there)
        keys |= frontmatter.with_more(entry.frontmatter, name, fresh)
    return keys


def _related_of(copy: WorkingCopy, content: Content) -> list[str]:
    """Return what an entry is to be related to: what is given, and whom its text names."""
    given = list(content.get("related", ()))
    texts = [content.get("body") or "", *(content.get("sections") or {}).values()]
    library = (copy.author.view or copy.services).library
    named = named_entries(library.infos(), "\n".join(texts))
    fresh = [name for name in named if name not in given and not _links(texts, name)]
    return [*given, *fresh[: max(0, MOST_RELATED - len(given))]]


def _links(texts: Iterable[str], name: str) -> bool:
    return any(f"[[{name}" in text for text in texts)


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


def _evolved(copy: WorkingCopy, path: str, line: str) -> Edits:
    text = copy.files.text(path) or ""
    if line in text:
        return {path: copy.files.data(path) or b""}
    return copy.files.edit(path, append_to_section(text, EVOLUTION, f"- {line}"))


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


def _check_new(copy: WorkingCopy, kind: str, title: str) -> None:
    """Reject a second entry about the same subject."""
    path = copy.twin(kind, title)
    if path is None:
        return
    if path in copy.waiting:
        raise UsageError(
            f"You have proposed that already: {path} waits in the inbox.",
            f"Change what you proposed with edit_entry ({short_name(path)}).",
        )
    raise UsageError(
        f"There is an entry about this already: {path}.",
        f"Read it, then change it with edit_entry ({short_name(path)}).",
    )


def _related(copy: WorkingCopy, fact: Fact, path: str) -> list[str]:
    found: dict[str, None] = {}
    for name in fact.related:
        other = copy.named(name)
        if other is not None and other != path:
            found.setdefault(short_name(other))
    habits = copy.files.habits()
    return [habits.reference(name) for name in found]
