"""The rows of ``secrets.tsv``: what secrets look like, and the words that tell of them."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_PART = re.compile(r"\{([a-z_]+)\}")


@cache
def _sections() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in files(__package__).joinpath("secrets.tsv").read_text("utf-8").splitlines():
        if line.startswith("["):
            rows = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            rows.append(line.split("\t"))
    return found


def rows(section: str) -> list[list[str]]:
    """The rows of a section, each as its columns."""
    return _sections()[section]


def whole(pattern: str) -> str:
    """A pattern with the parts in it that it names: ``{password}``."""
    return _PART.sub(lambda match: f"(?:{_alternatives(match[1])})", pattern)


@cache
def _alternatives(name: str) -> str:
    return "|".join(whole(row[1]) for row in rows("parts") if row[0] == name)


@cache
def part(name: str) -> re.Pattern[str]:
    """A part by itself."""
    return re.compile(_alternatives(name))


@cache
def words(name: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(" ".join(row[1] for row in rows("words") if row[0] == name).split())
