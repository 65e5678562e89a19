"""The layout of a workspace: where things lie in it, and how its files are named.

Everything names a file by its workspace path, such as ``knowledge/people/alice.md``; the `Layout`
says which file that is. In kbtui's own layout it lies just there. In a folder of notes that is
used in place the entries lie as their owner has them, and all else is in ``.kbtui/``.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

MACHINE = ".kbtui"
TAKING_OVER = f"{MACHINE}/taking-over"
"""A file that is there from the first opening of another program's workspace to the last step."""
TAKEN_OVER = f"{MACHINE}/taken-over.md"
"""The report of what was taken over."""
ENTRIES = "knowledge/"
NAME_PREFIX = "names/"
"""The prefix of a name in the path of its page; no file lies there."""
RECORDED_FOLDERS = ("knowledge", "memory", "skills")
BOOTSTRAP_FILES = ("SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md", "IDENTITY.md")
RECORDED_AREAS = (*RECORDED_FOLDERS, *BOOTSTRAP_FILES)
_RECORDED = tuple(f"{folder}/" for folder in RECORDED_FOLDERS)
CATEGORIES = ("topics", "people", "decisions", "facts", "preferences", "projects", "references")
_CONFLICT = ".conflict-"
_MAX_NAME = 255
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_CONFLICTS = re.compile(r"\.(?:sync-)?conflict-", re.ASCII)  # ours, and Syncthing's
# INDEX.md is what is generated, but not in place: there a file of that name is its owner's note.
_GENERATED, _OWN = "INDEX.md", "INDEX.MD"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files of a workspace lie: `root` is its folder, resolved and absolute."""

    root: Path
    in_place: bool = False

    def file(self, path: str) -> str:
        """The file that a workspace path names, from the root on."""
        if not self.in_place or path.startswith(f"{MACHINE}/"):
            return path
        if path.startswith(ENTRIES) and path.rpartition("/")[2] != _GENERATED:
            return _swapped(path.removeprefix(ENTRIES), _OWN, _GENERATED)
        return "" if path == ENTRIES[:-1] else f"{MACHINE}/{path}"

    def path_of(self, file: str) -> str:
        """The workspace path of a file, which is named from the root on."""
        if not self.in_place:
            return file
        inner = file.removeprefix(f"{MACHINE}/")
        return inner if inner != file else f"{ENTRIES}{_swapped(file, _GENERATED, _OWN)}"

    def listed(self, folder: str, name: str) -> str:
        """The workspace path of a file called `name` in a folder, which is a workspace path."""
        is_owned = self.in_place and f"{folder}/".startswith(ENTRIES)
        return f"{folder}/{_OWN if is_owned and name == _GENERATED else name}"

    def place(self, path: str) -> Path:
        """The file that a workspace path names."""
        return self.root / self.file(path)


def _swapped(path: str, name: str, other: str) -> str:
    """A path with the last part `other` where it is `name`."""
    at_end = path == name or path.endswith(f"/{name}")
    return path.removesuffix(name) + other if at_end else path


def located(root: Path | Layout, path: str) -> tuple[Path, str]:
    """A folder and the file below it that a path means; a plain folder holds what it names."""
    return (root.root, root.file(path)) if isinstance(root, Layout) else (root, path)


@dataclass(frozen=True, slots=True)
class Workspace(Layout):
    """An open workspace; not `writable`: readers still work."""

    writable: bool = True

    @property
    def knowledge(self) -> Path:
        """The entries."""
        return self.place("knowledge")

    @property
    def memory(self) -> Path:
        """MEMORY.md, the archive and the notes of each day."""
        return self.place("memory")

    @property
    def sessions(self) -> Path:
        """The logs of all conversations."""
        return self.place("sessions")

    @property
    def docs(self) -> Path:
        """Project documents: kept and searched, never changed."""
        return self.place("docs")

    @property
    def skills(self) -> Path:
        """How-to documents for the agent."""
        return self.place("skills")

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
        """Derived data of this workspace: may be deleted at any time; made on demand, 0700.

        Where none can be kept it is a passing one.
        """
        return cache_folder(hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16])


def cache_folder(name: str) -> Path:
    """A folder of derived data of this user's, made; else one for this process alone.

    It is believed, so one that others may have written into is never read.
    """
    from platformdirs import user_cache_path

    folder = user_cache_path("kbtui") / name
    with contextlib.suppress(OSError):
        if _is_ours(folder.parent, keep=True) and _is_ours(folder):
            return folder
    return _passing(name)


def _is_ours(folder: Path, *, keep: bool = False) -> bool:
    """True if only we can write into a folder of derived data, which is made, or started over.

    With `keep` what lies in one that others could write into is left.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
        return True
    try:
        status = folder.stat() if keep else folder.lstat()
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
        if not status.st_mode & _BY_OTHERS:
            return keep or os.access(folder, os.R_OK | os.X_OK)
        if keep:
            folder.chmod(stat.S_IMODE(status.st_mode) & ~_BY_OTHERS)
            return True
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)
    elif stat.S_ISLNK(status.st_mode) and not keep:
        folder.unlink()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


@functools.cache
def _passing(name: str) -> Path:
    """A folder for this process alone."""
    import atexit
    import tempfile
    from shutil import rmtree

    folder = tempfile.mkdtemp(prefix=f"kbtui-{name}-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return Path(folder)


def is_recorded(path: str) -> bool:
    """True if the history keeps this workspace path."""
    return path.startswith(_RECORDED) or path in BOOTSTRAP_FILES


def folders_of(path: str) -> list[str]:
    """The folders that a file lies in, but for the area, which is never anybody's."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


def is_conflict_copy(path: str) -> bool:
    """True if this is the other version of a file that two wrote at once; never an entry."""
    return _CONFLICTS.search(path.rsplit("/", 1)[-1]) is not None


def conflict_copy_of(path: str, stamp: str) -> str:
    """Name the copy that keeps the version which lost: ``alice.conflict-<stamp>.md``."""
    folder, _, name = path.rpartition("/")
    copy = with_end(name, f"{_CONFLICT}{stamp}")
    return f"{folder}/{copy}" if folder else copy


def with_end(name: str, end: str) -> str:
    """A file's name with something between stem and suffix, no longer than a name may be."""
    stem, dot, suffix = name.rpartition(".") if "." in name else (name, "", "")
    rest = f"{end}{dot}{suffix}"
    return stem.encode()[: max(1, _MAX_NAME - len(rest.encode()))].decode("utf-8", "ignore") + rest


def original_of(path: str) -> str:
    """The file that a conflict copy was made of; any other path is itself."""
    folder, slash, name = path.rpartition("/")
    found = _CONFLICTS.search(name)
    if not found:
        return path
    rest = name[found.end() :]
    suffix = f".{rest.rpartition('.')[2]}" if "." in rest else ""
    return f"{folder}{slash}{name[: found.start()]}{suffix}"


def short_name(path: str) -> str:
    """Say a path as people do: ``people/alice`` for an entry, and ``MEMORY.md``."""
    folder, _, name = path.rpartition("/")
    if folder in ("", "memory") and name.removesuffix(".md").isupper():
        return name
    return path.removeprefix(ENTRIES).removesuffix(".md")
