"""Keeping every byte that wasn't edited.

An editor widget knows one kind of line end. `restore` puts back the line ends that a file had,
line by line, and gives new lines the one that is usual in the file.
"""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher

_END = re.compile(r"(?:\r\n|[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029])\Z")


def for_editor(text: str) -> str:
    r"""The text with ``\\n`` as its only line end, as an editor shows it."""
    return "\n".join(text.splitlines()) + ("\n" if _END.search(text) else "")


def restore(original: str, edited: str) -> str:
    """What to save: `edited` (of `for_editor(original)`) with the line ends of `original`."""
    if for_editor(original) == original:
        return edited
    old = original.splitlines(keepends=True)
    bare = [_END.sub("", line) for line in old]
    ends = [line[len(text) :] for line, text in zip(old, bare, strict=True)]
    new = edited.split("\n")
    usual = Counter(filter(None, ends)).most_common(1)
    default = usual[0][0] if usual else "\n"
    result = [default] * len(new)
    matcher = SequenceMatcher(None, bare, new, autojunk=False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            result[block.b + offset] = ends[block.a + offset] or default
    # `split` leaves a last piece that no line end follows.
    result[-1] = ""
    return "".join(text + end for text, end in zip(new, result, strict=True))
