"""The tools ``read`` and ``grep``, which return entries and files verbatim.

Python's ``re`` can take forever on an expression such as ``(a+)+$`` and holds the GIL meanwhile, so
expressions from a model run in a child process with a timeout.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kbtui.agent.sources import heading, quoted, text_lines
from kbtui.agent.tools.base import (
    AREAS,
    MAX_TOKENS,
    RefusedError,
    ToolContext,
    ToolResult,
    cap,
    checked_area,
    cut_line,
    flag,
    missing_file,
    number,
    spec,
    text,
)
from kbtui.errors import KbtuiError, NotFoundError, UnsafePathError, UsageError
from kbtui.knowledge.catalog.catalog import is_ours
from kbtui.models.port import estimate_tokens
from kbtui.text import clean_line, counted, shorten
from kbtui.workspace.layout import ENTRIES, short_name

_REGEX_TIMEOUT = 3.0
_MAX_CHARACTERS = 40_000_000
# Reads a line of JSON with the task, then one per file; writes the matches as JSON.
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
    """The text or regular expression to search for."""

    text: str
    regex: bool = False
    case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A matching line."""

    path: str
    line: int
    text: str


def search_lines(pattern: Pattern, texts: Iterable[tuple[str, str]], limit: int) -> list[LineMatch]:
    """Return at most `limit` matching lines of (path, text) pairs.

    Raises:
        RefusedError: the pattern is empty or invalid, or took too long.
    """
    if not pattern.text:
        raise RefusedError("The pattern is empty.", "Say what to look for.")
    if pattern.regex and re.escape(pattern.text) != pattern.text:
        return _search_regex(pattern, texts, limit)
    return _search_text(pattern, texts, limit)


def _search_text(pattern: Pattern, texts: Iterable[tuple[str, str]], limit: int) -> list[LineMatch]:
    wanted = pattern.text if pattern.case_sensitive else pattern.text.casefold()
    found: list[LineMatch] = []
    for path, whole in texts:
        if wanted not in (whole if pattern.case_sensitive else whole.casefold()):
            continue
        for place, line in enumerate(text_lines(whole), 1):
            if wanted in (line if pattern.case_sensitive else line.casefold()):
                found.append(LineMatch(path, place, line))
                if len(found) >= limit:
                    return found
    return found


def _search_regex(
    pattern: Pattern, texts: Iterable[tuple[str, str]], limit: int
) -> list[LineMatch]:
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
        if size > _MAX_CHARACTERS:
            break
        lines.append(json.dumps(item))
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            timeout=_REGEX_TIMEOUT,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise RefusedError(
            "The expression took too long.", "Use a simpler one, or search for a plain text."
        ) from None
    except (subprocess.CalledProcessError, OSError) as error:
        raise RefusedError(f"The search failed: {type(error).__name__}.") from None
    return [LineMatch(*match) for match in json.loads(done.stdout)]


_MAX_LINES = 400
_MAX_FILE_BYTES = 5 * 1024 * 1024
_MAX_MATCHES = 60
_LINE_WIDTH = 400


class Read:
    """The tool that reads an entry, or a text file or document in the agent's areas."""

    spec = spec(
        "read",
        """Read a knowledge entry in full, with the entries that it links to and that link to it; or
        a file under memory/, docs/ or skills/, or SOUL.md, USER.md, AGENTS.md, TOOLS.md,
        IDENTITY.md. The number before its path can be cited as [n].""",
        ("path",),
        path=text("an entry's category/slug, slug, title or alias; or a file's path"),
        from_line=number("first line to show (1), for what is long"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Read the entry or file."""
        path = _resolved_path(context, arguments["path"])
        first = max(1, arguments.get("from_line", 1))
        if context.view.library.info(path) is not None:
            return read_entry(context, path, first)
        return read_file(context, path, first)


def _resolved_path(context: ToolContext, ref: str) -> str:
    """Return the path of an existing file, or of an entry by any of its names.

    Raises:
        NotFoundError: nothing matches.
        UsageError: several entries match, or the path can't be used.
    """
    try:
        path = checked_area(ref, context.settings.search.roots, context.layout)
    except UsageError as error:
        refused: UsageError | None = error
    else:
        refused = None
        if not path.startswith(ENTRIES) and context.view.library.exists(path):
            return path
    try:
        return context.view.library.find_path(ref)
    except NotFoundError:
        if refused is None:
            return path
        if isinstance(refused, UnsafePathError):
            raise refused from None
        raise


class Grep:
    """The tool that finds lines by a text or regular expression."""

    spec = spec(
        "grep",
        """Find the lines of the workspace's text files that contain a text, letter for letter;
        for names, ids and exact wordings. To find something by what it means, use search.""",
        ("pattern",),
        pattern=text("the text to find", maxLength=500),
        path=text("only this file or folder, such as memory"),
        regex=flag("the pattern is a regular expression (no)"),
        case_sensitive=flag("upper and lower case differ (no)"),
        limit=number("how many lines at most (60)"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Search."""
        pattern = Pattern(
            arguments["pattern"],
            regex=arguments.get("regex", False),
            case_sensitive=arguments.get("case_sensitive", False),
        )
        limit = max(1, min(arguments.get("limit", _MAX_MATCHES), 5 * _MAX_MATCHES))
        texts = _texts(context, arguments.get("path", ""))
        found = search_lines(pattern, texts, limit + 1)
        shown, more = found[:limit], len(found) > limit
        if not shown:
            output = f"No line contains {shorten(pattern.text, 80)!r}."
            return ToolResult(output, "no lines", data={"matches": [], "more": False})
        lines = [self._line(context, match) for match in shown]
        if more:
            lines.append(f"(more than {limit}: narrow it down with path, or a longer pattern)")
        count = f"{len(shown)}{'+' if more else ''} line{'' if len(shown) == 1 else 's'}"
        matches = [
            {"path": each.path, "line": each.line, "text": shorten(each.text, _LINE_WIDTH)}
            for each in shown
        ]
        data = {"matches": matches, "more": more}
        found_lines = cap("\n".join(lines), context.most_tokens)
        return ToolResult(f"{count}:\n{quoted(found_lines)}", count, data)

    @staticmethod
    def _line(context: ToolContext, match: LineMatch) -> str:
        source = context.sources.add(match.path, match.line, match.text)
        return f"[{source.n}] {match.path}:{match.line}: {shorten(match.text, _LINE_WIDTH)}"


def _whole_text(context: ToolContext, path: str) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Return the text of a file, and the places (pages, sheets) of a document."""
    try:
        if context.view.is_document(path):
            document = context.view.document(path)
            if not document.parts:
                raise RefusedError(f"{clean_line(path)} can't be read: {document.problem}.")
            return document.whole, document.places
        whole = context.view.text(path, _MAX_FILE_BYTES)
    except NotFoundError:
        raise missing_file(path) from None
    if "\x00" in whole:
        raise RefusedError(f"{path} is not a text file.")
    return whole, ()


def _texts(context: ToolContext, below: str) -> Iterator[tuple[str, str]]:
    roots = context.settings.search.roots
    everywhere = below.strip() in ("", ".", "/", "./")
    area = "" if everywhere else checked_area(below, roots, context.layout)
    found = context.view.files(*((area,) if area else (*AREAS, *roots)))
    if area and not found:
        raise NotFoundError(f"There is nothing at {area}.", "See what there is: list_entries.")
    for path in found:
        try:
            whole = context.view.text(path, _MAX_FILE_BYTES)
        except KbtuiError:  # too large, or gone
            continue
        generated = path.endswith("/INDEX.md") and is_ours(whole)
        if "\x00" not in whole and not generated:
            yield path, whole


def read_entry(context: ToolContext, path: str, first: int) -> ToolResult:
    """Return an entry from line `first` on, as a result.

    Raises:
        RefusedError: the caller may not read it.
        NotFoundError: it is gone.
    """
    checked_area(path, context.settings.search.roots)
    name = short_name(path)
    entry = context.view.library.get(path)
    shown, rest = window(entry.text, first, most_tokens=context.most_tokens)
    source = context.sources.add(path, first, shown, entry.title)
    parts = [heading(source), quoted(shown)]
    if rest:
        parts.append(f"({rest} more lines: use from_line={source.last + 1})")
    if entry.problem:
        parts.append(f"Note: {entry.problem} It can't be edited here.")
    links, backlinks = _links(context, path)
    parts += _link_line("Links to", links) + _link_line("Linked from", backlinks)
    data = {
        "path": path,
        "title": entry.title,
        "hash": entry.blob,
        "from_line": first,
        "text": shown,
        "lines_left": rest,
        "links": links,
        "backlinks": backlinks,
    }
    summary = f"{name}, {counted(len(text_lines(shown)), 'line')}"
    return ToolResult("\n".join(parts), summary, data)


def read_file(
    context: ToolContext, path: str, first: int, most_lines: int = _MAX_LINES
) -> ToolResult:
    """Return a text file or document from line `first` on, as a result.

    Raises:
        RefusedError: the caller may not read it, or it has no text.
        NotFoundError: it doesn't exist.
    """
    path = checked_area(path, context.settings.search.roots, context.layout)
    whole, places = _whole_text(context, path)
    shown, rest = window(whole, first, most_lines, context.most_tokens)
    source = context.sources.add(path, first, shown, places=places)
    parts = [heading(source), quoted(shown)]
    if rest:
        parts.append(f"({rest} more lines: use from_line={source.last + 1})")
    summary = f"{path}, {counted(len(text_lines(shown)), 'line')}"
    found = {"path": path, "from_line": first, "text": shown, "lines_left": rest}
    return ToolResult("\n".join(parts), summary, found)


def window(
    whole: str, first: int, most_lines: int = 1_000_000, most_tokens: int = MAX_TOKENS
) -> tuple[str, int]:
    """Return the lines of a text from `first` on that fit a result, and how many are left.

    A line longer than a whole result is cut.
    """
    lines = text_lines(whole)[first - 1 :]
    shown: list[str] = []
    left = most_tokens
    for line in lines[:most_lines]:
        left -= estimate_tokens(f"{line}\n")
        if shown and left < 0:
            break
        shown.append(cut_line(line, most_tokens))
    return "\n".join(shown), len(lines) - len(shown)


def _links(context: ToolContext, path: str) -> tuple[list[str], list[str]]:
    """Return up to 20 targets of an entry's links, and up to 20 entries that link to it."""
    targets = dict.fromkeys(link.path for link in context.view.library.outgoing(path) if link.path)
    sources = dict.fromkeys(link.path for link in context.view.library.backlinks(path))
    return list(targets)[:20], list(sources)[:20]


def _link_line(label: str, paths: list[str]) -> list[str]:
    return [f"{label}: {', '.join(map(short_name, paths))}"] if paths else []
