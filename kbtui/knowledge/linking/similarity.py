"""Suggestions for a name that no entry has: the entries with the most similar names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import log1p

from rapidfuzz import fuzz, process

from kbtui.knowledge.entries.entry import EntryInfo
from kbtui.text import fold
from kbtui.workspace.layout import short_name

_MAX_SUGGESTIONS = 3
_MAX_NAME = 200
_MAX_WORDS = 12
_MIN_RATIO = 65
_MIN_SCORE = 0.4
_SHARE_OF_BEST = 0.7
# Weights of a prefix match, of a slightly different spelling, and of each unwanted word.
_PREFIX_MATCH, _TYPO_MATCH, _EXTRA_WORD = 0.9, 0.85, 0.02
_MIN_PREFIX = 3
_UNKNOWN_WEIGHT = 0.5
_WORD = re.compile(r"[^\W_]+")


def nearest(ref: str, infos: Iterable[EntryInfo]) -> list[str]:
    """Return the names of the entries most similar to `ref`, by words or as a whole."""
    known = list(infos)
    wanted = fold(short_name(ref)[:_MAX_NAME])
    names = [
        (number, fold(name))
        for number, info in enumerate(known)
        for name in dict.fromkeys((info.slug, info.title, *info.aliases))
    ]
    by_words, by_letters = _by_words(wanted, names), _by_letters(wanted, names)
    scores = {
        number: max(by_words.get(number, 0.0), by_letters.get(number, 0.0))
        for number in by_words.keys() | by_letters.keys()
    }
    ranked = sorted(scores, key=lambda number: (-scores[number], len(known[number].slug)))
    threshold = max(_MIN_SCORE, scores[ranked[0]] * _SHARE_OF_BEST) if ranked else 0.0
    return [
        known[number].name for number in ranked[:_MAX_SUGGESTIONS] if scores[number] >= threshold
    ]


def _weighted_words(
    wanted: Iterable[str], words_of: Sequence[tuple[int, set[str]]]
) -> list[tuple[float, dict[str, float]]]:
    """Return the weight of each word, and the similarity of the entries' words to it."""
    entries_with: defaultdict[str, set[int]] = defaultdict(set)
    for number, words in words_of:
        for word in words:
            entries_with[word].add(number)
    count = len({number for number, _ in words_of})
    vocabulary = list(entries_with)
    found: list[tuple[float, dict[str, float]]] = []
    for word in wanted:
        similar = _similar_words(word, vocabulary)
        matching = {number for each in similar for number in entries_with[each]}
        found.append((log1p(count / (1 + len(matching))) if matching else _UNKNOWN_WEIGHT, similar))
    return found


def _by_words(wanted: str, names: Sequence[tuple[int, str]]) -> dict[int, float]:
    """Return the share of the wanted words in each entry's best name, from 0 to 1.

    Rare words count for more; prefix matches and different spellings for less.
    """
    words_of = [(number, set(_WORD.findall(name))) for number, name in names]
    best = _weighted_words(list(dict.fromkeys(_WORD.findall(wanted)))[:_MAX_WORDS], words_of)
    total = sum(weight for weight, _ in best) or 1.0
    found: dict[int, float] = {}
    for number, words in words_of:
        matched = sum(
            weight * max((similar[each] for each in words & similar.keys()), default=0.0)
            for weight, similar in best
        )
        penalty = _EXTRA_WORD * max(0, len(words) - len(best))
        found[number] = max(found.get(number, 0.0), matched / total - penalty)
    return found


def _similar_words(wanted: str, words: Sequence[str]) -> dict[str, float]:
    """Return the words that may be meant by one, with their similarity from 0 to 1."""
    fuzzy = process.extract(wanted, words, scorer=fuzz.ratio, limit=None, score_cutoff=75)
    similar = {each: score / 100 * _TYPO_MATCH for each, score, _ in fuzzy}
    similar |= {each: _PREFIX_MATCH for each in words if _share_prefix(wanted, each)}
    if wanted in words:
        similar[wanted] = 1.0
    return similar


def _share_prefix(one: str, other: str) -> bool:
    return min(len(one), len(other)) >= _MIN_PREFIX and (
        one.startswith(other) or other.startswith(one)
    )


def _by_letters(wanted: str, names: Sequence[tuple[int, str]]) -> dict[int, float]:
    """Return the similarity of each entry's best name as a whole, from 0 to 1."""
    name = wanted.rpartition("/")[2]
    choices = dict(enumerate(each for _, each in names))
    found: dict[int, float] = {}
    for _, score, at in process.extract(
        name, choices, scorer=fuzz.ratio, limit=None, score_cutoff=_MIN_RATIO
    ):
        found[names[at][0]] = max(found.get(names[at][0], 0.0), score / 100)
    return found
