"""Merge drivers for memory's records: archive, tombstones and cursors of two machines.

Append-only files are united: common lines keep their order, new ones are sorted after them, so both
machines arrive at the same file. HISTORY.md is built from the same blocks. A cursor that only one
side moved is taken; if both moved it, the higher one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from kbtui.history.merging.tree_merge import Resolver
from kbtui.memory.records.archive_lines import read_entry
from kbtui.memory.records.cursors import CURSORS, read_cursors
from kbtui.workspace.jsonl import parse_records

_LINES = re.compile(r"memory/(?:history(?:-\w+)?|tombstones)\.jsonl")
_SHOWN = re.compile(r"memory/HISTORY(?:-\w+)?\.md")
_BLOCK = re.compile(rb"(?m)^(?=\[\d{4}-\d{2}-\d{2}[^\]\n]*\] )")


def resolver_of(path: str) -> Resolver | None:
    """Return the merge function for a record of memory, or None for other files."""
    if _LINES.fullmatch(path):
        return merge_lines
    if _SHOWN.fullmatch(path):
        return merge_shown
    return merge_cursors if path == CURSORS else None


def merge_lines(
    path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None
) -> bytes | None:
    """Unite files with one JSON object per line."""
    merged = _merge_records(
        *(_lines(data) for data in (base, ours, theirs)), order=lambda line: _line_order(path, line)
    )
    return b"".join(line + b"\n" for line in merged) if merged else ours


def merge_shown(
    _path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None
) -> bytes | None:
    """Unite HISTORY.md files by their dated blocks."""
    merged = _merge_records(
        *(_blocks(data) for data in (base, ours, theirs)), order=lambda block: (block,)
    )
    return b"".join(block + b"\n\n" for block in merged) if merged else ours


def merge_cursors(
    _path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None
) -> bytes | None:
    """Merge the cursors of each reader and origin."""
    was, now, other = (read_cursors(data) for data in (base, ours, theirs))
    if now is None or other is None:
        return ours if other is None else theirs
    merged: dict[str, dict[str, int]] = {}
    for reader in sorted(now.keys() | other.keys()):
        before = (was or {}).get(reader, {})
        here, there = now.get(reader, {}), other.get(reader, {})
        merged[reader] = {
            origin: cursor
            for origin in sorted(here.keys() | there.keys())
            if (cursor := _merge_cursor(before.get(origin), here.get(origin), there.get(origin)))
            is not None
        }
    return f"{json.dumps(merged, indent=2, sort_keys=True, ensure_ascii=False)}\n".encode()


def _merge_cursor(was: int | None, here: int | None, there: int | None) -> int | None:
    if here in (was, there):
        return there
    if there == was:
        return here
    return max((each for each in (here, there) if each is not None), default=None)


def _merge_records(
    base: Sequence[bytes],
    ours: Sequence[bytes],
    theirs: Sequence[bytes],
    *,
    order: Callable[[bytes], Any],
) -> list[bytes]:
    """Return the records kept on both sides in their old order, then all additions, sorted."""
    here, there, before = set(ours), set(theirs), set(base)
    kept = [each for each in base if each in here and each in there]
    added = dict.fromkeys(each for each in (*ours, *theirs) if each not in before)
    return [*dict.fromkeys(kept), *sorted(added, key=order)]


def _lines(data: bytes | None) -> list[bytes]:
    return [line for line in (data or b"").split(b"\n") if line.strip()]


def _line_order(path: str, line: bytes) -> tuple[Any, ...]:
    """Return the sort key: archive by cursor and origin, tombstones by time, unreadable last."""
    records, _ = parse_records(line, path)
    if not records:
        return (1, 0, "", line)
    value = records[0].value
    entry = read_entry(value)
    if entry is not None:
        return (0, entry.cursor, entry.origin, line)
    return (0, 0, str(value.get("time", "")), line)


def _blocks(data: bytes | None) -> list[bytes]:
    text = (data or b"").replace(b"\r\n", b"\n")
    return [block.rstrip() for block in _BLOCK.split(text) if block.strip()]
