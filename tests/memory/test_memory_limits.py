"""MEMORY.md beyond its limit: what a prompt has of it, what is said, and what is moved."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor
from kbtui.knowledge.format.lines import split_lines
from kbtui.memory.edits.memory_limits import MOST_LINES, why_full
from kbtui.memory.recall.remembered import memory_for_prompt
from kbtui.memory.recall.usage import uses_of
from kbtui.models.port import estimate_tokens
from kbtui.offline.frames import is_instruction
from kbtui.workspace.layout import MEMORY
from tests.memory.dream_room import archive, machine, run
from tests.memory.memory_room import START, Room, open_room

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TODAY = START.date() + timedelta(days=3)
OLD = [f"House {n} borrowed the ladder and sings in choir {n * 7}" for n in range(1, 191)]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = open_room(tmp_path / "notes")
    yield room
    room.close()


def _write(room: Room, *lines: str) -> None:
    room.write(MEMORY, "# Facts\n\n" + "".join(f"- {line}\n" for line in lines))


def _in_prompt(room: Room, most_tokens: int = 1_000, today: date = TODAY) -> str:
    view = room.pipeline.due.pending.view
    return memory_for_prompt(room.sessions, view, room.read(MEMORY), today, most_tokens)


def test_a_memory_that_fits_is_in_a_prompt_as_it_stands(room: Room) -> None:
    _write(room, *OLD[:20])
    assert _in_prompt(room) == room.read(MEMORY)
    assert why_full(room.read(MEMORY), 1_000) == ""


def test_a_prompt_has_the_newest_the_most_used_and_every_instruction(room: Room) -> None:
    used = "The boiler is a Vaillant ecoTEC from 2019"
    _write(room, "Always answer me in Dutch", used, *OLD)
    for text in ("When was the Vaillant boiler last checked?", "The boiler, our Vaillant, drips."):
        room.talk([(0, "user", text), (1, "assistant", "No idea.")])
    room.pipeline.remembering.remember("The newest of them all is that Ilka moved to Ghent")
    shown = _in_prompt(room)
    assert estimate_tokens(shown) <= 1_000
    assert shown.startswith("# Facts\n\n- Always answer me in Dutch\n")
    assert f"- {used}\n" in shown
    assert "Ilka moved to Ghent" in shown
    assert OLD[-1] in shown, "of lines that are as old as each other the last ones"
    assert OLD[0] not in shown
    kept = sum(line.startswith("- ") for line in shown.splitlines())
    assert shown.endswith(f"(cut: read {MEMORY} shows all of it; here are {kept} of 193 lines)")


def test_an_item_stays_with_the_lines_below_it(room: Room) -> None:
    room.write(MEMORY, "# A\n\n" + "".join(f"- {each}\n" for each in OLD) + "- Last\n  and more\n")
    assert "- Last\n  and more\n" in _in_prompt(room, 200)


def test_what_is_used_is_counted_from_days_before_and_not_from_what_states_it(room: Room) -> None:
    lines = ("The boiler is a Vaillant from 2019", "Ilka lives in Ghent")
    room.talk([(0, "user", lines[0]), (1, "user", "Does the Vaillant boiler need water?")])
    assert uses_of(room.sessions, lines, TODAY) == {lines[0]: 1}
    room.talk([(2, "user", "Where in Ghent does Ilka live?")])
    assert uses_of(room.sessions, lines, START.date()) == {}, "all of it was said on that day"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("Always answer me in Dutch", True),
        ("Please keep it short", True),
        ("Call me Mo", True),
        ("I'd like replies in French", True),
        ("Antworte mir immer auf Deutsch", True),
        ("Duze mich", True),
        ("Respóndeme siempre en español", True),
        ("Appelle-moi Jo", True),
        ("Rispondi sempre in italiano", True),
        ("Ilka lives in Ghent", False),
        ("My sister always eats at noon", False),
        ("Der Schlüssel liegt bei Frau Lindner", False),
        ("El alquiler sube en enero", False),
        ("Mon frère habite à Lyon", False),
        ("Il contatore è in cantina", False),
    ],
)
def test_an_instruction_is_told_from_a_fact(line: str, wanted: bool) -> None:
    assert is_instruction(line) is wanted


def test_remembering_says_that_the_memory_is_full(room: Room) -> None:
    _write(room, *OLD[: MOST_LINES - 1])
    assert room.pipeline.remembering.remember("The cellar is dry").warning == ""
    warning = room.pipeline.remembering.remember("The attic isn't").warning
    assert f"MEMORY.md is full: 61 lines of at most {MOST_LINES}" in warning
    assert "`kbtui dream`" in warning
    long = "".join(f"- Line {number} {'of many words ' * 40}\n" for number in range(40))
    assert "tokens of at most 4,000" in why_full(long, 4_000)


async def test_dream_asks_before_it_moves_own_lines_that_were_never_used(room: Room) -> None:
    used = "The boiler is a Vaillant ecoTEC from 2019"
    _write(room, "Always answer me in Dutch", used, *OLD[:68])
    room.talk([(0, "user", "Does the Vaillant boiler need water?")])
    room.clock.pass_(days=2)
    archive(room, "They said hello.")
    before = room.read(MEMORY)
    report = await run(room)
    assert room.read(MEMORY) == before
    (suggestion,) = report.suggestions
    assert suggestion.why == "MEMORY.md is full, and no conversation has used it"
    room.pipeline.inbox.accept(suggestion.id)
    left = room.read(MEMORY)
    assert sum(line.startswith("- ") for line in left.splitlines()) == MOST_LINES
    assert "Always answer me in Dutch" in left
    assert used in left
    assert OLD[67] in left
    texts = left + "".join(room.library.get(each.path).text for each in room.library.infos())
    assert all(line in texts for line in OLD[:68])


async def test_lines_of_machines_are_moved_when_they_were_never_used(room: Room) -> None:
    used = "- The boiler is a Vaillant ecoTEC from 2019\n"
    machine(
        room,
        MEMORY=f"# Facts\n\n{used}- Always answer in Dutch\n"
        + "".join(f"- {line}\n" for line in OLD[:70]),
    )
    room.talk([(0, "user", "Does the Vaillant boiler need water?")])
    room.clock.pass_(days=2)
    archive(room, "They said hello.")
    report = await run(room)
    assert report.suggestions == ()
    left = room.read(MEMORY)
    assert len(split_lines(left)) == MOST_LINES + 2
    assert used in left
    assert "- Always answer in Dutch\n" in left
    assert room.history.commit(report.commit or "").actor is Actor.DREAM


async def test_code_stays_whole(room: Room) -> None:
    code = "```sh\n# build\nmake all\n```\n"
    lines = "".join(f"- {line}\n" for line in OLD[:70])
    machine(room, MEMORY=f"# Facts\n\n{code}\n{lines}")
    room.talk([(0, "user", "Does the boiler need water?")])
    room.clock.pass_(days=2)
    archive(room, "They said hello.")
    await run(room)
    left = room.read(MEMORY)
    assert code in left
    assert len(split_lines(left)) < 70
