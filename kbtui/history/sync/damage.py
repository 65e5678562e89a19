"""Whether one version of an unversioned file is another one damaged, which no sync may spread.

Logs only grow, so a version that lacks a line of another is damaged unless somebody put down that
he removed it (`workspace/removals.py`). Documents are edited by any program: of these, only what no
program makes counts as damage.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from kbtui.text import json_object
from kbtui.workspace import files

_BOM = b"\xef\xbb\xbf"
# What files of a kind begin with, and what stands within so many bytes of their end.
_FORMS = (
    (b"%PDF-", b"%%EOF", 2048),
    (b"PK\x03\x04", b"PK\x05\x06", 66_000),  # ZIP, and with it DOCX, ODT and EPUB
    (b"\x89PNG\r\n\x1a\n", b"IEND", 64),
    (b"\xff\xd8\xff", b"\xff\xd9", 4096),
    (b"GIF8", b"\x3b", 64),
)
_TEXT = (b"", b"", 0)


class Verdict(Enum):
    """What one version of a document is, compared with another one."""

    DAMAGED = "damaged"
    """Only a part of the other one is left, and nothing is new: it is of no use."""
    DOUBTFUL = "doubtful"
    """It may be damaged or edited, so both are to be kept, the other one under the name."""
    LESS = "less"
    """A person may have meant it, but then texts are gone: keep both, this one under the name."""
    SOUND = "sound"


def compare_documents(before: bytes, after: bytes) -> Verdict:
    """Judge one version of a document, `after`, by the other one.

    A text that ends earlier, but with a whole line, is `LESS`.
    """
    if is_blank(after):
        return Verdict.SOUND if is_blank(before) else Verdict.DAMAGED
    rest = after.rstrip(b"\0")
    if before.startswith(rest) and len(rest) < len(before):
        is_whole = rest == after and after.endswith(b"\n") and _form(before) == _TEXT
        return Verdict.LESS if is_whole else Verdict.DAMAGED
    if _is_zeroed(before, after):
        return Verdict.DAMAGED
    form, now = _form(before), _form(after)
    is_lost = form not in (None, now) and now in (None, _TEXT)
    return Verdict.DOUBTFUL if is_lost else Verdict.SOUND


def is_blank(data: bytes) -> bool:
    """Return whether a file is empty, or holds only zero bytes."""
    return not data.strip(b"\0")


def _is_zeroed(before: bytes, after: bytes) -> bool:
    """Return whether they differ only in bytes, or bits, that are zero by now."""
    if len(before) != len(after) or b"\0" not in after:
        return False
    one, other = (int.from_bytes(data, "big") for data in (before, after))
    return one != other and not (one ^ other) & other


def _form(data: bytes) -> tuple[bytes, bytes, int] | None:
    """Return the form of a whole file of a known kind or of a text, None for anything else."""
    for form in _FORMS:
        start, end, within = form
        if data.startswith(start):
            return form if end in data[-within:] else None
    return _TEXT if b"\0" not in data.removeprefix(_BOM) and files.decode(data).exact else None


class Log:
    """The lines of a conversation's log.

    Args:
        data: The log, or a part of it.
        before: What stands before that part.

    Attributes:
        lines: Those that can be read, in order, without line ends.
        bad: Those that can't, and messages that stand there again.
    """

    def __init__(self, data: bytes, before: bytes = b"") -> None:
        self.lines: list[bytes] = []
        self.bad: set[bytes] = set()
        known = {line.strip() for line in before.split(b"\n")}
        for line in data.removeprefix(_BOM).split(b"\n"):
            if text := line.strip():
                record = _record(text)
                if record is None or ("role" in record and text in known):
                    self.bad.add(text)
                else:
                    self.lines.append(text)
                known.add(text)

    def without(self, lines: Iterable[bytes]) -> list[bytes]:
        """Return the lines that aren't among others, each once."""
        known = set(lines)
        return [line for line in dict.fromkeys(self.lines) if line not in known]

    def has_all_of(self, other: Log) -> bool:
        """Return whether all lines of another log are there, in their order."""
        lines = iter(self.lines)
        return all(line in lines for line in other.lines)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        return json_object(line.decode())
    except UnicodeDecodeError:
        return None
