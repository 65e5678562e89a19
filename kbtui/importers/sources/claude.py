"""Claude.ai: its exports of all generations, and what they hold beside conversations.

A download of 2026 is a manifest that names the files to fetch; that is explained, not imported.
The ``text`` of a message mixes in thinking and notices: its blocks of text are what was seen.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kbtui.errors import UnreadableError
from kbtui.importers.markup import digest, line_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Item, Said, Skipped, Source
from kbtui.importers.reading import (
    dated,
    fields_of,
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

_NOTICE = re.compile(
    r"(?:^[ \t]*`{3,}[^\n]*\n)?[ \t]*"
    r"(?:This block is not supported on your current device yet"
    r"|Viewing artifacts created via the Analysis Tool web feature preview isn.t yet supported on"
    r" mobile)\.?[ \t]*(?:\n[ \t]*`{3,}[ \t]*$)?",
    re.MULTILINE,
)
_THINKING = re.compile(r"<(antThinking|thinking)\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL)
_ARTIFACT = re.compile(r"<antArtifact\b([^>]*)>\n?|</antArtifact>")
_TITLE = re.compile(r'\btitle="([^"]*)"')
_BLANK_LINES = re.compile(r"\n{3,}")
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_WHOLE, _BEFORE, _AFTER = (
    ("content", "file_text"),
    ("old_str", "old_string"),
    ("new_str", "new_string"),
)
_HIDDEN = {"thinking": "thought", "tool_use": "step of a tool"}
_FILES = ("file", "image")
_NO_PARENT = "00000000-0000-4000-8000-000000000000"
_DATA = frozenset(("chat_messages", "conversations_memory", "memory_files"))
_OF_DESIGN = (b'"contentBlocks"', b'"authorAccountUuid"')
_OF_PROJECT = frozenset(("docs", "prompt_template", "is_starter_project"))
_OF_USER = frozenset(("email_address", "full_name", "verified_phone_number"))


def _recognises(opened: OpenedExport) -> bool:
    return any(_kind(head) in ("data", "manifest") for _, head in json_members(opened))


def _read(opened: OpenedExport) -> Iterator[Item]:
    kinds = {name: _kind(head) for name, head in json_members(opened)}
    if "data" not in kinds.values():
        raise _manifest(opened, next(name for name, kind in kinds.items() if kind == "manifest"))
    for name, kind in kinds.items():
        if kind == "data" or (not kind and "design_chats/" in name):
            yield from read_each(opened, [name], _member)
        elif kind:
            opened.taken.add(name)  # who the user is, and what was to be fetched


SOURCE = Source("Claude.ai", "claude", _recognises, _read)


def _kind(head: bytes) -> str:
    fields = fields_of(head, "conversations", "projects")
    is_project = {"uuid", "name"} <= fields and fields & _OF_PROJECT
    if fields & _DATA or is_project or any(part in head for part in _OF_DESIGN):
        return "data"
    if "data_files" in fields and b'"export_url"' in head:
        return "manifest"
    return "user" if fields & _OF_USER else ""


def _manifest(opened: OpenedExport, name: str) -> UnreadableError:
    try:
        listed = mapping(json.loads(opened.head(name, 8 << 20))).get("data_files")
    except (ValueError, RecursionError):
        listed = None
    names = [line_of(each.get("filename")) for each in mappings(listed)]
    shown = ", ".join(filter(None, names[:20])) + (", …" if len(names) > 20 else "")
    return UnreadableError(
        f"{line_of(name)} holds no conversations: it lists the files of the export"
        f"{': ' if shown else ''}{shown}.",
        "Download each of them (the links are its `export_url`, and expire), put them into one"
        " folder, and import that folder.",
    )


def _member(opened: OpenedExport, name: str) -> Iterator[Item]:
    for each in json_list(opened, name):
        if isinstance(each, Skipped):
            yield each
            continue
        for element in mappings(each.get("projects")) or [each]:
            yield from _element(name, element)


def _element(name: str, value: dict[str, Any]) -> Iterator[Item]:
    if "chat_messages" in value:
        yield from _conversation(name, value)
    elif isinstance(value.get("messages"), list):
        yield from _conversation(name, _of_design(value))
    elif "conversations_memory" in value or "memory_files" in value:
        yield from _memories(value)
    elif _OF_PROJECT & value.keys():
        yield from _project(value)
    else:
        yield Skipped(place_of(name, value.get("name"), value.get("uuid")), "It has no messages.")


def _of_design(value: dict[str, Any]) -> dict[str, Any]:
    """A conversation about a design in the form of the others."""
    messages = []
    for message in mappings(value.get("messages")):
        inner = mapping(message.get("content"))
        attached = mappings(inner.get("attachments"))
        files = [{"file_name": each.get("name")} for each in attached if each.get("type") in _FILES]
        said = {"content": inner.get("contentBlocks"), "text": inner.get("content")}
        time = message.get("created_at") or inner.get("timestamp")
        messages.append({**message, **said, "created_at": time, "files": files})
    return {**value, "name": value.get("title"), "chat_messages": messages}


def _conversation(name: str, value: dict[str, Any]) -> Iterator[Item]:
    id_ = text_of(value.get("uuid"))
    title = line_of(value.get("name"))
    listed = mappings(value.get("chat_messages"))
    branch, branches = _branch(listed)
    titles: dict[str, str] = {}
    said = tuple(each for message in branch if (each := _said(message, titles)) is not None)
    if not said:
        yield Skipped(place_of(name, title, id_), "It holds no messages.")
        return
    yield ImportedConversation(
        id_ or f"{value.get('created_at')} {said[0].id or said[0].text[:200]}",
        title,
        *dated(said, value.get("created_at"), value.get("updated_at")),
        said,
        url=f"https://claude.ai/chat/{id_}" if re.fullmatch(r"[\w-]+", id_) else "",
        branches=branches,
        named=tuple(Counter(kind for message in branch for kind in _named(message)).items()),
    )
    for message in branch:
        yield from _attachments(message)


def _attachments(message: dict[str, Any]) -> Iterator[Item]:
    """The texts of what was attached. They are notes: nobody said them."""
    for each in mappings(message.get("attachments")):
        text = text_of(each.get("extracted_content"))
        if text.strip():
            title = line_of(each.get("file_name")) or "Pasted text"
            time = time_of(message.get("created_at"))
            id_ = f"attachment {digest(title, text)}"
            yield ImportedNote(id_, title, text, time, time, folder="attachments")


def _named(message: dict[str, Any]) -> Iterator[str]:
    """The kinds of what is in a message and isn't brought."""
    for each in mappings(message.get("attachments")):
        if not text_of(each.get("extracted_content")).strip():
            yield "file"
    yield from ("file" for _ in mappings(message.get("files")))
    for block in mappings(message.get("content")):
        kind = text_of(block.get("type"))
        if kind in _HIDDEN and not _block(block, {}):
            yield _HIDDEN[kind]
        elif kind in _FILES or kind == "document":
            yield "file"


def _branch(messages: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """The messages up to the latest leaf, and how many other leaves there are.

    Without parents, or where they lead in a circle, it is all messages by their time.
    """
    known = {text_of(each.get("uuid")): each for each in messages if text_of(each.get("uuid"))}
    if not any("parent_message_uuid" in each for each in messages) or len(known) < len(messages):
        return _by_time(messages), 0
    parents: dict[str, str] = {}
    last = ""
    for id_, message in known.items():
        parent = text_of(message.get("parent_message_uuid"))
        is_lost = parent not in {*known, "", _NO_PARENT}  # it is missing from the export
        parents[id_] = last if is_lost else parent
        last = id_
    times = {id_: time_of(each.get("created_at")) for id_, each in known.items()}
    line, others = branch_of(parents, times)
    if not line or parents[line[0]] in known:
        return _by_time(messages), 0
    return [known[id_] for id_ in line], others


def _by_time(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    times = [time_of(each.get("created_at")) for each in messages]
    if not all(times):
        return list(messages)
    order = sorted(range(len(messages)), key=lambda number: (times[number], number))
    return [messages[number] for number in order]


def _said(message: dict[str, Any], titles: dict[str, str]) -> Said | None:
    role = _ROLES.get(text_of(message.get("sender")) or text_of(message.get("role")))
    if role is None:
        return None
    text = _shown(message, titles)
    attached: tuple[str, ...] = ()
    if message.get("attachments") or message.get("files"):
        files = (*mappings(message.get("attachments")), *mappings(message.get("files")))
        names = (line_of(each.get("file_name")) for each in files)
        attached = tuple(dict.fromkeys(filter(None, names)))
    if not text and not attached:
        return None
    return Said(
        "user" if role == "user" else "assistant",
        text,
        time_of(message.get("created_at")),
        text_of(message.get("uuid")),
        attached,
    )


def _shown(message: dict[str, Any], titles: dict[str, str]) -> str:
    """The text of a message as a person saw it; `titles` has those of artifacts so far."""
    blocks = mappings(message.get("content"))
    if blocks:
        texts = [text for each in blocks if (text := _block(each, titles))]
        text = texts[0] if len(texts) == 1 else "\n\n".join(texts)
    else:
        text = text_of(message.get("text")) or text_of(message.get("content"))
    # Hardly any message holds one of these, and looking for a word costs nothing.
    if "This block is not" in text or "Viewing artifacts" in text:
        text = _NOTICE.sub("", text)
    if "hinking" in text:
        text = _THINKING.sub("", text)
    if "antArtifact" in text:
        text = _ARTIFACT.sub(_artifact_tag, text)
    return (_BLANK_LINES.sub("\n\n", text) if "\n\n\n" in text else text).strip()


def _block(block: dict[str, Any], titles: dict[str, str]) -> str:
    """What a block shows: a text, or what was made or changed: an artifact, a file."""
    kind = block.get("type")
    if kind in ("text", "voice_note"):
        return text_of(block.get("text")).strip()
    made = mapping(block.get("input"))
    if kind != "tool_use" or not ("path" in made or block.get("name") == "artifacts"):
        return ""
    path = line_of(made.get("path"))
    id_ = line_of(made.get("id")) or path
    title = line_of(made.get("title")) or titles.get(id_) or path
    titles[id_] = title
    name = title or "Artifact"
    whole, before, after = (_first_text(made, names) for names in (_WHOLE, _BEFORE, _AFTER))
    if before or after:
        did = "changed" if after else "without"
        return f"[{name}, {did}]\n{after or before}"
    return f"[{name}]\n{whole}" if whole else ""


def _first_text(made: dict[str, Any], names: Sequence[str]) -> str:
    return next(filter(None, (text_of(made.get(name)).strip() for name in names)), "")


def _artifact_tag(tag: re.Match[str]) -> str:
    if tag[1] is None:
        return ""
    title = _TITLE.search(tag[1])
    return f"[{title[1] if title and title[1] else 'Artifact'}]\n"


def _project(value: dict[str, Any]) -> Iterator[Item]:
    name = line_of(value.get("name")) or "Untitled project"
    id_ = text_of(value.get("uuid")) or name
    created, updated = time_of(value.get("created_at")), time_of(value.get("updated_at"))
    about = (
        ("Description", value.get("description")),
        ("Instructions", value.get("prompt_template")),
    )
    parts = [
        f"## {title}\n\n{text_of(text).strip()}" for title, text in about if text_of(text).strip()
    ]
    if parts:
        text = "\n\n".join(parts)
        yield ImportedNote(f"project {id_}", name, text, updated, created, folder=name)
    for number, doc in enumerate(mappings(value.get("docs")), 1):
        title = line_of(doc.get("filename")) or f"Document {number}"
        if not text_of(doc.get("content")).strip():
            yield Skipped(f"{name}: {title}", "It is empty.")
            continue
        made = time_of(doc.get("created_at"))
        yield ImportedNote(
            f"document {text_of(doc.get('uuid')) or f'{id_} {number}'}",
            title,
            text_of(doc.get("content")),
            made or updated,
            made or created,
            folder=name,
        )


def _memories(value: dict[str, Any]) -> Iterator[Item]:
    told = text_of(value.get("conversations_memory"))
    if told.strip():
        yield ImportedNote("memory", "What Claude remembered", told, folder="memories")
    projects = value.get("project_memories")
    for id_, text in projects.items() if isinstance(projects, dict) else ():
        if text_of(text).strip():
            title = f"What Claude remembered of project {line_of(str(id_))}"
            yield ImportedNote(f"memory {id_}", title, text_of(text), folder="memories")
    for number, file in enumerate(mappings(value.get("memory_files")), 1):
        path = line_of(file.get("path")) or f"memory {number}"
        if text_of(file.get("content")).strip():
            folder, _, name = path.strip("/").rpartition("/")
            yield ImportedNote(
                f"memory file {path}",
                name.removesuffix(".md"),
                text_of(file.get("content")),
                time_of(file.get("updated_at")),
                folder=f"memories/{folder}".strip("/"),
            )
