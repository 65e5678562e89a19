"""Pages shown and found like entries without being any: journal days and stated names.

A day is a file of the memory; the page of a name is a list generated on reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from kbtui.clock import local_day
from kbtui.workspace.layout import NAME_PREFIX

if TYPE_CHECKING:
    from kbtui.knowledge.library.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase

DAYS, NAMES = "@Days", "@Names"
"""Folders of the pages in the tree; no folder of entries has such a name."""
_MIN_TREE_MENTIONS = 2  # mentions


def pages_of(kb: KnowledgeBase, *, in_tree: bool = False) -> Iterator[EntryInfo]:
    """Yield days, newest first, then names; for the tree only those mentioned often enough."""
    today = local_day()
    for path in kb.journal.days():
        yield _day_page(path, today)
    for name, lines in kb.names.pages().items():
        if len(lines) >= (_MIN_TREE_MENTIONS if in_tree else 1):
            yield _page(f"{NAME_PREFIX}{name}", name, NAMES, name, len(lines))


def _day_page(path: str, today: date) -> EntryInfo:
    slug = path.rpartition("/")[2].removesuffix(".md")
    day = date.fromisoformat(slug.replace("_", "-"))
    if day == today:
        return _page(path, "Today", "", slug, 0)
    year = f" {day.year}" if day.year != today.year else ""
    title = "Yesterday" if (today - day).days == 1 else f"{day:%a} {day.day} {day:%b}{year}"
    return _page(path, title, DAYS, slug, 0)


def _page(path: str, title: str, category: str, slug: str, count: int) -> EntryInfo:
    from kbtui.knowledge.library.library import EntryInfo

    none: tuple[str, ...] = ()
    lines = f"{count} lines" if count else ""
    fields = (path, title, None, category, slug, none, none, None, None, lines)
    return EntryInfo(*fields, private=False, problem=None, blob=lines, size=count, mtime_ns=0)
