"""``@references`` in a message: the files they name, quoted below it as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kbtui.agent.sources import quoted
from kbtui.agent.tools.base import checked_area
from kbtui.documents.documents import Documents, is_document
from kbtui.errors import KbtuiError
from kbtui.knowledge.catalog.entry_index import is_catalogue
from kbtui.knowledge.library.library import Library
from kbtui.knowledge.linking import resolve
from kbtui.models.port import Picture, cut_to_tokens
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.layout import NAME_PREFIX, Workspace

_REFERENCE = re.compile(
    r'(?:^|(?<=[\s(\["“]))@(?:"(?P<title>[^"\n]{1,200})"|(?P<name>[^\s"@]{1,300}))'
)
_TRAILING = ".,;:!?)]}\"'”’"  # noqa: RUF001 - quotation marks as people type them
_MOST_TOKENS = 6_000
_MOST_FILE = 5 * 1024 * 1024
_PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_BEGINNINGS = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_BLIND = (
    "it is a picture, and this model is not known to take any (if it does:"
    " kbtui config set models.chat.vision true)"
)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that a message refers to; `text` is empty where the model must not see it."""

    path: str
    text: str
    private: bool
    note: str = ""
    picture: Picture | None = None

    @property
    def problem(self) -> str:
        """A sentence for the user where nothing of the file is shown to the model; else empty."""
        if self.text or self.picture is not None or not self.note:
            return ""
        return f"{clean_line(self.path)} isn't shown to the model: {self.note.rstrip('.')}."

    def as_prompt(self) -> str:
        """The file as the model is shown it."""
        note = f' note="{self.note}"' if self.note else ""
        head = f'<attachment path="{clean_line(self.path)}"{note}>'
        return (
            f"{head}\n{quoted(self.text)}\n</attachment>" if self.text else f"{head}</attachment>"
        )


def attachments_of(
    text: str,
    workspace: Workspace,
    library: Library,
    *,
    is_local: bool,
    roots: Sequence[str] = (),
    sees: Callable[[], bool] = lambda: False,
    lines_naming: Callable[[str], str] = lambda _name: "",
) -> list[Attachment]:
    """The files that a message refers to, each once; what names nothing is just text.

    A local model may see private ones; `roots` are folders of the user's own that may be looked at
    as well. `sees` says if the model takes pictures, asked if there is one; `lines_naming` gives
    the public lines that have a name which no file has.
    """
    found: dict[str, Attachment] = {}
    for name in references(text):
        path = _path_of(name, workspace, library, roots)
        page = f"{NAME_PREFIX}{name.removeprefix(NAME_PREFIX)}"
        if path is None:
            if lines := lines_naming(page.removeprefix(NAME_PREFIX)):
                found[page] = Attachment(page, lines, private=False)
        elif path.lower().endswith(tuple(_PICTURES)):
            found[path] = _picture(path, workspace, library, is_local=is_local, sees=sees)
        else:
            found[path] = _attached(path, workspace, library, roots, is_local=is_local)
    return list(found.values())


def reference(name: str) -> str:
    """What refers to a file or a name, as it is typed in a message."""
    return f'@"{name}"' if any(map(str.isspace, name)) else f"@{name}"


def references(text: str) -> Iterator[str]:
    """The names behind ``@``, as ``@people/alice`` or ``@"Alice Liddell"``."""
    for match in _REFERENCE.finditer(text):
        yield match["title"] or match["name"].rstrip(_TRAILING)


def _path_of(name: str, workspace: Workspace, library: Library, roots: Sequence[str]) -> str | None:
    if not name:
        return None
    if path := library.named(name):
        return path
    try:
        place = resolve.without_line(name)
        beside = workspace.path_of(place)
        is_beside = is_document(beside, roots) or beside.lower().endswith(tuple(_PICTURES))
        if is_beside and files.exists(workspace, beside):
            return checked_area(beside, roots)
        return checked_area(place, roots) if "/" in place or place.endswith(".md") else None
    except KbtuiError:
        return None


def _picture(
    path: str, workspace: Workspace, library: Library, *, is_local: bool, sees: Callable[[], bool]
) -> Attachment:
    private = library.is_private(path)
    if private and not is_local:
        return Attachment(path, "", private, "private: only local models may read it")
    try:
        data = files.read_bytes(workspace, path, _MOST_FILE)
    except KbtuiError as error:
        return Attachment(path, "", private, clean_line(error.message))
    media = _PICTURES[path[path.rindex(".") :].lower()]
    if not data.startswith(_BEGINNINGS[media]):
        return Attachment(path, "", private, f"it is no picture of the kind {media}")
    if not sees():
        return Attachment(path, "", private, _BLIND)
    return Attachment(path, "", private, "shown below", Picture(media, data))


def _attached(
    path: str, workspace: Workspace, library: Library, roots: Sequence[str], *, is_local: bool
) -> Attachment:
    private = library.is_private(path)
    if private and not is_local:
        return Attachment(path, "", private, "private: only local models may read it")
    note = ""
    try:
        if is_document(path, roots):
            with Documents(workspace) as documents:
                text = documents.read(path)
            whole, note = text.whole, text.problem
        else:
            whole = files.text_of(files.read_bytes(workspace, path, _MOST_FILE))
    except KbtuiError as error:
        return Attachment(path, "", private, clean_line(error.message))
    if "\x00" in whole:
        return Attachment(path, "", private, "not a text file")
    if is_catalogue(path):
        whole = library.catalog.public_text(path, whole)
    shown = cut_to_tokens(whole, _MOST_TOKENS)
    cut = "cut; read shows the rest" if len(shown) < len(whole) else note
    return Attachment(path, shown.rstrip("\n"), private, cut)
