"""The memory's accounts after two machines kept them apart: archive, tombstones, cursors.

Lines that only grow are united: what both had stays where it was, what came since is put in order,
so both machines arrive at the same file. HISTORY.md is made of the same blocks. A cursor that one
side moved is taken; where both did, the farther one.
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
    """Who merges an account of the memory; None for other files."""
    if _LINES.fullmatch(path):
        return merge_lines
    if _SHOWN.fullmatch(path):
        return merge_shown
    return merge_cursors if path == CURSORS else None


def merge_lines(
    path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None
) -> bytes | None:
    """Unite files of one JSON object a line."""
    merged = _united(
        *(_lines(data) for data in (base, ours, theirs)), order=lambda line: _line_order(path, line)
    )
    return b"".join(line + b"\n" for line in merged) if merged else ours


def merge_shown(
    _path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None
) -> bytes | None:
    """Unite the archive as it is shown: blocks that begin with their time."""
    merged = _united(
        *(_blocks(data) for data in (base, ours, theirs)), order=lambda block: (block,)
    )
    return b"".join(block + b"\n\n" for block in merged) if merged else ours


def merge_cursors(
    _path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None
) -> bytes | None:
    """Bring together how far each reader has come in each origin's archive."""
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
            if (cursor := _further(before.get(origin), here.get(origin), there.get(origin)))
            is not None
        }
    return f"{json.dumps(merged, indent=2, sort_keys=True, ensure_ascii=False)}\n".encode()


def _further(was: int | None, here: int | None, there: int | None) -> int | None:
    if here in (was, there):
        return there
    if there == was:
        return here
    return max((each for each in (here, there) if each is not None), default=None)


def _united(
    base: Sequence[bytes],
    ours: Sequence[bytes],
    theirs: Sequence[bytes],
    *,
    order: Callable[[bytes], Any],
) -> list[bytes]:
    """Records that stayed on both sides, in their old order, then what either added, in order."""
    here, there, before = set(ours), set(theirs), set(base)
    kept = [each for each in base if each in here and each in there]
    added = dict.fromkeys(each for each in (*ours, *theirs) if each not in before)
    return [*dict.fromkeys(kept), *sorted(added, key=order)]


def _lines(data: bytes | None) -> list[bytes]:
    return [line for line in (data or b"").split(b"\n") if line.strip()]


def _line_order(path: str, line: bytes) -> tuple[Any, ...]:
    """The archive by cursor and origin, tombstones by time, whatever can't be read at the end."""
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
