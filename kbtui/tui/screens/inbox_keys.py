"""What each key of the inbox does."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.screen import Screen

from kbtui.tui.actions.registry import bindings
from kbtui.tui.inbox.place_view import PlaceView
from kbtui.tui.inbox.proposal_list import ProposalList
from kbtui.tui.messages import OpenEntry, leave_for

if TYPE_CHECKING:
    from textual.binding import BindingType

    from kbtui.tui.inbox.decisions import InboxDeeds

_OWN = {binding.action for binding in bindings("inbox")}


class InboxKeys(Screen[None]):
    """The parts of the inbox, and the actions of the registry that are about them.

    Attributes:
        deeds: What decides on places.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("inbox")]
    deeds: InboxDeeds

    # Parts

    @property
    def list(self) -> ProposalList:
        """The proposals."""
        return self.query_one("#inbox-list", ProposalList)

    @property
    def view(self) -> PlaceView:
        """The places of the selected one."""
        return self.query_one("#inbox-diff", PlaceView)

    # What keys are about

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
        self.deeds.do(self.deeds.accept)

    def action_accept_all(self) -> None:
        """Make the whole change, as far as it can be made."""
        self.deeds.do(self.deeds.accept_all)

    def action_reject(self) -> None:
        """Put this place away."""
        self.deeds.do(self.deeds.reject)

    def action_reject_all(self) -> None:
        """Put the whole proposal away."""
        self.deeds.do(self.deeds.reject_all)

    def action_edit(self) -> None:
        """Write what shall stand in this place."""
        self.deeds.do(self.deeds.edit)

    def action_undo(self) -> None:
        """Undo what was accepted last, as the history would."""
        self.deeds.undo()
