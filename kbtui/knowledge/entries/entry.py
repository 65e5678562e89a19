"""Entries: Markdown files under ``knowledge/``, parsed, and their rows in the cache."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple
from urllib.parse import unquote

from kbtui.knowledge.entries.privacy import (
    originals as originals,
    says_private as says_private,
    says_private_inline,
)
from kbtui.knowledge.entries.templates import (
    ENTRY_TYPES as ENTRY_TYPES,
    EVOLUTION as EVOLUTION,
    TYPE_OF_FOLDER as TYPE_OF_FOLDER,
    Front as Front,
    append_to_section as append_to_section,
    render_entry as render_entry,
    section_names as section_names,
    section_text as section_text,
    without_empty_sections as without_empty_sections,
)
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import heading_of, summary_of, tags_in_body
from kbtui.knowledge.format.frontmatter import day_word, tags, word, words
from kbtui.knowledge.format.links import (
    IN_VAULT as IN_VAULT,
    Link as Link,
    links_in_body,
    links_in_frontmatter,
    links_in_text_of,
    related_link,
    target_first as target_first,
)
from kbtui.workspace.files import Decoded, blob_id, decode
from kbtui.workspace.layout import BOOTSTRAP_FILES, ENTRIES, is_conflict_copy

# A date or time at the start of a name, with the separator after it.
DATED = re.compile(r"(?:\d{4}-\d{2}(?:-\d{2})?|\d{8}|\d{12}|\d{14})[-_ ]+")
_LINE = re.compile(r"(\.md|[^/\s]):\d+(?:-\d+)?$")
_PROPERTIES = re.compile(r"\A(?:(?:- )?[A-Za-z][\w-]*::(?: .*)?(?:\r?\n|\Z))+")
_ESCAPED = re.compile("%[0-9A-F]{2}")
_ID = re.compile(r"(?:\d{12}|\d{14})(?=[-_ ])")
_ALIAS = re.compile(r"^[ \t]*(?:- )?alias(?:es)?::([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_LOGSEQ_DAY = re.compile(r"(\d{4})_(\d{2})_(\d{2})")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SEPARATOR = "\x1f"
_CACHE_LIMIT = 32_768  # bytes; larger entries aren't cached
COLUMNS = (
    "path TEXT PRIMARY KEY, title TEXT, type TEXT, tags TEXT, aliases TEXT, created TEXT,"
    " updated TEXT, summary TEXT, private INTEGER, problem TEXT, blob TEXT, size INTEGER,"
    " mtime INTEGER"
)
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _EntryFacts:
    """The facts parsed from an entry; `blob` is the hash of its content.

    `category` is the folder under ``knowledge/`` (empty at the top level). `problem` says why the
    file must not be edited by a machine; such an entry is shown raw and stays searchable.
    """

    path: str
    title: str
    type: str | None
    category: str
    slug: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    created: str | None
    updated: str | None
    summary: str
    private: bool
    problem: str | None
    blob: str

    @property
    def is_entry(self) -> bool:
        """Whether it is under ``knowledge/``; memory notes are parsed as well."""
        return self.path.startswith("knowledge/")

    @property
    def name(self) -> str:
        """Category and slug, e.g. ``people/alice``, which identify an entry."""
        return f"{self.category}/{self.slug}" if self.category else self.slug

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which links refer to it."""
        return (self.slug, self.title, *self.aliases, *ids_in(self.slug))


_FACTS = attrgetter(*(each.name for each in fields(_EntryFacts)))


@dataclass(frozen=True, slots=True)
class EntryInfo(_EntryFacts):
    """The facts of an `Entry` that lists need, with the size of its file in bytes."""

    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Entry(_EntryFacts):
    """A parsed entry. `text` is the whole document without a byte-order mark.

    `body_line` is the number of the first line after the frontmatter.
    """

    text: str
    related: tuple[str, ...]
    links: tuple[Link, ...]
    frontmatter: Mapping[str, Any] = field(hash=False)
    body_line: int

    @property
    def body(self) -> str:
        """The text after the frontmatter."""
        return frontmatter.body_of(self.text)


def is_catalogue(path: str) -> bool:
    """Return whether a path is an INDEX.md, which is generated and not an entry."""
    return path.startswith("knowledge/") and path.rpartition("/")[2] == "INDEX.md"


def is_indexed(path: str) -> bool:
    """Return whether a file is an entry, or may link to entries."""
    return (
        path.lower().endswith(".md")
        and not is_catalogue(path)
        and not is_conflict_copy(path)
        and path != "memory/HISTORY.md"
        and (path.startswith(("knowledge/", "memory/", "skills/")) or path in BOOTSTRAP_FILES)
    )


def is_entry(path: str) -> bool:
    """Return whether a path is that of an entry."""
    return path.startswith("knowledge/") and is_indexed(path)


def category_of(path: str) -> str:
    """Return the folder of an entry under ``knowledge/``, e.g. ``people``."""
    return path.removeprefix("knowledge/").rpartition("/")[0]


def slug_of(path: str) -> str:
    """Return the file name of an entry without folder and ``.md``."""
    name = path.rpartition("/")[2]
    return name[:-3] if name.lower().endswith(".md") else name


def without_line(ref: str) -> str:
    """Strip ``:14`` or ``:14-20`` from a reference copied from search results."""
    return _LINE.sub(r"\1", ref)


def ids_in(slug: str) -> tuple[str, ...]:
    """Return other names that links use for a slug: a leading id, or the day of a journal.

    ``202401010930 Kestrels`` has an id; ``2026_11_03`` is *Nov 3rd, 2026* in Logseq.
    """
    if day := _LOGSEQ_DAY.fullmatch(slug):
        year, month, number = map(int, day.groups())
        if not 1 <= month <= len(_MONTHS):
            return ()
        return (f"{_MONTHS[month - 1]} {ordinal(number)}, {year}",)
    found = _ID.match(slug)
    return (found.group(),) if found else ()


def parse_entry(path: str, data: bytes) -> Entry:
    """Parse an entry from any bytes; never raises."""
    return _parsed(path, data) if len(data) < _CACHE_LIMIT else _parsed.__wrapped__(path, data)


# The writer, the checks, the dates, the catalogue and the index each parse everything that a change
# writes, which is 500 notes in an import.
@lru_cache(maxsize=512)
def _parsed(path: str, data: bytes) -> Entry:
    decoded = decode(data)
    parts = frontmatter.split(decoded.text.encode("utf-8", "surrogatepass"))
    matter = frontmatter.read(parts)
    body = parts.body.decode("utf-8", "surrogatepass")
    head = parts.head.decode("utf-8", "surrogatepass")
    body_line = 1 + sum(part.count(b"\n") for part in (parts.opening, parts.head, parts.closing))
    properties = {} if matter.values else page_properties(body)
    values = matter.values or properties
    links = [
        *(links_in_text_of(head) if matter.problem else links_in_frontmatter(head, matter.tree)),
        *(placed.link for placed in links_in_body(body, body_line)),
    ]
    private = says_private(data)
    problem = matter.problem or (_privacy_doubt(decoded.text, values) if private else None)
    names = called(path, values, body)
    return Entry(
        path=path,
        text=decoded.text,
        blob=blob_id(data),
        title=names.title,
        type=names.type,
        tags=names.tags,
        aliases=names.aliases,
        category=category_of(path),
        slug=slug_of(path),
        related=tuple(related_link(item).target for item in words(values.get("related"))),
        created=day_word(values, "created") or None,
        updated=day_word(values, "updated") or None,
        summary=_summary(values, names.type, _PROPERTIES.sub("", body) if properties else body),
        private=private,
        links=tuple(links),
        problem=_problem(decoded, problem),
        frontmatter=matter.values,
        body_line=body_line,
    )


class Called(NamedTuple):
    """What a note is called: its title, its type, its tags, and its other names."""

    title: str
    type: str | None
    tags: tuple[str, ...]
    aliases: tuple[str, ...]


def called(path: str, values: Mapping[str, Any], body: str) -> Called:
    """Return what a file is called, by its properties, its text and its path."""
    category = category_of(path) if path.startswith(ENTRIES) else ""
    name = path.rpartition("/")[2]
    return Called(
        word(values, "title") or heading_of(body) or page_name(name.rpartition(".")[0] or name),
        word(values, "type") or TYPE_OF_FOLDER.get(category.partition("/")[0]),
        tags(values, tags_in_body(body)),
        words(values.get("aliases", values.get("alias"))),
    )


def page_name(slug: str) -> str:
    """Return the page name a file name encodes: Logseq writes ``a/b`` as ``a___b``."""
    name = slug.replace("___", "/")
    return unquote(name) if _ESCAPED.search(name) else name


def ordinal(number: int) -> str:
    """Return an English ordinal: ``1st``, ``11th``, ``23rd``."""
    end = "th" if number // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{end}"


def with_page_alias(body: str, names: Sequence[str]) -> str:
    """Add names to the ``alias`` property at the top of a Logseq page."""
    block = _PROPERTIES.match(body)
    known = _ALIAS.search(body, 0, block.end()) if block else None
    added = ", ".join(names)
    if known is None:
        return f"alias:: {added}\n{body}"
    separator = ", " if known[1].strip() else " "
    return f"{body[: known.end(1)].rstrip()}{separator}{added}{body[known.end(1) :]}"


def has_page_properties(body: str) -> bool:
    """Return whether a page starts with Logseq properties."""
    return _PROPERTIES.match(body) is not None


def page_properties(body: str) -> dict[str, Any]:
    """Parse the Logseq properties of a page: ``key:: value`` lines at the top."""
    found: dict[str, Any] = {}
    block = _PROPERTIES.match(body)
    for line in block.group().splitlines() if block else ():
        key, _, value = line.strip().removeprefix("- ").partition("::")
        items = [each.strip().removeprefix("#").strip("[]") for each in value.split(",")]
        key = key.strip().lower()
        found[key] = items if key in {"tags", "alias", "aliases"} else value.strip()
    return found


def _privacy_doubt(text: str, values: Mapping[str, Any]) -> str | None:
    """Return the problem of an entry treated as private because it may be."""
    if "private" not in map(str.lower, values) and not says_private_inline(text):
        return "it names `private`, so the file counts as private until that is put right"
    return None


def _problem(decoded: Decoded, problem: str | None) -> str | None:
    if not decoded.exact and "\N{REPLACEMENT CHARACTER}" not in decoded.text:
        return "Some of its bytes aren't UTF-8; they are read as old Windows wrote them."
    if not decoded.exact:
        return "Some of its bytes aren't text; they are shown as \N{REPLACEMENT CHARACTER}."
    if decoded.encoding == "utf-16":
        return "It is written in UTF-16; it can be read, but isn't changed."
    return f"Its frontmatter can't be read: {problem}." if problem else None


def _summary(values: Mapping[str, Any], type_: str | None, body: str) -> str:
    """Return the summary as written, else the first sentence (of a decision's Decision)."""
    written = word(values, "summary") or word(values, "description")
    if not written and type_ == "decision":
        written = summary_of(section_text(body, "Decision") or "")
    return written or summary_of(body)


def info_of(entry: Entry, size: int, mtime_ns: int) -> EntryInfo:
    """Return the `EntryInfo` of a parsed entry."""
    columns: tuple[Any, ...] = (*_FACTS(entry), size, mtime_ns)
    return EntryInfo(*columns)


def unread(path: str) -> EntryInfo:
    """Return a placeholder, from its path, for an entry that hasn't been read yet."""
    slug, category = slug_of(path), category_of(path)
    none: tuple[str, ...] = ()
    columns = (path, slug, None, category, slug, none, none, None, None, "")
    return EntryInfo(*columns, private=True, problem=None, blob="", size=0, mtime_ns=0)


def row_of(info: EntryInfo) -> Row:
    """Return the cache row of an info."""
    lists = (_SEPARATOR.join(info.tags), _SEPARATOR.join(info.aliases))
    rest = (info.created, info.updated, info.summary, info.private, info.problem)
    return (info.path, info.title, info.type, *lists, *rest, info.blob, info.size, info.mtime_ns)


def info_from(row: Row) -> EntryInfo:
    """Return the info in a cache row."""
    path, title, type_, tags, aliases, created, updated, summary, private, *rest = row
    lists = [tuple(each.split(_SEPARATOR)) if each else () for each in (tags, aliases)]
    named = (path, title, type_, category_of(path), slug_of(path), *lists)
    columns = (*named, created, updated, summary, bool(private), *rest)
    return EntryInfo(*columns)
