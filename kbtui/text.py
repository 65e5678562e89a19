"""Sanitizes text from outside for display and file names; formats numbers, lists and times."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import filterfalse
from typing import Any, TypeAlias

_UNSAFE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f"  # C0 but tab and newline, and DEL
    "\x80-\x9f"  # C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls (Trojan Source)
    "\U000e0000-\U000e007f"  # tag characters: text that no one sees
    "]"
)
_UNSAFE_IN_ASCII = bytes(code for code in range(128) if _UNSAFE.match(chr(code)))
# Colours and the like (CSI), names of windows and links (OSC and other strings), other escapes.
_ESCAPES = re.compile(
    r"\x1b(?:"  # a literal first: the search for it is ten times as fast
    r"\[[0-?]*[ -/]*[@-~]?|[\]PX^_](?:[^\x07\x1b\r\n]*(?:\x07|\x1b\\))?|[ -/]*[0-~]?)"
)
_NOT_SLUG = re.compile(r"[^\w]+", re.UNICODE)
_NUMBER = re.compile(r"([0-9]{1,18})")
MAX_SLUG = 80
_HEADLINE = 60
_SHORT, _WIDE = 48, 1.5  # characters; bytes that one of them takes
_LONG = 1 << 17  # bytes of a packed text

Packed: TypeAlias = str | bytes
"""A text that is kept: as UTF-8 where that takes less memory, see `pack`."""
_unpacked: deque[tuple[str, bytes]] = deque(maxlen=8)
"""The last ones that aren't long, so that one that is packed again isn't kept twice."""


def clean(text: str) -> str:
    r"""Remove every character that could control a terminal or hide text.

    Newlines are normalised to ``\\n``; tabs stay.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():  # in a tenth of the time
        return text.encode().translate(None, _UNSAFE_IN_ASCII).decode()
    return _UNSAFE.sub("", text)


def is_damaged_unicode(data: bytes, text: str, first: int) -> bool:
    """Return whether bytes that aren't valid UTF-8 are damaged UTF-8, and not in another encoding.

    `text` is what they say in UTF-8 with U+FFFD for what is invalid, `first` where that begins.
    """
    is_cut = first > len(data) - 4
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return is_cut or beyond_ascii > 2 * text.count("\ufffd")


def pack(text: str) -> Packed:
    """Return a text for keeping many: as UTF-8 if that takes less memory than Python's own form.

    There a single emoji makes four bytes of each character.
    """
    if text.isascii() or len(text) < _SHORT:
        return text
    size = sys.getsizeof(text)
    if size < _WIDE * len(text):
        return text
    for known, data in list(_unpacked):
        if known is text:
            return data
    data = text.encode("utf-8", "surrogatepass")
    return data if sys.getsizeof(data) * _WIDE < size else text


def unpack(kept: Packed) -> str:
    """Return the text that was packed."""
    if isinstance(kept, str):
        return kept
    text = kept.decode("utf-8", "surrogatepass")
    if len(kept) < _LONG:
        _unpacked.append((text, kept))
    return text


def without_escapes(text: str) -> tuple[str, int]:
    """Return a text without a terminal's escape sequences, such as colours, and their number."""
    return _ESCAPES.subn("", text)


def clean_line(text: str) -> str:
    """Clean text for a single line: any run of white space becomes one space."""
    if text.isprintable() and "  " not in text and text.strip(" ") == text:
        return text  # of white space, only the blank is printable
    # White space first: some of it (U+0085) is unsafe as well, but still separates words.
    line = " ".join(text.split())
    return line if line.isprintable() else " ".join(clean(line).split())


def storable(text: str) -> str:
    """Replace lone surrogates: JSON and names of files may have them, what is in UTF-8 can't."""
    if not text.isascii():
        try:
            text.encode()  # decoding it would make a copy
        except UnicodeEncodeError:
            return text.encode("utf-8", "replace").decode()
    return text


def holds_any(text: str, signs: Iterable[str]) -> bool:
    """Return whether one of some signs of two or three characters is in a text.

    To look for one character takes a hundredth of the time, and most texts don't have the first.
    """
    for each in signs:  # noqa: SIM110 - `any` would take a call more for each sign
        if each[0] in text and each[-1] in text and each in text:
            return True
    return False


def longest_line(text: str) -> int:
    """Return the length of the longest line, in characters."""
    return max(map(len, text.splitlines()), default=0)


def fold(text: str) -> str:
    """Casefold and strip accents, for comparing what people type with what is stored."""
    if text.isascii():
        return text.lower()
    # Decomposed before and after casefolding, as each step can produce input for the other.
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", "".join(filterfalse(unicodedata.combining, decomposed)))


def has_words(text: str, query: str) -> bool:
    """Return whether each word of a query occurs in a text, whatever their case and accents."""
    folded = fold(text)
    return all(word in folded for word in fold(query).split())


def slugify(title: str, max_length: int = MAX_SLUG) -> str:
    """Make a kebab-case file name stem out of a title; never empty, never over `max_length`.

    Accents are folded; letters of other scripts stay, so a Chinese title keeps its name.
    """
    slug = _NOT_SLUG.sub("-", fold(clean_line(title)).replace("_", "-")).strip("-")
    if len(slug) > max_length:
        slug = slug[: max_length + 1].rsplit("-", 1)[0][:max_length].strip("-")
    return slug or "untitled"


def natural(text: str) -> list[tuple[int, str]]:
    """Return a natural sort key: ``note-9`` sorts before ``note-10``."""
    parts = _NUMBER.split(text)
    return [(int(part), "") if i % 2 else (0, part) for i, part in enumerate(parts)]


def shorten(text: str, width: int) -> str:
    """Truncate a line to `width` characters with an ellipsis, at a word boundary if possible."""
    line = clean_line(text)
    if len(line) <= width:
        return line
    head = line[: width - 1]
    at_word = head.rsplit(" ", 1)[0]
    return (at_word if len(at_word) > width // 2 else head).rstrip(" ,;:.") + "…"


def headline(text: str) -> str:
    """Return the first line with content, without its Markdown marker, as a title."""
    first = next((line for line in text.splitlines() if line.strip("#>-* \t")), "")
    return shorten(clean_line(first).lstrip("#>-* "), _HEADLINE)


def usd(amount: float) -> str:
    """Format US dollars: ``$0.12``, or ``<$0.01`` for less than a cent."""
    return "<$0.01" if 0 < amount < 0.01 else f"${amount:,.2f}"


def counted(count: int, one: str, many: str = "") -> str:
    """Format a count: ``1 file``, ``2,000 files``; `many` is an irregular plural."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def enumerated(parts: Sequence[str]) -> str:
    """Join items for a sentence: ``a, b and c``."""
    *others, last = parts or [""]
    return f"{', '.join(others)} and {last}" if others else last


def span(seconds: float) -> str:
    """Format a duration, rounded to seconds or minutes."""
    if seconds < 90:  # of a minute and a half
        return counted(max(1, round(seconds)), "second")
    return counted(round(seconds / 60), "minute")


def moment(time: datetime) -> str:
    """Format a time in the local zone: ``2026-03-06 10:00``."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"


def json_object(data: bytes | str | None) -> dict[str, Any] | None:
    """Parse a JSON object; return None for anything else, malformed or too deeply nested."""
    try:
        value = json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
