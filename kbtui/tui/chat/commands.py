"""The commands of the chat: sessions, model, context, cost, export."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError, KbtuiError
from kbtui.text import clean_line, fold, slugify
from kbtui.tui.chat.items import Item, MoreItem, NoticeItem, failure
from kbtui.tui.messages import Notify, OpenEntry, go_to

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.models.roles import ModelStatus
    from kbtui.sessions.store import Session, SessionInfo, SessionMessage
    from kbtui.tui.actions.registry import Action
    from kbtui.tui.chat.chat_pane import ChatPane

_LIVE = 60
_MORE = 200
OFFLINE_CARD = """\
Browsing, editing, search and history work as they are. For a full agent, any of these will do:
  · run a model on this machine with Ollama (https://ollama.com), then /model
  · enter a provider's key with /model: it is tested once and kept in your keyring
  · give the address of an OpenAI-compatible server with /model"""


class ChatCommands:
    """Carries out the actions of the context ``chat`` for its pane."""

    def __init__(self, pane: ChatPane) -> None:
        self._pane = pane
        self._earlier: list[SessionMessage] = []
        self.status: ModelStatus | None = None
        self.context_window = 0

    def run(self, action: Action, argument: str = "") -> None:
        """Carry out an action; most need the knowledge base to be open."""
        kb = self._pane.kb
        if kb is None:
            self._say("The workspace is still being opened; try again in a moment.", "warning")
            return
        self._work(getattr(self, f"_{action.method}")(kb, argument))

    def start(self) -> None:
        """See which model answers, and say what can be done if none does."""
        kb = self._pane.kb
        if kb is not None:
            self._work(self._first_model(kb))

    def _work(self, work: Coroutine[None, None, None]) -> None:
        self._pane.run_worker(self._told(work), group="command")

    async def _told(self, work: Coroutine[None, None, None]) -> None:
        """Do something; what goes wrong is said in the conversation."""
        try:
            await work
        except KbtuiError as error:
            self._pane.tell(failure(error))

    def _say(self, text: str, severity: str = "information") -> None:
        self._pane.post_message(Notify(text, severity))  # type: ignore[arg-type]

    # Sessions

    async def _new(self, kb: KnowledgeBase, argument: str) -> None:
        if self._answering():
            return
        session = None
        if argument:
            session = await asyncio.to_thread(
                lambda: kb.sessions.create("tui", title=clean_line(argument))
            )
        await self._use(session)
        self._pane.focus_prompt()

    async def _sessions(self, kb: KnowledgeBase, _argument: str = "") -> None:
        from kbtui.tui.chat.sessions import SessionsScreen

        infos = await asyncio.to_thread(kb.sessions.list)
        if not infos:
            self._say("There are no sessions yet.")
            return
        chosen = await self._pane.app.push_screen_wait(SessionsScreen(infos))
        if chosen and not self._answering():
            await self._open(kb, chosen)

    async def _resume(self, kb: KnowledgeBase, argument: str) -> None:
        if not argument:
            await self._sessions(kb)
            return
        if self._answering():
            return
        infos = await asyncio.to_thread(kb.sessions.list)
        found = _named(infos, argument)
        if found is None:
            self._say(f"There is no session called {clean_line(argument)!r}.", "warning")
        else:
            await self._open(kb, found.id)

    async def _rename(self, kb: KnowledgeBase, argument: str) -> None:
        conversation = self._pane.conversation
        title = clean_line(argument)
        if not title:
            self._say("Say the title: /rename <title>", "warning")
            return
        if conversation.session is None:
            conversation.use(await asyncio.to_thread(kb.sessions.create, "tui"))
        if conversation.session is not None:
            await asyncio.to_thread(conversation.session.rename, title)
        self._pane.post_message(self._pane.Changed())

    async def _open(self, kb: KnowledgeBase, session_id: str) -> None:
        session = await asyncio.to_thread(kb.sessions.open, session_id)
        await self._use(session)
        for notice in session.notices:
            self._say(notice, "warning")
        self._pane.focus_prompt()

    def go_to_message(self, session_id: str, message: int) -> None:
        """Go on with a session, and select a message of it."""
        kb = self._pane.kb
        if kb is not None:
            self._work(self._go_to_message(kb, session_id, message))

    async def _go_to_message(self, kb: KnowledgeBase, session_id: str, message: int) -> None:
        current = self._pane.conversation.session
        if current is None or current.id != session_id:
            if self._answering():
                return
            try:
                await self._open(kb, session_id)
            except ConflictError:  # it is open elsewhere, but may be read
                self._pane.post_message(OpenEntry(f"sessions/{session_id}.jsonl", message))
                return
        while self._earlier and self._earlier[-1].id >= message:
            await self._load_earlier(self._pane.transcript.items[0])
        shown = [each for each in self._pane.transcript.items if each.message is not None]
        item = next((each for each in reversed(shown) if (each.message or 0) <= message), None)
        transcript = self._pane.transcript
        if item is None or item.message != message:
            self._say("That message was taken back since.", "warning")
        transcript.select(item)
        go_to(transcript)
        transcript.call_after_refresh(transcript.select, item)

    async def _use(self, session: Session | None) -> None:
        messages = list(session.messages) if session is not None else []
        width = self._pane.transcript.text_width
        live = await asyncio.to_thread(_replayed, messages[-_LIVE:], width)
        self._pane.conversation.use(session)
        self._earlier = messages[:-_LIVE]
        self._pane.transcript.show_items([*self._more(), *live])
        self._pane.post_message(self._pane.Changed())

    def load_earlier(self, more: Item) -> None:
        """Lay out the messages before those that are shown."""
        self._work(self._load_earlier(more))

    async def _load_earlier(self, more: Item) -> None:
        transcript = self._pane.transcript
        batch = self._earlier[-_MORE:]
        items = await asyncio.to_thread(_replayed, batch, transcript.text_width)
        if more not in transcript.items:
            return
        self._earlier = self._earlier[:-_MORE]
        transcript.take_out(more)
        transcript.prepend([*self._more(), *items])
        if items:
            transcript.select(items[-1])

    def _more(self) -> list[Item]:
        return [MoreItem(count=len(self._earlier))] if self._earlier else []

    def _answering(self) -> bool:
        if self._pane.conversation.busy:
            self._say("An answer is still coming: Esc stops it.", "warning")
        return self._pane.conversation.busy

    # Model, context, cost

    async def _first_model(self, kb: KnowledgeBase) -> None:
        status = await self._read_model(kb)
        if status.offline and status.reason:
            self._pane.tell(NoticeItem(title=status.reason, text=OFFLINE_CARD))
        elif status.reason:
            self._pane.tell(
                NoticeItem(title=f"Using {status.name}", text=f"{status.reason} /model changes it.")
            )

    async def _read_model(self, kb: KnowledgeBase) -> ModelStatus:
        """See which model answers; in a thread, as it may look around or ask a keyring."""
        self.status = await asyncio.to_thread(lambda: kb.models.describe(look=True))
        self.context_window = await asyncio.to_thread(_context_window, kb)
        self._pane.post_message(self._pane.Changed())
        return self.status

    async def _model(self, kb: KnowledgeBase, argument: str) -> None:
        if argument:
            await asyncio.to_thread(lambda: kb.models.use(argument, remember=True))
        else:
            from kbtui.tui.chat.model_picker import ModelScreen

            if not await self._pane.app.push_screen_wait(ModelScreen(kb)):
                return
        status = await self._read_model(kb)
        self._say(f"{status.name} answers from now on.")

    async def _context(self, kb: KnowledgeBase, _argument: str) -> None:
        from kbtui.tui.chat.reports import context_report
        from kbtui.tui.widgets.page import PageScreen

        session = self._pane.conversation.session
        text = await asyncio.to_thread(context_report, kb, session, self._pane.prompt.full_text)
        self._pane.app.push_screen(PageScreen("What the model is given", text))

    async def _cost(self, _kb: KnowledgeBase, _argument: str) -> None:
        spent = self._pane.conversation.spent
        if not spent.calls:
            self._say("No model was asked in this session yet.")
            return
        price = f"${spent.cost_usd:.4f}"
        if spent.unpriced == spent.calls:
            price = "no price (a model on this machine, or one whose price is unknown)"
        elif spent.unpriced:
            price += f" and {spent.unpriced} calls without a known price"
        text = (
            f"{spent.calls} calls · {spent.prompt_tokens:,} tokens read · "
            f"{spent.completion_tokens:,} written · {price}"
        )
        self._pane.tell(NoticeItem(title="This session since it was opened", text=text))

    # Export

    async def _export(self, _kb: KnowledgeBase, argument: str) -> None:
        session = self._pane.conversation.session
        if session is None or not session.messages:
            self._say("There is nothing to export yet.", "warning")
            return
        file = await asyncio.to_thread(_export_file, session, argument)
        self._say(f"Written to {file}")


def _context_window(kb: KnowledgeBase) -> int:
    try:
        return kb.models.chat().context_window
    except KbtuiError:
        return 0  # said when it is asked for an answer


def _replayed(messages: list[SessionMessage], width: int) -> list[Item]:
    """The items of messages, laid out; for a thread."""
    from kbtui.tui.chat.flow import prepare
    from kbtui.tui.chat.replay import replay

    items = replay(messages)
    prepare(items, width)
    return items


def _named(infos: list[SessionInfo], wanted: str) -> SessionInfo | None:
    """The session that a part of a title or an id means; the newest of several."""
    folded = fold(wanted)
    exact = [info for info in infos if folded in (fold(info.title), fold(info.id))]
    part = [info for info in infos if folded in fold(info.title) or info.id.startswith(wanted)]
    return next(iter(exact or part), None)


def _export_file(session: Session, argument: str) -> Path:
    from kbtui.tui.chat.export import free_file, session_markdown

    file = free_file(argument, slugify(session.title))
    return session_markdown(session, file)
