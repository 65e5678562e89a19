"""Finds lines by a text or a regular expression, in bounded time.

Python's ``re`` can take forever on an expression such as ``(a+)+$`` and holds the interpreter
while it does, so expressions from a model run in a child process that is ended after a while.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.agent.sources import text_lines
from kbtui.agent.tools.base import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATIENCE_SECONDS = 3.0
_MOST_CHARACTERS = 40_000_000
# Reads a line of JSON with the task, then one per file; writes what it found as JSON.
_CHILD = r"""
import json, re, sys
task = json.loads(sys.stdin.readline())
find = re.compile(task["pattern"], 0 if task["case"] else re.IGNORECASE).search
found = []
for item in sys.stdin:
    path, text = json.loads(item)
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        if len(found) < task["limit"] and find(line):
            found.append([path, number, line])
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Pattern:
    """The text or expression that is looked for."""

    text: str
    regex: bool = False
    case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """A line that was found."""

    path: str
    line: int
    text: str


def search_lines(pattern: Pattern, texts: Iterable[tuple[str, str]], limit: int) -> list[Match]:
    """Find at most `limit` lines of (path, text) pairs.

    Raises:
        RefusedError: the expression is broken, or took too long.
    """
    if not pattern.text:
        raise RefusedError("The pattern is empty.", "Say what to look for.")
    if pattern.regex and re.escape(pattern.text) != pattern.text:
        return _by_expression(pattern, texts, limit)
    return _by_text(pattern, texts, limit)


def _by_text(pattern: Pattern, texts: Iterable[tuple[str, str]], limit: int) -> list[Match]:
    wanted = pattern.text if pattern.case_sensitive else pattern.text.casefold()
    found: list[Match] = []
    for path, whole in texts:
        if wanted not in (whole if pattern.case_sensitive else whole.casefold()):
            continue
        for number, line in enumerate(text_lines(whole), 1):
            if wanted in (line if pattern.case_sensitive else line.casefold()):
                found.append(Match(path, number, line))
                if len(found) >= limit:
                    return found
    return found


def _by_expression(pattern: Pattern, texts: Iterable[tuple[str, str]], limit: int) -> list[Match]:
    try:
        re.compile(pattern.text)
    except (re.error, RecursionError, OverflowError) as error:
        raise RefusedError(
            f"The expression is broken: {error}.", "Correct it, or search for a plain text."
        ) from None
    task = {"pattern": pattern.text, "case": pattern.case_sensitive, "limit": limit}
    lines = [json.dumps(task)]
    size = 0
    for item in texts:
        size += len(item[1])
        if size > _MOST_CHARACTERS:
            break
        lines.append(json.dumps(item))
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise RefusedError(
            "The expression took too long.", "Use a simpler one, or search for a plain text."
        ) from None
    except (subprocess.CalledProcessError, OSError) as error:
        raise RefusedError(f"The search failed: {type(error).__name__}.") from None
    return [Match(*match) for match in json.loads(done.stdout)]
