"""The meaning of a link: the entry that a written target names, as Obsidian finds it.

In this order: the path as written (for Markdown links seen from the linking file first), a name
anywhere in the tree (with as many folders as were written), an alias, a title, and last the name
that the title would have been filed under. Upper and lower case are the same. Among several, one
in the linking file's own folder wins, then the one with the shortest path.
"""

from __future__ import annotations

import posixpath
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from kbtui.knowledge.entry import category_of, slug_of
from kbtui.text import fold, slugify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kbtui.knowledge.links import Link

_ROOT = "knowledge/"
# How an entry can be found, the strictest rule first.
RULES = ("relative", "path", "name", "alias", "title")


class Named(Protocol):
    """The names of an entry."""

    @property
    def path(self) -> str:
        """Its workspace path."""
        ...

    @property
    def title(self) -> str:
        """Its title."""
        ...

    @property
    def aliases(self) -> Sequence[str]:
        """Its other names."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """The entry that a target names, and by what.

    `by` is ``relative`` (a path seen from the linking file), ``path`` (from the top), ``name``,
    ``alias`` or ``title``.
    """

    path: str
    by: str


class LinkIndex:
    """Finds entries by what they are called. Built once for a set of entries, then only read."""

    def __init__(self, entries: Iterable[Named] = ()) -> None:
        self._paths: dict[str, str] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._aliases: dict[str, tuple[str, ...]] = {}
        self._titles: dict[str, tuple[str, ...]] = {}
        for entry in entries:
            self._add(entry)

    def changed(self, old: Named | None, new: Named | None) -> LinkIndex:
        """Make the index in which `new` has taken the place of `old`."""
        index = LinkIndex()
        index._paths = dict(self._paths)
        index._names = dict(self._names)
        index._aliases = dict(self._aliases)
        index._titles = dict(self._titles)
        if old is not None:
            index._remove(old)
        if new is not None:
            index._add(new)
        return index

    def at_path(self, path: str) -> str | None:
        """Give the entry at a path, upper and lower case being the same."""
        return self._paths.get(_key(path))

    def resolve(self, link: Link, source: str) -> str | None:
        """Give the path of the entry that a link in the file `source` leads to."""
        found = self.find(link, source)
        return found.path if found else None

    def find(self, link: Link, source: str) -> Found | None:
        """Like `resolve`, and say by what the entry was found."""
        if not link.target:
            return Found(source, "path")
        if link.kind != "markdown":
            return self.named(link.target, source)
        target = unquote(link.target)
        if not target.startswith("/"):
            joined = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
            if path := self._paths.get(_key(joined)):
                return Found(path, "relative")
            if target.startswith(("./", "../")):
                return None
        found = self.named(target, source)
        return found if found and found.by in {"path", "name"} else None

    def named(self, target: str, source: str = "") -> Found | None:
        """Find an entry by a path, a name, an alias or a title."""
        by, paths = self.candidates(target)
        return Found(_nearest(paths, source), by) if paths else None

    def candidates(self, target: str) -> tuple[str, Sequence[str]]:
        """Give all entries that a reference may mean, by the strictest rule that finds any."""
        key = _key(target.lstrip("/"))
        exact = self._paths.get(_ROOT + key) or self._paths.get(key)
        if exact:
            return "path", (exact,)
        named: Sequence[str] = self._names.get(key.rpartition("/")[2], ())
        if "/" in key:
            named = [path for path in named if _key(path).endswith(f"/{key}")]
        if named:
            return "name", named
        folded = fold(target)
        if paths := self._aliases.get(folded):
            return "alias", paths
        if paths := self._titles.get(folded):
            return "title", paths
        return "title", () if "/" in target else self._names.get(slugify(target), ())

    def _add(self, entry: Named) -> None:
        self._paths[_key(entry.path)] = entry.path
        for table, key in self._keys(entry):
            table[key] = (*table.get(key, ()), entry.path)

    def _remove(self, entry: Named) -> None:
        self._paths.pop(_key(entry.path), None)
        for table, key in self._keys(entry):
            rest = tuple(path for path in table.get(key, ()) if path != entry.path)
            if rest:
                table[key] = rest
            else:
                table.pop(key, None)

    def _keys(self, entry: Named) -> Iterator[tuple[dict[str, tuple[str, ...]], str]]:
        yield self._names, _key(slug_of(entry.path))
        yield self._titles, fold(entry.title)
        for alias in dict.fromkeys(map(fold, entry.aliases)):
            yield self._aliases, alias


def _key(path: str) -> str:
    """How paths are compared: NFC, no difference of case, without ``.md``."""
    path = unicodedata.normalize("NFC", path).casefold()
    return path.removesuffix(".md")


def _nearest(paths: Sequence[str], source: str) -> str:
    folder = category_of(source)
    return min(paths, key=lambda path: (category_of(path) != folder, path.count("/"), path))
