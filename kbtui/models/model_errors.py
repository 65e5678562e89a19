"""Translates litellm's exceptions into errors that a user can act on.

litellm isn't imported here: its exceptions are classified by class name, status and text, because
it reports the same failure differently for each provider (a refused connection is a 500 for one
and an `APIConnectionError` for another). API keys never get into a message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time

from kbtui.errors import (
    ModelAccessError,
    ModelAnswerError,
    ModelError,
    ModelOverloadedError,
    ModelSlowError,
    ModelToolsError,
    ModelUnreachableError,
    ModelWindowError,
)
from kbtui.models.limits import overflow_in
from kbtui.models.providers import OLLAMA_BASE, host_of, is_ollama, provider_of
from kbtui.redaction.redact import redact
from kbtui.text import counted, json_object, shorten

_CONNECTION = re.compile(
    r"connection error|all connection attempts failed|name or service not known|"
    r"nodename nor servname|connection refused|temporary failure in name resolution|"
    r"cannot connect to host|network is unreachable",
    re.IGNORECASE,
)
_CONNECTION_CLASSES = frozenset(
    {"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "gaierror"}
)
_CUT = re.compile(
    r"peer closed connection|incomplete chunked read|incomplete read|server disconnected|"
    r"connection reset",
    re.IGNORECASE,
)
_CUT_CLASSES = frozenset({"RemoteProtocolError", "ReadError"})
_NO_ANSWER = re.compile(
    r"error parsing chunk|expecting value|unterminated string|codec can't decode", re.IGNORECASE
)
_NO_MODEL = re.compile(
    r"empty or invalid response from llm endpoint|error in response object$", re.IGNORECASE
)
_NO_ANSWER_CLASSES = frozenset({"JSONDecodeError", "DecodingError", "UnicodeDecodeError"})
_NO_KEY = re.compile(
    r"missing .{0,40}(?:api[ _-]?key|credentials|access token)|api_key client option", re.IGNORECASE
)
_NO_CREDIT = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance|billing", re.IGNORECASE
)
_UNKNOWN_PROVIDER = re.compile(r"LLM Provider NOT provided", re.IGNORECASE)
_SHORTEST_KEY = 8
_SET_BASE = "`kbtui config set models.chat.api_base"
_VERSION = re.compile(r"/v\d+\w*(?:/|$)")
_WEB_PAGE = re.compile(r"<!doctype html|<html\b", re.IGNORECASE)
_AFTER = re.compile(r"Traceback \(most recent call last\)| Original exception:")
_BROKE_OFF_CLASS = "MidStreamFallbackError"
_NOISE = re.compile(r"^(?:litellm\.\w+: |\w+(?:Error|Exception)\b:? ?-? ?)+")
_REPEATING = re.compile(r"model is repeating the same chunk", re.IGNORECASE)
_ABOUT_FORM = re.compile(r"\btools?\b|tool_choice|response_format|function.?call", re.IGNORECASE)
_TOOLS = r"(?:tools?|functions?|tool[ _-]use|tool[ _-]call(?:s|ing)?|function[ _-]call(?:s|ing)?)"
_NO_TOOLS = re.compile(
    rf"(?:do(?:es)?n.?t|do(?:es)? not|cannot|can't) (?:support|handle|use|accept) {_TOOLS}\b|"
    rf"\b{_TOOLS} (?:is|are) (?:not|un)[ -]?(?:supported|enabled|available|allowed)|"
    r"no endpoints found that support tool use|"  # OpenRouter
    r"tools? param requires --jinja|"  # llama.cpp
    r"tool choice requires --enable-auto-tool-choice",  # vLLM
    re.IGNORECASE,
)
_UNAUTHORISED, _PAYMENT, _FORBIDDEN, _NOT_FOUND, _BUSY, _SERVER = 401, 402, 403, 404, 429, 500
_MAX_RETRY_WAIT_SECONDS = 30.0


class AttemptFailed(Exception):  # noqa: N818 - carries the error, and never leaves this package
    """A failed attempt: the error to show, whether to retry, and the delay asked for."""

    def __init__(
        self, error: ModelError, *, again: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.again = again
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model and its endpoint, as named in error messages."""

    model: str
    api_base: str | None = None
    key: str = ""

    @property
    def place(self) -> str:
        """The endpoint's name for people."""
        if self.api_base:
            return host_of(self.api_base)
        if is_ollama(self.model):
            return f"Ollama at {host_of(OLLAMA_BASE)}"
        provider = provider_of(self.model)
        return provider.title if provider else "the provider"

    def provider_message(self, error: BaseException) -> str:
        """Return the provider's message as one line, with secrets redacted."""
        text = str(error)
        if len(self.key) >= _SHORTEST_KEY:
            text = text.replace(self.key, "[key]")
        text = _NOISE.sub("", _AFTER.split(text, maxsplit=1)[0])
        text = "a web page" if _WEB_PAGE.search(text) else _json_message(text)
        return shorten(redact(text).text, 240)

    @property
    def address_hint(self) -> str:
        """A hint for an address that doesn't speak the protocol."""
        base = (self.api_base or "").rstrip("/")
        if is_ollama(self.model) and base.endswith("/v1"):
            return f"Ollama's own address has no /v1: {_SET_BASE} {base.removesuffix('/v1')}`."
        if base and not is_ollama(self.model) and not _VERSION.search(base):
            return f"Its address lacks a part, most likely /v1: {_SET_BASE} {base}/v1`."
        return "Try again; if it stays so, check its address (often it ends in /v1)."


def classify(error: BaseException, endpoint: Endpoint) -> AttemptFailed:
    """Translate an exception of a request, and decide whether a retry makes sense."""
    explained = explain(error, endpoint)
    wait = _retry_after(error)
    passing = isinstance(explained, ModelOverloadedError) or (
        isinstance(explained, ModelUnreachableError) and _cannot_connect(error)
    )
    return AttemptFailed(
        explained, again=passing and (wait or 0) <= _MAX_RETRY_WAIT_SECONDS, wait=wait
    )


def speaks_of_temperature(error: ModelError) -> bool:
    """Return whether a request was rejected because of its temperature."""
    return type(error) is ModelError and "temperature" in error.message


def explain(error: BaseException, endpoint: Endpoint) -> ModelError:
    """Translate an exception into an error that says what failed, why, and what to do."""
    names = set(_class_names(error))
    status = getattr(error, "status_code", None)
    text = str(error)
    if _REPEATING.search(text):
        return ModelAnswerError(
            f"{endpoint.model} kept repeating itself.", "Try again, or choose another model."
        )
    for explained in (
        _too_long(names, status, text, endpoint),
        _no_tools(status, text, error, endpoint),
        _access(names, status, text, error, endpoint),
        _network(names, text, error, endpoint),
        _no_protocol(names, text, error, endpoint),
        _overload(names, status, error, endpoint),
        _refusal(names, error, endpoint),
    ):
        if explained is not None:
            return explained
    return ModelError(
        f"{endpoint.place} answered with an error: {endpoint.provider_message(error)}", _SEE_LOG
    )


def timed_out(
    endpoint: Endpoint, seconds: float, *, first: bool, whole: bool = False
) -> ModelUnreachableError:
    """Return the error for a timeout."""
    if whole:
        return ModelSlowError(
            f"{endpoint.place} gave no whole answer in {seconds:g} seconds.",
            "Give it longer with models.first_token_seconds, or choose a faster model.",
        )
    if first:
        return ModelUnreachableError(
            f"{endpoint.place} sent nothing for {seconds:g} seconds.",
            "Try again, or give it longer with models.first_token_seconds.",
        )
    return ModelUnreachableError(
        f"{endpoint.place} stopped in the middle of its answer for {seconds:g} seconds.",
        "Try again, or give it longer with models.idle_seconds.",
    )


def no_answer(endpoint: Endpoint) -> ModelAnswerError:
    """Return the error for a response that isn't the protocol's."""
    return ModelAnswerError(_not_the_protocol(endpoint), endpoint.address_hint)


def _not_the_protocol(endpoint: Endpoint) -> str:
    return f"{endpoint.place} sent something that isn't an answer."


def nothing_yet(endpoint: Endpoint, seconds: float, limit: float) -> str:
    """Return the notice that a server hasn't answered yet."""
    return (
        f"Nothing came from {endpoint.place} for {_format_duration(seconds)}. "
        f"It is waited for up to {_format_duration(limit)}."
    )


def cut_off(endpoint: Endpoint) -> ModelAnswerError:
    """Return the error for an answer cut before its end marker."""
    return ModelAnswerError(
        f"The answer from {endpoint.place} broke off before its end.", "Try again."
    )


def no_key(endpoint: Endpoint) -> ModelAccessError:
    """Return the error for a missing API key."""
    provider = provider_of(endpoint.model)
    variable = provider.variables[0] if provider else "KBTUI_API_KEY"
    return ModelAccessError(
        f"There is no key for {endpoint.model}.",
        f"Set {variable} in the environment, or store the key with `/model`.",
    )


def _retry_after(error: BaseException) -> float | None:
    """Parse ``Retry-After``, seconds or an HTTP date, into seconds from now."""
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None)
    asked = str(headers.get("retry-after") or "") if headers else ""
    try:
        seconds = float(asked)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(asked).timestamp() - time()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _format_duration(seconds: float) -> str:
    """Format a duration: short ones exactly, longer ones in minutes or hours."""
    for size, name, least in ((3600, "hour", 5400), (60, "minute", 90)):
        if seconds >= least:
            return counted(round(seconds / size), name)
    return f"{seconds:g} seconds" if seconds < 1 else counted(round(seconds), "second")


def _json_message(text: str) -> str:
    """Extract the message from an error's JSON body, if it has one."""
    value = json_object(text[max(0, text.find("{")) :])
    found = value.get("error") if value else None
    if isinstance(found, dict):
        found = found.get("message")
    return found if isinstance(found, str) else text


def _too_long(
    names: set[str], status: int | None, text: str, endpoint: Endpoint
) -> ModelError | None:
    if status in (_UNAUTHORISED, _FORBIDDEN, _BUSY):
        return None
    overflow = overflow_in(text)
    if overflow is None and "ContextWindowExceededError" not in names:
        return None
    window = overflow.window if overflow else None
    model = f"{endpoint.model} at {endpoint.place}"
    holds = f"the {counted(window, 'token')} that {model} holds" if window else f"{model} can hold"
    size = f" of {counted(overflow.prompt, 'token')}" if overflow and overflow.prompt else ""
    how = (
        "Load it with a larger context there, or start over with /new."
        if window
        else "Say what it holds: `kbtui config set models.chat.context_window 8192`."
    )
    message = f"The prompt{size} is longer than {holds}."
    return ModelWindowError(message, how, window, overflow.prompt if overflow else None)


def _no_tools(
    status: int | None, text: str, error: BaseException, endpoint: Endpoint
) -> ModelError | None:
    if status in (_UNAUTHORISED, _FORBIDDEN, _BUSY) or not _NO_TOOLS.search(text):
        return None
    return ModelToolsError(
        f"{endpoint.model} at {endpoint.place} takes no tools: {endpoint.provider_message(error)}",
        "Choose a model that takes them with `/model`, or let its server pass them on.",
    )


def _access(
    names: set[str], status: int | None, text: str, error: BaseException, endpoint: Endpoint
) -> ModelError | None:
    if _NO_KEY.search(text):
        return no_key(endpoint)
    if _UNKNOWN_PROVIDER.search(text):
        return ModelAccessError(
            f"There is no model {endpoint.model!r}.",
            "Write it as provider/model, e.g. ollama_chat/qwen3:8b or openai/gpt-5.4-mini.",
        )
    if status == _PAYMENT or _NO_CREDIT.search(text):
        return ModelAccessError(
            f"{endpoint.place} wants to be paid first: {endpoint.provider_message(error)}",
            "Check your credit there, or choose another model with `/model`.",
        )
    if status in (_UNAUTHORISED, _FORBIDDEN) or "AuthenticationError" in names:
        return _refused_key(error, endpoint)
    if (status == _NOT_FOUND or "NotFoundError" in names) and not _ABOUT_FORM.search(text):
        return _not_found(error, endpoint)
    return None


def _refused_key(error: BaseException, endpoint: Endpoint) -> ModelAccessError:
    provider_message = endpoint.provider_message(error)
    if endpoint.api_base and not endpoint.key:
        return ModelAccessError(
            f"{endpoint.place} wants a key, and none is known: {provider_message}",
            "Store one with `/model`, or set KBTUI_API_KEY.",
        )
    return ModelAccessError(
        f"{endpoint.place} refused the key: {provider_message}",
        "Check the key, or store another with `/model`.",
    )


def _not_found(error: BaseException, endpoint: Endpoint) -> ModelAccessError:
    """Distinguish an unknown model from a wrong address."""
    provider_message = endpoint.provider_message(error)
    bare = endpoint.model.split("/", 1)[-1]
    base = (endpoint.api_base or "").rstrip("/")
    strange = base.endswith("/v1") if is_ollama(endpoint.model) else not _VERSION.search(base)
    if base and strange and bare not in provider_message:
        return ModelAccessError(
            f"{endpoint.place} has nothing at the address {base}: {provider_message}",
            endpoint.address_hint,
        )
    hint = "`/model` lists what is there; check the name."
    if is_ollama(endpoint.model):
        hint = f"Fetch it with `ollama pull {bare}`."
    return ModelAccessError(
        f"{endpoint.place} doesn't know the model {endpoint.model}: {provider_message}", hint
    )


def _network(
    names: set[str], text: str, error: BaseException, endpoint: Endpoint
) -> ModelError | None:
    if _cannot_connect(error):
        start = (
            "Start Ollama with `ollama serve`"
            if is_ollama(endpoint.model)
            else ("Check the network and the endpoint")
        )
        return ModelUnreachableError(
            f"Can't reach {endpoint.place} for {endpoint.model}.",
            f"{start}, or choose another model with `/model`; `offline` always works.",
        )
    if "Timeout" in names or "TimeoutException" in names or "APITimeoutError" in names:
        return ModelUnreachableError(
            f"{endpoint.place} didn't answer in time.",
            "Try again, or give it longer with models.first_token_seconds.",
        )
    if names & _CUT_CLASSES or _CUT.search(text):
        return cut_off(endpoint)
    return None


def _no_protocol(
    names: set[str], text: str, error: BaseException, endpoint: Endpoint
) -> ModelError | None:
    if names & _NO_ANSWER_CLASSES or _NO_ANSWER.search(text):
        return no_answer(endpoint)
    if _NO_MODEL.search(text):
        # A web page or another program answered, so the address is wrong, not the request.
        return ModelUnreachableError(_not_the_protocol(endpoint), endpoint.address_hint)
    if _BROKE_OFF_CLASS in names:
        return ModelAnswerError(
            f"{endpoint.place} ended its answer with an error: {endpoint.provider_message(error)}",
            "Try again, or choose another model with `/model`.",
        )
    return None


def _cannot_connect(error: BaseException) -> bool:
    names = set(_class_names(error))
    return bool(names & _CONNECTION_CLASSES) or _CONNECTION.search(str(error)) is not None


def _overload(
    names: set[str], status: int | None, error: BaseException, endpoint: Endpoint
) -> ModelError | None:
    wait = _retry_after(error)
    asks = f"It asks to wait {_format_duration(wait)}. " if wait else ""
    if status == _BUSY or "RateLimitError" in names:
        return ModelOverloadedError(
            f"{endpoint.place} is over its limit of requests: {endpoint.provider_message(error)}",
            f"{asks or 'Wait a moment. '}Then try again, or choose another model with `/model`.",
        )
    if status is not None and status >= _SERVER and "APIConnectionError" not in names:
        return ModelOverloadedError(
            f"{endpoint.place} failed with {status}: {endpoint.provider_message(error)}",
            f"{asks}{_SERVER_HINTS.get(status, _LATER)}",
        )
    return None


def _refusal(names: set[str], error: BaseException, endpoint: Endpoint) -> ModelError | None:
    if "ContentPolicyViolationError" in names:
        return ModelAnswerError(
            f"{endpoint.place} refused to answer: {endpoint.provider_message(error)}",
            "Say it differently.",
        )
    if names & {"BadRequestError", "UnprocessableEntityError", "NotFoundError"}:
        return ModelError(
            f"{endpoint.place} rejected the request: {endpoint.provider_message(error)}",
            "If the model can't use tools, choose another with `/model`.",
        )
    return None


def _class_names(error: BaseException) -> Iterator[str]:
    """Yield the class names of an exception and its causes, base classes included."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))

        yield from (cls.__name__ for cls in type(current).__mro__)
        current = current.__cause__ or current.__context__


_LATER = "Try again in a while, or choose another model with `/model`."
_SERVER_HINTS = {
    502: "Nobody answers behind it: see whether the server itself runs, and what it logs.",
    503: "It is overloaded, or still loads its model: try again in a moment.",
    504: "Behind it nobody answered in time: see what the server itself logs.",
}
_SEE_LOG = "The log has more: see `kbtui doctor`."
