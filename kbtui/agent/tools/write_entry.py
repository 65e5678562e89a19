"""The tool ``write_entry``: a new entry, never a second one about the same thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.agent.tools.base import ToolContext, ToolResult, spec, text, texts
from kbtui.agent.tools.writing import write
from kbtui.knowledge.templates import ENTRY_TYPES, section_names
from kbtui.memory.edits.tool_edits import write_entry
from kbtui.text import clean_line
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.knowledge.library import Content


class WriteEntry:
    """Writes a new entry by the template of its type."""

    spec = spec(
        "write_entry",
        f"""Write a new knowledge entry: one subject each, in Markdown, with facts that the user
        stated or agreed to. Search first; an entry that exists is changed with edit_entry.
        Link others as [[category/slug]]. A decision has the sections
        {", ".join(section_names("decision"))}; a person {", ".join(section_names("person"))};
        other types can have plain text in `body`.""",
        ("type", "title"),
        type=text("what it is about", enum=list(ENTRY_TYPES)),
        title=text("what it is called, short", maxLength=200),
        body=text("its text below the title, if it has no sections"),
        sections={
            "type": "object",
            "description": "text by heading; headings of the type that are left out stay empty",
            "additionalProperties": {"type": "string"},
        },
        summary=text("one line for the catalogue"),
        tags=texts("tags"),
        related=texts("entries it is related to, as category/slug"),
        aliases=texts("other names that people use for it"),
    )
    writes = True

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Write it.

        Raises:
            UsageError: there is an entry of that name already.
        """
        kind, title = arguments["type"], clean_line(arguments["title"])
        sections = arguments.get("sections") or None
        content: Content = {
            "body": None if sections else arguments.get("body"),
            "sections": sections,
            "tags": arguments.get("tags", ()),
            "related": arguments.get("related", ()),
            "aliases": arguments.get("aliases", ()),
            "summary": arguments.get("summary", ""),
        }
        wanted = write_entry(kind, title, content, context.now().date())
        made = write(context, wanted, lambda _edited: f"new {kind}: {title}")
        done = f"{short_name(made.path)} created"
        return made.result(f"Created {made.path}", done)
