"""`kbtui why`: what it says of a line and of an entry, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Command

MEMORY = "memory/MEMORY.md"
SHAPE = {"path", "line", "commit", "time", "actor", "session", "messages", "archive"}


@pytest.fixture(autouse=True)
def _by_words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTUI_SEARCH__SEMANTIC", "false")


def _line_of(kbtui: Command, text: str, path: str = MEMORY) -> int:
    lines = kbtui.file(path).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_noted_and_condensed_line_shows_commit_archive_and_messages(kbtui: Command) -> None:
    kbtui.ok("ask", "My favorite color is blue.", "-s", "colors")
    kbtui.ok("consolidate")
    (day,) = kbtui.file("memory").glob("20??-??-??.md")
    place = f"memory/{day.name}:{_line_of(kbtui, 'blue', f'memory/{day.name}')}"
    shape = kbtui.ok("why", place, "--json").json
    assert shape.keys() >= SHAPE
    assert (shape["path"], shape["actor"], shape["title"]) == (
        f"memory/{day.name}",
        "you",
        "colors",
    )
    first, *_ = shape["messages"]
    assert first.keys() >= {"id", "role", "time", "text"}
    assert (first["id"], first["role"], first["text"]) == (1, "user", "My favorite color is blue.")
    assert shape["archive"]["cursor"] == 1
    said = kbtui.ok("why", place).out
    assert "My favorite color is blue." in said
    assert "archive entry 1" in said
    assert shape["commit"][:10] in said


def test_the_users_own_line_needs_no_messages(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Tea: green", "-b", "Steep it for two minutes.")
    name = "Tea: green"
    text = kbtui.file("knowledge/topics/tea-green.md").read_text().splitlines()
    line = next(n for n, each in enumerate(text, 1) if "Steep" in each)
    shape = kbtui.ok("why", f"{name}:{line}", "--json").json
    assert (shape["actor"], shape["session"], shape["messages"]) == ("you", None, [])
    assert shape["archive"] is None
    assert "You wrote it." in kbtui.ok("why", f"tea-green:{line}").out


def test_without_a_line_it_says_who_wrote_how_much(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Tea", "-b", "Green.")
    shape = kbtui.ok("why", "tea", "--json").json
    (you,) = shape["authors"]
    assert (you["actor"], you["lines"]) == ("you", shape["lines"])
    assert "you" in kbtui.ok("why", "topics/tea").out


def test_what_is_not_there_ends_with_1(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Tea", "-b", "Green.")
    missing = kbtui("why", "tea:999")
    assert (missing.status, missing.out) == (1, "")
    assert "has no line 999" in missing.err
    assert kbtui("why", "coffee:1").status == 1
    assert kbtui("why", "tea:3", "--at", "2000-01-01").status == 1
    assert kbtui("why").status == 2


def test_it_knows_how_things_were(kbtui: Command) -> None:
    kbtui.ok("remember", "I prefer tea")
    kbtui.ok("remember", "I like chess")
    line = _line_of(kbtui, "tea")
    shape = kbtui.ok("why", f"MEMORY.md:{line}", "--at", "HEAD~1", "--json").json
    assert "tea" in shape["text"]
