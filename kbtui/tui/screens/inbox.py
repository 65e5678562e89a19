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
from kbtui.tui.leaving import leave_for
from kbtui.tui.messages import InboxChanged, KnowledgeChanged, OpenEntry
from kbtui.tui.screens.inbox_deeds import InboxDeeds
from kbtui.tui.tell import tell_error
from kbtui.tui.widgets.place_view import PlaceView
from kbtui.tui.widgets.proposal_list import ProposalList, age
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.proposal_plan import Plan
    from kbtui.tui.widgets.place_editor import PlaceEditor

_BESIDE_FROM = 120
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
        self.inbox = kb.memory.inbox
        self._at = proposal
        self._said = ""
        self._deeds = InboxDeeds(self, kb)

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
        run_latest(self, "inbox", self.read, settle=True)

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
        run_latest(self, "inbox", self.read)

    async def read(self, *, settle: bool = False) -> None:
        """Read what waits, and show it.

        `settle`: what stands in the files already goes out of the inbox before.
        """
        try:
            if settle and self._kb.workspace.writable:
                await asyncio.to_thread(self.inbox.settle)
            plans = await asyncio.to_thread(self.inbox.waiting)
        except KbtuiError as error:
            tell_error(self, error)
            return
        self._show_plans(plans)

    def _show_plans(self, plans: Sequence[Plan]) -> None:
        at = self.list.plan.proposal.id if self.list.plan is not None else self._at
        self._at = ""
        self.list.styles.max_height = max(1, len(plans)) * ProposalList.ROW_HEIGHT
        self.list.show_plans(plans, at)
        if self.list.plan is None or self.list.plan.proposal.id != at:
            self._deeds.moved_on()
        self._show_plan()
        self._show_title()
        self.set_class(not plans, "-empty")
        if not plans:
            self.remove_class("-full")
            self.query_one("#inbox-empty", Static).update(Content(_EMPTY))
        self.refresh_bindings()

    def _show_title(self) -> None:
        count = len(self.list.plans)
        title = f"INBOX  {count} proposal{'s' * (count != 1)}" if count else "INBOX"
        said = (f"   {clean_line(self._said)}", "$text-success")
        self.query_one("#inbox-title", Static).update(Content.assemble(title, said))

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted) -> None:
        event.stop()
        self._show_plan()

    def _show_plan(self) -> None:
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
        path = self.view.path
        if path:
            leave_for(self, OpenEntry(path))

    # Deciding

    def action_accept(self) -> None:
        """Make the change in this place."""
        self._deeds.do(self._deeds.accept)

    def action_accept_all(self) -> None:
        """Make the whole change, as far as it can be made."""
        self._deeds.do(self._deeds.accept_all)

    def action_reject(self) -> None:
        """Put this place away."""
        self._deeds.do(self._deeds.reject)

    def action_reject_all(self) -> None:
        """Put the whole proposal away."""
        self._deeds.do(self._deeds.reject_all)

    def action_edit(self) -> None:
        """Write what shall stand in this place."""
        self._deeds.do(self._deeds.edit)

    def action_undo(self) -> None:
        """Undo what was accepted last, as the history would."""
        self._deeds.undo()

    def say(self, text: str) -> None:
        """Say what was done, where it covers nothing, until something else is done."""
        self._said = text
        self._show_title()

    # Writing

    async def open_editor(self, editor: PlaceEditor) -> None:
        """Show the field to write in below the difference."""
        await self.query_one("#inbox-detail").mount(editor)
        self.add_class("-editing")
        self.refresh_bindings()

    def on_place_editor_saved(self, event: PlaceEditor.Saved) -> None:
        """Take the text; where it can't be taken, it stays in the editor."""
        event.stop()
        run_latest(self, "take", self._take_text, event)

    async def _take_text(self, event: PlaceEditor.Saved) -> None:
        edit = partial(self.inbox.edit, event.proposal, event.place, event.text, seen=event.seen)
        try:
            await asyncio.to_thread(edit)
        except KbtuiError as error:
            tell_error(self, error)
            return
        self.say("Your text is proposed there now: a accepts it.")
        self._close_editor()
        await self.read()

    def on_place_editor_closed(self, event: PlaceEditor.Closed) -> None:
        """Close the editor, after a question where something was typed."""
        event.stop()
        run_latest(self, "leave", self._leave_editor, unsaved=event.unsaved)

    async def _leave_editor(self, *, unsaved: bool) -> None:
        from kbtui.tui.screens.dialogs import KeyDialog

        dialog = KeyDialog("Your text", "What you wrote isn't taken yet.", {"d": "give it up"})
        if not unsaved or await self.app.push_screen_wait(dialog) == "d":
            self._close_editor()

    def _close_editor(self) -> None:
        self.query("#place-editor").remove()
        self.remove_class("-editing")
        (self.view if self.has_class("-full") else self.list).focus()
        self.refresh_bindings()

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002 - Textual's signature
    ) -> bool | None:
        """While somebody writes, and where nothing waits, there is nothing to decide."""
        always = action in {"back", "undo"} or action not in _OWN
        if self.has_class("-editing"):
            return action not in _OWN
        return always or not self.has_class("-empty")


_OWN = {binding.action for binding in bindings("inbox")}


def _description(plan: Plan) -> Content:
    """Who proposes it, why, and where it comes from."""
    proposal = plan.proposal
    facts = [str(proposal.actor), age(proposal.created), f"proposal {proposal.id}"]
    origin = proposal.origin
    if origin.session:
        first, last = origin.messages or (0, 0)
        said = f", messages {first}-{last}" if first != last else f", message {first}"
        facts.append(f"{origin.session}{said if origin.messages else ''}")
    lines = [
        Content.styled(clean(proposal.reason).strip(), "bold"),
        Content.styled(" · ".join(clean_line(fact) for fact in facts), "$text-muted"),
    ]
    if plan.conflicts:
        count = len(plan.conflicts)
        text = f"{count} place{'s' * (count > 1)} can't be merged: a asks, e writes your own text."
        lines.append(Content.styled(text, "$text-warning"))
    return Content("\n").join(lines)
