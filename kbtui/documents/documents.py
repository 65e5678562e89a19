"""The text of documents, with the page, slide, sheet or chapter of each line.

Texts are cached by the hash of the file's content, and extracted by a child process that is killed
when a file takes too long.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shlex
import stat
import sys
import zlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import metadata
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from kbtui.child_process import BusyError, ChildProcess, ClosedError, own_paths, own_program
from kbtui.errors import UnreadableError
from kbtui.text import clean, clean_line
from kbtui.workspace import files
from kbtui.workspace.durable import open_folder, real_name, storage_errors, temporary_name
from kbtui.workspace.layout import Layout, Workspace, located
from kbtui.workspace.scan import hash_file

VERSION = "3"
"""The version of cached texts; those of other versions are extracted again."""
_KINDS = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".pptx": "pptx",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".epub": "epub",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
}
WEB_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_PICTURES = (*WEB_PICTURES, ".bmp")
_TEXTS = (".md", ".markdown", ".txt", ".rst", ".org", ".adoc", ".tex", ".csv")
_UNSAFE_NAME = re.compile(r"[\x00-\x1f/\\:*?\"<>|]+")
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_MAX_PICTURE_BYTES = 40 << 20
MAX_BYTES = 200 << 20
_MAX_ANSWER_BYTES = 128 << 20
_SECONDS = 90.0
_REQUIRED_MODULES = {"pdf": "pypdfium2", "xlsx": "openpyxl", "page": "trafilatura"}
_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")


@cache
def missing() -> str:
    """Return why documents can't be read without an extra, and the command to install it."""
    return f"reading it needs markitdown: {_install_line('documents')}"


def _install_line(extra: str) -> str:
    """Return the command that installs an extra into the current environment."""
    what = shlex.quote(f"kbtui[{extra}]")
    with contextlib.suppress(metadata.PackageNotFoundError, ValueError):
        # The source of the installation (PEP 610).
        source = json.loads(metadata.distribution("kbtui").read_text("direct_url.json") or "{}")
        if (folder := urlsplit(source.get("url", ""))).scheme == "file":
            is_linked = source.get("dir_info", {}).get("editable", False)
            what = f"{'-e ' * is_linked}{shlex.quote(f'{unquote(folder.path)}[{extra}]')}"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:  # uv made the environment
        return f"uv pip install --python {python} {what}"
    return f"{python} -m pip install {what}"


@dataclass(frozen=True)
class DocumentText:
    """The text of a document as parts of (place, text); a place is such as ``page 3``, or empty.

    `problem` says why the text is missing or incomplete, worded to follow "because"; else empty.
    """

    parts: tuple[tuple[str, str], ...] = ()
    title: str = ""
    markdown: bool = False
    problem: str = ""

    @cached_property
    def whole(self) -> str:
        """All parts, each after a line with its place: ``[page 3]``."""
        return "".join(
            f"[{place}]\n{text}\n\n" if place else f"{text}\n" for place, text in self.parts
        )

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The line of `whole` (1-based) on which each part's text begins."""
        lines = [text.count("\n") + (3 if place else 1) for place, text in self.parts]
        begins = accumulate(lines, initial=1)
        return tuple(at + bool(place) for at, (place, _) in zip(begins, self.parts, strict=False))

    @property
    def places(self) -> tuple[tuple[int, str], ...]:
        """The places, each with its first line in `whole`."""
        named = zip(self.starts, self.parts, strict=True)
        return tuple((start - 1, place) for start, (place, _) in named if place)

    def place_at(self, line: int) -> str:
        """Return the place of a line of `whole`, or ""."""
        return place_at(self.places, line)


def place_at(places: Sequence[tuple[int, str]], line: int) -> str:
    """Return the place of a line, or ""."""
    found = bisect_right(places, line, key=lambda each: each[0])
    return places[found - 1][1] if found else ""


@dataclass(frozen=True)
class DocumentPicture:
    """A downscaled picture: original size, new size, and RGB pixels by rows.

    There are no pixels while only the sizes are known. `png` is a larger one, where it was wanted.
    """

    width: int
    height: int
    columns: int
    rows: int
    pixels: bytes = b""
    png: bytes = b""


TOO_LARGE = DocumentText(problem=f"it is larger than {MAX_BYTES >> 20} MB")


def kind_of(path: str) -> str:
    """Return the kind of a document by its path, such as ``pdf``, or "" if it isn't one."""
    return _KINDS.get(os.path.splitext(path)[1].lower(), "")  # noqa: PTH122 — no file is meant


def is_document(path: str, roots: Collection[str] = ()) -> bool:
    """Return whether a file is searched by its extracted text; `roots` are folders beside docs/.

    Web pages among entries are left out: they are rather exports, or parts of some project.
    """
    areas = ("docs/", *[f"{root}/" for root in roots])
    return bool(kind_of(path)) and (
        path.startswith(areas) or (path.startswith("knowledge/") and is_beside_notes(path))
    )


def is_beside_notes(name: str) -> bool:
    """Return whether a name is that of a document that people keep among their notes."""
    return kind_of(name) not in {"", "html"}


def is_picture(path: str) -> bool:
    """Return whether a name is that of a picture that can be shown."""
    return path.lower().endswith(_PICTURES)


def is_address(source: str) -> bool:
    """Return whether a source is a URL, of any scheme, rather than a file."""
    return _ADDRESS.match(source) is not None


def is_keepable(file: Path) -> bool:
    """Return whether a file can be stored: a document, a text or a picture."""
    name = file.name.lower()
    return file.is_file() and (bool(kind_of(name)) or name.endswith((*WEB_PICTURES, *_TEXTS)))


def document_name(name: str) -> str:
    """Return a name as one that a document can have in any file system."""
    return _UNSAFE_NAME.sub("-", clean_line(name)).strip(". -")[-120:] or "document"


def place_for(layout: Layout, folder: str, name: str, data: bytes) -> tuple[str, bool]:
    """Return the path of a document in a folder, and whether it isn't there yet.

    It is numbered if the name is that of a file with another content.
    """
    stem, dot, ending = name.rpartition(".")
    stem, ending = (stem, f"{dot}{ending}") if stem else (name, "")
    path, number = f"{folder}/{name}", 1
    while not files.is_gone(layout, path):
        status = files.file_status(layout, path)
        is_as_large = status is not None and status.st_size == len(data)
        if is_as_large and b"".join(files.read_pieces(layout, path)) == data:
            return path, False
        number += 1
        path = f"{folder}/{stem}-{number}{ending}"
    return path, True


def can_read(kind: str) -> bool:
    """Return whether the library for a kind is installed."""
    return find_spec(_REQUIRED_MODULES.get(kind, "markitdown")) is not None


class Documents:
    """The documents of a workspace; not thread-safe."""

    def __init__(self, workspace: Workspace, closing: Callable[[], bool] = lambda: False) -> None:
        """Reading is aborted as soon as `closing` returns True."""
        self._workspace = workspace
        self._closing = closing
        self._child: ChildProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the child process."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def stored(self, path: str, blob: str) -> DocumentText | None:
        """Return the cached text of a content, or None."""
        try:
            data = self._file(path, blob).read_bytes()
            check, _, rest = data.partition(b"\n")
            return _text(json.loads(rest)) if int(check) == zlib.crc32(rest) else None
        except (OSError, ValueError, RecursionError):
            return None

    def has(self, path: str, blob: str) -> bool:
        """Return whether the text of a content is cached."""
        return self._file(path, blob).exists()

    def read(self, path: str) -> DocumentText:
        """Return the text of a document; takes seconds unless it is cached.

        Raises:
            NotFoundError: There is no such file.
            UnsafePathError: The path leaves the workspace, or contains a symbolic link.
        """
        kind = kind_of(path)
        file, size = _checked_file(self._workspace, path)
        if size > MAX_BYTES:
            return TOO_LARGE
        with storage_errors(f"Can't read {file.name}"):
            blob = hash_file(file, size)
        if (known := self.stored(path, blob)) is not None:
            return known
        if not can_read(kind):
            return DocumentText(problem=missing())
        answer = self._request(file, kind)
        if answer is not None and not answer.get("missing"):
            self._cache(self._file(path, blob), answer)
        return _result(answer)

    def convert(self, file: Path, kind: str) -> DocumentText:
        """Extract any file's text uncached; kind ``page`` is a web page without its navigation."""
        return _result(self._request(file, kind))

    def picture_size(self, path: str) -> DocumentPicture:
        """Return a picture without its pixels, which takes a fraction of the time.

        Raises:
            NotFoundError, UnsafePathError, UnreadableError: As `picture`.
        """
        (sizes, _), *_ = self._picture_parts(path, "picture size")
        return DocumentPicture(*_picture_sizes(sizes))

    def picture(self, path: str, *, sharp: bool = False) -> DocumentPicture:
        """Return a downscaled picture of the workspace, `sharp` as a PNG too; it isn't cached.

        Raises:
            NotFoundError: There is no such file.
            UnsafePathError: The path leaves the workspace, or contains a symbolic link.
            UnreadableError: The file is too large, or not a readable picture.
        """
        kind = "sharp picture" if sharp else "picture"
        (sizes, pixels), *more = self._picture_parts(path, kind)
        width, height, columns, rows = _picture_sizes(sizes)
        try:
            data = base64.b64decode(pixels, validate=True)
            png = base64.b64decode(more[0][1], validate=True) if more else b""
        except ValueError as error:
            raise UnreadableError("no picture") from error
        if len(data) != columns * rows * 3:
            raise UnreadableError("no picture")
        return DocumentPicture(width, height, columns, rows, data, png)

    def _picture_parts(self, path: str, kind: str) -> tuple[tuple[str, str], ...]:
        file, size = _checked_file(self._workspace, path)
        if size > _MAX_PICTURE_BYTES:
            raise UnreadableError(f"larger than {_MAX_PICTURE_BYTES >> 20} MB")
        text = self.convert(file, kind)
        if text.problem or not text.parts:
            raise UnreadableError(text.problem or "no picture")
        return text.parts

    def keep_only(self, contents: Collection[tuple[str, str]]) -> None:
        """Delete the cached texts of all contents except the given (path, blob) pairs."""
        wanted = {self._file(path, blob).name for path, blob in contents}
        with contextlib.suppress(OSError):
            for file in self._folder.iterdir():
                if file.name not in wanted:
                    file.unlink(missing_ok=True)

    @property
    def _folder(self) -> Path:
        return self._workspace.cache / "documents"

    def _file(self, path: str, blob: str) -> Path:
        return self._folder / f"{blob}-{kind_of(path)}-{VERSION}.json"

    def _cache(self, file: Path, answer: dict[str, Any]) -> None:
        """Cache a text; errors are ignored."""
        data = json.dumps(answer).encode()
        temporary = file.with_name(temporary_name())
        with contextlib.suppress(OSError):
            file.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                temporary.write_bytes(b"%d\n%s" % (zlib.crc32(data), data))
                temporary.replace(file)
            finally:
                temporary.unlink(missing_ok=True)

    def _request(self, file: Path, kind: str) -> dict[str, Any] | None:
        """Have the child read a file; None if aborted, or if the child can't be started."""
        task = json.dumps({"path": str(file), "kind": kind}).encode()
        try:
            self._child = self._child or _start()
        except OSError:
            return None
        try:
            answer = json.loads(self._child.ask(task, _SECONDS, self._closing, _MAX_ANSWER_BYTES))
            _text(answer)
            return dict(answer)
        except ClosedError:
            self.close()
            return None
        except BusyError:
            self.close()
            return {"problem": f"reading it takes longer than {_SECONDS:.0f} seconds"}
        except (OSError, ValueError):
            self.close()
            return {"problem": "whatever read it broke down"}


def _picture_sizes(told: str) -> tuple[int, int, int, int]:
    """Return a picture's width, height, columns and rows as the child tells them.

    Raises:
        UnreadableError: They are no sizes.
    """
    try:
        width, height, columns, rows = map(int, told.split())
    except ValueError as error:
        raise UnreadableError("no picture") from error
    if min(width, height, columns, rows) < 1:
        raise UnreadableError("no picture")
    return width, height, columns, rows


def _start() -> ChildProcess:
    """Start the child process.

    Raises:
        OSError: It can't be started.
    """
    kept = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    # A process that parses untrusted files gets none of the user's API keys.
    own = {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return ChildProcess(own_program("kbtui.documents.child"), {**kept, **own_paths(), **own})


def _result(answer: dict[str, Any] | None) -> DocumentText:
    if answer is None:
        return DocumentText(problem="reading it was interrupted")
    if name := answer.get("missing"):
        return DocumentText(problem=f"{missing()} ({clean_line(str(name))[:40]} isn't there)")
    return _text(answer)


def _text(answer: Any) -> DocumentText:
    """Validate an answer of the child, which a hostile file may have taken over."""
    if not isinstance(answer, dict):
        raise ValueError("no answer")  # noqa: TRY004 - handled like errors of the JSON parser
    try:
        parts = tuple(
            (clean_line(str(place)), clean(str(text))) for place, text in answer.get("parts", ())
        )
    except TypeError as error:
        raise ValueError("no parts") from error
    return DocumentText(
        parts,
        clean_line(str(answer.get("title", "")))[:200],
        markdown=answer.get("markdown") is True,
        problem=clean_line(str(answer.get("problem", "")))[:200],
    )


def _checked_file(workspace: Workspace, path: str) -> tuple[Path, int]:
    """Return a document's file, reached through no symbolic link, and its size in bytes."""
    top, file = located(workspace, files.checked_path(path))
    *parts, name = file.split("/")
    with storage_errors(f"Can't read {file}"):
        folder = open_folder(top, parts)
        try:
            name = real_name(folder, name)
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(folder)
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError(f"{clean_line(file)} is no ordinary file.")
    return top.joinpath(*parts, name), status.st_size
