"""BM25 as a textbook has it, to compare with: lower case, ``\\w+``, k1 = 1.2, b = 0.75."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_K1, _B = 1.2, 0.75
_WORD = re.compile(r"\w+")


class PlainBm25:
    """An inverted index in dictionaries."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._postings: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._lengths: dict[str, int] = {}
        for name, text in texts.items():
            counts = Counter(_WORD.findall(text.lower()))
            self._lengths[name] = counts.total()
            for word, count in counts.items():
                self._postings[word].append((name, count))
        self._average = sum(self._lengths.values()) / max(1, len(self._lengths))

    def best(self, query: str, most: int) -> list[str]:
        """The names of the best texts, best first."""
        scores: dict[str, float] = defaultdict(float)
        for word in _WORD.findall(query.lower()):
            held = self._postings.get(word, ())
            idf = math.log(1 + (len(self._lengths) - len(held) + 0.5) / (len(held) + 0.5))
            for name, count in held:
                norm = 1 - _B + _B * self._lengths[name] / self._average
                scores[name] += idf * count * (_K1 + 1) / (count + _K1 * norm)
        return sorted(scores, key=lambda name: (-scores[name], name))[:most]
