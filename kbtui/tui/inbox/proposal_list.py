"""The list of proposals that wait: who wants what, since when, in which files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content

from kbtui.text import clean_line
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.memory.inbox.plan import Plan

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_MOST_FILES = 3


class ProposalList(RowList):
    """Two lines for each proposal."""

    ROW_HEIGHT: ClassVar[int] = 2

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        self.plans: tuple[Plan, ...] = ()
        super().__init__(id=id)

    def show_plans(self, plans: Sequence[Plan], at: str = "") -> None:
        """Show proposals, with the cursor on the one that is named, or where it was."""
        self.plans = tuple(plans)
        places = (index for index, plan in enumerate(plans) if plan.proposal.id == at)
        self.rows_changed(next(places, self.cursor))

    @property
    def plan(self) -> Plan | None:
        """The proposal under the cursor."""
        return self.plans[self.cursor] if self.cursor < len(self.plans) else None

    @property
    def row_count(self) -> int:
        """How many proposals there are."""
        return len(self.plans)

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw one proposal."""
        plan = self.plans[index]
        proposal = plan.proposal
        first = Content.assemble(
            (f" {proposal.actor}", ".rows--accent"),
            (f"  {age(proposal.created)}  ", ".rows--muted"),
            clean_line(proposal.reason),
        )
        places, conflicts = len(plan.hunks), len(plan.conflicts)
        parts: list[str | tuple[str, str]] = [
            (f"   {places} place{'s' * (places != 1)}", ".rows--muted")
        ]
        if conflicts:
            parts.append((f", {conflicts} conflict{'s' * (conflicts > 1)}", ".rows--bad"))
        parts += ["  ", (files_of(plan), ".rows--second")]
        second = Content.assemble(*parts)
        return [line.truncate(width, ellipsis=True) for line in (first, second)]


def files_of(plan: Plan) -> str:
    """The names of the files that a proposal would change, as far as it still would."""
    paths = [file.now.path for file in plan.files if file.waiting]
    names = [clean_line(path).removeprefix("knowledge/").removesuffix(".md") for path in paths]
    rest = len(names) - _MOST_FILES
    shown = ", ".join(names[:_MOST_FILES])
    return f"{shown} and {rest} more" if rest > 0 else shown


def age(time: datetime, now: datetime | None = None) -> str:
    """How long ago something was, in one unit."""
    seconds = ((now or datetime.now(UTC)) - time).total_seconds()
    if seconds < _MINUTE:
        return "just now"
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds // unit:.0f} {name} ago"
    return "just now"
