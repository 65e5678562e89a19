"""Finding entries by a few typed letters, among 10,000 of them in a few milliseconds.

What is typed is compared, folded, with title, slug, aliases, path and tags. Whole words and
beginnings come first, then parts, then letters in order (``pgan`` finds *PostgreSQL for
analytics*), and where little is found, names that differ by a typing error.
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
"""Seconds without a key before texts are searched."""
_SHORTEST_CHARACTERS = 3
_MOST_ENTRIES = 10
_FEW_MATCHES = 1
_SURE_SCORE = 500
_TYPO_SCORE = 74.0
_NO_TITLE = 30
"""What a slug or an alias counts less than a title that fits as well."""
_CHECK_EVERY_CANDIDATES = 512
_WORDS = re.compile(r"[^\W_]+")


class Match(NamedTuple):
    """An entry that was found, and how well it fits (higher is better)."""

    score: float
    entry: EntryInfo


class _Candidate(NamedTuple):
    entry: EntryInfo
    names: tuple[str, ...]
    initials: str
    everything: str
    recency: float


class FuzzyIndex:
    """The names of all entries, prepared for searching; made and asked in threads."""

    def __init__(self, entries: Sequence[EntryInfo]) -> None:
        self._last: tuple[str, list[_Candidate]] = ("", [])
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
        """The entries that fit, best first, or for no query the newest first.

        Ends early with nothing once `stale` says so.
        """
        folded = fold(query).strip()
        if not folded:
            return [Match(0, candidate.entry) for candidate in self._candidates[:limit]]
        found: list[Match] = []
        fitting: list[_Candidate] = []
        scorer = _Scorer(folded)
        for number, candidate in enumerate(self._narrowed(folded)):
            if number % _CHECK_EVERY_CANDIDATES == 0 and stale():
                return []
            score = scorer.score(candidate)
            if score:
                fitting.append(candidate)
                found.append(Match(score + candidate.recency, candidate.entry))
        self._last = (folded, fitting)
        if sum(match.score >= _SURE_SCORE for match in found) < _FEW_MATCHES:
            found = _best_of([*found, *_with_typos(folded, self._candidates)])
        found.sort(key=lambda match: (-match.score, match.entry.path))
        return found[:limit]

    def _narrowed(self, query: str) -> list[_Candidate]:
        """Where to look: what fits a longer query fitted the shorter one before it."""
        last, fitting = self._last
        return fitting if last and query.startswith(last) else self._candidates


def _candidate(entry: EntryInfo, recency: float) -> _Candidate:
    names = tuple(fold(name) for name in (entry.title, entry.slug, *entry.aliases) if name)
    place = short_name(entry.path)
    everything = " ".join((*names, fold(place), *(fold(f"#{tag}") for tag in entry.tags)))
    initials = "".join(word[0] for word in _WORDS.findall(names[0])) if names else ""
    return _Candidate(entry, names, initials, everything, recency)


class _Scorer:
    """One query, ready to be compared with many candidates."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._words = query.split()
        self._at_word = re.compile(r"(?:^|[\W_])" + re.escape(query))
        letters = [re.escape(char) for char in query if not char.isspace()]
        self._in_order = re.compile(".*?".join(letters)) if len(letters) > 1 else None
        # Many letters in order are found by chance in any long title if they may be far apart.
        self._widest = 16 / max(2, len(letters)) + 1

    def score(self, candidate: _Candidate) -> float:
        """How well the candidate fits; 0 where it doesn't."""
        if self._query in candidate.everything:
            scores = [*map(self._name_score, candidate.names)]
            others = [each - _NO_TITLE for each in scores[1:] if each]
            return max([*scores[:1], *others], default=0) or 600
        if all(word in candidate.everything for word in self._words):
            return 550
        if self._in_order is None:
            return 0
        if candidate.initials.startswith(self._query):
            return 450
        return max(map(self._letters_score, candidate.names), default=0)

    def _name_score(self, name: str) -> float:
        query = self._query
        if query not in name:
            return 0
        if name == query:
            return 1000
        closeness = 50 * len(query) / len(name)
        if name.startswith(query):
            return 900 + closeness
        return (800 if self._at_word.search(name) else 700) + closeness

    def _letters_score(self, name: str) -> float:
        match = self._in_order.search(name) if self._in_order is not None else None
        if match is None:
            return 0
        length = match.end() - match.start()
        spread = length / len(self._query)
        return 0 if spread > self._widest else 400 - 40 * spread


def _with_typos(query: str, candidates: Sequence[_Candidate]) -> list[Match]:
    from rapidfuzz import fuzz, process

    if len(query) <= 2:  # two letters resemble everything
        return []
    names = [candidate.names[0] if candidate.names else "" for candidate in candidates]
    similar = process.extract(query, names, scorer=fuzz.WRatio, score_cutoff=_TYPO_SCORE, limit=20)
    return [Match(3.8 * score, candidates[index].entry) for _, score, index in similar]


def _best_of(matches: Sequence[Match]) -> list[Match]:
    best: dict[str, Match] = {}
    for match in matches:
        if match.entry.path not in best or match.score > best[match.entry.path].score:
            best[match.entry.path] = match
    return list(best.values())


def matched_spans(text: str, query: str) -> list[tuple[int, int]]:
    """Where in `text` a query matches, for showing it; nothing where folding moved letters."""
    folded, wanted = fold(text), fold(query).strip()
    if not wanted or len(folded) != len(text):
        return []
    at = folded.find(wanted)
    if at >= 0:
        return [(at, at + len(wanted))]
    spans = [
        (match.start(), match.end())
        for word in wanted.split()
        for match in [re.search(re.escape(word), folded)]
        if match is not None
    ]
    return spans or _letters_in_order(folded, wanted)


def _letters_in_order(text: str, query: str) -> list[tuple[int, int]]:
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
    """The index over all entries and pages, made again only when they changed; for threads."""
    entries = [*kb.library.infos(), *pages_of(kb)]
    known = _indexes.get(kb.library)
    if known is None or known[0] != entries:
        known = _indexes[kb.library] = entries, FuzzyIndex(entries)
    return known[1]


def worth_searching(query: str) -> bool:
    """True if texts are searched for it: almost every text says one or two letters."""
    return len(query) >= _SHORTEST_CHARACTERS


def entries_saying(kb: KnowledgeBase, query: str) -> list[tuple[EntryInfo, int]]:
    """At most ten entries, best first, each with the line that says it; for threads.

    None where search can't answer: names are enough here, and the search screen says what is wrong.
    """
    try:
        hits = kb.search.search(query, "knowledge", _MOST_ENTRIES, semantic=False).hits
    except KbtuiError:
        return []
    lines: dict[str, int] = {}
    for hit in hits:
        lines.setdefault(hit.path, hit.line)
    infos = ((kb.library.info(path), line) for path, line in lines.items())
    return [(info, line) for info, line in infos if info is not None]
