"""What a conversation has proposed and nobody has decided on: the next edit builds on that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.agent.tools.base import RefusedError
from kbtui.agent.tools.review import is_reviewed
from kbtui.errors import NotFoundError
from kbtui.knowledge import resolve
from kbtui.knowledge.entry import Entry, parse_entry
from kbtui.knowledge.resolve import LinkIndex
from kbtui.text import clean_line
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.agent.tools.base import ToolContext

Proposed = dict[str, Entry | None]


def proposed_entries(context: ToolContext) -> Proposed:
    """The files as this conversation has proposed them, by path; None: it is to go."""
    if not is_reviewed(context) or context.inbox is None:
        return {}
    return {
        path: None if text is None else parse_entry(path, text.encode("utf-8", "replace"))
        for path, text in context.inbox.proposed_by(context.actor, context.origin).items()
    }


def path_of(context: ToolContext, ref: str, proposed: Mapping[str, Entry | None]) -> str:
    """The file that a name means, among those that are there and those that are proposed.

    Raises:
        NotFoundError: nothing is called so.
        UsageError: several are.
        RefusedError: it is to go.
    """
    waiting = [entry for entry in proposed.values() if entry is not None]
    _, named = LinkIndex(waiting).candidates(resolve.without_line(clean_line(ref)))
    found = set(named)
    try:
        found.add(context.find_path(ref))
    except NotFoundError:
        if not found:
            raise
    going = sorted(path for path in found if proposed.get(path, waiting) is None)
    if going:
        raise _going(going[0], waiting)
    if len(found) > 1:
        raise resolve.ambiguous(ref, sorted(found))
    return found.pop()


def _going(path: str, waiting: list[Entry]) -> RefusedError:
    """Say that a file is to be renamed or deleted, and to which name."""
    slug = short_name(path).rpartition("/")[2]
    _, new = LinkIndex(waiting).candidates(slug)
    names = " or ".join(short_name(each) for each in new)
    return RefusedError(
        f"{short_name(path)} is to be renamed or deleted: that waits in the inbox.",
        f"Edit it under its new name, {names}." if names else "Let the user decide first.",
    )
