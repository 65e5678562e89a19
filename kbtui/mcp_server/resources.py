"""MCP resources, which users attach by name: entries, the catalogue and the memory.

An entry is ``kb://entry/people/alice``, any other file that agents may read ``kb://file/docs/a.md``,
percent-encoded. Private files aren't listed and can't be read.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from kbtui.agent.tools.base import checked_area
from kbtui.errors import NotFoundError, UsageError
from kbtui.knowledge.catalog.catalog import ROOT_INDEX
from kbtui.knowledge.entries.entry import is_catalogue
from kbtui.knowledge.library.library import EntryInfo, Library
from kbtui.text import clean_line, fold, shorten
from kbtui.workspace.files import text_of
from kbtui.workspace.layout import MEMORY as _FILE, Workspace

INDEX = "kb://index"
MEMORY = "kb://memory"
ENTRY = "kb://entry/"
FILE = "kb://file/"
TEMPLATE = f"{ENTRY}{{+name}}"
PAGE = 200


@dataclass(frozen=True, slots=True)
class ListedResource:
    """A resource in the list; `size` in bytes if known."""

    uri: str
    name: str
    title: str
    description: str
    size: int | None = None
    updated: str | None = None


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """A page of resources, and the cursor of the next page or None."""

    resources: tuple[ListedResource, ...]
    cursor: str | None


class Resources:
    """The resources of a workspace."""

    def __init__(self, workspace: Workspace, library: Library, roots: Sequence[str] = ()) -> None:
        self._workspace = workspace
        self._library = library.public
        self._catalog = library.catalog
        self._roots = roots

    def page(self, cursor: str | None) -> ResourcePage:
        """Return the page at a cursor, which also lists entries added since the previous page.

        Raises:
            UsageError: The cursor is invalid.
        """
        after = _decode_cursor(cursor) if cursor is not None else None
        entries = sorted(self._library.infos(), key=lambda info: info.path)
        left = [info for info in entries if after is None or info.path > after]
        shown = left[:PAGE]
        first = self._fixed_resources() if after is None else ()
        more = _cursor(shown[-1].path) if len(left) > PAGE else None
        return ResourcePage((*first, *map(_listed, shown)), more)

    def read(self, uri: str) -> str:
        """Return the text of a resource.

        Raises:
            NotFoundError: There is no such resource.
        """
        if uri == INDEX:
            if self._workspace.in_place:  # there is no such file
                return self._catalog.public_text(ROOT_INDEX, "")
            return self._text(uri, ROOT_INDEX)
        if uri == MEMORY:
            return self._text(uri, _FILE)
        if uri.startswith(FILE):
            return self._text(uri, checked_area(unquote(uri.removeprefix(FILE)), self._roots))
        if not uri.startswith(ENTRY):
            raise _not_found(uri)
        name = unquote(uri.removeprefix(ENTRY))
        path = self._library.find_path(f"knowledge/{name}.md")
        if not path.startswith("knowledge/") or is_catalogue(path):
            raise _not_found(uri)
        return self._library.get(path).text

    def suggest(self, typed: str) -> list[str]:
        """Return up to 100 entry names that contain `typed`, prefix matches first."""
        wanted = fold(clean_line(typed))
        names = sorted(quote(info.name) for info in self._library.infos())
        found = [name for name in names if wanted in fold(unquote(name))]
        found.sort(key=lambda name: not fold(unquote(name)).startswith(wanted))
        return found[:100]

    def _fixed_resources(self) -> tuple[ListedResource, ...]:
        known = (
            (INDEX, "INDEX.md", "Catalogue", "Every entry with its summary", ROOT_INDEX),
            (MEMORY, "MEMORY.md", "Memory", "Short facts that always matter", _FILE),
        )
        return tuple(
            ListedResource(uri, name, title, description)
            for uri, name, title, description, path in known
            if (self._workspace.in_place and uri == INDEX) or self._library.exists(path)
        )

    def _text(self, uri: str, path: str) -> str:
        try:
            return text_of(self._library.read(path))
        except NotFoundError:
            raise _not_found(uri) from None


def entry_uri(path: str) -> str | None:
    """Return the resource URI of an entry, or None for any other file."""
    if not path.startswith("knowledge/") or not path.endswith(".md") or path.endswith("INDEX.md"):
        return None
    return ENTRY + quote(path.removeprefix("knowledge/").removesuffix(".md"))


def file_uri(path: str) -> str:
    """Return the resource URI of any file."""
    return entry_uri(path) or FILE + quote(path)


def _listed(info: EntryInfo) -> ListedResource:
    uri = ENTRY + quote(info.path.removeprefix("knowledge/").removesuffix(".md"))
    description = shorten(info.summary, 200)
    return ListedResource(
        uri, info.name, clean_line(info.title), description, info.size, info.updated or info.created
    )


def _cursor(path: str) -> str:
    return base64.urlsafe_b64encode(path.encode("utf-8", "surrogatepass")).decode("ascii")


def _decode_cursor(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise UsageError(
            f"{shorten(cursor, 60)!r} is no cursor of this list.", "Begin without one."
        ) from None


def _not_found(uri: str) -> NotFoundError:
    return NotFoundError(
        f"There is no resource {shorten(clean_line(uri), 120)!r}.",
        f"Entries are {ENTRY}CATEGORY/SLUG.",
    )
