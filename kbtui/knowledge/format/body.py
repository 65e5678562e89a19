"""Parsing of Markdown bodies: where they begin, code, title, summary, tags, headings, tasks.

A task is a list item with a checkbox, ``- [ ] buy milk``.
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
_ATX_H1 = r"^ {0,3}#[ \t]+(.*?)[ \t]*#*[ \t]*\r?$"
_SETEXT_H1 = r"^ {0,3}([^\s#>|+*-][^\r\n]*)\r?\n {0,3}=+[ \t]*\r?$"
_H1 = re.compile(_ATX_H1, re.MULTILINE)
_ANY_H1 = re.compile(f"{_ATX_H1}|{_SETEXT_H1}", re.MULTILINE)
_TAG = re.compile(r"#(?<!\S#)(?=[\w/-]*[^\W\d_])([\w/-]+)")
_NON_PROSE = re.compile(
    r"#{1,6}\s|[|!<>%]|[-*_=]{3,}\s*$|\[\^?[^\]]+\]:|\$\$|:::|(?:import|export)\s.*from\s"
)
_BULLET = re.compile(r"\A(?:[-*+]|\d+[.)])\s+(?:\[.\]\s+)?")
_SENTENCE_END = re.compile(r"[.!?。！？](?<!\b[A-Z].)(?<!e\.g.)(?<!i\.e.)(?<!etc.)(?=\s|$)")  # noqa: RUF001


def _dendron_label(found: re.Match[str]) -> str:
    """Return the text of a Dendron link: its label, which comes first, or the note's name."""
    return found[1] or found[2]


_MARKUP: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"!\[\[[^\]]*\]\]|!\[[^\]]*\]\([^)]*\)"), ""),
    (re.compile(r"\[\[(?:([^\]|]*)\|)?dendron://[^/\]]*/([^\]#|]*)[^\]|]*\]\]"), _dendron_label),
    (re.compile(r"\[\[[^\]|]*\\?\|([^\]]*)\]\]"), r"\1"),
    (re.compile(r"\[\[([^\]#]*)(?:#[^\]]*)?\]\]"), r"\1"),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\[\^[^\]]*\]|<[^<>]*>"), ""),
    (re.compile(r"(\*\*|__|~~|==)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)_(?=\S)([^_]+?)(?<=\S)_(?!\w)"), r"\1"),
    (re.compile(r"`+([^`]*)`+"), r"\1"),
)
_MARKUP_CHARACTER = re.compile(r"[\[*_`<=~]")
_CODE_MARK = re.compile("`|~~~")
_CODE_FENCE = re.compile(r"^[ \t>]*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})(.*)$", re.MULTILINE)
_BACKTICKS = re.compile(r"(?<![\\`])(`+)(?!`)")


@dataclass(frozen=True, slots=True)
class Parts:
    """The five parts of a document; `opening` is empty if it has no frontmatter."""

    bom: bytes
    opening: bytes
    head: bytes
    closing: bytes
    body: bytes

    @property
    def newline(self) -> str:
        """The line ending of the document, taken from its first line."""
        first = (self.opening or self.body).partition(b"\n")[0]
        return "\r\n" if first.endswith(b"\r") else "\n"

    def join(self) -> bytes:
        """Return the document's bytes."""
        return self.bom + self.opening + self.head + self.closing + self.body

    def with_head(self, head: str) -> Parts:
        """Return the document with its frontmatter replaced, or added if there was none."""
        mark = f"---{self.newline}".encode()
        return Parts(self.bom, self.opening or mark, head.encode(), self.closing or mark, self.body)


def split(data: bytes) -> Parts:
    """Split a document into parts that join to the same bytes."""
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
    """Return the text after the frontmatter."""
    return split(text.encode("utf-8", "surrogatepass")).body.decode("utf-8", "surrogatepass")


def heading_of(body: str) -> str | None:
    """Return the text of the first H1 outside code (``# so``, or underlined with ``=``)."""
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
    """Return the first sentence of the prose without markup, at most 160 characters."""
    line = _first_prose(body)
    text = plain_line(_BULLET.sub("", line, count=1))
    end = _SENTENCE_END.search(text)
    return shorten(text[: end.end()] if end else text, SUMMARY_WIDTH)


def plain_line(text: str) -> str:
    """Return a line of Markdown without markup, cut at 2,000 characters."""
    text = text[:2_000]
    if _MARKUP_CHARACTER.search(text):
        for pattern, replacement in _MARKUP:
            text = pattern.sub(replacement, text)
    return clean_line(text)


def tags_in_body(body: str) -> list[str]:
    """Return the ``#tags`` of a body in order; as in Obsidian, a tag contains a letter."""
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
    """Return the first paragraph of prose, joined to one line."""
    paragraph: list[str] = []
    for line, is_code in fenced(map(str.strip, body.splitlines())):
        is_prose = line and not is_code and not _NON_PROSE.match(line)
        if paragraph and (not is_prose or _BULLET.match(line)):
            break
        if is_prose and plain_line(_BULLET.sub("", line, count=1)):
            paragraph.append(line)
            if sum(map(len, paragraph)) > 4 * SUMMARY_WIDTH:
                break
    return " ".join(paragraph)


class CodeRanges:
    """The ranges of code in a text; test with ``offset in ranges``."""

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
    """Return the fenced blocks; an unclosed one extends to the end (CommonMark 4.5)."""
    blocks: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for found in _CODE_FENCE.finditer(text):
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
    """Return the code spans between two offsets: equal backtick runs in one paragraph."""
    spans: list[tuple[int, int]] = []
    runs = list(_BACKTICKS.finditer(text, start, end))
    last = {run[1]: number for number, run in enumerate(runs)}
    at = 0
    while at < len(runs):
        run = runs[at]
        close = at + 1
        # A run without a later equal one isn't searched for, which keeps this linear.
        if last[run[1]] > at:
            while runs[close][1] != run[1]:
                close += 1
            if not re.search(r"\n[ \t]*\r?\n", text[run.end() : runs[close].start()]):
                spans.append((run.start(), runs[close].end()))
                at = close + 1
                continue
        at += 1
    return spans


# Headings, and the sections and blocks that links refer to ----------------------------------------

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(\S[^\r\n]*?)[ \t]*#*[ \t]*\r?$", re.MULTILINE)
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)])[ \t]")


class Heading(NamedTuple):
    """A heading: its level (1 is the top), text without markup, and 1-based line."""

    level: int
    text: str
    line: int


def headings_of(text: str) -> list[Heading]:
    """Return the headings of a whole document in order, ignoring code and frontmatter."""
    at = len(text) - len(body_of(text))
    code = CodeRanges(text)
    line, done = 1, 0
    found: list[Heading] = []
    for match in _HEADING.finditer(text, at):
        if match.start() in code:
            continue
        line, done = line + text.count("\n", done, match.start()), match.start()
        if title := plain_line(match[2]):
            found.append(Heading(len(match[1]), title, line))
    return found


def heading_named(headings: Sequence[Heading], name: str) -> Heading | None:
    """Find the heading a link names: ``B`` for ``A#B``, ``A`` for Dendron's ``A:#*``."""
    wanted = unquote(name).partition(":#")[0].rpartition("#")[2]
    return next((each for each in headings if is_named(wanted, each.text)), None)


def renamed_headings(old: str, new: str) -> dict[str, str]:
    """Return the headings that were renamed between two texts, new text by old.

    A heading counts as renamed if another of its level took its place and neither name occurs in
    both texts.
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
    """Return whether a link is displayed as its entry's title, being just a path or slug."""
    own = not target or not written.startswith(target)
    return not own and ("/" in target or target == slugify(target))


def is_named(name: str, heading: str) -> bool:
    """Return whether a name refers to a heading, by its text or its anchor."""
    return _anchor(name) == _anchor(heading)


def line_named(text: str, name: str) -> int | None:
    """Return the 1-based line of the heading or ``^block`` a link names after its ``#``."""
    if name.startswith("^"):
        block = re.search(rf"(?:^|[ \t]){re.escape(name)}[ \t]*\r?$", text, re.MULTILINE)
        return text.count("\n", 0, block.start()) + 1 if block else None
    heading = heading_named(headings_of(text), name)
    return heading.line if heading else None


def _block_start(lines: Sequence[str], at: int, name: str) -> int:
    """Return the first line of the paragraph, list or table whose ``^name`` is on line `at`."""
    if lines[at].strip() == name:  # the id of a list or table is on a line below it
        at = next((n for n in range(at - 1, 0, -1) if lines[n].strip()), 0)
    elif _ITEM.match(lines[at]):
        return at
    while at > 0 and lines[at - 1].strip():
        at -= 1
    return at


def part_named(text: str, name: str) -> str:
    """Return the section below a heading, or the paragraph of a ``^block``; empty if missing."""
    line = line_named(text, name)
    if line is None:
        return ""
    lines = text.split("\n")
    if name.startswith("^"):
        return "\n".join(lines[_block_start(lines, line - 1, name) : line])
    headings = headings_of(text)
    level = next(each.level for each in headings if each.line == line)
    ends = (each.line for each in headings if each.line > line and each.level <= level)
    return "\n".join(lines[line - 1 : next(ends, len(lines) + 1) - 1])


def _anchor(heading: str) -> str:
    folded = unicodedata.normalize("NFC", heading.casefold())
    return re.sub(r"[\W_]+", "-", folded).strip("-")


# Tasks --------------------------------------------------------------------------------------------

_TASK = re.compile(
    r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<box>[^\[\]\r\n])\](?=[ \t]+(?P<text>\S[^\r\n]*))",
    re.MULTILINE,
)
_BLOCK_START = re.compile(r"[ \t>]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|[ \t>]*$)")


class TaskLine(NamedTuple):
    """A task: its 1-based line, the mark in its checkbox, and the offset of that mark.

    Besides ``x`` the mark may be any character that an Obsidian theme gives a meaning.
    """

    line: int
    mark: str
    text: str
    box: int

    @property
    def is_open(self) -> bool:
        """Whether the task is still to be done, or half done: ``[/]``."""
        return self.mark in " /"


def tasks_in(text: str) -> Iterator[TaskLine]:
    """Yield the tasks of a text from top to bottom, ignoring code."""
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
    """Return the task on a line, or the one whose list item the line continues."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return None
    first = line
    while first > 1 and not _BLOCK_START.match(lines[first - 1].rstrip("\r")):
        first -= 1
    start = sum(len(each) + 1 for each in lines[: first - 1])
    found = _TASK.match(text, start)
    return _task(found, first) if found and start not in CodeRanges(text) else None


def ticked(text: str, task: TaskLine) -> str:
    """Return the text with the task's box ticked if it was empty, else emptied."""
    return f"{text[: task.box]}{'x' if task.mark == ' ' else ' '}{text[task.box + 1 :]}"
