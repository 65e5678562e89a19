"""What the popup above the prompt offers for what is being typed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kbtui.tui.actions import slash
from kbtui.tui.chat.items import shown
from kbtui.tui.chat.popup import Choice
from kbtui.tui.notes.fuzzy import PAUSE, entries_saying, worth_searching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.knowledge.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.notes.fuzzy import FuzzyIndex

_LIMIT = 30


class Completer:
    """Completes commands at once, and entries from an index that is made in a thread."""

    def __init__(self) -> None:
        self._kb: KnowledgeBase | None = None
        self._index: FuzzyIndex | None = None

    def knowledge_ready(self, kb: KnowledgeBase) -> None:
        """Entries can be completed from now on."""
        self._kb = kb

    def forget(self) -> None:
        """The entries changed: read them anew when they are next asked for."""
        self._index = None

    def commands(self, token: str) -> list[Choice]:
        """The commands that ``/token`` can become."""
        return [
            Choice(f"{action.slash} ", f"{action.slash} {action.usage}".rstrip(), action.help)
            for action in slash.completions(token)
        ]

    async def entries(self, token: str) -> list[Choice]:
        """The entries that ``@token`` can name, best first; the newest for a mere ``@``."""
        if self._kb is None:
            return []
        return await asyncio.to_thread(self._named, self._kb, token.removeprefix("@"))

    async def entries_saying(self, token: str) -> list[Choice]:
        """The entries whose text says ``token``, best first, after a pause in the typing."""
        query = token.removeprefix("@")
        if self._kb is None or not worth_searching(query):
            return []
        await asyncio.sleep(PAUSE)
        found = await asyncio.to_thread(entries_saying, self._kb, query)
        return [_choice(info, f"{info.title} · in its text, line {line}") for info, line in found]

    def _named(self, kb: KnowledgeBase, query: str) -> list[Choice]:
        from kbtui.tui.notes.fuzzy import FuzzyIndex

        index = self._index
        if index is None:
            index = self._index = FuzzyIndex(kb.library.infos())
        found = (
            [match.entry for match in index.search(query, _LIMIT)]
            if query
            else index.recent(_LIMIT)
        )
        return [_choice(info, info.title) for info in found]


def _choice(info: EntryInfo, detail: str) -> Choice:
    return Choice(f"@{shown(info.path)} ", shown(info.path), detail)


def earlier_inputs(found: Sequence[str]) -> list[Choice]:
    """Earlier inputs as choices, each in one line."""
    return [Choice(text, text.replace("\n", " ⏎ ")) for text in found]
