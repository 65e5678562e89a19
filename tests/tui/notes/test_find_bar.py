from __future__ import annotations

import pytest
from textual.widgets import Input

from kbtui.tui.notes.entry_editor import head_problem
from kbtui.tui.notes.find_bar import places_in, replaced
from tests.tui.notes.test_editor import editing, status
from tests.tui.notes_support import NotesApp, make_kb, until


def test_a_query_is_found_as_written_and_capitals_count_where_it_has_some():
    lines = ["One one", "a.b [red] ONE", "漢字"]
    assert places_in(lines, "one") == [(0, 0, 3), (0, 4, 7), (1, 10, 13)]
    assert places_in(lines, "One") == [(0, 0, 3)]
    assert places_in(lines, "a.b [red]") == [(1, 0, 9)]
    assert places_in(lines, "字") == [(2, 1, 2)]
    assert places_in(lines, "") == []
    assert replaced(lines, "one", r"\1") == "\\1 \\1\na.b [red] \\1\n漢字"
    assert replaced(lines, "", "x") == "\n".join(lines)


TEXT = "# T\n\ntea and Tea\n\nmore tea\n"


async def test_ctrl_f_finds_and_replaces_one_or_all(tmp_path):
    app = NotesApp(make_kb(tmp_path, {"topics/t.md": TEXT}))
    async with app.run_test(size=(40, 12)) as pilot:
        _, editor = await editing(pilot, "knowledge/topics/t.md")
        area = editor.text_area
        await pilot.press("ctrl+f", *"tea")
        assert area.selection == ((2, 0), (2, 3))
        assert str(editor.query_one("#find-count").render()) == "1/3"
        await pilot.press("enter", "enter")
        assert area.selection == ((4, 5), (4, 8))
        await pilot.press("ctrl+g")
        assert area.selection == ((2, 0), (2, 3)), "behind the last comes the first"
        editor.query_one("#find-by", Input).focus()
        await pilot.press(*"milk", "enter")
        assert area.text == TEXT.replace("tea and", "milk and")
        await pilot.press("ctrl+r")
        assert area.text == "# T\n\nmilk and milk\n\nmore milk\n"
        await pilot.press("escape")
        await until(pilot, lambda: area.has_focus and not editor.find_bar.display)
        await pilot.press("ctrl+z")
        assert area.text == TEXT.replace("tea and", "milk and"), "all was one step"


async def test_what_is_not_there_is_said_and_changes_nothing(tmp_path):
    app = NotesApp(make_kb(tmp_path, {"topics/t.md": TEXT}))
    async with app.run_test() as pilot:
        _, editor = await editing(pilot, "knowledge/topics/t.md")
        await pilot.press("ctrl+f", *"[/x]", "ctrl+r")
        assert str(editor.query_one("#find-count").render()) == "none"
        assert editor.text_area.text == TEXT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\na: 1\n---\nx", ""),
        ("x: [\n", ""),
        ("---\n\nText below a rule\n", ""),
        ("---\na: 1\nx\n", "ends them is missing"),
        ("---\na: [1\nb: 2\n---\n", "line"),
        ("---\n\ta: \x1b\n---\n", "can't be read"),
    ],
    ids=["right", "none", "rule", "open", "list", "characters"],
)
def test_what_is_wrong_with_the_properties_is_said(text, said):
    assert said in head_problem(text)
    assert bool(head_problem(text)) == bool(said)
    assert head_problem(text).isprintable()


async def test_broken_properties_are_said_while_somebody_types(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test(size=(120, 30)) as pilot:
        _, editor = await editing(pilot)
        await pilot.press("ctrl+home", "down", "end", *": [")
        await until(pilot, lambda: "can't be read" in status(editor))
        await pilot.press("backspace", "backspace", "backspace")
        await until(pilot, lambda: "can't be read" not in status(editor))
