"""Shows the places of a proposal; the one that keys act on stays marked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kbtui.tui.background import run_latest
from kbtui.tui.widgets.diff_view import DiffView

if TYPE_CHECKING:
    from kbtui.memory.proposal_plan import Plan, PlannedHunk


class PlaceView(DiffView):
    """A difference whose hunks are the places that wait, in their order."""

    keep_flash = True

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._plan: Plan | None = None

    def show_plan(self, plan: Plan) -> None:
        """Show a proposal; at the place that one was at, if it is the same proposal."""
        same = self._plan is not None and self._plan.proposal.id == plan.proposal.id
        run_latest(self, "plan", self._show_plan, plan, same=same)

    async def _show_plan(self, plan: Plan, *, same: bool) -> None:
        from kbtui.memory.proposal_diff import plan_diff

        diffs = await asyncio.to_thread(plan_diff, plan)
        self._plan = plan
        self.show(diffs, keep=same)

    @property
    def place(self) -> PlannedHunk | None:
        """The place that the person is at, as it was shown."""
        if self._plan is None or self._hunk >= len(self._plan.hunks) or not self._hunks:
            return None
        return self._plan.hunks[self._hunk]

    def on_diff_view_shown(self) -> None:
        """Mark where keys act."""
        self.go_to_hunk(0)

    def go_to_hunk(self, by: int) -> None:
        """Go to the place below (1) or above (-1), whatever is on the screen."""
        if self._hunks:
            self._hunk = max(0, min(len(self._hunks) - 1, self._hunk + by))
            line = self._hunks[self._hunk].line
            self.flash(range(line, line + 1))
