"""Telegram: the JSON of its desktop program, of one chat or of all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from kbtui.importers.markup import line_of, words_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.people import ChatLine, by_month
from kbtui.importers.port import Item, Skipped, Source
from kbtui.importers.reading import (
    fields_of,
    file_of,
    json_list,
    json_members,
    mapping,
    mappings,
    place_of,
    read_each,
    time_of,
)

_KINDS = {"voice_message": "recording", "audio_file": "recording", "sticker": "sticker"}
_OWNER = re.compile(rb'"personal_information"\s*:\s*\{[^{}]*"user_id"\s*:\s*(\d+)')
_FILES = ("photo", "file")
_OTHERS = (
    "poll",
    "location_information",
    "contact_information",
    "game_title",
    "invoice_information",
)


def _exports(opened: OpenedExport) -> Iterator[tuple[str, bool]]:
    """The files, each with whether it is one of all chats."""
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
        for each in json_list(opened, name, "chats.list" if whole[name] else ""):
            if isinstance(each, Skipped):
                yield each
            else:
                yield from _chat(opened, name, each, owner)

    return read_each(opened, whole, chats)


SOURCE = Source("Telegram", "telegram", lambda opened: any(True for _ in _exports(opened)), _read)


def _owner(opened: OpenedExport, name: str) -> str:
    """Whose export it is, as their messages have it; empty if it doesn't say."""
    found = _OWNER.search(opened.head(name))
    return f"user{found[1].decode()}" if found else ""


def _chat(opened: OpenedExport, name: str, chat: dict[str, Any], owner: str) -> Iterator[Item]:
    title = line_of(chat.get("name")) or "Saved messages"
    id_ = f"{chat.get('id')}"
    messages = mappings(chat.get("messages"))
    kind = chat.get("type")
    if not owner and kind in ("personal_chat", "bot_chat"):
        # Of two, the owner is who isn't the other one.
        writers = {line_of(each.get("from_id")) for each in messages} - {"", f"user{id_}"}
        owner = writers.pop() if len(writers) == 1 else ""
    files: dict[str, str] = {}
    folder = PurePosixPath(name).parent
    names = frozenset(opened.names)
    lines = [
        _line(each, folder, names, files, owner, saved=kind == "saved_messages")
        for each in messages
    ]
    found = list(by_month(id_, title, lines))
    if not found:
        yield Skipped(place_of(name, title), "It holds no messages.")
    yield from found
    for place, shown in files.items():
        yield file_of(opened, place, shown)


def _line(
    message: dict[str, Any],
    folder: PurePosixPath,
    names: frozenset[str],
    files: dict[str, str],
    owner: str,
    *,
    saved: bool,
) -> ChatLine:
    named = [key.partition("_")[0] for key in _OTHERS if message.get(key)]
    attached: list[str] = []
    for place, shown, kind in _files_of(message, folder):
        if place in names:
            files[place] = shown
            attached.append(shown)
        else:
            named.append(kind)
            attached.append(line_of(message.get("file_name")) or kind)
    text = _text(message.get("text"))
    source = line_of(message.get("forwarded_from"))
    if source and text:
        text = f"(forwarded from {source}) {text}"
    if message.get("type") == "service":
        text, attached, named = "", [], ["notice of the program"]
    is_mine = saved or (owner and line_of(message.get("from_id")) == owner)
    return ChatLine(
        line_of(message.get("from")) or "Somebody",
        text,
        time_of(message.get("date_unixtime")) or time_of(message.get("date")),
        f"{message.get('id')}",
        tuple(attached),
        tuple(named),
        # What was forwarded is somebody else's.
        mine=bool(is_mine) and not source,
    )


def _files_of(message: dict[str, Any], folder: PurePosixPath) -> Iterator[tuple[str, str, str]]:
    """Where each file of a message would lie in the export, what it is called, and its kind."""
    for key in _FILES:
        if path := line_of(message.get(key)):
            shown = line_of(message.get("file_name")) or PurePosixPath(path).name
            kind = _KINDS.get(line_of(message.get("media_type")), "file")
            yield str(folder / path), shown, "picture" if key == "photo" else kind


def _text(value: Any) -> str:
    if isinstance(value, list):
        parts = (each if isinstance(each, str) else mapping(each).get("text") for each in value)
        value = "".join(each for each in parts if isinstance(each, str))
    return words_of(value)
