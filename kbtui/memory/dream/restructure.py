"""Renaming, merging and deleting entries, each with the repair of every link to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kbtui.errors import UsageError
from kbtui.history.merging.front_keys import split_front
from kbtui.knowledge import frontmatter
from kbtui.knowledge.info import info_of
from kbtui.knowledge.repair import Move, retargeted, unlinked
from kbtui.knowledge.reshape import new_name
from kbtui.knowledge.statements import statements
from kbtui.knowledge.templates import EVOLUTION, append_to_section, section_text
from kbtui.knowledge.yaml_write import value_text
from kbtui.memory.dream.operations import Operation
from kbtui.memory.edits.merging import grown_entry, is_said
from kbtui.memory.records.extraction import Draft
from kbtui.text import fold
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from kbtui.knowledge.entry import Entry
    from kbtui.knowledge.info import EntryInfo
    from kbtui.memory.dream.overlay import Edits
    from kbtui.memory.dream.working_copy import Desk

_OURS = frozenset({"type", "created", "updated", "title", "summary", "description"})
_LISTS = ("tags", "related", "aliases", "sources")
_HEADING = re.compile(rf"^#{{1,6}}[ \t]+{EVOLUTION}[ \t]*$", re.IGNORECASE)


def rename_entry(ref: str, new: str) -> Operation:
    """Give an entry another name; the old one becomes an alias."""

    def work(desk: Desk) -> Edits:
        entry = desk.names.parsed(desk.names.entry(ref))
        old = _info(entry)
        name = new_name(old, new)
        if name.path != entry.path and (desk.view.exists(name.path) or desk.names.taken(name.path)):
            raise UsageError(f"There is an entry {short_name(name.path)} already.")
        if name.path == entry.path and name.title is None:
            return {}
        titled = _titled(entry.text, entry, name.title)
        info = _info(desk.names.parse(name.path, titled))
        before = desk.links.index()
        after = before.changed(entry, info)
        move = Move(old, info, before, after, desk.library.info, desk.view.exists)
        own = retargeted(titled.encode(), lambda link: move.target_of(link, entry.path))
        own = _with_aliases(own, _former_names(entry, info))
        final = desk.names.parse(name.path, own.decode())
        edits = desk.links.repointed(entry.path, final, before, before.changed(entry, final))
        if name.path != entry.path:
            edits[entry.path] = None
        edits[name.path] = desk.view.encoded(entry.path, own.decode())
        return edits

    return Operation("rename_entry", work)


def merge_entries(ref: str, into: str, day: date) -> Operation:
    """Put all that one entry says into another, lead its links there, and remove it."""

    def work(desk: Desk) -> Edits:
        entry, target = (
            desk.names.parsed(desk.names.entry(ref)),
            desk.names.parsed(desk.names.entry(into)),
        )
        if entry.path == target.path:
            raise UsageError("An entry can't be merged into itself.")
        before = desk.links.index()
        body = unlinked(
            entry.body.encode(), lambda link: before.resolve(link, entry.path) == target.path
        ).decode()
        text = _merged_head(entry, target)
        text = _merged_body(text, replace_body(entry, body), target, day)
        text = unlinked(
            text.encode(), lambda link: before.resolve(link, target.path) == entry.path
        ).decode()
        text = _with_aliases(text.encode(), _former_names(entry, target)).decode()
        grown = desk.names.parse(target.path, text)
        after = before.changed(entry, None).changed(target, grown)
        edits = desk.links.repointed(entry.path, grown, before, after)
        return {
            **edits,
            entry.path: None,
            target.path: desk.view.encoded(target.path, text),
        }

    return Operation("merge_entries", work)


def delete_entry(ref: str) -> Operation:
    """Remove an entry; links to it become their text."""

    def work(desk: Desk) -> Edits:
        path = desk.names.entry(ref)
        return {**desk.links.removed(path), path: None}

    return Operation("delete_entry", work)


def replace_body(entry: Entry, body: str) -> str:
    """The text of an entry with another body."""
    return entry.text.removesuffix(entry.body) + body


def evolution_of(text: str) -> list[str]:
    """The lines of an entry's Evolution section, in order."""
    section = section_text(text, EVOLUTION) or ""
    return [line.rstrip() for line in section.splitlines() if line.strip()]


def _info(entry: Entry) -> EntryInfo:
    return info_of(entry, len(entry.text), 0)


def _titled(text: str, entry: Entry, title: str | None) -> str:
    """Change the title where it is written: in the frontmatter, in the first heading."""
    if title is None:
        return text
    if "title" in entry.frontmatter:
        text = frontmatter.set_keys(text, {"title": title})
    pattern = re.compile(
        rf"^( {{0,3}}#[ \t]+){re.escape(entry.title)}(?=[ \t]*#*[ \t]*$)", re.MULTILINE
    )
    return pattern.sub(lambda found: found[1] + title, text, count=1)


def _former_names(old: Entry, new: Entry | EntryInfo) -> list[str]:
    """The names of an entry by which its successor isn't found."""
    known = {fold(name) for name in (new.title, new.slug, *new.aliases)}
    names: dict[str, str] = {}
    for name in (old.title, old.slug, *old.aliases):
        if fold(name) not in known:
            names.setdefault(fold(name), name)
    return list(names.values())


def _with_aliases(data: bytes, names: Iterable[str]) -> bytes:
    fresh = list(names)
    matter = frontmatter.parse(data)
    if not fresh or not matter.values:
        return data
    key = "alias" if "alias" in matter.values and "aliases" not in matter.values else "aliases"
    written = matter.values.get(key) or []
    kept = written if isinstance(written, list) else [str(written)]
    return frontmatter.set_keys(data, {key: [*kept, *fresh]})


def _merged_head(entry: Entry, target: Entry) -> str:
    """The text of `target` with what only the frontmatter of `entry` says."""
    front = split_front(entry.text)
    units = front.units if front else {}
    lines: list[str] = []
    changes: dict[str, Any] = {}
    for key, value in entry.frontmatter.items():
        known = target.frontmatter.get(key)
        if key in _OURS or value == known or value in (None, "", []):
            continue
        if key in _LISTS and _is_list(value) and _is_list(known):
            joined = dict.fromkeys([*(known or []), *value])
            names = {target.path, short_name(target.path), target.slug}
            kept = [item for item in joined if key != "related" or item.strip("[]") not in names]
            if kept != (known or []):
                changes[key] = kept
        elif key not in target.frontmatter:
            lines += units.get(key, (f"{key}: {value_text(value)}\n",))
        elif known in (None, "", []):
            changes[key] = value
        else:
            both = f"{short_name(entry.path)} and {short_name(target.path)}"
            raise UsageError(
                f"{both} have another {key!r} each.", "Only their owner can say which one holds."
            )
    created = [each.created for each in (entry, target) if each.created]
    if target.created and min(created) != target.created:
        changes["created"] = min(created)
    if not target.frontmatter:
        return target.text
    text = frontmatter.set_keys(target.text, changes) if changes else target.text
    parts = frontmatter.split(text.encode())
    return parts.with_head(parts.head.decode() + "".join(lines)).join().decode()


def _merged_body(text: str, other: str, target: Entry, day: date) -> str:
    """The text of `target` with all that `other` says beyond it; nothing of either is lost."""
    body = frontmatter.split(other.encode()).body.decode()
    rest = _without_evolution(body)
    draft = Draft(target.type or "topic", target.title, "", _below_title(rest))
    grown = grown_entry(text, draft, day, correct=False, head=False)
    said = statements(grown)
    for statement in statements(other.removesuffix(body) + rest):
        if not is_said(statement, said):
            # Both give a value to the same name, and who merges can't know which one holds.
            grown = append_to_section(grown, "Notes", f"- {statement}")
    known = evolution_of(grown)
    for line in evolution_of(body):
        if line not in known:
            grown = append_to_section(grown, EVOLUTION, line)
    return grown


def _without_evolution(body: str) -> str:
    section = section_text(body, EVOLUTION)
    if section is None:
        return body
    lines = body.replace(section, "", 1).splitlines(keepends=True)
    return "".join(line for line in lines if not _HEADING.match(line.rstrip()))


def _below_title(body: str) -> str:
    first, _, rest = body.lstrip().partition("\n")
    return rest if re.match(r"#[ \t]", first) else body


def _is_list(value: Any) -> bool:
    return value is None or (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    )


def missing(old: str, texts: Iterable[str]) -> list[str]:
    """What a text states and none of some other texts does."""
    said = [statement for text in texts for statement in statements(text)]
    return [statement for statement in statements(old) if not is_said(statement, said)]
