"""Messages between the packages of the app, and helpers to notify, navigate and focus.

Messages bubble up to the main screen, which knows all packages; senders don't know the receiver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from textual.message import Message

from kbtui.errors import KbtuiError
from kbtui.text import clean

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.widget import Widget

    from kbtui.history.change import Actor
    from kbtui.knowledge_base import KnowledgeBase

LONG_SECONDS = 10.0
"""How long a toast with a hint is shown."""
Severity = Literal["information", "warning", "error"]


@dataclass
class KnowledgeChanged(Message):
    """Posted once per commit, whoever made it; it changed `paths`."""

    paths: Sequence[str]
    actor: Actor


@dataclass
class TimePassed(Message):
    """Posted every minute, and to the screens above the main one as well.

    `new_day` says that the local day or the zone has changed since the last one.
    """

    new_day: bool


@dataclass
class OpenEntry(Message):
    """Request to show an entry in the notes pane at a line (1-based), perhaps for editing."""

    path: str
    line: int | None = None
    edit: bool = field(default=False, kw_only=True)


@dataclass
class OpenMessage(Message):
    """Request to continue a session in the chat, with one message selected."""

    session: str
    message: int


@dataclass
class OpenHistory(Message):
    """Request to show the history: of everything, of one path, or with one commit selected.

    `kb` is the knowledge base, if it isn't the open workspace.
    """

    path: str | None = None
    commit: str | None = None
    kb: KnowledgeBase | None = None


@dataclass
class OpenPast(Message):
    """Request to browse the workspace as of a date or revision; without one, ask for it."""

    moment: str = ""


@dataclass
class OpenSearch(Message):
    """Request to show the search screen, with the results of `query` if given."""

    query: str = ""


@dataclass
class OpenSwitcher(Message):
    """Request to show the switcher, with `query` typed in if given."""

    query: str = ""


@dataclass
class OpenToday(Message):
    """Request to show the page of today."""


@dataclass
class OpenTasks(Message):
    """Request to show the open tasks."""


@dataclass
class OpenInbox(Message):
    """Request to show the inbox, with one proposal selected if given."""

    proposal: str = ""


@dataclass
class InboxChanged(Message):
    """Posted when the number of pending proposals changes, to `count`."""

    count: int


@dataclass
class AskAbout(Message):
    """Request to insert a reference to an entry into the prompt and focus it."""

    path: str


@dataclass
class Working(Message):
    """Posted when background work starts or changes; an empty text means that it ended."""

    text: str


def tell(
    node: DOMNode,
    text: str,
    severity: Severity = "information",
    *,
    seconds: float | None = None,
) -> None:
    """Show a short plain text, never parsed as markup, as a toast, by default for 5 seconds."""
    node.app.notify(clean(text), severity=severity, markup=False, timeout=seconds)


def tell_error(node: DOMNode, error: KbtuiError) -> None:
    """Show an error and its hint as a toast."""
    text = f"{error.message}\n{error.hint}" if error.hint else error.message
    tell(node, text, "error", seconds=LONG_SECONDS)


@contextmanager
def show_errors(node: DOMNode) -> Iterator[None]:
    """Show a `KbtuiError` raised in the block instead of propagating it."""
    try:
        yield
    except KbtuiError as error:
        tell_error(node, error)


def leave_for(node: DOMNode, request: Message) -> None:
    """Close all screens above the main one, and post `request` to it."""
    app = node.app
    main = app.screen_stack[0]
    while app.screen is not main:
        app.pop_screen()
    main.post_message(request)


def go_to(widget: Widget) -> None:
    """Focus `widget` at once, or as soon as it is shown.

    `Widget.focus` is queued behind the keys already in the queue, so keys typed right after one
    that moves the focus would still reach the old widget.
    """
    widget.screen.set_focus(widget)
    if widget.screen.focused is not widget:
        widget.focus()
