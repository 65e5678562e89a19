from __future__ import annotations

import sys
from typing import Any

import pytest
from rich.cells import cell_len

from kbtui.presentation.notes import KINDS, OTHER, Named
from kbtui.tui.history.time_travel import TimeTravelScreen
from kbtui.tui.notes.map import MapScreen, read_neighbourhood
from kbtui.tui.notes.map_layout import Group, Mark, Neighbourhood, lay_out, step
from tests.tui.notes_support import DEFAULT, NotesApp, arrived, make_kb, opened, text_of, until

HOSTILE = "[b]x[/b] \u202etxt.exe 漢字漢字漢字 👨‍👩‍👧 עברית e\u0301" * 3


def note(title: str, kind: str = "topic", folder: str = "topics") -> Named:
    return Named(f"knowledge/{folder}/{title}.md", title, KINDS.get(kind, OTHER))


def drawn(around: Neighbourhood, width: int = 100, **more: Any) -> str:
    drawing = lay_out(around, width, **more)
    rows = []
    for row in drawing.rows():
        line = ""
        for each in row:
            assert cell_len(line) <= each.x, "nothing stands over another"
            line += " " * (each.x - cell_len(line))
            if isinstance(each, Mark):
                line += each.text
            else:
                sign = (each.item.kind or OTHER).shape
                line += f" {sign} {each.title} " if each.column == 0 else f"{sign} {each.title}"
        assert cell_len(line) <= width
        rows.append(line)
    return "\n".join(rows)


A, B, C, D, E = (note(name) for name in "ABCDE")


def test_a_note_stands_between_what_links_to_it_and_what_it_links_to() -> None:
    text = drawn(Neighbourhood(A, (B, C, D), (E,), {E.path: (note("Beyond"),)}))
    assert "■ B ──╮" in text
    assert "■ C ──┼───  ■ A  ──────  ■ E ─── ■ Beyond" in text.replace("───── ", "─────  ")
    assert "■ D ──╯" in text
    assert text.index("links to it") < text.index("it links to")


def test_what_is_a_step_further_stands_below_with_the_note_that_leads_there() -> None:
    text = drawn(Neighbourhood(A, (B,), (), {B.path: (C, A)}))
    assert "one step further" in text
    assert "■ C via B" in text
    assert text.count("■ A") == 1


def test_it_goes_as_many_steps_as_are_asked_for() -> None:
    around = Neighbourhood(A, (B,), (), {B.path: (C,), C.path: (D, B), D.path: (E,)})
    near, usual, far = (drawn(around, steps=steps) for steps in (1, 2, 3))
    assert "■ B" in near
    assert "■ C" not in near
    assert "■ C via B" in usual
    assert "■ D" not in usual
    assert far.index("two steps further") < far.index("■ D via C")
    assert "■ E" not in far


def test_where_there_is_room_notes_stand_apart_and_the_middle_between_two() -> None:
    lines = drawn(Neighbourhood(A, (B, C), (D, E)), height=40).split("\n")
    middle = next(line for line in lines if "■ A" in line)
    assert "├───  ■ A  ───┤" in middle
    assert [line.strip()[:3] for line in lines if "■ B" in line or "■ C" in line] == ["■ B", "■ C"]
    assert "■ B" not in middle


def test_a_note_without_links_says_so() -> None:
    assert "No note links to it, and it links to none." in drawn(Neighbourhood(A))


def test_a_narrow_map_has_two_columns_below_the_middle() -> None:
    lines = drawn(Neighbourhood(A, (B, C), (D,)), 36).split("\n")
    assert lines[0].strip() == "■ A"
    assert lines[2].split() == ["links", "to", "it", "it", "links", "to"]
    assert "■ B" in lines[3]
    assert "■ D" in lines[3]


def many(count: int) -> tuple[Named, ...]:
    kinds = ("person", "topic", "decision")
    return tuple(note(f"N{number}", kinds[number % 3]) for number in range(count))


def test_many_are_folded_by_kind_and_unfolded_one_by_one() -> None:
    around = Neighbourhood(A, many(2000), (B,))
    text = drawn(around)
    assert "people ▇▇▇▇▇▇ 667 ▸" in text
    assert "N1" not in text
    unfolded = drawn(around, unfolded=frozenset({"to person"}))
    assert "● N3 ──" in unfolded
    assert "■ N1 ──" not in unfolded


def test_those_of_one_kind_are_folded_by_folder() -> None:
    notes = (*(note(f"a{n}", folder="Days") for n in range(40)), *(note(f"b{n}") for n in range(9)))
    text = drawn(Neighbourhood(A, (), notes))
    assert "Days ▇▇▇▇▇▇ 40 ▸" in text
    assert "topics ▇▇ 9 ▸" in text


def _calls(neighbours: int) -> int:
    """How many functions are called until so many neighbours are drawn."""
    notes = tuple(note(f"N{number}") for number in range(neighbours))
    around = Neighbourhood(A, notes, notes, {each.path: (each, B) for each in notes})
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        drawing = lay_out(around, 120)
        drawing.rows()
    finally:
        sys.setprofile(before)
    assert len(drawing.spots) > 2 * neighbours, "all in one folder: nothing to fold them by"
    return calls


def test_twice_as_many_neighbours_take_twice_the_work() -> None:
    assert _calls(2000) < 2.5 * _calls(1000)


@pytest.mark.parametrize("width", [1, 5, 12, 20, 38, 60, 76, 100, 250])
@pytest.mark.parametrize("title", ["x", "a very long title of a note " * 9, "漢字" * 40, "👩" * 30])
def test_nothing_stands_out_of_the_width(title: str, width: int) -> None:
    middle, side = note(title), tuple(note(f"{title} {n}") for n in range(4))
    around = Neighbourhood(middle, side, side[1:], {each.path: (B, C, D) for each in side})
    drawing = lay_out(around, width)
    if width >= 12:
        drawn(around, width)
    assert drawing.spots[0].item is middle


def test_arrows_lead_to_every_spot_and_stop_at_the_edges() -> None:
    around = Neighbourhood(A, many(7), (B, C, D, E), {E.path: (note("X"), note("Y"))})
    spots = lay_out(around, 120).spots
    seen, left = set(), [0]
    while left:
        at = left.pop()
        if at not in seen:
            seen.add(at)
            left += (step(spots, at, *way) for way in ((1, 0), (-1, 0), (0, 1), (0, -1)))
    assert seen == set(range(len(spots)))
    leftmost = next(n for n, spot in enumerate(spots) if spot.column == -1)
    assert step(spots, leftmost, -1, 0) == leftmost


# The screen

NOTES = {**DEFAULT, "topics/lonely.md": "# Lonely\n\nAlone.\n"}


async def around(pilot, screen: MapScreen, title: str) -> None:
    pane = screen.query_one("#map-pane")
    await until(pilot, lambda: title in str(pane.border_title), f"{title} is in the middle")


async def test_g_shows_the_map_arrows_walk_enter_goes_on_and_o_opens(tmp_path):
    app = NotesApp(make_kb(tmp_path, NOTES))
    async with app.run_test(size=(140, 30)) as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        await pilot.press("g")
        screen = await arrived(pilot, MapScreen, "#map")
        await around(pilot, screen, "Alice")
        await until(pilot, lambda: "Bob ─────" in text_of(screen.map))
        await pilot.press("right")
        await until(pilot, lambda: "A database." in text_of(screen.query_one("#map-text")))
        await pilot.press("enter")
        await around(pilot, screen, "PostgreSQL")
        await pilot.press("backspace")
        await around(pilot, screen, "Alice")
        assert str(screen.map.item) == "■ PostgreSQL"
        await pilot.press("o")
        await until(pilot, lambda: notes.current_path == "knowledge/topics/postgresql.md")
        assert len(app.screen_stack) == 1


async def test_slash_finds_and_escape_leaves(tmp_path):
    app = NotesApp(make_kb(tmp_path, NOTES))
    async with app.run_test(size=(80, 24)) as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        await pilot.press("g")
        screen = await arrived(pilot, MapScreen, "#map")
        await around(pilot, screen, "Alice")
        await pilot.press("slash", *"post", "enter")
        await until(pilot, lambda: app.screen is screen and "PostgreSQL" in str(screen.map.item))
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert notes.current_path == "knowledge/people/alice.md"


async def test_plus_and_minus_change_how_far_it_goes(tmp_path):
    chain = {f"topics/n{n}.md": f"# N{n}\n\n[[n{n + 1}]]\n" for n in range(5)}
    app = NotesApp(make_kb(tmp_path, chain))
    async with app.run_test(size=(100, 24)) as pilot:
        await opened(pilot, "knowledge/topics/n0.md")
        await pilot.press("g")
        screen = await arrived(pilot, MapScreen, "#map")
        await until(pilot, lambda: "N2" in text_of(screen.map))
        await pilot.press("plus")
        await until(pilot, lambda: "N3 via N2" in text_of(screen.map))
        await pilot.press("plus", "minus", "minus")
        await until(pilot, lambda: "N2" not in text_of(screen.map))
        await pilot.press("minus")
        await until(pilot, lambda: "N1" in text_of(screen.map))


async def test_s_writes_the_whole_map_as_a_picture_and_overwrites_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = NotesApp(make_kb(tmp_path / "kb", NOTES))
    async with app.run_test(size=(60, 12)) as pilot:
        await opened(pilot, "knowledge/people/alice.md")
        await pilot.press("g")
        screen = await arrived(pilot, MapScreen, "#map")
        await around(pilot, screen, "Alice")
        await pilot.press("s")
        await until(pilot, (tmp_path / "map-of-alice.svg").exists)
        await pilot.press("s")
        await until(pilot, (tmp_path / "map-of-alice2.svg").exists)
        picture = (tmp_path / "map-of-alice.svg").read_text("utf-8")
        assert picture.startswith("<svg")
        assert "PostgreSQL" in picture


async def test_a_note_alone_and_a_tiny_terminal(tmp_path):
    app = NotesApp(make_kb(tmp_path, NOTES))
    async with app.run_test(size=(40, 12)) as pilot:
        await opened(pilot, "knowledge/topics/lonely.md")
        await pilot.press("g")
        screen = await arrived(pilot, MapScreen, "#map")
        await until(pilot, lambda: "No note links to it" in text_of(screen.map))
        await pilot.press("left", "right", "up", "down", "enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_hostile_titles_are_text_in_every_place(tmp_path):
    hostile = f"---\ntitle: '{HOSTILE}'\n---\n# x\n\nSee [[alice]] and [[odd]].\n"
    kb = make_kb(tmp_path, {**NOTES, "topics/odd.md": hostile, "topics/odd2.md": hostile})
    app = NotesApp(kb)
    async with app.run_test(size=(100, 24)) as pilot:
        await opened(pilot, "knowledge/topics/odd2.md")
        await pilot.press("g")
        screen = await arrived(pilot, MapScreen, "#map")
        await until(pilot, lambda: "[b]x[/b]" in text_of(screen.map))
        assert "\u202e" not in text_of(screen.map)
        widths = {strip.cell_length for strip in map(screen.map.render_line, range(20))}
        assert widths == {screen.map.size.width}


async def test_a_group_is_unfolded_and_a_folded_note_found(tmp_path):
    links = "".join(f"[[n{number}]] " for number in range(40))
    many = {f"{'ab'[n % 2]}/n{n}.md": f"# N{n}\n" for n in range(40)}
    app = NotesApp(make_kb(tmp_path, {**many, "hub.md": f"# Hub\n\n{links}\n"}))
    async with app.run_test(size=(100, 24)) as pilot:
        await opened(pilot, "knowledge/hub.md")
        await pilot.press("g")
        screen = await arrived(pilot, MapScreen, "#map")
        await until(pilot, lambda: "a ▇▇▇▇▇▇ 20 ▸" in text_of(screen.map))
        await pilot.press("right", "enter")
        await until(pilot, lambda: "N0" in text_of(screen.map))
        assert isinstance(screen.map.item, Group)
        assert "a ▇▇▇▇▇▇ 20 ▾" in text_of(screen.map)
        await pilot.press("slash", *"n39", "enter")
        await until(pilot, lambda: "N39" in str(screen.map.item))
        assert "N39" in text_of(screen.map), "scrolled into view"


async def test_back_in_time_the_map_is_that_of_then(tmp_path):
    kb = make_kb(tmp_path, NOTES)
    then = next(iter(kb.history.log(limit=1)))
    kb.library.delete("knowledge/people/bob.md")
    app = NotesApp(kb, lambda: TimeTravelScreen(kb, then, "knowledge/people/alice.md"))
    async with app.run_test(size=(120, 24)) as pilot:
        past = await arrived(pilot, TimeTravelScreen, "#notes-entry")
        await until(pilot, lambda: past.notes.current_path == "knowledge/people/alice.md")
        await pilot.press("g")
        screen = await arrived(pilot, MapScreen, "#map")
        await until(pilot, lambda: "● Bob" in text_of(screen.map))


async def test_typing_g_into_the_filter_is_a_letter(tmp_path):
    app = NotesApp(make_kb(tmp_path, NOTES))
    async with app.run_test(size=(100, 24)) as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        await pilot.press("slash", "g")
        await until(pilot, lambda: notes.panel.query_one("#notes-filter").value == "g")
        assert len(app.screen_stack) == 1


def test_reading_knows_every_neighbour_once(tmp_path):
    kb = make_kb(tmp_path, {**NOTES, "topics/twice.md": "[[alice]] [[alice]] [[twice]]\n"})
    found = read_neighbourhood(kb, "knowledge/people/alice.md")
    assert [each.title for each in found.incoming] == ["Bob", "twice"]
    assert [each.title for each in found.outgoing] == ["PostgreSQL", "Bob"]
