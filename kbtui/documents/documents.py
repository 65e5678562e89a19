"""The text of documents, with the page, slide, sheet or chapter that each line stands on.

It is derived: kept in the cache by the file's content, made again on any doubt, and read by a child
process that is ended when a file takes too long.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
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

from kbtui.child_process import BusyError, ChildProcess, ClosedError
from kbtui.errors import UnreadableError
from kbtui.text import clean, clean_line
from kbtui.workspace.durable import open_folder, real_name, storage_errors, temporary_name
from kbtui.workspace.files import checked_path
from kbtui.workspace.layout import Workspace, located
from kbtui.workspace.scan import hash_file

VERSION = "1"
"""The version of the texts that are kept; those of another are made again."""
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
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_MOST_PICTURE_BYTES = 40 << 20
MOST_BYTES = 200 << 20
_MOST_ANSWER = 128 << 20
_SECONDS = 90.0
_NEEDED = {"pdf": "pypdfium2", "xlsx": "openpyxl", "page": "trafilatura"}
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")


@cache
def missing() -> str:
    """Why a document can't be read without what an extra brings, and what to type to get that."""
    return f"reading it needs markitdown: {_install_line('documents')}"


def _install_line(extra: str) -> str:
    """The command that brings an extra into the environment in which kbtui runs."""
    what = shlex.quote(f"kbtui[{extra}]")
    with contextlib.suppress(metadata.PackageNotFoundError, ValueError):
        # Where it was installed from (PEP 610).
        told = json.loads(metadata.distribution("kbtui").read_text("direct_url.json") or "{}")
        if (folder := urlsplit(told.get("url", ""))).scheme == "file":
            is_linked = told.get("dir_info", {}).get("editable", False)
            what = f"{'-e ' * is_linked}{shlex.quote(f'{unquote(folder.path)}[{extra}]')}"
    return f"{shlex.quote(sys.executable)} -m pip install {what}"


@dataclass(frozen=True)
class DocumentText:
    """The text of a document, in parts with their places, such as ``page 3``, or none.

    `problem` is why there is no text, or not all of it, as it follows "because"; else empty.
    """

    parts: tuple[tuple[str, str], ...] = ()
    title: str = ""
    markdown: bool = False
    problem: str = ""

    @cached_property
    def whole(self) -> str:
        """All parts, each below a line with its place: ``[page 3]``."""
        return "".join(
            f"[{place}]\n{text}\n\n" if place else f"{text}\n" for place, text in self.parts
        )

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The line of `whole` on which each part's text begins, below its place; from 1."""
        lines = [text.count("\n") + (3 if place else 1) for place, text in self.parts]
        begins = accumulate(lines, initial=1)
        return tuple(at + bool(place) for at, (place, _) in zip(begins, self.parts, strict=False))

    @property
    def places(self) -> tuple[tuple[int, str], ...]:
        """The places, each with the line of `whole` from which on it holds."""
        named = zip(self.starts, self.parts, strict=True)
        return tuple((start - 1, place) for start, (place, _) in named if place)

    def place_at(self, line: int) -> str:
        """The place of a line of `whole`; empty where there is none."""
        return place_at(self.places, line)


def place_at(places: Sequence[tuple[int, str]], line: int) -> str:
    """The place that holds on a line; empty where there is none."""
    found = bisect_right(places, line, key=lambda each: each[0])
    return places[found - 1][1] if found else ""


@dataclass(frozen=True)
class DocumentPicture:
    """A picture made small: its size in pixels, that of what is left, and that in RGB, by rows."""

    width: int
    height: int
    columns: int
    rows: int
    pixels: bytes


TOO_LARGE = DocumentText(problem=f"it is larger than {MOST_BYTES >> 20} MB")


def kind_of(path: str) -> str:
    """The kind of document that a workspace path names: ``pdf``, ...; empty: none."""
    return _KINDS.get(os.path.splitext(path)[1].lower(), "")  # noqa: PTH122 — no file is meant


def is_document(path: str, roots: Collection[str] = ()) -> bool:
    """True if a file is searched by the text that is made of it; `roots`: folders beside docs/.

    Among entries a web page isn't: there it is rather an export, or a part of some project.
    """
    areas = ("docs/", *(f"{root}/" for root in roots))
    return bool(kind_of(path)) and (
        path.startswith(areas) or (path.startswith("knowledge/") and is_beside_notes(path))
    )


def is_beside_notes(name: str) -> bool:
    """True if this is, by its name, a document that people keep among their notes."""
    return kind_of(name) not in {"", "html"}


def is_picture(path: str) -> bool:
    """True if a file is, by its name, a picture that can be shown."""
    return path.lower().endswith(_PICTURES)


def can_read(kind: str) -> bool:
    """True if what reads this kind is installed."""
    return find_spec(_NEEDED.get(kind, "markitdown")) is not None


class Documents:
    """The documents of a workspace; for one thread at a time, ended by `close`."""

    def __init__(self, workspace: Workspace, closing: Callable[[], bool] = lambda: False) -> None:
        """Opens nothing yet; what is being read is given up as soon as `closing` says so."""
        self._workspace = workspace
        self._closing = closing
        self._child: ChildProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child process."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def stored(self, path: str, blob: str) -> DocumentText | None:
        """The text that is known of a content; None: it has to be read."""
        try:
            data = self._file(path, blob).read_bytes()
            check, _, rest = data.partition(b"\n")
            return _text(json.loads(rest)) if int(check) == zlib.crc32(rest) else None
        except (OSError, ValueError, RecursionError):
            return None

    def has(self, path: str, blob: str) -> bool:
        """True if a text of this content is kept."""
        return self._file(path, blob).exists()

    def read(self, path: str) -> DocumentText:
        """The text of a document, out of the cache if it is known; takes seconds else.

        Raises:
            NotFoundError: It isn't there.
            UnsafePathError: The path leads outside, or through a link.
        """
        kind = kind_of(path)
        file, size = _checked(self._workspace, path)
        if size > MOST_BYTES:
            return TOO_LARGE
        with storage_errors(f"Can't read {file.name}"):
            blob = hash_file(file, size)
        if (known := self.stored(path, blob)) is not None:
            return known
        if not can_read(kind):
            return DocumentText(problem=missing())
        answer = self._ask(file, kind)
        if answer is not None and not answer.get("missing"):
            self._keep(self._file(path, blob), answer)
        return _told(answer)

    def convert(self, file: Path, kind: str) -> DocumentText:
        """The text of any file, which isn't kept; ``page``: a web page without its navigation."""
        return _told(self._ask(file, kind))

    def picture(self, path: str) -> DocumentPicture:
        """A picture of the workspace, made small; it isn't kept.

        Raises:
            NotFoundError: It isn't there.
            UnsafePathError: The path leads outside, or through a link.
            UnreadableError: It is too large, or none that can be shown.
        """
        file, size = _checked(self._workspace, path)
        if size > _MOST_PICTURE_BYTES:
            raise UnreadableError(f"larger than {_MOST_PICTURE_BYTES >> 20} MB")
        text = self.convert(file, "picture")
        if text.problem or not text.parts:
            raise UnreadableError(text.problem or "no picture")
        sizes, pixels = text.parts[0]
        try:
            width, height, columns, rows = map(int, sizes.split())
            data = base64.b64decode(pixels, validate=True)
        except (TypeError, ValueError) as error:
            raise UnreadableError("no picture") from error
        if min(columns, rows) < 1 or len(data) != columns * rows * 3:
            raise UnreadableError("no picture")
        return DocumentPicture(width, height, columns, rows, data)

    def keep_only(self, contents: Collection[tuple[str, str]]) -> None:
        """Delete the texts of all but these (path, blob), such as of files that are gone."""
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

    def _keep(self, file: Path, answer: dict[str, Any]) -> None:
        """Store a text; without room it is read again another time."""
        data = json.dumps(answer).encode()
        temporary = file.with_name(temporary_name())
        with contextlib.suppress(OSError):
            file.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                temporary.write_bytes(b"%d\n%s" % (zlib.crc32(data), data))
                temporary.replace(file)
            finally:
                temporary.unlink(missing_ok=True)

    def _ask(self, file: Path, kind: str) -> dict[str, Any] | None:
        """Have the child read a file; None: it was told to stop, or there is no process for it."""
        task = json.dumps({"path": str(file), "kind": kind}).encode()
        try:
            self._child = self._child or _start()
        except OSError:
            return None
        try:
            answer = json.loads(self._child.ask(task, _SECONDS, self._closing, _MOST_ANSWER))
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


def _start() -> ChildProcess:
    """Start the process that reads, one file after the other.

    Raises:
        OSError: it can't be started.
    """
    package = str(Path(__file__).resolve().parents[2])
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    return ChildProcess(
        # -P: no module out of whatever folder somebody is in.
        [sys.executable, "-P", "-B", "-m", "kbtui.documents.child"],
        # No key of the user's is for what reads a stranger's file.
        {**kept, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


def _told(answer: dict[str, Any] | None) -> DocumentText:
    if answer is None:
        return DocumentText(problem="reading it was interrupted")
    if name := answer.get("missing"):
        return DocumentText(problem=f"{missing()} ({clean_line(str(name))[:40]} isn't there)")
    return _text(answer)


def _text(answer: Any) -> DocumentText:
    """Read an answer of the child, which may have been taken over by what it read."""
    if not isinstance(answer, dict):
        raise ValueError("no answer")  # noqa: TRY004 — to be caught with what JSON raises
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


def _checked(workspace: Workspace, path: str) -> tuple[Path, int]:
    """The file of a document, which no link leads to, and its size in bytes."""
    top, file = located(workspace, checked_path(path))
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
