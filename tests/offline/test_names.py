"""Names are told by their capitals, and never made up."""

from __future__ import annotations

import pytest

from kbtui.offline.names import NameReader, lines_by_name


def test_a_name_has_the_lines_that_have_it() -> None:
    lines = ["Maria is the new manager", "lunch with Maria and Tom", "nothing here", "Tom is ill"]
    assert dict(lines_by_name(lines)) == {"Maria": (0, 1), "Tom": (1, 3)}


def test_a_part_of_one_longer_name_means_it_and_of_two_means_itself() -> None:
    assert dict(lines_by_name(["I met Mira Okafor", "Mira called"])) == {"Mira Okafor": (0, 1)}
    two = ["I met Mira Okafor", "and Mira Jones", "Mira called"]
    assert dict(lines_by_name(two)) == {"Mira Okafor": (0,), "Mira Jones": (1,), "Mira": (2,)}


@pytest.mark.parametrize(
    "line",
    [
        "Booked the flights for Thursday",
        "The meeting is in November",
        "NOT before the tea",
        "see https://Example.com/Path and mail Ann@Example.com",
        "run `Make Everything` in src/Main",
        "I think I'm done",
    ],
)
def test_what_is_no_name_is_none(line: str) -> None:
    assert dict(lines_by_name([line])) == {}


def test_a_season_that_begins_a_line_with_a_capital_may_be_a_person() -> None:
    names = NameReader(2)
    names.read("Summer moved to Ghent.")
    assert names.names_in("Summer moved to Ghent.") == ("Summer", "Ghent")


def test_a_word_that_also_stands_in_small_letters_is_no_name_at_the_beginning() -> None:
    assert dict(lines_by_name(["Viewing on Saturday", "the viewing went well"])) == {}


def test_a_possessive_is_not_part_of_it() -> None:
    assert dict(lines_by_name(["we ate at Bob's place", "and Bob paid"])) == {"Bob": (0, 1)}


def test_what_begins_two_lines_and_is_never_small_is_a_name_and_a_greeting_is_none() -> None:
    lines = ["Silke moved out", "Silke called", "Wow Jon", "Wow what a day", "it rains, Jon"]
    assert dict(lines_by_name(lines)) == {"Silke": (0, 1), "Jon": (2, 4)}
