from __future__ import annotations

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.tui.diff.confirm import ConfirmScreen, WorkBox
from kbtui.tui.diff.diff_view import DiffView
from kbtui.tui.diff.undo_conflict import UndoConflictScreen
from kbtui.tui.history.history import HistoryScreen
from kbtui.tui.widgets.dialogs import TextDialog, TextEditScreen
from tests.tui.at_rest import Door
from tests.tui.notes_support import NotesApp, agent_writes, arrived, make_kb, ready, text_of, until

PATH = "knowledge/topics/notes.md"


def lines(*changed: tuple[int, str]) -> str:
    text = [f"line {n}" for n in range(1, 41)]
    for number, value in changed:
        text[number - 1] = value
    return "\n".join(text) + "\n"


@pytest.fixture
def kb(tmp_path):
    """Three commits after the first: the agent's two places, yours, another entry."""
    kb = make_kb(tmp_path, {"topics/notes.md": lines()})
    agent_writes(kb, PATH, lines((5, "five"), (30, "thirty")))
    old = kb.history.tree("HEAD")[PATH]
    text = (kb.workspace.root / PATH).read_text().replace("line 20", "twenty")
    kb.library.write(PATH, text, expecting=old, actor=Actor.YOU, reason="mine")
    kb.library.create("person", "Alice", actor=Actor.DREAM)
    return kb


async def history(pilot, kb, *arguments) -> HistoryScreen:
    await ready(pilot)
    screen = HistoryScreen(kb, *arguments)
    await pilot.app.push_screen(screen)
    await until(pilot, lambda: screen.rows.commits, "the log is read")
    shown = lambda: screen.diff.lines or not screen.detail.display  # noqa: E731
    await until(pilot, shown, "a diff is shown where there is room")
    return screen


async def test_commits_are_listed_newest_first_with_their_differences(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb)
        rows = text_of(screen.rows).split("\n")
        assert len(rows) == 5
        assert rows[0].strip() == "Today"
        assert "Dream  wrote ● Alice" in rows[1]
        await until(
            pilot,
            lambda: sum("▪" in row for row in text_of(screen.rows).split("\n")) == 4,
            "each has its size",
        )
        await pilot.press("j", "j")
        await until(pilot, lambda: "thirty" in text_of(screen.diff))
        text = text_of(screen.diff)
        assert "■ notes" in text
        assert any(line.strip() == "- line 5" for line in text.split("\n"))
        await pilot.press("p")
        await until(pilot, lambda: "5     - line 5" in text_of(screen.diff), "as a patch")
        assert "told so" in str(screen.query_one("#history-what").render())


async def test_a_change_of_a_day_is_told_by_what_was_said(kb):
    day = "memory/2026-11-27.md"
    for text in (
        "- 20:31 Priya is the new **designer**\n",
        "- 20:31 Priya is the new **designer**\n- [ ] 20:33 plumber Tuesday 9:00\n- 20:33 tea\n",
        (
            "- 20:31 ~~Priya is the new **designer**~~\n- [ ] 20:33 plumber Tuesday 9:00\n"
            "- 20:33 tea\n- 20:34 Priya left\n"
        ),
    ):
        with kb.history.change(Actor.YOU, "said") as change:
            change.write(day, text)
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb)
        await until(pilot, lambda: "+ Priya left" in text_of(screen.rows))
        rows = text_of(screen.rows)
        assert "You    + plumber Tuesday 9:00 · and 1 more" in rows
        assert "You    + Priya is the new designer" in rows
        assert "Dream  wrote ● Alice" in rows


async def test_c_compares_the_file_since_a_change(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await history(pilot, kb, PATH)
        await pilot.press("j", "c")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        diff = app.screen.query_one(DiffView)
        await until(pilot, lambda: "twenty" in text_of(diff))
        assert "+ thirty" not in text_of(diff)


async def test_it_can_be_opened_for_one_entry_or_at_one_commit(kb):
    commit = list(kb.history.log(PATH))[1]
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb, PATH)
        assert len(screen.rows.commits) == 3
        await pilot.press("q")
        screen = await history(pilot, kb, None, commit.id)
        assert screen.rows.commit.id == commit.id


async def test_n_goes_through_the_changed_places_and_braces_change_the_context(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 30)) as pilot:
        screen = await history(pilot, kb, PATH, list(kb.history.log(PATH))[1].id)
        await until(pilot, lambda: len(screen.diff._hunks) == 2)
        await pilot.press("n")
        assert screen.diff.hunk.number == 1
        await until(pilot, lambda: "thirty" in text_of(screen.diff))
        await pilot.press("N")
        assert screen.diff.hunk.number == 0
        before = len(screen.diff.lines)
        await pilot.press("{")
        await until(pilot, lambda: len(screen.diff.lines) < before)
        await pilot.press(*"}}}}}}")
        await until(pilot, lambda: len(screen.diff._hunks) == 1, "both places are one")
        assert len(screen.diff.lines) > before


async def test_u_undoes_exactly_this_change(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb, PATH, list(kb.history.log(PATH))[1].id)
        await pilot.press("u")
        file = kb.workspace.root / PATH
        await until(pilot, lambda: "five" not in file.read_text())
        assert "twenty" in file.read_text()
        await until(pilot, lambda: len(screen.rows.commits) == 4, "the undo is listed")
        assert screen.rows.commit.origin.undoes is not None


async def test_shift_u_undoes_only_the_place_that_is_shown(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb, PATH, list(kb.history.log(PATH))[1].id)
        await until(pilot, lambda: len(screen.diff._hunks) == 2)
        await pilot.press("n", "U")
        file = kb.workspace.root / PATH
        await until(pilot, lambda: "thirty" not in file.read_text())
        assert "five" in file.read_text()


async def test_keys_wait_for_the_places_of_the_commit_that_was_just_selected(kb, monkeypatch):
    mine = next(kb.history.log(PATH))
    head, door, changes_of = kb.history.head(), Door(), kb.history.changes_of
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb)
        await until(pilot, lambda: screen.diff.hunk is not None)
        monkeypatch.setattr(kb.history, "changes_of", lambda rev: door.wait() or changes_of(rev))
        await pilot.press("j")
        await until(pilot, lambda: screen.rows.commit.id == mine.id)
        await pilot.press("U", "w")
        assert app.screen is screen, "the place on the screen is another commit's"
        door.open()
        await until(pilot, lambda: "twenty" in text_of(screen.diff))
        assert kb.history.head() == head
        await until(pilot, lambda: screen.place is not None)
        await pilot.press("U")
        file = kb.workspace.root / PATH
        await until(pilot, lambda: "twenty" not in file.read_text())
        assert "thirty" in file.read_text()


async def test_several_places_shown_as_one_are_not_undone_by_a_guess(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb, PATH, list(kb.history.log(PATH))[1].id)
        await pilot.press(*"}}}}}}")
        await until(pilot, lambda: len(screen.diff._hunks) == 1)
        head = kb.history.head()
        await pilot.press("U")
        await until(pilot, lambda: "Several places" in app.toasts)
        assert kb.history.head() == head


async def test_another_key_leaves_an_undo_that_is_under_way_alone(kb, monkeypatch):
    door, undo = Door(), kb.history.undo
    monkeypatch.setattr(kb.history, "undo", lambda *a, **more: door.wait() or undo(*a, **more))
    before = len(list(kb.history.log(PATH)))
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb, PATH, list(kb.history.log(PATH))[1].id)
        await pilot.press("u")
        await until(pilot, lambda: isinstance(app.screen, WorkBox), "a box says what is done")
        await pilot.press("R", "u")
        door.open()
        await until(pilot, lambda: "Undone" in app.toasts)
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: screen.rows.commit.origin.undoes is not None)
        assert len(list(kb.history.log(PATH))) == before + 1


async def test_an_undo_that_takes_long_is_stopped_by_escape_and_changes_nothing(kb, monkeypatch):
    door, undo = Door(), kb.history.undo
    monkeypatch.setattr(kb.history, "undo", lambda *a, **more: door.wait() or undo(*a, **more))
    head = kb.history.head()
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb, PATH, list(kb.history.log(PATH))[1].id)
        await pilot.press("u")
        await until(pilot, lambda: isinstance(app.screen, WorkBox))
        await pilot.press("escape")
        await until(pilot, lambda: "nothing was changed" in app.toasts)
        door.open()
        await until(pilot, lambda: app.screen is screen)
        assert kb.history.head() == head


@pytest.fixture
def changed_again(kb):
    """The agent's second place was changed again by you."""
    old = kb.history.tree("HEAD")[PATH]
    text = (kb.workspace.root / PATH).read_text().replace("thirty", "something else")
    kb.library.write(PATH, text, expecting=old, actor=Actor.YOU, reason="again")
    return kb


async def conflict(pilot, kb) -> UndoConflictScreen:
    """Undo the agent's change, which runs into yours."""
    await history(pilot, kb, PATH, list(kb.history.log(PATH))[2].id)
    await pilot.press("u")
    await arrived(pilot, UndoConflictScreen, "DiffView")
    screen = pilot.app.screen
    await until(pilot, lambda: "something else" in text_of(screen.query_one("DiffView")))
    return screen


async def test_an_undo_conflict_shows_both_sides_and_changes_nothing(changed_again):
    kb = changed_again
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await conflict(pilot, kb)
        head = kb.history.head()
        assert "line 30" in text_of(screen.query_one("DiffView"))
        await pilot.press("enter")
        await until(pilot, lambda: "Say of each place" in app.toasts)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        assert kb.history.head() == head


@pytest.mark.parametrize(("key", "line"), [("m", "something else"), ("t", "line 30")])
async def test_a_conflict_is_settled_by_choosing_a_side(changed_again, key, line):
    kb = changed_again
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await conflict(pilot, kb)
        head = kb.history.head()
        await pilot.press(key)
        assert kb.history.head() == head, "deciding changes nothing yet"
        await pilot.press("enter")
        await until(pilot, lambda: kb.history.head() != head)
        text = (kb.workspace.root / PATH).read_text().split("\n")
        assert text[29] == line
        assert text[4] == "line 5"
        assert text[19] == "twenty"
        undo = kb.history.commit("HEAD")
        assert undo.origin.undoes == list(kb.history.log(PATH))[3].id


async def test_a_conflict_is_settled_by_another_text(changed_again):
    kb = changed_again
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await conflict(pilot, kb)
        await pilot.press("e")
        await arrived(pilot, TextEditScreen, "TextArea")
        await pilot.press("ctrl+u", *"both", "ctrl+s")
        await arrived(pilot, UndoConflictScreen, "DiffView")
        shown = app.screen.query_one("DiffView")
        await until(pilot, lambda: "your own text" in text_of(shown))
        await pilot.press("enter")
        file = kb.workspace.root / PATH
        await until(pilot, lambda: "both" in file.read_text().split("\n"))


async def test_a_conflict_can_be_settled_by_hand_where_it_stands(changed_again):
    app = NotesApp(changed_again)
    async with app.run_test(size=(110, 40)) as pilot:
        await conflict(pilot, changed_again)
        await pilot.press("o")
        await until(pilot, lambda: app.notes.editor is not None, "it can be settled by hand")


async def test_shift_a_undoes_the_whole_turn(kb):
    for name in ("one", "two"):
        with kb.history.change(Actor.AGENT, "", Origin(turn="t1")) as change:
            change.write(f"knowledge/topics/{name}.md", f"# {name}\n")
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await history(pilot, kb)
        await pilot.press("A")
        await arrived(pilot, ConfirmScreen, "DiffView")
        await pilot.press("y")
        await until(pilot, lambda: not (kb.workspace.knowledge / "topics/one.md").exists())
        assert not (kb.workspace.knowledge / "topics/two.md").exists()


async def test_shift_b_goes_back_to_before_a_change_after_a_look_at_it(kb):
    head = kb.history.head()
    second = list(kb.history.log(PATH))[1]
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await history(pilot, kb, PATH, second.id)
        await pilot.press("B")
        await arrived(pilot, ConfirmScreen, "DiffView")
        await until(pilot, lambda: "- five" in text_of(app.screen.query_one("DiffView")))
        assert kb.history.head() == head
        await pilot.press("y")
        file = kb.workspace.root / PATH
        await until(pilot, lambda: file.read_text() == lines())
        assert not (kb.workspace.knowledge / "people/alice.md").exists()


async def test_shift_r_brings_the_file_back_after_a_look_at_it(kb):
    first = list(kb.history.log(PATH))[-1]
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await history(pilot, kb, PATH, first.id)
        await pilot.press("R")
        await arrived(pilot, ConfirmScreen, "DiffView")
        file = kb.workspace.root / PATH
        assert "twenty" in file.read_text()
        await pilot.press("enter")
        await until(pilot, lambda: "line 20" in file.read_text())
        assert "five" not in file.read_text()


async def test_a_deleted_file_is_restored_from_the_commit_that_deleted_it(kb):
    kb.library.delete("people/alice")
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await history(pilot, kb)
        await pilot.press("R")
        await arrived(pilot, ConfirmScreen, "DiffView")
        await pilot.press("enter")
        await until(pilot, (kb.workspace.knowledge / "people/alice.md").exists)


async def test_the_filter_takes_words_paths_and_who(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb)
        await pilot.press("slash", *"agent")
        await until(pilot, lambda: [str(c.actor) for c in screen.rows.commits] == ["agent"])
        await pilot.press("ctrl+u", *"alice")
        await until(pilot, lambda: [str(c.actor) for c in screen.rows.commits] == ["dream"])
        await pilot.press("ctrl+u", *"zzz")
        await until(pilot, lambda: "No change matches" in text_of(screen.rows))
        await pilot.press("escape")
        await until(pilot, lambda: len(screen.rows.commits) == 4)
        assert screen.rows.has_focus


async def test_enter_gives_the_difference_the_screen_and_q_goes_back_step_by_step(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb)
        await pilot.press("enter")
        assert not screen.rows.display
        await pilot.press("q")
        assert screen.rows.has_focus
        await pilot.press("q")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_y_copies_the_id_and_shift_y_the_patch(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb)
        await pilot.press("y")
        await until(pilot, lambda: app.clipboard == screen.rows.commit.id)
        await pilot.press("Y")
        await until(pilot, lambda: app.clipboard.startswith("diff --git a/knowledge/"))
        assert "+++ b/knowledge/people/alice.md\n" in app.clipboard


async def test_ten_thousand_commits_arrive_in_parts_and_only_visible_ones_are_drawn(
    kb, monkeypatch
):
    from dataclasses import replace

    one = next(kb.history.log())
    many = [replace(one, id=f"{number:040x}") for number in range(10_000)]
    monkeypatch.setattr(kb.history, "log", lambda *_a, **_k: iter(many))
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = HistoryScreen(kb)
        await app.push_screen(screen)
        await until(pilot, lambda: len(screen.rows.commits) == 10_000)
        drawn = []
        render_row = type(screen.rows).render_row
        monkeypatch.setattr(
            type(screen.rows),
            "render_row",
            lambda self, index, width: drawn.append(index) or render_row(self, index, width),
        )
        monkeypatch.setattr(kb.history, "changes_of", lambda _rev: ())
        await pilot.press("G", "pageup", "pageup")
        await pilot.pause()
        assert screen.rows.cursor > 9_900
        assert len(set(drawn)) < 200


async def test_of_a_commit_with_very_many_files_the_first_are_compared(tmp_path, monkeypatch):
    from kbtui.tui.history import commit_detail

    monkeypatch.setattr(commit_detail, "MAX_FILES", 5)
    kb = make_kb(tmp_path, {f"topics/t{n:02}.md": f"# T{n}\n" for n in range(20)})
    app = NotesApp(kb)
    async with app.run_test(size=(110, 60)) as pilot:
        screen = await history(pilot, kb)
        await until(pilot, lambda: "more files" in text_of(screen.diff))
        text = text_of(screen.diff)
        assert text.count("■ T") == 4, "INDEX.md is the fifth"
        assert f"and {len(screen.rows.commit.paths) - 5} more files" in text
        await pilot.press("q")
        screen = await history(pilot, kb, "knowledge/topics/t19.md")
        await until(pilot, lambda: "■ T19" in text_of(screen.diff))


async def test_in_few_rows_the_list_has_them_until_a_change_is_opened(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(60, 14)) as pilot:
        screen = await history(pilot, kb)
        assert "wrote ● Alice" in text_of(screen.rows)
        assert screen.rows.size.height > 8
        assert not screen.detail.display
        await pilot.press("enter")
        await until(pilot, lambda: screen.diff.size.height > 5, "the change has the screen")
        await pilot.press("escape")
        await until(pilot, lambda: screen.rows.size.height > 8, "the list has it again")


async def test_the_year_leaves_room_for_what_was_done_on_the_day(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(60, 20)) as pilot:
        screen = await history(pilot, kb)
        await pilot.press("h")
        await until(pilot, lambda: screen.query("YearView") and screen.rows.size.height > 3)
        assert "wrote ● Alice" in text_of(screen.rows)
        assert str(screen.query_one("YearView").border_subtitle).endswith("h closes")
        await pilot.press("h")
        await until(pilot, lambda: screen.detail.display, "the change is back beside the list")


async def test_a_reason_that_says_what_was_done_anyway_is_left_out(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb)
        said = str(screen.query_one("#history-what").render())
        assert "wrote ● Alice" in said
        assert "new person" not in said


async def test_reasons_in_the_words_of_a_program_are_told_in_those_of_people(kb):
    kb.library.rename("people/alice", "Alice Miller")
    with kb.history.change(Actor.DREAM, "Archived whole. x/y didn't answer in the shape") as change:
        change.write("knowledge/topics/bee.md", "# Bee\n")
    kb.history.undo("HEAD")
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await history(pilot, kb)
        what = screen.query_one("#history-what")
        await until(pilot, lambda: "undid a change" in text_of(what))
        assert "(" not in text_of(what), "no id of a commit"
        await pilot.press("j")
        await until(pilot, lambda: "Kept word for word" in text_of(what))
        assert "shape" not in text_of(what)
        await pilot.press("j")
        await until(pilot, lambda: "renamed" in text_of(what))
        assert "people/alice" not in text_of(what)
