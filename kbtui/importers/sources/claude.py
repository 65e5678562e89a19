"""Claude.ai: exports of all generations, with projects and memories besides conversations.

A 2026 download is a manifest of the files to fetch, which raises an error that explains it. The
``text`` of a message mixes in thinking and notices; its text blocks are what was shown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from kbtui.errors import UnreadableError
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import digest, line_of
from kbtui.importers.port import (
    ImportedConversation,
    ImportedMessage,
    ImportedNote,
    Item,
    Skipped,
    Source,
)
from kbtui.importers.reading import (
    Record,
    address_of,
    dated,
    fields_of,
    identity_of,
    json_list,
    json_members,
    paragraphs,
    place_of,
    read_each,
    read_records,
    record_of,
    role_of,
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
_HIDDEN = {"thinking": "thought", "tool_use": "step of a tool"}
_FILES = ("file", "image")
_DATA_FIELDS = frozenset(("chat_messages", "conversations_memory", "memory_files"))
_DESIGN_FIELDS = (b'"contentBlocks"', b'"authorAccountUuid"')
_PROJECT_FIELDS = frozenset(("docs", "prompt_template", "is_starter_project"))
_USER_FIELDS = frozenset(("email_address", "full_name", "verified_phone_number"))


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
            opened.taken.add(name)  # the user's account, or a manifest


SOURCE = Source("Claude.ai", "claude", _recognises, _read)


def _kind(head: bytes) -> str:
    fields = fields_of(head, "conversations", "projects")
    is_project = {"uuid", "name"} <= fields and fields & _PROJECT_FIELDS
    if fields & _DATA_FIELDS or is_project or any(part in head for part in _DESIGN_FIELDS):
        return "data"
    if "data_files" in fields and b'"export_url"' in head:
        return "manifest"
    return "user" if fields & _USER_FIELDS else ""


def _manifest(opened: OpenedExport, name: str) -> UnreadableError:
    try:
        manifest = record_of(json.loads(opened.head(name, 8 << 20)))
    except (ValueError, RecursionError):
        manifest = Record()
    names = manifest.lines("data_files", "filename")
    shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return UnreadableError(
        f"{line_of(name)} holds no conversations: it lists the files of the export"
        f"{': ' if shown else ''}{shown}.",
        "Download each of them (the links are its `export_url`, and expire), put them into one"
        " folder, and import that folder.",
    )


def _member(opened: OpenedExport, name: str) -> Iterator[Item]:
    def read(record: Record) -> Iterator[Item]:
        for element in record.records("projects") or [record]:
            yield from _element(name, element)

    return read_records(json_list(opened, name), read)


def _element(name: str, value: Record) -> Iterator[Item]:
    if "chat_messages" in value:
        yield from _conversation(name, value)
    elif isinstance(value.get("messages"), list):
        yield from _conversation(name, _from_design(value))
    elif "conversations_memory" in value or "memory_files" in value:
        yield from _memories(value)
    elif _PROJECT_FIELDS & value.keys():
        yield from _project(value)
    else:
        yield Skipped(place_of(name, value.get("name"), value.get("uuid")), "It has no messages.")


def _from_design(value: Record) -> Record:
    messages = []
    for message in value.records("messages"):
        inner = message.record("content")
        attached = inner.records("attachments")
        files = [{"file_name": each.get("name")} for each in attached if each.get("type") in _FILES]
        body = {"content": inner.get("contentBlocks"), "text": inner.get("content")}
        time = message.get("created_at") or inner.get("timestamp")
        messages.append({**message, **body, "created_at": time, "files": files})
    return Record({**value, "name": value.get("title"), "chat_messages": messages})


def _conversation(name: str, value: Record) -> Iterator[Item]:
    items = _converted(name, value)
    value.clear()  # it is as large as what came of it
    yield from items


def _converted(name: str, value: Record) -> list[Item]:
    """Return a conversation, and the texts of its attachments."""
    id_, title = value.text("uuid"), value.line("name")
    branch, branches = _branch(value.records("chat_messages"))
    titles: dict[str, str] = {}
    converted = tuple(each for message in branch if (each := _message(message, titles)) is not None)
    if not converted:
        return [Skipped(place_of(name, title, id_), "It holds no messages.")]
    talk = ImportedConversation(
        id_ or identity_of(converted, value.get("created_at")),
        title,
        *dated(converted, value.time("created_at"), value.time("updated_at")),
        converted,
        url=address_of("https://claude.ai/chat/", id_),
        branches=branches,
        named=Counter(kind for message in branch for kind in _omitted_kinds(message)),
    )
    return [talk, *(note for message in branch for note in _attachments(message))]


def _attachments(message: Record) -> Iterator[Item]:
    """Yield the extracted texts of attachments as notes, since nobody wrote them in the chat."""
    for each in message.records("attachments"):
        text = each.text("extracted_content")
        if text.strip():
            title = each.line("file_name") or "Pasted text"
            time = message.time("created_at")
            id_ = f"attachment {digest(title, text)}"
            yield ImportedNote(id_, title, text, time, time, folder="attachments")


def _omitted_kinds(message: Record) -> Iterator[str]:
    """Yield the kinds of content in a message that isn't imported."""
    for each in message.records("attachments"):
        if not each.text("extracted_content").strip():
            yield "file"
    yield from ("file" for _ in message.records("files"))
    if not message.records("content") and "hinking" in message.text("text"):
        yield from ("thought" for _ in _THINKING.finditer(message.text("text")))
    for block in message.records("content"):
        kind = block.text("type")
        if kind in _HIDDEN and not _block(block, {}):
            yield _HIDDEN[kind]
        elif kind in _FILES or kind == "document":
            yield "file"


def _branch(messages: Sequence[Record]) -> tuple[list[Record], int]:
    """Return the messages up to the newest leaf, and the number of other leaves.

    Without parents, or if they form a cycle, return all messages by time.
    """
    known = {id_: each for each in messages if (id_ := each.text("uuid"))}
    if not any("parent_message_uuid" in each for each in messages) or len(known) < len(messages):
        return _by_time(messages), 0
    parents = {id_: each.text("parent_message_uuid") for id_, each in known.items()}
    times = {id_: each.time("created_at") for id_, each in known.items()}
    line, others = branch_of(parents, times)
    if not line or parents[line[0]] in known:
        return _by_time(messages), 0
    return [known[id_] for id_ in line], others


def _by_time(messages: Sequence[Record]) -> list[Record]:
    """Return the messages by time; where a question and answers share one, the question first."""
    dated = [(time, each) for each in messages if (time := each.time("created_at"))]
    if len(dated) < len(messages):
        return list(messages)
    ordered = sorted(dated, key=lambda pair: pair[0])
    found: list[Record] = []
    for _, group in groupby(ordered, key=lambda pair: pair[0]):
        found += _in_turns([each for _, each in group], found)
    return found


def _in_turns(group: list[Record], before: Sequence[Record]) -> list[Record]:
    """Return messages of one time so that questions and answers alternate, as they were said."""
    said: dict[bool, list[Record]] = {True: [], False: []}
    for each in group:
        said[role_of(each.text("sender", "role")) == "user"].append(each)
    is_asked = not before or role_of(before[-1].text("sender", "role")) != "user"
    found: list[Record] = []
    while said[True] or said[False]:
        if said[is_asked]:
            found.append(said[is_asked].pop(0))
        is_asked = not is_asked
    return found


def _message(message: Record, titles: dict[str, str]) -> ImportedMessage | None:
    role = role_of(message.text("sender", "role"))
    if role is None:
        return None
    text = _visible_text(message, titles)
    names = (*message.lines("attachments", "file_name"), *message.lines("files", "file_name"))
    if not text and not names:
        return None
    attached = tuple(dict.fromkeys(names))
    return ImportedMessage(role, text, message.time("created_at"), message.text("uuid"), attached)


def _visible_text(message: Record, titles: dict[str, str]) -> str:
    """Return the text of a message as shown; `titles` maps ids of earlier artifacts to titles."""
    blocks = message.records("content")
    text = paragraphs(_block(each, titles) for each in blocks)
    if not text and all(each.get("type") == "text" for each in blocks):
        text = message.text("text", "content")
    # Few messages contain these, and a substring check is far cheaper than a regex.
    if "This block is not" in text or "Viewing artifacts" in text:
        text = _NOTICE.sub("", text)
    if "hinking" in text:
        text = _THINKING.sub("", text)
    if "antArtifact" in text:
        text = _ARTIFACT.sub(_artifact_tag, text)
    return (_BLANK_LINES.sub("\n\n", text) if "\n\n\n" in text else text).strip()


def _block(block: Record, titles: dict[str, str]) -> str:
    """Return what a block shows: a text, or the artifact or file that it writes or changes."""
    kind = block.get("type")
    if kind in ("text", "voice_note"):
        return block.text("text").strip()
    if kind == "tool_result":
        return _answers(block)
    made = block.record("input")
    if kind != "tool_use" or not ("path" in made or block.get("name") == "artifacts"):
        asked = (_question(each) for each in made.records("questions"))
        return paragraphs([*asked, *(_draft(each, made) for each in made.records("variants"))])
    id_ = made.line("id", "path")
    titles[id_] = title = made.line("title") or titles.get(id_) or made.line("path")
    for did, *names in (
        (", changed", "new_str", "new_string"),
        (", without", "old_str", "old_string"),
        ("", "content", "file_text"),
    ):
        if text := made.text(*names).strip():
            return f"[{title or 'Artifact'}{did}]\n{text}"
    return ""


def _question(asked: Record) -> str:
    """Return a question with what it offers, as the program showed it."""
    options = asked.get("options")
    labels = options if isinstance(options, list) else []
    lines = [line_of(each) or record_of(each).line("label", "text") for each in labels]
    question = asked.words("question")
    return "\n".join([question, *(f"- {each}" for each in lines if each)]) if question else ""


def _answers(result: Record) -> str:
    """Return what a person chose in answer to questions, or "" for any other result."""
    texts = [each.text("text") for each in result.records("content")]
    for text in [each for each in texts if '"answers"' in each]:
        try:
            answers = record_of(json.loads(text, strict=False)).record("answers")
        except (ValueError, RecursionError):
            continue
        given = ((line_of(key), answers[key]) for key in answers)
        return "\n".join(f"{key} {_given(value)}" for key, value in given)
    return ""


def _given(value: object) -> str:
    return ", ".join(map(line_of, value)) if isinstance(value, list) else line_of(value)


def _draft(draft: Record, about: Record) -> str:
    """Return a text that was written to be sent, such as a mail, with its subject."""
    label = ", ".join(filter(None, (about.line("kind"), draft.line("label"))))
    title = f"[{label or 'Draft'}]"
    return paragraphs([title, draft.words("subject"), draft.words("body", "content", "text")])


def _artifact_tag(tag: re.Match[str]) -> str:
    if tag[1] is None:
        return ""
    title = _TITLE.search(tag[1])
    return f"[{title[1] if title and title[1] else 'Artifact'}]\n"


def _project(value: Record) -> Iterator[Item]:
    name = value.line("name") or "Untitled project"
    id_ = value.text("uuid") or name
    created, updated = value.time("created_at"), value.time("updated_at")
    about = {
        "Description": value.words("description"),
        "Instructions": value.words("prompt_template"),
    }
    if text := paragraphs(f"## {title}\n\n{body}" for title, body in about.items() if body):
        yield ImportedNote(f"project {id_}", name, text, updated, created, folder=name)
    yield from _documents(value, name, id_)


def _documents(project: Record, name: str, id_: str) -> Iterator[Item]:
    whole = project.time("updated_at"), project.time("created_at")
    for number, doc in enumerate(project.records("docs"), 1):
        title, text = doc.line("filename") or f"Document {number}", doc.text("content")
        document = f"document {doc.text('uuid') or f'{id_} {number}'}"
        made = doc.time("created_at")
        if text.strip():
            times = (made, made) if made else whole
            yield ImportedNote(document, title, text, *times, folder=name)
        else:
            yield Skipped(f"{name}: {title}", "It is empty.")


def _memories(value: Record) -> Iterator[Item]:
    content = value.text("conversations_memory")
    if content.strip():
        yield ImportedNote("memory", "What Claude remembered", content, folder="memories")
    projects = value.record("project_memories")
    for id_ in projects:
        if (text := projects.text(id_)).strip():
            title = f"What Claude remembered of project {line_of(str(id_))}"
            yield ImportedNote(f"memory {id_}", title, text, folder="memories")
    for number, file in enumerate(value.records("memory_files"), 1):
        path = file.line("path") or f"memory {number}"
        if (text := file.text("content")).strip():
            folder, _, name = path.strip("/").rpartition("/")
            yield ImportedNote(
                f"memory file {path}",
                name.removesuffix(".md"),
                text,
                file.time("updated_at"),
                folder=f"memories/{folder}".strip("/"),
            )
