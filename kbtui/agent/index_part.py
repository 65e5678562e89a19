"""The index part of a session's prompts: ranked anew only when the subject shifts.

Ranked for every message it would change all the time, and with it the part of the prompt that a
provider has cached.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbtui.models.tokens import estimate_tokens
from kbtui.text import fold

if TYPE_CHECKING:
    from kbtui.knowledge.library import Library

_WORD = re.compile(r"\w{4,}")
_SHORT = 3
_MOST_WORDS = 200


class IndexPart:
    """Remembers for one session what the index was ranked for."""

    def __init__(self) -> None:
        self._words: frozenset[str] = frozenset()
        self._names: frozenset[str] | None = None
        self._budget = 0
        self._text = ""

    def text(self, library: Library, query: str, budget: int) -> str:
        """The index for a prompt; the same as last time while subject and entries are the same.

        Of private entries it says only that they exist, to a local model as well: what an answer
        drew on can be told by the tools that were used, not by what stood in the prompt.
        """
        words = frozenset(_WORD.findall(fold(query)))
        names = frozenset(
            f"{info.path}\0{'' if info.private else info.summary}" for info in library.infos()
        )
        kept = names == self._names and budget == self._budget and self._goes_on(words)
        if not kept:
            self._names, self._budget, self._words = names, budget, words
            self._text = library.prompt_index(query, budget, estimate_tokens, show_private=False)
        elif len(self._words) < _MOST_WORDS:
            self._words |= words
        return self._text

    def _goes_on(self, words: frozenset[str]) -> bool:
        """True if a message stays with the subject: it names it, or says little."""
        return len(words) < _SHORT or bool(words & self._words)
