"""The entries that are called most like a name which none has."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import log1p

from rapidfuzz import fuzz, process

from kbtui.knowledge.entries.entry import EntryInfo
from kbtui.text import fold
from kbtui.workspace.layout import short_name

_NEAREST = 3
_LONGEST = 200
_MOST_WORDS = 12
_LIKENESS = 65
_LEAST = 0.4
_OF_BEST = 0.7
# What a word counts that goes on, or is spelled a little otherwise, and each that nobody asked for.
_BEGUN, _SPELLED, _SPARE = 0.9, 0.85, 0.02
_BEGINNING = 3
_UNKNOWN = 0.5
_WORD = re.compile(r"[^\W_]+")


def nearest(ref: str, infos: Iterable[EntryInfo]) -> list[str]:
    """The names of the entries that are called most like `ref`, word by word or in all."""
    known = list(infos)
    wanted = fold(short_name(ref)[:_LONGEST])
    names = [
        (number, fold(name))
        for number, info in enumerate(known)
        for name in dict.fromkeys((info.slug, info.title, *info.aliases))
    ]
    by_words, by_letters = _by_words(wanted, names), _by_letters(wanted, names)
    likeness = {
        number: max(by_words.get(number, 0.0), by_letters.get(number, 0.0))
        for number in by_words.keys() | by_letters.keys()
    }
    ranked = sorted(likeness, key=lambda number: (-likeness[number], len(known[number].slug)))
    least = max(_LEAST, likeness[ranked[0]] * _OF_BEST) if ranked else 0.0
    return [known[number].name for number in ranked[:_NEAREST] if likeness[number] >= least]


def _weighed(
    wanted: Iterable[str], words_of: Sequence[tuple[int, set[str]]]
) -> list[tuple[float, dict[str, float]]]:
    """What each word counts, and how like it the words are that entries have."""
    entries_with: defaultdict[str, set[int]] = defaultdict(set)
    for number, words in words_of:
        for word in words:
            entries_with[word].add(number)
    count = len({number for number, _ in words_of})
    every_word = list(entries_with)
    found: list[tuple[float, dict[str, float]]] = []
    for word in wanted:
        alike = _words_alike(word, every_word)
        having = {number for each in alike for number in entries_with[each]}
        found.append((log1p(count / (1 + len(having))) if having else _UNKNOWN, alike))
    return found


def _by_words(wanted: str, names: Sequence[tuple[int, str]]) -> dict[int, float]:
    """How much of the words that are looked for each entry has in one of its names, from 0 to 1.

    A rare word counts for more; one that goes on, or is spelled a little otherwise, for less.
    """
    words_of = [(number, set(_WORD.findall(name))) for number, name in names]
    best = _weighed(list(dict.fromkeys(_WORD.findall(wanted)))[:_MOST_WORDS], words_of)
    every = sum(weight for weight, _ in best) or 1.0
    found: dict[int, float] = {}
    for number, words in words_of:
        got = sum(
            weight * max((alike[each] for each in words & alike.keys()), default=0.0)
            for weight, alike in best
        )
        spare = _SPARE * max(0, len(words) - len(best))
        found[number] = max(found.get(number, 0.0), got / every - spare)
    return found


def _words_alike(wanted: str, words: Sequence[str]) -> dict[str, float]:
    """The words that may be meant by one, and how surely."""
    near = process.extract(wanted, words, scorer=fuzz.ratio, limit=None, score_cutoff=75)
    alike = {each: score / 100 * _SPELLED for each, score, _ in near}
    alike |= {each: _BEGUN for each in words if _begin_alike(wanted, each)}
    if wanted in words:
        alike[wanted] = 1.0
    return alike


def _begin_alike(one: str, other: str) -> bool:
    return min(len(one), len(other)) >= _BEGINNING and (
        one.startswith(other) or other.startswith(one)
    )


def _by_letters(wanted: str, names: Sequence[tuple[int, str]]) -> dict[int, float]:
    """How alike the entries' names are to what is looked for as a whole, from 0 to 1."""
    name = wanted.rpartition("/")[2]
    choices = dict(enumerate(each for _, each in names))
    found: dict[int, float] = {}
    for _, score, at in process.extract(
        name, choices, scorer=fuzz.ratio, limit=None, score_cutoff=_LIKENESS
    ):
        found[names[at][0]] = max(found.get(names[at][0], 0.0), score / 100)
    return found
