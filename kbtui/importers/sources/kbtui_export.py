"""What `kbtui export` writes besides folders: JSON, Markdown, and conversations for Obsidian.

A whole export in one file holds the files by their paths; what each becomes is told by these, as in
another workspace. A conversation in Markdown is recognised by the name of its log above it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
from kbtui.importers.port import ImportedConversation, ImportedMessage, Item, Skipped, Source
from kbtui.importers.reading import (
    Record,
    conversation,
    data_of,
    fields_of,
    has_any,
    json_list,
    read_each,
    record_of,
    role_of,
)
from kbtui.importers.sources.kbtui_workspace import item_of, left_of
from kbtui.knowledge.entries.entry import says_private
from kbtui.knowledge.format import frontmatter
from kbtui.sessions import MARK_OF_PRIVATE
from kbtui.text import clean

_WHOLE = frozenset({"format", "workspace", "entries"})
_TALK = frozenset({"format", "id", "channel", "messages"})
_PART = re.compile(r"(?:\A|\n---\n\n)<!-- (?P<name>[^\n]+?\.(?:md|jsonl)) -->\n\n")
_LOG = re.compile(r"sessions/(?P<id>[^/]+)\.jsonl")
_HEAD = re.compile(r"```yaml\n(?P<head>.*?)\n```\n\n?", re.DOTALL)
_SAID = re.compile(
    r"^## (?P<who>You|kbtui|Assistant), (?P<time>\d{4}-\d\d-\d\d \d\d:\d\d)\n", re.MULTILINE
)
_SOURCES = re.compile(r"(?:^\[\d+\] \S.*:\d+ .*  $\n?)+\Z", re.MULTILINE)
_SAYS = rb"# [^\n]*\n\n## (?:You|kbtui|Assistant), \d{4}-\d\d-\d\d \d\d:\d\d\n"
_NOTED = re.compile(
    rb"(?:<!-- sessions/[^/\n]+\.jsonl -->\n\n"
    rb"|---\n(?:[^\n]+\n)*?session: [^\n]+\n(?:[^\n]+\n)*?---\n)" + _SAYS
)
_MAX_TEXT = 256 << 20
_PRIVATE = ("",)  # which entries it may have been told is not known


def _files(opened: OpenedExport) -> Iterator[str]:
    for name in opened.names:
        lowered = name.lower()
        if opened.is_folder and not lowered.endswith((".json", ".md", ".markdown")):
            continue
        # Notes in a folder begin as they like: only a conversation can be told there.
        form = _form_of(opened.head(name))
        if form and (form != "md" or not opened.is_folder or _NOTED.match(opened.head(name))):
            yield name


def _form_of(head: bytes) -> str:
    """Return ``json``, ``talk`` or ``md`` for what was exported by kbtui, else ""."""
    if head[:1] == b"{":
        fields = fields_of(head)
        is_whole = fields >= _WHOLE and head.startswith(b'{"format":')
        return "json" if is_whole else "talk" if fields >= _TALK else ""
    is_text = _PART.match(head[:4096].decode("utf-8-sig", "replace")) or _NOTED.match(head)
    return "md" if is_text else ""


def _read(opened: OpenedExport) -> Iterator[Item]:
    yield from read_each(opened, [*_files(opened)], _file)


def _file(opened: OpenedExport, name: str) -> Iterator[Item]:
    form = _form_of(opened.head(name))
    if form == "json":
        yield from left_of(_whole(opened, name))
    elif form == "talk":
        for record in json_list(opened, name, ""):
            yield record if isinstance(record, Skipped) else _talk(record) or _empty(name)
    else:
        data = data_of(opened, name, _MAX_TEXT)
        yield from left_of(_texts(name, clean(data.decode("utf-8-sig", "replace"))))


def _empty(name: str) -> Skipped:
    return Skipped(line_of(name), "Nobody says anything in it.")


def _whole(opened: OpenedExport, name: str) -> Iterator[Item | None]:
    """Yield what is in a whole export in JSON; None for files that only a sync brings."""
    for key in ("entries", "files"):
        for record in json_list(opened, name, key):
            yield record if isinstance(record, Skipped) else _of_file(record, name)
    for record in json_list(opened, name, "conversations"):
        yield record if isinstance(record, Skipped) else _talk(record) or _empty(name)


def _of_file(record: Record, name: str) -> Item | None:
    path = record.text("path")
    try:
        data = record.text("text").encode() or base64.b64decode(record.text("base64"))
    except (binascii.Error, ValueError):
        return Skipped(f"{line_of(path)} ({line_of(name)})", "Its bytes are damaged.", lost=True)
    if record.get("private") is True and not says_private(data):  # the settings made it private
        data = frontmatter.set_keys(data, {"private": True})
    return item_of(path, data, is_entry="category" in record)


def _talk(record: Record) -> ImportedConversation | None:
    messages = [
        ImportedMessage(
            role, text, each.time("time"), taint=_PRIVATE if each.get("private") else ()
        )
        for each in record.drain("messages")
        if (role := role_of(each.get("role"))) and (text := each.words("text"))
    ]
    return conversation(
        record.text("id"),
        record.line("title"),
        messages,
        created=record.time("created"),
        updated=record.time("updated"),
        url=record.line("url"),
    )


def _texts(name: str, text: str) -> Iterator[Item | None]:
    """Yield the files in one Markdown file, each below its name."""
    parts = [*_PART.finditer(text)]
    if not parts:
        yield _noted(text) or _empty(name)
        return
    ends = [*(part.start() for part in parts[1:]), len(text)]
    for part, end in zip(parts, ends, strict=True):
        path = part["name"].replace("- -", "--")
        body = text[part.end() : end].rstrip("\n") + "\n"
        if log := _LOG.fullmatch(path):
            yield _told(log["id"], body) or _empty(path)
        else:
            head = _HEAD.match(body)
            whole = f"---\n{head['head']}\n---\n{body[head.end() :]}" if head else body
            yield item_of(path, whole.encode(), is_entry=not path.startswith(("memory/", "USER")))


def _noted(text: str) -> ImportedConversation | None:
    """Read a conversation that was exported as a note of Obsidian's."""
    values = record_of(frontmatter.parse(text).values)
    return _told(values.text("session"), frontmatter.body_of(text), values.line("url"))


def _told(id_: str, text: str, url: str = "") -> ImportedConversation | None:
    """Read a conversation that was exported as Markdown."""
    said = [*_SAID.finditer(text)]
    starts = [each.start() for each in said]
    messages = []
    for found, (_, end) in zip(said, pairwise([*starts, len(text)]), strict=True):
        shown = text[found.end() : end].strip("\n")
        taint = _PRIVATE if shown.startswith(MARK_OF_PRIVATE) else ()
        shown = _SOURCES.sub("", f"{shown.removeprefix(MARK_OF_PRIVATE)}\n").strip()
        time = datetime.fromisoformat(found["time"]).astimezone()
        role = role_of("user" if found["who"] == "You" else "assistant")
        if shown and role:
            messages.append(ImportedMessage(role, shown, time, taint=taint))
    title = text.partition("\n")[0].removeprefix("# ")
    return conversation(id_, line_of(title) or "", messages, url=url)


SOURCE = Source("kbtui", "kbtui", has_any(_files), _read)
