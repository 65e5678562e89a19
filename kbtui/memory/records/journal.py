"""The journal: what a person states, as it was typed, a line with its time in a note of the day.

A line is ``- 09:14 the text``; further lines of a text are indented below it, a task has a box.
What no longer holds is struck out and points to what does. Nothing else is ever done to a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from kbtui.errors import ConflictError, KbtuiError, UsageError
from kbtui.history.change import Actor, Change, Commit, Origin
from kbtui.history.history import History
from kbtui.knowledge.library.library import Library
from kbtui.memory.records.committing import committed
from kbtui.memory.records.dates import absolute_dates, local
from kbtui.memory.records.tombstones import Tombstones
from kbtui.offline.lines import Line, lines_of
from kbtui.text import clean, clean_line, fold
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace

_SECTION = "Journal"
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*$")
_IN_LIST = re.compile(r"[-*+•][ \t]|[ \t]{2,}\S")
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
        line = _as_item(said, f"{when:%H:%M}", task=task)

        def work(change: Change) -> str:
            before = change.read(path)
            note = files.text_of(before) if before is not None else begun
            if self._known(note, said) is not None:
                return note
            self.tombstones.lift(change, [said])
            grown = _with_item(note, line, section)
            change.put(path, grown.encode("utf-8", "surrogateescape"), over=before)
            return grown

        note, commit = committed(
            self.history, self.workspace, Actor.YOU, "You said so.", origin, work
        )
        kept = self._known(note, said)
        if kept is None:
            raise AssertionError("what was kept stands there")
        return Noted(path, kept.first, kept.time, kept.text, commit)

    def mark_past(self, path: str, first: int, text: str, newer: Noted, origin: Origin) -> Commit:
        """Strike out the line of a file that says a text, with a pointer to the newer one.

        Of several the nearest to line `first` is meant. Every word stays.

        Raises:
            ConflictError: the line isn't there any more. Else as `committed`.
        """
        day = newer.path.rpartition("/")[2].removesuffix(".md")
        pointer = f" → {day} {newer.time}".rstrip()

        def work(change: Change) -> None:
            before = change.read(path)
            note = files.text_of(before)
            same = [each for each in lines_of(note) if each.text == text]
            if not same:
                raise ConflictError(
                    "That line was changed meanwhile.", "Open the note, and strike it out there."
                )
            found = min(same, key=lambda each: abs(each.first - first))
            struck = _struck(note[found.start : found.end]) + pointer
            changed = f"{note[: found.start]}{struck}{note[found.end :]}"
            change.put(path, changed.encode("utf-8", "surrogateescape"), over=before)

        reason = f"No longer so: {clean_line(text)}"
        _, commit = committed(self.history, self.workspace, Actor.YOU, reason, origin, work)
        if commit is None:
            raise AssertionError("a struck line is another text")
        return commit

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

    def lines(self) -> Iterator[tuple[str, Line]]:
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

    @staticmethod
    def _known(note: str, said: str) -> Line | None:
        """The line of a note that says just that, and still holds."""
        wanted = fold(clean_line(said))
        lines = (each for each in lines_of(note) if each.time)
        return next((each for each in lines if fold(each.text) == wanted), None)


def day_of(path: str) -> date | None:
    """The day that a note is of, by its name; None for another file."""
    name = path.rpartition("/")[2].removesuffix(".md").replace("_", "-")
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None


def _as_item(text: str, time: str, *, task: bool) -> str:
    """A text as an item of a list: its first line behind the time, the others below it."""
    first, *others = text.split("\n")
    box = "[ ] " if task else ""
    return "\n".join([f"- {box}{time} {first}", *(f"  {each}".rstrip() for each in others)])


def _with_item(note: str, item: str, section: str) -> str:
    """A note with one more item: behind the last of its section, which is made where it is missing.

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
    added = [] if in_list or not at else [end]
    added += [f"{line}{end}" for line in item.split("\n")]
    if at == stop < len(lines):
        added.append(end)
    lines[at:at] = added
    return "\n".join(lines if not lines[-1] else [*lines, ""])


def _behind(lines: list[str], start: int, stop: int) -> int:
    """The place behind the last line of some that isn't blank."""
    while stop > start and not lines[stop - 1].strip():
        stop -= 1
    return stop


def _section(lines: list[str], section: str) -> tuple[int | None, int]:
    """The lines of a section, without its heading; of "" those before the first below the title."""
    heads = [
        (n, found) for n, line in enumerate(lines) if (found := _HEADING.match(line.rstrip("\r")))
    ]
    if not section:
        return 0, next((n for n, head in heads if len(head[1]) > 1), len(lines))
    for place, (number, head) in enumerate(heads):
        if fold(head[2]) == fold(section):
            after = (n for n, other in heads[place + 1 :] if len(other[1]) <= len(head[1]))
            return number + 1, next(after, len(lines))
    return None, 0


def _struck(text: str) -> str:
    """A text whose every line is struck out, behind its bullet."""
    lines = []
    for line in text.split("\n"):
        found = _LINE_LEAD.fullmatch(line.rstrip("\r"))
        said = found["text"].rstrip() if found else ""
        lines.append(f"{found['lead']}~~{said}~~" if found and said else line)
    return "\n".join(lines)
