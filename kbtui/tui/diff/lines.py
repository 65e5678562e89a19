"""Differences as lines that fit a width: unified, or before and after beside each other.

Plain functions that run in any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import NamedTuple

from textual.content import Content, Span

from kbtui.history.looking.diff import DiffLine, FileDiff, Hunk, emphasize
from kbtui.presentation.notes import Names
from kbtui.text import clean, clean_line
from kbtui.tui.widgets.kinds import signed
from kbtui.tui.widgets.line_view import Line

_Words = Sequence[tuple[int, int]]

SIDE_BY_SIDE_COLUMNS = 120
"""Columns from which on before and after stand beside each other by themselves."""
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


def lay_out(
    diffs: Sequence[FileDiff],
    width: int,
    *,
    side_by_side: bool,
    note: str = "",
    names: Names | None = None,
) -> DiffLayout:
    """Lay out the differences of files, one below the other, and a note at the end."""
    layout = DiffLayout()
    for part in lay_out_parts(diffs, width, side_by_side=side_by_side, note=note, names=names):
        layout.lines += part.lines
        layout.hunks += part.hunks
    return layout


def lay_out_parts(
    diffs: Sequence[FileDiff],
    width: int,
    *,
    side_by_side: bool,
    note: str = "",
    names: Names | None = None,
) -> Iterator[DiffLayout]:
    """Do it in parts, of which the first is there soon; hunks are counted from the very top."""
    part, above, size = DiffLayout(), 0, _FIRST_LINES
    blocks = _blocks(diffs, width, side_by_side=side_by_side, names=names or Names())
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
            yield Line(Content.styled(rest, ".diff--muted"))
            break
        if begin is not None:
            yield begin
        for line in lines:
            count += 1
            yield line
    if note:
        yield Line(Content())
        yield Line(Content.styled(f" {note}", ".diff--muted"))


def _blocks(
    diffs: Sequence[FileDiff], width: int, *, side_by_side: bool, names: Names
) -> Iterator[tuple[_Begin | None, Iterable[Line]]]:
    """Each file's head, and each of its hunks."""
    columns = two_columns if side_by_side else one_column
    for index, diff in enumerate(diffs):
        head = [Line(Content())] if index else []
        head.append(_file_line(diff, names))
        if not diff.hunks:
            head.append(Line(Content.styled(f"  {_why_empty(diff)}", ".diff--muted")))
        yield None, head
        for number, hunk in enumerate(diff.hunks):
            title = Line(Content.styled(f" {clean_line(hunk.place)}", ".diff--hunk"))
            yield _Begin(diff.path, number), chain([title], columns(hunk, diff.path, width))


def _file_line(diff: FileDiff, names: Names) -> Line:
    named = signed(names[diff.path], ".diff--name")
    parts: list[Content | str | tuple[str, str]] = [" ", named, " "]
    kind = _KINDS[diff.kind]
    if diff.old_path and diff.old_path != diff.path:
        kind = f"was {names[diff.old_path].title}"
    if kind:
        parts.append((f" {kind} ", ".diff--muted"))
    if diff.added:
        parts.append((f" +{diff.added}", ".diff--plus"))
    if diff.removed:
        parts.append((f" -{diff.removed}", ".diff--minus"))
    return Line(Content.assemble(*parts), fill="diff--file")


def _why_empty(diff: FileDiff) -> str:
    if diff.binary:
        return "not text"
    if diff.path.endswith("INDEX.md"):
        return "the catalogue follows by itself"
    if diff.path.startswith("memory/"):
        return "kept by kbtui itself"
    return "only its name changed" if diff.kind == "renamed" else "no lines"


_SIGN_STYLES = {" ": ".diff--muted", "+": ".diff--plus", "-": ".diff--minus"}
_FILLS = {" ": "", "+": "diff--added", "-": "diff--removed"}
_WORDS = {"+": ".diff--added-word", "-": ".diff--removed-word"}
_HEADING = re.compile(r"#{1,6}\s.*")
_MARK = re.compile(r"\s*(?:[-*+]|\d+[.)])\s(?:\[[ xX]\]\s)?|>\s?|---+\s*$")
_KEY = re.compile(r"[^\s#\-][^:]*:(?=\s|$)")
_INLINE = re.compile(
    r"(?P<code>`[^`]+`)|(?P<link>!?\[\[[^\]]+\]\]|\[[^\]]*\]\([^)\s]+\)|<https?://[^>\s]+>)"
    r"|(?P<tag>(?<![\w/])#[^\W\d][\w/-]*)"
)


def one_column(hunk: Hunk, path: str, width: int) -> Iterator[Line]:
    """A hunk in unified form, with the numbers of both sides."""
    texts = _Texts(hunk, path)
    digits = _digits(hunk)
    room = max(8, width - 2 * digits - 4)
    for index, line in enumerate(hunk.lines):
        numbers = f"{line.old or '':>{digits}} {line.new or '':>{digits}} "
        parts = _wrapped(texts.content(index), room)
        for joined, content in enumerate(_behind_gutter(numbers, line.kind, parts)):
            yield Line(content, 0, _FILLS[line.kind], joined > 0)


def two_columns(hunk: Hunk, path: str, width: int) -> Iterator[Line]:
    """A hunk with what was before on the left, and what came of it on the right."""
    texts = _Texts(hunk, path)
    half = (width - 1) // 2
    digits = _digits(hunk)
    blank = Content(" " * half)

    def column(index: int | None, number: int | None) -> list[Content]:
        if index is None:
            return [blank]
        return _half(
            texts.content(index), hunk.lines[index].kind, f"{number or '':>{digits}} ", half
        )

    for old, new in _rows(hunk.lines):
        left = column(old, hunk.lines[old].old if old is not None else None)
        right = column(new, hunk.lines[new].new if new is not None else None)
        for one, other in zip_longest(left, right, fillvalue=blank):
            yield Line(_beside(one, other))


class _Texts:
    """The lines of a hunk with their colours, and the words marked in which two of them differ."""

    def __init__(self, hunk: Hunk, path: str) -> None:
        self._lines = hunk.lines
        self._coloured = _is_markdown(path)
        self._front = _front_lines(hunk.lines) if self._coloured else set()
        self._partners: dict[int, int] = {}
        self._words: dict[int, _Words] = {}
        for minus, plus in _replaced(hunk.lines):
            self._partners[minus], self._partners[plus] = plus, minus

    def content(self, index: int) -> Content:
        """One of the lines; each is asked for once."""
        line = self._lines[index]
        text = _plain(line)
        spans = _colours_of(text, front=index in self._front) if self._coloured else []
        spans += [Span(*place, _WORDS[line.kind]) for place in self._changed_words(index)]
        content = Content(text, spans, strip_control_codes=False)
        if not line.newline:
            content += Content.styled("  (no line end)", ".diff--muted")
        return content

    def _changed_words(self, index: int) -> _Words:
        """Where a line differs from the one that it replaces, or that replaces it."""
        partner = self._partners.get(index)
        if partner is None:
            return ()
        if index not in self._words:
            old, new = min(index, partner), max(index, partner)
            found = emphasize(_plain(self._lines[old]), _plain(self._lines[new]))
            self._words[old], self._words[new] = found
        return self._words.pop(index)


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
    return _shifted(f"{left.plain}│", [*left.spans, Span(at, at + 1, ".diff--muted")], right)


# Markdown: a line of a difference stands alone, so only what it shows by itself is coloured.


def _is_markdown(path: str) -> bool:
    """True if a file is coloured at all."""
    return path.lower().endswith((".md", ".markdown"))


def _front_lines(lines: Iterable[DiffLine]) -> set[int]:
    """The places in a file's first hunk that belong to its frontmatter."""
    found: set[int] = set()
    for index, line in enumerate(lines):
        number = line.new or line.old or 0
        if not found and (number != 1 or line.text.rstrip() != "---"):
            return found
        found.add(index)
        if number > 1 and line.kind != "-" and line.text.rstrip() in {"---", "..."}:
            return found
    return found


def _colours_of(text: str, *, front: bool) -> list[Span]:
    """The coloured parts of one line."""
    if front:
        match = _KEY.match(text)
        return [Span(0, match.end(), ".diff--key")] if match else []
    if _HEADING.match(text):
        return [Span(0, len(text), ".diff--heading")]
    return list(_spans(text))


def _spans(text: str) -> Iterator[Span]:
    mark = _MARK.match(text)
    if mark:
        yield Span(0, mark.end(), ".diff--mark")
    if "`" in text or "[" in text or "#" in text or "<" in text:
        for match in _INLINE.finditer(text):
            yield Span(match.start(), match.end(), f".diff--{match.lastgroup}")
