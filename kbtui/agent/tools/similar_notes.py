"""The tool ``similar_notes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbtui.agent.tools.base import ToolContext, ToolResult, checked_area, number, spec, text
from kbtui.errors import without_commands
from kbtui.search.results import SimilarNote
from kbtui.search.search_index import SIMILAR
from kbtui.text import clean_line, counted
from kbtui.workspace.layout import short_name

_MAX_NOTES = 20


class SimilarNotes:
    """The tool that lists the notes that are like one."""

    spec = spec(
        "similar_notes",
        """List the entries and documents that are most like one by meaning, each with its sentence
        that is most alike. Use it to find what belongs together and isn't linked, or was written
        twice.""",
        ("entry",),
        entry=text("path, category/slug, slug, title or alias"),
        limit=number(f"how many at most ({SIMILAR})"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """List them."""
        path = checked_area(
            context.view.library.find_path(arguments["entry"]), context.settings.search.roots
        )
        limit = max(1, min(arguments.get("limit", SIMILAR), _MAX_NOTES))
        found = context.view.search.similar(path, limit)
        count = counted(len(found.notes), "similar note")
        lines = [f"{count} to {clean_line(short_name(path))}:"]
        lines += [_line(context, note) for note in found.notes]
        if notice := without_commands(found.notice):
            lines.append(f"Note: {notice}")
        data = {"notes": [_as_data(note) for note in found.notes], "notice": found.notice}
        return ToolResult("\n".join(lines), count, data, about=(path,))


def _line(context: ToolContext, note: SimilarNote) -> str:
    source = context.sources.add(note.path, note.line, note.sentence, note.title)
    return f"- [{source.n}] {note.path}: {note.title}: {note.sentence}"


def _as_data(note: SimilarNote) -> dict[str, Any]:
    return {
        "path": note.path,
        "title": note.title,
        "line": note.line,
        "sentence": note.sentence,
        "score": note.score,
    }
