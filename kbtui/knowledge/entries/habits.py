"""How the owner of a folder names notes and where they go, seen from the notes that are there.

kbtui's own layout has names in kebab case, in a folder a type. In somebody's own folder a new note
is called as its neighbours are: by its title, in words joined and in small letters, or in a
notebook of zk's by an id. It goes where notes of its type lie, else where Obsidian, Logseq or the
owner puts new ones.
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

from kbtui.knowledge.entries.dendron import Dendron, dendron_at
from kbtui.knowledge.entries.entry import DATED, EntryInfo, ordinal
from kbtui.knowledge.entries.templates import ENTRY_TYPES, Front, render_entry
from kbtui.text import MAX_SLUG, clean_line, slugify
from kbtui.workspace.files import checked_path
from kbtui.workspace.layout import Layout

_ROOT = "knowledge/"
_NUMBER = re.compile(r"\d{8}|\d{12}|\d{14}|\d{4}[-_]\d{2}([-_]\d{2})?")
_DOTTED = re.compile(r"[^\W_A-Z]+(?:-[^\W_A-Z]+)*(?:\.[^\W_A-Z]+(?:-[^\W_A-Z]+)*)+")
# What no name may hold on one of the systems that notes travel to, or in a link to them.
_ODD_IN_PAGES = re.compile(r'[<>:"\\|?*#%^\[\]]|^\.|\.$')
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
_LONGEST = 120
_FEW = 3
_MOST_SETTINGS = 1 << 20
_FOAM_DAILY = re.compile(r'^\s*"foam\.openDailyNote\.directory"\s*:\s*"([^"\n]*)"', re.MULTILINE)
_TRIES = 20  # then ids get longer, as all short ones may be taken
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_PLACEHOLDER = re.compile(r"\{\{\s*(?P<name>title|date|time)\s*(?::(?P<format>[^}]+))?\}\}")
_DEFAULT_FORMATS = {"date": "YYYY-MM-DD", "time": "HH:mm"}
_MOMENT = re.compile(
    r"\[([^\]]*)\]|YYYY|YY|MMMM|MMM|MM|M|DDDD|Do|DD|D|dddd|ddd|gggg|GGGG|HH|hh|mm|ss|ww|WW|w|W|Q|A"
)
_TEMPLATES = re.compile(r"(^|/)_?templates?(/|$)", re.IGNORECASE)
_OF_TEMPLATES = (
    (".obsidian/templates.json", "folder", "/"),
    (".obsidian/daily-notes.json", "template", ".md"),
    (".obsidian/plugins/templater-obsidian/data.json", "templates_folder", "/"),
)


@dataclass(frozen=True, slots=True)
class Naming:
    """A way of making a name of a title: how words are parted, and whether in small letters."""

    separator: str = "-"
    lower: bool = True

    def stem(self, title: str, most: int = MAX_SLUG) -> str:
        """The name for a title, without ``.md``."""
        if self == KEBAB:
            return slugify(title, most)
        text = re.sub(r"[/\\]", "-", clean_line(title)).replace(": ", " - ").replace(":", "-")
        text = " ".join(_FORBIDDEN.sub("", text).split()).strip(". ")
        if self.lower:
            text = text.casefold()
        if self.separator != " ":
            text = re.sub(r"[^\w.]+", self.separator, text).strip(self.separator)
        return text[:_LONGEST].rstrip() or "untitled"


@dataclass(frozen=True, slots=True)
class PageNames(Naming):
    """How Logseq names the file of a page: by its title, whose slash and odd signs are escaped."""

    separator: str = " "
    lower: bool = False
    slash: str = "___"

    def stem(self, title: str, most: int = MAX_SLUG) -> str:
        """The name for a title, without ``.md``."""
        said = " ".join(clean_line(title).split()).strip("/")
        while said:
            escaped = _ODD_IN_PAGES.sub(lambda odd: f"%{ord(odd[0]):02X}", said)
            name = escaped.replace("/", self.slash)
            if len(name) <= max(most, _LONGEST):
                return name
            said = said[:-1].rstrip()
        return "untitled"


KEBAB = Naming()
TITLED = Naming(" ", lower=False)


def naming_of(stem: str) -> Naming | None:
    """The way in which a name was made; None where it doesn't show."""
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
    """A way of making names by a template of zk's, which holds an id made at random, or a date.

    In `template` stand ``{{id}}``, of so many `letters`, ``{{title}}``, ``{{slug title}}`` and
    ``{{format-date now '%Y-%m-%d'}}``.
    """

    template: str
    letters: str = ascii_lowercase + digits
    length: int = _ID_LENGTH

    @property
    def parts(self) -> set[str]:
        """The kinds of what it holds: id, title, slug, date."""
        return {str(part.lastgroup) for part in _NAME_PARTS.finditer(self.template)}

    def stem(self, title: str, when: datetime, id_: str = "") -> str:
        """The name for a title, with a new id unless one is given."""

        def value(part: re.Match[str]) -> str:
            if part["id"]:
                return id_ or "".join(secrets.choice(self.letters) for _ in range(self.length))
            if part["date"]:
                format_ = part["date"][1:-1]
                return re.sub(r"[/:]", "-", when.strftime(_DATE_FORMATS.get(format_, format_)))
            return slugify(title) if part["slug"] else TITLED.stem(title)

        return _NAME_PARTS.sub(value, self.template)

    def made(self, stem: str) -> bool:
        """True for a name that may have been made so."""
        return self._pattern().fullmatch(stem) is not None

    def id_of(self, stem: str) -> str:
        """The id in a name; empty where it wasn't made so, or there is none."""
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
    """Content of a new entry; `body` is its whole text, in place of `sections`.

    `folder` is where it goes, from the entries on (``.`` the topmost one); without one the habits
    say it.
    """

    body: str | None
    sections: Mapping[str, str] | None
    tags: Sequence[str]
    related: Sequence[str]
    aliases: Sequence[str]
    sources: Sequence[str]
    summary: str
    folder: str


class Habits:
    """The habits of one workspace; `in_place`: it is somebody's own folder."""

    def __init__(self, layout: Layout, infos: Sequence[EntryInfo]) -> None:
        self._layout = layout
        self._infos = infos
        self.in_place = layout.in_place

    def path_for(self, kind: str, title: str, day: date, folder: str = "", number: int = 1) -> str:
        """The path for a new note; a `number` above 1 tells it from others of that title."""
        folder = self.spelled(folder) if folder else self.folder_for(kind)
        template = self.template_in(folder)
        if template:
            longer = replace(template, length=template.length + number // _TRIES)
            when = datetime.combine(day, datetime.now().astimezone().time())
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
        """How notes in a folder are named, or if it has only few, those of the workspace."""
        if not self.in_place:
            return KEBAB
        if self.is_logseq and f"{folder}/".startswith("pages/"):
            return PageNames(slash=self._slash)
        here = [info.slug for info in self._infos if info.category == folder]
        shown = _most(here) or _most(info.slug for info in self._infos)
        return shown or (TITLED if self._dendron is None else KEBAB)

    def template_in(self, folder: str) -> FileNames | None:
        """How notes in a folder are named if by a template, as zk's settings and they show."""
        settings = self._zk_note(folder) if self.in_place else None
        names = _file_names(settings) if settings is not None else None
        if names is None or not names.parts & {"id", "date"}:
            return None
        here = [info.slug for info in self._infos if info.category == folder]
        made = sum(map(names.made, here))
        return None if len(here) >= _FEW and made * 2 < len(here) else names

    def folder_for(self, kind: str) -> str:
        """Where a new note of a type goes, from the folder of the entries on."""
        if not self.in_place:
            return ENTRY_TYPES[kind]
        names = {kind.casefold(), ENTRY_TYPES.get(kind, kind).casefold()}
        folders = Counter(info.category for info in self._own())
        named = [each for each in folders if each.rpartition("/")[2].casefold() in names]
        if named:
            return min(named, key=lambda each: (each.count("/"), -folders[each], each))
        typed = Counter(info.category for info in self._own() if (info.type or "") == kind)
        if typed:
            return max(sorted(typed), key=lambda each: typed[each])
        return self._folder_by_program()

    def _folder_by_program(self) -> str:
        """Where the program that a folder is used with puts new notes."""
        if self._dendron is not None and self._dendron.folders:
            return self._dendron.folders[0]
        if self.is_logseq:
            return "pages"
        obsidian = self._settings(".obsidian/app.json")
        if obsidian.get("newFileLocation") == "folder":
            return str(obsidian.get("newFileFolderPath", "")).strip("/")
        return ""

    def knows_type(self, kind: str) -> bool:
        """True for a type of ours, and in place for each of the owner's own."""
        if kind in ENTRY_TYPES:
            return True
        of_owner = any(info.type == kind for info in self._infos) or self.template_for(kind)
        return self.in_place and bool(of_owner)

    def template_for(self, kind: str) -> str | None:
        """The path of the owner's template for a type: ``Templates/Meeting Template.md``."""
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
        """The names by which `template_for` knows the owner's templates."""
        slugs = (info.slug for info in self._infos if self.in_place and self.is_template(info))
        return [re.sub(r"(?i)(?<=.) template$", "", slug) for slug in slugs]

    def is_template(self, info: EntryInfo) -> bool:
        """True for a note that new ones are made of, as its folder or Obsidian's settings say."""
        if _TEMPLATES.search(info.category):
            return True
        return info.path.removeprefix(_ROOT).startswith(self._template_places)

    @cached_property
    def _template_places(self) -> tuple[str, ...]:
        """How the paths of what Obsidian, and what plugs into it, makes notes of begin."""
        if not self.in_place:
            return ()
        named = ((self._settings(file).get(key), end) for file, key, end in _OF_TEMPLATES)
        places = ((str(name or "").strip("/").removesuffix(".md"), end) for name, end in named)
        return tuple(f"{place}{end}" for place, end in places if place)

    def daily_note(self, day: date) -> tuple[str, str | None] | None:
        """Where the owner's note of a day lies, and the path of its template; None: has none."""
        if not self.in_place:
            return None
        daily = self._obsidian_daily()
        place = self._told_daily(day, daily) or self._usual_daily(day)
        if place is None:
            return None
        template = str(daily.get("template") or "").strip("/").removesuffix(".md")
        folder, name = place
        below = f"{folder}/{name}" if folder else name
        return checked_path(f"{_ROOT}{below}.md"), f"{_ROOT}{template}.md" if template else None

    def _told_daily(self, day: date, daily: dict[str, Any]) -> tuple[str, str] | None:
        """Folder and name of the note of a day as a program's settings say it."""
        if daily:
            name = moment(day, str(daily.get("format") or "YYYY-MM-DD"))
            return str(daily.get("folder") or "").strip("/"), name
        if self.is_logseq:
            return self._logseq_daily(day)
        if self._dendron is not None and self._dendron.top is not None:
            start, pattern = self._dendron.daily
            return next(iter(self._dendron.folders), ""), start + luxon(day, pattern)
        return self._foam_daily(day) or self._zk_daily(day)

    def _usual_daily(self, day: date) -> tuple[str, str] | None:
        """The same where enough notes are called after days."""
        dated = Counter(i.category for i in self._own() if _DAY.fullmatch(i.slug))
        folder, count = dated.most_common(1)[0] if dated else ("", 0)
        return (folder, f"{day:%Y-%m-%d}") if count >= _FEW else None

    def _obsidian_daily(self) -> dict[str, object]:
        """Obsidian's settings of daily notes; where they were never changed, there may be none."""
        periodic = self._settings(".obsidian/plugins/periodic-notes/data.json").get("daily")
        if isinstance(periodic, dict) and periodic.get("enabled"):
            return periodic
        if daily := self._settings(".obsidian/daily-notes.json"):
            return daily
        is_on = self._settings(".obsidian/core-plugins.json").get("daily-notes") is True
        dated = any(_DAY.fullmatch(info.slug) for info in self._own())
        return {"format": "YYYY-MM-DD"} if is_on and not dated else {}

    def _logseq_daily(self, day: date) -> tuple[str, str]:
        """Folder and name of Logseq's journal of a day."""
        config = self._text("logseq/config.edn")
        folder = re.search(r'^[^;\n]*:journals-directory\s+"([^"\n]+)"', config, re.MULTILINE)
        name = re.search(r'^[^;\n]*:journal/file-name-format\s+"([^"\n]+)"', config, re.MULTILINE)
        return folder[1] if folder else "journals", luxon(day, name[1] if name else "yyyy_MM_dd")

    def _foam_daily(self, day: date) -> tuple[str, str] | None:
        """Folder and name of Foam's note of a day, where the settings (with comments) say it."""
        found = _FOAM_DAILY.search(self._text(".vscode/settings.json"))
        return (found[1].strip("./"), f"{day:%Y-%m-%d}") if found else None

    def _zk_daily(self, day: date) -> tuple[str, str] | None:
        """Folder and name of the note of a day, in the group of zk's that names notes by days."""
        midnight = datetime.combine(day, datetime.min.time())
        for paths, group in self._zk_groups():
            names = _file_names(_table(group, "note"))
            if paths and names and names.parts == {"date"}:
                name = names.stem("", midnight)
                if name != names.stem("", midnight + timedelta(days=1)):
                    return paths[0], name
        return None

    def front(self, day: date) -> Front:
        """What the frontmatter of a new note says beside what there is to say."""
        if not self.in_place:
            return Front(day)
        dated = sum(info.created is not None for info in self._infos)
        return Front(
            day,
            dates=dated * _FEW > len(self._infos),
            type=any(info.type for info in self._infos),
            empty=False,
        )

    def entry(self, type_: str, title: str, day: date, content: Content) -> str:
        """A new entry, as `render_entry` writes it."""
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
        """An item of ``related``; in somebody's own folder one that Obsidian repairs."""
        return f"[[{name}]]" if self.in_place and not name.startswith("[[") else name

    def spelled(self, folder: str) -> str:
        """A folder as somebody named it, from the entries on, written as it is where it is there.

        ``.`` is the topmost one.
        """
        normal = posixpath.normpath(unicodedata.normalize("NFC", clean_line(folder)).strip("/"))
        if not (self.in_place and self.is_folder(_ROOT[:-1])):
            normal = f"{normal}/".removeprefix(_ROOT).strip("/") or "."
        wanted = "" if normal == "." else normal
        there = {each.casefold(): each for info in self._infos for each in _above(info.category)}
        for known in _above(wanted):
            if spelled := there.get(known.casefold()):
                wanted = spelled + wanted[len(known) :]
        return wanted

    def apart(self, title: str) -> tuple[str, str]:
        """Folder and title, where a folder that is there, or any after a slash, is named first."""
        folder, _, name = title.rpartition("/")
        named = folder.strip("/")
        if name and named and (title.startswith("/") or self.is_folder(named)):
            return named, name.strip()
        return "", title

    def is_folder(self, folder: str) -> bool:
        """True if there are entries in a folder, or below it."""
        wanted = folder.casefold()
        return any(f"{info.category.casefold()}/".startswith(f"{wanted}/") for info in self._infos)

    @cached_property
    def is_logseq(self) -> bool:
        """True for a graph of Logseq's, where a page is called by its file and lies in pages/."""
        if not self.in_place:
            return False
        folders = {info.category for info in self._infos}
        return self._has("logseq/config.edn") or {"pages", "journals"} <= folders

    @cached_property
    def _slash(self) -> str:
        """What Logseq writes for a slash in the name of a page, by its settings or the pages."""
        slugs = [info.slug for info in self._infos if info.category == "pages"]
        votes = {sign: sum(sign in slug for slug in slugs) for sign in ("___", "%2F")}
        if votes["___"] != votes["%2F"]:
            return max(votes, key=lambda sign: votes[sign])
        is_legacy = ":file/name-format :legacy" in self._text("logseq/config.edn")
        return "%2F" if is_legacy else "___"

    @cached_property
    def _dendron(self) -> Dendron | None:
        return dendron_at(self._layout.root) if self.in_place else None

    def _own(self) -> Iterable[EntryInfo]:
        return (info for info in self._infos if not self.is_template(info))

    def _has(self, file: str) -> bool:
        return (self._layout.root / file).is_file()

    def _zk(self) -> dict[str, Any] | None:
        """The settings of zk; None: this is no notebook of zk's."""
        try:
            return tomllib.loads((self._layout.root / ".zk/config.toml").read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def _zk_note(self, folder: str) -> dict[str, Any] | None:
        """What zk's settings say of new notes in a folder, those of its group before the others."""
        settings = self._zk()
        if settings is None:
            return None
        note = dict(_table(settings, "note"))
        for paths, group in self._zk_groups():
            if any(folder == path or folder.startswith(f"{path}/") for path in paths):
                note |= _table(group, "note")
        return note

    def _zk_groups(self) -> Iterable[tuple[list[str], dict[str, Any]]]:
        for name, group in _table(self._zk() or {}, "group").items():
            if isinstance(group, dict):
                paths = group.get("paths", [name])
                named = paths if isinstance(paths, list) else []
                yield [str(path).strip("/") for path in named], group

    def _text(self, file: str) -> str:
        """A small file of another program's; empty where it can't be read."""
        try:
            with (self._layout.root / file).open(encoding="utf-8-sig", errors="replace") as stream:
                return stream.read(_MOST_SETTINGS)
        except OSError:
            return ""

    def _settings(self, file: str) -> dict[str, object]:
        try:
            read = json.loads(self._text(file))
        except (ValueError, RecursionError):
            return {}
        return read if isinstance(read, dict) else {}


def filled(template: str, title: str, now: datetime) -> str:
    """The text of a template with the title and the time in it, as Obsidian fills them in."""

    def value(found: re.Match[str]) -> str:
        if found["name"] == "title":
            return title
        return moment(now, found["format"] or _DEFAULT_FORMATS[found["name"]])

    return _PLACEHOLDER.sub(value, template)


def moment(when: date, pattern: str) -> str:
    """A time written in a pattern of moment.js, such as ``YYYY-MM-DD dddd``."""
    values = {
        "YYYY": f"{when:%Y}",
        "YY": f"{when:%y}",
        "MMMM": f"{when:%B}",
        "MMM": f"{when:%b}",
        "MM": f"{when:%m}",
        "M": str(when.month),
        "Do": ordinal(when.day),
        "DDDD": f"{when:%j}",
        "DD": f"{when:%d}",
        "D": str(when.day),
        "Q": str((when.month + 2) // 3),
        "gggg": f"{when:%G}",
        "GGGG": f"{when:%G}",
        "dddd": f"{when:%A}",
        "ddd": f"{when:%a}",
        "HH": f"{when:%H}",
        "hh": f"{when:%I}",
        "A": f"{when:%p}",
        "mm": f"{when:%M}",
        "ss": f"{when:%S}",
        "ww": f"{when:%V}",
        "w": str(when.isocalendar().week),
        "WW": f"{when:%V}",
        "W": str(when.isocalendar().week),
    }
    return _MOMENT.sub(lambda found: values[found[0]] if found[1] is None else found[1], pattern)


def luxon(when: date, pattern: str) -> str:
    """A time written in a pattern of Java's or luxon's, such as ``yyyy_MM_dd``."""
    as_moment = re.sub(r"y+", lambda years: "YY" if years[0] == "yy" else "YYYY", pattern)
    as_moment = as_moment.replace("do", "Do").replace("dd", "DD")
    return moment(when, as_moment.replace("EEEE", "dddd").replace("EEE", "ddd"))


def _above(folder: str) -> list[str]:
    """A folder and those that it lies in, the topmost first."""
    parts = folder.split("/") if folder else []
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _most(stems: Iterable[str]) -> Naming | None:
    """The way in which most of the names were made; None where too few show one."""
    votes = Counter(
        found for stem in stems if not _NUMBER.fullmatch(stem) and (found := naming_of(stem))
    )
    ranked = votes.most_common(1)
    return ranked[0][0] if ranked and ranked[0][1] >= _FEW else None


def hierarchy_of(stem: str) -> str:
    """The part of a dotted name that stands for its folder, with the dot: ``project.``."""
    return stem[: stem.rfind(".") + 1] if _DOTTED.fullmatch(stem) else ""


def is_number(stem: str) -> bool:
    """True for a name that is only a time or a date, which doesn't follow the title."""
    return _NUMBER.fullmatch(stem) is not None


def _table(settings: dict[str, Any], key: str) -> dict[str, Any]:
    found = settings.get(key)
    return found if isinstance(found, dict) else {}


def _file_names(note: dict[str, Any]) -> FileNames | None:
    """How zk names notes; None where its template is none that can be followed."""
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
