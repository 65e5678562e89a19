"""A line as it is compared with another: its content words and values, and how it is framed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, lru_cache
from typing import Literal

from kbtui.memory.comparing.sentences import Sentence
from kbtui.memory.comparing.turned import names_in
from kbtui.offline.frames import blanked, event_verbs, found_in, frames_of
from kbtui.offline.language import (
    Language,
    begins,
    folded,
    language_with,
    of_all,
    significant_terms,
    tokens,
)
from kbtui.offline.times import times_in
from kbtui.search.index import analyser

_MIN_LETTERS = 4  # of a calendar word without a capital
_SOME_DAY = date(2026, 6, 17)  # any, to tell words for the past from others
_STAMPS = re.compile(r" ?\((?:said )?(?:[^\W\d]+ )?\d{4}(?:-\d\d-\d\d(?: \d\d:\d\d)?)?\)")
_NUMBER = re.compile(r"\d+(?:[.,:/'\u2019-]\d+)*")
_ORDINAL = re.compile(r"\d{1,2}(?:st|nd|rd|th|\.(?=\s|$))", re.IGNORECASE)
YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_LINK = re.compile(r"\[\[(?:[^\]\n]*\|)?([^\]|\n]+)\]\]")
_LEAD = 40  # characters
_AFTER_LEAD = re.compile(r"\s*[,:;.!\u2013\u2014-]+\s*(?=\w)")
_FIRST_WORD = re.compile(r"\w+")
_ELIDED = re.compile(r"\w{1,2}['\u2019][a-z\u00e0-\u00ff]")  # J'habite is no name
_CLOCK_WORDS = frozenset({"noon", "midnight", "mittag", "mitternacht", "mediodia", "medianoche"})
_LEADING = ("being", "own", "theirs", "definite", "places", "purposes")
Kind = Literal["word", "name", "number", "weekday", "date", "time"]
WHEN = ("weekday", "date", "time")


@dataclass(frozen=True, slots=True)
class Item:
    """A content word or value: what it is compared by, what stands before it, and where it is."""

    key: str
    kind: Kind
    before: tuple[str, ...]
    start: int


@dataclass(frozen=True, eq=False)
class ComparedLine:
    """A line as it is compared with another one.

    Attributes:
        text: Its text, without a leading order and without bracketed dates.
        plain: The same without words of change, and without a clause on since when.
        items: The content words and values of `plain`.
        is_of_speaker: Whether the line begins with the speaker: *I*, *we decided to*.
        is_ended: Whether it says that something was given up: *I stopped taking it*.
    """

    text: str
    plain: str
    items: tuple[Item, ...]
    codes: tuple[str, ...]
    is_changed: bool
    is_of_speaker: bool
    is_ended: bool

    def has(self, name: str) -> bool:
        """Return whether a phrase of a list of frames is in it."""
        return bool(self.places(name))

    def places(self, name: str) -> list[tuple[int, int]]:
        """Return where phrases of a list of frames stand in `plain`."""
        return found_in(self.plain, name, self.codes)

    @cached_property
    def frames(self) -> frozenset[str]:
        """The kinds of frames that `plain` has."""
        return frames_of(self.plain)

    @cached_property
    def denies(self) -> bool:
        """Whether it denies something."""
        return self.is_ended or Sentence.of(self.text).denies

    @cached_property
    def is_limited(self) -> bool:
        """Whether it says for what time something holds, besides when: *this week on Thursday*."""
        spans = found_in(self.text, "exception", self.codes)
        is_when = any(each.kind in ("weekday", "date") for each in self.items)
        return any(start == 0 or is_when for start, _ in spans)

    @cached_property
    def keys(self) -> frozenset[str]:
        """What its items are compared by."""
        return frozenset(each.key for each in self.items)

    def is_placed(self, item: Item) -> bool:
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
        for start in event_verbs(self.plain, self.codes):
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


def names_of(codes: tuple[str, ...], *texts: str) -> frozenset[str]:
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


def statement_of(text: str) -> str:
    """Return what a line says, without a leading order or decision and without bracketed dates."""
    text = _LINK.sub(r"\1", _STAMPS.sub("", text.strip().lstrip("#").strip()))
    for name in ("remember", "decision"):
        text = begins(text, of_all(name)) or text
    return text


def read_line(
    text: str, language: Language, codes: tuple[str, ...], names: frozenset[str]
) -> ComparedLine:
    """Read a line, given the words of names in it and in the one that it is compared with."""
    return _read_line(text, language.code, codes, names & _words_of(text) if names else names)


@lru_cache(maxsize=4_096)
def _words_of(text: str) -> frozenset[str]:
    """Return the words of a text, in the form in which those of names are."""
    shown = (text[token.start : token.end] for token in tokens(text))
    return frozenset(folded(_POSSESSIVE.sub("", each)) for each in shown)


@lru_cache(maxsize=4_096)  # a line is compared with up to sixty others
def _read_line(text: str, code: str, codes: tuple[str, ...], names: frozenset[str]) -> ComparedLine:
    language = language_with(code)
    typed = text
    text, is_correction = _without_correction(statement_of(text), codes)
    plain, is_changed = _without_change(text, language, codes)
    lasting = blanked(plain, "ended", codes)
    is_ended, plain = lasting != plain, lasting
    is_changed |= is_correction or is_ended
    items = tuple(_items(plain, language, codes, names))
    is_of_speaker = any(_begins_with_speaker(each, codes) for each in {text, typed, plain.lstrip()})
    return ComparedLine(text, plain, items, codes, is_changed, is_of_speaker, is_ended)


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
    for start, end in found_in(plain, "since", codes):
        if stop := _end_of_since(plain, end, language, codes):
            is_changed = True
            plain = _without(plain, start, stop)
    for each in times_in(text, _SOME_DAY):
        if each.kind != "named" and plain[each.start : each.end].strip():
            since = _since_before(plain, each.start, codes)
            is_changed |= since is not None
            plain = _without(plain, each.start if since is None else since, each.end)
    return plain, is_changed


def _without(text: str, start: int, end: int) -> str:
    return f"{text[:start]}{' ' * (end - start)}{text[end:]}"


def _end_of_since(text: str, at: int, language: Language, codes: tuple[str, ...]) -> int:
    """Return where the month, day, season or year behind a *since* ends; 0 if there is none."""
    calendar = {*language.places["months"], *language.places["weekdays"]}
    for count, token in enumerate(tokens(text[at:])[:3]):
        shown = text[at + token.start : at + token.end]
        if token.word in calendar or found_in(shown, "seasons", codes):
            return at + token.end
        if not count and YEAR.fullmatch(token.word):
            return at + token.end
        if token.word not in language.stop_words and not token.word.isdigit():
            return 0
    return 0


def _since_before(text: str, at: int, codes: tuple[str, ...]) -> int | None:
    """Return where a *since* begins that stands directly before a place; None if none does."""
    before = text[:at].rstrip()
    found = found_in(before, "since", codes)
    return found[-1][0] if found and found[-1][1] == len(before) else None


def _items(
    text: str, language: Language, codes: tuple[str, ...], names: frozenset[str]
) -> list[Item]:
    """Return the content words and values of a text; the parts of a date are one value."""
    found: list[Item] = []
    for item in _single_items(text, language, codes, names):
        last = found[-1] if found else None
        if last is not None and _is_part_of_date(last, item, codes):
            found[-1] = replace(last, key=f"{last.key} {item.key}", kind="date")
        else:
            found.append(item)
    return found


def _is_part_of_date(last: Item, item: Item, codes: tuple[str, ...]) -> bool:
    """Return whether an item continues the date that the last one is or begins."""
    is_apart = len(item.before) > 1 or any(is_word(each, "being", codes) for each in item.before)
    return not is_apart and {item.kind, last.kind} in ({"date"}, {"date", "number"})


def _single_items(
    text: str, language: Language, codes: tuple[str, ...], names: frozenset[str]
) -> Iterator[Item]:
    numbers = {each.start(): each for each in _NUMBER.finditer(text)}
    before: list[str] = []
    end = 0
    for token in tokens(text):
        if token.start < end:
            continue
        shown = text[token.start : token.end]
        kind: Kind
        number = numbers.get(token.start)
        if number is not None:
            kind, key, end = _number_kind(text, number), number[0], number.end()
        else:
            kind, key = _calendar_kind(token.word, shown, language) or _word_kind(shown, names)
        if kind == "word" and _is_function_word(token.word, shown, language, codes):
            before.append(shown.lower())
            continue
        if kind == "number" and before and found_in(before[-1], "oclock", codes):
            kind = "time"
        yield Item(key, kind, tuple(before), token.start)
        before = []


def _number_kind(text: str, number: re.Match[str]) -> Kind:
    if ":" in number[0]:
        return "time"
    return "date" if _ORDINAL.match(text, number.start()) else "number"


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
        or any(is_word(shown, name, codes) for name in _LEADING)
    )


def is_word(word: str, name: str, codes: tuple[str, ...]) -> bool:
    """Return whether a word is one of a list."""
    return (0, len(word)) in found_in(word, name, codes)


def _begins_with_speaker(text: str, codes: tuple[str, ...]) -> bool:
    if any(start == 0 for start, _ in found_in(text[:_LEAD], "speaking", codes)):
        return True  # we, vivo, mi sono trasferito
    first = next(iter(tokens(text)), None)
    return first is not None and _before_apostrophe(text[first.start :]) in of_all("self").words


def _before_apostrophe(text: str) -> str:
    """Return the first word of a text, folded: the *i* of *I'm*."""
    found = _FIRST_WORD.match(text)
    return folded(found[0]) if found else ""


def with_subject(title: str, text: str) -> str:
    """Return a line with the title of its note before it, unless it names that itself."""
    return text if {*significant_terms(title)} <= {*significant_terms(text)} else f"{title}: {text}"
