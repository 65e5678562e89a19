"""Open WebUI: its export of chats, all of them or one.

A chat's messages are a tree; the branch that was shown comes. Reasoning and calls of tools stand in
the text as folded HTML, and are counted. Files that were attached carry their text or their bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kbtui.importers.markup import digest, line_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Item, Said, Skipped
from kbtui.importers.reading import (
    dated,
    fields_of,
    json_list,
    json_source,
    mapping,
    mappings,
    place_of,
    text_of,
    time_of,
)
from kbtui.importers.trees import branch_of

_FOLDED = re.compile(r'<details type="(\w+)"[^>]*>.*?(?:</details>|\Z)', re.DOTALL)
_KINDS = {"reasoning": "thought"}
_DATA = re.compile(r"data:(\w+)/([\w.+-]+);base64,(.*)", re.DOTALL)
_SUFFIXES = {"jpeg": "jpg", "svg+xml": "svg", "mpeg": "mp3"}


def _is_export(head: bytes) -> bool:
    fields = fields_of(head)
    return "chat" in fields and bool(fields & {"user_id", "title"})


def _chats(opened: OpenedExport, name: str) -> Iterator[Item]:
    for each in json_list(opened, name):
        if isinstance(each, Skipped):
            yield each
        else:
            yield from _chat(name, each)


SOURCE = json_source("Open WebUI", "openwebui", _is_export, _chats)


def _chat(name: str, record: dict[str, Any]) -> Iterator[Item]:
    chat = mapping(record.get("chat"))
    id_ = text_of(record.get("id")) or text_of(chat.get("id"))
    title = line_of(record.get("title")) or line_of(chat.get("title"))
    messages, branches = _line(chat)
    named: Counter[str] = Counter()
    said: list[Said] = []
    files: list[Item] = []
    for message in messages:
        attached = [each for each in mappings(message.get("files")) if _name(each)]
        texts = _shown(message, named)
        role = text_of(message.get("role"))
        if role not in ("user", "assistant") or not (texts or attached):
            continue
        names = tuple(map(_name, attached))
        time = time_of(message.get("timestamp"))
        who = text_of(message.get("id"))
        said.append(Said("user" if role == "user" else "assistant", texts, time, who, names))
        for each in attached:
            found = _file(each)
            named["file"] += found is None
            files += [found] if found else []
    if not said:
        yield Skipped(place_of(name, title, id_), "It holds no messages.")
        return
    yield ImportedConversation(
        id_ or digest(title, said[0].text),
        title,
        *dated(said, record.get("created_at") or chat.get("timestamp"), record.get("updated_at")),
        tuple(said),
        branches=branches,
        named=tuple((+named).items()),
    )
    yield from files


def _line(chat: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    history = mapping(chat.get("history"))
    tree = {key: mapping(each) for key, each in mapping(history.get("messages")).items()}
    if not tree:
        return mappings(chat.get("messages")), 0
    parents = {key: text_of(each.get("parentId")) for key, each in tree.items()}
    times = {key: time_of(each.get("timestamp")) for key, each in tree.items()}
    line, branches = branch_of(parents, times, text_of(history.get("currentId")))
    return [tree[key] for key in line], branches


def _shown(message: dict[str, Any], named: Counter[str]) -> str:
    """The text of a message; what is folded in it is counted."""
    content = message.get("content")
    blocks = [text_of(each.get("text")).strip() for each in mappings(content)]
    text = text_of(content) or "\n\n".join(filter(None, blocks))
    if "<details" in text:
        named.update(_KINDS.get(each[1], "step of a tool") for each in _FOLDED.finditer(text))
        text = _FOLDED.sub("", text)
    return text.strip()


def _name(file: dict[str, Any]) -> str:
    inner = mapping(file.get("file"))
    name = line_of(file.get("name")) or line_of(inner.get("filename"))
    return name or line_of(file.get("type"))


def _file(file: dict[str, Any]) -> Item | None:
    """A file that came along with its text or its bytes; None for a name alone."""
    text = text_of(mapping(mapping(mapping(file.get("file")).get("data"))).get("content"))
    if text.strip():
        return ImportedNote(f"file {digest(text)}", _name(file), text, folder="attachments")
    found = _DATA.match(text_of(file.get("url")))
    if not found:
        return None
    try:
        data = base64.b64decode(found[3], validate=True)
    except (binascii.Error, ValueError):
        return Skipped(_name(file), "Its bytes are damaged: they are no base64.")
    suffix = _SUFFIXES.get(found[2], found[2])
    return ImportedNote(
        f"file {digest(found[3])}", f"{found[1]}-{digest(found[3])}.{suffix}", "", data=data
    )
