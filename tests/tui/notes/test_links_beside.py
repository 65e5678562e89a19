"""What links to a note, beside it where there is room for both."""

from __future__ import annotations

from tests.tui.notes_support import NotesApp, make_kb, ready, shown, text_of, until

ENTRIES = {
    "topics/radio.md": "---\ntype: topic\n---\n# Radio\n\nSends.\n",
    "people/alice.md": "---\ntype: person\n---\n# Alice\n\nBuilds the [[radio]].\n",
}
RADIO = "knowledge/topics/radio.md"


async def test_it_stands_beside_a_note_that_is_wide_and_below_one_that_is_not(tmp_path) -> None:
    app = NotesApp(make_kb(tmp_path, ENTRIES))
    async with app.run_test(size=(230, 40)) as pilot:
        notes = await ready(pilot)
        notes.open_entry(RADIO)
        await shown(pilot, notes, RADIO)
        view = notes.view
        links = view.query_one("#entry-links")
        await until(pilot, lambda: "Builds the radio" in text_of(links))
        assert "Alice" not in text_of(view.body)
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: "Builds the radio" in text_of(view.body))
        assert not links.display
        await pilot.resize_terminal(230, 40)
        await until(pilot, lambda: "Alice" in text_of(links))
        row = next(y for y in range(links.size.height) if "Alice" in links.render_line(y).text)
        await pilot.click("#entry-links", offset=(6, row))
        await shown(pilot, notes, "knowledge/people/alice.md")
        await until(pilot, lambda: not links.display)


async def test_above_it_stands_the_outline_of_a_note_with_some_headings(tmp_path) -> None:
    text = "".join(f"## Part {number}\n\n{'A line.' * 9}\n\n" * 1 for number in range(30))
    entries = {**ENTRIES, "topics/long.md": f"---\ntype: topic\n---\n# Long\n\n{text}"}
    app = NotesApp(make_kb(tmp_path, entries))
    async with app.run_test(size=(230, 40)) as pilot:
        notes = await ready(pilot)
        notes.open_entry("knowledge/topics/long.md")
        await shown(pilot, notes, "knowledge/topics/long.md")
        links = notes.view.query_one("#entry-links")
        await until(pilot, lambda: "Part 20" in text_of(links))
        assert "Part 29" not in text_of(notes.view.body)
        row = next(y for y in range(40) if "Part 20" in links.render_line(y).text)
        await pilot.click("#entry-links", offset=(6, row))
        await until(pilot, lambda: "Part 20" in text_of(notes.view.body))
