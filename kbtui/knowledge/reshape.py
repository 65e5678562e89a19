"""Renames and deletes entries, in one change with the repair of every link to them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, UnreadableError, UsageError
from kbtui.knowledge import frontmatter
from kbtui.knowledge.entry import category_of, parse_entry, slug_of
from kbtui.knowledge.repair import Move, retargeted, unlinked
from kbtui.text import MAX_SLUG, clean_line, fold, slugify
from kbtui.workspace import files
from kbtui.workspace.files import blob_id, checked_path
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kbtui.history.change import Change, Sink
    from kbtui.history.history import History
    from kbtui.history.objects.commit import Actor, Commit, Origin
    from kbtui.knowledge.info import EntryInfo
    from kbtui.knowledge.shelf import Shelf
    from kbtui.workspace.layout import Workspace

_DATED = re.compile(r"\d{4}-\d{2}(?:-\d{2})?-")
_SLUG = re.compile(r"[^\W_A-Z]+(?:[-._][^\W_A-Z]+)*")


@dataclass(frozen=True, slots=True)
class NewName:
    """What an entry shall be called: its path, and its title if that changes too."""

    path: str
    title: str | None


def new_name(info: EntryInfo, wanted: str) -> NewName:
    """Understand what a person wants an entry renamed to: a title, a slug or category/slug.

    Raises:
        UsageError: nothing was named.
        UnsafePathError: the name leads out of the workspace.
    """
    # What a terminal passes on of another encoding can't be written.
    wanted = clean_line(wanted.encode("utf-8", "replace").decode()).removeprefix("knowledge/")
    category, slash, name = wanted.rpartition("/")
    if not name or (slash and " " in category):
        category, slash, name = info.category, "", wanted
    if not name:
        raise UsageError("The new name is empty.", "Give a title, or a name like people/<name>.")
    if not slash:
        category = info.category
    title = None
    slug = name.removesuffix(".md")
    if not _SLUG.fullmatch(slug):
        title, slug = slug, slugify(slug)
        dated = _DATED.match(info.slug)
        if dated and not _DATED.match(slug):
            slug = dated.group() + slugify(slug, MAX_SLUG - len(dated.group()))
    folder = f"knowledge/{category}" if category else "knowledge"
    return NewName(checked_path(f"{folder}/{slug}.md"), title if title != info.title else None)


class Reshaper:
    """Moves and removes entries of one workspace."""

    def __init__(self, workspace: Workspace, history: History, shelf: Shelf) -> None:
        self._root = workspace.root
        self._history = history
        self._shelf = shelf

    def rename(
        self,
        info: EntryInfo,
        name: NewName,
        actor: Actor,
        origin: Origin,
        sink: Sink | None = None,
    ) -> Commit | None:
        """Rename one entry; its old name becomes an alias. See `History.change` for `sink`.

        Raises:
            UsageError: there is something under the new name already.
        """
        self._check_free(info, name.path)
        data = files.read_bytes(self._root, info.path)
        titled = _titled(data, info, name)
        renamed = parse_entry(name.path, titled)
        new = replace(
            info,
            path=name.path,
            title=renamed.title,
            slug=slug_of(name.path),
            category=category_of(name.path),
        )
        before = self._shelf.index()
        move = Move(
            info,
            new,
            before,
            before.changed(info, new),
            self._shelf.get,
            lambda path: _is_file(self._root, path),
        )
        reason = f"rename {info.name} to {new.name}"
        repaired = self._repaired(info, move)
        own = data
        if info.problem is None:
            own = retargeted(titled, lambda link: move.target_of(link, info.path))
            own = _with_alias(own, info, new)
        with self._history.change(actor, reason, origin, sink) as change:
            self._move(change, info.path, name.path, data, own)
            self._write(change, repaired)
        return change.result

    def delete(self, info: EntryInfo, actor: Actor, origin: Origin) -> Commit | None:
        """Delete one entry; links to it become their text, and `related` lists lose it."""
        index = self._shelf.index()
        incoming = {source for source, _link in self._shelf.graph().incoming(info.path)}

        def repair(source: str, data: bytes) -> bytes:
            return unlinked(data, lambda link: index.resolve(link, source) == info.path)

        repaired = self._repair_each(incoming, repair)
        with self._history.change(actor, f"delete {info.name}", origin) as change:
            change.delete(info.path, expecting=info.blob)
            self._write(change, repaired)
        return change.result

    def _repaired(self, info: EntryInfo, move: Move) -> dict[str, tuple[str, bytes]]:
        """The other files whose links change their wording, with what they hold now and then."""
        graph = self._shelf.graph()
        names = {name for info in (move.old, move.new) for name in info.names}
        touched = {source for source, _link in graph.incoming(info.path)}
        touched |= graph.sources_naming(names)
        touched.discard(info.path)

        def repair(source: str, data: bytes) -> bytes:
            return retargeted(data, lambda link: move.target_of(link, source))

        return self._repair_each(touched, repair)

    def _repair_each(
        self, sources: set[str], repair: Callable[[str, bytes], bytes]
    ) -> dict[str, tuple[str, bytes]]:
        repaired: dict[str, tuple[str, bytes]] = {}
        for source in sorted(sources):
            known = self._shelf.get(source)
            if known is None or known.problem:
                continue
            data = files.read_bytes(self._root, source)
            try:
                new = repair(source, data)
            except UnreadableError:
                continue
            if new != data:
                repaired[source] = (blob_id(data), new)
        return repaired

    @staticmethod
    def _move(change: Change, old: str, new: str, before: bytes, after: bytes) -> None:
        """Put the new content under the new path, if the old one still is what was read."""
        if old == new:
            change.write(new, after, expecting=blob_id(before))
            return
        change.delete(old, expecting=blob_id(before))
        if old.casefold() == new.casefold():  # on some disks the same file
            change.write(new, after)
        else:
            change.write(new, after, expecting=None)

    @staticmethod
    def _write(change: Change, repaired: dict[str, tuple[str, bytes]]) -> None:
        change.repairs.update(repaired)
        for path, (blob, data) in repaired.items():
            change.write(path, data, expecting=blob)

    def _check_free(self, info: EntryInfo, path: str) -> None:
        if path.casefold() == info.path.casefold():
            return
        other = self._shelf.index().at_path(path)
        if other is not None or files.exists(self._root, path):
            raise UsageError(
                f"There is an entry {short_name(other or path)} already.",
                "Choose another name, or delete that one first.",
            )


def _is_file(root: Path, path: str) -> bool:
    try:
        return files.exists(root, path)
    except KbtuiError:
        return False


def _titled(data: bytes, info: EntryInfo, name: NewName) -> bytes:
    """Change the title where it is written: in the frontmatter, in the first heading."""
    if name.title is None or info.problem:
        return data
    if "title" in frontmatter.parse(data).values:
        data = frontmatter.set_keys(data, {"title": name.title})
    parts = frontmatter.split(data)
    body = parts.body.decode()
    pattern = re.compile(
        rf"^( {{0,3}}#[ \t]+){re.escape(info.title)}(?=[ \t]*#*[ \t]*\r?$)", re.MULTILINE
    )
    title = name.title
    body = pattern.sub(lambda found: found[1] + title, body, count=1)
    return parts.join()[: len(data) - len(parts.body)] + body.encode()


def _with_alias(data: bytes, old: EntryInfo, new: EntryInfo) -> bytes:
    """Add the former name to the aliases of an entry that has frontmatter."""
    former = old.title if old.title != new.title else old.slug
    matter = frontmatter.parse(data)
    known = {fold(word) for word in (*old.aliases, new.title, new.slug)}
    if not matter.values or old.problem or fold(former) in known:
        return data
    key = "alias" if "alias" in matter.values and "aliases" not in matter.values else "aliases"
    written = matter.values.get(key)
    kept = written if isinstance(written, list) else list(old.aliases)
    return frontmatter.set_keys(data, {key: [*kept, former]})
