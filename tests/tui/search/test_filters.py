"""Conditions of a search: chips before what is typed, and what is offered while one types."""

from __future__ import annotations

import pytest

from kbtui.search.query.parser import split_conditions
from kbtui.tui.search.filters import offered
from kbtui.tui.search.search import SearchScreen
from tests.tui.notes_support import NotesApp, make_kb, ready, until

VALUES = {"type": ["decision", "person"], "tag": ["radio", "wind sensor"], "after": ["week"]}


@pytest.mark.parametrize(
    ("typed", "chips", "rest"),
    [
        ("type:decision ", ["type:decision"], ""),
        ("type:decision", [], "type:decision"),
        ("boiler tag:x and", ["tag:x"], "boiler and"),
        ('tag:"wind sensor" y', ['tag:"wind sensor"'], "y"),
        ('tag:"wind ', [], 'tag:"wind '),
        ("-tag:a #b z", ["-tag:a", "#b"], "z"),
        ("NOT type:fact z", [], "NOT type:fact z"),
        ("http://x.example after:soon z", [], "http://x.example after:soon z"),
        ("after:week before:2026-03 z", ["after:week", "before:2026-03"], "z"),
    ],
)
def test_what_is_a_finished_condition_becomes_a_chip(typed, chips, rest) -> None:
    assert split_conditions(typed) == (chips, rest)


@pytest.mark.parametrize(
    ("typed", "offers"),
    [
        ("", ["type:", "tag:", "folder:", "after:", "before:"]),
        ("t", []),
        ("boiler ta", ["tag:"]),
        ("-ty", ["-type:"]),
        ("type:", ["type:decision", "type:person"]),
        ("x tag:wi", ['tag:"wind sensor"']),
        ("type:person", []),
        ("http:", []),
    ],
)
def test_the_last_word_is_offered_what_it_may_become(typed, offers) -> None:
    assert offered(typed, VALUES) == offers


def said(screen: SearchScreen, part: str) -> str:
    return str(screen.query_one(f"#search-{part}").render())


async def test_a_chip_is_chosen_by_tab_and_goes_by_backspace_or_a_click(tmp_path) -> None:
    entries = {"people/alice.md": "---\ntype: person\n---\n# Alice\n\nOwns it.\n"}
    kb = make_kb(tmp_path, entries)
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        screen = SearchScreen(kb)
        await app.push_screen(screen)
        await until(pilot, lambda: "Narrow by type:" in said(screen, "offers"))
        await until(pilot, lambda: screen._values)
        await pilot.press("t", "y", "tab")
        await until(pilot, lambda: "type:person" in said(screen, "offers"))
        await pilot.press("tab", *"own")
        await until(pilot, lambda: kb.search.asked[-1][0] == "type:person own")
        assert said(screen, "chips").strip() == "type person"
        assert screen.field.value == "own"
        await pilot.press("backspace", "backspace", "backspace", "backspace")
        await until(pilot, lambda: not said(screen, "chips") and screen.query_text == "")
        screen.ask("own type:person tag:x")
        await until(pilot, lambda: kb.search.asked[-1][0] == "type:person tag:x own")
        await pilot.click("#search-chips", offset=(2, 0))
        await until(pilot, lambda: kb.search.asked[-1][0] == "tag:x own")
