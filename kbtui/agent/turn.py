"""One turn of conversation: the model answers, calls tools, and answers again.

Everything is stored as it happens: the user's message before the model sees it, each answer before
its tools run, each result before the model gets it. So whatever interrupts the turn, the session is
consistent and can continue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from kbtui.agent.answer_check import StreamedCheck
from kbtui.agent.events import (
    DIFFERS,
    EARLIER,
    AnswerDiffers,
    Citation,
    Earlier,
    Event,
    NoticeGiven,
    ReasoningDelta,
    RetryStarted,
    TextDelta,
    TextRevoked,
    ToolFinished,
    TurnChange,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from kbtui.agent.own_calls import are_own
from kbtui.agent.quoting import Quoting
from kbtui.agent.tool_rounds import ToolRounds
from kbtui.agent.tools.toolbox import Toolbox, ToolOutcome, in_thread
from kbtui.errors import BudgetError, KbtuiError, ModelAnswerError
from kbtui.models.port import (
    ChatModel,
    Message,
    Reply,
    ReplyEvent,
    ReplyNotice,
    ReplyReasoning,
    ReplyRetry,
    ReplyRevoked,
    ReplyText,
    ToolCall,
    ToolSpec,
    Usage,
    prompt_tokens,
)
from kbtui.offline.language import begins, holds, of_all
from kbtui.offline.orders import Order
from kbtui.sessions import MARKS, TAINT
from kbtui.sessions.store import Session, SessionMessage

if TYPE_CHECKING:
    from kbtui.agent.prompt import AssembledPrompt
    from kbtui.agent.tools.base import ToolContext
    from kbtui.memory.recall.differing import Difference

log = logging.getLogger(__name__)
_ELIDED = "[left out to save space: call the tool again if you need it]"
_TOOLS_TOKENS = 3_000
_ANSWER_FRACTION = 5
_MAX_MARKS = 3
_ECHO_LENGTH = 200
_MOST_SAID = 60  # messages that an answer is compared with
NOTHING_WRITTEN = "*Nothing was written.*"
_NOTES = ("knowledge/", "memory/")
_UNREADABLE = "The model wrote a call of a tool that can't be read; nothing came of it."


@dataclass(slots=True)
class Turn:
    """A running turn.

    Attributes:
        said: The user's message as stored.
        prompt: The initial prompt.
        steps: The maximum number of model calls.
        log_prompts: Whether prompts and answers are logged.
        writes: Whether anything can be written in this turn.
        not_kept: What the user said that wasn't stored but may be worth it.
        earlier: The earlier line that a stored statement may be about.
        order: What the message told to do with the notes.
        notice: What the user should know of the prompt; may be empty.
        recalled: Returns what is known about the message: file, line and text; None if it wasn't
            looked up.
    """

    id: str
    session: Session
    said: SessionMessage
    model: ChatModel
    prompt: AssembledPrompt
    context: ToolContext
    toolbox: Toolbox
    steps: int
    log_prompts: bool = False
    writes: bool = True
    not_kept: str = ""
    earlier: Earlier | None = None
    order: Order | None = None
    notice: str = ""
    recalled: Callable[[], Sequence[tuple[str, int, str]] | None] = lambda: None
    _messages: list[Message] = field(default_factory=list)
    _changes: list[TurnChange] = field(default_factory=list)
    _proposed: bool = False
    _taint: dict[str, None] = field(default_factory=dict)
    _partial: list[str] = field(default_factory=list)
    _marks: str = ""
    _events: asyncio.Queue[Event | None] = field(default_factory=asyncio.Queue)
    _work: asyncio.Task[None] | None = None
    _check: StreamedCheck | None = None
    _differs: tuple[Difference, ...] = ()

    async def run(self) -> AsyncGenerator[Event, None]:
        """Yield the turn's events, from `TurnStarted` to `TurnFinished` or `TurnFailed`.

        Closing this generator, or cancelling its consumer, stops the model and waits until what
        was said is stored.
        """
        self._work = asyncio.create_task(self._run_turn())
        self._work.add_done_callback(lambda _: self._events.put_nowait(None))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await self._work
        finally:
            self._work.cancel()
            await asyncio.wait([self._work])
            self._drop_check()

    def stop(self) -> None:
        """Cancel the turn; `run` yields a `TurnFailed` with `cancelled` set."""
        if self._work is not None:
            self._work.cancel()

    async def _run_turn(self) -> None:
        self._taint.update(dict.fromkeys(self.prompt.taint))
        self._messages = list(self.prompt.messages)
        self._emit(TurnStarted(self.id, self.session.id, self.said.id))
        attached = [each.problem for each in self.prompt.attachments]
        for text in filter(None, (self.notice, *attached)):
            self._emit(NoticeGiven(text))
        try:
            await self._ask_until_answered()
        except KbtuiError as error:
            problem = await self._keep_partial_after(error)
            self._emit(self._failed(problem))
        except asyncio.CancelledError:
            problem = await self._keep_partial_after(KbtuiError("The turn was stopped."))
            self._emit(replace(self._failed(problem), cancelled=True))

    async def _ask_until_answered(self) -> None:
        rounds = ToolRounds(self.toolbox, self.context, self._keep_result, self._emit)
        may_ask_again = True
        for _ in range(self.steps):
            reply = await self._ask()
            if reply.tool_calls:
                await in_thread(partial(self._keep_calls, reply))
                await rounds.run(reply.tool_calls)
            elif may_ask_again and self._is_empty(reply):
                may_ask_again = False
                if reply.is_data:
                    self._messages += [
                        Message("assistant", reply.text),
                        self._plain_words_request(),
                    ]
            elif self._is_empty(reply) and not reply.is_data:
                raise ModelAnswerError(
                    f"{self.model.name} sent an empty answer.", "Try again, or say it differently."
                )
            else:
                if reply.written:
                    self._emit(NoticeGiven(_UNREADABLE))
                if self._check is not None:
                    self._differs = await self._check.finish()
                reply = self._with_data_block(reply)
                claims = not rounds.failed_writes and self._claims_write(reply)
                is_false = claims and not await in_thread(self._is_already_noted)
                reply = self._with_marks(reply, rounds.failed_writes, is_false_claim=is_false)
                await in_thread(partial(self._keep_answer, reply), self._emit)
                return
        raise BudgetError(
            f"The turn was stopped after {self.steps} steps.",
            "Say “go on” to continue, or raise budget.turn_steps.",
        )

    def _is_empty(self, reply: Reply) -> bool:
        """Return whether a reply has no answer; after a write none is needed."""
        return reply.is_data or not (reply.text.strip() or self._changes or self._proposed)

    def _plain_words_request(self) -> Message:
        """Return the message to a model that answered with JSON."""
        names = ", ".join(spec.name for spec in self._tools())
        instead = f"call one of the tools ({names}), or answer" if names else "answer"
        return Message("user", f"That was JSON that calls no tool: {instead} in plain words.")

    def _with_data_block(self, reply: Reply) -> Reply:
        """Return the answer; JSON, which wasn't streamed, as a code block."""
        if not reply.is_data:
            return reply
        text = reply.text.strip()
        block = text if text.startswith("```") else f"```json\n{text}\n```"
        self._emit(TextDelta(block))
        return replace(reply, text=block)

    def _claims_write(self, reply: Reply) -> bool:
        """Return whether an answer claims a write although nothing was written in this turn."""
        wrote = self._changes or self._proposed or not self.writes
        return not wrote and holds(reply.text, of_all("claim"))

    def _is_already_noted(self) -> bool:
        """Return whether the notes already say what the user just said."""
        from kbtui.memory.edits.editor import LOOSE, is_said

        statement = begins(self.said.content, of_all("remember")) or self.said.content
        try:
            lines = Quoting(self.context).about(statement)
        except KbtuiError:
            return False
        return any(
            line.path.startswith(_NOTES) and is_said(statement, [line.text], LOOSE)
            for line in lines
        )

    def _with_marks(self, reply: Reply, failed: Sequence[str], *, is_false_claim: bool) -> Reply:
        """Return the answer with marks for failed writes, or for a false claim of a write."""
        marks = [f"**Not written:** {why}" for why in failed[:_MAX_MARKS]]
        if len(failed) > _MAX_MARKS:
            marks.append(f"and {len(failed) - _MAX_MARKS} more")
        if is_false_claim:
            marks = [NOTHING_WRITTEN]
        if not marks:
            return reply
        text = reply.text.rstrip()
        marks_text = "\n\n".join(["", *marks] if text else marks)
        self._emit(TextDelta(marks_text))
        self._marks = marks_text
        return replace(reply, text=f"{text}{marks_text}")

    async def _ask(self) -> Reply:
        self._partial.clear()
        prompt = fitting(self._messages, self.model.context_window)
        if self.log_prompts:
            logged = [asdict(replace(each, pictures=())) for each in prompt]
            log.info("prompt of turn %s: %s", self.id, logged)
        reply = self._with_own_calls(await self._streamed(prompt, self._tools()))
        if self.log_prompts:
            log.info("answer in turn %s: %s", self.id, asdict(reply))
        usage = reply.usage
        self._emit(UsageReported(usage.prompt_tokens, usage.completion_tokens, usage.cost_usd))
        _check_complete(reply)
        if prompt[0].content[:_ECHO_LENGTH] in reply.text:
            raise ModelAnswerError(
                f"{self.model.name} repeated its instructions in place of an answer.",
                "Try again, or choose another model with `/model`.",
            )
        return reply

    def _with_own_calls(self, reply: Reply) -> Reply:
        """Return a reply with calls that the model only quotes or shows as text."""
        written = tuple(call for call in reply.tool_calls if call.is_written)
        given = [each.content for each in self._messages if each.role != "assistant"]
        # Without a call, it is one that can't be read.
        if not reply.written or are_own(written, self.said.content, given, reply.written):
            return reply
        self._partial.append(reply.written)
        self._emit(TextDelta(reply.written))
        rest = tuple(call for call in reply.tool_calls if not call.is_written)
        finish = reply.finish if rest else "stop"
        text = reply.text + reply.written
        return replace(reply, text=text, tool_calls=rest, finish=finish, written="")

    def _tools(self) -> tuple[ToolSpec, ...]:
        return self.toolbox.specs_for(self.model.context_window) if self.model.takes_tools else ()

    async def _streamed(self, prompt: Sequence[Message], tools: Sequence[ToolSpec]) -> Reply:
        """Return the reply to a prompt, emitting its pieces as they arrive."""
        stream = cast("AsyncGenerator[ReplyEvent, None]", self.model.stream(prompt, tools))
        reply: Reply | None = None
        self._check = self._new_check()
        async with aclosing(stream):
            async for piece in stream:
                match piece:
                    case ReplyText(text):
                        self._partial.append(text)
                        self._emit(TextDelta(text))
                        self._check.feed(text)
                    case ReplyReasoning(text):
                        self._emit(ReasoningDelta(text))
                    case ReplyRevoked():
                        self._partial.clear()
                        self._check = self._new_check()
                        self._emit(TextRevoked())
                    case ReplyRetry(error, attempt, attempts, pause):
                        when = f"in {pause:.0f} s" if pause >= 1 else "at once"
                        why = error if error.endswith(".") else f"{error}."
                        tells = f"{why} Trying again {when} ({attempt} of {attempts})."
                        self._emit(RetryStarted(tells))
                    case ReplyNotice(text):
                        self._emit(NoticeGiven(text))
                    case Reply():
                        reply = piece
        if reply is None:
            raise ModelAnswerError(f"{self.model.name} ended without an answer.")
        return reply

    def _new_check(self) -> StreamedCheck:
        """Return the check of a new reply, with all that the model was shown until now."""
        self._drop_check()
        path = f"sessions/{self.session.id}.jsonl"
        earlier = self.session.messages[-_MOST_SAID:]
        said = [
            (path, each.id, each.content)
            for each in earlier
            if each.role == "user" and each.id != self.said.id
        ]
        sources, known = self.context.sources.shown, [*said, *(self.recalled() or ())]
        return StreamedCheck(sources, self.said.content, known, self._tell_difference)

    def _tell_difference(self, difference: Difference) -> None:
        self._emit(AnswerDiffers(difference))

    def _drop_check(self) -> None:
        if self._check is not None:
            self._check.stop()
            self._check = None

    def _emit(self, event: Event) -> None:
        self._events.put_nowait(event)

    # Storing; called in a thread

    def _keep_calls(self, reply: Reply) -> None:
        self.session.append(
            "assistant", reply.text, tool_calls=reply.tool_calls, turn=self.id, meta=self._meta()
        )
        self._partial.clear()
        self._messages.append(Message("assistant", reply.text, reply.tool_calls))

    def _keep_result(self, call: ToolCall, outcome: ToolOutcome) -> None:
        self._changes += outcome.changes
        self._taint.update(dict.fromkeys(outcome.taint))
        meta: dict[str, Any] = {"ok": outcome.ok, "summary": outcome.summary}
        if outcome.changes:
            meta["changes"] = [asdict(change) for change in outcome.changes]
        if outcome.proposal:
            self._proposed = True
            meta["proposal"] = outcome.proposal
        if self._taint:
            # A result repeats its call's arguments, which may come from what was read before.
            meta[TAINT] = list(self._taint)
        self.session.append(
            "tool", outcome.output, tool_call_id=call.id, name=call.name, turn=self.id, meta=meta
        )
        self._messages.append(Message("tool", outcome.output, tool_call_id=call.id, name=call.name))

    def _keep_step(self, call: ToolCall, outcome: ToolOutcome) -> None:
        """Store and emit a step that no model asked for as a call and its result."""
        self._taint.update(dict.fromkeys(outcome.taint))
        self._keep_calls(Reply("", (call,), "tool_calls", Usage()))
        self._keep_result(call, outcome)
        fields = (outcome.ok, outcome.summary, outcome.output, outcome.changes, outcome.proposal)
        self._emit(ToolFinished(call.id, call.name, *fields))

    def _keep_answer(self, reply: Reply) -> TurnFinished:
        citations = self.context.sources.cited_in(reply.text)
        meta = self._meta()
        if self._marks:
            meta[MARKS] = self._marks
        if citations:
            meta["citations"] = [_citation_meta(citation) for citation in citations]
        if self.earlier is not None:  # its place, not its text, which may be forgotten later
            meta[EARLIER] = {**asdict(self.earlier), "text": ""}
        if self._differs:
            meta[DIFFERS] = [{**asdict(each), "text": ""} for each in self._differs]
        if reply.text.strip():
            self.session.append("assistant", reply.text, turn=self.id, meta=meta)
        self._partial.clear()
        changes = tuple(self._changes)
        is_unfounded = self._is_unfounded()
        left = (self.not_kept, self.earlier, self.order, self._differs, is_unfounded)
        return TurnFinished(reply.text, self.session.id, self.id, citations, changes, *left)

    def _is_unfounded(self) -> bool:
        """Return whether a question was answered by what is nowhere in the notes, looked up."""
        is_looked_up = self.recalled() is not None and not self._changes
        return is_looked_up and self._check is not None and self._check.is_unfounded

    def _keep_partial(self) -> None:
        text = "".join(self._partial)
        self._partial.clear()
        if text.strip():
            self.session.append(
                "assistant", text, turn=self.id, interrupted=True, meta=self._meta()
            )

    async def _keep_partial_after(self, error: KbtuiError) -> KbtuiError:
        """Store the partial answer; return `error`, or the error of storing it."""
        try:
            await in_thread(self._keep_partial)
        except KbtuiError as worse:
            return worse
        return error

    def _meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = {"model": self.model.name}
        if self._taint:
            meta[TAINT] = list(self._taint)
        return meta

    def _failed(self, error: KbtuiError) -> TurnFailed:
        return TurnFailed(
            error.message,
            error.hint,
            self.session.id,
            self.id,
            changes=tuple(self._changes),
            exit_code=error.exit_code,
        )


def fitting(messages: Sequence[Message], window: int) -> list[Message]:
    """Elide the oldest tool results until the prompt fits the model's window."""
    room = window - window // _ANSWER_FRACTION - min(_TOOLS_TOKENS, window // _ANSWER_FRACTION)
    shown = list(messages)
    excess = prompt_tokens(shown) - room
    for number, message in enumerate(shown):
        if excess <= 0:
            break
        if message.role == "tool" and len(message.content) > len(_ELIDED):
            shorter = replace(message, content=_ELIDED)
            excess -= message.tokens - shorter.tokens
            shown[number] = shorter
    return shown


def _check_complete(reply: Reply) -> None:
    """Raise for an incomplete answer; half a tool call must never run."""
    match reply.finish:
        case "length":
            raise ModelAnswerError(
                "The answer was cut off at the model's limit of length.",
                "Say “go on”, or raise models.chat.max_tokens.",
            )
        case "content_filter":
            raise ModelAnswerError("The provider withheld the answer.", "Say it differently.")
        case "error":
            raise ModelAnswerError("The provider ended the answer with an error.", "Try again.")
        case _:
            return


def _citation_meta(citation: Citation) -> dict[str, Any]:
    return {
        "n": citation.n,
        "path": citation.path,
        "lines": [citation.first, citation.last],
        "title": citation.title,
        **({"place": citation.place} if citation.place else {}),
    }
