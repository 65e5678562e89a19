"""The headings of a document, and the part of it that a link to a heading or block means."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple
from urllib.parse import unquote

from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import CodeRanges, plain_line

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(\S[^\r\n]*?)[ \t]*#*[ \t]*\r?$", re.MULTILINE)
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)])[ \t]")


class Heading(NamedTuple):
    """A heading: its level (1 is the highest), its text without markup, and its line (from 1)."""

    level: int
    text: str
    line: int


def headings_of(text: str) -> list[Heading]:
    """The headings of a whole document, in order; what looks like one in code or YAML is none."""
    parts = frontmatter.split(text.encode("utf-8", "surrogatepass"))
    at = len(text) - len(parts.body.decode("utf-8", "surrogatepass"))
    code = CodeRanges(text)
    line, done = 1, 0
    found: list[Heading] = []
    for match in _HEADING.finditer(text, at):
        if match.start() in code:
            continue
        line, done = line + text.count("\n", done, match.start()), match.start()
        if said := plain_line(match[2]):
            found.append(Heading(len(match[1]), said, line))
    return found


def heading_named(headings: Sequence[Heading], name: str) -> Heading | None:
    """The heading that a link names; of ``A#B`` the last part counts, of Dendron's ``A:#*`` A."""
    wanted = unquote(name).partition(":#")[0].rpartition("#")[2]
    return next((each for each in headings if is_named(wanted, each.text)), None)


def renamed_headings(old: str, new: str) -> dict[str, str]:
    """The headings of a text that read otherwise in a newer one, by what they were.

    One was renamed if another of its level stands in its place, and no other is called so.
    """
    before, after = headings_of(old), headings_of(new)
    known = {_anchor(each.text) for each in before} & {_anchor(each.text) for each in after}
    matcher = SequenceMatcher(None, [h[:2] for h in before], [h[:2] for h in after], False)
    found: dict[str, str] = {}
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        if tag != "replace" or a2 - a1 != b2 - b1:
            continue
        for was, now in zip(before[a1:a2], after[b1:b2], strict=True):
            is_other = known.isdisjoint((_anchor(was.text), _anchor(now.text)))
            if is_other and was.level == now.level and not is_named(was.text, now.text):
                found[was.text] = now.text
    return found


def is_named(name: str, heading: str) -> bool:
    """True if a link to this name means a heading: as its words or as their anchor."""
    return _anchor(name) == _anchor(heading)


def line_named(text: str, name: str) -> int | None:
    """The line (from 1) of what a link names behind its ``#``: a heading, or a ``^block``."""
    if name.startswith("^"):
        block = re.search(rf"(?:^|[ \t]){re.escape(name)}[ \t]*\r?$", text, re.MULTILINE)
        return text.count("\n", 0, block.start()) + 1 if block else None
    heading = heading_named(headings_of(text), name)
    return heading.line if heading else None


def part_named(text: str, name: str) -> str:
    """What a link to a heading or ``^block`` means: all below that heading, or that paragraph."""
    line = line_named(text, name)
    if line is None:
        return ""
    lines = text.split("\n")
    if name.startswith("^"):
        first = line - 1
        if lines[first].strip() == name:  # the id of a list or table stands below it
            first -= 1
            while first > 0 and not lines[first].strip():
                first -= 1
        elif _ITEM.match(lines[first]):
            return lines[first]
        while first > 0 and lines[first - 1].strip():
            first -= 1
        return "\n".join(lines[first:line])
    headings = headings_of(text)
    level = next(each.level for each in headings if each.line == line)
    ends = (each.line for each in headings if each.line > line and each.level <= level)
    return "\n".join(lines[line - 1 : next(ends, len(lines) + 1) - 1])


def _anchor(heading: str) -> str:
    said = unicodedata.normalize("NFC", heading.casefold())
    return re.sub(r"[\W_]+", "-", said).strip("-")
