"""The same thing: whether two lines are about it, and which of them tells what holds.

Two lines are about the same thing if all that names and qualifies it is the same and only the value
differs: Mainz is no Trier, the blue team isn't the red one, my dentist isn't my sister's. This is
decided by the words in common and by where the others stand, with sets of words for each language
(its ``[frames]``) and no grammar:

- ``changed``: words that say that something is otherwise now; ``since``: words before its begin,
  with ``seasons``; ``added``: words by which a line adds to another; ``exception``: words that
  limit it to a time; ``correcting``: words before a correction;
- ``exchanged``: phrases by which one thing is given up for another: *moved from .. to*;
  ``ended``: verbs by which somebody gives something up;
- ``moving`` (of ``living``), ``joining`` (of ``working``), ``delaying``: verbs after which
  something is elsewhere, somebody has another job, a time is another one; ``happened``: other verbs
  of events, and ``lasting``: words that look like them;
- ``places``, ``purposes``: prepositions of a place, and of what qualifies a thing; ``being``: verbs
  between a thing and its value;
- ``sharing``: verbs whose object may be one of many; ``several``: what one may have several of;
- ``theirs``, ``definite``, ``indefinite``: possessives of others, articles of what is known and of
  one of many; ``speaking``: how speakers begin, *we*, and verbs that need no *I*; ``addressed``:
  words to whom one talks with, who is told nothing to be kept.

In doubt two lines are no pair.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kbtui.memory.comparing.line import (
    YEAR,
    ComparedLine,
    is_word,
    names_of,
    read_line,
    statement_of,
)
from kbtui.memory.comparing.pair import Pair
from kbtui.memory.comparing.sentences import form_among
from kbtui.memory.comparing.values import titles
from kbtui.offline.frames import (
    ALMOST,
    BOUND,
    CONDITION,
    DOUBT,
    DROPPED,
    FICTION,
    IRONY,
    LIMITED,
    PAST,
    QUOTED,
    SAYS,
    WISH,
    relations_of,
    spoken_in,
)
from kbtui.offline.language import begins, folded, language_of, of_all, tokens
from kbtui.offline.message import asks

MAX_LENGTH = 300
"""Characters of a line that is compared."""
_UNREAL = frozenset({CONDITION, DROPPED, ALMOST, FICTION, IRONY, QUOTED, DOUBT, SAYS})
_NOT_NEWER = _UNREAL | {PAST, BOUND}
_MARKUP = re.compile(r"^!|\*\*|__|`|\||://|:\s*$")
_OWNER = re.compile(r"\w+(?=['\u2019]s\b|s['\u2019](?!\w))")
_TITLED = re.compile(r"(\w+) (?=[^\W\d_a-z])")
_CLAUSE = re.compile(r"[,;]\s+|\s+[\u2013\u2014]\s+")
_MIN_CLAUSE = 4  # words


def is_newer(line: str, of: str) -> bool:
    """Return whether a line, said later than another one, says what holds instead of it."""
    if max(len(line), len(of)) > MAX_LENGTH or asks(line) or asks(of):
        return False
    return _is_newer(line, of)


@lru_cache(maxsize=4_096)
def _is_newer(line: str, of: str) -> bool:
    codes = tuple(each.code for each in spoken_in(of, line))
    language = language_of(of, line)
    names = names_of(codes, statement_of(of), statement_of(line))
    old, new = (read_line(each, language, codes, names) for each in (of, line))
    if not old.items or not new.items or not may_be_newer(new, old):
        return False
    if Pair(old, new).is_newer:
        return True
    clauses = [read_line(each, language, codes, names) for each in _later_clauses(line)]
    return any(
        each.items and each.is_changed and may_be_newer(each, old) and Pair(old, each).is_newer
        for each in clauses
    )


def _later_clauses(text: str) -> list[str]:
    """Return the clauses behind the first: *Mr. Kovacs sold it*, *my landlord is now Mrs. Lind*."""
    return [each.strip() for each in _CLAUSE.split(text)[1:] if len(tokens(each)) >= _MIN_CLAUSE]


@lru_cache(maxsize=4_096)
def may_tell(text: str) -> bool:
    """Return whether a line may be a half of a pair: it states something, as far as it alone tells.

    It costs a part of what a comparison does.
    """
    if len(text) > MAX_LENGTH or asks(text):
        return False
    codes = tuple(each.code for each in spoken_in(text))
    line = read_line(text, language_of(text), codes, frozenset())
    return bool(line.items) and _is_statement(line) and not line.frames & _UNREAL


_FRAMED = 4  # as much as two words of the question


def standing(question: str, line: str) -> float:
    """Return how well a line stands as an answer to a question, apart from when it was said.

    Less is better. What tells it apart from others counts: the words of the question that it has,
    whose it is, and whether it says what holds.
    """
    codes = tuple(each.code for each in spoken_in(question, line))
    language = language_of(question, line)
    asked, told = (read_line(each, language, codes, frozenset()) for each in (question, line))
    stems = {each.key for each in told.items}
    known = sum(1 for each in asked.items if form_among(each.key, stems))
    is_event = told.happened and not any(map(told.has, ("moving", "joining", "delaying")))
    is_framed = bool(told.frames & _NOT_NEWER) or (is_event and not asked.happened)
    years = {*YEAR.findall(told.text)} - {*YEAR.findall(asked.text)}
    others = owners(told) - owners(asked)
    return _FRAMED * (is_framed or bool(years)) + len(others) - 2.0 * known


def owners(line: ComparedLine) -> frozenset[str]:
    """Return whose a line says that something is: my sister's, the landlord's."""
    marked = (found[0] for found in _OWNER.finditer(line.text))
    before = {folded(found[1]) for found in _TITLED.finditer(line.text)} & titles()
    return frozenset({*map(folded, marked), *relations_of(line.text)}) - before  # Frau Ebel


def about_the_same(one: str, other: str) -> bool:
    """Return whether two lines are about the same thing, whichever was said later."""
    return is_newer(one, other) or is_newer(other, one)


def may_be_newer(new: ComparedLine, old: ComparedLine) -> bool:
    """Return whether a line states what holds now, and without limit, of what another states."""
    if not (_is_statement(new) and _is_statement(old)):
        return False
    if (
        new.frames & _NOT_NEWER
        or old.frames & _UNREAL
        or {WISH, LIMITED} & (new.frames - old.frames)
    ):
        return False
    if new.has("added") or (new.has("exception") and not _same_phrases(new, old, "exception")):
        return False
    if new.is_limited and not old.is_limited:
        return False
    years = {*YEAR.findall(new.text)} - {*YEAR.findall(old.text)}
    return not years and _same_owners(new, old)


def _is_statement(line: ComparedLine) -> bool:
    """Return whether a line tells something, to nobody in particular and in plain text."""
    is_called_out = line.text.endswith("!") and not line.is_changed
    is_told = not (is_called_out or line.has("addressed") or _is_question(line))
    return is_told and not _MARKUP.search(line.text)


def _is_question(line: ComparedLine) -> bool:
    """Return whether a line begins like a question, or tells of what was named before it."""
    first = line.items[0].before
    is_pronoun = any(
        is_word(each, "others", line.codes) and not is_word(each, "definite", line.codes)
        for each in first
    )
    return is_pronoun or begins(line.text, of_all("question")) is not None


def _same_phrases(new: ComparedLine, old: ComparedLine, name: str) -> bool:
    own, theirs = (
        {each.plain[start:end].lower() for start, end in each.places(name)} for each in (new, old)
    )
    return own <= theirs


def _same_owners(new: ComparedLine, old: ComparedLine) -> bool:
    return new.has("theirs") == old.has("theirs") or not (new.has("own") or old.has("own"))
