"""The prompt: a multi-line input with shell keys, history, completion and folded pastes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from kbtui.text import clean
from kbtui.tui.actions.registry import actions, bindings
from kbtui.tui.chat.completion import commands, entries_named, entries_with
from kbtui.tui.notes.fuzzy import TEXTS_AFTER_SECONDS, worth_searching
from kbtui.tui.terminal.background import run_latest
from kbtui.tui.terminal.state import InputHistory
from kbtui.tui.widgets.popup import Popup
from kbtui.tui.widgets.row_list import Choice
from kbtui.tui.widgets.text_field import TextField

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase

_LARGE_PASTE_CHARACTERS = 8_000
_TOKEN = re.compile(r"(?:^|(?<=\s))([/@]\S*)$")
_CHORD_END = "ctrl+e"
_PLACEHOLDER = "Ask, tell, / for commands, @ for notes"

_SHELL_KEYS = [
    Binding("ctrl+b", "cursor_left", show=False),
    Binding("ctrl+f", "cursor_right", show=False),
    Binding("alt+b,alt+left", "cursor_word_left", show=False),
    Binding("alt+f,alt+right", "cursor_word_right", show=False),
    Binding("alt+d,alt+delete", "delete_word_right", show=False),
    Binding("alt+backspace", "delete_word_left", show=False),
    Binding("ctrl+k", "kill_to_end", show=False),
    Binding("ctrl+u", "kill_to_start", show=False),
    Binding("ctrl+y", "yank", show=False),
    Binding("ctrl+underscore", "undo", show=False),
]
# Reserved for the app or the pane, although a text area binds them.
_RESERVED_KEYS = {"f6", "f7", "ctrl+c", "ctrl+z", "pageup", "pagedown"}


def _text_keys() -> list[Binding]:
    """Return a text area's bindings, without keys that are bound to something else here."""
    used = {
        key
        for keys in (*(a.keys for a in actions("prompt")), *(own.key for own in _SHELL_KEYS))
        for key in keys.split(",")
    } | _RESERVED_KEYS
    kept = []
    for binding in TextArea.BINDINGS:
        if isinstance(binding, Binding):
            keys = [key for key in binding.key.split(",") if key not in used]
            if keys:
                kept.append(binding.with_key(",".join(keys)))
    return kept


class Prompt(TextField, inherit_bindings=False):
    """The input for messages and commands.

    Shell keys take precedence over a text area's. Requests to the pane are posted as messages.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("prompt"),
        *_SHELL_KEYS,
        *_text_keys(),
    ]

    @dataclass
    class Sent(Message):
        """A message or command was submitted."""

        text: str

    @dataclass
    class Pasted(Message):
        """Text was pasted or dropped into an empty prompt."""

        text: str

    class EditorWanted(Message):
        """Editing in an external editor was requested."""

    class TakeBack(Message):
        """The message queued last is requested back, or else earlier input."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, highlight_cursor_line=False, placeholder=_PLACEHOLDER)
        self.history_of_input = InputHistory()
        self.popup = Popup(id="popup")
        self.kb: KnowledgeBase | None = None
        self._before_search = ""
        self._offered_token = ""
        self._pastes: dict[str, str] = {}
        self._killed = ""
        self._chord = False

    def on_resize(self) -> None:
        """Shorten the placeholder if there is little room."""
        fits = len(_PLACEHOLDER) <= self.wrap_width
        self.placeholder = _PLACEHOLDER if fits else "Ask, tell, / commands, @ notes"

    # Text

    @property
    def full_text(self) -> str:
        """The text with folded pastes expanded."""
        text = self.text
        for placeholder, pasted in self._pastes.items():
            text = text.replace(placeholder, pasted)
        return text

    def replace_text(self, text: str) -> None:
        """Replace the text, with the cursor at its end; undo brings it back."""
        self.history.checkpoint()
        self.replace(self._fold(text), (0, 0), self.document.end, maintain_selection_offset=False)
        self.history.checkpoint()
        self.move_cursor(self.document.end)

    def clear_text(self) -> None:
        self._pastes.clear()
        self.load_text("")

    def insert_reference(self, name: str) -> None:
        """Insert ``@name`` at the cursor, separated by spaces."""
        from kbtui.agent.attachments import reference

        row, column = self.cursor_location
        before = self.document[row][:column]
        blank = " " if before and not before[-1].isspace() else ""
        self.insert(f"{blank}{reference(name)} ")

    @property
    def token(self) -> str:
        """The ``/command`` or ``@entry`` before the cursor; empty if there is none."""
        row, column = self.cursor_location
        match = _TOKEN.search(self.document[row][:column])
        if match is None or (match[1][0] == "/" and (row or match.start(1))):
            return ""
        return match[1]

    def _fold(self, text: str) -> str:
        """Replace a large text by a placeholder, which is expanded when it is sent."""
        if len(text) <= _LARGE_PASTE_CHARACTERS:
            return text
        number = len(self._pastes) + 1
        placeholder = (
            f"[text {number}: {text.count(chr(10)) + 1:,} lines, {len(text):,} characters]"
        )
        self._pastes[placeholder] = text
        return placeholder

    # Events

    async def _on_key(self, event: events.Key) -> None:
        chord, self._chord = self._chord, False
        if event.is_printable:
            return
        if chord and event.key == _CHORD_END:
            self.post_message(self.EditorWanted())
        elif not await self._run_binding(event.key):
            if event.key == "enter":
                event.prevent_default()  # an unbound Enter must not insert a line
            return
        event.stop()
        event.prevent_default()

    async def _run_binding(self, key: str) -> bool:
        """Run the action bound to a key immediately; return whether there was one.

        Textual runs it only once the key has bubbled up to the app; by then, keys typed after it in
        a hurry or while the app was busy would already be in the text.
        """
        bound = self._bindings.copy()
        bound.apply_keymap(self.app._keymap)  # noqa: SLF001 - there is no public accessor
        for binding in bound.key_to_bindings.get(key, ()):
            if await self.app.run_action(binding.action, self):
                return True
        return False

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        was_empty = not self.text
        self.insert(self._fold(clean(event.text)))
        self.move_cursor(self.selection.end)
        if was_empty:
            self.post_message(self.Pasted(self.full_text))

    def on_text_area_changed(self) -> None:
        self._complete_word()

    # Completion: commands at once, entries from an index built in a thread

    def _complete_word(self) -> None:
        token = self.token
        if self.popup.kind == "find":
            self._show_earlier_input()
        elif token.startswith("@") and self.kb is not None:
            run_latest(self, "entries", self._complete_entry, self.kb, token)
        else:
            self._offer("command", commands(token))

    def _offer(self, kind: str, choices: Sequence[Choice[str]], title: str = "") -> None:
        # A command typed in full is to be sent with Enter; a popup would be in the way.
        complete = len(choices) == 1 and choices[0].value.strip() == self.text.strip()
        self.popup.show_choices(kind, () if complete and kind != "find" else choices, title)

    async def _complete_entry(self, kb: KnowledgeBase, token: str) -> None:
        """Offer entries by name and, below them, entries by text.

        Results are dropped if the token has changed or the popup was closed meanwhile.
        """
        query = token.removeprefix("@")
        named = await asyncio.to_thread(entries_named, kb, query)
        if self.token != token:
            return
        self._offered_token = token
        self._offer("entry", named)
        shown = self.popup.display
        if (named and not shown) or not worth_searching(query):
            return  # typed in full, or too short
        await asyncio.sleep(TEXTS_AFTER_SECONDS)
        names = {choice.value for choice in named}
        found = await asyncio.to_thread(entries_with, kb, query)
        saying = [choice for choice in found if choice.value not in names]
        if saying and self.token == token and self.popup.display == shown:
            self._offer("entry", [*named, *saying])

    def _show_earlier_input(self) -> None:
        found = self.history_of_input.search(self.text)
        choices = [Choice(text.replace("\n", " ⏎ "), "", text) for text in found]
        self._offer("find", choices, "earlier input · type to search · Esc leaves")

    def give_up_popup(self) -> bool:
        """Close the popup and restore the text from before a search; False if it isn't open."""
        if not self.popup.display:
            return False
        if self.popup.kind == "find":
            self.replace_text(self._before_search)
        self.popup.hide()
        return True

    def accept(self) -> None:
        """Replace the token before the cursor, or in a search the text, by the selected choice."""
        choice, kind = self.popup.chosen, self.popup.kind
        self.popup.hide()
        if choice is not None and kind == "find":
            self.replace_text(choice.value)
        elif choice is not None:
            row, column = self.cursor_location
            self.replace(choice.value, (row, column - len(self.token)), (row, column))

    def _update_popup(self) -> None:
        """Update the popup to the current text: keys can be ahead of it."""
        token = self.token
        if self.popup.kind == "command":
            self._offer("command", commands(token))
        elif self.popup.kind == "entry" and token != self._offered_token:
            self.popup.hide()

    # Actions of the registry

    def action_send(self) -> None:
        if self.popup.display:
            self._update_popup()
            choice, kind = self.popup.chosen, self.popup.kind
            self.accept()
            # A command without required arguments runs at once.
            if choice is None or (kind == "command" and "<" not in choice.label):
                self.send()
            return
        row, column = self.cursor_location
        if self.document[row][:column].endswith("\\"):
            self.replace("\n", (row, column - 1), (row, column))
        else:
            self.send()

    def send(self) -> None:
        """Submit the text and clear it at once, so that what is typed next stays."""
        text = self.full_text
        if text.strip():
            self.clear_text()
            self.post_message(self.Sent(text))

    def action_newline(self) -> None:
        self.insert("\n")

    def action_previous(self) -> None:
        if self.popup.display:
            self.popup.move(-1)
        elif not self.navigator.is_first_wrapped_line(self.cursor_location):
            self.action_cursor_up()
        elif not self.text and not self.history_of_input.walking:
            self.post_message(self.TakeBack())
        else:
            self.show_earlier()

    def show_earlier(self) -> None:
        """Show the previous input of the history."""
        earlier = self.history_of_input.earlier(self.full_text)
        if earlier is not None:
            self.replace_text(earlier)

    def action_next(self) -> None:
        if self.popup.display:
            self.popup.move(1)
        elif not self.navigator.is_last_wrapped_line(self.cursor_location):
            self.action_cursor_down()
        else:
            later = self.history_of_input.later()
            if later is not None:
                self.replace_text(later)

    def action_find(self) -> None:
        if self.popup.kind == "find":
            self.popup.move(1)
        else:
            self._before_search = self.full_text
            self._show_earlier_input()

    def action_complete(self) -> None:
        if self.popup.display:
            self._update_popup()
            self.accept()
        elif self.token:
            self._complete_word()
        else:
            self.app.action_focus_next()

    def action_editor(self) -> None:
        self._chord = True

    def action_quit(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            self.app.exit()

    # Readline

    def action_kill_to_end(self) -> None:
        row, column = self.cursor_location
        line = self.document[row]
        end = (row, len(line)) if column < len(line) else (row + 1, 0)
        if column < len(line) or row + 1 < self.document.line_count:
            self._kill((row, column), end)

    def action_kill_to_start(self) -> None:
        row, column = self.cursor_location
        self._kill((row, 0), (row, column))

    def action_delete_word_left(self) -> None:
        row, column = self.cursor_location
        head = self.document[row][:column]
        word = re.search(r"\S*\s*$", head)
        start = word.start() if word else 0
        if column:
            self._kill((row, start), (row, column))
        else:
            self.action_delete_left()

    def action_yank(self) -> None:
        self.insert(self._killed)

    def _kill(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        killed = self.document.get_text_range(start, end)
        if killed:
            self._killed = killed
            self.delete(start, end)
