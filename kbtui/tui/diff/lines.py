"""Layout of diffs as lines of a given width, unified or side by side; safe in any thread."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile, zip_longest
from typing import Any, NamedTuple

from textual.content import Content, Span

from kbtui.history.queries.diff import DiffLine, FileDiff, Hunk, emphasize
from kbtui.knowledge.format.document import Document
from kbtui.presentation.notes import Names
from kbtui.presentation.times import format_written_day
from kbtui.text import clean, clean_line
from kbtui.tui.markdown.inline import Links, render_single_line
from kbtui.tui.markdown.plain import named_by_path
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.line_view import Line
from kbtui.workspace.layout import entry_path

MAX_LINES = 20_000
_FIRST_PART_LINES, _PART_LINES = 400, 2_000
"""Lines of the first part, more than any screen shows, and of each part that follows."""
_KINDS = {"added": "new", "deleted": "deleted", "modified": "", "renamed": "renamed"}


class HunkPlace(NamedTuple):
    """A hunk's first line in the layout, its file, and its index there (from 0)."""

    line: int
    path: str
    number: int


class _HunkStart(NamedTuple):
    """Marker of the start of a hunk, with its index in the file (from 0)."""

    path: str
    number: int


@dataclass(slots=True)
class DiffLayout:
    """Lines of a diff, and where its hunks begin."""

    lines: list[Line] = field(default_factory=list)
    hunks: list[HunkPlace] = field(default_factory=list)


def lay_out(
    diffs: Sequence[FileDiff], width: int, *, side_by_side: bool, **options: Any
) -> DiffLayout:
    """Lay out file diffs in one part; see `lay_out_parts`."""
    return next(lay_out_parts(diffs, width, side_by_side=side_by_side, at_once=True, **options))


def lay_out_parts(
    diffs: Sequence[FileDiff],
    width: int,
    *,
    side_by_side: bool,
    raw: bool = False,
    note: str = "",
    names: Names | None = None,
    at_once: bool = False,
) -> Iterator[DiffLayout]:
    """Yield the layout of file diffs, followed by a note.

    Yields a short part first and then longer ones, or one part if `at_once`. Lines of hunks count
    from the top of the first part.
    """
    part, above, size = DiffLayout(), 0, sys.maxsize if at_once else _FIRST_PART_LINES
    names = names or Names()

    def columns(hunk_text: _HunkText) -> Iterator[Line]:
        beside = side_by_side and hunk_text.has_two_sides
        return (two_columns if beside else one_column)(hunk_text, width)

    blocks = _blocks(diffs, names, columns, raw=raw)
    for each in _stream(blocks, note):
        if isinstance(each, _HunkStart):
            part.hunks.append(HunkPlace(above + len(part.lines), each.path, each.number))
            continue
        part.lines.append(each)
        if len(part.lines) == size:
            yield part
            above += size
            part, size = DiffLayout(), _PART_LINES
    yield part


def _stream(
    blocks: Iterable[tuple[_HunkStart | None, Iterable[Line]]], note: str
) -> Iterator[Line | _HunkStart]:
    """Yield all lines up to `MAX_LINES`, with a marker before the first line of each hunk."""
    count = 0
    for begin, lines in blocks:
        if count > MAX_LINES:
            rest = "… the rest is too long to be shown here"
            yield Line(Content.styled(rest, ".md--muted"))
            break
        if begin is not None:
            yield begin
        for line in lines:
            count += 1
            yield line
    if note:
        yield Line(Content())
        yield Line(Content.styled(f" {note}", ".md--muted"))


def _blocks(
    diffs: Sequence[FileDiff],
    names: Names,
    columns: Callable[[_HunkText], Iterator[Line]],
    *,
    raw: bool,
) -> Iterator[tuple[_HunkStart | None, Iterable[Line]]]:
    """Yield the header of each file and each of its hunks."""
    for index, diff in enumerate(diffs):
        head = [Line(Content())] if index else []
        head.append(_file_line(diff, names, raw=raw))
        if not diff.hunks:
            head.append(Line(Content.styled(f"  {_empty_reason(diff)}", ".md--muted")))
        yield None, head
        for number, hunk in enumerate(diff.hunks):
            hunk_text = _HunkText(hunk, diff, names, raw=raw)
            if len(diff.hunks) > 1 and not hunk_text.has_visible_changes:
                continue
            title = Line(Content.styled(f" {clean_line(hunk_text.place)}", ".diff--hunk"))
            is_whole = not raw and diff.kind in {"added", "deleted"} and len(diff.hunks) == 1
            yield (
                _HunkStart(diff.path, number),
                chain([] if is_whole else [title], columns(hunk_text)),
            )


def _count_changed(diff: FileDiff, kind: str, *, raw: bool) -> int:
    """Count lines of one kind, leaving out blank lines and dates unless `raw`."""
    lines = (line.text for hunk in diff.hunks for line in hunk.lines if line.kind == kind)
    return sum(raw or bool(text.strip() and not _DATE.match(text)) for text in lines)


def _file_line(diff: FileDiff, names: Names, *, raw: bool) -> Line:
    named = with_sign(names[diff.path], ".diff--name")
    parts: list[Content | str | tuple[str, str]] = [" ", named, " "]
    kind = _KINDS[diff.kind]
    if diff.old_path and diff.old_path != diff.path:
        kind = f"was {names[diff.old_path].title}"
    if kind:
        parts.append((f" {kind} ", ".md--muted"))
    for sign, style in (("+", ".diff--plus"), ("-", ".diff--minus")):
        if count := _count_changed(diff, sign, raw=raw):
            parts.append((f" {sign}{count}", style))
    return Line(Content.assemble(*parts), fill="diff--file")


def _empty_reason(diff: FileDiff) -> str:
    if diff.binary:
        return "not text"
    if diff.path.endswith("INDEX.md"):
        return "the catalogue follows by itself"
    if diff.path.startswith("memory/"):
        return "kept by kbtui itself"
    return "only its name changed" if diff.kind == "renamed" else "no lines"


_SIGN_STYLES = {" ": ".md--muted", "+": ".diff--plus", "-": ".diff--minus", "~": ".md--muted"}
_FILLS = {" ": "", "+": "diff--added", "-": "diff--removed", "~": ""}
_WORDS = (".diff--removed-word", ".diff--added-word")
_HEADING = re.compile(r"#{1,6}\s.*")
_MARK = re.compile(r"\s*(?:[-*+]|\d+[.)])\s(?:\[[^\[\]\n]\]\s)?|>\s?|---+\s*$")
_PATH = re.compile(r"[a-z0-9-]+(?:/[a-z0-9-]+)+(?:\.md)?")
_DATE = re.compile(r"(?:updated|modified):", re.IGNORECASE)
_KEY = re.compile(r"[^\s#\-][^:]*:(?=\s|$)")
_INLINE = re.compile(
    r"(?P<code>`[^`]+`)|(?P<link>!?\[\[[^\]]+\]\]|\[[^\]]*\]\([^)\s]+\)|<https?://[^>\s]+>)"
    r"|(?P<tag>(?<![\w/])#[^\W\d][\w/-]*)"
)


def one_column(hunk_text: _HunkText, width: int) -> Iterator[Line]:
    """Yield the lines of a unified hunk; a changed property takes one line."""
    digits = _digits(hunk_text.hunk)
    for index, line in enumerate(hunk_text.hunk.lines):
        kind, content = hunk_text.unified(index)
        if content is None:
            continue
        numbers = (
            f"{line.old or '':>{digits}} {line.new or '':>{digits}} " if hunk_text.raw else " "
        )
        parts = _wrapped(content, max(8, width - len(numbers) - 2))
        for joined, part in enumerate(_with_gutter(numbers, kind, parts)):
            yield Line(part, 0, _FILLS[kind], joined > 0)


def two_columns(hunk_text: _HunkText, width: int) -> Iterator[Line]:
    """Yield the lines of a hunk with the old text on the left and the new on the right."""
    lines = hunk_text.hunk.lines
    half = (width - 1) // 2
    digits = _digits(hunk_text.hunk)
    blank = Content(" " * half)

    def column(index: int | None, number: int | None) -> list[Content]:
        content = None if index is None else hunk_text.content(index)
        if index is None or content is None:
            return []
        gutter = f"{number or '':>{digits}} " if hunk_text.raw else " "
        return _column_lines(content, lines[index].kind, gutter, half)

    for old, new in _row_pairs(lines):
        left = column(old, lines[old].old if old is not None else None)
        right = column(new, lines[new].new if new is not None else None)
        for one, other in zip_longest(left, right, fillvalue=blank):
            yield Line(_join_columns(one, other))


class _HunkText:
    """The styled lines of a hunk, with differing words highlighted.

    They are rendered for reading, or, if `raw`, verbatim with line numbers.
    """

    def __init__(self, hunk: Hunk, diff: FileDiff, names: Names, *, raw: bool) -> None:
        self.hunk = hunk
        self.raw = raw
        self._lines = hunk.lines
        self._is_one_sided = diff.old_blob is None or diff.new_blob is None
        self._is_markdown = _is_markdown(diff.path)
        self._names = names
        self._links = Links(named_by_path(self._names))
        self._frontmatter = (
            _frontmatter_lines(self._lines, *diff.heads) if self._is_markdown else set()
        )
        self._fences = set(_fences(self._lines)) if self._is_markdown and not raw else set()
        self._changed = {index for index, line in enumerate(self._lines) if line.kind != " "}
        self._has_others = any(
            i not in self._frontmatter or not self._is_date(i) for i in self._changed
        )
        self._partners: dict[int, int] = {}
        self._marks: dict[int, tuple[bool, tuple[tuple[int, int], ...]]] = {}
        by_place = (pair for pair in _paired_lines(self._lines) if not self._frontmatter & {*pair})
        for minus, plus in [*self._properties(), *by_place]:
            self._partners[minus], self._partners[plus] = plus, minus

    def _properties(self) -> Iterator[tuple[int, int]]:
        """Yield the removed and added line of each changed property."""
        before: dict[str, int] = {}
        for index in sorted(self._frontmatter):
            line = self._lines[index]
            key = _KEY.match(line.text)
            if key is not None and line.kind == "-":
                before[key[0]] = index
            elif key is not None and line.kind == "+" and key[0] in before:
                yield before.pop(key[0]), index

    def content(self, index: int) -> Content | None:
        """Return a styled line, or None if it is hidden."""
        if self._is_hidden(index):
            return None
        partner = self._partners.get(index)
        if partner is None:
            return self._readable(index)
        if index not in self._marks:
            self._mark(*sorted((index, partner)))
        as_read, places = self._marks.pop(index)
        content = self._readable(index) if as_read else self._verbatim(index)
        style = _WORDS[index > partner]
        return content and content.add_spans([Span(*place, style) for place in places])

    def unified(self, index: int) -> tuple[str, Content | None]:
        """Return a line's sign and content, with a property's old and new value merged into one."""
        line, partner = self._lines[index], self._partners.get(index)
        if self.raw or partner is None or index not in self._frontmatter or self._is_hidden(index):
            return line.kind, self.content(index)
        if line.kind == "-":
            return line.kind, None
        key = _KEY.match(line.text)
        name = key[0] if key is not None else ""
        old, new = self._value(partner, len(name)), self._value(index, len(name))
        return "~", Content.assemble(
            (name.rstrip(": "), ".md--muted"),
            "  ",
            (old or "none", ".diff--removed-word"),
            (" → ", ".md--muted"),
            (new or "none", ".diff--added-word"),
        )

    def _mark(self, old: int, new: int) -> None:
        """Find the words in which two lines differ, verbatim if only their markup does."""
        before, after = self._readable(old), self._readable(new)
        as_read = before is not None and after is not None and before.plain != after.plain
        if before is None or after is None or not as_read:
            before, after = self._verbatim(old), self._verbatim(new)
        # Plain tuples: of a long difference thousands wait until the other side is drawn.
        for index, places in zip((old, new), emphasize(before.plain, after.plain), strict=True):
            self._marks[index] = as_read, tuple(places)

    def _readable(self, index: int) -> Content | None:
        if self.raw or not self._is_markdown:
            return self._verbatim(index)
        text = _clean_text(self._lines[index])
        if index in self._frontmatter:
            return self._property(index, text)
        if self._lines[index].kind == " " and index in self._fences:
            return None
        unquoted = render_single_line(text, self._links)
        return unquoted if unquoted.plain.strip() or not text.strip() else self._verbatim(index)

    def _property(self, index: int, text: str) -> Content | None:
        if text.rstrip() in {"---", "...", ""} or not self._is_changed(index):
            return None
        key = _KEY.match(text)
        if key is None:
            return Content(f"  {self._value(index, 0)}")
        name, value = key[0].rstrip(": "), self._value(index, key.end())
        if self._is_one_sided and not value and not self._has_values_below(index):
            return None
        return Content.assemble((name, ".md--muted"), "  ", value)

    def _has_values_below(self, index: int) -> bool:
        below = self._lines[index + 1].text if index + 1 in self._frontmatter else "---"
        return not (_KEY.match(below) or below.strip() in {"---", "..."})

    def _is_changed(self, index: int) -> bool:
        """Return whether a frontmatter line, or the list of values below it, was changed."""
        if index in self._changed:
            return True
        below = (
            self._lines[at] for at in range(index + 1, len(self._lines)) if at in self._frontmatter
        )
        values = takewhile(lambda line: not _KEY.match(line.text), below)
        return _KEY.match(self._lines[index].text) is not None and any(
            line.kind != " " and line.text.strip() not in {"---", "..."} for line in values
        )

    @property
    def has_visible_changes(self) -> bool:
        """Whether more than the date of the last change differs."""
        return self.raw or self._has_others or bool(self.hunk.title)

    @property
    def has_two_sides(self) -> bool:
        """Whether the hunk has lines for both columns: not everything was added, or removed."""
        return len({line.kind for line in self._lines}) > 1

    def _is_hidden(self, index: int) -> bool:
        """Return whether a line is a date beside other changes, or blank and ends a run of them."""
        if self.raw or not self._has_others:
            return False
        if index in self._frontmatter:
            return self._is_date(index)
        before, line, after = (
            self._lines[at].kind if 0 <= at < len(self._lines) else ""
            for at in (index - 1, index, index + 1)
        )
        ends = line != " " and before == line != after
        return ends and not self._lines[index].text.strip() and index not in self._partners

    def _is_date(self, index: int) -> bool:
        return _DATE.match(self._lines[index].text) is not None

    @property
    def place(self) -> str:
        """The hunk's location as shown in its title."""
        only = not self.raw and self._changed <= self._frontmatter and not self.hunk.title
        return "properties" if only else self.hunk.place

    def _value(self, index: int, start: int) -> str:
        """Return a property's value without YAML syntax, with notes by their titles."""
        text = _clean_text(self._lines[index])[start:].strip()
        is_list = text.startswith("[") and text.endswith("]") and not text.startswith("[[")
        values = text[1:-1].split(",") if is_list else [text.removeprefix("- ")]
        unquoted = (each.strip().strip("\"'") for each in values)
        return ", ".join(
            self._names[entry_path(each)].title
            if _PATH.fullmatch(each)
            else format_written_day(each)
            for each in unquoted
        )

    def _verbatim(self, index: int) -> Content:
        text = _clean_text(self._lines[index])
        spans = _syntax_spans(text, front=index in self._frontmatter) if self._is_markdown else []
        content = Content(text, spans, strip_control_codes=False)
        if not self._lines[index].newline:
            content += Content.styled("  (without a line break at the end)", ".md--muted")
        return content


def _frontmatter_lines(lines: Sequence[DiffLine], old: int, new: int) -> set[int]:
    """Return the indices of frontmatter lines, given its length in the old and new file."""
    return {
        index
        for index, line in enumerate(lines)
        if (line.old or old + 1) <= old or (line.new or new + 1) <= new
    }


def _fences(lines: Sequence[DiffLine]) -> Iterator[int]:
    """Yield the indices of the lines around code in a hunk, which may begin within some."""
    indices = [index for index, line in enumerate(lines) if line.kind != "-"]
    text = "\n".join(lines[index].text.rstrip("\n") for index in indices)
    document = Document(text, has_head=False, is_excerpt=True)
    for block in document.fenced_blocks:
        yield indices[block.first]
        if closing := document.closing_fence(block):
            yield indices[closing]


def _clean_text(line: DiffLine) -> str:
    return clean(line.text).expandtabs(4).rstrip("\n")


def _paired_lines(lines: Sequence[DiffLine]) -> Iterator[tuple[int, int]]:
    """Yield pairs from each run of removed lines and the added lines right after it."""
    minus: list[int] = []
    plus: list[int] = []
    for index, line in enumerate(lines):
        if line.kind == "+":
            plus.append(index)
            continue
        if plus or line.kind == " ":
            yield from zip(minus, plus, strict=False)
            minus, plus = [], []
        if line.kind == "-":
            minus.append(index)
    yield from zip(minus, plus, strict=False)


def _row_pairs(lines: Sequence[DiffLine]) -> Iterator[tuple[int | None, int | None]]:
    """Yield the line indices of each row of two columns."""
    minus: list[int] = []
    plus: list[int] = []
    for index, line in enumerate(lines):
        if line.kind == "-" and not plus:
            minus.append(index)
        elif line.kind == "+":
            plus.append(index)
        else:
            yield from zip_longest(minus, plus)
            minus, plus = ([index], []) if line.kind == "-" else ([], [])
            if line.kind == " ":
                yield index, index
    yield from zip_longest(minus, plus)


def _digits(hunk: Hunk) -> int:
    last = max(hunk.old_start + hunk.old_count, hunk.new_start + hunk.new_count)
    return max(3, len(str(last)))


def _wrapped(content: Content, width: int) -> list[Content]:
    """Wrap a text, with a shortcut for ASCII lines that fit, which is nearly all."""
    if content.plain.isascii() and len(content.plain) <= width:
        return [content]
    return content.wrap(width)


def _with_gutter(numbers: str, kind: str, parts: Sequence[Content]) -> Iterator[Content]:
    """Yield wrapped lines behind a gutter, which has the number and sign on the first."""
    signed = f"{numbers}{kind} "
    styles = [
        Span(0, len(numbers), ".diff--number"),
        Span(len(numbers), len(signed), _SIGN_STYLES[kind]),
    ]
    for index, part in enumerate(parts):
        yield _prefixed(" " * len(signed), [], part) if index else _prefixed(signed, styles, part)


def _prefixed(before: str, styles: Sequence[Span], content: Content) -> Content:
    by = len(before)
    spans = [*styles, *(Span(each.start + by, each.end + by, each.style) for each in content.spans)]
    return Content(before + content.plain, spans, strip_control_codes=False)


def _column_lines(content: Content, kind: str, number: str, width: int) -> list[Content]:
    """Return one side of a row, its lines padded to `width`."""
    room = max(4, width - len(number) - 2)
    return [
        _padded(line, _FILLS[kind], width)
        for line in _with_gutter(number, kind, _wrapped(content, room))
    ]


def _padded(line: Content, fill: str, width: int) -> Content:
    text = line.plain + " " * max(0, width - line.cell_length)
    ground = [Span(0, len(text), f".{fill}")] if fill else []
    return Content(text, [*ground, *line.spans], strip_control_codes=False)


def _join_columns(left: Content, right: Content) -> Content:
    at = len(left.plain)
    return _prefixed(f"{left.plain}│", [*left.spans, Span(at, at + 1, ".md--muted")], right)


# Markdown: each line of a diff is highlighted on its own, without its context.


def _is_markdown(path: str) -> bool:
    return path.lower().endswith((".md", ".markdown"))


def _syntax_spans(text: str, *, front: bool) -> list[Span]:
    if front:
        match = _KEY.match(text)
        return [Span(0, match.end(), ".md--h3")] if match else []
    if _HEADING.match(text):
        return [Span(0, len(text), ".md--strong")]
    return list(_inline_spans(text))


def _inline_spans(text: str) -> Iterator[Span]:
    mark = _MARK.match(text)
    if mark:
        yield Span(0, mark.end(), ".md--muted")
    if "`" in text or "[" in text or "#" in text or "<" in text:
        for match in _INLINE.finditer(text):
            yield Span(match.start(), match.end(), f".md--{match.lastgroup}")
