"""Roam Research: its JSON, a list of pages of blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kbtui.importers.markup import line_of
from kbtui.importers.opened import OpenedExport
from kbtui.importers.outlines import blocks_of, listed, pages_of
from kbtui.importers.port import ImportedNote, Item, Skipped
from kbtui.importers.reading import fields_of, json_source, time_of

_TASK = re.compile(r"\{\{\[{0,2}(TODO|DONE)\]{0,2}\}\}")


def _is_export(head: bytes) -> bool:
    fields = fields_of(head)
    is_roam = "title" in fields and fields & {"edit-time", "create-time", "edit-email", "uid"}
    return bool(is_roam) and (b'"string"' in head or b'"edit-time"' in head)


def _pages(opened: OpenedExport, name: str) -> Iterator[Item]:
    for page, known in pages_of(opened, name, "", id_key="uid", text_key="string"):
        yield page if isinstance(page, Skipped) else _page(name, page, known)


SOURCE = json_source("Roam", "roam", _is_export, _pages)


def _page(name: str, page: dict[str, Any], known: Mapping[str, str]) -> Item:
    title = line_of(page.get("title"))
    text = listed(page, "string", known)
    if not text:
        return Skipped(f"{title or 'A page'} ({line_of(name)})", "It is empty.")
    blocks = [block for _, block in blocks_of(page)]
    times = [
        time_of(each.get(key)) for each in (page, *blocks) for key in ("create-time", "edit-time")
    ]
    told = [time for time in times if time]
    return ImportedNote(
        line_of(page.get("uid")) or f"page {title}",
        title or "Untitled",
        _TASK.sub(lambda found: "[ ]" if found[1] == "TODO" else "[x]", text),
        max(told, default=None),
        time_of(page.get("create-time")) or min(told, default=None),
    )
