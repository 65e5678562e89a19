"""The library: finding, reading, creating, writing, renaming, deleting and linking entries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, Unpack

from kbtui.clock import local_now
from kbtui.errors import KbtuiError, NotFoundError, UnreadableError, UnsafePathError, UsageError
from kbtui.history.change import Actor, Changed, Commit, Origin, Sink
from kbtui.history.history import History
from kbtui.knowledge.catalog.catalog import Catalog, PromptIndex
from kbtui.knowledge.catalog.entry_index import EntryIndex
from kbtui.knowledge.entries.entry import (
    DATED,
    Entry,
    EntryInfo as EntryInfo,
    category_of,
    is_entry,
    parse_entry,
)
from kbtui.knowledge.entries.habits import Content as Content, filled
from kbtui.knowledge.entries.heads import split_head as split_head, with_head
from kbtui.knowledge.entries.templates import ENTRY_TYPES, TYPE_OF_FOLDER
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.links import Link
from kbtui.knowledge.library.dates import DateKeeper
from kbtui.knowledge.library.overlay import Edits, Overlay
from kbtui.knowledge.library.public import (
    DiscreetOverlay,
    DiscreetReader,
    OwnModelsReader,
    PublicEntries,
    PublicOverlay,
)
from kbtui.knowledge.library.reader import (
    Backlink as Backlink,
    PastLibrary as PastLibrary,
    Reader as Reader,
    ResolvedLink as ResolvedLink,
)
from kbtui.knowledge.library.restored import RestoredLinks
from kbtui.knowledge.linking.mentions import with_links
from kbtui.text import clean_line, fold, slugify
from kbtui.workspace import files
from kbtui.workspace.files import checked_path
from kbtui.workspace.layout import Workspace, short_name
from kbtui.workspace.scan import Scanner

NOTE_ENDS = (".org", ".norg", ".wiki", ".adoc", ".asciidoc", ".textile")
"""Ends of the notes of other programs."""
TEXT_ENDS = (".txt", ".markdown", ".rst", ".typ", *NOTE_ENDS)


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """The outcome of a write: its path and commit; `commit` is None if a sink took it.

    `unmended` are the files with links that a rename couldn't update, and `addresses` those with a
    link to the entry's former address on a site, once for each.
    """

    path: str
    commit: Commit | None
    unmended: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The path as shown to people: ``people/alice``."""
        return short_name(self.path)


class Library(Reader):
    """All entries of one workspace; thread-safe.

    `public` reads without private entries, as if there were none; `discreet` does too but reports
    that an entry is private; `for_own_models` reads for models on this machine. The library adds
    its companions to the history. `private_paths` are entries that only local models may read, in
    ``.gitignore`` syntax.
    """

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        scanner: Scanner,
        *,
        private_paths: Sequence[str] = (),
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._now = now or local_now
        self._scanner = scanner
        self._entries: EntryIndex = EntryIndex(workspace, scanner, private_paths)
        super().__init__(self._entries)
        self._prompt_index = PromptIndex()
        self._creating = threading.Lock()
        self.catalog = Catalog(workspace, history, self._entries)
        self.public = Reader(PublicEntries(self._entries, self.catalog))
        self.discreet = DiscreetReader(self._entries, self.catalog, self)
        self.for_own_models = OwnModelsReader(self._entries, self.catalog)
        history.add_companion(DateKeeper(workspace, self._now).companion)
        history.add_companion(RestoredLinks(history, self.overlay).companion)
        history.add_companion(self.catalog.companion)
        history.subscribe(self._on_change)

    def overlay(self) -> Overlay:
        """Return an overlay for preparing edits on the current files; it writes nothing."""
        return Overlay(self._workspace, self._entries)

    def discreet_overlay(self) -> Overlay:
        """Return an overlay with the restrictions of `discreet`."""
        return DiscreetOverlay(self._workspace, self._entries)

    def public_overlay(self) -> Overlay:
        """Return an overlay with the restrictions of `public`."""
        return PublicOverlay(self._workspace, self._entries)

    def refresh(self) -> None:
        """Scan for files that were changed by other programs."""
        self._entries.refresh()

    def listing(self) -> tuple[EntryInfo, ...]:
        """Return all entries without reading files or waiting for a scan."""
        return self._entries.listing()

    def mark(self, paths: Iterable[str]) -> None:
        """Mark files as changed; they are read on the next lookup."""
        self._entries.mark(paths)

    def is_private(self, path: str) -> bool:
        """Return whether only local models may read a file, be it an entry or not."""
        return self._entries.is_private(path)

    def is_named_private(self, path: str) -> bool:
        """Return whether the settings make a path private; the file need not exist."""
        return self._entries.is_named_private(path)

    def create(
        self,
        type: str,
        title: str,
        *,
        day: date | None = None,
        actor: Actor = Actor.YOU,
        origin: Origin = Origin(),  # noqa: B008  # frozen
        **content: Unpack[Content],
    ) -> WrittenEntry:
        """Write a new entry under a free name derived from its title.

        `type` is one of `ENTRY_TYPES` or the folder of one; `day` is its date (None: today), whose
        month starts the name of a decision.

        Raises:
            UsageError: the type is unknown, the title empty, or the path ignored by scans.
        """
        type_ = TYPE_OF_FOLDER.get(type, type)
        title = clean_line(title)
        habits = self.overlay().habits()
        if not habits.knows_type(type_):
            raise UsageError(
                f"There is no entry type {clean_line(type)!r}.",
                f"Use one of: {', '.join(ENTRY_TYPES)}.",
            )
        if not title:
            raise UsageError("An entry needs a title.", "Say in a few words what it is about.")
        day = day or self._now().date()
        template = habits.template_for(type_)
        is_bare = not content.get("sections") and content.get("body") is None
        text = habits.entry(type_, title, day, content)
        if template is not None and is_bare:
            text = filled(self.get(template).text, title, self._now())
        private = content.get("private", False)
        text = with_head(text, content.get("head", ""), title, private=private)
        with self._creating:  # two threads must not pick the same free name
            path = self.overlay().free_path(type_, title, day, content.get("folder", ""))
            if self._scanner.passes_over(path):
                raise UsageError(
                    f"{short_name(path)} would not be seen as a note.",
                    "That folder is named in .kbtuiignore, or another program's.",
                )
            with self._history.change(actor, f"new {type_}: {title}", origin) as change:
                change.write(path, text, expecting=None)
        return WrittenEntry(path, change.result)

    def daily_note(self, day: date) -> tuple[str, str] | None:
        """Return the path of the daily note and its initial text; None if the user has none."""
        found = self.overlay().habits().daily_note(day)
        if found is None:
            return None
        path, template = found
        title = path.rpartition("/")[2].removesuffix(".md")
        try:
            text = self.get(template).text if template else ""
        except KbtuiError:
            text = ""
        return path, filled(text, title, datetime.combine(day, self._now().time()))

    def split_folder(self, title: str) -> tuple[str, str]:
        """Split ``folder/title``; the folder is empty if none is named."""
        return self.overlay().habits().split_folder(title)

    def types(self) -> dict[str, str]:
        """Return the types an entry can have, including the user's own, and their folders."""
        habits = self.overlay().habits()
        own = {info.type for info in self._entries.infos() if info.type} if self.in_place else set()
        kinds = dict.fromkeys([*ENTRY_TYPES, *sorted(own)])
        return {kind: habits.folder_for(kind) for kind in kinds}

    def kinds(self) -> dict[str, str]:
        """Return the user's templates and `types`, by which entries are made, with folders."""
        habits, types = self.overlay().habits(), self.types()
        known = {kind.casefold() for kind in types}
        own = [name for name in habits.templates() if name.casefold() not in known]
        return {**{name: habits.folder_for(name) for name in own}, **types}

    @property
    def in_place(self) -> bool:
        """Whether this is a user's own folder, whose naming and filing conventions apply."""
        return self._workspace.in_place

    @property
    def keeps_line_breaks(self) -> bool:
        """Whether single line breaks in a note are shown, as the user's program does."""
        return self.overlay().habits().keeps_line_breaks

    def same_name(self, type: str, title: str) -> list[EntryInfo]:
        """Return the existing entries with this name, those of the type first.

        Call this before `create`, which would pick another free name: a link by name can lead to
        one of them only.
        """
        kind = TYPE_OF_FOLDER.get(type, type)
        wanted, slug = fold(clean_line(title)), slugify(title)
        found = []
        for info in self._entries.infos():
            names = {fold(name) for name in (info.title, *info.aliases)}
            if wanted in names or slugify(_undated(info.slug)) == _undated(slug):
                found.append(info)
        found.sort(key=lambda info: info.category.partition("/")[0] != ENTRY_TYPES.get(kind))
        return found

    def notes_naming(self, path: str, headings: Collection[str]) -> list[str]:
        """Return the notes that link to one of these headings of an entry."""
        names = {text: f"{text} {text}" for text in headings}  # any different text
        data = self._entries.read(path)
        edits = self.overlay().reheaded(path, data, names)
        return [each for each, edited in edits.items() if each != path or edited != data]

    def write(
        self,
        path: str,
        text: str,
        *,
        expecting: str | None,
        actor: Actor,
        reason: str,
        headings: Mapping[str, str] = MappingProxyType({}),
    ) -> Commit | None:
        """Write a file's whole text, keeping its byte-order mark and CRLF line endings.

        Args:
            path: The file.
            text: The new text.
            expecting: The blob id of the version the writer read; None: the file must be new.
            actor: Who writes.
            reason: The reason of the change.
            headings: Renamed headings, new text by old, to update links to.

        Raises:
            ConflictError: somebody else changed it meanwhile; both versions are kept.
            UnreadableError: the existing file isn't UTF-8 and would lose characters.
        """
        path = checked_path(path)
        with self._history.change(actor, reason) as change:
            old = change.read(path)
            data = text.encode("utf-8", "replace") if old is None else _encoded_as(old, text, path)
            if headings:
                overlay = self.overlay()
                edits = overlay.reheaded(path, data, headings)
                data = edits.pop(path) or data
                overlay.stage(change, edits)
            change.write(path, data, expecting=expecting)
        return change.result

    def rename(self, ref: str, new: str, *, sink: Sink | None = None) -> WrittenEntry:
        """Rename an entry to a title, a slug or category/slug, and update every link to it.

        The old name becomes an alias. All of it is one change, which a `sink` may take.

        Raises:
            NotFoundError: there is no such entry.
            UsageError: the new name is taken.
        """
        info = self._entry_info(ref)
        overlay = self.overlay()
        name = overlay.new_name(info, new)
        edits = overlay.renamed(info.path, name)
        reason = f"rename {info.name} to {short_name(name.path)}"
        with self._history.change(Actor.YOU, reason, sink=sink) as change:
            overlay.stage(change, edits)
        unmended, addresses = tuple(overlay.unmended), tuple(overlay.addresses)
        return WrittenEntry(name.path, change.result, unmended, addresses)

    def delete(self, ref: str, *, sink: Sink | None = None) -> Commit | None:
        """Delete an entry and remove the links to it; return None if a `sink` takes the change.

        Raises:
            NotFoundError: there is no such entry.
        """
        info = self._entry_info(ref)
        overlay = self.overlay()
        edits = overlay.removed(info.path)
        reason = f"delete {info.name}"
        with self._history.change(Actor.YOU, reason, sink=sink) as change:
            overlay.stage(change, edits)
        if change.result is None and sink is None:
            raise NotFoundError(f"{info.name} is gone already.")
        return change.result

    def moved_outside(self) -> Edits:
        """Return the edits that lead dead links to where other programs moved or renamed entries.

        They are empty if there are no dead links, or none that a move explains.
        """
        overlay = self.overlay()
        if not self._entries.graph().sources_of_dead():
            return {}
        moved: dict[str, str] = {}
        former: dict[str, Entry] = {}
        for commit in self._history.log():  # newest first
            for each in commit.paths:
                if each.kind != "renamed" or not each.old_path or each.old_path in moved:
                    continue
                now = moved.get(each.path, each.path)
                if commit.parent and is_entry(each.old_path) and overlay.exists(now):
                    moved[each.old_path] = now
                    data = self._history.read(each.old_path, commit.parent)
                    former[each.old_path] = parse_entry(each.old_path, data)
        old = [entry for path, entry in former.items() if not overlay.exists(path)]
        return overlay.caught_up(moved, old) if old else {}

    def catch_up(self) -> Commit | None:
        """Perform the edits of `moved_outside` as one change; None if there are none."""
        with self._history.change(Actor.YOU, "lead links to where notes were moved") as change:
            self.overlay().stage(change, self.moved_outside())
        return change.result

    def link_mentions(
        self, ref: str, paths: Iterable[str], *, sink: Sink | None = None
    ) -> Commit | None:
        """Turn mentions of an entry in some files into links, in one change.

        Returns:
            The commit; None if there was nothing to link, or a `sink` takes the change.

        Raises:
            NotFoundError: there is no such entry.
            UnreadableError: a file isn't UTF-8 and would lose characters.
        """
        info = self._entry_info(ref)
        names, target = self.mention_names(info), self._link_target(info)
        label_first = self.dendron is not None
        reason = f"link the mentions of {info.name}"
        with self._history.change(Actor.YOU, reason, sink=sink) as change:
            for path in paths:
                old = change.read(checked_path(path))
                text = files.text_of(old)
                new = with_links(text, names, target, label_first=label_first)
                if old is not None and new != text:
                    change.put(path, _encoded_as(old, new, path), over=old)
        return change.result

    def relate(self, ref: str, to: str) -> Commit | None:
        """Add an entry to those related to another; return None if it is one already.

        Raises:
            NotFoundError: there is no such entry.
            UnreadableError: the file isn't UTF-8 and would lose characters.
        """
        info, other = self._entry_info(ref), self._entry_info(to)
        entry = self.get(info.path)
        if not {other.slug, short_name(other.path)}.isdisjoint(entry.related):
            return None
        name = self.overlay().habits().reference(short_name(other.path))
        with self._history.change(Actor.YOU, f"link {info.name} to {other.name}") as change:
            old = change.read(info.path)
            keys = frontmatter.with_more(entry.frontmatter, "related", [name])
            if old is not None and keys:
                new = frontmatter.set_keys(files.text_of(old), keys)
                change.put(info.path, _encoded_as(old, new, info.path), over=old)
        return change.result

    def _link_target(self, info: EntryInfo) -> str:
        """Return the target of a wikilink to an entry: its slug if unique, else its path."""
        slug = fold(info.slug)
        twins = sum(fold(each.slug) == slug for each in self._entries.infos())
        return info.slug if twins == 1 else short_name(info.path)

    def prompt_index(
        self,
        query: str,
        budget_tokens: int,
        count: Callable[[str], int],
        shown: Reader | None = None,
        unseen: int = 0,
    ) -> str:
        """Return the catalogue for a prompt, ranked for the `query`, of at most `budget_tokens`.

        It lists all entries, or those of `shown`; `unseen` is the number of others to mention.
        """
        infos = self._entries.infos() if shown is None else shown.infos()
        degree = self._entries.graph().degree
        return self._prompt_index.write(infos, query, budget_tokens, count, degree, unseen)

    def same_links(
        self, blobs: Mapping[str, str], names: Iterable[str]
    ) -> tuple[dict[str, tuple[Link, ...]], list[str]]:
        """See `LibraryOfToday.same_links`."""
        return self._entries.same_links(blobs, names)

    def left_out(self) -> dict[str, str]:
        """Return the files that scans skipped, and why."""
        return self._scanner.left_out()

    def texts(self) -> dict[str, str]:
        """Return the text files in a user's own folder that aren't notes, and what they are.

        Only those in folders with notes, and the notes of other programs: elsewhere they more
        likely belong to some project.
        """
        if not self.in_place:
            return {}
        folders = {info.category for info in self._entries.infos()}
        return {
            path: "no note: those end in .md"
            for path in self._entries.attached()
            if path.lower().endswith(TEXT_ENDS)
            and (category_of(path) in folders or path.lower().endswith(NOTE_ENDS))
        }

    def conflict_copies(self) -> list[str]:
        """Return the files with the other version of one that two programs wrote at once."""
        return self._scanner.conflict_copies()

    def reindex(self) -> None:
        """Discard derived data and read every file again."""
        self._entries.clear()
        self._entries.refresh()

    def flush(self) -> Commit | None:
        """Write an INDEX.md that is due."""
        return self.catalog.flush()

    def close(self) -> None:
        """Write what is due unless another process is writing; then the next start does."""
        self.catalog.close()

    def _on_change(self, changed: Changed) -> None:
        self._entries.mark({*changed.all_paths}, changed.written)

    def _entry_info(self, ref: str) -> EntryInfo:
        path = self.find_path(ref)
        info = self._entries.get(path)
        if info is None or not info.is_entry:
            raise UnsafePathError(
                f"{path} is not an entry.", "Only entries are renamed or deleted."
            )
        return info


def _undated(slug: str) -> str:
    dated = DATED.match(slug)
    return slug[dated.end() :] if dated else slug


def _encoded_as(old: bytes, text: str, path: str) -> bytes:
    """Encode a text with the byte-order mark and line endings of the bytes it replaces."""
    decoded = files.decode(old)
    if not decoded.exact or decoded.encoding == "utf-16":
        raise UnreadableError(
            f"{path} isn't UTF-8, so writing it here would lose characters.",
            "Convert it with another program first, e.g. `iconv -t UTF-8`.",
        )
    if "\r\n" in decoded.text and "\n" not in decoded.text.replace("\r\n", ""):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    data = text.encode("utf-8", "replace")
    return b"\xef\xbb\xbf" + data if decoded.encoding == "utf-8-sig" else data


def retag(library: Library, path: str, words: Iterable[str]) -> tuple[str, ...]:
    """Add tags to an entry, remove those with a leading ``-``, and return all it has now.

    The returned tags include those in its text.

    Raises:
        UsageError: there is no tag among the words, or one to be removed is in the text.
        UnreadableError: its frontmatter can't be parsed, so it isn't rewritten.
        ConflictError: somebody else changed it meanwhile.
    """
    entry = library.get(path)
    if entry.problem:
        raise UnreadableError(f"{path} can't be tagged: {entry.problem}", "Correct it first.")
    added, removed = _parsed_tags(words)
    # Tags in the text count as present, but can't be removed here.
    key, items = frontmatter.items(entry.frontmatter, "tags")
    written = {tag.casefold() for tag in frontmatter.tags(entry.frontmatter)}
    every = {tag.casefold() for tag in entry.tags}
    if in_text := sorted(removed & every - written):
        raise UsageError(
            f"#{in_text[0]} stands in the text of {short_name(path)}, not among its tags.",
            "Take it out of the text.",
        )
    kept = [item for item in items if removed.isdisjoint(_folded_tags(item))]
    fresh = [name for name in added if name.casefold() not in every]
    if fresh or kept != items:
        tags = [*kept, *fresh]
        text = frontmatter.set_keys(
            entry.text, {key: frontmatter.with_items(entry.frontmatter, key, tags)}
        )
        reason = f"tags: {', '.join(frontmatter.words(tags)) or 'none'}"
        library.write(path, text, expecting=entry.blob, actor=Actor.YOU, reason=reason)
    return library.get(path).tags


def _parsed_tags(words: Iterable[str]) -> tuple[list[str], set[str]]:
    added, removed = dict[str, str](), dict[str, str]()
    for word in map(clean_line, words):
        if name := word.lstrip("-").lstrip("#").strip(","):
            (removed if word.startswith("-") else added)[name.casefold()] = name
    if not added and not removed:
        raise UsageError("There is no tag to add.", "Say it: /tag work -draft")
    return list(added.values()), set(removed)


def _folded_tags(item: Any) -> set[str]:
    return {tag.casefold() for tag in frontmatter.tags({"tags": [item]})}
