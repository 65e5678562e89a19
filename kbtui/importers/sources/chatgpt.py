"""ChatGPT: its exports, whole or split, of the branch that was last looked at.

System messages, tools and what is marked as hidden are counted, and thoughts; marks of citations
stay out. Documents of the canvas come where they were written, pictures, recordings and papers as
files. What a person told ChatGPT of themselves, and what it remembered, are notes: the newest.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from kbtui.importers.markup import line_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Item, Said, Skipped, Source
from kbtui.importers.reading import (
    dated,
    fields_of,
    file_of,
    json_list,
    json_members,
    mapping,
    mappings,
    place_of,
    read_each,
    text_of,
    time_of,
)
from kbtui.importers.trees import branch_of
from kbtui.text import counted

_MARK = re.compile("[ \t]?\ue200([^\ue200\ue201]*)\ue201")
_CITATION = re.compile(r"[ \t]?【\d+(?::\d+)?†[^】\n]*】")
_PRIVATE_USE = re.compile("[\ue000-\uf8ff]")
_SHOWN = {"text", "multimodal_text", "code", "canvas"}
_ASSETS = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "real_time_user_audio_video_asset_pointer": "audio",
    "video_container_asset_pointer": "video",
}
_KINDS = {"image": "picture", "audio": "recording", "video": "video"}
# The conversations again as a page, and what is said of them and of the user.
_THE_SAME = frozenset(
    (
        *("chat.html", "user.json", "user_settings.json", "message_feedback.json"),
        *("shared_conversations.json", "model_comparisons.json", "export_manifest.json"),
    )
)
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
    # The first conversation may be one whose tree is missing.
    return "mapping" in fields or {"conversation_id", "title"} <= fields


def _read(opened: OpenedExport) -> Iterator[Item]:
    rest = _Rest(opened)

    def conversations(opened: OpenedExport, name: str) -> Iterator[Item]:
        for each in json_list(opened, name):
            if isinstance(each, Skipped):
                yield each
            else:
                yield from _conversation(name, each, rest)

    yield from read_each(opened, [*_exports(opened)], conversations)
    for name in rest.files.values():  # that no conversation shows
        yield file_of(opened, name)
    yield from rest.told()
    opened.taken.update(each for each in opened.names if each.rpartition("/")[2] in _THE_SAME)


SOURCE = Source("ChatGPT", "chatgpt", lambda opened: any(True for _ in _exports(opened)), _read)


class _Rest:
    """What there is beside conversations: `files` by their ids, taken by whoever shows them first.

    `projects` counts the conversations of each; an export has their ids only.
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

    def has(self, id_: str) -> bool:
        """True if the export has a file, whoever took it."""
        return id_ in self._all

    def take(self, files: dict[str, str]) -> Iterator[Item]:
        """The files of these ids, each with the name that it was given."""
        for id_, title in files.items():
            if name := self.files.pop(id_, ""):
                yield file_of(self.opened, name, title)

    def context(self, message: dict[str, Any], time: datetime | None) -> None:
        """Take note of what was given to the model beside the conversation, if it is the newest."""
        about = mapping(mapping(message.get("metadata")).get("user_context_message_data"))
        content = mapping(message.get("content"))
        told = {
            _ABOUT[key]: text_of(value)
            for key, value in {**content, **about}.items()
            if key in _ABOUT
        }
        parts = [
            f"## {title}\n\n{text.strip()}" for title, text in sorted(told.items()) if text.strip()
        ]
        kinds = {
            "Custom instructions": "\n\n".join(parts),
            "What ChatGPT remembered": text_of(content.get("model_set_context")).strip(),
        }
        when = time or datetime.min.replace(tzinfo=UTC)
        for title, text in kinds.items():
            if text and (title not in self._notes or self._notes[title][0] < when):
                self._notes[title] = (when, text)

    def told(self) -> Iterator[Item]:
        """The notes, and what the export doesn't say."""
        for title, (time, text) in self._notes.items():
            yield ImportedNote(title.lower(), title, text, time if time.year > 1 else None)
        if self.projects:
            count, of = self.projects.total(), len(self.projects)
            ids = ", ".join(map(line_of, sorted(self.projects)[:5]))
            why = (
                f"An export has ids of projects only; {counted(count, 'conversation')} of them came"
            )
            yield Skipped(f"Name and instructions of {counted(of, 'project')}", f"{why}: {ids}.")


def _conversation(name: str, element: dict[str, Any], rest: _Rest) -> Iterator[Item]:
    id_ = text_of(element.get("conversation_id")) or text_of(element.get("id"))
    title = line_of(element.get("title"))
    tree = mapping(element.get("mapping"))
    nodes = {key: node for key, node in tree.items() if isinstance(node, dict)}
    if not nodes:
        yield Skipped(place_of(name, title, id_), "It has no messages: its tree is missing.")
        return
    line, branches = _branch(nodes, text_of(element.get("current_node")))
    messages = [mapping(node.get("message")) for node in line]
    said: list[Said] = []
    named: Counter[str] = Counter()
    files: dict[str, str] = {}
    for message in messages:
        rest.context(message, time_of(element.get("update_time")))
        shown = _said(message)
        if shown is not None:
            said.append(shown)
        elif kind := _hidden(message):
            named[kind] += 1
        for id_of_file, kind, title_of_file in _files(message):
            files[id_of_file] = title_of_file
            named[kind] += not rest.has(id_of_file)
    if not said:
        yield Skipped(place_of(name, title, id_), "It holds no messages that were shown.")
        return
    project = text_of(element.get("gizmo_id"))
    if project.startswith("g-p-"):
        rest.projects[project] += 1
    yield ImportedConversation(
        id_ or f"{element.get('create_time')} {said[0].id or said[0].text[:200]}",
        title,
        *dated(said, element.get("create_time"), element.get("update_time")),
        tuple(said),
        url=f"https://chatgpt.com/c/{id_}" if re.fullmatch(r"[\w-]+", id_) else "",
        branches=branches,
        named=tuple((+named).items()),
    )
    yield from rest.take(files)


def _parents(nodes: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The parent of each node, as it says itself, or else as that says; empty: it has none."""
    parents = dict.fromkeys(nodes, "")
    for key, node in nodes.items():
        children = node.get("children")
        for child in children if isinstance(children, list) else ():
            if isinstance(child, str) and not parents.get(child, key):
                parents[child] = key
    told = {key: text_of(node.get("parent")) for key, node in nodes.items()}
    return parents | {key: parent for key, parent in told.items() if parent in nodes}


def _branch(nodes: dict[str, dict[str, Any]], current: str) -> tuple[list[dict[str, Any]], int]:
    """The nodes from the root to the current leaf, else the newest; how many others there are.

    A leaf that says nothing is none.
    """
    parents = _parents(nodes)
    inner = {*parents.values(), current}
    told = {key for key in nodes if key in inner or mapping(nodes[key].get("message"))} or nodes
    line, others = branch_of(
        {key: parent for key, parent in parents.items() if key in told},
        {key: _time(node) for key, node in nodes.items()},
        current,
    )
    return [nodes[key] for key in line], others


def _time(node: dict[str, Any]) -> Any:
    return time_of(mapping(node.get("message")).get("create_time"))


def _hidden(message: dict[str, Any]) -> str:
    """The kind of a message that isn't shown; empty for what the program wrote for itself."""
    role = text_of(mapping(message.get("author")).get("role"))
    kind = text_of(mapping(message.get("content")).get("content_type"))
    if kind in ("thoughts", "reasoning_recap"):
        return "thought"
    is_step = role == "tool" or (
        role == "assistant" and message.get("recipient") not in ("all", None)
    )
    return "step of a tool" if is_step else ""


def _files(message: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The files of a message: id, kind, and the name that it was given."""
    named = mappings(mapping(message.get("metadata")).get("attachments"))
    titles = {text_of(each.get("id")): line_of(each.get("name")) for each in named}
    kinds = dict.fromkeys(filter(None, titles), "file")
    parts = mapping(message.get("content")).get("parts")
    for part in mappings(parts):
        inner = mapping(part.get("audio_asset_pointer"))
        pointer = text_of(part.get("asset_pointer")) or text_of(inner.get("asset_pointer"))
        kind = _ASSETS.get(text_of(part.get("content_type")), "")
        found = _FILE.match(pointer.rpartition("//")[2])
        if kind:
            kinds[found[0] if found else pointer or f"{len(kinds)}"] = _KINDS[kind]
    for id_, kind in kinds.items():
        yield id_, kind, titles.get(id_, "")


def _canvas(message: dict[str, Any]) -> str:
    """A document of the canvas as it was written or changed; empty if this is none."""
    if not text_of(message.get("recipient")).startswith(_CANVAS):
        return ""
    content = mapping(message.get("content"))
    parts = content.get("parts")
    first = parts[0] if isinstance(parts, list) and parts else ""
    try:
        told = mapping(json.loads(text_of(content.get("text")) or text_of(first), strict=False))
    except (ValueError, RecursionError):
        return ""
    title = line_of(told.get("name")) or "Canvas"
    if text := text_of(told.get("content")).strip():
        return f"[{title}]\n{text}"
    changes = [text_of(each.get("replacement")).strip() for each in mappings(told.get("updates"))]
    text = "\n\n".join(filter(None, changes))
    return f"[{title}, changed]\n{text}" if text else ""


def _said(message: dict[str, Any]) -> Said | None:
    role = text_of(mapping(message.get("author")).get("role"))
    about = mapping(message.get("metadata"))
    if role == "system" and about.get("is_user_system_message") is True:
        role = "user"
    canvas = _canvas(message) if role == "assistant" else ""
    is_picture = role == "tool" and bool(_content(mapping(message.get("content")))[1])
    if not (canvas or is_picture or _is_shown(message, role)):
        return None
    text, attached = (canvas, []) if canvas else _content(mapping(message.get("content")))
    text = "" if is_picture else text  # what a tool says of a picture it made was not shown
    named = (line_of(each.get("name")) for each in mappings(about.get("attachments")))
    attached = list(dict.fromkeys(filter(None, named))) or attached
    if not text and not attached:
        return None
    return Said(
        "user" if role == "user" else "assistant",
        text,
        time_of(message.get("create_time")),
        text_of(message.get("id")),
        tuple(attached),
    )


def _is_shown(message: dict[str, Any], role: str) -> bool:
    """True if a person is shown a message, and it is no call of a tool."""
    if role not in ("user", "assistant") or message.get("weight") == 0:
        return False
    if mapping(message.get("metadata")).get("is_visually_hidden_from_conversation"):
        return False
    is_call = role == "assistant" and message.get("recipient") not in ("all", None)
    kind = text_of(mapping(message.get("content")).get("content_type"))
    return kind in _SHOWN and not is_call


def _content(content: dict[str, Any]) -> tuple[str, list[str]]:
    if content.get("content_type") == "code":
        text = text_of(content.get("text")).strip()
        language = text_of(content.get("language")).strip()
        shown = language if language.isalnum() and language != "unknown" else ""
        return (f"```{shown}\n{text}\n```" if text else ""), []
    parts = content.get("parts")
    texts: list[str] = []
    attached: list[str] = []
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        kind = text_of(mapping(part).get("content_type"))
        if isinstance(part, str):
            texts.append(part)
        elif kind in _ASSETS:
            attached.append(_ASSETS[kind])
        elif text_of(mapping(part).get("text")) and kind in ("", "text", "audio_transcription"):
            texts.append(mapping(part)["text"])
    text = "\n\n".join(each.strip() for each in texts if each.strip())
    return without_marks(text), attached


def without_marks(text: str) -> str:
    """A text without marks of citations; what such a mark shows as a word stays."""
    text = _CITATION.sub("", _MARK.sub(_word_of, text))
    return _PRIVATE_USE.sub("", text).strip()


def _word_of(mark: re.Match[str]) -> str:
    kind, *rest = mark[1].split("\ue202")
    lead = mark[0][0] if mark[0][0] in " \t" else ""
    if kind == "entity" and rest:
        try:
            told = json.loads(rest[0])
        except (ValueError, RecursionError):
            return ""
        is_named = isinstance(told, list) and len(told) > 1 and isinstance(told[1], str)
        return f"{lead}{told[1]}" if is_named else ""
    return f"{lead}{rest[0]}" if kind in ("url", "link_title") and rest else ""
