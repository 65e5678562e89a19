"""A workspace for Dream: an archive to read, files to curate, and a model that is told what to say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kbtui.history.change import Actor
from kbtui.memory.records.cursors import CURSORS, Cursors
from tests.memory.memory_room import Room, open_room
from tests.scripted_server import Reply, call

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.history.places import Proposal
    from kbtui.memory.dream.report import DreamReport
    from tests.scripted_server import ScriptedServer

MEMORY = "memory/MEMORY.md"
NEW = "- User prefers dark mode\n- Alice owns billing"


def dream_room(
    root: Path, server: ScriptedServer | None = None, *, patience: float = 10, **overrides: Any
) -> Room:
    """Open a workspace; with a server its model dreams, else the offline one."""
    if server is not None:
        role = {"model": "openai/scripted", "api_base": server.url, "api_key": "sesame"}
        role |= overrides.pop("role", {})
        limits = {"first_token_seconds": patience, "idle_seconds": patience, "retries": 0}
        overrides["models"] = {"dream": role, **limits, **overrides.get("models", {})}
    return open_room(root, **overrides)


def archive(
    room: Room,
    content: str = NEW,
    timestamp: str = "2026-03-06 10:00",
    *,
    raw: bool = False,
    session: str | None = None,
    messages: tuple[int, int] | None = None,
) -> int:
    """Add an archive entry, as the Consolidator does; its cursor."""
    with room.history.change(Actor.CONSOLIDATOR, "condensed") as change:
        return room.pipeline.archive.stage(
            change, content, session=session, messages=messages, timestamp=timestamp, raw=raw
        )


def machine(room: Room, **files: str) -> None:
    """Let a machine write files; ``people__alice`` is an entry, ``MEMORY`` the memory."""
    with room.history.change(Actor.CONSOLIDATOR, "earlier") as change:
        for name, text in files.items():
            change.write(path_of(name), text)


def path_of(name: str) -> str:
    if name == "MEMORY":
        return MEMORY
    return f"{name}.md" if name.isupper() else f"knowledge/{name.replace('__', '/')}.md"


def person(
    title: str, body: str = "## Role\nLead\n\n## Notes\n- Plays chess\n", head: str = ""
) -> str:
    """The text of an entry."""
    return f"---\ntype: person\ncreated: 2026-01-05\nupdated: 2026-01-05\n{head}---\n# {title}\n\n{body}"


def does(*calls: dict[str, Any]) -> Reply:
    """What a model answers: some edits."""
    return Reply(tool_calls=[{**each, "id": f"c{n}"} for n, each in enumerate(calls)])


def add(path: str, line: str, **more: Any) -> dict[str, Any]:
    return call("add_line", path=path, line=line, **more)


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return call("edit_file", path=path, old=old, new=new)


FINISH = Reply(tool_calls=[call("finish")])


async def run(room: Room, **options: Any) -> DreamReport:
    return await room.pipeline.dream.run(**options)


async def dreams(room: Room, server: ScriptedServer, *edits: dict[str, Any]) -> DreamReport:
    """Let the scripted model make some edits and finish."""
    server.enqueue(does(*edits), FINISH)
    report = await run(room)
    assert report.error is None, report.error
    return report


def seen(room: Room) -> int:
    """How far Dream has read."""
    return max(Cursors(room.workspace, room.history).seen().values(), default=0)


def state(room: Room) -> dict[str, str]:
    """Every durable file, and what was recorded last."""
    files = {path: room.read(path) for path in room.history.tree("HEAD") if room.exists(path)}
    return {**files, "HEAD": room.history.head() or ""}


def told(server: ScriptedServer, request: int = -1) -> str:
    """What the model was shown in a request, all messages of it."""
    return "\n".join(str(each.get("content")) for each in server.prompts[request].messages)


def answers(server: ScriptedServer) -> list[str]:
    """What the last request says came of the calls before it."""
    return [str(each["content"]) for each in server.prompts[-1].messages if each["role"] == "tool"]


def proposals(room: Room) -> list[Proposal]:
    return room.pipeline.inbox.list()


def is_read(room: Room) -> bool:
    """Whether the cursors' file says that all of the archive was read."""
    cursors = json.loads(room.read(CURSORS))["dream"] if room.exists(CURSORS) else {}
    return all(
        entry.cursor <= cursors.get(entry.origin, 0) for entry in room.pipeline.archive.entries()
    )
