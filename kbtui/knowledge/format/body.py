"""Parsing of Markdown bodies: where they begin, title, summary, tags, headings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple
from urllib.parse import unquote

from kbtui.knowledge.format.document import head_end, read, read_body
from kbtui.text import clean_line, shorten, slugify

BOM = b"\xef\xbb\xbf"
_OPENING = re.compile(rb"---[ \t]*\r?\n")
_CLOSING = re.compile(rb"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
SUMMARY_WIDTH = 160
_MAY_BE_H1 = re.compile(r"^[ \t*+\-\d.)]*(?:#[ \t]|=+[ \t]*\r?$)", re.MULTILINE)
# ``[label]: #part`` defines a link.
_TAG = re.compile(r"#(?<!\S#)(?<!\]: #)(?=[\w/-]*[^\W\d_])([\w/-]+)")
_NON_PROSE = re.compile(
    r"#{1,6}\s|[|!<>%]|[-*_=]{3,}\s*$|\[\^?[^\]]+\]:|\$\$|:::|(?:import|export)\s.*from\s"
)
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
_PLACED = re.compile(r"<su([bp])>([^<>]{1,20})</su\1>")
_RAISED = str.maketrans("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_LOWERED = str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")
_PLAIN_START = re.compile(r"[A-Za-z0-9]")  # no mark hides it
_MARKUP_CHARACTER = re.compile(r"[\[*_`<=~]")


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
    return text[head_end(text) :].removeprefix("\ufeff")


def heading_of(body: str) -> str | None:
    """Return the text of the first H1 (``# so``, or underlined with ``=``)."""
    if not _MAY_BE_H1.search(body):
        return None
    for block in read_body(body).walk():
        title = plain_line(body[block.start : block.end]) if block.level == 1 else ""
        if title and not block.quoted:
            return title
    return None


def summary_of(body: str) -> str:
    """Return the first sentence of the prose without markup, at most 160 characters."""
    prose = _first_prose(body)
    text = plain_line(_PLACED.sub(_placed, prose) if "<su" in prose else prose)
    end = _SENTENCE_END.search(text, 0, SUMMARY_WIDTH + 1)  # what ends later is cut in any case
    return shorten(text[: end.end()] if end else text, SUMMARY_WIDTH)


def _placed(found: re.Match[str]) -> str:
    """Return numbers and signs in characters that are raised or lowered: 10⁶, not 106."""
    signs = _RAISED if found[1] == "p" else _LOWERED
    return found[2].translate(signs) if all(ord(each) in signs for each in found[2]) else found[0]


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
    matches = list(_TAG.finditer(body))
    code = read_body(body).code if matches else ()
    found = (match[1].strip("/") for match in matches if match.start() not in code)
    return list(dict.fromkeys(found))


def _first_prose(body: str) -> str:
    """Return the first paragraph or item of prose, joined to one line."""
    for block in read_body(body).walk():
        if block.kind not in {"paragraph", "item", "task"} or block.quoted:
            continue
        prose: list[str] = []
        size = 0
        for line in map(str.strip, body[block.start : block.end].split("\n")):
            if _NON_PROSE.match(line) or size > 4 * SUMMARY_WIDTH:
                if prose:
                    break
            elif _PLAIN_START.match(line) or plain_line(line):
                prose.append(line)
                size += len(line)
        if prose:
            return " ".join(prose)
    return ""


# Headings, and the sections and blocks that links refer to ----------------------------------------

_MAY_BE_HEADING = re.compile(r"#[ \t]|^[ \t>*+\-\d.)]*[-=]+[ \t]*\r?$", re.MULTILINE)
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)])[ \t]")


class Heading(NamedTuple):
    """A heading: its level (1 is the top), text without markup, and 1-based line."""

    level: int
    text: str
    line: int


def headings_of(text: str) -> list[Heading]:
    """Return the headings of a whole document in order, those of items too, but not of quotes."""
    if not _MAY_BE_HEADING.search(text):
        return []
    return [
        Heading(block.level, title, block.first + 1)
        for block in read(text).headings
        if not block.quoted and (title := plain_line(text[block.start : block.end]))
    ]


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
