from __future__ import annotations

import pytest

from kbtui.tui.notes.completion import CompletionRequest, Vocabulary, fitting, request_at
from tests.tui.notes.test_editor import editing
from tests.tui.notes_support import DEFAULT, NotesApp, make_kb, text_of, until

HEAD = ["---", "type: person", "tags: [a, b", "aliases:", '  - "Bo', "st", "---", "text"]


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ("see [[", CompletionRequest("note", "", 6)),
        ("see [[Post gre", CompletionRequest("note", "Post gre", 6)),
        ("![[漢", CompletionRequest("note", "漢", 3)),
        ("[[alice#", CompletionRequest("heading", "", 8, "alice")),
        ("[[#No", CompletionRequest("heading", "No", 3)),
        ("[[alice#^b", None),
        ("[[alice|Al", None),
        ("[[alice]] and", None),
        ("see @Al", CompletionRequest("at", "Al", 4)),
        ("(@", CompletionRequest("at", "", 1)),
        ("me@example", None),
        ("a #da", CompletionRequest("tag", "da", 3)),
        ("#a/b", CompletionRequest("tag", "a/b", 1)),
        ("#", None),
        ("# H", None),
        ("no#tag", None),
        ("#12", None),
    ],
)
def test_what_the_text_before_the_cursor_asks_for(before, wanted):
    assert request_at([before + "tail"], 0, len(before), "text") == wanted


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        (0, None),
        (1, CompletionRequest("value", "person", 6, "type")),
        (2, CompletionRequest("value", "b", 10, "tags")),
        (4, CompletionRequest("value", "Bo", 5, "aliases")),
        (5, CompletionRequest("property", "st", 0)),
    ],
)
def test_what_frontmatter_asks_for(row, wanted):
    assert request_at(HEAD, row, len(HEAD[row]), "front") == wanted


def test_nothing_is_asked_for_in_code():
    assert request_at(["[[x"], 0, 3, "code") is None


def test_beginnings_come_before_other_parts():
    words = ["auto", "tone", "Été", "to [red]", ""]
    assert fitting("to", words) == ["tone", "to [red]", "auto"]
    assert fitting("ete", words) == ["Été"]
    assert fitting("", words) == words[:4]


NOTES = {
    **DEFAULT,
    "topics/docker.md": "---\nstatus: in [red]\nrating: 5\n---\n# Docker\n\n## Set up\n\n### [x] | y\n",
    "people/docker.md": "---\nstatus: done\nname: {bad\n---\n# Docker, the person\n",
    "topics/odd.md": b"---\nstatus: \xff\n---\n",
}


def offered(kb, wanted: CompletionRequest, text: str = "") -> list[str]:
    words = Vocabulary(kb, "knowledge/people/alice.md")
    return [choice.value for choice in words.offers(wanted, text)]


def test_notes_are_named_so_that_the_link_leads_there(tmp_path):
    kb = make_kb(tmp_path, NOTES)
    assert offered(kb, CompletionRequest("note", "postgr", 2))[0] == "postgresql]]"
    assert set(offered(kb, CompletionRequest("note", "docker", 2))[:2]) == {
        "topics/docker]]",
        "people/docker|Docker, the person]]",
    }
    assert len(offered(kb, CompletionRequest("note", "", 2))) == len(NOTES)


def test_an_alias_that_is_typed_is_what_the_link_says(tmp_path):
    note = "---\naliases: [Container engine]\n---\n# Docker\n"
    kb = make_kb(tmp_path, {**DEFAULT, "topics/docker.md": note})
    assert offered(kb, CompletionRequest("note", "contain", 2))[0] == "docker|Container engine]]"
    assert offered(kb, CompletionRequest("note", "dock", 2))[0] == "docker]]"


def test_headings_are_those_of_the_note_that_is_named(tmp_path):
    kb = make_kb(tmp_path, NOTES)
    assert offered(kb, CompletionRequest("heading", "", 2, "topics/docker")) == [
        "Docker]]", "Set up]]", " x    y]]",
    ]  # fmt: skip
    assert offered(kb, CompletionRequest("heading", "b", 2), "# A\n## B c\n") == ["B c]]"]
    assert offered(kb, CompletionRequest("heading", "", 2, "nobody")) == []


def test_tags_properties_and_values_are_those_of_all_notes(tmp_path):
    kb = make_kb(tmp_path, NOTES)
    assert offered(kb, CompletionRequest("tag", "da", 1)) == ["database"]
    assert offered(kb, CompletionRequest("value", "te", 1, "tags")) == ["team"]
    assert offered(kb, CompletionRequest("property", "sta", 0)) == ["status: "]
    assert set(offered(kb, CompletionRequest("value", "", 8, "status"))) == {
        "in [red]",
        "done",
        "\ufffd",
    }
    assert offered(kb, CompletionRequest("value", "per", 6, "type")) == ["person"]
    assert offered(kb, CompletionRequest("value", "", 6, "nothing")) == []


async def test_at_offers_notes_and_writes_the_whole_link(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test(size=(40, 12)) as pilot:
        _, editor = await editing(pilot)
        await pilot.press("ctrl+end", *"Ask @post")
        await until(pilot, lambda: editor.popup.display)
        await pilot.press("enter")
        assert editor.text_area.text.endswith("Ask [[postgresql]]")


async def test_two_brackets_offer_notes_and_enter_writes_the_link(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test(size=(40, 12)) as pilot:
        _, editor = await editing(pilot)
        await pilot.press("ctrl+end", *"See [[post")
        await until(pilot, lambda: editor.popup.display)
        assert "See [[post" in text_of(editor.text_area), "what is written stays in view"
        assert editor.popup.chosen.label == "PostgreSQL"
        await pilot.press("enter")
        assert editor.text_area.text.endswith("See [[postgresql]]")
        assert not editor.popup.display
        await pilot.press("enter", *"- [[do", "down")
        await until(pilot, lambda: editor.popup.display)
        await pilot.press("escape")
        assert not editor.popup.display
        assert len(app.screen_stack) == 1
        assert editor.is_attached, "Escape has closed the list, not the editor"


async def test_a_tag_and_a_heading_are_completed_by_tab(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        _, editor = await editing(pilot)
        await pilot.press("ctrl+end", *"#datab")
        await until(pilot, lambda: editor.popup.display)
        await pilot.press("tab", *" [[alice#no")
        await until(pilot, lambda: editor.popup.display and editor.popup.kind == "heading")
        await pilot.press("tab")
        assert editor.text_area.text.endswith("#database [[alice#Notes]]")


async def test_the_list_goes_away_when_the_cursor_leaves_the_word(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        _, editor = await editing(pilot)
        await pilot.press("ctrl+end", *"see [[do")
        await until(pilot, lambda: editor.popup.display)
        await pilot.press("home")
        await until(pilot, lambda: not editor.popup.display)
        before = editor.text_area.text
        await pilot.press("end", "enter")
        assert editor.text_area.text == before + "\n"
