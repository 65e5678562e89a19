"""Layout of Markdown as lines of a given width, each with its source line."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len
from textual.content import Content
from textual.highlight import highlight

from kbtui.text import clean, clean_line, longest_line
from kbtui.tui.markdown.inline import InlineBuilder, Links, checkbox
from kbtui.tui.markdown.pictures import picture_lines
from kbtui.tui.markdown.source import Cell, Embed, Property, Section, SourceText
from kbtui.tui.markdown.syntax import CALLOUT, LinkRef, embed_of, parse
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.line_view import Line

if TYPE_CHECKING:
    from kbtui.tui.terminal.picture_cells import Pictures

MIN_WIDTH = 8
MAX_MARKDOWN = 2_000_000
MAX_LINE = 30_000
"""Characters of a text, and of its longest line, up to which it is rendered as Markdown; a longer
one is shown verbatim."""
_PICTURE = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[\w+/=]+")
_TASK = re.compile(r"\[([^\[\]\n])\] ")
_KINDS = {
    **dict.fromkeys(("tip", "hint", "important", "success", "check", "done"), "good"),
    **dict.fromkeys(("warning", "caution", "attention", "question", "help", "faq"), "warn"),
    **dict.fromkeys(("failure", "fail", "missing", "danger", "error", "bug"), "bad"),
    **dict.fromkeys(("quote", "cite", "example"), "quiet"),
}
"""Style of each kind of callout; others are styled as a note."""
_BREAKS = frozenset({"softbreak", "hardbreak"})
_INVISIBLE = _BREAKS | {"nothing"}
_BULLETS = "•◦▪"
MIN_COLUMN = 4
_MAX_UNBROKEN_WORD = 14
"""Cells of the longest word that a table column doesn't break."""
_COLUMN_GAP = "  "
MAX_HIGHLIGHTED = 40_000
"""Characters up to which a code block is highlighted; Pygments takes about 1 µs for each."""
_PLAIN_LANGUAGES = frozenset({"", "text", "txt", "plain", "none", "default"})


class Fold(NamedTuple):
    """A foldable block (heading, callout, details): its source lines and state."""

    lines: range
    is_open: bool


class Rendered(NamedTuple):
    """A document as lines, and the links that its cells refer to by number.

    `folds` maps the title's source line to each foldable block.
    """

    lines: list[Line]
    links: list[LinkRef]
    folds: Mapping[int, Fold] = MappingProxyType({})


class _Frame(NamedTuple):
    """The place of a block: its width and the prefixes of its lines."""

    width: int
    first: Content = Content()
    rest: Content = Content()
    depth: int = 0

    def indented(self, first: Content, rest: Content) -> _Frame:
        """Return the frame of a nested block with prefixes for its first and other lines."""
        width = max(MIN_WIDTH, self.width - rest.cell_length)
        return _Frame(width, self.first + first, self.rest + rest, self.depth + 1)

    def continued(self) -> _Frame:
        """Return the frame for the lines after the first."""
        return self._replace(first=self.rest)


def render(
    source: SourceText,
    width: int,
    folds: Mapping[int, bool] = MappingProxyType({}),
    revealed: int | None = None,
    graphics: Pictures | None = None,
) -> Rendered:
    """Lay out a text.

    `folds` maps the source line of a title to whether its block is open; by default headings are,
    and callouts as they specify. Blocks that contain the line `revealed` are open, too. A `whole`
    text has no folds. With `graphics` the terminal draws the pictures.
    """
    if source.raw or _takes_too_long(source.text):
        return render_plain(source.text, width, first_line=source.first_line)
    width = max(MIN_WIDTH, width)
    layout = _Layout(source, None if source.whole else folds, revealed, graphics=graphics)
    layout.sections(source.above, width, is_above=True)
    layout.chips(source.properties, width)
    layout.blocks(parse(clean(source.text), whole=source.whole).children, _Frame(width))
    layout.sections(source.below, width)
    return Rendered(layout.lines, layout.links.refs, layout.folds)


def _takes_too_long(text: str) -> bool:
    """Return whether the parser would take too long: for a long line it can be the square of it.

    Pictures within the text are passed over, as the parser does.
    """
    if len(text) > MAX_MARKDOWN:
        return True
    return longest_line(text) > MAX_LINE < longest_line(_PICTURE.sub("", text))


def render_plain(text: str, width: int, *, first_line: int = 1) -> Rendered:
    """Lay out text verbatim, wrapped."""
    lines: list[Line] = []
    for number, line in enumerate(clean(text).split("\n"), first_line):
        content = Content(line.expandtabs(4), strip_control_codes=False)
        pieces = content.wrap(max(MIN_WIDTH, width)) if line else [content]
        lines += [Line(piece, number, "", index > 0) for index, piece in enumerate(pieces)]
    return Rendered(lines, [])


class _Layout:
    """A visitor of the syntax tree that builds lines."""

    def __init__(
        self,
        source: SourceText,
        folds: Mapping[int, bool] | None = None,
        revealed: int | None = None,
        links: Links | None = None,
        graphics: Pictures | None = None,
    ) -> None:
        self._graphics = graphics
        self.lines: list[Line] = []
        self.folds: dict[int, Fold] = {}
        self.links = links or Links(source.resolve)
        self._source = source
        self._first_line = source.first_line
        self._source_line = source.first_line
        self._fold_states = folds
        self._revealed = revealed

    def chips(self, properties: Sequence[Property], width: int) -> None:
        """Lay out properties as chips on as few lines as possible, followed by a blank line."""
        row = Content()
        for chip in (chip for each in properties for chip in self._chips(each, width)):
            if row and row.cell_length + 1 + chip.cell_length > width:
                self.lines.append(Line(row, 1))
                row = Content()
            row = row + " " + chip if row else chip
        if row:
            self.lines += [Line(row, 1), Line(Content(), 1)]

    def _chips(self, each: Property, width: int) -> Iterator[Content]:
        """Yield the chips of a property, one for each value; the first has the name."""
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

    def sections(self, sections: Sequence[Section], width: int, *, is_above: bool = False) -> None:
        """Lay out the sections below or above the text, each under a rule with its title."""
        source = 1 if is_above else self._first_line + self._source.text.count("\n") + 1
        for each in sections:
            rule = f"── {each.title} "
            rule += "─" * max(2, width - len(rule))
            if not is_above:
                self.lines.append(Line(Content(), source))
            self.lines.append(
                Line(Content.styled(rule, ".md--rule").stylize(".md--muted", 3), source)
            )
            last = None
            for cells in each.cells:
                row = Content("  ").join(map(self._cell, cells))
                self.lines.append(Line(row.truncate(width, ellipsis=True), source))
            for note, text, line in each.rows:
                row = Content.styled(clean_line(text), ".md--muted")
                if note is not None:
                    _, mark = self.links.style(LinkRef("file", note.path, str(line or "")))
                    title = with_sign(note) if note != last else Content("  …")
                    row = Content("   ").join((title, row)).stylize(mark)
                self.lines.append(Line(row.truncate(width, ellipsis=True), source))
                last = note
            if is_above:
                self.lines.append(Line(Content(), source))

    def _cell(self, cell: Cell) -> Content:
        style = ".md--h1" if cell.here or cell.strong else ".md--muted"
        if not cell.path:
            return Content.styled(cell.text, style)
        link, mark = self.links.style(LinkRef("file", cell.path, str(cell.line or "")))
        if cell.line:
            return Content(cell.text).stylize(mark)
        gap = len(cell.text) - len(cell.text.lstrip())
        lit = ".md--lit" if cell.text.strip().isdecimal() else link
        return Content(cell.text).stylize(style if cell.here else lit, gap).stylize(mark)

    def blocks(self, nodes: Sequence[SyntaxTreeNode], frame: _Frame, *, loose: bool = True) -> None:
        """Lay out blocks, with a blank line between them if `loose`."""
        nodes = [node for node in nodes if _is_visible(node)]
        for index, node in enumerate(self._visible_blocks(nodes) if not frame.depth else nodes):
            if index and loose:
                self.lines.append(Line(frame.rest.rstrip(), self._source_line))
            if node.map is not None:
                self._source_line = self._first_line + node.map[0]
            self._block(node, frame)
            frame = frame.continued()

    def _visible_blocks(self, nodes: Sequence[SyntaxTreeNode]) -> Iterator[SyntaxTreeNode]:
        """Yield the blocks that aren't below a folded heading."""
        headings = [node for node in nodes if node.type == "heading" and node.map is not None]
        ends = dict(_section_ends(headings, self._source.text.count("\n") + 1))
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

    def _add_wrapped(
        self,
        content: Content,
        frame: _Frame,
        line_ends: Sequence[int] = (),
    ) -> None:
        """Add inline text, wrapped to the frame.

        The source line of each line is that of its first character.
        """
        pieces = content.wrap(frame.width)
        place = 0
        for index, piece in enumerate(pieces):
            prefix = frame.rest if index else frame.first
            place = max(place, content.plain.find(piece.plain, place))
            at = self._source_line + bisect_right(line_ends, place)
            self.lines.append(Line(prefix + piece, at, "", index > 0))
            place += len(piece.plain)

    def _inline(self, node: SyntaxTreeNode) -> Content:
        builder = InlineBuilder(self.links)
        for child in node.children:
            builder.walk(child.children)
        return builder.content()

    def paragraph(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Lay out a paragraph, with embedded files on lines of their own."""
        embeds = self._source.embeds
        for first, lines in _split_at_embeds(node, embeds) if embeds else ((0, node.children),):
            self._source_line += first
            ref = embed_of(lines)
            if ref is not None and ref in embeds:
                self._embed(ref, embeds[ref], frame)
            else:
                built = InlineBuilder(self.links, breaks=self._source.breaks)
                for inline in lines:
                    built.walk(inline.children if inline.type == "inline" else [inline])
                self._add_wrapped(built.content(), frame, line_ends=built.line_ends)
            self._source_line -= first
            frame = frame.continued()

    def _embed(self, ref: LinkRef, embed: Embed, frame: _Frame) -> None:
        """Lay out an embedded file behind a bar: its title as a link, its picture or text.

        The source line of all of it is that of the embed.
        """
        bar = Content.styled("│ ", ".md--rule")
        inner = frame.indented(bar, bar)
        title = InlineBuilder(self.links).add("▣ ", ".md--muted")
        self._add_wrapped(
            title.add(clean_line(embed.title), *self.links.style(ref)).content(), inner
        )
        if embed.picture is not None:
            for line in picture_lines(embed.picture, inner.width, self._graphics):
                self.lines.append(Line(inner.rest + line, self._source_line))
        if embed.text:
            part = _Layout(SourceText(embed.text, breaks=self._source.breaks), links=self.links)
            part.blocks(parse(embed.text).children, _Frame(inner.width))
            self.lines += [
                Line(inner.rest + line.content, self._source_line, line.fill, line.joined)
                for line in part.lines
            ]

    def heading(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Lay out a heading, with a rule below level 1 and a sign if folded."""
        level = min(int(node.tag[1:]), 4)
        fold = self.folds.get(self._source_line)
        sign = "" if fold is None or fold.is_open else "▸ "
        self._add_wrapped((sign + self._inline(node)).stylize_before(f".md--h{level}"), frame)
        if level == 1:
            rule = Content.styled("━" * frame.width, ".md--rule")
            self.lines.append(Line(frame.rest + rule, self._source_line))

    def hr(self, _node: SyntaxTreeNode, frame: _Frame) -> None:
        rule = Content.styled("─" * frame.width, ".md--rule")
        self.lines.append(Line(frame.first + rule, self._source_line))

    def bullet_list(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Lay out a bullet list, with bullets by its depth."""
        bullet = _BULLETS[min(frame.depth // 2, len(_BULLETS) - 1)]
        self._list(node, frame, lambda _index: f"{bullet} ")

    def ordered_list(self, node: SyntaxTreeNode, frame: _Frame) -> None:
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
                self.lines.append(Line(frame.rest.rstrip(), self._source_line))
            if item.map is not None:
                self._source_line = self._first_line + item.map[0]
            self._item(item, frame, marker(index), loose=loose)
            frame = frame.continued()

    def _item(self, item: SyntaxTreeNode, frame: _Frame, marker: str, *, loose: bool) -> None:
        task = _strip_marker(item, _TASK)
        lead = Content.styled(marker, ".md--bullet") if task is None else checkbox(task[1])
        inner = frame.indented(lead, Content(" " * lead.cell_length))
        if item.children:
            self.blocks(item.children, inner, loose=loose)
        else:
            self.lines.append(Line(inner.first, self._source_line))

    def blockquote(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Lay out a quotation or callout behind a bar; a folded callout is only its title."""
        callout = _parse_callout(node)
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
        self._add_wrapped((sign + title).stylize_before(style), inner)
        if is_open:
            self.blocks(node.children, inner.continued())

    def _fold(self, first: int, end: int, *, is_open: bool = True) -> tuple[str, bool]:
        """Register a foldable block, and return its sign and whether it is open.

        Args:
            first: The line of its title, from 0.
            end: The line after its last one, from 0.
            is_open: Its state by default.
        """
        if self._fold_states is None:
            return "", True
        lines = range(self._first_line + first, self._first_line + end)
        is_open = self._fold_states.get(lines.start, is_open) or self._revealed in lines[1:]
        self.folds[lines.start] = Fold(lines, is_open)
        return "▾ " if is_open else "▸ ", is_open

    def details(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Lay out ``<details>``: the summary, and the blocks below it if open."""
        sign, is_open = self._fold(*(node.map or (0, 1)), is_open=bool(node.meta["open"]))
        title = InlineBuilder(self.links).walk(node.children[0].children).content()
        self._add_wrapped((sign + title).stylize_before(".md--strong"), frame)
        if is_open:
            indent = Content("  ")
            self.blocks(node.children[1:], frame.continued().indented(indent, indent))

    def fence(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        """Lay out code, highlighted if its language is known."""
        info = {"fence": node.info, "code_block": ""}.get(node.type, "latex")
        language = (info.split() or [""])[0]
        code = node.content.strip("\n") if node.type.startswith("math") else node.content
        first = self._source_line + (node.type != "code_block" and node.map is not None)
        for number, line in enumerate(code_lines(code.rstrip("\n"), language)):
            pieces = line.fold(frame.width - 1) or [line]
            for index, piece in enumerate(pieces):
                prefix = frame.first if not (number or index) else frame.rest
                content = prefix + Content(" ") + piece
                self.lines.append(Line(content, first + number, "md--block", index > 0))

    def table(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        rows = [row for part in node.children for row in part.children]
        cells = [[self._inline(cell) for cell in row.children] for row in rows]
        aligns = [str(cell.attrs.get("style", ""))[11:] for cell in rows[0].children]
        for row, content in table_lines(cells, aligns, frame.width):
            prefix = frame.rest if row else frame.first
            # The delimiter row is between the first row and the second.
            source = self._source_line + row + (row > 0)
            self.lines.append(Line(prefix + content, source))

    def footnote_block(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        self.lines.append(Line(Content.styled("─" * 12, ".md--rule"), self._source_line))
        for index, note in enumerate(node.children, 1):
            label = f"[{clean_line(str(note.meta.get('label') or index))}] "
            inner = frame.indented(Content.styled(label, ".md--muted"), Content(" " * len(label)))
            self.blocks(note.children, inner)

    def _verbatim(self, node: SyntaxTreeNode, frame: _Frame) -> None:
        for line in node.content.rstrip("\n").split("\n"):
            self._add_wrapped(Content.styled(line.expandtabs(4), ".md--muted"), frame)
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
"""Layout method by node type; of other nodes the children are laid out."""


def _section_ends(headings: Sequence[SyntaxTreeNode], end: int) -> Iterator[tuple[int, int]]:
    """Yield the line of each heading and the end of its section, exclusive (both from 0)."""
    above: list[tuple[int, int]] = []  # level and line of the enclosing headings
    for each in headings:
        level, line = int(each.tag[1:]), (each.map or (0, 0))[0]
        while above and above[-1][0] >= level:
            yield above.pop()[1], line
        above.append((level, line))
    yield from ((line, end) for _, line in above)


def _split_at_embeds(
    paragraph: SyntaxTreeNode, embeds: Mapping[LinkRef, Embed]
) -> Iterator[tuple[int, Sequence[SyntaxTreeNode]]]:
    """Yield the parts of a paragraph with their line in it, each embed a part of its own."""
    text: list[SyntaxTreeNode] = []
    begun = 0
    for number, (gap, line) in enumerate(_source_lines(paragraph)):
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


def _source_lines(paragraph: SyntaxTreeNode) -> Iterator[tuple[_Nodes, _Nodes]]:
    """Yield the nodes of each source line, with the line break before it."""
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
    """Return the first text node of a paragraph at the start of `node`, or None."""
    for kind in ("paragraph", "inline", "text"):
        if not node.children or node.children[0].type != kind:
            return None
        node = node.children[0]
    return node


def _strip_marker(node: SyntaxTreeNode, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """Remove a marker from the start of a block, and return its match or None."""
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


def _parse_callout(quote: SyntaxTreeNode) -> _Callout | None:
    """Remove the first line of a callout from a quotation and return it parsed, or None."""
    match = _strip_marker(quote, CALLOUT)
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


def _is_visible(node: SyntaxTreeNode) -> bool:
    """Return whether a node is anything but a paragraph of only hidden content."""
    if node.type != "paragraph" or not node.children:
        return True
    return any(
        each.type not in _INVISIBLE and not (each.type == "text" and not each.content.strip())
        for each in node.children[0].children
    )


def code_lines(code: str, language: str) -> list[Content]:
    """Split code into highlighted lines; an unknown language stays plain."""
    code = code.expandtabs(4)
    if language.lower() in _PLAIN_LANGUAGES or len(code) > MAX_HIGHLIGHTED:
        return [Content(line, strip_control_codes=False) for line in code.split("\n")]
    return highlight(code, language=language).split("\n", allow_blank=True)


def column_widths(natural: Sequence[int], room: int, least: Sequence[int]) -> list[int]:
    """Shrink the widest columns until all fit in `room` (without gaps), none below `least`."""
    widths = [max(1, min(width, room)) for width in natural]
    while sum(widths) > room:
        shrinkable = [at for at, width in enumerate(widths) if width > least[at]]
        if not shrinkable:
            break
        widths[max(shrinkable, key=widths.__getitem__)] -= 1
    return widths


def _longest_word(cell: Content) -> int:
    words = [cell_len(word) for word in cell.plain.split()]
    return min(_MAX_UNBROKEN_WORD, max(words, default=MIN_COLUMN))


def _records(rows: Sequence[Sequence[Content]], width: int) -> Iterator[tuple[int, Content]]:
    """Yield each row as a record: lines of column name and cell, without empty cells."""
    heads = rows[0]
    room = min(max(head.cell_length for head in heads), width // 3)
    indent = room + len(_COLUMN_GAP)
    for number, row in enumerate(rows[1:], 1):
        if number > 1:
            yield number, Content.styled("─" * room, ".md--rule")
        for head, cell in zip(heads, row, strict=True):
            name = head.truncate(room, ellipsis=True).pad_right(max(0, room - head.cell_length))
            pieces = cell.wrap(max(MIN_COLUMN, width - indent)) if cell.plain.strip() else []
            for index, piece in enumerate(pieces):
                lead = Content(" " * room) if index else name.stylize_before(".md--muted")
                yield number, Content(_COLUMN_GAP).join((lead, piece))


def table_lines(
    rows: Sequence[Sequence[Content]], aligns: Sequence[str], width: int
) -> Iterator[tuple[int, Content]]:
    """Lay out rows, the first being the header, and yield each line with its row's number.

    If the columns have no room for their words, rows are laid out as records.
    """
    room = width - len(_COLUMN_GAP) * (len(rows[0]) - 1)
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
            rule = _COLUMN_GAP.join("─" * column for column in widths)
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
        yield Content(_COLUMN_GAP).join(pieces)


def _aligned(content: Content, align: str, width: int) -> Content:
    room = max(0, width - content.cell_length)
    if align == "right":
        return content.pad_left(room)
    if align == "center":
        return content.pad(room // 2, room - room // 2)
    return content.pad_right(room)
