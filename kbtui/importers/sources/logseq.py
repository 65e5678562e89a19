"""Logseq's JSON of pages of blocks; its Markdown folder is read as one, or opened in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
from kbtui.importers.outlines import Texts, markdown_list, read_pages
from kbtui.importers.port import ImportedNote, Item, Skipped
from kbtui.importers.reading import Record, fields_of, json_source
from kbtui.knowledge.format.planned import planned

_HIDDEN = ("id", "title", "collapsed")
_SIGNS = {"SCHEDULED": "⏳", "DEADLINE": "📅"}


def _is_export(head: bytes) -> bool:
    return "blocks" in fields_of(head) and b'"page-name"' in head


def _pages(opened: OpenedExport, name: str) -> Iterator[Item]:
    return read_pages(
        opened, name, "blocks", id_key="id", text_key="content", note=_page, shown=_shown
    )


SOURCE = json_source("Logseq", "logseq", _is_export, _pages)


def _page(name: str, page: Record, known: Texts) -> Item:
    title = page.line("page-name")
    properties = page.record("properties").items()
    lines = [f"{line_of(key)}:: {_value(each)}" for key, each in properties if key not in _HIDDEN]
    text = "\n\n".join(
        filter(None, ("\n".join(lines), markdown_list(page, "content", known, _shown)))
    )
    if not text:
        return Skipped(f"{title or 'A page'} ({line_of(name)})", "It is empty.")
    return ImportedNote(page.line("id") or f"page {title}", title or "Untitled", text)


def _shown(text: str) -> str:
    """Return the text of a block as Markdown: its box and its dates as Obsidian's tasks have them.

    Of the program's own lines nothing is left.
    """
    found = planned(text)
    dates = "".join(f" {_SIGNS[kind]} {day}" for kind, day in found.dates.items())
    first, *rest = found.said.split("\n")
    return "\n".join([f"{f'[{found.mark}] ' if found.mark else ''}{first}{dates}", *rest])


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(line_of(str(each)) for each in value)
    return line_of(str(value))
