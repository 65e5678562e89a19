"""The layout of a workspace: where files are, and how they are named.

Everywhere a file is identified by its workspace path, such as ``knowledge/people/alice.md``, which
the `Layout` maps to a file. In kbtui's own layout they are the same. In a folder of notes used in
place, the entries are where their owner has them, and everything else is in ``.kbtui/``.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from kbtui.cache import cache_folder
from kbtui.workspace.identity import Identity

MACHINE = ".kbtui"
ID_FILE = f"{MACHINE}/id"
TAKING_OVER = f"{MACHINE}/taking-over"
"""A file that exists while another program's workspace is being migrated."""
TAKEN_OVER = f"{MACHINE}/taken-over.md"
"""The report of the migration."""
ENTRIES = "knowledge/"
MEMORY = "memory/MEMORY.md"
NAME_PREFIX = "names/"
"""The prefix of the pseudo-path of a name's page; there are no files below it."""
RECORDED_FOLDERS = ("knowledge", "memory", "skills")
BOOTSTRAP_FILES = ("SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md", "IDENTITY.md")
RECORDED_AREAS = (*RECORDED_FOLDERS, *BOOTSTRAP_FILES)
_RECORDED = tuple(f"{folder}/" for folder in RECORDED_FOLDERS)
CATEGORIES = ("topics", "people", "decisions", "facts", "preferences", "projects", "references")
_CONFLICT = ".conflict-"
_MAX_NAME = 255
_CONFLICTS = re.compile(r"\.(?:sync-)?conflict-", re.ASCII)  # kbtui's and Syncthing's
# INDEX.md is the generated index. In place, the owner's note of that name maps to INDEX.MD.
_GENERATED, _OWN = "INDEX.md", "INDEX.MD"


@dataclass(frozen=True, slots=True)
class Layout:
    """Maps workspace paths to files; `root` is the workspace's folder, resolved and absolute."""

    root: Path
    in_place: bool = False

    def file(self, path: str) -> str:
        """Return the file of a workspace path, relative to the root."""
        if not self.in_place or path.startswith(f"{MACHINE}/"):
            return path
        if path.startswith(ENTRIES) and path.rpartition("/")[2] != _GENERATED:
            return _rename_last(path.removeprefix(ENTRIES), _OWN, _GENERATED)
        return "" if path == ENTRIES[:-1] else f"{MACHINE}/{path}"

    def path_of(self, file: str) -> str:
        """Return the workspace path of a file, which is relative to the root."""
        if not self.in_place:
            return file
        inner = file.removeprefix(f"{MACHINE}/")
        return inner if inner != file else f"{ENTRIES}{_rename_last(file, _GENERATED, _OWN)}"

    def listed(self, folder: str, name: str) -> str:
        """Return the workspace path of a file called `name` in a folder (a workspace path)."""
        is_owned = self.in_place and f"{folder}/".startswith(ENTRIES)
        return f"{folder}/{_OWN if is_owned and name == _GENERATED else name}"

    def place(self, path: str) -> Path:
        """Return the absolute file of a workspace path."""
        return self.root / self.file(path)

    def confirm(self) -> None:
        """Make sure that this is still the folder that was opened; see `Workspace`."""


def _rename_last(path: str, name: str, other: str) -> str:
    """Replace the last part of a path by `other` if it is `name`."""
    at_end = path == name or path.endswith(f"/{name}")
    return path.removesuffix(name) + other if at_end else path


def located(root: Path | Layout, path: str) -> tuple[Path, str]:
    """Return the root and the file below it; a plain folder maps every path to itself."""
    return (root.root, root.file(path)) if isinstance(root, Layout) else (root, path)


@dataclass(frozen=True, slots=True)
class Workspace(Layout):
    """An open workspace; one that isn't `writable` can still be read."""

    writable: bool = True
    identity: Identity | None = field(default=None, compare=False, repr=False)

    def confirm(self) -> None:
        """Make sure that the workspace is still at its path; called before each write.

        Raises:
            WorkspaceGoneError: It isn't.
        """
        if self.identity is not None:
            self.identity.confirm()

    @property
    def knowledge(self) -> Path:
        """The folder of entries."""
        return self.place("knowledge")

    @property
    def memory(self) -> Path:
        """The folder of MEMORY.md, the archive and the daily notes."""
        return self.place("memory")

    @property
    def sessions(self) -> Path:
        """The folder of conversation logs."""
        return self.place("sessions")

    @property
    def docs(self) -> Path:
        """The folder of documents, which are searched but never changed."""
        return self.place("docs")

    @property
    def skills(self) -> Path:
        """The folder of how-to documents for the agent."""
        return self.place("skills")

    @property
    def machine(self) -> Path:
        """The folder of kbtui's own files."""
        return self.root / MACHINE

    @property
    def repository(self) -> Path:
        """The history: a bare git repository, separate from any ``.git`` of the user's."""
        return self.machine / "history.git"

    @property
    def cache(self) -> Path:
        """The folder of this workspace's derived data, which may be deleted at any time.

        It is created on demand with mode 0700; if that fails, it is a temporary one.
        """
        return cache_folder(hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16])


def is_recorded(path: str) -> bool:
    """Return whether the history records this workspace path."""
    return path.startswith(_RECORDED) or path in BOOTSTRAP_FILES


def folders_of(path: str) -> list[str]:
    """Return the folders above a file except the top one, which is never a file."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


def is_conflict_copy(path: str) -> bool:
    """Return whether a file is the conflict copy of another one, and so never an entry."""
    return _CONFLICTS.search(path.rsplit("/", 1)[-1]) is not None


def conflict_copy_of(path: str, stamp: str) -> str:
    """Return the name of a conflict copy: ``alice.conflict-<stamp>.md``."""
    folder, _, name = path.rpartition("/")
    copy = with_end(name, f"{_CONFLICT}{stamp}")
    return f"{folder}/{copy}" if folder else copy


def with_end(name: str, end: str) -> str:
    """Insert a text before the suffix of a file name, shortening the stem to the length limit."""
    stem, dot, suffix = name.rpartition(".") if "." in name else (name, "", "")
    rest = f"{end}{dot}{suffix}"
    return stem.encode()[: max(1, _MAX_NAME - len(rest.encode()))].decode("utf-8", "ignore") + rest


def original_of(path: str) -> str:
    """Return the file that a conflict copy belongs to; any other path is returned as is."""
    folder, slash, name = path.rpartition("/")
    found = _CONFLICTS.search(name)
    if not found:
        return path
    rest = name[found.end() :]
    suffix = f".{rest.rpartition('.')[2]}" if "." in rest else ""
    return f"{folder}{slash}{name[: found.start()]}{suffix}"


def entry_path(name: str) -> str:
    """Return the path of an entry by its short name or a link to it: ``people/alice``."""
    return f"{ENTRIES}{name.removesuffix('.md')}.md"


def short_name(path: str) -> str:
    """Return a path in short form: ``people/alice`` for an entry, ``MEMORY.md``."""
    folder, _, name = path.rpartition("/")
    if folder in ("", "memory") and name.removesuffix(".md").isupper():
        return name
    return path.removeprefix(ENTRIES).removesuffix(".md")


def paths_named(name: str) -> list[str]:
    """Return the paths that a short name may mean, one that leaves out the folder or the ending."""
    return [f"{folder}{name}{end}" for folder in ("", ENTRIES, "memory/") for end in ("", ".md")]
