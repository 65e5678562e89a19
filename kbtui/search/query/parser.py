"""Reads what people type, tolerantly (any text is a query), and marks it in what was found.

``type:decision tag:auth "exact phrase" -draft updated:2026 archi*`` are filters, a phrase, an
exclusion and a beginning; everything else is words of which the best answers hold the most. A
word like ``http:`` that only looks like a filter is a word, and so is what follows a quotation mark
that nobody closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from typing import Literal

from kbtui.search.index import analyser
from kbtui.text import clean

Marker = Callable[[str], list[tuple[int, int]]]


MOST_CHARACTERS = 20_000
MOST_TERMS = 256
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
_COMPARED = re.compile(rf"(?P<sign>[<>]=?)?(?P<day>{_DAY})")
_RECENT = {"today": 0, "yesterday": 1, "week": 7, "month": 31, "year": 366}
_ASKING = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
_LAST = "~"  # sorts behind every digit and dash


@dataclass(frozen=True, slots=True)
class Condition:
    """A document must meet this, or must not, if `negated`."""

    field: Filter
    value: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A query as it was understood; `text` is what is compared by meaning."""

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
        """True if there is anything to rank by, beside filters."""
        return bool(self.words or self.phrases or self.required or self.beginnings)

    @property
    def demanded_phrases(self) -> tuple[str, ...]:
        """The phrases that a hit must hold; what a question quotes is only a part of it."""
        return () if self.words and self.words[-1].endswith(_ASKING) else self.phrases

    def terms(self) -> dict[str, str]:
        """The terms to score by, with the word each came from.

        Very common words are left out if there are others.
        """
        said = [*self.words, *self.required]
        for phrase in self.phrases:
            said += phrase.split()
        kept = [word for word in said if not analyser.is_stop_word(word)]
        found: dict[str, str] = {}
        for word in kept or said:
            for term in analyser.terms(word):
                found.setdefault(term, word)
        return dict(list(found.items())[:MOST_TERMS])


def parse(text: str) -> Query:
    """Understand a query; never raises."""
    groups: dict[str, list[str]] = {}
    conditions: list[Condition] = []
    spoken: list[str] = []
    negate = False
    for match in _PART.finditer(text[:MOST_CHARACTERS].replace("\0", " ")):
        if match["word"] == "NOT" and not match["sign"]:
            negate = True
            continue
        if _says_nothing(match):
            continue
        condition = _condition(match, negated=negate or match["sign"] == "-")
        if condition is not None:
            conditions.append(condition)
        else:
            kind, said = _said(match, negated=negate)
            groups.setdefault(kind, []).append(said)
            if not kind.startswith("excluded"):
                spoken.append(said)
        negate = False
    lists = {kind: tuple(value for value in said if value) for kind, said in groups.items()}
    return Query(text=" ".join(spoken).strip(), conditions=tuple(conditions), **lists)


def split_conditions(text: str, *, whole: bool = False) -> tuple[list[str], str]:
    """The conditions of a query as they are written, and what else it holds.

    Args:
        text: What somebody types: the last word may not be finished.
        whole: Nothing follows; the last word counts as well.
    """
    found: list[str] = []
    rest, at = "", 0
    for match in _PART.finditer(text):
        if not _is_chosen(match, whole=whole):
            continue
        found.append(match[0])
        rest += text[at : match.start()]
        at = match.end() + 1
    return found, (rest + text[at:]).lstrip() if found else text


def _is_chosen(match: re.Match[str], *, whole: bool) -> bool:
    """True of a condition that nothing is added to any longer, nor turned round by a word."""
    text, end = match.string, match.end()
    ends = whole if end == len(text) else text[end].isspace()
    is_quoted = match["phrase"] is None and any(quote in match["word"] for quote in _QUOTES)
    if not ends or is_quoted or text[: match.start()].rstrip().endswith("NOT"):
        return False
    return not _says_nothing(match) and _condition(match, negated=False) is not None


def _says_nothing(match: re.Match[str]) -> bool:
    """True if a part is an operator that holds anyway, or a filter without its value yet."""
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


def _said(match: re.Match[str], *, negated: bool) -> tuple[str, str]:
    """Which list of a `Query` a part belongs to, and as what."""
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
    """The first and last day that a date filter allows, as texts that compare with ISO days.

    Understands ``2026``, ``2026-03``, ``>2026-03-01``, ``2026-01..2026-03`` and ``week``; None is
    what can't be understood.
    """
    if value.lower() in _RECENT:
        start = (today or date.today()) - timedelta(days=_RECENT[value.lower()])  # noqa: DTZ011
        return start.isoformat(), (start.isoformat() if "yest" in value.lower() else _LAST)
    if match := _RANGE.fullmatch(value):
        until = match["until"]
        return _padded(match["since"] or ""), (_padded(until) + _LAST if until else _LAST)
    match = _COMPARED.fullmatch(value)
    if match is None:
        return None
    day = _padded(match["day"])
    before = day[:-1] + chr(ord(day[-1]) - 1) + _LAST
    spans = {">": (day + _LAST, _LAST), ">=": (day, _LAST), "<": ("", before)}
    return {**spans, "<=": ("", day + _LAST)}.get(match["sign"] or "", (day, day + _LAST))


def _padded(day: str) -> str:
    return "-".join(part.zfill(2) for part in day.split("-"))


WIDTH = 240
_SPACE = re.compile(r"\s+")
SEPARATOR = "\N{MIDDLE DOT}"
"""The sign in a snippet where a paragraph or an item of a list begins."""
_ITEM = r"(?:[-*+]|\d+[.)])[ \t]+(?:\[.\][ \t]+)?"
_ROWS = r"[ \t]*\|[ \t]*\n[ \t]*\|(?:[-:| \t]+\n[ \t]*\|)?"
_BREAK = re.compile(rf"{_ROWS}|[ \t]*\n\s*(?:\n\s*(?:{_ITEM})?|{_ITEM})")
_LINK = re.compile(r"!?\[\[[^\]\n]*\]\]|!?\[[^\]\n]*\]\([^)\n]*\)|`[^`\n]+`")
_LONGEST_LINK = 200
_MOST_MATCHES = 400
_AHEAD = 50


@dataclass(frozen=True, slots=True)
class Snippet:
    """One line of text; `matches` are offsets in it.

    `line`, from 0, is the line of the chunk where the first match stands, or where the text starts.
    """

    text: str
    matches: tuple[tuple[int, int], ...] = ()
    line: int = 0


def make_snippet(
    text: str, terms: Container[str], phrases: Sequence[str] = (), fallback: int = 0
) -> Snippet:
    """Show the densest matches of `text`; where there are none, what stands at `fallback`."""
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
    found += islice(analyser.matches(text, terms), max(0, _MOST_MATCHES - len(found)))
    return sorted(found)


def phrase_pattern(phrase: str) -> re.Pattern[str] | None:
    """A pattern for an exact phrase: the same words in this order, however they are set."""
    words = re.findall(r"\w+", phrase)
    if not words:
        return None
    inner = r"\W+".join(re.escape(word) for word in words)
    unspaced = analyser.is_unspaced(phrase)
    return re.compile(inner if unspaced else rf"\b{inner}\b", re.IGNORECASE)


def _window(text: str, matches: list[tuple[int, int, str]], fallback: int) -> tuple[int, int]:
    """Where the snippet starts and ends: the most different matches, then the most, win."""
    if matches and len(text) <= WIDTH:
        return 0, len(text)
    if not matches:
        return _bounds(text, fallback, fallback)
    best, best_score = 0, (0, 0)
    for i, (start, _, _) in enumerate(matches):
        inside = []
        for match in matches[i:]:
            if match[1] > start + WIDTH - _AHEAD:
                break
            inside.append(match)
        score = (len({match[2] or match for match in inside}), len(inside))
        if score > best_score:
            best, best_score = i, score
    return _bounds(text, max(0, matches[best][0] - _AHEAD), matches[best][0])


def _bounds(text: str, start: int, before: int) -> tuple[int, int]:
    """Move the start to the beginning of a line or word, and the end to the end of a word."""
    line = text.rfind("\n", start, before) + 1
    if line > start:
        start = line
    elif start > 0 and text[start - 1].isalnum():
        space = text.find(" ", start, before)
        start = space + 1 if space >= 0 else before
    start = next((m.start() for m in _links_over(text, start)), start)
    end = min(len(text), start + WIDTH)
    if end < len(text) and text[end].isalnum():
        space = text.rfind(" ", start + WIDTH // 2, end)
        end = space if space > 0 else end
    return start, next((m.end() for m in _links_over(text, end)), end)


def _links_over(text: str, at: int) -> Iterator[re.Match[str]]:
    """The link that a text would be cut in the middle of."""
    line = text.rfind("\n", 0, at) + 1
    first = max(line, at - _LONGEST_LINK)
    for match in _LINK.finditer(text, first, at + _LONGEST_LINK):
        if match.start() < at < match.end():
            yield match


def _on_one_line(text: str, start: int, end: int, matches: list[tuple[int, int, str]]) -> Snippet:
    """Squeeze white space and drop what can't be shown, and move the matches along."""
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
    """A function that finds the words, phrases and beginnings of a query in a text.

    It gives ranges of characters, in order and apart from each other. Words are compared as the
    index does it, so that ``plans`` is found where ``planning`` was asked for.
    """
    asked = parse(query)
    terms = asked.terms()
    patterns = [p for phrase in asked.phrases if (p := phrase_pattern(phrase)) is not None]
    patterns += [
        re.compile(rf"\b{re.escape(start)}\w*", re.IGNORECASE) for start in asked.beginnings
    ]

    def mark(text: str) -> list[tuple[int, int]]:
        found = [(start, end) for start, end, _ in analyser.matches(text, terms)]
        found += [match.span() for pattern in patterns for match in pattern.finditer(text)]
        return _apart(sorted(found))

    return mark


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    apart: list[tuple[int, int]] = []
    for start, end in spans:
        if apart and start < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        elif end > start:
            apart.append((start, end))
    return apart
