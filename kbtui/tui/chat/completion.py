"""Completion in the prompt: commands after a slash, entries after an at sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.text import clean_line
from kbtui.tui.actions.registry import matching_commands
from kbtui.tui.notes.fuzzy import names_of, search_texts
from kbtui.tui.widgets.row_list import Choice
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from kbtui.knowledge.library.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase

_ENTRY_LIMIT = 30


def commands(token: str) -> list[Choice[str]]:
    """Return the commands that complete a ``/token``; none for any other word."""
    return [
        Choice(f"{action.slash} {action.usage}".rstrip(), action.help, f"{action.slash} ")
        for action in (matching_commands(token) if token.startswith("/") else ())
    ]


def entries_named(kb: KnowledgeBase, query: str) -> list[Choice[str]]:
    """Return entries by name, best first, or the newest for an empty query; run in a thread."""
    found = names_of(kb).search(query, _ENTRY_LIMIT)
    return [_choice(match.entry, match.entry.title) for match in found]


def entries_with(kb: KnowledgeBase, query: str) -> list[Choice[str]]:
    """Return entries whose text matches, best first; run in a thread."""
    found = search_texts(kb, query)
    return [_choice(info, f"{info.title} · in its text, line {line}") for info, line in found]


def _choice(info: EntryInfo, detail: str) -> Choice[str]:
    from kbtui.agent.attachments import reference

    name = clean_line(short_name(info.path))
    return Choice(name, detail, f"{reference(name)} ")
