from __future__ import annotations

import threading
import traceback

from kbtui.knowledge.catalog.entry_index import EntryIndex
from kbtui.tui.diff.confirm import ConfirmScreen
from tests.tui.notes_support import (
    NotesApp,
    agent_writes,
    arrived,
    make_kb,
    opened,
    ready,
    shown,
    text_of,
    until,
)

ALICE = "knowledge/people/alice.md"
DOCKER = "knowledge/topics/docker.md"


def exists(kb, path: str) -> bool:
    return (kb.workspace.root / path).exists()


async def test_n_asks_for_title_and_type_and_starts_to_write(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        await pilot.press("n")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press(*"Carol", "enter")
        await until(pilot, lambda: notes.editor is not None)
        assert notes.current_path == "knowledge/people/carol.md", "the cursor was in people"
        await pilot.press(*"Boss", "ctrl+s")
        await until(pilot, lambda: "## Role\nBoss" in kb.library.find("Carol").text)
        await until(pilot, lambda: notes.knowledge_tree.entry.slug == "carol")


async def test_a_new_note_goes_to_the_folder_that_is_typed_before_its_title(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        await pilot.press("n")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press(*"/Trips/Rome", "enter")
        await until(pilot, lambda: notes.editor is not None)
        assert notes.current_path == "knowledge/Trips/rome.md"


async def test_shift_r_renames_and_repairs_links(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("R")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("ctrl+u", *"Alice Smith", "enter")
        await shown(pilot, notes, "knowledge/people/alice-smith.md")
        assert "[[people/alice-smith|Alice]]" in kb.library.find("bob").text
        await until(pilot, lambda: notes.knowledge_tree.entry.slug == "alice-smith")


async def test_the_loop_never_asks_for_what_a_change_of_many_notes_has_made_new(
    tmp_path, monkeypatch
):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    asked: list[str] = []
    real = EntryIndex._up_to_date

    def noted(index):
        if threading.current_thread() is threading.main_thread():
            asked.append("".join(traceback.format_stack(limit=6)))
        return real(index)

    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        monkeypatch.setattr(EntryIndex, "_up_to_date", noted)
        await pilot.press("R")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("ctrl+u", *"Alice Smith", "enter")
        await shown(pilot, notes, "knowledge/people/alice-smith.md")
        await pilot.press("d")
        await arrived(pilot, ConfirmScreen, "DiffView")
        await pilot.press("y")
        await until(pilot, lambda: "u brings it back" in app.toasts)
        await pilot.press("u")
        await shown(pilot, notes, "knowledge/people/alice-smith.md")
        monkeypatch.undo()
    assert not asked, asked[0]


async def test_m_moves_to_another_category(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("m")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press(*"topi", "enter")
        await shown(pilot, notes, "knowledge/topics/alice.md")
        assert not exists(kb, ALICE)


async def test_d_deletes_at_once_and_u_brings_it_back(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, DOCKER)
        before = (kb.workspace.root / DOCKER).read_bytes()
        await pilot.press("d")
        await until(pilot, lambda: notes.view is None, "the reader is closed")
        assert not exists(kb, DOCKER)
        assert "u brings it back" in app.toasts
        await until(pilot, lambda: "Docker" not in text_of(notes.knowledge_tree))
        await pilot.press("u")
        await shown(pilot, notes, DOCKER)
        assert (kb.workspace.root / DOCKER).read_bytes() == before


async def test_after_a_deletion_the_entry_read_before_is_shown(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/bob.md")
        notes.open_entry(ALICE)
        await shown(pilot, notes, ALICE)
        await pilot.press("d")
        await arrived(pilot, ConfirmScreen, "DiffView")
        await pilot.press("y")
        await shown(pilot, notes, "knowledge/people/bob.md")


async def test_u_undoes_the_last_change_of_the_entry_and_no_other(tmp_path):
    kb = make_kb(tmp_path)
    agent_writes(kb, ALICE, "# Alice\n\nWrong.\n")
    agent_writes(kb, "knowledge/people/bob.md", "# Bob\n\nRight.\n")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        assert "Wrong." in text_of(notes.view.body)
        await pilot.press("u")
        await until(pilot, lambda: "likes tea" in text_of(notes.view.body))
        assert "Right." in kb.library.find("bob").text
        assert "Undone" in app.toasts


async def test_an_undo_that_cannot_be_made_changes_nothing_and_says_why(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        (kb.workspace.root / ALICE).write_text("# Alice\n\nEdited in vim, not yet recorded.\n")
        await pilot.press("u")
        await until(pilot, lambda: app.toasts or len(app.screen_stack) > 1)
        assert "Edited in vim" in (kb.workspace.root / ALICE).read_text()
        assert notes.current_path == ALICE


async def test_every_action_of_the_registry_can_be_carried_out():
    from kbtui.tui.actions.registry import actions
    from kbtui.tui.history.history import HistoryScreen
    from kbtui.tui.notes.entry_editor import EntryEditor
    from kbtui.tui.notes.notes_pane import NotesPane
    from kbtui.tui.search.search import SearchScreen
    from kbtui.tui.search.switcher import SwitcherScreen

    shown_by = {
        "notes": NotesPane,
        "editor": EntryEditor,
        "history": HistoryScreen,
        "search": SearchScreen,
        "switcher": SwitcherScreen,
    }
    missing = [
        action.id
        for context, widget in shown_by.items()
        for action in actions(context)
        if not hasattr(widget, f"action_{action.call.partition('(')[0]}")
    ]
    assert missing == []


TASKS = "knowledge/topics/tasks.md"
WITH_TASKS = "# Tasks\r\n\r\n- [ ] buy milk and bread\r\n- [x] [red]call[/]\r\n\r\nThat is all.\r\n"


async def test_space_ticks_the_task_under_the_cursor_and_u_takes_that_back(tmp_path):
    kb = make_kb(tmp_path, {"topics/tasks.md": WITH_TASKS})
    file = kb.workspace.root / TASKS
    app = NotesApp(kb)
    async with app.run_test(size=(40, 30)) as pilot:
        notes = await opened(pilot, TASKS, 3)
        body = notes.view.body
        await until(pilot, lambda: body.has_cursor)
        await pilot.press("space")
        await until(pilot, lambda: "☑ buy milk" in text_of(body))
        ticked = WITH_TASKS.replace("[ ] buy", "[x] buy").encode()
        assert file.read_bytes().endswith(ticked), "no other byte of it is another"
        assert kb.history.commit("HEAD").body == "done: buy milk and bread"
        assert (
            body.pointed_source
            == file.read_bytes().split(b"\r\n").index(b"- [x] buy milk and bread") + 1
        )
        await pilot.press("j", "space")
        await until(pilot, lambda: "☐ [red]call[/]" in text_of(body))
        await pilot.press("u")
        await until(pilot, lambda: "☑ [red]call[/]" in text_of(body))


async def test_space_empties_a_box_of_another_kind_and_touches_none_beside_it(tmp_path):
    kb = make_kb(tmp_path, {"topics/tasks.md": "# T\n\n- [/] half\n- [-] not\n- [?] ask\n"})
    app = NotesApp(kb)
    async with app.run_test(size=(40, 30)) as pilot:
        body = (await opened(pilot, TASKS, 3)).view.body
        await until(pilot, lambda: body.has_cursor and "◪ half" in text_of(body))
        await pilot.press("space")
        await until(pilot, lambda: "☐ half" in text_of(body))
        await pilot.press("space")
        await until(pilot, lambda: "☑ half" in text_of(body))
        written = (kb.workspace.root / TASKS).read_text()
        assert written.endswith("- [x] half\n- [-] not\n- [?] ask\n")


async def test_space_unfolds_details(tmp_path):
    text = "<details>\n<summary>Why</summary>\n\nBecause.\n\n</details>\n"
    app = NotesApp(make_kb(tmp_path, {"topics/tasks.md": f"# Q\n\n{text}"}))
    async with app.run_test() as pilot:
        body = (await opened(pilot, TASKS, 3)).view.body
        await until(pilot, lambda: body.has_cursor and "▸ Why" in text_of(body))
        assert "Because" not in text_of(body)
        await pilot.press("space")
        await until(pilot, lambda: "▾ Why" in text_of(body) and "Because" in text_of(body))


async def test_space_goes_on_by_a_page_where_there_is_no_task(tmp_path):
    text = "# Long\n\n" + "Paragraph.\n\n" * 100
    app = NotesApp(make_kb(tmp_path, {"topics/tasks.md": text}))
    async with app.run_test() as pilot:
        body = (await opened(pilot, TASKS)).view.body
        await pilot.press("space")
        await until(pilot, lambda: body.scroll_y > 5)


async def test_a_task_that_was_changed_meanwhile_is_left_alone_and_that_is_said(tmp_path):
    kb = make_kb(tmp_path, {"topics/tasks.md": WITH_TASKS})
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, TASKS, 3)
        await until(pilot, lambda: notes.view.body.has_cursor)
        other = WITH_TASKS.replace("milk", "eggs").encode()
        (kb.workspace.root / TASKS).write_bytes(other)
        await pilot.press("space")
        await until(pilot, lambda: "another one by now" in app.toasts)
        assert (kb.workspace.root / TASKS).read_bytes() == other


async def test_a_task_of_a_read_only_note_is_ticked_when_one_says_so(tmp_path):
    kb = make_kb(tmp_path, {"topics/tasks.md": WITH_TASKS})
    file = kb.workspace.root / TASKS
    file.chmod(0o444)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, TASKS, 3)
        await until(pilot, lambda: notes.view.body.has_cursor)
        await pilot.press("space")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        assert "read-only" in app.screen.text.plain
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert file.read_bytes() == WITH_TASKS.encode()
        await pilot.press("space", "r")
        await until(pilot, lambda: b"[x] buy milk" in file.read_bytes())
        assert file.stat().st_mode & 0o777 == 0o444


async def test_space_folds_a_callout(tmp_path):
    app = NotesApp(make_kb(tmp_path, {"topics/tasks.md": "# Q\n\n> [!faq]- Why\n> Because.\n"}))
    async with app.run_test() as pilot:
        body = (await opened(pilot, TASKS, 3)).view.body
        await until(pilot, lambda: body.has_cursor)
        await pilot.press("space")
        await until(pilot, lambda: "Because" in text_of(body))
        await pilot.press("space")
        await until(pilot, lambda: "Because" not in text_of(body))


async def test_d_on_a_folder_says_that_it_is_about_a_note(tmp_path) -> None:
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test(size=(100, 30)) as pilot:
        notes = await ready(pilot)
        notes.focus_tree()
        await pilot.press("home", "d")
        assert notes.target() is None
        await until(pilot, lambda: "not about a folder" in app.toasts)
        assert len(app.screen_stack) == 1


async def test_s_makes_an_entry_of_a_message_of_a_conversation(tmp_path):
    kb = make_kb(tmp_path)
    with kb.sessions.create(title="Planning", id="s1") as session:
        session.append("user", "Where shall the mast stand?")
        session.append("assistant", "# Plot 17\n\nIt is the highest.")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, "sessions/s1.jsonl", 2)
        await until(pilot, lambda: "highest" in text_of(notes.view.body))
        await pilot.press("s")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("enter")
        await shown(pilot, notes, "knowledge/topics/plot-17.md")
    made = kb.library.find("Plot 17")
    assert made.body.strip() == "# Plot 17\n\nIt is the highest."
    origin = next(iter(kb.history.log(limit=1))).origin
    assert (origin.session, origin.messages) == ("s1", (2, 2)), "w leads back to the message"


async def test_what_began_a_conversation_becomes_an_entry_of_its_title(tmp_path):
    kb = make_kb(tmp_path)
    with kb.sessions.create(title="Planning", id="s1") as session:
        session.append("user", "Where shall the mast stand?")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, "sessions/s1.jsonl")
        await until(pilot, lambda: "mast" in text_of(notes.view.body))
        await pilot.press("s")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("enter")
        await shown(pilot, notes, "knowledge/topics/planning.md")
