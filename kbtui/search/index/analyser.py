"""How text becomes the terms that are indexed and looked up.

Lower case, accents folded, English stemmed (Porter 2, from Whoosh: this file uses Whoosh's stemmer
and none of its index). Identifiers are split *and* kept whole: ``getUserName`` also gives ``get``,
``user`` and ``name``. Scripts that don't put blanks between words (Chinese, Japanese, Thai, ...)
become bigrams.

Words are analysed once and remembered, so that analysing a text costs about one dictionary
look-up a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator
from functools import cache
from typing import Any

VERSION = "1"
MAX_TERM = 96
_ELIDED = 2
_MAX_REMEMBERED = 300_000

# Letters and vowel signs of Indic and South-East Asian scripts: `\w` leaves the signs out.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u0f71-\u0fbc\u1000-\u1049\u1780-\u17d3"
)
# Scripts without blanks between words.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u1000-\u1049\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"
_WORD = re.compile(rf"[\w{_MARKS}]+(?:[.'{_APOSTROPHE}-][\w{_MARKS}]+)*(?:\+\+|#(?!\w))?")
_RUN = re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_CASE_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_PART = re.compile(rf"[^\W_{_MARKS}][^\W_]*(?:[{_MARKS}]+[^\W_]*)*|[{_MARKS}]+[^\W_]*")
_SPELT = re.compile(r"(?<![\w.-])[^\W\d_]{4,24}(?![\w-])")
_PLAIN = re.compile(r"[a-z]{3,}")
_LATIN_ACCENTS = re.compile("[\u0300-\u036f]+")
_LETTERS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", _APOSTROPHE: "'"}
    | {"\N{LATIN SMALL LETTER DOTLESS I}": "i"}
)

# Too common to tell texts apart; left out of a query that has other words.
_STOP_WORDS = """
    a about after all also am an and any are as at be because been before being between both but
    by can could did do does doing done during each for from further had has have having he her
    here hers him his how i if in into is it its itself just me more most my no nor not of off on
    once only or other our out over own same she should so some such than that the their them
    then there these they this those through to too under until up us very was we were what when
    where which while who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
# With any other stop word it is a possessive: Will's.
_WORDS_WITH_IS = "he here how it she that there this what when where which who why"
_WITH_IS = frozenset(_WORDS_WITH_IS.split())
# How the suffixes end that the steps of Porter 2 look for.
_STEP_2 = ("on", "al", "ss", "ti", "li", "sm", "ci", "er", "or", "gi")
_STEP_3 = ("al", "ze", "te", "ti", "ve", "ss", "ul")
_STEP_4 = ("al", "ce", "er", "ic", "le", "nt", "sm", "te", "ti", "us", "ve", "ze", "on")
_AROUND = ".,;:!?()[]{}\"'*_\N{HORIZONTAL ELLIPSIS}\N{FULLWIDTH QUESTION MARK}"

_remembered: dict[str, tuple[str, ...]] = {}
_telling: dict[str, tuple[str, ...]] = {}


def _stem(word: str) -> str:
    """Whoosh's ``porter2.stem`` of three letters a to z and more, past what can't apply to it.

    Most words end in none of what a step looks for, one suffix after the other; and a word is met
    as a title and as part of a name as well.
    """
    known = _remembered.get(word)
    if known is None:
        known = (_looked_up_stem(word),)
        _remember(word, known)
    return known[0]


def _looked_up_stem(word: str) -> str:
    porter2 = _porter2()
    if word in porter2.exceptional_forms:
        return str(porter2.exceptional_forms[word])
    if "y" in word:
        word = porter2.capitalize_consonant_ys(word)
    r1 = porter2.get_r1(word)
    r2 = porter2.get_r2(word)
    if word[-1] in "sd":
        word = porter2.step_1a(word)
    if word in porter2.exceptional_early_exit_post_1a:
        return word
    if word[-1] in "dgy":
        word = porter2.step_1b(word, r1)
    word = porter2.step_1c(word)
    if word.endswith(_STEP_2):
        word = porter2.step_2(word, r1)
    if word.endswith(_STEP_3):
        word = porter2.step_3(word, r1, r2)
    if word.endswith(_STEP_4):
        word = porter2.step_4(word, r2)
    if word[-1] in "le":
        word = porter2.step_5(word, r1, r2)
    return word.replace("Y", "y")


def _remember(word: str, terms: tuple[str, ...]) -> None:
    if len(word) <= MAX_TERM:
        if len(_remembered) >= _MAX_REMEMBERED:
            _remembered.clear()
        _remembered[word] = terms


@cache
def _porter2() -> Any:
    from whoosh.lang import porter2

    return porter2


def fold(text: str) -> str:
    """Casefold and strip the accents of alphabets; vowel signs of other scripts stay."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold().translate(_LETTERS)
    stripped = _LATIN_ACCENTS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", stripped)


def terms(text: str) -> list[str]:
    """All terms of a text, in order, repeated as often as they occur."""
    found: list[str] = []
    extend = found.extend
    remembered = _remembered
    for word in _WORD.findall(text):
        extend(remembered.get(word) or terms_of(word))
    return found


def spans(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Each word with its offsets and its terms; an unspaced script gives one span a bigram."""
    plain = text.isascii()
    for match in _WORD.finditer(text):
        if plain or not _IS_UNSPACED.search(match[0]):
            yield match.start(), match.end(), terms_of(match[0])
            continue
        for run in _RUN.finditer(match[0]):
            start = match.start() + run.start()
            if not _IS_UNSPACED.match(run[0]):
                yield start, start + len(run[0]), terms_of(run[0])
                continue
            for i in range(max(1, len(run[0]) - 1)):
                pair = run[0][i : i + 2]
                yield start + i, start + i + len(pair), (fold(pair),)


def matches(text: str, wanted: Container[str]) -> Iterator[tuple[int, int, str]]:
    """Where words of a text have a term that is `wanted`: start, end, and which term."""
    if not text.isascii() and _IS_UNSPACED.search(text):
        for start, end, of_word in spans(text):
            if hit := _first_wanted(of_word, wanted):
                yield start, end, hit
        return
    # A word is looked at once, however often it stands there.
    words = set(_WORD.findall(text))
    terms = {word: _remembered.get(word) or terms_of(word) for word in words}
    hits = {word: hit for word in words if (hit := _first_wanted(terms[word], wanted))}
    for match in _WORD.finditer(text) if hits else ():
        if (hit := hits.get(match[0])) is not None:
            yield match.start(), match.end(), hit


def _first_wanted(terms: Iterable[str], wanted: Container[str]) -> str | None:
    return next((term for term in terms if term in wanted), None)


def terms_of(word: str) -> tuple[str, ...]:
    """The terms of one word as it stands in a text; the whole comes first, then its parts."""
    known = _remembered.get(word)
    if known is not None:
        return known
    found = tuple(dict.fromkeys(term[:MAX_TERM] for term in _analyse(word) if term))
    _remember(word, found)
    return found


def is_stop_word(word: str) -> bool:
    """True of a word that tells nothing, however it stands in a text: ``What's``, ``for?``."""
    bare = word.casefold().replace(_APOSTROPHE, "'").strip(_AROUND)
    head, mark, tail = bare.partition("'")
    if not mark:
        return bare in STOP_WORDS
    if tail == "t":
        return head in {"can", "won"} or head.removesuffix("n") in STOP_WORDS
    return head in (_WITH_IS if tail == "s" else STOP_WORDS)


def telling_terms(text: str) -> list[str]:
    """The first term of each word that isn't a stop word, in order; of unspaced scripts all."""
    found: list[str] = []
    extend = found.extend
    known = _telling
    for word in _WORD.findall(text):
        telling = known.get(word)
        extend(_telling_of(word) if telling is None else telling)
    return found


def _telling_of(word: str) -> tuple[str, ...]:
    telling = () if word.lower() in STOP_WORDS else terms_of(word)
    telling = telling if is_unspaced(word) else telling[:1]
    if len(word) <= MAX_TERM:
        if len(_telling) >= _MAX_REMEMBERED:
            _telling.clear()
        _telling[word] = telling
    return telling


def words(text: str) -> list[str]:
    """The folded words of a text, unstemmed and unsplit: what an exact phrase is compared by."""
    return [fold(word) for word in _WORD.findall(text)]


def vocabulary(text: str) -> set[str]:
    """The plain words of a text, folded and not stemmed: what a misspelt word may have meant."""
    return {fold(word) for word in set(_SPELT.findall(text))}


def is_unspaced(text: str) -> bool:
    """True if the text has letters of a script that puts no blanks between words."""
    return _IS_UNSPACED.search(text) is not None


def _analyse(word: str) -> Iterator[str]:
    if not _IS_UNSPACED.search(word):
        yield from _analyse_spaced(word)
        return
    for run in _RUN.findall(unicodedata.normalize("NFKC", word)):
        if _IS_UNSPACED.match(run):
            yield from _bigrams(fold(run))
        else:
            yield from _analyse_spaced(run)


def _bigrams(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for i in range(len(run) - 1):
        yield run[i : i + 2]


def _analyse_spaced(word: str) -> Iterator[str]:
    folded = fold(word)
    if _PLAIN.fullmatch(folded) and (word[1:].islower() or not word.isascii()):
        yield _stem(folded)
        return
    if "'" in folded:
        yield from _apostrophe(folded)
        return
    yield _stem(folded) if _PLAIN.fullmatch(folded) else folded.strip("_")
    parts = _PART.findall(word)
    for part in parts:
        if len(parts) > 1:
            yield from _part(part)
        pieces = _CASE_PART.findall(part)
        if len(pieces) > 1:
            for piece in pieces:
                yield from _part(piece)


def _part(part: str) -> Iterator[str]:
    folded = fold(part)
    # A lone digit or letter inside an identifier is noise.
    if len(folded) > 1 or not folded.isascii():
        yield _stem(folded) if _PLAIN.fullmatch(folded) else folded


def _apostrophe(folded: str) -> Iterator[str]:
    head, _, tail = folded.partition("'")
    tail = tail.replace("'", "")
    if tail == "s" or not tail:
        yield from _analyse_spaced(head)
    elif len(head) <= _ELIDED and head not in {"i", "we", "he"}:  # l'homme, d'accord, qu'il
        yield from _part(head)
        yield from _analyse_spaced(tail)
    else:
        yield head + tail
