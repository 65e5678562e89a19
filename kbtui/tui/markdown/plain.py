"""Single lines of Markdown as the reader shows them, but without styles: in rows, quotes, cards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice

from textual.content import Content, Span

from kbtui.presentation.notes import Named, Names
from kbtui.search.query.parser import SEPARATOR
from kbtui.text import clean
from kbtui.tui.markdown.inline import HAS_MARKUP, LINE_MARKER, InlineBuilder, Links
from kbtui.tui.markdown.syntax import CALLOUT, WIKILINK, LinkRef, parse_line, without_hidden
from kbtui.workspace.layout import entry_path

_CUT_COMMENT = re.compile(r"<!--(?:(?!-->).)*$|^(?:(?!<!--).)*-->")
_BLOCK_MARKS = re.compile(r"(?<=\s)#{2,6}\s+(?=\S)|`{3,}[\w-]*|~{3,}")
"""Marks of headings and fences that a text on one line has in its middle."""
_PAIRED = ("**", "==", "`")
_TABLE_RULE = re.compile(r"[|:\s-]*--[|:\s-]*")
_SEPARATOR = f" {SEPARATOR} "
_MAX_MARKERS = 4  # as of a task in a quote


def named_by_path(names: Names) -> Callable[[LinkRef], Named]:
    """Return the resolver of links that name a note by its path; others are called as written."""

    def resolve(link: LinkRef) -> Named:
        path = entry_path(link.target)
        return names[path] if "/" in link.target and link.kind == "wiki" else Named(path, "")

    return resolve


def as_read(text: str, names: Names | None = None) -> str:
    """Return the words that the reader shows for a line; never empty, unless the line is.

    Markup, comments, tags of HTML and block ids are left out. A link by path is shown as the title
    of its note, looked up in `names`.
    """
    links = Links(named_by_path(names or Names()))
    lines = (
        _SEPARATOR.join(filter(None, (_words(part, links) for part in line.split(_SEPARATOR))))
        for line in clean(_without_comments(text)).split("\n")
    )
    return " ".join(filter(None, lines)) or " ".join(clean(text).split())


def excerpt(
    text: str, matches: Iterable[tuple[int, int]], names: Names | None = None, *, style: str
) -> Content:
    """Return the words of a text as by `as_read`, with those of its spans `matches` styled."""
    shown = as_read(text, names)
    spans = [_span_of(text, start, end, shown, style) for start, end in matches]
    return Content(shown, [span for span in spans if span is not None])


def _without_comments(text: str) -> str:
    """Return a text without its comments, also those that begin before it or end after it."""
    if "--" not in text and "%%" not in text and "^" not in text and "<" not in text:
        return text
    return "\n".join(_CUT_COMMENT.sub("", line) for line in without_hidden(text).split("\n"))


def _words(part: str, links: Links) -> str:
    if part.lstrip().startswith("|") or _TABLE_RULE.fullmatch(part):
        cells = "" if _TABLE_RULE.fullmatch(part) else part.replace("|", " ")
        part = " ".join(cells.split())
    for _ in range(_MAX_MARKERS):
        marker = LINE_MARKER.match(part)
        if marker is None or marker["number"] or not part[marker.end() :].strip():
            break
        part = part[marker.end() :]
    if (callout := CALLOUT.match(part)) is not None:
        part = part[callout.end() :] or callout[1].capitalize()
    part = _BLOCK_MARKS.sub("", part)
    if "[[" in part and not HAS_MARKUP.search(WIKILINK.sub("", part)):
        part = WIKILINK.sub(partial(_link_words, links), part)  # as the parser, ten times as fast
    elif HAS_MARKUP.search(part):
        shown = InlineBuilder(links).walk(parse_line(part)).content().plain
        for mark in _PAIRED:  # an excerpt may begin or end between two of them
            shown = shown.replace(mark, "") if part.count(mark) % 2 else shown
        part = shown
    return " ".join(part.split())


def _link_words(links: Links, match: re.Match[str]) -> str:
    embed, target, heading, alias = match.groups()
    if not target and not heading:
        return match[0]
    ref = LinkRef("wiki", target.strip(), (heading or "")[1:].strip())
    written = alias or " > ".join(filter(None, (ref.target, ref.heading)))
    return ("▣ " if embed else "") + links.label(ref, written.strip())


def _span_of(text: str, start: int, end: int, shown: str, style: str) -> Span | None:
    """Return where a span of the source is shown: the same occurrence of the same words."""
    words = " ".join(text[start:end].split())
    if not words:
        return None
    begins = "" if re.match(r"\w", text[start - 1 : start]) else r"(?<!\w)"
    found = re.compile(begins + re.escape(words), re.IGNORECASE)
    before = sum(1 for _ in found.finditer(text, 0, start))
    missing = sum(1 for _ in found.finditer(text)) - sum(1 for _ in found.finditer(shown))
    at = next(islice(found.finditer(shown), max(0, before - max(0, missing)), None), None)
    return Span(at.start(), at.end(), style) if at is not None else None
