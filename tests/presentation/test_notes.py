"""How files are called on a screen."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kbtui.knowledge.entries.entry import unread
from kbtui.presentation.notes import KINDS, OTHER, Names, kind_of, names_of, title_of


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("knowledge/people/alice-brown.md", "● Alice brown"),
        ("knowledge/Reading List.md", "○ Reading List"),
        ("knowledge/2026-11-03.md", "○ 2026-11-03"),
        ("memory/MEMORY.md", "Memory"),
        ("SOUL.md", "SOUL"),
        ("memory/2020-02-30.md", "2020-02-30"),
        ("memory/2020-02-03.md", "the journal of 3 Feb 2020"),
        ("memory/2020-02-03-rent-and-keys.md", "Conversation of 3 Feb 2020"),
    ],
)
def test_a_path_alone_says_a_name(path: str, name: str) -> None:
    assert str(Names()[path]) == name


def test_where_a_person_named_the_file_that_is_the_title() -> None:
    assert title_of(unread("knowledge/Work/Weekly Review.md")) == "Weekly Review"
    assert title_of(unread("knowledge/people/alice.md")) == "alice"


def test_kinds_differ_by_sign_and_by_letter() -> None:
    kinds = [*KINDS.values(), OTHER]
    assert len({kind.shape for kind in kinds}) == len({kind.letter for kind in kinds}) == len(kinds)
    assert kind_of("Person") is KINDS["person"]
    assert kind_of("recipe") is kind_of(None) is OTHER


def test_a_note_without_a_kind_has_the_colour_of_its_top_folder() -> None:
    one, other, top = (
        kind_of(None, f"knowledge/{path}.md") for path in ("Days/a", "Days/in/b", "c")
    )
    assert one is other
    assert one.shape == OTHER.shape
    assert one.name.removeprefix("other-") in KINDS
    assert top is OTHER
    assert kind_of("person", "knowledge/Days/a.md") is KINDS["person"]


def test_a_section_is_said_once() -> None:
    names = Names()
    assert names.section("knowledge/auth.md", "Auth > Decision").endswith("Decision")
    assert names.section("knowledge/auth.md", "Auth") == "Auth"


def test_a_conversation_is_called_by_its_title_and_never_by_its_file() -> None:
    path = "sessions/claude_20251224-100000-c341a84342.jsonl"
    talk = SimpleNamespace(id="claude_20251224-100000-c341a84342", title="The boiler")
    sessions = SimpleNamespace(list=lambda: [talk])
    library = SimpleNamespace(info=lambda _path: None)
    assert names_of(library, [path], sessions)[path].title == "The boiler"
    assert Names()[path].title == "a conversation"
