"""What a person names to be imported: exports, parts of one in a folder, documents, addresses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.documents.documents import kind_of
from kbtui.errors import KbtuiError
from kbtui.importers.opened import Opened
from kbtui.workspace.durable import storage_errors

if TYPE_CHECKING:
    from collections.abc import Iterator


def is_document(name: str) -> bool:
    """True for an address, and for a file that is a document and no export."""
    from kbtui.documents.keeping import is_address, is_keepable
    from kbtui.importers.engine import find_source

    if is_address(name):
        return True
    file = Path(name).expanduser()
    try:
        if not is_keepable(file):
            return False
        with Opened(file) as opened:
            is_text = opened.head(opened.names[0], 64).lstrip()[:1] not in (b"", b"[", b"{")
            return is_text and find_source(opened) is None
    except KbtuiError:
        return bool(kind_of(name))


def expanded(paths: tuple[str, ...]) -> Iterator[tuple[Path, bool]]:
    """The paths, a folder followed by the zips in it: that is how parts of an export arrive.

    Beside each: True if it must be an export, as the folder of such parts need not.

    Raises:
        StorageError: A folder, or a zip in it, can't be read.
    """
    for name in paths:
        path = Path(name).expanduser()
        with storage_errors(f"Can't read {path}"):
            zips = sorted(each for each in path.iterdir() if _is_zip(each)) if path.is_dir() else []
        yield path, not zips
        yield from ((each, True) for each in zips)


def _is_zip(path: Path) -> bool:
    if path.suffix.lower() != ".zip" or not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"
