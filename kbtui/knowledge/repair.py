"""Keeps links whole when an entry is renamed or deleted."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from kbtui.errors import UnreadableError
from kbtui.knowledge import frontmatter
from kbtui.knowledge.links import (
    PlacedLink,
    links_in_body,
    links_in_value,
    related_link,
    replace_wiki_target,
    unlink_wiki,
)
from kbtui.knowledge.resolve import RULES
from kbtui.knowledge.retarget import new_target, relative_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.knowledge.info import EntryInfo
    from kbtui.knowledge.links import Link
    from kbtui.knowledge.resolve import Found, LinkIndex


@dataclass(frozen=True, slots=True)
class Move:
    """An entry before and after a rename, with the indexes of both times."""

    old: EntryInfo
    new: EntryInfo
    before: LinkIndex
    after: LinkIndex
    entry_at: Callable[[str], EntryInfo | None]
    file_exists: Callable[[str], bool]

    def target_of(self, link: Link, source: str) -> str | None:
        """The new target of a link in the file `source` (its old path); None: it still holds."""
        now = self.new.path if source == self.old.path else source
        found = self.before.find(link, source)
        if found is None:
            return self._file_target(link, source, now)
        if not link.target:
            return None
        meant = self.new if found.path == self.old.path else self.entry_at(found.path)
        if meant is None or self._holds(self.after.find(link, now), found, meant.path):
            return None
        target = new_target(link, found.by, now, meant, self.after)
        return None if target == link.target else target

    @staticmethod
    def _holds(now: Found | None, before: Found, path: str) -> bool:
        """Whether a link still leads there, and not by a weaker rule than before."""
        if now is None or now.path != path:
            return False
        return RULES.index(now.by) <= RULES.index(before.by)

    def _file_target(self, link: Link, source: str, now: str) -> str | None:
        """A picture's relative path changes when the file that shows it moves."""
        if link.kind != "markdown" or link.target.startswith("/"):
            return None
        if posixpath.dirname(source) == posixpath.dirname(now):
            return None
        joined = posixpath.join(posixpath.dirname(source), unquote(link.target))
        path = posixpath.normpath(joined)
        return relative_target(link, now, path) if self.file_exists(path) else None


def retargeted(data: bytes, decide: Callable[[Link], str | None]) -> bytes:
    """Rewrite the targets for which `decide` gives a new one; all other bytes stay."""

    def in_value(key: str, value: str) -> str | None:
        if key == "related":
            link = related_link(value)
            target = decide(link)
            if target is None:
                return None
            return value.replace(link.target, target, 1)
        for link in links_in_value(value):
            target = decide(link)
            if target is not None:
                value = replace_wiki_target(value, link.target, target)
        return value

    def in_body(placed: PlacedLink) -> tuple[int, int, str] | None:
        target = decide(placed.link)
        return None if target is None else (placed.target_start, placed.target_end, target)

    return _with_body(frontmatter.replace_scalars(data, in_value), in_body)


def unlinked(data: bytes, is_gone: Callable[[Link], bool]) -> bytes:
    """Take links to something gone out: of ``related`` whole, elsewhere their text stays."""

    def in_value(key: str, value: str) -> str | None:
        if key != "related":
            for link in links_in_value(value):
                if is_gone(link):
                    value = unlink_wiki(value, link.target)
        return value

    def in_body(placed: PlacedLink) -> tuple[int, int, str] | None:
        gone = not placed.definition and is_gone(placed.link)
        return (placed.start, placed.end, placed.text) if gone else None

    data = frontmatter.replace_scalars(data, in_value)
    related = frontmatter.parse(data).values.get("related")
    if isinstance(related, list):
        kept = [item for item in related if not _names_only(item, is_gone)]
        if kept != related:
            data = frontmatter.set_keys(data, {"related": kept})
    elif isinstance(related, str) and _names_only(related, is_gone):
        data = frontmatter.set_keys(data, {"related": None})
    return _with_body(data, in_body)


def _names_only(item: object, is_gone: Callable[[Link], bool]) -> bool:
    """Whether an item of a ``related`` list is nothing but names of what is gone."""
    if isinstance(item, list):  # an unquoted [[name]] is a list in a list to YAML
        return bool(item) and all(_names_only(part, is_gone) for part in item)
    return isinstance(item, str) and bool(item.strip()) and is_gone(related_link(item))


def _with_body(data: bytes, edit: Callable[[PlacedLink], tuple[int, int, str] | None]) -> bytes:
    parts = frontmatter.split(data)
    try:
        body = parts.body.decode()
    except UnicodeDecodeError as error:
        raise UnreadableError("The text isn't valid UTF-8.", "It is left as it is.") from error
    edits = [found for placed in links_in_body(body) if (found := edit(placed)) is not None]
    for start, end, new in sorted(edits, reverse=True):
        body = body[:start] + new + body[end:]
    return parts.join()[: len(data) - len(parts.body)] + body.encode() if edits else data
