"""Notes of the day: exactly as seed 001 has them, once before a conversation is condensed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ModelAnswerError
from kbtui.history.change import Actor
from kbtui.memory.consolidation.flusher import read_bullets
from kbtui.models.port import Message, Reply, Usage
from tests.memory.memory_room import SEED, START, Room, open_room

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

BULLETS = """\
- User prefers REST over GraphQL for the new API
- Decision: use PostgreSQL for the analytics service
- Action item: review the vendor proposal by Friday"""


class Model:
    """A model that answers as it is told to, in the order of `answers`."""

    name = "scripted"
    is_local = True
    context_window = 20_000

    def __init__(self, *answers: str, finish: str = "stop") -> None:
        self.answers = list(answers)
        self.finish = finish
        self.prompts: list[Sequence[Message]] = []

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def complete(
        self, messages: Sequence[Message], tools: object = (), *, force_tool: str | None = None
    ) -> Reply:
        self.prompts.append(messages)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Reply(answer, (), self.finish, Usage())  # type: ignore[arg-type]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = open_room(tmp_path / "notes")
    yield room
    room.close()


def _use(room: Room, model: Model) -> Model:
    room.pipeline.flusher._model = lambda: model  # type: ignore[assignment,return-value]
    return model


def _day(minutes: int = 8) -> str:
    return (START.astimezone() + timedelta(minutes=minutes)).date().isoformat()


def _hour(minutes: int = 8) -> str:
    return (START.astimezone() + timedelta(minutes=minutes)).strftime("%H:%M")


async def _flush(room: Room, session: str, tokens: int = 9000, limit: int = 12_000) -> bool:
    return await room.pipeline.flusher.maybe_flush(session, tokens, limit)


async def test_near_the_limit_bullets_are_appended_under_a_heading(room: Room) -> None:
    session = room.talk()
    model = _use(room, Model(BULLETS))
    assert not await _flush(room, session.id, tokens=8000)
    assert not model.prompts
    assert await _flush(room, session.id, tokens=8001)
    path = f"memory/{_day()}.md"
    assert room.read(path) == f"## Flush at {_hour()} (session: {session.id})\n\n{BULLETS}\n"
    commit = next(room.history.log(path))
    assert (commit.actor, commit.origin.messages) == (Actor.FLUSHER, (1, 8))
    system = model.prompts[0][0].content
    assert system.startswith("You are a memory extraction agent. Review the conversation below")
    assert '"[silent]"' in system
    assert f"Target file: {path} (append only, never overwrite existing content)" in system


async def test_it_is_done_once_between_two_condensings(room: Room) -> None:
    session = room.talk()
    model = _use(room, Model(BULLETS, "- New after condensing"))
    assert await _flush(room, session.id)
    assert not await _flush(room, session.id)
    again = open_room(room.root)
    again_model = _use(again, Model(BULLETS))
    assert not await _flush(again, session.id), "nor after a restart"
    assert not again_model.prompts
    again.close()
    await room.pipeline.consolidator.run(session.id, everything=True)
    room.talk([(9, "user", "a new matter")], session.id)
    assert await _flush(room, session.id)
    assert "USER: a new matter" in model.prompts[-1][1].content
    assert "favorite color" not in model.prompts[-1][1].content
    text = room.read(f"memory/{_day()}.md")
    assert text.count("## Flush at") == 2
    assert text.index("PostgreSQL") < text.index("New after condensing")


async def test_silence_writes_nothing_and_is_not_asked_again(room: Room) -> None:
    session = room.talk()
    model = _use(room, Model(" [silent] "))
    assert not await _flush(room, session.id)
    assert not await _flush(room, session.id)
    assert len(model.prompts) == 1
    assert not room.exists(f"memory/{_day()}.md")


async def test_what_the_file_says_is_shown_and_not_repeated(room: Room) -> None:
    path = f"memory/{_day()}.md"
    room.write(path, "my own words\n\n- user prefers REST over GraphQL for the new API.\n")
    session = room.talk()
    model = _use(room, Model(BULLETS))
    assert await _flush(room, session.id)
    assert "my own words" in model.prompts[0][1].content
    text = room.read(path)
    assert text.startswith("my own words\n\n- user prefers REST")
    assert text.count("REST over GraphQL") == 1
    assert "PostgreSQL" in text


async def test_all_of_it_known_already_writes_nothing(room: Room) -> None:
    room.write(f"memory/{_day()}.md", BULLETS + "\n")
    session = room.talk()
    _use(room, Model(BULLETS))
    head = room.history.head()
    assert not await _flush(room, session.id)
    assert room.history.head() == head


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "Here is what I found interesting.",
        "- I'm sorry, I can't help with that.",
        "Error: 502 Bad Gateway",
        "- [2026-03-06 10:00] USER: What's\n- [2026-03-06 10:01] ASSISTANT: I don't",
        "- (empty)",
    ],
)
async def test_a_bad_answer_leaves_a_raw_excerpt(room: Room, bad: str) -> None:
    session = room.talk()
    model = _use(room, Model(bad))
    assert await _flush(room, session.id)
    assert len(model.prompts) == 2
    text = room.read(f"memory/{_day()}.md")
    assert f"(session: {session.id}) [RAW]\n" in text
    assert "- user: It's blue. Remember that.\n" in text


async def test_an_answer_cut_by_its_length_is_bad(room: Room) -> None:
    session = room.talk()
    _use(room, Model(BULLETS, finish="length"))
    assert await _flush(room, session.id)
    assert "[RAW]" in room.read(f"memory/{_day()}.md")


async def test_offline_the_stated_facts_are_noted(room: Room) -> None:
    session = room.talk([*SEED, (9, "user", "I need to call Bob tomorrow.")])
    assert await _flush(room, session.id)
    text = room.read(f"memory/{_day()}.md")
    tomorrow = (START.astimezone() + timedelta(days=1)).date().isoformat()
    assert "- My favorite color is blue\n" in text
    assert "- I know Python, JavaScript, and Go\n" in text
    assert f"- I need to call Bob on {tomorrow}.\n" in text


async def test_offline_small_talk_is_silent(room: Room) -> None:
    session = room.talk([(0, "user", "hello"), (1, "assistant", "Hello.")])
    assert not await _flush(room, session.id)


async def test_what_was_forgotten_is_not_noted(room: Room) -> None:
    with room.history.change(Actor.YOU, "forget") as change:
        room.pipeline.tombstones.bury(
            change, ["Decision: use PostgreSQL for the analytics service"]
        )
    session = room.talk()
    _use(room, Model(BULLETS))
    assert await _flush(room, session.id)
    text = room.read(f"memory/{_day()}.md")
    assert "PostgreSQL" not in text
    assert "vendor" in text


async def test_it_can_be_switched_off(tmp_path: Path) -> None:
    room = open_room(tmp_path / "notes", memory={"flush": {"enabled": False}})
    session = room.talk()
    assert not await _flush(room, session.id)
    room.close()


def test_bullets_of_all_kinds_are_read_and_nothing_else() -> None:
    answer = "Notes:\n\n## Facts\n* one\n1. two\n• three\n  - nested\nplain text"
    assert read_bullets(answer) == ["one", "two", "three", "nested"]
    assert read_bullets("`[silent]`.") == []
    with pytest.raises(ModelAnswerError):
        read_bullets("nothing to say")
