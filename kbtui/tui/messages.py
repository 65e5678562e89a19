"""The messages that the app's packages send each other, and small steps from one to another.

Messages bubble up to the main screen, which knows all packages; none of them knows who answers.
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

Severity = Literal["information", "warning", "error"]


@dataclass
class KnowledgeChanged(Message):
    """A commit changed `paths`, whoever made it; sent once for each commit."""

    paths: Sequence[str]
    actor: Actor


@dataclass
class OpenEntry(Message):
    """Show an entry in the notes pane, at a line (1-based), perhaps ready to be edited."""

    path: str
    line: int | None = None
    edit: bool = field(default=False, kw_only=True)


@dataclass
class OpenMessage(Message):
    """Go on with a session in the chat, and select a message of it."""

    session: str
    message: int


@dataclass
class OpenHistory(Message):
    """Show the history: of everything, of one path, or with one commit selected.

    `kb` says whose, where that isn't the open workspace.
    """

    path: str | None = None
    commit: str | None = None
    kb: KnowledgeBase | None = None


@dataclass
class OpenPast(Message):
    """Show everything as it was at a date or revision; asks for one where none is given."""

    moment: str = ""


@dataclass
class OpenSearch(Message):
    """Show the search screen, with a query already asked where one is given."""

    query: str = ""


@dataclass
class OpenSwitcher(Message):
    """Show the switcher, with a name already typed where one is given."""

    query: str = ""


@dataclass
class OpenInbox(Message):
    """Show the inbox, with one proposal selected where one is named."""

    proposal: str = ""


@dataclass
class InboxChanged(Message):
    """Proposals came or went; `count` wait now."""

    count: int


@dataclass
class AskAbout(Message):
    """Put a reference to an entry into the prompt and go there."""

    path: str


@dataclass
class Working(Message):
    """Something goes on in the background; nothing any more where the text is empty."""

    text: str


def tell(node: DOMNode, text: str, severity: Severity = "information") -> None:
    """Show one short text as a toast; it is plain, never markup."""
    node.app.notify(clean(text), severity=severity, markup=False)


def tell_error(node: DOMNode, error: KbtuiError) -> None:
    """Show what happened and what to do about it."""
    text = f"{error.message}\n{error.hint}" if error.hint else error.message
    node.app.notify(clean(text), severity="error", markup=False, timeout=8)


@contextmanager
def errors_told(node: DOMNode) -> Iterator[None]:
    """Show the `KbtuiError` that ends what is done inside."""
    try:
        yield
    except KbtuiError as error:
        tell_error(node, error)


def leave_for(node: DOMNode, there: Message) -> None:
    """Close every screen that covers the first one, and hand that one what to show."""
    app = node.app
    main = app.screen_stack[0]
    while app.screen is not main:
        app.pop_screen()
    main.post_message(there)


def go_to(widget: Widget) -> None:
    """Give `widget` the focus now; where it isn't shown yet, as soon as it is.

    `Widget.focus` waits its turn behind the keys that are in the queue already, so what somebody
    types right after a key that moves the focus would still land in the old place.
    """
    widget.screen.set_focus(widget)
    if widget.screen.focused is not widget:
        widget.focus()
