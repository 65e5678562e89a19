from __future__ import annotations

from kbtui.tui.messages import OpenSearch
from kbtui.tui.widgets.dialogs import PickDialog
from tests.tui.notes_support import NotesApp, arrived, make_kb, ready, text_of, until

TAGGED = {
    "a.md": "---\ntags: [team, big data, '[b]odd[/b]']\n---\n# A\n",
    "b.md": "---\ntags: [team]\n---\n# B\n",
}


async def test_t_lists_tags_with_counts_and_enter_searches_for_one(tmp_path):
    app = NotesApp(make_kb(tmp_path, TAGGED))
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await pilot.press("t")
        screen = await arrived(pilot, PickDialog, "ChoiceList")
        rows = [row.split() for row in text_of(screen.choices).split("\n")]
        assert rows[0] == ["#team", "2"], "the most frequent first"
        assert ["#[b]odd[/b]", "1"] in rows
        await pilot.press("enter")
        await until(pilot, lambda: app.seen)
        assert isinstance(app.seen[0], OpenSearch)
        assert app.seen[0].query == "tag:team"


async def test_a_tag_of_several_words_is_quoted(tmp_path):
    app = NotesApp(make_kb(tmp_path, {"a.md": "---\ntags: ['big data']\n---\n# A\n"}))
    async with app.run_test(size=(40, 12)) as pilot:
        await ready(pilot)
        await pilot.press("t")
        await arrived(pilot, PickDialog, "ChoiceList")
        await pilot.press("enter")
        await until(pilot, lambda: app.seen)
        assert app.seen[0].query == 'tag:"big data"'


async def test_without_tags_it_says_so(tmp_path):
    app = NotesApp(make_kb(tmp_path, {"a.md": "# A\n"}))
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await pilot.press("t")
        await until(pilot, lambda: "No note has a tag." in app.toasts)
        assert len(app.screen_stack) == 1
