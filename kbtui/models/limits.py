"""The context window and tool support of a model, as reported by its server or shown by an error.

A local server's window is a setting, often a tenth of the model's maximum. It is queried when the
model is first used, and again after a while in case the model was reloaded. A limit named in an
error overrides everything else.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Final

from kbtui.models.providers import is_ollama
from kbtui.models.refusals import Refusals
from kbtui.models.servers import ModelReport, ollama_report, window_at

SECONDS = 1.0
"""The longest that a first message waits for the query, in seconds."""
_FRESH_SECONDS: Final = 300.0
_MIN_WINDOW: Final = 256
_MAX_WINDOW: Final = 100_000_000

_N = r"(?P<n>\d[\d,]*)"
_WINDOW_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"exceeds the available context size \({_N}",  # llama.cpp, Ollama
        rf"context length of only {_N}",  # LM Studio
        rf"n_ctx\W+{_N}",  # LM Studio, and llama.cpp's body
        rf"(?:maximum|model's) context length (?:is|of)(?: only)? {_N}",  # vLLM, OpenAI, DeepSeek
        rf"maximum model length of {_N}",  # vLLM
        rf"longer than the model's context length \({_N}",  # SGLang
        rf"max_new_tokens` must be <= {_N}",  # text-generation-inference
        rf"exceed context window of {_N}",  # llama-cpp-python
        rf"tokens > {_N} maximum",  # Anthropic
        rf"exceed context limit: [\d,]+ \+ [\d,]+ > {_N}",  # Anthropic
        rf"maximum number of tokens allowed \({_N}",  # Gemini
        rf"too large for model with {_N} maximum context",  # Mistral
        rf"maximum prompt length is {_N}",  # xAI
        rf"current length is [\d,]+ while limit is {_N}",  # Cerebras
        rf"exceed the configured limit of {_N}",  # OpenAI
    )
)
_PROMPT_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"request \({_N} tokens\)",
        rf"keep the first {_N} tokens",
        rf"n_keep\W+{_N}",
        rf"n_prompt_tokens\W+{_N}",
        rf"{_N} in the messages",
        rf"(?:resulted in|request has|requested(?: about)?|contains|passed|too long:) {_N}",
        rf"(?:the input|tokens|token count) \({_N}",
        rf"\(length {_N}",
        rf"current length is {_N} while",
    )
)
_OVERFLOW: Final = re.compile(
    r"context_length_exceeded|exceed_context_size|"
    r"(?:exceeds?|longer than|greater than) (?:the |this )?(?:maximum |model's |available )?"
    r"context (?:length|window|size)|"
    r"context (?:length|window|size) (?:was |is |has been )?exceeded|"
    r"(?:prompt|input) is too long|reduce the length of the (?:input )?(?:messages|prompt)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """A prompt that was too long: `window` and `prompt` in tokens, if the error named them."""

    window: int | None = None
    prompt: int | None = None


def overflow_in(text: str) -> Overflow | None:
    """Parse any known server's "prompt too long" error; return None for other errors."""
    window = _first_number(_WINDOW_PATTERNS, text)
    if window is None and not _OVERFLOW.search(text):
        return None
    return Overflow(window, _first_number(_PROMPT_PATTERNS, text))


class Limits:
    """Known limits of models by endpoint and name.

    Windows are remembered for the lifetime of the process, `refusals` for some days.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_model: dict[tuple[str, str], tuple[float, ModelReport]] = {}
        self._limits: dict[tuple[str, str], int] = {}
        self.refusals = Refusals()

    def window(self, base: str | None, model: str) -> int | None:
        """Return the window that the server reported, if any."""
        return self._reported(base, model).window

    def takes_tools(self, base: str | None, model: str) -> bool:
        """Return False if the server reported, or an error showed, that tools aren't supported."""
        refused = self.refusals.has("tools", base, model)
        return not refused and self._reported(base, model).tools is not False

    def limit(self, base: str | None, model: str) -> int | None:
        """Return the window named in an earlier error, if any."""
        return self._limits.get((base or "", model))

    def learn_window(self, base: str | None, model: str, window: int) -> None:
        """Record the window named in an error."""
        self._limits[base or "", model] = window

    def _reported(self, base: str | None, model: str) -> ModelReport:
        return self._by_model.get((base or "", model), (0.0, ModelReport()))[1]

    def read(self, base: str | None, model: str, key: str) -> None:
        """Query the server unless that happened recently; takes a second at most."""
        if base is None:
            return
        with self._lock:
            before = self._by_model.get((base, model))
            if before is not None and monotonic() - before[0] < _FRESH_SECONDS:
                return
            told = _ask(base, model, key)
            self._by_model[base, model] = monotonic(), told

    def forget(self) -> None:
        """Reset to the state of a new process."""
        self._by_model.clear()
        self._limits.clear()
        self.refusals.forget()


LIMITS = Limits()


def _ask(base: str, model: str, key: str) -> ModelReport:
    bare = model.split("/", 1)[-1]
    if is_ollama(model):
        return ollama_report(base.rstrip("/"), bare, SECONDS)
    return ModelReport(window_at(base, (bare, model), key, SECONDS))


def _first_number(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        if found := pattern.search(text):
            number = int(found["n"].replace(",", "")[:12] or 0)
            if _MIN_WINDOW <= number <= _MAX_WINDOW:
                return number
    return None
