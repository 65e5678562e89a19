"""A text that must go: every form in which it may stand in our files, and what takes its place."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from functools import cached_property
from urllib.parse import quote

from kbtui.errors import UsageError

MARKER = "[removed]"
_LEAST = 6
_NAME = b"removed"
_LOOKED_AT = 8192
_NO_TEXT = re.compile(rb"[\x01-\x06\x0e-\x1a]")
_FORMATS = (
    *(
        b"PK\x03\x04",
        b"PK\x05\x06",
        b"%PDF",
        b"\x89PNG",
        b"\xff\xd8\xff",
        b"GIF8",
        b"RIFF",
        b"\x1f\x8b",
    ),
    *(
        b"BZh",
        b"7z\xbc\xaf",
        b"Rar!",
        b"\xfd7zXZ",
        b"\x28\xb5\x2f\xfd",
        b"\xd0\xcf\x11\xe0",
        b"ID3",
        b"OggS",
    ),
    b"SQLite format 3\0",
)
_BASE64 = b"A"  # stays base64 whatever stands around it


class Secret:
    """Finds and replaces one text in bytes.

    Raises:
        UsageError: It is so short that it would take other things with it.
    """

    def __init__(self, text: str) -> None:
        text = text.strip("\r\n")
        if len(text.strip()) < _LEAST:
            raise UsageError(
                f"That is too short: fewer than {_LEAST} characters may stand anywhere.",
                "Give the whole secret.",
            )
        if text in MARKER:
            raise UsageError("That is what stands where something was removed.")
        self._text = text

    @cached_property
    def _forms(self) -> dict[bytes, bytes]:
        """Each form with what takes its place; the longer forms first."""
        marker = MARKER.encode()
        forms: dict[bytes, bytes] = {}
        for normal in ("NFC", "NFD"):
            text = unicodedata.normalize(normal, self._text)
            for shown in (text, text.replace("\n", "\r\n"), quote(text, safe="")):
                forms[shown.encode("utf-8", "surrogatepass")] = marker
            for ascii_only in (True, False):
                escaped = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
                forms[escaped.encode("utf-8", "surrogatepass")] = marker
            for encoding in ("utf-16-le", "utf-16-be"):
                forms[text.encode(encoding, "surrogatepass")] = MARKER.encode(encoding)
            for form in _in_base64(text.encode("utf-8", "surrogatepass")):
                forms[form] = _BASE64 * len(form)
        forms[self._text.encode("utf-8", "surrogatepass")] = marker
        return dict(sorted(forms.items(), key=lambda pair: -len(pair[0])))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(re.escape(form) for form in self._forms), re.DOTALL)

    @property
    def longest(self) -> int:
        """How many bytes its longest form has."""
        return max(map(len, self._forms))

    def count(self, data: bytes) -> int:
        """How often it stands in some bytes."""
        return sum(1 for _ in self._pattern.finditer(data)) if self.is_in(data) else 0

    def is_in(self, data: bytes) -> bool:
        """True if it stands in some bytes."""
        return any(form in data for form in self._forms)

    def without(self, data: bytes) -> bytes:
        """Bytes in which a mark stands in its place."""
        if not self.is_in(data):
            return data
        return self._pattern.sub(lambda found: self._forms[found.group()], data)

    def name_without(self, name: bytes) -> bytes:
        """A file's name with a word in its place."""
        return self._pattern.sub(_NAME, name) if self.is_in(name) else name


def is_binary(data: bytes) -> bool:
    """True if some bytes are a program's own format, which other bytes in it would break."""
    # UTF-16 has zeros as well, but hardly anything else that no text has.
    head = data[:_LOOKED_AT]
    return data.startswith(_FORMATS) or (b"\0" in head and _NO_TEXT.search(head) is not None)


def _in_base64(data: bytes) -> set[bytes]:
    """The forms of some bytes inside longer base64 text, for each of the three ways they lie."""
    forms = set()
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + data)
        # Only the characters that hold nothing but bits of the data.
        start, end = -(-8 * before // 6), 8 * (before + len(data)) // 6
        for form in (whole[start:end], whole[start:end].translate(bytes.maketrans(b"+/", b"-_"))):
            if len(form) >= _LEAST:
                forms.add(form)
    return forms
