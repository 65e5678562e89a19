"""Name resolution: the entry that a reference or link refers to, as Obsidian resolves it.

Tried in this order: the path as written (Markdown links relative to the linking file first), a file
name anywhere in the tree (with the folders written), an alias, a title, and the slug of that title.
Case is ignored. Of several matches, one in the linking file's folder wins, then the shortest path.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol
from urllib.parse import unquote

from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.knowledge.entries.dendron import Dendron
from kbtui.knowledge.entries.entry import EntryInfo, category_of, ids_in, slug_of, without_line
from kbtui.knowledge.format.links import IN_VAULT, Link, unpack_links
from kbtui.text import clean_line, fold, shorten, slugify
from kbtui.workspace import files
from kbtui.workspace.layout import paths_named, short_name

_ROOT = "knowledge/"
# The rules by which an entry can be found, strictest first.
RULES = ("relative", "path", "name", "alias", "title")
_MAX_LISTED = 8


class EntryNames(Protocol):
    """The names of an entry."""

    @property
    def path(self) -> str:
        """Its workspace path."""

    @property
    def title(self) -> str:
        """Its title."""

    @property
    def aliases(self) -> Sequence[str]:
        """Its other names."""


@dataclass(frozen=True, slots=True)
class Found:
    """The entry a target resolves to, and the rule that found it."""

    path: str
    by: str


class AttachedFiles(Protocol):
    """The linkable files besides entries."""

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""

    def attachments(self) -> Mapping[str, str]:
        """Return the files among the entries that aren't notes, by casefolded name."""


class LinkIndex:
    """An immutable lookup table of entries by name.

    In a Dendron workspace the label of a wikilink may come before the target.
    """

    def __init__(
        self, entries: Iterable[EntryNames] = (), *, dendron: Dendron | None = None
    ) -> None:
        self.dendron = dendron
        self._paths: dict[str, str] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._aliases: dict[str, tuple[str, ...]] = {}
        self._titles: dict[str, tuple[str, ...]] = {}
        for entry in entries:
            self._add(entry)

    def changed(self, old: EntryNames | None, new: EntryNames | None) -> LinkIndex:
        """Return a copy of the index in which `new` replaces `old`."""
        index = LinkIndex(dendron=self.dendron)
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
        """Return the entry at a path, ignoring case."""
        return self._paths.get(_path_key(path))

    def resolve(self, link: Link, source: str) -> str | None:
        """Return the path of the entry that a link in the file `source` leads to."""
        found = self.find(link, source)
        return found.path if found else None

    def find(self, link: Link, source: str) -> Found | None:
        """Resolve a link, and report the rule that found the entry."""
        link = self.read(link)
        if not link.target:
            return Found(source, "path")
        is_relative = link.target.startswith(("./", "../"))
        if link.kind != "markdown" and not is_relative:
            return self.named(link.target, source)
        target = unquote(link.target) if link.kind == "markdown" else link.target
        if not target.startswith("/"):
            joined = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
            if path := self._paths.get(_path_key(joined)):
                return Found(path, "relative")
            if target.startswith(("./", "../")):
                return None
        found = self.named(target, source)
        return found if found and found.by in {"path", "name"} else None

    def read(self, link: Link) -> Link:
        """Return a link in its intended order: swapped if what follows ``|`` is the target.

        In a Dendron workspace it is swapped unless only the part before ``|`` names a note.
        """
        if link.kind != "wiki" or not link.alias or link.turned_round:
            return link
        turned = link.turned()
        if turned.target.startswith(IN_VAULT):
            return turned
        if self.dendron is None or not turned.target:
            return link
        found = self.named(turned.target)
        if found and found.by in {"path", "name"}:
            return turned
        return link if not link.target or self.named(link.target) else turned

    def resolved(self, source: str, links: Iterable[Link]) -> tuple[tuple[Link, str | None], ...]:
        """Return the links of a file in their intended order, each with its target entry."""
        return tuple((link, self.resolve(link, source)) for link in map(self.read, links))

    def named(self, target: str, source: str = "") -> Found | None:
        """Find an entry by path, name, alias or title."""
        by, paths = self.candidates(target)
        return Found(_nearest(paths, source), by) if paths else None

    def candidates(self, target: str) -> tuple[str, Sequence[str]]:
        """Return all entries a reference may mean, by the strictest rule that finds any."""
        if target.startswith(IN_VAULT):
            return "name", self._in_vault(*target.removeprefix(IN_VAULT).partition("/")[::2])
        key = _path_key(target.lstrip("/"))
        exact = self._paths.get(_ROOT + key) or self._paths.get(key)
        if exact:
            return "path", (exact,)
        named: Sequence[str] = self._names.get(key.rpartition("/")[2], ())
        if "/" in key:
            named = [path for path in named if _path_key(path).endswith(f"/{key}")]
        if named:
            return "name", named
        folded = fold(target)
        if paths := self._aliases.get(folded):
            return "alias", paths
        if paths := self._titles.get(folded):
            return "title", paths
        return "title", () if "/" in target else self._names.get(slugify(target), ())

    def _in_vault(self, vault: str, name: str) -> Sequence[str]:
        """Return entries by name in a Dendron vault, or anywhere if the vault is unknown."""
        named = self._names.get(_path_key(name), ())
        dendron = self.dendron or Dendron()
        there = [path for path in named if dendron.has(vault, path)]
        return there if there or vault.casefold() in dendron.vaults else named

    def _add(self, entry: EntryNames) -> None:
        self._paths[_path_key(entry.path)] = entry.path
        for table, key in self._keys(entry):
            table[key] = (*table.get(key, ()), entry.path)

    def _remove(self, entry: EntryNames) -> None:
        self._paths.pop(_path_key(entry.path), None)
        for table, key in self._keys(entry):
            rest = tuple(path for path in table.get(key, ()) if path != entry.path)
            if rest:
                table[key] = rest
            else:
                table.pop(key, None)

    def _keys(self, entry: EntryNames) -> Iterator[tuple[dict[str, tuple[str, ...]], str]]:
        yield self._names, _path_key(slug_of(entry.path))
        yield self._titles, fold(entry.title)
        for alias in dict.fromkeys(map(fold, (*entry.aliases, *ids_in(slug_of(entry.path))))):
            yield self._aliases, alias


def _path_key(path: str) -> str:
    """Return a path for comparison: NFC, casefolded, without ``.md``."""
    path = unicodedata.normalize("NFC", path).casefold()
    return path.removesuffix(".md")


def _nearest(paths: Sequence[str], source: str) -> str:
    folder = category_of(source)
    return min(paths, key=lambda path: (category_of(path) != folder, path.count("/"), path))


class LinkGraph:
    """The resolved links of a set of files; see `follow` for changes of the index.

    It lives as long as the app and grows with the workspace, and every full garbage collection
    visits each object that may be part of a cycle. So links are stored as text, and in tuples and
    dicts of strings only, which the collector doesn't track.
    """

    def __init__(self, index: LinkIndex, packed: Mapping[str, str]) -> None:
        """Resolve the links of files, serialized by `pack_links`."""
        self.index = index
        self._packed: dict[str, str] = {}
        self._targets: dict[str, tuple[str | None, ...]] = {}
        self._incoming: dict[str, dict[str, None]] = {}
        self._sources_by_name: dict[str, dict[str, None]] = {}
        for source, text in packed.items():
            self.put(source, text)

    def put(self, source: str, packed: str) -> None:
        """Replace the links of one file."""
        self.drop(source)
        links = unpack_links(packed)
        targets = tuple([self.index.resolve(link, source) for link in links])
        if targets:
            self._packed[source], self._targets[source] = packed, targets
        for link, target in zip(links, targets, strict=True):
            for name in _names_in(link):
                self._sources_by_name.setdefault(name, {})[source] = None
            if target is not None:
                self._incoming.setdefault(target, {})[source] = None

    def drop(self, source: str) -> None:
        """Remove the links of one file."""
        for link in self.links_of(source):
            for name in _names_in(link):
                self._sources_by_name.get(name, {}).pop(source, None)
        for target in self._targets.pop(source, ()):
            if target is not None:
                self._incoming.get(target, {}).pop(source, None)
        self._packed.pop(source, None)

    def outgoing(self, source: str) -> tuple[tuple[Link, str | None], ...]:
        """Return the links of a file, each with its target entry."""
        links = map(self.index.read, self.links_of(source))
        return tuple(zip(links, self._targets.get(source, ()), strict=True))

    def links_of(self, source: str) -> tuple[Link, ...]:
        """Return the links of a file as written."""
        return unpack_links(self._packed.get(source, "[]"))

    def incoming(self, target: str) -> list[tuple[str, Link]]:
        """Return the links from other files to an entry, each with its source file."""
        return [
            (source, link)
            for source in sorted(self._incoming.get(target, ()))
            if source != target
            for link, found in self.outgoing(source)
            if found == target
        ]

    def sources_naming(self, names: Iterable[str]) -> set[str]:
        """Return the files with a link that uses one of these names, wherever it leads."""
        return {
            source for name in names for source in self._sources_by_name.get(name_key(name), ())
        }

    def sources_of_dead(self) -> set[str]:
        """Return the files with a link that leads to no entry."""
        return {source for source, targets in self._targets.items() if None in targets}

    def follow(self, index: LinkIndex, names: Iterable[str], was: str | None) -> None:
        """Switch to a new index, resolving links that use a changed name or led to `was`."""
        self.index = index
        touched = self.sources_naming(names)
        if was is not None:
            touched |= {source for source, _link in self.incoming(was)}
        for source in touched & self._packed.keys():
            self.put(source, self._packed[source])

    def degree(self, target: str) -> int:
        """Return how many files link to an entry."""
        return len(self._incoming.get(target, ()))


def _names_in(link: Link) -> set[str]:
    """Return all names a link may refer to: either side of ``|``."""
    if link.kind == "wiki" and link.alias:
        return {name_key(link.target), name_key(link.turned().target)}
    return {name_key(link.target)}


@lru_cache(maxsize=65_536)
def name_key(target: str) -> str:
    """Return the form in which link targets and entry names are compared."""
    name = target.rstrip("/").rpartition("/")[2]
    name = unquote(name) if "%" in name else name
    return slugify(name[:-3] if name.lower().endswith(".md") else name)


def is_address_of(target: str, path: str) -> bool:
    """Return whether a target like ``/a/b/`` is the address of an entry on a site made of it.

    Sites are built below another folder than the entries, or from one of them.
    """
    address = [slugify(part) for part in unquote(target).strip("/").split("/")]
    own = [slugify(part) for part in [*category_of(path).split("/"), slug_of(path)] if part]
    size = min(len(address), len(own))
    return target.startswith("/") and address[-size:] == own[-size:]


def found_path(
    ref: str, index: LinkIndex, infos: Iterable[EntryInfo], is_file: Callable[[str], bool]
) -> str:
    """Return the path that a path, category/slug, slug, title or alias refers to.

    `infos` are used for suggestions if nothing matches. `is_file` says whether a path is a file,
    which need not be an entry.

    Raises:
        NotFoundError: nothing matches.
        UsageError: several entries match, or `ref` is empty.
        UnsafePathError: the path leads outside the workspace.
    """
    ref = without_line(clean_line(ref))
    if not ref:
        raise UsageError("No entry is named.", "Name one by path, slug, title or alias.")
    _by, paths = index.candidates(ref)
    if len(set(paths)) > 1:
        raise ambiguous(ref, paths)
    if paths:
        return paths[0]
    for path in paths_named(ref):
        if is_file(path):
            return files.checked_path(path)
    raise not_found(ref, infos)


def ambiguous(ref: str, paths: Sequence[str]) -> UsageError:
    """Return the error for a name that several entries have."""
    names = [short_name(path) for path in sorted(set(paths))]
    rest = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return UsageError(
        f"{_shown(ref)} is the name of {len(names)} entries.",
        f"Say which one: {', '.join(names[:_MAX_LISTED])}{rest}.",
    )


def not_found(ref: str, infos: Iterable[EntryInfo]) -> NotFoundError:
    """Return the error for a name that no entry has, suggesting similar ones."""
    from kbtui.knowledge.linking.similarity import nearest

    suggestions = nearest(ref, infos)
    hint = (
        f"Did you mean {' or '.join(suggestions)}?"
        if suggestions
        else "See `kbtui list` for what there is."
    )
    return NotFoundError(f"There is no entry {_shown(ref)}.", hint)


def attachment(source: str, link: Link, files: AttachedFiles) -> str | None:
    """Return the file that a link leads to if it isn't an entry, such as a picture or document.

    A link with only a name, or the end of a path, finds such a file anywhere.
    """
    target = unquote(link.target) if link.kind == "markdown" else link.target
    if "." not in target.rpartition("/")[2]:
        return None
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    for path in (beside, f"knowledge/{target.lstrip('/')}", target.lstrip("/")):
        try:
            if files.exists(path):
                return path
        except KbtuiError:
            continue
    found = files.attachments().get(target.rpartition("/")[2].casefold(), "")
    return found if found.casefold().endswith(f"/{target.casefold()}") else None


def _shown(ref: str) -> str:
    return repr(shorten(clean_line(ref), 80))
