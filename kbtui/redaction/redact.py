"""Redacts secrets from text that a machine is about to write: keys, passwords, card numbers.

Secrets are recognized in three ways, cheapest first: by an issuer's format, as a random-looking
value after a telling name, and in plain sentences; all are rows of ``secrets.tsv``. Hashes, ids and
URLs of everyday text aren't secrets. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kbtui.redaction import table
from kbtui.redaction.forms import Span, Text, issued
from kbtui.redaction.told import is_in_code, told
from kbtui.redaction.values import is_code, is_password

# The target of a link or picture, of a wiki link, and any bare URL.
_LINK = re.compile(
    r"\[\[(?![\s\"'\[{])[^\[\]\n]{1,500}\]\]|\]\(<?[^\s<>)]{1,4096}"
    r"|(?:href|src)=[\"'][^\"'\n]{1,4096}|(?m:^ {0,3}\[[^\]\n]{1,500}\]:[ \t]+[#./]\S*)"
    r"|(?<![\w+.-])[A-Za-z][\w+.-]{1,20}://[^\s<>\"'`)\]]{1,4096}"
)
# Not for shared links ("?token=") nor signed URLs, which expire.
_IS_VALUE = re.compile(r"[?&;#](?!(?i:X-Amz-|X-Goog-|Signature=|[\w-]*(?<![a-z])token=))[\w.-]*=\Z")
_SPLITS = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad]|\\\\(?=[_*.~-])")
_IS_WIDE = re.compile("[\uff01-\uff5e\u3000\xa0]")
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0xA0: 0x20}
_FIELD = re.compile(r"[\"']?[\w .:-]{0,30}[\"']?\r?")
_RULE = re.compile(r"[ \t]*\|[-:| \t]+\s*")
_LOOK_BACK = 40
_SINGLE_LOOKUPS = 500
_MAX_LINES = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """A detected secret: its kind, its first line (1-based), and a preview safe to show."""

    kind: str
    line: int
    preview: str


@dataclass(frozen=True, slots=True)
class Redaction:
    """Redacted text and the secrets found in it."""

    text: str
    found: tuple[Finding, ...]


def redact(text: str, keep: str = "") -> Redaction:
    """Replace every secret in `text` by ``[redacted: <kind>]``.

    Secrets that are already in the previous text, `keep`, are left for the user to remove.
    """
    spans = [
        (start + first, start + last, kind)
        for start, part in _changed_parts(text, keep)
        for first, last, kind in _secrets(part)
    ]
    if not spans:
        return Redaction(text, ())
    known = _already_there(spans, text, keep)
    lines = [match.start() for match in re.finditer("\n", text)]
    pieces: list[str] = []
    found: list[Finding] = []
    end = 0
    for first, last, kind in spans:
        secret = text[first:last]
        if secret in known:
            continue
        pieces += [text[end:first], f"[redacted: {kind}]"]
        found.append(Finding(kind, bisect_right(lines, first - 1) + 1, f"{secret[:4]}…"))
        end = last
    return Redaction("".join([*pieces, text[end:]]), tuple(found))


def _changed_parts(text: str, keep: str) -> Iterator[tuple[int, str]]:
    """Yield the offset and text of each part with lines that aren't in `keep`.

    A label or table header may precede its secret, so each part is extended to its paragraph and
    two lines before it; if there may be a private key, the part is the whole text.
    """
    if not keep or "PRIVATE KEY" in text or "PuTTY-" in text:
        yield 0, text
        return
    known = set(keep.splitlines(keepends=True))
    above = deque[int](maxlen=_MAX_LINES)  # line offsets: this paragraph and two lines before it
    begin = -1
    at = 0
    for line in text.splitlines(keepends=True):
        if line not in known and begin < 0:
            begin = above[0] if above else at
        elif line in known and begin >= 0:
            yield begin, text[begin:at]
            begin = -1
        above.append(at)
        if not line.strip():
            above = deque(list(above)[-2:], maxlen=_MAX_LINES)
        at += len(line)
    if begin >= 0:
        yield begin, text[begin:]


def _already_there(spans: list[Span], text: str, keep: str) -> set[str]:
    """Return the secrets that are already in `keep`."""
    if not keep:
        return set()
    secrets = {text[first:last] for first, last, _ in spans}
    if len(secrets) > _SINGLE_LOOKUPS:
        return secrets & {keep[first:last] for first, last, _ in _secrets(keep)}
    return {secret for secret in secrets if secret in keep}


def _secrets(text: str) -> list[Span]:
    """Return the sorted spans of secrets; of two that overlap the more certain one is kept."""
    plain = text.translate(_WIDE) if not text.isascii() and _IS_WIDE.search(text) else text
    cuts: list[int] = []
    if not plain.isascii() or "\\" in plain:
        cuts = [match.start() for match in _SPLITS.finditer(plain)]
    if cuts:
        plain = _SPLITS.sub("", plain)
        moved = [cut - nth for nth, cut in enumerate(cuts)]
    kept: list[Span] = []
    for first, last, kind in _spans(plain):
        span = (first, last, kind)
        if cuts:
            span = (first + bisect_right(moved, first), last + bisect_right(moved, last - 1), kind)
        place = bisect(kept, span)
        is_free = place == 0 or kept[place - 1][1] <= span[0]
        if first < last and is_free and (place == len(kept) or span[1] <= kept[place][0]):
            kept.insert(place, span)
    return kept


def _spans(text: str) -> Iterator[Span]:
    """Yield spans of secrets, most certain kinds first."""
    scan = Text(text)
    yield from scan.spans("forms")
    yield from issued(scan)
    yield from _outside_of_links(text, _contextual(scan))


def _contextual(scan: Text) -> Iterator[Span]:
    """Yield secrets recognized by their context, or only by a check digit."""
    yield from scan.spans("guesses")
    yield from told(scan)
    for span in scan.spans("told before"):
        if not is_in_code(scan.text, *span[:2]):
            yield span
    yield from _in_tables(scan)


def _in_tables(scan: Text) -> Iterator[Span]:
    """Yield secrets in columns of a table or of CSV whose headers name one."""
    text, end = scan.text, 0
    for form in scan.forms["columns"]:
        for first, last in scan.lines(match.start() for match in scan.matches(form, small=True)):
            line = text[first:last].rstrip("\n")
            sign = max("|,;\t", key=line.count)
            heads = line.split(sign)
            if (
                first < end
                or sign not in line
                or not (sign == "|" or all(map(_FIELD.fullmatch, heads)))
            ):
                continue
            end = last
            if sign == "|" and (rule := _RULE.match(text, last)):
                end = rule.end()
            named = [table.part("column").fullmatch(head.strip("\"' \t\r*`")) for head in heads]
            while sign in text[end : (more := scan.end(end))]:
                yield from _in_row(text[end:more], end, sign, named)
                end = more


def _in_row(row: str, place: int, sign: str, named: list[re.Match[str] | None]) -> Iterator[Span]:
    for head, cell in zip(named, row.split(sign), strict=False):
        secret = cell.strip(" \t\r\n\"'`*_")
        begin = place + cell.find(secret)
        if head and secret:
            is_number = head["code"] is not None and is_code(secret)
            if is_number or is_password(secret):
                yield begin, begin + len(secret), "PIN or code" if is_number else "password"
        place += len(cell) + 1


def _outside_of_links(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Drop spans inside URLs: an uncertain match isn't worth a broken link.

    Parameters such as ``?api_key=`` are kept, except those of shared links and signed URLs.
    """
    links: list[tuple[int, int]] | None = None
    for span in spans:
        if links is None:
            links = [match.span() for match in _LINK.finditer(text)]
        first, last, _ = span
        place = bisect(links, (last,)) - 1
        is_inside = place >= 0 and links[place][1] > first
        if not is_inside or _IS_VALUE.search(text, max(0, first - _LOOK_BACK), first):
            yield span
