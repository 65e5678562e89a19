"""Detection of private files, which only local models may read.

A file is private if it says so in any spelling, if the settings name it, or if it is a copy of a
private file. In doubt it is private: malformed frontmatter that mentions `private` counts, and so
does a property found in any of the encodings the bytes may have.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator

from kbtui.knowledge.format import frontmatter
from kbtui.workspace.files import text_of
from kbtui.workspace.layout import is_conflict_copy, original_of

_FALSE_VALUES = frozenset(
    {"", "false", "no", "off", "0", "n", "f", "nein", "non", "null", "~", "none"}
)
_OPENING = re.compile(
    r"(?:\s*(?:<!--[^>]*-->|#[^\n]*(?=\n-{3,}\s*\n)))*\s*(?:-{3,}|\+{3,}|;{3,}|(?=\{))"
)
_CLOSING = re.compile(r"^(?:-{3,}|\.{3}|\+{3,}|;{3,}|\})\s*$", re.MULTILINE)
_PROPERTY = re.compile(r"\s*(?:- )?(?:#\+)?[\w\"' -]{1,40}\s*[:=]")
_PRIVATE_KEY = re.compile(
    r"""(?:^[\s>?,-]*(?:#\+)?|[{,]\s*)(?:[!&]\S*\s+)*["']?private["']?\s*(?::{1,2}|=)[ \t]*"""
    r"""(?:\n[ \t]+)?(?P<value>[^\n]*)""",
    re.IGNORECASE | re.MULTILINE,
)
# An inline property as in Dataview and Logseq: ``private:: yes``, ``(private:: yes)``.
_INLINE_PROPERTY = re.compile(
    r"(?:^[ \t>*_+-]*(?:(?:\d+[.)]|\[.\]) +)*|[\[(] *[*_]*)private[*_]*[ \t]*::(?!:)"
    r"(?P<value>[^\n\])]*)",
    re.IGNORECASE | re.MULTILINE,
)
_BREAKS = re.compile("\r\r\n|\r\n?|[\v\f\x85\u2028\u2029]")
_CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r"})
_INVISIBLE = re.compile(
    "[\0-\x08\x0e-\x1f\x7f-\x9f\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f"
    "\ufeff\ufffd]"
)
_YAML_MARKS = re.compile(r"^(?:[!&]\S*\s+)+")  # YAML tags and anchors
_MAX_UNCLOSED_LINES = 60
_ESCAPES_WITHIN = 4096
_WIDE_WITHIN = 2**20
_COPY_SUFFIX = re.compile(
    r"(?i)(?P<stem>.+?)(?:\.(?:bak|backup|orig|old|save|saved|te?mp|sw[op]|copy|rej|txt|text|markdown|mdx|mdown"
    r"|mkd|rst|org|docx?|odt|rtf|html?|json|csv|xml|ya?ml|pdf|gpg|asc|enc|gz|zip|\d{1,8}|~\d+~|\d{4}-\d\d-\d\d"
    r"|(?!md)[a-z]{2})|[~#]|[ _-]?\(\d{1,3}\)|[ ]\d{1,2}"
    r"|[ _-]{1,3}\(?(?:copy|kopie|copia|copie|backup|old|bak)[ _-]?\(?\d{0,8}\)?"
    r"|[ _-]\(?(?:[^()/]{1,40} )?conflicted copy[^/]{0,60})"
)
_COPY_PREFIX = re.compile(r"(?i)(?:copy of |kopie von |copia de |copie de |[#~._]+)(?P<stem>.+)")
_MAX_SUFFIXES = 4
_RULES = (
    _OPENING,
    _CLOSING,
    _PROPERTY,
    _PRIVATE_KEY,
    _INLINE_PROPERTY,
    _BREAKS,
    _INVISIBLE,
    _YAML_MARKS,
)
# A hash of these rules: caches made by other versions of them are discarded.
VERSION = hashlib.sha256(
    repr([*(rule.pattern for rule in _RULES), *sorted(_FALSE_VALUES)]).encode()
).hexdigest()[:12]


def says_private(data: bytes) -> bool:
    """Return whether a document declares itself private in any possible encoding."""
    begin = data[:_ESCAPES_WITHIN]
    is_plain = begin.isascii() and b"\0" not in data and b"\\" not in begin
    if is_plain and b"private" not in data.translate(None, _CONTROLS).lower():
        return False
    return any(_text_says_private(_normalized(text)) for text in dict.fromkeys(_decodings(data)))


def says_private_inline(text: str) -> bool:
    """Return whether a text has the inline property ``private:: yes``."""
    return any(
        _is_private(match["value"]) for match in _INLINE_PROPERTY.finditer(_normalized(text))
    )


def _decodings(data: bytes) -> Iterator[str]:
    """Yield the texts that a file's bytes may decode to.

    A single wrong byte must not hide the property: so UTF-8 is always tried, in which Latin letters
    of UTF-16 and UTF-32 are the same once NUL bytes are dropped.
    """
    yield text_of(data)
    yield data.decode("utf-8", "replace")
    if b"\0" in data[:_ESCAPES_WITHIN]:  # some editors write UTF-16 without a BOM
        for encoding in ("utf-16-le", "utf-16-be", "utf-32"):
            yield data[:_WIDE_WITHIN].decode(encoding, "replace")


def _text_says_private(text: str) -> bool:
    if "private" not in text.lower() and "\\" not in text[:_ESCAPES_WITHIN]:
        return False
    head = _property_lines(text)
    if any(_is_private(match["value"]) for match in _PRIVATE_KEY.finditer(head)):
        return True
    if any(_is_private(match["value"]) for match in _INLINE_PROPERTY.finditer(text)):
        return True
    values = frontmatter.parse(f"---\n{head.strip()}\n---\n").values
    declared = {
        str(value).casefold() for key, value in values.items() if str(key).lower() == "private"
    }
    return not declared <= _FALSE_VALUES


def _is_private(value: str) -> bool:
    value = _YAML_MARKS.sub("", value.partition(" #")[0].strip())
    return value.strip(" \t\"'`*_,}])").casefold() not in _FALSE_VALUES


def _normalized(text: str) -> str:
    text = _BREAKS.sub("\n", text)
    return _INVISIBLE.sub("", text if text.isascii() else unicodedata.normalize("NFKC", text))


def _property_lines(text: str) -> str:
    """Return the lines of a document that may contain properties.

    Without an opening line these are the lines of the first paragraph that look like properties:
    text may follow without a blank line, and the opening line may be malformed.
    """
    opening = _OPENING.match(text)
    if opening is None:
        lines = text.lstrip().partition("\n\n")[0].splitlines()
        return "\n".join(line for line in lines if _PROPERTY.match(line))
    rest = text[opening.end() :]
    closing = _CLOSING.search(rest)
    return (
        rest[: closing.start()] if closing else "\n".join(rest.splitlines()[:_MAX_UNCLOSED_LINES])
    )


def originals(path: str) -> Iterator[str]:
    """Yield the paths a file may be a copy of, judging by its name, nearest first."""
    if is_conflict_copy(path):
        yield original_of(path)
    folder, slash, name = path.rpartition("/")
    for stem in _stems(name):
        yield from dict.fromkeys(
            f"{folder}{slash}{each}"
            for each in (stem, f"{stem}.md", stem.lower(), f"{stem.lower()}.md")
            if each != name
        )


def _stems(name: str) -> Iterator[str]:
    if before := _COPY_PREFIX.fullmatch(name):
        name = before["stem"]
        yield name
    for _ in range(_MAX_SUFFIXES):
        stem, dot, suffix = name.rpartition(".")
        copy = _COPY_SUFFIX.fullmatch(name)
        if copy is None and dot:  # "diary (1).md", "diary copy.md"
            inner = _COPY_SUFFIX.fullmatch(stem)
            copy = inner
            if inner is not None:
                yield f"{inner['stem']}.{suffix}"
        if copy is None:
            return
        name = copy["stem"]
        yield name
