"""One thing that can be done in the app, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Context = Literal[
    "global",
    "chat",
    "prompt",
    "transcript",
    "notes",
    "editor",
    "history",
    "past",
    "search",
    "switcher",
    "sessions",
    "memory",
    "inbox",
]
CONTEXTS: tuple[Context, ...] = get_args(Context)
CONTEXT_TITLES: dict[Context, str] = {
    "global": "Everywhere",
    "chat": "Chat",
    "prompt": "Prompt",
    "transcript": "Conversation",
    "notes": "Notes",
    "editor": "Editing an entry",
    "history": "History",
    "past": "Back in time",
    "search": "Search",
    "switcher": "Open",
    "sessions": "Sessions",
    "memory": "Memory",
    "inbox": "Inbox",
}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done.

    `keys` are in Textual's form, separated by commas, and empty where only the palette or a slash
    command leads there. `slash` is the command with its slash; `usage` the arguments that it takes.
    `show` puts it into the line of hints at the bottom; `priority` lets it work in any dialog.
    """

    id: str
    keys: str
    label: str
    help: str
    context: Context
    slash: str | None = None
    usage: str = ""
    show: bool = False
    priority: bool = False

    @property
    def method(self) -> str:
        """The part of the id after the dot: ``action_<method>`` carries the action out."""
        return self.id.partition(".")[2]
