"""Slack: a workspace export with a folder per channel, a file per day, and a list of people.

It doesn't name its owner, so no message counts as the user's.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath

from kbtui.errors import UnreadableError
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
from kbtui.importers.messengers import ChatLine, by_month
from kbtui.importers.port import Item, Skipped, Source
from kbtui.importers.reading import Record, json_list, paragraphs, records_of

_DAY = re.compile(r"(?:^|/)([^/]+)/\d{4}-\d{2}-\d{2}\.json\Z")
_LISTS = ("users.json", "channels.json", "groups.json", "dms.json", "mpims.json")
_CHATS = ("dms.json", "mpims.json")
_MARK = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")
_INNER = ("label", "title", "text", "fields", "elements", "rows", "alt_text", "accessory")
_LINES = ("section", "quote", "preformatted")
"""Ends of the names of elements that stand on lines of their own."""
_MAX_LIST = 24 << 20
_MAX_DEPTH = 8
_NOTICES = frozenset(
    ("channel_join", "channel_leave", "channel_topic", "channel_purpose", "channel_name",
     "channel_archive", "group_join", "group_leave", "pinned_item", "bot_add", "tombstone")
)  # fmt: skip


def _recognises(opened: OpenedExport) -> bool:
    """Return whether there are files of days, ``users.json`` and a list of channels or chats."""
    days = next((name for name in opened.names if _DAY.search(name)), None)
    lists = {PurePosixPath(name).name for name in opened.names}.intersection(_LISTS)
    return opened.is_folder and days is not None and "users.json" in lists and len(lists) > 1


def _read(opened: OpenedExport) -> Iterator[Item]:
    people, chats = _people(opened), _chats(opened)
    channels: dict[str, list[str]] = {}
    for name in opened.names:
        if _DAY.search(name):
            channels.setdefault(str(PurePosixPath(name).parent), []).append(name)
    for folder, days in channels.items():
        channel = PurePosixPath(folder).name
        members = chats.get(channel)
        title = ", ".join(people.get(each, each) for each in members) if members else f"#{channel}"
        problems: list[Item] = []
        yield from by_month(channel, title, _lines(opened, sorted(days), people, problems))
        yield from problems
    opened.taken.update(name for name in opened.names if PurePosixPath(name).name in _LISTS)


SOURCE = Source("Slack", "slack", _recognises, _read, is_alone=True)


def _list_records(opened: OpenedExport, *wanted: str) -> Iterator[Record]:
    for name in opened.names:
        if PurePosixPath(name).name in wanted:
            with suppress(ValueError, RecursionError):
                yield from records_of(json.loads(opened.head(name, _MAX_LIST)))


def _people(opened: OpenedExport) -> dict[str, str]:
    people: dict[str, str] = {}
    for each in _list_records(opened, "users.json"):
        about = each.record("profile")
        name = about.line("real_name") or each.line("real_name")
        name = name or about.line("display_name") or each.line("name")
        people[each.line("id")] = name or "Somebody"
    return people


def _chats(opened: OpenedExport) -> dict[str, list[str]]:
    """Return the members of unnamed chats by chat id."""
    return {
        each.line("id"): [line_of(author) for author in each["members"]]
        for each in _list_records(opened, *_CHATS)
        if isinstance(each.get("members"), list)
    }


def _lines(
    opened: OpenedExport, days: list[str], people: Mapping[str, str], problems: list[Item]
) -> Iterator[ChatLine]:
    for name in days:
        try:
            for record in json_list(opened, name, ""):
                if isinstance(record, Skipped):
                    problems.append(record)
                else:
                    yield _line(record, people)
        except UnreadableError as error:
            problems.append(Skipped(line_of(name), str(error), lost=True))


def _line(message: Record, people: Mapping[str, str]) -> ChatLine:
    own = message.record("user_profile").line("real_name") or message.line("username")
    own = own or message.record("bot_profile").line("name")
    comment = message.record("comment")  # once, what people said below a file
    author = people.get(message.line("user") or comment.line("user")) or own or "Somebody"
    time, id_ = message.time("ts"), message.line("ts")
    if message.get("subtype") in _NOTICES:
        return ChatLine(author, "", time, named=("notice of the program",))
    files = [*message.records("files"), *filter(None, [message.record("file")])]
    names = tuple(each.line("title", "name") or "a file" for each in files)
    text = _text(message, people)
    return ChatLine(author, text, time, id_, names, ("file",) * len(names))


def _text(message: Record, people: Mapping[str, str]) -> str:
    """Return the text of a message with that of its blocks and attachments, each said once."""
    said = _marked(message.words("text"), people)
    parts = [said]
    shown = _squeezed(said)
    comments = (_marked(each, people) for each in _comments(message))
    for part in (*comments, *_blocks(message, people), *_attachments(message, people)):
        if part and _squeezed(part) not in shown:
            parts.append(part)
            shown += _squeezed(part)
    return paragraphs(parts)


def _comments(message: Record) -> Iterator[str]:
    """Yield what was said about a file, which old exports keep beside or in it."""
    yield message.record("comment").words("comment")
    for file in (message.record("file"), *message.records("files")):
        yield file.record("initial_comment").words("comment")


def _attachments(message: Record, people: Mapping[str, str]) -> Iterator[str]:
    """Yield what cards below a message say: those of bots, shared messages, previews of pages."""
    for each in message.records("attachments"):
        inner = [each, *(block.record("message") for block in each.records("message_blocks"))]
        texts = [each.words("pretext"), each.line("author_name")]
        title, link = each.line("title"), each.line("title_link", "from_url")
        texts.append(f"[{title}]({link})" if title and link else title or link)
        texts.append(each.words("text"))
        texts += [f"{one.line('title')}: {one.words('value')}" for one in each.records("fields")]
        texts.append(each.words("footer"))
        found = [_marked(text, people) for text in texts if text.strip(": ")]
        found += [part for one in inner for part in _blocks(one, people)]
        if not each.words("text") and not any(texts[4:]):
            found.append(_marked(each.words("fallback"), people))
        yield from filter(None, found)


def _blocks(message: Record, people: Mapping[str, str]) -> Iterator[str]:
    """Yield the text of the layout blocks of a message, a paragraph each."""
    for block in message.records("blocks"):
        text = "".join(_leaves(block, people)).strip()
        if text:
            yield text


def _leaves(value: Record, people: Mapping[str, str], depth: int = 0) -> Iterator[str]:
    """Yield the texts within a block, in order."""
    text = _leaf(value, people)
    if text is not None:
        yield text
    elif depth < _MAX_DEPTH:
        for key in _INNER:
            yield from _inner_leaves(value, key, people, depth + 1)


def _leaf(value: Record, people: Mapping[str, str]) -> str | None:
    """Return the text of an element that has no others inside, or None if it may have some."""
    kind = value.line("type")
    if kind == "user":
        return f"@{people.get(value.line('user_id')) or value.line('user_id')}"
    if kind == "link":
        label, url = value.line("text"), value.line("url")
        return f"[{label}]({url})" if label and label != url else url
    if kind in ("emoji", "broadcast", "channel", "date"):
        shown = value.line("name", "range", "channel_id", "fallback")
        return f":{shown}:" if kind == "emoji" else shown
    if not isinstance(value.get("text"), str):
        return None
    if kind == "mrkdwn":
        return _marked(value.words("text"), people)
    return value.words("text") if kind == "plain_text" else value.text("text")


def _inner_leaves(value: Record, key: str, people: Mapping[str, str], depth: int) -> Iterator[str]:
    """Yield the texts of the elements under a key."""
    inner = value.get(key)
    if key == "alt_text" and isinstance(inner, str):
        yield inner
    for row in inner if key == "rows" and isinstance(inner, list) else ():
        cells = ("".join(_leaves(cell, people, depth)) for cell in records_of(row))
        yield f"{' | '.join(map(str.strip, cells))}\n"
    for each in records_of(inner if isinstance(inner, list) else [inner]):
        yield from _leaves(each, people, depth)
        is_whole = each.line("type").endswith(_LINES)
        yield "\n" if key in ("label", "title", "fields") or is_whole else ""


def _squeezed(text: str) -> str:
    """Return the letters and digits of a text, as blocks and text differ in marks and spaces."""
    return "".join(filter(str.isalnum, text))


def _marked(text: str, people: Mapping[str, str]) -> str:
    return html.unescape(_MARK.sub(lambda mark: _rendered_mark(mark, people), text))


def _rendered_mark(mark: re.Match[str], people: Mapping[str, str]) -> str:
    kind, target, label = mark.groups()
    if kind == "@":
        return f"@{people.get(target) or label or target}"
    if kind == "#":
        return f"#{label or target}"
    if kind == "!":
        return f"@{label or target}"
    return f"[{label}]({target})" if label and label != target else target
