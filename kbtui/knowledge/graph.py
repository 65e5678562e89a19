"""Who links to whom: every link of every file, resolved, in both directions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from kbtui.text import slugify

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kbtui.knowledge.links import Link
    from kbtui.knowledge.resolve import LinkIndex


class LinkGraph:
    """The resolved links of a set of files.

    `index` is what they are resolved with. When it changes, `sources_naming` tells which files to
    `put` again.
    """

    def __init__(self, index: LinkIndex, links: Mapping[str, tuple[Link, ...]]) -> None:
        self.index = index
        self._outgoing: dict[str, tuple[tuple[Link, str | None], ...]] = {}
        self._incoming: dict[str, set[str]] = {}
        self._naming: dict[str, set[str]] = {}
        for source, found in links.items():
            self.put(source, found)

    def put(self, source: str, links: Iterable[Link]) -> None:
        """Take over the links of one file, in place of those it had before."""
        self.drop(source)
        resolved = tuple((link, self.index.resolve(link, source)) for link in links)
        if resolved:
            self._outgoing[source] = resolved
        for link, target in resolved:
            self._naming.setdefault(name_key(link.target), set()).add(source)
            if target is not None:
                self._incoming.setdefault(target, set()).add(source)

    def drop(self, source: str) -> None:
        """Forget the links of one file."""
        for link, target in self._outgoing.pop(source, ()):
            self._naming.get(name_key(link.target), set()).discard(source)
            if target is not None:
                self._incoming.get(target, set()).discard(source)

    def outgoing(self, source: str) -> tuple[tuple[Link, str | None], ...]:
        """The links of a file, each with the entry it leads to."""
        return self._outgoing.get(source, ())

    def links_of(self, source: str) -> tuple[Link, ...]:
        """The links of a file, as they are written."""
        return tuple(link for link, _target in self._outgoing.get(source, ()))

    def incoming(self, target: str) -> list[tuple[str, Link]]:
        """The links that lead to an entry from other files, each with the file it stands in."""
        return [
            (source, link)
            for source in sorted(self._incoming.get(target, ()))
            if source != target
            for link, found in self._outgoing[source]
            if found == target
        ]

    def sources_naming(self, names: Iterable[str]) -> set[str]:
        """The files with a link that says one of these names, wherever it leads."""
        return {source for name in names for source in self._naming.get(name_key(name), ())}

    def degree(self, target: str) -> int:
        """How many files link to an entry."""
        return len(self._incoming.get(target, ()))


@lru_cache(maxsize=65_536)
def name_key(target: str) -> str:
    """The common form of a target and the names of an entry, however they are written."""
    name = target.rpartition("/")[2]
    name = unquote(name) if "%" in name else name
    return slugify(name[:-3] if name.lower().endswith(".md") else name)
