"""ShareGPT's JSON, which many programs write: lists of turns with ``from`` and ``value``.

Variants have ``role`` and ``content``, or pairs; the file is a list, an object or JSON Lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import digest, line_of, to_markdown, words_of
from kbtui.importers.port import ImportedConversation, ImportedMessage, Item, Role, Skipped
from kbtui.importers.reading import (
    Record,
    conversation,
    drained,
    fields_of,
    json_lines,
    json_list,
    json_source,
    paragraphs,
    texts_in,
)

_LISTS = ("conversations", "messages", "conversation", "items")
_SIGNATURE = re.compile(
    rb'"(?:conversations?|messages|items)"\s*:\s*\[\s*\{\s*'
    rb'(?:"(?:id|name|weight|value|content|loss)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[\w.]+)\s*,\s*)*'
    rb'"(?:from|role|human)"\s*:\s*"'
)
_MODELS = ("assistant", "model", "gpt", "chatgpt", "bing", "bard", "ai", "claude")
_ROLES: dict[str, Role] = {"human": "user", "user": "user", **dict.fromkeys(_MODELS, "assistant")}


def _is_export(head: bytes) -> bool:
    return bool(_SIGNATURE.search(head) and fields_of(head).intersection(_LISTS))


def _conversations(opened: OpenedExport, name: str) -> Iterator[Item]:
    taken: dict[str, int] = {}
    loose_turns: list[Record] = []
    for number, record in enumerate(_records(opened, name), 1):
        if isinstance(record, Skipped):
            yield record
        elif turns := _turns(record):
            found = _conversation(record, turns, taken)
            yield found or Skipped(
                f"{line_of(name)}, number {number}", "Nobody says anything in it."
            )
        else:
            loose_turns.append(record)
    if loose_turns and (found := _conversation(Record(), loose_turns, taken)):
        yield found


def _records(opened: OpenedExport, name: str) -> Iterator[Record | Skipped]:
    text = opened.head(name).lstrip(b"\xef\xbb\xbf \t\r\n")
    first = text.split(b"\n", 1)[0].rstrip()
    if text.startswith(b"{") and (first.endswith(b"}") or len(first) == len(text.rstrip())):
        return json_lines(opened, name)
    return json_list(opened, name)


def _turns(record: Record) -> list[Record]:
    return next(filter(None, map(record.records, _LISTS)), [])


def _conversation(
    record: Record, turns: list[Record], taken: dict[str, int]
) -> ImportedConversation | None:
    id_, title = record.line("id"), record.line("title")
    record.clear()  # it is as large as what comes of it
    messages = [each for turn in drained(turns) for each in _messages(turn)]
    if not messages:
        return None
    name = id_ or digest(*(each.text for each in messages[:2]))
    taken[name] = taken.get(name, 0) + 1
    if taken[name] > 1:  # conversations often begin with the same words
        name = f"{name}-{taken[name]}"
    return conversation(name, title, messages)


def _messages(turn: Record) -> Iterator[ImportedMessage]:
    if "human" in turn and "assistant" in turn:
        parts = [("human", "human"), ("gpt", "assistant")]
    else:
        speaker = turn.get("from", turn.get("role"))
        parts = [(line_of(speaker).lower(), "value" if "value" in turn else "content")]
    time = turn.time("timestamp", "create_time")
    for speaker, name in parts:
        role = _ROLES.get(speaker)
        text = paragraphs(map(words_of, texts_in(turn.get(name))))
        if text.startswith('<div class="markdown'):
            text = to_markdown(text)
        if role and text:
            yield ImportedMessage(role, text, time)


SOURCE = json_source("ShareGPT", "sharegpt", _is_export, _conversations)
