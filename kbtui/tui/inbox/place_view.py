"""Shows the places of a proposal; the one that keys act on stays marked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kbtui.tui.diff.diff_view import DiffView
from kbtui.tui.terminal.background import run_latest

if TYPE_CHECKING:
    from kbtui.memory.inbox.plan import Plan, PlannedHunk


class PlaceView(DiffView):
    """A difference whose hunks are the places that wait, in their order."""

    keep_flash = True

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._plan: Plan | None = None
        self._at = 0

    def show_plan(self, plan: Plan) -> None:
        """Show a proposal; at the place that one was at, if it is the same proposal.

        Keys act on it at once, though it takes a moment until it is drawn.
        """
        if plan is self._plan:
            return
        same = self._plan is not None and self._plan.proposal.id == plan.proposal.id
        self._plan = plan
        self._at = max(0, min(self._at, len(plan.hunks) - 1)) if same else 0
        run_latest(self, "plan", self._show_plan, plan, same=same)

    async def _show_plan(self, plan: Plan, *, same: bool) -> None:
        from kbtui.memory.inbox.diff import plan_diff

        self.show(await asyncio.to_thread(plan_diff, plan, titles_only=True), keep=same)

    @property
    def place(self) -> PlannedHunk | None:
        """The place that the person is at."""
        hunks = self._plan.hunks if self._plan is not None else ()
        return hunks[self._at] if self._at < len(hunks) else None

    @property
    def path(self) -> str:
        """The file of that place, empty where there is none."""
        found = self._plan.find(self.place.key) if self._plan and self.place else None
        return found[0].now.path if found is not None else ""

    def on_diff_view_shown(self) -> None:
        """Mark where keys act."""
        self.go_to_hunk(0)

    def go_to_hunk(self, by: int) -> None:
        """Go to the place below (1) or above (-1), whatever is on the screen."""
        count = len(self._plan.hunks) if self._plan is not None else 0
        self._at = max(0, min(count - 1, self._at + by))
        if self._at < len(self._hunks):
            line = self._hunks[self._at].line
            self.flash(range(line, line + 1))
