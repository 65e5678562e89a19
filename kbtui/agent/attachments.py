"""``@references`` in messages: the files they name, quoted below the message as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kbtui.agent.sources import quoted
from kbtui.agent.tools.base import checked_area
from kbtui.errors import KbtuiError, UsageError
from kbtui.knowledge.entries.entry import without_line
from kbtui.models.port import Picture, cut_to_tokens
from kbtui.text import clean_line
from kbtui.views.view import View
from kbtui.workspace import files
from kbtui.workspace.layout import NAME_PREFIX, Layout

_REFERENCE = re.compile(
    r'(?:^|(?<=[\s(\["“]))@(?:"(?P<title>[^"\n]{1,200})"|(?P<name>[^\s"@]{1,300}))'
)
_TRAILING = ".,;:!?)]}\"'”’"  # noqa: RUF001 - quotation marks as people type them
_MAX_TOKENS = 6_000
_MAX_FILE_BYTES = 5 * 1024 * 1024
_PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_MAGIC_BYTES = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_NO_VISION = (
    "it is a picture, and this model is not known to take any (if it does:"
    " kbtui config set models.chat.vision true)"
)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that a message refers to; `text` is empty if the model must not see it."""

    path: str
    text: str
    note: str = ""
    picture: Picture | None = None

    @property
    def problem(self) -> str:
        """A sentence for the user if nothing of the file is shown to the model, else empty."""
        if self.text or self.picture is not None or not self.note:
            return ""
        reason = self.note.rstrip(".")
        named = clean_line(self.path)
        return f"{reason}." if named in reason else f"{named} isn't shown to the model: {reason}."

    def as_prompt(self) -> str:
        """Return the file as shown to the model."""
        note = f' note="{self.note}"' if self.note else ""
        head = f'<attachment path="{clean_line(self.path)}"{note}>'
        return (
            f"{head}\n{quoted(self.text)}\n</attachment>" if self.text else f"{head}</attachment>"
        )


def attachments_of(
    text: str,
    view: View,
    layout: Layout,
    *,
    roots: Sequence[str] = (),
    sees: Callable[[], bool] = lambda: False,
    lines_naming: Callable[[str], str] = lambda _name: "",
) -> list[Attachment]:
    """Return the files that a message refers to; references to nothing stay plain text.

    `view` is the workspace as the model sees it; `roots` are further folders that it may see.
    `sees` returns whether it takes pictures, and is called only if there is one; `lines_naming`
    returns the public lines that mention a name for which there is no file.
    """
    found: dict[str, Attachment] = {}
    for name in references(text):
        try:
            path = _path_of(name, view, layout, roots)
        except UsageError as error:  # use the name, as the path may reveal more
            found[name] = Attachment(name, "", clean_line(error.message))
            continue
        page = f"{NAME_PREFIX}{name.removeprefix(NAME_PREFIX)}"
        if path is not None:
            found[path] = _attached(path, view, sees)
        elif lines := lines_naming(page.removeprefix(NAME_PREFIX)):
            found[page] = Attachment(page, lines)
    return list(found.values())


def reference(name: str) -> str:
    """Return the reference to a file or name as typed in a message."""
    return f'@"{name}"' if any(map(str.isspace, name)) else f"@{name}"


def references(text: str) -> Iterator[str]:
    """Yield the names after ``@``, as in ``@people/alice`` or ``@"Alice Liddell"``."""
    for match in _REFERENCE.finditer(text):
        yield match["title"] or match["name"].rstrip(_TRAILING)


def _path_of(name: str, view: View, layout: Layout, roots: Sequence[str]) -> str | None:
    """Return the path that a name refers to, if any.

    Raises:
        UsageError: the model must not see that file.
    """
    if not name:
        return None
    if path := view.library.named(name):
        return path
    try:
        place = without_line(name)
        beside = layout.path_of(place)
        is_beside = view.is_document(beside) or beside.lower().endswith(tuple(_PICTURES))
        if is_beside and files.exists(layout, beside):
            return checked_area(beside, roots)
        return checked_area(place, roots) if "/" in place or place.endswith(".md") else None
    except KbtuiError:
        return None


def _attached(path: str, view: View, sees: Callable[[], bool]) -> Attachment:
    try:
        if path.lower().endswith(tuple(_PICTURES)):
            return _picture(path, view.library.read(path, _MAX_FILE_BYTES), sees)
        note = ""
        if view.is_document(path):
            document = view.document(path)
            whole, note = document.whole, document.problem
        else:
            whole = view.text(path, _MAX_FILE_BYTES)
    except KbtuiError as error:
        return Attachment(path, "", clean_line(error.message))
    if "\x00" in whole:
        return Attachment(path, "", "not a text file")
    shown = cut_to_tokens(whole, _MAX_TOKENS)
    cut = "cut; read shows the rest" if len(shown) < len(whole) else note
    return Attachment(path, shown.rstrip("\n"), cut)


def _picture(path: str, data: bytes, sees: Callable[[], bool]) -> Attachment:
    media = _PICTURES[path[path.rindex(".") :].lower()]
    if not data.startswith(_MAGIC_BYTES[media]):
        return Attachment(path, "", f"it is no picture of the kind {media}")
    if not sees():
        return Attachment(path, "", _NO_VISION)
    return Attachment(path, "", "shown below", Picture(media, data))
