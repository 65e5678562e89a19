"""Tools for MCP clients to search and read.

The agent's own tools are fewer; these keep the names that clients' prompts and rules refer to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbtui.agent.tools.base import SINCE, UNTIL, Tool, ToolContext, ToolResult, number, spec, text
from kbtui.agent.tools.reading import read_entry, read_file
from kbtui.agent.tools.searching import memory_scope, scope_of_project, search_in

_QUERY = text("a question, keywords, or what you are looking for", maxLength=2000)


class MemorySearch:
    """Searches entries, memory and earlier conversations."""

    spec = spec(
        "memory_search",
        """Search the user's knowledge entries, memory notes and earlier conversations by meaning
        and by words. Use it before you answer a question about the user, their work or anything
        they may have told you, and before you write an entry. Cite what you use as [n].""",
        ("query",),
        query=_QUERY,
        type=text("only entries of this type, e.g. decision"),
        tag=text("only what has this tag"),
        since=SINCE,
        until=UNTIL,
        limit=number("how many results at most (8)"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Search."""
        return search_in(context, arguments, memory_scope(context))


class VectorSearch:
    """Searches project documents."""

    spec = spec(
        "vector_search",
        """Search the project documents under docs/ by meaning and by words. Cite what you use
        as [n].""",
        ("query",),
        query=_QUERY,
        project=text("only this folder of docs/"),
        limit=number("how many results at most (8)"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Search."""
        scope = scope_of_project(context, arguments.get("project", ""))
        return search_in(context, arguments, scope, "document")


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
        """Read it."""
        path = context.view.library.find_path(arguments["entry"])
        return read_entry(context, path, max(1, arguments.get("from_line", 1)))


class ReadFile:
    """Reads any text file that an agent may see."""

    spec = spec(
        "read_file",
        """Read a file of the workspace: an entry, or one under memory/, docs/ or skills/, or
        SOUL.md, USER.md, AGENTS.md, TOOLS.md, IDENTITY.md. Cite it as [n].""",
        ("path",),
        path=text("path from the workspace's root"),
        from_line=number("first line (1)"),
        lines=number("how many lines (400)"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Read it."""
        first = max(1, arguments.get("from_line", 1))
        return read_file(context, arguments["path"], first, max(1, arguments.get("lines", 400)))


LOOKUP_TOOLS: tuple[Tool, ...] = (MemorySearch(), VectorSearch(), ReadEntry(), ReadFile())
