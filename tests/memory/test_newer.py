"""The newer line: pairs in the cache, when a line was said, and who may see its newer one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.views.view import Audience
from tests.memory.newer_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "kb")
    yield world
    world.kb.close()


def test_a_later_statement_is_the_newer_line_of_what_was_remembered(world: World) -> None:
    world.say("Remember that my dentist is Dr. Adams")
    world.say("My dentist is Dr. Brown now", 40)
    assert world.newer("my dentist is Dr. Adams") == "My dentist is Dr. Brown now"
    assert world.newer("My dentist is Dr. Brown now") == ""
    found = world.kb.seen_by(Audience.OWN_MODEL).newer(["my dentist is Dr. Adams"])
    assert [each.day for each in found.values()] == [date(2026, 11, 10)]


def test_of_three_values_the_last_one_is_the_newer_line_of_both(world: World) -> None:
    world.say("The spare key is with Ines")
    world.say("The spare key is with Farid now", 10)
    world.say("The spare key is with Olga now", 20)
    for text in ("The spare key is with Ines", "The spare key is with Farid now"):
        assert world.newer(text) == "The spare key is with Olga now"


def test_what_is_said_again_after_something_else_holds_again(world: World) -> None:
    world.say("The spare key is with Ines")
    world.say("The spare key is with Farid", 10)
    world.say("The spare key is with Ines", 20)
    assert world.newer("The spare key is with Ines") == ""
    assert world.newer("The spare key is with Farid") == "The spare key is with Ines"


def test_pairs_are_in_no_commit_and_survive_the_loss_of_the_cache(world: World) -> None:
    world.say("The router is in the hall")
    world.say("The router is in the office now", 5)
    head = world.kb.history.head()
    assert world.newer("The router is in the hall")
    assert world.kb.history.head() == head
    world.kb.close()
    (world.kb.workspace.cache / "newer.sqlite").write_bytes(b"no database")
    again = World(world.kb.workspace.root)
    again.now = world.now
    assert again.newer("The router is in the hall") == "The router is in the office now"
    again.kb.close()


def test_only_what_changed_is_read_again(world: World) -> None:
    world.say("The router is in the hall")
    world.kb.newer.update()
    assert world.kb.newer.update() == 0
    world.say("The boiler is serviced in May", 1)
    assert world.kb.newer.update() == 0, "a turn reads what it writes"
    with world.kb.history.change(Actor.YOU, "A note.", Origin()) as change:
        change.write("knowledge/facts/a.md", "The attic is dry.\n")
    assert world.kb.newer.update() == 1


def test_a_vaults_lines_are_dated_by_the_note_and_not_by_its_opening(tmp_path: Path) -> None:
    root = tmp_path / "kb"
    notes = root / "knowledge" / "facts"
    notes.mkdir(parents=True)
    (root / ".kbtui").mkdir()
    (notes / "old.md").write_text("---\ncreated: 2019-03-04\n---\nThe router is in the hall.\n")
    (notes / "post.md").write_text("---\ndate: 2021-01-30T16:53:01-08:00\n---\nThe attic is dry.\n")
    (notes / "undated.md").write_text("The boiler is serviced in May.\n")
    world = World(root)
    world.say("The router is in the office now", 1)
    world.say("The boiler is serviced in June now", 1)
    view = world.kb.seen_by(Audience.OWN_MODEL)
    assert view.said_in("knowledge/facts/old.md", [4])[4].day == date(2019, 3, 4)
    assert view.said_in("knowledge/facts/post.md", [4])[4].day == date(2021, 1, 30)
    assert view.said_in("knowledge/facts/undated.md", [1]) == {}
    assert world.newer("The boiler is serviced in May.") == ""
    world.kb.close()


def test_imported_lines_have_no_date_but_their_own(world: World) -> None:
    with world.kb.history.change(Actor.IMPORT, "An import.", Origin(batch="b1")) as change:
        change.write("knowledge/facts/a.md", "The router is in the hall.\n")
        change.write("memory/2023-05-06.md", "# 2023-05-06\n\n- 09:00 The rent is 940 euros\n")
    view = world.kb.seen_by(Audience.OWN_MODEL)
    assert view.said_in("knowledge/facts/a.md", [1]) == {}
    assert view.said_in("memory/2023-05-06.md", [3])[3].day == date(2023, 5, 6)


def test_an_import_of_2023_is_older_than_what_was_said_yesterday(world: World) -> None:
    world.say("The rent is 985 euros")
    with world.kb.history.change(Actor.IMPORT, "An import.", Origin(batch="b1")) as change:
        change.write("memory/2023-05-06.md", "# 2023-05-06\n\n- 09:00 The rent is 940 euros\n")
    assert world.newer("The rent is 940 euros") == "The rent is 985 euros"
    assert world.newer("The rent is 985 euros") == ""


def test_a_clock_that_was_years_ahead_once_makes_no_line_the_newer_one(world: World) -> None:
    world.say("The rent of the flat is 800 euros.", 1700)
    world.say("The rent of the flat is 850 euros.", 50)
    assert world.newer("The rent of the flat is 800 euros.") == "The rent of the flat is 850 euros."
    assert world.newer("The rent of the flat is 850 euros.") == ""


def test_within_a_file_the_lower_line_is_the_later_whatever_its_time(world: World) -> None:
    text = "# 2026-10-01\n\n- 10:00 The room is number 512.\n- 02:00 The room is number 307.\n"
    with world.kb.history.change(Actor.YOU, "A flight west.", Origin()) as change:
        change.write("memory/2026-10-01.md", text)
    assert world.newer("The room is number 512.") == "The room is number 307."


def test_a_newer_line_in_a_private_note_stays_unseen(world: World) -> None:
    world.say("The safe is in the hall")
    with world.kb.history.change(Actor.YOU, "A private note.", Origin()) as change:
        private = "---\nprivate: true\n---\n# Safe\n\nThe safe is in the attic now\n"
        change.write("knowledge/facts/safe.md", private)
    assert world.newer("The safe is in the hall") == "The safe is in the attic now"
    for audience in (Audience.MODEL_ELSEWHERE, Audience.OTHER_AGENT):
        assert world.newer("The safe is in the hall", audience) == ""


def test_a_newer_line_that_is_gone_is_shown_no_more(world: World) -> None:
    world.say("The safe is in the hall")
    world.say("The safe is in the attic now", 3)
    assert world.newer("The safe is in the hall")
    view = world.kb.seen_by(Audience.OWN_MODEL)
    for file in world.kb.workspace.memory.glob("2026-*.md"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(each for each in lines if "attic" not in each))
    for session in world.kb.sessions.list():
        world.kb.sessions.delete(session.id)
    assert view.newer(["The safe is in the hall"]) == {}
    world.kb.history.adopt(settle=0)
    world.kb.newer.update()
    database = sqlite3.connect(world.kb.workspace.cache / "newer.sqlite")
    assert database.execute("SELECT * FROM lines WHERE text LIKE '%attic%'").fetchall() == []
    database.close()


def test_a_statement_before_which_another_was_said_names_it(world: World) -> None:
    world.say("Flat in Mainz: the rent is 870 euros.")
    other = world.say("Flat in Trier: the rent is 640 euros.", 1)
    assert other.earlier is None
    same = world.say("Flat in Mainz: the rent is 910 euros.", 2)
    assert same.earlier is not None
    assert same.earlier.text == "Flat in Mainz: the rent is 870 euros."


def _add_notes(world: World, number: int) -> None:
    for each in range(number):
        place = world.kb.workspace.place(f"knowledge/topics/box-{each:02}.md")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(
            f"---\ntype: topic\ncreated: 2026-09-01\n---\n# Box {each}\n\nThe key of box {each} "
            "is with Ines.\n"
        )
    world.kb.history.adopt(settle=0)


def test_of_much_that_changed_a_command_waits_for_the_memory_and_what_it_shows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.memory.recall.newer._REST_SECONDS", -1)
    _add_notes(world, 30)
    world.kb.newer.update()
    world.say("The key of box 27 is with Farid now", 3)
    world.kb.newer.forget([f"knowledge/topics/box-{each:02}.md" for each in range(30)])
    view = world.kb.seen_by(Audience.OWN_MODEL)
    hits = view.search.search("key of box 27", "knowledge", 3).hits
    assert view.with_newer(hits)[0].newer is None
    view.catch_up(hits)
    shown = view.with_newer(hits)
    assert shown[0].newer is not None
    assert shown[0].newer.text == "The key of box 27 is with Farid now"
    database = sqlite3.connect(world.kb.workspace.cache / "newer.sqlite")
    (read,) = database.execute("SELECT COUNT(*) FROM files WHERE path LIKE '%box-%'").fetchone()
    database.close()
    assert read == len({hit.path for hit in hits}), "the rest is for a time when nobody waits"


def test_a_file_with_a_line_of_a_time_to_come_is_read_again_once_a_day(world: World) -> None:
    place = world.kb.workspace.place("knowledge/topics/plan.md")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("---\ntype: topic\n---\n# Plan\n\n2026-12-24 The keeper is Olga.\n")
    world.kb.history.adopt(settle=0)
    assert world.kb.newer.update() == 1
    assert world.kb.newer.update() == 0
    world.now += timedelta(days=1)
    assert world.kb.newer.update() == 1
    assert world.kb.newer.update() == 0
    world.now += timedelta(days=200)
    assert world.kb.newer.update() == 1, "its time has come, and it is a file like any"
    world.now += timedelta(days=1)
    assert world.kb.newer.update() == 0
