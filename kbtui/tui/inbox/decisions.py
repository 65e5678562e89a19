"""What the keys of the inbox do: accept, reject, write, take back."""

from __future__ import annotations

import asyncio
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from kbtui.errors import KbtuiError
from kbtui.text import clean_line
from kbtui.tui.diff.undo_conflict import undo_settled
from kbtui.tui.inbox.proposal_list import files_of
from kbtui.tui.messages import tell_error
from kbtui.tui.terminal.background import InTurn
from kbtui.tui.terminal.type_ahead import KeysInOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from kbtui.history.objects.commit import Commit
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.inbox.plan import Plan, PlannedHunk
    from kbtui.tui.inbox.inbox import InboxScreen

    Deed = Callable[[Plan, PlannedHunk], Coroutine[Any, Any, None]]

_MANY = 5
"""From so many places on, deciding on all of them is asked about."""


class InboxDeeds:
    """Decides one after the other, each on what is left by the one before."""

    def __init__(self, screen: InboxScreen, kb: KnowledgeBase) -> None:
        self._screen = screen
        self._kb = kb
        self._inbox = kb.memory.inbox
        self._accepted: Commit | None = None
        self._turns = InTurn(screen, "decide")
        self._moved_on_at = 0.0

    def do(self, deed: Deed) -> None:
        """Do something with the place that the person is at, when what was typed before is done.

        By then it may be another place; it is never one of another proposal, nor one behind the
        field that what was typed before has opened.
        """
        plan = self._screen.list.plan
        if plan is not None and self._was_seen():
            self._turns.run(self._do, plan.proposal.id, deed)

    async def _do(self, proposal: str, deed: Deed) -> None:
        plan, hunk = self._screen.list.plan, self._screen.view.place
        if self._screen.has_class("-editing") or plan is None or hunk is None:
            return
        if plan.proposal.id == proposal:
            await deed(plan, hunk)

    def moved_on(self) -> None:
        """The proposal is decided on, and another one has come in its place."""
        self._moved_on_at = monotonic()

    def _was_seen(self) -> bool:
        """Whether the proposal was there already when the key was typed that is handled now."""
        app = self._screen.app
        return not isinstance(app, KeysInOrder) or app.at_work_on >= self._moved_on_at

    async def accept(self, plan: Plan, hunk: PlannedHunk) -> None:
        """Make the change in one place; a conflict is asked about."""
        if hunk.state != "conflict":
            await self._accept(plan, [hunk.key])
            return
        keys = {"t": "take the proposed", "e": "write it", "x": "keep what is there"}
        text = f"It can't be merged by itself: {hunk.why}. What shall stand there?"
        answer = await self._ask("Conflict", text, keys)
        if answer == "t":
            await self._accept(plan, [hunk.key], theirs=True)
        elif answer == "e":
            await self.edit(plan, hunk)
        elif answer == "x":
            await self.reject(plan, hunk)

    async def accept_all(self, plan: Plan, _hunk: PlannedHunk) -> None:
        """Make the whole change, but for what conflicts."""
        keys = [hunk.key for hunk in plan.hunks if hunk.state != "conflict"]
        if not keys:
            self._screen.say("Every place conflicts: decide on each (a), or write it (e).")
        elif await self._is_sure(plan, "Accept"):
            await self._accept(plan, keys)

    async def reject(self, plan: Plan, hunk: PlannedHunk) -> None:
        """Put one place away."""
        work = partial(self._inbox.reject, plan.proposal.id, hunks=[hunk.key])
        await self._done(work, "Rejected; it isn't proposed again.")

    async def reject_all(self, plan: Plan, _hunk: PlannedHunk) -> None:
        """Put the whole proposal away."""
        if await self._is_sure(plan, "Reject"):
            work = partial(self._inbox.reject, plan.proposal.id)
            await self._done(work, "The proposal is rejected; it isn't made again.")

    async def edit(self, plan: Plan, hunk: PlannedHunk) -> None:
        """Let the person write what shall stand in a place."""
        from kbtui.tui.inbox.place_editor import PlaceEditor

        try:
            draft = await asyncio.to_thread(self._inbox.draft, plan.proposal.id, hunk.key)
        except KbtuiError as error:
            tell_error(self._screen, error)
            await self._screen.read()
            return
        conflict = hunk.state == "conflict"
        editor = PlaceEditor(plan.proposal.id, hunk.key, draft, conflict=conflict)
        await self._screen.writing.open(editor)

    def undo(self) -> None:
        """Undo what was accepted last, as the history would."""
        self._turns.run(self._undo)

    async def _undo(self) -> None:
        commit = self._accepted
        if commit is None:
            self._screen.say("Nothing was accepted here yet; F4 shows every change.")
            return
        undo = partial(self._kb.history.undo, commit.id)
        try:
            done = await undo_settled(self._screen, lambda decided: undo(decisions=decided))
        except KbtuiError as error:
            tell_error(self._screen, error)
        else:
            if done is None:
                return
            self._accepted = None
            self._screen.say(f"Taken back: {clean_line(commit.subject)}.")
        await self._screen.read()

    async def _accept(self, plan: Plan, keys: Sequence[str], *, theirs: bool = False) -> None:
        work = partial(self._inbox.accept, plan.proposal.id, hunks=keys, theirs=theirs)
        try:
            commit = await asyncio.to_thread(work)
        except KbtuiError as error:
            tell_error(self._screen, error)
        else:
            left = len(plan.hunks) - len(keys)
            rest = f"; {left} still wait{'s' * (left == 1)}" if left else ""
            self._accepted = commit or self._accepted
            done = "Accepted, u takes it back" if commit else "It stood there already"
            what = f": {clean_line(commit.subject)}" if commit else ""
            self._screen.say(f"{done}{rest}{what}.")
        await self._screen.read()

    async def _done(self, work: Callable[[], object], said: str) -> None:
        try:
            await asyncio.to_thread(work)
        except KbtuiError as error:
            tell_error(self._screen, error)
        else:
            self._screen.say(said)
        await self._screen.read()

    async def _is_sure(self, plan: Plan, what: str) -> bool:
        """Ask before many places are decided at once."""
        count = len(plan.hunks)
        if count < _MANY:
            return True
        text = f"{what} {count} places in {files_of(plan)}?"
        return await self._ask(f"{what} all", text, {"y": f"{what.lower()} all"}) == "y"

    async def _ask(self, title: str, text: str, keys: dict[str, str]) -> str | None:
        from kbtui.tui.widgets.dialogs import KeyDialog

        return await self._screen.app.push_screen_wait(KeyDialog(title, text, keys))
