"""Views of the entries without the private ones, for readers that must not know of them.

A `Reader` over `PublicEntries` can't return private content, and needs no flag for that.
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
    """Raised if a reader that may know of private entries asks for one."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{clean_line(name)} is private: only models on this machine may read it.",
            "Say so; the user can open it, or switch to a local model.",
        )


class PublicEntries:
    """The `Entries` of a `Reader`, without the private ones.

    `refused` returns the error for a private path.
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
        """Return all public entries by category and slug."""
        every, public = self._infos
        if (now := self._entries.infos()) is not every:
            public = tuple(info for info in now if not info.private)
            self._infos = now, public
        return public

    def get(self, path: str) -> EntryInfo | None:
        """Return the entry at a path; None if there is none or it is private."""
        info = self._entries.get(path)
        return None if info is None or info.private else info

    def index(self) -> LinkIndex:
        """Return the index of public entries by name."""
        return self._entries.public_index()

    def graph(self) -> PublicLinks:
        """Return the links between public files."""
        return PublicLinks(self._entries)

    def read(self, path: str, limit: int = files.READ_LIMIT) -> bytes:
        """Read a public file; a catalogue is stripped of private entries.

        Raises:
            NotFoundError: it doesn't exist, or is private (or the error made by `refused`).
        """
        if self._entries.is_private(path):
            raise self._refused(path)
        return without_private_lines(self._catalog, path, self._entries.read(path, limit))

    def exists(self, path: str) -> bool:
        """Return whether a file exists and is public."""
        return self._entries.exists(path) and not self._entries.is_private(checked_path(path))

    def attachments(self) -> Mapping[str, str]:
        """Return the files among the entries that aren't notes; check `exists` before use."""
        return self._entries.attachments()


def without_private_lines(catalog: Catalog, path: str, data: bytes) -> bytes:
    """Return the bytes of a file, without private entries if it is a catalogue."""
    if is_catalogue(path):
        return catalog.public_text(path, text_of(data)).encode("utf-8", "surrogatepass")
    return data


class DiscreetReader(Reader):
    """A reader of public entries that reports if an entry is private."""

    def __init__(self, entries: EntryIndex, catalog: Catalog, every: Reader) -> None:
        super().__init__(PublicEntries(entries, catalog, PrivateError))
        self._every = every

    def named(self, ref: str) -> str | None:
        """See `Reader.named`.

        Raises:
            PrivateError: the entry is private; the error mentions only `ref`.
        """
        path = super().named(ref)
        if path is None and self._every.named(ref) is not None:
            raise PrivateError(ref)
        return path

    def find_path(self, ref: str) -> str:
        """See `Reader.find_path`; raises as `named`."""
        try:
            return super().find_path(ref)
        except NotFoundError:
            self.named(ref)
            raise


class OwnModelsReader(Reader):
    """A reader of all entries for a model on this machine.

    Catalogues are stripped of private entries here too: what a model was shown is tracked by file,
    and a catalogue is about many.
    """

    def __init__(self, entries: EntryIndex, catalog: Catalog) -> None:
        super().__init__(entries)
        self._catalog = catalog

    def read(self, path: str, limit: int = files.READ_LIMIT) -> bytes:
        """See `Reader.read`."""
        return without_private_lines(self._catalog, path, super().read(path, limit))


class PublicLinks:
    """The links between public files."""

    def __init__(self, entries: EntryIndex) -> None:
        self._is_private = entries.is_private
        self._graph = entries.graph()

    def outgoing(self, source: str) -> tuple[tuple[Link, str | None], ...]:
        """Return the links of a file; those to private entries have no target."""
        if self._is_private(source):
            return ()
        return tuple(
            (link, None if target is not None and self._is_private(target) else target)
            for link, target in self._graph.outgoing(source)
        )

    def incoming(self, target: str) -> list[tuple[str, Link]]:
        """Return the links from other public files to an entry, each with its source file."""
        if self._is_private(target):
            return []
        found = self._graph.incoming(target)
        return [(source, link) for source, link in found if not self._is_private(source)]


class DiscreetOverlay(Overlay):
    """An overlay whose editor is told if a file is private."""

    def find_shown(self, ref: str) -> str:
        """See `Overlay.find_shown`."""
        try:
            return self._find_public(ref)
        except NotFoundError:
            if (path := self._meant(ref)) is not None:
                self.check_shown(path, ref)
            raise

    def check_shown(self, path: str, name: str) -> None:
        """See `Overlay.check_shown`."""
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
        """Return the public entries, with the edits to them."""
        yield from (info for info in infos if info.path not in self.edits)
        for path in self.edits:
            entry, info = self.entry(path), self._entries.get(path)
            if entry is not None and not entry.private and not (info and info.private):
                yield entry


class PublicOverlay(DiscreetOverlay):
    """An overlay for editing as if there were no private files."""

    def find_shown(self, ref: str) -> str:
        """See `Overlay.find_shown`."""
        return self._find_public(ref)

    def conceals(self, path: str) -> bool:
        """See `Overlay.conceals`."""
        return self._entries.is_private(path)
