"""Questions that a list answers: open tasks, what is coming, what was said on a day.

Such a question is a phrase of a language's ``asks_...`` lists, with at most a time besides: *What
do I have to do this week?* Anything else about the same words isn't one.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache
from typing import Literal, NamedTuple, get_args

from kbtui.offline.dated import NamedDay, days_named
from kbtui.offline.language import (
    Phrases,
    Token,
    begins,
    language_of,
    languages,
    of_all,
    tokens,
    unmatched,
)
from kbtui.offline.times import Period, spans_in

Asked = Literal["tasks", "coming", "day"]
_KINDS: tuple[Asked, ...] = get_args(Asked)
# What asks for what is coming where a day is named: *what do I have on Friday?*
_ASKED: tuple[Asked | Literal["then"], ...] = (*_KINDS, "then")
_MAX_WORDS = 16
_SOME_DAY = date(2000, 12, 31)  # which days a text names doesn't matter, only where
_MAX_REST = 2  # words that say nothing, before the question and behind it


class ListQuestion(NamedTuple):
    """What is asked for, and for which days, if that is said."""

    kind: Asked
    period: Period | None = None


def list_question(text: str, today: date) -> ListQuestion | None:
    """Return which list a message asks for; None if it asks for none, or says something."""
    found = tokens(text)
    if not found or len(found) > _MAX_WORDS or not _may_ask(frozenset([w.word for w in found])):
        return None
    is_past = _asked_beside(text, _days_asked(text, today, way=1)) == "day"
    times = _days_asked(text, today, way=-1 if is_past else 1)
    kind = _asked_beside(text, times) or _kind(text)
    if kind is None or len(times) > 1:
        return None
    period = times[0].period if times else None
    if kind == "then":
        is_ahead = period is not None and period.last >= today
        return ListQuestion("coming", period) if is_ahead else None
    return ListQuestion(kind, period) if kind != "day" or period is not None else None


def _days_asked(text: str, today: date, way: int) -> list[NamedDay]:
    """Return the days that a question names, and the spans from or to today."""
    spans = [NamedDay(*each) for each in spans_in(text, today)]
    days = days_named(text, today, way=way)
    return sorted([*spans, *[day for day in days if not any(_is_in(day, each) for each in spans)]])


def _is_in(one: NamedDay, other: NamedDay) -> bool:
    return one.start >= other.start and one.end <= other.end


def _asked_beside(text: str, times: list[NamedDay]) -> Asked | Literal["then"] | None:
    """Return what a text asks for beside its times, also without the word before those: *on*."""
    return _kind(_without(text, times)) or _kind(_without(text, times, of_all("on")))


def _may_ask(words: frozenset[str]) -> bool:
    """Return whether a text has all words of some question, wherever they stand."""
    return bool([each for each in _wordings() if each <= words])


@cache
def _wordings() -> list[frozenset[str]]:
    """Return the words of each question, in all languages."""
    names = [f"asks_{kind}" for kind in _ASKED]
    return [
        frozenset(phrase.replace(":", "").split())
        for language in languages()
        for name in names
        for phrase in language.lists[name]
        if phrase
    ]


def tells_of_a_list(text: str) -> bool:
    """Return whether a text begins like such a question and goes on as a statement."""
    rest = without_days(text)
    for kind in _KINDS:
        after = begins(rest, of_all(f"asks_{kind}"))
        if after and begins(after, of_all("asserts")) is not None:
            return True
    return False


def without_days(text: str, before: Phrases | None = None) -> str:
    """Return a text without the days that it names, and a phrase of `before` in front of each."""
    return _without(text, _days_asked(text, _SOME_DAY, way=1), before)


def _without(text: str, times: list[NamedDay], before: Phrases | None = None) -> str:
    """Return a text without its times, and without a phrase of `before` in front of each."""
    for each in reversed(times):
        lead = text[: each.start]
        words = tokens(lead)
        if before is not None and words and before.match(lead, words, len(words) - 1):
            lead = lead[: words[-1].start]
        text = f"{lead} {text[each.end :]}"
    return " ".join(text.split())


def _kind(text: str) -> Asked | Literal["then"] | None:
    """Return what a text without its time asks for, also without words that it may go without."""
    found = tokens(text)
    within = of_all("within")
    needed = [word.word for word in found if not within.match(text, [word])]
    return _kind_of(text) or (_kind_of(" ".join(needed)) if len(needed) < len(found) else None)


def _kind_of(text: str) -> Asked | Literal["then"] | None:
    found = tokens(text)
    for at in range(min(_MAX_REST + 1, len(found))):
        if not _says_nothing(found[:at], text):
            break
        for kind in _ASKED:
            count = of_all(f"asks_{kind}").match(text, found, at)
            if count and _says_nothing(found[at + count :], text):
                return kind
    return None


def _says_nothing(words: list[Token], text: str) -> bool:
    """Return whether words around a question are small talk or say nothing: “please”, “for”."""
    language = language_of(text)
    silent = language.stop_words - language.words["asserts"]
    small = (*(of_all(name) for name in ("talk", "greeting", "thanks")),)
    is_talk = not any(unmatched(" ".join(word.word for word in words), small))
    return is_talk or (len(words) <= _MAX_REST and all(word.word in silent for word in words))


def days_of(period: Period | None, today: date) -> tuple[date, date]:
    """Return the first and last day that a question is about; without a time, today."""
    if period is None:
        return today, today
    if period.unit == "week" and period.first == period.last:
        monday = period.first - timedelta(days=period.first.weekday())
        return monday, monday + timedelta(days=6)
    return period.first, period.last
