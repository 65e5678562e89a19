"""Condenses a slice of conversation without a model: a choice of its sentences, none rephrased."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kbtui.offline.language import telling_terms
from kbtui.text import clean_line, fold, shorten, slugify

_MOST_SENTENCES = 10
# With MEMORY.md and the entries this stays below 40 % of the conversation.
_DIGEST_SHARE = 0.28
_SLUG_WIDTH = 40
_LEAD_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a slice."""

    role: str
    text: str


def history_entry(messages: Sequence[Message]) -> str:
    """What the user said in their own words: of little the first sentences, of much a digest.

    What kbtui said is no source; it is quoted only where the user said nothing.
    """
    speaker = (
        "user"
        if any(each.role == "user" and each.text.strip() for each in messages)
        else "assistant"
    )
    said = [each for each in messages if each.role == speaker]
    lead = list(filter(None, (_lead(each.text) for each in said)))
    if len(lead) <= _MOST_SENTENCES:
        return f"The {speaker} said: {' '.join(lead)}"
    budget = int(sum(len(each.text) for each in messages) * _DIGEST_SHARE)
    return "\n".join(f"- {each.role.capitalize()}: {text}" for each, text in digest(said, budget))


def slug_of(messages: Sequence[Message]) -> str:
    """A file name out of the first words of the user's that tell something."""
    for each in messages:
        told = [word for word in slugify(shorten(each.text, 200)).split("-") if telling_terms(word)]
        if each.role == "user" and len(told) > 1:
            return slugify(" ".join(told[:5]), _SLUG_WIDTH)
    return "conversation"


def _lead(text: str) -> str:
    """The first sentence of a message."""
    first = shorten(_SENTENCE.split(text.strip())[0], _LEAD_WIDTH)
    return first if not first or first[-1] in ".!?:…" else f"{first}."


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


def digest(said: Sequence[Message], budget: int) -> list[tuple[Message, str]]:
    """Choose the sentences that say most in at most `budget` characters; nothing is rephrased.

    Together they cover the words that carry information, each counted once, per character spent:
    budgeted maximum coverage by lazy greedy choice (Lin and Bilmes, "Multi-document summarization
    via budgeted maximization of submodular functions", 2010). Rare words, names and numbers weigh
    more. Gives the messages that have some, in order, each with its sentences joined.
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


def _sentences(said: Sequence[Message]) -> Iterator[_Sentence]:
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
