"""Aider: ``.aider.chat.history.md``, in which every run of the program goes on.

What the user typed has ``####`` before each line, what the program said of itself ``>``; all else
is the model's. Comments in code may look alike, so within its code blocks a line is the model's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import digest, line_of
from kbtui.importers.port import Item, Role, Said, Skipped
from kbtui.importers.reading import conversation, file_source
from kbtui.text import clean

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_SIGN = re.compile(rb"^# aider chat started at \d{4}-", re.MULTILINE)
_ASKS = ("/ask", "/code", "/architect", "/help", "/context")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_HEAD = 4 << 10
_LONGEST_LINE = 1 << 20


def _logs(opened: OpenedExport) -> Iterator[str]:
    for name in opened.names:
        if opened.is_folder and "aider" not in name.lower():
            continue
        if _SIGN.search(opened.head(name, _HEAD)):
            yield name


class _AiderRun:
    """One run of the program."""

    def __init__(self, start: str) -> None:
        self._start = start
        self._time = _time(start)
        self._said: list[Said] = []
        self._named: Counter[str] = Counter()
        self._lines: list[str] = []
        self._role: Role = "assistant"
        self._fence = ""

    def take(self, line: str) -> None:
        """Take in the next line, without its end."""
        if line.startswith("> ") or line == ">":
            if self._fence and not line.startswith("> Tokens:"):
                self._add("assistant", line)
                return
            self._fence = ""
            self._end()
            self._named["notice of the program"] += 1
        elif line.startswith("#### ") and not self._fence:
            self._add("user", line[5:].rstrip())
        else:
            self._follow_fence(line)
            self._add("assistant", line)

    def _follow_fence(self, line: str) -> None:
        found = _FENCE.match(line)
        if found and not self._fence:
            self._fence = found[1]
        elif found and found[1].startswith(self._fence) and line.strip() == found[1]:
            self._fence = ""

    def _add(self, role: Role, line: str) -> None:
        if role != self._role and (line.strip() or self._role == "user"):
            self._end()
            self._role = role
        self._lines.append(line)

    def _end(self) -> None:
        text = "\n".join(self._lines).strip()
        self._lines.clear()
        if self._role == "user" and text.startswith("/"):
            command, _, rest = text.partition(" ")
            text = rest.strip() if command in _ASKS else ""
            self._named.update([] if text else ["command to the program"])
        if text:
            time = self._time if not self._said else None
            self._said.append(Said(self._role, text, time))

    def conversation(self) -> Item | None:
        """The whole; None where nobody said anything."""
        self._end()
        first = next((each.text for each in self._said if each.role == "user"), "")
        name = digest(self._start, first or (self._said[0].text if self._said else ""))
        return conversation(name, "", self._said, named=self._named)


def _conversations(opened: OpenedExport, name: str) -> Iterator[Item]:
    run: _AiderRun | None = None
    empty = 0
    with opened.open(name) as stream:
        while raw := stream.readline(_LONGEST_LINE):
            line = clean(raw.decode("utf-8", "replace")).rstrip("\r\n")
            if start := _START.match(line):
                if run is not None:
                    found = run.conversation()
                    empty += found is None
                    if found:
                        yield found
                run = _AiderRun(start[1])
            elif run is not None:
                run.take(line)
    if run is not None:
        found = run.conversation()
        empty += found is None
        if found:
            yield found
    if empty:
        yield Skipped(line_of(name), f"Nobody said anything in {empty:,} of the runs.")


def _time(stamp: str) -> datetime | None:
    """A time of this machine's, as the program writes them."""
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


SOURCE = file_source("aider", "aider", _logs, _conversations)
