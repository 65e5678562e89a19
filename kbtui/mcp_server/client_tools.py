"""Tools for MCP clients only, apart from those of the history.

`search` and `fetch` have exactly the format of ChatGPT's connectors, which use no other tools.
Moving or deleting an entry is always proposed, never done at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kbtui.agent.tools.base import Tool, ToolContext, ToolResult, checked_area, number, spec, text
from kbtui.agent.tools.searching import memory_scope, scope_of_project, search_in
from kbtui.agent.tools.writing import RenameEntry, Wanted, WritingTool
from kbtui.mcp_server.resources import file_uri
from kbtui.memory.edits.editor import delete_entry
from kbtui.text import clean_line, counted
from kbtui.workspace.layout import short_name

_MAX_RESULTS = 10
_MAX_FOLLOWED = 40  # entries of the first step whose own links are followed


class ConnectorSearch:
    """Searches entries, notes and documents, for `Fetch`."""

    spec = spec(
        "search",
        """Search the user's knowledge base by meaning and by words. Gives a list of results, each
        with an id for fetch. type:decision, tag:auth and updated:2026-01..2026-03 in the query
        narrow it down.""",
        ("query",),
        query=text("a question or keywords", maxLength=2000),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Search, and return each file once."""
        wanted = {"query": arguments["query"], "limit": 2 * _MAX_RESULTS}
        silent = replace(context, recalls=False)
        hits = [
            hit
            for scope in (memory_scope(silent), scope_of_project(silent, ""))
            for hit in search_in(silent, wanted, scope).data["hits"]
        ]
        hits.sort(key=lambda hit: -hit["relevance"])
        titles: dict[str, str] = {}
        for hit in hits:
            titles.setdefault(hit["path"], hit["title"].partition(" > ")[0])
        results = [
            {"id": path, "title": title or short_name(path), "url": file_uri(path)}
            for path, title in list(titles.items())[:_MAX_RESULTS]
        ]
        return _json_result({"results": results}, counted(len(results), "result"))


class Fetch:
    """Reads a result of `ConnectorSearch` in full."""

    spec = spec(
        "fetch",
        "Read one result of search in full, by its id.",
        ("id",),
        id=text("the id of a result, or an entry's path, slug or title"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Read the file."""
        found = context.view.library.find_path(arguments["id"])
        path = checked_area(found, context.settings.search.roots)
        entry = context.view.library.get(path)
        known = {
            "type": entry.type or "",
            "tags": ", ".join(entry.tags),
            "created": entry.created or "",
            "updated": entry.updated or "",
            "hash": entry.blob,
        }
        data = {
            "id": path,
            "title": entry.title,
            "text": entry.text,
            "url": file_uri(path),
            "metadata": {name: value for name, value in known.items() if value},
        }
        return _json_result(data, short_name(path))


class EntryLinks:
    """Follows links from an entry, in both directions."""

    spec = spec(
        "entry_links",
        """List the entries that an entry is linked with, in either direction: its neighbours, or
        with depth=2 also theirs, with the way there.""",
        ("entry",),
        entry=text("path, category/slug, slug, title or alias"),
        depth=number("how many steps: 1 or 2 (1)", minimum=1, maximum=2),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Follow the links; none leads through a private entry."""
        start = context.view.library.find_path(arguments["entry"])
        found: dict[str, dict[str, Any]] = {}
        edge = [start]
        for distance in range(1, max(1, min(arguments.get("depth", 1), 2)) + 1):
            reached: list[str] = []
            for source in edge[:_MAX_FOLLOWED]:
                for path, way in _neighbours(context, source).items():
                    if path != start and path not in found:
                        reached.append(path)
                        found[path] = {
                            "path": path,
                            "title": _title(context, path),
                            "distance": distance,
                            "direction": way,
                            "via": source if source != start else None,
                        }
            edge = reached
        links = list(found.values())[:200]
        count = f"{counted(len(found), 'entry', 'entries')} linked with {short_name(start)}"
        data = {"path": start, "total": len(found), "links": links}
        return ToolResult("\n".join([f"{count}:", *map(_line, links)]), count, data=data)


class MoveEntry(WritingTool):
    """Moves an entry to another folder; it keeps its name."""

    spec = spec(
        "move_entry",
        """Propose to move a knowledge entry to another category; links to it will be repaired. The
        user decides on it.""",
        ("entry", "category"),
        entry=text("path, category/slug, slug, title or alias"),
        category=text("the folder to move it to, e.g. projects"),
    )

    def wanted(self, context: ToolContext, arguments: Mapping[str, Any], /) -> Wanted:
        """Return the move."""
        path = context.view.library.find_path(arguments["entry"])
        slug = short_name(path).rpartition("/")[2]
        folder = clean_line(arguments["category"]).strip("/").removeprefix("knowledge/")
        return RenameEntry().wanted(context, {"entry": path, "new_name": f"{folder}/{slug}"})


class DeleteEntry(WritingTool):
    """Deletes an entry, and removes the links to it."""

    spec = spec(
        "delete_entry",
        """Propose to delete a knowledge entry; links to it will be cleaned. The user decides on
        it.""",
        ("entry",),
        entry=text("path, category/slug, slug, title or alias"),
    )

    def wanted(self, _context: ToolContext, arguments: Mapping[str, Any], /) -> Wanted:
        """Return the deletion."""
        return Wanted(
            delete_entry(arguments["entry"]),
            lambda edited: f"delete {short_name(edited.former)}",
            lambda edited: (f"Deleted {edited.path}", f"{short_name(edited.path)} deleted"),
        )


CLIENT_TOOLS: tuple[Tool, ...] = (
    ConnectorSearch(),
    Fetch(),
    EntryLinks(),
    MoveEntry(),
    DeleteEntry(),
)
ALWAYS_PROPOSED = frozenset({"move_entry", "delete_entry"})


def _json_result(data: dict[str, Any], summary: str) -> ToolResult:
    """Return a result whose text is only its data, as JSON."""
    return ToolResult(json.dumps(data, ensure_ascii=False), summary, data=data)


def _neighbours(context: ToolContext, path: str) -> dict[str, str]:
    """Return the outgoing and incoming links of a file as directions by path."""
    links = {link.path: "to" for link in context.view.library.outgoing(path) if link.path}
    for back in context.view.library.backlinks(path):
        links[back.path] = "both" if back.path in links else "from"
    return links


def _title(context: ToolContext, path: str) -> str:
    info = context.view.library.info(path)
    return info.title if info is not None else short_name(path)


def _line(link: Mapping[str, Any]) -> str:
    way = {"to": "links to", "from": "linked from", "both": "links to and from"}[link["direction"]]
    if link["via"]:
        return f"- {short_name(link['path'])} ({way}, by way of {short_name(link['via'])})"
    return f"- {short_name(link['path'])} ({way})"
