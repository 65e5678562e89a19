"""The naming and filing conventions of a folder of notes, inferred from its notes and settings.

kbtui's own layout has kebab-case names in a folder per type. In a user's own folder a new note is
named like its neighbours: by its title, by joined lowercase words, or in a zk notebook by an id. It
goes where notes of its type are, else where Obsidian, Logseq or the user puts new ones.
"""

from __future__ import annotations

import json
import posixpath
import re
import secrets
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from string import ascii_lowercase, digits
from typing import Any, TypedDict

from kbtui.clock import local_now
from kbtui.knowledge.entries.day_formats import luxon, moment
from kbtui.knowledge.entries.dendron import Dendron, dendron_at, table
from kbtui.knowledge.entries.entry import DATED, EntryInfo
from kbtui.knowledge.entries.logseq import CONFIG, setting
from kbtui.knowledge.entries.templates import ENTRY_TYPES, Front, render_entry
from kbtui.text import MAX_SLUG, clean_line, slugify
from kbtui.workspace.files import checked_path
from kbtui.workspace.layout import Layout

_ROOT = "knowledge/"
_NUMBER = re.compile(r"\d{8}|\d{12}|\d{14}|\d{4}[-_]\d{2}([-_]\d{2})?")
_DOTTED = re.compile(r"[^\W_A-Z]+(?:-[^\W_A-Z]+)*(?:\.[^\W_A-Z]+(?:-[^\W_A-Z]+)*)+")
# Characters that some operating system forbids in names, or that break links.
_ESCAPED_IN_PAGES = re.compile(r'[<>:"\\|?*#%^\[\]]|^\.|\.$')
_FORBIDDEN = re.compile(r'[*"<>|?#^\[\]]+')
_NAME_PARTS = re.compile(
    r"\{\{\s*(?:(?P<id>id)|(?P<title>title)|(?P<slug>slug title)"
    r"|(?:format-)?date \(?now\)? (?P<date>'[^'/\\:]+'|\"[^\"/\\:]+\"))\s*\}\}"
)
_DATE_FORMATS = {"timestamp": "%Y%m%d%H%M", "year": "%Y"}
_ID_LETTERS = {
    "letters": ascii_lowercase,
    "numbers": digits,
    "alphanum": ascii_lowercase + digits,
    "hex": digits + "abcdef",
}
_ID_LENGTHS = range(1, 65)
_ID_LENGTH = 4
_MAX_STEM = 120
_MIN_SAMPLE = 3
_MAX_SETTINGS = 1 << 20
_FOAM_DAILY = re.compile(r'^\s*"foam\.openDailyNote\.directory"\s*:\s*"([^"\n]*)"', re.MULTILINE)
_TRIES = 20  # after that ids get longer, as all short ones may be taken
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_PLACEHOLDER = re.compile(r"\{\{\s*(?P<name>title|date|time)\s*(?::(?P<format>[^}]+))?\}\}")
_DEFAULT_FORMATS = {"date": "YYYY-MM-DD", "time": "HH:mm"}
_TEMPLATES = re.compile(r"(^|/)_?templates?(/|$)", re.IGNORECASE)
# Archive, 99 Archives, _archived; Archiv, archivo, archivio
_ARCHIVES = re.compile(r"(^|/)[\W\d_]*archi(ve[ds]?|v|vos?|vio)(/|$)", re.IGNORECASE)
_TEMPLATE_SETTINGS = (
    (".obsidian/templates.json", "folder", "/"),
    (".obsidian/daily-notes.json", "template", ".md"),
    (".obsidian/plugins/templater-obsidian/data.json", "templates_folder", "/"),
)


@dataclass(frozen=True, slots=True)
class Naming:
    """A naming style: the separator of words, and whether names are lowercase."""

    separator: str = "-"
    lower: bool = True

    def stem(self, title: str, limit: int = MAX_SLUG) -> str:
        """Return the file name for a title, without ``.md``."""
        if self == KEBAB:
            return slugify(title, limit)
        text = re.sub(r"[/\\]", "-", clean_line(title)).replace(": ", " - ").replace(":", "-")
        text = " ".join(_FORBIDDEN.sub("", text).split()).strip(". ")
        if self.lower:
            text = text.casefold()
        if self.separator != " ":
            text = re.sub(r"[^\w.]+", self.separator, text).strip(self.separator)
        return text[:_MAX_STEM].rstrip() or "untitled"


@dataclass(frozen=True, slots=True)
class PageNames(Naming):
    """Logseq's naming of page files: the title, with slashes and special characters escaped."""

    separator: str = " "
    lower: bool = False
    slash: str = "___"

    def stem(self, title: str, limit: int = MAX_SLUG) -> str:
        """Return the file name for a title, without ``.md``."""
        text = " ".join(clean_line(title).split()).strip("/")
        while text:
            escaped = _ESCAPED_IN_PAGES.sub(lambda odd: f"%{ord(odd[0]):02X}", text)
            name = escaped.replace("/", self.slash)
            if len(name) <= max(limit, _MAX_STEM):
                return name
            text = text[:-1].rstrip()
        return "untitled"


KEBAB = Naming()
TITLED = Naming(" ", lower=False)


def naming_of(stem: str) -> Naming | None:
    """Infer the naming style of a file name, or None if it can't be told."""
    dated = DATED.match(stem)
    stem = stem[dated.end() :] if dated else stem
    lower = stem == stem.casefold()
    if " " in stem:
        return TITLED
    for separator in "-_":
        if separator in stem.strip("-_"):
            return Naming(separator, lower)
    return None if lower else TITLED


@dataclass(frozen=True, slots=True)
class FileNames:
    """File names by a zk template with a random id or a date.

    `template` may contain ``{{id}}`` (`length` characters of `letters`), ``{{title}}``,
    ``{{slug title}}`` and ``{{format-date now '%Y-%m-%d'}}``.
    """

    template: str
    letters: str = ascii_lowercase + digits
    length: int = _ID_LENGTH

    @property
    def parts(self) -> set[str]:
        """The kinds of placeholders in the template: id, title, slug, date."""
        return {str(part.lastgroup) for part in _NAME_PARTS.finditer(self.template)}

    def stem(self, title: str, when: datetime, id_: str = "") -> str:
        """Return the file name for a title, with a new id unless one is given."""

        def value(part: re.Match[str]) -> str:
            if part["id"]:
                return id_ or "".join(secrets.choice(self.letters) for _ in range(self.length))
            if part["date"]:
                format_ = part["date"][1:-1]
                return re.sub(r"[/:]", "-", when.strftime(_DATE_FORMATS.get(format_, format_)))
            return slugify(title) if part["slug"] else TITLED.stem(title)

        return _NAME_PARTS.sub(value, self.template)

    def made(self, stem: str) -> bool:
        """Return whether a name matches the template."""
        return self._pattern().fullmatch(stem) is not None

    def id_of(self, stem: str) -> str:
        """Return the id in a name; empty if there is none or it doesn't match the template."""
        found = self._pattern().fullmatch(stem)
        return found["id"] if found and "id" in found.re.groupindex else ""

    def _pattern(self) -> re.Pattern[str]:
        pattern, end = "", 0
        own = f"(?P<id>[{re.escape(self.letters)}]{{{self.length}}})"
        for part in _NAME_PARTS.finditer(self.template):
            kind = own if part["id"] else r"\d[\w .-]*" if part["date"] else ".*"
            pattern += re.escape(self.template[end : part.start()]) + kind
            end = part.end()
        return re.compile(pattern + re.escape(self.template[end:]))


class Content(TypedDict, total=False):
    """The content of a new entry; `body` is its whole text instead of `sections`.

    `head` are the lines of a head that a person gives, without its marks; if `private`, it says so.
    `folder` is relative to the entries (``.`` is their root); without it the habits decide.
    """

    body: str | None
    sections: Mapping[str, str] | None
    tags: Sequence[str]
    related: Sequence[str]
    aliases: Sequence[str]
    sources: Sequence[str]
    summary: str
    folder: str
    head: str
    private: bool


class Habits:
    """The conventions of one workspace; `in_place` means that it is a user's own folder."""

    def __init__(self, layout: Layout, infos: Sequence[EntryInfo]) -> None:
        self._layout = layout
        self._infos = infos
        self.in_place = layout.in_place

    def path_for(self, kind: str, title: str, day: date, folder: str = "", number: int = 1) -> str:
        """Return the path for a new note; a `number` above 1 makes it distinct."""
        folder = self.spelled(folder) if folder else self.folder_for(kind)
        template = self.template_in(folder)
        if template:
            longer = replace(template, length=template.length + number // _TRIES)
            when = datetime.combine(day, local_now().time())
            stem = longer.stem(title, when)
            if number > 1 and "id" not in template.parts:
                stem += f"-{number}"
            return checked_path(f"{_ROOT}{folder}/{stem}.md" if folder else f"{_ROOT}{stem}.md")
        naming = self.naming_in(folder)
        suffix = f"{naming.separator}{number}" if number > 1 else ""
        prefix = f"{day:%Y-%m}-" if kind == "decision" and not self.in_place else ""
        stem = naming.stem(title, MAX_SLUG - len(prefix) - len(suffix))
        name = f"{prefix}{stem}{suffix}.md"
        return checked_path(f"{_ROOT}{folder}/{name}" if folder else f"{_ROOT}{name}")

    def naming_in(self, folder: str) -> Naming:
        """Return the naming style in a folder, or in the workspace if the folder has few notes."""
        if not self.in_place:
            return KEBAB
        if self.is_logseq and f"{folder}/".startswith("pages/"):
            return PageNames(slash=self._slash)
        here = [info.slug for info in self._infos if info.category == folder]
        majority = _majority_naming(here) or _majority_naming(info.slug for info in self._infos)
        return majority or (TITLED if self._dendron is None else KEBAB)

    def template_in(self, folder: str) -> FileNames | None:
        """Return the zk template by which notes in a folder are named, if they are."""
        settings = self._zk_note(folder) if self.in_place else None
        names = _file_names(settings) if settings is not None else None
        if names is None or not names.parts & {"id", "date"}:
            return None
        here = [info.slug for info in self._infos if info.category == folder]
        matching = sum(map(names.made, here))
        return None if len(here) >= _MIN_SAMPLE and matching * 2 < len(here) else names

    def folder_for(self, kind: str) -> str:
        """Return the folder for a new note of a type, relative to the entries."""
        if not self.in_place:
            return ENTRY_TYPES[kind]
        names = {kind.casefold(), ENTRY_TYPES.get(kind, kind).casefold()}
        folders = Counter(info.category for info in self._non_templates())
        named = [each for each in folders if each.rpartition("/")[2].casefold() in names]
        if named:
            return min(named, key=lambda each: (each.count("/"), -folders[each], each))
        typed = Counter(
            info.category for info in self._non_templates() if (info.type or "") == kind
        )
        if typed:
            return max(sorted(typed), key=lambda each: typed[each])
        return self._folder_by_program()

    def _folder_by_program(self) -> str:
        """Return the folder where the user's notes program puts new notes."""
        if self._dendron is not None and self._dendron.folders:
            return self._dendron.folders[0]
        if self.is_logseq:
            return "pages"
        obsidian = self._settings(".obsidian/app.json")
        if obsidian.get("newFileLocation") == "folder":
            return str(obsidian.get("newFileFolderPath", "")).strip("/")
        return ""

    @property
    def keeps_line_breaks(self) -> bool:
        """Whether the user's program shows single line breaks, as Obsidian does by default."""
        if not self.in_place or not (self._layout.root / ".obsidian").is_dir():
            return False
        return self._settings(".obsidian/app.json").get("strictLineBreaks") is not True

    def knows_type(self, kind: str) -> bool:
        """Return whether a type is one of kbtui's, or in place one of the user's own."""
        if kind in ENTRY_TYPES:
            return True
        of_owner = any(info.type == kind for info in self._infos) or self.template_for(kind)
        return self.in_place and bool(of_owner)

    def template_for(self, kind: str) -> str | None:
        """Return the path of the user's template for a type: ``Templates/Meeting Template.md``."""
        if not self.in_place:
            return None
        names = {kind.casefold(), f"{kind} template".casefold()}
        found = (
            info.path
            for info in self._infos
            if info.slug.casefold() in names and self.is_template(info)
        )
        return next(found, None)

    def templates(self) -> list[str]:
        """Return the names by which `template_for` finds the user's templates."""
        slugs = (info.slug for info in self._infos if self.in_place and self.is_template(info))
        return [re.sub(r"(?i)(?<=.) template$", "", slug) for slug in slugs]

    def is_in_use(self, info: EntryInfo) -> bool:
        """Return whether a note is neither a template nor in a folder of archived ones."""
        return not self.is_template(info) and not _ARCHIVES.search(info.category)

    def is_template(self, info: EntryInfo) -> bool:
        """Return whether a note is a template, by its folder or Obsidian's settings."""
        if _TEMPLATES.search(info.category):
            return True
        return info.path.removeprefix(_ROOT).startswith(self._template_prefixes)

    @cached_property
    def _template_prefixes(self) -> tuple[str, ...]:
        """The path prefixes of templates of Obsidian and its plugins."""
        if not self.in_place:
            return ()
        named = ((self._settings(file).get(key), end) for file, key, end in _TEMPLATE_SETTINGS)
        places = ((str(name or "").strip("/").removesuffix(".md"), end) for name, end in named)
        return tuple(f"{place}{end}" for place, end in places if place)

    def daily_note(self, day: date) -> tuple[str, str | None] | None:
        """Return the path of the daily note and of its template; None if the user has none."""
        if not self.in_place:
            return None
        daily = self._obsidian_daily()
        place = self._configured_daily(day, daily) or self._observed_daily(day)
        if place is None:
            return None
        template = str(daily.get("template") or "").strip("/").removesuffix(".md")
        folder, name = place
        below = f"{folder}/{name}" if folder else name
        return checked_path(f"{_ROOT}{below}.md"), f"{_ROOT}{template}.md" if template else None

    def _configured_daily(self, day: date, daily: dict[str, Any]) -> tuple[str, str] | None:
        """Return folder and name of the daily note according to a program's settings."""
        if daily:
            name = moment(day, str(daily.get("format") or "YYYY-MM-DD"))
            return str(daily.get("folder") or "").strip("/"), name
        if self.is_logseq:
            return self._logseq_daily(day)
        if self._dendron is not None and self._dendron.top is not None:
            start, pattern = self._dendron.daily
            return next(iter(self._dendron.folders), ""), start + luxon(day, pattern)
        return self._foam_daily(day) or self._zk_daily(day)

    def _observed_daily(self, day: date) -> tuple[str, str] | None:
        """Return folder and name of the daily note if enough notes are named after days."""
        dated = Counter(i.category for i in self._non_templates() if _DAY.fullmatch(i.slug))
        folder, count = dated.most_common(1)[0] if dated else ("", 0)
        return (folder, f"{day:%Y-%m-%d}") if count >= _MIN_SAMPLE else None

    def _obsidian_daily(self) -> dict[str, object]:
        """Return Obsidian's daily note settings; empty if they were never changed."""
        periodic = self._settings(".obsidian/plugins/periodic-notes/data.json").get("daily")
        if isinstance(periodic, dict) and periodic.get("enabled"):
            return periodic
        if daily := self._settings(".obsidian/daily-notes.json"):
            return daily
        is_on = self._settings(".obsidian/core-plugins.json").get("daily-notes") is True
        dated = any(_DAY.fullmatch(info.slug) for info in self._non_templates())
        return {"format": "YYYY-MM-DD"} if is_on and not dated else {}

    def _logseq_daily(self, day: date) -> tuple[str, str]:
        config = self._text(CONFIG)
        folder = setting(config, "journals-directory") or "journals"
        return folder, luxon(day, setting(config, "journal/file-name-format") or "yyyy_MM_dd")

    def _foam_daily(self, day: date) -> tuple[str, str] | None:
        """Return folder and name of Foam's daily note; its settings are JSON with comments."""
        found = _FOAM_DAILY.search(self._text(".vscode/settings.json"))
        return (found[1].strip("./"), f"{day:%Y-%m-%d}") if found else None

    def _zk_daily(self, day: date) -> tuple[str, str] | None:
        """Return folder and name of zk's daily note, from the group whose names are dates."""
        midnight = datetime.combine(day, datetime.min.time())
        for paths, group in self._zk_groups():
            names = _file_names(table(group, "note"))
            if paths and names and names.parts == {"date"}:
                name = names.stem("", midnight)
                if name != names.stem("", midnight + timedelta(days=1)):
                    return paths[0], name
        return None

    def front(self, day: date) -> Front:
        """Return which optional frontmatter keys a new note gets."""
        if not self.in_place:
            return Front(day)
        dated = sum(info.created is not None for info in self._infos)
        return Front(
            day,
            dates=dated * _MIN_SAMPLE > len(self._infos),
            type=any(info.type for info in self._infos),
            empty=False,
        )

    def entry(self, type_: str, title: str, day: date, content: Content) -> str:
        """Return the text of a new entry; see `render_entry`."""
        body = content.get("body")
        return render_entry(
            type_,
            title,
            front=self.front(day),
            sections=body if body is not None else content.get("sections"),
            tags=content.get("tags", ()),
            related=[self.reference(name) for name in content.get("related", ())],
            aliases=content.get("aliases", ()),
            sources=content.get("sources", ()),
            summary=content.get("summary", ""),
        )

    def reference(self, name: str) -> str:
        """Return an item for ``related``; in place a wikilink, which Obsidian keeps repaired."""
        return f"[[{name}]]" if self.in_place and not name.startswith("[[") else name

    def spelled(self, folder: str) -> str:
        """Return a folder relative to the entries, in the spelling of existing folders.

        ``.`` is their root.
        """
        normal = posixpath.normpath(unicodedata.normalize("NFC", clean_line(folder)).strip("/"))
        if not (self.in_place and self.is_folder(_ROOT[:-1])):
            normal = f"{normal}/".removeprefix(_ROOT).strip("/") or "."
        wanted = "" if normal == "." else normal
        there = {
            each.casefold(): each for info in self._infos for each in _with_parents(info.category)
        }
        for known in _with_parents(wanted):
            if spelled := there.get(known.casefold()):
                wanted = spelled + wanted[len(known) :]
        return wanted

    def split_folder(self, title: str) -> tuple[str, str]:
        """Split ``folder/title`` if the folder exists, or any folder after a leading slash."""
        folder, _, name = title.rpartition("/")
        named = folder.strip("/")
        if name and named and (title.startswith("/") or self.is_folder(named)):
            return named, name.strip()
        return "", title

    def is_folder(self, folder: str) -> bool:
        """Return whether there are entries in a folder or below it."""
        wanted = folder.casefold()
        return any(f"{info.category.casefold()}/".startswith(f"{wanted}/") for info in self._infos)

    @cached_property
    def is_logseq(self) -> bool:
        """Whether this is a Logseq graph, where pages are named by their files in pages/."""
        if not self.in_place:
            return False
        folders = {info.category for info in self._infos}
        return self._has("logseq/config.edn") or {"pages", "journals"} <= folders

    @cached_property
    def _slash(self) -> str:
        """Logseq's escape of a slash in page names, by majority of the pages or its settings."""
        slugs = [info.slug for info in self._infos if info.category == "pages"]
        votes = {sign: sum(sign in slug for slug in slugs) for sign in ("___", "%2F")}
        if votes["___"] != votes["%2F"]:
            return max(votes, key=lambda sign: votes[sign])
        is_legacy = ":file/name-format :legacy" in self._text("logseq/config.edn")
        return "%2F" if is_legacy else "___"

    @cached_property
    def _dendron(self) -> Dendron | None:
        return dendron_at(self._layout.root) if self.in_place else None

    def _non_templates(self) -> Iterable[EntryInfo]:
        return (info for info in self._infos if not self.is_template(info))

    def _has(self, file: str) -> bool:
        return (self._layout.root / file).is_file()

    def _zk(self) -> dict[str, Any] | None:
        """Return the settings of zk, or None if this isn't a zk notebook."""
        try:
            return tomllib.loads((self._layout.root / ".zk/config.toml").read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def _zk_note(self, folder: str) -> dict[str, Any] | None:
        """Return zk's note settings for a folder; those of its group take precedence."""
        settings = self._zk()
        if settings is None:
            return None
        note = dict(table(settings, "note"))
        for paths, group in self._zk_groups():
            if any(folder == path or folder.startswith(f"{path}/") for path in paths):
                note |= table(group, "note")
        return note

    def _zk_groups(self) -> Iterable[tuple[list[str], dict[str, Any]]]:
        for name, group in table(self._zk() or {}, "group").items():
            if isinstance(group, dict):
                paths = group.get("paths", [name])
                named = paths if isinstance(paths, list) else []
                yield [str(path).strip("/") for path in named], group

    def _text(self, file: str) -> str:
        """Return the text of another program's small file; empty if unreadable."""
        try:
            with (self._layout.root / file).open(encoding="utf-8-sig", errors="replace") as stream:
                return stream.read(_MAX_SETTINGS)
        except OSError:
            return ""

    def _settings(self, file: str) -> dict[str, object]:
        try:
            read = json.loads(self._text(file))
        except (ValueError, RecursionError):
            return {}
        return read if isinstance(read, dict) else {}


def filled(template: str, title: str, now: datetime) -> str:
    """Return a template with title and time filled in as Obsidian does."""

    def value(found: re.Match[str]) -> str:
        if found["name"] == "title":
            return title
        return moment(now, found["format"] or _DEFAULT_FORMATS[found["name"]])

    return _PLACEHOLDER.sub(value, template)


def _with_parents(folder: str) -> list[str]:
    """Return a folder and its parents, topmost first."""
    parts = folder.split("/") if folder else []
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _majority_naming(stems: Iterable[str]) -> Naming | None:
    """Return the most frequent naming style; None if too few names show it."""
    votes = Counter(
        found for stem in stems if not _NUMBER.fullmatch(stem) and (found := naming_of(stem))
    )
    ranked = votes.most_common(1)
    return ranked[0][0] if ranked and ranked[0][1] >= _MIN_SAMPLE else None


def hierarchy_of(stem: str) -> str:
    """Return the parent part of a dotted name, with the dot: ``project.``."""
    return stem[: stem.rfind(".") + 1] if _DOTTED.fullmatch(stem) else ""


def is_number(stem: str) -> bool:
    """Return whether a name is only a time or date, independent of the title."""
    return _NUMBER.fullmatch(stem) is not None


def _file_names(note: Mapping[str, Any]) -> FileNames | None:
    """Return the file names that zk's settings define; None if the template is unsupported."""
    template = str(note.get("filename", "{{id}}"))
    rest = _NAME_PARTS.sub("", template)
    charset = str(note.get("id-charset", "alphanum"))
    letters, case = _ID_LETTERS.get(charset, charset), note.get("id-case", "lower")
    if case == "upper":
        letters = letters.upper()
    elif case == "mixed":
        letters = "".join(dict.fromkeys(letters + letters.upper()))
    length = note.get("id-length")
    if not isinstance(length, int) or length not in _ID_LENGTHS:
        length = _ID_LENGTH
    names = FileNames(template, letters, length)
    ids = sum(part.lastgroup == "id" for part in _NAME_PARTS.finditer(template))
    if ids > 1 or _FORBIDDEN.search(rest) or set("{}/\\:") & set(rest):
        return None
    return names if re.fullmatch(r"[\w-]+", letters) else None
