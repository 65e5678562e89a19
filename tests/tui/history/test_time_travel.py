from __future__ import annotations

import pytest

from kbtui.history.change import Actor
from kbtui.tui.actions.registry import actions
from kbtui.tui.diff.confirm import ConfirmScreen
from kbtui.tui.history.history import HistoryScreen, browse
from kbtui.tui.history.time_travel import TimeTravelScreen, read_since, travel
from kbtui.tui.messages import AskAbout
from kbtui.tui.notes.why import WhyScreen
from kbtui.tui.search.search import SearchScreen
from kbtui.tui.terminal.background import run_latest
from tests.tui.notes_support import (
    NotesApp,
    agent_writes,
    arrived,
    hit,
    make_kb,
    ready,
    text_of,
    until,
)

ALICE, DOCKER = "knowledge/people/alice.md", "knowledge/topics/docker.md"


@pytest.fixture
def kb(tmp_path):
    """Alice and Bob; then Alice says something else, Bob is gone, and there is Docker."""
    kb = make_kb(
        tmp_path,
        {
            "people/alice.md": "---\ntype: person\n---\n# Alice\n\nKnows [[bob]].\n",
            "people/bob.md": "---\ntype: person\n---\n# Bob\n\nOld friend.\n",
        },
    )
    agent_writes(kb, ALICE, "---\ntype: person\n---\n# Alice\n\nKnows nobody.\n")
    kb.library.delete("people/bob")
    kb.library.create("topic", "Docker")
    kb.first = list(kb.history.log())[-1]
    return kb


async def past(pilot, kb, path: str | None = ALICE) -> TimeTravelScreen:
    await ready(pilot)
    screen = TimeTravelScreen(kb, kb.first, path)
    await pilot.app.push_screen(screen)
    await until(pilot, lambda: screen.notes.knowledge_tree.items, "the tree of then is there")
    if path is not None:
        await until(pilot, lambda: screen.notes.current_path == path, "the entry is shown")
        await until(pilot, lambda: screen.notes.view.links is not None, "its links are known")
    return screen


async def test_tree_entry_and_links_are_those_of_then_under_a_banner(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await past(pilot, kb)
        assert set(screen.notes.entries) == {ALICE, "knowledge/people/bob.md"}
        await until(pilot, lambda: "Knows Bob." in text_of(screen.notes.view.body))
        banner = str(screen.query_one("#past-banner").render())
        assert "You had ● Alice and ● Bob here already" in banner
        assert "read-only" in banner
        screen.notes.open_entry("knowledge/people/bob.md")
        await until(pilot, lambda: "Old friend" in text_of(screen.notes.view.body))
        backlinks = screen.notes.view
        await until(pilot, lambda: backlinks.links is not None and backlinks.links.backlinks)
        assert backlinks.links.backlinks[0].path == ALICE
        await pilot.press("T")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert set(app.notes.entries) == {ALICE, DOCKER}


async def test_a_note_of_then_is_read_without_indexing_all_of_then(kb, monkeypatch):
    asked = []
    search = kb.search.search
    monkeypatch.setattr(
        kb.search, "search", lambda *args, **more: asked.append(more) or search(*args, **more)
    )
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await past(pilot, kb)
    assert not [more for more in asked if more.get("at")]


async def test_no_key_that_writes_does_anything_but_say_why(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await past(pilot, kb)
        head, writing = kb.history.head(), ("n", "e", "E", "m", "d", "u", "a")
        for number, key in enumerate(writing, 1):
            await pilot.press(key)
            await until(
                pilot, lambda n=number: app.toasts.count("nothing can be changed here") == n, key
            )
        assert {action.keys for action in actions("notes")} >= set(writing)
        assert app.screen is screen
        assert screen.notes.editor is None
        assert kb.history.head() == head
        assert not any(isinstance(message, AskAbout) for message in app.seen)


async def test_a_note_that_was_renamed_or_moved_since_says_where_it_is(kb):
    kb.library.rename("people/alice", "Alice Miller")
    with kb.history.change(Actor.YOU, "moved") as change:
        change.write("knowledge/topics/bee.md", "# Bee\n\nBuzzes.\n")
    kb.first = kb.history.commit("HEAD")
    with kb.history.change(Actor.YOU, "moved") as change:
        change.rename("knowledge/topics/bee.md", "knowledge/projects/bee.md")
    kb.library.rename("people/alice-miller", "Alice Smith")
    kb.library.delete("topics/docker")
    since = read_since(kb.history, kb.first.id)
    assert {path: mark.word for path, mark in since.marks.items()} == {
        "knowledge/people/alice-miller.md": "renamed to Alice smith",
        "knowledge/topics/bee.md": "moved to projects",
        "knowledge/topics/docker.md": "gone since",
    }
    assert "3 notes changed since" in since.summary
    assert "later" not in since.summary


async def test_c_compares_with_now(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await past(pilot, kb)
        await pilot.press("c")
        await arrived(pilot, ConfirmScreen, "DiffView")
        shown = app.screen.query_one("DiffView")
        await until(pilot, lambda: "+ Knows nobody." in text_of(shown))
        assert "- Knows bob." in text_of(shown)


async def test_shift_r_restores_the_entry_after_a_look_at_it(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await past(pilot, kb, "knowledge/people/bob.md")
        await pilot.press("R")
        await arrived(pilot, ConfirmScreen, "DiffView")
        assert not (kb.workspace.knowledge / "people/bob.md").exists()
        await pilot.press("enter")
        await until(pilot, (kb.workspace.knowledge / "people/bob.md").exists)
        await until(pilot, lambda: "is as it was" in app.toasts)
        assert app.screen is screen
        await pilot.press("R")
        await until(pilot, lambda: "already" in app.toasts)


async def test_searching_there_searches_that_commit(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await past(pilot, kb)
        kb.search.hits = (hit("knowledge/people/bob.md", 6, "Old friend."),)
        await pilot.press("s")
        await arrived(pilot, SearchScreen, "#search-hits")
        await pilot.press(*"friend")
        await until(pilot, lambda: app.screen.hits.hit is not None)
        assert kb.search.at == kb.first.id
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: screen.notes.current_path == "knowledge/people/bob.md")


async def test_the_filter_finds_what_was_there_then(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await past(pilot, kb, None)
        await pilot.press("slash", *"bob", "enter")
        await until(pilot, lambda: screen.notes.current_path == "knowledge/people/bob.md")


async def test_shift_t_leads_there_from_the_history_and_escape_back(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await ready(pilot)
        await app.push_screen(HistoryScreen(kb, ALICE, kb.first.id))
        screen = app.screen
        await until(pilot, lambda: screen.rows.commit is not None)
        await until(pilot, lambda: screen.rows.commit.id == kb.first.id)
        await pilot.press("T")
        await arrived(pilot, TimeTravelScreen, "#notes-tree")
        await until(pilot, lambda: app.screen.notes.current_path == ALICE)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)


async def test_another_repository_is_browsed_and_never_written(kb):
    theirs = kb.workspace.repository
    head = kb.history.head()
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await ready(pilot)
        run_latest(app.screen, "browse", browse, app.screen, str(theirs))
        await arrived(pilot, HistoryScreen, "#history-diff")
        screen = app.screen
        await until(pilot, lambda: len(screen.rows.commits) == 4)
        assert "only to look at" in str(screen.rows.border_title)
        for number, key in enumerate("uRB", 1):
            await pilot.press(key)
            await until(pilot, lambda n=number: app.toasts.count("only looked at") == n, key)
        await pilot.press("G", "T")
        await arrived(pilot, TimeTravelScreen, "#notes-tree")
        await until(pilot, lambda: app.screen.notes.knowledge_tree.items)
        await until(pilot, lambda: app.screen.notes.current_path == ALICE)
        await until(pilot, lambda: "Knows Bob." in text_of(app.screen.notes.view.body))
        await pilot.press("R")
        await until(pilot, lambda: app.toasts.count("only looked at") == 4)
        assert kb.history.head() == head


async def test_no_key_of_the_history_fails_in_another_repository(kb):
    head = kb.history.head()
    told = {"u": "only looked at", "U": "only looked at", "A": "stands for itself"}
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await ready(pilot)
        run_latest(app.screen, "browse", browse, app.screen, str(kb.workspace.repository))
        await arrived(pilot, HistoryScreen, "#history-diff")
        screen = app.screen
        await until(pilot, lambda: len(screen.diff._hunks))
        for key, text in told.items():
            app.clear_notifications()
            await pilot.press(key)
            await until(pilot, lambda text=text: text in app.toasts, key)
        await pilot.press("w")
        await arrived(pilot, WhyScreen, "#why-text")
        why = app.screen.query_one("#why-text")
        await until(pilot, lambda: "of your own notes only" in str(why.render()))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("y")
        await until(pilot, lambda: app.clipboard == screen.rows.commit.id)
        await pilot.press("Y")
        await until(pilot, lambda: app.clipboard.startswith("diff --git"))
        assert kb.history.head() == head


async def test_what_is_no_repository_is_said(kb, tmp_path):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await ready(pilot)
        run_latest(app.screen, "browse", browse, app.screen, str(tmp_path / "nowhere"))
        await until(pilot, lambda: "is no git repository" in app.toasts)


async def test_a_moment_that_names_nothing_is_said(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(110, 40)) as pilot:
        await ready(pilot)
        run_latest(app.screen, "travel", travel, app.screen, kb, "1999-01-01")
        await until(pilot, lambda: "There is no commit up to 1999-01-01" in app.toasts)
        run_latest(app.screen, "travel", travel, app.screen, kb, "HEAD~3")
        await arrived(pilot, TimeTravelScreen, "#notes-tree")


async def test_the_way_back_and_the_steps_are_the_first_hints(kb):
    app = NotesApp(kb)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await past(pilot, kb)
        hints = str(screen.query_one("Hints").render())
        assert hints.startswith("T back to now   , earlier   . later   R restore")
        assert screen.query_one("#past-banner").size.height == 1
