"""Reads a Markdown body, from where it begins: code, title, first sentence, tags, headings, tasks.

A task is a list item with a box, ``- [ ] buy milk``, found by line and ticked.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple
from urllib.parse import unquote

from kbtui.knowledge.format.lines import fenced
from kbtui.text import clean_line, shorten, slugify

BOM = b"\xef\xbb\xbf"
_OPENING = re.compile(rb"---[ \t]*\r?\n")
_CLOSING = re.compile(rb"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
SUMMARY_WIDTH = 160
_MARKED = r"^ {0,3}#[ \t]+(.*?)[ \t]*#*[ \t]*\r?$"
_UNDERLINED = r"^ {0,3}([^\s#>|+*-][^\r\n]*)\r?\n {0,3}=+[ \t]*\r?$"
_H1 = re.compile(_MARKED, re.MULTILINE)
_ANY_H1 = re.compile(f"{_MARKED}|{_UNDERLINED}", re.MULTILINE)
_TAG = re.compile(r"#(?<!\S#)(?=[\w/-]*[^\W\d_])([\w/-]+)")
_NOT_PROSE = re.compile(
    r"#{1,6}\s|[|!<>%]|[-*_=]{3,}\s*$|\[\^?[^\]]+\]:|\$\$|:::|(?:import|export)\s.*from\s"
)
_BULLET = re.compile(r"\A(?:[-*+]|\d+[.)])\s+(?:\[.\]\s+)?")
_SENTENCE_END = re.compile(r"[.!?。！？](?<!\b[A-Z].)(?<!e\.g.)(?<!i\.e.)(?<!etc.)(?=\s|$)")  # noqa: RUF001


def _label(of_dendron: re.Match[str]) -> str:
    """What a link to a note in a vault says: its label, which comes first, or the note's name."""
    return of_dendron[1] or of_dendron[2]


_MARKUP: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"!\[\[[^\]]*\]\]|!\[[^\]]*\]\([^)]*\)"), ""),
    (re.compile(r"\[\[(?:([^\]|]*)\|)?dendron://[^/\]]*/([^\]#|]*)[^\]|]*\]\]"), _label),
    (re.compile(r"\[\[[^\]|]*\\?\|([^\]]*)\]\]"), r"\1"),
    (re.compile(r"\[\[([^\]#]*)(?:#[^\]]*)?\]\]"), r"\1"),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\[\^[^\]]*\]|<[^<>]*>"), ""),
    (re.compile(r"(\*\*|__|~~|==)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)_(?=\S)([^_]+?)(?<=\S)_(?!\w)"), r"\1"),
    (re.compile(r"`+([^`]*)`+"), r"\1"),
)
_MARKUP_SIGN = re.compile(r"[\[*_`<=~]")
_CODE_MARK = re.compile("`|~~~")
_FENCE = re.compile(r"^[ \t>]*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})(.*)$", re.MULTILINE)
_TICKS = re.compile(r"(?<![\\`])(`+)(?!`)")


@dataclass(frozen=True, slots=True)
class Parts:
    """The five pieces of a document; `opening` is empty where there is no frontmatter."""

    bom: bytes
    opening: bytes
    head: bytes
    closing: bytes
    body: bytes

    @property
    def newline(self) -> str:
        """How the document breaks its lines, by the first line break in it."""
        first = (self.opening or self.body).partition(b"\n")[0]
        return "\r\n" if first.endswith(b"\r") else "\n"

    def join(self) -> bytes:
        """Put the document together again."""
        return self.bom + self.opening + self.head + self.closing + self.body

    def with_head(self, head: str) -> Parts:
        """Make the same document with other frontmatter, adding the block if there was none."""
        mark = f"---{self.newline}".encode()
        return Parts(self.bom, self.opening or mark, head.encode(), self.closing or mark, self.body)


def split(data: bytes) -> Parts:
    """Cut a document into its parts, which join to the same bytes."""
    bom = BOM if data.startswith(BOM) else b""
    opening = _OPENING.match(data, len(bom))
    closing = _CLOSING.search(data, opening.end()) if opening else None
    if opening is None or closing is None:
        return Parts(bom, b"", b"", b"", data[len(bom) :])
    return Parts(
        bom,
        opening.group(),
        data[opening.end() : closing.start()],
        closing.group(),
        data[closing.end() :],
    )


def body_of(text: str) -> str:
    """The text behind the frontmatter."""
    return split(text.encode("utf-8", "surrogatepass")).body.decode("utf-8", "surrogatepass")


def heading_of(body: str) -> str | None:
    """The text of the first first-level heading (``# so``, or underlined), code left out."""
    pattern = _ANY_H1 if "\n=" in body else _H1
    code: CodeRanges | None = None
    for found in pattern.finditer(body):
        if code is None and (mark := _CODE_MARK.search(body)) and mark.start() < found.start():
            code = CodeRanges(body)
        is_code = code is not None and found.start() in code
        if not is_code and (title := plain_line(found[found.lastindex or 0])):
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
    text = text[:2_000]
    if _MARKUP_SIGN.search(text):
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
    for line, is_code in fenced(map(str.strip, body.splitlines())):
        is_prose = line and not is_code and not _NOT_PROSE.match(line)
        if paragraph and (not is_prose or _BULLET.match(line)):
            break
        if is_prose and plain_line(_BULLET.sub("", line, count=1)):
            paragraph.append(line)
            if sum(map(len, paragraph)) > 4 * SUMMARY_WIDTH:
                break
    return " ".join(paragraph)


class CodeRanges:
    """The code in a text; ask ``offset in ranges``."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        if "`" not in text and "~~~" not in text:
            return
        at = 0
        for start, end in [*_fenced(text), (len(text), len(text))]:
            for span in _inline(text, at, start):
                self._add(*span)
            if end > start:
                self._add(start, end)
            at = end

    def __contains__(self, offset: int) -> bool:
        found = bisect_right(self._starts, offset) - 1
        return found >= 0 and offset < self._ends[found]

    def _add(self, start: int, end: int) -> None:
        self._starts.append(start)
        self._ends.append(end)


def _fenced(text: str) -> list[tuple[int, int]]:
    """The fenced blocks; one that is never closed reaches to the end (CommonMark 4.5)."""
    blocks: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for found in _FENCE.finditer(text):
        mark, rest = found.groups()
        if opened is None:
            if mark[0] == "~" or "`" not in rest:
                opened = found
        elif mark[0] == opened[1][0] and len(mark) >= len(opened[1]) and not rest.strip():
            blocks.append((opened.start(), found.end()))
            opened = None
    if opened is not None:
        blocks.append((opened.start(), len(text)))
    return blocks


def _inline(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The code spans between two offsets: equal runs of backticks in one paragraph."""
    spans: list[tuple[int, int]] = []
    runs = list(_TICKS.finditer(text, start, end))
    last = {run[1]: number for number, run in enumerate(runs)}
    at = 0
    while at < len(runs):
        run = runs[at]
        close = at + 1
        # A run that has no equal one behind it needs no search, so the whole stays linear.
        if last[run[1]] > at:
            while runs[close][1] != run[1]:
                close += 1
            if not re.search(r"\n[ \t]*\r?\n", text[run.end() : runs[close].start()]):
                spans.append((run.start(), runs[close].end()))
                at = close + 1
                continue
        at += 1
    return spans


# Headings, and the part of a document that a link to one, or to a block, means --------------------

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(\S[^\r\n]*?)[ \t]*#*[ \t]*\r?$", re.MULTILINE)
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)])[ \t]")


class Heading(NamedTuple):
    """A heading: its level (1 is the highest), its text without markup, and its line (from 1)."""

    level: int
    text: str
    line: int


def headings_of(text: str) -> list[Heading]:
    """The headings of a whole document, in order; what looks like one in code or YAML is none."""
    at = len(text) - len(body_of(text))
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


def shows_title(target: str, written: str) -> bool:
    """True if a link is shown by its entry's title: it has no words, only a path or a slug."""
    own = not target or not written.startswith(target)
    return not own and ("/" in target or target == slugify(target))


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


def _start_of_block(lines: Sequence[str], at: int, name: str) -> int:
    """Where the paragraph, list or table begins that has its ``^name`` in this line."""
    if lines[at].strip() == name:  # the id of a list or table stands below it
        at = next((n for n in range(at - 1, 0, -1) if lines[n].strip()), 0)
    elif _ITEM.match(lines[at]):
        return at
    while at > 0 and lines[at - 1].strip():
        at -= 1
    return at


def part_named(text: str, name: str) -> str:
    """What a link to a heading or ``^block`` means: all below that heading, or that paragraph."""
    line = line_named(text, name)
    if line is None:
        return ""
    lines = text.split("\n")
    if name.startswith("^"):
        return "\n".join(lines[_start_of_block(lines, line - 1, name) : line])
    headings = headings_of(text)
    level = next(each.level for each in headings if each.line == line)
    ends = (each.line for each in headings if each.line > line and each.level <= level)
    return "\n".join(lines[line - 1 : next(ends, len(lines) + 1) - 1])


def _anchor(heading: str) -> str:
    said = unicodedata.normalize("NFC", heading.casefold())
    return re.sub(r"[\W_]+", "-", said).strip("-")


# Tasks --------------------------------------------------------------------------------------------

_TASK = re.compile(
    r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<box>[^\[\]\r\n])\](?=[ \t]+(?P<text>\S[^\r\n]*))",
    re.MULTILINE,
)
_BEGINS = re.compile(r"[ \t>]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|[ \t>]*$)")


class TaskLine(NamedTuple):
    """A task: its line (from 1), what stands in its box, and where that is in the text.

    Besides ``x`` that may be any sign that a theme of Obsidian's gives a meaning to.
    """

    line: int
    mark: str
    text: str
    box: int

    @property
    def is_open(self) -> bool:
        """True for one that is to be done, or half done: ``[/]``."""
        return self.mark in " /"


def tasks_in(text: str) -> Iterator[TaskLine]:
    """The tasks of a text from top to bottom, code left out."""
    code: CodeRanges | None = None
    line, at = 1, 0
    for found in _TASK.finditer(text):
        code = code or CodeRanges(text)
        line, at = line + text.count("\n", at, found.start()), found.start()
        if found.start() not in code:
            yield _task(found, line)


def _task(found: re.Match[str], line: int) -> TaskLine:
    return TaskLine(line, found["box"], found["text"].strip(), found.start("box"))


def task_at(text: str, line: int) -> TaskLine | None:
    """The task that a line belongs to: its own, or that of the item that it goes on."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return None
    first = line
    while first > 1 and not _BEGINS.match(lines[first - 1].rstrip("\r")):
        first -= 1
    start = sum(len(each) + 1 for each in lines[: first - 1])
    found = _TASK.match(text, start)
    return _task(found, first) if found and start not in CodeRanges(text) else None


def ticked(text: str, task: TaskLine) -> str:
    """The text with an empty box ticked, or any other emptied; no other character differs."""
    return f"{text[: task.box]}{'x' if task.mark == ' ' else ' '}{text[task.box + 1 :]}"
