"""Telegram: the JSON export of the desktop program, of one chat or all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import words_of
from kbtui.importers.messengers import ChatLine, by_month
from kbtui.importers.port import Item, Source
from kbtui.importers.reading import (
    Record,
    Records,
    drained,
    fields_of,
    file_of,
    has_any,
    json_list,
    json_members,
    place_of,
    read_each,
    read_records,
    record_of,
    text_of,
)

_KINDS = {"voice_message": "recording", "audio_file": "recording", "sticker": "sticker"}
_OWNER = re.compile(rb'"personal_information"\s*:\s*\{[^{}]*"user_id"\s*:\s*(\d+)')
_FILES = ("photo", "file")
_OMITTED_KEYS = (
    "poll",
    "location_information",
    "contact_information",
    "game_title",
    "invoice_information",
)


def _exports(opened: OpenedExport) -> Iterator[tuple[str, bool]]:
    """Yield the export files, each with whether it contains all chats."""
    for name, head in json_members(opened):
        fields = fields_of(head)
        if {"name", "type", "id", "messages"} <= fields and b'"from' in head:
            yield name, False
        elif "chats" in fields and fields & {"about", "personal_information"}:
            yield name, True


def _read(opened: OpenedExport) -> Iterator[Item]:
    whole = dict(_exports(opened))

    def chats(opened: OpenedExport, name: str) -> Iterator[Item]:
        owner = _owner(opened, name) if whole[name] else ""
        beside: Records = []
        records = json_list(opened, name, "chats.list" if whole[name] else "", beside)
        yield from read_records(records, lambda each: _chat(opened, name, each, owner))
        for left in (each.record("left_chats") for each in beside):
            for chat in left.records("list"):
                yield from _chat(opened, name, chat, owner)

    return read_each(opened, whole, chats, are_known=True)


SOURCE = Source("Telegram", "telegram", has_any(_exports), _read)


def _owner(opened: OpenedExport, name: str) -> str:
    """Return the owner's id as it stands in messages, or "" if the export doesn't name them."""
    found = _OWNER.search(opened.head(name))
    return f"user{found[1].decode()}" if found else ""


def _chat(opened: OpenedExport, name: str, chat: Record, owner: str) -> Iterator[Item]:
    title = chat.line("name") or "Saved messages"
    id_ = f"{chat.get('id')}"
    messages = chat.records("messages")
    kind = chat.get("type")
    if not owner and kind in ("personal_chat", "bot_chat"):
        # In a chat of two, the owner is the other writer.
        writers = {each.line("from_id") for each in messages} - {"", f"user{id_}"}
        owner = writers.pop() if len(writers) == 1 else ""
    files: dict[str, str] = {}
    folder = PurePosixPath(name).parent
    names = frozenset(opened.names)
    own_id = None if kind == "saved_messages" else owner or "nobody"
    chat.clear()  # it is as large as what comes of it
    lines = (
        _line(each, _files_of(each, folder, names, files), own_id) for each in drained(messages)
    )
    yield from by_month(id_, title, lines, place_of(name, title))
    for place, label in files.items():
        yield file_of(opened, place, label)


def _line(message: Record, files: list[tuple[str, str]], owner: str | None) -> ChatLine:
    """Convert a message with the files of `_files_of`; if `owner` is None, all are the user's."""
    author = message.line("from") or "Somebody"
    time, id_ = message.time("date_unixtime", "date"), f"{message.get('id')}"
    # A forwarded message was written by somebody else.
    source = message.line("forwarded_from")
    is_owners = owner in (None, message.line("from_id")) and not source
    if message.get("type") == "service":
        return ChatLine(author, "", time, id_, (), ("notice of the program",), is_own=is_owners)
    text = _text(message.get("text") or message.get("text_entities"))
    if source and text:
        text = f"(forwarded from {source}) {text}"
    named = [key.partition("_")[0] for key in _OMITTED_KEYS if message.get(key)]
    named += [kind for _, kind in files if kind]
    attached = tuple(label for label, _ in files)
    return ChatLine(author, text, time, id_, attached, tuple(named), is_own=is_owners)


def _files_of(
    message: Record, folder: PurePosixPath, names: frozenset[str], here: dict[str, str]
) -> list[tuple[str, str]]:
    """Return each file's name, and its kind if it is missing; add the others to `here` by path."""
    found: list[tuple[str, str]] = []
    for key in _FILES:
        if not (path := message.line(key)):
            continue
        place, label = str(folder / path), message.line("file_name")
        kind = "picture" if key == "photo" else _KINDS.get(message.line("media_type"), "file")
        if place in names:
            here[place] = label = label or PurePosixPath(path).name
        found.append((label or kind, "" if place in names else kind))
    return found


def _text(value: Any) -> str:
    if isinstance(value, list):
        value = "".join(text_of(each) or _part(record_of(each)) for each in value)
    return words_of(value)


def _part(part: Record) -> str:
    """Return a part of a text with the address behind it, if it doesn't say it itself."""
    text, address = part.text("text"), part.line("href")
    return f"[{text}]({address})" if address and address != text else text
