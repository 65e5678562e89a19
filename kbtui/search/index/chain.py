"""The chain of `whoosh.analysis` that makes the terms of a word, which `analyser` keeps."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from string import ascii_lowercase

from Stemmer import Stemmer
from whoosh.analysis import Filter, StemFilter, Token, Tokenizer

from kbtui.search.index.letters import (
    APOSTROPHE,
    INNER,
    IS_UNSPACED,
    MARKS,
    RUN,
    UMLAUT,
    WORD,
    fold,
)

_MAX_ELISION = 2
_CASE_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_PART = re.compile(rf"[^\W_{MARKS}][^\W_]*(?:[{MARKS}]+[^\W_]*)*|[{MARKS}]+[^\W_]*")
_PLAIN = re.compile(r"[a-z]{3,}")
_SPELT_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_HYPHENATED = re.compile(r"([^\W\d_]+)-([^\W\d_]+)")
# Words whose base form Snowball doesn't know, each with that form.
_IRREGULAR_WORDS = """
    children child  men man  women woman  feet foot  teeth tooth  geese goose  mice mouse
    lice louse  oxen ox  knives knife  wives wife  wolves wolf  shelves shelf  halves half
    thieves thief  loaves loaf  calves calf  scarves scarf  elves elf  hooves hoof  selves self
    criteria criterion  phenomena phenomenon  analyses analysis  crises crisis  theses thesis
    hypotheses hypothesis  diagnoses diagnosis  parentheses parenthesis  syntheses synthesis
    indices index  appendices appendix  matrices matrix  vertices vertex  cacti cactus  fungi fungus
    radii radius  nuclei nucleus  stimuli stimulus  syllabi syllabus  alumni alumnus
    bacteria bacterium  curricula curriculum  buses bus  gases gas  quizzes quiz
"""
_IRREGULAR = dict(zip(_IRREGULAR_WORDS.split()[::2], _IRREGULAR_WORDS.split()[1::2], strict=True))
# Other words that Snowball would take for a form of something else.
_UNSTEMMED = frozenset({"internal", "external"})
_ENGLISH = Stemmer("english", 0)
_RUSSIAN = Stemmer("russian", 0)
STEMMERS = {"de": Stemmer("german", 0), "fr": Stemmer("french", 0), "es": Stemmer("spanish", 0)}


class _Words(Tokenizer):  # type: ignore[misc]
    """Words as they are written, and pairs of characters where there is no space between words."""

    def __call__(self, value: str, **_options: object) -> Iterator[Token]:
        token = Token(stopped=False)
        for match in WORD.finditer(value):
            is_spaced = not IS_UNSPACED.search(match[0])
            text = match[0] if is_spaced else unicodedata.normalize("NFKC", match[0])
            for run in (text,) if is_spaced else RUN.findall(text):
                unspaced = not is_spaced and IS_UNSPACED.match(run)
                for token.text in _bigrams(run) if unspaced else (run.strip(INNER),):
                    yield token


class _Parts(Filter):  # type: ignore[misc]
    """The parts of identifiers and compounds, after the whole; other spellings of a word."""

    def __call__(self, tokens: Iterable[Token]) -> Iterator[Token]:
        for token in tokens:
            word = token.text
            is_plain = word.isascii() and word.islower() and word.isalpha()
            for token.text in (word,) if is_plain else _parts(word):
                yield token


def _bigrams(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for i in range(len(run) - 1):
        yield run[i : i + 2]


def _parts(word: str) -> Iterator[str]:
    is_ascii = word.isascii()
    if not is_ascii:
        word = unicodedata.normalize("NFKC", word.replace(APOSTROPHE, "'"))
    folded = word.lower() if is_ascii else fold(word)
    if _PLAIN.fullmatch(folded) and (word[1:].islower() or not is_ascii):
        yield word
        if UMLAUT.search(word):
            yield word.translate(_SPELT_OUT)
        return
    if "'" in word:
        yield from _apostrophe(word)
        return
    hyphenated = _HYPHENATED.fullmatch(word)
    yield "".join(hyphenated.groups()) if hyphenated else word.strip("_")
    parts = _PART.findall(word)
    for part in parts:
        if len(parts) > 1:
            yield from _part(part)
        pieces = _CASE_PART.findall(part)
        if len(pieces) > 1:
            for piece in pieces:
                yield from _part(piece)


def _part(part: str) -> Iterator[str]:
    # A lone digit or letter inside an identifier is noise.
    if len(part) > 1 or not fold(part).isascii():
        yield part


def _apostrophe(word: str) -> Iterator[str]:
    head, _, tail = word.partition("'")
    tail = tail.replace("'", "")
    elided = head.lower()
    if tail.lower() == "s" or not tail:
        yield from _parts(head)
    elif elided == "o":  # O'Brien
        yield head + tail
        yield from _parts(tail)
    elif len(head) <= _MAX_ELISION and elided not in {"i", "we", "he"}:  # l'homme, d'accord, qu'il
        yield from _part(head)
        yield from _parts(tail)
    else:
        yield head + tail


def term(word: str) -> str:
    """Return a word in lower case, without accents, and stemmed by its script."""
    if not word.isascii():
        if _CYRILLIC.search(word):  # its endings are told by letters that folding changes
            return fold(_RUSSIAN.stemWord(word.lower()))
        word = fold(word)
    elif not word.islower():
        word = word.lower()
    if not _PLAIN.fullmatch(word) or word in _UNSTEMMED:
        return word
    return str(_ENGLISH.stemWord(_IRREGULAR.get(word, word)))


@cache
def _odd_forms() -> dict[str, list[str]]:
    forms = [*_IRREGULAR, "skies", *[f"{letter}ying" for letter in ascii_lowercase]]
    stems = _ENGLISH.stemWords([_IRREGULAR.get(form, form) for form in forms])
    found: dict[str, list[str]] = {}
    for stem, form in zip(stems, forms, strict=True):
        found.setdefault(str(stem), []).append(form)
    return found


def odd_forms(stem: str) -> Sequence[str]:
    """Return the words with a stem that differs from them in more than the end."""
    return _odd_forms().get(stem, ())


CHAIN = _Words() | _Parts() | StemFilter(term, cachesize=0)
"""The analysis of a text, by Whoosh; `terms_of` keeps what it makes of each word."""
