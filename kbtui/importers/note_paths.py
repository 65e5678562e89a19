"""Where notes of an export are to lie, and how they link to each other there."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath

from kbtui.importers.markup import line_of, relative_link

_UNSAFE = re.compile(r'[\\/:*?"<>|]+')
_LONGEST = 120


def safe_name(name: str) -> str:
    """A title as a file or a folder may have it; empty if nothing is left."""
    return _UNSAFE.sub(" ", line_of(name)).strip(". ")[:_LONGEST].strip(". ")


def free_place(path: str, taken: set[str]) -> str:
    """A path, with a number where it is `taken` in any case; it is taken then."""
    suffix = PurePosixPath(path).suffix
    stem, number = path.removesuffix(suffix), 1
    while path.casefold() in taken:
        number += 1
        path = f"{stem} {number}{suffix}"
    taken.add(path.casefold())
    return path


def relative(target: str, source: str) -> str:
    """The link from one note to another place."""
    return relative_link(posixpath.relpath(target, posixpath.dirname(source) or "."))
