"""What a person can do with a piece of the conversation."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.text import clean_line, shorten
from kbtui.tui.chat.answer import AnswerItem
from kbtui.tui.chat.cards import ReasoningItem, ToolItem, change_items
from kbtui.tui.chat.items import Item, LinkItem, MoreItem, UserItem
from kbtui.tui.messages import Notify, OpenEntry

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.chat.chat_pane import ChatPane
    from kbtui.tui.chat.transcript import Transcript
    from kbtui.tui.markdown.inline import LinkRef

_CODE = re.compile(r"^(```|~~~)[^\n]*\n(.*?)(?:^\1\s*$|\Z)", re.MULTILINE | re.DOTALL)
_TITLE = 60


class Deeds:
    """Acts on items for the chat pane; each deed is named after its action."""

    def __init__(self, pane: ChatPane) -> None:
        self._pane = pane

    @property
    def _transcript(self) -> Transcript:
        return self._pane.transcript

    def do(self, verb: str, item: Item) -> None:
        """Do what an action of the transcript says with an item."""
        getattr(self, f"_{verb}")(item)

    def on_last(self, verb: str) -> None:
        """Do it with the last answer, as the slash commands mean it."""
        answers = [item for item in self._transcript.items if isinstance(item, AnswerItem)]
        if answers:
            self.do(verb, answers[-1])
        else:
            self._say("There is no answer yet.", "warning")

    def _say(self, text: str, severity: str = "information") -> None:
        self._pane.post_message(Notify(text, severity))  # type: ignore[arg-type]

    def follow_link(self, link: LinkRef) -> None:
        """Go where a link in an answer leads: to an entry, or into the web after a question."""
        kb = self._pane.kb
        if link.kind == "web":
            self._pane.run_worker(self._ask_about_url(link.target), group="link")
        elif kb is not None:
            self._pane.run_worker(self._open_entry(kb, link.target), group="link")

    async def _ask_about_url(self, url: str) -> None:
        from kbtui.tui.widgets.dialogs import KeyDialog

        dialog = KeyDialog("Open in the browser?", url, {"enter": "open", "y": "copy"})
        answer = await self._pane.app.push_screen_wait(dialog)
        if answer == "enter":
            self._pane.app.open_url(url)
        elif answer == "y":
            self._pane.app.copy_to_clipboard(url)

    async def _open_entry(self, kb: KnowledgeBase, name: str) -> None:
        try:
            entry = await asyncio.to_thread(kb.library.find, name.removesuffix(".md"))
        except KbtuiError as error:
            self._say(str(error), "warning")
        else:
            self._pane.post_message(OpenEntry(entry.path))

    # One method for each action

    def _expand(self, item: Item) -> None:
        if isinstance(item, MoreItem):
            self._pane.commands.load_earlier(item)
        elif isinstance(item, ToolItem):
            self._toggle_tool(item)
        elif isinstance(item, ReasoningItem):
            item.expanded = not item.expanded
            self._transcript.item_changed(item)
        elif item.target is not None:
            self._pane.post_message(OpenEntry(item.target.path, item.target.line))

    def _toggle_tool(self, item: ToolItem) -> None:
        item.expanded = not item.expanded
        if item.expanded:
            self._transcript.add_after(item, change_items(item))
        else:
            at = self._transcript.items.index(item) + 1
            below = self._transcript.items[at : at + len(item.paths)]
            self._transcript.take_out(*(link for link in below if isinstance(link, LinkItem)))
            self._transcript.add_after(item, ())

    def _copy(self, item: Item) -> None:
        if item.source:
            self._pane.app.copy_to_clipboard(item.source)

    def _copy_code(self, item: Item) -> None:
        blocks = [match[2].rstrip("\n") for match in _CODE.finditer(item.source)]
        if blocks:
            self._pane.app.copy_to_clipboard("\n\n".join(blocks))
        else:
            self._say("There is no code block in this message.", "warning")

    def _edit(self, item: Item) -> None:
        said = self._said_before(item)
        if said is None:
            return
        if self._pane.conversation.busy:
            self._say("An answer is still coming: Esc stops it.", "warning")
            return
        self._pane.clear_prompt()
        self._pane.prompt.replace_text(said.text)
        self._pane.conversation.rewind_before(said)
        self._pane.focus_prompt()

    def _retry(self, item: Item) -> None:
        said = self._said_before(item)
        if said is None:
            return
        if self._pane.conversation.busy:
            self._say("An answer is still coming: Esc stops it.", "warning")
            return
        self._pane.conversation.rewind_before(said)
        self._pane.conversation.send(said.text)

    def _said_before(self, item: Item) -> UserItem | None:
        """The person's message that an item belongs to."""
        items = self._transcript.items
        said = [other for other in items[: items.index(item) + 1] if isinstance(other, UserItem)]
        if not said or said[-1].message is None:
            self._say("There is no message of yours to go back to.", "warning")
            return None
        return said[-1]

    def _save(self, item: Item) -> None:
        kb = self._pane.kb
        if kb is None or not item.source.strip():
            return
        self._pane.run_worker(self._save_entry(kb, item), group="save")

    async def _save_entry(self, kb: KnowledgeBase, item: Item) -> None:
        from kbtui.tui.widgets.dialogs import TextDialog

        first = next((line for line in item.source.splitlines() if line.strip()), "")
        suggested = shorten(first.lstrip("#>-* "), _TITLE)
        title = await self._pane.app.push_screen_wait(
            TextDialog("Save as entry", suggested, "The title of the new entry.")
        )
        if not title:
            return
        try:
            entry = await asyncio.to_thread(
                kb.library.create, "topic", clean_line(title), body=item.source
            )
        except KbtuiError as error:
            self._say(str(error), "error")
        else:
            self._pane.post_message(OpenEntry(entry.path))

    def _undo(self, item: Item) -> None:
        kb = self._pane.kb
        if kb is None or not item.turn:
            self._say("This belongs to no turn that changed something.", "warning")
        else:
            self._pane.run_worker(self._undo_turn(kb, item.turn), group="undo")

    async def _undo_turn(self, kb: KnowledgeBase, turn: str) -> None:
        from kbtui.tui.diff.undo_conflict import undo_settled

        try:
            commit = await undo_settled(
                self._pane, lambda decided: kb.history.undo_turn(turn, decisions=decided)
            )
        except NotFoundError:
            self._say("This turn changed nothing in the notes.")
        except KbtuiError as error:
            self._say(str(error), "error")
        else:
            if commit is not None:
                self._say(f"Undone: {commit.subject}")
