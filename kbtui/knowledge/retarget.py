"""Writes a link's target anew after an entry moved, in the style in which it was written."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from kbtui.knowledge.entry import slug_of

if TYPE_CHECKING:
    from kbtui.knowledge.links import Link
    from kbtui.knowledge.resolve import LinkIndex, Named

_ROOT = "knowledge/"
_MUST_ESCAPE = re.compile(r"[\s()<>%#?\"\\]")


def new_target(link: Link, by: str, source: str, target: Named, index: LinkIndex) -> str:
    """Write the target for a link in the file `source` that shall lead to the entry `target`.

    Args:
        link: The link as it was written.
        by: How it was found before (`Found.by`).
        source: The file that it stands in now.
        target: The entry that it means.
        index: What finds entries from now on.
    """
    written = unquote(link.target) if link.kind == "markdown" else link.target
    for candidate in _candidates(written, by, source, target):
        encoded = _encoded(candidate, link) if link.kind == "markdown" else candidate
        retried = type(link)(encoded, link.kind, link.line, link.alias, link.heading)
        if index.resolve(retried, source) == target.path:
            return encoded
    full = target.path.removeprefix(_ROOT)
    return _encoded(full, link) if link.kind == "markdown" else full


def relative_target(link: Link, source: str, path: str) -> str:
    """Write a Markdown target that leads from the file `source` to any file of the workspace."""
    return _encoded(_relative(unquote(link.target), source, path), link)


def _candidates(written: str, by: str, source: str, target: Named) -> list[str]:
    """The forms to try, the one most like what was written first."""
    full = target.path.removeprefix(_ROOT)
    dotted = written.lower().endswith(".md")
    if by == "relative":
        relative = _relative(written, source, target.path)
        return [relative if dotted else relative[:-3]]
    if by == "title":
        return [target.title, slug_of(target.path), full[:-3]]
    if by == "alias":
        return [full[:-3]]
    if by == "name":
        folders = written.strip("/").count("/")
        parts = full.split("/")[-1 - folders :]
        full = "/".join(parts)
    elif written.lstrip("/").startswith(_ROOT):
        full = target.path
    full = full if dotted else full[:-3]
    lead = "/" if written.startswith("/") else ""
    return [lead + full, target.path.removeprefix(_ROOT)[: None if dotted else -3]]


def _relative(written: str, source: str, path: str) -> str:
    relative = posixpath.relpath(path, posixpath.dirname(source) or ".")
    if written.startswith("./") and not relative.startswith("../"):
        return f"./{relative}"
    return relative


def _encoded(target: str, link: Link) -> str:
    """Percent-encode a Markdown target as far as the old one was, or as it must be."""
    if "%" in link.target:
        keep = "" if link.target.isascii() else "".join(c for c in target if not c.isascii())
        return quote(target, safe="/@:!$&'*+,;=~" + keep)
    if " " in link.target:  # it stands in angle brackets
        return re.sub(r"[<>%#\n]", lambda found: quote(found.group(), safe=""), target)
    return _MUST_ESCAPE.sub(lambda found: quote(found.group(), safe=""), target)
