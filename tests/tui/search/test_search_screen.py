from __future__ import annotations

from dataclasses import replace

from kbtui.errors import UsageError
from kbtui.tui.notes.documents import load_document
from kbtui.tui.notes.entry_editor import why_not_editable
from kbtui.tui.search.search import SearchScreen
from kbtui.tui.terminal.state import Searches, workspace_state
from tests.documents import make
from tests.tui.notes_support import NotesApp, hit, make_kb, ready, shown, text_of, until

LONG = "# Long\n\n" + "\n\n".join(f"Paragraph {n}." for n in range(1, 100))


def searchable(tmp_path):
    kb = make_kb(tmp_path, {"topics/long.md": LONG, "people/alice.md": "# Alice\n\nOwns it.\n"})
    kb.search.hits = (
        hit("knowledge/topics/long.md", 101, "a Paragraph 50. here", (2, 11), heading="Long"),
        hit("knowledge/people/alice.md", 3, "Owns\nit \x1b[31m[b]x"),
    )
    return kb


async def searching(pilot, query: str = "") -> SearchScreen:
    await ready(pilot)
    screen = SearchScreen(pilot.app.kb, query)
    await pilot.app.push_screen(screen)
    return screen


def state(screen: SearchScreen) -> str:
    return str(screen.query_one("#search-state").render())


def counted(screen: SearchScreen) -> str:
    return str(screen.query_one("#search-found").border_subtitle)


def places(screen: SearchScreen) -> str:
    return str(screen.query_one("#search-scope").render())


def chosen(screen: SearchScreen) -> str:
    """The place that is searched, as it is marked among the others."""
    line = screen.query_one("#search-scope").render()
    (span,) = [span for span in line.spans if "underline" in str(span.style)]
    return line.plain[span.start : span.end]


async def test_hits_come_while_typing_by_words_first_and_by_meaning_after_a_pause(tmp_path):
    kb = searchable(tmp_path)
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot)
        await pilot.press(*"para")
        await until(pilot, lambda: kb.search.asked[-1:] == [("para", "default", True)])
        await until(pilot, lambda: "hits" in counted(screen))
        assert kb.search.asked[-2:] == [("para", "default", False), ("para", "default", True)]
        assert len(kb.search.asked) < 8, "keys in quick succession are asked together"
        text = text_of(screen.hits)
        assert "■ Long" in text
        assert "line 101" not in text, "a person counts no lines"
        assert "a Paragraph 50. here" in text
        assert "Owns it [31m[b]x" in text


async def test_the_place_of_the_hit_is_shown_and_enter_opens_it_there(tmp_path):
    app = NotesApp(searchable(tmp_path))
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "para")
        preview = screen.query_one("#search-preview")
        await until(pilot, lambda: "Paragraph 50." in text_of(preview))
        assert [preview.lines[y].content.plain for y in preview.flashed] == ["Paragraph 50."]
        await pilot.press("down")
        await until(pilot, lambda: "Owns it." in text_of(preview))
        await pilot.press("up", "enter")
        await shown(pilot, app.notes, "knowledge/topics/long.md")
        await until(pilot, lambda: "Paragraph 50." in text_of(app.notes.view.body))


async def test_a_hit_in_a_long_passage_leads_to_the_line_that_matches(tmp_path):
    kb = searchable(tmp_path)
    passage = replace(hit("knowledge/topics/long.md", 101, "Paragraph 50."), lines=(21, 121))
    kb.search.hits = (passage,)
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "para")
        preview = screen.query_one("#search-preview")
        await until(pilot, lambda: "Paragraph 50." in text_of(preview))
        assert preview.lines[preview.flashed.start].content.plain == "Paragraph 50."


async def test_ctrl_t_changes_where_is_searched(tmp_path):
    kb = searchable(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        screen = await searching(pilot, "para")
        await pilot.press("ctrl+t")
        await until(pilot, lambda: ("para", "knowledge", True) in kb.search.asked)
        assert chosen(screen) == "Notes 2"


async def test_notices_suggestions_and_errors_are_said_in_the_line_of_state(tmp_path):
    kb = searchable(tmp_path)
    kb.search.notice = "The model is being prepared."
    kb.search.suggestion = "paragraph"
    app = NotesApp(kb)
    async with app.run_test(size=(140, 30)) as pilot:
        screen = await searching(pilot, "pargraph")
        await until(pilot, lambda: "The model is being prepared." in state(screen))
        assert "did you mean paragraph?" in state(screen)
        await pilot.press("tab")
        await until(pilot, lambda: ("paragraph", "default", False) in kb.search.asked)

        def fail(*_args, **_kwargs):
            raise UsageError("No such scope.", "Use docs.")

        kb.search.search = fail
        await pilot.press("x")
        await until(pilot, lambda: "No such scope. Use docs." in state(screen))


async def test_nothing_found_says_so_and_an_empty_line_asks_nothing(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        screen = await searching(pilot)
        await pilot.press("x")
        await until(pilot, lambda: "Nothing found." in text_of(screen.hits))
        await pilot.press("backspace")
        await until(pilot, lambda: "Type to search" in text_of(screen.lately))
        await pilot.press("enter")
        assert app.screen is screen
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_what_was_looked_for_is_marked_in_the_hit_and_in_its_place(tmp_path):
    app = NotesApp(searchable(tmp_path))
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "paragraphs 50")
        await until(pilot, lambda: "Paragraph 50." in text_of(screen.preview))
        line = screen.preview.content_at(screen.preview.flashed.start)
        marked = [line.plain[s.start : s.end] for s in line.spans if "match" in str(s.style)]
        assert marked == ["Paragraph", "50"]
        row = screen.hits.render_row(0, 60)[1]
        assert any("match" in str(span.style) for span in row.spans)


async def test_enter_takes_the_suggestion_where_nothing_is_found_and_so_does_a_click(tmp_path):
    kb = make_kb(tmp_path)
    kb.search.suggestion = "paragraph"
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "pargraph")
        await until(pilot, lambda: "did you mean paragraph? (Enter)" in state(screen))
        await pilot.press("enter")
        await until(pilot, lambda: screen.field.value == "paragraph")
        screen.ask("pargraph")
        await until(pilot, lambda: screen.answered == "pargraph")
        await pilot.click("#search-state", offset=(state(screen).index("did you") + 3, 0))
        await until(pilot, lambda: screen.field.value == "paragraph")


async def test_a_hit_in_a_document_opens_the_text_of_its_page_and_is_not_for_editing(tmp_path):
    kb = make_kb(tmp_path)
    kb.workspace.docs.mkdir(exist_ok=True)
    pages = [[f"Line {line} of page {page}." for line in range(40)] for page in (1, 2)]
    (kb.workspace.docs / "a.pdf").write_bytes(make.pdf(pages))
    kb.search.hits = (hit("docs/a.pdf", 74, "Line 30 of page 2.", heading="page 2"),)
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "line")
        await until(
            pilot, lambda: "Line 30 of page 2." in text_of(screen.query_one("#search-preview"))
        )
        assert "page 2" in text_of(screen.hits)
        await pilot.press("enter")
        await until(pilot, lambda: "Line 30 of page 2." in text_of(app.notes.view.body))
    assert why_not_editable(load_document(kb, "docs/a.pdf")).startswith("This is the text that was")


async def test_what_conversations_hold_is_counted_and_a_click_searches_them(tmp_path):
    kb = searchable(tmp_path)
    kb.search.elsewhere = 12
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "para")
        await until(pilot, lambda: "Conversations 12" in places(screen))
        await pilot.click("#search-scope", offset=(places(screen).index("Conversations") + 1, 0))
        await until(pilot, lambda: kb.search.asked[-1] == ("para", "sessions", True))
        assert chosen(screen) == "Conversations 2"


async def test_each_place_says_how_many_of_the_hits_are_its_own(tmp_path):
    kb = searchable(tmp_path)
    kb.search.hits = (*kb.search.hits, hit("docs/a.md", 1, "Paragraph"))
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "para")
        await until(pilot, lambda: "Written 3  Notes 2  Memory" in places(screen))
        assert "Documents 1" in places(screen)


async def test_a_saved_search_and_what_was_found_lately_stand_where_nothing_is_typed(tmp_path):
    app = NotesApp(searchable(tmp_path))
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "para")
        await until(pilot, lambda: screen.hits.items)
        await pilot.press("ctrl+s")
        screen.ask("owns")
        await until(pilot, lambda: screen.answered == "owns")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is not screen)
        screen = await searching(pilot)
        await until(pilot, lambda: screen.lately.row_count == 2)
        assert [screen.lately.render_row(row, 40)[0].plain.split() for row in (0, 1)] == [
            ["★", "para", "saved"],
            ["owns"],
        ]
        await pilot.press("enter")
        await until(pilot, lambda: screen.answered == "para")
        assert screen.field.value == "para"


async def test_a_search_that_is_saved_again_is_let_go_of(tmp_path):
    searches = Searches(tmp_path)
    assert searches.save("radio")
    assert searches.read() == (["radio"], [])
    assert not searches.save("radio")
    assert searches.read() == ([], [])


async def test_a_file_of_searches_that_is_damaged_is_none(tmp_path):
    searches = Searches(tmp_path)
    searches.save("radio")
    for damaged in ("[1", "[]", '{"saved": 3}', '{"saved": null}'):
        (workspace_state(tmp_path) / "searches.json").write_text(damaged)
        assert searches.read() == ([], [])


async def test_in_few_rows_the_hits_have_them(tmp_path):
    app = NotesApp(searchable(tmp_path))
    async with app.run_test(size=(40, 12)) as pilot:
        screen = await searching(pilot, "para")
        await until(pilot, lambda: "Paragraph 50" in text_of(screen.hits))
        assert screen.hits.size.height >= 4
        assert not screen.query_one("#search-preview").display


async def test_where_nothing_is_found_the_preview_names_no_note(tmp_path):
    kb = searchable(tmp_path)
    app = NotesApp(kb)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await searching(pilot, "para")
        await until(pilot, lambda: "Long" in str(screen.preview.border_title))
        assert str(screen.query_one("Hints").render()).startswith("Enter open")
        kb.search.hits = ()
        await pilot.press(*"xyz")
        await until(pilot, lambda: "Nothing found" in text_of(screen.hits))
        assert str(screen.preview.border_title) == "Preview"


async def test_what_was_condensed_leads_to_the_conversation_that_it_is_from(tmp_path):
    kb = searchable(tmp_path)
    with kb.sessions.create(title="Tea", id="s1") as session:
        session.append("user", "I like green tea best")
    condensed = replace(hit("memory/history.jsonl", 7, "green tea"), session="s1", messages=(1, 1))
    kb.search.hits = (condensed,)
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "tea")
        await until(pilot, lambda: "I like green tea best" in text_of(screen.preview))
        assert "Tea" in text_of(screen.hits).split("\n")[0]
        assert str(screen.preview.border_title) == "Tea"
        await pilot.press("enter")
        await until(pilot, lambda: app.seen, "it is opened")
        assert (app.seen[-1].path, app.seen[-1].line) == ("sessions/s1.jsonl", 1)


async def test_what_was_condensed_of_a_conversation_that_is_gone_is_shown_itself(tmp_path):
    kb = searchable(tmp_path)
    condensed = replace(hit("memory/history.jsonl", 7, "green tea"), session="s1", messages=(4, 5))
    kb.search.hits = (condensed,)
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "tea")
        await until(pilot, lambda: screen.hits.hit is not None)
        await pilot.press("enter")
        await until(pilot, lambda: app.seen, "it is opened")
        assert (app.seen[-1].path, app.seen[-1].line) == ("memory/history.jsonl", 7)


async def test_a_preview_shows_what_the_reader_shows_and_no_comment(tmp_path):
    kb = searchable(tmp_path)
    text = "# Alice\n\nOwns it. %%a note to myself%%\n\n<!-- index -->\n\nSees [[topics/long]].\n"
    (kb.workspace.root / "knowledge/people/alice.md").write_text(text)
    app = NotesApp(kb)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await searching(pilot, "owns")
        await until(pilot, lambda: "hits" in counted(screen))
        await pilot.press("down")
        await until(pilot, lambda: "Owns it." in text_of(screen.preview))
        await until(pilot, lambda: "Sees Long." in text_of(screen.preview))
        assert "myself" not in text_of(screen.preview)
        assert "index" not in text_of(screen.preview)
