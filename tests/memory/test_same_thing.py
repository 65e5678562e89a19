"""The same thing: which of two lines holds, and which two are about different things."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbtui.memory.comparing.same_thing import about_the_same, is_newer, standing

_ROWS = [
    tuple(line.split("\t"))
    for line in Path(__file__).with_name("same_thing.tsv").read_text("utf-8").splitlines()
]
_PAIRS = [(old, new) for kind, _, old, new in _ROWS if kind == "newer"]
_OTHERS = [(old, new) for kind, _, old, new in _ROWS if kind == "none"]


@pytest.mark.parametrize(("old", "new"), _OTHERS)
def test_a_line_about_something_else_is_no_newer_line(old: str, new: str) -> None:
    assert not is_newer(new, old)


def test_nearly_all_newer_values_are_found() -> None:
    missed = [pair for pair in _PAIRS if not is_newer(pair[1], pair[0])]
    assert len(missed) <= 0.05 * len(_PAIRS), missed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The blue team meets on Monday.", "The red team meets on Friday."),
        ("Flat in Mainz: the rent is 870 euros.", "Flat in Trier: the rent is 640 euros."),
        ("Flat in Mainz: the rent is 870 euros.", "The rent is 640 euros from May."),
        ("My dentist is Dr. Adams", "My sister's dentist is Dr. Brown"),
        ("We meet at six", "We meet on Tuesdays"),
    ],
)
def test_what_qualifies_a_thing_tells_two_apart(old: str, new: str) -> None:
    assert not about_the_same(old, new)


@pytest.mark.parametrize(
    "new",
    [
        "Is the rent 985 euros?",
        "Maybe the rent is 985 euros",
        "If they renovate, the rent is 985 euros",
        "Nils says the rent is 985 euros",
        "The rent was 985 euros last year",
        "The rent is 985 euros this month only",
        "In 2019 the rent was 985 euros",
        'The ad says: "the rent is 985 euros"',
        "The rent could be 985 euros",
    ],
)
def test_what_may_be_or_was_or_somebody_said_is_no_newer_line(new: str) -> None:
    assert not is_newer(new, "The rent is 940 euros")
    assert is_newer("The rent is 985 euros", "The rent is 940 euros")


def test_a_newer_value_of_the_same_flat_is_found_by_its_label() -> None:
    assert is_newer(
        "Flat in Mainz: the rent is 910 euros.", "Flat in Mainz: the rent is 870 euros."
    )


def test_a_bracketed_day_and_a_leading_order_are_no_part_of_a_line() -> None:
    assert is_newer(
        "Merk dir, dass der Schlüssel bei Jana ist",
        "Der Schlüssel ist bei Uwe (2026-10-01)",
    )


def test_the_same_line_said_again_is_no_newer_line() -> None:
    assert not is_newer("The spare key is with Ines", "The spare key is with Ines")


@pytest.mark.parametrize(
    ("statement", "earlier", "is_shown"),
    [
        ("the meeting is on Friday", "the meeting is on Thursday at 10", True),
        ("the meeting is on Thursday", "I prefer meetings in the afternoon", False),
        ("Maria moved to Porto", "Maria works from Lisbon", True),
        ("what if the tooth fairy forgets", "he lost a tooth, the first", False),
        ("the rent is 1,150 from May", "the rent is 1,100", True),
        ("my bike has a flat tyre", "the rent is 1,100", False),
    ],
)
def test_an_earlier_line_has_another_value_of_the_same(
    statement: str, earlier: str, is_shown: bool
) -> None:
    assert is_newer(statement, earlier) is is_shown


def test_a_title_before_a_name_makes_nothing_somebody_elses() -> None:
    question = "wer ist unsere Tierärztin?"
    own = standing(question, "unsere Tierärztin Frau Ebel ist")
    assert own < standing(question, "Die Tierärztin meiner Mutter ist Frau Stamm")
    assert own < standing(question, "Die Tierärztin meiner Frau")
