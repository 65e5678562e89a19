from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from kbtui.search.index import analyser
from kbtui.search.query import parser
from kbtui.search.query.parser import WIDTH, Query, Snippet, patterns


def make_snippet(
    text: str, terms: set[str], phrases: tuple[str, ...] = (), fallback: int = 0
) -> Snippet:
    words = [*analyser.matches(text, terms)]
    return parser.make_snippet(text, words, patterns(Query(phrases=phrases)), fallback)


def marked(text: str, words: str, phrases: tuple[str, ...] = ()) -> list[str]:
    snippet = make_snippet(text, set(analyser.terms(words)), phrases)
    return [snippet.text[start:end] for start, end in snippet.matches]


def test_matches_are_marked_as_they_are_written() -> None:
    text = "We took Decisions on sessions.\n\nA  decision\tstands."
    assert marked(text, "decisions") == ["Decisions", "decision"]


def test_it_is_one_line_without_control_characters() -> None:
    snippet = make_snippet("one\n\n\ttwo \x1b[31mred\u202e end", {"two"})
    assert snippet.text == "one · two [31mred end"
    assert snippet.text[slice(*snippet.matches[0])] == "two"


@pytest.mark.parametrize(
    "link",
    [
        "[[topics/radio|the radio]]",
        "[a manual](https://a.example/b)",
        "![[radio.svg]]",
        "`[x] = 1`",
    ],
)
def test_no_link_is_cut(link: str) -> None:
    for words in range(60):
        behind = make_snippet("y " * 300 + f"{link} {'y ' * words} needle " + "y " * 300, {"needl"})
        before = make_snippet(f"needle {'y ' * (80 + words)}{link} " + "y " * 300, {"needl"})
        for shown in (behind.text, before.text):
            assert ("[" in shown or "]" in shown or "://" in shown) == (link in shown)
            assert ("!" in shown) == ("!" in link and link in shown)


def test_items_of_a_list_stay_apart() -> None:
    text = "## Goal\n\n- one\n- [ ] two\n3. three\nand more - or less"
    shown = make_snippet(text, {"two"}).text
    assert shown == "## Goal · one · two · three and more - or less"


def test_rows_of_a_table_stay_apart() -> None:
    shown = make_snippet("| a | b |\n|---|:-:|\n| c | two |\n| e | f |", {"two"}).text
    assert shown == "| a | b · c | two · e | f |"


def test_it_shows_the_place_with_the_most_different_matches() -> None:
    text = "auth " * 5 + "filler words. " * 60 + "the auth session store " + "filler words. " * 60
    snippet = make_snippet(text, {"auth", "session", "store"})
    assert "session store" in snippet.text
    assert len(snippet.text) <= WIDTH


def test_it_says_on_which_line_it_starts() -> None:
    snippet = make_snippet("first\n" * 300 + "needle here\n" + "last\n" * 300, {"needl"})
    assert snippet.line >= 295


def test_chinese_matches_are_pairs() -> None:
    assert marked("黑豹队的防守只丢了", "防守") == ["防守"]


def test_an_exact_phrase_is_marked_whole() -> None:
    assert marked("Use open\nsource code", "", ("open source",)) == ["open source"]


def test_without_a_match_it_starts_where_it_is_told() -> None:
    assert make_snippet("# Title\n\nThe text.", set(), fallback=9).text == "The text."


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
def test_an_empty_text_has_an_empty_snippet(text: str) -> None:
    assert make_snippet(text, {"a"}).text == ""


@given(st.text(alphabet="ab \n\t漢字.é\u202e\x00", max_size=800))
def test_offsets_always_lie_in_the_snippet(text: str) -> None:
    snippet = make_snippet(text, set(analyser.terms("a ab 漢字 aé")))
    ends = [0]
    for start, end in snippet.matches:
        assert ends[-1] <= start < end <= len(snippet.text)
        ends.append(end)


def test_the_line_is_where_the_first_match_stands() -> None:
    text = "# Alice\n\nShe lives in Graz.\n\nShe keeps a wombat.\n"
    assert make_snippet(text, {"wombat"}).line == 4
    assert make_snippet(text, {"none"}, fallback=text.index("She lives")).line == 2


def test_an_excerpt_begins_with_a_whole_word_and_its_marks() -> None:
    text = f"{'x ' * 60}In _general_, what works for [[the reading view]] has a strong likelihood."
    start = make_snippet(f"{text}{' y' * 200}", {"likelihood"}).text.split()[0]
    assert start in {"_general_,", "what"}


def test_a_table_that_is_cut_in_its_rule_ends_before_it() -> None:
    table = f"Reading\n\n| Option | Type |\n|{'-' * 300}|---|\n| a | b |\n"
    assert make_snippet(table, {"reading"}).text == "Reading · | Option | Type"


def test_lines_of_a_quotation_are_joined_without_their_marks() -> None:
    text = "A reading.\n\n> One\n> > two\n>\n> three > 2\n"
    assert make_snippet(text, {"reading"}).text == "A reading. · One two · three > 2"
