"""Words and letters of all scripts, as the index tells them apart."""

from __future__ import annotations

import re
import unicodedata

# Letters and vowel signs of Indic and South-East Asian scripts: `\w` leaves the signs out.
MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u0f71-\u0fbc\u1000-\u1049\u1780-\u17d3"
)
# Scripts without spaces between words.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u1000-\u1049\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"
WORD = re.compile(rf"[\w{MARKS}]+(?:[.'{APOSTROPHE}-][\w{MARKS}]+)*(?:\+\+|#(?!\w))?")
RUN = re.compile(rf"[{UNSPACED}]+|[^{UNSPACED}]+")
IS_UNSPACED = re.compile(rf"[{UNSPACED}]")
INNER = f".'-{APOSTROPHE}"
_LATIN_ACCENTS = re.compile("[\u0300-\u036f]+")
_LETTERS = {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th"} | {
    "\N{LATIN SMALL LETTER DOTLESS I}": "i",
    APOSTROPHE: "'",
}
_OTHER_LETTER = re.compile(f"[{''.join(_LETTERS)}]")
PUNCTUATION = (
    ".,;:!?()[]{}\"'*_\u201e\u201c\u201d\u00ab\u00bb\u00bf\u00a1"
    "\N{HORIZONTAL ELLIPSIS}\N{FULLWIDTH QUESTION MARK}"
)
"""What may stand around a word."""
UMLAUT = re.compile("[äöü]", re.IGNORECASE)
QUESTION_MARKS = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
SENTENCE_END = re.compile(
    "(?<=[.!?\N{ARABIC QUESTION MARK}])\\s+|\n+"
    "|(?<=[\N{IDEOGRAPHIC FULL STOP}\N{FULLWIDTH QUESTION MARK}\N{FULLWIDTH EXCLAMATION MARK}])"
)


def fold(text: str) -> str:
    """Casefold and strip Latin-style accents; vowel signs of other scripts stay."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold()
    text = _OTHER_LETTER.sub(_spelt, text)  # takes a tenth of what str.translate does
    stripped = _LATIN_ACCENTS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", stripped)


def _spelt(letter: re.Match[str]) -> str:
    return _LETTERS[letter[0]]
