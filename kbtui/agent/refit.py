"""Asks once more where a model turns out to hold less than was thought, or to take no tools."""

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
    from kbtui.agent.context import AssembledPrompt
    from kbtui.models.port import ToolSpec

_LEAST_WINDOW = 1_024


class RefittedModel(DelegatingModel):
    """The model of one turn, which puts the prompt together again when it has to.

    The first refusal that names a limit is answered by the prompt for a window of that size, one of
    tools by a prompt without; from then on the turn goes on from there. Tokens are estimated: where
    the refusal says how long the prompt was, the window counts for as much less as the estimate was
    wrong.
    """

    def __init__(
        self,
        model: ChatModel,
        prompt: AssembledPrompt,
        assembled: Callable[[ChatModel], AssembledPrompt],
        toolbox: Toolbox,
    ) -> None:
        """Stand for `model`; `assembled` puts the turn's `prompt` together again."""
        super().__init__(model)
        self._length = len(prompt.messages)
        self._assembled = assembled
        self._toolbox = toolbox
        self._window: int | None = None
        self._again: AssembledPrompt | None = None

    @property
    def context_window(self) -> int:
        """See `ChatModel`."""
        window = self._model.context_window
        return window if self._window is None else min(window, self._window)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        """See `ChatModel`; a prompt that is too long is told as a retry, once in a turn."""
        while True:
            begun = False
            asked = self._behind_prompt(messages)
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
                told: ReplyEvent = ReplyNotice(f"{self.name} takes no tools: it can only talk.")
            except ModelWindowError as error:
                if begun or error.window is None or self._window is not None:
                    raise
                self._window = self._left_by(error, asked)
                told = ReplyRetry(error.message, 1, 1, 0.0)
            else:
                return
            yield told
            self._again = await in_thread(lambda: self._assembled(self))
            tools = self._toolbox.specs_for(self.context_window) if tools else ()

    def _behind_prompt(self, messages: Sequence[Message]) -> list[Message]:
        """A turn's messages, behind the prompt that was put together again once there is one."""
        if self._again is None:
            return list(messages)
        whole = [*self._again.messages, *messages[self._length :]]
        return fitting(whole, self.context_window)

    def _left_by(self, error: ModelWindowError, asked: Sequence[Message]) -> int:
        """The window, as far as it can be filled by estimate."""
        window = self._model.context_window
        estimated = prompt_tokens(asked)
        if error.prompt and error.prompt > estimated:
            window = window * estimated // error.prompt
        return max(_LEAST_WINDOW, window)


def without_tools(messages: Sequence[Message]) -> list[Message]:
    """A prompt without calls and their results; who speaks alternates, as some templates demand."""
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
