"""Tree, reader and keys always mean one current entry."""

from __future__ import annotations

from kbtui.tui.diff.confirm import ConfirmScreen, WorkBox
from kbtui.tui.messages import OpenHistory
from kbtui.workspace.durable import FileBatch
from tests.tui.at_rest import Door
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

ALICE, BOB = "knowledge/people/alice.md", "knowledge/people/bob.md"
DOCKER, POSTGRESQL = "knowledge/topics/docker.md", "knowledge/topics/postgresql.md"


def agree(notes, path: str) -> bool:
    entry = notes.knowledge_tree.entry
    return entry is not None and entry.path == notes.current_path == notes.target() == path


async def test_after_a_followed_link_and_back_all_stand_on_the_first_entry_again(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("b", "enter")
        await until(pilot, lambda: notes.current_path == POSTGRESQL)
        assert agree(notes, POSTGRESQL)
        await pilot.press("[")
        await shown(pilot, notes, ALICE)
        assert agree(notes, ALICE)
        await pilot.press("h", "H")
        await until(pilot, lambda: app.seen)
        assert isinstance(app.seen[-1], OpenHistory)
        assert app.seen[-1].path == ALICE
        await pilot.press("]")
        await shown(pilot, notes, POSTGRESQL)
        assert agree(notes, POSTGRESQL)


async def test_the_reader_follows_the_cursor_of_the_tree(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("h", "j")
        await shown(pilot, notes, BOB)
        assert agree(notes, BOB)
        await pilot.press("j")
        assert notes.target() is None, "the cursor is on a folder"
        await pilot.press("j")
        await shown(pilot, notes, DOCKER)
        assert notes.knowledge_tree.has_focus
        await pilot.press("[")
        await shown(pilot, notes, ALICE)
        assert agree(notes, ALICE), "what was only passed is no place to go back to"


async def test_the_cursor_may_come_back_to_what_was_read_as_back_does(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, BOB)
        notes.open_entry(ALICE)
        await shown(pilot, notes, ALICE)
        await pilot.press("h", "j")
        await shown(pilot, notes, BOB)
        await pilot.press("k")
        await shown(pilot, notes, ALICE)
        await pilot.press("[")
        await shown(pilot, notes, BOB)
        assert agree(notes, BOB)


async def test_without_a_reader_the_cursor_opens_none(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        await pilot.press("j", "j")
        assert notes.view is None
        assert notes.target() == BOB


async def test_the_tree_comes_back_to_what_is_read_when_the_reader_has_the_keys(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("h", "k")
        assert notes.target() is None
        notes.view.body.focus()
        await until(pilot, lambda: agree(notes, ALICE))


async def test_a_filter_that_hides_what_a_link_leads_to_ends(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("slash", *"alice", "down")
        await until(pilot, lambda: len(notes.knowledge_tree.items) == 2)
        notes.view.body.focus()
        await pilot.press("b", "enter")
        await until(pilot, lambda: notes.current_path == POSTGRESQL)
        assert agree(notes, POSTGRESQL)
        assert not notes.knowledge_tree.filtering


async def test_what_machines_write_elsewhere_moves_neither_tree_nor_reader(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, BOB)
        agent_writes(kb, "knowledge/people/aaron.md", "# Aaron\n")
        await until(pilot, lambda: "Aaron" in text_of(notes.knowledge_tree))
        assert agree(notes, BOB)


async def test_after_a_deletion_in_the_tree_the_reader_shows_what_the_cursor_is_on(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        notes.open_entry(DOCKER)
        await shown(pilot, notes, DOCKER)
        await pilot.press("h", "d")
        await until(pilot, lambda: "Docker" not in text_of(notes.knowledge_tree))
        await shown(pilot, notes, POSTGRESQL)
        assert agree(notes, POSTGRESQL)
        await pilot.press("u")
        await shown(pilot, notes, DOCKER)
        assert agree(notes, DOCKER)


async def test_an_entry_that_others_link_to_is_deleted_after_a_question(tmp_path):
    kb = make_kb(tmp_path)
    agent_writes(kb, "knowledge/topics/docker.md", "# Docker\n\n[[alice]] and [[alice]] know it.\n")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("d")
        dialog = await arrived(pilot, ConfirmScreen, "DiffView")
        said = text_of(dialog.query_one("#confirm-text Static"))
        assert dialog.TITLE_TEXT == "Delete Alice?"
        assert "2 other files would be rewritten" in said
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert (kb.workspace.root / ALICE).exists()
        await pilot.press("d")
        await arrived(pilot, ConfirmScreen, "DiffView")
        await pilot.press("y")
        await until(pilot, lambda: "Deleted Alice" in app.toasts)
        assert not (kb.workspace.root / ALICE).exists()
        assert "[[" not in kb.library.find("docker").text
        await pilot.press("u")
        await arrived(pilot, ConfirmScreen, "DiffView")
        await pilot.press("y")
        await shown(pilot, notes, ALICE)
        assert "[[alice]] and [[alice]]" in kb.library.find("docker").text


async def test_an_undone_deletion_leaves_no_mark_on_notes_that_are_what_they_were(tmp_path):
    kb = make_kb(tmp_path)
    agent_writes(kb, DOCKER, "# Docker\n\nSee [[alice]].\n")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("d")
        await arrived(pilot, ConfirmScreen, "DiffView")
        await pilot.press("y")
        await until(pilot, lambda: "Alice" not in text_of(notes.knowledge_tree))
        await until(pilot, lambda: "changed" in text_of(notes.knowledge_tree), "Docker is so")
        await pilot.press("u")
        await arrived(pilot, ConfirmScreen, "DiffView")
        await pilot.press("y")
        await shown(pilot, notes, ALICE)
        await until(pilot, lambda: "changed" not in text_of(notes.knowledge_tree))


async def test_a_change_of_many_files_shows_how_far_it_is_and_stopped_changes_nothing(
    tmp_path, monkeypatch
):
    files = {f"topics/n{n:02}.md": f"# N{n}\n\nSee [[hub]].\n" for n in range(60)}
    kb = make_kb(tmp_path, {"topics/hub.md": "# Hub\n", **files})
    door, write, written = Door(), FileBatch.write_together, []

    def slowly(batch: FileBatch, some: dict[str, bytes], *rest, **more) -> None:
        write(batch, some, *rest, **more)
        if len(some) > 1:  # the notes, and not what the history keeps for itself
            written.extend(some)
            door.wait()

    monkeypatch.setattr("kbtui.history.door.SYNC_TOGETHER", 20)
    monkeypatch.setattr(FileBatch, "write_together", slowly)
    head = kb.history.head()
    before = {path: (kb.workspace.knowledge / path).read_text() for path in files}
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        await opened(pilot, "knowledge/topics/hub.md")
        await pilot.press("d")
        dialog = await arrived(pilot, ConfirmScreen, "DiffView")
        said = text_of(dialog.query_one("#confirm-text Static"))
        assert "60 other files would be rewritten" in said
        assert "The first 20 of 61 are shown" in said
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, WorkBox) and len(written) >= 20)
        await until(pilot, lambda: "of 62" in text_of(app.screen.query_one("Static")))
        await pilot.press("escape")
        door.open()
        await until(pilot, lambda: "nothing was changed" in app.toasts)
    assert kb.history.head() == head
    assert {path: (kb.workspace.knowledge / path).read_text() for path in files} == before
