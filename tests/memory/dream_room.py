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
NEW = """\
- User prefers dark mode
- Alice owns billing
- Lives in Bonn, lived in Graz, likes tea, plays chess, which is a game
- Spoken languages: German, speaks Greek
- Favorite color: green, formerly blue
- The port is 5433; it runs nightly in Graz, on two or three hosts
- We move to Kafka tomorrow, which carries the events; MySQL is at version 18 now
- The very last one: fact 1 stands there; name: Bob, API key
- Alice Liddell is in the team and works there nightly
- Has a cold and a cat, is a vegetarian, is dry, works at Initech"""


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


def does(*edits: dict[str, Any]) -> Reply:
    """What a model answers: a list of edits."""
    return Reply(tool_calls=[call("curate", edits=list(edits))])


def do(name: str, **arguments: Any) -> dict[str, Any]:
    return {"do": name, **arguments}


def add(path: str, line: str, **more: Any) -> dict[str, Any]:
    return do("add_line", path=path, new=line, **more)


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return do("edit_file", path=path, old=old, new=new)


NOTHING = does()


async def run(room: Room, **options: Any) -> DreamReport:
    return await room.pipeline.dream.run(**options)


async def dreams(room: Room, server: ScriptedServer, *edits: dict[str, Any]) -> DreamReport:
    """Let the scripted model make some edits, and give up those that couldn't be made."""
    server.enqueue(does(*edits), NOTHING)
    report = await run(room)
    assert report.error is None, report.error
    server.replies[:] = []
    server._given = 0
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


def refused(server: ScriptedServer) -> list[str]:
    """The edits that couldn't be made, and why, as the last request tells them."""
    told_ = str(server.prompts[-1].messages[-1]["content"])
    return [line for line in told_.splitlines() if line.startswith('- {"do"')]


def proposals(room: Room) -> list[Proposal]:
    return room.pipeline.inbox.list()


def is_read(room: Room) -> bool:
    """Whether the cursors' file says that all of the archive was read."""
    cursors = json.loads(room.read(CURSORS))["dream"] if room.exists(CURSORS) else {}
    return all(
        entry.cursor <= cursors.get(entry.origin, 0) for entry in room.pipeline.archive.entries()
    )
