"""Who did something, as people name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbtui.history.change import Actor, Commit, Origin

# By the values of `Actor`, so that what is drawn first doesn't load the history.
_NAMES = {"you": "You", "dream": "Dream", "import": "Import", "sync": "Sync"}
_MCP = "mcp"
KBTUI = "kbtui"
_CLIENT = "A program"


def actor_name(actor: Actor, origin: Origin | None = None) -> str:
    """Name who wrote: a person, a client of the MCP server by its own name, Dream, or kbtui.

    The agent and those who condense what it was told are one to a person: kbtui.
    """
    if origin is not None and origin.author:
        return origin.author
    if actor == _MCP:
        return (origin.model if origin is not None else None) or _CLIENT
    return _NAMES.get(actor, KBTUI)


def committer(commit: Commit) -> str:
    """Name who made a commit."""
    return actor_name(commit.actor, commit.origin)
