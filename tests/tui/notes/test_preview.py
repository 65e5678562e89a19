from __future__ import annotations

from kbtui.tui.markdown.markdown_view import MarkdownView
from kbtui.tui.notes.preview import PreviewScreen
from tests.tui.notes_support import (
    DEFAULT,
    NotesApp,
    arrived,
    make_kb,
    opened,
    shown,
    text_of,
    until,
)

TEXT = "# Q\n\nSee [[alice#Notes]], [[nobody]], <https://x.y> and ![[bob|B]].\n\nNothing here.\n"
PATH = "knowledge/topics/q.md"


async def test_shift_k_shows_each_note_that_the_line_leads_to_and_enter_goes_there(tmp_path):
    app = NotesApp(make_kb(tmp_path, {**DEFAULT, "topics/q.md": TEXT}))
    async with app.run_test(size=(60, 20)) as pilot:
        notes = await opened(pilot, PATH, 3)
        await until(pilot, lambda: notes.view.body.has_cursor)
        await pilot.press("K")
        screen = await arrived(pilot, PreviewScreen, "#preview-text")
        text = screen.query_one(MarkdownView)
        await until(pilot, lambda: "likes tea" in text_of(text))
        assert notes.current_path == PATH, "it is only looked at"
        await pilot.press("K")
        await until(pilot, lambda: "Knows Alice" in text_of(text))
        await pilot.press("K")
        await until(pilot, lambda: "likes tea" in text_of(text))
        await pilot.press("enter")
        await shown(pilot, notes, "knowledge/people/alice.md")
        line = DEFAULT["people/alice.md"].split("\n").index("## Notes") + 1
        await until(pilot, lambda: notes.view.body.pointed_source == line)


async def test_escape_closes_it_and_a_line_without_links_says_so(tmp_path):
    app = NotesApp(make_kb(tmp_path, {**DEFAULT, "topics/q.md": TEXT}))
    async with app.run_test(size=(60, 20)) as pilot:
        notes = await opened(pilot, PATH)
        await pilot.press("K")
        await arrived(pilot, PreviewScreen, "#preview-text")
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        notes.open_entry(PATH, 5)
        await until(pilot, lambda: notes.view.body.has_cursor)
        await pilot.press("K")
        await until(pilot, lambda: "No link to a note" in app.toasts)
