"""A folder of web pages with pictures, as Apple Notes and others export it."""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import decoded, line_of, relative_link, to_markdown
from kbtui.importers.port import ImportedNote, Item, Skipped, Source
from kbtui.importers.reading import data_of, read_each
from kbtui.importers.sources.markdown_folder import BESIDE, read_file
from kbtui.text import counted

_PAGES = (".html", ".htm")
_MAX_PAGE = 16 << 20
_PICTURE = re.compile(
    r"""(<img\b[^<>]{0,2000}?\bsrc\s*=\s*["'])data:image/([\w.-]+)(?:\+xml)?;base64,([^"'<>]+)""",
    re.IGNORECASE,
)
_SUFFIXES = {"jpeg": "jpg"}


def _recognises(opened: OpenedExport) -> bool:
    if opened.taken:
        return False  # pages beside another export mostly duplicate it
    return opened.is_folder and any(name.lower().endswith(_PAGES) for name in opened.names)


def _read(opened: OpenedExport) -> Iterator[Item]:
    kinds = {name: PurePosixPath(name).suffix.lower() for name in opened.names}
    taken = [name for name, kind in kinds.items() if kind in _PAGES or kind in BESIDE]
    pages = _WebPages(opened)
    yield from read_each(opened, taken, pages.read)
    if pages.dropped:
        tags = ", ".join(f"{count:,} <{tag}>" for tag, count in pages.dropped.most_common(5))
        place = counted(pages.dropped.total(), "hidden part")
        yield Skipped(place, f"The pages don't show it, or only to press: {tags}.")
    others = Counter(kind or name for name, kind in kinds.items() if name not in set(taken))
    if others:
        opened.taken.update(opened.names)
        names = ", ".join(line_of(kind) for kind, _ in others.most_common(5))
        yield Skipped(
            counted(others.total(), "other file"), f"Neither a page nor a paper: {names}."
        )


SOURCE = Source("a folder of web pages", "pages", _recognises, _read, is_any=True)


class _WebPages:
    def __init__(self, opened: OpenedExport) -> None:
        self._names = frozenset(opened.names)
        self.dropped: Counter[str] = Counter()

    def read(self, opened: OpenedExport, name: str) -> Iterator[Item]:
        path = PurePosixPath(name)
        if path.suffix.lower() not in _PAGES:
            yield read_file(opened, name, name)
            return
        html, pictures = _taken_out(decoded(data_of(opened, name, _MAX_PAGE)), path)
        yield from pictures
        text = to_markdown(
            html, None, lambda href: self._rewritten_link(href, name), dropped=self.dropped
        )
        title = line_of(path.stem)
        first, _, rest = text.partition("\n")
        if line_of(first.lstrip("# ")).casefold() == title.casefold():
            text = rest.strip()  # written again from the title
        updated = opened.modified(name)
        if text:
            yield ImportedNote(name, title, text, updated=updated, at=str(path.with_suffix(".md")))
        else:
            yield Skipped(line_of(name), "It is empty.")

    def _rewritten_link(self, href: str, name: str) -> str:
        """Rewrite a link to a page of the export to that of its note; keep all others."""
        address, mark, part = href.partition("#")
        plain = unquote(address)
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), plain))
        if target not in self._names or not target.lower().endswith(_PAGES):
            return href
        return f"{relative_link(str(PurePosixPath(plain).with_suffix('.md')))}{mark}{part}"


def _taken_out(html: str, page: PurePosixPath) -> tuple[str, list[ImportedNote]]:
    """Return a page with links to the pictures that stood in it as data, and these as files."""
    files: list[ImportedNote] = []
    if ";base64," not in html:
        return html, files

    def link(found: re.Match[str]) -> str:
        try:
            data = base64.b64decode(found[3])
        except (binascii.Error, ValueError):
            data = b""
        if not data:
            return found[0]
        suffix = _SUFFIXES.get(found[2].lower(), found[2].lower())
        title = f"{page.stem} {len(files) + 1}.{suffix}"
        at = str(page.with_name(title))
        files.append(ImportedNote(f"{page} {len(files) + 1}", title, "", data=data, at=at))
        return f"{found[1]}{relative_link(title)}"

    return _PICTURE.sub(link, html), files
