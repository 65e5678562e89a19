"""Slices are safe, pages hold everything, and nothing is cut away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kbtui.models.port import ToolCall, estimate_tokens
from kbtui.sessions.slices import Unit, pages, split_text, split_units
from kbtui.sessions.store import SessionMessage

START = datetime(2026, 3, 6, 10, tzinfo=UTC)


def _conversation(script: str) -> list[SessionMessage]:
    """``u`` user, ``a`` assistant, ``c`` assistant that calls, ``r`` result; ids of calls repeat."""
    messages: list[SessionMessage] = []
    open_calls = 0
    for number, sort in enumerate(script, 1):
        role = {"u": "user", "a": "assistant", "c": "assistant", "r": "tool"}[sort]
        calls = (ToolCall(f"call_{open_calls + 1}", "grep", "{}"),) if sort == "c" else ()
        answers = f"call_{open_calls}" if sort == "r" else None
        open_calls += {"c": 1, "r": -1}.get(sort, 0)
        open_calls = max(0, open_calls)
        time = START + timedelta(minutes=number)
        messages.append(
            SessionMessage(number, time, role, f"said {number}", calls, answers)  # type: ignore[arg-type]
        )
    return messages


def _cost(unit: Unit) -> int:
    return 10 * len(unit.messages)


def _ends(units: list[Unit]) -> list[int]:
    return [unit.last for unit in units]


def test_a_call_and_its_result_are_one_unit() -> None:
    assert _ends(split_units(_conversation("uacrau"))) == [1, 2, 4, 5, 6]


def test_parallel_calls_stay_with_all_their_results() -> None:
    messages = _conversation("u")
    calls = (ToolCall("a", "x", "{}"), ToolCall("b", "x", "{}"))
    for role, made, answers in (
        ("assistant", calls, None),
        ("tool", (), "b"),
        ("tool", (), "a"),
        ("assistant", (), None),
    ):
        number = len(messages) + 1
        messages.append(SessionMessage(number, START, role, "x", made, answers))  # type: ignore[arg-type]
    assert _ends(split_units(messages)) == [1, 4, 5]


def test_a_call_without_result_waits_unless_the_session_is_closed() -> None:
    messages = _conversation("uauc")
    assert [unit.open for unit in split_units(messages)] == [False, False, False, True]
    assert not any(unit.open for unit in split_units(messages, closed=True))
    # One that was broken off in an earlier turn waits for nothing.
    assert not any(unit.open for unit in split_units(_conversation("ucua")))


def test_pages_hold_every_unit_once_and_break_at_turns() -> None:
    units = split_units(_conversation("ucrcra" * 6))
    cut = pages(units, 100, _cost)
    assert [unit for page in cut for unit in page] == units
    assert all(sum(map(_cost, page)) <= 100 for page in cut)
    assert all(page[0].starts_turn for page in cut)


def test_a_unit_longer_than_a_page_has_one_of_its_own() -> None:
    units = split_units(_conversation("u" + "crcrcr" + "a"))
    big = Unit(tuple(_conversation("ucrcrcrcrcrcr")), starts_turn=True)
    cut = pages([units[0], big, units[-1]], 50, _cost)
    assert [len(page) for page in cut] == [1, 1, 1]


def test_private_and_other_units_never_share_a_page() -> None:
    units = split_units(_conversation("uauaua"))
    cut = pages(units, 1000, _cost, lambda unit: unit.first in (3, 4))
    assert [[unit.first for unit in page] for page in cut] == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(
    "text",
    ["word " * 5000, "line of text\n" * 800, "x" * 20_000, "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 9000],
)
def test_a_long_text_is_paged_and_nothing_is_lost(text: str) -> None:
    parts = split_text(text, 500, estimate_tokens)
    assert "".join(parts) == text
    assert all(estimate_tokens(part) <= 1000 for part in parts)
    assert len(parts) > 1
