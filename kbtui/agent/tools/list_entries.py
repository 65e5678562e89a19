"""The tool ``list_entries``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbtui.agent.tools.base import SINCE, UNTIL, ToolContext, ToolResult, days, number, spec, text
from kbtui.knowledge.catalog.catalog import entry_line, hidden_entries
from kbtui.knowledge.entries.entry import ENTRY_TYPES
from kbtui.knowledge.library.library import EntryInfo
from kbtui.text import counted, fold

_LIMIT = 50


class ListEntries:
    """The tool that lists entries by type, folder or tag, last changed first."""

    spec = spec(
        "list_entries",
        """List knowledge entries with their one-line summaries, the last changed first. To find
        something by what it says, use search instead.""",
        (),
        type=text("only this type", enum=list(ENTRY_TYPES)),
        category=text("only this folder of entries, e.g. people"),
        tag=text("only with this tag"),
        since=SINCE,
        until=UNTIL,
        limit=number("how many at most (50)"),
        offset=number("how many to pass over (0)"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """List the entries, with the number of those not shown."""
        found = [info for info in context.view.library.infos() if _matches(info, arguments)]
        if asked := days(arguments):
            from kbtui.search.query.parser import date_bounds  # seldom needed

            first, last = date_bounds(asked) or ("", "~")
            found = [info for info in found if first <= _changed(info) <= last]
        found.sort(key=lambda info: (_changed(info), info.path), reverse=True)
        start = max(0, arguments.get("offset", 0))
        shown = found[start : start + max(1, min(arguments.get("limit", _LIMIT), 4 * _LIMIT))]
        lines = [entry_line(info, info.name) for info in shown]
        if rest := len(found) - start - len(shown):
            lines.append(f"({max(rest, 0)} more: use offset={start + len(shown)})")
        if not arguments and (unseen := context.view.unseen):
            lines.append(hidden_entries(unseen))
        summary = counted(len(found), "entry", "entries")
        data = {"total": len(found), "entries": [_as_data(info) for info in shown]}
        return ToolResult("\n".join([f"{summary}:", *lines]), summary, data)


def _as_data(info: EntryInfo) -> dict[str, Any]:
    return {
        "path": info.path,
        "title": info.title,
        "type": info.type,
        "tags": list(info.tags),
        "summary": info.summary,
        "updated": info.updated or info.created,
    }


def _matches(info: EntryInfo, arguments: Mapping[str, Any]) -> bool:
    if "type" in arguments and info.type != arguments["type"]:
        return False
    if "category" in arguments:
        category = str(arguments["category"]).strip("/").removeprefix("knowledge/")
        if info.category != category and not info.category.startswith(f"{category}/"):
            return False
    wanted = fold(str(arguments.get("tag", "")).lstrip("#"))
    return not wanted or any(fold(tag) == wanted for tag in info.tags)


def _changed(info: EntryInfo) -> str:
    return info.updated or info.created or ""
