"""The language of a text, told by its script or by its function words.

For a choice between embedding models and of the stems of its words: a wrong guess costs a little
quality, so that a short text without two signs of a language has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from kbtui.knowledge.format.document import Document

ENGLISH = "en"
_SAMPLE = 3000  # characters
_MIN_SIGNS = 2
_MIN_SIGNS_OF_PART = _MIN_SIGNS_IF_LONG = 3
_LONG = 12  # words
_MIN_SHARE = 0.12  # of a text's words; in a sentence they are a third, in a list of terms by chance
_MARGIN = 1.5  # the signs of a language for one of English
_WORD = re.compile(r"[^\W\d_]{2,}")
_NO_PROSE = re.compile(r"\$\$.*?\$\$|`[^`\n]*`|\$[^$\n]*\$|<[^<>\n]*>|\bhttps?:\S+", re.DOTALL)
_HAS_OTHER = re.compile(r"[`$<]|https?:")
_HAS_SCRIPT = re.compile("[\u0370-\u0e5b\u3041-\u9fff\uac00-\ud7a3]")
_PARAGRAPHS = re.compile(r"\n\s*\n")
_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30ff]")),  # before Chinese, whose characters Japanese has as well
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("zh", re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")),
    ("th", re.compile("[\u0e01-\u0e5b]")),
    ("ar", re.compile("[\u0621-\u064a]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u05d0-\u05ea]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)
_MIN_SCRIPT_SHARE = 0.2  # of all letters; a sentence needs few characters in Chinese
_KANA_SHARE = 0.1  # of Chinese characters and kana together, in Japanese
# Whoosh has stop words of thirteen more languages, but not of Polish.
_POLISH = """
    ale bardzo bez być był była było czy dla do gdy gdzie go ich ja jak jako jest jeszcze już kiedy
    kto która które który mi mnie może na nad nie nim od oraz po pod przed przez przy się są ta tak
    także tam te tego ten to tu tym w we więc z za ze że
"""
# Whoosh's lists lack these.
_MORE_WORDS = {
    "de": "wer wo wann warum welche welcher welches wie wieviel wohin wofür",
    "es": "quién dónde cuándo cuál cuánto cuánta cuántos adónde",
    "fr": "les qui où quand pourquoi comment quel quelle combien est-ce",
    "it": "chi dove quando perché quale quanto come",
    "nl": "wie waar wanneer waarom welke hoe",
    "pt": "quem onde quando porque qual quanto",
}


def language_of(text: str) -> str:
    """Return the code of a text's language, as ``de``; empty if it can't be told."""
    sample = _prose(text)
    return _told(_Signs.of(sample), _by_script(sample), _MIN_SIGNS)


def languages_of(text: str) -> tuple[str, ...]:
    """Return a text's language and those of paragraphs in others, as a note may have several."""
    sample = _prose(text)
    parts = [(_Signs.of(part), _by_script(part)) for part in _PARAGRAPHS.split(sample)]
    whole = parts[0][0] if len(parts) == 1 else _Signs.sum(signs for signs, _ in parts)
    found = [_told(whole, _by_script(sample), _MIN_SIGNS)]
    if len(parts) > 1:
        found += [_told(signs, script, _MIN_SIGNS_OF_PART) for signs, script in parts]
    return tuple(filter(None, dict.fromkeys(found)))


def _prose(text: str) -> str:
    """Return the beginning of a text without code, formulas, tags and addresses."""
    sample = text[:_SAMPLE]
    may_have_code = "`" in sample or "~" in sample
    if may_have_code and (code := Document(sample, has_head=False, is_excerpt=True).fenced):
        lines = enumerate(sample.split("\n"))
        sample = "\n".join("" if number in code else line for number, line in lines)
    return _NO_PROSE.sub(" ", sample) if _HAS_OTHER.search(sample) else sample


@dataclass(slots=True)
class _Signs:
    """The function words in a text, of each language with their weight."""

    words: int
    is_ascii: bool
    scores: dict[str, float]
    seen: dict[str, set[str]]

    @classmethod
    def of(cls, text: str) -> _Signs:
        """Find those of a text."""
        signs = _function_words()
        words = _WORD.findall(text.lower())
        found = cls(len(words), text.isascii(), {}, {})
        for word in filter(signs.__contains__, words):
            languages = signs[word]
            for language in languages:  # a word of many languages tells less
                found.scores[language] = found.scores.get(language, 0.0) + 1 / len(languages)
                found.seen.setdefault(language, set()).add(word)
        return found

    @classmethod
    def sum(cls, parts: Iterable[_Signs]) -> _Signs:
        """Add those of several texts up."""
        found = cls(0, True, {}, {})
        for part in parts:
            found.words += part.words
            found.is_ascii &= part.is_ascii
            for language, score in part.scores.items():
                found.scores[language] = found.scores.get(language, 0.0) + score
                found.seen.setdefault(language, set()).update(part.seen[language])
        return found


def _told(signs: _Signs, script: str, least: int) -> str:
    """Return the language that script or function words tell, if there are at `least` so many."""
    scores = signs.scores
    if script or not scores:
        return script
    best = max(scores, key=scores.__getitem__)
    if scores[best] == scores.get(ENGLISH):
        return ENGLISH
    is_long = signs.words >= _LONG
    least = max(least, _MIN_SIGNS_IF_LONG) if is_long else least - (not signs.is_ascii)
    is_clear = scores[best] >= _MARGIN * scores.get(ENGLISH, 0.0)
    is_sure = len(signs.seen[best]) >= least and scores[best] >= _MIN_SHARE * signs.words
    return best if is_clear and is_sure else ""


def _by_script(text: str) -> str:
    """Return the language that a text's script tells, empty for Latin letters."""
    if text.isascii() or not _HAS_SCRIPT.search(text):
        return ""
    letters = sum(map(len, _WORD.findall(text))) or 1
    counts = {language: len(script.findall(text)) for language, script in _SCRIPTS}
    best = max(counts, key=lambda language: counts[language])
    if counts[best] < _MIN_SCRIPT_SHARE * letters:
        return ""
    if best in {"zh", "ja"}:
        is_japanese = counts["ja"] > _KANA_SHARE * (counts["ja"] + counts["zh"])
        return "ja" if is_japanese else "zh"
    return best


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language, in lower case; none of English."""
    if language == ENGLISH:
        return frozenset()
    signs = _function_words().items()
    return frozenset(word for word, of in signs if language in of)


@cache
def _function_words() -> dict[str, list[str]]:
    """Return the languages of each function word."""
    from whoosh.lang.stopwords import stoplists

    lists = {language: set(words) for language, words in stoplists.items()}
    lists["pl"] = set(_POLISH.split())
    for language, words in _MORE_WORDS.items():
        lists[language] |= set(words.split())
    found: dict[str, list[str]] = {}
    for language, stop_words in lists.items():
        for word in stop_words:
            found.setdefault(word, []).append(language)
    return found
