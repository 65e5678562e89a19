"""Fuzzy search of entries by name, among 10,000 of them in a few milliseconds.

The case-folded query is compared with title, slug, aliases, path and tags. Exact names and prefixes
rank first, then substrings, then subsequences (``pgan`` finds *PostgreSQL for analytics*), and if
little is found, names within a typing error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from kbtui.errors import KbtuiError
from kbtui.text import fold
from kbtui.tui.notes.pages import pages_of
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from kbtui.knowledge.library.library import EntryInfo, Library
    from kbtui.knowledge_base import KnowledgeBase

TEXTS_AFTER_SECONDS = 0.15
"""Seconds without a key press before the texts of entries are searched."""
_MIN_QUERY_CHARACTERS = 3
_MAX_ENTRIES = 10
_ENOUGH_MATCHES = 1
_SURE_SCORE = 500
_TYPO_SCORE = 74.0
_SHORT_WORD = 5  # characters
_PUNCTUATION = ".,;:!?()[]\"'"
_NOT_TITLE_PENALTY = 30
"""Penalty for a match of a slug or an alias compared to one of the title."""
_CHECK_EVERY_CANDIDATES = 512
_WORDS = re.compile(r"[^\W_]+")


class Match(NamedTuple):
    """A matching entry and its score (higher is better)."""

    score: float
    entry: EntryInfo


class _Candidate(NamedTuple):
    entry: EntryInfo
    names: tuple[str, ...]
    initials: str
    haystack: str
    recency: float


class FuzzyIndex:
    """An index over the names of all entries; built and queried in threads."""

    def __init__(self, entries: Sequence[EntryInfo]) -> None:
        self._last_search: tuple[str, list[_Candidate]] = ("", [])
        newest_first = sorted(entries, key=lambda entry: -entry.mtime_ns)
        count = max(1, len(newest_first))
        self._candidates = [
            _candidate(entry, 20 * (1 - rank / count)) for rank, entry in enumerate(newest_first)
        ]

    def search(
        self,
        query: str,
        limit: int | None = None,
        *,
        stale: Callable[[], bool] = lambda: False,
    ) -> list[Match]:
        """Return matching entries, best first; for an empty query all, newest first.

        Aborts and returns nothing once `stale` returns true.
        """
        folded = fold(query).strip()
        if not folded:
            return [Match(0, candidate.entry) for candidate in self._candidates[:limit]]
        found: list[Match] = []
        fitting: list[_Candidate] = []
        scorer = _Scorer(folded)
        for number, candidate in enumerate(self._candidates_for(folded)):
            if number % _CHECK_EVERY_CANDIDATES == 0 and stale():
                return []
            score = scorer.score(candidate)
            if score:
                fitting.append(candidate)
                found.append(Match(score + candidate.recency, candidate.entry))
        self._last_search = (folded, fitting)
        if sum(match.score >= _SURE_SCORE for match in found) < _ENOUGH_MATCHES:
            found = _deduplicated([*found, *_with_typos(folded, self._candidates)])
        found.sort(key=lambda match: (-match.score, match.entry.path))
        return found[:limit]

    def _candidates_for(self, query: str) -> list[_Candidate]:
        """Return the candidates: if the query extends the last one, only its matches."""
        last, fitting = self._last_search
        return fitting if last and query.startswith(last) else self._candidates


def _candidate(entry: EntryInfo, recency: float) -> _Candidate:
    names = tuple(fold(name) for name in (entry.title, entry.slug, *entry.aliases) if name)
    place = short_name(entry.path)
    haystack = " ".join((*names, fold(place), *(fold(f"#{tag}") for tag in entry.tags)))
    initials = "".join(word[0] for word in _WORDS.findall(names[0])) if names else ""
    return _Candidate(entry, names, initials, haystack, recency)


class _Scorer:
    """A query prepared for scoring many candidates."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._words = query.split()
        self._word_start = re.compile(r"(?:^|[\W_])" + re.escape(query))
        letters = [re.escape(char) for char in query if not char.isspace()]
        self._subsequence = re.compile(".*?".join(letters)) if len(letters) > 1 else None
        # A subsequence with wide gaps is found in any long title by chance.
        self._max_spread = 16 / max(2, len(letters)) + 1

    def score(self, candidate: _Candidate) -> float:
        """Return the score of a candidate; 0 for no match."""
        if self._query in candidate.haystack:
            scores = [*map(self._name_score, candidate.names)]
            others = [each - _NOT_TITLE_PENALTY for each in scores[1:] if each]
            return max([*scores[:1], *others], default=0) or 600
        if all(word in candidate.haystack for word in self._words):
            return 550
        if self._subsequence is None:
            return 0
        if candidate.initials.startswith(self._query):
            return 450
        return max(map(self._subsequence_score, candidate.names), default=0)

    def _name_score(self, name: str) -> float:
        query = self._query
        if query not in name:
            return 0
        if name == query:
            return 1000
        closeness = 50 * len(query) / len(name)
        if name.startswith(query):
            return 900 + closeness
        return (800 if self._word_start.search(name) else 700) + closeness

    def _subsequence_score(self, name: str) -> float:
        match = self._subsequence.search(name) if self._subsequence is not None else None
        if match is None:
            return 0
        length = match.end() - match.start()
        spread = length / len(self._query)
        return 0 if spread > self._max_spread else 400 - 40 * spread


def _with_typos(query: str, candidates: Sequence[_Candidate]) -> list[Match]:
    from rapidfuzz import fuzz, process

    if len(query) <= 2:  # two letters resemble everything
        return []
    names = [candidate.names[0] if candidate.names else "" for candidate in candidates]
    similar = process.extract(query, names, scorer=fuzz.WRatio, score_cutoff=_TYPO_SCORE, limit=20)
    found = {index: score for _, score, index in similar}
    # A word is little of a long title: there each word is compared by itself.
    for index in _with_similar_words(query.split(), names):
        found.setdefault(index, _TYPO_SCORE)
    return [Match(3.8 * score, candidates[index].entry) for index, score in found.items()]


def _with_similar_words(words: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the numbers of names with a word that is spelt nearly as each of `words`."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    of_word: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        for word in set(name.split()):
            of_word.setdefault(word, []).append(number)
    numbers, known = [*of_word.values()], [word.strip(_PUNCTUATION) for word in of_word]
    held = [
        {
            number
            for *_, place in process.extract(
                word,
                known,
                scorer=OSA.distance,
                score_cutoff=_edits_in(word),
                limit=None,
            )
            for number in numbers[place]
        }
        for word in words
    ]
    return sorted(set.intersection(*held))[:_MAX_ENTRIES] if held else []


def _edits_in(word: str) -> int:
    """Return how many edits make a typing error of a word of its length."""
    return 0 if len(word) <= _MIN_QUERY_CHARACTERS else 1 if len(word) <= _SHORT_WORD else 2


def _deduplicated(matches: Sequence[Match]) -> list[Match]:
    best: dict[str, Match] = {}
    for match in matches:
        if match.entry.path not in best or match.score > best[match.entry.path].score:
            best[match.entry.path] = match
    return list(best.values())


def matched_spans(text: str, query: str) -> list[tuple[int, int]]:
    """Return the spans of a query in `text`; none if folding changed its length."""
    folded, needle = fold(text), fold(query).strip()
    if not needle or len(folded) != len(text):
        return []
    at = folded.find(needle)
    if at >= 0:
        return [(at, at + len(needle))]
    spans = [
        (match.start(), match.end())
        for word in needle.split()
        for match in [re.search(re.escape(word), folded)]
        if match is not None
    ]
    return spans or _subsequence_spans(folded, needle)


def _subsequence_spans(text: str, query: str) -> list[tuple[int, int]]:
    spans, at = [], 0
    for char in query.replace(" ", ""):
        at = text.find(char, at)
        if at < 0:
            return []
        spans.append((at, at + 1))
        at += 1
    return spans


_indexes: WeakKeyDictionary[Library, tuple[list[EntryInfo], FuzzyIndex]] = WeakKeyDictionary()


def names_of(kb: KnowledgeBase) -> FuzzyIndex:
    """Return the cached index over all entries and pages; call it in a thread."""
    entries = [*kb.library.infos(), *pages_of(kb)]
    known = _indexes.get(kb.library)
    if known is None or known[0] != entries:
        known = _indexes[kb.library] = entries, FuzzyIndex(entries)
    return known[1]


def worth_searching(query: str) -> bool:
    """Return whether to search texts for a query: almost any text matches one or two letters."""
    return len(query) >= _MIN_QUERY_CHARACTERS


def search_texts(kb: KnowledgeBase, query: str) -> list[tuple[EntryInfo, int]]:
    """Return up to ten entries whose text matches, best first, with the matching line.

    Call it in a thread. Returns nothing if search fails: matches of names are enough here, and the
    search screen reports the problem.
    """
    try:
        hits = kb.search.search(query, "knowledge", _MAX_ENTRIES, semantic=False).hits
    except KbtuiError:
        return []
    lines: dict[str, int] = {}
    for hit in hits:
        lines.setdefault(hit.path, hit.line)
    infos = ((kb.library.info(path), line) for path, line in lines.items())
    return [(info, line) for info, line in infos if info is not None]
