"""Another kbtui workspace, or an export of one made by `kbtui export`.

Imports conversations, entries with their tree, daily notes, MEMORY.md and documents. Records and
how-tos are only reported: `kbtui sync` merges those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedNote, Item, Skipped, Source
from kbtui.importers.reading import read_each
from kbtui.importers.sources.markdown_folder import BESIDE, read_file, read_note
from kbtui.importers.sources.nanobot import read_session
from kbtui.text import counted

_INDEX = "knowledge/INDEX.md"
_NOTE = re.compile(r"(?:knowledge/.*|memory/[^/]+|USER)\.md")
_DERIVED = re.compile(r"(?:.*/)?INDEX\.md|memory/HISTORY\.md")


def _root(opened: OpenedExport) -> str | None:
    """Return the prefix of the outermost workspace's root, with a final slash, or None."""
    found = (name for name in opened.names if name == _INDEX or name.endswith(f"/{_INDEX}"))
    return min((name.removesuffix(_INDEX) for name in found), key=len, default=None)


def _read(opened: OpenedExport) -> Iterator[Item]:
    root = _root(opened) or ""
    rest = [
        name
        for name in opened.names
        if name.startswith(root) and not _DERIVED.fullmatch(name.removeprefix(root))
    ]
    sessions = [
        name for name in rest if re.fullmatch(rf"{re.escape(root)}sessions/[^/]+\.jsonl", name)
    ]
    yield from read_each(opened, sessions, read_session)
    yield from read_each(opened, rest, partial(_note, root))
    left = len([name for name in rest if name not in opened.taken])
    if left:
        yield Skipped(
            counted(left, "other file"),
            "Records, how-tos and settings stay; `kbtui sync` brings two workspaces together.",
        )


def _note(root: str, opened: OpenedExport, name: str) -> Iterator[Item]:
    path = name.removeprefix(root)
    at = path.removeprefix("knowledge/")
    if _NOTE.fullmatch(path):
        yield read_note(opened, name, PurePosixPath(at))
    elif path.startswith("knowledge/") and PurePosixPath(path).suffix.lower() in BESIDE:
        yield read_file(opened, name, at)
    elif path.startswith("docs/"):
        with opened.open(name) as stream:
            data = stream.read()
        folder, _, title = path.removeprefix("docs/").rpartition("/")
        yield ImportedNote(name, title, "", folder=folder, data=data)


SOURCE = Source(
    "kbtui",
    "kbtui",
    lambda opened: opened.is_folder and _root(opened) is not None,
    _read,
    is_alone=True,
)
