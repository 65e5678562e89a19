"""The library: entries found by name, read, created, written, renamed, deleted, and linked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, Unpack

from kbtui.errors import KbtuiError, NotFoundError, UnreadableError, UnsafePathError, UsageError
from kbtui.history.change import Actor, Changed, Commit, Origin, Sink
from kbtui.history.history import History
from kbtui.knowledge.catalog.catalog import Catalog, PromptIndex
from kbtui.knowledge.catalog.entry_index import EntryIndex
from kbtui.knowledge.entries.entry import DATED, EntryInfo as EntryInfo, category_of
from kbtui.knowledge.entries.habits import Content as Content, filled
from kbtui.knowledge.entries.templates import ENTRY_TYPES, TYPE_OF_FOLDER
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.links import Link
from kbtui.knowledge.library.dates import DateKeeper
from kbtui.knowledge.library.overlay import Overlay
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
from kbtui.knowledge.linking.mentions import with_links
from kbtui.text import clean_line, fold, slugify
from kbtui.workspace import files
from kbtui.workspace.files import checked_path
from kbtui.workspace.layout import Workspace, short_name
from kbtui.workspace.scan import Scanner

TEXT_ENDS = (".txt", ".markdown", ".org")


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """The outcome of a write: where it stands, and the commit; None where a sink took it."""

    path: str
    commit: Commit | None

    @property
    def name(self) -> str:
        """The path as people name it: ``people/alice``."""
        return short_name(self.path)


class Library(Reader):
    """All entries of one workspace; one object serves all threads.

    `public` is the same without what is private, for whoever may not see that; to whom `discreet`
    reads, it may be said that something is private. A model on this machine is read to by
    `for_own_models`. The library adds its companions to the history. `private_paths` are entries
    that only local models may read, in ``.gitignore`` syntax.
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
        self._now = now or (lambda: datetime.now().astimezone())
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
        history.add_companion(self.catalog.companion)
        history.subscribe(self._catch_up)

    def overlay(self) -> Overlay:
        """The files as they are, for working out edits on top of them; nothing is written."""
        return Overlay(self._workspace, self._entries)

    def discreet_overlay(self) -> Overlay:
        """Like `overlay`, for whoever `discreet` is for."""
        return DiscreetOverlay(self._workspace, self._entries)

    def public_overlay(self) -> Overlay:
        """Like `overlay`, for whoever `public` is for."""
        return PublicOverlay(self._workspace, self._entries)

    def refresh(self) -> None:
        """Look for files that changed without passing through here."""
        self._entries.refresh()

    def listing(self) -> tuple[EntryInfo, ...]:
        """All entries, without reading any or waiting for who does."""
        return self._entries.listing()

    def mark(self, paths: Iterable[str]) -> None:
        """Say that these files changed; they are read when somebody asks next."""
        self._entries.mark(paths)

    def is_private(self, path: str) -> bool:
        """True if only local models may read a file of the workspace, whichever it is."""
        return self._entries.is_private(path)

    def is_named_private(self, path: str) -> bool:
        """True if the settings name a path as private, whether there is such a file or not."""
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
        """Write a new entry under a name that is free, which is made of its title.

        `type` is one of `ENTRY_TYPES`, or the folder of one; `day` is when it is from, today if
        None: a decision's name begins with its month.

        Raises:
            UsageError: an unknown type, or no title.
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
        with self._creating:  # two threads must not find the same name free
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
        """The path of the owner's note of a day and how its text begins; None: there are none."""
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

    def apart(self, title: str) -> tuple[str, str]:
        """Folder and title of a note that somebody calls ``folder/title``, if there is a folder."""
        return self.overlay().habits().apart(title)

    def types(self) -> dict[str, str]:
        """The types that an entry can have, those of the owner's too, with the folder of each."""
        habits = self.overlay().habits()
        own = {info.type for info in self._entries.infos() if info.type} if self.in_place else set()
        kinds = dict.fromkeys([*ENTRY_TYPES, *sorted(own)])
        return {kind: habits.folder_for(kind) for kind in kinds}

    def kinds(self) -> dict[str, str]:
        """What a new entry can be made as: the owner's templates, and `types`, with the folders."""
        habits, types = self.overlay().habits(), self.types()
        known = {kind.casefold() for kind in types}
        own = [name for name in habits.templates() if name.casefold() not in known]
        return {**{name: habits.folder_for(name) for name in own}, **types}

    @property
    def in_place(self) -> bool:
        """True for somebody's own folder, where notes are named and filed as its owner does."""
        return self._workspace.in_place

    def same_name(self, type: str, title: str) -> list[EntryInfo]:
        """The entries of a type that are called like this already; in place, of whatever type.

        Whoever makes an entry asks this first, because `create` finds another free name.
        """
        kind = TYPE_OF_FOLDER.get(type, type)
        wanted, slug = fold(clean_line(title)), slugify(title)
        found = []
        for info in self._entries.infos():
            folder = info.category.partition("/")[0]
            if not self.in_place and folder != ENTRY_TYPES.get(kind):
                continue
            names = {fold(name) for name in (info.title, *info.aliases)}
            if wanted in names or slugify(_undated(info.slug)) == _undated(slug):
                found.append(info)
        return found

    def notes_naming(self, path: str, headings: Collection[str]) -> list[str]:
        """The notes with links to headings of an entry that have one of these texts."""
        names = {text: f"{text} {text}" for text in headings}  # any other text
        data = self._entries.read(path)
        edits = self.overlay().reheaded(path, data, names)
        return [each for each, made in edits.items() if each != path or made != data]

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
        """Write a file's whole text; a byte-order mark and CRLF line ends that it had stay.

        Args:
            path: The file.
            text: What it is to hold.
            expecting: The blob id of what the writer read; None: the file must be new.
            actor: Who writes.
            reason: Why.
            headings: The new text, by the old one, of headings that links are to follow to.

        Raises:
            ConflictError: somebody else changed it meanwhile; both versions are kept.
            UnreadableError: what is there isn't UTF-8 and would lose characters.
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
        """Rename an entry to a title, a slug or category/slug, and repair every link to it.

        The old name becomes an alias. One change holds everything; a `sink` may take it.

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
        return WrittenEntry(name.path, change.result)

    def delete(self, ref: str, *, sink: Sink | None = None) -> Commit | None:
        """Delete an entry, and clean the links to it; None where a `sink` takes the change.

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

    def link_mentions(
        self, ref: str, paths: Iterable[str], *, sink: Sink | None = None
    ) -> Commit | None:
        """Make links of the places where some files say the names of an entry, in one change.

        Returns:
            The commit; None where there was nothing to link, or a `sink` takes the change.

        Raises:
            NotFoundError: there is no such entry.
            UnreadableError: a file isn't UTF-8 and would lose characters.
        """
        info = self._entry_info(ref)
        names, target = self.names_said(info), self._link_name(info)
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

    def _link_name(self, info: EntryInfo) -> str:
        """What a wikilink calls an entry: its slug, or its path where several have that slug."""
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
        """The catalogue for a prompt, ranked for the `query`, at most `budget_tokens` long.

        It is of all entries, or of those that `shown` has; `unseen` is how many it says there are
        besides.
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
        """The files that scans passed over, and why."""
        return self._scanner.left_out()

    def texts(self) -> dict[str, str]:
        """The texts in somebody's own folder that are no notes by their names, and what they are.

        Only those beside notes: in other folders they are rather a part of some project.
        """
        if not self.in_place:
            return {}
        folders = {info.category for info in self._entries.infos()}
        return {
            path: "no note: those end in .md"
            for path in self._entries.attached()
            if path.lower().endswith(TEXT_ENDS) and category_of(path) in folders
        }

    def reindex(self) -> None:
        """Throw away what is derived and read every file again."""
        self._entries.clear()
        self._entries.refresh()

    def flush(self) -> Commit | None:
        """Write an INDEX.md that was postponed."""
        return self.catalog.flush()

    def close(self) -> None:
        """Write what was postponed, if nobody else is writing; else the next start does."""
        self.catalog.close()

    def _catch_up(self, changed: Changed) -> None:
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
    """Write a text in the form of the bytes that it takes the place of."""
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
    """Add tags to an entry, and take away those behind a ``-``; the tags that it has now.

    Those in its text are among them.

    Raises:
        UsageError: there is no tag among the words, or one to be taken away stands in the text.
        UnreadableError: its frontmatter can't be read, so it isn't rewritten.
        ConflictError: somebody else changed it meanwhile.
    """
    entry = library.get(path)
    if entry.problem:
        raise UnreadableError(f"{path} can't be tagged: {entry.problem}", "Correct it first.")
    added, removed = _asked(words)
    # What stands in the text is a tag already, and none that could be taken away here.
    key, items = frontmatter.items(entry.frontmatter, "tags")
    written = {tag.casefold() for tag in frontmatter.tags(entry.frontmatter)}
    every = {tag.casefold() for tag in entry.tags}
    if in_text := sorted(removed & every - written):
        raise UsageError(
            f"#{in_text[0]} stands in the text of {short_name(path)}, not among its tags.",
            "Take it out of the text.",
        )
    kept = [item for item in items if removed.isdisjoint(_names(item))]
    fresh = [name for name in added if name.casefold() not in every]
    if fresh or kept != items:
        tags = [*kept, *fresh]
        text = frontmatter.set_keys(
            entry.text, {key: frontmatter.with_items(entry.frontmatter, key, tags)}
        )
        reason = f"tags: {', '.join(frontmatter.words(tags)) or 'none'}"
        library.write(path, text, expecting=entry.blob, actor=Actor.YOU, reason=reason)
    return library.get(path).tags


def _asked(words: Iterable[str]) -> tuple[list[str], set[str]]:
    added, removed = dict[str, str](), dict[str, str]()
    for word in map(clean_line, words):
        if name := word.lstrip("-").lstrip("#").strip(","):
            (removed if word.startswith("-") else added)[name.casefold()] = name
    if not added and not removed:
        raise UsageError("There is no tag to add.", "Say it: /tag work -draft")
    return list(added.values()), set(removed)


def _names(item: Any) -> set[str]:
    return {tag.casefold() for tag in frontmatter.tags({"tags": [item]})}
