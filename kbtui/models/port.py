"""The port that every chat model is spoken to through, and how many tokens that takes.

Three implementations stand behind it: litellm, the stand-in for none, and the scripted one of the
tests. A model only ever *asks* for tools; the turn runs them.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, Protocol

from kbtui.errors import ModelAccessError

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "error"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in a prompt; `media` is its type, such as ``image/png``."""

    media: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt. `tool_call_id` and `name` belong to role ``tool`` only.

    `pictures` belong to role ``user``, and are for models that see.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it; `parameters` is a JSON Schema object.

    Where `accepted` is given, forced calls are checked against it instead: a wider schema, for a
    tool whose caller reads older forms of its arguments as well. `renamed` gives the names of
    arguments for older ones, which are still taken.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(hash=False)
    accepted: Mapping[str, Any] | None = field(default=None, hash=False)
    renamed: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of a call; `cost_usd` is None where no price is known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class ReplyText:
    """A piece of the answer's text, as it streams in."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyReasoning:
    """A piece of the model's reasoning: shown folded, never stored as an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyRetry:
    """Nothing came, and it is tried again; `error` says why, `pause` in how many seconds.

    `attempt` counts from 1 up to `attempts`.
    """

    error: str
    attempt: int
    attempts: int
    pause: float


@dataclass(frozen=True, slots=True)
class ReplyNotice:
    """Something to say while the answer is waited for; it goes on by itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer; the last event of every stream that ended as the protocol says.

    `is_data`: its text is JSON that calls no tool, in place of words; it wasn't streamed.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish: FinishReason
    usage: Usage
    is_data: bool = False


ReplyEvent = ReplyText | ReplyReasoning | ReplyRetry | ReplyNotice | Reply


class ChatModel(Protocol):
    """A chat model under one name, with its endpoint and key already resolved."""

    @property
    def name(self) -> str:
        """The name that settings and the status line show, e.g. ``ollama_chat/qwen3:8b``."""

    @property
    def is_local(self) -> bool:
        """True if the prompt stays on this machine (no model, loopback endpoint)."""

    @property
    def context_window(self) -> int:
        """How many tokens a prompt and its answer may hold together."""

    @property
    def sees(self) -> bool:
        """True if it takes pictures; may take seconds to find out."""

    @property
    def takes_tools(self) -> bool:
        """False once it is known to take no tools; then it is asked without."""

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        """Stream an answer; the last event is a `Reply`.

        Closing the iterator cancels the request.

        Raises:
            ModelWindowError: the prompt is too long; `context_window` is right now, if it was told.
            ModelToolsError: it takes no tools, as `takes_tools` says from now on.
            ModelError: no answer could be had, or it was cut before its end marker.
        """

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        """Get a whole answer at once; `force_tool` names the tool that must be called.

        Raises:
            ModelError: no complete answer could be had.
        """

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text, by the model's tokenizer or by an estimate."""


class DelegatingModel:
    """A chat model that stands for another, which answers all that a subclass doesn't."""

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
_PER_PICTURE = 1_200  # of a thousand pixels each way, more or less, wherever it is said


def estimate_tokens(text: str) -> int:
    """Estimate a text's tokens from its bytes.

    Within a third of OpenAI's cl100k on prose, markdown, code, logs, tables of numbers, German and
    Chinese, and rather above than below. The models' own tokenizers differ from each other by as
    much, and loading one takes seconds.
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


def message_tokens(message: Message) -> int:
    """Estimate the tokens of one message, with its tool calls and its wrapping."""
    calls = sum(estimate_tokens(call.name + call.arguments) + 8 for call in message.tool_calls)
    pictures = _PER_PICTURE * len(message.pictures)
    return _PER_MESSAGE + estimate_tokens(message.content) + calls + pictures


def prompt_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of a whole prompt, without the tools' descriptions."""
    return sum(map(message_tokens, messages))


def cut_to_tokens(text: str, budget: int) -> str:
    """Cut a text to whole lines within a budget of tokens; "" where not even one fits."""
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
    """Stands for "no model": its name is what settings and front ends show in place of a model's.

    Whoever would ask one does without, by the functions of `kbtui.offline`.
    """

    name = "offline"  # `settings.OFFLINE`: that module loads pydantic, and sessions load this one
    is_local = True
    context_window = _CONTEXT_WINDOW
    sees = False
    takes_tools = True

    def count_tokens(self, text: str) -> int:
        """Estimate the tokens of a text."""
        return estimate_tokens(text)

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        """Refuse."""
        del messages, tools
        _refuse()

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        """Refuse."""
        del messages, tools, force_tool
        _refuse()


def _refuse() -> NoReturn:
    raise ModelAccessError("No model is configured.", "Add one with `/model`.")
