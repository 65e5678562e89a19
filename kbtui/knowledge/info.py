"""The part of an entry that lists and catalogues show, without its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.knowledge.entry import category_of, slug_of

if TYPE_CHECKING:
    from kbtui.knowledge.entry import Entry

_BETWEEN = "\x1f"
COLUMNS = (
    "path TEXT PRIMARY KEY, blob TEXT, size INTEGER, mtime INTEGER, title TEXT, type TEXT,"
    " tags TEXT, aliases TEXT, created TEXT, updated TEXT, summary TEXT, private INTEGER,"
    " problem TEXT"
)
Row = tuple[
    str, str, int, int, str, str | None, str, str, str | None, str | None, str, int, str | None
]


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """The columns of an `Entry` that lists need; `size` in bytes, `blob` its content's hash."""

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
    size: int
    mtime_ns: int

    @property
    def is_entry(self) -> bool:
        """True if it lies under ``knowledge/``; notes of the memory are known as well."""
        return self.path.startswith("knowledge/")

    @property
    def name(self) -> str:
        """Category and slug, e.g. ``people/alice``: how entries are told apart."""
        return f"{self.category}/{self.slug}" if self.category else self.slug

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that it is called in links."""
        return (self.slug, self.title, *self.aliases)


def info_of(entry: Entry, size: int, mtime_ns: int) -> EntryInfo:
    """Take the columns off a parsed entry."""
    return EntryInfo(
        path=entry.path,
        title=entry.title,
        type=entry.type,
        category=entry.category,
        slug=entry.slug,
        tags=entry.tags,
        aliases=entry.aliases,
        created=entry.created,
        updated=entry.updated,
        summary=entry.summary,
        private=entry.private,
        problem=entry.problem,
        blob=entry.blob,
        size=size,
        mtime_ns=mtime_ns,
    )


def row_of(info: EntryInfo) -> Row:
    """Write the columns for the cache."""
    return (
        info.path,
        info.blob,
        info.size,
        info.mtime_ns,
        info.title,
        info.type,
        _BETWEEN.join(info.tags),
        _BETWEEN.join(info.aliases),
        info.created,
        info.updated,
        info.summary,
        int(info.private),
        info.problem,
    )


def info_from(row: Row) -> EntryInfo:
    """Read the columns from the cache."""
    path, blob, size, mtime_ns, title, type_, tags, aliases, created, updated = row[:10]
    summary, private, problem = row[10:]
    return EntryInfo(
        path,
        title,
        type_,
        category_of(path),
        slug_of(path),
        tuple(tags.split(_BETWEEN)) if tags else (),
        tuple(aliases.split(_BETWEEN)) if aliases else (),
        created,
        updated,
        summary,
        bool(private),
        problem,
        blob,
        size,
        mtime_ns,
    )
