"""The meaning of a name: the entry that a reference or a link names, as Obsidian finds it.

In this order: the path as written (for Markdown links seen from the linking file first), a name
anywhere in the tree (with as many folders as were written), an alias, a title, and last the name
that the title would have been filed under. Upper and lower case are the same. Among several, one
in the linking file's own folder wins, then the one with the shortest path.
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
# How an entry can be found, the strictest rule first.
RULES = ("relative", "path", "name", "alias", "title")
_SHOWN = 8


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
    """The entry that a target names, and by which kind of name."""

    path: str
    by: str


class AttachedFiles(Protocol):
    """The files that links lead to beside entries."""

    def exists(self, path: str) -> bool:
        """True if there is such a file."""

    def attachments(self) -> Mapping[str, str]:
        """The files among the entries that are no notes, by casefolded name."""


class LinkIndex:
    """Finds entries by what they are called. Built once for a set of entries, then only read.

    In a workspace of Dendron's the label of a wikilink may stand before the target.
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
        """Make the index in which `new` has taken the place of `old`."""
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
        """Give the entry at a path, upper and lower case being the same."""
        return self._paths.get(_key(path))

    def resolve(self, link: Link, source: str) -> str | None:
        """Give the path of the entry that a link in the file `source` leads to."""
        found = self.find(link, source)
        return found.path if found else None

    def find(self, link: Link, source: str) -> Found | None:
        """Like `resolve`, and say by what the entry was found."""
        link = self.read(link)
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

    def read(self, link: Link) -> Link:
        """Give a link as it is meant: turned round where what follows ``|`` is the target.

        Where notes are linked by Dendron's rule it is, unless only the other side names one.
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
        """The links of a file as they are read here, each with the entry that it leads to."""
        return tuple((link, self.resolve(link, source)) for link in map(self.read, links))

    def named(self, target: str, source: str = "") -> Found | None:
        """Find an entry by a path, a name, an alias or a title."""
        by, paths = self.candidates(target)
        return Found(_nearest(paths, source), by) if paths else None

    def candidates(self, target: str) -> tuple[str, Sequence[str]]:
        """Give all entries that a reference may mean, by the strictest rule that finds any."""
        if target.startswith(IN_VAULT):
            return "name", self._in_vault(*target.removeprefix(IN_VAULT).partition("/")[::2])
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

    def _in_vault(self, vault: str, name: str) -> Sequence[str]:
        """The entries of a name in a vault of Dendron's; anywhere where nobody knows the vault."""
        named = self._names.get(_key(name), ())
        dendron = self.dendron or Dendron()
        there = [path for path in named if dendron.has(vault, path)]
        return there if there or vault.casefold() in dendron.vaults else named

    def _add(self, entry: EntryNames) -> None:
        self._paths[_key(entry.path)] = entry.path
        for table, key in self._keys(entry):
            table[key] = (*table.get(key, ()), entry.path)

    def _remove(self, entry: EntryNames) -> None:
        self._paths.pop(_key(entry.path), None)
        for table, key in self._keys(entry):
            rest = tuple(path for path in table.get(key, ()) if path != entry.path)
            if rest:
                table[key] = rest
            else:
                table.pop(key, None)

    def _keys(self, entry: EntryNames) -> Iterator[tuple[dict[str, tuple[str, ...]], str]]:
        yield self._names, _key(slug_of(entry.path))
        yield self._titles, fold(entry.title)
        for alias in dict.fromkeys(map(fold, (*entry.aliases, *ids_in(slug_of(entry.path))))):
            yield self._aliases, alias


def _key(path: str) -> str:
    """How paths are compared: NFC, no difference of case, without ``.md``."""
    path = unicodedata.normalize("NFC", path).casefold()
    return path.removesuffix(".md")


def _nearest(paths: Sequence[str], source: str) -> str:
    folder = category_of(source)
    return min(paths, key=lambda path: (category_of(path) != folder, path.count("/"), path))


class LinkGraph:
    """The resolved links of a set of files; after a change of `index` some are read `again`.

    It lives as long as the app and is as large as a workspace, and each full garbage collection
    visits every object that may be part of a cycle. So links are kept as text, and as tuples and
    dicts of nothing but strings: those are none.
    """

    def __init__(self, index: LinkIndex, packed: Mapping[str, str]) -> None:
        """Resolve the links of files, which are given as `pack_links` writes them."""
        self.index = index
        self._packed: dict[str, str] = {}
        self._targets: dict[str, tuple[str | None, ...]] = {}
        self._incoming: dict[str, dict[str, None]] = {}
        self._naming: dict[str, dict[str, None]] = {}
        for source, text in packed.items():
            self.put(source, text)

    def put(self, source: str, packed: str) -> None:
        """Take over the links of one file, in place of those it had before."""
        self.drop(source)
        links = unpack_links(packed)
        targets = tuple([self.index.resolve(link, source) for link in links])
        if targets:
            self._packed[source], self._targets[source] = packed, targets
        for link, target in zip(links, targets, strict=True):
            for name in _names_in(link):
                self._naming.setdefault(name, {})[source] = None
            if target is not None:
                self._incoming.setdefault(target, {})[source] = None

    def drop(self, source: str) -> None:
        """Forget the links of one file."""
        for link in self.links_of(source):
            for name in _names_in(link):
                self._naming.get(name, {}).pop(source, None)
        for target in self._targets.pop(source, ()):
            if target is not None:
                self._incoming.get(target, {}).pop(source, None)
        self._packed.pop(source, None)

    def outgoing(self, source: str) -> tuple[tuple[Link, str | None], ...]:
        """The links of a file, each with the entry it leads to."""
        links = map(self.index.read, self.links_of(source))
        return tuple(zip(links, self._targets.get(source, ()), strict=True))

    def links_of(self, source: str) -> tuple[Link, ...]:
        """The links of a file, as they are written."""
        return unpack_links(self._packed.get(source, "[]"))

    def incoming(self, target: str) -> list[tuple[str, Link]]:
        """The links that lead to an entry from other files, each with the file it stands in."""
        return [
            (source, link)
            for source in sorted(self._incoming.get(target, ()))
            if source != target
            for link, found in self.outgoing(source)
            if found == target
        ]

    def sources_naming(self, names: Iterable[str]) -> set[str]:
        """The files with a link that says one of these names, wherever it leads."""
        return {source for name in names for source in self._naming.get(name_key(name), ())}

    def follow(self, index: LinkIndex, names: Iterable[str], was: str | None) -> None:
        """Resolve by a newer index what says one of the names that changed, or led to `was`."""
        self.index = index
        touched = self.sources_naming(names)
        if was is not None:
            touched |= {source for source, _link in self.incoming(was)}
        for source in touched & self._packed.keys():
            self.put(source, self._packed[source])

    def degree(self, target: str) -> int:
        """How many files link to an entry."""
        return len(self._incoming.get(target, ()))


def _names_in(link: Link) -> set[str]:
    """All that a link may name: with a label first it is the other side."""
    if link.kind == "wiki" and link.alias:
        return {name_key(link.target), name_key(link.turned().target)}
    return {name_key(link.target)}


@lru_cache(maxsize=65_536)
def name_key(target: str) -> str:
    """The common form of a target and the names of an entry, however they are written."""
    name = target.rpartition("/")[2]
    name = unquote(name) if "%" in name else name
    return slugify(name[:-3] if name.lower().endswith(".md") else name)


def found_path(
    ref: str, index: LinkIndex, infos: Iterable[EntryInfo], is_file: Callable[[str], bool]
) -> str:
    """The path that a path, category/slug, slug, title or alias names.

    Of `infos` the nearest are named where nothing is called so. `is_file` tells of a path if there
    is a file, which need be no entry.

    Raises:
        NotFoundError: nothing is called so.
        UsageError: more than one entry is, or nothing was said.
        UnsafePathError: it is a path that leads outside.
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
    """Say which entries a name may mean."""
    names = [short_name(path) for path in sorted(set(paths))]
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return UsageError(
        f"{_shown(ref)} is the name of {len(names)} entries.",
        f"Say which one: {', '.join(names[:_SHOWN])}{rest}.",
    )


def not_found(ref: str, infos: Iterable[EntryInfo]) -> NotFoundError:
    """Say that nothing is called so, and what is called nearly so."""
    from kbtui.knowledge.linking.similarity import nearest

    near = nearest(ref, infos)
    hint = f"Did you mean {' or '.join(near)}?" if near else "See `kbtui list` for what there is."
    return NotFoundError(f"There is no entry {_shown(ref)}.", hint)


def attachment(source: str, link: Link, files: AttachedFiles) -> str | None:
    """The file that is no entry which a link leads to: a picture, a document.

    A link that says only a name, or the end of a path, leads to such a file anywhere.
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
