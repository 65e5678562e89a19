"""Entries grow by what is new, in the place where it belongs; what stands there stays."""

from __future__ import annotations

from datetime import date

from kbtui.knowledge.entries.entry import Front
from kbtui.knowledge.format.facts import Fact
from kbtui.knowledge.format.frontmatter import with_more
from kbtui.memory.edits.entry_updates import LOOSE, grown_entry, is_said, new_entry

DAY = date(2026, 3, 6)


def _fact(type_: str, body: str, title: str = "T", **more: object) -> Fact:
    return Fact(body, type_, title, **more)  # type: ignore[arg-type]


def test_a_new_entry_has_the_template_of_its_type() -> None:
    text = new_entry(
        Fact(
            "PostgreSQL, for its JSON operators.",
            "decision",
            "Use PostgreSQL",
            summary="Chosen for JSON.",
        ),
        Front(DAY),
        ["people/alice"],
    )
    assert text.startswith(
        "---\ntype: decision\ncreated: 2026-03-06\nupdated: 2026-03-06\nrelated: [people/alice]\n"
    )
    assert text.endswith(
        "---\n# Use PostgreSQL\n\n## Decision\nPostgreSQL, for its JSON operators.\n"
    )


def test_sections_of_a_fact_fill_those_of_the_template() -> None:
    fact = _fact("person", "## Hobbies\n- chess\n\n## Notes\n- tall\n\n## Role\nLead")
    text = new_entry(fact, Front(DAY), [])
    assert text.endswith("\n\n## Role\nLead\n\n## Notes\n- tall\n\n## Hobbies\n- chess\n")


def test_a_heading_that_is_added_later_stands_in_the_order_of_the_template() -> None:
    text = "# Alice\n\nA friend.\n\n## Notes\n- likes tea\n"
    grown = grown_entry(text, _fact("person", "## Role\nLead"), DAY)
    grown = grown_entry(grown, _fact("person", "## Works on\n- billing\n\n## Hobbies\n- go"), DAY)
    assert grown == (
        "# Alice\n\nA friend.\n\n## Role\n- Lead\n\n## Works on\n- billing\n\n"
        "## Notes\n- likes tea\n\n## Hobbies\n- go\n"
    )


def test_neither_the_title_nor_code_is_taken_for_a_heading_of_the_template() -> None:
    text = "# Notes\n\n```\n## Works on\n```\n"
    grown = grown_entry(text, _fact("person", "## Works on\n- tea\n\n## Role\nLead"), DAY)
    assert grown == text + "\n## Role\n- Lead\n\n## Works on\n- tea\n"


def test_only_what_is_new_is_added_and_the_rest_stays_byte_for_byte() -> None:
    text = "---\ntype: person  # kept\ntags: [team]\n---\n# Alice\n\n## Role\nLead\n\n## Notes\n- likes tea\n"
    grown = grown_entry(text, _fact("person", "- Likes tea.\n- plays chess"), DAY)
    assert grown == text + "- plays chess\n"


def test_nothing_new_changes_nothing() -> None:
    text = "---\ntype: fact\n---\n# Languages\n\nProgramming languages: Python, JavaScript, Go\n"
    same = _fact("fact", "Programming languages: Python, JavaScript, Go")
    assert grown_entry(text, same, DAY) == text


def test_a_changed_value_is_changed_in_its_place_and_dated() -> None:
    text = "# Favorite color\n\n- Favorite color: blue\n"
    grown = grown_entry(text, _fact("preference", "Favorite color: green"), DAY)
    assert "- Favorite color: green\n" in grown
    assert grown.endswith("## Evolution\n- 2026-03-06: Favorite color: green (before: blue)\n")


def test_a_summary_that_names_the_value_is_brought_along() -> None:
    text = "---\nsummary: 'Favorite color: blue'\n---\n# C\n\nFavorite color: blue\n"
    grown = grown_entry(text, _fact("preference", "Favorite color: green"), DAY)
    assert "summary: 'Favorite color: green'\n" in grown
    assert "blue" not in grown.split("## Evolution")[0]


def test_a_list_grows_and_forgets_nothing() -> None:
    text = "# Skills\n\nProgramming languages: Python, Go\n"
    grown = grown_entry(text, _fact("fact", "Programming languages: Rust and Go"), DAY)
    assert grown == "# Skills\n\nProgramming languages: Python, Go, Rust\n"


def test_without_leave_to_correct_the_value_stays() -> None:
    text = "# Favorite color\n\nFavorite color: blue\n"
    draft = _fact("preference", "- Favorite color: green\n- likes teal too")
    grown = grown_entry(text, draft, DAY, correct=False)
    assert grown == text + "\n- likes teal too\n"


def test_a_decision_evolves() -> None:
    text = "# DB\n\n## Decision\nPostgreSQL.\n\n## Evolution\n- 2026-01-01: recorded\n"
    grown = grown_entry(text, _fact("decision", "Moved to version 18."), DAY)
    assert grown == text + "- 2026-03-06: Moved to version 18.\n"


def test_a_statement_without_heading_goes_above_the_sections() -> None:
    text = "# Docker\n\nContainers.\n\n## Compose\nTwo files.\n"
    grown = grown_entry(text, _fact("topic", "- runs rootless\n\n## Compose\n- now one file"), DAY)
    assert grown == (
        "# Docker\n\nContainers.\n\n- runs rootless\n\n## Compose\nTwo files.\n- now one file\n"
    )


def test_windows_line_ends_stay() -> None:
    text = "# Docker\r\n\r\n- one\r\n"
    assert grown_entry(text, _fact("topic", "- two"), DAY) == "# Docker\r\n\r\n- one\r\n- two\r\n"


def test_tags_and_links_are_added_once_and_code_stays_code() -> None:
    text = "---\ntags: [Team]\nrelated: []\n---\n# A\n\n- x\n"
    draft = _fact("topic", "```sh\n- not a bullet\n```", tags=("team", "db"))
    grown = grown_entry(text, draft, DAY, related=["people/bob"])
    assert "tags: [Team, db]\nrelated: [people/bob]\n" in grown
    assert grown.endswith("- x\n```sh\n- not a bullet\n```\n")
    assert grown_entry(grown, draft, DAY, related=["people/bob"]) == grown


def test_saying_the_same_is_told_from_saying_something_else() -> None:
    known = ["Bob owns analytics and Alice owns billing", "The server has 5 GB"]
    assert is_said("Alice owns billing.", known)
    assert not is_said("Alice owns analytics", known)
    assert not is_said("The server has 6 GB", known)
    assert not is_said("The server doesn't have 5 GB", known, LOOSE)
    assert is_said("Billing: Alice owns billing now", known, LOOSE)


def test_a_code_block_with_comments_is_added_whole() -> None:
    code = "```sh\n# first\nls\n# then\npwd\n```\n"
    assert grown_entry("# A\n\nText.\n", _fact("topic", code), DAY).endswith(f"Text.\n\n{code}")


def test_what_a_person_wrote_for_tags_in_a_form_of_their_own_stays() -> None:
    text = "---\ntype: topic\ntags: {a: b}\n---\n# A\n"
    assert grown_entry(text, _fact("topic", "", tags=("db",)), DAY) == text


def test_tags_that_are_null_become_a_list() -> None:
    text = "---\ntype: topic\ntags: null\n---\n# A\n"
    assert "\ntags: [db]\n" in grown_entry(text, _fact("topic", "", tags=("db",)), DAY)


def test_an_alias_that_differs_in_its_sign_alone_is_another_one() -> None:
    values = {"aliases": ["C"]}
    assert with_more(values, "aliases", ["C#", "c"]) == {"aliases": ["C", "C#"]}


def test_code_that_looks_like_a_heading_is_none() -> None:
    lead = "# T\n\nA tool.\n\n```sh\n## build\nmake: all\n```\n"
    grown = grown_entry(lead, _fact("topic", "It is quick."), DAY)
    assert grown == lead + "\n- It is quick.\n"
    text = "# T\n\nColor: red\n\n```\n## Evolution\n```\n\nSize: small\n"
    grown = grown_entry(text, _fact("topic", "Size: large"), DAY)
    assert "Size: large" in grown
    assert "```\n## Evolution\n```\n" in grown


def test_a_value_in_code_is_left_alone() -> None:
    text = "# T\n\n```yaml\nport: 80\n```\n"
    grown = grown_entry(text, _fact("topic", "Port: 443"), DAY)
    assert grown == text + "\n- Port: 443\n"


def test_an_underlined_heading_of_two_lines_is_one_line() -> None:
    text = new_entry(_fact("topic", "Two\nlines\n---\nAnd words."), Front(DAY), [])
    assert "\n## Two lines\nAnd words.\n" in text
