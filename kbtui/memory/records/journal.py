"""The journal: what a person states, as it was typed, a line with its time in a note of the day.

A line is ``- 09:14 the text``; further lines of a text are indented below it, a task has a box.
What no longer holds is struck out and points to what does. Nothing else is ever done to a line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import takewhile

from kbtui.errors import ConflictError, KbtuiError, NotFoundError, UsageError
from kbtui.history.change import Actor, Change, Commit, Origin
from kbtui.history.history import History
from kbtui.knowledge.format.lines import heading_of
from kbtui.knowledge.library.library import Library
from kbtui.memory.records.committing import committed
from kbtui.memory.records.dates import (
    absolute_dates as absolute_dates,
    local as local,
    without_dates as without_dates,
)
from kbtui.memory.records.tombstones import Tombstones
from kbtui.offline.lines import TIMED_ITEM, TextLine, lines_of
from kbtui.text import clean, clean_line, fold
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace

_SECTION = "Journal"
_IN_LIST = re.compile(r"[-*+•][ \t]|[ \t]{2,}\S")
_NO_TEXT = ("|", ">", "~", "`")  # a row, a quote, a fence
_BY_HAND = "Open the note, and strike it out there."
_LINE_LEAD = re.compile(r"(?P<lead>[ \t]*(?:[-*+•][ \t]+|\d{1,3}[.)][ \t]+)?)(?P<text>.*)")


@dataclass(frozen=True, slots=True)
class Noted:
    """A line of the journal: its file, its number from 1, its time ``09:14``, and its text.

    Without a `commit` the day's note said so already.
    """

    path: str
    line: int
    time: str
    text: str
    commit: Commit | None = None


@dataclass(eq=False)
class Journal:
    """Writes and reads the journal of one workspace.

    With `in_daily_notes` it is a section of the notes that the owner of a vault keeps by day; None
    where the owner hasn't said so, or that it isn't.
    """

    workspace: Workspace
    history: History
    library: Library
    tombstones: Tombstones
    in_daily_notes: bool | None = None

    def keep(self, text: str, when: datetime, origin: Origin, *, task: bool = False) -> Noted:
        """Keep a text as it was typed; of a day that is named by its distance the date is added.

        Raises:
            UsageError: it says nothing. Else as `committed`.
        """
        when = local(when)
        said = absolute_dates(clean(text).strip(), when.date(), verbatim=True)
        if not any(map(str.isalnum, said)):
            raise UsageError("There is nothing to keep.", "Type what you want to have kept.")
        path, begun, section = self._place(when.date())
        time = f"{when:%H:%M}"
        line = _as_item(said, time, task=task)

        def work(change: Change) -> tuple[int, str]:
            before = change.read(path)
            note = files.text_of(before) if before is not None else begun
            known = _known(note, said)
            if known is not None:
                return known
            self.tombstones.lift(change, [said])
            grown, number = _with_item(note, line, section)
            change.put(path, grown.encode("utf-8", "surrogateescape"), over=before)
            return number, time

        (number, noted_at), commit = committed(
            self.history, self.workspace, Actor.YOU, "You said so.", origin, work
        )
        return Noted(path, number, noted_at, clean_line(said), commit)

    def mark_past(self, path: str, first: int, text: str, newer: Noted, origin: Origin) -> Commit:
        """Strike out the line of a file that says a text, with a pointer to the newer one.

        Of several that on line `first` is meant. Every word stays.

        Raises:
            ConflictError: the line isn't there any more, or striking it out would change what
                another one says. Else as `committed`.
        """
        pointer = f" → {day_of(newer.path) or newer.path} {newer.time}".rstrip()

        def work(change: Change) -> None:
            before = change.read(path)
            note = files.text_of(before)
            said = list(lines_of(note))
            found = _meant(said, text, first)
            if found is None:
                raise ConflictError("That line was changed meanwhile.", _BY_HAND)
            raw = note[found.start : found.end]
            changed = f"{note[: found.start]}{_struck(raw)}{pointer}{note[found.end :]}"
            left = [each.text for each in said if each is not found]
            is_text = path.endswith(".md") and not _holds_no_text(raw)
            if not is_text or [each.text for each in lines_of(changed)] != left:
                raise ConflictError("That line can't be struck out as it stands.", _BY_HAND)
            change.put(path, changed.encode("utf-8", "surrogateescape"), over=before)

        reason = f"No longer so: {clean_line(text)}"
        _, commit = committed(self.history, self.workspace, Actor.YOU, reason, origin, work)
        if commit is None:
            raise AssertionError("a struck line is another text")
        return commit

    def line_at(self, path: str, first: int, when: str) -> TextLine | None:
        """The line that was written at a time, ``2026-11-23 09:14``, past or not, where it stood.

        None where another one stands there now.
        """
        try:
            note = files.read_text(self.workspace, path)
        except KbtuiError:
            return None
        day = day_of(path)
        return next(
            (
                each
                for each in lines_of(note, past=True)
                if each.first == first and each.time and when == f"{day} {each.time}"
            ),
            None,
        )

    def may_be_asked_about(self, day: date) -> bool:
        """True before the first line, where it could be kept in daily notes and nobody decided."""
        undecided = self.in_daily_notes is None and self.library.in_place and not self.days()
        return undecided and self.library.daily_note(day) is not None

    def days(self) -> list[str]:
        """The paths of the notes by day, the newest first."""
        found = [f"memory/{file.name}" for file in self.workspace.memory.glob("????-??-??.md")]
        if self.in_daily_notes:
            found += [info.path for info in self.library.infos()]
        dated = {path: day for path in found if (day := day_of(path)) is not None}
        return sorted(dated, key=lambda path: (dated[path], path), reverse=True)

    def lines(self) -> Iterator[tuple[str, TextLine]]:
        """Every line that holds, with the path of its note, the newest day first."""
        for path in self.days():
            try:
                note = files.read_text(self.workspace, path)
            except KbtuiError:
                continue
            yield from ((path, line) for line in lines_of(note) if line.time)

    def _place(self, day: date) -> tuple[str, str, str]:
        """The note of a day, how it begins, and the heading that the journal stands under in it."""
        own = self.library.daily_note(day) if self.in_daily_notes else None
        if own is not None:
            return own[0], own[1], _SECTION
        return f"memory/{day.isoformat()}.md", f"# {day.isoformat()}\n", ""


def day_of(path: str) -> date | None:
    """The day that a note is of, by its name; None for another file."""
    name = path.rpartition("/")[2].removesuffix(".md").replace("_", "-")
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None


def _known(note: str, said: str) -> tuple[int, str] | None:
    """The number and the time of the item of a note that says just that, and still holds."""
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
    """What is compared: accents, case and marks tell texts apart, blanks don't."""
    return unicodedata.normalize("NFC", text).split()


def _as_item(text: str, time: str, *, task: bool) -> str:
    """A text as an item of a list: its first line behind the time, the others below it."""
    first, *others = text.split("\n")
    box = "[ ] " if task else ""
    return "\n".join([f"- {box}{time} {first}", *(f"  {each}".rstrip() for each in others)])


def _with_item(note: str, item: str, section: str) -> tuple[str, int]:
    """A note with one more item, and the number of its line.

    It stands behind the last of its section, which is made where it is missing.

    Where no section is meant, that is before the first heading below the title.
    """
    end = "\r" if "\r\n" in note else ""
    lines = note.split("\n") if note.strip() else []
    start, stop = _section(lines, section)
    if start is None:
        at = _behind(lines, 0, len(lines))
        lines[at:] = [*([end] if at else []), f"## {section}{end}"]
        start = stop = len(lines)
    at = _behind(lines, start, stop)
    in_list = at > start and _IN_LIST.match(lines[at - 1])
    above = [] if in_list or not at else [end]
    below = [end] if at == stop < len(lines) else []
    lines[at:at] = [*above, *(f"{line}{end}" for line in item.split("\n")), *below]
    text = "\n".join(lines)
    return text if text.endswith("\n") else f"{text}\n", at + len(above) + 1


def _behind(lines: list[str], start: int, stop: int) -> int:
    """The place behind the last line of some that isn't blank."""
    while stop > start and not lines[stop - 1].strip():
        stop -= 1
    return stop


def _section(lines: list[str], section: str) -> tuple[int | None, int]:
    """The lines of a section, without its heading; of "" those before the first below the title."""
    heads = [(n, *found) for n, line in enumerate(lines) if (found := heading_of(line))]
    if not section:
        return 0, next((n for n, level, _ in heads if level > 1), len(lines))
    for place, (number, level, title) in enumerate(heads):
        if fold(title) == fold(section):
            after = (n for n, other, _ in heads[place + 1 :] if other <= level)
            return number + 1, next(after, len(lines))
    return None, 0


def _struck(text: str) -> str:
    """A text whose every line is struck out, behind its bullet."""
    lines = []
    for line in text.split("\n"):
        bare = line.rstrip("\r")
        found = _LINE_LEAD.fullmatch(bare)
        said = found["text"].rstrip() if found else ""
        lines.append(f"{found['lead']}~~{said}~~{line[len(bare) :]}" if found and said else line)
    return "\n".join(lines)


def todays_note(workspace: Workspace, history: History, library: Library, day: date) -> str:
    """The path of a day's note, which is begun where there is none; in a vault it is its owner's.

    Raises:
        StorageError: it can't be written.
    """
    own = library.daily_note(day)
    path, text = own or (f"memory/{day.isoformat()}.md", f"# {day.isoformat()}\n\n")
    try:
        files.read_bytes(workspace, path)
    except NotFoundError:
        with history.change(Actor.YOU, "Begun with /today.") as change:
            change.write(path, text, expecting=None)
    return path


def _meant(said: Sequence[TextLine], text: str, first: int) -> TextLine | None:
    """The line of a text that stands where it was seen, or else the only one that says it."""
    same = [each for each in said if each.text == text]
    there = next((each for each in same if each.first == first), None)
    return there or (same[0] if len(same) == 1 else None)


def _holds_no_text(raw: str) -> bool:
    """True if something begins in it that isn't read as text."""
    return any(each.lstrip().startswith(_NO_TEXT) for each in raw.split("\n"))
