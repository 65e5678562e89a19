"""Another kbtui workspace, or an export of one made by `kbtui export`.

Imports conversations, entries with their tree, daily notes, MEMORY.md and documents. Records and
how-tos are only reported: `kbtui sync` merges those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import PurePosixPath

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedNote, Item, Skipped, Source
from kbtui.importers.reading import read_each
from kbtui.importers.sources.markdown_folder import BESIDE, note_of, read_file, read_note
from kbtui.importers.sources.nanobot import read_session
from kbtui.text import counted

_INDEX = "knowledge/INDEX.md"
_NOTE = re.compile(r"(?:knowledge/.*|memory/[^/]+|USER)\.md")
_OTHERS = ("memory/", "skills/", "sessions/", ".")
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
    yield from left_of(None for _ in range(left))


def _note(root: str, opened: OpenedExport, name: str) -> Iterator[Item]:
    path = name.removeprefix(root)
    if _NOTE.fullmatch(path):
        yield read_note(opened, name, PurePosixPath(path.removeprefix("knowledge/")))
    elif _is_beside(path):
        yield read_file(opened, name, path.removeprefix("knowledge/"))
    elif path.startswith("docs/"):
        with opened.open(name) as stream:
            yield _document(name, path, stream.read())


def item_of(path: str, data: bytes, *, is_entry: bool) -> Item | None:
    """Return what a file becomes, given its path in a workspace; None if only a sync brings it.

    The entries of a folder of notes in place have paths without ``knowledge/``.
    """
    at = path.removeprefix("knowledge/")
    if is_entry or _NOTE.fullmatch(path):
        return note_of(path, data, PurePosixPath(at))
    if path.startswith("docs/"):
        return _document(path, path, data)
    if _is_beside(path) or (not path.startswith(_OTHERS) and _is_beside(f"knowledge/{path}")):
        return ImportedNote(path, PurePosixPath(at).name, "", data=data, at=at)
    return None


def left_of(items: Iterable[Item | None]) -> Iterator[Item]:
    """Pass items on, and report the number of the files that only a sync brings."""
    left = 0
    for item in items:
        if item is None:
            left += 1
        else:
            yield item
    if left:
        yield Skipped(
            counted(left, "other file"),
            "Records, how-tos and settings stay; `kbtui sync` brings two workspaces together.",
        )


def _is_beside(path: str) -> bool:
    return path.startswith("knowledge/") and PurePosixPath(path).suffix.lower() in BESIDE


def _document(name: str, path: str, data: bytes) -> Item:
    folder, _, title = path.removeprefix("docs/").rpartition("/")
    return ImportedNote(name, title, "", folder=folder, data=data)


SOURCE = Source(
    "kbtui",
    "kbtui",
    lambda opened: opened.is_folder and _root(opened) is not None,
    _read,
    is_alone=True,
)
