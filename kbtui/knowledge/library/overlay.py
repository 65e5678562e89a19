"""The overlay: files with unwritten edits on top, with names and links resolved as if written.

It is for preparing several edits together, or edits that may not be written yet.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial

from kbtui.errors import KbtuiError, NotFoundError, UnreadableError, UsageError
from kbtui.history.change import Change
from kbtui.knowledge.catalog.entry_index import EntryIndex
from kbtui.knowledge.entries.entry import (
    Entry,
    EntryInfo,
    has_page_properties,
    is_entry,
    is_indexed,
    page_name,
    parse_entry,
    slug_of,
    with_page_alias,
    without_line,
)
from kbtui.knowledge.entries.habits import Habits
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import heading_named, headings_of
from kbtui.knowledge.format.links import Link
from kbtui.knowledge.linking import bases, canvas, resolve
from kbtui.knowledge.linking.repair import (
    Move,
    NewName,
    follow,
    new_heading,
    new_name,
    new_target,
    relative_target_of_file,
    retargeted,
    still_leads,
    titled,
    unlinked,
)
from kbtui.knowledge.linking.resolve import LinkIndex
from kbtui.text import clean_line, fold
from kbtui.workspace import files
from kbtui.workspace.layout import Layout, short_name
from kbtui.workspace.scan import attachments_in

Edits = dict[str, "bytes | None"]
_ENTRIES_PREFIX = "knowledge/"
_BOM = "\ufeff"


class Overlay:
    """Files by workspace path: their content `before` (None: missing) and the `edits` on top.

    `shown` are the files that a model was shown, at least in part, `repaired` those of which only
    links were updated, `unmended` those with links that can't be, `addresses` those with a link to
    the address of an entry on a site, once for each, `moved` the new paths of renamed
    entries, with the old ones.
    """

    def __init__(self, layout: Layout, entries: EntryIndex) -> None:
        self.layout = layout
        self.before: Edits = {}
        self.edits: Edits = {}
        self.shown: set[str] = set()
        self.repaired: set[str] = set()
        self.unmended: list[str] = []
        self.addresses: list[str] = []
        self.moved: dict[str, str] = {}
        self._entries = entries
        self._index: LinkIndex | None = None

    # Files -----------------------------------------------------------------------------------

    def original(self, path: str) -> bytes | None:
        """Return the bytes of a file when first read; None if it didn't exist."""
        if path not in self.before:
            self.before[path] = files.read_if_there(self.layout, path)
        return self.before[path]

    def data(self, path: str) -> bytes | None:
        """Return the bytes of a file with the edits; None if it doesn't exist."""
        original = self.original(path)
        return self.edits.get(path, original)

    def exists(self, path: str) -> bool:
        """Return whether a file exists with the edits and can be read."""
        try:
            return self.data(path) is not None
        except KbtuiError:
            return False

    def text(self, path: str) -> str | None:
        """Return the text of a file with the edits and plain line feeds; None if missing.

        Raises:
            UnreadableError: it isn't UTF-8 text, so writing it would lose something.
        """
        data = self.data(path)
        return None if data is None else plain_text(data, path)

    def encoded(self, path: str, text: str) -> bytes:
        """Encode a new text with the file's byte-order mark and line endings."""
        data = self.data(path)
        if data is None:
            return text.encode("utf-8", "replace")
        old = files.decode(data)
        if _is_crlf(old.text):
            text = text.replace("\n", "\r\n")
        mark = _BOM if old.encoding == "utf-8-sig" else ""
        return (mark + text).encode("utf-8", "replace")

    def edit(self, path: str, text: str) -> Edits:
        """Return the edit that gives a file a new text, encoded as before."""
        return {path: self.encoded(path, text)}

    def apply(self, edits: Mapping[str, bytes | None]) -> None:
        """Add edits on top."""
        for path, data in edits.items():
            self.original(path)
            old = self.entry(path)
            index = self.index() if is_entry(path) else None
            self.edits[path] = data
            if index is not None:
                self._index = index.changed(old, self.entry(path))

    @property
    def changed(self) -> Edits:
        """The edits that actually change something."""
        return {path: data for path, data in self.edits.items() if data != self.before[path]}

    def stage(self, change: Change, edits: Mapping[str, bytes | None] | None = None) -> None:
        """Add edits to an open change, which fails if a file was modified meanwhile.

        The default is `changed`. Edits that only repair links are marked as such.
        """
        edits = self.changed if edits is None else edits
        change.repairs.update(self.repaired, self.moved)
        gone = {path.casefold(): path for path, data in edits.items() if data is None}
        for path, data in edits.items():
            if data is not None and gone.get(path.casefold(), path) != path:
                change.write(path, data)  # on some disks the same file as the deleted one
            else:
                change.put(path, data, over=self.original(path))

    # Names -----------------------------------------------------------------------------------

    def entry(self, path: str) -> Entry | EntryInfo | None:
        """Return the facts of an entry with the edits; None if there is none."""
        if path not in self.edits:
            return self._entries.get(path)
        data = self.edits[path]
        return None if data is None or not is_indexed(path) else parse_entry(path, data)

    def parsed(self, path: str) -> Entry:
        """Parse an entry with the edits.

        Raises:
            NotFoundError: it doesn't exist.
            UnreadableError: it isn't UTF-8 text.
        """
        text = self.text(path)
        if text is None:
            raise NotFoundError(f"There is no {short_name(path)}.")
        return parse_entry(path, text.encode("utf-8", "replace"))

    def index(self) -> LinkIndex:
        """Return the index of entries by name, including the edits."""
        return self._entries.index() if self._index is None else self._index

    def find_path(self, ref: str) -> str:
        """Return the entry that a path, category/slug, slug, title or alias refers to.

        Raises:
            NotFoundError: nothing matches; the hint names similar entries.
            UsageError: several match; the hint lists them.
        """
        return self._find(ref, self.index(), self._entries.infos())

    @staticmethod
    def _find(ref: str, index: LinkIndex, infos: Sequence[EntryInfo]) -> str:
        ref = without_line(clean_line(ref)).strip("[]")
        return resolve.found_path(ref, index, infos, lambda _path: False)

    def find_shown(self, ref: str) -> str:
        """Return the entry `find_path` finds, if the editor may see it.

        Raises:
            PrivateError: the editor may not see it. Else as `find_path`.
        """
        return self.find_path(ref)

    def check_shown(self, path: str, name: str) -> None:
        """Check that the editor may see a file; an error mentions only `name`.

        Raises:
            PrivateError: the editor may not.
        """

    def conceals(self, _path: str) -> bool:
        """Return whether the editor must not even know that a file exists."""
        return False

    def taken(self, path: str) -> bool:
        """Return whether a file has this path, or one that differs only in case."""
        if self.index().at_path(path) is not None:
            return True
        if path in self.edits:
            if self.edits[path] is not None or files.twin(self.layout, path) is not None:
                return True
        elif files.listed(self.layout, [path]):
            return True
        else:
            self.before.setdefault(path, None)
        created = [other.casefold() for other, data in self.edits.items() if data is not None]
        return path.casefold() in created

    def habits(self) -> Habits:
        """Return the naming and filing conventions."""
        return Habits(self.layout, tuple(self._entries.infos()))

    def free_path(self, kind: str, title: str, day: date, folder: str = "") -> str:
        """Return a free path for a new entry, in `folder` or where the habits put it."""
        habits, number = self.habits(), 1
        path = habits.path_for(kind, title, day, folder)
        while self.taken(path):
            number += 1
            path = habits.path_for(kind, title, day, folder, number)
        return path

    def has_label(self, name: str) -> bool:
        """Return whether an entry has a name as its tag, title or alias; case doesn't count."""
        wanted = fold(name.strip("#"))
        return any(
            wanted in map(fold, (info.title, *info.tags, *info.aliases))
            for info in self._entries.infos()
            if not self.conceals(info.path)
        )

    def new_name(self, info: Entry | EntryInfo, wanted: str) -> NewName:
        """Parse the new name a person gives an entry: a title, a slug or category/slug.

        Raises:
            UsageError: the name is empty.
            UnsafePathError: the name leads out of the workspace.
        """
        return new_name(info, wanted, self.habits())

    # Links -----------------------------------------------------------------------------------

    def renamed(self, path: str, name: NewName) -> Edits:
        """Return the edits that rename an entry, add its old name as alias and update all links.

        Raises:
            UsageError: the new name is taken.
        """
        old, data = self.entry(path), self.data(path)
        if old is None or data is None:
            raise NotFoundError(f"There is no {short_name(path)}.")
        if name.path.casefold() != path.casefold() and self.taken(name.path):
            raise UsageError(
                f"There is an entry {short_name(self.index().at_path(name.path) or name.path)}"
                " already.",
                "Choose another name, or delete that one first.",
            )
        own = data if old.problem else titled(data, old.title, name.title)
        new = parse_entry(name.path, own)
        before = self.index()
        after, retitled = before.changed(old, new), _is_retitled(data, own, old.title)
        move = Move(old, new, before, after, self.entry, self.exists, retitled)
        names = {name for each in (old, new) for name in (each.slug, each.title, *each.aliases)}
        edits = self._link_repairs(
            (path, name.path),
            names,
            partial(follow, move=move),
        )
        if old.problem is None:
            own = follow(own, path, move)
            former = old.title if old.title != new.title else page_name(old.slug)
            own = with_aliases(own, [former], new, as_page=self.habits().is_logseq)
        edits |= self._attached_edits([move])
        self.addresses += self._lost_addresses(move)
        if name.path != path:
            edits[path] = None
        self.moved[name.path] = path
        edits[name.path] = own
        return edits

    def reheaded(self, path: str, data: bytes, headings: Mapping[str, str]) -> Edits:
        """Return the edits that update links after headings of a file were renamed.

        Args:
            path: The file.
            data: Its new bytes, in which its links to its own headings are updated.
            headings: The renamed headings, new text by old.
        """
        index = self.index()

        def repair(data: bytes, source: str) -> bytes:
            def head(link: Link) -> str | None:
                return new_heading(link, headings) if index.resolve(link, source) == path else None

            return retargeted(data, index.read, lambda _: None, head)

        return {**self._link_repairs((path,), (), repair), path: repair(data, path)}

    def removed(self, path: str) -> Edits:
        """Return the edits that delete an entry and turn every link to it into text."""
        repair = partial(self.unlinked, path)
        return {**self._link_repairs((path,), (), repair), path: None}

    def unlinked(self, path: str, data: bytes, source: str) -> bytes:
        """Return the file `source` with every link to an entry turned into text."""
        index, gone = self.index(), self.entry(path)
        title = clean_line(gone.title) if gone is not None else page_name(slug_of(path))
        if gone is not None and gone.private:
            title = ""  # it must not get into notes that others may see
        return unlinked(data, title, index.read, lambda link: index.resolve(link, source) == path)

    def merged(self, path: str, target: str, text: bytes) -> Edits:
        """Return the edits that merge two entries into `text` in the file `target`."""
        old, before_merge, grown = self.entry(path), self.entry(target), parse_entry(target, text)
        before = self.index()
        after = before.changed(old, None).changed(before_merge, grown)

        def decide(link: Link, source: str) -> str | None:
            found = before.find(link, source)
            if found is None or found.path != path or after.resolve(link, source) == target:
                return None
            return new_target(link, found.by, source, grown, after)

        edits = self._link_repairs(
            (path, target),
            (),
            lambda data, source: retargeted(data, before.read, lambda link: decide(link, source)),
        )
        return {**edits, path: None, target: text}

    def linked(self, path: str, written: str, target: str) -> bytes | None:
        """Point a file's broken links `written` to an entry; None if it has no such link.

        Raises:
            UnreadableError: the file can't be changed in place.
        """
        index, entry, data = self.index(), self.parsed(target), self.data(path)

        def decide(link: Link) -> str | None:
            if link.target != written or index.find(link, path) is not None:
                return None
            how = "path" if "/" in link.target else "name"
            return new_target(link, how, path, entry, index)

        fixed = data if data is None else retargeted(data, index.read, decide)
        if fixed == data:
            return None
        self.repaired.add(path)
        return fixed

    def followed(
        self,
        path: str,
        written: bytes | None,
        moved: Mapping[str, str],
        former: Iterable[Entry],
    ) -> bytes:
        """Return a file with links to the old names of entries pointed to the entries of today.

        Args:
            path: The file.
            written: What it was before the edits; the links in it are left alone.
            moved: The present path of each renamed entry, by its old one.
            former: Those entries as they were.

        Raises:
            UnreadableError: the file can't be changed in place.
        """
        after = before = self.index()
        for old in former:
            before = before.changed(self.entry(old.path), old)
        known = {link.target for link in parse_entry(path, written).links} if written else set()
        source = next((old for old, new in moved.items() if new == path), path)

        def decide(link: Link) -> str | None:
            found = None if link.target in known else before.find(link, source)
            entry = self.entry(moved[found.path]) if found and found.path in moved else None
            if found is None or entry is None:
                return None
            if still_leads(after.find(link, path), found, entry.path):
                return None
            return new_target(link, found.by, path, entry, after)

        return retargeted(self.data(path) or b"", before.read, decide)

    def caught_up(self, moved: Mapping[str, str], former: Iterable[Entry]) -> Edits:
        """Return the edits that lead dead links to where entries were moved by other programs.

        Args:
            moved: The present path of each moved entry, by its old one.
            former: Those entries as they were.
        """
        after = before = self.index()
        entries = [(old, self.entry(moved[old.path])) for old in former]
        moves = [(old, new) for old, new in entries if new is not None]
        for old, new in moves:
            before = before.changed(new, old)
        was = {new.path: old.path for old, new in moves}
        now = {old.path: new for old, new in moves}
        folders = {_folder(old.path): _folder(new.path) for old, new in moves}

        def target_of(link: Link, source: str) -> str | None:
            if after.find(link, source) is not None:
                return None
            found = before.find(link, was.get(source, source))
            if found is None:
                places = was.get(source, source), source
                return relative_target_of_file(link, places, folders, self.exists)
            entry = now.get(found.path) or self.entry(found.path)
            return new_target(link, found.by, source, entry, after) if entry is not None else None

        def repair(data: bytes, source: str) -> bytes:
            return retargeted(data, before.read, lambda link: target_of(link, source))

        dead = self._entries.graph().sources_of_dead()
        edits = dict(self._repaired(dead, repair))
        links = (before, after, self.entry, self.exists)
        return edits | self._attached_edits([Move(old, new, *links) for old, new in moves])

    def _attached_edits(self, moves: Sequence[Move]) -> Edits:
        """Return the edits of files of other programs that name notes."""
        found: Edits = {}
        for path in attachments_in(self.layout):
            repointed = _FOLLOWING.get(posixpath.splitext(path)[1])
            if repointed is None or not self.exists(path):
                continue
            data = self.data(path) or b""
            new = data
            for move in moves:
                new = repointed(new, path, move)
            if new != data:
                self.repaired.add(path)
                found[path] = new
        return found

    def _lost_addresses(self, move: Move) -> Iterator[str]:
        """Yield the files with a link to the address that a moved entry had on a site.

        Each comes once for each link. Its new address is up to the site's generator.
        """
        old, new = move.old.path, move.new.path
        graph = self._entries.graph()
        for source in sorted(graph.sources_naming([slug_of(old)])):
            for link in graph.links_of(source):
                if (
                    link.kind == "markdown"
                    and resolve.is_address_of(link.target, old)
                    and not resolve.is_address_of(link.target, new)
                    and move.before.find(link, source) is None
                ):
                    yield source

    def _link_repairs(
        self, moving: tuple[str, ...], names: Iterable[str], repair: Callable[[bytes, str], bytes]
    ) -> Edits:
        """Return the edits of other files by `repair`; unreadable files are left alone."""
        return dict(self._iter_repairs(moving, names, repair))

    def _iter_repairs(
        self, moving: tuple[str, ...], names: Iterable[str], repair: Callable[[bytes, str], bytes]
    ) -> Iterator[tuple[str, bytes]]:
        graph = self._entries.graph()
        sources = {source for source, _link in graph.incoming(moving[0])}
        sources |= graph.sources_naming(names) | {each for each in self.edits if is_indexed(each)}
        return self._repaired(sources.difference(moving), repair)

    def _repaired(
        self, sources: Iterable[str], repair: Callable[[bytes, str], bytes]
    ) -> Iterator[tuple[str, bytes]]:
        for source in sorted(sources):
            data = self.data(source) if self.exists(source) else None
            if data is None:
                continue
            try:
                repaired = repair(data, source)
            except UnreadableError:
                self.unmended.append(source)
                continue
            head = frontmatter.split(data).head
            if self.problem(source, data) and (b"[[" in head or b"](" in head):
                self.unmended.append(source)
            if repaired != data:
                self.repaired.add(source)
                yield source, repaired

    def problem(self, path: str, data: bytes) -> str | None:
        """Return why a machine must not edit a file; cached if it is unchanged."""
        known = self._entries.get(path)
        if known is not None and known.blob == files.blob_of(data):
            return known.problem
        return parse_entry(path, data).problem


_FOLLOWING = {canvas.SUFFIX: canvas.repointed, bases.SUFFIX: bases.repointed}
"""What follows a rename in files that aren't notes, by their suffix."""


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_retitled(before: bytes, after: bytes, title: str) -> bool:
    """Return whether the title was a top-level heading and isn't any more."""
    if before == after:
        return False
    found = heading_named(headings_of(files.text_of(before)), title)
    now = heading_named(headings_of(files.text_of(after)), title)
    return found is not None and found.level == 1 and (now is None or now.level > 1)


def with_aliases(
    data: bytes, names: Iterable[str], entry: Entry | EntryInfo, *, as_page: bool = False
) -> bytes:
    """Add names that an entry doesn't have yet to its aliases.

    They go into the frontmatter or, without one, `as_page` into its Logseq properties.
    """
    known = {fold(name) for name in (entry.title, entry.slug, *entry.aliases)}
    fresh = list({fold(name): name for name in names if fold(name) not in known}.values())
    values = frontmatter.parse(data).values
    if not fresh:
        return data
    parts = frontmatter.split(data)
    body = parts.body.decode("utf-8", "surrogateescape")
    if not values and (as_page or has_page_properties(body)):
        page = with_page_alias(body, fresh).encode("utf-8", "surrogateescape")
        return data[: len(data) - len(parts.body)] + page
    key = "alias" if "alias" in values and "aliases" not in values else "aliases"
    written = values.get(key)
    kept = written if isinstance(written, list) else list(entry.aliases)
    return frontmatter.set_keys(data, {key: [*kept, *fresh]})


def plain_text(data: bytes, path: str) -> str:
    """Return the text of a file with plain line feeds; raises as `Overlay.text`."""
    decoded = files.decode(data)
    if not decoded.exact or not decoded.encoding.startswith("utf-8"):
        raise UnreadableError(
            f"{short_name(path)} isn't UTF-8 text, so a machine leaves it as it is."
        )
    return decoded.text.replace("\r\n", "\n") if _is_crlf(decoded.text) else decoded.text


def shown_text(data: bytes | None) -> str:
    """Return the text of a file for comparison and display; never raises."""
    if data is None:
        return ""
    text = files.text_of(data)
    return text.replace("\r\n", "\n") if _is_crlf(text) else text


def _is_crlf(text: str) -> bool:
    """Return whether every line ends with CRLF; mixed endings don't count."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")
