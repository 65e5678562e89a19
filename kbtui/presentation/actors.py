"""Names of actors for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbtui.history.change import Actor, Commit, Origin

# By the values of `Actor`, so that the first screen needn't load the history package.
_NAMES = {"you": "You", "dream": "Dream", "import": "Import", "sync": "Sync"}
_MCP = "mcp"
KBTUI = "kbtui"
_CLIENT = "A program"


def actor_name(actor: Actor, origin: Origin | None = None) -> str:
    """Return a name for the author: a person, an MCP client by its own name, Dream, or kbtui.

    The agent and the actors that condense conversations all appear as kbtui.
    """
    if origin is not None and origin.author:
        return origin.author
    if actor == _MCP:
        return (origin.model if origin is not None else None) or _CLIENT
    return _NAMES.get(actor, KBTUI)


def committer(commit: Commit) -> str:
    """Return a name for the author of a commit."""
    return actor_name(commit.actor, commit.origin)
