"""What the tools of the agent do, as people say it."""

from __future__ import annotations

_TOOLS = {
    "search": "searched for",
    "read": "read",
    "grep": "looked for",
    "list_entries": "looked through the notes",
    "write_entry": "write a note",
    "edit_entry": "change a note",
    "rename_entry": "rename a note",
}


def tool_deed(tool: str) -> str:
    """What a tool of the agent's does, as people say it; of one that isn't ours, its name."""
    return _TOOLS.get(tool, tool.replace("_", " "))
