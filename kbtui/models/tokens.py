"""How many tokens a text has, closely enough to keep a budget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.models.port import Message

_ASCII_PER_TOKEN = 4.0
_OTHER_BYTES_PER_TOKEN = 2.5
_PER_MESSAGE = 4


def estimate_tokens(text: str) -> int:
    """Estimate a text's tokens from its bytes.

    Within a third of OpenAI's cl100k on prose, markdown, code, German and Chinese, and rather
    above than below. The models' own tokenizers differ from each other by as much, and loading
    one takes seconds.
    """
    ascii_bytes = len(text.encode("ascii", "ignore"))
    other_bytes = len(text.encode("utf-8", "replace")) - ascii_bytes
    return math.ceil(ascii_bytes / _ASCII_PER_TOKEN + other_bytes / _OTHER_BYTES_PER_TOKEN)


def message_tokens(message: Message) -> int:
    """Estimate the tokens of one message, with its tool calls and its wrapping."""
    calls = sum(estimate_tokens(call.name + call.arguments) + 8 for call in message.tool_calls)
    return _PER_MESSAGE + estimate_tokens(message.content) + calls


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
