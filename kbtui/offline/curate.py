"""Puts in order what is evidently out of order: entries that say the same, repeated lines, links.

What is wrong is found elsewhere and handed in as plain data; this chooses the edits that put it
right. The same input gives the same edits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kbtui.text import fold

_WORD = re.compile(r"\w+")


class Problem(Protocol):
    """One thing that is out of order; see `kbtui.memory.dream.reading`."""

    @property
    def kind(self) -> str:
        """``broken link``, ``same twice``, ``repeated line``, ``old summary``, ``not linked``."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def what(self) -> str:
        """The link's target, the line, the summary, or the other entry's name."""

    @property
    def instead(self) -> str:
        """The entry or summary that is right; empty: none is known."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: an operation's name with its arguments, and what it does in words."""

    operation: str
    arguments: Mapping[str, Any]
    what: str


def curate(problems: Iterable[Problem], texts: Mapping[str, str]) -> Iterator[Edit]:
    """The edits that put problems right, as far as the texts tell; the rest is left alone."""
    for problem in problems:
        path, what, instead = problem.path, problem.what, problem.instead
        if problem.kind == "same twice" and instead:
            said = f"{what} says nothing beyond {instead}"
            yield Edit("merge_entries", {"path": what, "to": instead}, said)
        elif problem.kind == "broken link" and instead:
            arguments = {"path": path, "old": what, "to": instead}
            yield Edit("fix_link", arguments, f"{what} is {instead}")
        elif problem.kind == "not linked":
            arguments = {"path": path, "to": instead}
            yield Edit("link_entries", arguments, f"{path} speaks of {what}")
        elif problem.kind == "old summary" and instead:
            yield Edit("set_summary", {"path": path, "new": instead}, instead)
        elif problem.kind == "repeated line" and (cut := _second(texts.get(path, ""), what)):
            arguments = {"path": path, "old": cut[0], "new": cut[1]}
            yield Edit("edit_file", arguments, f"{what} stands there twice")


def _second(text: str, fact: str) -> tuple[str, str] | None:
    """A passage that is unique and ends with the second line that states a fact; without it."""
    lines = text.splitlines()
    wanted = _words(fact)
    places = [number for number, line in enumerate(lines) if _words(line) == wanted]
    if len(places) < 2:  # twice
        return None
    end = places[1]
    for begin in range(end - 1, -1, -1):
        passage = "\n".join(lines[begin : end + 1])
        if text.count(passage) == 1:
            return passage, "\n".join(lines[begin:end])
    return None


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(text)))
