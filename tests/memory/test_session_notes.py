"""The file that a session leaves behind: exactly as seed 001 has it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.change import Actor
from kbtui.models.port import Message, Reply, ToolCall, Usage
from tests.memory.memory_room import SEED, START, Room, open_room

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SUMMARY = "The user likes blue and knows three languages."


class Model:
    """A model that calls the tool it is told to with given arguments."""

    name = "scripted"
    is_local = True
    context_window = 20_000

    def __init__(self, arguments: Any, tool: str = "create_session_memory") -> None:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        self.reply = Reply("", (ToolCall("1", tool, text),), "tool_calls", Usage())
        self.prompts: list[Sequence[Message]] = []
        self.forced: str | None = None

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def complete(
        self, messages: Sequence[Message], tools: object = (), *, force_tool: str | None = None
    ) -> Reply:
        self.prompts.append(messages)
        self.forced = force_tool
        return self.reply


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = open_room(tmp_path / "notes")
    yield room
    room.close()


def _use(room: Room, model: Model) -> Model:
    room.pipeline.session_notes._model = lambda: model  # type: ignore[assignment,return-value]
    return model


def _ended(form: str, minutes: int = 8) -> str:
    return (START.astimezone() + timedelta(minutes=minutes)).strftime(form)


async def _write(room: Room, session: str) -> Any:
    return await room.pipeline.session_notes.write_session_memory(session)


async def test_the_file_has_the_seeds_name_and_template(room: Room) -> None:
    session = room.talk()
    model = _use(room, Model({"slug": "Favorite Color & Skills", "summary": SUMMARY}))
    notes = await _write(room, session.id)
    assert notes.path == f"memory/{_ended('%Y-%m-%d')}-favorite-color-skills.md"
    lines = "\n".join(f"{role}: {text}" for _, role, text in SEED)
    assert room.read(notes.path) == (
        f"# Session Memory: {_ended('%Y-%m-%d %H:%M')}\n\n"
        f"- **Session**: {session.id}\n"
        f"- **Date**: {_ended('%Y-%m-%d %H:%M:%S')}\n\n"
        f"## Summary\n\n{SUMMARY}\n\n"
        f"## Key Messages\n\n{lines}\n"
    )
    assert model.forced == "create_session_memory"
    assert model.prompts[0][0].content.startswith("You are a memory writer. Generate a concise")
    commit = room.history.commit(notes.commit)
    assert (commit.actor, commit.origin.messages) == (Actor.SESSION_MEMORY, (1, 8))


async def test_a_trivial_session_leaves_nothing(room: Room) -> None:
    session = room.talk(SEED[:4])
    model = _use(room, Model({"slug": "x", "summary": SUMMARY}))
    assert await _write(room, session.id) is None
    assert not model.prompts


async def test_only_the_last_messages_of_people_are_summarised(tmp_path: Path) -> None:
    room = open_room(tmp_path / "notes", memory={"session_notes": {"max_messages": 4}})
    session = room.talk()
    call = ToolCall("c", "grep", "{}")
    session.append("assistant", "", tool_calls=[call])
    session.append("tool", "a tool's result", tool_call_id="c")
    session.append("assistant", "the end")
    model = _use(room, Model({"slug": "x", "summary": SUMMARY}))
    notes = await _write(room, session.id)
    prompt = model.prompts[0][1].content
    assert prompt.count("USER:") + prompt.count("ASSISTANT:") == 4
    assert "a tool's result" not in prompt
    assert "What's my favorite color?" not in prompt
    assert "assistant: the end" in room.read(notes.path)
    room.close()


async def test_a_session_that_goes_on_gets_a_file_for_what_is_new(room: Room) -> None:
    session = room.talk()
    model = _use(room, Model({"slug": "same", "summary": SUMMARY}))
    first = await _write(room, session.id)
    assert await _write(room, session.id) is None, "not twice"
    room.talk([(9, "user", "one"), (9, "user", "two"), (9, "user", "three")], session.id)
    second = await _write(room, session.id)
    assert second.path == first.path.replace(".md", "-2.md")
    assert "What's my" not in room.read(second.path)
    assert len(model.prompts) == 2


@pytest.mark.parametrize(
    "model",
    [
        Model("not json"),
        Model({"slug": "x"}),
        Model({"slug": "x", "summary": 5}),
        Model({"slug": "x", "summary": "(empty)"}),
        Model({"slug": "x", "summary": "I'm sorry, I can't help with that."}),
        Model({"slug": "x", "summary": SUMMARY}, tool="save_memory"),
    ],
    ids=["no json", "no summary", "a number", "a placeholder", "a refusal", "the wrong tool"],
)
async def test_where_the_model_fails_a_raw_excerpt_stays(room: Room, model: Model) -> None:
    session = room.talk()
    _use(room, model)
    notes = await _write(room, session.id)
    assert notes.is_raw
    assert notes.path == f"memory/{_ended('%Y-%m-%d')}-what-s-my-favorite-color.md"
    text = room.read(notes.path)
    assert "[RAW]" in text
    assert "user: It's blue. Remember that.\n" in text


async def test_offline_it_is_made_of_what_was_said(room: Room) -> None:
    session = room.talk()
    notes = await _write(room, session.id)
    assert not notes.is_raw
    assert notes.path == f"memory/{_ended('%Y-%m-%d')}-favorite-color.md"
    text = room.read(notes.path)
    assert "- My favorite color is blue" in text
    assert "- I know Python, JavaScript, and Go" in text


async def test_a_slug_cannot_lead_elsewhere(room: Room) -> None:
    session = room.talk()
    _use(room, Model({"slug": "../../../etc/" + "x" * 100, "summary": "# Head\n\ntext"}))
    notes = await _write(room, session.id)
    assert notes.path.startswith("memory/")
    assert len(notes.path) <= len("memory/2026-03-06-.md") + 40
    assert "\n### Head\n" in room.read(notes.path)


async def test_answers_from_private_entries_are_left_out(room: Room) -> None:
    session = room.talk()
    session.append("user", "what does Bob earn?")
    session.append("assistant", "Bob earns 12345.", meta={"private": ["knowledge/people/bob.md"]})
    model = _use(room, Model({"slug": "x", "summary": SUMMARY}))
    notes = await _write(room, session.id)
    assert "12345" not in model.prompts[0][1].content
    assert "12345" not in room.read(notes.path)


async def test_it_can_be_switched_off(tmp_path: Path) -> None:
    room = open_room(tmp_path / "notes", memory={"session_notes": {"enabled": False}})
    session = room.talk()
    assert await _write(room, session.id) is None
    room.close()
