"""Files prepared for display: entries, plain text, conversations, days, and error messages.

Everything here reads files, so call it in threads.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Literal
from urllib.parse import unquote

from kbtui.clock import local_day
from kbtui.documents.documents import Documents, is_document, is_picture, kind_of
from kbtui.errors import ConflictError, KbtuiError, NotFoundError
from kbtui.history.change import Actor, Commit
from kbtui.knowledge.entries.entry import (
    IN_VAULT,
    Entry,
    Link,
    info_of,
    parse_entry,
    target_first,
    without_empty_sections,
)
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import headings_of
from kbtui.knowledge.format.tasks import (
    TaskLine,
    fields_of,
    moved,
    task_at,
    tasks_in,
    ticked,
)
from kbtui.knowledge.library.library import Backlink, PastLibrary, ResolvedLink
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.records.journal import day_of, without_dates
from kbtui.presentation import notes
from kbtui.presentation.notes import Named, Names, names_of
from kbtui.presentation.times import day_heading, format_day, format_written_day
from kbtui.sessions.imported import speaker
from kbtui.text import clean, clean_line, counted, shorten
from kbtui.tui.markdown.plain import as_read, named_by_path
from kbtui.tui.markdown.source import Cell, Embed, Neighbour, Property, Section, SourceText
from kbtui.tui.markdown.syntax import LinkRef
from kbtui.workspace.files import decode
from kbtui.workspace.layout import MEMORY, NAME_PREFIX, entry_path, short_name

Kind = Literal["entry", "text", "conversation", "binary", "missing", "past"]
READ_LIMIT_BYTES = 20 * 1024 * 1024
_MARKDOWN_SUFFIXES = (".md", ".markdown")
_SPECIAL_KEYS = frozenset({"type", "tags", "tag", "title", "summary", "description", "private"})
_CHANGED_KEYS = ("updated", "modified")
_KEY_LABELS = {"aliases": "also called", "alias": "also called"}
_LINKED_PATH = re.compile(r"\[\[([^\[\]|#/\n]+/[^\[\]|#\n]+)")
_PATH = re.compile(r"[a-z0-9-]+(?:/[a-z0-9-]+)+(?:\.md)?")
_MESSAGE_HEADING = re.compile(r"##### \w+ · (\d+)")
_MAX_BACKLINKS = 200
_MAX_EXCERPT_CHARACTERS = 50
_MAX_NAMES = 4
_MAX_MENTIONS = 100
_BOXES = {"true": "☑", "false": "☐"}
_MAX_PROPERTIES = 40
PICTURE_ITSELF = LinkRef("markdown", "it")
"""What a picture shown by itself embeds."""
_EMPTY_DAY = "Nothing is written here yet. What you tell kbtui comes here."
_MAX_VALUES = 20
_MAX_VALUE_CHARACTERS = 200
_MIN_OUTLINE_HEADINGS = 3
"""Headings from which a document gets an outline."""
_TIMED = re.compile(
    r"^[-*+•][ \t]+(?:\[[^\]\n]\][ \t]+)?(?P<time>\d\d:\d\d)[ \t]+(?P<text>[^\n~]+)", re.MULTILINE
)
_FLUSH = re.compile(
    r"^## Flush at (?P<time>\d\d:\d\d)[^\S\n]*(?:\(session: [^)\n]*\))?[^\S\n]*"
    r"(?P<raw>\[RAW\])?.*$",
    re.MULTILINE,
)
_POINTER = re.compile(
    r"(?<=~~) → (?P<day>\d{4}-\d\d-\d\d)?(?: ?(?P<time>\d\d:\d\d))?(?=\r?$)", re.MULTILINE
)
_LINK_SYNTAX = frozenset("[]|#^`")


@dataclass(frozen=True, slots=True)
class Document:
    """A file prepared for display.

    `text` is the whole file, and `body` the part to show, from line `first_line` on, without empty
    sections of a template. `properties` come from the frontmatter. `raw` text isn't rendered;
    `reason` explains in one line why, or why there is nothing to see. `blob` is the hash of the
    content. `editable` tells whether the text can be edited without losing a byte. The page of
    today has what is coming `above` its text, once that is known. With `breaks` single line breaks
    are shown.
    """

    path: str
    kind: Kind
    title: str
    text: str = ""
    body: str = ""
    first_line: int = 1
    raw: bool = False
    reason: str = ""
    blob: str | None = None
    entry: Entry | None = None
    editable: bool = False
    properties: tuple[Property, ...] = ()
    is_picture: bool = False
    below: tuple[Section, ...] = ()
    above: tuple[Section, ...] = ()
    is_today: bool = False
    breaks: bool = False
    names: Names = field(default_factory=Names)

    @property
    def named(self) -> Named:
        """The document's display name, with its kind if it is an entry."""
        is_entry = self.kind == "entry" and self.entry is not None
        kind = notes.kind_of(self.entry.type, self.path) if is_entry and self.entry else None
        return Named(self.path, self.title, kind)

    def source(self, links: DocumentLinks | None = None, *, whole: bool = False) -> SourceText:
        """Return the input for the renderer, with `links` once they are known.

        With `whole` nothing is hidden that Obsidian would hide.
        """
        if self.is_picture:
            embeds = {PICTURE_ITSELF: Embed(self.title)} if links is None else links.embeds
            return SourceText("![](it)", embeds=embeds)
        body = self.body if links is None else links.shown(self)
        above = 0
        if not self.raw:
            body, above = _without_title(body, self.title)
        source = SourceText(
            body or self.reason,
            self.first_line + above,
            self.raw,
            properties=self.properties,
            whole=whole or self.kind not in {"entry", "past"},
            resolve=named_by_path(self.names),
            above=self.above,
            breaks=self.breaks,
        )
        if links is None:
            return source if self.entry is not None else source._replace(below=self.below)
        below = (*self.below, *links.sections)
        return source._replace(embeds=links.embeds, resolve=links.named, below=below)


def _names_by_path(kb: KnowledgeBase, head: str, body: str) -> Names:
    """Return the names of notes that a text refers to by path."""
    targets = {*_PATH.findall(head), *_LINKED_PATH.findall(body)}
    return names_of(kb.library, set(map(entry_path, targets)))


def _without_title(body: str, title: str) -> tuple[str, int]:
    """Return a text without a first heading that repeats the title, and the lines removed."""
    rest, above = _without_heading(body, title)
    return (rest, above) if rest.strip() else (body, 0)


def _without_heading(body: str, title: str) -> tuple[str, int]:
    first, _, rest = body.lstrip().partition("\n")
    if not first.startswith("# ") or clean_line(first[2:]) != clean_line(title):
        return body, 0
    return rest, body.count("\n", 0, len(body) - len(rest))


@dataclass(frozen=True)
class DocumentLinks:
    """The links of a document, in both directions.

    `mentions` are lines that name it without a link. `embeds` are the files it embeds, `inner` the
    links inside these, and `names` the display names of all. `called` maps property values that
    name an entry without a link to its path. `outline` is a list of links to its headings, empty
    if there are few.
    """

    outgoing: tuple[ResolvedLink, ...] = ()
    backlinks: tuple[Backlink, ...] = ()
    mentions: tuple[Backlink, ...] = ()
    inner: tuple[ResolvedLink, ...] = ()
    embeds: Mapping[LinkRef, Embed] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    outline: str = ""

    @cached_property
    def _links(self) -> dict[str, ResolvedLink]:
        found: dict[str, ResolvedLink] = {}
        for resolved in (*self.outgoing, *self.inner):
            found.setdefault(_link_key(resolved.link.target), resolved)
        return found

    def shown(self, document: Document) -> str:
        """Return a document's body with the target first in each link; lines stay the same."""
        turned = {each.link for each in self.outgoing if each.link.turned_round}
        in_vaults = any(each.link.target.startswith(IN_VAULT) for each in self.outgoing)
        if document.raw or not (turned or in_vaults):
            return document.body

        def read(link: Link) -> Link:
            return other if (other := link.turned()) in turned else link

        return target_first(document.body, document.first_line, read)

    def path_of(self, link: LinkRef) -> str | None:
        """Return the path a link leads to, or None if it is broken."""
        if link.kind == "file":
            return link.target
        resolved = self._links.get(_link_key(link.target))
        return resolved.path if resolved is not None else self.called.get(link.target)

    def named(self, link: LinkRef) -> Named | None:
        """Return the name of a link's target, or None if it is broken.

        The title is empty if the target isn't a note, or is a place in the same note.
        """
        resolved = self._links.get(_link_key(link.target))
        if resolved is None and link.target in self.called:
            return self.names[self.called[link.target]]
        if resolved is None or resolved.path is None:
            return None if link.target else Named("", "")
        return self.names[resolved.path] if resolved.title else Named(resolved.path, "")

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The lists below the text: backlinks and unlinked mentions."""
        found: list[Section] = []
        for title, lines in (
            ("linked from", self.backlinks),
            ("named in, without a link · L links all", self.mentions),
        ):
            rows = [
                Neighbour(self.names[back.path], _excerpt(back.text, self.names), back.line)
                for back in lines[:_MAX_BACKLINKS]
            ]
            if len(lines) > len(rows):
                rows.append(Neighbour(None, f"… {len(lines) - len(rows):,} more: b lists all"))
            if rows:
                found.append(Section(title, tuple(rows)))
        return tuple(found)

    def ends(self, among: Sequence[LinkRef] = ()) -> list[tuple[str, str, LinkRef]]:
        """Return label, remark and link of each place to go to.

        These are the links in `among` if given, else all links and backlinks of the note.
        """
        if among:
            return [*map(self._link_choice, among)]
        out = (LinkRef("wiki", at.link.target, at.link.heading or "") for at in self.outgoing)
        back = (*self.backlinks, *self.mentions)
        return [*map(self._link_choice, dict.fromkeys(out)), *map(self._backlink_choice, back)]

    def _link_choice(self, ref: LinkRef) -> tuple[str, str, LinkRef]:
        named = self.named(ref) if ref.kind in {"wiki", "markdown"} else None
        title = (named and named.title) or unquote(ref.target) or ref.heading
        exists = named is not None or ref.kind in {"web", "file"}
        place = "" if ref.heading.startswith("^") else ref.heading
        return f"→ {title}", place if exists else "not there yet", ref

    def _backlink_choice(self, back: Backlink) -> tuple[str, str, LinkRef]:
        excerpt = shorten(_excerpt(back.text, self.names), _MAX_EXCERPT_CHARACTERS)
        ref = LinkRef("file", back.path, str(back.line))
        return f"← {self.names[back.path].title}", excerpt, ref


def _excerpt(line: str, names: Names) -> str:
    """Return a linking line without markup; for a list property only its name."""
    line = clean_line(line)
    name, colon, values = line.partition(": ")
    if colon and values.startswith("[") and not values.startswith("[["):
        return name
    return as_read(line, names)


def _link_key(target: str) -> str:
    return unquote(clean(target)).casefold()


def load_document(kb: KnowledgeBase, path: str) -> Document:
    """Load a file of the workspace for display; errors become the document's `reason`."""
    title = clean_line(path.rpartition("/")[2])
    try:
        if path.startswith("sessions/"):
            return _load_conversation(kb, path)
        if path.startswith(NAME_PREFIX):
            return _load_name_page(kb, path)
        day = day_of(path)
        return _load_file(kb, path) if day is None else _load_day(kb, path, day)
    except NotFoundError:
        reason = "Nothing is remembered yet." if path == MEMORY else "This file is gone."
        return Document(path, "missing", title, reason=reason)
    except KbtuiError as error:
        return Document(path, "missing", title, reason=clean_line(str(error)))


def _load_day(kb: KnowledgeBase, path: str, day: date) -> Document:
    """Load the note of a day; today's need not exist, and what is around it is read afterwards."""
    if day != local_day():
        return replace(_load_file(kb, path), below=(_month_calendar(day, days_beside(kb, path)),))
    try:
        document = _load_file(kb, path)
    except NotFoundError:
        document = Document(path, "text", day_heading(day), reason=_EMPTY_DAY)
    return replace(document, is_today=True)


def _load_file(kb: KnowledgeBase, path: str) -> Document:
    if kind_of(path) and is_document(path, kb.settings.search.roots):
        return _load_converted(kb, path)
    return document_of(kb, path, kb.library.read(path, READ_LIMIT_BYTES))


def document_of(kb: KnowledgeBase, path: str, data: bytes) -> Document:
    """Prepare the content of a file of notes for display."""
    if _is_binary(data):
        title = clean_line(path.rpartition("/")[2])
        reason = f"{readable_size(len(data))}, not text."
        return Document(path, "binary", title, reason=reason, is_picture=is_picture(path))
    entry = parse_entry(path, data)
    decoded = decode(data)
    whole = Document(
        path,
        "entry",
        entry.title,
        text=entry.text,
        body=entry.text,
        raw=True,
        blob=entry.blob,
        entry=entry,
        editable=decoded.exact and decoded.encoding != "utf-16",
        # The note of a conversation has a message a line.
        breaks=notes.is_of_conversation(path) or kb.library.keeps_line_breaks,
    )
    if not path.lower().endswith(_MARKDOWN_SUFFIXES):
        return replace(whole, kind="text", title=clean_line(path.rpartition("/")[2]))
    if entry.problem:
        return replace(whole, reason=clean_line(entry.problem))
    day = notes.day_of_note(path)
    if day is not None:
        return _as_day_note(whole, entry, day)
    return replace(
        whole,
        raw=False,
        title=(
            notes.name_of(path) if path == MEMORY else notes.title_of(info_of(entry, len(data), 0))
        ),
        body=without_empty_sections(entry.body, entry.type),
        first_line=entry.body_line,
        properties=properties_of(entry),
        names=_names_by_path(kb, entry.text[: len(entry.text) - len(entry.body)], entry.body),
    )


def _as_day_note(document: Document, entry: Entry, day: date) -> Document:
    """Return a day's note titled by its day, without the heading of the date."""
    body, above = _without_heading(entry.body, day.isoformat())
    body = _with_replacements(body, day)
    return replace(
        document,
        kind="entry",
        raw=False,
        title=day_heading(day),
        body=body if body.strip() else "",
        reason="" if body.strip() else _EMPTY_DAY,
        first_line=entry.body_line + above,
    )


def _with_replacements(body: str, day: date) -> str:
    """Return the lines of a day with what replaced a struck one in place of the pointer to it."""
    said = {match["time"]: match["text"] for match in _TIMED.finditer(body)}
    body = _FLUSH.sub(_flush_heading, body)

    def replacement(match: re.Match[str]) -> str:
        when, time = match["day"], match["time"] or ""
        text = said.get(time, "") if when in (None, day.isoformat()) else ""
        if text:
            return f" → {text}"
        there = format_written_day(when) if when else ""
        return f" → {there} {time}".rstrip()

    body = _POINTER.sub(replacement, body)
    # The day is told by the page, what “tomorrow” was by the words.
    return _TIMED.sub(lambda match: without_dates(match[0]), body)


def _flush_heading(match: re.Match[str]) -> str:
    whole = ", word for word" if match["raw"] else ""
    return f"## From a conversation, {match['time']}{whole}"


def days_beside(kb: KnowledgeBase, path: str) -> dict[date, str]:
    """Return the paths of day notes in the same folder, by day."""
    folder = path.rpartition("/")[0]
    paths = (*kb.journal.days(), *(info.path for info in kb.library.infos()))
    siblings = (each for each in paths if each.rpartition("/")[0] == folder)
    return {day: each for each in siblings if (day := day_of(each)) is not None}


def is_day(path: str) -> bool:
    """Return whether a path is that of a day note."""
    return day_of(path) is not None


def day_beside(kb: KnowledgeBase, path: str, way: int) -> str | None:
    """Return the path of the previous (-1) or next (1) day note, or None."""
    days, here = days_beside(kb, path), day_of(path)
    found = [day for day in days if here is not None and (day - here).days * way > 0]
    nearest = min(found, key=lambda day: day.toordinal() * way, default=None)
    return days[nearest] if nearest is not None else None


def _month_calendar(shown: date, days: Mapping[date, str]) -> Section:
    """Return a calendar of the month that links days to their notes, and to nearby months.

    Args:
        shown: The day being read.
        days: The paths of day notes by day.
    """

    def cell(day: int) -> Cell:
        if not day:
            return Cell("   ")
        return Cell(f"{day:>3}", days.get(shown.replace(day=day), ""), here=day == shown.day)

    rows = [tuple(Cell(f"{name:>3}") for name in calendar.day_abbr)]
    weeks = calendar.Calendar().monthdayscalendar(shown.year, shown.month)
    rows += [tuple(map(cell, week)) for week in weeks]
    first = shown.replace(day=1)
    before = max((day for day in days if day < first), default=None)
    after = min((day for day in days if day >= first + timedelta(max(weeks[-1]))), default=None)
    found = (("◂", before), ("▸", after))
    ends = [
        Cell(f"{arrow} {format_day(day)}", days[day]) for arrow, day in found if day is not None
    ]
    rows += [(Cell(" "), *ends)] if ends else []
    return Section(f"{shown:%B %Y}", cells=tuple(rows))


def _load_converted(kb: KnowledgeBase, path: str) -> Document:
    """Load the text extracted from a document, read-only."""
    with Documents(kb.workspace) as documents:
        text = documents.read(path)
    title = clean_line(path.rpartition("/")[2])
    if not text.parts:
        return Document(path, "binary", title, reason=f"It can't be read: {text.problem}.")
    body = text.whole
    return Document(path, "text", title, body, body, raw=not text.markdown, reason=text.problem)


def _is_binary(data: bytes) -> bool:
    head = data[:8192]
    return b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))


def readable_size(count: int) -> str:
    """Format a number of bytes."""
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:,.0f} kB" if count < 1024**2 else f"{count / 1024**2:,.1f} MB"


def _load_name_page(kb: KnowledgeBase, path: str) -> Document:
    """Load the page of a name: the lines that mention it, grouped by day."""
    name = path.removeprefix(NAME_PREFIX)
    lines = kb.names.lines(name)
    names = names_of(kb.library, {each.path for each in lines})
    parts: list[str] = []
    title = None
    for each in lines:
        heading = format_written_day(each.when) or names[each.path].title
        if heading != title:
            parts.append(f"\n##### {heading}\n")
            title = heading
        time = f"{each.line.time} " if each.line.time else ""
        parts.append(f"- {time}{each.line.text}")
    body = "\n".join(parts)
    reason = f"{counted(len(lines), 'line')} with that name · s makes a note of them"
    return Document(path, "text", name, text=body, body=body, reason=reason if lines else "Gone.")


def _links_of_name(kb: KnowledgeBase, path: str) -> DocumentLinks:
    """Return links to the lines that mention a name."""
    lines = kb.names.lines(path.removeprefix(NAME_PREFIX))
    return DocumentLinks(
        backlinks=tuple(
            Backlink(each.path, short_name(each.path), each.line.first, each.line.text)
            for each in lines
        ),
        names=names_of(kb.library, {each.path for each in lines}),
    )


def _load_conversation(kb: KnowledgeBase, path: str) -> Document:
    session = session_of(path)
    log = kb.sessions.read_log(session)
    parts = [
        f"##### {speaker(message.role, session)} · {message.id}\n\n{message.content.strip()}\n"
        for message in log.messages
        if message.role in {"user", "assistant"} and message.content.strip()
    ]
    body = "\n".join(parts)
    title = clean_line(log.shown_title)
    reason = "s makes a note of a message" if body else "Nothing was said."
    return Document(path, "conversation", title, text=body, body=body, reason=reason)


def session_of(path: str) -> str:
    """Return the session id of a log's path."""
    return path.removeprefix("sessions/").removesuffix(".jsonl")


def message_line(document: Document, message: int) -> int:
    """Return the line on which a message begins in a conversation's document; 1 if missing."""
    for number, line in enumerate(document.body.split("\n"), 1):
        if line.startswith("##### ") and line.endswith(f" {message}"):
            return number
    return 1


def message_at(document: Document, line: int) -> int | None:
    """Return the id of the message at a line of a conversation's document, or None."""
    for above in reversed(document.body.split("\n")[:line]):
        if found := _MESSAGE_HEADING.fullmatch(above):
            return int(found[1])
    return None


def load_links(kb: KnowledgeBase, document: Document) -> DocumentLinks:
    """Resolve a document's links and backlinks; both are empty if the library can't be read.

    The document and its link targets move to the front of the indexing queue, as the user is likely
    to ask about them next.
    """
    path = document.path
    if document.is_picture:
        return DocumentLinks()
    if path.startswith(NAME_PREFIX):
        return _links_of_name(kb, path)
    try:
        links = DocumentLinks(
            tuple(kb.library.outgoing(path)),
            tuple(kb.library.backlinks(path)),
            called=dict(_named_in_properties(kb, document)),
            names=Names(kb.library.infos()),
            outline=_outline(document),
        )
    except KbtuiError:
        links = DocumentLinks()
    kb.search.prioritize([*filter(None, (each.path for each in links.outgoing)), path])
    return links


def _outline(document: Document) -> str:
    """Return the headings as a list of links, without those no link can name."""
    named = (each for each in headings_of(document.text) if not _LINK_SYNTAX & {*each.text})
    headings = [each for each in named if each.text != document.title]
    if document.raw or len(headings) < _MIN_OUTLINE_HEADINGS:
        return ""
    highest = min(each.level for each in headings)
    lines = [f"{'  ' * (each.level - highest)}- [[#{each.text}]]" for each in headings]
    return "\n".join(["**outline**", "", *lines])


def _named_in_properties(kb: KnowledgeBase, document: Document) -> Iterator[tuple[str, str]]:
    for each in document.properties:
        for value in each.values if each.name and each.name not in _KEY_LABELS.values() else ():
            path = kb.library.named(value)
            if path is not None and path != document.path:
                yield value, path


def load_mentions(kb: KnowledgeBase, path: str) -> tuple[Backlink, ...]:
    """Return the lines of other notes that name this one without a link, found by search.

    There are none in time travel, where nothing can be linked and no index exists, nor for
    MEMORY.md, whose name is an ordinary word.
    """
    info = None if isinstance(kb.library, PastLibrary) else kb.library.info(path)
    if info is None or path == MEMORY:
        return ()
    found: list[str] = []
    try:
        for name in kb.library.mention_names(info)[:_MAX_NAMES]:
            query = '"' + name.replace('"', " ") + '"'
            hits = kb.search.search(query, "knowledge", _MAX_MENTIONS, semantic=False).hits
            found += [hit.path for hit in hits]
        return tuple(kb.library.mentions(path, found))
    except KbtuiError:
        return ()


def properties_of(entry: Entry) -> tuple[Property, ...]:
    """Return an entry's properties for display: type, other properties, tags, last change.

    The date of creation is shown only without a date of change.
    """
    written = entry.frontmatter
    keys = (*_CHANGED_KEYS, "created")
    changed = next((key for key in keys if frontmatter.word(written, key)), "")
    found = [Property("", (kind,))] if (kind := frontmatter.word(written, "type")) else []
    if entry.private:
        found.append(Property("private", ("local models only",)))
    found += _other_properties(written, {changed, "created"} if changed else set())
    found += [Property("", (f"#{tag}",)) for tag in frontmatter.tags(written)[:_MAX_VALUES]]
    if changed:
        found.append(
            Property("", (format_written_day(frontmatter.word(written, changed)),), quiet=True)
        )
    return tuple(found[:_MAX_PROPERTIES])


def _other_properties(written: Mapping[str, object], left_out: set[str]) -> Iterator[Property]:
    """Yield the properties that aren't shown elsewhere."""
    for key, value in written.items():
        values = tuple(map(format_written_day, _values(value)))
        if values and key not in _SPECIAL_KEYS | left_out:
            name = _KEY_LABELS.get(key, key)
            yield Property(name, values[:_MAX_VALUES], linked=key == "related")


def _values(value: object) -> Iterator[str]:
    """Yield the values of a property as single lines; those of a mapping with their keys."""
    if isinstance(value, list):
        for each in value:
            yield from _values(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from (f"{key}: {text}" for text in _values(each))
    elif isinstance(value, str) and value.strip():
        yield _BOXES.get(value) or shorten(value, _MAX_VALUE_CHARACTERS)


def tick(kb: KnowledgeBase, path: str, task: TaskLine) -> Commit | None:
    """Toggle a task's checkbox in the file as it is now; None if somebody else has.

    Raises:
        KbtuiError: The line changed meanwhile, can't be written, or it can't be told when the task
            recurs.
    """
    now, found = _task_now(kb, path, task)
    if found.mark != task.mark:
        return None
    what = "done" if task.mark == " " else "opened again"
    return _write_task(kb, now, what, task, ticked(now.text, found, local_day()))


def move_task(kb: KnowledgeBase, path: str, task: TaskLine, day: date) -> Commit | None:
    """Give a task another day, in the file as it is now; raises as `tick`."""
    now, found = _task_now(kb, path, task)
    what = f"to be done on {format_day(day)}"
    return _write_task(kb, now, what, task, moved(now.text, found, day))


def _task_now(kb: KnowledgeBase, path: str, task: TaskLine) -> tuple[Document, TaskLine]:
    now = load_document(kb, path)
    found = task_at(now.text, task.line)
    if found is None or found.text != task.text:
        same = [each for each in tasks_in(now.text) if each.text == task.text]
        if len(same) != 1:
            raise ConflictError(
                f"Line {task.line} of {short_name(path)} is another one by now.", "Try it again."
            )
        found = same[0]
    return now, found


def _write_task(
    kb: KnowledgeBase, now: Document, what: str, task: TaskLine, text: str
) -> Commit | None:
    reason = f"{what}: {shorten(fields_of(task.text).said, 60)}"
    return kb.library.write(now.path, text, expecting=now.blob, actor=Actor.YOU, reason=reason)


def stated_summary(entry: Entry) -> str:
    """Return the summary in the frontmatter; a derived one would only repeat the text."""
    for key in ("summary", "description"):
        value = entry.frontmatter.get(key)
        if isinstance(value, str) and value.strip():
            return clean_line(value)
    return ""
