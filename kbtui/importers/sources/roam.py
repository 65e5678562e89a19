"""Roam Research's JSON, a list of pages of nested blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import line_of
from kbtui.importers.outlines import CODE, Texts, blocks_of, markdown_list, read_pages
from kbtui.importers.port import ImportedNote, Item, Skipped
from kbtui.importers.reading import Record, fields_of, json_source

_MARKS = (b'"edit-time"', b'"create-time"', b'"edit-email"', b'"uid"')
_TASK = re.compile(r"^([ ]*- )(?:#{1,6} )?(.*?)[ ]?\{\{\[{0,2}(TODO|DONE)\]{0,2}\}\}", re.MULTILINE)
_BRIGHT = re.compile(r"\^\^(\S|\S[^\n]*?\S)\^\^")
_SLANTED = re.compile(r"(?<![\w_])__(\S|\S[^\n]*?\S)__(?![\w_])")
_ALIAS = re.compile(r"\[([^\[\]\n]+)\]\(\[\[([^\[\]\n]+)\]\]\)")


def _is_export(head: bytes) -> bool:
    fields = fields_of(head)
    # A page may say its title only behind all of its blocks.
    is_page = fields & {"title", "children"} and (b'"string"' in head or b'"edit-time"' in head)
    return bool(is_page) and any(each in head for each in _MARKS)


def _pages(opened: OpenedExport, name: str) -> Iterator[Item]:
    return read_pages(opened, name, "", id_key="uid", text_key="string", note=_page)


SOURCE = json_source("Roam", "roam", _is_export, _pages)


def _page(name: str, page: Record, known: Texts) -> Item:
    title = page.line("title")
    text = markdown_list(page, "string", known)
    if not text:
        return Skipped(f"{title or 'A page'} ({line_of(name)})", "It is empty.")
    records = [page, *(block for _, block in blocks_of(page))]
    stamps = [each.time(key) for each in records for key in ("create-time", "edit-time")]
    times = [*filter(None, stamps)]
    return ImportedNote(
        page.line("uid") or f"page {title}",
        title or "Untitled",
        _rewritten(text),
        max(times, default=None),
        page.time("create-time") or min(times, default=None),
    )


def _rewritten(text: str) -> str:
    """Return Roam's own marks as Obsidian's: boxes of tasks first, links with a label, emphasis."""

    def task(found: re.Match[str]) -> str:
        rest = f" {found[2]}" if found[2] else ""
        return f"{found[1]}[{' ' if found[3] == 'TODO' else 'x'}]{rest}"

    parts = CODE.split(_ALIAS.sub(r"[[\2|\1]]", _TASK.sub(task, text)))
    parts[::2] = [_SLANTED.sub(r"*\1*", _BRIGHT.sub(r"==\1==", part)) for part in parts[::2]]
    return "".join(parts)
