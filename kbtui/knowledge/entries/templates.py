"""How a new entry of each type looks, and how a section of one grows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from kbtui.knowledge.format.yaml_edit import scalar_text, value_text
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
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*\r?$", re.MULTILINE)


def section_names(type_: str) -> tuple[str, ...]:
    """The headings that an entry of this type starts with; a topic or fact has plain text."""
    return _SECTIONS.get(type_, ())


@dataclass(frozen=True, slots=True)
class Front:
    """The day of a new entry, and the keys that it has beside those that say something.

    These are its dates, its type, and ``related`` and ``tags`` that hold nothing yet.
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
    """Write a new entry.

    `sections` fills headings by name; those of the type that aren't named stay, empty, and names
    that the type doesn't know are added. A section named ``""`` is text above the headings.
    Where `sections` is a text it stands below the title as it is, and no heading is added.
    """
    keys: dict[str, Any] = {"type": type_} if front.type else {}
    keys |= {"created": front.day, "updated": front.day} if front.dates else {}
    keys |= {"related": list(related)} if related or front.empty else {}
    keys |= {"tags": list(tags)} if tags or front.empty else {}
    keys |= {"aliases": list(aliases)} if aliases else {}
    keys |= {"sources": list(sources)} if sources else {}
    keys |= {"summary": clean_line(summary)} if summary.strip() else {}
    head = "".join(f"{scalar_text(key)}: {value_text(value)}\n" for key, value in keys.items())
    if isinstance(sections, str):
        text = sections.strip("\n")
    else:
        text = _body(type_, front.day, sections or {})
    if not re.match(r"#[ \t]+\S", text.lstrip()):  # it begins with its title
        text = f"# {clean_line(title)}\n\n{text}".rstrip("\n")
    return f"---\n{head}---\n{text}\n" if head else f"{text}\n"


def append_to_section(text: str, heading: str, line: str) -> str:
    """Add a line at the end of a section, which is made at the end of the text if missing.

    Everything that is there stays as it is; a ``## Evolution`` section grows this way.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    span = _section_span(text, heading)
    if span is None:
        gap = newline if text.endswith("\n") else newline * 2
        return f"{text}{gap if text else ''}## {heading}{newline}{line}{newline}"
    start, end = span
    kept = text[start:end].rstrip()
    tail = text[start + len(kept) : end]
    rest = text[end:]
    if not kept:
        return f"{text[:start].rstrip()}{newline}{line}{newline}{newline if rest else ''}{rest}"
    added = f"{text[: start + len(kept)]}{newline}{line}"
    return f"{added}{tail or newline}{rest}"


def section_text(text: str, heading: str) -> str | None:
    """The text below a heading, None where there is no such heading."""
    span = _section_span(text, heading)
    return text[slice(*span)] if span else None


def _section_span(text: str, heading: str) -> tuple[int, int] | None:
    """Where the text below a heading starts and ends; None where there is no such heading."""
    wanted = heading.strip().casefold()
    found = list(_HEADING.finditer(text))
    for number, match in enumerate(found):
        if match[2].strip().casefold() == wanted:
            level = len(match[1])
            below = (after for after in found[number + 1 :] if len(after[1]) <= level)
            end = next(below, None)
            return min(match.end() + 1, len(text)), end.start() if end else len(text)
    return None


def _body(type_: str, created: date, sections: Mapping[str, str]) -> str:
    given = {name.strip(): text.strip("\n") for name, text in sections.items()}
    lead = given.pop("", "")
    by_name = {name.casefold(): text for name, text in given.items()}
    known = section_names(type_)
    parts = [lead] if lead else []
    for name in known:
        text = by_name.get(name.casefold(), "")
        if name == EVOLUTION and not text:
            text = f"- {created.isoformat()}: recorded"
        parts.append(f"## {name}\n{text}".rstrip("\n"))
    shown = {name.casefold() for name in known}
    parts += [f"## {name}\n{text}" for name, text in given.items() if name.casefold() not in shown]
    return "\n\n".join(parts)
