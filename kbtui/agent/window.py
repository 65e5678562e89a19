"""The part of a session that a prompt holds, and how it is made sound for any provider."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kbtui.models.port import Message
from kbtui.models.tokens import message_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kbtui.sessions.store import SessionMessage

WITHHELD = "[withheld: this drew on a private entry, which only local models may read]"
UNFINISHED = "[no result: the turn was interrupted]"


def session_window(
    messages: Sequence[SessionMessage],
    *,
    most_messages: int,
    most_tokens: int,
    is_local: bool,
    count: Callable[[Message], int] = message_tokens,
) -> list[Message]:
    """The newest messages that fit both limits, beginning with something that the user said.

    Turns are kept or left out whole, so that no tool call is parted from its result. At least
    the newest turn is there, however long it is.
    """
    kept: list[list[Message]] = []
    number = tokens = 0
    for turn in reversed(_turns(messages)):
        shown = _sound(turn, is_local=is_local)
        number += len(shown)
        tokens += sum(map(count, shown))
        if kept and (number > most_messages or tokens > most_tokens):
            break
        kept.append(shown)
    return [message for turn in reversed(kept) for message in turn]


def _turns(messages: Sequence[SessionMessage]) -> list[list[SessionMessage]]:
    """Cut a session before each message of the user's; what stands before the first is left out."""
    turns: list[list[SessionMessage]] = []
    for message in messages:
        if message.role == "user":
            turns.append([message])
        elif turns:
            turns[-1].append(message)
    return turns


def _sound(turn: Sequence[SessionMessage], *, is_local: bool) -> list[Message]:
    """A turn in which every tool call has its result right behind it, and nothing else is odd."""
    results = {
        each.tool_call_id: _shown(each, is_local=is_local) for each in turn if each.role == "tool"
    }
    sound: list[Message] = []
    for stored in turn:
        if stored.role == "tool":
            continue
        message = _shown(stored, is_local=is_local)
        if not message.content and not message.tool_calls:
            continue
        sound.append(message)
        sound += [
            results.get(call.id)
            or Message("tool", UNFINISHED, tool_call_id=call.id, name=call.name)
            for call in message.tool_calls
        ]
    if sound and sound[-1].role != "assistant":
        # A turn that failed before its answer; roles must alternate for some providers.
        sound.append(Message("assistant", "[no answer: the turn was interrupted]"))
    return sound


def _shown(stored: SessionMessage, *, is_local: bool) -> Message:
    message = stored.as_prompt()
    if stored.meta.get("private") and not is_local:
        message = replace(message, content=WITHHELD)
        if message.tool_calls:
            calls = tuple(replace(call, arguments="{}") for call in message.tool_calls)
            message = replace(message, tool_calls=calls)
    return message
