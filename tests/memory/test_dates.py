"""Relative dates stand beside the words that meant them, counted from when it was said."""

from __future__ import annotations

import re
from datetime import date, datetime
from time import process_time

import pytest

from kbtui.memory.records.dates import with_dates, without_dates, without_stamp
from kbtui.offline.times import times_in

FRIDAY = date(2026, 3, 6)
THURSDAY = datetime(2026, 11, 26, 14, 30)  # noqa: DTZ001 - the user's own clock


def _bracket(said: str, day: date) -> str:
    """What is added to a text, and nothing else is."""
    found = re.fullmatch(r"(.*) \((.*)\)(.*)", with_dates(said, day))
    assert found is not None
    assert f"{found[1]}{found[3]}" == said
    return found[2]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Met Alice yesterday.", "2026-11-25"),
        ("The exam is in a fortnight", "2026-12-10"),
        ("The lease of the flat ends in two months.", "January 2027"),
        ("I quit smoking three months ago.", "August 2026"),
        ("We moved in last year", "2025"),
        ("I moved to Ulm two years ago", "2024"),
        ("We met about ten years ago", "2016"),
        ("The fair opens a fortnight today", "2026-12-10"),
        ("called 20 minutes ago", "2026-11-26 14:10"),
        ("Der Kachelofen wird in drei Wochen geliefert.", "2026-12-17"),
        ("Der Vertrag endet in zwei Monaten.", "Januar 2027"),
        ("Der Klempner kommt Freitag nächste Woche", "2026-12-04"),
        ("El fontanero viene mañana.", "2026-11-27"),
        ("Le couvreur vient demain.", "2026-11-27"),
        ("Ho smesso tre mesi fa", "agosto 2026"),
    ],
)
def test_a_word_for_a_day_month_or_year_tells_which(said: str, shown: str) -> None:
    assert _bracket(said, THURSDAY) == shown


@pytest.mark.parametrize(
    "said",
    [
        "The sweep comes next Friday.",  # tomorrow, or in a week
        "Nächsten Freitag kommt der Schornsteinfeger.",
        "The cellar was flooded last Wednesday.",
        "El deshollinador viene el próximo viernes.",
        "Der Klempner kommt übernächste Woche",
        "We met a few weeks ago",
        "My daughter is six years old.",
        "Mi hija tiene seis años.",
        "We went to Crete last summer.",
        "Our anniversary is three weeks from Saturday.",
        "The party was two Saturdays ago.",
        "Heute in acht Tagen ist Markt.",  # a week, or eight days
        "Vorletzten Freitag war das Konzert.",
        "On se voit dans quinze jours.",
    ],
)
def test_an_ambiguous_word_gets_the_day_it_was_said_and_no_date(said: str) -> None:
    assert _bracket(said, THURSDAY) == "said 2026-11-26"


@pytest.mark.parametrize(
    ("said", "day", "shown"),
    [
        ("next Monday", date(2026, 11, 26), "2026-11-30"),
        ("next Monday", date(2026, 11, 29), "said 2026-11-29"),  # a Sunday
        ("next Thursday", date(2026, 11, 26), "2026-12-03"),
        ("last Friday", date(2026, 11, 28), "said 2026-11-28"),  # a Saturday
        ("last Friday", date(2026, 11, 30), "2026-11-27"),
        ("last Friday", date(2026, 11, 27), "2026-11-20"),
        ("this Friday", date(2026, 11, 26), "2026-11-27"),
        ("this Friday", date(2026, 11, 28), "said 2026-11-28"),
        ("next March", date(2026, 11, 26), "March 2027"),
        ("next March", date(2026, 1, 26), "said 2026-01-26"),
        ("last March", date(2026, 11, 26), "said 2026-11-26"),
        ("three months ago", date(2026, 1, 31), "October 2025"),
        ("tomorrow", date(2026, 12, 31), "2027-01-01"),
    ],
)
def test_a_weekday_or_month_counts_from_the_day_it_was_said(
    said: str, day: date, shown: str
) -> None:
    assert _bracket(said, day) == shown


@pytest.mark.parametrize(
    "said",
    [
        "likes today's papers",
        'the song "Yesterday" by the Beatles',
        "runs `date -d yesterday`",
        "see [[notes of today]]",
        "in five minutes",
        "ran the marathon in four hours",
        "reads USA Today-like papers",
        "subscribed to USA Today",
        "The club meets every Friday.",
        "The dentist is on Friday.",
        "Freitags schwimme ich.",
        "Am Morgen trinke ich Tee.",
        "Por la mañana tomo té.",
        "The fair is on Friday 4 December 2026",
        "I am 20 minutes late",
        "the dinosaurs died 66 million years ago",
        "built 9000 years ago",
        "back in 999 decades",
    ],
)
def test_what_may_mean_something_else_stays(said: str) -> None:
    assert with_dates(said, FRIDAY, is_dated=True) == said


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("signed today", "signed today (2026-03-06)"),
        ("gestern angekommen", "gestern (2026-03-05) angekommen"),
        ("Tonight: dinner", "Tonight (2026-03-06): dinner"),
        (
            "Came yesterday, back in two years.",
            "Came yesterday (2026-03-05), back in two years (2028).",
        ),
        ("She is 7 years old.\nHe is 8.", "She is 7 years old (said 2026-03-06).\nHe is 8."),
        ("next Saturday or next Sunday", "next Saturday or next Sunday (said 2026-03-06)"),
    ],
)
def test_the_date_stands_once_behind_its_word(said: str, kept: str) -> None:
    dated = with_dates(said, FRIDAY)
    assert dated == kept
    assert with_dates(dated, FRIDAY) == dated
    assert without_dates(dated) == said


def test_a_line_that_is_dated_where_it_stands_is_not_told_when_it_was_said() -> None:
    assert with_dates("The sweep comes next Saturday", FRIDAY, is_dated=True) == (
        "The sweep comes next Saturday"
    )


def test_a_stamp_before_a_history_entry_is_not_said_twice() -> None:
    assert without_stamp("[2026-03-06 10:00] User shared.") == "User shared."
    assert without_stamp("2026-03-06: User shared.") == "User shared."
    assert without_stamp("User shared.") == "User shared."
    assert without_stamp("Met on 2026-03-06.") == "Met on 2026-03-06."


def test_each_sentence_is_read_in_its_own_language() -> None:
    said = "Der Klempner kommt morgen. El fontanero viene pasado mañana. The sweep comes in 3 days."
    assert with_dates(said, FRIDAY) == (
        "Der Klempner kommt morgen (2026-03-07). El fontanero viene pasado mañana (2026-03-08). "
        "The sweep comes in 3 days (2026-03-09)."
    )


@pytest.mark.parametrize("day", [date.min, date.max])
@pytest.mark.parametrize(
    "said", ["tomorrow and yesterday", "last Friday", "next week", "in a year", "a month ago"]
)
def test_a_date_beyond_the_calendar_is_none(day: date, said: str) -> None:
    assert without_dates(with_dates(said, day)) == said


@pytest.mark.parametrize(
    "said", ["in a ", "next Friday ", "at five to ", "three weeks ago ", "Fri "]
)
def test_a_long_text_is_read_in_time_that_grows_with_its_length(said: str) -> None:
    def seconds(count: int) -> float:
        """Return the shortest of three, as one may fall into a collection of garbage."""
        took: list[float] = []
        for number in range(3):
            text, begun = f"{said * count}{number}", process_time()  # what was read is kept
            times_in(text, FRIDAY)
            took.append(process_time() - begun)
        return min(took)

    seconds(10)
    assert seconds(2_000) < 20 * seconds(250) + 0.1
