"""The entries as they are to whoever must not know of private ones: as if there were none.

A `Reader` over these can't show what is private, whatever it is asked, and needs no flag for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kbtui.errors import NotFoundError
from kbtui.knowledge.catalog.catalog import Catalog
from kbtui.knowledge.catalog.entry_index import EntryIndex, is_catalogue
from kbtui.knowledge.entries.entry import EntryInfo
from kbtui.knowledge.format.links import Link
from kbtui.knowledge.linking.resolve import LinkIndex
from kbtui.workspace import files
from kbtui.workspace.files import checked_path, text_of


class PublicEntries:
    """What `Reader` asks of entries, without the private ones."""

    def __init__(self, entries: EntryIndex, catalog: Catalog) -> None:
        self._entries = entries
        self._catalog = catalog
        self._infos: tuple[tuple[EntryInfo, ...], tuple[EntryInfo, ...]] = ((), ())

    def infos(self) -> tuple[EntryInfo, ...]:
        """All that are public, by category and slug."""
        every, public = self._infos
        if (now := self._entries.infos()) is not every:
            public = tuple(info for info in now if not info.private)
            self._infos = now, public
        return public

    def get(self, path: str) -> EntryInfo | None:
        """The one at a path; None where there is none, or it is private."""
        info = self._entries.get(path)
        return None if info is None or info.private else info

    def index(self) -> LinkIndex:
        """The index of public entries by name."""
        return self._entries.public_index()

    def graph(self) -> PublicLinks:
        """Who links to whom."""
        return PublicLinks(self._entries)

    def read(self, path: str, limit: int = files.READ_LIMIT) -> bytes:
        """Read a file; one that is private isn't there, and a catalogue names none of them.

        Raises:
            NotFoundError: it isn't there.
        """
        if self._entries.is_private(path):
            raise NotFoundError(f"There is no {path}.")
        data = self._entries.read(path, limit)
        if is_catalogue(path):
            return self._catalog.public_text(path, text_of(data)).encode("utf-8", "surrogatepass")
        return data

    def exists(self, path: str) -> bool:
        """True if there is such a file, and it is public."""
        return self._entries.exists(path) and not self._entries.is_private(checked_path(path))

    def attachments(self) -> Mapping[str, str]:
        """The files among the entries that are no notes; whoever takes one asks if it `exists`."""
        return self._entries.attachments()


class PublicLinks:
    """The links between files that are public."""

    def __init__(self, entries: EntryIndex) -> None:
        self._is_private = entries.is_private
        self._graph = entries.graph()

    def outgoing(self, source: str) -> tuple[tuple[Link, str | None], ...]:
        """The links of a file; those to private entries lead nowhere."""
        if self._is_private(source):
            return ()
        return tuple(
            (link, None if target is not None and self._is_private(target) else target)
            for link, target in self._graph.outgoing(source)
        )

    def incoming(self, target: str) -> list[tuple[str, Link]]:
        """The links that lead to an entry from other files, each with the file it stands in."""
        if self._is_private(target):
            return []
        found = self._graph.incoming(target)
        return [(source, link) for source, link in found if not self._is_private(source)]
