"""Open WebUI: an export of one chat or all of them.

Messages form a tree, of which the branch shown last is imported. Reasoning and tool calls are
``<details>`` in the text, and only counted. Attached files come with their text or their bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator

from kbtui.importers.markup import digest
from kbtui.importers.port import ImportedConversation, ImportedMessage, ImportedNote, Item, Skipped
from kbtui.importers.reading import (
    Record,
    dated,
    fields_of,
    paragraphs,
    place_of,
    record_source,
    role_of,
    texts_in,
)
from kbtui.importers.trees import branch_of, parents_of

_DETAILS = re.compile(r'<details type="(\w+)"[^>]*>.*?(?:</details>|\Z)', re.DOTALL)
_KINDS = {"reasoning": "thought"}
_DATA = re.compile(r"data:(\w+)/([\w.+-]+);base64,(.*)", re.DOTALL)
_SUFFIXES = {"jpeg": "jpg", "svg+xml": "svg", "mpeg": "mp3"}


def _is_export(head: bytes) -> bool:
    fields = fields_of(head)
    return "chat" in fields and bool(fields & {"user_id", "title"})


def _chat(name: str, record: Record) -> Iterator[Item]:
    chat = record.record("chat")
    id_ = record.text("id") or chat.text("id")
    title = record.line("title") or chat.line("title")
    messages, branches = _branch(chat)
    tree = chat.record("history").record("messages")
    errors = sum(bool(tree.record(key).record("error")) for key in tree)
    named = +Counter({"notice of the program": errors})
    converted = tuple(each for message in messages if (each := _message(message, named)))
    if not converted:
        yield Skipped(place_of(name, title, id_), "It holds no messages.")
        return
    files = [_file(each) for message in messages for each in _attached(message)]
    named.update("file" for file in files if file is None)
    created = record.time("created_at") or chat.time("timestamp")
    talk = ImportedConversation(
        id_ or digest(title, converted[0].text),
        title,
        *dated(converted, created, record.time("updated_at")),
        converted,
        branches=branches,
        named=named,
    )
    record.clear()  # it is as large as what came of it
    del chat, tree, messages
    yield talk
    yield from filter(None, files)


def _branch(chat: Record) -> tuple[list[Record], int]:
    history = chat.record("history")
    messages = history.record("messages")
    tree = {key: messages.record(key) for key in messages}
    if not tree:
        return chat.records("messages"), 0
    parents = parents_of(tree, "parentId", "childrenIds")
    times = {key: each.time("timestamp") for key, each in tree.items()}
    shown = {key: _message(each, Counter()) is not None for key, each in tree.items()}
    line, branches = branch_of(parents, times, history.text("currentId"), shown.__getitem__)
    return [tree[key] for key in line], branches


def _message(message: Record, named: Counter[str]) -> ImportedMessage | None:
    text = paragraphs(texts_in(message.get("content"))) or _put_out(message)
    text = paragraphs(
        [text, message.record("merged").text("content")]
    )  # of several models' answers
    if "<details" in text:
        named.update(_KINDS.get(each[1], "step of a tool") for each in _DETAILS.finditer(text))
        text = _DETAILS.sub("", text)
    role, text = role_of(message.get("role")), text.strip()
    names = tuple(map(_name, _attached(message)))
    if role is None or not (text or names):
        return None
    return ImportedMessage(role, text, message.time("timestamp"), message.text("id"), names)


def _put_out(message: Record) -> str:
    """Return the text of an answer that is kept as its model put it out, item by item."""
    shown = (each for each in message.records("output") if each.get("type") == "message")
    return paragraphs(text for each in shown for text in texts_in(each.get("content")))


def _attached(message: Record) -> list[Record]:
    """Return the named files of a message of the user or the model."""
    files = message.records("files") if role_of(message.get("role")) else []
    return [each for each in files if _name(each)]


def _name(file: Record) -> str:
    return file.line("name") or file.record("file").line("filename") or file.line("type")


def _file(file: Record) -> Item | None:
    """Return an attached file as a note, or None if the export has only its name."""
    text = file.record("file").record("data").text("content")
    if text.strip():
        return ImportedNote(f"file {digest(text)}", _name(file), text, folder="attachments")
    found = _DATA.match(file.text("url"))
    if not found:
        return None
    try:
        data = base64.b64decode(found[3], validate=True)
    except (binascii.Error, ValueError):
        return Skipped(_name(file), "Its bytes are damaged: they are no base64.", lost=True)
    suffix = _SUFFIXES.get(found[2], found[2])
    return ImportedNote(
        f"file {digest(found[3])}", f"{found[1]}-{digest(found[3])}.{suffix}", "", data=data
    )


SOURCE = record_source("Open WebUI", "openwebui", _is_export, _chat)
