"""Outlines: pages that are blocks within blocks, as lists of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kbtui.importers.markup import line_of, words_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.port import Skipped
from kbtui.importers.reading import json_list, mappings

_REFERENCE = re.compile(r"\(\(([\w-]{6,40})\)\)")
_DEEPEST = 60


def blocks_of(page: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The blocks of a page from its top to its end, each with its depth."""
    waiting = [(0, each) for each in mappings(page.get("children"))[::-1]]
    while waiting:
        depth, block = waiting.pop()
        yield depth, block
        waiting += [(depth + 1, each) for each in mappings(block.get("children"))[::-1]]


def pages_of(
    opened: OpenedExport, name: str, at: str, *, id_key: str, text_key: str
) -> Iterator[tuple[dict[str, Any] | Skipped, Mapping[str, str]]]:
    """The pages of a file's list `at`, each with the texts of all its blocks by their ids.

    It is read twice: a block may be shown on a page that comes before it.
    """
    known: dict[str, str] = {}
    for page in json_list(opened, name, at):
        if not isinstance(page, Skipped):
            for _, block in blocks_of(page):
                known[line_of(block.get(id_key))] = words_of(block.get(text_key))
    for page in json_list(opened, name, at):
        yield page, known


def listed(page: dict[str, Any], text: str, known: Mapping[str, str]) -> str:
    """The blocks of a page as a list; their texts are under `text`.

    A reference to a block that is `known` by its id becomes what that block says.
    """
    lines: list[str] = []
    for depth, block in blocks_of(page):
        told = _REFERENCE.sub(
            lambda found: line_of(known.get(found[1])) or found[0], words_of(block.get(text))
        )
        first, *rest = told.split("\n")
        indent = "  " * min(depth, _DEEPEST)
        lines.append(f"{indent}- {first}".rstrip())
        lines += [f"{indent}  {line}".rstrip() for line in rest]
    return "\n".join(lines)
