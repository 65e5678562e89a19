"""Parses queries tolerantly (any text is a query), makes snippets, and marks matches.

``type:decision tag:auth "exact phrase" -draft updated:2026 archi*`` are filters, a phrase, an
exclusion and a prefix. Everything else is optional words; the more a document has, the higher it
ranks. A word like ``http:`` that only looks like a filter is a word, as is text after an unclosed
quotation mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from typing import Literal

from kbtui.clock import local_day
from kbtui.search.index import analyser
from kbtui.text import clean

Marker = Callable[[str], list[tuple[int, int]]]


_MAX_CHARACTERS = 20_000
MAX_TERMS = 256
Filter = Literal["type", "tag", "path", "title", "heading", "created", "updated", "said"]
_FIELDS: dict[str, Filter] = {
    "type": "type",
    "tag": "tag",
    "tags": "tag",
    "path": "path",
    "in": "path",
    "folder": "path",
    "title": "title",
    "heading": "heading",
    "created": "created",
    "updated": "updated",
    "by": "said",
    "after": "updated",
    "before": "updated",
}
_SINCE = {"after": ">=", "before": "<"}
_PART = re.compile(
    r"(?P<sign>[-+])?(?:(?P<field>[A-Za-z]{2,12}):)?"
    r"(?:[\"“”](?P<phrase>[^\"“”]*)[\"“”]|(?P<word>\S+))"
)
_HASHTAG = re.compile(r"#.*?[^\W\d_]", re.DOTALL)
_QUOTES = '"“”'
_OPERATORS = frozenset({"AND", "OR"})
_DAY = r"\d{4}(?:-\d{1,2}){0,2}"
_RANGE = re.compile(rf"(?P<since>{_DAY})?\.\.(?P<until>{_DAY})?")
_COMPARISON = re.compile(rf"(?P<sign>[<>]=?)?(?P<day>{_DAY})")
_RECENT = {"today": 0, "yesterday": 1, "week": 7, "month": 31, "year": 366}
_QUESTION_MARKS = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
_AFTER_ALL = "~"  # sorts after every digit and dash


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter that a document must match, or must not if `negated`."""

    field: Filter
    value: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query; `text` is the part used for semantic search."""

    text: str = ""
    words: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    excluded_phrases: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def has_words(self) -> bool:
        """Whether there is anything to rank by besides filters."""
        return bool(self.words or self.phrases or self.required or self.beginnings)

    @property
    def required_phrases(self) -> tuple[str, ...]:
        """The phrases that a hit must contain; in a question, quoted phrases are optional."""
        return () if self.words and self.words[-1].endswith(_QUESTION_MARKS) else self.phrases

    def terms(self) -> dict[str, str]:
        """Return the terms to score by, with the word each came from.

        Stop words are left out if there are other words.
        """
        words = [*self.words, *self.required]
        for phrase in self.phrases:
            words += phrase.split()
        content = [word for word in words if not analyser.is_stop_word(word)]
        found: dict[str, str] = {}
        for word in content or words:
            for term in analyser.terms(word):
                found.setdefault(term, word)
        return dict(list(found.items())[:MAX_TERMS])


def parse(text: str) -> Query:
    """Parse a query; never raises."""
    groups: dict[str, list[str]] = {}
    conditions: list[Condition] = []
    positive: list[str] = []
    negate = False
    for match in _PART.finditer(text[:_MAX_CHARACTERS].replace("\0", " ")):
        if match["word"] == "NOT" and not match["sign"]:
            negate = True
            continue
        if _is_empty(match):
            continue
        condition = _condition(match, negated=negate or match["sign"] == "-")
        if condition is not None:
            conditions.append(condition)
        else:
            kind, value = _classify(match, negated=negate)
            groups.setdefault(kind, []).append(value)
            if not kind.startswith("excluded"):
                positive.append(value)
        negate = False
    lists = {kind: tuple(value for value in values if value) for kind, values in groups.items()}
    return Query(text=" ".join(positive).strip(), conditions=tuple(conditions), **lists)


def split_conditions(text: str, *, whole: bool = False) -> tuple[list[str], str]:
    """Split a query into its conditions, as written, and the rest.

    Args:
        text: The query as it is being typed; the last word may be incomplete.
        whole: The query is complete, including its last word.
    """
    found: list[str] = []
    rest, at = "", 0
    for match in _PART.finditer(text):
        if not _is_complete(match, whole=whole):
            continue
        found.append(match[0])
        rest += text[at : match.start()]
        at = match.end() + 1
    return found, (rest + text[at:]).lstrip() if found else text


def _is_complete(match: re.Match[str], *, whole: bool) -> bool:
    """Return whether a part is a finished condition that isn't negated by ``NOT``."""
    text, end = match.string, match.end()
    ends = whole if end == len(text) else text[end].isspace()
    is_quoted = match["phrase"] is None and any(quote in match["word"] for quote in _QUOTES)
    if not ends or is_quoted or text[: match.start()].rstrip().endswith("NOT"):
        return False
    return not _is_empty(match) and _condition(match, negated=False) is not None


def _is_empty(match: re.Match[str]) -> bool:
    """Return whether a part is empty, a redundant operator, or a filter without a value."""
    if match["phrase"] is not None:
        return not match["phrase"].strip()
    word: str = match["word"]
    if not word.strip(_QUOTES) or word in _OPERATORS:
        return True
    return word.endswith(":") and word[:-1].lower() in _FIELDS


def _condition(match: re.Match[str], *, negated: bool) -> Condition | None:
    value = match["phrase"] if match["phrase"] is not None else match["word"]
    name = (match["field"] or "").lower()
    if not name and _HASHTAG.match(value):
        name, value = "tag", value[1:]
    field = _FIELDS.get(name)
    if field is None:
        return None
    value = value.strip(f" {_QUOTES}").lstrip("#" if field == "tag" else "")
    if name in _SINCE:
        recent = days(value) if value.lower() in _RECENT else None
        value = _SINCE[name] + (recent[0] if recent else value)
    if field in {"created", "updated"} and days(value) is None:
        return None
    return Condition(field, value, negated) if value else None


def _classify(match: re.Match[str], *, negated: bool) -> tuple[str, str]:
    """Return the field of `Query` that a part belongs to, and its value there."""
    field = f"{match['field']}:" if match["field"] else ""
    if match["phrase"] is not None:
        negated = negated or match["sign"] == "-"
        return ("excluded_phrases" if negated else "phrases"), f"{field}{match['phrase']}".strip()
    word = f"{field}{match['word'].strip(_QUOTES)}"
    if negated or match["sign"] == "-":
        return "excluded", word
    if match["sign"] == "+":
        return "required", word
    if word.endswith("*") and len(word.rstrip("*")) > 1:
        return "beginnings", word.rstrip("*")
    return "words", word


def days(value: str, today: date | None = None) -> tuple[str, str] | None:
    """Return the bounds of a date filter, as strings that compare with ISO dates.

    Understands ``2026``, ``2026-03``, ``>2026-03-01``, ``2026-01..2026-03`` and ``week``; returns
    None for anything else.
    """
    if value.lower() in _RECENT:
        start = (today or local_day()) - timedelta(days=_RECENT[value.lower()])
        return start.isoformat(), (start.isoformat() if "yest" in value.lower() else _AFTER_ALL)
    if match := _RANGE.fullmatch(value):
        until = match["until"]
        return _padded(match["since"] or ""), (_padded(until) + _AFTER_ALL if until else _AFTER_ALL)
    match = _COMPARISON.fullmatch(value)
    if match is None:
        return None
    day = _padded(match["day"])
    before = day[:-1] + chr(ord(day[-1]) - 1) + _AFTER_ALL
    spans = {">": (day + _AFTER_ALL, _AFTER_ALL), ">=": (day, _AFTER_ALL), "<": ("", before)}
    return {**spans, "<=": ("", day + _AFTER_ALL)}.get(match["sign"] or "", (day, day + _AFTER_ALL))


def _padded(day: str) -> str:
    return "-".join(part.zfill(2) for part in day.split("-"))


WIDTH = 240
_SPACE = re.compile(r"\s+")
SEPARATOR = "\N{MIDDLE DOT}"
"""The character in a snippet that separates paragraphs and list items."""
_ITEM = r"(?:[-*+]|\d+[.)])[ \t]+(?:\[.\][ \t]+)?"
_ROW_BREAK = r"[ \t]*\|[ \t]*\n[ \t]*\|(?:[-:| \t]+\n[ \t]*\|)?"
_BREAK = re.compile(rf"{_ROW_BREAK}|[ \t]*\n\s*(?:\n\s*(?:{_ITEM})?|{_ITEM})")
_LINK = re.compile(r"!?\[\[[^\]\n]*\]\]|!?\[[^\]\n]*\]\([^)\n]*\)|`[^`\n]+`")
_MAX_LINK = 200
_MAX_MATCHES = 400
_LEAD_CHARACTERS = 50


@dataclass(frozen=True, slots=True)
class Snippet:
    """A one-line excerpt; `matches` are offsets in it.

    `line` is the 0-based line in the chunk of the first match, or of the excerpt's start.
    """

    text: str
    matches: tuple[tuple[int, int], ...] = ()
    line: int = 0


def make_snippet(
    text: str, terms: Container[str], phrases: Sequence[str] = (), fallback: int = 0
) -> Snippet:
    """Make a snippet of the densest matches in `text`, or of the text at offset `fallback`."""
    matches = _matches(text, terms, phrases)
    start, end = _window(text, matches, fallback)
    return _on_one_line(text, start, end, [m for m in matches if start <= m[0] and m[1] <= end])


def _matches(
    text: str, terms: Container[str], phrases: Sequence[str]
) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for phrase in phrases:
        if pattern := phrase_pattern(phrase):
            found += [(m.start(), m.end(), "") for m in pattern.finditer(text)]
    found += islice(analyser.matches(text, terms), max(0, _MAX_MATCHES - len(found)))
    return sorted(found)


def phrase_pattern(phrase: str) -> re.Pattern[str] | None:
    """Compile a pattern for an exact phrase that ignores case and punctuation; None if empty."""
    words = re.findall(r"\w+", phrase)
    if not words:
        return None
    inner = r"\W+".join(re.escape(word) for word in words)
    unspaced = analyser.is_unspaced(phrase)
    return re.compile(inner if unspaced else rf"\b{inner}\b", re.IGNORECASE)


def _window(text: str, matches: list[tuple[int, int, str]], fallback: int) -> tuple[int, int]:
    """Choose the snippet's bounds for the most distinct matches, then for the most matches."""
    if matches and len(text) <= WIDTH:
        return 0, len(text)
    if not matches:
        return _bounds(text, fallback, fallback)
    best, best_score = 0, (0, 0)
    for i, (start, _, _) in enumerate(matches):
        inside = []
        for match in matches[i:]:
            if match[1] > start + WIDTH - _LEAD_CHARACTERS:
                break
            inside.append(match)
        score = (len({match[2] or match for match in inside}), len(inside))
        if score > best_score:
            best, best_score = i, score
    return _bounds(text, max(0, matches[best][0] - _LEAD_CHARACTERS), matches[best][0])


def _bounds(text: str, start: int, before: int) -> tuple[int, int]:
    """Adjust the bounds to the start of a line or word, the end of a word, and whole links."""
    line = text.rfind("\n", start, before) + 1
    if line > start:
        start = line
    elif start > 0 and text[start - 1].isalnum():
        space = text.find(" ", start, before)
        start = space + 1 if space >= 0 else before
    start = next((m.start() for m in _link_across(text, start)), start)
    end = min(len(text), start + WIDTH)
    if end < len(text) and text[end].isalnum():
        space = text.rfind(" ", start + WIDTH // 2, end)
        end = space if space > 0 else end
    return start, next((m.end() for m in _link_across(text, end)), end)


def _link_across(text: str, at: int) -> Iterator[re.Match[str]]:
    """Yield the link that spans the offset `at`, if any."""
    line = text.rfind("\n", 0, at) + 1
    first = max(line, at - _MAX_LINK)
    for match in _LINK.finditer(text, first, at + _MAX_LINK):
        if match.start() < at < match.end():
            yield match


def _on_one_line(text: str, start: int, end: int, matches: list[tuple[int, int, str]]) -> Snippet:
    """Collapse white space, drop control characters, and map the matches to the result."""
    parts: list[str] = []
    length = 0
    spans: list[tuple[int, int]] = []
    at = start
    for match_start, match_end, _ in matches:
        if match_start < at:
            continue
        before = _squeeze(text[at:match_start], first=not length)
        inside = _squeeze(text[match_start:match_end], first=True)
        parts += [before, inside]
        spans.append((length + len(before), length + len(before) + len(inside)))
        length += len(before) + len(inside)
        at = match_end
    parts.append(_squeeze(text[at:end], first=not length))
    shown = "".join(parts).rstrip(f" {SEPARATOR}")
    line = text.count("\n", 0, matches[0][0] if matches else start)
    return Snippet(shown, tuple(span for span in spans if span[0] < span[1] <= len(shown)), line)


def _squeeze(text: str, *, first: bool) -> str:
    text = clean(text).lstrip() if first else clean(text)
    return _SPACE.sub(" ", _BREAK.sub(f" {SEPARATOR} ", text))


def marker(query: str) -> Marker:
    """Return a function that finds the words, phrases and prefixes of a query in a text.

    It returns sorted, non-overlapping character ranges. Words are compared by their terms, so that
    the query ``planning`` matches ``plans``.
    """
    parsed = parse(query)
    terms = parsed.terms()
    patterns = [p for phrase in parsed.phrases if (p := phrase_pattern(phrase)) is not None]
    patterns += [
        re.compile(rf"\b{re.escape(start)}\w*", re.IGNORECASE) for start in parsed.beginnings
    ]

    def mark(text: str) -> list[tuple[int, int]]:
        found = [(start, end) for start, end, _ in analyser.matches(text, terms)]
        found += [match.span() for pattern in patterns for match in pattern.finditer(text)]
        return _merge_overlaps(sorted(found))

    return mark


def _merge_overlaps(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged
