"""What a model holds and takes where it runs: as its server tells, or as a refusal has shown.

What is loaded on a person's own machine holds what was set there, often a tenth of what the model
could. It is asked once, when the model is first used, and again after a while, as it may have been
reloaded. What a refusal has shown holds from then on, whatever else is told.
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
from kbtui.models.servers import Told, ollama_tells, window_at

SECONDS = 1.0
"""The most seconds that a first message waits for it."""
_FRESH_SECONDS: Final = 300.0
_LEAST: Final = 256
_MOST: Final = 100_000_000

_N = r"(?P<n>\d[\d,]*)"
_LIMITS: Final = tuple(
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
_PROMPTS: Final = tuple(
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
_SAYS_SO: Final = re.compile(
    r"context_length_exceeded|exceed_context_size|"
    r"(?:exceeds?|longer than|greater than) (?:the |this )?(?:maximum |model's |available )?"
    r"context (?:length|window|size)|"
    r"context (?:length|window|size) (?:was |is |has been )?exceeded|"
    r"(?:prompt|input) is too long|reduce the length of the (?:input )?(?:messages|prompt)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """That a prompt was too long, with the `window` and the `prompt`'s tokens where it is told."""

    window: int | None = None
    prompt: int | None = None


def overflow_in(text: str) -> Overflow | None:
    """Read a refusal for too long a prompt, in the words of any server; None if it is another."""
    window = _named(_LIMITS, text)
    if window is None and not _SAYS_SO.search(text):
        return None
    return Overflow(window, _named(_PROMPTS, text))


class Limits:
    """What is known of models, by endpoint and name.

    Windows for as long as this process runs, `refusals` for some days.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[tuple[str, str], tuple[float, Told]] = {}
        self._limits: dict[tuple[str, str], int] = {}
        self.refusals = Refusals()

    def window(self, base: str | None, model: str) -> int | None:
        """The window as the server told it, if it was asked and did."""
        return self._as_told(base, model).window

    def takes_tools(self, base: str | None, model: str) -> bool:
        """False if the server says, or has shown, that the model takes no tools."""
        refused = self.refusals.has("tools", base, model)
        return not refused and self._as_told(base, model).tools is not False

    def limit(self, base: str | None, model: str) -> int | None:
        """The window that a refusal named."""
        return self._limits.get((base or "", model))

    def learn_window(self, base: str | None, model: str, window: int) -> None:
        """Note the window that a refusal named."""
        self._limits[base or "", model] = window

    def _as_told(self, base: str | None, model: str) -> Told:
        return self._told.get((base or "", model), (0.0, Told()))[1]

    def read(self, base: str | None, model: str, key: str) -> None:
        """Ask the server, unless that was done a short while ago; takes a second at most."""
        if base is None:
            return
        with self._lock:
            before = self._told.get((base, model))
            if before is not None and monotonic() - before[0] < _FRESH_SECONDS:
                return
            told = _ask(base, model, key)
            self._told[base, model] = monotonic(), told

    def forget(self) -> None:
        """Forget everything, as a new process would."""
        self._told.clear()
        self._limits.clear()
        self.refusals.forget()


LIMITS = Limits()


def _ask(base: str, model: str, key: str) -> Told:
    bare = model.split("/", 1)[-1]
    if is_ollama(model):
        return ollama_tells(base.rstrip("/"), bare, SECONDS)
    return Told(window_at(base, (bare, model), key, SECONDS))


def _named(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        if found := pattern.search(text):
            number = int(found["n"].replace(",", "")[:12] or 0)
            if _LEAST <= number <= _MOST:
                return number
    return None
