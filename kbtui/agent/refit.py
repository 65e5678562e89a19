"""Retries with a smaller prompt or without tools, if the model turns out to need that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kbtui.agent.tools.toolbox import Toolbox, in_thread
from kbtui.agent.turn import fitting
from kbtui.errors import ModelToolsError, ModelWindowError
from kbtui.models.port import (
    ChatModel,
    DelegatingModel,
    Message,
    ReplyEvent,
    ReplyNotice,
    ReplyRetry,
    prompt_tokens,
)

if TYPE_CHECKING:
    from kbtui.agent.prompt import AssembledPrompt
    from kbtui.models.port import ToolSpec

_MIN_WINDOW = 1_024


class RefittedModel(DelegatingModel):
    """The model of one turn, which reassembles the prompt after certain errors.

    After the first error that names a context window the prompt is reassembled for that size, and
    after one about tools without tools; the turn continues with that. Tokens are estimates: if the
    error says how long the prompt was, the window is reduced by the error of the estimate.
    """

    def __init__(
        self,
        model: ChatModel,
        prompt: AssembledPrompt,
        assembled: Callable[[ChatModel], AssembledPrompt],
        toolbox: Toolbox,
    ) -> None:
        """Wrap `model`; `assembled` returns the turn's `prompt` reassembled."""
        super().__init__(model)
        self._length = len(prompt.messages)
        self._assembled = assembled
        self._toolbox = toolbox
        self._window: int | None = None
        self._reassembled: AssembledPrompt | None = None

    @property
    def context_window(self) -> int:
        """See `ChatModel`."""
        window = self._model.context_window
        return window if self._window is None else min(window, self._window)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        """See `ChatModel`; a retry for a too long prompt is reported once per turn."""
        while True:
            begun = False
            asked = self._with_current_prompt(messages)
            try:
                async for event in self._model.stream(
                    asked if tools else without_tools(asked), tools
                ):
                    begun = begun or not isinstance(event, ReplyNotice | ReplyRetry)
                    yield event
            except ModelToolsError:
                if begun or not tools:
                    raise
                tools = ()
                notice: ReplyEvent = ReplyNotice(f"{self.name} takes no tools: it can only talk.")
            except ModelWindowError as error:
                if begun or error.window is None or self._window is not None:
                    raise
                self._window = self._usable_window(error, asked)
                notice = ReplyRetry(error.message, 1, 1, 0.0)
            else:
                return
            yield notice
            self._reassembled = await in_thread(lambda: self._assembled(self))
            tools = self._toolbox.specs_for(self.context_window) if tools else ()

    def _with_current_prompt(self, messages: Sequence[Message]) -> list[Message]:
        """Return a turn's messages, after the reassembled prompt if there is one."""
        if self._reassembled is None:
            return list(messages)
        whole = [*self._reassembled.messages, *messages[self._length :]]
        return fitting(whole, self.context_window)

    def _usable_window(self, error: ModelWindowError, asked: Sequence[Message]) -> int:
        """Return the window in estimated tokens."""
        window = self._model.context_window
        estimated = prompt_tokens(asked)
        if error.prompt and error.prompt > estimated:
            window = window * estimated // error.prompt
        return max(_MIN_WINDOW, window)


def without_tools(messages: Sequence[Message]) -> list[Message]:
    """Return a prompt without tool calls and results, with alternating roles."""
    plain: list[Message] = []
    for message in messages:
        if message.role == "tool" or not (message.content or message.pictures):
            continue
        if plain and plain[-1].role == message.role:
            last = plain.pop()
            pictures = last.pictures + message.pictures
            message = replace(  # noqa: PLW2901 - both as one
                message, content=f"{last.content}\n\n{message.content}", pictures=pictures
            )
        plain.append(replace(message, tool_calls=()))
    return plain
