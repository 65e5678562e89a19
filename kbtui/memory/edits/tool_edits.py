"""The edits that an agent or another program requests by a tool: entries written or edited.

Unlike facts, these have wording and place chosen by the caller. They pass the same guards; see
`editor.Editor.write`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from kbtui.errors import UsageError
from kbtui.knowledge.entries.entry import Entry, append_to_section, parse_entry
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.facts import normalise, plain_fact, statements
from kbtui.knowledge.format.frontmatter import with_more
from kbtui.knowledge.library.library import Content
from kbtui.knowledge.library.overlay import Edits
from kbtui.memory.edits.memory_file import MEMORY
from kbtui.memory.edits.operations import replaced
from kbtui.memory.edits.working_copy import NOTES, Operation, WorkingCopy
from kbtui.text import clean_line
from kbtui.workspace.layout import short_name

_BULLETS = ("- ", "* ")


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of one file; empty attributes change nothing.

    Attributes:
        old: A passage that occurs once; `new` replaces it.
        append: Text to add, at the end or under the heading `section`, created if missing.
        body: The new text below the frontmatter.
        summary: The line for the catalogue.
        lists: Items to add to lists of the frontmatter, by key.
    """

    old: str = ""
    new: str = ""
    append: str = ""
    section: str = ""
    body: str = ""
    summary: str = ""
    lists: Mapping[str, tuple[str, ...]] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not (self.old or self.append or self.body or self.summary or self.lists)


def write_entry(kind: str, title: str, content: Content, day: date) -> Operation:
    """Create an entry of one of `ENTRY_TYPES` by its template, unless its subject has one."""
    name = clean_line(title)

    def work(copy: WorkingCopy) -> Edits:
        if not name:
            raise UsageError("An entry needs a title.", "Say in a few words what it is about.")
        _check_new(copy, kind, name)
        said = content | {"sections": content.get("sections") or {}}
        text = copy.files.habits().entry(kind, name, day, said)
        path = copy.files.free_path(kind, name, day, content.get("folder", ""))
        return {path: text.encode("utf-8", "replace")}

    return Operation(work)


def edit_entry(ref: str, wanted: Edit) -> Operation:
    """Edit an entry, or one of the notes above them, which is created if missing."""

    def work(copy: WorkingCopy) -> Edits:
        path = copy.file(ref)
        text = copy.files.text(path)
        if text is None and path not in NOTES:
            copy.files.parsed(path)  # raises that it isn't there
        start = "# Memory\n" if path == MEMORY else ""
        entry = parse_entry(path, (start if text is None else text).encode("utf-8", "replace"))
        edited = _edited(entry, wanted)
        return {} if edited == entry.text else {path: copy.files.encoded(path, edited)}

    return Operation(work, ref=ref)


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


def _edited(entry: Entry, wanted: Edit) -> str:
    text = entry.text
    if wanted.old:
        head = text.removesuffix(entry.body)
        old, body = wanted.old, text[len(head) :]
        whole, before = (body, head) if body.count(old) == 1 else (text, "")
        text = before + replaced(whole, old, wanted.new, entry.path)
    if wanted.body:
        text = text.removesuffix(entry.body) + wanted.body.strip("\n") + "\n"
    if wanted.append:
        text = _appended(text, wanted.append.strip("\n"), wanted.section, entry.type)
    keys = _front_changes(entry, wanted)
    return frontmatter.set_keys(text, keys) if keys else text


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


def _front_changes(entry: Entry, wanted: Edit) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if wanted.summary:
        keys["summary"] = clean_line(wanted.summary)
    for name, added in (wanted.lists or {}).items():
        there = {"tags": entry.tags, "related": entry.related, "aliases": entry.aliases}[name]
        fresh = (word for word in map(clean_line, added) if word.strip("[]") not in there)
        keys |= with_more(entry.frontmatter, name, fresh)
    return keys
