"""The inbox: what machines would change in the notes, decided on place by place."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import on
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Footer, Static

from kbtui.errors import KbtuiError
from kbtui.text import clean, clean_line
from kbtui.tui.inbox.decisions import InboxDeeds
from kbtui.tui.inbox.place_view import PlaceView
from kbtui.tui.inbox.proposal_list import ProposalList, age
from kbtui.tui.messages import InboxChanged, KnowledgeChanged, tell_error
from kbtui.tui.screens.inbox_keys import InboxKeys
from kbtui.tui.screens.inbox_writing import InboxWriting
from kbtui.tui.terminal.background import run_latest
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.inbox.plan import Plan
    from kbtui.tui.inbox.place_editor import PlaceEditor

_BESIDE_FROM = 120
_EMPTY = """\
Nothing waits for you.

What kbtui does by itself never changes a line that you wrote. If Dream finds one that is out of \
date, if a conversation contradicts your memory, or if another machine changed the same line, the \
change comes here first, and you decide on it place by place.

To see what the assistant wants to write during a conversation before it is written as well, set
`kbtui config set memory.review ask`."""


class InboxScreen(InboxKeys):
    """Proposals in a list, the places of the selected one beside or below it."""

    CSS_PATH = "inbox.tcss"

    def __init__(self, kb: KnowledgeBase, proposal: str = "") -> None:
        """Show what waits, with `proposal` selected if it is there."""
        super().__init__()
        self._kb = kb
        self._inbox = kb.memory.inbox
        self._at = proposal
        self._said = ""
        self.deeds = InboxDeeds(self, kb)
        self.writing = InboxWriting(self, kb.memory.inbox)

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
                await asyncio.to_thread(self._inbox.settle)
            plans = await asyncio.to_thread(self._inbox.waiting)
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
            self.deeds.moved_on()
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

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected) -> None:
        event.stop()
        self.action_zoom()

    def say(self, text: str) -> None:
        """Say what was done, where it covers nothing, until something else is done."""
        self._said = text
        self._show_title()

    # Writing

    def on_place_editor_saved(self, event: PlaceEditor.Saved) -> None:
        """Take the text."""
        event.stop()
        self.writing.take(event)

    def on_place_editor_closed(self, event: PlaceEditor.Closed) -> None:
        """Leave the place as it is proposed."""
        event.stop()
        self.writing.leave(event)


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
