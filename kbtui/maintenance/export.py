"""Export of a workspace: which files, and in which form; the workspace isn't changed.

Private entries are excluded unless requested, and with them attachments that only they mention and
the memory's records, which may quote them.
"""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from kbtui.errors import KbtuiError, UnsafePathError, UsageError
from kbtui.history.history import History
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.library.library import Library
from kbtui.sessions import MARK_OF_PRIVATE, TAINT
from kbtui.sessions.imported import speaker
from kbtui.sessions.log_records import SessionMessage
from kbtui.sessions.store import SessionStore
from kbtui.text import clean, clean_line, moment, storable
from kbtui.views.view import View
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.layout import MACHINE, Workspace
from kbtui.workspace.scan import Scanner, attachments_in

_FORMAT_FILE = f"{MACHINE}/format"  # which marks a folder of notes in place
CONVERSATIONS = "sessions/"
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time in a zip


@dataclass(frozen=True, slots=True)
class Tree:
    """The files to export, as workspace paths; `kept_back` is the number of private ones excluded.

    `left_out` has unreadable files with the reason.
    """

    workspace: Workspace
    library: Library
    paths: tuple[str, ...]
    kept_back: int = 0
    left_out: dict[str, str] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        """Read a file; an index without private entries if those are kept back."""
        pieces = self.pieces(path)
        return None if pieces is None else b"".join(pieces)

    def pieces(self, path: str) -> Iterator[bytes] | None:
        """Read a file in pieces; None if unreadable, which is added to `left_out`."""
        if path == _FORMAT_FILE:
            with storage_errors(f"Can't read {path}"):
                return iter([(self.workspace.root / path).read_bytes()])
        rest = files.read_pieces(self.workspace, path)
        try:
            first = next(rest, b"")
        except KbtuiError as error:
            self.left_out[path] = error.message
            return None
        if self.kept_back and path.endswith("/INDEX.md") and not self.workspace.in_place:
            text = b"".join([first, *rest]).decode("utf-8", "replace")
            return iter([self.library.catalog.public_text(path, text).encode()])
        return chain([first], rest)

    def name(self, path: str) -> str:
        """Return the exported name of a path."""
        return self.workspace.file(path)


def tree_of(workspace: Workspace, library: Library, sessions: SessionStore, view: View) -> Tree:
    """Return the files to export: notes, memory, skills, documents, attachments, conversations.

    Files hidden by `view` are excluded.
    """
    scanner = Scanner(workspace)
    found = {*scanner.scan()}
    left_out = scanner.left_out()
    for path in {*attachments_in(workspace)} - found:
        if why := _why_not_exportable(workspace, path):
            left_out.setdefault(clean_line(storable(path)), why)
        else:
            found.add(path)
    left_out = {path: why for path, why in left_out.items() if path not in found}
    if workspace.in_place:
        found.add(_FORMAT_FILE)
    logs = {f"{CONVERSATIONS}{info.id}.jsonl" for info in sessions.list()}
    left_out |= sessions.unreadable
    hidden = {path for path in found if view.hides(path)}
    hidden_logs = view.sessions.hidden_logs(logs, hidden)
    if not hidden:
        paths = tuple(sorted(found | logs - hidden_logs))
        return Tree(workspace, library, paths, len(hidden_logs), left_out)
    hidden |= _only_in_hidden_notes(workspace, found, hidden)
    records = {path for path in found - hidden if _is_record(path)}
    paths = tuple(sorted((found - hidden - records) | (logs - hidden_logs)))
    return Tree(workspace, library, paths, len(hidden | hidden_logs), left_out)


def changed_since(tree: Tree, history: History, moment: datetime) -> Tree:
    """Return the part of a tree that changed since a time, by history or modification time."""
    last = next(history.log(until=moment - timedelta(seconds=1), limit=1), None)
    before = history.tree(last.id) if last else {}
    now = history.tree("HEAD") if history.head() else {}

    def is_new(path: str) -> bool:
        if path in now:
            return now[path] != before.get(path)
        status = None if path == _FORMAT_FILE else files.file_status(tree.workspace, path)
        return status is not None and status.st_mtime >= moment.timestamp()

    return replace(tree, paths=tuple(filter(is_new, tree.paths)))


def _why_not_exportable(workspace: Workspace, path: str) -> str:
    """Return why a file can't be exported; empty if it can."""
    try:
        is_file = files.exists(workspace, path)
    except UnsafePathError as error:
        return error.message.rpartition("can't be used: ")[2].rstrip(".")
    return "" if is_file else "it is a link, or no ordinary file"


def _is_record(path: str) -> bool:
    name = path.removeprefix("memory/")
    return name != path and (not name.endswith(".md") or name.startswith("HISTORY"))


def _only_in_hidden_notes(workspace: Workspace, found: set[str], hidden: set[str]) -> set[str]:
    texts: dict[bool, list[str]] = {True: [], False: []}
    for path in found:
        if path.endswith(".md"):
            try:
                text = files.read_text(workspace, path)
            except KbtuiError:
                if path in hidden:
                    return {each for each in found - hidden if not each.endswith(".md")}
                continue
            texts[path in hidden].append(text)
    secret, shown = ("\n".join(texts[is_hidden]) for is_hidden in (True, False))
    names = {path: path.rpartition("/")[2] for path in found - hidden if not path.endswith(".md")}
    return {
        path
        for path, name in names.items()
        if _mentions(secret, name) and not _mentions(shown, name)
    }


def _mentions(text: str, name: str) -> bool:
    return name in text or quote(name) in text


def exported_session(session: str, title: str, messages: Iterable[SessionMessage]) -> Iterator[str]:
    """Yield a conversation as Markdown that an import knows: below the name of its log."""
    yield f"<!-- {CONVERSATIONS}{session}.jsonl -->\n"
    yield from session_markdown(session, title, messages, marks_private=True)


def session_markdown(
    session: str, title: str, messages: Iterable[SessionMessage], *, marks_private: bool = False
) -> Iterator[str]:
    """Yield the Markdown of a conversation without tool results; `session` is its id."""
    yield f"# {clean_line(title)}\n"
    for message in messages:
        if message.is_said:
            yield f"## {speaker(message.role, session)}, {moment(message.time)}\n"
            if marks_private and message.meta.get(TAINT):
                yield f"{MARK_OF_PRIVATE}\n"
            yield f"{clean(message.content).strip()}\n"
            yield from _sources(message)


def _sources(message: SessionMessage) -> Iterator[str]:
    cited = [
        f"[{each['n']}] {each['path']}:{each['lines'][0]} {each.get('place', '')}  "
        for each in message.meta.get("citations", ())
    ]
    if cited:
        yield "\n".join([*cited, ""])


def message_shape(message: SessionMessage) -> dict[str, Any]:
    """Return a message as JSON data; ``private`` if private entries were shown before it."""
    private = {"private": True} if message.meta.get(TAINT) else {}
    return {
        **private,
        "id": message.id,
        "time": message.time.isoformat(),
        "role": message.role,
        "text": message.content,
        "citations": list(message.meta.get("citations", ())),
    }


def file_shape(name: str, data: bytes) -> dict[str, Any]:
    """Return a file as JSON data, with ``text``, or ``base64`` if it isn't UTF-8."""
    try:
        return {"path": name, "text": data.decode()}
    except UnicodeDecodeError:
        return {"path": name, "base64": base64.b64encode(data).decode()}


def markdown_of(name: str, data: bytes) -> str:
    """Return a note's part of a single Markdown file: its path, properties and text."""
    parts = frontmatter.split(data)
    head = clean(parts.head.decode("utf-8", "replace")).strip()
    body = clean(parts.body.decode("utf-8", "replace")).strip()
    pieces = [f"<!-- {clean_line(name).replace('--', '- -')} -->"]
    pieces += [f"```yaml\n{head}\n```"] if head else []
    return "\n\n".join([*pieces, body]) + "\n"


def _write_file(tree: Tree, path: str, file: Path) -> None:
    pieces = tree.pieces(path)
    if pieces is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        stream.writelines(pieces)
    status = None if path == _FORMAT_FILE else files.file_status(tree.workspace, path)
    if status:
        os.utime(file, ns=(status.st_mtime_ns, status.st_mtime_ns))


def write_folder(tree: Tree, target: Path, *, overwrite: bool = False) -> None:
    """Write the files to a new folder, atomically; an existing one is overwritten file by file.

    Raises:
        UsageError: The target exists, or is inside the workspace.
        StorageError: The disk is full, or the file system refused.
    """
    exists = target.exists() and (not target.is_dir() or any(target.iterdir()))
    if exists and not (overwrite and target.is_dir()):
        raise _exists_error(target)
    if target.resolve().is_relative_to(tree.workspace.root):
        raise UsageError(f"{target} lies in the workspace itself.", "Name a place outside of it.")
    with storage_errors(f"Can't write {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            for path in tree.paths:
                _write_file(tree, path, part / tree.name(path))
            part.chmod(0o755)
            if exists:
                shutil.copytree(part, target, dirs_exist_ok=True)
            else:
                part.replace(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def write_zip(tree: Tree, stream: IO[bytes]) -> None:
    """Write the files as a zip, reproducibly."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in tree.paths:
            pieces = tree.pieces(path)
            if pieces is None:
                continue
            info = zipfile.ZipInfo(tree.name(path), _ZIP_EPOCH)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with packed.open(info, "w", force_zip64=True) as member:
                for piece in pieces:
                    member.write(piece)


@contextmanager
def new_file(target: Path, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears atomically on success.

    Raises:
        UsageError: The target exists.
        StorageError: The disk is full, or the file system refused.
    """
    if target.is_dir() or (target.exists() and not overwrite):
        raise _exists_error(target)
    with storage_errors(f"Can't write {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        part = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                yield stream
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _exists_error(target: Path) -> UsageError:
    return UsageError(
        f"{target} is there already.", "Name another place, or say --overwrite to write over it."
    )
