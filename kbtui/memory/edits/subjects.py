"""Finds the entry that a draft is about, so that it is updated and not written a second time.

The catalogue is asked first (names, titles, aliases), then the index (rule 4). A wrong match would
mix two subjects up, while a missed one leaves two entries that can still be merged: so only what
is called alike counts, and numbers must be the same.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.knowledge.statements import normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kbtui.knowledge.info import EntryInfo
    from kbtui.knowledge.library import Library
    from kbtui.memory.records.extraction import Draft
    from kbtui.search.search_index import SearchIndex

log = logging.getLogger(__name__)
_ALIKE = 0.75
_ALIKE_AND_FOUND = 0.5
_LOOKED_AT = 8
# Words that say how something is a subject, not which one it is.
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
        self._known_names: dict[str, tuple[str, frozenset[str]]] = {}

    def find(self, draft: Draft) -> EntryInfo | None:
        """The entry that a draft is about; None: there is none that is surely the one."""
        infos = [info for info in self._library.infos() if info.problem is None]
        wanted = normalise(draft.title)
        named = [info for info in infos if wanted in self._names(info)]
        found = _only(named, draft) or _only(self._alike(draft, infos, _ALIKE), draft)
        return found or self._searched(draft, infos)

    def _alike(self, draft: Draft, infos: Iterable[EntryInfo], share: float) -> list[EntryInfo]:
        """Entries of the draft's type with nearly its title."""
        words = _words(draft.title)
        return [
            info
            for info in infos
            if info.type == draft.type and _likeness(words, self._names(info), draft.type) >= share
        ]

    def _names(self, info: EntryInfo) -> frozenset[str]:
        """What an entry is called, normalised; kept for as long as it stays the same."""
        known = self._known_names.get(info.path)
        if known is None or known[0] != info.blob:
            slug = _DATE.sub("", info.slug).replace("-", " ")
            names = frozenset(normalise(name) for name in (info.title, slug, *info.aliases))
            known = self._known_names[info.path] = (info.blob, names)
        return known[1]

    def _searched(self, draft: Draft, infos: Sequence[EntryInfo]) -> EntryInfo | None:
        """The first entry that the index finds for the subject, if it is called alike."""
        if self._search is None:
            return None
        try:
            result = self._search.search(
                f"{draft.title} {draft.summary}", "knowledge", _LOOKED_AT, semantic=True
            )
        except KbtuiError as error:
            log.info("the index can't be asked for %r: %s", draft.title, error)
            return None
        known = {info.path: info for info in infos}
        hits = [known[hit.path] for hit in result.hits if hit.path in known]
        alike = self._alike(draft, hits, _ALIKE_AND_FOUND)
        return alike[0] if alike and alike[0] is hits[0] else None


def _only(found: Sequence[EntryInfo], draft: Draft) -> EntryInfo | None:
    """The one that is meant: of several the one of the draft's type."""
    same_type = [info for info in found if info.type == draft.type]
    for group in (same_type, found):
        if len(group) == 1:
            return group[0]
    return None


def _words(name: str) -> set[str]:
    words = set(normalise(name).split())
    return words - _SILENT or words


def _likeness(words: set[str], names: Iterable[str], type_: str) -> float:
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
    return {word for word in words if any(char.isdigit() for char in word)}
