"""ChatGPT: its exports, whole or split, of the branch that was last looked at.

System messages, tools and what is marked as hidden stay out, and so do thoughts and the marks of
citations, which mean nothing outside of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kbtui.importers.markup import line_of
from kbtui.importers.opened import Opened
from kbtui.importers.port import Conversation, Item, Said, Skipped, Source
from kbtui.importers.reading import (
    dated,
    json_list,
    json_members,
    mapping,
    mappings,
    newest,
    place_of,
    read_each,
    text_of,
    time_of,
)

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


def _exports(opened: Opened) -> Iterator[str]:
    return (name for name, head in json_members(opened) if _is_export(head))


def _is_export(head: bytes) -> bool:
    if b'"chat_messages"' in head or b'"rating"' in head:
        return False
    timed = b'"create_time"' in head or b'"current_node"' in head
    # The first conversation may be one whose tree is missing.
    return timed and (b'"mapping"' in head or (b'"conversation_id"' in head and b'"title"' in head))


def _conversations(opened: Opened, name: str) -> Iterator[Item]:
    for each in json_list(opened, name):
        yield each if isinstance(each, Skipped) else _conversation(name, each)


SOURCE = Source(
    "ChatGPT",
    "chatgpt",
    lambda opened: any(True for _ in _exports(opened)),
    lambda opened: read_each(opened, [*_exports(opened)], _conversations),
)


def _conversation(name: str, element: dict[str, Any]) -> Item:
    id_ = text_of(element.get("conversation_id")) or text_of(element.get("id"))
    title = line_of(element.get("title"))
    tree = mapping(element.get("mapping"))
    nodes = {key: node for key, node in tree.items() if isinstance(node, dict)}
    if not nodes:
        return Skipped(place_of(name, title, id_), "It has no messages: its tree is missing.")
    line, branches = _branch(nodes, text_of(element.get("current_node")))
    said = tuple(each for node in line if (each := _said(node)) is not None)
    if not said:
        return Skipped(place_of(name, title, id_), "It holds no messages that were shown.")
    return Conversation(
        id_ or f"{element.get('create_time')} {said[0].id or said[0].text[:200]}",
        title,
        *dated(said, element.get("create_time"), element.get("update_time")),
        said,
        url=f"https://chatgpt.com/c/{id_}" if re.fullmatch(r"[\w-]+", id_) else "",
        branches=branches,
    )


def _branch(nodes: dict[str, dict[str, Any]], current: str) -> tuple[list[dict[str, Any]], int]:
    """The nodes from the root to the current leaf, else the newest; how many others there are."""
    parents: dict[str, str] = {}
    for key, node in nodes.items():
        children = node.get("children")
        for child in children if isinstance(children, list) else ():
            if isinstance(child, str) and child in nodes:
                parents.setdefault(child, key)
    for key, node in nodes.items():
        parent = node.get("parent")
        if isinstance(parent, str) and parent in nodes:
            parents[key] = parent
    inner = set(parents.values())
    leaves = [key for key in nodes if key not in inner]
    told = [key for key in leaves if mapping(nodes[key].get("message"))]
    if current not in nodes:
        choices = told or leaves or list(nodes)
        current = newest(choices, [_time(nodes[key]) for key in choices])
    line: list[dict[str, Any]] = []
    seen: set[str] = set()
    at: str | None = current
    while at is not None and at not in seen:
        seen.add(at)
        line.append(nodes[at])
        at = parents.get(at)
    others = sum(key not in seen for key in told)
    return line[::-1], others


def _time(node: dict[str, Any]) -> Any:
    return time_of(mapping(node.get("message")).get("create_time"))


def _said(node: dict[str, Any]) -> Said | None:
    message = mapping(node.get("message"))
    role = text_of(mapping(message.get("author")).get("role"))
    about = mapping(message.get("metadata"))
    if role == "system" and about.get("is_user_system_message") is True:
        role = "user"
    content = mapping(message.get("content"))
    if (
        role not in ("user", "assistant")
        or message.get("weight") == 0
        or about.get("is_visually_hidden_from_conversation")
        or text_of(content.get("content_type")) not in _SHOWN
        or (role == "assistant" and message.get("recipient") not in ("all", None))
    ):
        return None
    text, attached = _content(content)
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
