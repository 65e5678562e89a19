"""The part of a session that a prompt holds, and how it is made sound for any provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kbtui.agent.events import KEEP
from kbtui.agent.sources import quoted
from kbtui.memory.records.archive import Archive
from kbtui.models.port import Message, cut_to_tokens, estimate_tokens, message_tokens
from kbtui.sessions.store import SessionMessage
from kbtui.text import shorten

WITHHELD = "[withheld: this drew on a private entry, which only local models may read]"
UNFINISHED = "[no result: the turn was interrupted]"
_LAST_MESSAGES = 6
_LAST_SHARE = 4  # of the session's tokens, for the last turns of what is condensed
_LINE_WIDTH = 160
_SHORTEST_LINE = 24
_SPEAKERS = frozenset({"user", "assistant"})


@dataclass(frozen=True, slots=True)
class Condensed:
    """A stretch of a session that the archive holds: its messages' ids, and what it says of them.

    `when` is the time of the content as the archive writes it.
    """

    messages: tuple[int, int]
    summary: str
    when: str = ""

    def holds(self, message: SessionMessage) -> bool:
        """True if it stands for a message."""
        return self.messages[0] <= message.id <= self.messages[1]


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """The part of a session that a prompt holds: the newest messages, and what isn't condensed yet.

    What left it is `condensed`, and summed up; what fits no more and isn't condensed yet,
    `left_out`.
    """

    messages: tuple[Message, ...]
    condensed: tuple[Condensed, ...] = ()
    left_out: tuple[SessionMessage, ...] = ()


def condensed_of(archive: Archive, session: str) -> tuple[Condensed, ...]:
    """The words of the archive about a session, oldest first."""
    return tuple(
        Condensed(entry.messages, entry.content, entry.timestamp)
        for entry in archive.entries()
        if entry.session == session and entry.messages is not None
    )


def session_window(
    messages: Sequence[SessionMessage],
    *,
    most_messages: int,
    most_tokens: int,
    is_local: bool,
    condensed: Sequence[Condensed] = (),
) -> SessionWindow:
    """The newest messages that fit both limits, beginning with something that the user said.

    Turns are kept or left out whole, so that no tool call is parted from its result. Of what is
    condensed only the last few turns stay. At least the newest turn is there, however long it is.
    """
    kept: list[list[Message]] = []
    left_out: list[SessionMessage] = []
    number = tokens = 0
    gone = 0
    for turn in reversed(_turns(messages)):
        shown = _sound(turn, is_local=is_local)
        cost = sum(map(message_tokens, shown))
        more, longer = number + len(shown), tokens + cost
        is_known = all(any(each.holds(message) for each in condensed) for message in turn)
        is_recent = more <= _LAST_MESSAGES and longer <= most_tokens // _LAST_SHARE
        if kept and is_known and not is_recent:
            gone = gone or turn[-1].id
        elif kept and (more > most_messages or longer > most_tokens):
            most_tokens = tokens  # nothing older fits either: the prompt has no holes
            gone = gone or turn[-1].id
            left_out = [*([] if is_known else turn), *left_out]
        else:
            kept.append(shown)
            number, tokens = more, longer
    return SessionWindow(
        tuple(message for turn in reversed(kept) for message in turn),
        tuple(each for each in condensed if each.messages[0] <= gone),
        tuple(left_out),
    )


def earlier_text(window: SessionWindow, budget: int) -> str:
    """Sum up what a prompt doesn't hold of a conversation, within `budget` tokens.

    What was said last gets a place first.
    """
    said = [each for each in window.left_out if each.role in _SPEAKERS and each.content.strip()]
    width = max(_SHORTEST_LINE, min(_LINE_WIDTH, 3 * budget // max(1, len(said)) - 12))
    lines = [f"- {each.role}: {shorten(each.content, width)}" for each in reversed(said)]
    lines += [
        f"- [{each.when}] {each.summary.strip()}"
        for each in reversed(window.condensed)
        if each.summary.strip()
    ]
    kept: list[str] = []
    for line in lines:
        shown = line if estimate_tokens(line) <= budget else cut_to_tokens(line, budget).rstrip()
        if not shown and not kept:
            shown = shorten(line, max(_LINE_WIDTH, budget * 3))
        if not shown:
            kept.append("- (more was said before: memory_search finds it)")
            break
        budget -= estimate_tokens(shown)
        kept.append(shown)
    if not kept:
        return ""
    return "# Earlier in this conversation\n\n" + quoted("\n".join(reversed(kept)))


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
        if stored.role == "tool" or any(call.name == KEEP for call in stored.tool_calls):
            # A model that is shown a call which it can't make writes such calls into its answers.
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
