"""The tokenizer: turns text into the terms that are indexed and looked up.

They are made by a chain of `whoosh.analysis`: a tokenizer of our own, then filters. Terms are lower
case, with accents folded, and stemmed by Snowball (English, and Russian where it is Cyrillic).
Identifiers are split *and* kept whole: ``getUserName`` also gives ``get``, ``user`` and ``name``.
Scripts without spaces between words (Chinese, Japanese, Thai, ...) become bigrams. Words of German,
French and Spanish texts have the stem of that language as a second term.

The chain runs once for each distinct word: analysing a text costs about one dictionary lookup per
word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Any

from kbtui.search.index import language
from kbtui.search.index.letters import (
    APOSTROPHE,
    IS_UNSPACED,
    MARKS,
    PUNCTUATION,
    RUN,
    UMLAUT,
    WORD,
    fold as fold,
)

VERSION = "3"
MAX_TERM = 96
_MAX_CACHED = 300_000

# Characters of words whose terms may have other letters in a row.
_COMPOSED = re.compile(
    rf"['\x80-\U0010ffff-](?:(?<=\w)|(?<=[{MARKS}])|(?<=[\w{MARKS}].)(?=[\w{MARKS}]))"
)
_JOINED = str.maketrans("", "", f"'-{APOSTROPHE}")
_MOSTLY_ASCII = 1.1  # bytes a character
_AFTER_VOWEL = re.compile("(?<=[aou])(?=.)")
_SPELLED = re.compile(r"(?<![\w.-])[^\W\d_]{4,24}(?![\w-])")

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
LANGUAGES = ("de", "fr", "es")
"""The languages with a second term."""
SECOND = "~"  # begins a second term, before the code of its language
_MIN_SECOND = 3

_term_cache: dict[str, tuple[str, ...]] = {}
_written_cache: dict[str, str] = {}


@cache
def _chain() -> Any:
    # Commands that analyse nothing import no engine.
    from kbtui.search.index import chain as made

    return made


def terms(text: str) -> list[str]:
    """Return all terms of a text, in order, with repetitions."""
    found: list[str] = []
    extend = found.extend
    term_cache = _term_cache
    for word in WORD.findall(text):
        extend(term_cache.get(word) or terms_of(word))
    return found


def spans(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield each word's offsets and terms; in unspaced scripts, each bigram's."""
    plain = text.isascii()
    for match in WORD.finditer(text):
        if plain or not IS_UNSPACED.search(match[0]):
            yield match.start(), match.end(), terms_of(match[0])
            continue
        for run in RUN.finditer(match[0]):
            start = match.start() + run.start()
            if not IS_UNSPACED.match(run[0]):
                yield start, start + len(run[0]), terms_of(run[0])
                continue
            for i in range(max(1, len(run[0]) - 1)):
                pair = run[0][i : i + 2]
                yield start + i, start + i + len(pair), (fold(pair),)


def matches(text: str, wanted: Collection[str]) -> Sequence[tuple[int, int, str]]:
    """Return ``(start, end, term)`` for each word of a text with a `wanted` term."""
    return _matches(text, frozenset(wanted))


@lru_cache(maxsize=64)  # hits are looked through for neighbours, then for a snippet
def _matches(text: str, wanted: frozenset[str]) -> Sequence[tuple[int, int, str]]:
    asked = {term[1:3] for term in wanted if term[0] == SECOND}
    languages = asked.intersection(language.languages_of(text)) if asked else ()
    found: list[tuple[int, int, str]] = []
    if not text.isascii() and IS_UNSPACED.search(text):
        for start, end, of_word in spans(text):
            if hit := _first_wanted(of_word, wanted):
                found.append((start, end, hit))
        return found
    for start, end in _candidates(text, wanted):
        word = text[start:end]
        terms = _term_cache.get(word) or terms_of(word)
        if languages:
            terms += second_terms(word, languages)
        if hit := _first_wanted(terms, wanted):
            found.append((start, end, hit))
    return found


def neighbours(
    text: str, wanted: Collection[tuple[str, str]], terms: Collection[str] = ()
) -> set[tuple[str, str]]:
    """Return which pairs of first terms stand side by side in a text, but for stop words.

    Args:
        text: The text.
        wanted: The pairs.
        terms: All terms that matches of the text are looked for with; those of the pairs if empty.
    """
    if is_unspaced(text):
        return set(pairwise(content_terms(text))).intersection(wanted)
    found: set[tuple[str, str]] = set()
    last, end = "", 0
    for start, after, _ in matches(text, terms or {*chain.from_iterable(wanted)}):
        for term in _content_terms_of(text[start:after]):
            pair = (last, term)
            if pair in wanted and pair not in found:
                between = WORD.finditer(text, end, start)
                if all(word[0].lower() in STOP_WORDS or not terms_of(word[0]) for word in between):
                    found.add(pair)
            last, end = term, after
    return found


@lru_cache(maxsize=16)
def _letters_of_all(wanted: frozenset[str]) -> tuple[frozenset[str], bool]:
    """Return letters of all terms, and whether there are second ones."""
    letters = frozenset(each for term in wanted for each in _letters_of(term))
    return letters, any(term[0] == SECOND for term in wanted)


def _candidates(text: str, wanted: frozenset[str]) -> Sequence[tuple[int, int]]:
    """Return where words stand that may have a `wanted` term; analysing all would take long."""
    lowered = text.lower()
    if len(lowered) != len(text) or len(text.encode("utf-8", "replace")) > _MOSTLY_ASCII * len(
        text
    ):
        return [match.span() for match in WORD.finditer(text)]
    letters, has_second = _letters_of_all(wanted)
    found: set[tuple[int, int]] = set()
    at = 0
    for match in _COMPOSED.finditer(text):
        if match.start() >= at:
            at = _add_word_at(text, match.start(), found)
    for start, end in [*found]:
        joined = lowered[start:end].translate(_JOINED)
        if joined.isascii() and not any(each in joined for each in letters):
            found.remove((start, end))
    for begins in letters:
        at = lowered.find(begins)
        while at >= 0:
            # Words begin so, and parts of words; only German stems may have lost their beginning.
            is_inside = at and not has_second and text[at - 1].islower() and text[at].islower()
            at = lowered.find(begins, at + 1 if is_inside else _add_word_at(text, at, found))
    return sorted(found)


def _add_word_at(text: str, at: int, found: set[tuple[int, int]]) -> int:
    """Add where the word at an offset stands, if there is one, and return where to go on."""
    start = max(text.rfind(" ", 0, at), text.rfind("\n", 0, at)) + 1
    for match in WORD.finditer(text, start):
        if match.end() > at:
            if match.start() <= at:
                found.add(match.span())
                return match.end()
            break
    return at + 1


@lru_cache(maxsize=10_000)
def _letters_of(term: str) -> tuple[str, ...]:
    """Return letters one of which each word with a term has in a row, unless it is composed.

    A stemmer changes the last letter of a stem at most, or two (-ble is of -bility; in other
    languages), except for a few words; the German one also makes “a” of “ae”, as of “ä”.
    """
    is_second = term[0] == SECOND
    stem = term[len(SECOND) + 2 :] if is_second else term
    begins = stem[: max(1, len(stem) - (2 if is_second or stem.endswith("ble") else 1))]
    if is_second:
        begins = max(_AFTER_VOWEL.split(begins), key=len)
    return begins, *_chain().odd_forms(term)


def _first_wanted(terms: Iterable[str], wanted: Container[str]) -> str | None:
    for term in terms:
        if term in wanted:
            return term
    return None


def terms_of(word: str) -> tuple[str, ...]:
    """Return the terms of one word as written: the whole first, then its parts."""
    cached = _term_cache.get(word)
    if cached is not None:
        return cached
    analysis = _chain()
    if word.isascii() and word.isalpha() and word[1:].islower():
        found = (analysis.term(word)[:MAX_TERM],)  # all that the chain does with a plain word
    else:
        made = [token.text[:MAX_TERM] for token in analysis.CHAIN(word) if token.text]
        found = tuple(dict.fromkeys(made))
    if len(word) <= MAX_TERM:
        if len(_term_cache) >= _MAX_CACHED:
            _term_cache.clear()
        _term_cache[word] = found
    return found


def forms_of(word: str, languages: Iterable[str] = LANGUAGES) -> tuple[str, ...]:
    """Return the terms that a text may have for a whole word, in some languages besides English."""
    first, *others = terms_of(word) or ("",)
    spelt = [others[0]] if others and UMLAUT.search(word) else []
    return tuple(filter(None, (first, *spelt, *second_terms(word, languages))))


def second_terms(word: str, languages: Iterable[str]) -> tuple[str, ...]:
    """Return the stems of a word in other languages, as terms of their own kind."""
    return tuple(found for each in languages if (found := _second_term(each, word)))


@lru_cache(maxsize=100_000)
def _second_term(code: str, word: str) -> str:
    if len(word) < _MIN_SECOND or not word.isalpha() or len(word) > MAX_TERM:
        return ""
    lowered = word.casefold()
    is_latin = fold(lowered).isascii()
    return f"{SECOND}{code}{fold(_chain().STEMMERS[code].stemWord(lowered))}" if is_latin else ""


def all_second_terms(text: str, languages: Iterable[str]) -> list[str]:
    """Return the second terms of a text in some languages, with repetitions."""
    return [
        found
        for code in languages
        for word in WORD.findall(text)
        if (found := _second_term(code, word))
    ]


def is_stop_word(word: str) -> bool:
    """Return whether a word is a stop word, with any punctuation: ``What's``, ``for?``."""
    bare = word.casefold().replace(APOSTROPHE, "'").strip(PUNCTUATION)
    head, mark, tail = bare.partition("'")
    if not mark:
        return bare in STOP_WORDS
    if tail == "t":
        return head in {"can", "won"} or head.removesuffix("n") in STOP_WORDS
    return head in (_WITH_IS if tail == "s" else STOP_WORDS)


def content_terms(text: str) -> list[str]:
    """Return the first term of each word but stop words, in order; in unspaced scripts, all."""
    return [term for word in WORD.findall(text) for term in _content_terms_of(word)]


def _content_terms_of(word: str) -> tuple[str, ...]:
    if word.lower() in STOP_WORDS:
        return ()
    return terms_of(word) if is_unspaced(word) else terms_of(word)[:1]


def words(text: str) -> list[str]:
    """Return the folded words of a text, unstemmed and unsplit, for comparing exact phrases."""
    if text.isascii():
        return WORD.findall(fold(text))
    return [fold(word) for word in WORD.findall(text)]


def written(text: str) -> set[str]:
    """Return the folded words of a text that stemming changes."""
    return {found for word in set(WORD.findall(text)) if (found := _written(word))}


def _written(word: str) -> str:
    found = _written_cache.get(word)
    if found is None:
        is_ascii = word.isascii()
        folded = word.lower() if is_ascii else fold(word)
        plain = folded.isalpha() and (is_ascii or not is_unspaced(word))
        found = folded[:MAX_TERM] if plain and folded not in terms_of(word) else ""
        if len(word) <= MAX_TERM:
            if len(_written_cache) >= _MAX_CACHED:
                _written_cache.clear()
            _written_cache[word] = found
    return found


def vocabulary(text: str) -> set[str]:
    """Return the folded, unstemmed plain words of a text, for spelling suggestions."""
    if text.isascii():
        return set(_SPELLED.findall(fold(text)))
    return {fold(word) for word in set(_SPELLED.findall(text))}


def is_unspaced(text: str) -> bool:
    """Return whether the text has characters of a script without spaces between words."""
    return IS_UNSPACED.search(text) is not None
