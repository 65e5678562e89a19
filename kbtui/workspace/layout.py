"""Where a workspace is, what lies where in it, and what it takes to use one.

A workspace is a folder with ``.kbtui/`` in it. The markdown files are the user's; everything
under ``.kbtui/`` is the machine's, and everything derived lies in the user's cache directory.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from kbtui.errors import StorageError, WorkspaceError

MACHINE = ".kbtui"
FORMAT = 1
RECORDED_FOLDERS = ("knowledge", "memory", "skills")
BOOTSTRAP_FILES = ("SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md", "IDENTITY.md")
RECORDED_AREAS = (*RECORDED_FOLDERS, *BOOTSTRAP_FILES)
CATEGORIES = ("topics", "people", "decisions", "facts", "preferences", "projects", "references")
WORKSPACE_VARIABLE = "KBTUI_WORKSPACE"
_CONFLICT = ".conflict-"


@dataclass(frozen=True, slots=True)
class Workspace:
    """An open workspace: `root` is resolved and absolute; not `writable`: readers still work."""

    root: Path
    writable: bool = True

    @property
    def knowledge(self) -> Path:
        """The entries."""
        return self.root / "knowledge"

    @property
    def memory(self) -> Path:
        """MEMORY.md, the archive and the notes of each day."""
        return self.root / "memory"

    @property
    def sessions(self) -> Path:
        """The logs of all conversations."""
        return self.root / "sessions"

    @property
    def docs(self) -> Path:
        """Project documents: searched, never written."""
        return self.root / "docs"

    @property
    def skills(self) -> Path:
        """How-to documents for the agent."""
        return self.root / "skills"

    @property
    def machine(self) -> Path:
        """The folder of kbtui's own files."""
        return self.root / MACHINE

    @property
    def repository(self) -> Path:
        """The history: a bare git repository, apart from any ``.git`` of the user's."""
        return self.machine / "history.git"

    @property
    def cache(self) -> Path:
        """Derived data of this workspace: may be deleted at any time; made on demand, 0700."""
        from platformdirs import user_cache_path

        folder = user_cache_path("kbtui") / hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


def is_recorded(path: str) -> bool:
    """True if the history keeps this workspace path."""
    return path in BOOTSTRAP_FILES or path.startswith(tuple(f"{f}/" for f in RECORDED_FOLDERS))


def is_conflict_copy(path: str) -> bool:
    """True if this is the other version of a file that two wrote at once; never an entry."""
    return _CONFLICT in path.rsplit("/", 1)[-1]


def conflict_copy_of(path: str, stamp: str) -> str:
    """Name the copy that keeps the version which lost: ``alice.conflict-<stamp>.md``."""
    folder, _, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    copy = f"{stem}{_CONFLICT}{stamp}.{suffix}" if dot else f"{name}{_CONFLICT}{stamp}"
    return f"{folder}/{copy}" if folder else copy


def original_of(path: str) -> str:
    """The file that a conflict copy was made of; any other path is itself."""
    folder, slash, name = path.rpartition("/")
    stem, found, rest = name.partition(_CONFLICT)
    if not found:
        return path
    suffix = f".{rest.rpartition('.')[2]}" if "." in rest else ""
    return f"{folder}{slash}{stem}{suffix}"


def short_name(path: str) -> str:
    """Say a path as people do: ``knowledge/people/alice.md`` is ``people/alice``."""
    return path.removeprefix("knowledge/").removesuffix(".md")


def find_workspace(named: Path | None = None) -> Path:
    """Find the workspace to use.

    In this order: `named`, ``KBTUI_WORKSPACE``, the nearest parent of the current folder that has
    ``.kbtui/``, and the user's default one, which may not exist yet.

    Raises:
        WorkspaceError: One was named, and it isn't there or isn't a folder.
    """
    if named is None and (variable := os.environ.get(WORKSPACE_VARIABLE)):
        named = Path(variable)
    if named is not None:
        root = named.expanduser().absolute()
        _check_folder(root)
        return root.resolve()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / MACHINE).is_dir():
            return folder
    return default_workspace()


def default_workspace() -> Path:
    """Where the workspace of a user lies who never named one; it may not exist yet."""
    from platformdirs import user_data_path

    return user_data_path("kbtui") / "workspace"


def is_to_be(place: Path) -> bool:
    """True if a folder is no workspace yet, but evidently meant as one.

    That is the default one before its first use, an empty folder, and one that has ``knowledge/``
    already. Any other folder is somebody's: it takes ``kbtui init``.
    """
    if (place / MACHINE).exists():
        return False
    if place == default_workspace() or (place / "knowledge").is_dir():
        return True
    return place.is_dir() and not any(place.iterdir())


def open_workspace(root: Path) -> Workspace:
    """Open a folder that is a workspace already.

    Raises:
        WorkspaceError: It isn't there, isn't a workspace, or was made by a newer kbtui.
    """
    root = root.expanduser().absolute()
    _check_folder(root)
    root = root.resolve()
    if not (root / MACHINE).is_dir():
        raise WorkspaceError(
            f"{root} is not a workspace: it has no {MACHINE} folder.",
            f"Make it one with `kbtui init {root}`.",
        )
    _check_machine_room(root)
    workspace = Workspace(root, writable=_can_write(root))
    _check_format(workspace)
    return workspace


def create_workspace(root: Path) -> Workspace:
    """Make a folder a workspace, or complete one; files that are there stay untouched.

    Raises:
        WorkspaceError: `root` is a file, or the workspace was made by a newer kbtui.
        StorageError: The file system refused.
    """
    root = root.expanduser().absolute()
    try:
        root.mkdir(parents=True, exist_ok=True)
        root = root.resolve()
        _check_machine_room(root)
        (root / MACHINE).mkdir(mode=0o700, exist_ok=True)
        for category in CATEGORIES:
            (root / "knowledge" / category).mkdir(parents=True, exist_ok=True)
        for name in ("memory", "docs", "skills"):
            (root / name).mkdir(exist_ok=True)
        (root / "sessions").mkdir(mode=0o700, exist_ok=True)
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
    workspace = Workspace(root, writable=_can_write(root))
    _check_format(workspace)
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


def _check_machine_room(root: Path) -> None:
    """Refuse a machine room that is a link: a shared folder must not lead us elsewhere."""
    for folder in (root / MACHINE, root / MACHINE / "history.git"):
        if folder.is_symlink():
            raise WorkspaceError(
                f"{folder} is a link, and kbtui follows none inside a workspace.",
                "Put the real folder there.",
            )


def _can_write(root: Path) -> bool:
    return all(os.access(folder, os.W_OK | os.X_OK) for folder in (root, root / MACHINE))


def _check_format(workspace: Workspace) -> None:
    """Refuse what a newer kbtui wrote; write the format file where it is missing."""
    from kbtui.workspace import files

    name = f"{MACHINE}/format"
    file = workspace.machine / "format"
    try:
        text = file.read_text("utf-8", "replace").strip()
    except FileNotFoundError:
        if workspace.writable:
            files.write_machine_file(workspace.root, name, f"{FORMAT}\n".encode())
        return
    except OSError as error:
        if not workspace.writable:  # somebody else's: their machine room is closed to us
            return
        raise StorageError(f"Can't read {file}: {error.strerror}.") from error
    if not text.isdecimal():
        raise WorkspaceError(
            f"{file} doesn't hold a format number.",
            f"If this is your workspace, write `{FORMAT}` into that file.",
        )
    if int(text) > FORMAT:
        raise WorkspaceError(
            f"{workspace.root} was written by a newer kbtui (format {text}, this one knows "
            f"{FORMAT}).",
            "Update kbtui; nothing was changed.",
        )
