"""The agent: takes a message and streams the events of its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import cache, partial
from typing import TYPE_CHECKING

from kbtui.agent.events import Earlier, Event, TurnFailed, TurnStarted, UsageReported
from kbtui.agent.keeping import Keeping, Kept
from kbtui.agent.prompt import AssembledPrompt, Part as Part
from kbtui.agent.recall import Recall
from kbtui.agent.refit import RefittedModel
from kbtui.agent.sources import Sources
from kbtui.agent.tools.base import MAX_TOKENS, ToolContext, new_turn_id
from kbtui.agent.tools.toolbox import Toolbox, in_thread
from kbtui.agent.turn import Turn
from kbtui.clock import local_now
from kbtui.errors import ConflictError, KbtuiError, UsageError
from kbtui.history.change import Commit, Origin
from kbtui.memory.records.journal import JournalLine, local
from kbtui.memory.services import Services
from kbtui.models.port import ChatModel, OfflineModel
from kbtui.sessions.store import Session, SessionMessage
from kbtui.views.view import Audience

if TYPE_CHECKING:
    from kbtui.memory.edits.editor import Editor, Ground
    from kbtui.memory.recall.names import NameIndex

_RESULT_FRACTION = 4  # a tool result gets at most 1/4 of the window


class Agent:
    """The runner of turns in one workspace; without the edit engine nothing is written."""

    find_editor: Callable[[], Editor] | None = None
    find_keeping: Callable[[], Keeping] | None = None
    find_names: Callable[[], NameIndex] | None = None
    paid: Callable[[float], None] | None = None
    """A callback with the cost of each model call in US dollars."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.toolbox = Toolbox()
        self._running: dict[str, Turn | None] = {}

    async def turn(
        self, session: Session, text: str, *, model: ChatModel | None = None
    ) -> AsyncGenerator[Event, None]:
        """Answer a message, yielding the events of `kbtui.agent.events`.

        Closing the generator, or cancelling its consumer, stops the model at once; what was said
        until then is kept. Errors are yielded as events, not raised. The text is stored with
        secrets redacted, and sent as it is.
        """
        if session.id in self._running:
            yield _failure(_busy(session), session, "")
            return
        self._running[session.id] = None
        turn_id = new_turn_id()
        try:
            message = await in_thread(partial(session.append, "user", text, turn=turn_id))
            recall = Recall()
            try:
                begin = partial(self._begin, turn_id, session, message, text, model, recall)
                turn = await _unless_stopped(in_thread(begin), recall)
            except KbtuiError as error:
                yield TurnStarted(turn_id, session.id, message.id)
                yield _failure(error, session, turn_id)
                return
            self._running[session.id] = turn
            async with aclosing(turn.run()) as events:
                async for event in events:
                    yield event
                    if isinstance(event, UsageReported) and self.paid and event.cost_usd:
                        await in_thread(partial(self.paid, event.cost_usd))
            await in_thread(recall.end)
        except KbtuiError as error:
            yield _failure(error, session, turn_id)
        finally:
            del self._running[session.id]

    def session_room(self) -> int:
        """Return the tokens for a session in the chat model's prompt; see `session_room`."""
        from kbtui.agent.context import session_room

        return session_room(self.services)

    def prompt_parts(self, session: Session | None, text: str) -> tuple[Part, ...]:
        """Return the parts of the prompt that the chat model would get; reads and searches."""
        from kbtui.agent.context import assemble

        recall = Recall()
        if session is not None and text:
            last = max((each.id for each in session.messages), default=0)
            draft = SessionMessage(last + 1, local_now(), "user", text)
            model = self.services.models.chat()
            recall.begin(self.tool_context(session, draft, text, "", model), text)
        return assemble(self.services, session, text, recalled=recall.text).parts

    def stop(self, session_id: str) -> bool:
        """Cancel a session's turn and return whether one was running."""
        turn = self._running.get(session_id)
        if turn is not None:
            turn.stop()
        return turn is not None

    def keep(self, session: Session, message: int) -> Kept:
        """Store a message in the journal after all; blocks.

        Raises:
            UsageError: the workspace is read-only. Else as `committed`.
        """
        stored = next(each for each in session.messages if each.id == message)
        origin = Origin(session.id, (message, message), stored.turn)
        return self._keeping().note(stored.content, origin)

    def mark_past(self, session: Session, earlier: Earlier, message: int) -> Commit:
        """Strike out an earlier line that the statement in a message replaces; blocks.

        Raises:
            ConflictError: the line is gone. Else as `committed`.
        """
        origin = Origin(session.id, (message, message))
        newer = JournalLine(earlier.noted, earlier.noted_line, earlier.noted_time, "")
        journal = self._keeping().journal
        return journal.mark_past(earlier.path, earlier.first, earlier.text, newer, origin)

    def _keeping(self) -> Keeping:
        if self.find_keeping is None:
            raise UsageError("Nothing can be kept here.", "Open the workspace for writing.")
        return self.find_keeping()

    def _begin(
        self,
        turn_id: str,
        session: Session,
        message: SessionMessage,
        text: str,
        model: ChatModel | None,
        recall: Recall,
    ) -> Turn:
        """Choose the model and assemble its prompt; called in a thread."""
        services = self.services
        model = model or services.models.chat()
        context = self.tool_context(session, message, text, turn_id, model)
        if isinstance(model, OfflineModel):
            from kbtui.agent.offline_turn import OfflineTurn

            nothing = AssembledPrompt((), ())
            keeping = self.find_keeping() if self.find_keeping is not None else None
            return OfflineTurn(
                turn_id,
                session,
                message,
                model,
                nothing,
                context,
                self.toolbox,
                1,
                text=text,
                keeping=keeping,
            )
        if services.settings.context.index_tokens:
            recall.begin(context, text)
        from kbtui.agent.context import assemble
        from kbtui.models.litellm_model import LiteLLMModel

        if isinstance(model, LiteLLMModel):
            model.prepare()
        context.most_tokens = min(MAX_TOKENS, model.context_window // _RESULT_FRACTION)
        before = [each for each in session.messages if each.id < message.id]

        def assembled(model: ChatModel) -> AssembledPrompt:
            return assemble(
                services,
                session,
                text,
                model=model,
                before=before,
                recalled=recall.text,
                lines_naming=self._lines_naming,
                now=local_now,
            )

        prompt = assembled(model)
        context.attached = [(each.path, each.text) for each in prompt.attachments if each.text]
        return Turn(
            turn_id,
            session,
            message,
            RefittedModel(model, prompt, assembled, self.toolbox),
            prompt,
            context,
            self.toolbox,
            services.settings.budget.turn_steps,
            log_prompts=services.settings.log.prompts,
            writes=self.find_editor is not None,
            notice=recall.problem,
            recalled=recall.lines,
        )

    def _lines_naming(self, name: str) -> str:
        """Return the current public lines that mention a name, as a list."""
        lines = self.find_names().lines(name) if self.find_names is not None else []
        found = (each for each in lines if not each.is_past)
        return "\n".join(f"- {each.when or each.path}: {each.line.text}" for each in found)

    def tool_context(
        self, session: Session, message: SessionMessage, text: str, turn_id: str, model: ChatModel
    ) -> ToolContext:
        """Return the context for a turn's tools; `text` is the user's message."""
        services = self.services
        return ToolContext(
            services.seen_by(Audience.of(model)),
            services.workspace,
            services.settings,
            Origin(session.id, (message.id, message.id), turn_id, model.name),
            Sources(),
            session.id,
            message.id,
            self.find_editor,
            text,
            now=local_now,
            said_at=message.time,
            find_ground=cache(partial(_ground, session, message.id)),
        )


def _ground(session: Session, last: int) -> Ground:
    """Return what was said in a session up to a message, by the user and the assistant."""
    from kbtui.memory.edits.editor import Ground, ground_of

    messages = [each for each in session.messages if each.id <= last]
    answers = [each for each in messages if each.role == "assistant"]
    answered = [(local(each.time).date(), each.content) for each in answers]
    return ground_of(messages, may_ask=False) | Ground.of(answered)


async def _unless_stopped(beginning: Awaitable[Turn], recall: Recall) -> Turn:
    """Return the turn that begins in a thread; if it is stopped meanwhile, it waits no longer."""
    begun = asyncio.ensure_future(beginning)
    try:
        return await asyncio.shield(begun)
    except asyncio.CancelledError:
        recall.give_up()
        await asyncio.wait([begun])
        raise


def _busy(session: Session) -> ConflictError:
    return ConflictError(
        f"{session.title!r} is still being answered.", "Wait for the answer, or stop it with Esc."
    )


def _failure(error: KbtuiError, session: Session, turn_id: str) -> TurnFailed:
    return TurnFailed(error.message, error.hint, session.id, turn_id, exit_code=error.exit_code)
