"""Chat models through litellm: any hosted or local provider behind one port.

This is the only module that imports litellm, and only when needed: the import takes seconds, so
`warm_up` does it in the background. Requests run on a separate event loop (`background`). litellm
is kept from sending anything but the request itself: it uses the bundled price list, loads no
``.env``, downloads no tokenizer and sends no telemetry; a test enforces that.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import logging
import os
import threading
import warnings
from base64 import b64encode
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from kbtui.errors import (
    ModelAccessError,
    ModelAnswerError,
    ModelError,
    ModelOverloadedError,
    ModelToolsError,
    ModelUnreachableError,
    ModelWindowError,
)
from kbtui.models.background import BackgroundLoop
from kbtui.models.limits import LIMITS
from kbtui.models.model_errors import (
    AttemptFailed,
    Endpoint,
    classify,
    cut_off,
    no_answer,
    nothing_yet,
    speaks_of_temperature,
    timed_out,
)
from kbtui.models.port import (
    FinishReason,
    Message,
    Picture,
    Reply,
    ReplyEvent,
    ReplyNotice,
    ReplyReasoning,
    ReplyRetry,
    ToolSpec,
    Usage,
    estimate_tokens,
    prompt_tokens,
)
from kbtui.models.providers import is_loopback, is_ollama, prefix_of, takes_cache_marks
from kbtui.models.reply_builder import ReplyBuilder
from kbtui.models.schema import (
    ShapeForcing,
    accept,
    describe,
    forcing_messages,
    ladder_from,
    request_options,
)
from kbtui.models.servers import OLLAMA_CONTEXT_WINDOW
from kbtui.models.stream_ending import watch_ending
from kbtui.models.turns import Turns

T = TypeVar("T")
log = logging.getLogger(__name__)

DEFAULT_CONTEXT_WINDOW = 32_768
FIRST_TOKEN_SECONDS = 60.0
LOCAL_FIRST_TOKEN_SECONDS = 900.0
"""Timeouts until the first piece: a small machine may process a long prompt for minutes."""

STEADY = 0.1
"""The temperature for work whose results should be reproducible."""

_LEAST_ANSWER = 1_000  # tokens
_ANY_WAY = (ModelAccessError, ModelOverloadedError, ModelUnreachableError, ModelWindowError)
"""Failures unrelated to the way a call was forced."""
_STREAMING: Final = {"stream": True, "stream_options": {"include_usage": True}}
_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
_working_ways: dict[tuple[str, str], ShapeForcing] = {}
_loop = BackgroundLoop("kbtui-models")
_engine_lock = threading.Lock()
_engine: Any = None


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Limits, timeouts and retries of a model's requests.

    Times are in seconds; `backoff_seconds` doubles with each retry. Without `first_token_seconds`,
    a local model is given much longer than a remote one. After `quiet_seconds` of silence the user
    is notified. `in_background` selects a low temperature unless one is set, and has complete
    answers of a server on this machine wait until nobody talks with it.
    """

    context_window: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    in_background: bool = False
    vision: bool | None = None
    first_token_seconds: float | None = None
    idle_seconds: float = 120
    quiet_seconds: float = 60
    retries: int = 2
    backoff_seconds: float = 0.5


@dataclass(frozen=True, slots=True)
class LiteLLMModel:
    """One model at one endpoint with its key; see `ChatModel`."""

    name: str
    api_base: str | None = None
    api_key: str = field(default="", repr=False)
    options: ModelOptions = ModelOptions()

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine."""
        return self.api_base is not None and is_loopback(self.api_base)

    @property
    def _turns(self) -> Turns | None:
        """Who talks with the server, if it is on this machine and so has one answer at a time."""
        return Turns(self.api_base) if self.api_base is not None and self.is_local else None

    @property
    def context_window(self) -> int:
        """The window as set, else as the server reported or litellm knows after `prepare`.

        Falls back to a conservative default, and never exceeds a limit named in an error.
        """
        limit = LIMITS.limit(self.api_base, self.name)
        if self.options.context_window is not None:
            return min(self.options.context_window, limit or self.options.context_window)
        told = limit or LIMITS.window(self.api_base, self.name)
        if is_ollama(self.name):
            return told or OLLAMA_CONTEXT_WINDOW
        return told or _known_window(self.name) or DEFAULT_CONTEXT_WINDOW

    @property
    def takes_tools(self) -> bool:
        """False once the server reported, or an error showed, that tools aren't supported."""
        return LIMITS.takes_tools(self.api_base, self.name)

    @property
    def sees(self) -> bool:
        """Whether the model accepts pictures: as set, else as litellm knows, once it is loaded."""
        if self.options.vision is not None:
            return self.options.vision
        _load()
        return bool(_metadata(self.name).get("supports_vision"))

    @property
    def first_token_seconds(self) -> float:
        """The timeout for the first piece of an answer."""
        if self.options.first_token_seconds is not None:
            return self.options.first_token_seconds
        return LOCAL_FIRST_TOKEN_SECONDS if self.is_local else FIRST_TOKEN_SECONDS

    def prepare(self) -> None:
        """Load litellm and determine the `context_window`.

        Takes seconds the first time, and up to a second now and then.
        """
        _load()
        self.read_window()

    def read_window(self) -> None:
        """Query the server for `context_window` and `takes_tools`; part of `prepare`."""
        if self.options.context_window is None or is_ollama(self.name):
            LIMITS.read(self.api_base, self.name, self.api_key)

    def count_tokens(self, text: str) -> int:
        """See `ChatModel`."""
        return estimate_tokens(text)

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        """See `ChatModel.stream`."""
        return _loop.iterate(self._stream(list(messages), tools))

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        """Return a complete answer; see `ChatModel.complete`.

        Raises:
            ModelAnswerError: No way of forcing `force_tool` led to a valid call.
        """
        if self.options.in_background and self._turns is not None:
            return await self._turns.after(lambda: self._completed(messages, tools, force_tool))
        return await self._completed(messages, tools, force_tool)

    async def _completed(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], force_tool: str | None
    ) -> Reply:
        if force_tool is None:
            return await _loop.run(self._complete(list(messages), _tool_options(tools), tools))
        forced = next(tool for tool in tools if tool.name == force_tool)
        return await _loop.run(self._force(list(messages), forced))

    # Everything below runs on the background loop.

    async def _stream(
        self, messages: list[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[ReplyEvent, None]:
        request = {**await self._request(messages), **_tool_options(tools), **_STREAMING}
        with self._turns.talking() if self._turns is not None else nullcontext():
            for attempt in range(self.options.retries + 1):
                begun = False
                try:
                    async for event in self._attempt_with_notice(request, self._new_reply(tools)):
                        begun = begun or not isinstance(event, ReplyNotice)
                        yield event
                except AttemptFailed as failure:
                    if begun or not self._may_retry(failure, attempt):
                        raise failure.error from None
                    pause = self._pause(failure, attempt)
                    tries = self.options.retries
                    yield ReplyRetry(failure.error.message, attempt + 1, tries, pause)
                    await asyncio.sleep(pause)
                else:
                    return

    async def _attempt_with_notice(
        self, request: dict[str, Any], reply: ReplyBuilder
    ) -> AsyncGenerator[ReplyEvent, None]:
        """Make one request, and yield a notice if nothing arrives for a while."""
        options = self.options
        pieces = self._attempt(request, reply)
        coming = asyncio.ensure_future(anext(pieces, None))
        try:
            await asyncio.wait([coming], timeout=options.quiet_seconds)
            if not coming.done() and not reply.started:
                limit = self.first_token_seconds
                yield ReplyNotice(nothing_yet(self._endpoint, options.quiet_seconds, limit))
            event = await coming
            while event is not None:
                yield event
                event = await anext(pieces, None)
        finally:
            coming.cancel()
            await asyncio.wait([coming])
            await pieces.aclose()

    async def _attempt(
        self, request: dict[str, Any], reply: ReplyBuilder
    ) -> AsyncGenerator[ReplyEvent, None]:
        """Make one request; yield its pieces and, if it ends properly, the `Reply`."""
        stream = await self._in_time(_load().acompletion(**request), first=True)
        ending = watch_ending(stream)
        usage: Any = None
        first = True
        try:
            while (chunk := await self._in_time(anext(stream, None), first=first)) is not None:
                usage = getattr(chunk, "usage", None) or usage
                for event in _add_chunk(chunk, reply):
                    first = False
                    yield event
                first = first and not reply.started
        finally:
            with suppress(Exception):
                await stream.aclose()
        for event in reply.finish_text():
            yield event
        # litellm reports a stream that just stopped as a normal end.
        provider_message = getattr(stream, "received_finish_reason", None) or getattr(
            stream, "intermittent_finish_reason", None
        )
        if not provider_message and not (reply.has_answer and ending.is_told):
            raise AttemptFailed((no_answer if first else cut_off)(self._endpoint))
        yield self._reply(reply, str(provider_message or "stop"), usage)

    async def _complete(
        self, messages: list[Message], options: dict[str, Any], tools: Sequence[ToolSpec] = ()
    ) -> Reply:
        request = {**await self._request(messages), **options}
        new_reply = partial(self._new_reply, tools)
        try:
            return await self._with_retries(request, new_reply)
        except ModelError as error:
            if request.get("temperature") != STEADY or not speaks_of_temperature(error):
                raise
            LIMITS.refusals.note("temperature", self.api_base, self.name)
            del request["temperature"]
            return await self._with_retries(request, new_reply)

    async def _with_retries(
        self, request: dict[str, Any], new_reply: Callable[[], ReplyBuilder]
    ) -> Reply:
        for attempt in range(self.options.retries + 1):
            try:
                response = await self._in_time(_load().acompletion(**request), whole=True)
                return self._whole(response, new_reply())
            except AttemptFailed as failure:
                if not self._may_retry(failure, attempt):
                    raise failure.error from None
                pause = self._pause(failure, attempt)
                log.warning("%s; trying again in %.1f s", failure.error.message, pause)
                await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _force(self, messages: list[Message], tool: ToolSpec) -> Reply:
        """Try the ways to force a call, starting with the one that worked last time."""
        key = (self.api_base or prefix_of(self.name), self.name)
        await asyncio.to_thread(self.prepare)
        # Bounded, as a small model that repeats itself would go on until its window is full.
        may_run_on = self.is_local and self.options.max_tokens is None
        limit = {"max_tokens": self._answer_limit(messages, tool)} if may_run_on else {}
        spent = Usage(cost_usd=0.0)
        refusal: ModelError | None = None
        for way in ladder_from(_working_ways.get(key)):
            prompt = forcing_messages(way, messages, tool)
            try:
                wanted = {**limit, **request_options(way, tool)}
                reply = await self._complete(prompt, wanted, [tool])
            except _ANY_WAY:
                raise
            except ModelError as error:
                refusal = error
                continue
            spent = _add_usage(spent, reply.usage)
            if accepted := accept(reply, tool):
                _working_ways[key] = way
                return replace(accepted, usage=spent)
        raise refusal or ModelAnswerError(
            f"{self.name} gave an answer that can't be used here.",
            "Nothing was changed; a larger model may do better.",
        )

    def _answer_limit(self, messages: Sequence[Message], tool: ToolSpec) -> int:
        """Return the token limit of an answer: what the prompt leaves, at most half the window.

        What is written about a short text is short as well, and a model that repeats itself keeps
        the server from whoever is waiting for it. Some servers reject a prompt and limit that
        exceed the window together; the factor allows for errors of the estimate.
        """
        window = self.context_window
        newest = prompt_tokens(messages) + estimate_tokens(json.dumps(tool.parameters))
        given = (each.content for each in messages if each.role == "user")
        about = _LEAST_ANSWER + 2 * sum(map(estimate_tokens, given))
        return max(window // 8, min(window // 2, window - newest * 5 // 4, about))

    def _new_reply(self, tools: Sequence[ToolSpec]) -> ReplyBuilder:
        """Create a builder; calls written as text are parsed except for hosted providers."""
        is_plain_server = self.api_base is not None or is_ollama(self.name)
        return ReplyBuilder(frozenset(tool.name for tool in tools) if is_plain_server else None)

    def _whole(self, response: Any, reply: ReplyBuilder) -> Reply:
        if not getattr(response, "choices", None):
            raise AttemptFailed(cut_off(self._endpoint))
        choice = response.choices[0]
        deque(reply.add_text(choice.message.content or ""), maxlen=0)
        deque(reply.finish_text(), maxlen=0)
        for number, call in enumerate(getattr(choice.message, "tool_calls", None) or ()):
            reply.add_call_piece(number, call.id, call.function.name, call.function.arguments)
        return self._reply(reply, str(choice.finish_reason), getattr(response, "usage", None))

    def _reply(self, reply: ReplyBuilder, provider_message: str, usage: Any) -> Reply:
        calls = reply.calls()
        finish = _FINISH.get(provider_message, "error")
        if calls and finish == "stop":
            finish = "tool_calls"
        told = (reply.is_data, reply.written)
        return Reply(reply.text, calls, finish, self._usage(usage), *told)

    async def _request(self, messages: list[Message]) -> dict[str, Any]:
        await asyncio.to_thread(self.prepare)
        engine = _load()
        _mute_warnings()
        options = self.options
        request: dict[str, Any] = {
            "model": _litellm_name(engine, self.name, self.api_base),
            "messages": [_as_openai(message) for message in messages],
            "timeout": self.first_token_seconds + options.idle_seconds,
            "num_retries": 0,
            "max_retries": 0,
            "max_tokens": options.max_tokens,
            "temperature": self._temperature,
            "api_base": self.api_base,
            # Without a key, litellm would send a provider's key to a custom endpoint.
            "api_key": self.api_key or ("none" if self.api_base else None),
            # Saves the import of an MCP client and a proxy just to look for MCP tools.
            "_skip_mcp_handler": True,
        }
        if is_ollama(self.name):
            # Ollama's default is a few thousand tokens, and it truncates longer prompts silently.
            request["num_ctx"] = self.context_window
        if takes_cache_marks(self.name):
            request["cache_control_injection_points"] = _cache_marks(messages)
        return {name: value for name, value in request.items() if value is not None}

    async def _in_time(self, work: Awaitable[T], *, first: bool = False, whole: bool = False) -> T:
        """Await one step of a request with its timeout, and translate its failure."""
        options = self.options
        limit = self.first_token_seconds if first else options.idle_seconds
        if whole:
            limit = self.first_token_seconds + options.idle_seconds
        try:
            async with asyncio.timeout(limit):
                return await work
        except TimeoutError:
            raise AttemptFailed(
                timed_out(self._endpoint, limit, first=first, whole=whole)
            ) from None
        except Exception as error:  # noqa: BLE001 - providers' code in litellm raises anything
            log.info(
                "%s: %s: %s",
                self.name,
                type(error).__name__,
                self._endpoint.provider_message(error),
            )
            failure = classify(error, self._endpoint)
            self._learn(failure.error)
            raise failure from None

    def _learn(self, error: ModelError) -> None:
        """Remember a window named in an error, or that tools aren't supported."""
        if isinstance(error, ModelToolsError):
            LIMITS.refusals.note("tools", self.api_base, self.name)
        if isinstance(error, ModelWindowError) and error.window is not None:
            LIMITS.learn_window(self.api_base, self.name, error.window)

    def _may_retry(self, failure: AttemptFailed, attempt: int) -> bool:
        return failure.again and attempt < self.options.retries

    def _pause(self, failure: AttemptFailed, attempt: int) -> float:
        """Return the delay before the next attempt, in seconds."""
        backoff = self.options.backoff_seconds * 2**attempt
        return failure.wait if failure.wait is not None else backoff

    @property
    def _temperature(self) -> float | None:
        """The temperature to request; None for models that accept only their default."""
        is_free = self.options.temperature is None and self.options.in_background
        if is_free and not LIMITS.refusals.has("temperature", self.api_base, self.name):
            return STEADY
        return self.options.temperature

    @property
    def _endpoint(self) -> Endpoint:
        return Endpoint(self.name, self.api_base, self.api_key)

    def _usage(self, usage: Any) -> Usage:
        prompt = int(getattr(usage, "prompt_tokens", 0) or 0)
        completion = int(getattr(usage, "completion_tokens", 0) or 0)
        cost = 0.0 if self.is_local else _price(self.name, prompt, completion, usage)
        return Usage(prompt, completion, cost)


def warm_up() -> None:
    """Import litellm and what its first call imports; for a background thread after first paint.

    Takes a few seconds, sends nothing, and is safe to call from anywhere at any time.
    """
    engine = _load()
    _mute_warnings()
    with suppress(Exception):
        # A mocked response exercises all of litellm's code except the connection.
        engine.completion(
            model="openai/warm-up",
            messages=[{"role": "user", "content": "."}],
            api_key="none",
            mock_response=".",
        )


def _load() -> Any:
    """Import litellm once, silenced, with every feature beyond the request disabled."""
    global _engine  # noqa: PLW0603 - one import for the whole process, like the module itself
    with _engine_lock:
        if _engine is None:
            os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
            os.environ["LITELLM_MODE"] = "PRODUCTION"
            with warnings.catch_warnings(), _gc_disabled():
                warnings.simplefilter("ignore")
                engine = importlib.import_module("litellm")
            _disable_extras(engine)
            _engine = engine
    return _engine


@contextmanager
def _gc_disabled() -> Iterator[None]:
    """Exempt the objects created by an import from garbage collection.

    The import creates a million objects that live as long as the process; traversing them takes
    100 ms for each collection, and a second at exit.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def _disable_extras(engine: Any) -> None:
    engine.suppress_debug_info = True
    engine.drop_params = True
    engine.modify_params = True
    engine.disable_hf_tokenizer_download = True
    engine.disable_streaming_logging = True
    engine.turn_off_message_logging = True
    # httpx closes a cancelled request by itself; aiohttp's sessions complain at exit.
    engine.disable_aiohttp_transport = True
    for name in ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router"):
        logger = logging.getLogger(name)
        logger.handlers = [logging.NullHandler()]
        logger.propagate = False
    for name in ("openai", "httpx", "httpcore", "anthropic"):
        # At lower levels these log whole prompts.
        logging.getLogger(name).setLevel(logging.WARNING)


def _mute_warnings() -> None:
    """Suppress litellm's warnings; repeated for each request, as the filters get reset."""
    for module in ("litellm", "pydantic"):
        warnings.filterwarnings("ignore", module=rf"{module}(\..*)?")


def _known_window(name: str) -> int | None:
    info = _metadata(name)
    return info.get("max_input_tokens") or info.get("max_tokens") or None


def _metadata(name: str) -> Mapping[str, Any]:
    """Return litellm's metadata of a model, if it is loaded; not for Ollama."""
    if _engine is None or is_ollama(name):
        return {}
    try:
        return dict(_engine.get_model_info(name))
    except Exception as error:  # noqa: BLE001 - for an unknown model litellm has a class of its own
        log.debug("litellm doesn't know %s: %s", name, type(error).__name__)
        return {}


def price_of(name: str, prompt: int, completion: int) -> float | None:
    """Return the price of a call in US dollars, or None if unknown.

    The first call takes seconds.
    """
    return _price(name, prompt, completion, None)


def _price(name: str, prompt: int, completion: int, usage: Any) -> float | None:
    try:
        costs = _load().cost_per_token(
            model=name, prompt_tokens=prompt, completion_tokens=completion, usage_object=usage
        )
    except Exception as error:  # noqa: BLE001 - "no price is known" comes in five classes
        log.debug("no price for %s: %s", name, type(error).__name__)
        return None
    return float(sum(costs))


def _litellm_name(engine: Any, name: str, api_base: str | None) -> str:
    """Return litellm's name of a model; a bare name at an endpoint means OpenAI's protocol."""
    if prefix_of(name) == "ollama":
        # litellm's "ollama" provider writes tools into the prompt instead of passing them on.
        return f"ollama_chat/{name.removeprefix('ollama/')}"
    if api_base is not None and prefix_of(name) not in {str(p.value) for p in engine.LlmProviders}:
        return f"openai/{name}"
    return name


def _cache_marks(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the cache breakpoints of a prompt: the system prompt, and the earlier messages.

    The newest user message isn't cached: it is prefixed by recalled notes, which the next prompt
    won't repeat.
    """
    newest = max((n for n, each in enumerate(messages) if each.role == "user"), default=0)
    marks: list[dict[str, Any]] = [{"location": "message", "role": "system"}]
    if newest and messages[newest - 1].role != "system":
        marks.append({"location": "message", "index": newest - 1})
    return marks


def _tool_options(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    return {"tools": [describe(tool) for tool in tools]} if tools else {}


def _as_openai(message: Message) -> dict[str, Any]:
    value: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.pictures:
        value["content"] = [
            {"type": "text", "text": message.content},
            *({"type": "image_url", "image_url": {"url": _as_url(p)}} for p in message.pictures),
        ]
    if message.tool_calls:
        value["content"] = message.content or None
        value["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        value["tool_call_id"] = message.tool_call_id or ""
        value["name"] = message.name or ""
    return value


def _as_url(picture: Picture) -> str:
    return f"data:{picture.media};base64,{b64encode(picture.data).decode()}"


def _add_chunk(chunk: Any, reply: ReplyBuilder) -> Iterator[ReplyEvent]:
    if not getattr(chunk, "choices", None):
        return
    delta = chunk.choices[0].delta
    if delta is None:
        return
    if reasoning := getattr(delta, "reasoning_content", None):
        yield ReplyReasoning(reasoning)
    for call in getattr(delta, "tool_calls", None) or ():
        function = call.function
        reply.add_call_piece(call.index, call.id, function.name, function.arguments)
    if delta.content:
        yield from reply.add_text(delta.content)


def _add_usage(one: Usage, other: Usage) -> Usage:
    costs = (one.cost_usd, other.cost_usd)
    return Usage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        None if None in costs else sum(cost for cost in costs if cost is not None),
    )
