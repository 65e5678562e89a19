"""Blocks of code, coloured by Pygments where they aren't huge."""

from __future__ import annotations

from textual.content import Content
from textual.highlight import highlight

MAX_COLOURED = 40_000
"""Characters of one block up to which it is coloured; Pygments takes about 1 µs for each."""
_PLAIN = frozenset({"", "text", "txt", "plain", "none", "default"})


def code_lines(code: str, language: str) -> list[Content]:
    """Split code into styled lines; an unknown language stays plain."""
    code = code.expandtabs(4)
    if language.lower() in _PLAIN or len(code) > MAX_COLOURED:
        return [Content(line, strip_control_codes=False) for line in code.split("\n")]
    return highlight(code, language=language).split("\n", allow_blank=True)
