"""The conversation as it is read: one item of it is selected, and keys act on that."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip
from textual.style import Style

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
from kbtui.tui.actions.registry import bindings
from kbtui.tui.chat.cards import ReasoningItem, ToolItem, argument_details, argument_line
from kbtui.tui.chat.flow_view import GUTTER, FlowView
from kbtui.tui.chat.items import (
    AnswerItem,
    BeforeItem,
    Item,
    NoticeItem,
    NotKeptItem,
    PendingItem,
    Target,
    UserItem,
    citation_items,
)

if TYPE_CHECKING:
    from textual import events
    from textual.binding import BindingType

    from kbtui.tui.chat.written import Written
    from kbtui.tui.markdown.syntax import LinkRef

# The looks of the conversation, by the names that its lines use. These aren't component classes:
# each of those costs the stylesheet a pass over all rules, at the start and whenever the focus
# moves.
_STYLES = {
    "chat--user": "on $panel",
    "chat--user-text": "$foreground",
    "chat--user-mark": "bold $primary",
    "chat--queued": "italic $text-muted",
    "chat--muted": "$text-muted",
    "chat--tool": "$secondary",
    "chat--good": "$success",
    "chat--bad": "$error",
    "chat--warning": "$warning",
    "chat--info": "bold $primary",
    "chat--link": "underline $link-color",
    "chat--cite": "$primary",
    "chat--cursor": "$accent",
    "md--h1": "bold $primary",
    "md--h2": "bold $primary",
    "md--h3": "bold $secondary",
    "md--h4": "bold $text-muted",
    "md--rule": "$text-muted",
    "md--strong": "bold",
    "md--em": "italic",
    "md--strike": "strike",
    "md--mark": "$warning on $warning-muted",
    "md--code": "$accent on $panel",
    "md--block": "on $panel",
    "md--link": "underline $link-color",
    "md--missing": "underline $link-color",
    "md--tag": "$secondary",
    "md--bullet": "$primary",
    "md--done": "$success",
    "md--quote-bar": "$secondary",
    "md--callout-note": "bold $primary",
    "md--callout-good": "bold $success",
    "md--callout-warn": "bold $warning",
    "md--callout-bad": "bold $error",
    "md--callout-quiet": "bold $text-muted",
    "md--muted": "$text-muted",
}
WELCOME = (
    "Tell me what is worth keeping, or ask what you once knew.",
    "",
    "/  commands     @  entries     F1  help     /resume  goes on",
)

Verb = Literal["expand", "copy", "copy_code", "edit", "retry", "save", "undo", "mark_past"]
"""An action on one item; see `kbtui.tui.chat.item_actions`."""


class Transcript(FlowView, can_focus=True):
    """Shows items; one of them is selected while it has the focus, and keys act on that."""

    BINDING_GROUP_TITLE = "Conversation"
    HELP = "j and k select a message; what is below acts on it."
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("transcript")]

    class Act(Message):
        """Something is to be done with an item that takes more than the transcript."""

        def __init__(self, verb: Verb, item: Item) -> None:
            super().__init__()
            self.verb = verb
            self.item = item

    class Open(Message):
        """Lines of a file are to be shown."""

        def __init__(self, target: Target) -> None:
            super().__init__()
            self.target = target

    class Link(Message):
        """A link in an answer was clicked."""

        def __init__(self, link: LinkRef) -> None:
            super().__init__()
            self.link = link

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cursor: Item | None = None
        self.greets = True
        """Whether an empty conversation says what it is for."""

    def items_gone(self) -> None:
        """Select nothing where the selected item is gone."""
        if self._cursor not in self.items:
            self._cursor = None

    # The selected item

    @property
    def cursor(self) -> Item | None:
        """The item that keys act on."""
        return self._cursor

    def select(self, item: Item | None) -> None:
        """Select an item and bring it into view."""
        self._cursor = item
        self.refresh()
        lines = self._flow.span(item) if item is not None else range(0)
        if not lines:
            return
        top, height = self.scroll_y, self.size.height
        if lines.start < top or len(lines) >= height:
            self.scroll_to(y=max(0, lines.start - 1), animate=False, force=True, immediate=True)
        elif lines.stop > top + height:
            self.scroll_to(y=lines.stop - height, animate=False, force=True, immediate=True)

    def on_focus(self) -> None:
        """Something is selected as long as keys come here."""
        if self._cursor is None and self.items:
            self.select(self.items[-1])
        self.refresh()

    def on_blur(self) -> None:
        """The bar beside the selected item goes."""
        self.refresh()

    def _move(self, step: int) -> None:
        if not self.items:
            return
        at = self.items.index(self._cursor) if self._cursor in self.items else len(self.items)
        self.select(self.items[max(0, min(at + step, len(self.items) - 1))])

    # Actions

    def action_next(self) -> None:
        """Select the next item; behind the last one, go to the very end."""
        if self.items and self._cursor is self.items[-1]:
            self.to_end()
        else:
            self._move(1)

    def action_previous(self) -> None:
        """Select the item before."""
        self._move(-1)

    def action_first(self) -> None:
        """Select the first item."""
        self._move(-len(self.items))
        self.scroll_home(animate=False, force=True, immediate=True)

    def action_last(self) -> None:
        """Select the last item and follow the stream."""
        self._move(len(self.items))
        self.to_end()

    def action_expand(self) -> None:
        """Show or hide details, or follow where the item leads."""
        self._act("expand")

    def action_copy(self) -> None:
        """Copy the item's Markdown."""
        self._act("copy")

    def action_copy_code(self) -> None:
        """Copy its code blocks."""
        self._act("copy_code")

    def action_edit(self) -> None:
        """Take it back into the prompt."""
        self._act("edit")

    def action_retry(self) -> None:
        """Ask for another answer."""
        self._act("retry")

    def action_save(self) -> None:
        """Keep it as an entry."""
        self._act("save")

    def action_undo(self) -> None:
        """Take back what its turn changed."""
        self._act("undo")

    def action_mark_past(self) -> None:
        """Strike out an earlier line that no longer holds."""
        self._act("mark_past")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Mark as past only where an earlier line is shown; elsewhere the key asks again."""
        if action == "mark_past":
            return isinstance(self._cursor, BeforeItem) and not self._cursor.past
        return super().check_action(action, parameters)

    def action_open(self) -> None:
        """Open the line that it cites, or the entry that it changed."""
        target = None if self._cursor is None else self._target_of(self._cursor)
        if target is not None:
            self.post_message(self.Open(target))

    def _target_of(self, item: Item) -> Target | None:
        """Where an item leads; an answer leads where its first citation does."""
        if item.target is not None or item.dense:
            return item.target
        below = self.items[self.items.index(item) + 1 :][:1]
        return below[0].target if below and below[0].dense else None

    def _act(self, verb: Verb) -> None:
        if self._cursor is not None:
            self.post_message(self.Act(verb, self._cursor))

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Select what was clicked; follow a link, open or close a card."""
        item = self._flow.item_at(event.y + round(self.scroll_y))
        if item is None:
            return
        self.select(item)
        number, link_number = (event.style.meta.get(name) for name in ("target", "link"))
        target = item.linked(number) if isinstance(number, int) else None
        link = item.link(link_number) if isinstance(link_number, int) else None
        if link is not None:
            self.post_message(self.Link(link))
        elif target is not None:
            self.post_message(self.Open(target))
        elif item.click == "open":
            self.action_open()
        elif item.click == "expand":
            self._act("expand")

    # Drawing

    def get_visual_style(self, *component_classes: str, partial: bool = False) -> Style:
        """The looks of a part, from a table in place of component classes."""
        text = _STYLES.get(component_classes[0]) if component_classes else None
        if text is None:
            return super().get_visual_style(*component_classes, partial=partial)
        style = Style.parse(text)
        return style if partial else self.visual_style + style

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen: the bar of the selected item, then the text."""
        if not self.items:
            return self._welcome_line(y)
        index = y + round(self.scroll_y)
        body = super().render_line(y)
        marked = self._cursor if self.has_focus else None
        bar = "▌ " if marked is not None and index in self._flow.span(marked) else "  "
        style = self.get_visual_style("chat--cursor").rich_style
        return Strip.join([Strip([Segment(bar, style)], GUTTER), body]).crop(0, self.size.width)

    def _welcome_line(self, y: int) -> Strip:
        """An empty conversation says what it is for, at the foot of the pane."""
        width = self.size.width
        at = y - (self.size.height - len(WELCOME) - 1)
        text = WELCOME[at] if self.greets and 0 <= at < len(WELCOME) else ""
        style = self.get_visual_style("chat--muted").rich_style
        return Strip([Segment(f"   {text}"[:width].ljust(width), style)], width)


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
        self.written: tuple[Written, ...] = ()
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
                details=argument_details(event.arguments),
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
