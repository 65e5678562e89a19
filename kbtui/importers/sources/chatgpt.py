"""ChatGPT: exports in one file or several; of each conversation the branch shown last.

Thoughts and tool calls are only counted, system and hidden messages dropped, citation marks
removed. Canvas documents are part of the messages; pictures, recordings and documents become files.
The newest custom instructions and the newest memory of ChatGPT become notes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TypeAlias

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
from kbtui.importers.port import (
    ImportedConversation,
    ImportedMessage,
    ImportedNote,
    Item,
    Role,
    Skipped,
    Source,
)
from kbtui.importers.reading import (
    Record,
    address_of,
    dated,
    fields_of,
    file_of,
    has_any,
    identity_of,
    json_list,
    json_members,
    paragraphs,
    place_of,
    read_each,
    read_records,
    record_of,
    role_of,
    text_of,
)
from kbtui.importers.trees import branch_of, parents_of
from kbtui.text import counted

_MARK = re.compile("[ \t]?\ue200([^\ue200\ue201]*)\ue201")
_CITATION = re.compile(r"[ \t]?【\d+(?::\d+)?†[^】\n]*】")
_PRIVATE_USE = re.compile("[\ue000-\uf8ff]")
_NOT_SHOWN = frozenset(
    (
        *("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"),
        *("system_error", "execution_output", "tether_browsing_display", "tether_quote"),
    )
)
"""Kinds of content that a person doesn't see as a message; any other is one."""
_TEXTS = ("", "text", "audio_transcription")
_ASSETS = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "real_time_user_audio_video_asset_pointer": "audio",
    "video_container_asset_pointer": "video",
}
_KINDS = {"image": "picture", "audio": "recording", "video": "video"}
# The conversations as a web page, and metadata about them and the user.
_REDUNDANT = frozenset(
    (
        *("chat.html", "user.json", "user_settings.json", "shared_conversations.json"),
        "export_manifest.json",
    )
)
_BESIDE = ("message_feedback.json", "model_comparisons.json")
"""What is said of answers, and what was answered besides: no part of a conversation."""
_FILE = re.compile(r"file[-_][0-9A-Za-z]+")
_CANVAS = "canmore."
_ABOUT = {
    "about_user_message": "About me",
    "user_profile": "About me",
    "about_model_message": "How to answer",
    "user_instructions": "How to answer",
}


def _exports(opened: OpenedExport) -> Iterator[str]:
    return (name for name, head in json_members(opened) if _is_export(head))


def _is_export(head: bytes) -> bool:
    fields = fields_of(head, "conversations")
    if fields & {"chat_messages", "rating"} or not fields & {"create_time", "current_node"}:
        return False
    # The first conversation may lack its tree.
    return "mapping" in fields or {"conversation_id", "title"} <= fields


def _read(opened: OpenedExport) -> Iterator[Item]:
    extras = _Extras(opened)

    def conversations(opened: OpenedExport, name: str) -> Iterator[Item]:
        return read_records(json_list(opened, name), lambda each: _conversation(name, each, extras))

    for name in opened.names:
        if name.rpartition("/")[2] in _BESIDE:  # read, so that what of it comes to nothing is named
            yield from (each for each in json_list(opened, name) if isinstance(each, Skipped))
    yield from read_each(opened, [*_exports(opened)], conversations, are_known=True)
    for name in extras.files.values():  # not attached to any conversation
        yield file_of(opened, name)
    yield from extras.notes()
    opened.taken.update(each for each in opened.names if each.rpartition("/")[2] in _REDUNDANT)


SOURCE = Source("ChatGPT", "chatgpt", has_any(_exports), _read)


_File: TypeAlias = tuple[str, str, str]
"""A file of a message: its id, kind and display name."""


class _Extras:
    """What an export contains besides conversations: files, notes about the user, and projects.

    `files` maps ids to members that no conversation has claimed yet. `projects` counts
    conversations by project id, which is all that exports say of projects.
    """

    def __init__(self, opened: OpenedExport) -> None:
        self.opened = opened
        self.projects: Counter[str] = Counter()
        self.files: dict[str, str] = {}
        self._notes: dict[str, tuple[datetime, str]] = {}
        for name in opened.names if opened.is_folder else ():
            if found := _FILE.match(name.rpartition("/")[2]):
                self.files.setdefault(found[0], name)
        self._all = frozenset(self.files)

    def missing(self, files: Iterable[_File]) -> Iterator[str]:
        """Return the kinds of those files that the export lacks."""
        return (kind for id_, kind, _ in files if id_ not in self._all)

    def take(self, files: Iterable[_File]) -> Iterator[Item]:
        """Yield those files that weren't taken yet, each under its last display name."""
        for id_, title in {id_: title for id_, _, title in files}.items():
            if name := self.files.pop(id_, ""):
                yield file_of(self.opened, name, title)

    def context(self, message: Record, time: datetime | None) -> None:
        """Keep the custom instructions and memory given to the model, if they are the newest."""
        content = message.record("content")
        data = Record({**content, **message.record("metadata").record("user_context_message_data")})
        about = {
            _ABOUT[key]: text for key in data if key in _ABOUT and (text := data.text(key).strip())
        }
        kinds = {
            "Custom instructions": paragraphs(
                f"## {title}\n\n{text}" for title, text in sorted(about.items())
            ),
            "What ChatGPT remembered": content.text("model_set_context").strip(),
        }
        when = time or datetime.min.replace(tzinfo=UTC)
        for title, text in kinds.items():
            if text and (title not in self._notes or self._notes[title][0] < when):
                self._notes[title] = (when, text)

    def notes(self) -> Iterator[Item]:
        """Yield the notes, and a report about projects, which an export doesn't describe."""
        for title, (time, text) in self._notes.items():
            yield ImportedNote(title.lower(), title, text, time if time.year > 1 else None)
        if self.projects:
            count, of = self.projects.total(), len(self.projects)
            ids = ", ".join(map(line_of, sorted(self.projects)[:5]))
            why = (
                f"An export has ids of projects only; {counted(count, 'conversation')} of them came"
            )
            yield Skipped(f"Name and instructions of {counted(of, 'project')}", f"{why}: {ids}.")


def _conversation(name: str, element: Record, extras: _Extras) -> Iterator[Item]:
    talk, files = _converted(name, element, extras)
    element.clear()  # it is as large as what came of it
    yield talk
    yield from extras.take(files)


def _converted(name: str, element: Record, extras: _Extras) -> tuple[Item, list[_File]]:
    id_, title = element.text("conversation_id", "id"), element.line("title")
    tree = element.record("mapping")
    nodes = {key: node for key in tree if (node := tree.record(key))}
    if not nodes:
        why = "It has no messages: its tree is missing."
        return Skipped(place_of(name, title, id_), why, lost=True), []
    messages, branches = _branch(nodes, element.text("current_node"))
    for message in messages:
        extras.context(message, element.time("update_time"))
    converted = tuple(filter(None, map(_message, messages)))
    if not converted:
        return Skipped(place_of(name, title, id_), "It holds no messages that were shown."), []
    files = [each for message in messages for each in _files(message)]
    if (project := element.text("gizmo_id")).startswith("g-p-"):
        extras.projects[project] += 1
    talk = ImportedConversation(
        id_ or identity_of(converted, element.get("create_time")),
        title,
        *dated(converted, element.time("create_time"), element.time("update_time")),
        converted,
        address_of("https://chatgpt.com/c/", id_),
        branches,
        Counter((*filter(None, map(_hidden_kind, messages)), *extras.missing(files))),
    )
    return talk, files


def _branch(nodes: dict[str, Record], current: str) -> tuple[list[Record], int]:
    """Return the messages from the root to the current or newest leaf, and the number of others.

    Leaves without a message don't count.
    """
    line, others = branch_of(
        parents_of(nodes, "parent", "children"),
        {key: node.record("message").time("create_time") for key, node in nodes.items()},
        current,
        lambda key: bool(nodes[key].record("message")),
    )
    return [nodes[key].record("message") for key in line], others


def _role(message: Record) -> str:
    role = message.record("author").text("role")
    is_users = message.record("metadata").get("is_user_system_message") is True
    return "user" if role == "system" and is_users else role


def _is_call(message: Record) -> bool:
    return _role(message) == "assistant" and message.get("recipient") not in ("all", None)


def _hidden_kind(message: Record) -> str:
    """Return the kind of a hidden message to count, or "" for shown and internal ones."""
    if message.record("content").text("content_type") in ("thoughts", "reasoning_recap"):
        return "thought"
    is_step = _role(message) == "tool" or _is_call(message)
    return "step of a tool" if is_step and _message(message) is None else ""


def _files(message: Record) -> Iterator[_File]:
    named = message.record("metadata").records("attachments")
    titles = {each.text("id"): each.line("name") for each in named}
    kinds = dict.fromkeys(filter(None, titles), "file")
    for part in message.record("content").records("parts"):
        pointer = part.text("asset_pointer")
        pointer = pointer or part.record("audio_asset_pointer").text("asset_pointer")
        kind = _ASSETS.get(part.text("content_type"), "")
        found = _FILE.match(pointer.rpartition("//")[2])
        if kind:
            kinds[found[0] if found else pointer or f"{len(kinds)}"] = _KINDS[kind]
    for id_, kind in kinds.items():
        yield id_, kind, titles.get(id_, "")


def _canvas(message: Record) -> str:
    """Return the canvas document that a message writes or changes, or "" if it does neither."""
    if _role(message) != "assistant" or not message.text("recipient").startswith(_CANVAS):
        return ""
    content = message.record("content")
    parts = content.get("parts")
    first = "".join(map(text_of, parts[:1])) if isinstance(parts, list) else ""
    try:
        data = record_of(json.loads(content.text("text") or first, strict=False))
    except (ValueError, RecursionError):
        return ""
    title = data.line("name") or "Canvas"
    if text := data.text("content").strip():
        return f"[{title}]\n{text}"
    text = paragraphs(each.text("replacement") for each in data.records("updates"))
    return f"[{title}, changed]\n{text}" if text else ""


def _report(message: Record) -> str:
    """Return the report of a research that a message holds for the page that shows it, or ""."""
    data = message.record("metadata").record("chatgpt_sdk")
    state = data.get("widget_state")
    if isinstance(state, str):
        try:
            state = json.loads(state, strict=False)
        except (ValueError, RecursionError):
            return ""
    found = record_of(state).record("report_message")
    return _content(found.record("content"))[0] if found else ""


def _message(message: Record) -> ImportedMessage | None:
    shown = _visible(message)
    if shown is None:
        return None
    text, assets = shown
    attached = tuple(dict.fromkeys(message.record("metadata").lines("attachments", "name")))
    attached = attached or tuple(assets)
    if not text and not attached:
        return None
    role: Role = "user" if _role(message) == "user" else "assistant"
    return ImportedMessage(role, text, message.time("create_time"), message.text("id"), attached)


def _visible(message: Record) -> tuple[str, list[str]] | None:
    """Return the text of a message and the kinds of files in it, or None if it isn't shown."""
    if canvas := _canvas(message):
        return canvas, []
    if report := _report(message):
        return report, []
    role, content = _role(message), message.record("content")
    if role == "tool":  # its text about a generated picture is not shown
        text, assets = _content(content)
        if message.record("metadata").get("is_async_task_result_message") is True and text:
            return text, assets
        return ("", assets) if assets else None
    hidden = message.record("metadata").get("is_visually_hidden_from_conversation")
    if role_of(role) is None or message.get("weight") == 0 or hidden or _is_call(message):
        return None
    return None if content.text("content_type") in _NOT_SHOWN else _content(content)


def _content(content: Record) -> tuple[str, list[str]]:
    if content.get("content_type") == "code":
        text, language = content.text("text").strip(), content.text("language").strip()
        shown = language if language.isalnum() and language != "unknown" else ""
        return (f"```{shown}\n{text}\n```" if text else ""), []
    parts = content.get("parts")
    texts: list[str] = []
    attached: list[str] = []
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        data = record_of(part)
        kind = data.text("content_type")
        if kind in _ASSETS:
            attached.append(_ASSETS[kind])
        elif kind in _TEXTS:
            texts.append(text_of(part) or data.text("text"))
    return without_marks(paragraphs(texts)), attached


def without_marks(text: str) -> str:
    """Remove citation marks from a text, keeping the words that a mark displays."""
    text = _CITATION.sub("", _MARK.sub(_displayed_word, text))
    return _PRIVATE_USE.sub("", text).strip()


def _displayed_word(mark: re.Match[str]) -> str:
    kind, *labels = mark[1].split("\ue202")
    space = mark[0][0] if mark[0][0] in " \t" else ""
    if kind == "entity" and labels:
        try:
            data = json.loads(labels[0])
        except (ValueError, RecursionError):
            return ""
        is_named = isinstance(data, list) and len(data) > 1 and isinstance(data[1], str)
        return f"{space}{data[1]}" if is_named else ""
    return f"{space}{labels[0]}" if kind in ("url", "link_title") and labels else ""
