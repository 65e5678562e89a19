"""The entries as they are to whoever must not know of private ones: as if there were none.

A `Reader` over these can't show what is private, whatever it is asked, and needs no flag for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.knowledge.catalog.catalog import Catalog
from kbtui.knowledge.catalog.entry_index import EntryIndex
from kbtui.knowledge.entries.entry import Entry, EntryInfo, is_catalogue, parse_entry
from kbtui.knowledge.format.links import Link
from kbtui.knowledge.library.overlay import Overlay
from kbtui.knowledge.library.reader import Reader
from kbtui.knowledge.linking.resolve import LinkIndex
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.files import checked_path, text_of


class PrivateError(UsageError):
    """Raised where something private is asked for by somebody who may know that it is there."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{clean_line(name)} is private: only models on this machine may read it.",
            "Say so; the user can open it, or switch to a local model.",
        )


class PublicEntries:
    """What `Reader` asks of entries, without the private ones.

    `refused` makes the error of a path that is private.
    """

    def __init__(
        self,
        entries: EntryIndex,
        catalog: Catalog,
        refused: Callable[[str], KbtuiError] = lambda path: NotFoundError(f"There is no {path}."),
    ) -> None:
        self._entries = entries
        self._catalog = catalog
        self._refused = refused
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
            raise self._refused(path)
        return without_private_lines(self._catalog, path, self._entries.read(path, limit))

    def exists(self, path: str) -> bool:
        """True if there is such a file, and it is public."""
        return self._entries.exists(path) and not self._entries.is_private(checked_path(path))

    def attachments(self) -> Mapping[str, str]:
        """The files among the entries that are no notes; whoever takes one asks if it `exists`."""
        return self._entries.attachments()


def without_private_lines(catalog: Catalog, path: str, data: bytes) -> bytes:
    """The bytes of a file; of a catalogue without what it says of private entries."""
    if is_catalogue(path):
        return catalog.public_text(path, text_of(data)).encode("utf-8", "surrogatepass")
    return data


class DiscreetReader(Reader):
    """Reads public entries for whoever may know that there are private ones, and is told so."""

    def __init__(self, entries: EntryIndex, catalog: Catalog, every: Reader) -> None:
        super().__init__(PublicEntries(entries, catalog, PrivateError))
        self._every = every

    def named(self, ref: str) -> str | None:
        """Like `Reader.named`.

        Raises:
            PrivateError: what is called so is private; its other names aren't told.
        """
        path = super().named(ref)
        if path is None and self._every.named(ref) is not None:
            raise PrivateError(ref)
        return path

    def find_path(self, ref: str) -> str:
        """Like `Reader.find_path`; raises as `named`."""
        try:
            return super().find_path(ref)
        except NotFoundError:
            self.named(ref)
            raise


class OwnModelsReader(Reader):
    """Reads all entries for a model on this machine.

    A catalogue says nothing of private entries to it either: what it was shown is marked by the
    file, and a catalogue is about many.
    """

    def __init__(self, entries: EntryIndex, catalog: Catalog) -> None:
        super().__init__(entries)
        self._catalog = catalog

    def read(self, path: str, limit: int = files.READ_LIMIT) -> bytes:
        """Like `Reader.read`."""
        return without_private_lines(self._catalog, path, super().read(path, limit))


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


class DiscreetOverlay(Overlay):
    """Works out edits for whoever may know that there are private files, and is told so."""

    def find_shown(self, ref: str) -> str:
        """Like `Overlay.find_shown`."""
        try:
            return self._find_public(ref)
        except NotFoundError:
            if (path := self._meant(ref)) is not None:
                self.check_shown(path, ref)
            raise

    def check_shown(self, path: str, name: str) -> None:
        """Like `Overlay.check_shown`."""
        data = self.data(path)
        if self._entries.is_private(path) or (data is not None and parse_entry(path, data).private):
            raise PrivateError(name)

    def _meant(self, ref: str) -> str | None:
        with suppress(KbtuiError):
            return self.find_path(ref)
        return None

    def _find_public(self, ref: str) -> str:
        infos, index = self._entries.infos(), self.index()
        if any(info.private for info in infos):
            infos = tuple(info for info in infos if not info.private)
            index = LinkIndex(self._public(infos), dendron=index.dendron)
        return self._find(ref, index, infos)

    def _public(self, infos: Iterable[EntryInfo]) -> Iterator[Entry | EntryInfo]:
        """The public entries, with the edits to them."""
        yield from (info for info in infos if info.path not in self.edits)
        for path in self.edits:
            entry, info = self.entry(path), self._entries.get(path)
            if entry is not None and not entry.private and not (info and info.private):
                yield entry


class PublicOverlay(DiscreetOverlay):
    """Works out edits as if there were no private files."""

    def find_shown(self, ref: str) -> str:
        """Like `Overlay.find_shown`."""
        return self._find_public(ref)

    def conceals(self, path: str) -> bool:
        """Like `Overlay.conceals`."""
        return self._entries.is_private(path)
