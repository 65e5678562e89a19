"""Tasks in a text: list items with a box, ``- [ ] buy milk``, found by line and ticked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kbtui.knowledge.format.body import CodeRanges

_TASK = re.compile(
    r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<box>[ xX])\](?=[ \t]+(?P<text>\S[^\r\n]*))",
    re.MULTILINE,
)
_BEGINS = re.compile(r"[ \t>]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|[ \t>]*$)")


class TaskLine(NamedTuple):
    """A task: its line (from 1), whether it is done, and where its box stands in the text."""

    line: int
    done: bool
    text: str
    box: int


def tasks_in(text: str) -> Iterator[TaskLine]:
    """The tasks of a text from top to bottom, code left out."""
    code: CodeRanges | None = None
    line, at = 1, 0
    for found in _TASK.finditer(text):
        code = code or CodeRanges(text)
        line, at = line + text.count("\n", at, found.start()), found.start()
        if found.start() not in code:
            yield _task(found, line)


def _task(found: re.Match[str], line: int) -> TaskLine:
    return TaskLine(line, found["box"] != " ", found["text"].strip(), found.start("box"))


def task_at(text: str, line: int) -> TaskLine | None:
    """The task that a line belongs to: its own, or that of the item that it goes on."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return None
    first = line
    while first > 1 and not _BEGINS.match(lines[first - 1].rstrip("\r")):
        first -= 1
    start = sum(len(each) + 1 for each in lines[: first - 1])
    found = _TASK.match(text, start)
    return _task(found, first) if found and start not in CodeRanges(text) else None


def ticked(text: str, task: TaskLine) -> str:
    """The text with the task done, or open again where it was done; no other character differs."""
    return f"{text[: task.box]}{' ' if task.done else 'x'}{text[task.box + 1 :]}"
