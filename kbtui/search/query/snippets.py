"""The part of a chunk that shows why it was found, on one line, with the matches marked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from kbtui.search.index import analyser
from kbtui.search.query.parser import parse
from kbtui.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    Marker = Callable[[str], list[tuple[int, int]]]


WIDTH = 240
_SPACE = re.compile(r"\s+")
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
    end = min(len(text), start + WIDTH)
    if end < len(text) and text[end].isalnum():
        space = text.rfind(" ", start + WIDTH // 2, end)
        end = space if space > 0 else end
    return start, end


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
    shown = "".join(parts).rstrip()
    line = text.count("\n", 0, matches[0][0] if matches else start)
    return Snippet(shown, tuple(span for span in spans if span[0] < span[1] <= len(shown)), line)


def _squeeze(text: str, *, first: bool) -> str:
    squeezed = _SPACE.sub(" ", clean(text))
    return squeezed.lstrip() if first else squeezed


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
