"""Purge: a leaked secret out of everything that kbtui keeps on this machine.

History, notes, conversations, inbox, drafts and logs are written without it; what is derived is
thrown away. Afterwards every byte is looked at again. A purge that was killed is run again.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from kbtui.logs import log_file
from kbtui.settings import config_file
from kbtui.workspace.durable import FileBatch, storage_errors
from kbtui.workspace.jsonl import rewrite
from kbtui.workspace.scan import notes_in
from kbtui.workspace.secret import is_binary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kbtui.history.history import History
    from kbtui.history.sync.purge import HistoryPurge
    from kbtui.workspace.layout import Workspace
    from kbtui.workspace.secret import Secret

_PIECE = 1 << 24
_WHY = " (a binary file is never rewritten: delete it, then purge again)"


@dataclass(frozen=True, slots=True)
class Place:
    """A file in which the secret stands, and how often; a history object has no file."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Purged:
    """A purge: where the secret stood, and what was done.

    Attributes:
        found: Where it stood.
        objects: How many objects of the history held it.
        commits: How many commits were written anew.
        epoch: How many purges the history has seen now; None where it didn't hold the secret.
        left: Where it still stands, and why.
    """

    found: tuple[Place, ...]
    objects: int
    commits: int = 0
    epoch: int | None = None
    left: tuple[str, ...] = ()


class Purging:
    """Purges one workspace and what is kept about it elsewhere."""

    def __init__(self, workspace: Workspace, history: History) -> None:
        self._workspace = workspace
        self._history = history

    def find(self, secret: Secret) -> Purged:
        """Say where it stands; nothing is changed."""
        found = tuple(self._places(secret))
        return Purged(
            found, len(self._history.find_secret(secret)), left=tuple(self._foreign(secret))
        )

    def run(self, secret: Secret, tell: Callable[[str], None] = lambda _: None) -> Purged:
        """Remove it everywhere, and look again.

        Raises:
            WorkspaceBusyError: Somebody else is writing.
            ConflictError: Somebody edited a file meanwhile; run it again.
            StorageError: The file system refused; run it again.
        """
        with self._history.purging() as purge:
            tell("Looking through all files")
            found = tuple(self._places(secret))
            done: HistoryPurge = purge.run(secret, tell)
            tell("Writing files without it")
            for file in self._files():
                self._clean(file, secret)
            self._drop_derived()
            tell("Looking at everything again")
            left = [f"{place.name}: {place.count} times{_WHY}" for place in self._places(secret)]
            left += [f"history object {each[:10]}" for each in self._history.find_secret(secret)]
        left += self._foreign(secret)
        return Purged(found, done.objects, done.commits, done.epoch, tuple(left))

    # Where -----------------------------------------------------------------------------------

    def _files(self) -> Iterator[Path]:
        """Every file that kbtui keeps for this workspace, but the history's objects."""
        if self._workspace.in_place:
            yield from notes_in(self._workspace)
            yield from _walk(self._workspace.machine, skip={self._workspace.repository})
        else:
            yield from _walk(self._workspace.root, skip={self._workspace.repository, self._own_git})
        for folder in self._beside():
            yield from _walk(folder, skip={self._models})

    def _beside(self) -> list[Path]:
        """Caches, state and logs."""
        folders = [
            platformdirs.user_cache_path("kbtui"),
            platformdirs.user_state_path("kbtui", appauthor=False),
            log_file().parent,
        ]
        unique = dict.fromkeys(folder.resolve() for folder in folders)
        return [
            folder
            for folder in unique
            if not any(folder != other and folder.is_relative_to(other) for other in unique)
        ]

    @property
    def _own_git(self) -> Path:
        return self._workspace.root / ".git"

    @property
    def _models(self) -> Path:
        return platformdirs.user_cache_path("kbtui").resolve() / "models"

    def _places(self, secret: Secret) -> Iterator[Place]:
        counts: Counter[str] = Counter()
        for file in self._files():
            name = self._name(file)
            counts[name] += _count(file, secret) + secret.count(os.fsencode(file.name))
        yield from (Place(name, count) for name, count in counts.items() if count)

    def _foreign(self, secret: Secret) -> list[str]:
        """Where it stands that isn't ours to change."""
        file = config_file()
        found = [f"{file}: your own settings"] if _count(file, secret) else []
        if self._own_git.exists():
            found.append(f"{self._own_git}: your own git repository was not looked at")
        return found

    def _name(self, file: Path) -> str:
        root = self._workspace.root
        return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)

    # Cleaning --------------------------------------------------------------------------------

    def _clean(self, file: Path, secret: Secret) -> None:
        name = secret.name_without(os.fsencode(file.name))
        with storage_errors(f"Can't write {file}"):
            if _count(file, secret):
                if file.is_relative_to(platformdirs.user_cache_path("kbtui").resolve()):
                    file.unlink()  # derived, whichever workspace's it is
                    return
                data = file.read_bytes()
                if is_binary(data):
                    return  # other bytes would break it: it is reported
                if file.suffix == ".jsonl":
                    rewrite(file, secret.without)  # an app may append to it right now
                else:
                    with FileBatch(file.parent) as batch:
                        batch.write(file.name, secret.without(data), 0o600)
                        batch.sync()
            if name != os.fsencode(file.name):
                file.rename(_free(file.with_name(os.fsdecode(name))))

    def _drop_derived(self) -> None:
        """Throw away indexes and caches; they are made again when they are needed."""
        folder = self._workspace.cache
        with storage_errors("Can't clear the cache"):
            for item in folder.iterdir():
                if item.is_dir() and not item.is_symlink():
                    shutil.rmtree(item)
                else:
                    item.unlink(missing_ok=True)


def _walk(root: Path, skip: set[Path]) -> Iterator[Path]:
    """Every regular file below a folder; no link is followed."""
    for folder, folders, names in os.walk(root):
        place = Path(folder)
        folders[:] = sorted(name for name in folders if place / name not in skip)
        for name in sorted(names):
            file = place / name
            try:
                if stat.S_ISREG(file.lstat().st_mode):
                    yield file
            except OSError:
                continue


def _count(file: Path, secret: Secret) -> int:
    """How often the secret stands in a file, read piece by piece."""
    try:
        stream = file.open("rb")
    except OSError:
        return 0
    with stream:
        if os.fstat(stream.fileno()).st_size <= _PIECE:
            return secret.count(stream.read())
        count, rest = 0, b""
        while piece := stream.read(_PIECE):
            count += secret.count(rest + piece)
            rest = (rest + piece)[1 - secret.longest :]
            if secret.is_in(rest):
                rest = b""
        return count


def _free(file: Path) -> Path:
    number, free = 1, file
    while free.exists():
        number += 1
        free = file.with_stem(f"{file.stem}-{number}")
    return free
