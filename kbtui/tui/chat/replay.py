"""A stored session as the items that its turns were shown as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.agent.events import Citation, TurnChange
from kbtui.text import shorten
from kbtui.tui.chat.cards import ToolItem, argument_details, argument_line, parsed_arguments
from kbtui.tui.chat.items import AnswerItem, Item, UserItem, citation_items

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kbtui.sessions.store import SessionMessage

_SUMMARY = 100


def replay(messages: Sequence[SessionMessage]) -> list[Item]:
    """The items of stored messages, laid out like a turn that is just over."""
    items: list[Item] = []
    tools: dict[str, ToolItem] = {}
    for message in messages:
        turn = message.turn or ""
        if message.role == "user":
            items.append(UserItem(text=message.content, turn=turn, message=message.id))
        elif message.role == "assistant":
            items += _answer(message, turn)
            for call in message.tool_calls:
                arguments = parsed_arguments(call.arguments)
                tools[call.id] = ToolItem(
                    tool=call.name,
                    arguments=argument_line(arguments),
                    details=argument_details(arguments),
                    turn=turn,
                )
                items.append(tools[call.id])
        elif message.role == "tool":
            _finish(tools.get(message.tool_call_id or ""), message)
    return items


def _answer(message: SessionMessage, turn: str) -> list[Item]:
    if not message.content.strip():
        return []
    answer = AnswerItem(
        text=message.content, turn=turn, message=message.id, interrupted=message.interrupted
    )
    return [answer, *citation_items(_citations(message.meta), turn)]


def _finish(tool: ToolItem | None, message: SessionMessage) -> None:
    if tool is None:
        return
    meta = message.meta
    tool.output = message.content
    tool.ok = bool(meta.get("ok", True))
    tool.summary = str(meta.get("summary") or shorten(message.content, _SUMMARY))
    tool.proposal = str(meta.get("proposal") or "")
    tool.changes = tuple(
        TurnChange(str(change.get("commit", "")), tuple(map(str, change.get("paths", ()))))
        for change in meta.get("changes", ())
    )


def _citations(meta: Mapping[str, Any]) -> list[Citation]:
    found = []
    for stored in meta.get("citations", ()):
        first, last = stored["lines"]
        found.append(
            Citation(stored["n"], stored["path"], first, last, str(stored.get("title", "")))
        )
    return found
