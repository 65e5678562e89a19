"""Reads what people type, tolerantly: any text is a query.

``type:decision tag:auth "exact phrase" -draft updated:2026 archi*`` are filters, a phrase, an
exclusion and a beginning; everything else is words of which the best answers hold the most. A
word like ``http:`` that only looks like a filter is a word, and so is what follows a quotation mark
that nobody closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from kbtui.search.index import analyser

MOST_CHARACTERS = 20_000
MOST_TERMS = 256
Filter = Literal["type", "tag", "path", "title", "heading", "created", "updated", "said"]
_FIELDS: dict[str, Filter] = {
    "type": "type",
    "tag": "tag",
    "tags": "tag",
    "path": "path",
    "in": "path",
    "title": "title",
    "heading": "heading",
    "created": "created",
    "updated": "updated",
    "by": "said",
}
_PART = re.compile(
    r"(?P<sign>[-+])?(?:(?P<field>[A-Za-z]{2,12}):)?"
    r"(?:[\"“”](?P<phrase>[^\"“”]*)[\"“”]|(?P<word>\S+))"
)
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
        kept = [word for word in said if word.casefold() not in analyser.STOP_WORDS]
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
    field = _FIELDS.get((match["field"] or "").lower())
    if match["field"] is None and value.startswith("#") and re.search(r"[^\W\d_]", value):
        field, value = "tag", value[1:]
    if field is None:
        return None
    value = value.strip(f" {_QUOTES}").lstrip("#" if field == "tag" else "")
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
