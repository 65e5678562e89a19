"""Pages beside the entries: today, the days before it, and the names in what was stated.

They are shown and found like entries, and are none: a day is a note of the memory's, a name is a
list made on reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from kbtui.workspace.layout import NAME_PREFIX

if TYPE_CHECKING:
    from kbtui.knowledge.library.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase

DAYS, NAMES = "@Days", "@Names"
"""The folders of the pages; no folder of entries is called so."""
_IN_TREE = 2  # mentions


def pages_of(kb: KnowledgeBase, *, in_tree: bool = False) -> Iterator[EntryInfo]:
    """The pages: days, the newest first, and names; for the tree those named often enough."""
    today = date.today()  # noqa: DTZ011 - the day that the person lives in
    for path in kb.journal.days():
        yield _day(path, today)
    for name, lines in kb.names.pages().items():
        if len(lines) >= (_IN_TREE if in_tree else 1):
            yield _page(f"{NAME_PREFIX}{name}", name, NAMES, name, len(lines))


def _day(path: str, today: date) -> EntryInfo:
    slug = path.rpartition("/")[2].removesuffix(".md")
    day = date.fromisoformat(slug.replace("_", "-"))
    if day == today:
        return _page(path, "Today", "", slug, 0)
    year = f" {day.year}" if day.year != today.year else ""
    said = "Yesterday" if (today - day).days == 1 else f"{day:%a} {day.day} {day:%b}{year}"
    return _page(path, said, DAYS, slug, 0)


def _page(path: str, title: str, category: str, slug: str, count: int) -> EntryInfo:
    from kbtui.knowledge.library.library import EntryInfo

    none: tuple[str, ...] = ()
    lines = f"{count} lines" if count else ""
    said = (path, title, None, category, slug, none, none, None, None, lines)
    return EntryInfo(*said, private=False, problem=None, blob=lines, size=count, mtime_ns=0)
