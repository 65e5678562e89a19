"""The conversation as it is read: one item of it is selected, and keys act on that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from rich.segment import Segment
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.style import Style

from kbtui.tui.actions.registry import bindings
from kbtui.tui.chat.conversation.flow_view import GUTTER, FlowView
from kbtui.tui.markdown.styles import MARKDOWN
from kbtui.tui.messages import OpenEntry, OpenInbox
from kbtui.tui.widgets.line_view import LineView, style_parser, to_strip

if TYPE_CHECKING:
    from textual import events

    from kbtui.tui.chat.conversation.items import Item, Target
    from kbtui.tui.markdown.syntax import LinkRef

NAME = (
    Content.assemble(("█▄▀ █▄▄ ", "$primary"), ("▀█▀ █ █ █", "$secondary")),
    Content.assemble(("█ █ █▄█ ", "$primary"), (" █  █▄█ █", "$secondary")),
    Content(),
)
"""The program's, in two lines of blocks."""
_TALL_ROWS = 10
WELCOME = (*NAME, Content("Tell me what is worth keeping, or ask what you once knew."))

_GREETING_PART = 4  # the greeting begins below a quarter of the rows that it leaves
GREETING_MARGIN = 3
"""Cells beside what stands where nothing was said yet, at least."""
_GREETING_COLUMNS = 72


def greeting_inset(width: int) -> int:
    """Cells at the left of what stands where nothing was said yet: in the middle of wide panes."""
    return max(GREETING_MARGIN, (width - _GREETING_COLUMNS) // 2)


Verb = Literal["expand", "copy", "copy_code", "edit", "retry", "save", "undo", "mark_past"]
"""An action on one item; see `kbtui.tui.chat.commands.item_actions`."""


def _fitted(line: Content, width: int) -> list[Content]:
    """A line of the greeting in a width: what leads somewhere is one row, all else is wrapped."""
    leads = any(isinstance(span.style, Style) and span.style.meta for span in line.spans)
    return [line.truncate(width, ellipsis=True)] if leads else line.wrap(width)


class Transcript(FlowView, can_focus=True):
    """Shows items; one of them is selected while it has the focus, and keys act on that."""

    BINDINGS = bindings("transcript")
    LOOKS: ClassVar[Mapping[str, str]] = {
        **LineView.LOOKS,
        **MARKDOWN,
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
    }

    @dataclass
    class Act(Message):
        """Something is to be done with an item that takes more than the transcript."""

        verb: Verb
        item: Item

    @dataclass
    class Resume(Message):
        """A conversation that the greeting names is to go on."""

        session: str

    @dataclass
    class AnswerLinkClicked(Message):
        """A link in an answer was clicked."""

        link: LinkRef

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor: Item | None = None
        """The item that keys act on."""
        self._greeting: Sequence[Content] = WELCOME

    def greet(self, lines: Sequence[Content]) -> None:
        """Say something where nothing was said yet; a span with a ``session`` leads there."""
        self._greeting = lines
        self.refresh()

    def items_gone(self) -> None:
        """Select nothing where the selected item is gone."""
        if self.cursor not in self.items:
            self.cursor = None

    # The selected item

    def select(self, item: Item | None) -> None:
        """Select an item and bring it into view."""
        self.cursor = item
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
        if self.cursor is None and self.items:
            self.select(self.items[-1])
        self.refresh()

    def on_blur(self) -> None:
        """The bar beside the selected item goes."""
        self.refresh()

    def _move(self, step: int) -> None:
        if not self.items:
            return
        at = self.items.index(self.cursor) if self.cursor in self.items else len(self.items)
        self.select(self.items[max(0, min(at + step, len(self.items) - 1))])

    # Actions

    def action_next(self) -> None:
        if self.items and self.cursor is self.items[-1]:
            self.to_end()
        else:
            self._move(1)

    def action_previous(self) -> None:
        self._move(-1)

    def action_first(self) -> None:
        self._move(-len(self.items))
        self.scroll_home(animate=False, force=True, immediate=True)

    def action_last(self) -> None:
        self._move(len(self.items))
        self.to_end()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Mark as past only where an earlier line is shown; elsewhere the key asks again."""
        if parameters == ("mark_past",):
            from kbtui.tui.chat.conversation.items import BeforeItem

            return isinstance(self.cursor, BeforeItem) and not self.cursor.past
        return super().check_action(action, parameters)

    def action_open(self) -> None:
        self._go(None if self.cursor is None else self._target_of(self.cursor))

    def _go(self, target: Target | None) -> None:
        if target is not None and target.proposal:
            self.post_message(OpenInbox(target.proposal))
        elif target is not None:
            self.post_message(OpenEntry(target.path, target.line))

    def _target_of(self, item: Item) -> Target | None:
        """Where an item leads; an answer leads where its first citation does."""
        if item.target is not None or item.dense:
            return item.target
        below = self.items[self.items.index(item) + 1 :][:1]
        return below[0].target if below and below[0].dense else None

    def action_act(self, verb: Verb) -> None:
        if self.cursor is not None:
            self.post_message(self.Act(verb, self.cursor))

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Select what was clicked; follow a link, open or close a card."""
        session = event.style.meta.get("session")
        if isinstance(session, str):
            self.post_message(self.Resume(session))
        item = self._flow.item_at(event.y + round(self.scroll_y))
        if item is None:
            return
        self.select(item)
        number, link_number = (event.style.meta.get(name) for name in ("target", "link"))
        target = item.linked(number) if isinstance(number, int) else None
        link = item.link(link_number) if isinstance(link_number, int) else None
        if link is not None:
            self.post_message(self.AnswerLinkClicked(link))
        elif target is not None:
            self._go(target)
        elif item.click == "open":
            self.action_open()
        elif item.click == "expand":
            self.action_act("expand")

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen: the bar of the selected item, then the text."""
        if not self.items:
            return self._welcome_line(y)
        index = y + round(self.scroll_y)
        body = super().render_line(y)
        marked = self.cursor if self.has_focus else None
        bar = "▌ " if marked is not None and index in self._flow.span(marked) else "  "
        style = self.get_visual_style("chat--cursor").rich_style
        return Strip.join([Strip([Segment(bar, style)], GUTTER), body]).crop(0, self.size.width)

    def _welcome_line(self, y: int) -> Strip:
        """An empty conversation says what it is for."""
        width, height = self.size
        left = greeting_inset(width)
        low = height < _TALL_ROWS
        greeting = (line for line in self._greeting if not low or line not in NAME)
        room = max(1, min(width - left - 1, _GREETING_COLUMNS))
        lines = [piece for line in greeting for piece in _fitted(line, room)]
        at = y - max(1, (height - len(lines)) // _GREETING_PART)
        if not 0 <= at < len(lines):
            return Strip.blank(width, self.visual_style.rich_style)
        line = Content(" " * left) + lines[at]
        return to_strip(line, width, self.visual_style, style_parser(self))
