"""Exports as other programs write them, made here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

ROOT = "00000000-0000-4000-8000-000000000000"


def claude_message(number: int, text: str, /, **more: Any) -> dict[str, Any]:
    """A message; the user says the odd ones."""
    return {
        "uuid": f"m{number}",
        "sender": "human" if number % 2 else "assistant",
        "text": text,
        "content": [{"type": "text", "text": text}],
        "created_at": f"2024-03-05T09:{number % 60:02}:00.000000Z",
        **more,
    }


def claude(id_: str, *texts: str, day: str = "2024-03-05", **more: Any) -> dict[str, Any]:
    """A conversation of Claude.ai."""
    return {
        "uuid": id_,
        "name": f"Talk {id_}",
        "created_at": f"{day}T09:00:00Z",
        "updated_at": f"{day}T10:00:00Z",
        "chat_messages": [claude_message(n, text) for n, text in enumerate(texts, 1)],
        **more,
    }


def node(id_: str, parent: str | None, role: str = "user", text: str = "", **more: Any) -> Any:
    """A node of a ChatGPT tree with its message."""
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    message = {
        "id": id_,
        "author": {"role": role},
        "create_time": more.pop("create_time", 1709629200.0),
        "content": content,
        "weight": 1.0,
        "recipient": "all",
        "metadata": {},
        **more,
    }
    return {"id": id_, "parent": parent, "children": [], "message": message}


def chatgpt(id_: str, *nodes: Any, **more: Any) -> dict[str, Any]:
    """A conversation of ChatGPT; the last node is the current one."""
    return {
        "conversation_id": id_,
        "title": f"Chat {id_}",
        "create_time": 1709629200.5,
        "update_time": 1709632800.5,
        "current_node": nodes[-1]["id"] if nodes else None,
        "mapping": {each["id"]: each for each in nodes},
        **more,
    }


def written(file: Path, value: Any) -> Path:
    """A file with a value as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), "utf-8")
    return file
