"""The tool ``read_entry``: one entry with its links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.agent.sources import heading, quoted, text_lines
from kbtui.agent.tools.areas import checked_area
from kbtui.agent.tools.base import (
    MOST_CHARACTERS,
    ToolContext,
    ToolResult,
    hidden,
    number,
    spec,
    text,
)
from kbtui.text import counted
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_LINKS = 20


class ReadEntry:
    """Reads an entry by path, slug, title or alias."""

    spec = spec(
        "read_entry",
        """Read a knowledge entry in full, with the entries that it links to and that link to it.
        The number before its path can be cited as [n].""",
        ("entry",),
        entry=text("path, category/slug, slug, title or alias"),
        from_line=number("first line to show (1), for what is long"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Read it.

        Raises:
            NotFoundError: nothing is called so.
            UsageError: several are.
            RefusedError: it is private and the model isn't local, or not for the agent.
        """
        path = context.find_path(arguments["entry"])
        checked_area(path, context.settings.search.roots)
        name = short_name(path)
        if context.is_hidden(path):
            raise hidden(name)
        entry = context.library.get(path)
        first = max(1, arguments.get("from_line", 1))
        shown, rest = window(context.shown_text(path, entry.text), first)
        source = context.sources.add(path, first, shown, entry.title)
        parts = [heading(source), quoted(shown)]
        if rest:
            parts.append(f"({rest} more lines: use from_line={source.last + 1})")
        if entry.problem:
            parts.append(f"Note: {entry.problem} It can't be edited here.")
        links, backlinks = _links(context, path)
        parts += _in_words("Links to", links) + _in_words("Linked from", backlinks)
        private = (path,) if context.is_private(path) else ()
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
        return ToolResult("\n".join(parts), summary, private, data)


def window(whole: str, first: int, most_lines: int = 1_000_000) -> tuple[str, int]:
    """The lines of a text from `first` on that fit a tool's answer, and how many are left.

    A line that is longer than a whole answer is cut.
    """
    lines = text_lines(whole)[first - 1 :]
    shown: list[str] = []
    size = 0
    for line in lines[:most_lines]:
        size += len(line) + 1
        if shown and size > MOST_CHARACTERS:
            break
        shown.append(line[:MOST_CHARACTERS])
    return "\n".join(shown), len(lines) - len(shown)


def _links(context: ToolContext, path: str) -> tuple[list[str], list[str]]:
    """What an entry links to, and what links to it."""
    targets = dict.fromkeys(link.path for link in context.library.outgoing(path) if link.path)
    sources = dict.fromkeys(link.path for link in context.library.backlinks(path))
    shown = ([each for each in paths if not context.conceals(each)] for paths in (targets, sources))
    links, backlinks = (paths[:_MOST_LINKS] for paths in shown)
    return links, backlinks


def _in_words(label: str, paths: list[str]) -> list[str]:
    return [f"{label}: {', '.join(map(short_name, paths))}"] if paths else []
