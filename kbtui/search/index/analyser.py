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
import unicodedata
from collections.abc import Collection, Container, Iterable, Iterator
from functools import lru_cache

from Stemmer import Stemmer
from whoosh.analysis import Filter, StemFilter, Token, Tokenizer

VERSION = "2"
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
_INNER = f".'-{_APOSTROPHE}"
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
# Languages with a second term, and words that most texts in them have, and few in others.
LANGUAGES = {
    "de": "und der das ist nicht ein eine einen mit von zu den dem im auf für sich auch wird bei"
    " aus nach oder wir ich kein zum zur",
    "fr": "les une et est des du dans pour que qui sur pas avec sont au ce cette il elle nous vous",
    "es": "los las una el del en por para que con es se como más pero su esta este muy",
}
_COMMON = {language: frozenset(listed.split()) for language, listed in LANGUAGES.items()}
_MIN_COMMON, _COMMON_SHARE = 2, 0.03
SECOND = "~"  # begins a second term, before the code of its language
_MIN_SECOND = 3
_UMLAUT = re.compile("[äöü]", re.IGNORECASE)
_SPELT_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_HYPHENATED = re.compile(r"([^\W\d_]+)-([^\W\d_]+)")
_PUNCTUATION = ".,;:!?()[]{}\"'*_\N{HORIZONTAL ELLIPSIS}\N{FULLWIDTH QUESTION MARK}"

_term_cache: dict[str, tuple[str, ...]] = {}
_content_cache: dict[str, tuple[str, ...]] = {}
_written_cache: dict[str, str] = {}


_english = Stemmer("english", 0)
_russian = Stemmer("russian", 0)
_stemmers = {"de": Stemmer("german", 0), "fr": Stemmer("french", 0), "es": Stemmer("spanish", 0)}


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
    asked = {term[1:3] for term in wanted if term[0] == SECOND}
    languages = asked.intersection(languages_of(text)) if asked else ()
    if not text.isascii() and _IS_UNSPACED.search(text):
        for start, end, of_word in spans(text):
            if hit := _first_wanted(of_word, wanted):
                yield start, end, hit
        return
    # Analyse each distinct word once, and none that begins otherwise.
    firsts = first_letters(wanted)
    words = {word for word in set(_WORD.findall(text)) if _may_be(word, firsts)}
    terms = {word: _term_cache.get(word) or terms_of(word) for word in words}
    for word in words if languages else ():
        terms[word] += second_terms(word, languages)
    hits = {word: hit for word in words if (hit := _first_wanted(terms[word], wanted))}
    for match in _WORD.finditer(text) if hits else ():
        if (hit := hits.get(match[0])) is not None:
            yield match.start(), match.end(), hit


def first_letters(terms: Iterable[str]) -> frozenset[str]:
    """Return the letters that words with some terms may begin with, for `content_terms`."""
    return frozenset([term[3:4] if term[0] == SECOND else term[0] for term in terms])


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
    found = tuple(dict.fromkeys([token.text[:MAX_TERM] for token in CHAIN(word) if token.text]))
    if len(word) <= MAX_TERM:
        if len(_term_cache) >= _MAX_CACHED:
            _term_cache.clear()
        _term_cache[word] = found
    return found


def forms_of(word: str, languages: Iterable[str] = LANGUAGES) -> tuple[str, ...]:
    """Return the terms that a text may have for a whole word, in some languages besides English."""
    first, *others = terms_of(word) or ("",)
    spelt = [others[0]] if others and _UMLAUT.search(word) else []
    return tuple(filter(None, (first, *spelt, *second_terms(word, languages))))


def second_terms(word: str, languages: Iterable[str]) -> tuple[str, ...]:
    """Return the stems of a word in other languages, as terms of their own kind."""
    return tuple(found for each in languages if (found := _second_term(each, word)))


@lru_cache(maxsize=100_000)
def _second_term(language: str, word: str) -> str:
    if len(word) < _MIN_SECOND or not word.isalpha() or len(word) > MAX_TERM:
        return ""
    lowered = word.casefold()
    is_latin = fold(lowered).isascii()
    return f"{SECOND}{language}{fold(_stemmers[language].stemWord(lowered))}" if is_latin else ""


def languages_of(text: str) -> tuple[str, ...]:
    """Return the languages with second terms that a text, or a part of it, is in."""
    words = {word.lower() for word in _WORD.findall(text)}
    least = max(_MIN_COMMON, _COMMON_SHARE * len(words))
    return tuple(each for each, common in _COMMON.items() if len(words & common) >= least)


def all_second_terms(text: str, languages: Iterable[str]) -> list[str]:
    """Return the second terms of a text in some languages, with repetitions."""
    return [
        found
        for language in languages
        for word in _WORD.findall(text)
        if (found := _second_term(language, word))
    ]


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


class _Words(Tokenizer):  # type: ignore[misc]
    """Words as they are written, and pairs of characters where there is no space between words."""

    def __call__(self, value: str, **_options: object) -> Iterator[Token]:
        token = Token(stopped=False)
        for match in _WORD.finditer(value):
            is_spaced = not _IS_UNSPACED.search(match[0])
            text = match[0] if is_spaced else unicodedata.normalize("NFKC", match[0])
            for run in (text,) if is_spaced else _RUN.findall(text):
                unspaced = not is_spaced and _IS_UNSPACED.match(run)
                for token.text in _bigrams(run) if unspaced else (run.strip(_INNER),):
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
        word = unicodedata.normalize("NFKC", word.replace(_APOSTROPHE, "'"))
    if _PLAIN.fullmatch(fold(word)) and (word[1:].islower() or not is_ascii):
        yield word
        if _UMLAUT.search(word):
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


def _term(word: str) -> str:
    """Return a word in lower case, without accents, and stemmed by its script."""
    if not word.isascii():
        if _CYRILLIC.search(word):  # its endings are told by letters that folding changes
            return fold(_russian.stemWord(word.lower()))
        word = fold(word)
    elif not word.islower():
        word = word.lower()
    if not _PLAIN.fullmatch(word) or word in _UNSTEMMED:
        return word
    return str(_english.stemWord(_IRREGULAR.get(word, word)))


CHAIN = _Words() | _Parts() | StemFilter(_term, cachesize=0)
"""The analysis of a text, by Whoosh; `terms_of` keeps what it makes of each word."""
