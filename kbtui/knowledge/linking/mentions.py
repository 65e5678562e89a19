"""Mentions: places where a text names an entry without linking to it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from kbtui.knowledge.format.body import body_of
from kbtui.knowledge.format.document import read_body
from kbtui.knowledge.format.links import links_in_body

SHORTEST_NAME = 3
"""The minimum length of a name to search for; shorter ones match by chance."""
_LINK_SYNTAX = re.compile(r"[\[\]|#^\n]")
_URL_OR_EMAIL = re.compile(r"[a-z][a-z+.-]*://\S+|\S+@\S+\.\S+|<[^<>\n]*>", re.IGNORECASE)


class Mention(NamedTuple):
    """A mention: its 1-based line, the text of that line, and the offsets of the name."""

    line: int
    said: str
    start: int
    end: int


def mentions_in(text: str, names: Iterable[str]) -> list[Mention]:
    """Return where a file contains one of the names as whole words.

    Frontmatter, code, links, tags and addresses are ignored.
    """
    pattern = _pattern(names)
    if pattern is None:
        return []
    body = body_of(text)
    above = len(text) - len(body)
    code = read_body(body).code
    taken = [(link.start, link.end) for link in links_in_body(body)]
    taken += [found.span() for found in _URL_OR_EMAIL.finditer(body)]
    found: list[Mention] = []
    for match in pattern.finditer(body):
        start, end = match.span()
        if start in code or any(first < end and start < last for first, last in taken):
            continue
        begin = text.rfind("\n", 0, above + start) + 1
        line_text = text[begin:].partition("\n")[0]
        line = text.count("\n", 0, begin) + 1
        found.append(Mention(line, line_text, above + start, above + end))
    return found


def with_links(text: str, names: Iterable[str], target: str, *, label_first: bool = False) -> str:
    """Turn each mention in a file into a wikilink to `target`, displayed as before.

    `label_first` writes the label before the target, as Dendron does.
    """
    for _line, line_text, start, end in reversed(mentions_in(text, names)):
        written = text[start:end]
        bar = r"\|" if line_text.lstrip().startswith("|") else "|"  # a bare one ends a table cell
        pair = (written, target) if label_first else (target, written)
        link = written if written.casefold() == target.casefold() else bar.join(pair)
        text = f"{text[:start]}[[{link}]]{text[end:]}"
    return text


def searchable_names(names: Iterable[str]) -> list[str]:
    """Return the names that can be searched for, without duplicates, longest first."""
    kept = {name.casefold(): name for name in map(str.strip, names) if _is_searchable(name)}
    return sorted(kept.values(), key=len, reverse=True)


def _is_searchable(name: str) -> bool:
    enough = len(name) >= SHORTEST_NAME or any(map(_is_wide, name))
    return enough and not name.isdigit() and not _LINK_SYNTAX.search(name)


def _pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    alternatives = "|".join(_bounded(name) for name in searchable_names(names))
    return re.compile(alternatives, re.IGNORECASE) if alternatives else None


def _bounded(name: str) -> str:
    """Return a pattern for a whole word, or anywhere in scripts without spaces."""
    before = "" if _is_wide(name[0]) else r"(?<![\w#/@\[])"
    after = "" if _is_wide(name[-1]) else r"(?![\w/\]]|\.\w)"
    return before + re.escape(name) + after


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"
