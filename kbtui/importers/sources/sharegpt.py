"""ShareGPT's JSON, as many programs write it: lists of turns, ``from`` and ``value``.

Also with ``role`` and ``content``, and in pairs; a list, one object, or one a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kbtui.importers.markup import digest, line_of, to_markdown, words_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.port import ImportedConversation, Item, Said, Skipped
from kbtui.importers.reading import (
    conversation,
    fields_of,
    json_lines,
    json_list,
    json_source,
    mappings,
    time_of,
)

_LISTS = ("conversations", "messages", "conversation", "items")
_SIGN = re.compile(
    rb'"(?:conversations?|messages|items)"\s*:\s*\[\s*\{\s*'
    rb'(?:"(?:id|name|weight|value|content|loss)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[\w.]+)\s*,\s*)*'
    rb'"(?:from|role|human)"\s*:\s*"'
)
_ROLES = {"human": "user", "user": "user", "assistant": "assistant", "model": "assistant"}
_ROLES |= dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "ai", "claude"), "assistant")


def _is_export(head: bytes) -> bool:
    return bool(_SIGN.search(head) and fields_of(head).intersection(_LISTS))


def _conversations(opened: OpenedExport, name: str) -> Iterator[Item]:
    taken: dict[str, int] = {}
    alone: list[dict[str, Any]] = []
    for number, record in enumerate(_records(opened, name), 1):
        if isinstance(record, Skipped):
            yield record
        elif _turns(record):
            found = _conversation(record, taken)
            yield found or Skipped(
                f"{line_of(name)}, number {number}", "Nobody says anything in it."
            )
        else:
            alone.append(record)
    if alone and (found := _conversation({"conversations": alone}, taken)):
        yield found


def _records(opened: OpenedExport, name: str) -> Iterator[dict[str, Any] | Skipped]:
    text = opened.head(name).lstrip(b"\xef\xbb\xbf \t\r\n")
    first = text.split(b"\n", 1)[0].rstrip()
    if text.startswith(b"{") and (first.endswith(b"}") or len(first) == len(text.rstrip())):
        return json_lines(opened, name)
    return json_list(opened, name)


def _turns(record: dict[str, Any]) -> list[dict[str, Any]]:
    return next((turns for key in _LISTS if (turns := mappings(record.get(key)))), [])


def _conversation(record: dict[str, Any], taken: dict[str, int]) -> ImportedConversation | None:
    said = [each for turn in _turns(record) for each in _said(turn)]
    if not said:
        return None
    name = line_of(record.get("id")) or digest(*(each.text for each in said[:2]))
    taken[name] = taken.get(name, 0) + 1
    if taken[name] > 1:  # many begin with the same words
        name = f"{name}-{taken[name]}"
    return conversation(name, line_of(record.get("title")), said)


def _said(turn: dict[str, Any]) -> Iterator[Said]:
    if "human" in turn and "assistant" in turn:
        pairs: list[tuple[Any, Any]] = [("human", turn["human"]), ("gpt", turn["assistant"])]
    else:
        pairs = [(turn.get("from", turn.get("role")), turn.get("value", turn.get("content")))]
    time = time_of(turn.get("timestamp", turn.get("create_time")))
    for who, value in pairs:
        role = _ROLES.get(line_of(who).lower())
        blocks = [words_of(each.get("text")) for each in mappings(value)]
        text = words_of(value) or "\n\n".join(filter(None, blocks))
        if text.startswith('<div class="markdown'):
            text = to_markdown(text)
        if text and role == "user":
            yield Said("user", text, time)
        elif text and role:
            yield Said("assistant", text, time)


SOURCE = json_source("ShareGPT", "sharegpt", _is_export, _conversations)
