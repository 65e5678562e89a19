"""Completion in the prompt: what is offered while somebody writes, and what a choice does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbtui.knowledge.library.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.chat.prompt import Prompt
from kbtui.text import clean_line
from kbtui.tui.actions.registry import matching_commands
from kbtui.tui.notes.fuzzy import TEXTS_AFTER_SECONDS, FuzzyIndex, entries_saying, worth_searching
from kbtui.tui.notes.pages import pages_of
from kbtui.tui.widgets.popup import Completion, Popup
from kbtui.workspace.layout import short_name

_ENTRY_LIMIT = 30


class Completions:
    """Commands after a slash, entries after an at sign, earlier input when it is looked for.

    Commands are completed at once, entries from an index that is made in a thread.
    """

    def __init__(self, prompt: Prompt, popup: Popup) -> None:
        self._prompt = prompt
        self._popup = popup
        self._kb: KnowledgeBase | None = None
        self._index: FuzzyIndex | None = None
        self._before_search = ""
        self._offered = ""

    def knowledge_ready(self, kb: KnowledgeBase) -> None:
        """Entries can be completed from now on."""
        self._kb = kb

    def forget(self) -> None:
        """The entries changed: read them again when they are next asked for."""
        self._index = None

    def typed(self, token: str) -> bool:
        """Offer what fits the word before the cursor; True where `entries` have to be asked."""
        if self._popup.kind == "find":
            self._show_earlier()
        elif token.startswith("/"):
            self._offer("command", _commands(token))
        elif token.startswith("@"):
            return True
        else:
            self._popup.hide()
        return False

    def _offer(self, kind: str, choices: Sequence[Completion], title: str = "") -> None:
        # What is typed in full already wants Enter, not a popup in its way.
        complete = len(choices) == 1 and choices[0].value.strip() == self._prompt.text.strip()
        self._popup.show_choices(kind, () if complete and kind != "find" else choices, title)

    # Entries

    async def entries(self, token: str) -> None:
        """Offer entries of that name, below them entries that say it in their text.

        Unless something else is typed by now, or the popup was closed.
        """
        if self._kb is None:
            return
        query = token.removeprefix("@")
        named = await asyncio.to_thread(self._named, self._kb, query)
        if self._prompt.token != token:
            return
        self._offered = token
        self._offer("entry", named)
        shown = self._popup.display
        if named and not shown:
            return  # it is typed in full
        names = {choice.value for choice in named}
        found = await self._saying(self._kb, query)
        saying = [choice for choice in found if choice.value not in names]
        if saying and self._prompt.token == token and self._popup.display == shown:
            self._offer("entry", [*named, *saying])

    def _named(self, kb: KnowledgeBase, query: str) -> list[Completion]:
        """The entries of that name, best first; the newest for a mere ``@``."""
        index = self._index
        if index is None:
            index = self._index = FuzzyIndex([*kb.library.infos(), *pages_of(kb)])
        found = (
            [match.entry for match in index.search(query, _ENTRY_LIMIT)]
            if query
            else index.recent(_ENTRY_LIMIT)
        )
        return [_choice(info, info.title) for info in found]

    async def _saying(self, kb: KnowledgeBase, query: str) -> list[Completion]:
        """The entries whose text says it, best first, after a pause in the typing."""
        if not worth_searching(query):
            return []
        await asyncio.sleep(TEXTS_AFTER_SECONDS)
        found = await asyncio.to_thread(entries_saying, kb, query)
        return [_choice(info, f"{info.title} · in its text, line {line}") for info, line in found]

    # Earlier input

    def find_earlier(self) -> None:
        """Search what was sent before; again: the next one that fits."""
        if self._popup.kind == "find":
            self._popup.move(1)
        else:
            self._before_search = self._prompt.full_text
            self._show_earlier()

    def _show_earlier(self) -> None:
        found = self._prompt.history_of_input.search(self._prompt.text)
        choices = [Completion(text, text.replace("\n", " ⏎ ")) for text in found]
        self._offer("find", choices, "earlier input · type to search · Esc leaves")

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
        self._catch_up()
        choice, kind = self._popup.chosen, self._popup.kind
        self.accept()
        if choice is None or (kind == "command" and "<" not in choice.label):
            self._prompt.send()

    def catch_up_and_accept(self) -> None:
        """Tab: write the choice that fits what is typed by now."""
        self._catch_up()
        self.accept()

    def _catch_up(self) -> None:
        """Let the popup offer what fits what is typed by now: keys can be ahead of it."""
        token = self._prompt.token
        if self._popup.kind == "command":
            self._offer("command", _commands(token) if token.startswith("/") else [])
        elif self._popup.kind == "entry" and token != self._offered:
            self._popup.hide()


def _commands(token: str) -> list[Completion]:
    """The commands that ``/token`` can become."""
    return [
        Completion(f"{action.slash} ", f"{action.slash} {action.usage}".rstrip(), action.help)
        for action in matching_commands(token)
    ]


def _choice(info: EntryInfo, detail: str) -> Completion:
    from kbtui.agent.attachments import reference

    name = clean_line(short_name(info.path))

    return Completion(f"{reference(name)} ", name, detail)
