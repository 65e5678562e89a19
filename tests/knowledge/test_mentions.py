from __future__ import annotations

import pytest

from kbtui.knowledge.linking.mentions import mentions_in, searchable_names, with_links


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Alice owns it, says alice.", 2),
        ("Alice's part; (Alice)", 2),
        ("malice, Alices, #Alice, @Alice, people/Alice.md", 0),
        ("[[Alice]] and [[alice|her]] and [Alice](alice.md)", 0),
        ("`Alice`\n\n```\nAlice\n```\n", 0),
        ("https://x.y/Alice and <b Alice> and Alice@example.org", 0),
        ("---\nowner: Alice\n---\ntext\n", 0),
        ("漢字Alice", 0),
    ],
)
def test_a_name_is_found_as_words_of_its_own_outside_links_code_and_addresses(text, count):
    assert len(mentions_in(text, ["Alice"])) == count


def test_a_name_in_a_script_without_blanks_is_found_inside_a_line():
    assert [each.start for each in mentions_in("今日は東京タワーへ", ["東京タワー"])] == [3]


def test_a_mention_says_its_line_of_the_file():
    text = "---\na: 1\n---\none\n\n- met Alice\n"
    (found,) = mentions_in(text, ["Alice"])
    assert (found.line, found.said) == (6, "- met Alice")
    assert text[found.start : found.end] == "Alice"


def test_links_read_as_the_text_did_and_the_longest_name_wins():
    text = "Alice Miller and alice, | x\n| Al Miller | b |\n"
    names = ["Alice", "Alice Miller", "Al Miller"]
    assert with_links(text, names, "alice") == (
        "[[alice|Alice Miller]] and [[alice]], | x\n| [[alice\\|Al Miller]] | b |\n"
    )
    assert with_links("an Alice", ["Alice"], "people/al", label_first=True) == (
        "an [[Alice|people/al]]"
    )
    assert not mentions_in(with_links(text, names, "alice"), names)


def test_names_that_are_said_by_chance_or_break_a_link_are_not_looked_for():
    assert searchable_names(["Al", "2026", "a|b", "a]b", " Bob ", "bob", "東京"]) == ["bob", "東京"]
    assert mentions_in("Al 2026", ["Al", "2026"]) == []


def test_many_mentions_in_a_long_text_are_all_found():
    assert len(mentions_in("Alice [[x]] " * 5_000, ["Alice"])) == 5_000
