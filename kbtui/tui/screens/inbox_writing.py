"""Writing what shall stand in a place of a proposal."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.tui.messages import tell_error
from kbtui.tui.terminal.background import run_latest

if TYPE_CHECKING:
    from kbtui.memory.inbox.inbox import Inbox
    from kbtui.tui.inbox.inbox import InboxScreen
    from kbtui.tui.inbox.place_editor import PlaceEditor


class InboxWriting:
    """Opens the field below the difference, takes what was written there, and closes it."""

    def __init__(self, screen: InboxScreen, inbox: Inbox) -> None:
        self._screen = screen
        self._inbox = inbox

    async def open(self, editor: PlaceEditor) -> None:
        """Show the field; the keys of the inbox rest meanwhile."""
        await self._screen.query_one("#inbox-detail").mount(editor)
        self._screen.add_class("-editing")
        self._screen.refresh_bindings()

    def take(self, event: PlaceEditor.Saved) -> None:
        """Take the text; where it can't be taken, it stays in the field."""
        run_latest(self._screen, "take", self._take, event)

    async def _take(self, event: PlaceEditor.Saved) -> None:
        edit = partial(self._inbox.edit, event.proposal, event.place, event.text, seen=event.seen)
        try:
            await asyncio.to_thread(edit)
        except KbtuiError as error:
            tell_error(self._screen, error)
            return
        self._screen.say("Your text is proposed there now: a accepts it.")
        self._close()
        await self._screen.read()

    def leave(self, event: PlaceEditor.Closed) -> None:
        """Close the field, after a question where something was typed."""
        run_latest(self._screen, "leave", self._leave, unsaved=event.unsaved)

    async def _leave(self, *, unsaved: bool) -> None:
        from kbtui.tui.widgets.dialogs import KeyDialog

        dialog = KeyDialog("Your text", "What you wrote isn't taken yet.", {"d": "give it up"})
        if not unsaved or await self._screen.app.push_screen_wait(dialog) == "d":
            self._close()

    def _close(self) -> None:
        screen = self._screen
        screen.query("#place-editor").remove()
        screen.remove_class("-editing")
        (screen.view if screen.has_class("-full") else screen.list).focus()
        screen.refresh_bindings()
