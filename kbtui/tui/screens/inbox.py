"""The inbox: what machines would change in the notes, decided on place by place."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Container, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from kbtui.errors import KbtuiError
from kbtui.text import clean, clean_line
from kbtui.tui.actions import bindings
from kbtui.tui.background import run_latest
from kbtui.tui.messages import InboxChanged, KnowledgeChanged, OpenEntry
from kbtui.tui.tell import tell, tell_error
from kbtui.tui.widgets.place_view import PlaceView
from kbtui.tui.widgets.proposal_list import ProposalList, age, files_of
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from kbtui.history.commit import Commit
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.proposal_plan import Plan, PlannedHunk
    from kbtui.tui.widgets.place_editor import PlaceEditor

_BESIDE_FROM = 120
_MANY = 5
"""From so many places on, deciding on all of them is asked about."""
_EMPTY = """\
Nothing waits for you.

What kbtui does by itself never changes a line that you wrote. If Dream finds one that is out of \
date, if a conversation contradicts your memory, or if another machine changed the same line, the \
change comes here first, and you decide on it place by place.

To see what the assistant wants to write during a conversation before it is written as well, set
`kbtui config set memory.review ask`."""


class InboxScreen(Screen[None]):
    """Proposals in a list, the places of the selected one beside or below it."""

    CSS_PATH = "inbox.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("inbox")]

    def __init__(self, kb: KnowledgeBase, proposal: str = "") -> None:
        """Show what waits, with `proposal` selected if it is there."""
        super().__init__()
        self._kb = kb
        self._inbox = kb.memory.inbox
        self._at = proposal
        self._accepted: Commit | None = None

    def compose(self) -> ComposeResult:
        """Title, list, details, keys."""
        yield Static(Content("INBOX"), id="inbox-title")
        yield Static(Content("Looking …"), id="inbox-empty")
        with Container(id="inbox-body"):
            yield ProposalList(id="inbox-list")
            with Vertical(id="inbox-detail"):
                yield Static(id="inbox-what")
                yield PlaceView(id="inbox-diff")
        yield Footer()

    def on_mount(self) -> None:
        """Read what waits."""
        self.list.focus()
        self._read(settle=True)

    def on_resize(self, event: events.Resize) -> None:
        """Put list and difference beside each other where there is room."""
        self.set_class(event.size.width >= _BESIDE_FROM, "-beside")

    @property
    def list(self) -> ProposalList:
        """The proposals."""
        return self.query_one("#inbox-list", ProposalList)

    @property
    def view(self) -> PlaceView:
        """The places of the selected one."""
        return self.query_one("#inbox-diff", PlaceView)

    # Reading

    @on(KnowledgeChanged)
    @on(InboxChanged)
    def _something_changed(self, event: KnowledgeChanged | InboxChanged) -> None:
        """Merge what waits into what the files say now."""
        event.stop()
        self._read()

    def _read(self, *, settle: bool = False) -> None:
        run_latest(self, "inbox", self._read_all, settle=settle)

    async def _read_all(self, *, settle: bool = False) -> None:
        try:
            if settle and self._kb.workspace.writable:
                await asyncio.to_thread(self._inbox.settle)
            plans = await asyncio.to_thread(self._inbox.waiting)
        except KbtuiError as error:
            tell_error(self, error)
            return
        self._show_plans(plans)

    def _show_plans(self, plans: Sequence[Plan]) -> None:
        at = self.list.plan.proposal.id if self.list.plan is not None else self._at
        self._at = ""
        self.list.show_plans(plans, at)
        count = len(plans)
        title = f"INBOX  {count} proposal{'s' * (count != 1)}" if count else "INBOX"
        self.query_one("#inbox-title", Static).update(Content(title))
        self.set_class(not plans, "-empty")
        if not plans:
            self.remove_class("-full")
            self.query_one("#inbox-empty", Static).update(Content(_EMPTY))

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted) -> None:
        event.stop()
        plan = self.list.plan
        if plan is not None:
            self.query_one("#inbox-what", Static).update(_description(plan))
            self.view.show_plan(plan)

    # Moving

    def action_down(self) -> None:
        """Next proposal, or the next line of the difference that has the screen."""
        if self.has_class("-full"):
            self.view.scroll_relative(y=1, animate=False)
        else:
            self.list.action_cursor_down()

    def action_up(self) -> None:
        """Previous proposal, or line."""
        if self.has_class("-full"):
            self.view.scroll_relative(y=-1, animate=False)
        else:
            self.list.action_cursor_up()

    def action_next_hunk(self) -> None:
        """Go to the next place."""
        self.view.go_to_hunk(1)

    def action_previous_hunk(self) -> None:
        """Go to the place before."""
        self.view.go_to_hunk(-1)

    def action_side_by_side(self) -> None:
        """Show before and after beside each other, or one below the other."""
        self.view.toggle_side_by_side()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected) -> None:
        event.stop()
        self.action_zoom()

    def action_zoom(self) -> None:
        """Give the difference the whole screen, and back."""
        if self.list.plan is not None:
            self.toggle_class("-full")
            (self.view if self.has_class("-full") else self.list).focus()

    def action_back(self) -> None:
        """Return to the list, or close the inbox."""
        if self.has_class("-full"):
            self.action_zoom()
        else:
            self.dismiss(None)

    def action_open(self) -> None:
        """Show the entry in the notes."""
        place = self.view.hunk
        if place is not None:
            main = self.app.screen_stack[0]
            main.post_message(OpenEntry(place.path))
            self.dismiss(None)

    # Deciding

    def action_accept(self) -> None:
        """Make the change in this place."""
        plan, hunk = self.list.plan, self.view.place
        if plan is None or hunk is None:
            return
        if hunk.state == "conflict":
            run_latest(self, "ask", self._ask_about_conflict, plan, hunk)
        else:
            self._accept(plan, [hunk.key])

    async def _ask_about_conflict(self, plan: Plan, hunk: PlannedHunk) -> None:
        from kbtui.tui.screens.dialogs import KeyDialog

        keys = {"t": "take what is proposed", "e": "write it yourself", "x": "keep what is there"}
        text = f"It can't be merged by itself: {hunk.why}. What shall stand there?"
        answer = await self.app.push_screen_wait(KeyDialog("Conflict", text, keys))
        if answer == "t":
            self._accept(plan, [hunk.key], theirs=True)
        elif answer == "e":
            self.action_edit()
        elif answer == "x":
            self._decide(partial(self._inbox.reject, plan.proposal.id, hunks=[hunk.key]), "Kept.")

    def action_accept_all(self) -> None:
        """Make the whole change, as far as it can be made."""
        plan = self.list.plan
        if plan is not None:
            run_latest(self, "ask", self._accept_all, plan)

    async def _accept_all(self, plan: Plan) -> None:
        clean_ones = [hunk.key for hunk in plan.hunks if hunk.state != "conflict"]
        if not clean_ones:
            tell(self, "Every place conflicts: decide on each (a), or write it yourself (e).")
            return
        if await self._is_sure(plan, "Accept"):
            self._accept(plan, clean_ones)

    def action_reject(self) -> None:
        """Put this place away."""
        plan, hunk = self.list.plan, self.view.place
        if plan is not None and hunk is not None:
            work = partial(self._inbox.reject, plan.proposal.id, hunks=[hunk.key])
            self._decide(work, "Rejected; it isn't proposed again.")

    def action_reject_all(self) -> None:
        """Put the whole proposal away."""
        plan = self.list.plan
        if plan is not None:
            run_latest(self, "ask", self._reject_all, plan)

    async def _reject_all(self, plan: Plan) -> None:
        if await self._is_sure(plan, "Reject"):
            work = partial(self._inbox.reject, plan.proposal.id)
            self._decide(work, "The proposal is rejected; it isn't made again.")

    async def _is_sure(self, plan: Plan, what: str) -> bool:
        """Ask before many places are decided at once."""
        count = len(plan.hunks)
        if count < _MANY:
            return True
        from kbtui.tui.screens.dialogs import KeyDialog

        text = f"{what} {count} places in {files_of(plan)}?"
        keys = {"y": f"{what.lower()} all"}
        return await self.app.push_screen_wait(KeyDialog(f"{what} all", text, keys)) == "y"

    def _accept(self, plan: Plan, keys: Sequence[str], *, theirs: bool = False) -> None:
        run_latest(self, "decide", self._accepted_in_thread, plan, keys, theirs=theirs)

    async def _accepted_in_thread(self, plan: Plan, keys: Sequence[str], *, theirs: bool) -> None:
        work = partial(self._inbox.accept, plan.proposal.id, hunks=keys, theirs=theirs)
        try:
            commit = await asyncio.to_thread(work)
        except KbtuiError as error:
            tell_error(self, error)
        else:
            left = len(plan.hunks) - len(keys)
            rest = f" {left} still wait{'s' * (left == 1)}." if left else ""
            if commit is None:
                tell(self, f"It stood there already.{rest}")
            else:
                self._accepted = commit
                tell(self, f"Accepted: {clean_line(commit.subject)}. u takes it back.{rest}")
        self._read()

    def _decide(self, work: Callable[[], object], said: str) -> None:
        run_latest(self, "decide", self._decided, work, said)

    async def _decided(self, work: Callable[[], object], said: str) -> None:
        try:
            await asyncio.to_thread(work)
        except KbtuiError as error:
            tell_error(self, error)
        else:
            tell(self, said)
        self._read()

    def action_undo(self) -> None:
        """Undo what was accepted last, as the history would."""
        if self._accepted is None:
            tell(self, "Nothing was accepted here yet; F4 shows every change.")
            return
        commit, self._accepted = self._accepted, None
        undo = partial(self._kb.history.undo, commit.id)
        self._decide(undo, f"Taken back: {clean_line(commit.subject)}.")

    # Writing

    def action_edit(self) -> None:
        """Write what shall stand in this place."""
        plan, hunk = self.list.plan, self.view.place
        if plan is not None and hunk is not None and not self.query("#place-editor"):
            run_latest(self, "edit", self._open_editor, plan, hunk)

    async def _open_editor(self, plan: Plan, hunk: PlannedHunk) -> None:
        from kbtui.tui.widgets.place_editor import PlaceEditor

        try:
            draft = await asyncio.to_thread(self._inbox.draft, plan.proposal.id, hunk.key)
        except KbtuiError as error:
            tell_error(self, error)
            self._read()
            return
        conflict = hunk.state == "conflict"
        editor = PlaceEditor(plan.proposal.id, hunk.key, draft, conflict=conflict)
        await self.query_one("#inbox-detail").mount(editor)
        self.add_class("-editing")

    def on_place_editor_saved(self, event: PlaceEditor.Saved) -> None:
        """Take the text; where it can't be taken, it stays in the editor."""
        event.stop()
        run_latest(self, "decide", self._take_text, event)

    async def _take_text(self, event: PlaceEditor.Saved) -> None:
        edit = partial(self._inbox.edit, event.proposal, event.place, event.text, seen=event.seen)
        try:
            await asyncio.to_thread(edit)
        except KbtuiError as error:
            tell_error(self, error)
            return
        tell(self, "Your text is proposed there now: a accepts it.")
        self._close_editor()
        self._read()

    def on_place_editor_closed(self, event: PlaceEditor.Closed) -> None:
        """Close the editor, after a question where something was typed."""
        event.stop()
        run_latest(self, "ask", self._leave_editor, unsaved=event.unsaved)

    async def _leave_editor(self, *, unsaved: bool) -> None:
        from kbtui.tui.screens.dialogs import KeyDialog

        dialog = KeyDialog("Your text", "What you wrote isn't taken yet.", {"d": "give it up"})
        if not unsaved or await self.app.push_screen_wait(dialog) == "d":
            self._close_editor()

    def _close_editor(self) -> None:
        self.query("#place-editor").remove()
        self.remove_class("-editing")
        (self.view if self.has_class("-full") else self.list).focus()

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002 - Textual's signature
    ) -> bool | None:
        """While somebody writes, and where nothing waits, there is nothing to decide."""
        always = action in {"back", "undo"} or action not in _OWN
        if self.query("#place-editor"):
            return action not in _OWN
        return always or not self.has_class("-empty")


_OWN = {binding.action for binding in bindings("inbox")}


def _description(plan: Plan) -> Content:
    """Who proposes it, why, and where it comes from."""
    proposal = plan.proposal
    facts = [str(proposal.actor), age(proposal.created), f"proposal {proposal.id}"]
    origin = proposal.origin
    if origin.session:
        messages = (
            f", messages {origin.messages[0]}-{origin.messages[1]}" if origin.messages else ""
        )
        facts.append(f"{origin.session}{messages}")
    lines = [
        Content.styled(clean(proposal.reason).strip(), "bold"),
        Content.styled(" · ".join(clean_line(fact) for fact in facts), "$text-muted"),
    ]
    if plan.conflicts:
        count = len(plan.conflicts)
        text = f"{count} place{'s' * (count > 1)} can't be merged: a asks, e writes your own text."
        lines.append(Content.styled(text, "$text-warning"))
    return Content("\n").join(lines)
