"""The same thing: whether two lines are about it, and which of them tells what holds.

Two lines are about the same thing if all that names and qualifies it is the same and only the value
differs: Mainz is no Trier, the blue team isn't the red one, my dentist isn't my sister's. This is
decided by the words in common and by where the others stand, with sets of words for each language
(its ``[frames]``) and no grammar:

- ``changed``: words that say that something is otherwise now; ``since``: words before its begin,
  with ``seasons``; ``added``: words by which a line adds to another; ``exception``: words that
  limit it to a time; ``correcting``: words before a correction;
- ``moving``, ``joining`` (of ``working``), ``delaying``: verbs after which something is elsewhere,
  somebody has another job, a time is another one; ``happened``: other verbs of events, and
  ``lasting``: words that look like them;
- ``places``, ``purposes``: prepositions of a place, and of what qualifies a thing; ``being``: verbs
  between a thing and its value;
- ``sharing``: verbs whose object may be one of many; ``several``: what one may have several of;
- ``theirs``, ``definite``: possessives of others, and articles of what is known; ``addressed``:
  words to whom one talks with, who is told nothing to be kept.

In doubt two lines are no pair.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal

from kbtui.memory.edits.sentences import Sentence, form_among
from kbtui.memory.edits.turned import names_in
from kbtui.memory.edits.values import titles
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
    blanked,
    found_in,
    frames_of,
    relations_of,
    spoken_in,
)
from kbtui.offline.language import Language, begins, folded, language_of, of_all, tokens
from kbtui.offline.message import asks
from kbtui.offline.times import times_in
from kbtui.search.index import analyser

MAX_LENGTH = 300
"""Characters of a line that is compared."""
_MAX_VALUE = 5  # content words of a value
_MANY = 3  # content words in common that make up for a missing word of change
_MIN_SHARED = 2
_MIN_LETTERS = 4  # of a calendar word without a capital
_UNREAL = frozenset({CONDITION, DROPPED, ALMOST, FICTION, IRONY, QUOTED, DOUBT, SAYS})
_NOT_NEWER = _UNREAL | {PAST, BOUND}
_SOME_DAY = date(2026, 6, 17)  # any, to tell words for the past from others
_STAMPS = re.compile(r" ?\((?:said )?(?:[^\W\d]+ )?\d{4}(?:-\d\d-\d\d(?: \d\d:\d\d)?)?\)")
_NUMBER = re.compile(r"\d+(?:[.,:/'\u2019-]\d+)*")
_ORDINAL = re.compile(r"\d{1,2}(?:st|nd|rd|th|\.(?=\s|$))", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_MARKUP = re.compile(r"^!|\*\*|__|`|\||://|:\s*$")
_LINK = re.compile(r"\[\[(?:[^\]\n]*\|)?([^\]|\n]+)\]\]")
_LEAD = 40  # characters
_AFTER_LEAD = re.compile(r"\s*[,:;.!\u2013\u2014-]+\s*(?=\w)")
_OWNER = re.compile(r"\w+(?=['\u2019]s\b|s['\u2019](?!\w))")
_TITLED = re.compile(r"(\w+) (?=[^\W\d_a-z])")
_LABEL = re.compile(r"^[^:]{2,60}:\s")
_CLAUSE = re.compile(r"[,;]\s+|\s+[\u2013\u2014]\s+")
_MIN_CLAUSE = 4  # words
_APOSTROPHE = re.compile(r"['\u2019]")
_ELIDED = re.compile(r"\w{1,2}['\u2019][a-z\u00e0-\u00ff]")  # J'habite is no name
_SPEAKERS = frozenset({"we", "wir", "on", "nous"})
_CLOCK_WORDS = frozenset({"noon", "midnight", "mittag", "mitternacht", "mediodia", "medianoche"})

_LEADING = ("being", "own", "theirs", "definite", "places", "purposes")

Kind = Literal["word", "name", "number", "weekday", "date", "time"]
_WHEN = ("weekday", "date", "time")


@dataclass(frozen=True, slots=True)
class _Item:
    """A content word or value: what it is compared by, what stands before it, and where it is."""

    key: str
    kind: Kind
    before: tuple[str, ...]
    start: int


@dataclass(frozen=True, eq=False)
class _Line:
    """A line as it is compared with another one.

    Attributes:
        text: Its text, without a leading order and without bracketed dates.
        plain: The same without words of change, and without a clause on since when.
        items: The content words and values of `plain`.
        is_of_speaker: Whether the line begins with the speaker: *I*, *we decided to*.
    """

    text: str
    plain: str
    items: tuple[_Item, ...]
    codes: tuple[str, ...]
    is_changed: bool
    is_of_speaker: bool

    def has(self, name: str) -> bool:
        """Return whether a phrase of a list of frames is in it."""
        return bool(self.places(name))

    def places(self, name: str) -> list[tuple[int, int]]:
        """Return where phrases of a list of frames stand in `plain`."""
        return found_in(self.plain, name, self.codes)

    @cached_property
    def frames(self) -> frozenset[str]:
        return frames_of(self.plain)

    @cached_property
    def denies(self) -> bool:
        return Sentence.of(self.text).denies

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(each.key for each in self.items)

    def is_placed(self, item: _Item) -> bool:
        """Return whether a preposition of a place stands before a word."""
        return any(found_in(each, "places", self.codes) for each in item.before)

    def words_of(self, name: str) -> frozenset[str]:
        """Return the content words that are in a phrase of a list."""
        spans = self.places(name)
        return frozenset(
            each.key
            for each in self.items
            if any(start <= each.start < end for start, end in spans)
        )

    @cached_property
    def happened(self) -> bool:
        """Whether it tells of an event: its verb is none of a state."""
        being = self.places("being")
        lasting = self.places("lasting")
        for start, _ in self.places("happened"):
            if any(first <= start < last for first, last in lasting):
                continue
            before = (other for other in being if other[1] <= start)
            near = max(before, default=None)
            if near is None or len(tokens(self.plain[near[1] : start])) > 1:
                return True
        return any(
            period.last < _SOME_DAY
            for each in times_in(self.text, _SOME_DAY)
            if each.date and _since_before(self.text, each.start, self.codes) is None
            for period in each.periods[:1]
        )


def is_newer(line: str, of: str) -> bool:
    """Return whether a line, said later than another one, says what holds instead of it."""
    if max(len(line), len(of)) > MAX_LENGTH or asks(line) or asks(of):
        return False
    return _is_newer(line, of)


@lru_cache(maxsize=4_096)
def _is_newer(line: str, of: str) -> bool:
    codes = tuple(each.code for each in spoken_in(f"{of}\n{line}"))
    language = language_of(f"{of}\n{line}")
    names = _names_of(codes, statement_of(of), statement_of(line))
    old, new = (_read(each, language, codes, names) for each in (of, line))
    if not old.items or not new.items or not _may_be_newer(new, old):
        return False
    if _Pair(old, new).is_newer:
        return True
    clauses = [_read(each, language, codes, names) for each in _later_clauses(line)]
    return any(
        each.items and each.is_changed and _may_be_newer(each, old) and _Pair(old, each).is_newer
        for each in clauses
    )


def _later_clauses(text: str) -> list[str]:
    """Return the clauses behind the first: *Mr. Kovacs sold it*, *my landlord is now Mrs. Lind*."""
    return [each.strip() for each in _CLAUSE.split(text)[1:] if len(tokens(each)) >= _MIN_CLAUSE]


def _names_of(codes: tuple[str, ...], *texts: str) -> frozenset[str]:
    """Return the words of names in two lines; one that only begins both has a verb after it."""
    named = [each for each in names_in(*texts) if not _ELIDED.match(each)]
    found = frozenset(token.word for each in named for token in tokens(each))
    begun = [tokens(each)[:2] for each in texts]
    if not all(begun) or begun[0][0].word != begun[1][0].word:
        return found
    first = begun[0][0].word
    within = any(token.word == first for each in texts for token in tokens(each)[1:])
    is_subject = all(
        each[1:]
        and text[each[0].end : each[1].start] == " "
        and not _has_particle(text[each[1].start :], codes)
        for text, each in zip(texts, begun, strict=True)
    )
    return found if within or is_subject else found - {first}


def _has_particle(text: str, codes: tuple[str, ...]) -> bool:
    """Return whether a text begins with *to*, *for* or *in*, and not with a verb such as *a vu*."""
    begun = {
        name
        for name in ("places", "purposes", "happened")
        for start, _ in found_in(text, name, codes)
        if start == 0
    }
    return bool(begun) and "happened" not in begun


@lru_cache(maxsize=4_096)
def may_tell(text: str) -> bool:
    """Return whether a line may be a half of a pair: it states something, as far as it alone tells.

    It costs a part of what a comparison does.
    """
    if len(text) > MAX_LENGTH or asks(text):
        return False
    codes = tuple(each.code for each in spoken_in(text))
    line = _read(text, language_of(text), codes, frozenset())
    return bool(line.items) and _is_statement(line) and not line.frames & _UNREAL


_FRAMED = 4  # as much as two words of the question


def standing(question: str, line: str) -> float:
    """Return how well a line stands as an answer to a question, apart from when it was said.

    Less is better. What tells it apart from others counts: the words of the question that it has,
    whose it is, and whether it says what holds.
    """
    codes = tuple(each.code for each in spoken_in(f"{question}\n{line}"))
    language = language_of(f"{question}\n{line}")
    asked, told = (_read(each, language, codes, frozenset()) for each in (question, line))
    stems = {each.key for each in told.items}
    known = sum(1 for each in asked.items if form_among(each.key, stems))
    is_event = told.happened and not any(map(told.has, ("moving", "joining", "delaying")))
    is_framed = bool(told.frames & _NOT_NEWER) or (is_event and not asked.happened)
    years = {*_YEAR.findall(told.text)} - {*_YEAR.findall(asked.text)}
    owners = _owners(told) - _owners(asked)
    return _FRAMED * (is_framed or bool(years)) + len(owners) - 2.0 * known


def _owners(line: _Line) -> frozenset[str]:
    """Return whose a line says that something is: my sister's, the landlord's."""
    marked = (found[0] for found in _OWNER.finditer(line.text))
    before = {folded(found[1]) for found in _TITLED.finditer(line.text)} & titles()
    return frozenset({*map(folded, marked), *relations_of(line.text)}) - before  # Frau Ebel


def about_the_same(one: str, other: str) -> bool:
    """Return whether two lines are about the same thing, whichever was said later."""
    return is_newer(one, other) or is_newer(other, one)


def _may_be_newer(new: _Line, old: _Line) -> bool:
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
    years = {*_YEAR.findall(new.text)} - {*_YEAR.findall(old.text)}
    return not years and _same_owners(new, old)


def _is_statement(line: _Line) -> bool:
    """Return whether a line tells something, to nobody in particular and in plain text."""
    is_called_out = line.text.endswith("!") and not line.is_changed
    is_told = not (is_called_out or line.has("addressed") or _is_question(line))
    return is_told and not _MARKUP.search(line.text)


def _is_question(line: _Line) -> bool:
    """Return whether a line begins like a question, or tells of what was named before it."""
    first = line.items[0].before
    is_pronoun = any(
        _is_word(each, "others", line.codes) and not _is_word(each, "definite", line.codes)
        for each in first
    )
    return is_pronoun or begins(line.text, of_all("question")) is not None


def _same_phrases(new: _Line, old: _Line, name: str) -> bool:
    own, theirs = (
        {each.plain[start:end].lower() for start, end in each.places(name)} for each in (new, old)
    )
    return own <= theirs


def _same_owners(new: _Line, old: _Line) -> bool:
    return new.has("theirs") == old.has("theirs") or not (new.has("own") or old.has("own"))


def statement_of(text: str) -> str:
    """Return what a line says, without a leading order or decision and without bracketed dates."""
    text = _LINK.sub(r"\1", _STAMPS.sub("", text.strip().lstrip("#").strip()))
    for name in ("remember", "decision"):
        text = begins(text, of_all(name)) or text
    return text


def _read(text: str, language: Language, codes: tuple[str, ...], names: frozenset[str]) -> _Line:
    typed = text
    text, is_correction = _without_correction(statement_of(text), codes)
    plain, is_changed = _without_change(text, language, codes)
    is_changed |= is_correction
    items = tuple(_items(plain, language, codes, names))
    is_of_speaker = any(_begins_with_speaker(each, codes) for each in {text, typed, plain.lstrip()})
    return _Line(text, plain, items, codes, is_changed, is_of_speaker)


def _without_correction(text: str, codes: tuple[str, ...]) -> tuple[str, bool]:
    """Return a text without a *no,* before it, and whether it had one."""
    for start, end in found_in(text[:_LEAD], "correcting", codes):
        after = _AFTER_LEAD.match(text, end)
        if not start and after:
            return text[after.end() :], True
    return text, False


def _without_change(text: str, language: Language, codes: tuple[str, ...]) -> tuple[str, bool]:
    """Return a text without words of change and without since when, and whether it had any."""
    plain = blanked(text, "changed", codes)
    is_changed = plain != text
    plain = blanked(plain, "adverbs", codes)
    calendar = {*language.places["months"], *language.places["weekdays"]}
    for start, end in found_in(plain, "since", codes):
        after = tokens(plain[end:])[:3]
        for count, token in enumerate(after, 1):
            shown = plain[end + token.start : end + token.end]
            is_time = token.word in calendar or found_in(shown, "seasons", codes)
            if is_time or (_YEAR.fullmatch(token.word) and count == 1):
                stop = end + token.end
                is_changed = True
                plain = plain[:start] + " " * (stop - start) + plain[stop:]
                break
            if token.word not in language.stop_words and not token.word.isdigit():
                break
    for each in times_in(text, _SOME_DAY):
        if each.kind != "named" and plain[each.start : each.end].strip():
            since = _since_before(plain, each.start, codes)
            is_changed |= since is not None
            start = each.start if since is None else since
            plain = plain[:start] + " " * (each.end - start) + plain[each.end :]
    return plain, is_changed


def _since_before(text: str, at: int, codes: tuple[str, ...]) -> int | None:
    """Return where a *since* begins that stands directly before a place; None if none does."""
    before = text[:at].rstrip()
    found = found_in(before, "since", codes)
    return found[-1][0] if found and found[-1][1] == len(before) else None


def _items(
    text: str, language: Language, codes: tuple[str, ...], names: frozenset[str]
) -> Iterator[_Item]:
    """Yield the content words and values of a text; the parts of a date are one value."""
    numbers = {each.start(): each for each in _NUMBER.finditer(text)}
    before: list[str] = []
    found: list[_Item] = []
    end = 0
    for token in tokens(text):
        if token.start < end:
            continue
        shown = text[token.start : token.end]
        kind: Kind | None
        number = numbers.get(token.start)
        if number is not None:
            key, end = number[0], number.end()
            kind = (
                "time" if ":" in key else "date" if _ORDINAL.match(text, token.start) else "number"
            )
        else:
            kind, key = _calendar_kind(token.word, shown, language) or _word_kind(shown, names)
        if kind == "word" and _is_function_word(token.word, shown, language, codes):
            before.append(shown.lower())
            continue
        if kind == "number" and before and found_in(before[-1], "oclock", codes):
            kind = "time"
        is_apart = before[1:] or any(_is_word(each, "being", codes) for each in before)
        last = found[-1] if found and not is_apart else None
        if last and {kind, last.kind} in ({"date"}, {"date", "number"}):
            found[-1] = replace(last, key=f"{last.key} {key}", kind="date")
        else:
            found.append(_Item(key, kind, tuple(before), token.start))
        before = []
    yield from found


def _calendar_kind(word: str, shown: str, language: Language) -> tuple[Kind, str] | None:
    """Return the kind of a word that is a month, a weekday, a number or a time, and its key."""
    places = language.places
    is_plain = not (shown[0].isupper() or len(shown) >= _MIN_LETTERS)
    if word in places["months"] and shown[0].isupper():
        return "date", f"month {places['months'][word]}"
    if word in places["weekdays"] and not is_plain:
        return "weekday", f"weekday {places['weekdays'][word]}"
    if word in places["numbers"]:
        return "number", str(places["numbers"][word] + 2)
    return ("time", word) if word in _CLOCK_WORDS else None


def _word_kind(shown: str, names: frozenset[str]) -> tuple[Kind, str]:
    bare = _POSSESSIVE.sub("", shown)
    key = (analyser.terms_of(bare) or [folded(bare)])[0]
    return ("name" if folded(bare) in names else "word"), key


def _is_function_word(word: str, shown: str, language: Language, codes: tuple[str, ...]) -> bool:
    return (
        word in language.stop_words
        or len(word) == 1
        or any(_is_word(shown, name, codes) for name in _LEADING)
    )


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two lines, of which the new one was said later."""

    old: _Line
    new: _Line

    @cached_property
    def forms(self) -> dict[str, str]:
        """The words of the new line that the old one has, each with its form there."""
        words = {each.key for each in self.old.items if each.kind in ("word", "name")}
        found = {}
        for each in self.new.items:
            if each.kind in ("word", "name"):
                form = form_among(each.key, words)
            else:
                form = each.key if each.key in self.old.keys else ""
            if form:
                found[each.key] = form
        return found

    @cached_property
    def shared(self) -> frozenset[str]:
        return frozenset(self.forms.values())

    @cached_property
    def rest_old(self) -> list[int]:
        return [n for n, each in enumerate(self.old.items) if each.key not in self.shared]

    @cached_property
    def rest_new(self) -> list[int]:
        return [n for n, each in enumerate(self.new.items) if each.key not in self.forms]

    @property
    def is_newer(self) -> bool:
        """Whether the new line says what holds instead of the old one."""
        if not self.shared:
            return self._has_moved_house()
        if not self._same_label():
            return False
        if self._is_denial() or self._is_exchanged() or self._is_event():
            return True
        if self.new.happened or self.new.denies or not self._is_anchored():
            return False
        return self._is_other_value() or self._is_other_figure() or self._is_told_changed()

    def _same_label(self) -> bool:
        """Return whether the words before a colon, if any, are in the other line too."""
        lines = ((self.old, self.shared), (self.new, frozenset(self.forms)))
        labels = [
            frozenset(each.key for each in line.items if label and each.start < label.end())
            for line, _ in lines
            for label in [_LABEL.match(line.plain)]
        ]
        return all(label <= keys for label, (_, keys) in zip(labels, lines, strict=True))

    def _is_anchored(self) -> bool:
        """Return whether it is plain of what both lines tell: the router, my dentist, Jonas, we."""
        is_typed = any(self.new.items[n].kind not in ("word", "name") for n in self.rest_new)
        lines = (self.new, {*self.forms}), (self.old, self.shared)
        if all(line.is_of_speaker for line, _ in lines):
            is_one = is_typed and not self._is_one_of_many()  # a meeting at 9, a meeting at 14
            return is_one or self.new.is_changed or self._has_names()
        if is_typed and self.new.is_changed and self._is_named():
            return True
        return all(self._is_told(line, keys, is_typed=is_typed) for line, keys in lines)

    def _is_one_of_many(self) -> bool:
        return any(
            _is_word(word, "indefinite", self.new.codes)
            for each in self.new.items
            if each.key in self.forms
            for word in each.before
        )

    def _is_named(self) -> bool:
        """Return whether both lines say the same of somebody, who has a name in both."""
        names = [each for each in self.new.items if each.kind == "name" and each.key in self.forms]
        return bool(names) and names[0] is self.new.items[0] and len(self.shared) > _MANY

    def _has_names(self) -> bool:
        return bool(self.rest_new and self.rest_old) and all(
            line.items[rest[-1]].kind == "name"
            for line, rest in ((self.new, self.rest_new), (self.old, self.rest_old))
        )

    def _is_told(self, line: _Line, keys: Container[str], *, is_typed: bool) -> bool:
        first = line.items[0]
        is_bare = first.key in keys and not first.before
        if is_bare and (is_typed or first.kind == "name"):
            return not line.plain.startswith(",", first.start + len(first.key))
        return any(
            each.key in keys
            and any(
                _is_word(word, name, line.codes)
                for word in each.before
                for name in ("definite", "own")
            )
            for each in line.items
        )

    # What is no longer so, and what is done -----------------------------------------------------

    def _is_denial(self) -> bool:
        """Return whether one of both denies what the other says."""
        if self.new.denies == self.old.denies or not self._is_anchored_denial():
            return False
        if self.new.denies:
            left = len(self.rest_new)
            if self.new.is_changed:
                return left <= 1 and len(self.shared) + (left == 0) >= _MIN_SHARED
            return not left and len(self.shared) >= _MIN_SHARED
        return not self.rest_old and len(self.shared) >= _MIN_SHARED

    def _is_anchored_denial(self) -> bool:
        if not (self.rest_old or self.rest_new) and self.old.is_of_speaker:
            return self.new.is_of_speaker
        return self.new.is_changed or len(self.shared) >= _MANY or self._is_anchored()

    # What happened, and changes it --------------------------------------------------------------

    def _is_exchanged(self) -> bool:
        """Return whether the new line says that what the old one names was given up for another."""
        spans = found_in(self.new.text, "exchanged", self.new.codes)
        if not spans or self.new.denies or self.old.has("exchanged"):
            return False
        start, end = spans[0]
        given_up = {
            self.forms.get(each.key) for each in self.new.items if start <= each.start < end
        }
        first = self.old.items[0].key
        is_same = self.old.is_of_speaker and self.new.is_of_speaker
        is_same |= first in self.shared and first not in given_up
        is_same |= self.old.has("own") and self.old.items[-1].key in given_up
        return is_same and not given_up <= {None}

    def _is_event(self) -> bool:
        if self.new.denies:
            return False
        return self._is_moved() or self._has_joined() or self._is_delayed()

    def _has_moved_house(self) -> bool:
        """Return whether speakers say that they moved, and said where they live."""
        lines = (self.old, self.new)
        return (
            all(each.is_of_speaker for each in lines)
            and self.old.has("living")
            and not self.new.denies
            and len(self.new.items) == _MIN_SHARED
            and len(self.new.words_of("moving")) == 1
            and all(each.is_placed(each.items[-1]) for each in lines)
        )

    def _is_moved(self) -> bool:
        verbs = self.new.words_of("moving")
        if not verbs or (self.old.happened and not self.old.words_of("moving")):
            return False
        named = [
            each
            for each in self.new.items
            if each.key not in verbs and each not in self._places(self.new, verbs)
        ]
        if not named or any(each.key not in self.forms for each in named):
            return False
        if self._is_qualified(named):
            return False
        if self.old.items[0].key not in self.shared or not self._is_known(named):
            return False
        return self._tells_place() or len(named) >= _MIN_SHARED

    def _tells_place(self) -> bool:
        """Return whether the old line says where something is, and no more: *lives in Ghent*."""
        placed = self._places(self.old, ())
        left = [n for n in self.rest_old if self.old.items[n] not in placed]
        return len(left) < len(self.rest_old) and len(left) <= 1

    def _is_known(self, named: Sequence[_Item]) -> bool:
        return any(
            each.kind == "name"
            or (each is self.new.items[0] and not each.before)
            or self._has_before(self.new, each, "definite")
            or self._has_before(self.new, each, "own")
            for each in named
        )

    def _places(self, line: _Line, verbs: Container[str]) -> list[_Item]:
        """Return the words for places: those behind a preposition, up to the verb or an article."""
        found: list[_Item] = []
        for number, each in enumerate(line.items):
            is_bound = not each.before or self._has_before(line, each, "purposes")
            follows = is_bound and found and found[-1] is line.items[number - 1]
            if each.key not in verbs and (follows or line.is_placed(each)):
                found.append(each)
        return found

    def _is_qualified(self, named: Sequence[_Item]) -> bool:
        """Return whether the old line says of a thing which one, and the new one doesn't."""
        heads = {self.forms[each.key] for each in named}
        items = self.old.items
        return any(
            after.key in heads and one.key not in heads and not after.before and one.kind != "word"
            for one, after in pairwise(items)
        )

    def _has_joined(self) -> bool:
        if not (self.new.words_of("joining") and self.old.has("working")):
            return False
        subject = self.new.items[0]
        is_same = subject.kind == "name" and subject.key in self.forms
        is_same |= self.old.is_of_speaker and self.new.is_of_speaker
        return is_same and all(
            any(line.is_placed(line.items[n]) for n in rest)
            for line, rest in ((self.old, self.rest_old), (self.new, self.rest_new))
        )

    def _is_delayed(self) -> bool:
        verbs = self.new.words_of("delaying")
        if not verbs:
            return False
        own = self._values(self.new, self.rest_new)
        theirs = self._values(self.old, self.rest_old)
        if not own or not theirs or own[-1].kind not in _WHEN:
            return False
        named = [each for each in self.old.items if each.kind in ("word", "name")]
        first = named[0].key if named else ""
        left = [
            each
            for each in (self.new.items[n] for n in self.rest_new)
            if each not in own and each.key not in verbs
        ]
        return bool(first) and first in self.shared and len(left) <= 1

    # What is otherwise now ----------------------------------------------------------------------

    def _is_other_value(self) -> bool:
        """Return whether both lines are the same but for one value."""
        own = [self.new.items[n] for n in self.rest_new]
        theirs = [self.old.items[n] for n in self.rest_old]
        if not own or not theirs or max(len(own), len(theirs)) > _MAX_VALUE:
            return False
        if not (_is_run(self.rest_old) and _is_run(self.rest_new)):
            return False
        if not (_is_one_value(self.old, theirs) and _is_one_value(self.new, own)):
            return False
        is_subject = len(self.shared) == 1 and self.rest_new[0] == 1
        if is_subject and own[1:] and own[0].kind == "word" and not own[0].before:
            return False  # another verb of somebody: it is something else that is told
        if not _are_alike(self, theirs, own):
            return False
        if not self.new.is_changed and (self.new.has("several") or self._is_shareable(own)):
            return False
        return self._is_in_place_of(theirs, own)

    def _is_shareable(self, own: Sequence[_Item]) -> bool:
        values = {each.key for each in own}
        return bool(self.new.words_of("sharing") - values) or (
            self.new.has("sharing") and all(each.kind in ("word", "name") for each in own)
        )

    def _is_in_place_of(self, theirs: Sequence[_Item], own: Sequence[_Item]) -> bool:
        """Return whether a value stands where another one stood, and is none that qualifies."""
        places = self._place(self.old, self.rest_old), self._place(self.new, self.rest_new)
        is_named = all(each[0].kind == "name" for each in (own, theirs))
        if places == ("start", "start"):
            return is_named and self._is_other_subject(theirs, own)
        if "start" in places:
            return self.new.is_changed and is_named
        purpose = self._has_before(self.new, own[0], "purposes") and self._has_before(
            self.old, theirs[0], "purposes"
        )
        is_typed = own[0].kind not in ("word", "name")
        if purpose and not is_typed and not (own[0].kind == "name" and len(self.shared) == 1):
            return False
        if places == ("mid", "mid") and not self.new.is_changed and not is_typed:
            return not self.new.is_placed(own[0])
        return self._is_value(theirs, own)

    def _is_other_subject(self, theirs: Sequence[_Item], own: Sequence[_Item]) -> bool:
        """Return whether somebody else does now what one does alone: drive the van on Fridays."""
        if own[0].before or theirs[0].before or self._is_numbered():
            return False
        is_definite = self.new.has("definite") and not self.new.has("sharing")
        return self.new.is_changed or (is_definite and len(self.shared) >= _MANY)

    def _is_numbered(self) -> bool:
        """Return whether a number follows the words at the start: they say which one it is."""
        after = [
            line.items[rest[-1] + 1 : rest[-1] + 2]
            for line, rest in ((self.old, self.rest_old), (self.new, self.rest_new))
        ]
        return any(each and not each[0].before and each[0].kind == "number" for each in after)

    def _is_value(self, theirs: Sequence[_Item], own: Sequence[_Item]) -> bool:
        """Return whether words are a value: a number, a day, a name, a place, or changed."""
        if self.new.is_changed or _are_typed(own, theirs):
            return True
        return self.new.is_placed(own[0]) and self.old.is_placed(theirs[0])

    def _has_before(self, line: _Line, item: _Item, name: str) -> bool:
        return any(found_in(each, name, line.codes) for each in item.before[-2:])

    def _place(self, line: _Line, rest: Sequence[int]) -> Literal["start", "mid", "end"]:
        if rest[-1] == len(line.items) - 1:
            return "end"
        return "start" if rest[0] == 0 and not line.is_of_speaker else "mid"

    def _is_other_figure(self) -> bool:
        """Return whether all that the new line says stands in the old one, but for a number."""
        own = [self.new.items[n] for n in self.rest_new]
        if len(own) != 1 or own[0].kind != "number" or len(self.shared) < _MIN_SHARED:
            return False
        unit = _after(self.new, self.rest_new[0])
        theirs = (n for n, each in enumerate(self.old.items) if each.kind == "number")
        return bool(unit) and any(_after(self.old, n) == self.forms.get(unit) for n in theirs)

    def _is_told_changed(self) -> bool:
        """Return whether the new line says that something changed, and has such a value."""
        if not self.new.is_changed:
            return False
        left = [self.old.items[n] for n in self.rest_old]
        if len(left) <= 1 and len(self.shared) >= _MIN_SHARED and self._repeats_value():
            return True
        own, theirs = self._values(self.new, self.rest_new), self._values(self.old, self.rest_old)
        if not own or not theirs or own[-1].kind != theirs[-1].kind:
            return False
        if own[-1].kind == "name" and any(
            line.is_placed(each)
            for line in (self.old, self.new)
            for each in line.items
            if each.key in {*self.shared, *self.forms}
        ):
            return False
        others = (
            [each for each in (line.items[n] for n in rest) if each not in values]
            for line, rest, values in (
                (self.old, self.rest_old, theirs),
                (self.new, self.rest_new, own),
            )
        )
        return all(len(each) <= 1 for each in others)

    def _repeats_value(self) -> bool:
        """Return whether the last name or figure of the old line is told in the new one too."""
        values = [each for each in self.old.items if each.kind != "word"]
        return bool(values) and bool(self.rest_new) and values[-1].key in self.shared

    def _values(self, line: _Line, rest: Sequence[int]) -> list[_Item]:
        return [line.items[n] for n in rest if line.items[n].kind != "word"]


def _are_typed(own: Sequence[_Item], theirs: Sequence[_Item]) -> bool:
    kinds = {own[0].kind, theirs[0].kind}
    return len(kinds) == 1 and kinds != {"word"}


def _is_word(word: str, name: str, codes: tuple[str, ...]) -> bool:
    """Return whether a word is one of a list."""
    return (0, len(word)) in found_in(word, name, codes)


def _is_run(places: Sequence[int]) -> bool:
    return places[-1] - places[0] == len(places) - 1


def _is_one_value(line: _Line, items: Sequence[_Item]) -> bool:
    """Return whether words are one value: no verb of being stands in it, nor a thing and a figure.

    So *the plumber 120 euros* is none, nor *Porto on 10 June* or *1.20 at Lidl*, and a name behind
    a comma says to whom one talks.
    """
    if items[0].kind == "name" and line.plain[: items[0].start].rstrip().endswith(","):
        return False
    kinds = {items[0].kind, items[-1].kind}
    if len(kinds) > 1 and not kinds <= {*_WHEN} and line.is_placed(items[-1]):
        return False
    if items[-1].kind == "number" and any(e.kind == "word" and e.before for e in items[:-1]):
        return False
    return not any(
        found_in(before, "being", line.codes) for each in items[1:] for before in each.before
    )


def _are_alike(pair: _Pair, theirs: Sequence[_Item], own: Sequence[_Item]) -> bool:
    """Return whether two values are of a kind: numbers, days, times, places, or words."""
    kinds = [{each.kind for each in items} for items in (theirs, own)]
    is_count = all({"number", "date"} & each for each in kinds)
    more, less = (kinds[1] - kinds[0] - {"word", "name"}, kinds[0] - kinds[1] - {"word", "name"})
    if (more and not is_count) or (less - {"time"} and not is_count):
        return False  # the time of day may be left out: Thursday at 10, Friday
    if less and not kinds[1] & set(_WHEN):
        return False
    firsts = ((pair.old, theirs[0]), (pair.new, own[0]))
    if not _are_typed(own, theirs):  # art is a source of joy, and gives joy
        said = [any(found_in(b, "being", line.codes) for b in item.before) for line, item in firsts]
        if said[0] != said[1]:
            return False
    placed = [line.is_placed(item) for line, item in firsts]
    return placed[0] == placed[1]


def _after(line: _Line, place: int) -> str:
    following = line.items[place + 1 : place + 2]
    return following[0].key if following else ""


def _begins_with_speaker(text: str, codes: tuple[str, ...]) -> bool:
    first = tokens(text)[:1]
    if not first:
        return False
    if any(start == 0 for start, _ in found_in(text[:_LEAD], "speaking", codes)):
        return True  # vivo, mi sono trasferito
    word, *elided = _APOSTROPHE.split(text[first[0].start : first[0].end].lower())
    return (
        word in _SPEAKERS or folded(word) in of_all("self").words or (word == "j" and bool(elided))
    )
