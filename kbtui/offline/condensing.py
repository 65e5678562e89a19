"""Extractive summaries of conversations without a model: selected sentences, none rephrased."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kbtui.offline.language import significant_terms
from kbtui.offline.lines import sentences
from kbtui.text import clean_line, shorten, slugify

# Together with MEMORY.md and the entries this stays below 40 % of the conversation.
_DIGEST_SHARE = 0.28
_MIN_DIGEST = 600  # characters; shorter texts are kept whole
_MAX_SENTENCE = 300
_OVERHEAD = 12
_SLUG_WIDTH = 40


@dataclass(frozen=True, slots=True)
class SliceMessage:
    """One message of a slice."""

    role: str
    text: str


def history_entry(messages: Sequence[SliceMessage]) -> str:
    """Return what the user said in their own words; of long texts the most informative sentences.

    The assistant is quoted only if the user said nothing.
    """
    roles = {each.role for each in messages if each.text.strip()}
    speaker = "user" if "user" in roles else "assistant"
    spoken = [each for each in messages if each.role == speaker]
    budget = max(_MIN_DIGEST, int(sum(len(each.text) for each in messages) * _DIGEST_SHARE))
    chosen = digest([each.text for each in spoken], budget)
    if len(chosen) <= 1 or sum(map(len, chosen)) <= _MIN_DIGEST:
        return f"The {speaker} said: {' '.join(chosen)}"
    return "\n".join(f"- {speaker.capitalize()}: {text}" for text in chosen)


def slug_of(messages: Sequence[SliceMessage]) -> str:
    """Return a file name from the user's first significant words."""
    for each in messages:
        words = [
            word for word in slugify(shorten(each.text, 200)).split("-") if significant_terms(word)
        ]
        if each.role == "user" and len(words) > 1:
            return slugify(" ".join(words[:5]), _SLUG_WIDTH)
    return "conversation"


def digest(texts: Sequence[str], budget: int) -> list[str]:
    """Return the most informative sentences in order, in at most `budget` characters.

    Sentences are ranked by the rarity of their significant words per character, and skipped if
    better ones cover these words. The sentences of one text are joined.
    """
    found = list(_sentences(texts))
    known = Counter(term for _, _, terms in found for term in terms)

    def weight(terms: frozenset[str]) -> float:
        return sum(math.log(1 + len(texts) / known[term]) for term in terms)

    covered: set[str] = set()
    chosen: dict[int, list[tuple[int, str]]] = {}
    ranked = sorted(enumerate(found), key=lambda each: -weight(each[1][2]) / _cost(each[1][1]))
    for place, (number, text, terms) in ranked:
        if _cost(text) <= budget and weight(terms - covered) > weight(terms) / 2:
            budget -= _cost(text)
            covered |= terms
            chosen.setdefault(number, []).append((place, text))
    return [" ".join(text for _, text in sorted(chosen[number])) for number in sorted(chosen)]


def _cost(text: str) -> int:
    return len(text) + _OVERHEAD


def _sentences(texts: Sequence[str]) -> Iterator[tuple[int, str, frozenset[str]]]:
    """Yield each sentence, with the number of its text and its significant words."""
    for number, text in enumerate(texts):
        for part in sentences(text):
            if line := shorten(clean_line(part), _MAX_SENTENCE):
                yield number, line, frozenset(significant_terms(line))
