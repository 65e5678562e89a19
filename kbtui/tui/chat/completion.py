"""What the popup above the prompt offers for what is being typed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kbtui.tui import slash
from kbtui.tui.chat.items import shown
from kbtui.tui.widgets.popup import Choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.fuzzy import FuzzyIndex

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
        """The entries that ``@token`` can mean, best first; the newest for a mere ``@``."""
        if self._kb is None:
            return []
        return await asyncio.to_thread(self._entries, self._kb, token.removeprefix("@"))

    def _entries(self, kb: KnowledgeBase, query: str) -> list[Choice]:
        from kbtui.tui.fuzzy import FuzzyIndex

        index = self._index
        if index is None:
            index = self._index = FuzzyIndex(kb.library.infos())
        found = (
            [match.entry for match in index.search(query, _LIMIT)]
            if query
            else index.recent(_LIMIT)
        )
        return [Choice(f"@{shown(info.path)} ", shown(info.path), info.title) for info in found]


def earlier_inputs(found: Sequence[str]) -> list[Choice]:
    """Earlier inputs as choices, each in one line."""
    return [Choice(text, text.replace("\n", " ⏎ ")) for text in found]
