"""A workspace on its way out: which files leave, and in which form; nothing here changes it.

Private entries stay unless they are asked for, and with them the files that only they show, and
the machines' records, which may quote them.
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
from kbtui.sessions.imported import speaker
from kbtui.sessions.log_records import SessionMessage
from kbtui.sessions.store import SessionStore
from kbtui.text import clean, clean_line, moment
from kbtui.views.view import View
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.layout import MACHINE, Workspace
from kbtui.workspace.scan import Scanner, attachments_in

_SIGN = f"{MACHINE}/format"  # by which a folder of notes in place is known
CONVERSATIONS = "sessions/"
_FIRST_TIME = (1980, 1, 1, 0, 0, 0)  # a zip knows none before


@dataclass(frozen=True, slots=True)
class Tree:
    """The files that leave, as workspace paths; `kept_back` is how many private ones don't.

    What can't be read is `left_out`: path and reason.
    """

    workspace: Workspace
    library: Library
    paths: tuple[str, ...]
    kept_back: int = 0
    left_out: dict[str, str] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        """Read one, an index as if there were no private entries where those are kept back."""
        pieces = self.pieces(path)
        return None if pieces is None else b"".join(pieces)

    def pieces(self, path: str) -> Iterator[bytes] | None:
        """Read one as `read` does, a large one piece by piece."""
        if path == _SIGN:
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
        """The name that it leaves under: that of its file."""
        return self.workspace.file(path)


def tree_of(workspace: Workspace, library: Library, sessions: SessionStore, view: View) -> Tree:
    """See which files leave: notes, memory, how-tos, documents, what lies beside, conversations.

    They are those that `view` doesn't hide.
    """
    scanner = Scanner(workspace)
    found = {*scanner.scan()}
    left_out = scanner.left_out()
    for path in {*attachments_in(workspace)} - found:
        if why := _trouble(workspace, path):
            left_out.setdefault(clean_line(path.encode("utf-8", "replace").decode()), why)
        else:
            found.add(path)
    left_out = {path: why for path, why in left_out.items() if path not in found}
    if workspace.in_place:
        found.add(_SIGN)
    logs = {f"{CONVERSATIONS}{info.id}.jsonl" for info in sessions.list()}
    left_out |= sessions.unreadable
    hidden = {path for path in found if view.hides(path)}
    hidden_logs = view.sessions.hidden_logs(logs, hidden)
    if not hidden:
        paths = tuple(sorted(found | logs - hidden_logs))
        return Tree(workspace, library, paths, len(hidden_logs), left_out)
    hidden |= _shown_by_hidden_alone(workspace, found, hidden)
    records = {path for path in found - hidden if _is_record(path)}
    paths = tuple(sorted((found - hidden - records) | (logs - hidden_logs)))
    return Tree(workspace, library, paths, len(hidden | hidden_logs), left_out)


def changed_since(tree: Tree, history: History, moment: datetime) -> Tree:
    """What of a tree is new or otherwise than before a moment: by the history, else by its date."""
    last = next(history.log(until=moment - timedelta(seconds=1), limit=1), None)
    before = history.tree(last.id) if last else {}
    now = history.tree("HEAD") if history.head() else {}

    def is_new(path: str) -> bool:
        if path in now:
            return now[path] != before.get(path)
        status = None if path == _SIGN else files.file_status(tree.workspace, path)
        return status is not None and status.st_mtime >= moment.timestamp()

    return replace(tree, paths=tuple(filter(is_new, tree.paths)))


def _trouble(workspace: Workspace, path: str) -> str:
    """Say why a file can't leave; nothing where it can."""
    try:
        is_file = files.exists(workspace, path)
    except UnsafePathError as error:
        return error.message.rpartition("can't be used: ")[2].rstrip(".")
    return "" if is_file else "it is a link, or no ordinary file"


def _is_record(path: str) -> bool:
    name = path.removeprefix("memory/")
    return name != path and (not name.endswith(".md") or name.startswith("HISTORY"))


def _shown_by_hidden_alone(workspace: Workspace, found: set[str], hidden: set[str]) -> set[str]:
    """The pictures and papers that hidden notes name, and no other does."""
    said: dict[bool, list[str]] = {True: [], False: []}
    for path in found:
        if path.endswith(".md"):
            try:
                text = files.read_text(workspace, path)
            except KbtuiError:
                if path in hidden:
                    return {each for each in found - hidden if not each.endswith(".md")}
                continue
            said[path in hidden].append(text)
    secret, shown = ("\n".join(said[is_hidden]) for is_hidden in (True, False))
    names = {path: path.rpartition("/")[2] for path in found - hidden if not path.endswith(".md")}
    return {
        path for path, name in names.items() if _names(secret, name) and not _names(shown, name)
    }


def _names(text: str, name: str) -> bool:
    return name in text or quote(name) in text


def session_markdown(session: str, title: str, messages: Iterable[SessionMessage]) -> Iterator[str]:
    """The lines of a conversation as Markdown, without what the tools said; `session` is its id."""
    yield f"# {clean_line(title)}\n"
    for message in messages:
        if message.is_said:
            yield f"## {speaker(message.role, session)}, {moment(message.time)}\n"
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
    """A message as JSON has it."""
    return {
        "id": message.id,
        "time": message.time.isoformat(),
        "role": message.role,
        "text": message.content,
        "citations": list(message.meta.get("citations", ())),
    }


def file_shape(name: str, data: bytes) -> dict[str, Any]:
    """A file that is no entry, as JSON has it: ``text``, or ``base64`` where it is none."""
    try:
        return {"path": name, "text": data.decode()}
    except UnicodeDecodeError:
        return {"path": name, "base64": base64.b64encode(data).decode()}


def markdown_of(name: str, data: bytes) -> str:
    """A note's part of one Markdown file: its place, its properties, its text."""
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
    status = None if path == _SIGN else files.file_status(tree.workspace, path)
    if status:
        os.utime(file, ns=(status.st_mtime_ns, status.st_mtime_ns))


def write_folder(tree: Tree, target: Path, *, overwrite: bool = False) -> None:
    """Write the files below a folder, which is there whole or not at all.

    Raises:
        UsageError: Something is there already, or it lies in the workspace.
        StorageError: There is no room.
    """
    is_there = target.exists() and (not target.is_dir() or any(target.iterdir()))
    if is_there and not (overwrite and target.is_dir()):
        raise _there(target)
    if target.resolve().is_relative_to(tree.workspace.root):
        raise UsageError(f"{target} lies in the workspace itself.", "Name a place outside of it.")
    with storage_errors(f"Can't write {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            for path in tree.paths:
                _write_file(tree, path, part / tree.name(path))
            part.chmod(0o755)
            if is_there:
                shutil.copytree(part, target, dirs_exist_ok=True)
            else:
                part.replace(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def write_zip(tree: Tree, stream: IO[bytes]) -> None:
    """Write the files as a zip; the same tree gives the same bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in tree.paths:
            pieces = tree.pieces(path)
            if pieces is None:
                continue
            info = zipfile.ZipInfo(tree.name(path), _FIRST_TIME)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with packed.open(info, "w", force_zip64=True) as member:
                for piece in pieces:
                    member.write(piece)


@contextmanager
def new_file(target: Path, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """A file to be written, which is there once it is whole.

    Raises:
        UsageError: Something is there already.
        StorageError: There is no room.
    """
    if target.is_dir() or (target.exists() and not overwrite):
        raise _there(target)
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


def _there(target: Path) -> UsageError:
    return UsageError(
        f"{target} is there already.", "Name another place, or say --overwrite to write over it."
    )
