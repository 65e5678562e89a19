"""One turn as it goes on: its events become items of the conversation."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from kbtui.agent.events import (
    Event,
    NoticeGiven,
    ReasoningDelta,
    RetryStarted,
    TextDelta,
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
    Item,
    NoticeItem,
    NotKeptItem,
    PendingItem,
    UserItem,
    citation_items,
)
from kbtui.tui.chat.conversation.transcript import Transcript
from kbtui.tui.chat.conversation.written import WrittenNote

ItemT = TypeVar("ItemT", bound=Item)


class TurnView:
    """Shows the events of one turn below the person's message that it answers.

    `before` gives the item that everything new stands before (what is queued), or None.
    """

    def __init__(
        self, transcript: Transcript, said: UserItem, before: Callable[[], Item | None]
    ) -> None:
        self.turn = ""
        self.names = Names()
        self.written: tuple[WrittenNote, ...] = ()
        self._transcript = transcript
        self._said = said
        self._before = before
        self._answer: AnswerItem | None = None
        self._reasoning: ReasoningItem | None = None
        self._tools: dict[str, ToolItem] = {}
        self._pending: PendingItem | None = None
        self._wait()

    def show(self, event: Event) -> None:
        """Take in one event; usage is the header's affair."""
        match event:
            case TurnStarted(turn=turn, message=message):
                self.turn = self._said.turn = turn
                self._said.message = message
            case TextDelta(text=text):
                self._add_text(text)
            case ReasoningDelta(text=text):
                self._add_reasoning(text)
            case RetryStarted(text=text) | NoticeGiven(text=text):
                self._put(NoticeItem(title=text))
            case ToolStarted():
                self._start_tool(event)
            case ToolFinished():
                self._finish_tool(event)
            case TurnFinished():
                self._finish(event)
            case TurnFailed(cancelled=True):
                self.stop()
            case TurnFailed():
                self._fail(event)

    def tick(self) -> None:
        """Let the waiting line move on."""
        if self._pending is not None:
            self._transcript.item_changed(self._pending)

    def stop(self) -> None:
        """The person stopped the turn: what was said until then stays."""
        self._end_waiting()
        for tool in self._tools.values():
            if tool.ok is None:
                tool.ok, tool.summary = False, "stopped"
                self._transcript.item_changed(tool)
        answer = self._answer or self._put(AnswerItem(turn=self.turn))
        answer.interrupted = True
        self._end_answer()
        self._transcript.item_changed(answer)

    def _put(self, item: ItemT) -> ItemT:
        self._transcript.add(item, before=self._before())
        return item

    def _wait(self) -> None:
        if self._pending is None:
            self._pending = self._put(PendingItem(since=monotonic()))

    def _end_waiting(self) -> None:
        if self._pending is not None:
            self._transcript.take_out(self._pending)
            self._pending = None

    def _add_text(self, text: str) -> None:
        if not text:
            return
        self._end_waiting()
        self._reasoning = None
        if self._answer is None:
            self._answer = self._put(AnswerItem(turn=self.turn, streaming=True))
        self._answer.add(text)
        self._transcript.item_changed(self._answer)

    def _add_reasoning(self, text: str) -> None:
        self._end_waiting()
        if self._reasoning is None:
            self._reasoning = self._put(ReasoningItem(turn=self.turn))
        self._reasoning.add(text)
        self._transcript.item_changed(self._reasoning)

    def _end_answer(self, text: str | None = None) -> None:
        if self._answer is not None:
            self._answer.finish(text)
            self._transcript.item_changed(self._answer)
        self._answer = None
        self._reasoning = None

    def _start_tool(self, event: ToolStarted) -> None:
        self._end_waiting()
        self._end_answer()
        self._tools[event.call] = self._put(
            ToolItem(
                turn=self.turn,
                tool=event.tool,
                arguments=argument_line(event.arguments),
                about=note_about(event.tool, event.arguments),
                details=argument_details(event.arguments),
                names=self.names,
            )
        )

    def _finish_tool(self, event: ToolFinished) -> None:
        tool = self._tools.get(event.call)
        if tool is None:
            tool = self._tools[event.call] = self._put(ToolItem(turn=self.turn, tool=event.tool))
        tool.ok, tool.summary, tool.output = event.ok, event.summary, event.output
        tool.changes, tool.proposal = event.changes, event.proposal
        tool.names, tool.written = self.names, self.written
        self._transcript.item_changed(tool)
        if all(other.ok is not None for other in self._tools.values()):
            self._wait()

    def _finish(self, event: TurnFinished) -> None:
        self._end_waiting()
        if self._answer is None and event.text:
            self._answer = self._put(AnswerItem(turn=self.turn))
        self._end_answer(event.text or None)
        for item in citation_items(event.citations, self.turn, self.names):
            self._put(item)
        if event.not_kept:
            self._put(NotKeptItem(text=event.not_kept, turn=self.turn))
        if event.earlier is not None:
            self._put(BeforeItem(earlier=event.earlier, turn=self.turn))

    def _fail(self, event: TurnFailed) -> None:
        self._end_waiting()
        self._end_answer()
        self._put(NoticeItem(turn=self.turn, title=event.error, text=event.hint, kind="bad"))
