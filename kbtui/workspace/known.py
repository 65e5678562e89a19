"""The workspaces opened on this machine, and moving their local data along when a folder moves.

Each workspace has an id in its ``.kbtui`` folder and a file of that name in the state directory,
which records where it was last. A moved folder takes its index, draft and input history along; a
copy of one that still exists becomes a workspace of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path, user_state_path

from kbtui.errors import KbtuiError, WorkspaceGoneError
from kbtui.workspace import files
from kbtui.workspace.identity import new_id, read_id
from kbtui.workspace.layout import ID_FILE, MACHINE, Workspace
from kbtui.workspace.lock import WorkspaceLock

log = logging.getLogger(__name__)
_REFRESH_AFTER = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class KnownWorkspace:
    """A workspace opened before, last `used` at a UTC time; `former` are its earlier paths."""

    path: Path
    used: datetime
    is_there: bool
    former: tuple[str, ...] = ()


def note_opened(workspace: Workspace, *, now: datetime | None = None) -> None:
    """Record that a workspace is opened, before anything of it is read; errors are only logged."""
    if not workspace.writable:
        return
    try:
        _note(workspace, now or datetime.now(UTC))
    except (OSError, KbtuiError) as error:
        log.warning("the workspace isn't put down as known: %s", error)


def known_workspaces() -> list[KnownWorkspace]:
    """Return all known workspaces, the last used first, including those whose folder is gone."""
    found = [each for file in _folder().glob("*.json") if (each := _read(file)) is not None]
    return sorted(found, key=lambda each: each.used, reverse=True)


def former_paths(root: Path) -> tuple[str, ...]:
    """Return the earlier paths of a workspace that was moved."""
    known = _read(_folder() / f"{read_id(root / ID_FILE)}.json")
    return known.former if known is not None else ()


def check_first_opening(place: Path) -> None:
    """Make sure that a folder without ``.kbtui/`` isn't what is left of a known workspace.

    That may have been moved, or be on a disk that isn't mounted.

    Raises:
        WorkspaceGoneError: It is.
    """
    for known in known_workspaces():
        is_moved = str(place) in known.former and known.is_there
        if is_moved or known.path == place:
            where = f"it is at {known.path} now" if is_moved else "its .kbtui folder is gone"
            raise WorkspaceGoneError(
                f"The workspace is no longer at {place}: {where}.",
                "Bring it back, or name the folder where it is: `kbtui -w FOLDER`. To begin a new"
                f" one there: `kbtui init {place}`. Nothing was written.",
            )


def forget_workspace(path: Path) -> bool:
    """Remove a workspace from the list without deleting it; return whether it was listed."""
    is_known = False
    for file in _folder().glob("*.json"):
        known = _read(file)
        if known is not None and known.path == path:
            file.unlink(missing_ok=True)
            is_known = True
    return is_known


def _note(workspace: Workspace, now: datetime) -> None:
    root = workspace.root
    identifier = read_id(root / ID_FILE)
    known = _read(_folder() / f"{identifier}.json") if identifier else None
    former = known.former if known is not None else ()
    if known is not None and known.path != root:
        if _is_copy(root, known.path):  # the original is still there
            identifier, former = "", ()
        else:
            _move_local_data(known.path, root)
            former = (*(each for each in former if each != str(root)), str(known.path))
    elif known is not None and now - known.used < _REFRESH_AFTER:
        return
    if not identifier:
        identifier = new_id()
        with WorkspaceLock(workspace).hold():
            files.write_machine_file(root, ID_FILE, f"{identifier}\n".encode())
            if workspace.identity is not None:
                workspace.identity.renew(identifier)
    _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    record = {"path": str(root), "used": now.isoformat(), "former": former}
    data = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogateescape")
    files.write_machine_file(_folder(), f"{identifier}.json", data)


def _move_local_data(old: Path, new: Path) -> None:
    """Rename the local data of a workspace, which is stored under a hash of its path."""
    names = [hashlib.sha256(os.fsencode(root)).hexdigest()[:16] for root in (old, new)]
    for folder in (user_cache_path("kbtui"), user_state_path("kbtui", appauthor=False)):
        before, after = (folder / name for name in names)
        if before.is_dir() and not before.is_symlink() and not after.exists():
            with contextlib.suppress(OSError):
                before.rename(after)


def _is_copy(root: Path, other: Path) -> bool:
    """Return whether another folder has the same id, and isn't the same one by another path."""
    mine, theirs = (folder / ID_FILE for folder in (root, other))
    return read_id(mine) == read_id(theirs) and not mine.samefile(theirs)


def _folder() -> Path:
    return user_state_path("kbtui", appauthor=False) / "workspaces"


def _read(file: Path) -> KnownWorkspace | None:
    try:
        value: Any = json.loads(file.read_bytes().decode("utf-8", "surrogateescape"))
        path, used = Path(value["path"]), datetime.fromisoformat(value["used"])
        former = tuple(str(each) for each in value.get("former", ()))
    except (OSError, ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return None
    if used.tzinfo is None:
        return None
    return KnownWorkspace(path, used, (path / MACHINE).is_dir(), former)
