"""Links between files with the edits of a run on top, and their repair (as `knowledge.repair`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import UnreadableError
from kbtui.knowledge.entry import parse_entry
from kbtui.knowledge.repair import retargeted, unlinked
from kbtui.knowledge.resolve import LinkIndex
from kbtui.knowledge.retarget import new_target
from kbtui.knowledge.shelf import is_on_shelf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kbtui.knowledge.library import Library
    from kbtui.knowledge.links import Link
    from kbtui.knowledge.resolve import Named
    from kbtui.memory.dream.overlay import Edits, View

_ENTRIES = "knowledge/"


def is_entry(path: str) -> bool:
    """Whether a path is that of an entry."""
    return path.startswith(_ENTRIES) and is_on_shelf(path)


class Links:
    """Finds and repairs links.

    Attributes:
        repaired: The files that were worked out to change only by a repair.
    """

    def __init__(self, library: Library, view: View) -> None:
        self._library = library
        self._view = view
        self.repaired: set[str] = set()

    def index(self) -> LinkIndex:
        """What finds entries by what they are called, the edits included."""
        entries: dict[str, Named] = {info.path: info for info in self._library.infos()}
        for path, data in self._view.edits.items():
            if is_entry(path):
                entries.pop(path, None)
                if data is not None:
                    entries[path] = parse_entry(path, data)
        return LinkIndex(entries.values())

    def repointed(self, old: str, target: Named, before: LinkIndex, after: LinkIndex) -> Edits:
        """Lead every link to `old` to `target`, where it doesn't lead there anyway.

        Args:
            old: The entry that will be gone.
            target: The entry that is meant from now on.
            before: What finds entries now.
            after: What finds entries from now on.
        """

        def decide(link: Link, source: str) -> str | None:
            found = before.find(link, source)
            if found is None or found.path != old or after.resolve(link, source) == target.path:
                return None
            return new_target(link, found.by, source, target, after)

        def repair(data: bytes, source: str) -> bytes:
            return retargeted(data, lambda link: decide(link, source))

        return dict(self._repaired((old, target.path), repair))

    def removed(self, old: str) -> Edits:
        """Turn every link to `old` into its text."""
        index = self.index()

        def repair(data: bytes, source: str) -> bytes:
            return unlinked(data, lambda link: index.resolve(link, source) == old)

        return dict(self._repaired((old,), repair))

    def _repaired(
        self, moving: tuple[str, ...], repair: Callable[[bytes, str], bytes]
    ) -> Iterator[tuple[str, bytes]]:
        """The other files that change by a repair; what can't be read is left as it is."""
        for source in self._sources(moving[0]):
            data = self._view.data(source)
            if data is None or source in moving or parse_entry(source, data).problem:
                continue
            try:
                repaired = repair(data, source)
            except UnreadableError:
                continue
            if repaired != data:
                self.repaired.add(source)
                yield source, repaired

    def _sources(self, path: str) -> list[str]:
        """The files that link, or since an edit may link, to an entry."""
        linking = {backlink.path for backlink in self._library.backlinks(path)}
        return sorted(linking | {each for each in self._view.edits if is_on_shelf(each)})
