"""Logseq: its JSON, pages of blocks. Its folder of Markdown is read as one, or opened in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kbtui.importers.markup import line_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.outlines import listed, pages_of
from kbtui.importers.port import ImportedNote, Item, Skipped
from kbtui.importers.reading import fields_of, json_source, mapping


def _is_export(head: bytes) -> bool:
    return "blocks" in fields_of(head) and b'"page-name"' in head


def _pages(opened: OpenedExport, name: str) -> Iterator[Item]:
    for page, known in pages_of(opened, name, "blocks", id_key="id", text_key="content"):
        yield page if isinstance(page, Skipped) else _page(name, page, known)


SOURCE = json_source("Logseq", "logseq", _is_export, _pages)


def _page(name: str, page: dict[str, Any], known: Mapping[str, str]) -> Item:
    title = line_of(page.get("page-name"))
    said = [f"{line_of(key)}:: {_value(value)}" for key, value in _properties(page).items()]
    text = "\n\n".join(filter(None, ("\n".join(said), listed(page, "content", known))))
    if not text:
        return Skipped(f"{title or 'A page'} ({line_of(name)})", "It is empty.")
    return ImportedNote(line_of(page.get("id")) or f"page {title}", title or "Untitled", text)


def _properties(page: dict[str, Any]) -> dict[str, Any]:
    hidden = {"id", "title", "collapsed"}
    return {
        key: value for key, value in mapping(page.get("properties")).items() if key not in hidden
    }


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(line_of(str(each)) for each in value)
    return line_of(str(value))
