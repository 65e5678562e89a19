"""The port to chat models, and token estimates.

It has three implementations: litellm, `OfflineModel` for no model at all, and the tests' scripted
one. A model only ever *requests* tool calls; the turn runs them.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NoReturn, Protocol

from kbtui.errors import ModelAccessError
from kbtui.text import json_object

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "error"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool.

    Attributes:
        id: Pairs the call with its result.
        name: The tool.
        arguments: The JSON text as the model wrote it.
        is_written: It stood in the answer's text, so that it may be something that a model quotes.
    """

    id: str
    name: str
    arguments: str
    is_written: bool = False

    @property
    def shown(self) -> dict[str, Any]:
        """The arguments for display, as far as they can be parsed."""
        found = json_object(self.arguments or "{}")
        return {"arguments": self.arguments} if found is None else found


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in a prompt; `media` is its type, such as ``image/png``."""

    media: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Message:
    """One message of a prompt; only role ``tool`` uses `tool_call_id` and `name`.

    Only role ``user`` has `pictures`, and only vision models are sent them.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    pictures: tuple[Picture, ...] = ()

    @cached_property  # whatever is put into a prompt is counted in each round of its turn
    def tokens(self) -> int:
        """Estimated tokens, including tool calls and message overhead."""
        calls = [estimate_tokens(call.name + call.arguments) + 8 for call in self.tool_calls]
        pictures = _PER_PICTURE * len(self.pictures)
        return _PER_MESSAGE + estimate_tokens(self.content) + sum(calls) + pictures


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The definition of a tool as sent to a model; `parameters` is a JSON Schema object.

    If `accepted` is given, forced calls are validated against this wider schema instead, for
    callers that also read older forms of the arguments. `renamed` maps deprecated argument names,
    which are still accepted, to current ones.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(hash=False)
    accepted: Mapping[str, Any] | None = field(default=None, hash=False)
    renamed: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts and cost of a call; `cost_usd` is None if no price is known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class ReplyText:
    """A streamed piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyReasoning:
    """A streamed piece of the model's reasoning; shown folded, and never stored as an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyRevoked:
    """All text that was streamed so far turned out to be the model's reasoning."""


@dataclass(frozen=True, slots=True)
class ReplyRetry:
    """The request failed with `error` and will be retried in `pause` seconds.

    `attempt` counts from 1 to `attempts`.
    """

    error: str
    attempt: int
    attempts: int
    pause: float


@dataclass(frozen=True, slots=True)
class ReplyNotice:
    """A message to show while waiting for the answer; it needs no reaction."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer, and the last event of every properly terminated stream.

    `is_data` is set if the text is JSON that calls no tool; such text wasn't streamed. `written` is
    the text after it that calls were read from, or that is a broken call; it wasn't streamed
    either.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish: FinishReason
    usage: Usage
    is_data: bool = False
    written: str = ""


ReplyEvent = ReplyText | ReplyReasoning | ReplyRevoked | ReplyRetry | ReplyNotice | Reply


class ChatModel(Protocol):
    """A chat model under one name, with its endpoint and key already resolved."""

    @property
    def name(self) -> str:
        """The name shown in settings and the status line, e.g. ``ollama_chat/qwen3:8b``."""

    @property
    def is_local(self) -> bool:
        """Whether the prompt stays on this machine (no model, or a loopback endpoint)."""

    @property
    def context_window(self) -> int:
        """The maximum number of tokens of a prompt and its answer together."""

    @property
    def sees(self) -> bool:
        """Whether the model accepts pictures; finding out may take seconds."""

    @property
    def takes_tools(self) -> bool:
        """False once the model is known not to support tools, and is asked without them."""

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        """Stream an answer; the last event is a `Reply`.

        Closing the iterator cancels the request.

        Raises:
            ModelWindowError: The prompt is too long; `context_window` has been corrected if the
                error named the limit.
            ModelToolsError: The model doesn't support tools; `takes_tools` is False from now on.
            ModelError: The request failed, or the stream ended before its end marker.
        """

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        """Return a complete answer; `force_tool` names a tool that must be called.

        Raises:
            ModelError: There was no complete answer.
        """

    def count_tokens(self, text: str) -> int:
        """Count or estimate the tokens of a text."""


class DelegatingModel:
    """A chat model that delegates to another; base class for wrappers."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """See `ChatModel`."""
        return self._model.name

    @property
    def is_local(self) -> bool:
        """See `ChatModel`."""
        return self._model.is_local

    @property
    def context_window(self) -> int:
        """See `ChatModel`."""
        return self._model.context_window

    @property
    def sees(self) -> bool:
        """See `ChatModel`."""
        return self._model.sees

    @property
    def takes_tools(self) -> bool:
        """See `ChatModel`."""
        return self._model.takes_tools

    def count_tokens(self, text: str) -> int:
        """See `ChatModel`."""
        return self._model.count_tokens(text)

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        """See `ChatModel`."""
        return await self._model.complete(messages, tools, force_tool=force_tool)


_ASCII_PER_TOKEN = 4.0
_DIGITS_PER_TOKEN = 1.5
_OTHER_BYTES_PER_TOKEN = 2.5
_PER_MESSAGE = 4
_PER_PICTURE = 1_200  # roughly what providers document for about 1000 x 1000 pixels


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text from its bytes.

    Within a third of OpenAI's cl100k on prose, Markdown, code, logs, tables of numbers, German and
    Chinese, erring on the high side. Models' own tokenizers differ from each other by as much, and
    loading one takes seconds.
    """
    ascii_bytes = text.encode("ascii", "ignore")
    other_bytes = len(text.encode("utf-8", "replace")) - len(ascii_bytes)
    others = len(ascii_bytes.translate(None, b"0123456789"))
    digits = len(ascii_bytes) - others
    return math.ceil(
        others / _ASCII_PER_TOKEN
        + digits / _DIGITS_PER_TOKEN
        + other_bytes / _OTHER_BYTES_PER_TOKEN
    )


def prompt_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of a prompt, excluding tool definitions."""
    return sum([message.tokens for message in messages])


def cut_to_tokens(text: str, budget: int) -> str:
    """Truncate a text to whole lines within a token budget; "" if not even one line fits."""
    if estimate_tokens(text) <= budget:
        return text
    kept: list[str] = []
    left = budget
    for line in text.splitlines(keepends=True):
        left -= estimate_tokens(line)
        if left < 0:
            break
        kept.append(line)
    return "".join(kept)


_CONTEXT_WINDOW = 1_000_000


class OfflineModel:
    """Null object for "no model"; its name is shown where a model's would be.

    It refuses every request: callers use the functions of `kbtui.offline` instead.
    """

    name = "offline"  # `settings.OFFLINE`, not imported here because it would load pydantic
    is_local = True
    context_window = _CONTEXT_WINDOW
    sees = False
    takes_tools = True

    def count_tokens(self, text: str) -> int:
        """See `ChatModel`."""
        return estimate_tokens(text)

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        """Raise `ModelAccessError`."""
        del messages, tools
        _refuse()

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        """Raise `ModelAccessError`."""
        del messages, tools, force_tool
        _refuse()


def _refuse() -> NoReturn:
    raise ModelAccessError("No model is configured.", "Add one with `/model`.")
