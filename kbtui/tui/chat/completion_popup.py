"""What the popup offers while somebody writes in the prompt, and what becomes of a choice."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.tui.chat.completion import Completer
    from kbtui.tui.chat.popup import Choice, Popup
    from kbtui.tui.chat.prompt import Prompt


class Offers:
    """Commands after a slash, entries after an at sign, earlier input when it is looked for."""

    def __init__(self, prompt: Prompt, popup: Popup) -> None:
        self._prompt = prompt
        self._popup = popup
        self._before_search = ""
        self._offered = ""

    @cached_property
    def completer(self) -> Completer:
        """What knows the names; made when first needed."""
        from kbtui.tui.chat.completion import Completer

        return Completer()

    def typed(self, token: str) -> bool:
        """Offer what fits the word before the cursor; True where `entries` have to be asked."""
        if self._popup.kind == "find":
            self._show_earlier()
        elif token.startswith("/"):
            self._offer("command", self.completer.commands(token))
        elif token.startswith("@"):
            return True
        else:
            self._popup.hide()
        return False

    async def entries(self, token: str) -> None:
        """Offer entries of that name, below them entries that say it in their text.

        Unless something else is typed by now, or the popup was closed.
        """
        named = await self.completer.entries(token)
        if self._prompt.token != token:
            return
        self._offered = token
        self._offer("entry", named)
        shown = self._popup.display
        if named and not shown:
            return  # it is typed in full
        names = {choice.value for choice in named}
        found = await self.completer.entries_saying(token)
        saying = [choice for choice in found if choice.value not in names]
        if saying and self._prompt.token == token and self._popup.display == shown:
            self._offer("entry", [*named, *saying])

    def _offer(self, kind: str, choices: Sequence[Choice], title: str = "") -> None:
        # What is typed in full already wants Enter, not a popup in its way.
        complete = len(choices) == 1 and choices[0].value.strip() == self._prompt.text.strip()
        self._popup.show_choices(kind, () if complete and kind != "find" else choices, title)

    # Earlier input

    def find_earlier(self) -> None:
        """Search what was sent before; again: the next one that fits."""
        if self._popup.kind == "find":
            self._popup.move(1)
        else:
            self._before_search = self._prompt.full_text
            self._show_earlier()

    def _show_earlier(self) -> None:
        from kbtui.tui.chat.completion import earlier_inputs

        found = self._prompt.history_of_input.search(self._prompt.text)
        self._offer("find", earlier_inputs(found), "earlier input · type to search · Esc leaves")

    # Choosing

    def give_up(self) -> bool:
        """Close the popup, with the prompt as it was before a search; False if it isn't open."""
        if not self._popup.display:
            return False
        if self._popup.kind == "find":
            self._prompt.replace_text(self._before_search)
        self._popup.hide()
        return True

    def accept(self) -> None:
        """Write the marked choice into the prompt."""
        choice, kind = self._popup.chosen, self._popup.kind
        self._popup.hide()
        if choice is None:
            return
        if kind == "find":
            self._prompt.replace_text(choice.value)
        else:
            self._prompt.complete(choice.value)

    def accept_or_send(self) -> None:
        """Enter: a command is carried out at once where it needs nothing more."""
        self.catch_up()
        choice, kind = self._popup.chosen, self._popup.kind
        self.accept()
        if choice is None or (kind == "command" and "<" not in choice.label):
            self._prompt.send()

    def catch_up(self) -> None:
        """Let the popup offer what fits what is typed by now: keys can be ahead of it."""
        token = self._prompt.token
        if self._popup.kind == "command":
            choices = self.completer.commands(token) if token.startswith("/") else []
            self._offer("command", choices)
        elif self._popup.kind == "entry" and token != self._offered:
            self._popup.hide()
