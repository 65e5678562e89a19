"""Where a shown text holds what was asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbtui.search.index import analyser
from kbtui.search.query import snippets
from kbtui.search.query.parser import parse

if TYPE_CHECKING:
    from collections.abc import Callable

    Marker = Callable[[str], list[tuple[int, int]]]


def marker(query: str) -> Marker:
    """A function that finds the words, phrases and beginnings of a query in a text.

    It gives ranges of characters, in order and apart from each other. Words are compared as the
    index does it, so that ``plans`` is found where ``planning`` was asked for.
    """
    asked = parse(query)
    terms = asked.terms()
    patterns = [p for phrase in asked.phrases if (p := snippets.phrase_pattern(phrase)) is not None]
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
