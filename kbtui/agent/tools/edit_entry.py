"""The tool ``edit_entry``: the smallest change to an entry, or to MEMORY.md, USER.md or SOUL.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.agent.tools.base import RefusedError, ToolContext, ToolResult, spec, text, texts
from kbtui.agent.tools.writing import write
from kbtui.history.objects.commit import describe
from kbtui.memory.edits.tool_edits import Edit, edit_entry
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTS = {"add_tags": "tags", "add_related": "related", "add_aliases": "aliases"}


class EditEntry:
    """Changes an entry: a passage, the end of a section, its properties, or its whole text."""

    spec = spec(
        "edit_entry",
        """Change a knowledge entry with the smallest edit that does it; what you don't name stays
        byte for byte. Also changes MEMORY.md (short facts that every conversation needs), and
        proposes changes of USER.md and SOUL.md. Give `old` and `new` to replace a passage, `append`
        to add text (with `section`: at the end of that heading), `body` to replace everything below
        the frontmatter. A decision that changed keeps its text and grows under Evolution, as
        "- YYYY-MM-DD: what changed".""",
        ("entry",),
        entry=text("path, category/slug, slug, title or alias; or MEMORY.md, USER.md, SOUL.md"),
        old=text("the passage to replace, exactly as it stands there, once"),
        new=text("what takes its place; empty removes it"),
        append=text("text to add"),
        section=text("the heading to append under; made if missing"),
        body=text("the whole new text below the frontmatter"),
        summary=text("a new one-line summary for the catalogue"),
        add_tags=texts("tags to add"),
        add_related=texts("related entries to add, as category/slug"),
        add_aliases=texts("other names to add"),
    )
    writes = True

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Apply the edit.

        Raises:
            NotFoundError: there is no such entry, or `old` isn't in it.
            UsageError: it can't be edited.
            ConflictError: it kept being changed by somebody else.
        """
        names = ("old", "new", "append", "section", "body", "summary")
        lists = {name: tuple(arguments[key]) for key, name in _LISTS.items() if arguments.get(key)}
        wanted = Edit(**{name: arguments.get(name, "") for name in names}, lists=lists)
        if wanted.is_empty:
            raise RefusedError("There is nothing to change.", "Give old and new, append, or body.")
        operation = edit_entry(arguments["entry"], wanted)
        made = write(context, operation, lambda edited: f"edit {short_name(edited.path)}")
        commit = made.edited.commit
        summary = describe(commit.paths) if commit else ""
        return made.result(f"Changed {made.path} ({summary})", summary)
