from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, strategies as st

from kbtui.search.query.parser import Condition, days, parse
from kbtui.search.results import QUERY_LANGUAGE


def test_filters_phrases_and_exclusions_are_told_from_words() -> None:
    asked = parse('type:decision tag:auth "exact phrase" -draft updated:2026 session store archi*')
    assert asked.conditions == (
        Condition("type", "decision"),
        Condition("tag", "auth"),
        Condition("updated", "2026"),
    )
    assert asked.phrases == ("exact phrase",)
    assert asked.excluded == ("draft",)
    assert asked.words == ("session", "store")
    assert asked.beginnings == ("archi",)
    assert asked.text == "exact phrase session store archi"


FORMS = [form for row, _ in QUERY_LANGUAGE[1:] for form in row.split("  ")]


@pytest.mark.parametrize("form", FORMS)
def test_what_the_help_says_that_a_query_may_hold_is_more_than_words(form: str) -> None:
    assert not parse(form).words


@pytest.mark.parametrize("text", ["-tag:old", "NOT tag:old"])
def test_a_filter_can_be_turned_around(text: str) -> None:
    assert parse(text).conditions == (Condition("tag", "old", negated=True),)


def test_a_hash_before_a_word_asks_for_a_tag() -> None:
    assert parse("#area/work").conditions == (Condition("tag", "area/work"),)
    assert parse("#1").conditions == ()


@pytest.mark.parametrize("text", ["http://example.com", "note: this", "updated:soon", "a:b:c", ":"])
def test_what_only_looks_like_a_filter_is_words(text: str) -> None:
    asked = parse(text)
    assert not asked.conditions
    assert asked.words


@pytest.mark.parametrize("text", ["", "   ", '"', '""', "-", "*", "AND OR", 'type: ""'])
def test_a_query_without_anything_to_look_for_is_empty_or_harmless(text: str) -> None:
    asked = parse(text)
    assert not asked.terms()


def test_very_common_words_count_only_if_there_are_no_others() -> None:
    assert list(parse("what is the plan for auth").terms()) == ["plan", "auth"]
    assert list(parse("to be or not to be").terms()) == ["to", "be", "or", "not"]


def test_a_pasted_document_is_a_query_of_bounded_size() -> None:
    assert len(parse(" ".join(f"word{i}" for i in range(50_000))).terms()) <= 256


@given(st.text(max_size=300))
def test_any_text_is_a_query(text: str) -> None:
    asked = parse(text)
    assert isinstance(asked.text, str)
    assert asked.terms() is not None


@pytest.mark.parametrize(
    ("value", "inside", "outside"),
    [
        ("2026", ["2026-01-01", "2026-12-31", "2026"], ["2025-12-31", "2027-01-01"]),
        ("2026-03", ["2026-03-01", "2026-03-31"], ["2026-02-28", "2026-04-01"]),
        ("2026-3", ["2026-03-31"], ["2026-02-28"]),
        (">2026-03", ["2026-04-01", "2027"], ["2026-03-31", "2026-03"]),
        (">=2026-03", ["2026-03-01"], ["2026-02-28"]),
        ("<2026", ["2025-12-31", "2025"], ["2026-01-01", "2026"]),
        ("<2026-10", ["2026-09-30"], ["2026-10-01", "2026-10"]),
        ("<=2026-10", ["2026-10-31"], ["2026-11-01"]),
        ("2026-01..2026-03", ["2026-01-01", "2026-03-31"], ["2025-12-31", "2026-04-01"]),
        ("..2026-03", ["1999-01-01"], ["2026-04-01"]),
        ("week", ["2026-11-21", "2026-11-14"], ["2026-11-13"]),
        ("yesterday", ["2026-11-20"], ["2026-11-19"]),
    ],
)
def test_a_date_filter_names_a_span_of_days(
    value: str, inside: list[str], outside: list[str]
) -> None:
    span = days(value, today=date(2026, 11, 21))
    assert span is not None
    since, until = span
    assert all(since <= day <= until for day in inside)
    assert not any(since <= day <= until for day in outside)


@pytest.mark.parametrize("value", ["soon", "2026-13-1x", "", "26"])
def test_what_names_no_days_is_no_date_filter(value: str) -> None:
    assert days(value) is None


def test_a_question_demands_no_phrase() -> None:
    assert parse('Who read "the web"?').required_phrases == ()
    assert parse('read "the web"').required_phrases == ("the web",)
    assert parse("他读了 “书名” 吗\N{FULLWIDTH QUESTION MARK}").required_phrases == ()


@pytest.mark.parametrize("text", ['"lost encryption password', 'lost "encryption password'])
def test_what_follows_a_quotation_mark_that_nobody_closed_is_words(text: str) -> None:
    asked = parse(text)
    assert asked.words == tuple(text.replace('"', "").split())
    assert not asked.phrases


def test_a_lonely_quotation_mark_asks_nothing() -> None:
    assert not parse('"').has_words
    assert parse('sync "').words == ("sync",)


def test_after_and_before_are_days_of_the_last_change() -> None:
    week = days("week")
    assert week is not None
    found = parse("after:2026-03 before:week folder:projects after:lunch")
    assert found.conditions == (
        Condition("updated", ">=2026-03"),
        Condition("updated", f"<{week[0]}"),
        Condition("path", "projects"),
    )
    assert found.words == ("after:lunch",)
