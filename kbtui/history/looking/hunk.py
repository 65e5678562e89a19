"""Hunks of a change taken back in what the change wrote, byte for byte.

Hunks are made from texts, but a file may hold bytes that are none, a byte order mark, or two bytes
for each character: its lines are put together as they are.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from kbtui.errors import UsageError
from kbtui.history.looking.diff import split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbtui.history.looking.diff import Hunk

_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def without_hunks(old: bytes, new: bytes, hunks: Iterable[Hunk]) -> bytes:
    """What `new` holds with the lines of some hunks as `old` has them.

    Raises:
        UsageError: The lines of these bytes can't be told apart.
    """
    before, after = _lines(old), _lines(new)
    for hunk in sorted(hunks, key=lambda each: -each.new_start):  # numbers above stay true
        first = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        start = hunk.new_start - 1 if hunk.new_count else hunk.new_start
        after[start : start + hunk.new_count] = before[first : first + hunk.old_count]
    return b"".join(after)


def _lines(data: bytes) -> list[bytes]:
    """The lines that the text of some bytes has, as bytes; a mark stays on the first one."""
    codec = _WIDE.get(data[:2])
    if codec is None:
        return re.findall(rb"[^\n]*\n|[^\n]+", data)
    try:
        return [line.encode(codec) for line in split_lines(data.decode(codec))]
    except UnicodeDecodeError as error:
        raise UsageError(
            "A hunk of that file can't be told apart: it is damaged.", "Undo the whole file."
        ) from error
