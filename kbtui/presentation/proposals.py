"""Proposals for people: the notes by their names, and the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.text import clean
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from kbtui.history.places import Plan
    from kbtui.presentation.notes import Named, Names

_MAX_FILES = 3


def paths_of(plan: Plan) -> list[str]:
    """Return the files that a proposal would still change."""
    return [file.path for file in plan.files if file.places]


def named_files(plan: Plan, names: Names) -> tuple[list[Named], str]:
    """Return the first files that a proposal would change, and a text for the number of others."""
    paths = paths_of(plan)
    rest = len(paths) - _MAX_FILES
    return [names[path] for path in paths[:_MAX_FILES]], f" and {rest} more" if rest > 0 else ""


def format_files(plan: Plan, names: Names) -> str:
    """Return the same as plain text."""
    named, more = named_files(plan, names)
    return ", ".join(map(str, named)) + more


def reason_of(plan: Plan, names: Names) -> str:
    """Return the reason of a proposal, with titles in place of the paths of existing notes."""
    reason = clean(plan.proposal.reason).strip()
    there = [each.path for each in plan.files if each.places and each.kind == "modified"]
    for path in sorted(there, key=len, reverse=True):
        reason = reason.replace(path, names[path].title)
        reason = reason.replace(short_name(path), names[path].title)
    return reason
