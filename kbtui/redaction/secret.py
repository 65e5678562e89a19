"""Finds and removes one given secret, in every encoding in which files may contain it."""

from __future__ import annotations

import base64
import bz2
import html
import io
import json
import lzma
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from itertools import groupby
from urllib.parse import quote, quote_plus

from kbtui.errors import UsageError
from kbtui.text import slugify, storable
from kbtui.workspace.layout import CATEGORIES, RECORDED_AREAS

MARKER = "(removed)"
"""Replaces a secret; safe in YAML, Markdown and URLs."""
_MIN_LENGTH = 6
_NAME = b"removed"
_SNIFFED_BYTES = 8192
_NO_TEXT = re.compile(rb"[\x01-\x06\x0e-\x1a]")
_FORMATS = (
    *(b"PK\x03\x04", b"PK\x05\x06", b"%PDF", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF"),
    *(b"\x1f\x8b", b"BZh", b"7z\xbc\xaf", b"Rar!", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"),
    *(b"\xd0\xcf\x11\xe0", b"ID3", b"OggS", b"SQLite format 3\0", b"DIRC"),
)
_BASE64 = b"A"  # valid base64 in any context
# Context of a file name: there the replacement is that of file names, so that links keep working.
_BEFORE_NAME, _AFTER_NAME = (b"/", b"[["), (b".md", b"]]")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_FIELD = re.compile(r"[A-Za-z_]+")
_WORDS = frozenset({"kind", "role", "_type", "format", "actor"})
_IDS = frozenset({"id", "session", "turn", "tool_call_id", "by", "hash", "cursor", "message"})
_IDS |= {"messages", "spans", "time", "timestamp", "created", "undoes", "batch", "proposal"}
_ID = re.compile(
    r"\w+_\d{8}-\d{6}-[0-9a-f]{4}|t?[0-9a-f]{10,64}(?: [0-9a-f]{10,64})*"  # sessions, objects
    r"|\d{4}-\d\d-\d\d[T ][\d:.,+Z-]+|\d+-\d+"  # moments, ranges
)
_NAMED = re.compile(r"[\w.:@+-]{1,160}")
_WORD = re.compile(r"[a-z_-]{1,20}")
# Names that kbtui itself relies on.
_OURS = {*RECORDED_AREAS, *CATEGORIES, "sessions", "docs", "INDEX.md", "MEMORY.md", "HISTORY.md"}
_OURS |= {"SKILL.md", "history.jsonl", "tombstones.jsonl", "cursors.json", "kbtui.toml"}
_COMMON_WORD, _COMMON = 9, 500
_IS_WORD = re.compile(r"[^\W\d_]+(?:[ '\u2019.-]+[^\W\d_]+)*")
_TRAILER = re.compile(rb"([A-Z][a-z]+: )(.*)")
_MAX_UNPACKED = 1 << 26
_JSON_NESTING = 3
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")  # before UTF-16
_LEVELS = 3
_PACKED = (b"PK", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"%PDF")
_UNPACK_ERRORS = (OSError, RuntimeError, ValueError, EOFError, NotImplementedError)
_STREAM = re.compile(rb"stream\r?\n")


class Secret:
    """Finds and replaces one text in bytes.

    Raises:
        UsageError: The text is so short that unrelated text would match.
    """

    def __init__(self, text: str, *, same_length: bool = False) -> None:
        text = text.strip("\r\n")
        if len(text.strip()) < _MIN_LENGTH:
            raise UsageError(
                f"That is too short: fewer than {_MIN_LENGTH} characters may stand anywhere.",
                "Give the whole secret.",
            )
        if text != storable(text):
            raise UsageError("That is no text.", "Give the part of it that is.")
        if text in MARKER:
            raise UsageError("That is what stands where something was removed.")
        self._text = text
        self._same_length = same_length

    @property
    def of_same_length(self) -> Secret:
        """The same secret, with replacements of the same length."""
        return Secret(self._text, same_length=True)

    @cached_property
    def _forms(self) -> dict[bytes, bytes]:
        """Each encoded form with its replacement, longest first."""
        marker = MARKER.encode()
        forms: dict[bytes, bytes] = {}
        slug = slugify(self._text)
        for name in (slug, slug.replace("-", "_")):
            if len(name) >= _MIN_LENGTH:
                forms[name.encode("utf-8", "surrogatepass")] = _NAME
        for normal in ("NFC", "NFD"):
            text = unicodedata.normalize(normal, self._text)
            for shown in _encodings(text):
                forms[shown.encode("utf-8", "surrogatepass")] = marker
            for encoding in ("utf-16-le", "utf-16-be"):
                forms[text.encode(encoding, "surrogatepass")] = MARKER.encode(encoding)
            forms[text.encode("cp1252", "ignore")] = marker
            data = text.encode("utf-8", "surrogatepass")
            for form in _base64_forms(data):
                forms[form] = _BASE64 * len(form)
            forms[data.hex().encode()] = forms[data.hex().upper().encode()] = b"0" * (2 * len(data))
        forms[self._text.encode("utf-8", "surrogatepass")] = marker
        kept = ((form, mark) for form, mark in forms.items() if len(form) >= _MIN_LENGTH)
        return dict(sorted(kept, key=lambda pair: -len(pair[0])))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(re.escape(form) for form in self._forms), re.DOTALL)

    @property
    def longest(self) -> int:
        """The length of the longest form in bytes."""
        return max(map(len, self._forms))

    def count(self, data: bytes) -> int:
        """Return the number of occurrences."""
        return sum(1 for _ in self._pattern.finditer(data)) if self.is_in(data) else 0

    def is_in(self, data: bytes) -> bool:
        """Return whether the secret occurs."""
        return any(form in data for form in self._forms)

    def count_inside(self, data: bytes) -> int:
        """Return the number of occurrences, compressed parts of binary formats included."""
        packed = unpack(data) if is_binary(data) else ()
        return self.count(data) + sum(map(self.count, packed))

    def is_inside(self, data: bytes) -> bool:
        """Return whether the secret occurs, compressed parts of binary formats included."""
        return self.is_in(data) or (is_binary(data) and any(map(self.is_in, unpack(data))))

    def is_common(self, times: int) -> bool:
        """Return whether a text with so many occurrences is probably a word, not a secret."""
        return times > (_COMMON_WORD if _IS_WORD.fullmatch(self._text) else _COMMON)

    def without(self, data: bytes) -> bytes:
        """Return the data with the secret replaced.

        In JSON and JSON lines, only values are changed, not keys and ids.
        """
        if not self.is_in(data):
            return data
        parts = [(True, data)] if _is_json(data.lstrip()) else _parts(data)
        change = (lambda part: self._pattern.sub(self._mark, part)), self._without_values
        return b"".join(change[is_record](part) for is_record, part in parts)

    def _mark(self, found: re.Match[bytes]) -> bytes:
        mark = self._forms[found.group()]
        if mark != MARKER.encode():
            return mark
        if self._same_length:
            size = len(found.group().decode("utf-8", "replace"))
            return mark.ljust(size)[:size]
        data, (start, end) = found.string, found.span()
        is_name = data[max(0, start - 2) : start].endswith(_BEFORE_NAME)
        return _NAME if is_name or data[end : end + 3].startswith(_AFTER_NAME) else mark

    def name_without(self, name: bytes) -> bytes:
        """Return a file name with the secret replaced; ids and kbtui's own names stay."""
        stem = name.partition(b".")[0].decode("utf-8", "replace")
        is_id = _ID.fullmatch(stem) is not None and stem != self._text
        if not self.is_in(name) or is_id or name.decode("utf-8", "replace") in _OURS:
            return name
        return self._pattern.sub(_NAME, name)

    def message_without(self, message: bytes) -> bytes:
        """Return a commit message with the secret replaced; keys and ids of trailers stay."""
        whole = message.rstrip(b"\n")
        body, gap, last = whole.rpartition(b"\n\n")
        trailers = [_TRAILER.fullmatch(line) for line in last.split(b"\n")]
        if not gap or not all(trailers):
            return self.without(message)
        kept = [found[1] + self._trailer_without(*found.groups()) for found in trailers if found]
        return self.without(body) + gap + b"\n".join(kept) + message[len(whole) :]

    def _trailer_without(self, key: bytes, value: bytes) -> bytes:
        text = value.decode("utf-8", "replace")
        is_kept = self._is_kept(key.decode().rstrip(": ").lower(), text)
        return value if is_kept else self.without(value)

    # JSON ------------------------------------------------------------------------------------

    def _without_values(self, data: bytes) -> bytes:
        """Replace the secret in the values of a JSON text, leaving all other bytes alone."""
        made: list[bytes] = []
        end = 0
        stack: list[tuple[bool, str]] = []  # (whether in an object, its key)
        key, names = "", False
        for found in _TOKEN.finditer(data):
            token = found.group()
            if token in (b"{", b"["):
                names = token == b"{"
                stack.append((names, key))
            elif token in (b"}", b"]"):
                _, key = stack.pop()
                names = False
            elif token == b":":
                names = False
            elif token == b",":
                names = bool(stack) and stack[-1][0]
            else:
                new = self._key_without(token) if names else self._value_without(token, key)
                if names:
                    key = str(json.loads(token))
                made += [data[end : found.start()], new]
                end = found.end()
        return b"".join([*made, data[end:]])

    def _key_without(self, token: bytes) -> bytes:
        name = json.loads(token)
        return (
            token if _FIELD.fullmatch(name) or _ID.fullmatch(name) else self._string_without(token)
        )

    def _value_without(self, token: bytes, key: str) -> bytes:
        if not token.startswith(b'"'):
            is_kept = key in _IDS or not self.is_in(token)
            return token if is_kept else json.dumps(MARKER).encode()
        return token if self._is_kept(key, json.loads(token)) else self._string_without(token)

    def _is_kept(self, key: str, value: str) -> bool:
        """Return whether a value is an identifier that must stay."""
        if key in _WORDS and _WORD.fullmatch(value):
            return True
        is_id = _ID.fullmatch(value) or (key in _IDS and _NAMED.fullmatch(value))
        return bool(is_id) and value != self._text

    def _string_without(self, token: bytes) -> bytes:
        text = json.loads(token)
        data = text.encode("utf-8", "surrogatepass")
        new = self.without(data)
        if new == data:
            return token
        encoded = json.dumps(new.decode("utf-8", "surrogatepass"), ensure_ascii=token.isascii())
        return encoded.encode("utf-8", "surrogatepass")


def is_binary(data: bytes) -> bool:
    """Return whether data is in a binary format, which a replacement would corrupt."""
    head = data[:_SNIFFED_BYTES]
    if data.startswith(_FORMATS) or b"\0" not in head:
        return data.startswith(_FORMATS)
    # UTF-16 contains zeros as well: after a byte order mark, or at most one in each pair.
    is_text = head.startswith(_BYTE_ORDER_MARKS) or not (b"\0" in head[::2] and b"\0" in head[1::2])
    return not is_text or _NO_TEXT.search(head) is not None


def _base64_forms(data: bytes) -> set[bytes]:
    """Return how data appears inside longer base64 text, for each of the three alignments."""
    forms = set()
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + data)
        # Only characters that encode nothing but bits of the data.
        start, end = -(-8 * before // 6), 8 * (before + len(data)) // 6
        for form in (whole[start:end], whole[start:end].translate(bytes.maketrans(b"+/", b"-_"))):
            if len(form) >= _MIN_LENGTH:
                forms.add(form)
    return forms


def _encodings(text: str) -> Iterator[str]:
    """Yield the text in the escapings of several file formats."""
    yield from (text, text.replace("\n", "\r\n"), text.replace("'", "''"), html.escape(text))
    yield from (quote(text, safe=""), quote(text), quote_plus(text))
    for ascii_only in (True, False):
        escaped = text
        for _ in range(_JSON_NESTING):  # a tool's arguments are JSON within JSON
            escaped = json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]
            yield escaped


def _is_json(data: bytes) -> bool:
    """Return whether data is a JSON object or list."""
    if data[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return False
    return True


def _parts(data: bytes) -> Iterator[tuple[bool, bytes]]:
    """Split data into lines of JSON and the text between them."""
    for is_record, lines in groupby(io.BytesIO(data), _is_json):
        if is_record:
            yield from ((True, line) for line in lines)
        else:
            yield False, b"".join(lines)


def unpack(data: bytes, levels: int = _LEVELS) -> Iterator[bytes]:
    """Yield the uncompressed parts of a zip (such as an office document), gzip, bzip2, xz or PDF.

    Unreadable parts are skipped; nested archives are unpacked `levels` deep.
    """
    for packed in _unpack_once(data):
        yield packed
        if levels > 1 and packed.startswith(_PACKED):
            yield from unpack(packed, levels - 1)


def _unpack_once(data: bytes) -> Iterator[bytes]:
    with suppress(zipfile.BadZipFile, zlib.error, lzma.LZMAError, *_UNPACK_ERRORS):
        if data.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for member in archive.infolist():
                    yield member.filename.encode("utf-8", "surrogatepass")
                    with (
                        suppress(zipfile.BadZipFile, zlib.error, lzma.LZMAError, *_UNPACK_ERRORS),
                        archive.open(member) as stream,
                    ):
                        yield stream.read(_MAX_UNPACKED)
        elif data.startswith(b"\x1f\x8b"):
            yield zlib.decompressobj(31).decompress(data, _MAX_UNPACKED)
        elif data.startswith(b"BZh"):
            yield bz2.BZ2Decompressor().decompress(data, _MAX_UNPACKED)
        elif data.startswith(b"\xfd7zXZ"):
            yield lzma.LZMADecompressor().decompress(data, _MAX_UNPACKED)
        elif data.startswith(b"%PDF"):
            for found in _STREAM.finditer(data):
                with suppress(zlib.error):
                    yield zlib.decompressobj().decompress(data[found.end() :], _MAX_UNPACKED)
