"""A digest of a conversation in its own words: the sentences that say most in little room.

Sentences are chosen so that together they cover the words that carry information, each counted
once, per character spent: budgeted maximum coverage by lazy greedy choice (Lin and Bilmes,
"Multi-document summarization via budgeted maximization of submodular functions", 2010). Rare words,
names and numbers weigh more. Nothing is rephrased.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.text import clean_line, fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kbtui.offline.understand import Said

_SENTENCE = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n+")
_WORD = re.compile(r"\w[\w'-]*")
_LONGEST = 300
_OVERHEAD = 12
_NAME_WEIGHT = 1.6
_NUMBER_WEIGHT = 2.0
_SHORTEST_WORD = 3


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence, where it stands, and what its words weigh."""

    message: int
    place: int
    text: str
    words: dict[str, float]

    @property
    def cost(self) -> int:
        return len(self.text) + _OVERHEAD


def digest(said: Sequence[Said], budget: int) -> list[tuple[Said, str]]:
    """Choose sentences worth at most `budget` characters.

    Returns:
        The messages that have some, in order, each with its sentences joined.
    """
    sentences = list(_sentences(said))
    weights = _weights(sentences, len(said))
    chosen = sorted(
        _choose(sentences, weights, budget), key=lambda each: (each.message, each.place)
    )
    parts: dict[int, list[str]] = {}
    for sentence in chosen:
        parts.setdefault(sentence.message, []).append(sentence.text)
    return [(said[number], " ".join(texts)) for number, texts in parts.items()]


def _sentences(said: Sequence[Said]) -> Iterator[_Sentence]:
    for number, message in enumerate(said):
        for place, part in enumerate(_SENTENCE.split(message.text)):
            text = clean_line(part)
            if text and len(text) <= _LONGEST:
                yield _Sentence(number, place, text, dict(_words(text)))


def _words(text: str) -> Iterator[tuple[str, float]]:
    """The words of a sentence, folded, with what their form alone makes them weigh."""
    for match in _WORD.finditer(text):
        word = match[0]
        if word.isdecimal() or any(char.isdigit() for char in word):
            yield fold(word), _NUMBER_WEIGHT
        elif match.start() and word[:1].isupper() and len(word) > 1:
            yield fold(word), _NAME_WEIGHT
        elif len(word) >= _SHORTEST_WORD:
            yield fold(word).removesuffix("s"), 1.0


def _weights(sentences: Iterable[_Sentence], messages: int) -> dict[str, float]:
    """What covering a word is worth: the rarer in this conversation, the more."""
    frequency: Counter[str] = Counter()
    form: dict[str, float] = {}
    for sentence in sentences:
        for word, weight in sentence.words.items():
            frequency[word] += 1
            form[word] = max(form.get(word, 0.0), weight)
    return {word: form[word] * math.log(1 + messages / n) for word, n in frequency.items()}


def _choose(
    sentences: Sequence[_Sentence], weights: dict[str, float], budget: int
) -> Iterator[_Sentence]:
    """Take the best gain for its cost again and again; gains only shrink: old ones are bounds."""
    covered: set[str] = set()

    def gain(sentence: _Sentence) -> float:
        new = sum(weights[word] for word in sentence.words if word not in covered)
        return new / sentence.cost

    heap = [(-gain(sentence), number) for number, sentence in enumerate(sentences)]
    heapq.heapify(heap)
    while heap and budget > 0:
        _, number = heapq.heappop(heap)
        sentence = sentences[number]
        now = gain(sentence)
        if now <= 0 or sentence.cost > budget:
            continue
        if heap and now < -heap[0][0]:
            heapq.heappush(heap, (-now, number))
            continue
        budget -= sentence.cost
        covered.update(sentence.words)
        yield sentence
