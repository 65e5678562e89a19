"""Who links to whom: every link of every file, resolved, in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from kbtui.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kbtui.knowledge.links import Link
    from kbtui.knowledge.resolve import LinkIndex


class LinkGraph:
    """The resolved links of a set of files."""

    def __init__(self, index: LinkIndex, links: Mapping[str, tuple[Link, ...]]) -> None:
        self._index = index
        self._outgoing: dict[str, tuple[tuple[Link, str | None], ...]] = {}
        self._incoming: dict[str, set[str]] = {}
        for source, found in links.items():
            self.put(source, found)

    def put(self, source: str, links: Iterable[Link]) -> None:
        """Take over the links of one file, in place of those it had before."""
        self.drop(source)
        resolved = tuple((link, self._index.resolve(link, source)) for link in links)
        if resolved:
            self._outgoing[source] = resolved
        for _link, target in resolved:
            if target is not None:
                self._incoming.setdefault(target, set()).add(source)

    def drop(self, source: str) -> None:
        """Forget the links of one file."""
        for _link, target in self._outgoing.pop(source, ()):
            if target is not None and target in self._incoming:
                self._incoming[target].discard(source)

    def outgoing(self, source: str) -> tuple[tuple[Link, str | None], ...]:
        """The links of a file, each with the entry it leads to."""
        return self._outgoing.get(source, ())

    def incoming(self, target: str) -> list[tuple[str, Link]]:
        """The links that lead to an entry from other files, each with the file it stands in."""
        return [
            (source, link)
            for source in sorted(self._incoming.get(target, ()))
            if source != target
            for link, found in self._outgoing[source]
            if found == target
        ]

    def sources_naming(self, names: set[str]) -> set[str]:
        """The files with a link whose last part is one of `names`, wherever it leads."""
        return {
            source
            for source, links in self._outgoing.items()
            for link, _target in links
            if _last_part(link.target) in names
        }

    def degree(self, target: str) -> int:
        """How many files link to an entry."""
        return len(self._incoming.get(target, ()))


def _last_part(target: str) -> str:
    name = target.rpartition("/")[2]
    return fold(unquote(name) if "%" in name else name).removesuffix(".md")
