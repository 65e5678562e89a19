"""Outliner pages, which are nested blocks, as Markdown lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
from kbtui.importers.port import Item, Skipped
from kbtui.importers.reading import Record, json_list
from kbtui.text import Packed, pack, unpack

_REFERENCE = re.compile(r"\(\(([\w-]{6,40})\)\)")
_LABELLED = re.compile(r"\[([^\[\]\n]+)\]\(\(\([\w-]{6,40}\)\)\)")
_EMBED = re.compile(r"\{\{\[{0,2}embed\]{0,2}:?\s*([^{}]*)\}\}", re.IGNORECASE)
CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]+`)", re.DOTALL)
_OPEN_FENCE = re.compile(r"(^```[^`]*[^`\n])```[ \t]*$", re.MULTILINE)
"""Code whose fence ends on its last line, as outliners keep it."""
_MAX_HEADING = 6
_MAX_DEPTH = 60
_MAX_REFERENCES = 4  # from one block to the next


class Texts:
    """The texts of the blocks of a file by their ids, which are packed: they may be all of it."""

    def __init__(self) -> None:
        self._kept: dict[str, Packed] = {}

    def keep(self, id_: str, text: str) -> None:
        """Keep the text of a block."""
        self._kept[id_] = pack(text)

    def of(self, id_: str) -> str:
        """Return the text of a block, "" if there is none of that id."""
        return unpack(self._kept.get(id_, ""))


def blocks_of(page: Record) -> Iterator[tuple[int, Record]]:
    """Yield the blocks of a page in order, each with its depth from 0."""
    stack = [(0, each) for each in page.records("children")[::-1]]
    while stack:
        depth, block = stack.pop()
        yield depth, block
        stack += [(depth + 1, each) for each in block.records("children")[::-1]]


def read_pages(
    opened: OpenedExport,
    name: str,
    at: str,
    *,
    id_key: str,
    text_key: str,
    note: Callable[[str, Record, Texts], Item],
    shown: Callable[[str], str] = str,
) -> Iterator[Item]:
    """Yield what `note` makes of each page in the list at key `at` of a file.

    `note` gets the file's name, the page, and the text of every block by its id, as `shown` returns
    it. For that the file is read twice, as a page may reference blocks of later pages.
    """
    known = Texts()
    for page in json_list(opened, name, at):
        if not isinstance(page, Skipped):
            for _, block in blocks_of(page):
                known.keep(block.line(id_key), shown(block.words(text_key)))
    for page in json_list(opened, name, at):
        yield page if isinstance(page, Skipped) else note(name, page, known)


def markdown_list(page: Record, text: str, known: Texts, shown: Callable[[str], str] = str) -> str:
    """Return the blocks of a page as a Markdown list; `text` is the key of their text.

    Their text is as `shown` returns it. A reference to a block in `known`, which maps ids to texts,
    is replaced by its text, or by its own label.
    """
    lines: list[str] = []
    for depth, block in blocks_of(page):
        content = _with_references(shown(block.words(text)), known)
        content = _OPEN_FENCE.sub(r"\1\n```", content)
        level = block.get("heading")
        if isinstance(level, int) and 0 < level <= _MAX_HEADING:
            content = f"{'#' * level} {content}"
        first, *rest = content.split("\n")
        indent = "  " * min(depth, _MAX_DEPTH)
        lines.append(f"{indent}- {first}".rstrip())
        lines += [f"{indent}  {line}".rstrip() for line in rest]
    return "\n".join(lines)


def _with_references(text: str, known: Texts) -> str:
    """Return a text with those of the blocks that it references outside of code."""
    parts = CODE.split(text)
    parts[::2] = [_referring(part, known) for part in parts[::2]]
    return "".join(parts)


def _referring(text: str, known: Texts) -> str:
    """Return a text with those of the blocks that it references, and of the ones that these do."""
    text = _LABELLED.sub(r"\1", _EMBED.sub(lambda found: found[1].strip(), text))
    for _ in range(_MAX_REFERENCES):
        if "((" not in text:
            break
        text = _REFERENCE.sub(lambda found: line_of(known.of(found[1])) or found[0], text)
    return text
