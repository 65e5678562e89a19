from __future__ import annotations

from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.messages import AskAbout, OpenHistory, OpenSearch
from tests.tui.notes_support import NotesApp, agent_writes, make_kb, ready, shown, text_of, until


def _rows(tree) -> list[str]:
    """The rows as they read, however wide the gap before what stands at the right."""
    return [" ".join(line.split()) for line in text_of(tree).split("\n")]


async def test_it_shows_categories_with_counts_and_a_small_base_unfolded(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        assert _rows(notes.knowledge_tree) == [
            "▾ People 2",
            "● Alice",
            "● Bob",
            "▾ Topics 2",
            "■ Docker",
            "■ PostgreSQL",
        ]


async def test_h_and_l_fold_unfold_and_go_in(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        tree = (await ready(pilot)).knowledge_tree
        await pilot.press("j", "h")
        assert tree.item.key == "people/"
        await pilot.press("h")
        assert [row.key for row in tree.items] == [
            "people/",
            "topics/",
            "knowledge/topics/docker.md",
            "knowledge/topics/postgresql.md",
        ]
        await pilot.press("l", "l", "l")
        await shown(pilot, app.notes, "knowledge/people/alice.md")


async def test_a_large_base_starts_folded(tmp_path):
    app = NotesApp(make_kb(tmp_path, {f"topics/t{n}.md": f"# T{n}\n" for n in range(60)}))
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        assert _rows(notes.knowledge_tree) == ["▸ Topics 60"]


async def test_the_cursor_stays_with_its_entry_when_others_appear_above(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        tree = (await ready(pilot)).knowledge_tree
        await pilot.press("G")
        assert tree.entry.slug == "postgresql"
        kb.library.create("person", "Aaron", actor=Actor.AGENT)
        await until(pilot, lambda: len(tree.items) == 7)
        assert tree.entry.slug == "postgresql"


async def test_a_note_that_has_just_come_is_scrolled_to_unless_somebody_moves_in_the_tree(tmp_path):
    kb = make_kb(tmp_path, {f"topics/t{n}.md": f"# T{n}\n" for n in range(30)})
    app = NotesApp(kb)
    async with app.run_test(size=(60, 16)) as pilot:
        tree = (await ready(pilot)).knowledge_tree
        await pilot.press("G")
        await until(pilot, lambda: tree.scroll_y > 0)
        below = tree.scroll_y
        kb.library.create("person", "Aaron", actor=Actor.AGENT)
        await until(pilot, lambda: len(tree.items) == 33)
        assert tree.scroll_y >= below
        app.set_focus(None)
        kb.library.create("decision", "Ask Aaron", actor=Actor.AGENT)
        await until(pilot, lambda: tree.scroll_y < 3)
        assert tree.entry.slug == "t29"
        agent_writes(kb, "knowledge/topics/t3.md", "# Third\n")
        await until(pilot, lambda: any(row.title == "Third" for row in app.notes.entries.values()))
        assert tree.scroll_y < 3


async def test_what_changed_is_marked_until_it_is_looked_at(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        agent_writes(kb, "knowledge/people/bob.md", "# Bob\n\nNew.\n")
        kb.library.create("topic", "Kafka")
        await until(pilot, lambda: "✎ kbtui" in text_of(notes.knowledge_tree))
        assert "Kafka" in text_of(notes.knowledge_tree)
        lines = text_of(notes.knowledge_tree).split("\n")
        assert any("Kafka" in line and line.endswith(" new") for line in lines)
        notes.open_entry("knowledge/people/bob.md")
        await shown(pilot, notes, "knowledge/people/bob.md")
        await until(pilot, lambda: "✎" not in text_of(notes.knowledge_tree))
        await pilot.press("h")
        notes.knowledge_tree.toggle(notes.knowledge_tree.items[3].folder)
        await until(pilot, lambda: "▸ Topics ✎ 1 3" in _rows(notes.knowledge_tree))


async def test_the_filter_shows_matches_with_the_cursor_on_the_best(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        tree = (await ready(pilot)).knowledge_tree
        await pilot.press("slash", *"postg")
        await until(pilot, lambda: tree.filtering)
        assert [row.key for row in tree.items] == ["topics/", "knowledge/topics/postgresql.md"]
        assert tree.entry.slug == "postgresql"
        await pilot.press("enter")
        await shown(pilot, app.notes, "knowledge/topics/postgresql.md")
        assert not tree.filtering


async def test_the_filter_forgives_a_typing_error_and_knows_aliases_and_tags(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        tree = (await ready(pilot)).knowledge_tree
        for typed, slug in (("psotgres", "postgresql"), ("#team", "alice"), ("doker", "docker")):
            await app.notes.panel.start_filter(typed)
            await until(
                pilot, lambda s=slug: tree.filtering and tree.entry and tree.entry.slug == s
            )
            await pilot.press("escape")
            await until(pilot, lambda: not tree.filtering)


async def test_escape_ends_the_filter_and_keeps_the_entry_in_sight(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        tree = (await ready(pilot)).knowledge_tree
        await pilot.press("slash", *"bob")
        await until(pilot, lambda: tree.filtering and tree.entry)
        await pilot.press("escape")
        await until(pilot, lambda: len(tree.items) == 6)
        assert tree.entry.slug == "bob"
        assert tree.has_focus


async def test_a_filter_without_match_leads_to_the_search(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        tree = (await ready(pilot)).knowledge_tree
        await pilot.press("slash", *"zzzqq")
        await until(pilot, lambda: tree.filtering and not tree.items)
        await pilot.press("enter")
        await until(pilot, lambda: app.seen)
        assert isinstance(app.seen[0], OpenSearch)
        assert app.seen[0].query == "zzzqq"


async def test_a_and_shift_h_ask_for_chat_and_history_of_the_entry(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        await ready(pilot)
        await pilot.press("j", "a", "H")
        await until(pilot, lambda: len(app.seen) == 2)
        ask, history = app.seen
        assert isinstance(ask, AskAbout)
        assert isinstance(history, OpenHistory)
        assert ask.path == history.path == "knowledge/people/alice.md"


async def test_of_ten_thousand_entries_only_those_on_the_screen_are_drawn(tmp_path, monkeypatch):
    from kbtui.knowledge.library.library import EntryInfo
    from kbtui.tui.notes.knowledge_tree import build_tree

    def info(number: int) -> EntryInfo:
        path = f"knowledge/topics/entry-{number:05}.md"
        return EntryInfo(
            path, f"Entry {number}", "topic", "topics", f"entry-{number:05}",
            (), (), None, None, "", False, None, "0" * 40, 1, number,
        )  # fmt: skip

    app = NotesApp(make_kb(tmp_path))
    async with app.run_test(size=(80, 30)) as pilot:
        tree = (await ready(pilot)).knowledge_tree
        tree.show_tree(build_tree([info(number) for number in range(10_000)]))
        drawn = []
        render_row = type(tree).render_row
        monkeypatch.setattr(
            type(tree),
            "render_row",
            lambda self, index, width: drawn.append(index) or render_row(self, index, width),
        )
        await pilot.press("l", "G")
        await pilot.pause()
        assert tree.row_count == 10_001
        assert tree.entry.title == "Entry 9999"
        assert len(set(drawn)) < 100


async def test_names_in_files_cannot_steer_the_terminal_or_press_buttons(tmp_path):
    evil = "[@click=app.quit]\x1b]0;x\x07 \u202eevil"
    app = NotesApp(make_kb(tmp_path, {"topics/e.md": f"# {evil}\n\ntext {evil}\n"}))
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        notes.open_entry("knowledge/topics/e.md")
        await shown(pilot, notes, "knowledge/topics/e.md")
        for widget in (notes.knowledge_tree, notes.view.body):
            text = text_of(widget)
            assert "[@click=app.quit]" in text
            assert not set("\x1b\x07\u202e") & set(text)


async def test_a_file_that_cannot_be_an_entry_is_shown_as_left_out(tmp_path):
    kb = make_kb(tmp_path)
    (kb.workspace.knowledge / "topics" / "odd.").write_text("x")
    (kb.workspace.knowledge / "topics" / "link.md").symlink_to("docker.md")
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        tree = (await ready(pilot)).knowledge_tree
        await until(pilot, lambda: "left out" in text_of(tree))
        *_, link, odd = text_of(tree).split("\n")
        assert link.strip().startswith("link.md (left out: it is a link")
        assert odd.strip().startswith("odd. (left out: its name can't be used")
        assert tree.items[0].folder.count + tree.items[3].folder.count == 4
        await pilot.press("G", "enter")
        await until(pilot, lambda: any("Rename it" in n.message for n in app._notifications))
        assert tree.entry is None


async def test_a_text_that_is_no_note_is_shown_as_such_and_opens(tmp_path):
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "A.md").write_text("# A\n")
    (tmp_path / "vault" / "[b]\u65e5.txt").write_text("Bread and butter.\n")
    with KnowledgeBase.open(tmp_path / "vault", create=True) as kb:
        app = NotesApp(kb)
        async with app.run_test() as pilot:
            notes = await ready(pilot)
            await until(pilot, lambda: "no note" in text_of(notes.knowledge_tree))
            assert "[b]\u65e5.txt (no note: those end in .md)" in text_of(notes.knowledge_tree)
            await pilot.press("G", "enter")
            await shown(pilot, notes, "knowledge/[b]\u65e5.txt")


def test_notes_stand_in_the_order_of_their_titles_and_days_in_that_of_time() -> None:
    from kbtui.knowledge.library.library import EntryInfo
    from kbtui.tui.notes.knowledge_tree import build_tree, visible_rows

    def info(title: str, category: str, slug: str) -> EntryInfo:
        path = f"knowledge/{category}/{slug}.md"
        return EntryInfo(
            path, title, None, category, slug, (), (), None, None, "", False, None, "0" * 40, 1, 0
        )

    decisions = [("Solar power", "2026-01-solar"), ("élan", "2026-02-elan"), ("Part 10", "a")]
    infos = [info(title, "decisions", slug) for title, slug in [*decisions, ("Part 9", "b")]]
    days = [info("Mon", "@Days", "2026-01-05"), info("Today", "@Days", "2026-01-06")]
    rows = visible_rows(build_tree([*infos, *days]), {"decisions", "@Days"})
    shown = [row.entry.title for row in rows if row.entry is not None]
    assert shown == ["Today", "Mon", "élan", "Part 9", "Part 10", "Solar power"]
