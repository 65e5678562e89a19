"""Chats of people are read by the month, however long they are."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from kbtui.importers.messengers import ChatLine, by_month

if TYPE_CHECKING:
    from collections.abc import Iterator


def _line(text: str, time: datetime | None) -> ChatLine:
    return ChatLine("Ann", text, time)


def _at(month: int, day: int = 15) -> datetime:
    return datetime(2026, month, day, 12, tzinfo=UTC)


def test_no_more_than_three_months_are_held() -> None:
    read: list[int] = []

    def lines() -> Iterator[ChatLine]:
        for month in range(1, 13):
            read.append(month)
            yield _line(f"In {month}", _at(month))

    held = [len(read) - number for number, _ in enumerate(by_month("c", "Ann", lines()))]
    assert max(held) == 3
    assert len(held) == 12


def test_every_line_is_in_its_month_once_whatever_their_order() -> None:
    times = [_at(1), None, _at(2), _at(1, 30), _at(4), _at(5), _at(2), _at(7), _at(2), _at(1)]
    lines = [_line(f"{number}", time) for number, time in enumerate(times)]
    found = [*by_month("c", "Ann", lines)]
    assert len({each.id for each in found}) == len(found)
    assert [each.title for each in found] == [
        *(
            "Ann, 2026-01",
            "Ann, 2026-02",
            "Ann, 2026-04",
            "Ann, 2026-01 (more)",
            "Ann, 2026-02 (more)",
        ),
        *("Ann, 2026-05", "Ann, 2026-07"),
    ]
    said = Counter(message.text for each in found for message in each.messages)
    assert said == Counter(f"Ann: {number}" for number in range(len(times)))
    for each in found:
        months = {message.time.month for message in each.messages if message.time}
        assert f"2026-{months.pop():02}" in each.title
        assert not months


def test_a_chat_of_the_newest_first_is_split_as_one_of_the_oldest_first() -> None:
    lines = [_line(f"{n}", _at(1) + timedelta(days=20 * n)) for n in range(12)]
    oldest, newest = (
        {each.id: Counter(one.text for one in each.messages) for each in by_month("c", "A", some)}
        for some in (lines, lines[::-1])
    )
    assert oldest == newest


def test_what_has_no_time_anywhere_is_one_conversation() -> None:
    (found,) = by_month("c", "Ann", [_line("a", None), _line("b", None)])
    assert (found.id, found.title) == ("c", "Ann")
