"""The tool ``write_entry``: a new entry, never a second one about the same thing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kbtui.agent.tools.base import (
    RefusedError,
    ToolContext,
    ToolResult,
    spec,
    text,
    texts,
)
from kbtui.knowledge.templates import ENTRY_TYPES, section_names
from kbtui.text import clean_line, fold, slugify

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.knowledge.library import EntryInfo

_DATED = re.compile(r"^\d{4}-\d{2}(?:-\d{2})?-")


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
            RefusedError: there is an entry of that name already.
        """
        kind, title = arguments["type"], clean_line(arguments["title"])
        twin = _twin(context, kind, title)
        if twin is not None:
            raise RefusedError(
                f"There is an entry about this already: {twin.path}.",
                f"Read it with read_entry, then change it with edit_entry ({twin.name}).",
            )
        sections = arguments.get("sections") or None
        made = context.library.create(
            kind,
            title,
            actor=context.actor,
            origin=context.origin,
            sink=context.sink,
            body=None if sections else arguments.get("body"),
            sections=sections,
            tags=arguments.get("tags", ()),
            related=arguments.get("related", ()),
            aliases=arguments.get("aliases", ()),
            summary=arguments.get("summary", ""),
        )
        done, data = f"{made.name} created", {"path": made.path}
        return ToolResult(f"Created {made.path}", done, commit=made.commit, data=data)


def _twin(context: ToolContext, kind: str, title: str) -> EntryInfo | None:
    """An entry of the same kind that is called the same."""
    wanted, slug = fold(title), slugify(title)
    for info in context.library.infos():
        if info.category.partition("/")[0] != ENTRY_TYPES[kind] or context.conceals(info.path):
            continue
        names = {fold(name) for name in (info.title, *info.aliases)}
        if wanted in names or _DATED.sub("", info.slug) == _DATED.sub("", slug):
            return info
    return None
