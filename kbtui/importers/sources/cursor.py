"""Cursor: the SQLite database ``state.vscdb``, one for all folders.

Newer versions keep a conversation as a list of ids and each message in its own row; before, the
messages were part of the conversation, and before that one value held all chat tabs. The databases
of single folders only list conversations by name.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from kbtui.errors import UnreadableError
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
from kbtui.importers.port import ImportedConversation, ImportedMessage, Item, Role, Skipped
from kbtui.importers.reading import (
    Record,
    conversation,
    drained,
    file_source,
    place_of,
    record_of,
    records_of,
)
from kbtui.text import counted

_SIGNATURE = b"SQLite format 3\0"
_ENDINGS = (".vscdb", ".sqlite", ".db", ".backup")
_TABS = "workbench.panel.aichat.view.aichat.chatdata"
_LIST = "composer.composerData"
_PROMPTS = "aiService.prompts"
_MAX_VALUE = 64 << 20
_ROLES: dict[object, Role] = {1: "user", 2: "assistant", "user": "user", "ai": "assistant"}


def _databases(opened: OpenedExport) -> Iterator[str]:
    for name in opened.names:
        if opened.is_folder and not name.lower().endswith(_ENDINGS):
            continue
        if opened.head(name, len(_SIGNATURE)) == _SIGNATURE and _holds_any(opened, name):
            yield name


def _holds_any(opened: OpenedExport, name: str) -> bool:
    file = opened.file(name)
    if file is None:
        return name.lower().endswith(".vscdb")  # in a zip: reported when it is read
    with contextlib.suppress(sqlite3.Error), _Database(file) as database:
        keys = [_TABS, _LIST, _PROMPTS]
        return any(map(database.item, keys)) or bool(database.keys("composerData"))
    return False


class _Database:
    """A database opened read-only, without creating any file beside it.

    If it `is_behind`, newer rows are in its write-ahead log, which couldn't be read.
    """

    def __init__(self, file: Path) -> None:
        self.is_behind = False
        where = f"file:{quote(str(file.resolve()))}?mode=ro"
        try:
            self._open(where)
        except sqlite3.OperationalError:
            self.is_behind = Path(f"{file}-wal").exists()
            self._open(f"{where}&immutable=1")

    def _open(self, where: str) -> None:
        self._connection = sqlite3.connect(where, uri=True)
        try:
            rows = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            self._tables = {str(name) for (name,) in rows}
        except sqlite3.Error:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def keys(self, kind: str) -> list[str]:
        """Return the keys of all conversations (composerData) or messages (bubbleId)."""
        if "cursorDiskKV" not in self._tables:
            return []
        query = "SELECT key FROM cursorDiskKV WHERE key > ? AND key < ?"
        rows = self._connection.execute(query, (f"{kind}:", f"{kind};"))
        return [str(key) for (key,) in rows]

    def item(self, key: str) -> Any:
        """Return a value of the older table, or None."""
        return self._value("ItemTable", key) if "ItemTable" in self._tables else None

    def value(self, key: str) -> Any:
        """Return a value of the newer table, or None.

        Raises:
            UnreadableError: It isn't JSON or is too large.
        """
        return self._value("cursorDiskKV", key)

    def _value(self, table: str, key: str) -> Any:
        query = f"SELECT length(value), value FROM {table} WHERE key = ?"  # noqa: S608 — two names
        row = self._connection.execute(query, (key,)).fetchone()
        if row is None or row[1] is None:
            return None
        if row[0] > _MAX_VALUE:
            raise UnreadableError(f"It is larger than {_MAX_VALUE >> 20} MB.")
        try:
            return json.loads(row[1], strict=False)
        except (ValueError, RecursionError) as error:
            raise UnreadableError(f"It is no JSON: {error}.") from None


def _conversations(opened: OpenedExport, name: str) -> Iterator[Item]:
    file = opened.file(name)
    if file is None:
        why = "A database can't be read in a zip: unpack it first."
        yield Skipped(line_of(name), why, lost=True)
        return
    opened.taken.add(name)
    try:
        with _Database(file) as database:
            if database.is_behind:
                why = "Its newest messages can't be read yet: end Cursor, then import once more."
                yield Skipped(line_of(name), why, lost=True)
            count = 0
            for each in _all(database, name):
                count += isinstance(each, ImportedConversation)
                yield each
            if not count:
                yield from _names_only(database, name)
    except sqlite3.Error as error:
        raise UnreadableError(f"The database is damaged: {error}.") from None


def _all(database: _Database, name: str) -> Iterator[Item]:
    composers = database.keys("composerData")
    known = {key.partition(":")[2] for key in composers}
    lost = sum(key.split(":")[1] not in known for key in database.keys("bubbleId"))
    if lost:
        yield Skipped(counted(lost, "message"), "Cursor has deleted the conversation around it.")
    for key in composers:
        try:
            yield from _composer(database, name, key)
        except UnreadableError as error:
            yield Skipped(f"{line_of(key)} ({line_of(name)})", str(error), lost=True)
    for tab in record_of(database.item(_TABS)).records("tabs"):
        found = _conversation(tab.text("tabId"), tab, "chatTitle", tab.records("bubbles"))
        yield found or Skipped(place_of(name, tab.get("chatTitle")), "It holds no messages.")


def _composer(database: _Database, name: str, key: str) -> Iterator[Item]:
    record = record_of(database.value(key))
    id_ = key.partition(":")[2]
    place = place_of(name, record.get("name"), id_)
    bubbles = record.records("conversation")
    headers = record.records("fullConversationHeadersOnly")
    missing: list[str] = []
    rows = drained(bubbles) if bubbles else _rows(database, id_, headers, missing)
    found = _conversation(id_, record, "name", rows)
    if headers and (apart := _apart(database, id_, headers)):
        why = f"{counted(apart, 'message')} of it that its list doesn't name: taken back in Cursor."
        yield Skipped(place, why)
    if missing:
        why = f"{len(missing):,} of its {len(headers):,} messages aren't in the database."
        yield Skipped(place, why, lost=True)
    if found:
        yield found
    elif headers and not missing:
        yield Skipped(place, "It holds no messages.")


def _rows(
    database: _Database, id_: str, headers: list[Record], missing: list[str]
) -> Iterator[Record]:
    """Yield the messages that have a row of their own; the keys of others become `missing`."""
    for header in headers:
        key = f"bubbleId:{id_}:{header.text('bubbleId')}"
        bubble = database.value(key)
        if bubble is None:
            missing.append(key)
        yield record_of(bubble)


def _apart(database: _Database, id_: str, headers: list[Record]) -> int:
    """Return how many messages of a conversation its list doesn't name."""
    listed = {f"bubbleId:{id_}:{each.text('bubbleId')}" for each in headers}
    others = (key for key in database.keys(f"bubbleId:{id_}") if key not in listed)
    count = 0
    for key in others:
        with contextlib.suppress(UnreadableError):  # the conversation is whole without it
            count += _message(record_of(database.value(key)), Counter()) is not None
    return count


def _conversation(
    id_: str, record: Record, title: str, bubbles: Iterable[Record]
) -> ImportedConversation | None:
    named: Counter[str] = Counter()
    messages = [one for each in bubbles if (one := _message(each, named))]
    updated = record.time("lastUpdatedAt", "lastSendTime")
    created = record.time("createdAt")
    if created is None and not any(each.time for each in messages):
        created = updated
    return conversation(
        id_, record.line(title), messages, created=created, updated=updated, named=named
    )


def _message(bubble: Record, named: Counter[str]) -> ImportedMessage | None:
    kind, images = bubble.get("type"), bubble.get("images")
    role = _ROLES.get(kind) if isinstance(kind, int | str) else None
    pictures = ("picture",) * (len(images) if isinstance(images, list) else 0)
    named.update(pictures)
    for key, what in (("toolFormerData", "step of a tool"), ("thinking", "thought")):
        named.update([what] if bubble.record(key) else ())
    text = bubble.text("text", "rawText").strip() or _text_of(bubble.text("richText"))
    if role is None or not (text or pictures):
        return None
    return ImportedMessage(
        role, text, bubble.time("createdAt"), bubble.text("bubbleId", "id"), pictures
    )


def _text_of(rich: str) -> str:
    """Return the text of a prompt that is kept as its editor held it: a tree, in JSON."""
    with contextlib.suppress(ValueError, RecursionError):
        blocks = record_of(json.loads(rich, strict=False)).record("root").records("children")
        return "\n".join("".join(_leaves(each)) for each in blocks).strip()
    return ""


def _leaves(node: Record) -> Iterator[str]:
    if node.get("type") == "linebreak":
        yield "\n"
    yield node.text("text")
    for each in node.records("children"):
        yield from _leaves(each)


def _names_only(database: _Database, name: str) -> Iterator[Item]:
    """Report what the database of a single folder contains instead of conversations."""
    index = record_of(database.item(_LIST)).records("allComposers")
    prompts = records_of(database.item(_PROMPTS))
    if index or prompts:
        yield Skipped(
            line_of(name),
            f"It names {len(index):,} conversations and {len(prompts):,} prompts, and holds no"
            " answers: these are in globalStorage/state.vscdb.",
        )


SOURCE = file_source("Cursor", "cursor", _databases, _conversations)
