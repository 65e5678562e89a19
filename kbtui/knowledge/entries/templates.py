"""The templates of entry types, and adding text to sections."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from kbtui.knowledge.format.document import read
from kbtui.knowledge.format.yaml_edit import property_text, scalar_text
from kbtui.text import clean_line

ENTRY_TYPES: dict[str, str] = {
    "topic": "topics",
    "person": "people",
    "decision": "decisions",
    "fact": "facts",
    "preference": "preferences",
    "project": "projects",
    "reference": "references",
}
TYPE_OF_FOLDER = {folder: kind for kind, folder in ENTRY_TYPES.items()}
EVOLUTION = "Evolution"
_SECTIONS: dict[str, tuple[str, ...]] = {
    "person": ("Role", "Works on", "Notes"),
    "decision": ("Context", "Decision", "Alternatives considered", EVOLUTION),
    "project": ("Goal", "Status", "People", "Notes"),
    "reference": ("Source", "Key points", "Notes"),
}


def section_names(type_: str | None) -> tuple[str, ...]:
    """Return the headings of a type's template in order; topics and facts have none."""
    return _SECTIONS.get(type_ or "", ())


@dataclass(frozen=True, slots=True)
class Front:
    """The day of a new entry, and which optional frontmatter keys it gets.

    These are the dates, the type, and ``related`` and ``tags`` while they are empty.
    """

    day: date
    dates: bool = True
    type: bool = True
    empty: bool = True


def render_entry(
    type_: str,
    title: str,
    *,
    front: Front,
    sections: Mapping[str, str] | str | None = None,
    tags: Sequence[str] = (),
    related: Sequence[str] = (),
    aliases: Sequence[str] = (),
    sources: Sequence[str] = (),
    summary: str = "",
) -> str:
    """Return the text of a new entry.

    `sections` are texts by heading, written in the order of the type's template, then any others.
    Empty ones are omitted; the one named ``""`` goes above the headings. A string is written below
    the title as it is. With None all headings of the type are written, to be filled in by a person.
    """
    keys: dict[str, tuple[object, Any]] = {
        "type": (front.type, type_),
        "created": (front.dates, front.day),
        "updated": (front.dates, front.day),
        "related": (related or front.empty, list(related)),
        "tags": (tags or front.empty, list(tags)),
        "aliases": (aliases, list(aliases)),
        "sources": (sources, list(sources)),
        "summary": (summary.strip(), clean_line(summary)),
    }
    written = {key: value for key, (is_there, value) in keys.items() if is_there}
    lines = (f"{scalar_text(key)}: {property_text(key, each)}\n" for key, each in written.items())
    head = "".join(lines)
    if isinstance(sections, str):
        text = sections.strip("\n")
    else:
        text = _empty_body(type_) if sections is None else _body(type_, sections)
    if not re.match(r"#[ \t]+\S", text.lstrip()):  # unless it starts with a title
        text = f"# {clean_line(title)}\n\n{text}".rstrip("\n")
    return f"---\n{head}---\n{text}\n" if head else f"{text}\n"


def _with_section(above: str, section: str, below: str, newline: str) -> str:
    gap = "" if not above or above.endswith(newline * 2) else newline
    gap += "" if not above or above.endswith("\n") else newline
    return f"{above}{gap}{section}{newline}{newline if below else ''}{below}"


def append_to_section(text: str, heading: str, line: str, type_: str | None = None) -> str:
    """Append a line to a section; everything else stays as it is.

    A missing section is inserted where the type's template has it: before the sections that follow
    it there, else at the end of the text.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    span = _section_span(text, heading)
    if span is None:
        place = _insertion_offset(text, heading, type_)
        return _with_section(text[:place], f"## {heading}{newline}{line}", text[place:], newline)
    start, end = span
    kept = text[start:end].rstrip()
    tail = text[start + len(kept) : end]
    rest = text[end:]
    if not kept:
        return f"{text[:start].rstrip()}{newline}{line}{newline}{newline if rest else ''}{rest}"
    added = f"{text[: start + len(kept)]}{newline}{line}"
    return f"{added}{tail or newline}{rest}"


def section_text(text: str, heading: str) -> str | None:
    """Return the text below a heading, or None if there is no such heading."""
    span = _section_span(text, heading)
    return text[slice(*span)] if span else None


def without_empty_sections(text: str, type_: str | None) -> str:
    """Blank out the headings of the type's template that have no text below.

    All other lines keep their numbers.
    """
    ours = section_names(type_)
    for section in _sections(text):
        line = text[section.begin : section.start].rstrip("\r\n")
        is_ours = line.startswith("## ") and section.title in ours
        if is_ours and not text[section.start : section.end].strip():
            text = text[: section.begin] + " " * len(line) + text[section.begin + len(line) :]
    return text


class _Section(NamedTuple):
    """A part of a text: where the line of its heading begins, and the text below it."""

    level: int
    title: str
    begin: int
    start: int
    end: int


def _sections(text: str) -> list[_Section]:
    document = read(text)
    starts = [*document.line_starts, len(text)]
    return [
        _Section(each.level, each.title, starts[each.line], starts[each.first], starts[each.stop])
        for each in document.parts
    ]


def _section_span(text: str, heading: str) -> tuple[int, int] | None:
    """Return the start and end of the text below a heading, or None if it is missing."""
    wanted = heading.strip().casefold()
    found = (each for each in _sections(text) if each.title.casefold() == wanted)
    return next(((each.start, each.end) for each in found), None)


def _insertion_offset(text: str, heading: str, type_: str | None) -> int:
    known = [name.casefold() for name in section_names(type_)]
    wanted = heading.strip().casefold()
    later = known[known.index(wanted) + 1 :] if wanted in known else ()
    found = (each for each in _sections(text) if each.level > 1)
    return next((each.begin for each in found if each.title.casefold() in later), len(text))


def _empty_body(type_: str) -> str:
    return "\n\n".join(f"## {name}" for name in section_names(type_))


def _body(type_: str, sections: Mapping[str, str]) -> str:
    given = {name.strip(): text.strip("\n") for name, text in sections.items()}
    by_name = {name.casefold(): text for name, text in given.items()}
    known = {name.casefold(): name for name in ("", *section_names(type_))}
    parts = [(name, by_name.get(folded, "")) for folded, name in known.items()]
    parts += [(name, text) for name, text in given.items() if name.casefold() not in known]
    return "\n\n".join(
        f"## {name}\n{text}" if name else text for name, text in parts if text.strip()
    )
