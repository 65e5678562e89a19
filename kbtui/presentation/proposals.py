"""What a proposal would do, as people say it: the notes by their names, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.text import clean
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from kbtui.history.places import Plan
    from kbtui.presentation.notes import Named, Names

_MOST_FILES = 3


def paths_of(plan: Plan) -> list[str]:
    """The files that a proposal would change, as far as it still would."""
    return [file.path for file in plan.files if file.places]


def named_files(plan: Plan, names: Names) -> tuple[list[Named], str]:
    """The first files that a proposal would change, and how many more there are, in words."""
    paths = paths_of(plan)
    rest = len(paths) - _MOST_FILES
    return [names[path] for path in paths[:_MOST_FILES]], f" and {rest} more" if rest > 0 else ""


def files_said(plan: Plan, names: Names) -> str:
    """The same in plain text."""
    named, more = named_files(plan, names)
    return ", ".join(map(str, named)) + more


def reason_of(plan: Plan, names: Names) -> str:
    """Why it is proposed, with the notes that are there by their names."""
    reason = clean(plan.proposal.reason).strip()
    there = [each.path for each in plan.files if each.places and each.kind == "modified"]
    for path in sorted(there, key=len, reverse=True):
        reason = reason.replace(path, names[path].title)
        reason = reason.replace(short_name(path), names[path].title)
    return reason
