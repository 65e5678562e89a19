"""The part of the catalogue that goes into a prompt: what matters now, at a flat cost."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from kbtui.knowledge import catalog
from kbtui.knowledge.catalog import by_date
from kbtui.text import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kbtui.knowledge.entry import EntryInfo

_WORD = re.compile(r"\w{2,}")
_NAME_WEIGHT = 3.0
_LINK_WEIGHT = 0.25
_RECENCY_WEIGHT = 1.0
# A line costs a few tokens at least; no more than this many can fit whatever the budget.
_TOKENS_PER_LINE = 4
_COMMON = frozenset(
    fold(word)
    for word in re.findall(
        r"\w+",
        """a an and are as at be by can did do does for from had has have how i if in is it its me
        my no not of on or our so that the their them then there these they this to us was we were
        what when where which who why will with would you your""",
    )
)


class PromptIndex:
    """Ranks entries for a conversation; keeps the words of each entry between calls."""

    def __init__(self) -> None:
        self._words: dict[str, tuple[str, frozenset[str], frozenset[str]]] = {}

    def write(
        self,
        infos: Sequence[EntryInfo],
        query: str,
        budget: int,
        count: Callable[[str], int],
        degree: Callable[[str], int],
        *,
        show_private: bool,
    ) -> str:
        """Write at most `budget` tokens: the best entries by category, and what is left out."""
        if budget <= 0 or not infos:
            return ""

        def line_of(info: EntryInfo) -> str:
            return catalog.entry_line(info, show_private=show_private)

        ranked = self.ranked(infos, query, degree)
        ranked = ranked[: budget // _TOKENS_PER_LINE + 1]
        taken = _fitting(ranked, line_of, budget, count)
        while True:
            text = self._text(infos, {info.path for info in taken}, line_of)
            excess = count(text) - budget
            if excess <= 0 or not taken:
                return text if excess <= 0 else ""
            taken = taken[: -max(1, excess // 40)]

    def ranked(
        self, infos: Sequence[EntryInfo], query: str, degree: Callable[[str], int]
    ) -> list[EntryInfo]:
        """Order entries by relevance to the query, then recency and links."""
        terms = frozenset(_WORD.findall(fold(query))) - _COMMON
        score = self._relevance(infos, terms) if terms else {}
        recent = by_date(infos)
        size = max(1, len(recent))
        total = {
            info.path: score.get(info.path, 0.0)
            + _RECENCY_WEIGHT * (1 - place / size)
            + _LINK_WEIGHT * math.log1p(degree(info.path))
            for place, info in enumerate(recent)
        }
        return sorted(recent, key=lambda info: -total[info.path])

    def _relevance(self, infos: Sequence[EntryInfo], terms: frozenset[str]) -> dict[str, float]:
        found: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        for info in infos:
            names, words = self._words_of(info)
            hit = terms & words
            if hit:
                found[info.path] = (hit, hit & names)
        spread = Counter(term for hit, _names in found.values() for term in hit)
        rarity = {term: math.log(1 + len(infos) / number) for term, number in spread.items()}
        return {
            path: sum(rarity[term] for term in hit) + _NAME_WEIGHT * sum(rarity[t] for t in names)
            for path, (hit, names) in found.items()
        }

    def _words_of(self, info: EntryInfo) -> tuple[frozenset[str], frozenset[str]]:
        known = self._words.get(info.path)
        if known is None or known[0] != info.blob:
            names = fold(" ".join((info.title, info.slug, *info.tags, *info.aliases)))
            named = frozenset(_WORD.findall(names.replace("-", " ").replace("/", " ")))
            words = named | frozenset(_WORD.findall(fold(info.summary)))
            known = self._words[info.path] = (info.blob, named, words)
        return known[1], known[2]

    @staticmethod
    def _text(
        infos: Sequence[EntryInfo], taken: set[str], line_of: Callable[[EntryInfo], str]
    ) -> str:
        shown = catalog.by_category(info for info in infos if info.path in taken)
        left = Counter(info.category for info in infos if info.path not in taken)
        return catalog.prompt_text(shown, dict(left.most_common()), line_of)


def _fitting(
    ranked: Sequence[EntryInfo],
    line_of: Callable[[EntryInfo], str],
    budget: int,
    count: Callable[[str], int],
) -> list[EntryInfo]:
    taken: list[EntryInfo] = []
    for info in ranked:
        budget -= count(line_of(info)) + 1
        if budget < 0:
            break
        taken.append(info)
    return taken
