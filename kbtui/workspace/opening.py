"""Finding, opening and creating workspaces.

A workspace is a folder with ``.kbtui/`` in it: either in kbtui's own layout, or a folder of notes
used in place, which stays as it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from pathlib import Path
from queue import Empty, SimpleQueue

from kbtui.errors import StorageError, WorkspaceBusyError, WorkspaceError
from kbtui.workspace import files
from kbtui.workspace.identity import Identity, new_id, read_id
from kbtui.workspace.known import (
    KnownWorkspace as KnownWorkspace,
    check_first_opening as check_first_opening,
    forget_workspace as forget_workspace,
    former_paths as former_paths,
    known_workspaces as known_workspaces,
    note_opened as note_opened,
)
from kbtui.workspace.layout import (
    BOOTSTRAP_FILES,
    CATEGORIES,
    ID_FILE,
    MACHINE,
    Layout,
    Workspace,
)
from kbtui.workspace.lock import (
    WorkspaceLock as WorkspaceLock,
    open_lock as open_lock,
    try_lock as try_lock,
)
from kbtui.workspace.scan import notes_in

WORKSPACE_VARIABLE = "KBTUI_WORKSPACE"
FORMAT = 1
IN_PLACE = 2
"""The format of a folder of notes used in place, which older versions must not open."""
_OWN_FILES = (
    *("memory/MEMORY.md", "memory/HISTORY.md", "memory/history.jsonl"),
    *("SOUL.md", "MEMORY.md", "HISTORY.md"),
)
_NANOBOT_FILES = frozenset({*_OWN_FILES, *BOOTSTRAP_FILES, "HEARTBEAT.md", "memory/.dream_cursor"})
_DATED = re.compile(r"memory/\d{4}-\d{2}-\d{2}.*\.md|sessions/[^/.][^/]*\.jsonl?")
PROGRAMS = {
    ".obsidian": "Obsidian",
    "logseq": "Logseq",
    ".zk": "zk",
    ".foam": "Foam",
    "dendron.yml": "Dendron",
}
"""Note programs by their marker files; a folder "knowledge" beside one belongs to the user."""


class NotAnsweringError(WorkspaceError):
    """The disk of a workspace doesn't respond, such as a disconnected network share."""


def find_workspace(named: Path | None = None, *, patience: float = 10.0) -> Path:
    """Find the workspace to use.

    In this order: `named`, ``KBTUI_WORKSPACE``, the nearest parent of the current folder that has
    ``.kbtui/``, that of the setting ``workspace.default``, and the one in the user's data folder,
    which may not exist yet.

    Args:
        named: The folder given by the user.
        patience: The timeout in seconds for its disk.

    Raises:
        WorkspaceError: A folder was given that doesn't exist or isn't a folder, or the setting
            names one that is no workspace and can't become one.
        ConfigurationError: The setting can't be read.
        NotAnsweringError: Its disk doesn't respond.
    """
    found: SimpleQueue[Path | Exception] = SimpleQueue()

    def find() -> None:
        try:
            found.put(_resolve(named))
        except Exception as error:  # noqa: BLE001 - raised below
            found.put(error)

    # A thread that waits for such a disk can't be interrupted, so a daemon thread is abandoned.
    threading.Thread(target=find, daemon=True).start()
    try:
        root = found.get(timeout=patience)
    except Empty:
        raise NotAnsweringError(
            f"The disk with {named or 'the current folder'} doesn't answer.",
            "Is it on a network share that is away? Connect it again, or name another workspace.",
        ) from None
    if isinstance(root, Exception):
        raise root
    return root


def _resolve(named: Path | None) -> Path:
    if named is None and (variable := os.environ.get(WORKSPACE_VARIABLE)):
        named = Path(variable)
    if named is not None:
        root = _absolute(named)
        _check_folder(root)
        return root.resolve()
    here = _absolute(Path())
    for folder in (here, *here.parents):
        if (folder / MACHINE).is_dir():
            return folder
    return _chosen_workspace() or default_workspace()


def _chosen_workspace() -> Path | None:
    """Return the workspace that the settings name; None if they name none."""
    from kbtui.settings import load_settings

    named = load_settings().workspace.default
    if not named:
        return None
    root = _absolute(Path(named))
    # Never created without asking: its disk may only be away.
    if root.is_dir() and ((root / MACHINE).is_dir() or can_become_workspace(root)):
        return root.resolve()
    raise WorkspaceError(
        f"There is no workspace at {root}, which the setting `workspace.default` names.",
        f"Make one there with `kbtui init {root}`, or name another:"
        " `kbtui config set workspace.default FOLDER`.",
    )


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except FileNotFoundError:  # the current folder was deleted
        raise WorkspaceError(
            "The current folder isn't there any more.",
            "Change to another one, or name a workspace by its whole path: -w /PATH.",
        ) from None


def default_workspace() -> Path:
    """Return the path of the workspace in the user's data folder, which may not exist yet."""
    from platformdirs import user_data_path

    return user_data_path("kbtui") / "workspace"


_REPOSITORY = tuple(
    f"history.git{name}"
    for name in ("", "/objects", "/objects/pack", "/refs", "/refs/heads", "/refs/proposals")
)


def can_become_workspace(place: Path) -> bool:
    """Return whether a folder isn't a workspace yet but can become one without asking.

    This is the default one before its first use, an empty folder, one with ``knowledge/``, or a
    folder of notes. A home directory requires ``kbtui init``.
    """
    if (place / MACHINE).exists() or not (place.is_dir() or place == default_workspace()):
        return False
    if place == default_workspace() or (place / "knowledge").is_dir():
        return True
    if place in {Path.home(), Path(place.anchor)}:
        return False
    if any((place / name).exists() for name in _OWN_FILES):
        return True
    return not any(place.iterdir()) or is_folder_of_notes(place)


def is_folder_of_notes(root: Path) -> bool:
    """Return whether a folder has the user's own notes, to be used in place.

    A folder laid out by kbtui or nanobot doesn't count: it has ``knowledge/``, or a memory and
    other files of nanobot.
    """
    if is_nanobot_workspace(root):
        return False
    if (root / "knowledge").exists() and not belongs_to_other_program(root):
        return False
    notes = (file.relative_to(root).as_posix() for file in notes_in(Layout(root, in_place=True)))
    return any(note not in _NANOBOT_FILES for note in notes)


def belongs_to_other_program(folder: Path) -> bool:
    """Return whether another note program keeps its files there, such as ``.obsidian/``."""
    return any((folder / name).exists() for name in PROGRAMS)


def is_nanobot_workspace(root: Path) -> bool:
    """Return whether a folder was laid out by nanobot; a single file of its names isn't enough.

    It needs a memory, dated notes or conversations of nanobot's, and a second file.
    """
    found = {name for name in _NANOBOT_FILES if (root / name).is_file()}
    if found.isdisjoint(_OWN_FILES):
        return False
    for file in (*root.glob("memory/*"), *root.glob("sessions/*")):  # skips unreadable ones
        if _DATED.fullmatch(name := f"{file.parent.name}/{file.name}"):
            found.add(name)
    return len(found) > 1 and any("/" in name for name in found)


def open_workspace(root: Path) -> Workspace:
    """Open an existing workspace, or a read-only folder of notes.

    Raises:
        WorkspaceError: It doesn't exist, isn't a workspace, or was made by a newer kbtui.
    """
    root = _absolute(root)
    _check_folder(root)
    root = root.resolve()
    _check_links(root)
    if (root / MACHINE).is_dir():
        return _open(root, in_place=False)
    if not os.access(root, os.W_OK) and is_folder_of_notes(root):
        return Workspace(root, in_place=True, writable=False)
    raise WorkspaceError(
        f"{root} is not a workspace: it has no {MACHINE} folder.",
        f"Make it one with `kbtui init {root}`.",
    )


def create_workspace(root: Path, *, in_place: bool = False) -> Workspace:
    """Create a workspace in a folder, or complete one; existing files stay untouched.

    A folder of notes is used in place: only ``.kbtui/`` is created in it. `in_place` does the same
    for a folder that has no notes yet.

    Raises:
        WorkspaceError: `root` is a file, or the workspace was made by a newer kbtui.
        StorageError: The file system refused.
    """
    root = _absolute(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        root = root.resolve()
        _check_links(root)
        is_new = not (root / MACHINE).exists()
        in_place = is_new and (in_place or is_folder_of_notes(root))
        if in_place and not os.access(root, os.W_OK):
            return Workspace(root, in_place=True, writable=False)
        (root / MACHINE).mkdir(mode=0o700, exist_ok=True)
        workspace = _open(root, in_place=in_place)
        if not workspace.in_place:
            for category in CATEGORIES:
                (root / "knowledge" / category).mkdir(parents=True, exist_ok=True)
        for name in ("memory", "skills") if workspace.in_place else ("memory", "docs", "skills"):
            workspace.place(name).mkdir(exist_ok=True)
        workspace.sessions.mkdir(mode=0o700, exist_ok=True)
        if in_place:  # hide it from a repository of the owner's around it
            files.write_machine_file(root, f"{MACHINE}/.gitignore", b"*\n")
    except (FileExistsError, NotADirectoryError) as error:
        raise WorkspaceError(
            f"{error.filename} is a file, and a workspace needs a folder there.",
            "Choose another folder, or move that file away.",
        ) from error
    except OSError as error:
        raise StorageError(
            f"Can't make a workspace at {root}: {error.strerror}.",
            "Choose a folder that you may write to: `kbtui -w FOLDER`.",
        ) from error
    return workspace


def _check_folder(root: Path) -> None:
    if root.is_dir():
        return
    if root.exists():
        raise WorkspaceError(
            f"{root} is a file, and a workspace is a folder.",
            "Name the folder that holds (or shall hold) your notes.",
        )
    raise WorkspaceError(
        f"There is no workspace at {root}.", f"Make one there with `kbtui init {root}`."
    )


def _check_links(root: Path) -> None:
    """Refuse ``.kbtui`` folders that are links, which a shared folder could point elsewhere."""
    for name in ("", *_REPOSITORY):
        _refuse_link(root / MACHINE / name)


def _refuse_link(folder: Path) -> None:
    if folder.is_symlink():
        raise WorkspaceError(
            f"{folder} is a link, and kbtui follows none inside a workspace.",
            "Put the real folder there.",
        )


def _can_write(root: Path) -> bool:
    return all(os.access(folder, os.W_OK | os.X_OK) for folder in (root, root / MACHINE))


def _open(root: Path, *, in_place: bool) -> Workspace:
    """Check the format and return the workspace; write a missing format file."""
    writable = _can_write(root)
    file = root / MACHINE / "format"
    try:
        text = file.read_text("utf-8", "replace").strip()
    except FileNotFoundError:
        text = str(IN_PLACE if in_place else FORMAT)
        if writable:
            files.write_machine_file(root, f"{MACHINE}/format", f"{text}\n".encode())
    except OSError as error:
        if writable:
            raise StorageError(f"Can't read {file}: {error.strerror}.") from error
        text = str(FORMAT)  # another user's workspace, whose .kbtui we can't read
    if not text.isdecimal():
        raise WorkspaceError(
            f"{file} doesn't hold a format number.",
            f"If this is your workspace, write `{FORMAT}` into that file.",
        )
    if int(text) > IN_PLACE:
        raise WorkspaceError(
            f"{root} was written by a newer kbtui (format {text}, this one knows {IN_PLACE}).",
            "Update kbtui; nothing was changed.",
        )
    if writable and not read_id(root / ID_FILE):
        _make_id(root)
    identity = Identity(root, root / ID_FILE)
    in_place = int(text) == IN_PLACE
    workspace = Workspace(root, in_place=in_place, writable=writable, identity=identity)
    _refuse_link(workspace.sessions)
    return workspace


def _make_id(root: Path) -> None:
    """Give a workspace an id, unless another process is faster; without one it can be used too."""
    lock = WorkspaceLock(Workspace(root))
    with contextlib.suppress(StorageError, WorkspaceBusyError), lock.hold():
        if not read_id(root / ID_FILE):
            files.write_machine_file(root, ID_FILE, f"{new_id()}\n".encode())


_FIRST_LOOK = f"{MACHINE}/first-look"
_MAX_PATH_BYTES = 4_096


def set_first_note(workspace: Workspace, path: str) -> None:
    """Record a note for the app to show when it first opens the workspace."""
    files.write_machine_file(workspace.root, _FIRST_LOOK, f"{path}\n".encode())


def pop_first_note(workspace: Workspace) -> str | None:
    """Return that note's path and forget it, or None if there is none."""
    file = workspace.root / _FIRST_LOOK
    try:
        with file.open("rb") as stream:
            text = stream.read(_MAX_PATH_BYTES).decode().strip()
        file.unlink()
    except (OSError, UnicodeDecodeError):
        return None
    return text if files.is_path(text) and files.exists(workspace, text) else None
