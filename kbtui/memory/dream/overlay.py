"""The files as they are, with the edits of one run on top; nothing is written here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError, UnreadableError
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Edits = dict[str, "bytes | None"]
_BOM = "\ufeff"


class View:
    """Files by workspace path.

    Attributes:
        before: What each file that was looked at holds on disk; None: it isn't there.
        edits: What it shall hold.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.before: Edits = {}
        self.edits: Edits = {}

    def original(self, path: str) -> bytes | None:
        """What a file held when it was first looked at."""
        if path not in self.before:
            try:
                self.before[path] = files.read_bytes(self.root, path)
            except NotFoundError:
                self.before[path] = None
        return self.before[path]

    def data(self, path: str) -> bytes | None:
        """What a file holds with the edits; None: it isn't there."""
        original = self.original(path)
        return self.edits.get(path, original)

    def exists(self, path: str) -> bool:
        """Whether a file is there with the edits."""
        return self.data(path) is not None

    def text(self, path: str) -> str | None:
        """The text of a file with the edits; None: it isn't there.

        Lines end as models write them, with a line feed.

        Raises:
            UnreadableError: it is no UTF-8 text, so writing it would lose something.
        """
        data = self.data(path)
        return None if data is None else plain_text(data, path)

    def encoded(self, path: str, text: str) -> bytes:
        """A new text in the form that the file has: its byte-order mark and line ends."""
        data = self.data(path)
        if data is None:
            return text.encode("utf-8", "replace")
        old = files.decode(data)
        if _is_crlf(old.text):
            text = text.replace("\n", "\r\n")
        mark = _BOM if old.encoding == "utf-8-sig" else ""
        return (mark + text).encode("utf-8", "replace")

    def apply(self, edits: Mapping[str, bytes | None]) -> None:
        """Put edits on top."""
        for path, data in edits.items():
            self.original(path)
            self.edits[path] = data

    @property
    def changed(self) -> Edits:
        """The edits that really change something."""
        return {path: data for path, data in self.edits.items() if data != self.before[path]}


def plain_text(data: bytes, path: str) -> str:
    """The text of a file with plain line feeds; raises as `View.text`."""
    decoded = files.decode(data)
    if not decoded.exact or not decoded.encoding.startswith("utf-8"):
        raise UnreadableError(
            f"{short_name(path)} isn't UTF-8 text, so a machine leaves it as it is."
        )
    return decoded.text.replace("\r\n", "\n") if _is_crlf(decoded.text) else decoded.text


def shown_text(data: bytes | None) -> str:
    """The text of a file for comparing and showing; never raises."""
    if data is None:
        return ""
    text = files.decode(data).text
    return text.replace("\r\n", "\n") if _is_crlf(text) else text


def _is_crlf(text: str) -> bool:
    """Whether each line ends with CRLF; a mixture stays as it is."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")
