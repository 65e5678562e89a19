"""The differences that are better for a person, each with a sentence that says why."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

from tests.replay.compare import KINDS, Difference

FILE = Path(__file__).with_name("accepted.toml")
_FIELDS = {"life", "kind", "place", "lines", "why"}


class AcceptedError(Exception):
    """The file isn't what it should be."""


@dataclass(frozen=True)
class Entry:
    """Accepts the differences of lives, of a kind, in places; each pattern is as in a shell.

    With `lines`, each line that differs has to match one of them, its sign included.
    """

    life: str
    kind: str
    place: str
    why: str
    lines: tuple[str, ...] = ()

    def accepts(self, found: Difference) -> bool:
        """Return whether a difference is one of those."""
        return (
            fnmatchcase(found.life, self.life)
            and fnmatchcase(found.kind, self.kind)
            and fnmatchcase(found.place, self.place)
            and (not self.lines or all(map(self._has_line, found.lines)))
        )

    def _has_line(self, line: str) -> bool:
        return any(fnmatchcase(line, pattern) for pattern in self.lines)


@dataclass(frozen=True)
class Accepted:
    """What is accepted, and whether the order of hits counts."""

    entries: tuple[Entry, ...] = ()
    ordered: bool = True

    @classmethod
    def read(cls, file: Path = FILE) -> Self:
        """Read the file.

        Raises:
            AcceptedError: An entry isn't what it should be.
        """
        value = tomllib.loads(file.read_text("utf-8"))
        order = value.get("hits", "ordered")
        if order not in {"ordered", "sets"}:
            raise AcceptedError(f'{file.name}: hits is "ordered" or "sets", not {order!r}.')
        return cls(tuple(map(_entry, value.get("accepted", []))), order == "ordered")

    def judge(
        self, found: list[Difference], lives: list[str]
    ) -> tuple[list[Difference], list[Entry]]:
        """Return the differences that aren't accepted, and the entries that `lives` don't need."""
        used = {entry for entry in self.entries for each in found if entry.accepts(each)}
        asked = [
            entry for entry in self.entries if any(fnmatchcase(life, entry.life) for life in lives)
        ]
        refused = [each for each in found if not any(entry.accepts(each) for entry in self.entries)]
        return refused, [entry for entry in asked if entry not in used]


def _entry(value: dict[str, Any]) -> Entry:
    if unknown := value.keys() - _FIELDS:
        raise AcceptedError(f"{FILE.name}: nothing is called {', '.join(sorted(unknown))}: {value}")
    if missing := _FIELDS - {"lines"} - value.keys():
        raise AcceptedError(f"{FILE.name}: {', '.join(sorted(missing))} is missing in {value}")
    if not any(fnmatchcase(kind, value["kind"]) for kind in KINDS):
        raise AcceptedError(f"{FILE.name}: kind is one of {', '.join(KINDS)}: {value}")
    why = value["why"].strip()
    if len(why.split()) < 4 or not why.endswith("."):
        raise AcceptedError(f"{FILE.name}: why has to be a sentence, for a person: {value}")
    return Entry(value["life"], value["kind"], value["place"], why, tuple(value.get("lines", ())))
