"""MEMORY.md: facts under fitting headings, exact corrections, and nothing else touched."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, strategies as st

from kbtui.knowledge.format.facts import normalise, plain_fact
from kbtui.memory.edits.guards import lost_share
from kbtui.memory.edits.memory_file import with_correction, with_facts

SEED = """# User Preferences

- Favorite color: blue

# Skills

- Programming languages: Python, JavaScript, Go
"""


def test_the_seeds_own_example() -> None:
    facts = ["Favorite color: blue", "Programming languages: Python, JavaScript, Go"]
    assert with_facts("", facts) == SEED


def test_what_no_heading_is_there_for_stands_below_facts() -> None:
    grown = with_facts("", ["Lives in Bonn", "Das Auto steht im Hof"])
    assert grown == "# Facts\n\n- Lives in Bonn\n- Das Auto steht im Hof\n"


def test_a_known_fact_is_not_added_in_other_words() -> None:
    known = ["The user's favourite colour is blue.", "- favorite color: Blue", ""]
    assert with_facts(SEED, known) == SEED


@pytest.mark.parametrize(
    ("fact", "section"),
    [
        ("Prefers dark mode", "Preferences"),
        ("The user likes tea with milk", "Preferences"),
        ("Das Team trifft sich dienstags", "Team"),
        ("Bob owns the dashboard", "Team"),
        ("Lives in Bonn", "Facts"),
        ("The user is 40", "Facts"),
    ],
)
def test_a_fact_joins_the_section_that_it_has_most_in_common_with(fact: str, section: str) -> None:
    text = "# About the user\n\n## Preferences\n- Likes tea\n\n## Team\n- Bob\n"
    grown = with_facts(text, [fact])
    below = grown.partition(f"## {section}\n")[2].partition("\n## ")[0]
    assert f"- {fact}\n" in below


def test_a_section_that_is_asked_for_may_be_called_alike() -> None:
    assert with_facts(SEED, ["Likes tea"], "user preference").index("- Likes tea") < SEED.index(
        "#", 2
    )
    assert with_facts(SEED, ["Likes tea"], "Drinks").endswith("# Drinks\n\n- Likes tea\n")


def test_windows_line_ends_and_a_byte_order_mark_stay() -> None:
    text = "\ufeff# Skills\r\n\r\n- Python\r\n"
    assert with_facts(with_correction(text, "Python", "Python 3"), ["Speaks German"], "skills") == (
        "\ufeff# Skills\r\n\r\n- Python 3\r\n- Speaks German\r\n"
    )


def test_odd_line_ends_of_other_lines_stay() -> None:
    text = "# Skills\r\n- Python\n- a\u2028b\x0bc\rd\n- no end"
    assert with_correction(text, "Python", "Python 3") == text.replace("Python", "Python 3")
    assert with_facts(text, ["Knows Rust"], "Skills") == f"{text}\r\n- Knows Rust\r\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("Favorite color: blue", "Favorite color: green", "- Favorite color: green"),
        ("- Favorite color: blue", "- Favorite color: green", "- Favorite color: green"),
        ("blue", "dark blue", "- Favorite color: dark blue"),
    ],
)
def test_a_correction_replaces_an_exact_unique_match(old: str, new: str, line: str) -> None:
    assert with_correction(SEED, old, new) == SEED.replace("- Favorite color: blue", line)


@pytest.mark.parametrize(
    ("text", "old"),
    [
        pytest.param("- Grows blueberries\n", "blue", id="part of a word"),
        pytest.param("- Blue car\n- Blue house\n", "Blue", id="there twice"),
        pytest.param(SEED, "Lives in Bonn", id="not there"),
        pytest.param(SEED, "Skills", id="a heading"),
        pytest.param(SEED, "", id="nothing"),
    ],
)
def test_what_is_not_there_once_is_not_corrected(text: str, old: str) -> None:
    assert with_correction(text, old, "Red") == text


def test_an_empty_correction_removes_the_line_and_a_doubled_one_merges() -> None:
    assert "blue" not in with_correction(SEED, "Favorite color: blue", "")
    text = "- Likes tea\n- Prefers tea\n"
    assert with_correction(text, "Prefers tea", "likes tea.") == "- Likes tea\n"


facts = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=30),
    max_size=6,
)
memories = st.lists(
    st.sampled_from(
        ["# A", "## Skills", "- one", "- two", "", "prose", "* three", "# Facts", "- "]
    ),
    max_size=10,
).map("\n".join)


@given(memories, facts)
def test_adding_facts_keeps_every_line_and_is_done_once(text: str, added: list[str]) -> None:
    grown = with_facts(text, added)
    rest = iter(grown.splitlines())
    assert all(line in rest for line in text.splitlines()), "old lines stay, in their order"
    said = {normalise(plain_fact(line)) for line in grown.splitlines()}
    for fact in added:
        assert not normalise(plain_fact(fact)) or normalise(plain_fact(fact)) in said
    assert with_facts(grown, added) == grown
    assert lost_share(text, grown) == 0


@given(memories, st.sampled_from(["one", "two", "three", "prose", "four"]), st.text(max_size=10))
def test_a_correction_touches_at_most_one_line(text: str, old: str, new: str) -> None:
    assume("\n" not in new)
    corrected = with_correction(text, old, new)
    missing = [line for line in text.splitlines() if line not in corrected.splitlines()]
    assert len(missing) <= 1
    if [line for line in text.splitlines() if plain_fact(line) == old] == []:
        assert not missing or old in missing[0]


def test_nothing_is_written_into_code_that_looks_like_a_heading() -> None:
    text = "# Facts\n\n- a\n\n```sh\n# Facts\nmake\n```\n"
    assert with_facts(text, ["b"], "Facts") == text + "- b\n"
