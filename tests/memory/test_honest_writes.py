"""What was said is written at once: no heading, tag or name of an honest note makes it wait."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.change import Actor
from kbtui.memory.edits.editor import Author, edit_entry, rename_entry, write_entry
from kbtui.memory.edits.grounding import Ground
from tests.memory.dream_room import machine
from tests.memory.memory_room import open_room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.memory.edits.editor import Operation
    from tests.memory.memory_room import Room

DAY = date(2026, 3, 6)
YUSUF = """\
---
type: person
tags: [bakery, opening-hours]
---
# Yusuf

## Role
Head baker

## Notes
- Early shift from 3 in the morning
"""
KRUME = "I run a small bakery called Krume in Leipzig, opened it in 2019"
OVEN = "note that the oven service is Backtechnik Meyer, customer number 88-4127"
MONDAYS = "we decided to close on Mondays from now on because nobody comes"
COFFEE = "I can't stand caraway, and I never drink coffee after 4 pm"
PAULA = "my sister Paula is getting married in Bremen on June 14th and I bake the cake"
SHOP = "the project is a web shop, Tarek builds it with Shopware and it goes live in March"
POSTGRES = "we decided to use PostgreSQL for analytics because of its JSON operators; Alice owns it"
DOCKER = "to restart the app run `docker compose restart web`, remember that"
PORTS = "gitea is on 3000, jenkins on 8080, note that"
SPEC = "note: the spec is at https://example.org/spec, Alice wrote it"
KESTREL = "Project Kestrel: budget is 12,000 euros, Dana leads it, first release in May"


def _new(kind: str, title: str, **content: Any) -> Operation:
    return write_entry(kind, title, content, DAY)


def _change(*replaces: str, entry: str = "yusuf", **more: Any) -> Operation:
    return edit_entry(entry, **dict(zip(("old", "new"), replaces, strict=False)), **more)


HONEST: list[tuple[str, Operation]] = [
    (KRUME, _new("topic", "Krume bakery", body="In Leipzig, opened in 2019.", tags=["business"])),
    (
        KRUME,
        _new(
            "project",
            "Krume",
            sections={"Goal": "A small bakery in Leipzig.", "Status": "Opened in 2019."},
            summary="A small bakery in Leipzig, opened in 2019.",
        ),
    ),
    (OVEN, _new("fact", "Oven service", body="Backtechnik Meyer, customer number 88-4127.")),
    (
        OVEN,
        _new(
            "reference",
            "Backtechnik Meyer",
            sections={"Key points": "- Oven service\n- Customer number: 88-4127"},
            aliases=["oven service"],
        ),
    ),
    (
        MONDAYS,
        _new(
            "decision",
            "Closed on Mondays",
            sections={"Context": "Nobody comes.", "Decision": "Close on Mondays from now on."},
            tags=["opening-hours"],
        ),
    ),
    (COFFEE, _new("preference", "Food preferences", body="- Can't stand caraway", tags=["food"])),
    (
        PAULA,
        _new(
            "person",
            "Paula",
            sections={"Role": "Sister", "Notes": "- Getting married in Bremen on June 14th"},
            tags=["family"],
        ),
    ),
    (PAULA, _new("project", "Paula's wedding cake", body="Bake it. Bremen, June 14th.")),
    (
        SHOP,
        _new(
            "project",
            "Web shop",
            sections={"Status": "Goes live in March.", "People": "- Tarek builds it"},
            related=["people/yusuf"],
        ),
    ),
    (
        POSTGRES,
        _new(
            "decision",
            "PostgreSQL for analytics",
            sections={"Context": "We need JSON operators.", "Decision": "Use PostgreSQL."},
            tags=["database", "analytics"],
        ),
    ),
    (POSTGRES, _new("person", "Alice", sections={"Role": "Owns analytics."})),
    (DOCKER, _new("fact", "Restart the app", body="```sh\ndocker compose restart web\n```")),
    (DOCKER, _new("fact", "How to restart the app", body="Run `docker compose restart web`.")),
    (
        PORTS,
        _new(
            "fact",
            "gitea and jenkins",
            body="| Name | Value |\n|---|---|\n| gitea | 3000 |\n| jenkins | 8080 |",
        ),
    ),
    (SPEC, _new("reference", "The spec", body="By Alice: [the spec](https://example.org/spec)")),
    (SPEC, _new("reference", "Spec", sections={"Source": "<https://example.org/spec>"})),
    (
        KESTREL,
        _new(
            "project",
            "Project Kestrel",
            body="## Overview\n- **Budget:** 12,000 euros\n- **Lead:** Dana",
            aliases=["Kestrel"],
        ),
    ),
    ("Der Starter heißt Hermann", _new("fact", "Starter", body="Heißt Hermann.")),
    ("Yusuf starts at 2, not at 3", _change("from 3", "from 2")),
    ("Yusuf does the market too", _change(append="- Does the market too", section="Notes")),
    (
        "Yusuf does the market",
        _change(append="- The market", section="Works on", lists={"tags": ("market",)}),
    ),
    ("everybody calls Yusuf Joe", _change(lists={"aliases": ("Joe",)})),
    ("Yusuf's birthday is May 4", _change(append="- Birthday: May 4", section="Details")),
    (
        "we decided today that Yusuf gets a raise",
        _change(append="- 2026-03-06: Yusuf gets a raise", section="Decisions"),
    ),
    ("call Yusuf's entry Joseph", rename_entry("yusuf", "Joseph")),
    ("move Yusuf to the projects", rename_entry("yusuf", "projects/yusuf")),
    (
        "my flat is in Ghent, 64 square metres",
        _change(entry="MEMORY.md", append="- Flat in Ghent, 64 square metres", section="Home"),
    ),
]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    room = open_room(tmp_path_factory.mktemp("honest") / "notes")
    machine(room, people__yusuf=YUSUF)
    room.library.refresh()
    yield room
    room.close()


@pytest.mark.parametrize(("said", "operation"), HONEST)
def test_an_honest_write_neither_waits_nor_loses_a_label(
    room: Room, said: str, operation: Operation
) -> None:
    author = Author(
        Actor.AGENT,
        ground=Ground.of([(DAY, said)]),
        by_tool=True,
        asked=lambda _names, _lines: True,
    )
    copy = room.pipeline.editor.open(author)
    assert copy.perform(operation).proposed == ""
    assert copy.left_out == {}
    assert copy.files.changed
