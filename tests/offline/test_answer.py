"""Which lines answer a question, where search found more than one note that could."""

from __future__ import annotations

from kbtui.offline.answer import answer
from kbtui.offline.lines import Line, lines_of

_DAILY = "knowledge/features/daily.md"
_ORPHANS = "knowledge/tools/orphans.md"


def test_the_note_that_search_ranks_first_is_quoted_before_one_that_repeats_more_words() -> None:
    found = answer(
        "how do I make a daily journal?",
        [
            Line(
                _ORPHANS,
                "Orphans",
                "A pattern that you make can exclude the daily journal.",
                3,
                relevance=0.2,
            ),
            Line(_DAILY, "Daily notes", "A daily journal comes with Alt+D.", 5, relevance=1.0),
        ],
    )

    assert found.lines[0].path == _DAILY


def test_a_question_for_what_something_is_gets_the_opening_of_its_note() -> None:
    text = "Use callouts to set a part apart.\n\nA plus sign expands the callout.\n"
    lines = list(lines_of("knowledge/callouts.md", "Callouts", text, "entry"))

    assert next(line.number for line in answer("what is a callout?", lines).lines) == 1


def test_a_line_that_defines_it_is_as_good_as_the_opening() -> None:
    text = "You can manage the vault in the switcher.\n\nA vault is a folder with your notes.\n"
    lines = list(lines_of("knowledge/vaults.md", "Vaults", text, "entry"))

    assert "folder" in " ".join(line.text for line in answer("what is a vault?", lines).lines)


def test_a_passage_that_search_is_sure_of_answers_though_no_line_names_all() -> None:
    lines = [
        Line(
            "knowledge/law.md", "Victoria", "The colony got its own parliament.", 3, relevance=1.0
        ),
        Line("knowledge/law.md", "Victoria", "Its constitution is of 1975.", 4, relevance=1.0),
    ]

    assert [
        line.number for line in answer("When did Victoria enact its constitution?", lines).lines
    ] == [4]


def test_a_paragraph_that_search_finds_to_be_about_something_else_is_no_answer() -> None:
    prose = "Some phones manage attachments in their own way, and the costs of the sync that " * 3
    line = Line("knowledge/trouble.md", "Trouble", f"{prose} are 5 a month.", 3, relevance=0.1)

    assert not answer("how much does the sync cost?", [line]).lines


def test_tables_markup_and_definitions_of_links_are_never_quoted() -> None:
    text = '<td align="center">Phone 12345</td>\n[phone]: a.md "Phone 12345"\n[Phone](#phone)\nPhone: 12345\n'

    assert [line.number for line in lines_of("knowledge/a.md", "A", text, "entry")] == [4]


def test_a_line_that_only_leads_on_is_followed_by_what_it_leads_to() -> None:
    text = "There are two ways to import from Notion:\n\n- A file\n- The API\n\nMore of it.\n"
    lines = list(lines_of("knowledge/notion.md", "Import from Notion", text, "entry"))

    found = answer("how do I import from Notion?", lines).lines
    assert [line.text for line in found][:3] == [
        "There are two ways to import from Notion:",
        "A file",
        "The API",
    ]


def test_a_line_that_leads_to_code_is_followed_by_all_of_the_block() -> None:
    text = (
        "Learn about the iframe element to embed pages in your notes.\n\n"
        "To embed a web page, add this:\n\n```html\n<iframe\n  src='URL'></iframe>\n```\n\nDone.\n"
    )
    lines = list(lines_of("knowledge/embed.md", "Embed web pages", text, "entry"))

    found = [line.text for line in answer("how do I embed a web page?", lines).lines]
    at = found.index("To embed a web page, add this:")
    assert found[at + 1 : at + 3] == ["<iframe", "  src='URL'></iframe>"]
    assert "Done." not in found


def test_code_answers_nothing_by_itself() -> None:
    text = "```\nthe wifi password is hunter2\n```\n"
    lines = list(lines_of("knowledge/wifi.md", "Wifi", text, "entry"))

    assert not answer("what is the wifi password?", lines).lines


def test_a_line_leads_neither_into_the_past_nor_into_another_message() -> None:
    text = "The wifi has two names:\n\n## Evolution\n\n- 2026-01-01: The wifi is called Elk.\n"
    entry = list(lines_of("knowledge/wifi.md", "Wifi", text, "entry"))
    said = [
        Line("sessions/a.jsonl", "A", "The wifi has these names:", 1, "said"),
        Line("sessions/a.jsonl", "A", "Buy milk.", 3, "said"),
    ]

    for lines in (entry, said):
        assert answer("what names has the wifi?", lines).lines == (lines[0],)


def test_a_number_that_is_no_age_tells_nobodys_age() -> None:
    lines = list(lines_of("knowledge/a.md", "Dario", "Dario does mornings, 555 0142\n", "entry"))
    assert not answer("how old is Dario?", lines).lines
    lines = list(lines_of("knowledge/a.md", "Dario", "Dario turns 40 in May\n", "entry"))
    assert answer("how old is Dario?", lines).lines


def test_german_nouns_are_no_names_that_an_answer_must_hold() -> None:
    text = "Der Aufzug-Techniker heißt Kowalski, Tel. 0171 2233445\n"
    lines = list(lines_of("knowledge/a.md", "Aufzug-Techniker", text, "entry"))
    assert answer("wie ist die Nummer vom Aufzug-Techniker?", lines).lines


def test_who_helps_with_a_thing_is_who_knows_it() -> None:
    text = "Tomasz knows the cluster inside out\n"
    lines = list(lines_of("knowledge/people/tomasz.md", "Tomasz", text, "entry"))
    assert answer("who can help me with the cluster?", lines).lines
