"""The messages that rooms send each other, and the small steps that lead from one to another.

Messages bubble up to the main screen, which knows all rooms; none of them knows who answers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from textual.message import Message

from kbtui.errors import KbtuiError
from kbtui.text import clean

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.widget import Widget

    from kbtui.history.change import Actor
    from kbtui.knowledge_base import KnowledgeBase

Severity = Literal["information", "warning", "error"]


class KnowledgeReady(Message):
    """The knowledge base is open; panes may ask it from now on."""

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__()
        self.kb = kb


class KnowledgeChanged(Message):
    """A commit changed `paths`, whoever made it; sent once for each commit."""

    def __init__(self, paths: Sequence[str], commit: str, actor: Actor) -> None:
        super().__init__()
        self.paths = tuple(paths)
        self.commit = commit
        self.actor = actor


class OpenEntry(Message):
    """Show an entry in the notes pane, at a line (1-based), perhaps ready to be edited."""

    def __init__(self, path: str, line: int | None = None, *, edit: bool = False) -> None:
        super().__init__()
        self.path = path
        self.line = line
        self.edit = edit


class OpenMessage(Message):
    """Go on with a session in the chat, and select a message of it."""

    def __init__(self, session: str, message: int) -> None:
        super().__init__()
        self.session = session
        self.message = message


class OpenHistory(Message):
    """Show the history: of everything, of one path, or with one commit selected.

    `kb` says whose, where that isn't the open workspace.
    """

    def __init__(
        self,
        path: str | None = None,
        commit: str | None = None,
        kb: KnowledgeBase | None = None,
    ) -> None:
        super().__init__()
        self.path = path
        self.commit = commit
        self.kb = kb


class OpenPast(Message):
    """Show everything as it was at a date or revision; asks for one where none is given."""

    def __init__(self, moment: str = "") -> None:
        super().__init__()
        self.moment = moment


class OpenSearch(Message):
    """Show the search screen, with a query already asked where one is given."""

    def __init__(self, query: str = "") -> None:
        super().__init__()
        self.query = query


class OpenSwitcher(Message):
    """Show the switcher, with a name already typed where one is given."""

    def __init__(self, query: str = "") -> None:
        super().__init__()
        self.query = query


class OpenInbox(Message):
    """Show the inbox, with one proposal selected where one is named."""

    def __init__(self, proposal: str = "") -> None:
        super().__init__()
        self.proposal = proposal


class InboxChanged(Message):
    """Proposals came or went; `count` wait now."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count


class AskAbout(Message):
    """Put a reference to an entry into the prompt and go there."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class Notify(Message, namespace="kbtui"):
    """Tell the person something in one line; `text` is plain, never markup."""

    def __init__(self, text: str, severity: Severity = "information") -> None:
        super().__init__()
        self.text = text
        self.severity = severity


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


async def with_errors_told(
    node: DOMNode, work: Callable[..., Coroutine[Any, Any, object]], *args: object, **more: object
) -> None:
    """Run ``work(*args, **more)``, and show the `KbtuiError` that ends it."""
    with errors_told(node):
        await work(*args, **more)


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
