"""Aider: ``.aider.chat.history.md``, to which every run of the program appends.

Lines that the user typed begin with ``####``, notices of the program with ``>``; all others are the
model's. So are all lines within its code blocks, where comments may look alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import digest, line_of
from kbtui.importers.port import ImportedMessage, Item, Role, Skipped
from kbtui.importers.reading import conversation, file_source
from kbtui.text import clean

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_SIGNATURE = re.compile(rb"^# aider chat started at \d{4}-", re.MULTILINE)
_PROMPT_COMMANDS = ("/ask", "/code", "/architect", "/help", "/context")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_HEAD = 4 << 10
_MAX_LINE = 1 << 20


def _logs(opened: OpenedExport) -> Iterator[str]:
    for name in opened.names:
        if opened.is_folder and "aider" not in name.lower():
            continue
        if _SIGNATURE.search(opened.head(name, _HEAD)):
            yield name


class _AiderRun:
    def __init__(self, start: str) -> None:
        self._start = start
        self._parse_time = _parse_time(start)
        self._messages: list[ImportedMessage] = []
        self._named: Counter[str] = Counter()
        self._lines: list[str] = []
        self._role: Role = "assistant"
        self._fence = ""
        self._breaks = False

    def take(self, line: str) -> None:
        if line.startswith("> ") or line == ">":
            # The program ends each of its own lines with a break, the model hardly any.
            is_amid = self._role == "assistant" and bool(self._lines)
            is_quote = is_amid and self._breaks and not line.endswith("  ")
            if (self._fence or is_quote) and not line.startswith("> Tokens:"):
                self._add_line("assistant", line)
                return
            self._breaks = self._breaks or line.endswith("  ")
            self._fence = ""
            self._end_message()
            self._named["notice of the program"] += 1
        elif line.startswith("#### ") and not self._fence:
            self._add_line("user", line[5:].rstrip())
        else:
            self._follow_fence(line)
            self._add_line("assistant", line)

    def _follow_fence(self, line: str) -> None:
        found = _FENCE.match(line)
        if found and not self._fence:
            self._fence = found[1]
        elif found and found[1].startswith(self._fence) and line.strip() == found[1]:
            self._fence = ""

    def _add_line(self, role: Role, line: str) -> None:
        if role != self._role and (line.strip() or self._role == "user"):
            self._end_message()
            self._role = role
        self._lines.append(line)

    def _end_message(self) -> None:
        text = "\n".join(self._lines).strip()
        self._lines.clear()
        if self._role == "user" and text.startswith("/"):
            command, _, rest = text.partition(" ")
            text = rest.strip() if command in _PROMPT_COMMANDS else ""
            self._named.update([] if text else ["command to the program"])
        if text:
            time = self._parse_time if not self._messages else None
            self._messages.append(ImportedMessage(self._role, text, time))

    def conversation(self) -> Item | None:
        """Return the conversation, or None if the run has no messages."""
        self._end_message()
        first = next((each.text for each in self._messages if each.role == "user"), "")
        name = digest(self._start, first or (self._messages[0].text if self._messages else ""))
        return conversation(name, "", self._messages, named=self._named)


def _conversations(opened: OpenedExport, name: str) -> Iterator[Item]:
    run: _AiderRun | None = None
    empty = 0
    with opened.open(name) as stream:
        while raw := stream.readline(_MAX_LINE):
            line = clean(raw.decode("utf-8-sig", "replace")).rstrip("\r\n")
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


def _parse_time(stamp: str) -> datetime | None:
    """Parse a local time, as the program writes it."""
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


SOURCE = file_source("aider", "aider", _logs, _conversations)
