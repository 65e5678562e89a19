"""Cuts Markdown into chunks that can stand alone, by its structure.

Everything is an offset into the text, so that a chunk is a slice of the file and its lines are
exact. A code fence and a table row are never cut; long paragraphs are cut between sentences.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})(.*)$")  # in an item or a quote as well
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")  # noqa: RUF001 — CJK punctuation
_WORD_BREAK = re.compile(r"\s+")

_LONGEST_FRONT_LINE = 1000
_NOT_TEXT = re.compile(
    r"!?\[\[[^\[\]]*\]\]|!?\[(?:!\[[^\[\]]*\](?:\([^()]*\)|\[[^\[\]]*\])|[^\[\]]*)\]"
    r"(?:\([^()]*\)|\[[^\[\]]*\])|https?://\S+|<[^<>]*>|\{\{[^{}]*\}\}|(?<!\S)#[\w/-]+|[-*_]{3,}"
)
_BEGINS_NO_TEXT = re.compile(r"[\[<{#]|https?:|[-*_]{3}")  # a quick look, for most lines are prose
_LABEL = re.compile(r"\W*(?:\w[\w -]{0,20}::?)?\W*")
# ``[label]: target "title"``: where links lead, which editors add below notes; no footnotes.
_DEFINITION = re.compile(
    r"^ {0,3}\[(?!\^)[^\]\n]+\]:[ \t]*(?:<[^>\n]*>|\S+)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$\n?",
    re.MULTILINE,
)
_OWN_CHUNK = 60  # tokens

Piece = tuple[int, int, int]  # start, end, tokens


def estimate(text: str) -> int:
    """About how many tokens a model's tokenizer makes of a text.

    An estimate, so that chunks don't depend on which model happens to be there: four characters
    of plain ASCII make a token, or one of an ideographic script.
    """
    if text.isascii():
        return (len(text) + 3) // 4
    plain = len(text.encode("ascii", "ignore"))
    return (plain + 3) // 4 + (len(text.encode("utf-8", "replace")) - plain + 2) // 3


@dataclass(slots=True)
class Block:
    """A paragraph, list, table, heading or fence; `solid` ones are never cut, `end` is exclusive.

    `section` counts headings, and is the index of the block's heading path in the outline.
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
    """A parsed text: its blocks in order, and the heading of each section, with its path."""

    text: str
    blocks: list[Block] = field(default_factory=list)
    titles: list[str] = field(default_factory=lambda: [""])
    paths: list[str] = field(default_factory=lambda: [""])
    line_starts: list[int] = field(default_factory=list)

    def line_at(self, offset: int) -> int:
        """The number of the line that holds an offset, counted from 1."""
        return bisect_right(self.line_starts, offset)


def front_end(text: str, title: str) -> int:
    """Where the text proper of a note begins: behind its title's heading, badges, links, comments.

    A title is a field of its own, wherever it stands: said again in the body and as a heading it
    would count three times. Of a note that is nothing else, 0.
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
        elif line and not _is_front(line):
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


def part_definitions(text: str) -> tuple[str, str]:
    """A text without the definitions of its links, and these."""
    if "]:" not in text:
        return text, ""
    return _DEFINITION.sub("", text), "".join(_DEFINITION.findall(text))


def text_end(text: str) -> int:
    """Where a text ends and definitions of links begin; its length if it is nothing else."""
    end = len(text.rstrip())
    while (start := text.rfind("\n", 0, end) + 1) and _DEFINITION.fullmatch(text, start, end):
        end = len(text[:start].rstrip())
    return end if end and not _DEFINITION.fullmatch(text, 0, end) else len(text)


def blank_definitions(text: str) -> str:
    """The text with blanks where its links are defined; of one that is nothing else, all of it."""
    if "]:" not in text:
        return text
    blank = _DEFINITION.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return blank if blank.strip() else text


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _is_front(line: str) -> bool:
    """True if a line is made of badges, links, tags and templates, perhaps with a label."""
    if len(line) > _LONGEST_FRONT_LINE or not _BEGINS_NO_TEXT.search(line):
        return False
    rest = _NOT_TEXT.sub("", line)
    return rest != line and _LABEL.fullmatch(rest) is not None


def is_title(heading: str, title: str) -> bool:
    """True if a heading says the title and nothing else."""
    from kbtui.knowledge.format.body import plain_line

    return heading.strip() == title or plain_line(heading) == title


def outline(text: str, offset: int = 0, *, markdown: bool = True) -> Outline:
    """Parse a text from `offset` on; without `markdown` blank lines alone part its blocks."""
    found = Outline(text)
    starts = found.line_starts
    starts.append(0)
    position = text.find("\n")
    while position >= 0:
        starts.append(position + 1)
        position = text.find("\n", position + 1)
    _Parser(found, markdown=markdown).parse(offset)
    for block in found.blocks:
        block.tokens = estimate(text[block.start : block.end])
    return found


class _Parser:
    """Walks the lines once; each `_take_*` returns the index of the first line it left."""

    def __init__(self, into: Outline, *, markdown: bool) -> None:
        self.out = into
        self.markdown = markdown
        self.stack: list[tuple[int, str]] = []
        self.bounds = [*into.line_starts, len(into.text) + 1]

    def line(self, i: int) -> str:
        return self.out.text[self.bounds[i] : self.bounds[i + 1] - 1]

    def parse(self, offset: int) -> None:
        i = max(0, self.out.line_at(offset) - 1)
        last = len(self.out.line_starts)
        while i < last:
            line = self.line(i)
            if not line or line.isspace():
                i += 1
            elif self.markdown and (end := self._take_fence(i, line, last)):
                i = end
            elif self.markdown and self._take_heading(i, line):
                i += 1
            else:
                i = self._take_paragraph(i, last)

    def _add(self, first: int, after: int, **kind: bool) -> None:
        start, end = self.bounds[first], self.bounds[after] - 1
        self.out.blocks.append(Block(start, end, len(self.out.paths) - 1, **kind))

    def _take_fence(self, i: int, line: str, last: int) -> int:
        if "```" not in line and "~~~" not in line:
            return 0
        match = _FENCE.match(line)
        if match is None or (match[1][0] == "`" and "`" in match[2]):
            return 0
        mark = match[1]
        for j in range(i + 1, last):
            closing = self.line(j).strip("> \t")
            if closing.startswith(mark) and not closing.strip(mark[0]):
                self._add(i, j + 1, solid=True)
                return j + 1
        return 0  # never closed: ordinary lines

    def _take_heading(self, i: int, line: str) -> bool:
        if "#" not in line[:4]:
            return False
        match = _HEADING.match(line)
        if match is None:
            return False
        self._open_section(len(match[1]), (match[2] or "").strip())
        self._add(i, i + 1, heading=True)
        return True

    def _open_section(self, level: int, title: str) -> None:
        while self.stack and self.stack[-1][0] >= level:
            self.stack.pop()
        self.stack.append((level, title))
        self.out.titles.append(title)
        self.out.paths.append(" > ".join(title for _, title in self.stack if title))

    def _take_paragraph(self, i: int, last: int) -> int:
        j = i + 1
        table = "|" in self.line(i)
        while j < last:
            line = self.line(j)
            if not line or line.isspace():
                break
            if self.markdown:
                if j == i + 1 and (match := _UNDERLINE.match(line)) and not table:
                    self._open_section(1 if match[1][0] == "=" else 2, self.line(i).strip())
                    self._add(i, j + 1, heading=True)
                    return j + 1
                if _FENCE.match(line) or ("#" in line[:4] and _HEADING.match(line)):
                    break
            table = table and "|" in line
            j += 1
        self._add(i, j, table=table and j > i + 1)
        return j


def pack(found: Outline, limit: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Pack sections into chunks of at most `limit` tokens; gives offsets ``(start, end)``.

    Short sections go together while they fit: one of some length is found better by itself, by its
    own words and under its own heading. One that doesn't fit is cut between blocks, and what
    follows a cut inside a section repeats up to `overlap` tokens of what came before. Only a
    fence or a table row that is larger than `limit` makes a larger chunk.
    """
    pending: list[Block] = []
    size = 0
    for section in _sections(found.blocks):
        tokens = sum(block.tokens for block in section)
        if pending and (size + tokens > limit or min(size, tokens) >= _OWN_CHUNK):
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
    """Group blocks by section; a heading without text stays with what follows it."""
    group: list[Block] = []
    for block in blocks:
        if group and block.section != group[-1].section and not group[-1].heading:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def cut(text: str, section: list[Block], limit: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Cut a section that doesn't fit, between its blocks; gives offsets as `pack` does."""
    pieces = list(_with_headings(text, section, max(16, min(limit // 8, overlap or limit))))
    first = size = 0
    for i, (_, _, tokens) in enumerate(pieces):
        if i > first and size + tokens > limit:
            yield pieces[first][0], pieces[i - 1][1]
            start = _back(pieces, i, min(overlap, limit - tokens))
            # The overlap must not bring back all of what was just given.
            first = max(start, first + 1)
            size = sum(piece[2] for piece in pieces[first:i])
        size += tokens
    yield pieces[first][0], pieces[-1][1]


def _back(pieces: list[Piece], i: int, budget: int) -> int:
    """How far back from piece `i` an overlap of `budget` tokens reaches."""
    while i > 0 and pieces[i - 1][2] <= budget:
        i -= 1
        budget -= pieces[i][2]
    return i


def _with_headings(text: str, section: list[Block], limit: int) -> Iterator[Piece]:
    """The pieces of a section; a heading is one piece with what it stands over."""
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
    """The pieces of at most `limit` tokens that a block may be cut into.

    With `solid`, fences stay whole; table rows always do.
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
    """Cut one line between sentences, a sentence between words, a word where it must be."""
    tokens = estimate(text[start:end])
    if tokens <= limit:
        yield start, end, tokens
        return
    for separator in (_SENTENCE, _WORD_BREAK):
        cuts = [match.end() for match in separator.finditer(text, start, end)]
        cuts = [cut for cut in cuts if start < cut < end]
        if cuts:
            yield from _gather(text, [start, *cuts, end], limit)
            return
    step = max(1, limit * (end - start) // tokens)
    for position in range(start, end, step):
        stop = min(end, position + step)
        yield position, stop, estimate(text[position:stop])


def _gather(text: str, cuts: list[int], limit: int) -> Iterator[Piece]:
    """Join neighbours while they fit; what is still too long is cut more finely."""
    start = cuts[0]
    for i in range(1, len(cuts)):
        if i + 1 < len(cuts) and estimate(text[start : cuts[i + 1]]) <= limit:
            continue
        yield from cut_line(text, start, cuts[i], limit)
        start = cuts[i]


_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
_DATED_NAME = re.compile(r"(\d{4}-\d{2}(?:-\d{2})?)(?!\d)")
# Said elsewhere in the index, or of no use to somebody who searches.
_NOT_EXTRA = frozenset(
    {"title", "type", "tags", "tag", "aliases", "alias", "created", "updated", "related", "id"}
    | {"private", "uid", "cssclass", "cssclasses", "publish", "permalink"}
)


@dataclass(frozen=True, slots=True)
class Properties:
    """The searched properties; `extra` is the text of all the others, `body` starts at `offset`.

    `offset` counts characters of the decoded text, behind a byte-order mark.
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
    """Read the properties of a Markdown file; never raises, whatever it holds."""
    from kbtui.knowledge.entries.entry import says_private
    from kbtui.knowledge.format import frontmatter
    from kbtui.knowledge.format.body import heading_of, tags_in_body
    from kbtui.knowledge.format.frontmatter import tags, word, words

    head = ""
    values: Mapping[str, Any] = {}
    body, offset = text, 0
    if text.startswith("---"):
        parts = frontmatter.split(text.encode("utf-8", "surrogatepass"))
        matter = frontmatter.read(parts)
        values, head = matter.values, parts.head.decode("utf-8", "surrogatepass")
        body = parts.body.decode("utf-8", "surrogatepass")
        offset = len(text) - len(body)
    return Properties(
        title=word(values, "title") or heading_of(body) or _stem(path),
        type=word(values, "type") or _type_of_folder(path),
        tags=tags(values, tags_in_body(body)),
        aliases=words(values.get("aliases", values.get("alias"))),
        created=_date(word(values, "created") or word(values, "date")) or _date_in_name(path),
        updated=_date(word(values, "updated") or word(values, "modified")),
        private=says_private(text.encode("utf-8", "surrogatepass")),
        extra=" ".join(_extra(values)) if values else head,
        offset=offset,
    )


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _type_of_folder(path: str) -> str:
    if not path.startswith("knowledge/"):
        return ""
    from kbtui.knowledge.entries.entry import TYPE_OF_FOLDER

    return TYPE_OF_FOLDER.get(path.split("/")[1], "")


def _date(text: str) -> str:
    match = _DATE.match(text)
    return match[0] if match else ""


def _date_in_name(path: str) -> str:
    """The day that a file is named after, as the notes of a day are."""
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
