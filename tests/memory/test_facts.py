"""When two facts say the same, and which statements a document makes."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from kbtui.knowledge.format.facts import normalise, plain_fact, statements


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Favorite color: blue", "The user's favourite colour is blue."),
        ("Favorite color: blue", "- **Favorite color**: Blue"),
        ("I like tea", "User likes tea."),
        ("Alice owns the dashboards", "alice owns dashboard"),
        ("Doesn't eat meat", "does not eat meat"),
        ("Can\N{RIGHT SINGLE QUOTATION MARK}t swim", "cannot swim".replace("cannot", "can not")),
        ("Lives in Zürich", "lives in ZURICH"),
        ("I've two cats", "The user has two cats"),
    ],
)
def test_the_same_in_other_words(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Likes tea", "Does not like tea"),
        ("Likes tea", "Doesn't like tea"),
        ("Alice reports to Bob", "Bob reports to Alice"),
        ("Knows C", "Knows C++"),
        ("Knows C", "Knows C#"),
        ("Port 5432", "Port 5433"),
        ("Uses 1.5 litres", "Uses 15 litres"),
        ("It was -5 degrees", "It was 5 degrees"),
        ("Is a teacher", "Was a teacher"),
        ("He likes tea", "She likes tea"),
        ("Discount of 5%", "Discount of 5"),
        ("喜欢蓝色", "喜欢红色"),
        ("किताब", "कताब"),
        ("Mood: 👍", "Mood: 👎"),
        ("Meets at 10:00", "Meets at 1:00"),
        ("Due 2026-11-21", "Due 2026-11-22"),
    ],
)
def test_what_differs_stays_different(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@example("\N{MATHEMATICAL BOLD CAPITAL A}")
@given(st.text(max_size=80))
def test_normalising_again_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(st.text("abcdefsxy 0123'#", max_size=40).filter(str.strip))
def test_case_and_closing_marks_change_nothing(text: str) -> None:
    assert normalise(f"  {text.upper()} .\n") in (normalise(text), f"{normalise(text)} .".strip())


@pytest.mark.parametrize("text", ["I am", "the", "it is that", "?!", ""])
def test_words_that_say_nothing_alone(text: str) -> None:
    assert normalise(text) == normalise(text.upper())
    assert bool(normalise(text)) == bool(text)


def test_a_fact_is_one_line_without_its_bullet() -> None:
    assert plain_fact("  * [x] Likes\n tea\x1b ") == "Likes tea"
    assert plain_fact("2026 was good") == "2026 was good"
    assert plain_fact("1. first") == "first"


def test_statements_are_bullets_prose_and_the_summary() -> None:
    text = """---
type: person
summary: Leads the dashboard team.
tags: [a]
---
# Alice

## Role

Leads the dashboard team.
- Lives in Bonn
- Lives in Bonn

---
```
code = 1
```
~~~
more
~~~
1. Plays the cello
"""
    assert statements(text) == ["Leads the dashboard team.", "Lives in Bonn", "Plays the cello"]


@given(st.text(max_size=200))
def test_any_text_has_statements_without_harm(text: str) -> None:
    for statement in statements(text):
        assert "\n" not in statement
        assert normalise(statement)
