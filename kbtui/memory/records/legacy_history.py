"""Reads an old HISTORY.md: dated paragraphs, as nanobot appended them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_START = re.compile(r"\[(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}))?[^\]\n]*\][ \t]*")
_RAW = re.compile(r"\[RAW\]")
_MESSAGE = re.compile(r"\[[^\]\n]*\][ \t]+[A-Z][A-Z0-9_]*(?:[ \t]+\[tools:[^\]\n]*\])?:")


@dataclass(frozen=True, slots=True)
class OldBlock:
    """One dated paragraph; `content` is without its date."""

    timestamp: str
    content: str
    raw: bool


def parse_old_history(text: str, undated: str) -> list[OldBlock]:
    """Cut the text at its dates; every word of it ends up in some block.

    Args:
        text: The whole file.
        undated: The time for what stands above the first date, ``YYYY-MM-DD HH:MM``.
    """
    blocks: list[list[str]] = [[]]
    for line in text.replace("\r\n", "\n").split("\n"):
        if _START.match(line) and not _continues(blocks[-1], line):
            blocks.append([])
        blocks[-1].append(line)
    texts = ("\n".join(lines).strip() for lines in blocks)
    return [_block(text, undated) for text in texts if text]


def _continues(block: list[str], line: str) -> bool:
    """Whether a dated line is a message inside a raw block, not the start of a new one."""
    if not block or not _MESSAGE.match(line):
        return False
    start = _START.match(block[0])
    return start is not None and _RAW.match(block[0], start.end()) is not None


def _block(text: str, undated: str) -> OldBlock:
    start = _START.match(text)
    if start is None:
        return OldBlock(undated, text, raw=False)
    content = text[start.end() :].strip()
    raw = _RAW.match(content) is not None
    return OldBlock(f"{start[1]} {start[2] or '00:00'}", content or text, raw)
