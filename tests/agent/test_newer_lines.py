"""A prompt has the newer line in brackets behind the older one, and nothing else of it moves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kbtui.agent.context import assemble
from kbtui.history.change import Actor, Origin
from tests.memory.newer_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "kb")
    yield world
    world.kb.close()


def _prompt(world: World, text: str) -> str:
    return "\n".join(each.content for each in assemble(world.kb.services, None, text).messages)


def test_a_prompt_has_the_newer_line_in_brackets_behind_the_older_one(world: World) -> None:
    world.say("Remember that my dentist is Dr. Adams")
    world.say("We decided to use PostgreSQL for the shop database", 1)
    before = _prompt(world, "hello")
    world.say("My dentist is Dr. Brown now", 30)
    world.say("We use MariaDB for the shop database now instead of PostgreSQL", 30)
    world.now += timedelta(days=20)
    shown = _prompt(world, "hello")
    brackets = re.findall(r" \[newer, said 31 October: [^\]]+\]", shown)
    assert "Adams [newer, said 31 October: My dentist is Dr. Brown now]" in shown
    assert any("MariaDB" in each for each in brackets)
    for each in brackets:
        shown = shown.replace(each, "")
    assert re.sub("Today is.*", "", shown) == re.sub("Today is.*", "", before)


def test_no_prompt_has_a_newer_line_of_a_private_note(world: World) -> None:
    world.say("Remember that the safe is in the hall")
    with world.kb.history.change(Actor.YOU, "A private note.", Origin()) as change:
        private = "---\nprivate: true\n---\n# Safe\n\nThe safe is in the attic now\n"
        change.write("knowledge/facts/safe.md", private)
    world.kb.newer.update()
    assert "attic" not in _prompt(world, "hello")
