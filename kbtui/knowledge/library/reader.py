"""Reads entries, those of now and those of a commit: lists, finds by name, follows links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from kbtui.errors import KbtuiError, NotFoundError, UnreadableError
from kbtui.history.history import HistoryReader
from kbtui.knowledge.entries.dendron import FILES, Dendron
from kbtui.knowledge.entries.entry import (
    Entry,
    EntryInfo,
    info_of,
    is_entry,
    parse_entry,
    without_line,
)
from kbtui.knowledge.format.links import Link
from kbtui.knowledge.linking import resolve
from kbtui.knowledge.linking.filename_links import ByFile
from kbtui.knowledge.linking.mentions import mentions_in, searchable_names
from kbtui.knowledge.linking.resolve import LinkIndex
from kbtui.text import clean_line, slugify
from kbtui.workspace import files
from kbtui.workspace.files import checked_path


@dataclass(frozen=True, slots=True)
class ResolvedLink:
    """A link and where it leads; `path` is None where no such file is there."""

    link: Link
    path: str | None
    title: str | None


@dataclass(frozen=True, slots=True)
class Backlink:
    """A line of another file that links here."""

    path: str
    title: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The entries that link to one, and those that it links to; each once, without itself."""

    incoming: tuple[str, ...] = ()
    outgoing: tuple[str, ...] = ()


class LinkLookup(Protocol):
    """Who links to whom."""

    def outgoing(self, source: str) -> tuple[tuple[Link, str | None], ...]:
        """The links of a file, each with the entry it leads to."""

    def incoming(self, target: str) -> list[tuple[str, Link]]:
        """The links that lead to an entry from other files, each with the file it stands in."""


class Entries(Protocol):
    """The entries of a place and time, and the files that they are in."""

    def infos(self) -> tuple[EntryInfo, ...]:
        """All of them, by category and slug."""

    def get(self, path: str) -> EntryInfo | None:
        """The one at a path."""

    def index(self) -> LinkIndex:
        """The index of entries by name."""

    def graph(self) -> LinkLookup:
        """Who links to whom."""

    def read(self, path: str, limit: int = files.READ_LIMIT) -> bytes:
        """Read any file of up to `limit` bytes; raises NotFoundError where there is none."""

    def exists(self, path: str) -> bool:
        """True if there is such a file."""

    def attachments(self) -> Mapping[str, str]:
        """The files among the entries that are no notes, by casefolded name."""


class Reader:
    """Answers about entries, wherever and whenever they are."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def infos(self) -> list[EntryInfo]:
        """All entries by category and slug, without their texts."""
        return list(self._entries.infos())

    def left_out(self) -> dict[str, str]:
        """The files that can't be recorded, and are no entries therefore: path and reason."""
        return {}

    def texts(self) -> dict[str, str]:
        """The texts among the notes that are none themselves, and what they are."""
        return {}

    def listing(self) -> Sequence[EntryInfo]:
        """All entries at once, for a first look; of those never read only what names say."""
        return self.infos()

    def info(self, path: str) -> EntryInfo | None:
        """The facts known of one entry or memory note; None where there is none."""
        return self._entries.get(path)

    @property
    def dendron(self) -> Dendron | None:
        """What this is to Dendron, if anything: there a wikilink's label may come first."""
        return self._entries.index().dendron

    def tags(self) -> dict[str, int]:
        """Every tag and how many entries have it, the most frequent first."""
        counts = Counter(tag for info in self._entries.infos() for tag in info.tags)
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].casefold())))

    def read(self, path: str, limit: int = files.READ_LIMIT) -> bytes:
        """Read any file.

        Raises:
            NotFoundError: it isn't there.
            UnreadableError: it is larger than `limit` bytes.
            UnsafePathError: the path leads outside.
        """
        return self._entries.read(checked_path(path), limit)

    def exists(self, path: str) -> bool:
        """True if there is such a file."""
        return self._entries.exists(path)

    def check(self, path: str) -> None:
        """See that there is such a file; raises as `read` where there isn't."""
        if not self.exists(path):
            self.read(path)

    def get(self, path: str) -> Entry:
        """Read the file at a workspace path, which may also be a note of the memory.

        Raises:
            NotFoundError: there is none; the hint names the nearest entries.
            UnsafePathError: the path leads outside.
        """
        path = checked_path(path)
        try:
            return parse_entry(path, self.read(path))
        except NotFoundError as error:
            raise resolve.not_found(path, self._entries.infos()) from error

    def named(self, ref: str) -> str | None:
        """The path of the one entry that a name means; None where it means none, or several.

        Unlike `find_path` it costs next to nothing where there is none: no near names are found.
        """
        ref = without_line(clean_line(ref))
        paths = set(self._entries.index().candidates(ref)[1]) if ref else ()
        return next(iter(paths)) if len(paths) == 1 else None

    def find(self, ref: str) -> Entry:
        """Read the entry that a path, category/slug, slug, title or alias names.

        Raises:
            NotFoundError: nothing is called so; the hint names the nearest.
            UsageError: more than one entry is; the hint lists them.
        """
        return self.get(self.find_path(ref))

    def find_path(self, ref: str) -> str:
        """Like `find`, without reading it; a whole path is found before any other name is known."""
        entries = self._entries
        if (whole := self._whole_path(ref)) is not None:
            return whole
        return resolve.found_path(ref, entries.index(), entries.infos(), entries.exists)

    def _whole_path(self, ref: str) -> str | None:
        for path in (ref, f"knowledge/{ref}", f"knowledge/{ref}.md"):
            try:
                if is_entry(path) and self._entries.exists(path):
                    return checked_path(path)
            except KbtuiError:
                return None
        return None

    def by_file(self, path: str, data: bytes, file: Callable[[str], str]) -> bytes:
        """The note of these bytes with links by files' names alone; `file` is where a path lies."""
        return ByFile(self._entries.index(), path, file).note(data)

    def outgoing(self, path: str) -> list[ResolvedLink]:
        """The links of a file, in the order they are written."""
        return [
            self._resolved(path, link, target)
            for link, target in self._entries.graph().outgoing(path)
        ]

    def outgoing_of(self, entry: Entry) -> list[ResolvedLink]:
        """The links of an entry as it was read, such as an older version, resolved as of here."""
        index = self._entries.index()
        return [
            self._resolved(entry.path, link, index.resolve(link, entry.path))
            for link in map(index.read, entry.links)
        ]

    def neighbours(self, path: str) -> Neighbours:
        """What is one link away from an entry; reads no file."""
        incoming = dict.fromkeys(source for source, _ in self._entries.graph().incoming(path))
        return Neighbours(tuple(incoming), self.targets(path))

    def targets(self, path: str) -> tuple[str, ...]:
        """The entries that one links to, in the order of its links, without itself."""
        found = self._entries.graph().outgoing(path)
        return tuple(dict.fromkeys(target for _, target in found if target not in {None, path}))

    def backlinks(self, path: str) -> list[Backlink]:
        """The lines of other files that link to an entry."""
        found: list[Backlink] = []
        texts: dict[str, list[str]] = {}
        for source, link in self._entries.graph().incoming(path):
            if source not in texts:
                try:
                    texts[source] = files.text_of(self._entries.read(source)).splitlines()
                except KbtuiError:
                    texts[source] = []
            lines = texts[source]
            text = lines[link.line - 1].strip() if link.line <= len(lines) else ""
            info = self._entries.get(source)
            backlink = Backlink(source, info.title if info else source, link.line, text)
            if backlink not in found[-1:]:
                found.append(backlink)
        return found

    def names_said(self, info: EntryInfo) -> list[str]:
        """The names by which texts mention an entry: its title, the file's name, its aliases."""
        slug = info.slug if info.slug != slugify(info.slug) else ""
        return searchable_names((info.title, slug, *info.aliases))

    def mentions(self, path: str, among: Iterable[str]) -> list[Backlink]:
        """The lines of files that say the name of an entry and don't link to it there."""
        info = self._entries.get(path)
        names = self.names_said(info) if info is not None else []
        found: list[Backlink] = []
        for source in dict.fromkeys(among):
            other = self._entries.get(source)
            if other is None or source == path:
                continue
            try:
                text = files.text_of(self._entries.read(source))
            except KbtuiError:
                continue
            lines = {each.line: each.said.strip() for each in mentions_in(text, names)}
            found += [Backlink(source, other.title, line, said) for line, said in lines.items()]
        return found

    def _resolved(self, source: str, link: Link, target: str | None) -> ResolvedLink:
        info = self._entries.get(target) if target else None
        if info is None:
            file = resolve.attachment(source, link, self._entries)
            return ResolvedLink(link, file if file and self._entries.exists(file) else None, None)
        return ResolvedLink(link, info.path, info.title)


class LibraryOfToday(Protocol):
    """What is asked of the library of now, to which most of another time is the same."""

    def infos(self) -> Sequence[EntryInfo]:
        """All entries."""

    @property
    def dendron(self) -> Dendron | None:
        """What this is to Dendron, if anything."""

    def same_links(
        self, blobs: Mapping[str, str], names: Iterable[str]
    ) -> tuple[dict[str, tuple[Link, ...]], list[str]]:
        """Of files with certain contents, by blob ids, the links of those that have them now.

        Only files with a link that says one of some names are among them. The paths of those that
        have another content now, or are gone, are told as well.
        """


class PastLibrary(Reader):
    """The library of one commit; what it says never changes. One object serves all threads.

    The `history` may be somebody else's. `at` is any revision, and then its full id; `today` is the
    library of now, to which most entries are the same.

    Raises:
        NotFoundError: there is no such commit.
    """

    def __init__(
        self, history: HistoryReader, at: str, today: LibraryOfToday | None = None
    ) -> None:
        self.at = history.resolve(at)
        self._commit = _CommitEntries(history, self.at, today)
        super().__init__(self._commit)

    @property
    def blobs(self) -> dict[str, str]:
        """Every file of the commit with its blob id."""
        return self._commit.blobs


class _CommitEntries:
    """The entries of a commit, worked out when they are asked for.

    What stands there today with the same bytes isn't parsed again, so that a look at yesterday
    costs what differs from today.
    """

    def __init__(self, history: HistoryReader, at: str, today: LibraryOfToday | None) -> None:
        self._history = history
        self._at = at
        self._today = today
        self._links: dict[str, tuple[Link, ...]] = {}  # of what differs, and was looked at

    @cached_property
    def blobs(self) -> dict[str, str]:
        return self._history.tree(self._at)

    def infos(self) -> tuple[EntryInfo, ...]:
        return self._infos

    def get(self, path: str) -> EntryInfo | None:
        return self._by_path.get(path)

    def index(self) -> LinkIndex:
        return self._index

    def graph(self) -> LinkLookup:
        return self

    def outgoing(self, source: str) -> tuple[tuple[Link, str | None], ...]:
        info = self.get(source)
        if info is None:
            return ()
        return self._index.resolved(source, self._links_of(source))

    def incoming(self, target: str) -> list[tuple[str, Link]]:
        info = self.get(target)
        if info is None:
            return []
        blobs = {each.path: each.blob for each in self._infos}
        differing: Iterable[str] = blobs
        linking: dict[str, tuple[Link, ...]] = {}
        if self._today is not None:
            linking, differing = self._today.same_links(blobs, info.names)
        linking |= {each: self._links_of(each) for each in differing}
        return [
            (source, link)
            for source in sorted(linking.keys() - {target})
            for link, found in self._index.resolved(source, linking[source])
            if found == target
        ]

    def read(self, path: str, limit: int = files.READ_LIMIT) -> bytes:
        blob = self.blobs.get(path)
        if blob is None:
            raise NotFoundError(f"{clean_line(path)} wasn't there then.")
        data = self._history.read_blob(blob)
        if len(data) > limit:
            raise UnreadableError(f"{clean_line(path)} was too large to be read.")
        return data

    def exists(self, path: str) -> bool:
        return path in self.blobs

    def attachments(self) -> Mapping[str, str]:
        return {}

    @cached_property
    def _infos(self) -> tuple[EntryInfo, ...]:
        now = {info.path: info for info in self._today.infos()} if self._today else {}
        # Of a repository that isn't laid out as ours every Markdown file is an entry.
        notes = [path for path in self.blobs if is_entry(path)] or [
            path for path in self.blobs if path.lower().endswith(".md")
        ]
        found = (self._info(path, now.get(path)) for path in notes)
        return tuple(sorted(found, key=lambda info: (info.category, info.slug, info.path)))

    def _info(self, path: str, known: EntryInfo | None) -> EntryInfo:
        if known is not None and known.blob == self.blobs[path]:
            return known
        data = self.read(path)
        entry = parse_entry(path, data)
        self._links[path] = entry.links
        return info_of(entry, len(data), 0)

    def _links_of(self, path: str) -> tuple[Link, ...]:
        if path not in self._links:
            self._links[path] = parse_entry(path, self.read(path)).links
        return self._links[path]

    @cached_property
    def _by_path(self) -> dict[str, EntryInfo]:
        return {info.path: info for info in self._infos}

    @cached_property
    def _index(self) -> LinkIndex:
        dendron = self._today.dendron if self._today is not None else None
        if dendron is None and any(name in self.blobs for name in FILES):
            dendron = Dendron()
        return LinkIndex(self._infos, dendron=dendron)
