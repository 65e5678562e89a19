"""Obsidian's canvas files: boxes that show notes, or text with links to them."""

from __future__ import annotations

import json
import re

from kbtui.knowledge.format.body import is_named
from kbtui.knowledge.linking.repair import Move, follow

SUFFIX = ".canvas"
_ROOT = "knowledge/"
_VALUE = re.compile(r'("(?P<key>file|subpath|text)"\s*:\s*)(?P<value>"(?:[^"\\]|\\.)*")')


def repointed(data: bytes, source: str, move: Move) -> bytes:
    """Update the canvas `source` after a move; other bytes, and invalid canvases, stay."""
    try:
        written = data.decode()
        if not isinstance(json.loads(written.removeprefix("\ufeff"))["nodes"], list):
            return data
        rewriter = _CanvasMove(source, move)
        return _VALUE.sub(rewriter.rewritten, written).encode()
    except (ValueError, LookupError, TypeError, RecursionError):
        return data


class _CanvasMove:
    """A rewriter for canvas values in order: a ``subpath`` belongs to the ``file`` before it."""

    def __init__(self, source: str, move: Move) -> None:
        self._source = source
        self._move = move
        self._file_moved = False

    def rewritten(self, found: re.Match[str]) -> str:
        value = json.loads(found["value"])
        new = {"file": self._file, "subpath": self._subpath, "text": self._text}[found["key"]](
            value
        )
        return found[0] if new == value else found[1] + json.dumps(new, ensure_ascii=False)

    def _file(self, file: str) -> str:
        old, new = self._move.old.path, self._move.new.path
        self._file_moved = old in {file, _ROOT + file}
        if not self._file_moved:
            return file
        return new if old == file else new.removeprefix(_ROOT)

    def _subpath(self, subpath: str) -> str:
        move = self._move
        if not (self._file_moved and move.retitled and is_named(subpath[1:], move.old.title)):
            return subpath
        return f"#{move.new.title}"

    def _text(self, text: str) -> str:
        return follow(text.encode(), self._source, self._move).decode()
