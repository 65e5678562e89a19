"""Reading entries, as of now or of a commit: listing, finding by name, following links."""

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
    """A link and its target; `path` is None if there is no such file."""

    link: Link
    path: str | None
    title: str | None


@dataclass(frozen=True, slots=True)
class Backlink:
    """A line of another file that links to an entry."""

    path: str
    title: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The entries that link to one and those it links to; each once, without itself."""

    incoming: tuple[str, ...] = ()
    outgoing: tuple[str, ...] = ()


class LinkLookup(Protocol):
    """A lookup of the links between entries."""

    def outgoing(self, source: str) -> tuple[tuple[Link, str | None], ...]:
        """Return the links of a file, each with its target entry."""

    def incoming(self, target: str) -> list[tuple[str, Link]]:
        """Return the links from other files to an entry, each with its source file."""


class Entries(Protocol):
    """The entries of a workspace at some time, and the files they are in."""

    def infos(self) -> tuple[EntryInfo, ...]:
        """Return all entries by category and slug."""

    def get(self, path: str) -> EntryInfo | None:
        """Return the entry at a path."""

    def index(self) -> LinkIndex:
        """Return the index of entries by name."""

    def graph(self) -> LinkLookup:
        """Return the links between entries."""

    def read(self, path: str, limit: int = files.READ_LIMIT) -> bytes:
        """Read any file of up to `limit` bytes; raises NotFoundError if it doesn't exist."""

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""

    def attachments(self) -> Mapping[str, str]:
        """Return the files among the entries that aren't notes, by casefolded name."""


class Reader:
    """A reader of entries, whichever `Entries` they come from."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def infos(self) -> list[EntryInfo]:
        """Return all entries by category and slug, without their texts."""
        return list(self._entries.infos())

    def left_out(self) -> dict[str, str]:
        """Return the files that can't be recorded and so aren't entries, with the reason."""
        return {}

    def texts(self) -> dict[str, str]:
        """Return the text files among the notes that aren't notes, and what they are."""
        return {}

    def listing(self) -> Sequence[EntryInfo]:
        """Return all entries at once; those not read yet are placeholders from their names."""
        return self.infos()

    def info(self, path: str) -> EntryInfo | None:
        """Return the info of an entry or memory note; None if there is none."""
        return self._entries.get(path)

    @property
    def keeps_line_breaks(self) -> bool:
        """Whether single line breaks in a note are shown, as the user's program does."""
        return False

    @property
    def dendron(self) -> Dendron | None:
        """The Dendron workspace, if any, in which a wikilink's label may come first."""
        return self._entries.index().dendron

    def tags(self) -> dict[str, int]:
        """Return every tag and its number of entries, most frequent first."""
        counts = Counter(tag for info in self._entries.infos() for tag in info.tags)
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].casefold())))

    def read(self, path: str, limit: int = files.READ_LIMIT) -> bytes:
        """Read any file.

        Raises:
            NotFoundError: it doesn't exist.
            UnreadableError: it is larger than `limit` bytes.
            UnsafePathError: the path leads outside.
        """
        return self._entries.read(checked_path(path), limit)

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        return self._entries.exists(path)

    def check(self, path: str) -> None:
        """Check that a file exists; raises as `read` if it doesn't."""
        if not self.exists(path):
            self.read(path)

    def get(self, path: str) -> Entry:
        """Parse the file at a workspace path, an entry or a memory note.

        Raises:
            NotFoundError: it doesn't exist; the hint names similar entries.
            UnsafePathError: the path leads outside.
        """
        path = checked_path(path)
        try:
            return parse_entry(path, self.read(path))
        except NotFoundError as error:
            raise resolve.not_found(path, self._entries.infos()) from error

    def named(self, ref: str) -> str | None:
        """Return the path of the only entry a name refers to; None if there are none or several.

        Unlike `find_path` it is cheap for unknown names, as it makes no suggestions.
        """
        ref = without_line(clean_line(ref))
        paths = set(self._entries.index().candidates(ref)[1]) if ref else ()
        return next(iter(paths)) if len(paths) == 1 else None

    def find(self, ref: str) -> Entry:
        """Parse the entry that a path, category/slug, slug, title or alias refers to.

        Raises:
            NotFoundError: nothing matches; the hint names similar entries.
            UsageError: several entries match; the hint lists them.
        """
        return self.get(self.find_path(ref))

    def find_path(self, ref: str) -> str:
        """Return the path `find` would parse; full paths are found without building the index."""
        entries = self._entries
        if (exact := self._exact_path(ref)) is not None:
            return exact
        return resolve.found_path(ref, entries.index(), entries.infos(), entries.exists)

    def _exact_path(self, ref: str) -> str | None:
        for path in (ref, f"knowledge/{ref}", f"knowledge/{ref}.md"):
            try:
                if is_entry(path) and self._entries.exists(path):
                    return checked_path(path)
            except KbtuiError:
                return None
        return None

    def by_file(self, path: str, data: bytes, file: Callable[[str], str]) -> bytes:
        """Rewrite a note's links to file names only; `file` maps a path to its file."""
        return ByFile(self._entries.index(), path, file).note(data)

    def outgoing(self, path: str) -> list[ResolvedLink]:
        """Return the links of a file in the order written."""
        return [
            self._resolved(path, link, target)
            for link, target in self._entries.graph().outgoing(path)
        ]

    def outgoing_of(self, entry: Entry) -> list[ResolvedLink]:
        """Return the links of a parsed entry, perhaps an older version, resolved here."""
        index = self._entries.index()
        return [
            self._resolved(entry.path, link, index.resolve(link, entry.path))
            for link in map(index.read, entry.links)
        ]

    def neighbours(self, path: str) -> Neighbours:
        """Return the entries one link away; reads no file."""
        incoming = dict.fromkeys(source for source, _ in self._entries.graph().incoming(path))
        return Neighbours(tuple(incoming), self.targets(path))

    def targets(self, path: str) -> tuple[str, ...]:
        """Return the entries that one links to in link order, without itself."""
        found = self._entries.graph().outgoing(path)
        return tuple(dict.fromkeys(target for _, target in found if target not in {None, path}))

    def backlinks(self, path: str) -> list[Backlink]:
        """Return the lines of other files that link to an entry."""
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

    def mention_names(self, info: EntryInfo) -> list[str]:
        """Return the names by which texts mention an entry: title, file name, aliases."""
        slug = info.slug if info.slug != slugify(info.slug) else ""
        return searchable_names((info.title, slug, *info.aliases))

    def mentions(self, path: str, among: Iterable[str]) -> list[Backlink]:
        """Return the lines of some files that name an entry without linking to it there."""
        info = self._entries.get(path)
        names = self.mention_names(info) if info is not None else []
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
            found += [
                Backlink(source, other.title, line, line_text) for line, line_text in lines.items()
            ]
        return found

    def _resolved(self, source: str, link: Link, target: str | None) -> ResolvedLink:
        info = self._entries.get(target) if target else None
        if info is None:
            file = resolve.attachment(source, link, self._entries)
            return ResolvedLink(link, file if file and self._entries.exists(file) else None, None)
        return ResolvedLink(link, info.path, info.title)


class LibraryOfToday(Protocol):
    """The current library, used as a cache for a past one that shares most files with it."""

    def infos(self) -> Sequence[EntryInfo]:
        """Return all entries."""

    @property
    def dendron(self) -> Dendron | None:
        """The Dendron workspace, if any."""

    @property
    def keeps_line_breaks(self) -> bool:
        """Whether single line breaks in a note are shown."""

    def same_links(
        self, blobs: Mapping[str, str], names: Iterable[str]
    ) -> tuple[dict[str, tuple[Link, ...]], list[str]]:
        """Return the links of files that still have these blob ids, and the paths of the others.

        Only files with a link that uses one of `names` are included in the former.
        """


class PastLibrary(Reader):
    """The immutable library of one commit; thread-safe.

    The `history` may be of another repository. `at` is any revision, and afterwards its full id;
    `today` is the current library, which most entries are shared with.

    Raises:
        NotFoundError: there is no such commit.
    """

    def __init__(
        self, history: HistoryReader, at: str, today: LibraryOfToday | None = None
    ) -> None:
        self.at = history.resolve(at)
        self._commit = _CommitEntries(history, self.at, today)
        self._today = today
        super().__init__(self._commit)

    @property
    def keeps_line_breaks(self) -> bool:
        """Whether single line breaks in a note are shown, by the settings of today."""
        return self._today is not None and self._today.keeps_line_breaks

    @property
    def blobs(self) -> dict[str, str]:
        """Every file of the commit with its blob id."""
        return self._commit.blobs


class _CommitEntries:
    """The entries of a commit, computed lazily.

    Files unchanged since then aren't parsed again, so the cost is that of the difference to today.
    """

    def __init__(self, history: HistoryReader, at: str, today: LibraryOfToday | None) -> None:
        self._history = history
        self._at = at
        self._today = today
        self._links: dict[str, tuple[Link, ...]] = {}  # of parsed files that differ from today

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
        # In a repository with another layout every Markdown file is an entry.
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
