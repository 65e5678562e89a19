"""The current conversation: its session, the message queue, and the running turn.

A stored session is replayed as the same items that its turns were shown as.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from textual.worker import Worker

from kbtui.agent.events import (
    DIFFERS,
    EARLIER,
    Citation,
    Earlier,
    Event,
    NoticeGiven,
    RetryStarted,
    ToolFinished,
    TurnChange,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from kbtui.errors import KbtuiError
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.background.service import Memory
from kbtui.models.port import ToolCall
from kbtui.offline.orders import Order
from kbtui.presentation.notes import Names, all_names, names_of
from kbtui.sessions.store import Session, SessionMessage
from kbtui.text import shorten
from kbtui.tui.chat.conversation.cards import (
    ToolItem,
    argument_details,
    argument_line,
    entry_paths,
    note_about,
)
from kbtui.tui.chat.conversation.items import (
    AnswerItem,
    BeforeItem,
    Item,
    MoreItem,
    NoticeItem,
    UserItem,
    citation_items,
    difference_items,
    failure,
    quotes_all,
)
from kbtui.tui.chat.conversation.receipts import fold
from kbtui.tui.chat.conversation.transcript import Transcript
from kbtui.tui.chat.conversation.turn_view import TurnView
from kbtui.tui.chat.conversation.written import WrittenNote, read_written, undone_commits
from kbtui.views.view import Audience

if TYPE_CHECKING:
    from kbtui.memory.recall.differing import Difference

log = logging.getLogger(__name__)
CHANNEL = "tui"
_INITIAL_MESSAGES = 60
_BATCH_MESSAGES = 200
_SUMMARY_LENGTH = 100


@dataclass(slots=True)
class Spent:
    """Tokens and US dollars that the session has consumed since it was opened here."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    calls: int = 0
    unpriced: int = 0
    last_prompt: int = 0

    def add(self, usage: UsageReported) -> None:
        """Add the usage of one model call."""
        self.calls += 1
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.last_prompt = usage.prompt_tokens + usage.completion_tokens
        if usage.cost_usd is None:
            self.unpriced += 1
        else:
            self.cost_usd += usage.cost_usd


class Conversation:
    """The current conversation: runs one turn at a time and queues messages sent meanwhile.

    `run` starts a coroutine as a worker of the pane. `changed` is called whenever the title, usage
    or busy state may have changed. `waits` is called with the reason when an answer is delayed, and
    with an empty string once it goes on. `give_back` receives the messages that couldn't be stored,
    `carry_out` the orders that were given.
    """

    def __init__(
        self,
        transcript: Transcript,
        run: Callable[[Coroutine[None, None, None]], Worker[None]],
        changed: Callable[[], None],
        waits: Callable[[str], object],
        give_back: Callable[..., object],
        carry_out: Callable[[Order], object],
    ) -> None:
        self.session: Session | None = None
        self.spent = Spent()
        self._transcript = transcript
        self._run = run
        self._changed = changed
        self._report_delay = waits
        self._give_back = give_back
        self._carry_out = carry_out
        self._kb: KnowledgeBase | None = None
        self._memory: Memory | None = None
        self._queue: deque[UserItem] = deque()
        self._worker: Worker[None] | None = None
        self._view: TurnView | None = None
        self._earlier: list[SessionMessage] = []
        self._rewind_before: int | None = None
        self._stopping = False
        self._is_delayed = False

    # State

    @property
    def busy(self) -> bool:
        """Whether an answer is being generated."""
        return self._worker is not None

    @property
    def queued(self) -> int:
        """The number of queued messages."""
        return len(self._queue)

    @property
    def waiting(self) -> list[str]:
        """The texts of the queued messages."""
        return [item.text for item in self._queue]

    def knowledge_ready(self, kb: KnowledgeBase) -> None:
        """Allow turns to run, starting with a queued message."""
        self._kb = kb
        self._memory = kb.memory
        self._start_next()

    # The session

    def use(self, session: Session | None) -> None:
        """Switch to another session; None creates one with the next message."""
        if self.session is not None and self.session is not session:
            self.session.close()
            self.leave()
        self.session, self.spent, self._rewind_before = session, Spent(), None
        self._queue.clear()
        self._changed()

    async def show(self, session: Session | None) -> None:
        """Switch to another session and show its last messages; None shows an empty one."""
        messages = list(session.messages) if session is not None else []
        items = await asyncio.to_thread(
            _layout, self._kb, messages[-_INITIAL_MESSAGES:], self._transcript.text_width
        )
        self.use(session)
        self._earlier = messages[:-_INITIAL_MESSAGES]
        self._transcript.show_items([*self._placeholder(), *items])

    async def load_earlier(self, more: Item) -> None:
        """Replace the placeholder `more` by a batch of earlier messages."""
        transcript, batch = self._transcript, self._earlier[-_BATCH_MESSAGES:]
        items = await asyncio.to_thread(_layout, self._kb, batch, transcript.text_width)
        if more not in transcript.items:
            return
        self._earlier = self._earlier[:-_BATCH_MESSAGES]
        transcript.take_out(more)
        transcript.prepend([*self._placeholder(), *items])
        if items:
            transcript.select(items[-1])

    def _placeholder(self) -> list[Item]:
        return [MoreItem(count=len(self._earlier))] if self._earlier else []

    async def find(self, message: int) -> Item | None:
        """Return the item of a message, or of the last one before it, loading it if needed."""
        while self._earlier and self._earlier[-1].id >= message:
            await self.load_earlier(self._transcript.items[0])
        shown = [each for each in self._transcript.items if each.message is not None]
        return next((each for each in reversed(shown) if (each.message or 0) <= message), None)

    def leave(self) -> None:
        """Report the session as closed, so that it is consolidated in the background."""
        if self._memory is not None and self.session is not None:
            self._memory.worker.session_closed(self.session.id)

    def tick(self) -> None:
        """Animate the spinner."""
        if self._view is not None:
            self._view.tick()

    # Sending

    def send(self, text: str) -> None:
        """Send a message now, or once the current answer is complete."""
        item = UserItem(text=text, queued=self.busy or self._kb is None)
        self._transcript.add(item)
        self._transcript.select(None)  # keys now act on what comes next, as its card says
        self._transcript.to_end()
        self._queue.append(item)
        self._start_next()

    def take_back(self) -> str | None:
        """Remove and return the message queued last, if any."""
        if not self._queue:
            return None
        item = self._queue.pop()
        self._transcript.take_out(item)
        self._changed()
        return item.text

    def rewind_before(self, item: UserItem) -> None:
        """Rewind to before a message; sending the next one discards it and all later ones."""
        if item.message is not None:
            self._rewind_before = item.message
            at = self._transcript.items.index(item)
            self._transcript.take_out(*self._transcript.items[at:])

    def stop(self) -> list[str]:
        """Stop the answer, clear the queue, and return the texts that were in it."""
        if self._worker is None:
            return []
        waiting = self._take_queue()
        self._stopping = True
        self._worker.cancel()
        return waiting

    def _take_queue(self) -> list[str]:
        waiting = self.waiting
        self._transcript.take_out(*self._queue)
        self._queue.clear()
        return waiting

    def failed(self, error: BaseException) -> None:
        """Show in place of the answer that a turn failed with an internal error."""
        from kbtui.logs import log_file

        log.error("a turn failed", exc_info=error)
        if self._view is not None:
            self._view.stop()
        self._transcript.add(
            NoticeItem(
                title=f"The turn failed inside kbtui ({type(error).__name__}).",
                text=f"What was saved is safe. Details: {log_file()}",
                kind="bad",
            ),
            before=self._first_queued(),
        )
        self._turn_ended()

    def _first_queued(self) -> Item | None:
        return self._queue[0] if self._queue else None

    def _start_next(self) -> None:
        if self._kb is not None and not self.busy and self._queue:
            item = self._queue.popleft()
            item.queued = False
            self._transcript.item_changed(item)
            self._worker = self._run(self._turn(self._kb, item))
        self._changed()

    async def _turn(self, kb: KnowledgeBase, item: UserItem) -> None:
        view = self._view = TurnView(self._transcript, item, self._first_queued)
        is_stored = False
        try:
            session = await self._prepare_session(kb)
            async with aclosing(kb.agent.turn(session, item.text)) as events:
                async for event in events:
                    is_stored = is_stored or isinstance(event, TurnStarted)
                    if paths := _paths_of(event):
                        view.names = await asyncio.to_thread(
                            names_of, kb.library, paths, kb.sessions
                        )
                    if isinstance(event, ToolFinished):
                        view.written = await asyncio.to_thread(_written_notes, kb, event.changes)
                    view.show(event)
                    self._report_delay_of(event)
                    if isinstance(event, TurnFinished) and event.order is not None:
                        self._carry_out(event.order)
                    if isinstance(event, UsageReported):
                        self.spent.add(event)
                        self._changed()
        except asyncio.CancelledError:
            if not self._stopping:
                self._kb = None  # the app is closing: nothing queued may start now
            view.stop()
        except KbtuiError as error:
            view.stop()
            self._transcript.add(failure(error), before=self._first_queued())
        if not is_stored and self._kb is not None and not self._stopping:
            self._give_back(item.text, *self._take_queue())
        self._turn_ended()

    def _report_delay_of(self, event: Event) -> None:
        why = event.text if isinstance(event, NoticeGiven | RetryStarted) else ""
        if why or self._is_delayed:
            self._report_delay(why.partition(". ")[0])
        self._is_delayed = bool(why)

    async def _prepare_session(self, kb: KnowledgeBase) -> Session:
        session = self.session
        if session is None:
            session = self.session = await asyncio.to_thread(kb.sessions.create, CHANNEL)
        if self._rewind_before is not None:
            kept = [each.id for each in session.messages if each.id < self._rewind_before]
            await asyncio.to_thread(session.rewind, kept[-1] if kept else 0)
            self._rewind_before = None
        return session

    def _turn_ended(self) -> None:
        if self._is_delayed:
            self._is_delayed = False
            self._report_delay("")
        if self._memory is not None and self.session is not None:
            self._memory.worker.turn_ended(self.session.id)
        self._worker = self._view = None
        self._stopping = False
        self._start_next()


def _paths_of(event: Event) -> tuple[str, ...]:
    """Return the files that an event mentions."""
    if isinstance(event, ToolFinished):
        return entry_paths(event.changes)
    if isinstance(event, TurnFinished):
        return tuple(cited.path for cited in event.citations)
    return ()


def _layout(kb: KnowledgeBase | None, messages: list[SessionMessage], width: int) -> list[Item]:
    """Return the items of messages, already laid out for `width`; run in a thread."""
    before = {each.id: found for each in messages if kb and (found := _earlier_item(kb, each))}
    names = all_names(kb.library.infos(), kb.sessions) if kb is not None else Names()
    items = replay(messages, names, before)
    if kb is not None:
        _read_written_notes(
            kb, [item for item in items if isinstance(item, ToolItem) and item.changes]
        )
    items = fold(items)
    for item in items:
        item.lines(width)
    return items


def _written_notes(kb: KnowledgeBase, changes: Sequence[TurnChange]) -> tuple[WrittenNote, ...]:
    return read_written(kb.history, changes, kb.library.infos())


def _read_written_notes(kb: KnowledgeBase, tools: Sequence[ToolItem]) -> None:
    """Set on tool items what they wrote, and whether it has been undone since."""
    if not tools:
        return
    commits = {change.commit for tool in tools for change in tool.changes}
    undone = undone_commits(kb.history, commits)
    for tool in tools:
        tool.written = _written_notes(kb, tool.changes)
        tool.undone = undone.issuperset(change.commit for change in tool.changes)


def _earlier_item(kb: KnowledgeBase, message: SessionMessage) -> BeforeItem | None:
    """Return the earlier line that a kept one may be about, as it is now, or None if gone."""
    stored = message.meta.get(EARLIER)
    try:
        earlier = Earlier(**stored) if isinstance(stored, Mapping) else None
    except TypeError:  # of another version
        earlier = None
    if earlier is None or kb.seen_by(Audience.MODEL_ELSEWHERE).hides(earlier.path):
        return None
    line = kb.journal.line_at(earlier.path, earlier.first, earlier.when)
    if line is None:
        return None
    _, *struck = line.text.split("~~")
    text, turn = struck[0] if struck else line.text, message.turn or ""
    return BeforeItem(earlier=replace(earlier, text=text), turn=turn, past=bool(struck))


def replay(
    messages: Sequence[SessionMessage],
    names: Names | None = None,
    before: Mapping[int, BeforeItem] | None = None,
) -> list[Item]:
    """Return the items of stored messages, as if their turns had just ended.

    `before` maps message ids to the earlier lines to show below those messages.
    """
    items: list[Item] = []
    tools: dict[str, ToolItem] = {}
    known, before = names or Names(), before or {}
    for message in messages:
        turn = message.turn or ""
        if message.role == "user":
            items.append(UserItem(text=message.content, turn=turn, message=message.id))
        elif message.role == "assistant":
            items += _answer_items(message, turn, known)
            items += [before[message.id]] if message.id in before else []
            for call in message.tool_calls:  # some servers give all of them one id
                tools[call.id] = _tool_item(call, turn, known)
                items.append(tools[call.id])
        elif message.role == "tool":
            _finish_tool(tools.get(message.tool_call_id or ""), message)
    return items


def _tool_item(call: ToolCall, turn: str, names: Names) -> ToolItem:
    arguments = call.shown
    return ToolItem(
        tool=call.name,
        arguments=argument_line(arguments),
        about=note_about(call.name, arguments),
        query=str(arguments.get("query", "")),
        details=argument_details(arguments),
        names=names,
        turn=turn,
    )


def _answer_items(message: SessionMessage, turn: str, names: Names) -> list[Item]:
    if not message.content.strip():
        return []
    answer = AnswerItem(
        text=message.content, turn=turn, message=message.id, interrupted=message.interrupted
    )
    sources = citation_items(_citations(message.meta), turn, names)
    if quotes_all(answer.text, sources):
        answer.cites, sources = tuple(sources), []
    return [answer, *sources, *difference_items(_differences(message.meta), turn)]


def _finish_tool(tool: ToolItem | None, message: SessionMessage) -> None:
    if tool is None:
        return
    meta = message.meta
    tool.output = message.content
    tool.ok = bool(meta.get("ok", True))
    tool.summary = str(meta.get("summary") or shorten(message.content, _SUMMARY_LENGTH))
    tool.proposal = str(meta.get("proposal") or "")
    tool.changes = tuple(
        TurnChange(str(change.get("commit", "")), tuple(map(str, change.get("paths", ()))))
        for change in meta.get("changes", ())
    )


def _differences(meta: Mapping[str, Any]) -> list[Difference]:
    """Return the stored differences, without their lines."""
    from kbtui.memory.recall.differing import Difference

    try:
        return [Difference(**each) for each in meta.get(DIFFERS, ())]
    except TypeError:  # of another version
        return []


def _citations(meta: Mapping[str, Any]) -> list[Citation]:
    found = []
    for each in meta.get("citations", ()):
        first, last = each["lines"]
        title, place = str(each.get("title", "")), str(each.get("place", ""))
        found.append(Citation(each["n"], each["path"], first, last, title, place))
    return found
