"""Splits Markdown into self-contained chunks along its structure.

All positions are offsets into the text, so a chunk is a slice of the file with exact line numbers.
Code fences and table rows are never split; long paragraphs are split between sentences.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kbtui.knowledge.format.document import Block as DocumentBlock, Document, read_body

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")  # noqa: RUF001 — CJK punctuation
_WORD_BREAK = re.compile(r"\s+")

_MAX_DECORATION_LINE = 1000
_DECORATION = re.compile(
    r"!?\[\[[^\[\]]*\]\]|!?\[(?:!\[[^\[\]]*\](?:\([^()]*\)|\[[^\[\]]*\])|[^\[\]]*)\]"
    r"(?:\([^()]*\)|\[[^\[\]]*\])|https?://\S+|<[^<>]*>|\{\{[^{}]*\}\}|(?<!\S)#[\w/-]+|[-*_]{3,}"
)
_DECORATION_HINT = re.compile(r"[\[<{#]|https?:|[-*_]{3}")  # a fast pre-check: most lines are prose
_LABEL = re.compile(r"\W*(?:\w[\w -]{0,20}::?)?\W*")
# Link reference definitions, ``[label]: target "title"``, but not footnotes.
_DEFINITION = re.compile(
    r"^ {0,3}\[(?!\^)[^\]\n]+\]:[ \t]*(?:<[^>\n]*>|\S+)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$\n?",
    re.MULTILINE,
)
_MIN_OWN_CHUNK = 60  # tokens

Piece = tuple[int, int, int]  # start, end, tokens


def estimate(text: str) -> int:
    """Estimate the number of tokens of a text.

    It doesn't use a tokenizer, so that chunks don't depend on the model: a token is four ASCII
    characters, or one of an ideographic script.
    """
    if text.isascii():
        return (len(text) + 3) // 4
    plain = len(text.encode("ascii", "ignore"))
    return (plain + 3) // 4 + (len(text.encode("utf-8", "replace")) - plain + 2) // 3


@dataclass(slots=True)
class Block:
    """A paragraph, list, table, heading or fence; `solid` ones are never split, `end` is exclusive.

    `section` is the index of the block's heading path in the outline.
    """

    start: int
    end: int
    section: int
    heading: bool = False
    solid: bool = False
    table: bool = False
    tokens: int = 0


@dataclass(slots=True)
class Outline:
    """A parsed text: its blocks in order, and the heading and heading path of each section."""

    text: str
    blocks: list[Block] = field(default_factory=list)
    titles: list[str] = field(default_factory=lambda: [""])
    paths: list[str] = field(default_factory=lambda: [""])
    line_starts: list[int] = field(default_factory=list)

    def line_at(self, offset: int) -> int:
        """Return the 1-based number of the line at an offset."""
        return bisect_right(self.line_starts, offset)


def prose_start(text: str, title: str) -> int:
    """Return the offset of a note's prose, after title heading, badges, links and comments.

    The title is indexed as its own field: in the body and headings it would count three times.
    Return 0 if the note has no prose.
    """
    at = 0
    while at < len(text):
        stop = _line_end(text, at)
        line = text[at:stop].strip()
        if line.startswith(("%%", "<!--")):
            end = "%%" if line.startswith("%%") else "-->"
            close = text.find(end, text.index(line[:2], at) + 2)
            if close < 0:
                break
            stop = _line_end(text, close)
            if text[close + len(end) : stop].strip():
                break
        elif line and not _is_decoration(line):
            under = _line_end(text, stop)
            heading = _HEADING.match(text[at:stop].rstrip())
            if heading and is_title(heading[2] or "", title):
                pass
            elif _UNDERLINE.match(text[stop:under].rstrip()) and is_title(line, title):
                stop = under
            else:
                break
        at = stop
    return at if text[at:].strip() else 0


def split_definitions(text: str) -> tuple[str, str]:
    """Split a text into the text without its link definitions, and the definitions."""
    if "]:" not in text:
        return text, ""
    return _DEFINITION.sub("", text), "".join(_DEFINITION.findall(text))


def text_end(text: str) -> int:
    """Return the offset of trailing link definitions; the text's length if it is only those."""
    end = len(text.rstrip())
    while (start := text.rfind("\n", 0, end) + 1) and _DEFINITION.fullmatch(text, start, end):
        end = len(text[:start].rstrip())
    return end if end and not _DEFINITION.fullmatch(text, 0, end) else len(text)


def blank_definitions(text: str) -> str:
    """Replace link definitions by blanks, unless the text has nothing else."""
    if "]:" not in text:
        return text
    blank = _DEFINITION.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return blank if blank.strip() else text


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _is_decoration(line: str) -> bool:
    """Return whether a line is only badges, links, tags and templates, perhaps with a label."""
    if len(line) > _MAX_DECORATION_LINE or not _DECORATION_HINT.search(line):
        return False
    rest = _DECORATION.sub("", line)
    return rest != line and _LABEL.fullmatch(rest) is not None


def is_title(heading: str, title: str) -> bool:
    """Return whether a heading's text is exactly the title."""
    from kbtui.knowledge.format.body import plain_line

    return heading.strip() == title or plain_line(heading) == title


def outline(text: str, offset: int = 0, *, markdown: bool = True) -> Outline:
    """Parse a text from `offset` on; without `markdown`, only blank lines separate blocks."""
    found = Outline(text, line_starts=Document(text, has_head=False).line_starts)
    document = read_body(text[offset:])
    above = found.line_at(offset) - 1
    marked: dict[int, DocumentBlock] = {}
    if markdown:
        found.titles += [section.title for section in document.sections[1:]]
        found.paths += [" > ".join(filter(None, each.path)) for each in document.sections[1:]]
        # An open fence may be long.
        alone = [each for each in document.fenced_blocks if document.closing_fence(each)]
        alone += [each for each in document.headings if not each.quoted]
        marked = {each.first + above: each for each in alone}
    lines, starts = text.split("\n"), [*found.line_starts, len(text) + 1]
    section, first = 0, above
    while first < len(lines):
        block, stop = marked.get(first), first
        if block:
            stop = block.stop + above
        else:
            while stop < len(lines) and stop not in marked and lines[stop].strip():
                stop += 1
        start, end = starts[first], starts[stop] - 1
        if block and block.level:
            section = block.section
            found.blocks.append(Block(start, end, section, heading=True))
        elif block:
            found.blocks.append(Block(start, end, section, solid=True))
        elif stop > first:
            is_table = stop > first + 1 and all("|" in line for line in lines[first:stop])
            found.blocks.append(Block(start, end, section, table=is_table))
        first = max(stop, first + 1)
    for each in found.blocks:
        each.tokens = estimate(text[each.start : each.end])
    return found


def pack(found: Outline, limit: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Pack sections into chunks of at most `limit` tokens; yield offsets ``(start, end)``.

    Short sections are merged while they fit; longer ones stay separate, as they are found better
    under their own heading. A section that doesn't fit is split between blocks, with up to
    `overlap` tokens repeated after each split. Only a fence or table row larger than `limit` makes
    a larger chunk.
    """
    pending: list[Block] = []
    size = 0
    for section in _sections(found.blocks):
        tokens = sum(block.tokens for block in section)
        if pending and (size + tokens > limit or min(size, tokens) >= _MIN_OWN_CHUNK):
            yield pending[0].start, pending[-1].end
            pending, size = [], 0
        if tokens <= limit:
            pending += section
            size += tokens
        else:
            yield from cut(found.text, section, limit, overlap)
    if pending:
        yield pending[0].start, pending[-1].end


def _sections(blocks: list[Block]) -> Iterator[list[Block]]:
    """Group blocks by section; a heading without text joins the next section."""
    group: list[Block] = []
    for block in blocks:
        if group and block.section != group[-1].section and not group[-1].heading:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def cut(text: str, section: list[Block], limit: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Split a section between its blocks; yield offsets like `pack`."""
    pieces = list(_with_headings(text, section, max(16, min(limit // 8, overlap or limit))))
    first = size = 0
    for i, (_, _, tokens) in enumerate(pieces):
        if i > first and size + tokens > limit:
            yield pieces[first][0], pieces[i - 1][1]
            start = _overlap_start(pieces, i, min(overlap, limit - tokens))
            # The overlap must not repeat all of the previous chunk.
            first = max(start, first + 1)
            size = sum(piece[2] for piece in pieces[first:i])
        size += tokens
    yield pieces[first][0], pieces[-1][1]


def _overlap_start(pieces: list[Piece], i: int, budget: int) -> int:
    """Return the first piece of an overlap of up to `budget` tokens before piece `i`."""
    while i > 0 and pieces[i - 1][2] <= budget:
        i -= 1
        budget -= pieces[i][2]
    return i


def _with_headings(text: str, section: list[Block], limit: int) -> Iterator[Piece]:
    """Yield the pieces of a section, with headings joined to the piece after them."""
    start, extra = -1, 0
    for block in section:
        if block.heading and block is not section[-1]:
            start = block.start if start < 0 else start
            extra += block.tokens
            continue
        for piece in cut_block(text, block, limit):
            yield (piece[0] if start < 0 else start), piece[1], piece[2] + extra
            start, extra = -1, 0


def cut_block(text: str, block: Block, limit: int, *, solid: bool = True) -> Iterator[Piece]:
    """Split a block into pieces of at most `limit` tokens.

    With `solid`, fences and table rows stay whole.
    """
    if block.tokens <= limit or (block.solid and solid):
        yield block.start, block.end, block.tokens
        return
    start = block.start
    while start < block.end:
        stop = text.find("\n", start, block.end)
        stop = block.end if stop < 0 else stop
        if stop > start:
            if block.table and solid:
                yield start, stop, estimate(text[start:stop])
            else:
                yield from cut_line(text, start, stop, limit)
        start = stop + 1


def cut_line(text: str, start: int, end: int, limit: int) -> Iterator[Piece]:
    """Split a line between sentences, else between words, else anywhere."""
    tokens = estimate(text[start:end])
    if tokens <= limit:
        yield start, end, tokens
        return
    for separator in (_SENTENCE, _WORD_BREAK):
        cuts = [match.end() for match in separator.finditer(text, start, end)]
        cuts = [cut for cut in cuts if start < cut < end]
        if cuts:
            yield from _merge_pieces(text, [start, *cuts, end], limit)
            return
    step = max(1, limit * (end - start) // tokens)
    for position in range(start, end, step):
        stop = min(end, position + step)
        yield position, stop, estimate(text[position:stop])


def _merge_pieces(text: str, cuts: list[int], limit: int) -> Iterator[Piece]:
    """Merge adjacent pieces while they fit; split those still too long further."""
    start = cuts[0]
    for i in range(1, len(cuts)):
        if i + 1 < len(cuts) and estimate(text[start : cuts[i + 1]]) <= limit:
            continue
        yield from cut_line(text, start, cuts[i], limit)
        start = cuts[i]


_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?(?!\d)")
_DATED_NAME = re.compile(r"(\d{4}-\d{2}(?:-\d{2})?)(?!\d)")
# Indexed elsewhere, or useless for search.
_NOT_EXTRA = frozenset(
    {"title", "type", "tags", "tag", "aliases", "alias", "created", "updated", "related", "id"}
    | {"private", "uid", "cssclass", "cssclasses", "publish", "permalink"}
)


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a file for search; `extra` is the text of all others.

    The body starts at `offset`, in characters of the decoded text after any byte-order mark.
    """

    title: str = ""
    type: str = ""
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    created: str = ""
    updated: str = ""
    private: bool = False
    extra: str = ""
    offset: int = 0


def read_properties(path: str, text: str) -> Properties:
    """Read the properties of a Markdown file; never raises, whatever its content."""
    from kbtui.knowledge.entries.entry import called, page_properties, says_private
    from kbtui.knowledge.format import frontmatter

    head = ""
    values: Mapping[str, Any] = {}
    body, offset = text, 0
    if text.startswith("---"):
        parts = frontmatter.split(text.encode("utf-8", "surrogatepass"))
        matter = frontmatter.read(parts)
        values, head = matter.values, parts.head.decode("utf-8", "surrogatepass")
        body = parts.body.decode("utf-8", "surrogatepass")
        offset = len(text) - len(body)
    written = values
    if not values and "::" in body:
        values = page_properties(body)  # Logseq's
    names = called(path, values, body)
    return Properties(
        title=names.title,
        type=names.type or "",
        tags=names.tags,
        aliases=names.aliases,
        created=_date(values, "created", "date") or _date_in_name(path),
        updated=_date(values, "updated", "modified"),
        private=says_private(text.encode("utf-8", "surrogatepass")),
        extra=" ".join(_extra(written)) if written else head,
        offset=offset,
    )


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _date(values: Mapping[str, Any], *keys: str) -> str:
    """Return the date that the first key with a value holds, as ISO 8601; empty if none."""
    from kbtui.knowledge.format.frontmatter import day_word

    match = _DATE.match(next(filter(None, (day_word(values, key) for key in keys)), ""))
    return match[0] if match else ""


def _date_in_name(path: str) -> str:
    """Return the date that a file name starts with, as in daily notes; empty if none."""
    match = _DATED_NAME.match(_stem(path))
    return match[1] if match else ""


def _extra(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        if key not in _NOT_EXTRA:
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from _texts(child)
    elif isinstance(value, list):
        for child in value:
            yield from _texts(child)
