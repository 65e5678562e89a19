"""The tokenizer: turns text into the terms that are indexed and looked up.

Terms are lower case, with accents folded and English stemmed (Whoosh's Porter 2 stemmer).
Identifiers are split *and* kept whole: ``getUserName`` also gives ``get``, ``user`` and ``name``.
Scripts without spaces between words (Chinese, Japanese, Thai, ...) become bigrams.

The terms of each word are cached, so that analysing a text costs about one dictionary lookup per
word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Container, Iterable, Iterator
from functools import cache
from typing import Any

VERSION = "1"
MAX_TERM = 96
_MAX_ELISION = 2
_MAX_CACHED = 300_000

# Letters and vowel signs of Indic and South-East Asian scripts: `\w` leaves the signs out.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u0f71-\u0fbc\u1000-\u1049\u1780-\u17d3"
)
# Scripts without spaces between words.
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
_SPELLED = re.compile(r"(?<![\w.-])[^\W\d_]{4,24}(?![\w-])")
_PLAIN = re.compile(r"[a-z]{3,}")
_LATIN_ACCENTS = re.compile("[\u0300-\u036f]+")
_LETTERS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", _APOSTROPHE: "'"}
    | {"\N{LATIN SMALL LETTER DOTLESS I}": "i"}
)

# Too common to distinguish texts; ignored in queries that have other words.
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
# The endings of the suffixes that each Porter 2 step handles.
_STEP_2 = ("on", "al", "ss", "ti", "li", "sm", "ci", "er", "or", "gi")
_STEP_3 = ("al", "ze", "te", "ti", "ve", "ss", "ul")
_STEP_4 = ("al", "ce", "er", "ic", "le", "nt", "sm", "te", "ti", "us", "ve", "ze", "on")
_PUNCTUATION = ".,;:!?()[]{}\"'*_\N{HORIZONTAL ELLIPSIS}\N{FULLWIDTH QUESTION MARK}"

_term_cache: dict[str, tuple[str, ...]] = {}
_content_cache: dict[str, tuple[str, ...]] = {}
_written_cache: dict[str, str] = {}


def _stem(word: str) -> str:
    """Stem a word of three or more letters a to z, like ``porter2.stem`` but faster.

    Steps that can't apply to the word's ending are skipped, and stems are cached.
    """
    cached = _term_cache.get(word)
    if cached is None:
        cached = (_compute_stem(word),)
        _cache_terms(word, cached)
    return cached[0]


def _compute_stem(word: str) -> str:
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


def _cache_terms(word: str, terms: tuple[str, ...]) -> None:
    if len(word) <= MAX_TERM:
        if len(_term_cache) >= _MAX_CACHED:
            _term_cache.clear()
        _term_cache[word] = terms


@cache
def _porter2() -> Any:
    from whoosh.lang import porter2

    return porter2


def fold(text: str) -> str:
    """Casefold and strip Latin-style accents; vowel signs of other scripts stay."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold().translate(_LETTERS)
    stripped = _LATIN_ACCENTS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", stripped)


def terms(text: str) -> list[str]:
    """Return all terms of a text, in order, with repetitions."""
    found: list[str] = []
    extend = found.extend
    term_cache = _term_cache
    for word in _WORD.findall(text):
        extend(term_cache.get(word) or terms_of(word))
    return found


def spans(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield each word's offsets and terms; in unspaced scripts, each bigram's."""
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


def matches(text: str, wanted: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """Yield ``(start, end, term)`` for each word of a text with a `wanted` term."""
    if not text.isascii() and _IS_UNSPACED.search(text):
        for start, end, of_word in spans(text):
            if hit := _first_wanted(of_word, wanted):
                yield start, end, hit
        return
    # Analyse each distinct word once, and none that begins otherwise.
    firsts = first_letters(wanted)
    words = {word for word in set(_WORD.findall(text)) if _may_be(word, firsts)}
    terms = {word: _term_cache.get(word) or terms_of(word) for word in words}
    hits = {word: hit for word in words if (hit := _first_wanted(terms[word], wanted))}
    for match in _WORD.finditer(text) if hits else ():
        if (hit := hits.get(match[0])) is not None:
            yield match.start(), match.end(), hit


def first_letters(terms: Iterable[str]) -> frozenset[str]:
    """Return the letters that words with some terms may begin with, for `content_terms`."""
    return frozenset([term[0] for term in terms])


def _may_be(word: str, firsts: Container[str]) -> bool:
    """Return whether a word may have a term with one of these first letters.

    Stems begin as plain words do; only compound words have other terms.
    """
    return word[0].lower() in firsts or not (
        word.isascii() and word.isalpha() and word[1:].islower()
    )


def _first_wanted(terms: Iterable[str], wanted: Container[str]) -> str | None:
    return next((term for term in terms if term in wanted), None)


def terms_of(word: str) -> tuple[str, ...]:
    """Return the terms of one word as written: the whole first, then its parts."""
    cached = _term_cache.get(word)
    if cached is not None:
        return cached
    found = tuple(dict.fromkeys([term[:MAX_TERM] for term in _analyse(word) if term]))
    _cache_terms(word, found)
    return found


def is_stop_word(word: str) -> bool:
    """Return whether a word is a stop word, with any punctuation: ``What's``, ``for?``."""
    bare = word.casefold().replace(_APOSTROPHE, "'").strip(_PUNCTUATION)
    head, mark, tail = bare.partition("'")
    if not mark:
        return bare in STOP_WORDS
    if tail == "t":
        return head in {"can", "won"} or head.removesuffix("n") in STOP_WORDS
    return head in (_WITH_IS if tail == "s" else STOP_WORDS)


def content_terms(text: str, firsts: Container[str] | None = None) -> list[str]:
    """Return the first term of each word but stop words, in order; in unspaced scripts, all.

    A word that has no term with one of the letters `firsts` at its beginning is ``""``.
    """
    found: list[str] = []
    extend = found.extend
    cached = _content_cache
    for word in _WORD.findall(text):
        content = cached.get(word)
        if content is not None:
            extend(content)
        elif firsts is None or _may_be(word, firsts):
            extend(_content_terms_of(word))
        elif word.lower() not in STOP_WORDS:
            found.append("")
    return found


def _content_terms_of(word: str) -> tuple[str, ...]:
    content = () if word.lower() in STOP_WORDS else terms_of(word)
    content = content if is_unspaced(word) else content[:1]
    if len(word) <= MAX_TERM:
        if len(_content_cache) >= _MAX_CACHED:
            _content_cache.clear()
        _content_cache[word] = content
    return content


def words(text: str) -> list[str]:
    """Return the folded words of a text, unstemmed and unsplit, for comparing exact phrases."""
    return [fold(word) for word in _WORD.findall(text)]


def written(text: str) -> set[str]:
    """Return the folded words of a text that stemming changes."""
    return {found for word in set(_WORD.findall(text)) if (found := _written(word))}


def _written(word: str) -> str:
    found = _written_cache.get(word)
    if found is None:
        folded = fold(word)
        plain = folded.isalpha() and not is_unspaced(word)
        found = folded[:MAX_TERM] if plain and folded not in terms_of(word) else ""
        if len(word) <= MAX_TERM:
            if len(_written_cache) >= _MAX_CACHED:
                _written_cache.clear()
            _written_cache[word] = found
    return found


def vocabulary(text: str) -> set[str]:
    """Return the folded, unstemmed plain words of a text, for spelling suggestions."""
    return {fold(word) for word in set(_SPELLED.findall(text))}


def is_unspaced(text: str) -> bool:
    """Return whether the text has characters of a script without spaces between words."""
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
    elif len(head) <= _MAX_ELISION and head not in {"i", "we", "he"}:  # l'homme, d'accord, qu'il
        yield from _part(head)
        yield from _analyse_spaced(tail)
    else:
        yield head + tail
