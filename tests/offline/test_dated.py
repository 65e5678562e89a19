"""Days that a text names, and questions that a list answers, in the languages of the lists."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from kbtui.offline.asked import days_of, list_question
from kbtui.offline.dated import days_named, time_named
from kbtui.offline.message import read_message

FRIDAY = date(2026, 11, 27)


@pytest.mark.parametrize(
    ("text", "first", "unit"),
    [
        ("send the invoice by Monday", "2026-11-30", "day"),
        ("The plumber comes on Tuesday at 9:00", "2026-12-01", "day"),
        ("Priya starts on 7 December", "2026-12-07", "day"),
        ("December 7th, 2027", "2027-12-07", "day"),
        ("the brake pads are due in January", "2027-01-01", "month"),
        ("am 12.12. kommt Oma", "2026-12-12", "day"),
        ("am 1.12.2026 um 8", "2026-12-01", "day"),
        ("le 3 janvier 2027", "2027-01-03", "day"),
        ("el 5 de enero", "2027-01-05", "day"),
        ("entro gennaio", "2027-01-01", "month"),
        ("until 2026-12-04", "2026-12-04", "day"),
        ("tomorrow", "2026-11-28", "day"),
        ("call Bob next week", "2026-11-30", "week"),
    ],
)
def test_a_day_ahead_is_read_from_dates_months_and_words(text: str, first: str, unit: str) -> None:
    (found,) = days_named(text, FRIDAY, way=1)
    assert (str(found.period.first), found.period.unit) == (first, unit)


@pytest.mark.parametrize(
    "text",
    [
        "version 1.2. of it",
        "2026-02-30",
        "31 November",
        "March on, May!",
        "at 10.30",
        "a 5 de",
        "12 monkeys",
        "",
        "牛乳",
    ],
)
def test_other_numbers_and_impossible_dates_are_no_days(text: str) -> None:
    assert days_named(text, FRIDAY, way=1) == []


def test_a_date_without_a_year_is_the_nearest_unless_a_way_is_told() -> None:
    def year(way: int) -> int:
        return days_named("20 November", FRIDAY, way=way)[0].period.first.year

    assert (year(0), year(1), year(-1)) == (2026, 2027, 2026)


def test_without_a_day_on_which_it_was_said_only_whole_dates_are_read() -> None:
    assert [str(each.period.first) for each in days_named("tomorrow, 4 May, 2026-12-04", None)] == [
        "2026-12-04"
    ]


@pytest.mark.parametrize(
    ("text", "time"), [("at 9:00", "09:00"), ("à 9h30", "09:30"), ("at 3 pm", "15:00"), ("1:1", "")]
)
def test_a_time_of_day_in_figures_is_read(text: str, time: str) -> None:
    assert time_named(text) == time


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("what are my open tasks?", "tasks"),
        ("What do I have to do", "tasks"),
        ("ok, what do I have to do this week?", "tasks"),
        ("what's coming?", "coming"),
        ("What is coming up next week", "coming"),
        ("What happened today", "day"),
        ("what happened on Monday?", "day"),
        ("What did I say yesterday?", "day"),
        ("Was muss ich heute noch tun?", "tasks"),
        ("was steht nächste Woche an", "coming"),
        ("Was ist heute passiert?", "day"),
        ("¿Qué tengo que hacer hoy?", "tasks"),
        ("¿Qué pasó ayer?", "day"),
        ("Qu'est-ce que je dois faire ?", "tasks"),
        ("Qu'est-ce qui s'est passé hier ?", "day"),
        ("cosa devo fare oggi", "tasks"),
        ("Cosa è successo oggi?", "day"),
    ],
)
def test_a_question_for_a_list_is_known_in_each_language(text: str, kind: str) -> None:
    found = list_question(text, FRIDAY)
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize("row", (Path(__file__).parent / "asked.tsv").read_text().splitlines())
def test_people_ask_for_a_list_in_many_ways(row: str) -> None:
    kind, text = row.split("\t")
    found = list_question(text, date(2026, 11, 29))
    assert (found.kind if found is not None else "-") == kind


@pytest.mark.parametrize(
    ("text", "kind", "days"),
    [
        ("what do I have to do in the next 7 days?", "tasks", (0, 7)),
        ("what's coming in the next two weeks?", "coming", (0, 14)),
        ("what is coming up in the coming days?", "coming", (0, 7)),
        ("what's coming in the next few weeks", "coming", (0, 21)),
        ("what did I say in the last 3 days?", "day", (-3, 0)),
        ("what happened over the last 3 days", "day", (-3, 0)),
        ("what did I say in the past two months?", "day", (-61, 0)),
        ("was steht in den nächsten 7 Tagen an?", "coming", (0, 7)),
        ("was ist in den letzten Tagen passiert?", "day", (-7, 0)),
        ("que dois-je faire dans les 5 prochains jours ?", "tasks", (0, 5)),
        ("qu'est-ce qui s'est passé ces derniers jours ?", "day", (-7, 0)),
        ("¿qué tengo que hacer en los próximos tres días?", "tasks", (0, 3)),
        ("cosa è successo negli ultimi 3 giorni?", "day", (-3, 0)),
        ("cosa devo fare nelle prossime due settimane?", "tasks", (0, 14)),
    ],
)
def test_a_list_may_be_asked_for_so_many_days_from_or_up_to_today(
    text: str, kind: str, days: tuple[int, int]
) -> None:
    found = list_question(text, FRIDAY)
    assert found is not None
    first, last = days_of(found.period, FRIDAY)
    assert (found.kind, (first - FRIDAY).days, (last - FRIDAY).days) == (kind, *days)


@pytest.mark.parametrize(
    "text",
    [
        "What happened today was awful",
        "What happened in the last 3 days was awful",
        "In the next 3 weeks I will be in Rome.",
        "What's coming is worse",
        "Was heute passiert ist, war schlimm",
        "Lo que pasó hoy fue horrible",
        "what did I say about the rent yesterday?",
        "What's next for the kestrel project?",
        "What do I have to do to get a visa?",
        "what happened to my car?",
        "The open tasks are a mess.",
    ],
)
def test_a_sentence_with_the_same_words_is_no_such_question(text: str) -> None:
    assert list_question(text, FRIDAY) is None


def test_what_happened_as_the_subject_of_a_statement_is_kept_as_said() -> None:
    assert read_message("What happened today was awful").kind == "statement"
    assert read_message("what happened to my car").kind == "question"


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("Nachtdienst vom 5. bis 8. Dezember", "2026-12-05", "2026-12-08"),
        ("Nachtdienst vom 5.12. bis 8.12.", "2026-12-05", "2026-12-08"),
        ("Conference 30 November to 2 December", "2026-11-30", "2026-12-02"),
        ("5-8 December: Rome", "2026-12-05", "2026-12-08"),
        ("Rome, December 5\u20138", "2026-12-05", "2026-12-08"),
        ("in Rome Monday through Wednesday", "2026-11-30", "2026-12-02"),
        ("2026-12-05 to 2026-12-08", "2026-12-05", "2026-12-08"),
        ("de vacaciones del 5 al 8 de diciembre", "2026-12-05", "2026-12-08"),
        ("en congé du 5 au 8 décembre", "2026-12-05", "2026-12-08"),
        ("in ferie dal 5 all'8 dicembre", "2026-12-05", "2026-12-08"),
        ("28. Dezember bis 3. Januar", "2026-12-28", "2027-01-03"),
        ("The parent evening moved from 8 to 10 December", "2026-12-10", "2026-12-10"),
        ("open from 9 to 5 December", "2026-12-05", "2026-12-05"),
        ("December 5 to 8:30", "2026-12-05", "2026-12-05"),
        ("call 555-08 on 5 December", "2026-12-05", "2026-12-05"),
    ],
)
def test_days_from_one_to_another_are_one_span(text: str, first: str, last: str) -> None:
    (found,) = days_named(text, date(2026, 11, 29), way=1)
    assert (str(found.period.first), str(found.period.last)) == (first, last)
