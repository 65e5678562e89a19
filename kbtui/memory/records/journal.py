"""The journal: a person's statements as typed, one timed line each in the note of the day.

A line is ``- 09:14 the text``; further lines of a text are indented below it, and a task has a
checkbox. A line that no longer holds is struck out with a pointer to its replacement. Lines are
never altered in any other way.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import takewhile

from kbtui.errors import ConflictError, KbtuiError, UsageError
from kbtui.history.change import Actor, Change, Commit, Origin
from kbtui.history.history import History
from kbtui.knowledge.format.document import read
from kbtui.knowledge.library.library import Library
from kbtui.memory.records.committing import committed
from kbtui.memory.records.dates import (
    local as local,
    with_dates as with_dates,
    without_dates as without_dates,
)
from kbtui.memory.records.tombstones import Tombstones
from kbtui.offline.lines import TIMED_ITEM, TextLine, lines_of
from kbtui.text import clean, clean_line, fold
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace

_SECTION = "Journal"
_IN_LIST = re.compile(r"[-*+•][ \t]|[ \t]{2,}\S")
_NO_TEXT = ("|", ">", "~", "`")  # a table row, a quote, a code fence
_BY_HAND = "Open the note, and strike it out there."
_LINE_LEAD = re.compile(r"(?P<lead>[ \t]*(?:[-*+•][ \t]+|\d{1,3}[.)][ \t]+)?)(?P<text>.*)")


@dataclass(frozen=True, slots=True)
class JournalLine:
    """A line of the journal: file, line number from 1, time ``09:14``, and text.

    `commit` is None if the day's note already had the line.
    """

    path: str
    line: int
    time: str
    text: str
    commit: Commit | None = None


@dataclass(eq=False)
class Journal:
    """Writes and reads the journal of one workspace.

    With `in_daily_notes` it is a section of the vault owner's daily notes; None while the owner
    hasn't decided.
    """

    workspace: Workspace
    history: History
    library: Library
    tombstones: Tombstones
    in_daily_notes: bool | None = None

    def keep(self, text: str, when: datetime, origin: Origin, *, task: bool = False) -> JournalLine:
        """Add a text to the journal as typed, with dates added after words like "yesterday".

        Raises:
            UsageError: The text has no letter or digit. Otherwise as `committed`.
        """
        when = local(when)
        said = with_dates(clean(text).strip(), when, is_dated=True)
        if not any(map(str.isalnum, said)):
            raise UsageError("There is nothing to keep.", "Type what you want to have kept.")
        path, begun, section = self._location(when.date())
        time = f"{when:%H:%M}"
        line = _as_item(said, time, task=task)

        def work(change: Change) -> tuple[int, str]:
            before = change.read(path)
            note = files.text_of(before) if before is not None else begun
            known = _existing_item(note, said)
            if known is not None:
                return known
            self.tombstones.lift(change, [said])
            grown, number = _with_item(note, line, section)
            change.put(path, grown.encode("utf-8", "surrogateescape"), over=before)
            return number, time

        (number, noted_at), commit = committed(
            self.history, self.workspace, Actor.YOU, "You said so.", origin, work
        )
        return JournalLine(path, number, noted_at, clean_line(said), commit)

    def mark_past(
        self, path: str, first: int, text: str, newer: JournalLine, origin: Origin
    ) -> Commit:
        """Strike out the line with this text, and append a pointer to the newer one.

        If several lines match, the one at line `first` is meant. Every word stays.

        Raises:
            ConflictError: The line is gone, or striking it out would change how another line reads.
                Otherwise as `committed`.
        """
        pointer = f"{day_of(newer.path) or newer.path} {newer.time}".rstrip()

        def work(change: Change) -> None:
            before = change.read(path)
            changed = with_pointer(path, files.text_of(before), first, text, pointer)
            change.put(path, changed.encode("utf-8", "surrogateescape"), over=before)

        reason = f"No longer so: {clean_line(text)}"
        _, commit = committed(self.history, self.workspace, Actor.YOU, reason, origin, work)
        if commit is None:
            raise AssertionError("a struck line is another text")
        return commit

    def line_at(self, path: str, first: int, when: str) -> TextLine | None:
        """Return the line at `first` if it was written at `when` (like ``2026-11-23 09:14``).

        Struck-out lines count. Return None if another line is there now.
        """
        try:
            note = files.read_text(self.workspace, path)
        except KbtuiError:
            return None
        day = day_of(path)
        return next(
            (
                each
                for each in lines_of(note, struck_too=True)
                if each.first == first and each.time and when == f"{day} {each.time}"
            ),
            None,
        )

    def may_be_asked_about(self, day: date) -> bool:
        """Return whether to ask if the journal, still empty, should go into daily notes."""
        undecided = self.in_daily_notes is None and self.library.in_place and not self.days()
        return undecided and self.library.daily_note(day) is not None

    def days(self) -> list[str]:
        """Return the paths of the daily notes, newest first."""
        found = [f"memory/{file.name}" for file in self.workspace.memory.glob("????-??-??.md")]
        if self.in_daily_notes:
            found += [info.path for info in self.library.infos()]
        dated = {path: day for path in found if (day := day_of(path)) is not None}
        return sorted(dated, key=lambda path: (dated[path], path), reverse=True)

    def lines(self) -> Iterator[tuple[str, TextLine]]:
        """Yield every line that still holds with the path of its note, newest day first."""
        for path in self.days():
            try:
                note = files.read_text(self.workspace, path)
            except KbtuiError:
                continue
            yield from ((path, line) for line in lines_of(note) if line.time)

    def begin_page(self, day: date, path: str) -> None:
        """Begin the page of a day at `path` if it is missing, the owner's daily note as they do.

        Raises:
            StorageError: The page can't be written.
        """
        if files.exists(self.workspace, path):
            return
        own = self.library.daily_note(day)
        text = own[1] if own is not None and own[0] == path else f"# {day.isoformat()}\n\n"
        with self.history.change(Actor.YOU, "Begun as the page of the day.") as change:
            change.write(path, text, expecting=None)

    def _location(self, day: date) -> tuple[str, str, str]:
        """Return a day's note: its path, its initial text, and the heading of the journal in it."""
        own = self.library.daily_note(day) if self.in_daily_notes else None
        if own is not None:
            return own[0], own[1], _SECTION
        return f"memory/{day.isoformat()}.md", f"# {day.isoformat()}\n", ""


def day_of(path: str) -> date | None:
    """Return the date in a daily note's file name, or None for another file."""
    name = path.rpartition("/")[2].removesuffix(".md").replace("_", "-")
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None


def with_pointer(path: str, note: str, first: int, text: str, pointer: str) -> str:
    """Return a note with a line struck out, and a pointer behind it to what is so instead.

    Raises:
        ConflictError: The line is gone, or striking it out would change how another line reads.
    """
    said = list(lines_of(note))
    found = _find_line(said, text, first)
    if found is None:
        raise ConflictError("That line was changed meanwhile.", _BY_HAND)
    raw = note[found.start : found.end]
    changed = f"{note[: found.start]}{_strike_out(raw)} → {pointer}{note[found.end :]}"
    left = [each.text for each in said if each is not found]
    is_text = path.endswith(".md") and not _has_non_text(raw)
    if not is_text or [each.text for each in lines_of(changed)] != left:
        raise ConflictError("That line can't be struck out as it stands.", _BY_HAND)
    return changed


def _existing_item(note: str, said: str) -> tuple[int, str] | None:
    """Return line number and time of the item with exactly this text that still holds, or None."""
    wanted = _words(said)
    lines = note.split("\n")
    for number, line in enumerate(lines):
        item = TIMED_ITEM.match(line)
        if item:
            more = takewhile(
                lambda each: each.startswith("  ") or not each.strip(), lines[number + 1 :]
            )
            if _words(" ".join([line[item.end() :], *more])) == wanted:
                return number + 1, item["time"]
    return None


def _words(text: str) -> list[str]:
    """Return the words to compare: accents, case and punctuation matter, whitespace doesn't."""
    return unicodedata.normalize("NFC", text).split()


def _as_item(text: str, time: str, *, task: bool) -> str:
    """Format a text as a list item: the first line after the time, the others indented below."""
    first, *others = text.split("\n")
    box = "[ ] " if task else ""
    return "\n".join([f"- {box}{time} {first}", *(f"  {each}".rstrip() for each in others)])


def _with_item(note: str, item: str, section: str) -> tuple[str, int]:
    """Append an item to its section of a note, and return the note and the item's line number.

    A missing section is created. Without `section` the item goes before the first heading below the
    title.
    """
    end = "\r" if "\r\n" in note else ""
    lines = note.split("\n") if note.strip() else []
    start, stop = _section(note, section, len(lines))
    if start is None:
        at = _end_of_text(lines, 0, len(lines))
        lines[at:] = [*([end] if at else []), f"## {section}{end}"]
        start = stop = len(lines)
    at = _end_of_text(lines, start, stop)
    in_list = at > start and _IN_LIST.match(lines[at - 1])
    above = [] if in_list or not at else [end]
    below = [end] if at == stop < len(lines) else []
    lines[at:at] = [*above, *(f"{line}{end}" for line in item.split("\n")), *below]
    text = "\n".join(lines)
    return text if text.endswith("\n") else f"{text}\n", at + len(above) + 1


def _end_of_text(lines: list[str], start: int, stop: int) -> int:
    """Return the index after the last non-blank line in a range."""
    while stop > start and not lines[stop - 1].strip():
        stop -= 1
    return stop


def _section(note: str, section: str, last: int) -> tuple[int | None, int]:
    """Return the lines of a section without its heading; for "", those before any subheading."""
    parts = read(note).parts
    if not section:
        return 0, next((each.line for each in parts if each.level > 1), last)
    found = (each for each in parts if fold(each.title) == fold(section))
    return next(((each.first, each.stop) for each in found), (None, 0))


def _strike_out(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        bare = line.rstrip("\r")
        found = _LINE_LEAD.fullmatch(bare)
        said = found["text"].rstrip() if found else ""
        lines.append(f"{found['lead']}~~{said}~~{line[len(bare) :]}" if found and said else line)
    return "\n".join(lines)


def _find_line(said: Sequence[TextLine], text: str, first: int) -> TextLine | None:
    """Return the line with this text at position `first`, or else the only line with this text."""
    same = [each for each in said if each.text == text]
    there = next((each for each in same if each.first == first), None)
    return there or (same[0] if len(same) == 1 else None)


def _has_non_text(raw: str) -> bool:
    """Return whether a line starts Markdown that isn't read as text."""
    return any(each.lstrip().startswith(_NO_TEXT) for each in raw.split("\n"))
