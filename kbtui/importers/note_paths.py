"""Paths of imported notes, and the relative links between them."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath

from kbtui.importers.markup import line_of, relative_link

_UNSAFE = re.compile(r'[\\/:*?"<>|]+')
_MAX_LENGTH = 120


def safe_name(name: str) -> str:
    """Return a title as a valid file or folder name, or "" if nothing is left of it."""
    return _UNSAFE.sub(" ", line_of(name)).strip(". ")[:_MAX_LENGTH].strip(". ")


def free_path(path: str, taken: set[str]) -> str:
    """Return a path numbered if `taken`, ignoring case, and add it to `taken`."""
    suffix = PurePosixPath(path).suffix
    stem, number = path.removesuffix(suffix), 1
    while path.casefold() in taken:
        number += 1
        path = f"{stem} {number}{suffix}"
    taken.add(path.casefold())
    return path


def relative(target: str, source: str) -> str:
    """Return the relative link from the path of one note to another path."""
    return relative_link(posixpath.relpath(target, posixpath.dirname(source) or "."))
