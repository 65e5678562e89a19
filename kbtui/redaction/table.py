"""Loads ``secrets.tsv``: the patterns and words by which secrets are recognized."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_PART = re.compile(r"\{([a-z_]+)\}")


@cache
def content() -> str:
    """Return the table as it is in the file."""
    return files(__package__).joinpath("secrets.tsv").read_text("utf-8")


@cache
def _sections() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in content().splitlines():
        if line.startswith("["):
            rows = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            rows.append(line.split("\t"))
    return found


def rows(section: str) -> list[list[str]]:
    """Return the rows of a section as lists of columns."""
    return _sections()[section]


def whole(pattern: str) -> str:
    """Expand the named parts of a pattern, such as ``{password}``."""
    return _PART.sub(lambda match: f"(?:{_alternatives(match[1])})", pattern)


@cache
def _alternatives(name: str) -> str:
    return "|".join(whole(row[1]) for row in rows("parts") if row[0] == name)


@cache
def part(name: str) -> re.Pattern[str]:
    """Return a part as a compiled pattern."""
    return re.compile(_alternatives(name))


@cache
def words(name: str) -> frozenset[str]:
    """Return a word list."""
    return frozenset(" ".join(row[1] for row in rows("words") if row[0] == name).split())
