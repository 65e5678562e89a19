"""Notes for people: by title and the sign of their kind, never by path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, NamedTuple, Protocol
from zlib import crc32

from kbtui.presentation.times import format_day, format_written_day
from kbtui.text import clean_line, slugify
from kbtui.workspace.layout import BOOTSTRAP_FILES, ENTRIES, MEMORY, short_name

if TYPE_CHECKING:
    from kbtui.knowledge.entries.entry import EntryInfo


class Kind(NamedTuple):
    """The kind of a note: its name in colours and settings, its sign, and its letter."""

    name: str
    shape: str
    letter: str


KINDS: Mapping[str, Kind] = {
    "decision": Kind("decision", "◆", "D"),
    "person": Kind("person", "●", "P"),
    "project": Kind("project", "▲", "J"),
    "topic": Kind("topic", "■", "T"),
    "fact": Kind("fact", "▪", "F"),
    "preference": Kind("preference", "★", "S"),
    "reference": Kind("reference", "¶", "R"),
}
OTHER = Kind("other", "○", "O")
"""The kind of a note of no known type, such as most notes of a vault."""
_BY_FOLDER = [OTHER._replace(name=f"other-{name}") for name in KINDS if name != "fact"]
_SESSIONS = "sessions/"
_STEP = " > "  # the separator of headings in the search index
INTO = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
"""The separator between a note and its section."""
_SKILL = re.compile(r"skills/([^/]+)/SKILL\.md")
_DAY = re.compile(r"memory/(\d{4}-\d{2}-\d{2})\.md")
_TALK = re.compile(r"memory/(\d{4}-\d{2}-\d{2})-[^/]+\.md")


def kind_of(type_: str | None, path: str = "") -> Kind:
    """Return the kind for an entry's type; without a known one, a colour by its top folder."""
    folder, inside, _ = path.removeprefix(ENTRIES).partition("/")
    coloured = inside and path.startswith(ENTRIES)
    other = _BY_FOLDER[crc32(folder.encode()) % len(_BY_FOLDER)] if coloured else OTHER
    return KINDS.get((type_ or "").casefold(), other)


def title_of(info: EntryInfo) -> str:
    """Return the title of an entry.

    If a person gave the file a readable name (with capitals or spaces), that is its title.
    """
    slug = clean_line(info.slug)
    named = bool(slug) and slug != slugify(slug) and any(char.isalpha() for char in slug)
    reads = " " in slug or (slug[:1].isupper() and "." not in slug and "_" not in slug)
    return slug if named and reads else clean_line(info.title) or slug


@dataclass(frozen=True, slots=True)
class Named:
    """A file for display: its title, and its kind if it is an entry."""

    path: str
    title: str
    kind: Kind | None = None

    def __str__(self) -> str:
        return f"{self.kind.shape} {self.title}" if self.kind is not None else self.title


class Names:
    """Names files: entries by their titles, others by their paths."""

    def __init__(
        self, infos: Iterable[EntryInfo] = (), sessions: Iterable[_Conversation] = ()
    ) -> None:
        self._infos = {info.path: info for info in infos}
        self._titles = {f"{_SESSIONS}{each.id}.jsonl": clean_line(each.title) for each in sessions}

    def __getitem__(self, path: str) -> Named:
        """Return the name of any workspace path, including deleted files."""
        if path.startswith(_SESSIONS):
            return Named(path, self._titles.get(path) or "a conversation")
        info = None if (own := _own_file(path)) else self._infos.get(path)
        if info is not None:
            return Named(path, title_of(info), kind_of(info.type, path))
        return own or _by_path(path)

    def conversation(self, id: str) -> Named | None:
        """Return the name of a conversation, by its id, if it is known."""
        path = f"{_SESSIONS}{id}.jsonl"
        return self[path] if path in self._titles else None

    def section(self, path: str, heading: str = "") -> str:
        """Return the title of a note, and the section unless it has the same name."""
        title, section = self[path].title, clean_line(heading).rpartition(_STEP)[2]
        return f"{title}{INTO}{section}" if section and section != title else title


class _Conversation(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...


class _Library(Protocol):
    def info(self, path: str) -> EntryInfo | None: ...


class _Sessions(Protocol):
    def list(self) -> Sequence[_Conversation]: ...


def names_of(library: _Library, paths: Iterable[str], sessions: _Sessions | None = None) -> Names:
    """Return the names of some files, with `sessions` also of conversations; may read files."""
    known = [*paths]
    talks = any(path.startswith(_SESSIONS) for path in known)
    return Names(
        (info for path in known if (info := library.info(path)) is not None),
        sessions.list() if sessions is not None and talks else (),
    )


def all_names(infos: Iterable[EntryInfo], sessions: _Sessions | None) -> Names:
    """Return the names of all notes and conversations; run in a thread."""
    return Names(infos, sessions.list() if sessions is not None else ())


def name_of(path: str) -> str:
    """Return the title that a path alone gives its file."""
    return (_own_file(path) or _by_path(path)).title


def _own_file(path: str) -> Named | None:
    """Name a file of kbtui's own: of memory, a day, a conversation, a skill, or a document."""
    day, talk, skill = _DAY.fullmatch(path), _TALK.fullmatch(path), _SKILL.fullmatch(path)
    if path == MEMORY:
        return Named(path, "Memory")
    if day is not None:
        return Named(path, _day_title(day[1]))
    if talk is not None:
        return Named(path, f"Conversation of {format_written_day(talk[1])}")
    if skill is not None:
        return Named(path, f"the skill {clean_line(skill[1])}")
    return Named(path, path.removesuffix(".md")) if path in BOOTSTRAP_FILES else None


def _by_path(path: str) -> Named:
    # Imported here, since it is slow and not needed for the first paint.
    from kbtui.knowledge.entries.entry import DATED, TYPE_OF_FOLDER

    slug = clean_line(short_name(path).rpartition("/")[2])
    is_entry = path.startswith(ENTRIES) and path.endswith(".md")
    words = DATED.sub("", slug, count=1) or slug
    if slug == slugify(slug) and not words[:1].isdigit():
        words = words.replace("-", " ")
        slug = words[:1].upper() + words[1:]
    kind = kind_of(TYPE_OF_FOLDER.get(path.removeprefix(ENTRIES).partition("/")[0]), path)
    return Named(path, slug or clean_line(path), kind if is_entry else None)


def is_of_conversation(path: str) -> bool:
    """Return whether a path is that of the note in which kbtui sums a conversation up."""
    return _TALK.fullmatch(path) is not None


def day_of_note(path: str) -> date | None:
    """Return the day of a daily note, or None for any other file."""
    day = _DAY.fullmatch(path)
    try:
        return date.fromisoformat(day[1]) if day is not None else None
    except ValueError:
        return None


def _day_title(day: str) -> str:
    try:
        return f"the journal of {format_day(date.fromisoformat(day))}"
    except ValueError:
        return day
