"""The phrases of the section ``[frames]`` of a language, as patterns for its texts.

They are made when the lists are compiled (`kbtui.offline.language`): in each process that would
take longer than reading them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_MAX_GAP = 90  # characters between the words of a phrase
_GAP = rf"\b[^.!?]{{1,{_MAX_GAP}}}?\b"


def pattern_of(phrases: Iterable[str]) -> str:
    """Return a pattern that finds the longest of some phrases, in a text in lower case."""
    longest = sorted(filter(None, phrases), key=len, reverse=True)
    return "|".join(map(_phrase_pattern, longest)) or r"(?!)"


def _phrase_pattern(phrase: str) -> str:
    start = r"(?<!\w)(?<!\w\w')" if phrase[:1] != "'" else ""  # after l', but not in don't
    words = [_word_pattern(each) for each in phrase.split()]
    body = words[0]
    for word in words[1:]:
        gap = "" if word == _GAP or body.endswith(_GAP) else r"\s+"
        body += gap + word
    last = phrase[-1:]
    return f"{start}{body}" + (r"(?!\w)" if last.isalnum() else "")


def _word_pattern(word: str) -> str:
    if word == "..":
        return _GAP
    return "".join(r"[\w'-]*" if char == "*" else _char_pattern(char) for char in word)


def _char_pattern(char: str) -> str:
    bare = unicodedata.normalize("NFD", char)[0]
    if bare != char:
        return f"[{char}{bare}]"
    return "(?:ß|ss)" if char == "ß" else re.escape(char)
