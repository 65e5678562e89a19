"""The tool ``rename_entry``: another name, with every link to it repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.agent.tools.base import ToolContext, ToolResult, hidden, spec, text
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping


class RenameEntry:
    """Renames or moves an entry."""

    spec = spec(
        "rename_entry",
        """Rename a knowledge entry, or move it to another category; links to it are repaired and
        the old name stays as an alias.""",
        ("entry", "new_name"),
        entry=text("path, category/slug, slug, title or alias"),
        new_name=text("a title, a slug, or category/slug to move it"),
    )
    writes = True

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Rename it.

        Raises:
            NotFoundError: there is no such entry.
            UsageError: the new name is taken or can't be one.
            RefusedError: it is private.
        """
        path = context.find_path(arguments["entry"])
        if context.is_hidden(path):
            raise hidden(short_name(path))
        made = context.library.rename(
            path,
            arguments["new_name"],
            actor=context.actor,
            origin=context.origin,
            sink=context.sink,
        )
        done, data = f"{short_name(path)} renamed to {made.name}", {"path": made.path}
        return ToolResult(f"{done}: {made.path}", done, commit=made.commit, data=data)
