"""Outlines: pages that are blocks within blocks, as lists of Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
from kbtui.importers.port import Item, Skipped
from kbtui.importers.reading import Record, json_list

_REFERENCE = re.compile(r"\(\(([\w-]{6,40})\)\)")
_DEEPEST = 60


def blocks_of(page: Record) -> Iterator[tuple[int, Record]]:
    """The blocks of a page from its top to its end, each with its depth."""
    waiting = [(0, each) for each in page.records("children")[::-1]]
    while waiting:
        depth, block = waiting.pop()
        yield depth, block
        waiting += [(depth + 1, each) for each in block.records("children")[::-1]]


def read_pages(
    opened: OpenedExport,
    name: str,
    at: str,
    *,
    id_key: str,
    text_key: str,
    note: Callable[[Record, Mapping[str, str]], Item],
) -> Iterator[Item]:
    """Make notes of the pages of a file's list `at`, told the texts of all its blocks by their ids.

    It is read twice: a block may be shown on a page that comes before it.
    """
    known: dict[str, str] = {}
    for page in json_list(opened, name, at):
        if not isinstance(page, Skipped):
            for _, block in blocks_of(page):
                known[block.line(id_key)] = block.words(text_key)
    for page in json_list(opened, name, at):
        yield page if isinstance(page, Skipped) else note(page, known)


def listed(page: Record, text: str, known: Mapping[str, str]) -> str:
    """The blocks of a page as a list; their texts are under `text`.

    A reference to a block that is `known` by its id becomes what that block says.
    """
    lines: list[str] = []
    for depth, block in blocks_of(page):
        told = _REFERENCE.sub(
            lambda found: line_of(known.get(found[1])) or found[0], block.words(text)
        )
        first, *rest = told.split("\n")
        indent = "  " * min(depth, _DEEPEST)
        lines.append(f"{indent}- {first}".rstrip())
        lines += [f"{indent}  {line}".rstrip() for line in rest]
    return "\n".join(lines)
