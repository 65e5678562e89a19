"""Short corrections: *no, the meeting is on Friday*, *it's five, not four*.

Whoever corrects what was just said names only as much of it as is needed. So unlike a line that
says by itself what holds (`same_thing`), a correction may leave out words of the line that it
corrects; it is of the last line that has all of its own. That it is one is said: by a word in front
of it (``correcting`` of each language's ``[frames]``), or by the value that doesn't hold
(``instead``).
"""

from __future__ import annotations

import re
from functools import lru_cache

from kbtui.memory.comparing.line import (
    ComparedLine,
    Item,
    is_word,
    names_of,
    read_line,
    statement_of,
)
from kbtui.memory.comparing.pair import Pair
from kbtui.memory.comparing.same_thing import MAX_LENGTH, may_be_newer, owners
from kbtui.offline.frames import found_in, spoken_in
from kbtui.offline.language import begins, language_of, of_all, tokens
from kbtui.offline.message import asks

_MAX_WORDS = 16
_MAX_BETWEEN = 1  # words between *not* and the value that doesn't hold
_WORDS = ("word", "name")
_MARKS = " ,:;.!-\u2013\u2014"
_CLAUSE = re.compile(r"[,;]\s+(?=\w+\s+\D)|\s+[\u2013\u2014]\s+")


def corrects(line: str, of: str) -> bool:
    """Return whether a line, said soon after another one, may correct a value of it.

    Others may be meant as well; of all that it corrects, the last is.
    """
    if max(len(line), len(of)) > MAX_LENGTH or asks(line) or asks(of):
        return False
    return len(tokens(line)) <= _MAX_WORDS and _corrects(line, of)


@lru_cache(maxsize=4_096)
def _corrects(line: str, of: str) -> bool:
    codes = tuple(each.code for each in spoken_in(of, line))
    said = statement_of(line)
    bare = _without_lead(said, codes)
    if bare == said and not found_in(said, "instead", codes):
        return False
    language = language_of(of, line)
    names = names_of(codes, statement_of(of), bare)
    old, new, core = (
        read_line(each, language, codes, names) for each in (of, bare, _core(bare, codes))
    )
    dropped = _denied_values(new)
    if not old.items or not (new if dropped else core).items:
        return False
    if dropped:
        return _replaces(Pair(old, new), dropped)
    return bare != said and _is_other_value(Pair(old, core))


def _is_other_value(pair: Pair) -> bool:
    """Return whether the new line has no words but the old one's, and another value of a kind."""
    old, new = pair.old, pair.new
    if not _has_words_of(pair) or not may_be_newer(new, old):
        return False
    if new.has("own") and owners(old) - owners(new):
        return False  # my birthday, after my sister's
    left = [new.items[n] for n in pair.rest_new]
    if len(left) > 1 and left[0].kind == "number" and not left[0].before:
        return False  # room 15 has 36 seats
    theirs = {old.items[n].kind for n in pair.rest_old}
    return bool(left) and all(each.kind not in _WORDS and each.kind in theirs for each in left)


def _has_words_of(pair: Pair) -> bool:
    return any(each.kind in _WORDS and each.key in pair.forms for each in pair.new.items)


def _without_lead(text: str, codes: tuple[str, ...]) -> str:
    """Return a text without the words by which it begins as a correction, one behind another."""
    while (lead := next(iter(found_in(text, "correcting", codes)), (1, 0)))[0] == 0:
        rest = text[lead[1] :].lstrip()
        if rest[:1].isalnum() and _goes_on(text[: lead[1]], rest, codes):
            break
        rest = rest.lstrip(_MARKS)
        if not rest:
            break
        text = rest
    return text


def _goes_on(lead: str, rest: str, codes: tuple[str, ...]) -> bool:
    """Return whether the sentence goes on behind a word: *no meeting*, *wait for me*."""
    first = tokens(rest)[0].word
    if any(is_word(first, name, codes) for name in ("places", "purposes")):
        return True
    return begins(lead, of_all("deny")) is not None and not _is_led(rest, codes)


def _is_led(text: str, codes: tuple[str, ...]) -> bool:
    return any(start == 0 for start, _ in found_in(text, "correcting", codes))


def _core(text: str, codes: tuple[str, ...]) -> str:
    """Return the first clause of a text, without since when: what is corrected stands there."""
    first = _CLAUSE.split(text)[0]
    ends = [start for start, _ in found_in(first, "since", codes) if start]
    return first[: min(ends, default=len(first))].rstrip()


def _denied_values(line: ComparedLine) -> list[Item]:
    """Return the values that a line says don't hold: *not four*."""
    spans = found_in(line.text, "instead", line.codes)
    return [
        each
        for each in line.items
        if each.kind not in _WORDS
        and any(
            end <= each.start and len(tokens(line.text[end : each.start])) <= _MAX_BETWEEN
            for _, end in spans
        )
    ]


def _replaces(pair: Pair, dropped: list[Item]) -> bool:
    """Return whether the old line has a value that doesn't hold, and the new one another of it."""
    theirs = {(each.kind, each.key) for each in pair.old.items}
    gone = [each for each in dropped if (each.kind, each.key) in theirs]
    come = [each for each in pair.new.items if each not in dropped and each.kind not in _WORDS]
    return _has_words_of(pair) and any(one.kind == other.kind for one in gone for other in come)
