"""Markdown as lines that fit a width, each with the line of the file that it comes from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len
from textual.content import Content
from textual.highlight import highlight

from kbtui.text import clean, clean_line
from kbtui.tui.markdown.inline import InlineBuilder, Links, box
from kbtui.tui.markdown.pictures import picture_lines
from kbtui.tui.markdown.source import Cell, Embed, Property, Section, SourceText
from kbtui.tui.markdown.syntax import LinkRef, embed_of, parse
from kbtui.tui.widgets.kinds import signed
from kbtui.tui.widgets.line_view import Line

MIN_WIDTH = 8
MAX_MARKDOWN = 2_000_000
"""Characters up to which text is rendered as Markdown; what is longer is shown as it is."""
_TASK = re.compile(r"\[([^\[\]\n])\] ")
_CALLOUT = re.compile(r"\[!([^\[\]\n|]+)(?:\|[^\[\]\n]*)?\]([+-]?)[ \t]*")
_KINDS = {
    **dict.fromkeys(("tip", "hint", "important", "success", "check", "done"), "good"),
    **dict.fromkeys(("warning", "caution", "attention", "question", "help", "faq"), "warn"),
    **dict.fromkeys(("failure", "fail", "missing", "danger", "error", "bug"), "bad"),
    **dict.fromkeys(("quote", "cite", "example"), "quiet"),
}
"""The colour of each kind of callout; the others have that of a note."""
_BREAKS = frozenset({"softbreak", "hardbreak"})
_UNSEEN = _BREAKS | {"nothing"}
_BULLETS = "•◦▪"
MIN_COLUMN = 4
_LONGEST_KEPT = 14
"""Cells of a word up to which a column of a table has room for it in one piece."""
_GAP = "  "
MAX_COLOURED = 40_000
"""Characters of one block up to which it is coloured; Pygments takes about 1 µs for each."""
_PLAIN = frozenset({"", "text", "txt", "plain", "none", "default"})


class Fold(NamedTuple):
    """A heading or a callout that can be folded: the lines of the file that it takes."""

    lines: range
    is_open: bool


class Rendered(NamedTuple):
    """A document as lines, and the links that its cells refer to by number.

    `folds` is what can be folded, by the line of the file that has its title.
    """

    lines: list[Line]
    links: list[LinkRef]
    folds: Mapping[int, Fold] = MappingProxyType({})


class _Frame(NamedTuple):
    """Where a block stands: how much room it has and what precedes its lines."""

    width: int
    first: Content = Content()
    rest: Content = Content()
    depth: int = 0

    def indented(self, first: Content, rest: Content) -> _Frame:
        """The frame of a block inside: `first` before its first line, `rest` before the others."""
        width = max(MIN_WIDTH, self.width - rest.cell_length)
        return _Frame(width, self.first + first, self.rest + rest, self.depth + 1)

    def continued(self) -> _Frame:
        """The frame after the first line was used up."""
        return self._replace(first=self.rest)


def render(
    source: SourceText,
    width: int,
    folds: Mapping[int, bool] = MappingProxyType({}),
    wanted: int | None = None,
) -> Rendered:
    """Lay out a text.

    `folds` says what is open, by the line of its title: a callout else is as it says itself, a
    heading open. What has the line `wanted` is open, too. Of a `whole` text nothing is folded.
    """
    if source.raw or len(source.text) > MAX_MARKDOWN:
        return render_plain(source.text, width, first_line=source.first_line)
    width = max(MIN_WIDTH, width)
    layout = _Layout(source, None if source.whole else folds, wanted)
    layout.chips(source.properties, width)
    layout.blocks(parse(clean(source.text), whole=source.whole).children, _Frame(width))
    layout.sections(source.below, width)
    return Rendered(layout.lines, layout.links.refs, layout.folds)


def render_plain(text: str, width: int, *, first_line: int = 1) -> Rendered:
    """Lay out text as it is, wrapped."""
    lines: list[Line] = []
    for number, line in enumerate(clean(text).split("\n"), first_line):
        content = Content(line.expandtabs(4), strip_control_codes=False)
        pieces = content.wrap(max(MIN_WIDTH, width)) if line else [content]
        lines += [Line(piece, number, "", index > 0) for index, piece in enumerate(pieces)]
    return Rendered(lines, [])


class _Layout:
    """Walks the tree of blocks and collects lines."""

    def __init__(
        self,
        source: SourceText,
        folds: Mapping[int, bool] | None = None,
        wanted: int | None = None,
        links: Links | None = None,
    ) -> None:
        self.lines: list[Line] = []
        self.folds: dict[int, Fold] = {}
        self.links = links or Links(source.leads_to)
        self._text = source
        self._offset = source.first_line
        self._source = source.first_line
        self._folds_wanted = folds
        self._wanted = wanted

    def chips(self, properties: Sequence[Property], width: int) -> None:
        """What the frontmatter says, on as few lines as it fits on, and a blank line."""
        row = Content()
        for chip in (chip for each in properties for chip in self._chips(each, width)):
            if row and row.cell_length + 1 + chip.cell_length > width:
                self.lines.append(Line(row, 1))
                row = Content()
            row = row + " " + chip if row else chip
        if row:
            self.lines += [Line(row, 1), Line(Content(), 1)]

    def _chips(self, each: Property, width: int) -> Iterator[Content]:
        """A property: its name with the first value, and a chip for each of the others."""
        for index, value in enumerate(each.values):
            ground = ".md--tag" if value.startswith("#") else "" if each.quiet else ".md--chip"
            built = InlineBuilder(self.links)
            if each.name and not index:
                built.add(f"{clean_line(each.name)} ", ".md--muted")
            content = built.value(value, linked=each.linked).content()
            if each.quiet:
                content = content.stylize(".md--muted")
            for piece in content.wrap(max(MIN_WIDTH, width - 2)):
                yield Content.assemble(" ", piece, " ").stylize_before(ground)

    def sections(self, below: Sequence[Section], width: int) -> None:
        """Lists of other notes, each under a rule with its title, as if below the last line."""
        source = self._offset + self._text.text.count("\n") + 1
        for each in below:
            rule = f"── {each.title} "
            rule += "─" * max(2, width - len(rule))
            self.lines += [
                Line(Content(), source),
                Line(Content.styled(rule, ".md--rule").stylize(".md--muted", 3), source),
            ]
            last = None
            for cells in each.cells:
                row = Content("  ").join(map(self._cell, cells))
                self.lines.append(Line(row.truncate(width, ellipsis=True), source))
            for note, said, line in each.rows:
                row = Content.styled(clean_line(said), ".md--muted")
                if note is not None:
                    _, mark = self.links.style(LinkRef("file", note.path, str(line or "")))
                    title = signed(note) if note != last else Content("  …")
                    row = Content("   ").join((title, row)).stylize(mark)
                self.lines.append(Line(row.truncate(width, ellipsis=True), source))
                last = note

    def _cell(self, cell: Cell) -> Content:
        style = ".md--h1" if cell.here else ".md--muted"
        if not cell.path:
            return Content.styled(cell.said, style)
        link, mark = self.links.style(LinkRef("file", cell.path))
        gap = len(cell.said) - len(cell.said.lstrip())
        return Content(cell.said).stylize(style if cell.here else link, gap).stylize(mark)

    def blocks(self, nodes: Sequence[SyntaxTreeNode], frame: _Frame, *, loose: bool = True) -> None:
        """Lay out blocks one below the other, with a blank line between them if `loose`."""
        nodes = [node for node in nodes if _is_seen(node)]
        for index, node in enumerate(self._unfolded(nodes) if not frame.depth else nodes):
            if index and loose:
                self.lines.append(Line(frame.rest.rstrip(), self._source))
            if node.map is not None:
                self._source = self._offset + node.map[0]
            self._block(node, frame)
            frame = frame.continued()

    def _unfolded(self, nodes: Sequence[SyntaxTreeNode]) -> Iterator[SyntaxTreeNode]:
        """The blocks without those below a heading that is folded."""
        headings = [node for node in nodes if node.type == "heading" and node.map is not None]
        ends = dict(_section_ends(headings, self._text.text.count("\n") + 1))
        hidden = -1
        for node in nodes:
            first, last = node.map or (hidden, hidden)
            if first < hidden and node.type != "footnote_block":
                continue
            if ends.get(first, last) > last and not self._fold(first, ends[first])[1]:
                hidden = ends[first]
            yield node

    def _block(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        lay_out = _BLOCKS.get(node.type)
        if lay_out is not None:
            lay_out(self, node, frame)
        elif node.children:
            self.blocks(node.children, frame)
        else:
            self._verbatim(node, frame)

    def _put(
        self,
        content: Content,
        frame: _Frame,
        fill: str = "",
        line_ends: Sequence[int] = (),
        source: int | None = None,
    ) -> None:
        """Add the lines of one piece of running text, wrapped into the frame.

        Each comes from the source line that its first character stands in.
        """
        begins = self._source if source is None else source
        pieces = content.wrap(frame.width)
        place = 0
        for index, piece in enumerate(pieces):
            prefix = frame.rest if index else frame.first
            place = max(place, content.plain.find(piece.plain, place))
            at = begins + bisect_right(line_ends, place)
            self.lines.append(Line(prefix + piece, at, fill, index > 0))
            place += len(piece.plain)

    def _inline(self, node: SyntaxTreeNode) -> Content:
        builder = InlineBuilder(self.links)
        for child in node.children:
            builder.walk(child.children)
        return builder.content()

    def paragraph(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Running text, wrapped, with the files that it embeds on lines of their own."""
        embeds = self._text.embeds
        for first, lines in _parts_of(node, embeds) if embeds else ((0, node.children),):
            self._source += first
            ref = embed_of(lines)
            if ref is not None and ref in embeds:
                self._embed(ref, embeds[ref], frame)
            else:
                built = InlineBuilder(self.links)
                for inline in lines:
                    built.walk(inline.children if inline.type == "inline" else [inline])
                self._put(built.content(), frame, line_ends=built.line_ends)
            self._source -= first
            frame = frame.continued()

    def _embed(self, ref: LinkRef, embed: Embed, frame: _Frame) -> None:
        """An embedded file behind a bar: its title, which is a link, and its text.

        All of it comes from the one line that embeds it.
        """
        bar = Content.styled("│ ", ".md--rule")
        inner = frame.indented(bar, bar)
        title = InlineBuilder(self.links).add("▣ ", ".md--muted")
        self._put(title.add(clean_line(embed.title), *self.links.style(ref)).content(), inner)
        if embed.picture is not None:
            for line in picture_lines(embed.picture, inner.width):
                self.lines.append(Line(inner.rest + line, self._source))
        if embed.text:
            part = _Layout(SourceText(embed.text), links=self.links)
            part.blocks(parse(embed.text).children, _Frame(inner.width))
            self.lines += [
                Line(inner.rest + line.content, self._source, line.fill, line.joined)
                for line in part.lines
            ]

    def heading(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """A heading; the first level has a rule below it, one that is folded a sign before it."""
        level = min(int(node.tag[1:]), 4)
        fold = self.folds.get(self._source)
        sign = "" if fold is None or fold.is_open else "▸ "
        self._put((sign + self._inline(node)).stylize_before(f".md--h{level}"), frame)
        if level == 1:
            rule = Content.styled("━" * frame.width, ".md--rule")
            self.lines.append(Line(frame.rest + rule, self._source))

    def hr(self, _node: SyntaxTreeNode, frame: _Frame) -> None:
        """A rule across the frame."""
        rule = Content.styled("─" * frame.width, ".md--rule")
        self.lines.append(Line(frame.first + rule, self._source))

    def bullet_list(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Items behind bullets, by how deep the list is."""
        bullet = _BULLETS[min(frame.depth // 2, len(_BULLETS) - 1)]
        self._list(node, frame, lambda _index: f"{bullet} ")

    def ordered_list(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Items behind their numbers."""
        start = int(node.attrs.get("start", 1))
        widest = len(str(start + len(node.children)))
        self._list(node, frame, lambda index: f"{start + index:>{widest}}. ")

    def _list(self, node: SyntaxTreeNode, frame: _Frame, marker: Callable[[int], str]) -> None:
        loose = any(
            child.type == "paragraph" and not child.hidden
            for item in node.children
            for child in item.children
        )
        for index, item in enumerate(node.children):
            if index and loose:
                self.lines.append(Line(frame.rest.rstrip(), self._source))
            if item.map is not None:
                self._source = self._offset + item.map[0]
            self._item(item, frame, marker(index), loose=loose)
            frame = frame.continued()

    def _item(self, item: SyntaxTreeNode, frame: _Frame, marker: str, *, loose: bool) -> None:
        task = _take(item, _TASK)
        lead = Content.styled(marker, ".md--bullet") if task is None else box(task[1])
        inner = frame.indented(lead, Content(" " * lead.cell_length))
        if item.children:
            self.blocks(item.children, inner, loose=loose)
        else:
            self.lines.append(Line(inner.first, self._source))

    def blockquote(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Blocks behind a bar, below the title of a callout; a folded one is its title alone."""
        callout = _callout_of(node)
        if callout is None:
            bar = Content.styled("▌ ", ".md--quote-bar")
            self.blocks(node.children, frame.indented(bar, bar))
            return
        style = f".md--callout-{_KINDS.get(callout.kind.lower(), 'note')}"
        bar = Content.styled("▌ ", style)
        inner = frame.indented(bar, bar)
        sign, is_open = "", True
        if callout.fold:
            sign, is_open = self._fold(*(node.map or (0, 1)), is_open=callout.fold == "+")
        title = InlineBuilder(self.links).walk(callout.title).content()
        title = title if title.plain.strip() else Content(clean_line(callout.kind).capitalize())
        self._put((sign + title).stylize_before(style), inner)
        if is_open:
            self.blocks(node.children, inner.continued())

    def _fold(self, first: int, end: int, *, is_open: bool = True) -> tuple[str, bool]:
        """Let a block be folded that by itself `is_open`: its sign, and whether it is open.

        It takes the lines from that of its title to the one before `end`, counted from 0.
        """
        if self._folds_wanted is None:
            return "", True
        lines = range(self._offset + first, self._offset + end)
        is_open = self._folds_wanted.get(lines.start, is_open) or self._wanted in lines[1:]
        self.folds[lines.start] = Fold(lines, is_open)
        return "▾ " if is_open else "▸ ", is_open

    def details(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """HTML's ``<details>``: its summary, and below it, where it is open, the blocks in it."""
        sign, is_open = self._fold(*(node.map or (0, 1)), is_open=bool(node.meta["open"]))
        title = InlineBuilder(self.links).walk(node.children[0].children).content()
        self._put((sign + title).stylize_before(".md--strong"), frame)
        if is_open:
            indent = Content("  ")
            self.blocks(node.children[1:], frame.continued().indented(indent, indent))

    def fence(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Code, coloured where its language is known."""
        said = {"fence": node.info, "code_block": ""}.get(node.type, "latex")
        language = (said.split() or [""])[0]
        code = node.content.strip("\n") if node.type.startswith("math") else node.content
        first = self._source + (node.type != "code_block" and node.map is not None)
        for number, line in enumerate(code_lines(code.rstrip("\n"), language)):
            pieces = line.fold(frame.width - 1) or [line]
            for index, piece in enumerate(pieces):
                prefix = frame.first if not (number or index) else frame.rest
                content = prefix + Content(" ") + piece
                self.lines.append(Line(content, first + number, "md--block", index > 0))

    def table(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """A table that fits the frame."""
        rows = [row for part in node.children for row in part.children]
        cells = [[self._inline(cell) for cell in row.children] for row in rows]
        aligns = [str(cell.attrs.get("style", ""))[11:] for cell in rows[0].children]
        for row, content in table_lines(cells, aligns, frame.width):
            prefix = frame.rest if row else frame.first
            # The line with dashes stands between the first row and the second.
            source = self._source + row + (row > 0)
            self.lines.append(Line(prefix + content, source))

    def footnote_block(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """The footnotes, below a short rule."""
        self.lines.append(Line(Content.styled("─" * 12, ".md--rule"), self._source))
        for index, note in enumerate(node.children, 1):
            label = f"[{clean_line(str(note.meta.get('label') or index))}] "
            inner = frame.indented(Content.styled(label, ".md--muted"), Content(" " * len(label)))
            self.blocks(note.children, inner)

    def _verbatim(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        for line in node.content.rstrip("\n").split("\n"):
            self._put(Content.styled(line.expandtabs(4), ".md--muted"), frame)
            frame = frame.continued()


_BLOCKS: Mapping[str, Callable[[_Layout, SyntaxTreeNode, _Frame], None]] = {
    "paragraph": _Layout.paragraph,
    "heading": _Layout.heading,
    "hr": _Layout.hr,
    "bullet_list": _Layout.bullet_list,
    "ordered_list": _Layout.ordered_list,
    "blockquote": _Layout.blockquote,
    "details": _Layout.details,
    "fence": _Layout.fence,
    "code_block": _Layout.fence,
    "math_block": _Layout.fence,
    "math_block_label": _Layout.fence,
    "table": _Layout.table,
    "footnote_block": _Layout.footnote_block,
}
"""How each kind of block is laid out; of the others, what is inside."""


def _section_ends(headings: Sequence[SyntaxTreeNode], end: int) -> Iterator[tuple[int, int]]:
    """The line of each heading, and the one on which what is below it ends (both from 0)."""
    above: list[tuple[int, int]] = []  # level and line of the headings that one is below
    for each in headings:
        level, line = int(each.tag[1:]), (each.map or (0, 0))[0]
        while above and above[-1][0] >= level:
            yield above.pop()[1], line
        above.append((level, line))
    yield from ((line, end) for _, line in above)


def _parts_of(
    paragraph: SyntaxTreeNode, embeds: Mapping[LinkRef, Embed]
) -> Iterator[tuple[int, Sequence[SyntaxTreeNode]]]:
    """A paragraph in parts, each with its line in it: what is embedded on a line stands alone."""
    text: list[SyntaxTreeNode] = []
    begun = 0
    for number, (gap, line) in enumerate(_lines_of(paragraph)):
        if embed_of(line) in embeds:
            if text:
                yield begun, text
            yield number, line
            text, begun = [], number + 1
        else:
            text += [*gap, *line] if text else line
    if text:
        yield begun, text


_Nodes = list[SyntaxTreeNode]


def _lines_of(paragraph: SyntaxTreeNode) -> Iterator[tuple[_Nodes, _Nodes]]:
    """What stands on each line of the source, behind the break that is before it."""
    gap: _Nodes = []
    line: _Nodes = []
    for node in (node for child in paragraph.children for node in child.children):
        if node.type in _BREAKS:
            yield gap, line
            gap, line = [node], []
        else:
            line.append(node)
    yield gap, line


def _first_text(node: SyntaxTreeNode) -> SyntaxTreeNode | None:
    """The text that a paragraph at the start of `node` begins with."""
    for kind in ("paragraph", "inline", "text"):
        if not node.children or node.children[0].type != kind:
            return None
        node = node.children[0]
    return node


def _take(node: SyntaxTreeNode, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """Take a marker away from the start of a block, if it is there."""
    text = _first_text(node)
    match = pattern.match(text.content) if text is not None else None
    if text is not None and match is not None and text.token is not None:
        text.token.content = text.content[match.end() :]
    return match


class _Callout(NamedTuple):
    """The first line of an Obsidian callout: ``> [!kind]- title``."""

    kind: str
    fold: str
    title: Sequence[SyntaxTreeNode]


def _callout_of(quote: SyntaxTreeNode) -> _Callout | None:
    """Take the first line of a callout out of a quotation; None where it isn't one."""
    match = _take(quote, _CALLOUT)
    if match is None:
        return None
    paragraph = quote.children[0]
    inline = paragraph.children[0]
    ends = (
        at for at, each in enumerate(inline.children) if each.type in {"softbreak", "hardbreak"}
    )
    end = next(ends, len(inline.children))
    title, inline.children = inline.children[:end], inline.children[end + 1 :]
    if not inline.children:
        quote.children = quote.children[1:]
    elif paragraph.nester_tokens is not None and paragraph.map is not None:
        first, last = paragraph.map
        paragraph.nester_tokens.opening.map = [first + 1, last]
    return _Callout(match[1].strip(), match[2], title)


def _is_seen(node: SyntaxTreeNode) -> bool:
    """False for a paragraph in which there is nothing but what is left out."""
    if node.type != "paragraph" or not node.children:
        return True
    return any(
        each.type not in _UNSEEN and not (each.type == "text" and not each.content.strip())
        for each in node.children[0].children
    )


def code_lines(code: str, language: str) -> list[Content]:
    """Split code into styled lines; an unknown language stays plain."""
    code = code.expandtabs(4)
    if language.lower() in _PLAIN or len(code) > MAX_COLOURED:
        return [Content(line, strip_control_codes=False) for line in code.split("\n")]
    return highlight(code, language=language).split("\n", allow_blank=True)


def column_widths(natural: Sequence[int], room: int, least: Sequence[int]) -> list[int]:
    """Shrink the widest columns until all fit into `room` (without gaps), none below `least`."""
    widths = [max(1, min(width, room)) for width in natural]
    while sum(widths) > room:
        shrinkable = [at for at, width in enumerate(widths) if width > least[at]]
        if not shrinkable:
            break
        widths[max(shrinkable, key=widths.__getitem__)] -= 1
    return widths


def _longest_word(cell: Content) -> int:
    words = [cell_len(word) for word in cell.plain.split()]
    return min(_LONGEST_KEPT, max(words, default=MIN_COLUMN))


def _records(rows: Sequence[Sequence[Content]], width: int) -> Iterator[tuple[int, Content]]:
    """Each row as lines of a column's name and the cell, empty ones left out."""
    heads = rows[0]
    room = min(max(head.cell_length for head in heads), width // 3)
    indent = room + len(_GAP)
    for number, row in enumerate(rows[1:], 1):
        if number > 1:
            yield number, Content.styled("─" * room, ".md--rule")
        for head, cell in zip(heads, row, strict=True):
            name = head.truncate(room, ellipsis=True).pad_right(max(0, room - head.cell_length))
            pieces = cell.wrap(max(MIN_COLUMN, width - indent)) if cell.plain.strip() else []
            for index, piece in enumerate(pieces):
                lead = Content(" " * room) if index else name.stylize_before(".md--muted")
                yield number, Content(_GAP).join((lead, piece))


def table_lines(
    rows: Sequence[Sequence[Content]], aligns: Sequence[str], width: int
) -> Iterator[tuple[int, Content]]:
    """Lay out rows, the first being the head; yields the row's number with each line.

    Where a column would have no room for its words, each row stands below the other, as a record.
    """
    room = width - len(_GAP) * (len(rows[0]) - 1)
    columns = [*zip(*rows, strict=True)]
    least = [max(map(_longest_word, column)) for column in columns]
    if sum(least) > room and len(rows) > 1:
        yield from _records(rows, width)
        return
    natural = [max(cell.cell_length for cell in column) for column in columns]
    widths = column_widths(natural, room, least)
    heads = [cell.stylize_before(".md--strong") for cell in rows[0]]
    for number, row in enumerate([heads, *rows[1:]]):
        for line in _row_lines(row, aligns, widths):
            yield number, line
        if not number:
            rule = _GAP.join("─" * column for column in widths)
            yield number, Content.styled(rule, ".md--rule")


def _row_lines(
    row: Sequence[Content], aligns: Sequence[str], widths: Sequence[int]
) -> Iterator[Content]:
    wrapped = [cell.wrap(width) or [Content()] for cell, width in zip(row, widths, strict=True)]
    for index in range(max(len(cell) for cell in wrapped)):
        pieces = [
            _aligned(cell[index] if index < len(cell) else Content(), align, width)
            for cell, align, width in zip(wrapped, aligns, widths, strict=True)
        ]
        yield Content(_GAP).join(pieces)


def _aligned(content: Content, align: str, width: int) -> Content:
    room = max(0, width - content.cell_length)
    if align == "right":
        return content.pad_left(room)
    if align == "center":
        return content.pad(room // 2, room - room // 2)
    return content.pad_right(room)
