"""Which files only local models may read: one function for every way out.

A file is private if it says so in any spelling, if the settings name it, or if it is a copy of one
that is. In doubt it is: a head that can't be read and names `private` counts.
"""

from __future__ import annotations

import codecs
import hashlib
import re
import unicodedata
from collections.abc import Iterator

from kbtui.knowledge.format import frontmatter
from kbtui.workspace.files import text_of
from kbtui.workspace.layout import is_conflict_copy, original_of

_PUBLIC = frozenset({"", "false", "no", "off", "0", "n", "f", "nein", "non", "null", "~", "none"})
_OPENING = re.compile(
    r"(?:\s*(?:<!--[^>]*-->|#[^\n]*(?=\n-{3,}\s*\n)))*\s*(?:-{3,}|\+{3,}|;{3,}|(?=\{))"
)
_CLOSING = re.compile(r"^(?:-{3,}|\.{3}|\+{3,}|;{3,}|\})\s*$", re.MULTILINE)
_PROPERTY = re.compile(r"\s*(?:#\+)?[\w\"' -]{1,40}\s*[:=]")
_NAMED = re.compile(
    r"""(?:^[\s>?,-]*(?:#\+)?|[{,]\s*)(?:[!&]\S*\s+)*["']?private["']?\s*[:=][ \t]*"""
    r"""(?:\r?\n[ \t]+)?(?P<value>[^\r\n]*)""",
    re.IGNORECASE | re.MULTILINE,
)
_HIDDEN = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad]")
_MARKS = re.compile(r"^(?:[!&]\S*\s+)+")  # tags and anchors of YAML
_UNCLOSED_LINES = 60
_ESCAPES_WITHIN = 4096
_COPIES = re.compile(
    r"(?i)(?P<stem>.+?)(?:\.(?:bak|backup|orig|old|save|saved|te?mp|sw[op]|copy|rej|txt|text|markdown|mdx|mdown"
    r"|mkd|rst|org|docx?|odt|rtf|html?|json|csv|xml|ya?ml|pdf|gpg|asc|enc|gz|zip|\d{1,8}|~\d+~|\d{4}-\d\d-\d\d"
    r"|(?!md)[a-z]{2})|[~#]|[ _-]?\(\d{1,3}\)|[ ]\d{1,2}"
    r"|[ _-]{1,3}\(?(?:copy|kopie|copia|copie|backup|old|bak)[ _-]?\(?\d{0,8}\)?"
    r"|[ _-]\(?(?:[^()/]{1,40} )?conflicted copy[^/]{0,60})"
)
_BEFORE = re.compile(r"(?i)(?:copy of |kopie von |copia de |copie de |[#~._]+)(?P<stem>.+)")
_MOST_SUFFIXES = 4
_RULES = (_OPENING, _CLOSING, _PROPERTY, _NAMED, _HIDDEN, _MARKS)
# Of these rules: what was remembered of files by others is worked out again.
VERSION = hashlib.sha256(
    repr([*(rule.pattern for rule in _RULES), *sorted(_PUBLIC)]).encode()
).hexdigest()[:12]


def says_private(data: bytes) -> bool:
    """True if a document says itself, in its head, that it is private."""
    begin = data[:_ESCAPES_WITHIN]
    if b"\0" not in begin and b"\\" not in begin and b"private" not in data.lower():
        if begin.isascii():
            return False
        if "private" not in _plain(begin.decode("utf-8", "replace")).lower():
            return False
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        text = data.decode("utf-32", "replace")
    else:
        text = text_of(data)
    if "\0" in text:  # some editors write UTF-16 without a mark
        text = data.decode("utf-16-le" if data[1:2] == b"\0" else "utf-16-be", "replace")
    text = _plain(text)
    head = _head(text)
    if head is None:
        return False
    for match in _NAMED.finditer(head):
        value = _MARKS.sub("", match["value"].partition(" #")[0].strip())
        if value.strip(" \t\"'`,}]").casefold() not in _PUBLIC:
            return True
    values = frontmatter.parse(f"---\n{head.strip()}\n---\n").values
    said = {str(value).casefold() for key, value in values.items() if str(key).lower() == "private"}
    return not said <= _PUBLIC


def _plain(text: str) -> str:
    return _HIDDEN.sub("", unicodedata.normalize("NFKC", text))


def _head(text: str) -> str | None:
    """The lines of a document that may hold properties; None where it has no such block."""
    opening = _OPENING.match(text)
    if opening is None:
        lines = text.partition("\n\n")[0].splitlines()
        if text.startswith("#+"):  # of Org
            lines = [line for line in lines if line.startswith("#+")]
        return "\n".join(lines) if lines and all(map(_PROPERTY.match, lines)) else None
    rest = text[opening.end() :]
    closing = _CLOSING.search(rest)
    return rest[: closing.start()] if closing else "\n".join(rest.splitlines()[:_UNCLOSED_LINES])


def originals(path: str) -> Iterator[str]:
    """The paths of which a file may be a copy, by its name, the nearest first; not itself."""
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
    if before := _BEFORE.fullmatch(name):
        name = before["stem"]
        yield name
    for _ in range(_MOST_SUFFIXES):
        stem, dot, suffix = name.rpartition(".")
        copy = _COPIES.fullmatch(name)
        if copy is None and dot:  # "diary (1).md", "diary copy.md"
            inner = _COPIES.fullmatch(stem)
            copy = inner
            if inner is not None:
                yield f"{inner['stem']}.{suffix}"
        if copy is None:
            return
        name = copy["stem"]
        yield name
