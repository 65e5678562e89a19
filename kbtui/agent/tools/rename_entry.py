"""The tool ``rename_entry``: another name, with every link to it repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.agent.tools.base import ToolContext, ToolResult, spec, text
from kbtui.agent.tools.writing import write
from kbtui.memory.edits.operations import rename_entry
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.memory.edits.editor import Edited


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
            UsageError: the new name is taken or can't be one, or the entry is private.
        """
        wanted = rename_entry(arguments["entry"], arguments["new_name"])
        made = write(context, wanted, lambda edited: f"rename {_names(edited, 'to')}")
        done = _names(made.edited, "renamed to")
        return made.result(f"{done}: {made.path}", done)


def _names(edited: Edited, between: str) -> str:
    return f"{short_name(edited.former)} {between} {short_name(edited.path)}"
