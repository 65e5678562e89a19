"""The display of a running turn: its events become items of the transcript."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from kbtui.agent.events import (
    AnswerDiffers,
    Event,
    NoticeGiven,
    ReasoningDelta,
    RetryStarted,
    TextDelta,
    TextRevoked,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from kbtui.presentation.notes import Names
from kbtui.tui.chat.conversation.cards import (
    ReasoningItem,
    ToolItem,
    argument_details,
    argument_line,
    note_about,
)
from kbtui.tui.chat.conversation.items import (
    AnswerItem,
    BeforeItem,
    DiffersItem,
    Item,
    NoticeItem,
    NotKeptItem,
    PendingItem,
    UserItem,
    citation_items,
    difference_items,
    quotes_all,
)
from kbtui.tui.chat.conversation.receipts import after_receipt, is_own_words, receipt_of
from kbtui.tui.chat.conversation.transcript import Transcript
from kbtui.tui.chat.conversation.written import WrittenNote
from kbtui.tui.terminal.restless import is_still

ItemT = TypeVar("ItemT", bound=Item)


class TurnView:
    """The events of one turn, shown below the message that it answers.

    `before` returns the item to insert new items before (the first queued message), or None.
    """

    def __init__(
        self, transcript: Transcript, message: UserItem, before: Callable[[], Item | None]
    ) -> None:
        self.turn = ""
        self.names = Names()
        self.written: tuple[WrittenNote, ...] = ()
        self._transcript = transcript
        self._message = message
        self._before = before
        self._answer: AnswerItem | None = None
        self._reasoning: ReasoningItem | None = None
        self._tools: dict[str, ToolItem] = {}
        self._pending: PendingItem | None = None
        self._remarks: list[DiffersItem] = []
        self._sentence = ""  # what the receipt says already
        self._held = ""  # the beginning of an answer that may be that sentence
        self._show_pending()

    def show(self, event: Event) -> None:
        """Show one event; the header shows usage."""
        match event:
            case TurnStarted(turn=turn, message=message):
                self.turn = self._message.turn = turn
                self._message.message = message
            case TextDelta() | ReasoningDelta() | TextRevoked() | AnswerDiffers():
                self._show_text(event)
            case RetryStarted(text=text) | NoticeGiven(text=text):
                self._add(NoticeItem(title=text))
            case ToolStarted():
                self._start_tool(event)
            case ToolFinished():
                self._finish_tool(event)
            case TurnFinished():
                self._finish(event)
            case TurnFailed():
                self._fail(event)

    def _show_text(self, event: TextDelta | ReasoningDelta | TextRevoked | AnswerDiffers) -> None:
        match event:
            case TextDelta(text=text):
                self._add_text(text)
            case ReasoningDelta(text=text):
                self._add_reasoning(text)
            case TextRevoked():
                self._revoke()
            case AnswerDiffers(difference=difference):
                self._remarks += difference_items([difference], self.turn)
                self._add(self._remarks[-1])

    def tick(self) -> None:
        """Animate the spinner."""
        if self._pending is not None:
            self._transcript.item_changed(self._pending)

    def stop(self) -> None:
        """Show that the person stopped the turn, keeping the partial answer."""
        self._hide_pending()
        for tool in self._tools.values():
            if tool.ok is None:
                tool.ok, tool.summary = False, "stopped"
                self._transcript.item_changed(tool)
        answer = self._answer or self._add(AnswerItem(turn=self.turn))
        answer.interrupted = True
        self._end_answer()
        self._transcript.item_changed(answer)

    def _add(self, item: ItemT) -> ItemT:
        self._transcript.add(item, before=self._before())
        return item

    def _show_pending(self) -> None:
        if self._pending is None:
            self._pending = self._add(
                PendingItem(since=monotonic(), still=is_still(self._transcript))
            )

    def _hide_pending(self) -> None:
        if self._pending is not None:
            self._transcript.take_out(self._pending)
            self._pending = None

    def _add_text(self, text: str) -> None:
        text, self._held = self._held + text, ""
        if self._answer is None and self._sentence.startswith(text):
            self._held = text
        else:
            text = after_receipt(text, self._sentence) if self._answer is None else text
        if self._held or not text:
            return
        self._hide_pending()
        self._reasoning = None
        if self._answer is None:
            self._answer = self._add(AnswerItem(turn=self.turn, streaming=True))
        self._answer.add(text)
        self._transcript.item_changed(self._answer)

    def _add_reasoning(self, text: str) -> None:
        self._hide_pending()
        if self._reasoning is None:
            self._reasoning = self._add(ReasoningItem(turn=self.turn))
        self._reasoning.add(text)
        self._transcript.item_changed(self._reasoning)

    def _drop_remarks(self) -> None:
        for each in self._remarks:
            self._transcript.take_out(each)
        self._remarks.clear()

    def _revoke(self) -> None:
        """Show the text so far as what it was, reasoning."""
        self._drop_remarks()
        if self._answer is not None:
            answer, self._answer = self._answer, None
            self._transcript.take_out(answer)
            self._add_reasoning(answer.text)
            self._reasoning = None

    def _end_answer(self, text: str | None = None) -> None:
        if self._answer is not None:
            self._answer.finish(text)
            self._transcript.item_changed(self._answer)
        self._answer = None
        self._reasoning = None

    def _start_tool(self, event: ToolStarted) -> None:
        self._hide_pending()
        self._drop_remarks()
        self._end_answer()
        query = str(event.arguments.get("query", ""))
        self._tools[event.call] = tool = ToolItem(
            turn=self.turn,
            tool=event.tool,
            arguments=argument_line(event.arguments),
            about=note_about(event.tool, event.arguments),
            query=query,
            details=argument_details(event.arguments),
            names=self.names,
        )
        if is_own_words(event.tool, query, self._message.text):
            self._show_pending()
        else:
            self._add(tool)

    def _finish_tool(self, event: ToolFinished) -> None:
        tool = self._tools.get(event.call)
        if tool is None:
            tool = self._tools[event.call] = self._add(ToolItem(turn=self.turn, tool=event.tool))
        tool.ok, tool.summary, tool.output = event.ok, event.summary, event.output
        tool.changes, tool.proposal = event.changes, event.proposal
        tool.names, tool.written = self.names, self.written
        self._show_finished(tool)
        if all(other.ok is not None for other in self._tools.values()):
            self._show_pending()

    def _show_finished(self, tool: ToolItem) -> None:
        """Show the outcome of a call: as a receipt of the message, or in its own row."""
        if (receipt := receipt_of(tool)) is not None:
            self._message.receipt, self._sentence = receipt, tool.output
            self._transcript.item_changed(self._message)
            self._transcript.take_out(tool)
        elif tool in self._transcript.items:
            self._transcript.item_changed(tool)
        elif not tool.ok:
            self._hide_pending()
            self._add(tool)

    def _finish(self, event: TurnFinished) -> None:
        self._hide_pending()
        self._drop_remarks()
        text = after_receipt(event.text, self._sentence)
        if self._answer is None and text:
            self._answer = self._add(AnswerItem(turn=self.turn))
        answer = self._answer
        sources = citation_items(event.citations, self.turn, self.names)
        if answer is not None and quotes_all(text, sources):
            answer.cites, sources = tuple(sources), []
        if answer is not None:
            answer.is_unfounded = event.is_unfounded
        self._end_answer(text or None)
        for item in (*sources, *difference_items(event.differs, self.turn)):
            self._add(item)
        if event.not_kept:
            self._add(NotKeptItem(text=event.not_kept, turn=self.turn))
        if event.earlier is not None:
            self._add(BeforeItem(earlier=event.earlier, turn=self.turn))

    def _fail(self, event: TurnFailed) -> None:
        if event.cancelled:
            self.stop()
            return
        self._hide_pending()
        self._end_answer()
        self._add(NoticeItem(turn=self.turn, title=event.error, text=event.hint, kind="bad"))
