"""Cards for the notes that a turn wrote: the name of the note and its first changed lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from textual.content import Content

from kbtui.agent.events import TurnChange
from kbtui.errors import KbtuiError
from kbtui.history.history import History
from kbtui.history.queries.diff import DiffLine, FileDiff
from kbtui.knowledge.library.library import EntryInfo
from kbtui.presentation.notes import Names
from kbtui.text import clean_line, counted
from kbtui.tui.markdown.plain import as_read
from kbtui.tui.widgets.line_view import Line

MAX_LINES = 5
MAX_CARDS = 3
_MIN_WIDTH = 24
_KIND_LABELS = {"added": "new", "modified": "changed", "deleted": "deleted", "renamed": "renamed"}
_PROPERTY_LINE = re.compile(r"([\w-]+):[ \t]*(\S.*)")
_UPKEEP_PROPERTIES = {"created", "updated", "type", "title", "id", "modified"}
_EMPTY_VALUES = {"[]", "{}", "''", '""', "null", "~"}
_MAX_COMMITS = 500


@dataclass(frozen=True, slots=True)
class WrittenNote:
    """A change to one note: its kind, its first lines with their signs, and how many more."""

    path: str
    kind: str
    lines: tuple[tuple[str, str], ...]
    more: int = 0


def read_written(
    history: History, changes: Sequence[TurnChange], infos: Iterable[EntryInfo] = ()
) -> tuple[WrittenNote, ...]:
    """Read what changes did to notes, without catalogues; run in a thread.

    `infos` are the existing entries, for the titles of links.
    """
    names = Names(infos if changes else ())
    found: list[WrittenNote] = []
    for change in changes:
        try:
            differences = history.changes_of(change.commit)
        except KbtuiError:  # purged, or of a history that isn't here
            continue
        wanted = [each for each in differences if each.path in change.paths]
        found += [
            _written_note(each, names) for each in wanted if not each.path.endswith("INDEX.md")
        ]
    return tuple(found[:MAX_CARDS])


def undone_commits(history: History, commits: Collection[str]) -> set[str]:
    """Return those of `commits` that have been undone, looking at the newest commits only."""
    undone: set[str] = set()
    left = set(commits)
    for commit in islice(history.log(), _MAX_COMMITS):
        left.discard(commit.id)
        if commit.id not in undone:
            undone.update((commit.origin.undoes or "").split())
        if not left:
            break
    return undone & set(commits)


def _written_note(difference: FileDiff, names: Names) -> WrittenNote:
    old, new = difference.heads
    lines = [
        (line.kind, text)
        for hunk in difference.hunks
        for line in hunk.lines
        if line.kind != " "
        and (text := _readable_line(line, new if line.kind == "+" else old, names))
    ]
    return WrittenNote(
        difference.path, difference.kind, tuple(lines[:MAX_LINES]), max(0, len(lines) - MAX_LINES)
    )


def _readable_line(line: DiffLine, head_lines: int, names: Names) -> str:
    """Return a changed line as rendered text; empty for headings and upkeep properties."""
    text = clean_line(line.text)
    number = line.new if line.kind == "+" else line.old
    if (number or 0) > head_lines:
        is_heading = text.startswith("#") and text.lstrip("#")[:1] in {"", " "}
        return "" if is_heading else as_read(text, names)
    found = _PROPERTY_LINE.fullmatch(text)
    if found is None or found[1] in _UPKEEP_PROPERTIES or found[2] in _EMPTY_VALUES:
        return ""
    return f"{found[1]}  {as_read(found[2], names)}"


def card_lines(written: WrittenNote, title: Content, width: int, *, undone: bool) -> list[Line]:
    """Render a card: the note's title in the top border, its lines, and keys in the bottom one."""
    width = max(_MIN_WIDTH, width)
    word = "undone" if undone else _KIND_LABELS[written.kind]
    inner = width - 4
    title = title.truncate(max(1, width - len(word) - 8), ellipsis=True)
    rule = "─" * (width - title.cell_length - len(word) - 7)
    lines = [Line(_bordered("╭ ", title, f" {rule} {word} ─╮"))]
    lines += [Line(_row(kind, text, inner, undone=undone)) for kind, text in written.lines]
    if written.more:
        more = f"and {counted(written.more, 'more line')}"
        lines.append(Line(_row(" ", more, inner, undone=undone)))
    keys = "Enter tells more" if undone else "Shift+Tab u undoes"
    lines.append(Line(_bordered(f"╰{'─' * (width - len(keys) - 5)} ", Content(keys), " ─╯")))
    return lines


def _bordered(left: str, inside: Content, right: str) -> Content:
    return Content.assemble(
        (left, ".chat--muted"), inside.stylize_before(".chat--muted"), (right, ".chat--muted")
    )


def _row(kind: str, text: str, inner: int, *, undone: bool) -> Content:
    style = {"+": ".chat--good", "-": ".chat--bad"}.get(kind, ".chat--muted")
    body = Content(text).truncate(inner - 2, ellipsis=True)
    if kind == "-" or undone:
        body = body.stylize(".md--strike")
    if kind != "+" or undone:
        body = body.stylize(".chat--muted")
    body = Content.assemble((f"{kind} ", style), body)
    blank = " " * (inner - body.cell_length)
    return Content.assemble(("│ ", ".chat--muted"), body, (f"{blank} │", ".chat--muted"))
