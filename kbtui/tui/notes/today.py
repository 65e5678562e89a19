"""The page of today: what is coming and what is open, around the lines of the day."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date

from kbtui.errors import KbtuiError
from kbtui.knowledge.library.library import PastLibrary
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.recall.agenda import AgendaItem, NewerDay, newer_days, short_day, short_days
from kbtui.text import clean_line
from kbtui.tui.markdown.source import Cell, Section
from kbtui.views.view import Audience

_MAX_COMING = 8
_MAX_OPEN = 6
_AHEAD_DAYS = 92  # what is shown where less than a page is coming soon
_WHEN_COLUMNS = 12  # 30 Nov-2 Dec


def todays_page(kb: KnowledgeBase, today: date) -> str:
    """Return the path of the page of today: the owner's daily note, if any, else the journal's.

    It need not be there yet.
    """
    own = kb.library.daily_note(today)
    if own is not None and kb.library.exists(own[0]):
        return own[0]
    if own is not None and kb.journal.in_daily_notes:
        return own[0]
    return f"memory/{today.isoformat()}.md"


def is_page_of(path: str, today: date) -> bool:
    """Return whether a path may be that of the page of a day."""
    name = path.rpartition("/")[2].removesuffix(".md").replace("_", "-")
    return name == today.isoformat()


def sections_of_today(kb: KnowledgeBase, today: date) -> tuple[Section, ...]:
    """Return what is coming and what is open; run in a thread."""
    if isinstance(kb.library, PastLibrary):
        return ()
    with suppress(KbtuiError):
        agenda = kb.agenda()
        groups = agenda.grouped(today)
        coming = agenda.coming(today, _AHEAD_DAYS)
        view = kb.seen_by(Audience.OWN_MODEL)
        found = []
        for title, items, limit in (
            ("Coming", [*groups["late"], *coming], _MAX_COMING),
            ("Open", groups["undated"], _MAX_OPEN),
        ):
            shown = items[:limit] if len(items) > limit + 1 else items
            newer = newer_days(shown, agenda, view, today)
            rows = [_row(*pair, today) for pair in zip(shown, newer, strict=True)]
            if items:
                found.append(_section(title, items, rows))
        return tuple(found)
    return ()


def _section(title: str, items: Sequence[AgendaItem], rows: list[tuple[Cell, ...]]) -> Section:
    if rest := len(items) - len(rows):
        rows.append((Cell(f"… {rest:,} more · T lists all tasks"),))
    return Section(f"{title} {len(items):,}", cells=tuple(rows))


def _row(item: AgendaItem, newer: NewerDay | None, today: date) -> tuple[Cell, ...]:
    """Return when, what is newer, and what, which leads to its line."""
    box = "" if item.task is None else "☐ "
    text = Cell(f"{box}{clean_line(item.text)}", item.path, line=item.line)
    instead = Cell(f"↗ {newer.text}", newer.path, line=newer.line) if newer is not None else None
    rest = (text,) if instead is None else (instead, text)
    if item.day is None or item.first is None:
        return rest
    is_late = item.day < today
    when = short_day(item.day, today)
    if item.unit == "month":
        when = f"{item.first:%B}"
    elif item.task is None:
        when = short_days(item, today)
    if item.unit == "week":
        when = f"from {item.first.day} {item.first:%b}"
    return Cell(f"{when:<{_WHEN_COLUMNS}}", strong=is_late or item.day == today), *rest
