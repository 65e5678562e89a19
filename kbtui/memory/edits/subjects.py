"""Finds the entry that a fact is about, so that it is updated and not written a second time.

The catalogue is asked first (names, titles, aliases), then the index. A wrong match would
mix two subjects up, while a missed one leaves two entries that can still be merged: so only what
is called alike counts, and numbers must be the same.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from kbtui.errors import KbtuiError
from kbtui.knowledge.entries.entry import ENTRY_TYPES, EntryInfo
from kbtui.knowledge.format.facts import Fact, normalise, statements
from kbtui.knowledge.library.library import Library
from kbtui.offline.language import begins, languages, of_all, tokens
from kbtui.search.search_index import SearchIndex
from kbtui.text import fold, shorten

log = logging.getLogger(__name__)
_ALIKE = 0.75
_ALIKE_AND_FOUND = 0.5
_LOOKED_AT = 8
_MOST_READ = 1_000
_SHORTEST_NAME = 3
_WORD = re.compile(r"\w+")
_QUERY_WIDTH = 200
# Words that say how something is a subject, not which one it is. Others tell, if only a letter:
# Project X isn't Project Y.
_HOW = (
    "use using adopt choose chose switch switching move moving migrate decide decided decision"
    " for to of in on at with from as and or new our about project topic preference"
)
_SILENT = frozenset(map(normalise, _HOW.split()))
_DATE = re.compile(r"^\d{4}-\d{2}(?:-\d{2})?-")


class Subjects:
    """Knows the entries of a library by what they are about."""

    def __init__(self, library: Library, search: SearchIndex | None = None) -> None:
        self._library = library
        self._search = search
        self._known_words: dict[str, tuple[str, frozenset[str]]] = {}
        self._known_names: dict[str, tuple[str, frozenset[str]]] = {}

    def find(self, fact: Fact) -> EntryInfo | None:
        """The entry that a fact is about; None: there is none that is surely the one."""
        infos = [info for info in self._library.infos() if info.problem is None]
        wanted = normalise(fact.subject)
        named = [info for info in infos if wanted in self._names(info)]
        found = _only(named, fact) or _only(self._alike(fact, infos, _ALIKE), fact)
        return found or self._searched(fact, infos)

    def twins(self, kind: str, title: str) -> list[EntryInfo]:
        """The entries of a type that are called nearly the same; in place, any called the same."""
        wanted, words = normalise(title), _words(title)

        def is_twin(info: EntryInfo) -> bool:
            names = self._names(info)
            if info.category.partition("/")[0] == ENTRY_TYPES[kind] or (
                self._library.in_place and info.type == kind
            ):
                return wanted in names or _likeness(words, names, kind) >= _ALIKE
            return self._library.in_place and wanted in names

        return list(filter(is_twin, self._library.infos()))

    def near(self, statement: str) -> list[str]:
        """The entries that may say a statement: of few all are looked at, of many the index is."""
        infos = self._library.infos()
        if len(infos) > _MOST_READ:
            found = self._hits(statement)
            if found is not None:
                return found
        wanted = {word for word in normalise(statement).split() if len(word) >= _SHORTEST_NAME}
        shares = {
            info.path: len(wanted & self._words_of(info)) for info in infos[:_MOST_READ] if wanted
        }
        least = _ALIKE_AND_FOUND * len(wanted)
        ranked = sorted(shares, key=lambda path: -shares[path])
        return [path for path in ranked if shares[path] >= least][:_LOOKED_AT]

    def _hits(self, text: str) -> list[str] | None:
        """The entries that the index finds for a text; None: it can't be asked."""
        if self._search is None:
            return None
        query = shorten(text, _QUERY_WIDTH)
        try:
            result = self._search.search(query, "knowledge", _LOOKED_AT)
        except KbtuiError as error:
            log.info("the index can't be asked for %r: %s", query, error)
            return None
        return [hit.path for hit in result.hits]

    def _words_of(self, info: EntryInfo) -> frozenset[str]:
        """The words of an entry; kept for as long as it stays the same."""
        known = self._known_words.get(info.path)
        if known is None or known[0] != info.blob:
            try:
                text = self._library.get(info.path).text
            except KbtuiError:
                text = ""
            known = (info.blob, frozenset(normalise(f"{info.title} {text}").split()))
            self._known_words[info.path] = known
        return known[1]

    def named_in(self, text: str) -> list[str]:
        """The entries that a text calls by a name, in the order in which it does."""
        return [info.path for info in named_in(self._library.infos(), text)]

    def _alike(self, fact: Fact, infos: Iterable[EntryInfo], share: float) -> list[EntryInfo]:
        """Entries of the fact's type with nearly its title."""
        words = _words(fact.subject)
        return [
            info
            for info in infos
            if info.type == fact.kind and _likeness(words, self._names(info), fact.kind) >= share
        ]

    def _names(self, info: EntryInfo) -> frozenset[str]:
        """What an entry is called, normalised; kept for as long as it stays the same."""
        known = self._known_names.get(info.path)
        if known is None or known[0] != info.blob:
            slug = _DATE.sub("", info.slug).replace("-", " ")
            names = frozenset(normalise(name) for name in (info.title, slug, *info.aliases))
            known = self._known_names[info.path] = (info.blob, names)
        return known[1]

    def _searched(self, fact: Fact, infos: Sequence[EntryInfo]) -> EntryInfo | None:
        """The first entry that the index finds for the subject, if it is called alike."""
        known = {info.path: info for info in infos}
        found = self._hits(f"{fact.subject} {fact.summary or fact.text}") or ()
        hits = [known[path] for path in found if path in known]
        alike = self._alike(fact, hits, _ALIKE_AND_FOUND)
        return alike[0] if alike and alike[0] is hits[0] else None


def names_of_user(texts: Iterable[str]) -> tuple[str, ...]:
    """What some documents say that the user is called: ``Name: Ben Carter``, ``My name is Ben``."""
    return tuple(name for text in texts for name in _names_said(text))


@lru_cache(maxsize=8)  # each line that is checked asks for those of the same two files
def _names_said(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(_name_said, statements(text))))


def _name_said(line: str) -> str:
    """The words with capitals at once behind the words that give a name."""
    said = begins(line, of_all("named")) or ""
    name: list[str] = []
    end = 0
    for token in tokens(said):
        if not said[token.start].isupper() or said[end : token.start].strip():
            break
        name.append(said[token.start : token.end])
        end = token.end
    return " ".join(name)


def is_user(subject: str, names: Iterable[str]) -> bool:
    """True if a subject means the user: me, myself, the user, or one of their `names`."""
    words = {token.word for token in tokens(subject)}
    own = {token.word for name in names for token in tokens(name)}
    return bool(words) and all(word in own or _means_speaker(word) for word in words)


def _means_speaker(word: str) -> bool:
    return any(language.has("self", word) for language in languages())


def named_in(infos: Iterable[EntryInfo], text: str) -> list[EntryInfo]:
    """The entries that a text calls by a name, in the order in which it does."""
    words = _WORD.findall(fold(text))
    whole, known = f" {' '.join(words)} ", set(words)
    places: list[tuple[int, EntryInfo]] = []
    for info in infos:
        for name in (info.title, info.slug, *info.aliases):
            parts = _WORD.findall(fold(name.replace("-", " ")))
            called = " ".join(parts)
            if info.problem is None and len(called) >= _SHORTEST_NAME and known.issuperset(parts):
                place = whole.find(f" {called} ")
                if place >= 0:
                    places.append((place, info))
                    break
    return [info for _, info in sorted(places, key=lambda each: each[0])]


def _only(found: Sequence[EntryInfo], fact: Fact) -> EntryInfo | None:
    """The one that is meant: of several the one of the fact's type."""
    same_type = [info for info in found if info.type == fact.kind]
    for group in (same_type, found):
        if len(group) == 1:
            return group[0]
    return None


@lru_cache(maxsize=1 << 14)  # every name is compared with each subject
def _words(name: str) -> frozenset[str]:
    words = frozenset(normalise(name).split())
    return words - _SILENT or words


def _likeness(words: frozenset[str], names: Iterable[str], type_: str) -> float:
    """How much of two names is the same, from 0 to 1; a person's first name is enough."""
    best = 0.0
    for other in map(_words, names):
        if _numbers(words) != _numbers(other):
            continue
        common = len(words & other)
        best = max(best, common / len(words | other) if words | other else 0.0)
        if type_ == "person" and common and (words <= other or other <= words):
            best = 1.0
    return best


def _numbers(words: Iterable[str]) -> set[str]:
    return {word for word in words if any(map(str.isdigit, word))}
