"""Actions of the agent's tools, for people."""

from __future__ import annotations

_TOOLS = {
    "search": "searched for",
    "read": "read",
    "grep": "looked for",
    "list_entries": "looked through the notes",
    "list_tasks": "looked through the tasks",
    "similar_notes": "looked for similar notes",
    "write_entry": "write a note",
    "edit_entry": "change a note",
    "rename_entry": "rename a note",
}


def tool_phrase(tool: str) -> str:
    """Return a phrase for what a tool of the agent does; for other tools, the name."""
    return _TOOLS.get(tool, tool.replace("_", " "))
