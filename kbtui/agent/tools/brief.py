"""The tools as a model with a small window is told of them: the same ones in fewer words.

What is left out of a description is still understood when a model says it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.models.port import ToolSpec

SMALL_WINDOW = 8_192
"""Tokens; a model with no more is given short texts."""

_DESCRIPTIONS: Mapping[str, str] = {
    "memory_search": "Search entries, notes and earlier conversations. Cite results as [n].",
    "vector_search": "Search project documents under docs/. Cite results as [n].",
    "list_entries": "List entries with their summaries.",
    "read_entry": "Read an entry in full.",
    "write_entry": "Write a new entry about one subject that has none yet. Search first.",
    "edit_entry": "Change an entry, MEMORY.md or USER.md: replace `old` by `new`, or `append`.",
    "rename_entry": "Rename or move an entry.",
    "grep": "Find lines that contain a text.",
    "read_file": "Read a text file of the workspace.",
}
_LEFT_OUT: Mapping[str, frozenset[str]] = {
    "memory_search": frozenset({"type", "tag", "since", "until", "limit"}),
    "vector_search": frozenset({"limit"}),
    "list_entries": frozenset({"type", "since", "until", "limit", "offset"}),
    "read_entry": frozenset({"from_line"}),
    "write_entry": frozenset({"sections", "aliases", "related", "tags"}),
    "edit_entry": frozenset({"body", "summary", "add_tags", "add_related", "add_aliases"}),
    "read_file": frozenset({"lines"}),
}
_SAID_SHORTER = frozenset({"description", "maxLength"})


def brief(spec: ToolSpec) -> ToolSpec:
    """Shorten a tool's description, and leave out what is seldom needed of its arguments."""
    parameters = dict(spec.parameters)
    gone = _LEFT_OUT.get(spec.name, frozenset())
    parameters["properties"] = {
        name: _without_words(schema)
        for name, schema in parameters["properties"].items()
        if name not in gone
    }
    parameters.pop("additionalProperties", None)
    description = _DESCRIPTIONS.get(spec.name, spec.description)
    return replace(spec, description=description, parameters=parameters)


def _without_words(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in _SAID_SHORTER}
