"""Said again: whether a line says nothing that known lines don't say.

What decides is the newest line about the same: it has all content words and numbers of the line,
denies the same, is framed the same, and says it of the same. A, B, and A again is news. What the
user wishes of the assistant's answers is the same in whatever words it is wished.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbtui.memory.comparing.figures import figures_and_dates
from kbtui.memory.comparing.sentences import Sentence, beyond_small_talk
from kbtui.memory.comparing.turned import names_in, swaps_sides
from kbtui.offline.frames import MILD, holds_frame, without_listed
from kbtui.offline.language import significant_terms

_ABOUT_THE_SAME = 0.6  # share of a line's content words
_MIN_STEMS = 2
_OF_ANSWERS = ("reply", "talking", "address", "wishing", "speaker", "own", "plain")


def is_known(statement: str, known: Sequence[str]) -> bool:
    """Return whether a statement says nothing new; `known` lines are oldest first."""
    if wished := _wished(statement):
        return any(wished == _wished(each) for each in known)
    line = Sentence.of(statement)
    rest = beyond_small_talk(statement)
    told = line.stems & {
        *significant_terms(" ".join([statement[each.start : each.end] for each in rest]))
    }
    if len(told) < _MIN_STEMS:
        return False
    for each in reversed(known):
        other = Sentence.of(each)
        if len(told & other.stems) >= _ABOUT_THE_SAME * len(told):
            return told <= other.stems and _says(other, line)
    return False


def _says(known: Sentence, line: Sentence) -> bool:
    """Return whether a known sentence says the same of the same as a line of these words."""
    return (
        _has_numbers(known.text, line.text)
        and line.denies == known.denies
        and line.frames - MILD == known.frames - MILD
        and not swaps_sides(known, line, names_in(known.text, line.text))
    )


def _has_numbers(known: str, line: str) -> bool:
    """Return whether a text has each number and date of a line, one that stands there twice too."""
    rest = _numbers(known)
    for each in _numbers(line):
        same = next((other for other in rest if each & other), None)
        if same is None:
            return False
        rest.remove(same)
    return True


def _numbers(text: str) -> list[frozenset[str]]:
    """Return the numbers and dates of a text, each with all that it may mean."""
    figures, dates = figures_and_dates(text)
    named = [frozenset(map(str, date.readings)) for date in dates]
    return [*(frozenset(each.readings) for each in figures), *named]


def _wished(text: str) -> frozenset[str]:
    """Return what the user wishes of answers, such as their language; nothing if it is no wish."""
    is_wish = holds_frame(text, "reply") or (
        holds_frame(text, "talking") and holds_frame(text, "address")
    )
    if not is_wish or Sentence.of(text).denies:
        return frozenset()
    for name in _OF_ANSWERS:
        text = without_listed(text, name)
    return frozenset(significant_terms(text)).union(*_numbers(text))
