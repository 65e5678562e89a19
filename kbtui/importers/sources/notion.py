"""Notion: pages as Markdown or HTML and databases as CSV, in a folder or in nested zips.

Ids are removed from file names, links between pages rewritten to the new names, and a database
becomes a table whose rows link to their pages.
"""

from __future__ import annotations

import csv
import io
import posixpath
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from kbtui.errors import UnreadableError
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import decoded, line_of, to_markdown, words_of
from kbtui.importers.note_paths import free_path, relative, safe_name
from kbtui.importers.port import ImportedNote, Item, Skipped, Source
from kbtui.importers.reading import Record, data_of
from kbtui.importers.sources.markdown_folder import read_file
from kbtui.workspace.durable import storage_errors

if TYPE_CHECKING:
    from kbtui.importers.markup import Tree

_ID = re.compile(r"[ _-]?([0-9a-f]{32})(?=(?:_all)?(?:\.\w+)?\Z)")
_PAGE = re.compile(r"[ _/-][0-9a-f]{32}(?:_all)?\.(?:md|csv|html)\Z")
_PART = re.compile(r"(?:^|/)(?:ExportBlock-[0-9a-f-]+|[^/]*)-?Part-\d+\.zip\Z")
_WRAPPER = re.compile(r"(?:Export(?:Block)?-[0-9a-f-]{36}(?:-Part-\d+)?/)+")
_LINK = re.compile(r"(\]\()((?:[^()\s<>]|\([^()\s]*\))+)(\))")
_ON_THE_WEB = re.compile(r"https://(?:www\.)?notion\.(?:so|site)/\S*?([0-9a-f]{32})\b")
_RELATION = re.compile(r"(?<![^\s,;])([^\s,()|:][^,()\n|:]*) \(([^()\s]*[0-9a-f]{32}[^()\s]*)\)")
"""How a page or a row names another one that it is related to."""
_PROPERTY = re.compile(r"([^\W\d_][^:\n]{0,60}): (.*)")
_DATES = ("%B %d, %Y %I:%M %p", "%B %d, %Y", "%Y-%m-%dT%H:%M:%S.%fZ", "%Y/%m/%d %H:%M")
_MAX_PAGE = 32 << 20
_MAX_ROWS = 5_000


def _recognises(opened: OpenedExport) -> bool:
    """Return whether page names end in Notion's ids, or members are zips named as parts."""
    return opened.is_folder and any(_PAGE.search(n) or _PART.search(n) for n in opened.names)


def _read(opened: OpenedExport) -> Iterator[Item]:
    with ExitStack() as stack:
        parts, problems = _parts(opened, stack)
        yield from problems
        tree = _Pages(parts)
        for path in tree.paths:
            try:
                yield from tree.read(path)
            except UnreadableError as error:
                yield Skipped(line_of(path), str(error), lost=True)
            except csv.Error as error:
                yield Skipped(line_of(path), f"It is no table: {error}.", lost=True)


SOURCE = Source("Notion", "notion", _recognises, _read, is_alone=True)


def _parts(opened: OpenedExport, stack: ExitStack) -> tuple[list[OpenedExport], list[Skipped]]:
    """Open the export and the zips in it, which are copied to a temporary folder."""
    parts, problems = [opened], list[Skipped]()
    nested = [name for name in opened.names if _PART.search(name)]
    if not nested:
        return parts, problems
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kbtui-import-")))
    for number, name in enumerate(nested):
        file = folder / f"{number}.zip"
        try:
            with storage_errors(f"Can't unpack {line_of(name)}"):
                with opened.open(name) as stream, file.open("wb") as target:
                    shutil.copyfileobj(stream, target, 1 << 20)
                part = stack.enter_context(OpenedExport(file))
            if part.is_folder:
                parts.append(part)
                problems += [Skipped(inner, why, lost=True) for inner, why in part.refused]
            else:
                problems.append(Skipped(line_of(name), "It is no zip.", lost=True))
        except UnreadableError as error:
            problems.append(Skipped(line_of(name), str(error), lost=True))
    return parts, problems


class _Pages:
    """Index of all members by path, with the new path of each."""

    def __init__(self, parts: list[OpenedExport]) -> None:
        self._members: dict[str, tuple[OpenedExport, str]] = {}
        for part in parts:
            for name in part.names:
                if not _PART.search(name):
                    self._members.setdefault(_WRAPPER.sub("", name, count=1), (part, name))
        self.paths = sorted(self._members)
        self._new: dict[str, str] = {}
        self._by_id: dict[str, str] = {}
        taken: set[str] = set()
        for path in self.paths:
            whole = path.replace("_all.csv", ".csv")
            new = self._new.get(whole) or free_path(_clean_path(whole), taken)
            self._new[path] = self._new[whole] = new
            if found := _ID.search(PurePosixPath(path).name):
                self._by_id.setdefault(found[1], path)
        self._rows: dict[str, list[str]] = {}
        for path in self.paths:
            if _PAGE.search(f"/{path}"):
                self._rows.setdefault(_clean_path(path).casefold(), []).append(path)
        self._told: dict[str, tuple[str, dict[str, str]]] = {}
        self._titled: dict[str, dict[str, list[str]]] = {}

    def read(self, path: str) -> Iterator[Item]:
        opened, name = self._members[path]
        suffix = PurePosixPath(path).suffix.lower()
        if suffix == ".csv" and _ID.search(PurePosixPath(path).name):
            if path.replace(".csv", "_all.csv") not in self._members:
                yield self._database(opened, name, path)
        elif suffix in (".md", ".html"):
            if path != "index.html":
                yield self._page(opened, name, path)
        else:
            yield read_file(opened, name, self._new[path])

    def _page(self, opened: OpenedExport, name: str, path: str) -> Item:
        text = decoded(data_of(opened, name, _MAX_PAGE))
        if path.lower().endswith(".html"):
            text = to_markdown(text, lambda tree: self._prepare(tree, path))
        else:
            text = _LINK.sub(
                lambda link: f"{link[1]}{self._rewritten_link(link[2], path)}{link[3]}", text
            )
            text = self._related(text, path)
        text = words_of(text)
        title, body = PurePosixPath(self._new[path]).stem, text
        if text.startswith("# "):
            first, _, body = text.partition("\n")
            title = line_of(first[2:]) or title
        values = Record(_properties(body))
        tags, url = values.text("tags", "labels"), values.text("url")
        return ImportedNote(
            id=_identity(path),
            title=title,
            text=body.strip(),
            created=_date(values.text("created", "created time")),
            updated=_date(values.text("last edited time", "updated")),
            tags=tuple(filter(None, map(line_of, tags.split(",")))),
            url=url if url.startswith("http") else "",
            at=self._new[path],
        )

    def _database(self, opened: OpenedExport, name: str, path: str) -> Item:
        text = decoded(data_of(opened, name, _MAX_PAGE))
        csv.field_size_limit(_MAX_PAGE)
        new = self._new[path]
        lines: list[str] = []
        columns: list[str] = []
        for row in csv.reader(io.StringIO(text.replace("\x00", ""))):
            if not lines:
                width, columns = len(row), [each.strip().lower() for each in row]
                lines = [_row(row), _row(["---"] * width)]
            elif any(row):
                first = _cell(row[0])
                page = self._row_page(new, dict(zip(columns, row, strict=False)), row[0])
                if page and first:
                    first = f"[{first}]({relative(page, new)})"
                others = [_cell(self._related(each, path)) for each in row[1:]]
                lines.append(_row([first, *others][:width]))
            if len(lines) > _MAX_ROWS:
                lines += ["", f"Only the first {_MAX_ROWS - 1:,} rows are shown."]
                break
        title = PurePosixPath(new).stem
        return ImportedNote(_identity(path), title, "\n".join(lines), at=new)

    def _row_page(self, table: str, row: dict[str, str], name: str) -> str:
        """Return the page of a row; of several with its name, the one that has its values."""
        folder = table.removesuffix(".md").casefold()
        pages = self._rows.get(f"{folder}/{safe_name(name)}.md".casefold(), [])
        pages = pages or self._titles_in(folder).get(line_of(name).casefold(), [])
        if len(pages) > 1:
            values = [(self._told_by(page)[1], page) for page in pages]
            pages = [page for known, page in values if _fits(known, row)]
        return self._new[pages[0]] if len(pages) == 1 else ""

    def _related(self, text: str, path: str) -> str:
        """Return a text in which names of related pages are links to them."""

        def link(found: re.Match[str]) -> str:
            address = self._rewritten_link(found[2], path)
            return found[0] if address == found[2] else f"[{found[1]}]({address})"

        return _RELATION.sub(link, text)

    def _titles_in(self, folder: str) -> dict[str, list[str]]:
        """Return the pages in a folder by their own titles, which file names only begin with."""
        if folder not in self._titled:
            found = self._titled[folder] = {}
            for place, pages in self._rows.items():
                if place.rpartition("/")[0] == folder:
                    for page in pages:
                        found.setdefault(self._told_by(page)[0].casefold(), []).append(page)
        return self._titled[folder]

    def _told_by(self, path: str) -> tuple[str, dict[str, str]]:
        """Return the title and the properties of a page, read once."""
        if path not in self._told:
            text = ""
            with suppress(UnreadableError):  # that is said where the page itself is read
                text = words_of(decoded(data_of(*self._members[path], _MAX_PAGE)))
            if path.lower().endswith(".html"):
                text = to_markdown(text)
            first, _, body = text.partition("\n")
            self._told[path] = line_of(first.lstrip("# ")), dict(_properties(body))
        return self._told[path]

    def _prepare(self, tree: Tree, path: str) -> None:
        for tag in tree.find_all(["a", "img"]):
            key = "href" if tag.name == "a" else "src"
            if address := str(tag.get(key) or ""):
                tag[key] = self._rewritten_link(address, path)
        for tag in tree.select("div.checkbox"):
            is_done = "checkbox-on" in (tag.get("class") or [])
            tag.replace_with("[x]" if is_done else "[ ]")

    def _rewritten_link(self, address: str, path: str) -> str:
        """Return the address rewritten if it leads to a page of the export, else unchanged."""
        if web := _ON_THE_WEB.match(address):
            target = self._by_id.get(web[1], "")
        elif re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|#", address):
            return address
        else:
            plain = unquote(address.partition("#")[0])
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), plain))
            if target not in self._new and (found := _ID.search(PurePosixPath(plain).name)):
                target = self._by_id.get(found[1], "")
        return relative(self._new[target], self._new[path]) if target in self._new else address


def _clean_path(path: str) -> str:
    parts = [safe_name(_ID.sub("", part)) or "Untitled" for part in path.split("/")]
    name = PurePosixPath(parts[-1] if not parts[-1].startswith(".") else f"Untitled{parts[-1]}")
    is_page = name.suffix.lower() in (".md", ".html") or (
        name.suffix.lower() == ".csv" and _ID.search(PurePosixPath(path).name)
    )
    parts[-1] = f"{name.stem}.md" if is_page else str(name)
    return "/".join(parts)


def _identity(path: str) -> str:
    found = _ID.search(PurePosixPath(path).name)
    return found[1] if found else path


def _properties(body: str) -> Iterator[tuple[str, str]]:
    """Yield the properties of a database page, which are the first lines under its title."""
    for line in body.strip().split("\n"):
        found = _PROPERTY.fullmatch(line.strip())
        if not found:
            return
        yield found[1].strip().lower(), found[2].strip()


def _fits(known: Mapping[str, str], row: Mapping[str, str]) -> bool:
    """Return whether a page has the values of a row, each of them or neither of both."""
    own = {key: _unrelated(value) for key, value in known.items() if key in row}
    told = {key: _unrelated(value) for key, value in row.items() if value.strip()}
    first = next(iter(row), "")
    return all(own.get(key, "") == value for key, value in told.items() if key != first) and all(
        told.get(key, "") == value for key, value in own.items()
    )


def _unrelated(value: str) -> str:
    """Return a value with the names of related pages only, which stand at different places."""
    return " ".join(_RELATION.sub(r"\1", value).split())


def _date(value: str) -> datetime | None:
    for form in _DATES:
        try:
            return datetime.strptime(value.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    lines = [line_of(line) for line in words_of(text).split("\n")]
    return "<br>".join(filter(None, lines)).replace("|", "\\|")
