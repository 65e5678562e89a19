from __future__ import annotations

from datetime import date

import pytest
from PIL import Image
from textual.geometry import Offset
from textual.selection import Selection

from kbtui.history.change import Actor
from kbtui.presentation.times import day_heading
from kbtui.tui.markdown import layout
from kbtui.tui.markdown.markdown_view import MarkdownView
from kbtui.tui.markdown.syntax import LinkRef
from kbtui.tui.notes import documents
from kbtui.tui.notes.documents import load_document
from kbtui.tui.widgets.dialogs import KeyDialog, PickDialog
from tests.tui.at_rest import Door, rest
from tests.tui.notes_support import (
    DEFAULT,
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


def header_of(notes) -> str:
    return str(notes.view.query_one("#entry-header").render())


async def test_an_entry_is_shown_rendered_below_what_its_frontmatter_says(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        assert "Owns analytics." in header_of(notes)
        await until(pilot, lambda: "Works on PostgreSQL with Bob" in text_of(notes.view.body))
        text = text_of(notes.view.body)
        assert text.startswith(" person   also called Al   #team\n\nWorks on")
        assert notes.view.label == "● Alice"
        assert "• likes tea" in text
        assert "---" not in text


async def test_opening_at_a_line_scrolls_there_and_highlights_it(tmp_path):
    text = "# Long\n\n" + "\n\n".join(f"Paragraph {n}." for n in range(1, 200))
    app = NotesApp(make_kb(tmp_path, {"topics/long.md": text}))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/long.md", 301)
        body = notes.view.body
        await until(pilot, lambda: body.flashed)
        assert [body.lines[y].content.plain for y in body.flashed] == ["Paragraph 150."]
        assert "Paragraph 150." in text_of(body)


async def test_it_stays_highlighted_when_what_the_links_lead_to_is_known(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md", 11)
        body = notes.view.body
        await until(pilot, lambda: notes.view.links and body.flashed)
        assert any(link.path is None for link in notes.view.links.outgoing)
        assert [body.lines[y].text for y in body.flashed] == ["Notes"]


EMPTY = (
    "---\ntype: person\n---\n# Carol\n\n## Role\n\n## Works on\n\n- billing\n\n"
    "## Hobbies\n\n## Notes\n\n"
)


async def test_sections_of_the_template_without_text_are_not_shown_and_stay_in_the_file(tmp_path):
    kb = make_kb(tmp_path, {"people/carol.md": EMPTY})
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        body = (await opened(pilot, "knowledge/people/carol.md")).view.body
        shown = [line.content.plain for line in body.lines if line.content.plain.strip()]
        assert shown == [" person ", "Works on", "• billing", "Hobbies"]
        assert kb.library.find("Carol").text == EMPTY


async def test_lines_below_a_section_that_is_not_shown_are_those_of_the_file(tmp_path):
    app = NotesApp(make_kb(tmp_path, {"people/carol.md": EMPTY}))
    async with app.run_test() as pilot:
        line = EMPTY.split("\n").index("- billing") + 1
        notes = await opened(pilot, "knowledge/people/carol.md", line)
        body = notes.view.body
        await until(pilot, lambda: body.flashed)
        assert [body.lines[y].content.plain for y in body.flashed] == ["• billing"]
        assert body.pointed_source == line
        await pilot.press("e")
        await until(pilot, lambda: notes.editor is not None)
        assert notes.editor.text_area.cursor_location[0] == line - 1
        assert notes.editor.text_area.text == EMPTY


async def test_an_empty_heading_that_no_template_has_is_shown(tmp_path):
    text = "# Role play\n\n## Role\n\n## Works on\n"
    app = NotesApp(make_kb(tmp_path, {"topics/role.md": text}))
    async with app.run_test() as pilot:
        text = text_of((await opened(pilot, "knowledge/topics/role.md")).view.body)
        assert "Role\n" in text
        assert "Works on" in text


async def test_an_entry_that_cannot_be_parsed_is_shown_as_it_is_with_the_reason(tmp_path):
    app = NotesApp(make_kb(tmp_path, {"topics/bad.md": "---\ntags: [a\n---\n# Bad\n"}))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/bad.md")
        assert "frontmatter" in header_of(notes)
        assert text_of(notes.view.body).startswith("---\ntags: [a\n---\n# Bad")


async def test_a_binary_file_and_a_missing_one_say_so(tmp_path):
    kb = make_kb(tmp_path, {**DEFAULT, "topics/x.md": b"PNG\0\0\x01" * 400})
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/x.md")
        await until(pilot, lambda: "not text" in text_of(notes.view.body))
        notes.open_entry("knowledge/topics/none.md")
        await until(pilot, lambda: "is gone" in text_of(notes.view.body))
        notes.open_entry("../outside.md")
        await until(pilot, lambda: "can't be used" in text_of(notes.view.body))


async def click_link(pilot, body: MarkdownView, words: str) -> None:
    await until(pilot, lambda: words in text_of(body))
    for y in range(body.size.height):
        x = body.render_line(y).text.find(words)
        if x >= 0:
            gutter = body.styles.padding.left
            assert await pilot.click(body, Offset(x + gutter + 1, y))
            return
    raise AssertionError(f"{words} is not on the screen")


async def test_links_that_are_paths_read_as_titles_in_text_and_properties(tmp_path):
    text = "---\nrelated: [people/bob]\n---\n# Plan\n\nAsk [[people/alice]].\n"
    people = {"people/bob.md": "# Bob\n", "people/alice.md": "# Alice\n"}
    app = NotesApp(make_kb(tmp_path, {"topics/plan.md": text, **people}))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/plan.md")
        await until(pilot, lambda: "Ask Alice." in text_of(notes.view.body))
        assert "related ● Bob" in text_of(notes.view.body)


async def test_a_property_that_names_an_entry_leads_there(tmp_path):
    text = "---\nowner: Alice\nstatus: draft\n---\n# Plan\n\nText.\n"
    app = NotesApp(make_kb(tmp_path, {"topics/plan.md": text, "people/alice.md": "# Alice\n"}))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/plan.md")
        await until(pilot, lambda: "owner ● Alice   status draft" in text_of(notes.view.body))
        await click_link(pilot, notes.view.body, "Alice")
        await shown(pilot, notes, "knowledge/people/alice.md")


async def test_a_click_on_a_link_opens_the_entry_and_back_returns(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        await until(pilot, lambda: "PostgreSQL" in text_of(notes.view.body))
        await click_link(pilot, notes.view.body, "PostgreSQL")
        await shown(pilot, notes, "knowledge/topics/postgresql.md")
        notes.open_entry("knowledge/people/bob.md")
        await shown(pilot, notes, "knowledge/people/bob.md")
        await pilot.press("[")
        await shown(pilot, notes, "knowledge/topics/postgresql.md")
        await pilot.press("backspace")
        await shown(pilot, notes, "knowledge/people/alice.md")
        await pilot.press("]", "]")
        await shown(pilot, notes, "knowledge/people/bob.md")


async def test_a_relative_markdown_link_leads_to_its_file(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        await click_link(pilot, notes.view.body, "Bob")
        await shown(pilot, notes, "knowledge/people/bob.md")


async def test_a_web_link_is_shown_before_anything_is_opened(tmp_path, monkeypatch):
    opened_by = tmp_path / "browser"
    opened_by.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    opened_by.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(opened_by))
    app = NotesApp(make_kb(tmp_path / "notes"))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        await click_link(pilot, notes.view.body, "https://example.org/a")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert not (tmp_path / "opened").exists()
        await click_link(pilot, notes.view.body, "https://example.org/a")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("enter")
        await until(pilot, (tmp_path / "opened").exists)
        assert (tmp_path / "opened").read_text() == "https://example.org/a\n"
        assert app.seen == []


@pytest.mark.parametrize("browser", ["", "false"], ids=["no desktop", "a browser that fails"])
async def test_a_web_link_that_can_not_be_opened_is_shown_and_copied(
    tmp_path, monkeypatch, browser
):
    monkeypatch.setenv("BROWSER", browser)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        await click_link(pilot, notes.view.body, "https://example.org/a")
        await until(pilot, lambda: isinstance(app.screen, KeyDialog))
        if browser:
            await pilot.press("enter")
            await until(pilot, lambda: "own" in app.screen.TITLE_TEXT)
        dialog = app.screen
        assert "https://example.org/a" in dialog.text.plain
        assert dialog.text.spans[0].style.link == "https://example.org/a"
        assert ("exit code 1" in dialog.text.plain) is bool(browser)
        await pilot.press("enter")
        await until(pilot, lambda: app.seen == ["https://example.org/a"])


async def test_other_schemes_are_no_links(tmp_path):
    text = "# X\n\n[a](javascript:alert(1)) [b](file:///etc/passwd)\n"
    app = NotesApp(make_kb(tmp_path, {"topics/x.md": text}))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/x.md")
        assert "javascript:alert(1)" in text_of(notes.view.body)
        notes.view.body.post_message(
            MarkdownView.LinkClicked(LinkRef("markdown", "file:///etc/passwd"))
        )
        await until(pilot, lambda: len(app.screen_stack) == 2)
        assert type(app.screen).__name__ == "NewEntryDialog"
        assert app.seen == []


async def test_a_link_to_nothing_offers_to_make_the_entry(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        await click_link(pilot, notes.view.body, "nobody")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("enter")
        await until(pilot, lambda: notes.editor is not None)
        assert app.kb.library.find("nobody").title == "nobody"


async def test_space_folds_the_heading_under_the_cursor_and_unfolds_it(tmp_path):
    text = "# X\n\n## One\n\nfirst\n\n## Two\n\nsecond\n"
    app = NotesApp(make_kb(tmp_path, {"topics/x.md": text}))
    async with app.run_test() as pilot:
        body = (await opened(pilot, "knowledge/topics/x.md", 3)).view.body
        await until(pilot, lambda: body.has_cursor)
        await pilot.press("space")
        await until(pilot, lambda: "▸ One" in text_of(body))
        assert "first" not in text_of(body)
        assert "second" in text_of(body)
        await pilot.press("space")
        await until(pilot, lambda: "first" in text_of(body))


async def test_what_links_to_the_entry_stands_below_it_and_enter_goes_there(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        body = notes.view.body
        await until(pilot, lambda: body.lines[-1].text == "● Bob   Knows Alice.")
        assert body.lines[-2].text.startswith("── linked from ─")
        await pilot.press("G", "k", "enter")
        await shown(pilot, notes, "knowledge/people/bob.md")
        await until(pilot, lambda: [notes.view.body.lines[y].text for y in notes.view.body.flashed])


async def test_a_line_with_several_links_asks_which_one_is_meant(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md", 9)
        await until(pilot, lambda: notes.view.links and notes.view.body.links_here())
        await pilot.press("enter")
        dialog = await arrived(pilot, PickDialog, "ChoiceList")
        labels = [each.label for each in dialog.choices.items]
        assert labels == ["→ PostgreSQL", "→ Bob", "→ nobody", "→ https://example.org/a"]
        await pilot.press("enter")
        await shown(pilot, notes, "knowledge/topics/postgresql.md")


async def test_b_lists_where_the_entry_leads_and_what_leads_here(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/people/alice.md")
        await until(pilot, lambda: notes.view.links)
        await pilot.press("b")
        dialog = await arrived(pilot, PickDialog, "ChoiceList")
        text = text_of(dialog.choices)
        assert "→ PostgreSQL" in text
        assert "not there yet" in text
        assert "← Bob" in text
        assert "Knows Alice." in text
        await pilot.press("B", "o", "b", "down", "enter")
        await shown(pilot, notes, "knowledge/people/bob.md")


async def test_a_heading_in_a_link_is_gone_to(tmp_path):
    text = "# X\n\n" + "word\n\n" * 80 + "## The Place\n\nhere\n"
    kb = make_kb(tmp_path, {"topics/x.md": text, "topics/y.md": "see [[x#The Place]]\n"})
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/y.md")
        await click_link(
            pilot, notes.view.body, "X \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} The Place"
        )
        await shown(pilot, notes, "knowledge/topics/x.md")
        await until(pilot, lambda: "The Place" in text_of(notes.view.body))


async def test_what_the_agent_writes_shows_at_once_and_the_place_is_kept(tmp_path):
    text = "# Long\n\n" + "\n\n".join(f"Paragraph {n}." for n in range(1, 200)) + "\n"
    kb = make_kb(tmp_path, {"topics/long.md": text})
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/long.md")
        notes.view.body.scroll_to(y=100, animate=False, immediate=True, force=True)
        agent_writes(kb, "knowledge/topics/long.md", text.replace("Paragraph 51.", "Changed."))
        await until(pilot, lambda: "Changed." in text_of(notes.view.body))
        assert notes.view.body.scroll_y > 90


async def test_a_change_of_what_is_shown_does_not_stop_what_is_being_opened(tmp_path, monkeypatch):
    kb = make_kb(tmp_path)
    alice, bob = "knowledge/people/alice.md", "knowledge/people/bob.md"
    door, load = Door(), documents.load_document
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, alice)

        def load_slowly(kb, path):
            document = load(kb, path)
            if path == bob:
                door.wait()
            return document

        monkeypatch.setattr(documents, "load_document", load_slowly)
        notes.open_entry(bob)
        await until(pilot, lambda: notes.view.path == bob)
        agent_writes(kb, alice, "# Alice\n\nChanged.\n")
        agent_writes(kb, bob, "# Bob\n\nChanged.\n")
        await rest(app)
        door.open()
        await shown(pilot, notes, bob)
        assert "Changed." in text_of(notes.view.body)


async def test_a_renamed_entry_stays_in_sight_whatever_is_told_first(tmp_path):
    kb = make_kb(tmp_path)
    alice, new = "knowledge/people/alice.md", "knowledge/topics/alice.md"
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, alice)
        app._unsubscribe()
        entry = kb.library.rename(alice, "topics/alice")
        notes.moved(alice, entry.path)
        notes.knowledge_changed([alice, new], Actor.YOU)
        await shown(pilot, notes, new)
        assert "Works on" in text_of(notes.view.body)


async def test_selected_text_is_copied_without_the_breaks_of_wrapping(tmp_path):
    words = " ".join(f"word{n}" for n in range(40))
    app = NotesApp(make_kb(tmp_path, {"topics/x.md": f"{words}\n\nend\n"}))
    async with app.run_test(size=(50, 40)) as pilot:
        notes = await opened(pilot, "knowledge/topics/x.md")
        body = notes.view.body
        everything = Selection(Offset(0, 0), Offset(100, len(body.lines) - 1))
        assert body.get_selection(everything) == (f"{words}\n\nend", "\n")


FOLDED = "---\nrelated: [people/bob]\n---\n# Q\n\n> [!faq]- Why\n> Because.\n"


async def test_a_callout_opens_by_a_click_and_where_a_line_in_it_is_gone_to(tmp_path):
    app = NotesApp(make_kb(tmp_path, {**DEFAULT, "topics/q.md": FOLDED}))
    async with app.run_test() as pilot:
        body = (await opened(pilot, "knowledge/topics/q.md")).view.body
        assert "▸ Why" in text_of(body)
        assert "Because" not in text_of(body)
        await click_link(pilot, body, "▸ Why")
        await until(pilot, lambda: "▾ Why\n▌ Because." in text_of(body))
        await click_link(pilot, body, "▾ Why")
        await until(pilot, lambda: "Because" not in text_of(body))
        app.notes.open_entry("knowledge/topics/q.md", 7)
        await until(pilot, lambda: "Because" in text_of(body) and body.pointed_source == 7)


async def test_a_link_in_a_property_is_followed(tmp_path):
    app = NotesApp(make_kb(tmp_path, {**DEFAULT, "topics/q.md": FOLDED}))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/q.md")
        await click_link(pilot, notes.view.body, "Bob")
        await shown(pilot, notes, "knowledge/people/bob.md")


EMBEDS = (
    "# E\n\n![[alice#Notes]]\n\n![[photo.png]]\n\n![[bob]]\n\n![[alice#None]]\n\n![[e]]\n\nend\n"
)


async def test_parts_of_other_notes_and_the_names_of_pictures_are_shown_inside(tmp_path):
    entries = {**DEFAULT, "topics/e.md": EMBEDS, "topics/photo.png": b"\x89PNG" + b"\0" * 2_000}
    app = NotesApp(make_kb(tmp_path, entries))
    async with app.run_test(size=(90, 60)) as pilot:
        notes = await opened(pilot, "knowledge/topics/e.md")
        body = notes.view.body
        await until(pilot, lambda: "│ • likes tea" in text_of(body))
        text = text_of(body)
        assert "▣ Alice > Notes" in text
        assert "▣ photo.png · not shown: it is damaged, or no picture" in text
        assert "Knows Alice." in text
        assert "▣ Alice > None · there is no such part" in text
        assert text.count("│ ▣ E") == 0, "a note isn't shown in itself"
        await click_link(pilot, body, "Alice.")
        await shown(pilot, notes, "knowledge/people/alice.md")


async def test_o_shows_the_headings_and_goes_to_one(tmp_path):
    text = "# Long\n\n" + "\n".join(f"## Part {n}\n\nText {n}.\n\n" for n in range(1, 60))
    app = NotesApp(make_kb(tmp_path, {"topics/long.md": text, "topics/x.md": "No heading\n"}))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/long.md")
        await pilot.press("o")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press(*"part 42", "enter")
        await until(pilot, lambda: len(app.screen_stack) == 1 and notes.view.body.flashed)
        body = notes.view.body
        assert [body.lines[y].text for y in body.flashed] == ["Part 42"]
        assert body.has_focus
        await opened(pilot, "knowledge/topics/x.md")
        await pilot.press("o")
        await until(pilot, lambda: "no headings" in app.toasts)


HOSTILE = (
    "---\ntags: ['[red]', '\\e[2J']\nx: '[[\\e]8;;http://evil\\e]]'\nlong: '"
    + "y" * 5_000
    + "'\n---\n"
    "# [bold]\x1b[31mT[/bold]\n\n> [!\x1b]- [/red] \u202eevil\n> %%\n\n==[blink]\x07== #t[red] <b>\x1b]0;x\x07</b>\n\n"
    "![[e]]\n\n- [ ] [@click=app.quit]x[/]\n\nعربي עברית 漢字 👩\u200d👩\u200d👧\n\n"
    + "".join(f"![[bob#{n}]]\n\n" for n in range(100))
    + "".join(f"[[missing {n}]] " for n in range(1_500))
)


async def test_a_hostile_note_is_shown_in_a_small_terminal_and_steers_nothing(tmp_path):
    app = NotesApp(make_kb(tmp_path, {**DEFAULT, "topics/e.md": HOSTILE}))
    async with app.run_test(size=(40, 12)) as pilot:
        body = (await opened(pilot, "knowledge/topics/e.md")).view.body
        await until(pilot, lambda: any("there is no such part" in line.text for line in body.lines))
        text = "\n".join(line.text for line in body.lines)
        assert not any(char in text for char in "\x1b\x07\u202e")
        for shown_as_written in ("[bold]", "[/red]", "[blink]", "[@click=app.quit]x[/]", "漢字"):
            assert shown_as_written in text
        assert "missing 1499" in text.replace("\n", " ")
        assert max(line.content.cell_length for line in body.lines) <= body.size.width
        await pilot.press("G", "j", "K", "o", "escape", "space")
        assert body.is_attached


@pytest.mark.parametrize("line", [None, 4_003])
async def test_of_a_very_long_entry_what_is_looked_at_is_shown_before_all_of_it_is_ready(
    tmp_path, monkeypatch, line
):
    text = "# Long\n\n" + "\n\n".join(f"Paragraph **{n}** of many." for n in range(4_000))
    door, render = Door(), layout.render

    whole = []

    def render_all_behind_the_door(source, *room):
        if text.endswith(source.text):
            whole.append(source)
            door.wait()
        return render(source, *room)

    monkeypatch.setattr(layout, "render", render_all_behind_the_door)
    app = NotesApp(make_kb(tmp_path, {"topics/long.md": text}))
    async with app.run_test() as pilot:
        body = (await opened(pilot, "knowledge/topics/long.md", line)).view.body
        wanted = "Paragraph 2000 of" if line else "Paragraph 0 of"
        await until(pilot, lambda: wanted in text_of(body))
        assert 100 < len(body.lines) < 3_000
        door.open()
        await until(pilot, lambda: len(body.lines) > 7_000)
        assert wanted in text_of(body)
        assert body.pointed_source == (line or 3)
        assert len(whole) == 1, "all of it is laid out once its links are known"


async def test_a_conversation_can_be_read_and_opened_at_a_message(tmp_path):
    kb = make_kb(tmp_path)
    with kb.sessions.create(title="Planning", id="s1") as session:
        for number in range(1, 60):
            session.append("user" if number % 2 else "assistant", f"said {number}")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, "sessions/s1.jsonl", 40)
        await until(pilot, lambda: "said 40" in text_of(notes.view.body))
        assert notes.view.label == "Planning"
        await pilot.press("e")
        await until(pilot, lambda: app.toasts)
        assert notes.editor is None


def with_picture(tmp_path):
    kb = make_kb(tmp_path, {"topics/x.md": "# X\n\nSee\n![[p.png]]\n"})
    Image.new("RGB", (30, 20), (200, 0, 0)).save(kb.workspace.knowledge / "topics/p.png")
    kb.library.refresh()
    return kb


async def test_a_picture_is_shown_where_it_is_embedded_and_by_itself(tmp_path):
    app = NotesApp(with_picture(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/x.md")
        await until(pilot, lambda: "▀" * 30 in text_of(notes.view.body))
        assert "▣ p.png · 30 x 20" in text_of(notes.view.body)
        await click_link(pilot, notes.view.body, "p.png")
        await until(pilot, lambda: notes.current_path == "knowledge/topics/p.png")
        await until(pilot, lambda: "▀" * 30 in text_of(notes.view.body))


async def test_with_few_colours_a_picture_is_its_name_and_size(tmp_path):
    app = NotesApp(with_picture(tmp_path))
    async with app.run_test() as pilot:
        app.add_class("-few-colors")
        notes = await opened(pilot, "knowledge/topics/x.md")
        await until(pilot, lambda: "▣ p.png · 30 x 20" in text_of(notes.view.body))
        assert "▀" not in text_of(notes.view.body)


@pytest.mark.parametrize(
    ("text", "body", "reason"),
    [
        ("# 2026-11-24\n\n- 10:00 Tea.\n", "- 10:00 Tea.", ""),
        ("# 2026-11-24\n", "", "Nothing is written here yet. What you tell kbtui comes here."),
    ],
)
def test_a_day_is_called_by_its_name_and_an_empty_one_says_what_comes_there(
    tmp_path, text, body, reason
) -> None:
    kb = make_kb(tmp_path)
    file = kb.workspace.root / "memory" / "2026-11-24.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    document = load_document(kb, "memory/2026-11-24.md")
    assert document.title == day_heading(date(2026, 11, 24))
    assert (document.body.strip(), document.reason) == (body, reason)


def test_the_last_month_that_a_calendar_knows_is_shown_too(tmp_path) -> None:
    kb = make_kb(tmp_path)
    (kb.workspace.root / "knowledge" / "9999-12-31.md").write_text("For ever.\n")
    (month,) = load_document(kb, "knowledge/9999-12-31.md").below
    assert [cell.text.strip() for row in month.cells for cell in row if cell.here] == ["31"]


async def test_keys_walk_from_day_to_day_in_their_notes_alone(tmp_path) -> None:
    kb = make_kb(tmp_path)
    folder = kb.workspace.root / "memory"
    folder.mkdir(exist_ok=True)
    for day in ("2026-10-03", "2026-11-02", "2026-11-24"):
        (folder / f"{day}.md").write_text(f"# {day}\n\n- 10:00 Tea.\n")
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        assert notes.check_action("go_to_day", (1,)) is False
        notes.open_entry("memory/2026-11-24.md")
        await shown(pilot, notes, "memory/2026-11-24.md")
        for key, day in (("<", "11-02"), ("<", "10-03"), (">", "11-02")):
            await pilot.press("less_than_sign" if key == "<" else "greater_than_sign")
            await shown(pilot, notes, f"memory/2026-{day}.md")
        await pilot.press("greater_than_sign", "greater_than_sign")
        await until(pilot, lambda: "no note of a day after" in app.toasts)
        notes.open_entry("knowledge/topics/docker.md")
        await shown(pilot, notes, "knowledge/topics/docker.md")
        assert notes.check_action("go_to_day", (1,)) is False


def test_below_a_day_stands_its_month_whose_written_days_lead_to_their_notes(tmp_path) -> None:
    kb = make_kb(tmp_path)
    folder = kb.workspace.root / "memory"
    folder.mkdir(exist_ok=True)
    for day in ("2026-10-03", "2026-11-02", "2026-11-24"):
        (folder / f"{day}.md").write_text(f"# {day}\n\n- 10:00 Tea.\n")
    (month,) = load_document(kb, "memory/2026-11-24.md").below
    assert month.title == "November 2026"
    cells = [cell for row in month.cells for cell in row]
    assert [cell.text.strip() for cell in cells if cell.here] == ["24"]
    assert {cell.text.strip(): cell.path for cell in cells if cell.path} == {
        "2": "memory/2026-11-02.md",
        "24": "memory/2026-11-24.md",
        "◂ 3 Oct": "memory/2026-10-03.md",
    }


async def test_an_outdated_line_is_marked_and_enter_opens_its_newer_one(tmp_path):
    kb = make_kb(tmp_path)
    older, newer = "The router is in the hall.", "The router is in the office now."
    for path, line in (("facts/router", older), ("facts/router-now", newer)):
        agent_writes(kb, f"knowledge/{path}.md", f"# Router\n\nIt has lights.\n\n{line}\n")
    kb.newer.update()
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/facts/router.md")
        body = notes.view.body
        await until(pilot, lambda: body.gutter_width, "the mark is there")
        at = next(n for n, each in enumerate(body.lines) if older in each.content.plain)
        assert body._gutter(at).plain == "↗"
        assert not body._gutter(0).plain
        body.focus()
        body.reveal_source(body.lines[at].source)
        await pilot.press("enter")
        await until(pilot, lambda: newer in text_of(notes.view.body), "the newer line is shown")
