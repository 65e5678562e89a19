"""A workspace with everything that makes memory, and conversations to make it of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from kbtui.errors import ModelSlowError
from kbtui.history.history import History
from kbtui.knowledge.library.library import Library
from kbtui.memory.background.service import Memory
from kbtui.memory.consolidation.due import Due, Pending
from kbtui.memory.recall.newer import Newer
from kbtui.memory.recall.remembered import Remembering
from kbtui.memory.records.archive import Archive, Tombstones
from kbtui.memory.services import Services
from kbtui.models.roles import ModelRegistry
from kbtui.search.search_index import SearchIndex
from kbtui.sessions.store import Session, SessionStore
from kbtui.settings import Settings, load_settings
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kbtui.models.port import ChatModel
    from kbtui.workspace.layout import Workspace
    from tests.scripted_server import ScriptedServer

START = datetime(2026, 3, 6, 10, 0, tzinfo=UTC)
SEED = (
    (0, "user", "What's my favorite color?"),
    (1, "assistant", "I don't have that information yet."),
    (2, "user", "It's blue. Remember that."),
    (3, "assistant", "Got it, I'll remember that your favorite color is blue."),
    (5, "user", "What programming languages do I know?"),
    (6, "assistant", "Could you tell me?"),
    (7, "user", "Python, JavaScript, and Go."),
    (8, "assistant", "Thanks, I've noted that you know Python, JavaScript, and Go."),
)


class Clock:
    """A time that a test moves on."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **time: float) -> None:
        self.now += timedelta(**time)


@dataclass
class Room:
    """One open workspace."""

    workspace: Workspace
    settings: Settings
    history: History
    library: Library
    search: SearchIndex
    sessions: SessionStore
    pipeline: Memory
    clock: Clock

    @property
    def root(self) -> Path:
        return self.workspace.root

    def read(self, path: str) -> str:
        return (self.root / path).read_text("utf-8")

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def write(self, path: str, text: str) -> None:
        """Write as the user does, in an editor, and let it be adopted."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        self.history.adopt(settle=0)

    def talk(self, said: Sequence[tuple[int, str, str]] = SEED, session: str = "") -> Session:
        """Say something in a session, new or open; minutes count from `START`."""
        talk = self.sessions.open(session) if session else self.sessions.create("tui")
        for minute, role, text in said:
            self.clock.now = START + timedelta(minutes=minute)
            talk.append(role, text)  # type: ignore[arg-type]
        return talk

    def close(self) -> None:
        self.sessions.close()
        self.library.close()
        self.search.close()


def open_room(root: Path, clock: Clock | None = None, **overrides: Any) -> Room:
    """Open a workspace, making it where it isn't there; `overrides` are settings by section."""
    workspace = create_workspace(root)
    search = {"semantic": False}
    settings = load_settings(root, overrides={"search": search, **overrides})
    scanner = Scanner(workspace)
    history = History(workspace, scanner)
    history.open()
    library = Library(workspace, history, scanner, private_paths=settings.privacy.private_paths)
    index = SearchIndex(workspace, scanner, settings.search, settings.models.embed)
    clock = clock or Clock()
    sessions = SessionStore(workspace, clock)
    newer = Newer(workspace, history, sessions, clock)
    rooms = Services(
        workspace,
        settings,
        history,
        library,
        index,
        sessions,
        ModelRegistry(settings),
        Archive(workspace, history),
        lambda: newer,
    )
    tombstones = Tombstones(workspace, history)
    pending = Pending(workspace, rooms.for_memory, rooms.archive, tombstones)
    remembering = Remembering(workspace, history, tombstones, settings.context.memory_tokens)
    pipeline = Memory(rooms, Due(pending, settings, clock), remembering, clock)
    history.add_companion(pipeline.tombstones.companion)
    return Room(workspace, settings, history, library, index, sessions, pipeline, clock)


def scripted(server: ScriptedServer, **options: Any) -> dict[str, Any]:
    """Settings that let the scripted server consolidate; the chat stays offline."""
    return scripted_at(server.url, **options)


def scripted_at(url: str, **options: Any) -> dict[str, Any]:
    """The same for one in another process."""
    role = {"model": "openai/scripted", "api_base": url, "api_key": "sesame", **options}
    patience = {"first_token_seconds": 60, "idle_seconds": 60, "retries": 0}
    return {"models": {"consolidate": role, **patience}}


def slow(model: ChatModel, *texts: str) -> ChatModel:
    """A model that takes too long for whatever holds all of some texts."""
    complete = model.complete

    async def within_time(messages: Any, *arguments: Any, **more: Any) -> Any:
        if all(text in messages[-1].content for text in texts):
            raise ModelSlowError(f"{model.name} gave no whole answer in 1 second.")
        return await complete(messages, *arguments, **more)

    model.complete = within_time  # type: ignore[method-assign]
    return model


def call_slice(summary: str = "They talked.", **more: Any) -> dict[str, Any]:
    """The tool call of a model that does as it is asked: facts one by one."""
    empty: dict[str, Any] = {"notes": [], "facts": [], "corrections": []}
    return {"name": "save_memory", "arguments": {"summary": summary, **empty, **more}}


def call_save(
    summary: str = "They talked.",
    facts: Sequence[str] = (),
    corrections: Sequence[dict[str, str]] = (),
    entries: Sequence[list[dict[str, Any]]] = (),
) -> dict[str, Any]:
    """The same, all for good: `facts` about the user, and what `entry` gives of other subjects."""
    told = [_lasting("user", "", fact) for fact in facts]
    known = [{"importance": 3, **each} for each in corrections]
    return call_slice(summary, facts=[*told, *chain(*entries)], corrections=known)


def entry(type_: str, title: str, text: str) -> list[dict[str, Any]]:
    """The facts of one subject, one a line."""
    return [_lasting(type_, title, line) for line in text.splitlines()]


def _lasting(type_: str, subject: str, text: str) -> dict[str, Any]:
    return {"text": text, "type": type_, "subject": subject, "importance": 3}


def as_older_versions_drop(workspace: Workspace) -> None:
    """Let the last tombstone say that memory passes over the messages that it names."""
    file = workspace.memory / "tombstones.jsonl"
    *lines, last = file.read_text("utf-8").splitlines()
    record = {**json.loads(last), "drops": True}
    file.write_text("\n".join([*lines, json.dumps(record), ""]), "utf-8")
