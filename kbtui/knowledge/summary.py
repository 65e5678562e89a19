"""Takes from a Markdown body what the catalogue says about it: title, first sentence, tags."""

from __future__ import annotations

import re

from kbtui.knowledge.code_ranges import CodeRanges
from kbtui.text import clean_line, shorten

SUMMARY_WIDTH = 160
_LONGEST_LINE = 2_000
_H1 = re.compile(r"^ {0,3}#[ \t]+(.*?)[ \t]*#*[ \t]*\r?$", re.MULTILINE)
_TAG = re.compile(r"(?<!\S)#(?=[\w/-]*[^\W\d_])([\w/-]+)")
_NOT_PROSE = re.compile(
    r"#{1,6}\s|[|!<>%]|[-*_=]{3,}\s*$|\[\^?[^\]]+\]:|\$\$|:::|(?:import|export)\s.*from\s"
)
_BULLET = re.compile(r"\A(?:[-*+]|\d+[.)])\s+(?:\[.\]\s+)?")
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])(?<!e\.g)(?<!i\.e)(?<!etc)[.!?。！？](?=\s|$)")  # noqa: RUF001
_MARKUP = (
    (re.compile(r"!\[\[[^\]]*\]\]|!\[[^\]]*\]\([^)]*\)"), ""),
    (re.compile(r"\[\[[^\]|]*\\?\|([^\]]*)\]\]"), r"\1"),
    (re.compile(r"\[\[([^\]#]*)(?:#[^\]]*)?\]\]"), r"\1"),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\[\^[^\]]*\]|<[^<>]*>"), ""),
    (re.compile(r"(\*\*|__|~~|==)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)_(?=\S)([^_]+?)(?<=\S)_(?!\w)"), r"\1"),
    (re.compile(r"`+([^`]*)`+"), r"\1"),
)


def heading_of(body: str) -> str | None:
    """The text of the first first-level heading, code left out."""
    match = _H1.search(body)
    if match is None:
        return None
    code = CodeRanges(body)
    for found in _H1.finditer(body):
        if found.start() not in code and (title := plain_line(found[1])):
            return title
    return None


def summary_of(body: str) -> str:
    """The first sentence of the prose, without markup, at most 160 characters."""
    line = _first_prose(body)
    text = plain_line(_BULLET.sub("", line, count=1))
    end = _SENTENCE_END.search(text)
    return shorten(text[: end.end()] if end else text, SUMMARY_WIDTH)


def plain_line(text: str) -> str:
    """One line of Markdown as a reader sees it; what is absurdly long is cut."""
    text = text[:_LONGEST_LINE]
    if any(char in text for char in "[*_`<=~"):
        for pattern, replacement in _MARKUP:
            text = pattern.sub(replacement, text)
    return clean_line(text)


def tags_in_body(body: str) -> list[str]:
    """The ``#tags`` of a body, in order; a tag holds a letter, as in Obsidian."""
    if "#" not in body:
        return []
    code: CodeRanges | None = None
    found: dict[str, None] = {}
    for match in _TAG.finditer(body):
        code = code or CodeRanges(body)
        if match.start() not in code:
            found.setdefault(match[1].strip("/"))
    return list(found)


def _first_prose(body: str) -> str:
    """The first paragraph that is text, joined to one line."""
    paragraph: list[str] = []
    fence = ""
    for raw in body.splitlines():
        line = raw.strip()
        if fence:
            fence = "" if line.startswith(fence) else fence
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
            if paragraph:
                break
        elif not line or _NOT_PROSE.match(line) or (paragraph and _BULLET.match(line)):
            if paragraph:
                break
        elif plain_line(_BULLET.sub("", line, count=1)):
            paragraph.append(line)
            if sum(map(len, paragraph)) > 4 * SUMMARY_WIDTH:
                break
    return " ".join(paragraph)
