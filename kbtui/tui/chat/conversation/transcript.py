"""The transcript of a conversation, with a selected item that keys act on."""

from __future__ import annotations

import itertools
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

    from kbtui.tui.chat.conversation.items import DiffersItem, Item, Target
    from kbtui.tui.markdown.syntax import LinkRef

NAME = (
    Content.assemble(("█▄▀ █▄▄ ", "$primary"), ("▀█▀ █ █ █", "$secondary")),
    Content.assemble(("█ █ █▄█ ", "$primary"), (" █  █▄█ █", "$secondary")),
    Content(),
)
"""The name of the program as block letters."""
_MIN_NAME_ROWS = 10
WELCOME = (*NAME, Content("Tell me what is worth keeping, or ask what you once knew."))

_GREETING_PART = 4  # a quarter of the free rows stays above the greeting
GREETING_MARGIN = 3
"""The minimum margin of the greeting, in cells."""
_GREETING_COLUMNS = 72


def greeting_inset(width: int) -> int:
    """Return the left margin that centres the greeting in a pane, in cells."""
    return max(GREETING_MARGIN, (width - _GREETING_COLUMNS) // 2)


Verb = Literal["expand", "copy", "copy_code", "edit", "retry", "save", "undo", "mark_past"]
"""An action on one item; see `kbtui.tui.chat.commands.item_actions`."""


def _fit_line(line: Content, width: int) -> list[Content]:
    """Fit a line of the greeting into a width: links are truncated, other text is wrapped."""
    is_link = any(isinstance(span.style, Style) and span.style.meta for span in line.spans)
    return [line.truncate(width, ellipsis=True)] if is_link else line.wrap(width)


class Transcript(FlowView, can_focus=True):
    """A view of items; while it has the focus, one is selected and keys act on it."""

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
        """An action on an item is requested that the transcript can't run itself."""

        verb: Verb
        item: Item

    @dataclass
    class Resume(Message):
        """A conversation listed in the greeting was clicked."""

        session: str

    @dataclass
    class AnswerLinkClicked(Message):
        """A link in an answer was clicked."""

        link: LinkRef

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor: Item | None = None
        """The selected item."""
        self._greeting: Sequence[Content] = WELCOME

    def greet(self, lines: Sequence[Content]) -> None:
        """Set the text of an empty transcript; a span with a ``session`` links to it."""
        self._greeting = lines
        self.refresh()

    def items_gone(self) -> None:
        if self.cursor not in self.items:
            self.cursor = None

    # The selected item

    def select(self, item: Item | None) -> None:
        """Select an item and bring it into view."""
        for each, is_selected in ((self.cursor, False), (item, True)):
            if each is not None and each.select(is_selected):
                self.item_changed(each)
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
        """Select the last item if none is selected."""
        if self.cursor is None and self.items:
            self.select(self.items[-1])
        self.refresh()

    def on_blur(self) -> None:
        """Hide the bar beside the selected item."""
        if self.cursor is not None and self.cursor.select(False):
            self.item_changed(self.cursor)
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
        """Enable marking as past only on an earlier line; elsewhere its key retries."""
        if parameters == ("mark_past",):
            from kbtui.tui.chat.conversation.items import BeforeItem

            return isinstance(self.cursor, BeforeItem) and not self.cursor.past
        if action == "differs":
            return self._remark() is not None
        return super().check_action(action, parameters)

    def action_open(self) -> None:
        if self.cursor is not None and len(self.cursor.sources) > 1:
            self.action_act("expand")
            return
        self._follow_target(None if self.cursor is None else self._target_of(self.cursor))

    def action_differs(self) -> None:
        """Show or hide the line from which the answer differs."""
        item = self._remark()
        if item is None:
            return
        if not item.text:
            self._follow_target(item.target)
            return
        item.shown = not item.shown
        item.changed()
        self.item_changed(item)

    def _remark(self) -> DiffersItem | None:
        """Return the selected remark, or the first one below the selected answer."""
        from kbtui.tui.chat.conversation.items import DiffersItem

        if self.cursor not in self.items:
            return None
        at = self.items.index(self.cursor)
        below = itertools.takewhile(lambda each: each.dense, self.items[at + 1 :])
        near = [self.cursor, *([] if self.cursor.dense else below)]
        return next((each for each in near if isinstance(each, DiffersItem)), None)

    def _follow_target(self, target: Target | None) -> None:
        if target is not None and target.proposal:
            self.post_message(OpenInbox(target.proposal))
        elif target is not None:
            self.post_message(OpenEntry(target.path, target.line))

    def _target_of(self, item: Item) -> Target | None:
        """Return the target of an item; that of an answer is its first citation."""
        if item.target is not None or item.dense:
            return item.target
        below = self.items[self.items.index(item) + 1 :][:1]
        return below[0].target if below and below[0].dense else None

    def action_act(self, verb: Verb) -> None:
        if self.cursor is not None:
            self.post_message(self.Act(verb, self.cursor))

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Select the clicked item, and follow its link or expand it."""
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
            self._follow_target(target)
        elif item.click == "open":
            self.action_open()
        elif item.click == "expand":
            self.action_act("expand")

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Render one line of the screen: the selection bar, then the text."""
        if not self.items:
            return self._welcome_line(y)
        index = y + round(self.scroll_y)
        body = super().render_line(y)
        marked = self.cursor if self.has_focus else None
        bar = "▌ " if marked is not None and index in self._flow.span(marked) else "  "
        style = self.get_visual_style("chat--cursor").rich_style
        return Strip.join([Strip([Segment(bar, style)], GUTTER), body]).crop(0, self.size.width)

    def _welcome_line(self, y: int) -> Strip:
        """Render one line of the greeting."""
        width, height = self.size
        left = greeting_inset(width)
        is_low = height < _MIN_NAME_ROWS
        greeting = (line for line in self._greeting if not is_low or line not in NAME)
        room = max(1, min(width - left - 1, _GREETING_COLUMNS))
        lines = [piece for line in greeting for piece in _fit_line(line, room)]
        at = y - max(1, (height - len(lines)) // _GREETING_PART)
        if not 0 <= at < len(lines):
            return Strip.blank(width, self.visual_style.rich_style)
        line = Content(" " * left) + lines[at]
        return to_strip(line, width, self.visual_style, style_parser(self))
