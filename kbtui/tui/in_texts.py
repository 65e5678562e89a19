"""Entries found by what their text says, below those of that name; by the words alone, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError

if TYPE_CHECKING:
    from kbtui.knowledge.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase

PAUSE = 0.15
"""Seconds without a key before texts are searched."""
_SHORTEST = 3
_LIMIT = 10


def worth_searching(query: str) -> bool:
    """Whether texts are searched for it: almost every text says one or two letters."""
    return len(query) >= _SHORTEST


def entries_saying(kb: KnowledgeBase, query: str) -> list[tuple[EntryInfo, int]]:
    """At most ten entries, best first, each with the line that says it; for threads.

    None where search can't answer: names are enough here, and the search screen says what is wrong.
    """
    try:
        hits = kb.search.search(query, "knowledge", _LIMIT, semantic=False).hits
    except KbtuiError:
        return []
    lines: dict[str, int] = {}
    for hit in hits:
        lines.setdefault(hit.path, hit.line)
    infos = ((kb.library.info(path), line) for path, line in lines.items())
    return [(info, line) for info, line in infos if info is not None]
