"""Finds the entry that a fact is about, so that it is updated and not duplicated.

The catalogue is searched first (names, titles, aliases), then the index. A wrong match would mix
two subjects up, while a missed one leaves two entries that can still be merged. So only similar
names match, and numbers must be equal.
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
MOST_RELATED = 5
"""How many entries an entry is related to at most, unless somebody asks for more."""

_MIN_LIKENESS = 0.75
_MIN_LIKENESS_OF_HIT = 0.5
_MAX_CANDIDATES = 8
_MAX_SCANNED = 1_000
_MIN_NAME = 3
_WORD = re.compile(r"\w+")
_QUERY_WIDTH = 200
# Words that describe a subject without identifying it. All others do, even single letters: Project
# X isn't Project Y.
_UNINFORMATIVE_WORDS = (
    "use using adopt choose chose switch switching move moving migrate decide decided decision"
    " for to of in on at with from as and or new our about project topic preference"
)
_UNINFORMATIVE = frozenset(map(normalise, _UNINFORMATIVE_WORDS.split()))
_QUALIFIER = re.compile(r"\s+\([^()]+\)\s*\Z")
_DATE = re.compile(r"^\d{4}-\d{2}(?:-\d{2})?-")


class Subjects:
    """Looks up the entries of a library by subject."""

    def __init__(self, library: Library, search: SearchIndex | None = None) -> None:
        self._library = library
        self._search = search
        self._known_words: dict[str, tuple[str, frozenset[str]]] = {}
        self._known_names: dict[str, tuple[str, frozenset[str]]] = {}

    def find(self, fact: Fact) -> EntryInfo | None:
        """Return the entry that a fact is about, or None if no match is certain."""
        infos = [info for info in self._library.infos() if info.problem is None]
        wanted = normalise(fact.subject)
        named = [info for info in infos if wanted in self._names(info)]
        if is_qualified(fact.subject):
            return _single(named, fact)
        found = _single(named, fact) or _single(self._alike(fact, infos, _MIN_LIKENESS), fact)
        return found or self._search_hit(fact, infos)

    def twins(self, kind: str, title: str) -> list[EntryInfo]:
        """Return the entries with the same name, and those of a type with a similar one."""
        wanted, words = normalise(title), _words(title)

        def is_twin(info: EntryInfo) -> bool:
            names = self._names(info)
            if wanted in names:
                return True
            is_of_kind = info.category.partition("/")[0] == ENTRY_TYPES[kind] or (
                self._library.in_place and info.type == kind
            )
            if is_qualified(title):
                return False
            return is_of_kind and _likeness(words, names, kind) >= _MIN_LIKENESS

        return list(filter(is_twin, self._library.infos()))

    def called(self, name: str) -> list[EntryInfo]:
        """Return the entries of people called so, whatever stands in brackets behind the name."""
        wanted = normalise(name)
        people = (info for info in self._library.infos() if info.type == "person")
        return [
            info
            for info in people
            if wanted
            in {normalise(without_qualifier(each)) for each in (info.title, *info.aliases)}
        ]

    def near(self, statement: str) -> list[str]:
        """Return the entries that may have a statement, using the index only if there are many."""
        infos = self._library.infos()
        if len(infos) > _MAX_SCANNED:
            found = self._hits(statement)
            if found is not None:
                return found
        wanted = {word for word in normalise(statement).split() if len(word) >= _MIN_NAME}
        shares = {
            info.path: len(wanted & self._words_of(info)) for info in infos[:_MAX_SCANNED] if wanted
        }
        least = _MIN_LIKENESS_OF_HIT * len(wanted)
        ranked = sorted(shares, key=lambda path: -shares[path])
        return [path for path in ranked if shares[path] >= least][:_MAX_CANDIDATES]

    def _hits(self, text: str) -> list[str] | None:
        """Return the entries that the index finds for a text, or None if it can't be searched."""
        if self._search is None:
            return None
        query = shorten(text, _QUERY_WIDTH)
        try:
            result = self._search.search(query, "knowledge", _MAX_CANDIDATES)
        except KbtuiError as error:
            log.info("the index can't be asked for %r: %s", query, error)
            return None
        return [hit.path for hit in result.hits]

    def _words_of(self, info: EntryInfo) -> frozenset[str]:
        """Return the words of an entry, cached until it changes."""
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
        """Return the entries that a text mentions by name, in order of mention."""
        return [info.path for info in named_in(self._library.infos(), text)]

    def clearly_named_in(self, text: str) -> list[str]:
        """Return the entries that a text mentions and that nothing else is called like."""
        infos = self._library.infos()
        return [info.path for info in named_in(filter(is_clear_name, infos), text)]

    def _alike(self, fact: Fact, infos: Iterable[EntryInfo], share: float) -> list[EntryInfo]:
        """Return the entries of the fact's type with a similar title."""
        words = _words(fact.subject)
        return [
            info
            for info in infos
            if info.type == fact.kind and _likeness(words, self._names(info), fact.kind) >= share
        ]

    def _names(self, info: EntryInfo) -> frozenset[str]:
        """Return the normalised names of an entry, cached until it changes."""
        known = self._known_names.get(info.path)
        if known is None or known[0] != info.blob:
            slug = _DATE.sub("", info.slug).replace("-", " ")
            names = frozenset(normalise(name) for name in (info.title, slug, *info.aliases))
            known = self._known_names[info.path] = (info.blob, names)
        return known[1]

    def _search_hit(self, fact: Fact, infos: Sequence[EntryInfo]) -> EntryInfo | None:
        """Return the first entry that the index finds for the subject, if its name is similar."""
        known = {info.path: info for info in infos}
        found = self._hits(f"{fact.subject} {fact.summary or fact.text}") or ()
        hits = [known[path] for path in found if path in known]
        alike = self._alike(fact, hits, _MIN_LIKENESS_OF_HIT)
        return alike[0] if alike and alike[0] is hits[0] else None


def is_qualified(name: str) -> bool:
    """Return whether a name says which of several it means: ``Jana (sister)``."""
    return without_qualifier(name) != name


def without_qualifier(name: str) -> str:
    """Return a name without what stands in brackets behind it."""
    return _QUALIFIER.sub("", name)


def named_entries(infos: Iterable[EntryInfo], text: str) -> list[str]:
    """Return the names of the entries that an entry with this text is related to.

    Private ones aren't among them.
    """
    public = (info for info in infos if not info.private and is_clear_name(info))
    return [info.name for info in named_in(public, text)[:MOST_RELATED]]


def is_clear_name(info: EntryInfo) -> bool:
    """Return whether an entry's title in a text means it: of a person or project, or a long one."""
    return info.type in ("person", "project") or " " in info.title.strip()


def names_of_user(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the user's names according to some texts: ``Name: Ben Carter``, ``My name is Ben``."""
    return tuple(name for text in texts for name in _stated_names(text))


@lru_cache(maxsize=8)  # each checked line asks for the names in the same two files
def _stated_names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(_stated_name, statements(text))))


def _stated_name(line: str) -> str:
    """Return the capitalised words right after words that introduce a name."""
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
    """Return whether a subject means the user: me, myself, the user, or one of their `names`."""
    words = {token.word for token in tokens(subject)}
    own = {token.word for name in names for token in tokens(name)}
    return bool(words) and all(word in own or _means_speaker(word) for word in words)


def _means_speaker(word: str) -> bool:
    return any(language.has("self", word) for language in languages())


def named_in(infos: Iterable[EntryInfo], text: str) -> list[EntryInfo]:
    """Return the entries that a text mentions by name, in order of mention."""
    words = _WORD.findall(fold(text))
    whole, known = f" {' '.join(words)} ", set(words)
    places: list[tuple[int, EntryInfo]] = []
    for info in infos:
        for name in (info.title, info.slug, *info.aliases):
            parts = _WORD.findall(fold(name.replace("-", " ")))
            called = " ".join(parts)
            if info.problem is None and len(called) >= _MIN_NAME and known.issuperset(parts):
                place = whole.find(f" {called} ")
                if place >= 0:
                    places.append((place, info))
                    break
    return [info for _, info in sorted(places, key=lambda each: each[0])]


def _single(found: Sequence[EntryInfo], fact: Fact) -> EntryInfo | None:
    """Return the only match, or of several the only one of the fact's type."""
    same_type = [info for info in found if info.type == fact.kind]
    for group in (same_type, found):
        if len(group) == 1:
            return group[0]
    return None


@lru_cache(maxsize=1 << 14)  # every name is compared with each subject
def _words(name: str) -> frozenset[str]:
    words = frozenset(normalise(name).split())
    return words - _UNINFORMATIVE or words


def _likeness(words: frozenset[str], names: Iterable[str], type_: str) -> float:
    """Return the similarity of names from 0 to 1; a person's first name is enough."""
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
