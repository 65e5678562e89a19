"""Mentions: places where a text says the name of an entry without linking to it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from kbtui.knowledge.format.body import CodeRanges, body_of
from kbtui.knowledge.format.links import links_in_body

SHORTEST_NAME = 3
"""Characters of the shortest name that is looked for: shorter ones are said by chance."""
_NOT_IN_A_LINK = re.compile(r"[\[\]|#^\n]")
_ADDRESS = re.compile(r"[a-z][a-z+.-]*://\S+|\S+@\S+\.\S+|<[^<>\n]*>", re.IGNORECASE)


class Mention(NamedTuple):
    """A place in a text: its line (from 1), what the line says, and where in the text it is."""

    line: int
    said: str
    start: int
    end: int


def mentions_in(text: str, names: Iterable[str]) -> list[Mention]:
    """The places of a whole file where one of the names is said as words of its own.

    Frontmatter, code, links, tags and addresses aren't looked at.
    """
    pattern = _pattern(names)
    if pattern is None:
        return []
    body = body_of(text)
    above = len(text) - len(body)
    code = CodeRanges(body)
    taken = [(link.start, link.end) for link in links_in_body(body)]
    taken += [found.span() for found in _ADDRESS.finditer(body)]
    found: list[Mention] = []
    for match in pattern.finditer(body):
        start, end = match.span()
        if start in code or any(first < end and start < last for first, last in taken):
            continue
        begin = text.rfind("\n", 0, above + start) + 1
        said = text[begin:].partition("\n")[0]
        line = text.count("\n", 0, begin) + 1
        found.append(Mention(line, said, above + start, above + end))
    return found


def with_links(text: str, names: Iterable[str], target: str, *, label_first: bool = False) -> str:
    """A whole file with each mention as a wikilink to `target` that reads as it did.

    `label_first` writes the label before the target, as Dendron has it.
    """
    for _line, said, start, end in reversed(mentions_in(text, names)):
        written = text[start:end]
        bar = r"\|" if said.lstrip().startswith("|") else "|"  # in a table one ends the cell
        pair = (written, target) if label_first else (target, written)
        link = written if written.casefold() == target.casefold() else bar.join(pair)
        text = f"{text[:start]}[[{link}]]{text[end:]}"
    return text


def sayable(names: Iterable[str]) -> list[str]:
    """The names that can be looked for, each once, the longest first."""
    kept = {name.casefold(): name for name in map(str.strip, names) if _is_sayable(name)}
    return sorted(kept.values(), key=len, reverse=True)


def _is_sayable(name: str) -> bool:
    enough = len(name) >= SHORTEST_NAME or any(map(_is_wide, name))
    return enough and not name.isdigit() and not _NOT_IN_A_LINK.search(name)


def _pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    said = "|".join(_edged(name) for name in sayable(names))
    return re.compile(said, re.IGNORECASE) if said else None


def _edged(name: str) -> str:
    """A name that is no part of a longer word; where words aren't parted by blanks, anywhere."""
    before = "" if _is_wide(name[0]) else r"(?<![\w#/@\[])"
    after = "" if _is_wide(name[-1]) else r"(?![\w/\]]|\.\w)"
    return before + re.escape(name) + after


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"
