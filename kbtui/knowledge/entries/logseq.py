"""The titles of days in a Logseq graph, which are written as its settings say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from kbtui.knowledge.entries.day_formats import luxon
from kbtui.knowledge.entries.entry import EntryInfo, page_name

CONFIG = "logseq/config.edn"
_MAX_SETTINGS = 1 << 20
_PARTS = {
    "yyyy": r"(?P<year>\d{4})",
    "MM": r"(?P<month>\d\d)",
    "M": r"(?P<month>\d\d?)",
    "dd": r"(?P<day>\d\d)",
    "d": r"(?P<day>\d\d?)",
}
_PART = re.compile(r"yyyy|MM?(?!M)|dd?(?![do])|[A-Za-z]+|[^A-Za-z]+")


def setting(config: str, name: str) -> str:
    """Return a setting of Logseq's that is a text; empty if it is missing or commented out."""
    found = re.search(rf'^[^;\n]*:{re.escape(name)}\s+"([^"\n]+)"', config, re.MULTILINE)
    return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Journals:
    """Where the days of a graph are: their folder, and the forms of their names and titles."""

    folder: str
    names: re.Pattern[str]
    titles: str

    def titled(self, info: EntryInfo) -> str:
        """Return the title of an entry: as the settings say for a day that has no other."""
        if info.category != self.folder or info.title != page_name(info.slug):
            return info.title
        found = self.names.fullmatch(info.slug)
        try:
            day = (
                date(int(found["year"]), int(found["month"]), int(found["day"])) if found else None
            )
        except ValueError:
            day = None
        return luxon(day, self.titles) if day else info.title


def journals_at(root: Path) -> Journals | None:
    """Return the journals of a graph whose settings say how their titles are written."""
    try:
        with (root / CONFIG).open(encoding="utf-8-sig", errors="replace") as stream:
            config = stream.read(_MAX_SETTINGS)
    except OSError:
        return None
    titles = setting(config, "journal/page-title-format")
    form = setting(config, "journal/file-name-format") or "yyyy_MM_dd"
    parts = [_PARTS.get(part, re.escape(part)) for part in _PART.findall(form)]
    try:
        names = re.compile("".join(parts))
    except re.error:  # a part stands in it twice
        return None
    if not titles or not {"year", "month", "day"} <= names.groupindex.keys():
        return None
    return Journals(setting(config, "journals-directory") or "journals", names, titles)
