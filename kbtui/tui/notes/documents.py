"""A file as it is shown: an entry, plain text, a conversation, or the reason why it can't be.

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

from kbtui.documents.documents import Documents, is_document, is_picture, kind_of
from kbtui.errors import ConflictError, KbtuiError, NotFoundError
from kbtui.history.change import Actor
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
from kbtui.knowledge.format.body import TaskLine, headings_of, task_at, ticked
from kbtui.knowledge.library.library import Backlink, PastLibrary, ResolvedLink
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.records.journal import day_of
from kbtui.presentation import notes
from kbtui.presentation.notes import Named, Names, names_of
from kbtui.presentation.times import day_heading, format_day, format_written_day
from kbtui.sessions.imported import speaker
from kbtui.text import clean, clean_line, counted, shorten
from kbtui.tui.markdown.plain import as_read
from kbtui.tui.markdown.source import Cell, Embed, Neighbour, Property, Section, SourceText
from kbtui.tui.markdown.syntax import LinkRef
from kbtui.workspace.files import decode
from kbtui.workspace.layout import ENTRIES, NAME_PREFIX, short_name

Kind = Literal["entry", "text", "conversation", "binary", "missing"]
READ_LIMIT_BYTES = 20 * 1024 * 1024
_MARKDOWN_SUFFIXES = (".md", ".markdown")
_SHOWN_ELSEWHERE = frozenset({"type", "tags", "tag", "title", "summary", "description", "private"})
_CHANGED = ("updated", "modified")
_SAID_AS = {"aliases": "also called", "alias": "also called"}
_LINKED_PATH = re.compile(r"\[\[([^\]|#\n]+/[^\]|#\n]+)")
_PATH = re.compile(r"[a-z0-9-]+(?:/[a-z0-9-]+)+(?:\.md)?")
_HEAD_OF_MESSAGE = re.compile(r"##### \w+ · (\d+)")
_MOST_BACKLINKS = 200
_LONGEST_SAID = 50
_MOST_NAMES = 4
_MOST_MENTIONS = 100
_BOXES = {"true": "☑", "false": "☐"}
_MOST_PROPERTIES = 40
_EMPTY_DAY = "Nothing is written here yet. What you tell kbtui comes here."
_MOST_VALUES = 20
_LONGEST_VALUE = 200
_LEAST_HEADINGS = 3
"""Headings from which on an outline helps."""
_IN_LINKS = frozenset("[]|#^`")


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it is shown.

    `text` is the whole file and `body` what is shown of it, which begins with line `first_line`:
    without the headings of a template that nothing was written below. `properties` are what the
    frontmatter says.
    `raw` asks for no rendering; `reason` says in one line why, or why there is nothing to see.
    `blob` is the content's hash. `editable` tells whether its text can be edited here without
    losing a byte.
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
    picture: Embed | None = None
    below: tuple[Section, ...] = ()
    names: Names = field(default_factory=Names)

    @property
    def named(self) -> Named:
        """It as it is called, with the sign of its kind where it is an entry."""
        is_entry = self.kind == "entry" and self.entry is not None
        kind = notes.kind_of(self.entry.type, self.path) if is_entry and self.entry else None
        return Named(self.path, self.title, kind)

    def source(self, links: DocumentLinks | None = None, *, whole: bool = False) -> SourceText:
        """It as it is drawn below its title, with what is known of its links.

        With `whole` nothing else is left out.
        """
        if self.picture is not None:
            embeds = {LinkRef("markdown", "it"): self.picture}
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
            whole=whole or self.kind != "entry",
            leads_to=self._named_by_path,
        )
        if links is None:
            return source
        below = (*self.below, *links.sections())
        return source._replace(embeds=links.embeds, leads_to=links.named, below=below)

    def _named_by_path(self, link: LinkRef) -> Named:
        """What a link leads to, as far as its path says it."""
        path = f"{ENTRIES}{link.target.removesuffix('.md')}.md"
        return self.names[path] if _PATH.fullmatch(link.target) else Named(path, "")


def _names_by_path(kb: KnowledgeBase, head: str, body: str) -> Names:
    """The names of the notes that a text leads to by their paths."""
    targets = {*_PATH.findall(head), *_LINKED_PATH.findall(body)}
    return names_of(kb.library, {f"{ENTRIES}{each.removesuffix('.md')}.md" for each in targets})


def _without_title(body: str, title: str) -> tuple[str, int]:
    """A text without the heading that only repeats its title, and the lines that are left out."""
    rest, above = _without_heading(body, title)
    return (rest, above) if rest.strip() else (body, 0)


def _without_heading(body: str, title: str) -> tuple[str, int]:
    first, _, rest = body.lstrip().partition("\n")
    if not first.startswith("# ") or clean_line(first[2:]) != clean_line(title):
        return body, 0
    return rest, body.count("\n", 0, len(body) - len(rest))


@dataclass(frozen=True)
class DocumentLinks:
    """Where a document leads, and what leads to it.

    `mentions` are the lines that say its name and don't link. `embeds` are the files that it shows
    inside itself, `inner` the links in these, and `names` what they all are called. `called` are
    the entries that values of its properties name without a link, and `outline` is a list of links
    to its headings, empty where it has only a few.
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
            found.setdefault(_key(resolved.link.target), resolved)
        return found

    def shown(self, document: Document) -> str:
        """The text of a document with the target first in each link; its lines stay the same."""
        turned = {each.link for each in self.outgoing if each.link.turned_round}
        in_vaults = any(each.link.target.startswith(IN_VAULT) for each in self.outgoing)
        if document.raw or not (turned or in_vaults):
            return document.body

        def read(link: Link) -> Link:
            return other if (other := link.turned()) in turned else link

        return target_first(document.body, document.first_line, read)

    def path_of(self, link: LinkRef) -> str | None:
        """The file that a link in the text leads to; None where it leads nowhere."""
        if link.kind == "file":
            return link.target
        resolved = self._links.get(_key(link.target))
        return resolved.path if resolved is not None else self.called.get(link.target)

    def named(self, link: LinkRef) -> Named | None:
        """What a link leads to, without a title where it is no note; None where it leads nowhere.

        A link without a target leads to a place in the note itself.
        """
        resolved = self._links.get(_key(link.target))
        if resolved is None and link.target in self.called:
            return self.names[self.called[link.target]]
        if resolved is None or resolved.path is None:
            return None if link.target else Named("", "")
        return self.names[resolved.path] if resolved.title else Named(resolved.path, "")

    def sections(self) -> tuple[Section, ...]:
        """What is listed below the text: the lines that link here, those that only name it."""
        found: list[Section] = []
        for title, lines in (
            ("linked from", self.backlinks),
            ("named in, without a link · L links all", self.mentions),
        ):
            rows = [
                Neighbour(self.names[back.path], _said_of(back.text, self.names), back.line)
                for back in lines[:_MOST_BACKLINKS]
            ]
            if len(lines) > len(rows):
                rows.append(Neighbour(None, f"… {len(lines) - len(rows):,} more: b lists all"))
            if rows:
                found.append(Section(title, tuple(rows)))
        return tuple(found)

    def ends(self, among: Sequence[LinkRef] = ()) -> list[tuple[str, str, LinkRef]]:
        """Where one can go, each with what is said of it: along links, and to what links here.

        `among` are the links of a line; without any, those of the whole note.
        """
        if among:
            return [*map(self._end, among)]
        out = (LinkRef("wiki", at.link.target, at.link.heading or "") for at in self.outgoing)
        back = (*self.backlinks, *self.mentions)
        return [*map(self._end, dict.fromkeys(out)), *map(self._beginning, back)]

    def _end(self, ref: LinkRef) -> tuple[str, str, LinkRef]:
        named = self.named(ref) if ref.kind in {"wiki", "markdown"} else None
        title = (named and named.title) or unquote(ref.target) or ref.heading
        there = named is not None or ref.kind in {"web", "file"}
        place = "" if ref.heading.startswith("^") else ref.heading
        return f"→ {title}", place if there else "not there yet", ref

    def _beginning(self, back: Backlink) -> tuple[str, str, LinkRef]:
        said = shorten(_said_of(back.text, self.names), _LONGEST_SAID)
        ref = LinkRef("file", back.path, str(back.line))
        return f"← {self.names[back.path].title}", said, ref


def _said_of(line: str, names: Names) -> str:
    """A line that links here, as it reads; of a property with several values only its name."""
    line = clean_line(line)
    name, colon, values = line.partition(": ")
    if colon and values.startswith("[") and not values.startswith("[["):
        return name
    return as_read(line, names)


def _key(target: str) -> str:
    return unquote(clean(target)).casefold()


def load_document(kb: KnowledgeBase, path: str) -> Document:
    """Read a file of the workspace for showing; whatever is wrong is said in the document."""
    title = clean_line(path.rpartition("/")[2])
    try:
        if path.startswith("sessions/"):
            return _conversation(kb, path)
        if path.startswith(NAME_PREFIX):
            return _name(kb, path)
        day = day_of(path)
        month = () if day is None else (_month(day, _days_beside(kb, path)),)
        return replace(_file(kb, path), below=month)
    except NotFoundError:
        reason = "Nothing is remembered yet." if path == notes.MEMORY else "This file is gone."
        return Document(path, "missing", title, reason=reason)
    except KbtuiError as error:
        return Document(path, "missing", title, reason=clean_line(str(error)))


def _file(kb: KnowledgeBase, path: str) -> Document:
    if kind_of(path) and is_document(path, kb.settings.search.roots):
        return _converted(kb, path)
    data = kb.library.read(path, READ_LIMIT_BYTES)
    if _is_binary(data):
        title = clean_line(path.rpartition("/")[2])
        reason = f"{readable_size(len(data))}, not text."
        return Document(path, "binary", title, reason=reason, picture=_picture(kb, path))
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
    )
    if not path.lower().endswith(_MARKDOWN_SUFFIXES):
        return replace(whole, kind="text", title=clean_line(path.rpartition("/")[2]))
    if entry.problem:
        return replace(whole, reason=clean_line(entry.problem))
    day = notes.day_of_note(path)
    if day is not None:
        return _day(whole, entry, day)
    return replace(
        whole,
        raw=False,
        title=(
            notes.name_of(path)
            if path == notes.MEMORY
            else notes.title_of(info_of(entry, len(data), 0))
        ),
        body=without_empty_sections(entry.body, entry.type),
        first_line=entry.body_line,
        properties=properties_of(entry),
        names=_names_by_path(kb, entry.text[: len(entry.text) - len(entry.body)], entry.body),
    )


def _day(document: Document, entry: Entry, day: date) -> Document:
    """A note of a day under its name, without the heading that says the date."""
    body, above = _without_heading(entry.body, day.isoformat())
    return replace(
        document,
        kind="entry",
        raw=False,
        title=day_heading(day),
        body=body if body.strip() else "",
        reason="" if body.strip() else _EMPTY_DAY,
        first_line=entry.body_line + above,
    )


def _days_beside(kb: KnowledgeBase, path: str) -> dict[date, str]:
    """The notes of days in the folder of one of them."""
    folder = path.rpartition("/")[0]
    paths = (*kb.journal.days(), *(info.path for info in kb.library.infos()))
    beside = (each for each in paths if each.rpartition("/")[0] == folder)
    return {day: each for each in beside if (day := day_of(each)) is not None}


def is_day(path: str) -> bool:
    """True for the note of a day."""
    return day_of(path) is not None


def day_beside(kb: KnowledgeBase, path: str, way: int) -> str | None:
    """The note of the nearest day before that of a note (-1), or after it (1)."""
    days, here = _days_beside(kb, path), day_of(path)
    found = [day for day in days if here is not None and (day - here).days * way > 0]
    nearest = min(found, key=lambda day: day.toordinal() * way, default=None)
    return days[nearest] if nearest is not None else None


def _month(shown: date, days: Mapping[date, str]) -> Section:
    """The weeks of a month, whose days lead to their notes, and the days written before and after.

    Args:
        shown: The day that is read.
        days: The paths of the notes by day.
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


def picture_embed(path: str, documents: Documents) -> Embed:
    """A picture with its name and size, or the reason why it isn't shown."""
    name = clean_line(path.rpartition("/")[2])
    try:
        picture = documents.picture(path)
    except KbtuiError as error:
        return Embed(f"{name} · not shown: {clean_line(error.message)}")
    return Embed(f"{name} · {picture.width:,} x {picture.height:,}", picture=picture)


def _picture(kb: KnowledgeBase, path: str) -> Embed | None:
    if not is_picture(path):
        return None
    with Documents(kb.workspace) as documents:
        return picture_embed(path, documents)


def _converted(kb: KnowledgeBase, path: str) -> Document:
    """The text that was made of a document: to be read, not edited."""
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
    """A number of bytes as people say it."""
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:,.0f} kB" if count < 1024**2 else f"{count / 1024**2:,.1f} MB"


def _name(kb: KnowledgeBase, path: str) -> Document:
    """The lines that have a name, by day."""
    name = path.removeprefix(NAME_PREFIX)
    lines = kb.names.lines(name)
    names = names_of(kb.library, {each.path for each in lines})
    parts: list[str] = []
    title = None
    for each in lines:
        above = format_written_day(each.when) or names[each.path].title
        if above != title:
            parts.append(f"\n##### {above}\n")
            title = above
        time = f"{each.line.time} " if each.line.time else ""
        parts.append(f"- {time}{each.line.text}")
    body = "\n".join(parts)
    reason = f"{counted(len(lines), 'line')} with that name · s makes a note of them"
    return Document(path, "text", name, text=body, body=body, reason=reason if lines else "Gone.")


def _links_of_name(kb: KnowledgeBase, path: str) -> DocumentLinks:
    """Where the lines of a name stand."""
    lines = kb.names.lines(path.removeprefix(NAME_PREFIX))
    return DocumentLinks(
        backlinks=tuple(
            Backlink(each.path, short_name(each.path), each.line.first, each.line.text)
            for each in lines
        ),
        names=names_of(kb.library, {each.path for each in lines}),
    )


def _conversation(kb: KnowledgeBase, path: str) -> Document:
    session = session_of(path)
    log = kb.sessions.read_log(session)
    parts = [
        f"##### {speaker(said.role, session)} · {said.id}\n\n{said.content.strip()}\n"
        for said in log.messages
        if said.role in {"user", "assistant"} and said.content.strip()
    ]
    body = "\n".join(parts)
    title = clean_line(log.shown_title)
    reason = "s makes a note of a message" if body else "Nothing was said."
    return Document(path, "conversation", title, text=body, body=body, reason=reason)


def session_of(path: str) -> str:
    """The id of the session whose log lies at a path."""
    return path.removeprefix("sessions/").removesuffix(".jsonl")


def message_line(document: Document, message: int) -> int:
    """The line of a shown conversation on which the message of that id begins."""
    for number, line in enumerate(document.body.split("\n"), 1):
        if line.startswith("##### ") and line.endswith(f" {message}"):
            return number
    return 1


def message_at(document: Document, line: int) -> int | None:
    """The id of the message that a line of a shown conversation belongs to."""
    for above in reversed(document.body.split("\n")[:line]):
        if found := _HEAD_OF_MESSAGE.fullmatch(above):
            return int(found[1])
    return None


def load_links(kb: KnowledgeBase, document: Document) -> DocumentLinks:
    """Resolve a document's links both ways; an unreadable neighbour costs only its own links.

    What is open, and what is linked with it, is what a person will ask about next.
    """
    path = document.path
    if path.startswith(NAME_PREFIX):
        return _links_of_name(kb, path)
    try:
        links = DocumentLinks(
            tuple(kb.library.outgoing(path)),
            tuple(kb.library.backlinks(path)),
            called=dict(_called(kb, document)),
            names=Names(kb.library.infos()),
            outline=_outline(document),
        )
    except KbtuiError:
        links = DocumentLinks()
    kb.search.prioritize([*filter(None, (each.path for each in links.outgoing)), path])
    return links


def _outline(document: Document) -> str:
    """The headings below the title as a list of links; those that no link can name are left out."""
    named = (each for each in headings_of(document.text) if not _IN_LINKS & {*each.text})
    headings = [each for each in named if each.text != document.title]
    if document.raw or len(headings) < _LEAST_HEADINGS:
        return ""
    highest = min(each.level for each in headings)
    lines = [f"{'  ' * (each.level - highest)}- [[#{each.text}]]" for each in headings]
    return "\n".join(["**outline**", "", *lines])


def _called(kb: KnowledgeBase, document: Document) -> Iterator[tuple[str, str]]:
    for each in document.properties:
        for value in each.values if each.name and each.name not in _SAID_AS.values() else ():
            path = kb.library.named(value)
            if path is not None and path != document.path:
                yield value, path


def load_mentions(kb: KnowledgeBase, path: str) -> tuple[Backlink, ...]:
    """The lines of other notes that say the name of one without linking to it, as search knows.

    Not of the past: nothing can be linked there, and all of it would have to be indexed first.
    Nor of the memory, whose name is a word like others.
    """
    info = None if isinstance(kb.library, PastLibrary) else kb.library.info(path)
    if info is None or path == notes.MEMORY:
        return ()
    found: list[str] = []
    try:
        for name in kb.library.names_said(info)[:_MOST_NAMES]:
            said = '"' + name.replace('"', " ") + '"'
            hits = kb.search.search(said, "knowledge", _MOST_MENTIONS, semantic=False).hits
            found += [hit.path for hit in hits]
        return tuple(kb.library.mentions(path, found))
    except KbtuiError:
        return ()


def properties_of(entry: Entry) -> tuple[Property, ...]:
    """An entry's frontmatter as people read it: its type, what it says, its tags, its last change.

    The day on which it was begun is only said where nothing is said of a change since.
    """
    written = entry.frontmatter
    keys = (*_CHANGED, "created")
    changed = next((key for key in keys if frontmatter.word(written, key)), "")
    found = [Property("", (kind,))] if (kind := frontmatter.word(written, "type")) else []
    if entry.private:
        found.append(Property("private", ("local models only",)))
    found += _said_by_itself(written, {changed, "created"} if changed else set())
    found += [Property("", (f"#{tag}",)) for tag in frontmatter.tags(written)[:_MOST_VALUES]]
    if changed:
        found.append(
            Property("", (format_written_day(frontmatter.word(written, changed)),), quiet=True)
        )
    return tuple(found[:_MOST_PROPERTIES])


def _said_by_itself(written: Mapping[str, object], left_out: set[str]) -> Iterator[Property]:
    """The properties that aren't shown elsewhere."""
    for key, value in written.items():
        values = tuple(map(format_written_day, _values(value)))
        if values and key not in _SHOWN_ELSEWHERE | left_out:
            name = _SAID_AS.get(key, key)
            yield Property(name, values[:_MOST_VALUES], linked=key == "related")


def _values(value: object) -> Iterator[str]:
    """The values of a property, each in one line; of a mapping with its keys."""
    if isinstance(value, list):
        for each in value:
            yield from _values(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from (f"{key}: {said}" for said in _values(each))
    elif isinstance(value, str) and value.strip():
        yield _BOXES.get(value) or shorten(value, _LONGEST_VALUE)


def tick(kb: KnowledgeBase, path: str, task: TaskLine) -> None:
    """Turn the box of a task that was read, in the file as it is now.

    Raises:
        KbtuiError: the line says something else by now, or can't be written.
    """
    now = load_document(kb, path)
    there = task_at(now.text, task.line)
    if there is None or there.text != task.text:
        raise ConflictError(
            f"Line {task.line} of {short_name(path)} is another one by now.", "Try it again."
        )
    if there.mark == task.mark:
        said = f"{'done' if task.mark == ' ' else 'opened again'}: {shorten(task.text, 60)}"
        text = ticked(now.text, there)
        kb.library.write(path, text, expecting=now.blob, actor=Actor.YOU, reason=said)


def stated_summary(entry: Entry) -> str:
    """The summary that somebody wrote; a derived one would only repeat the text below."""
    for key in ("summary", "description"):
        value = entry.frontmatter.get(key)
        if isinstance(value, str) and value.strip():
            return clean_line(value)
    return ""
