"""The knowledge tree as plain data: folders, entries, and the rows that are visible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from kbtui.knowledge.library import EntryInfo


@dataclass(slots=True)
class Folder:
    """A category with what is in it; `count` includes the entries of the folders inside."""

    path: str
    name: str
    folders: dict[str, Folder] = field(default_factory=dict)
    entries: list[EntryInfo] = field(default_factory=list)
    count: int = 0


class Row(NamedTuple):
    """One visible line of the tree: a folder, or an entry."""

    depth: int
    folder: Folder | None
    entry: EntryInfo | None

    @property
    def key(self) -> str:
        """What stays the same when the tree is made anew."""
        if self.entry is not None:
            return self.entry.path
        return f"{self.folder.path}/" if self.folder is not None else ""


def build_tree(entries: Iterable[EntryInfo]) -> Folder:
    """Sort entries into their folders; runs in a thread."""
    root = Folder("", "")
    for entry in sorted(entries, key=lambda entry: (entry.category, entry.slug)):
        folder = root
        folder.count += 1
        for name in filter(None, entry.category.split("/")):
            path = f"{folder.path}/{name}" if folder.path else name
            folder = folder.folders.setdefault(name, Folder(path, name))
            folder.count += 1
        folder.entries.append(entry)
    return root


def visible_rows(root: Folder, expanded: Collection[str]) -> list[Row]:
    """The rows of the folders that are unfolded, from top to bottom."""
    return list(_rows(root, expanded, 0))


def _rows(folder: Folder, expanded: Collection[str], depth: int) -> Iterator[Row]:
    for name in sorted(folder.folders, key=str.casefold):
        inner = folder.folders[name]
        yield Row(depth, inner, None)
        if inner.path in expanded:
            yield from _rows(inner, expanded, depth + 1)
    for entry in folder.entries:
        yield Row(depth, None, entry)


def all_folders(root: Folder) -> set[str]:
    """The paths of all folders, which unfolds everything."""
    found = set()
    pending = list(root.folders.values())
    while pending:
        folder = pending.pop()
        found.add(folder.path)
        pending += folder.folders.values()
    return found


def ancestors(category: str) -> list[str]:
    """The folder paths from the top to `category` itself."""
    parts = category.split("/") if category else []
    return ["/".join(parts[: index + 1]) for index in range(len(parts))]
