"""The entries as they were at a commit: read out of the history, never written.

What stands there today with the same bytes isn't parsed again, so that a look at yesterday costs
what differs from today.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError
from kbtui.knowledge import resolve
from kbtui.knowledge.entry import EntryInfo, info_of, parse_entry
from kbtui.knowledge.entry_index import is_indexed
from kbtui.knowledge.library import Backlink, ResolvedLink
from kbtui.knowledge.resolve import LinkGraph, LinkIndex
from kbtui.text import clean_line

if TYPE_CHECKING:
    from kbtui.history.looking.reading import HistoryReader
    from kbtui.knowledge.entry import Entry
    from kbtui.knowledge.library import Library
    from kbtui.knowledge.links import Link


class PastLibrary:
    """The library of one commit; what it says never changes. One object serves all threads.

    Args:
        history: Where the commit is; it may be somebody else's.
        at: Which one, as `History.resolve` understands it.
        today: The library of now, to which most entries are the same.

    Attributes:
        at: The full id of the commit.

    Raises:
        NotFoundError: There is no such commit.
    """

    def __init__(self, history: HistoryReader, at: str, today: Library | None = None) -> None:
        self._history = history
        self._today = today
        self.at = history.resolve(at)

    @cached_property
    def blobs(self) -> dict[str, str]:
        """Every file of the commit with its blob id."""
        return self._history.tree(self.at)

    def read(self, path: str) -> bytes:
        """Read a file.

        Raises:
            NotFoundError: It wasn't there.
        """
        blob = self.blobs.get(path)
        if blob is None:
            raise NotFoundError(f"{clean_line(path)} wasn't there then.")
        return self._history.read_blob(blob)

    def infos(self) -> list[EntryInfo]:
        """All entries by category and slug, without their texts."""
        return list(self._infos)

    def info(self, path: str) -> EntryInfo | None:
        """The facts known of one entry; None where there was none."""
        return self._by_path.get(path)

    def tags(self) -> dict[str, int]:
        """Every tag and how many entries had it, the most frequent first."""
        counts = Counter(tag for info in self._infos for tag in info.tags)
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].casefold())))

    def get(self, path: str) -> Entry:
        """Read the file at a workspace path, as it was.

        Raises:
            NotFoundError: It wasn't there.
        """
        return parse_entry(path, self.read(path))

    def find_path(self, ref: str) -> str:
        """The path that a path, category/slug, slug, title or alias named then.

        Raises:
            NotFoundError: Nothing was called so; the hint names the nearest.
            UsageError: More than one entry was; the hint lists them.
        """
        ref = resolve.without_line(clean_line(ref))
        if ref in self.blobs:
            return ref
        _by, paths = self._index.candidates(ref)
        if len(set(paths)) > 1:
            raise resolve.ambiguous(ref, paths)
        if paths:
            return paths[0]
        raise resolve.not_found(ref, self._infos)

    def outgoing(self, path: str) -> list[ResolvedLink]:
        """The links of a file, as they led then."""
        return [self._resolved(link, target) for link, target in self._graph.outgoing(path)]

    def backlinks(self, path: str) -> list[Backlink]:
        """The lines of other files that linked to an entry then."""
        found = []
        for source, link in self._graph.incoming(path):
            lines = self.get(source).text.splitlines()
            text = lines[link.line - 1].strip() if link.line <= len(lines) else ""
            info = self.info(source)
            found.append(Backlink(source, info.title if info else source, link.line, text))
        return found

    @cached_property
    def _infos(self) -> tuple[EntryInfo, ...]:
        now = {info.path: info for info in self._today.infos()} if self._today else {}
        found = [
            known
            if (known := now.get(path)) is not None and known.blob == blob
            else self._parsed(path, blob)
            for path, blob in self._notes.items()
        ]
        return tuple(sorted(found, key=lambda info: (info.category, info.slug, info.path)))

    @cached_property
    def _notes(self) -> dict[str, str]:
        """The entries; of a repository that isn't laid out as ours, every Markdown file."""
        ours = {
            path: blob
            for path, blob in self.blobs.items()
            if path.startswith("knowledge/") and is_indexed(path)
        }
        return ours or {
            path: blob for path, blob in self.blobs.items() if path.lower().endswith(".md")
        }

    @cached_property
    def _by_path(self) -> dict[str, EntryInfo]:
        return {info.path: info for info in self._infos}

    def _parsed(self, path: str, blob: str) -> EntryInfo:
        data = self._history.read_blob(blob)
        return info_of(parse_entry(path, data), len(data), 0)

    @cached_property
    def _index(self) -> LinkIndex:
        return LinkIndex(self._infos)

    @cached_property
    def _graph(self) -> LinkGraph:
        return LinkGraph(
            self._index, {info.path: self.get(info.path).links for info in self._infos}
        )

    def _resolved(self, link: Link, target: str | None) -> ResolvedLink:
        info = self.info(target) if target else None
        if info is None:
            return ResolvedLink(link, None, None)
        return ResolvedLink(link, info.path, info.title)
