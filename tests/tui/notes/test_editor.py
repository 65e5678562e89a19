from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.geometry import Region

from kbtui.history.change import Actor
from kbtui.tui.notes.entry_editor import find_draft, normalize_line_ends, restore_line_ends
from tests.tui.notes_support import (
    DEFAULT,
    POSTGRESQL,
    NotesApp,
    agent_writes,
    make_kb,
    opened,
    ready,
    text_of,
    until,
)

if TYPE_CHECKING:
    from kbtui.tui.notes.entry_editor import EntryEditor
    from kbtui.tui.notes.notes_pane import NotesPane

PATH = "knowledge/topics/postgresql.md"


async def editing(pilot, path: str = PATH) -> tuple[NotesPane, EntryEditor]:
    notes = await opened(pilot, path)
    await pilot.press("e")
    await until(pilot, lambda: notes.editor is not None and notes.editor.text_area.has_focus)
    return notes, notes.editor


def status(editor: EntryEditor) -> str:
    return str(editor.query_one("#editor-status").render())


def on_disk(kb, path: str = PATH) -> str:
    return (kb.workspace.root / path).read_text()


async def test_ctrl_s_saves_as_the_persons_own_change(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes, editor = await editing(pilot)
        assert editor.text_area.text == POSTGRESQL
        await pilot.press("ctrl+end", *"Fast.")
        assert editor.label == "✎ PostgreSQL ● not saved"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: not editor.dirty, "it is saved")
        assert on_disk(kb).endswith("A database.\nFast.")
        assert kb.history.commit("HEAD").actor is Actor.YOU
        assert "updated:" in editor.text_area.text, "the date set on saving is in the editor"
        await pilot.press(*" Very.", "ctrl+s")
        await until(pilot, lambda: on_disk(kb).endswith("Fast. Very."))
        await pilot.press("escape")
        await until(pilot, lambda: notes.editor is None)
        await until(pilot, lambda: "Fast. Very." in text_of(notes.view.body))
        assert len(app.screen_stack) == 1


async def test_escape_asks_only_where_something_is_unsaved(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes, _ = await editing(pilot)
        await pilot.press("x", "escape")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert notes.editor is not None
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("d")
        await until(pilot, lambda: notes.editor is None)
        assert on_disk(kb) == POSTGRESQL
        await editing(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: notes.editor is None)


async def test_a_drawing_that_comes_when_the_editor_has_just_gone_is_empty(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes, editor = await editing(pilot)
        area = editor.text_area
        assert area.render_lines(Region(0, 0, 20, 1))[0].text.strip() == "---"
        await pilot.press("escape")
        await until(pilot, lambda: notes.editor is None)
        assert [strip.text for strip in area.render_lines(Region(0, 0, 5, 2))] == [" " * 5] * 2


async def test_s_in_the_question_saves_and_leaves(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes, _ = await editing(pilot)
        await pilot.press("ctrl+end", "x", "escape")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("s")
        await until(pilot, lambda: notes.editor is None)
        assert on_disk(kb).endswith("A database.\nx")


async def test_a_draft_survives_the_end_of_the_app(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        await editing(pilot)
        await pilot.press("ctrl+end", *"unsaved")
    again = NotesApp(kb)
    async with again.run_test() as pilot:
        _, editor = await editing(pilot)
        assert editor.text_area.text.endswith("unsaved")
        assert "earlier" in status(editor)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: on_disk(kb).endswith("unsaved"))


async def test_a_conflict_shows_both_sides_and_keeps_the_draft(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test(size=(100, 40)) as pilot:
        _, editor = await editing(pilot)
        await pilot.press("ctrl+end", "up", "end", *" Mine.")
        agent_writes(kb, PATH, POSTGRESQL.replace("A database.", "Theirs."))
        await until(pilot, lambda: "changed meanwhile" in status(editor))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(app.screen_stack) == 2, "both sides are shown")
        diff = app.screen.query_one("DiffView")
        await until(pilot, lambda: "Theirs." in text_of(diff))
        assert "A database. Mine." in text_of(diff)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert editor.text_area.text.endswith("A database. Mine.\n")
        assert "Theirs." in on_disk(kb)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("m")
        await until(pilot, lambda: on_disk(kb).endswith("A database. Mine.\n"))
        assert not list(kb.workspace.knowledge.rglob("*conflict*"))


async def test_changes_in_other_lines_can_be_merged(tmp_path):
    text = "# P\n\none\n\ntwo\n\nthree\n"
    kb = make_kb(tmp_path, {"topics/postgresql.md": text})
    app = NotesApp(kb)
    async with app.run_test(size=(100, 40)) as pilot:
        _, editor = await editing(pilot)
        await pilot.press("ctrl+end", "up", "end", *" 3")
        agent_writes(kb, PATH, text.replace("one", "ONE"))
        await until(pilot, lambda: "changed meanwhile" in status(editor))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("b")
        await until(pilot, lambda: "three 3" in on_disk(kb))
        assert "ONE" in on_disk(kb)


async def test_an_unchanged_editor_follows_what_the_agent_writes(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        _, editor = await editing(pilot)
        agent_writes(kb, PATH, POSTGRESQL + "\nMore.\n")
        await until(pilot, lambda: "More." in editor.text_area.text)
        assert not editor.dirty


async def test_opening_another_entry_asks_about_the_unsaved_one_first(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes, editor = await editing(pilot)
        await pilot.press("x")
        notes.open_entry("knowledge/people/bob.md")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert notes.editor is editor
        assert editor.dirty


async def test_every_byte_that_was_not_edited_is_kept(tmp_path):
    mixed = b"# A\r\n\r\none\r\ntwo\nthree\x0bfour\r\n\r\nend"
    kb = make_kb(tmp_path, {"topics/postgresql.md": mixed})
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        await editing(pilot)
        await pilot.press("ctrl+end", *"ing", "ctrl+s")
        file = kb.workspace.root / PATH
        await until(pilot, lambda: file.read_bytes().endswith(b"ending"))
        body = file.read_bytes()
        assert b"# A\r\n\r\none\r\ntwo\nthree\x0bfour\r\n\r\nending" in body


def test_line_ends_come_back_line_by_line():
    original = "a\r\nb\nc\u2028d\r\n"
    assert normalize_line_ends(original) == "a\nb\nc\nd\n"
    assert restore_line_ends(original, normalize_line_ends(original)) == original
    assert restore_line_ends(original, "a\nnew\nb\nc\nd\n") == "a\r\nnew\r\nb\nc\u2028d\r\n"
    assert restore_line_ends(original, "a\nb\n") == "a\r\nb\n"
    assert restore_line_ends("a\nb", "a\nb\nc") == "a\nb\nc"


async def test_enter_goes_on_with_a_list_and_tab_indents_it(tmp_path):
    kb = make_kb(tmp_path, {"topics/postgresql.md": "- [ ] one\n"})
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        _, editor = await editing(pilot)
        area = editor.text_area
        await pilot.press("ctrl+end", "up", "end", "enter", *"two", "tab", "enter", "enter")
        assert area.text == "- [ ] one\n  - [ ] two\n\n"
        await pilot.press("ctrl+home", "end")
        area.text = "9. nine"
        await pilot.press("ctrl+end", "enter", *"ten")
        assert area.text == "9. nine\n10. ten"
        area.text = "```\n- code"
        await pilot.press("ctrl+end", "enter", *"end")
        assert area.text == "```\n- code\nend"


async def test_control_characters_are_shown_not_obeyed_and_stay_in_the_file(tmp_path):
    kb = make_kb(tmp_path, {"topics/postgresql.md": "a\x1b]0;pwned\x07b \u202e\n"})
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        _, editor = await editing(pilot)
        assert not set("\x1b\x07\u202e") & set(text_of(editor.text_area))
        await pilot.press("ctrl+end", "x", "ctrl+s")
        await until(pilot, lambda: "x" in on_disk(kb))
        assert "a\x1b]0;pwned\x07b \u202e\nx" in on_disk(kb)


async def test_what_cannot_be_edited_without_loss_says_so(tmp_path):
    kb = make_kb(tmp_path, {**DEFAULT, "topics/latin.md": b"caf\xe9\n"})
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/latin.md")
        await pilot.press("e")
        await until(pilot, lambda: app.toasts)
        assert notes.editor is None


async def test_a_note_with_a_line_of_380000_characters_is_left_to_another_editor(tmp_path):
    text = "# Scan\n\n" + "word " * 76_000 + "\n"
    app = NotesApp(make_kb(tmp_path, {"topics/scan.md": text}))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/scan.md")
        await pilot.press("e")
        await until(pilot, lambda: app.toasts)
        assert "A line of 380,000 characters" in app.toasts
        assert notes.editor is None


async def test_an_editor_outside_makes_the_persons_own_change(tmp_path, monkeypatch):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    monkeypatch.setenv("VISUAL", "sed -i s/database/DATABASE/")
    async with app.run_test() as pilot:
        notes = await opened(pilot, PATH)
        monkeypatch.setattr(type(app._driver), "can_suspend", True)
        await pilot.press("E")
        await until(pilot, lambda: "A DATABASE." in text_of(notes.view.body))
        commit = kb.history.commit("HEAD")
        assert commit.actor is Actor.YOU
        assert [change.path for change in commit.paths if "INDEX" not in change.path] == [PATH]


@pytest.fixture
def outer_editor(tmp_path, monkeypatch):
    """Make the person's editor of a shell script."""

    def make(app, script: str) -> None:
        program = tmp_path / "my-editor"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("VISUAL", str(program))
        monkeypatch.setattr(type(app._driver), "can_suspend", True)

    return make


async def test_an_editor_outside_that_fails_replaces_nothing_and_undo_brings_what_it_left(
    tmp_path, outer_editor
):
    kb = make_kb(tmp_path / "notes")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, PATH)
        outer_editor(app, 'printf half > "$1"; exit 3')
        await pilot.press("E")
        await until(pilot, lambda: "exit code 3" in app.toasts)
        assert kb.library.get(PATH).text == POSTGRESQL
        assert "A database." in text_of(notes.view.body)
        await pilot.press("u")
        await until(pilot, lambda: kb.library.read(PATH) == b"half")


async def test_an_editor_outside_that_is_not_there_is_said(tmp_path, monkeypatch):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        await opened(pilot, PATH)
        monkeypatch.setenv("VISUAL", "no-such-editor")
        await pilot.press("E")
        await until(pilot, lambda: "not installed" in app.toasts)


async def test_an_editor_outside_with_a_window_is_told_to_wait(tmp_path, outer_editor):
    app = NotesApp(make_kb(tmp_path / "notes"))
    async with app.run_test() as pilot:
        await opened(pilot, PATH)
        outer_editor(app, "exit 0")
        await pilot.press("E")
        await until(pilot, lambda: "code --wait" in app.toasts)


async def test_a_document_is_opened_by_the_desktop_and_not_by_an_editor(
    tmp_path, monkeypatch, outer_editor
):
    folder = tmp_path / "bin"
    folder.mkdir()
    viewer = folder / "xdg-open"
    viewer.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/seen\n')
    viewer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":0")
    kb = make_kb(tmp_path / "notes", {"topics/a.md": "# A\n"})
    paper = kb.workspace.root / "docs" / "paper.pdf"
    paper.parent.mkdir(exist_ok=True)
    paper.write_bytes(b"%PDF-1.4\n")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        outer_editor(app, f"touch {tmp_path}/edited")
        notes.open_entry("docs/paper.pdf")
        await until(pilot, lambda: notes.current_path == "docs/paper.pdf")
        await pilot.press("E")
        await until(pilot, (tmp_path / "seen").exists)
        assert (tmp_path / "seen").read_text().strip() == str(paper)
        assert not (tmp_path / "edited").exists()


async def test_links_to_a_heading_that_is_renamed_follow_in_the_same_save_if_wanted(tmp_path):
    kb = make_kb(tmp_path)
    kb.library.create("topic", "Storage", body="See [[PostgreSQL#Old name]].")
    old = kb.library.get(PATH).text.rstrip("\n") + "\n\n## Old name\n\nText.\n"
    kb.library.write(PATH, old, expecting=blob_of(kb, PATH), actor=Actor.YOU, reason="more")
    source = "knowledge/topics/storage.md"
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        _, editor = await editing(pilot)
        for wanted, key in (("A second name", "l"), ("A third name", "m")):
            before = editor.text_area.text
            there = "Old name" if key == "l" else "A second name"
            if key == "m":
                link = on_disk(kb, source).replace("#Old name", "#A second name")
                kb.library.write(
                    source, link, expecting=blob_of(kb, source), actor=Actor.YOU, reason="by hand"
                )
            editor.text_area.text = before.replace(f"## {there}", f"## {wanted}")
            await pilot.press("ctrl+s")
            await until(pilot, lambda: len(app.screen_stack) == 2, "it asks")
            await pilot.press(key)
            await until(pilot, lambda: not editor.dirty, "it is saved")
            assert f"## {wanted}" in on_disk(kb)
            followed = key == "m"
            assert (f"#{wanted}]]" in on_disk(kb, source)) is followed
        head = kb.history.commit("HEAD")
        assert {PATH, source} <= {each.path for each in head.paths}


def blob_of(kb, path: str) -> str:
    return kb.history.tree("HEAD")[path]


async def _deleted_outside(kb, pilot, editor: EntryEditor) -> None:
    (kb.workspace.root / PATH).unlink()
    kb.history.adopt()
    await until(pilot, lambda: "deleted outside" in status(editor), "the deletion is told")


@pytest.mark.parametrize("typed", ["", "Typed. "])
async def test_a_note_deleted_outside_is_called_that_and_written_again_if_wanted(tmp_path, typed):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        _, editor = await editing(pilot)
        await pilot.press(*typed)
        await _deleted_outside(kb, pilot, editor)
        assert editor.text_area.text == typed + POSTGRESQL
        assert editor.label.endswith("not saved")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        assert "deleted outside while you edited it" in app.screen.text.plain
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert not (kb.workspace.root / PATH).exists()
        await pilot.press("ctrl+s", "w")
        await until(pilot, lambda: not editor.dirty, "it is saved")
        assert on_disk(kb).endswith(POSTGRESQL.rpartition("---")[2])
        assert typed in on_disk(kb)
        assert status(editor) == ""


async def test_a_note_that_is_deleted_unnoticed_is_asked_about_as_it_is_saved(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        _, editor = await editing(pilot)
        await pilot.press("x")
        (kb.workspace.root / PATH).unlink()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        assert "deleted outside" in app.screen.text.plain
        await pilot.press("w")
        await until(pilot, lambda: not editor.dirty)
        assert on_disk(kb).startswith("x")


async def test_the_text_of_a_note_deleted_outside_is_a_draft_if_the_app_ends(tmp_path):
    kb = make_kb(tmp_path)
    async with NotesApp(kb).run_test() as pilot:
        _, editor = await editing(pilot)
        await _deleted_outside(kb, pilot, editor)
    draft = find_draft(kb.workspace.root, PATH)
    assert draft is not None
    assert (draft.text, draft.base) == (POSTGRESQL, None)


async def test_a_note_deleted_and_made_again_outside_goes_on(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        _, editor = await editing(pilot)
        await _deleted_outside(kb, pilot, editor)
        (kb.workspace.root / PATH).write_text(POSTGRESQL)
        kb.history.adopt()
        await until(pilot, lambda: not editor.dirty and status(editor) == "")
        await pilot.press("y", "ctrl+s")
        await until(pilot, lambda: on_disk(kb).startswith("y"))
        assert len(app.screen_stack) == 1


async def test_a_read_only_note_is_asked_about_before_it_is_replaced(tmp_path):
    kb = make_kb(tmp_path)
    file = kb.workspace.root / PATH
    file.chmod(0o444)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        _, editor = await editing(pilot)
        await pilot.press("x", "ctrl+s")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        assert "read-only" in app.screen.text.plain
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert (on_disk(kb), editor.dirty) == (POSTGRESQL, True)
        await pilot.press("ctrl+s", "r")
        await until(pilot, lambda: not editor.dirty, "it is replaced")
        assert on_disk(kb).startswith("x")
        assert file.stat().st_mode & 0o777 == 0o444
        await pilot.press("y", "ctrl+s")
        await until(pilot, lambda: not editor.dirty, "it isn't asked again")
        assert on_disk(kb)[:2] == "xy"
