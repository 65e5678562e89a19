"""Whether tool calls that stood in an answer's text are the model's own.

A model may as well quote a call from a note or a page, or show what one looks like.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from kbtui.models.port import ToolCall
from kbtui.offline.language import holds, of_all

_COMPARED = 80  # characters of a call that can't be read
_QUOTES = dict.fromkeys(map(ord, "\"'`\\"))


def are_own(calls: Sequence[ToolCall], asked: str, given: Iterable[str], written: str = "") -> bool:
    """Return whether calls are the model's own, and nothing that it quotes or shows.

    Args:
        calls: What was read in its text.
        asked: The message that is answered; one about calls gets examples of them.
        given: All texts that the model was given.
        written: The text that they were read from; without calls it is one that can't be read.
    """
    if holds(asked, of_all("calls")):
        return False
    texts = [_squeezed(text) for text in given]
    if not calls:
        return not any(_squeezed(written)[:_COMPARED] in text for text in texts)
    return not any(
        call.name in text and all(any(form in text for form in forms) for forms in _texts_of(call))
        for call in calls
        for text in texts
    )


def _texts_of(call: ToolCall) -> list[set[str]]:
    """Return the texts in the arguments of a call, each plain and as JSON writes it."""
    arguments: Any = None
    with suppress(ValueError, RecursionError):
        arguments = json.loads(call.arguments)
    escaped = (True, False)
    return [
        {_squeezed(text), *(_squeezed(json.dumps(text, ensure_ascii=each)) for each in escaped)}
        for text in _texts_in(arguments)
    ]


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(each)


def _squeezed(text: str) -> str:
    """Return a text without what differs in quotations: blanks, quotes, and their escapes."""
    return "".join(text.split()).translate(_QUOTES)
