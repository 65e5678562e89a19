"""Differences as lines that fit a width: unified, or before and after beside each other.

Plain functions that run in any thread.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile, zip_longest
from typing import Any, NamedTuple

from textual.content import Content, Span

from kbtui.history.queries.diff import DiffLine, FileDiff, Hunk, emphasize
from kbtui.presentation.notes import Named, Names
from kbtui.presentation.times import format_written_day
from kbtui.text import clean, clean_line
from kbtui.tui.markdown.inline import Links, line_as_read
from kbtui.tui.markdown.syntax import LinkRef
from kbtui.tui.widgets.kinds import signed
from kbtui.tui.widgets.line_view import Line
from kbtui.workspace.layout import ENTRIES

MAX_LINES = 20_000
_FIRST_LINES, _MORE_LINES = 400, 2_000
"""Lines of the first part, which no screen shows at once, and of each that follows."""
_KINDS = {"added": "new", "deleted": "deleted", "modified": "", "renamed": "renamed"}


class HunkPlace(NamedTuple):
    """Where a hunk stands on the screen, and which one it is of which file (from 0)."""

    line: int
    path: str
    number: int


class _Begin(NamedTuple):
    """Here a hunk begins, one of a file's (from 0)."""

    path: str
    number: int


@dataclass(slots=True)
class DiffLayout:
    """The lines, and where the hunks begin."""

    lines: list[Line] = field(default_factory=list)
    hunks: list[HunkPlace] = field(default_factory=list)


def lay_out(diffs: Sequence[FileDiff], width: int, *, side_by_side: bool, **how: Any) -> DiffLayout:
    """Lay out the differences of files in one part; see `lay_out_parts`."""
    return next(lay_out_parts(diffs, width, side_by_side=side_by_side, at_once=True, **how))


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
    """Lay out the differences of files, one below the other, and a note at the end.

    In parts, of which the first is there soon, or all `at_once`; hunks are counted from the top.
    """
    part, above, size = DiffLayout(), 0, sys.maxsize if at_once else _FIRST_LINES
    names = names or Names()

    def columns(texts: _Texts) -> Iterator[Line]:
        beside = side_by_side and texts.has_two_sides
        return (two_columns if beside else one_column)(texts, width)

    blocks = _blocks(diffs, names, columns, raw=raw)
    for each in _flow(blocks, note):
        if isinstance(each, _Begin):
            part.hunks.append(HunkPlace(above + len(part.lines), each.path, each.number))
            continue
        part.lines.append(each)
        if len(part.lines) == size:
            yield part
            above += size
            part, size = DiffLayout(), _MORE_LINES
    yield part


def _flow(
    blocks: Iterable[tuple[_Begin | None, Iterable[Line]]], note: str
) -> Iterator[Line | _Begin]:
    """All lines, and before those of a hunk that it begins."""
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
    columns: Callable[[_Texts], Iterator[Line]],
    *,
    raw: bool,
) -> Iterator[tuple[_Begin | None, Iterable[Line]]]:
    """Each file's head, and each of its hunks."""
    for index, diff in enumerate(diffs):
        head = [Line(Content())] if index else []
        head.append(_file_line(diff, names, raw=raw))
        if not diff.hunks:
            head.append(Line(Content.styled(f"  {_why_empty(diff)}", ".md--muted")))
        yield None, head
        for number, hunk in enumerate(diff.hunks):
            texts = _Texts(hunk, diff, names, raw=raw)
            if len(diff.hunks) > 1 and not texts.says_something:
                continue
            title = Line(Content.styled(f" {clean_line(texts.place)}", ".diff--hunk"))
            is_whole = not raw and diff.kind in {"added", "deleted"} and len(diff.hunks) == 1
            yield _Begin(diff.path, number), chain([] if is_whole else [title], columns(texts))


def _counted(diff: FileDiff, kind: str, *, raw: bool) -> int:
    """How many lines were added or removed; without blank ones and dates where these don't show."""
    lines = (line.text for hunk in diff.hunks for line in hunk.lines if line.kind == kind)
    return sum(raw or bool(text.strip() and not _DATE.match(text)) for text in lines)


def _file_line(diff: FileDiff, names: Names, *, raw: bool) -> Line:
    named = signed(names[diff.path], ".diff--name")
    parts: list[Content | str | tuple[str, str]] = [" ", named, " "]
    kind = _KINDS[diff.kind]
    if diff.old_path and diff.old_path != diff.path:
        kind = f"was {names[diff.old_path].title}"
    if kind:
        parts.append((f" {kind} ", ".md--muted"))
    for sign, style in (("+", ".diff--plus"), ("-", ".diff--minus")):
        if count := _counted(diff, sign, raw=raw):
            parts.append((f" {sign}{count}", style))
    return Line(Content.assemble(*parts), fill="diff--file")


def _why_empty(diff: FileDiff) -> str:
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
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")
_KEY = re.compile(r"[^\s#\-][^:]*:(?=\s|$)")
_INLINE = re.compile(
    r"(?P<code>`[^`]+`)|(?P<link>!?\[\[[^\]]+\]\]|\[[^\]]*\]\([^)\s]+\)|<https?://[^>\s]+>)"
    r"|(?P<tag>(?<![\w/])#[^\W\d][\w/-]*)"
)


def one_column(texts: _Texts, width: int) -> Iterator[Line]:
    """A hunk in unified form; a property that was changed is one line."""
    digits = _digits(texts.hunk)
    for index, line in enumerate(texts.hunk.lines):
        kind, content = texts.merged(index)
        if content is None:
            continue
        numbers = f"{line.old or '':>{digits}} {line.new or '':>{digits}} " if texts.raw else " "
        parts = _wrapped(content, max(8, width - len(numbers) - 2))
        for joined, part in enumerate(_behind_gutter(numbers, kind, parts)):
            yield Line(part, 0, _FILLS[kind], joined > 0)


def two_columns(texts: _Texts, width: int) -> Iterator[Line]:
    """A hunk with what was before on the left, and what came of it on the right."""
    lines = texts.hunk.lines
    half = (width - 1) // 2
    digits = _digits(texts.hunk)
    blank = Content(" " * half)

    def column(index: int | None, number: int | None) -> list[Content]:
        content = None if index is None else texts.content(index)
        if index is None or content is None:
            return []
        gutter = f"{number or '':>{digits}} " if texts.raw else " "
        return _half(content, lines[index].kind, gutter, half)

    for old, new in _rows(lines):
        left = column(old, lines[old].old if old is not None else None)
        right = column(new, lines[new].new if new is not None else None)
        for one, other in zip_longest(left, right, fillvalue=blank):
            yield Line(_beside(one, other))


class _Texts:
    """The lines of a hunk, and the words marked in which two of them differ.

    As people read them, or `raw`: as they stand in the file, with their numbers.
    """

    def __init__(self, hunk: Hunk, diff: FileDiff, names: Names, *, raw: bool) -> None:
        self.hunk = hunk
        self.raw = raw
        self._lines = hunk.lines
        self._is_whole = diff.old_blob is None or diff.new_blob is None
        self._coloured = _is_markdown(diff.path)
        self._names = names
        self._links = Links(self._named)
        self._front = _front_lines(self._lines, *diff.heads) if self._coloured else set()
        self._changed = {index for index, line in enumerate(self._lines) if line.kind != " "}
        self._others = any(i not in self._front or not self._is_date(i) for i in self._changed)
        self._partners: dict[int, int] = {}
        self._marks: dict[int, tuple[bool, tuple[tuple[int, int], ...]]] = {}
        by_place = (pair for pair in _replaced(self._lines) if not self._front & {*pair})
        for minus, plus in [*self._properties(), *by_place]:
            self._partners[minus], self._partners[plus] = plus, minus

    def _properties(self) -> Iterator[tuple[int, int]]:
        """The lines of a property before and after."""
        before: dict[str, int] = {}
        for index in sorted(self._front):
            line = self._lines[index]
            key = _KEY.match(line.text)
            if key is not None and line.kind == "-":
                before[key[0]] = index
            elif key is not None and line.kind == "+" and key[0] in before:
                yield before.pop(key[0]), index

    def content(self, index: int) -> Content | None:
        """One of the lines; None for one that says nothing to people."""
        if self._is_hidden(index):
            return None
        partner = self._partners.get(index)
        if partner is None:
            return self._said(index)
        if index not in self._marks:
            self._mark(*sorted((index, partner)))
        as_read, places = self._marks.pop(index)
        content = self._said(index) if as_read else self._written(index)
        style = _WORDS[index > partner]
        return content and content.add_spans([Span(*place, style) for place in places])

    def merged(self, index: int) -> tuple[str, Content | None]:
        """A line and its sign, where both values of a property are said in one."""
        line, partner = self._lines[index], self._partners.get(index)
        if self.raw or partner is None or index not in self._front or self._is_hidden(index):
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
        """Find the words in which two lines differ; where only signs do, these are shown."""
        before, after = self._said(old), self._said(new)
        as_read = before is not None and after is not None and before.plain != after.plain
        if before is None or after is None or not as_read:
            before, after = self._written(old), self._written(new)
        # Plain tuples: of a long difference thousands wait until the other side is drawn.
        for index, places in zip((old, new), emphasize(before.plain, after.plain), strict=True):
            self._marks[index] = as_read, tuple(places)

    def _said(self, index: int) -> Content | None:
        if self.raw or not self._coloured:
            return self._written(index)
        text = _plain(self._lines[index])
        if index in self._front:
            return self._property(index, text)
        if self._lines[index].kind == " " and _FENCE.match(text):
            return None
        said = line_as_read(text, self._links)
        return said if said.plain.strip() or not text.strip() else self._written(index)

    def _property(self, index: int, text: str) -> Content | None:
        if text.rstrip() in {"---", "...", ""} or not self._is_changed(index):
            return None
        key = _KEY.match(text)
        if key is None:
            return Content(f"  {self._value(index, 0)}")
        name, value = key[0].rstrip(": "), self._value(index, key.end())
        if self._is_whole and not value and not self._has_values_below(index):
            return None
        return Content.assemble((name, ".md--muted"), "  ", value)

    def _has_values_below(self, index: int) -> bool:
        below = self._lines[index + 1].text if index + 1 in self._front else "---"
        return not (_KEY.match(below) or below.strip() in {"---", "..."})

    def _is_changed(self, index: int) -> bool:
        """True for a line of frontmatter that was changed, or whose list below it was."""
        if index in self._changed:
            return True
        below = (self._lines[at] for at in range(index + 1, len(self._lines)) if at in self._front)
        values = takewhile(lambda line: not _KEY.match(line.text), below)
        return _KEY.match(self._lines[index].text) is not None and any(
            line.kind != " " and line.text.strip() not in {"---", "..."} for line in values
        )

    @property
    def says_something(self) -> bool:
        """False where nothing but the date of the change was changed, which nobody decides on."""
        return self.raw or self._others or bool(self.hunk.title)

    @property
    def has_two_sides(self) -> bool:
        """False where all was added or all removed: beside it there would be nothing."""
        return len({line.kind for line in self._lines}) > 1

    def _is_hidden(self, index: int) -> bool:
        """True of the date beside other changes, and of a blank line that ends some of them."""
        if self.raw or not self._others:
            return False
        if index in self._front:
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
        """Where it is, for people."""
        only = not self.raw and self._changed <= self._front and not self.hunk.title
        return "properties" if only else self.hunk.place

    def _value(self, index: int, start: int) -> str:
        """The value of a property as people say it, without YAML's signs; notes by their titles."""
        text = _plain(self._lines[index])[start:].strip()
        is_list = text.startswith("[") and text.endswith("]") and not text.startswith("[[")
        values = text[1:-1].split(",") if is_list else [text.removeprefix("- ")]
        said = (each.strip().strip("\"'") for each in values)
        titles = ((self._named(LinkRef("wiki", each)).title, each) for each in said)
        return ", ".join(title or format_written_day(each) for title, each in titles)

    def _named(self, link: LinkRef) -> Named:
        """What a link leads to, if it says a path."""
        path = f"{ENTRIES}{link.target.removesuffix('.md')}.md"
        return self._names[path] if _PATH.fullmatch(link.target) else Named("", "")

    def _written(self, index: int) -> Content:
        """A line as it stands in the file."""
        text = _plain(self._lines[index])
        spans = _colours_of(text, front=index in self._front) if self._coloured else []
        content = Content(text, spans, strip_control_codes=False)
        if not self._lines[index].newline:
            content += Content.styled("  (no line end)", ".md--muted")
        return content


def _front_lines(lines: Sequence[DiffLine], old: int, new: int) -> set[int]:
    """The lines that stand in a head, which takes so many lines before and after."""
    return {
        index
        for index, line in enumerate(lines)
        if (line.old or old + 1) <= old or (line.new or new + 1) <= new
    }


def _plain(line: DiffLine) -> str:
    return clean(line.text).expandtabs(4).rstrip("\n")


def _replaced(lines: Sequence[DiffLine]) -> Iterator[tuple[int, int]]:
    """Pair each run of removed lines with the added lines right behind it."""
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


def _rows(lines: Sequence[DiffLine]) -> Iterator[tuple[int | None, int | None]]:
    """Which lines stand beside each other."""
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
    """The lines that a text takes; nearly all of them fit, and that is seen at once."""
    if content.plain.isascii() and len(content.plain) <= width:
        return [content]
    return content.wrap(width)


def _behind_gutter(numbers: str, kind: str, parts: Sequence[Content]) -> Iterator[Content]:
    """The lines of a text behind its number and sign, which stand before the first."""
    signed = f"{numbers}{kind} "
    styles = [
        Span(0, len(numbers), ".diff--number"),
        Span(len(numbers), len(signed), _SIGN_STYLES[kind]),
    ]
    for index, part in enumerate(parts):
        yield _shifted(" " * len(signed), [], part) if index else _shifted(signed, styles, part)


def _shifted(before: str, styles: Sequence[Span], content: Content) -> Content:
    """Put text in front of a line."""
    by = len(before)
    spans = [*styles, *(Span(each.start + by, each.end + by, each.style) for each in content.spans)]
    return Content(before + content.plain, spans, strip_control_codes=False)


def _half(content: Content, kind: str, number: str, width: int) -> list[Content]:
    """One side of a row, each of its lines filled up to the width."""
    room = max(4, width - len(number) - 2)
    return [
        _filled(line, _FILLS[kind], width)
        for line in _behind_gutter(number, kind, _wrapped(content, room))
    ]


def _filled(line: Content, fill: str, width: int) -> Content:
    text = line.plain + " " * max(0, width - line.cell_length)
    ground = [Span(0, len(text), f".{fill}")] if fill else []
    return Content(text, [*ground, *line.spans], strip_control_codes=False)


def _beside(left: Content, right: Content) -> Content:
    at = len(left.plain)
    return _shifted(f"{left.plain}│", [*left.spans, Span(at, at + 1, ".md--muted")], right)


# Markdown: a line of a difference stands alone, so only what it shows by itself is coloured.


def _is_markdown(path: str) -> bool:
    """True if a file is coloured at all."""
    return path.lower().endswith((".md", ".markdown"))


def _colours_of(text: str, *, front: bool) -> list[Span]:
    """The coloured parts of one line."""
    if front:
        match = _KEY.match(text)
        return [Span(0, match.end(), ".md--h3")] if match else []
    if _HEADING.match(text):
        return [Span(0, len(text), ".md--strong")]
    return list(_spans(text))


def _spans(text: str) -> Iterator[Span]:
    mark = _MARK.match(text)
    if mark:
        yield Span(0, mark.end(), ".md--muted")
    if "`" in text or "[" in text or "#" in text or "<" in text:
        for match in _INLINE.finditer(text):
            yield Span(match.start(), match.end(), f".md--{match.lastgroup}")
