"""Purge: removal of a leaked secret from everything that kbtui stores on this machine.

History, notes, conversations, inbox, drafts and logs are rewritten without it; derived data is
deleted. Afterwards everything is scanned again. A purge that was killed can be repeated.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from kbtui.cache import COMPILED
from kbtui.errors import UsageError
from kbtui.history.history import is_repository
from kbtui.logs import log_file
from kbtui.redaction.secret import MARKER, Secret, is_binary
from kbtui.settings import config_file
from kbtui.text import counted
from kbtui.workspace.durable import FileBatch, storage_errors
from kbtui.workspace.jsonl import rewrite
from kbtui.workspace.layout import MACHINE, Workspace, is_conflict_copy
from kbtui.workspace.removals import Removals
from kbtui.workspace.scan import notes_in

if TYPE_CHECKING:
    from kbtui.history.history import History

_CHUNK_BYTES = 1 << 24
_MAX_BINARY_BYTES = 1 << 28
_BINARY_REASON = "a binary file is never rewritten: delete it, or purge with --delete-binaries"
_ID_REASON = "it is part of an id or a name there, without which something would no longer be found"
_EDITOR_COPY = re.compile(r"kbtui-[a-z0-9_]{8}(?:\.md)?")
_TEMPORARY_INDEX = re.compile(r"kbtui-(?:search|[0-9a-f]{16})-\w{8}")
_MARK = MARKER.encode()


@dataclass(frozen=True, slots=True)
class PurgedPlace:
    """A file or folder that contains the secret, and how often."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Purged:
    """A purge: where the secret was, in how many objects, and how many commits were rewritten.

    `epoch` is the number of purges of the history so far; None if it didn't contain the secret.
    `left` lists where the secret remains, and why.
    """

    found: tuple[PurgedPlace, ...]
    objects: int
    commits: int = 0
    epoch: int | None = None
    left: tuple[str, ...] = ()

    @property
    def is_nowhere(self) -> bool:
        """Whether the secret was found nowhere."""
        return not self.found and not self.objects


class Purging:
    """The purge of one workspace and its data elsewhere on this machine."""

    def __init__(self, workspace: Workspace, history: History) -> None:
        self._workspace = workspace
        self._history = history
        self._skipped: dict[Path, str] = {}  # what wasn't scanned, and why

    def find(self, secret: Secret) -> Purged:
        """Return where the secret is, without changing anything."""
        found = tuple(self._places(secret))
        return Purged(
            found, len(self._history.find_secret(secret)), left=tuple(self._not_ours(secret))
        )

    def run(
        self,
        secret: Secret,
        tell: Callable[[str], None] = lambda _: None,
        *,
        confirmed: int | None = None,
        delete_binaries: bool = False,
    ) -> Purged:
        """Remove the secret everywhere, and scan again.

        `confirmed` is its number of occurrences in the workspace's files, required for common
        words. `delete_binaries` deletes files that can't be rewritten.

        Raises:
            UsageError: It is a common word, and its number of occurrences wasn't confirmed.
            WorkspaceBusyError: Somebody else is writing.
            ConflictError: Somebody edited a file meanwhile; run it again.
            StorageError: The file system refused; run it again.
        """
        tell("Looking through all files")
        found = tuple(self._places(secret))
        self._check_common(secret, found, confirmed)
        if delete_binaries:
            self._delete_binaries(secret)
        with self._history.purging() as purge:
            purged = purge.run(secret, tell)
            tell("Writing files without it")
            for file in self._files():
                self._clean_file(file, secret, purged.renamed)
            for folder in self._folders():
                self._rename_folder(folder, secret)
            self._drop_derived()
            tell("Looking at everything again")
            left = [self._why_left(place) for place in self._places(secret)]
            left += [f"history object {each[:10]}" for each in self._history.find_secret(secret)]
        left += self._not_ours(secret)
        return Purged(found, purged.objects, purged.commits, purged.epoch, tuple(left))

    def _check_common(
        self, secret: Secret, found: tuple[PurgedPlace, ...], confirmed: int | None
    ) -> None:
        own = [place.count for place in found if not Path(place.name).is_absolute()]
        count = sum(own)
        if secret.is_common(count) and confirmed != count:
            raise UsageError(
                f"It stands {count:,} times in {len(own):,} files: that is rather a word than a"
                " secret, and all of them would be gone.",
                f"If you mean it, say how often: kbtui purge --count {count}",
            )

    # Finding ---------------------------------------------------------------------------------

    def _files(self) -> Iterator[Path]:
        """Yield every file that kbtui stores for this workspace, except history objects."""
        self._skipped.clear()
        if self._workspace.in_place:
            yield from notes_in(self._workspace)
            yield from (file for file in self._attachments() if is_conflict_copy(file.name))
            yield from self._walk(self._workspace.machine)
        else:
            yield from self._walk(self._workspace.root)
        for place in self._external_places():
            yield from [place] if os.path.isfile(place) else self._walk(place)  # never raises

    def _attachments(self) -> Iterator[Path]:
        """Yield the user's files in a folder in place that aren't notes."""
        notes = set(notes_in(self._workspace))
        yield from (file for file in self._walk(self._workspace.root) if file not in notes)

    def _folders(self) -> list[Path]:
        """Return every folder that kbtui stores, innermost first."""
        tops = [self._workspace.root, *self._external_places()]
        found = [place for top in tops for place in self._walk(top, folders=True)]
        return sorted(found, key=lambda folder: -len(folder.parts))

    def _external_places(self) -> list[Path]:
        """Return caches, state, logs, and abandoned copies for an external editor."""
        places = [
            platformdirs.user_cache_path("kbtui"),
            platformdirs.user_state_path("kbtui", appauthor=False),
            log_file().parent,
        ]
        unique = dict.fromkeys(folder.resolve() for folder in places)
        outermost = [
            folder
            for folder in unique
            if not any(folder != other and folder.is_relative_to(other) for other in unique)
        ]
        temporary = Path(tempfile.gettempdir()).resolve()
        return [*outermost, *(each for each in temporary.glob("kbtui-*") if _is_editor_copy(each))]

    def _walk(self, top: Path, *, folders: bool = False) -> Iterator[Path]:
        """Yield every file and symlink (or folder) below a folder, except in other repositories."""

        def unread(error: OSError) -> None:
            if not isinstance(error, NotADirectoryError | FileNotFoundError):
                self._skipped[Path(error.filename)] = "can't be read, and was not looked at"

        for place, inner, names in os.walk(top, onerror=unread):
            folder = Path(place)
            inner[:] = sorted(each for each in inner if self._is_ours(folder / each, top))
            if folders:
                yield from (folder / each for each in inner if not (folder / each).is_symlink())
                continue
            links = [each for each in inner if (folder / each).is_symlink()]
            for name in sorted([*names, *links]):
                file = folder / name
                with suppress(OSError):
                    if stat.S_IFMT(file.lstat().st_mode) in (stat.S_IFREG, stat.S_IFLNK):
                        yield file

    def _is_ours(self, folder: Path, top: Path) -> bool:
        workspace = self._workspace
        if folder in (workspace.repository, *self._not_from_here()):
            return False
        if workspace.in_place and top == workspace.root and folder == workspace.machine:
            return False  # it is walked separately
        if folder.name == ".git" or is_repository(folder):
            self._skipped[folder] = "a git repository of your own was not looked at"
            return False
        if folder.name == MACHINE and folder != workspace.machine:
            self._skipped[folder.parent] = (
                "a workspace of its own was not looked at: purge there too"
            )
            return False
        return True

    def _not_from_here(self) -> list[Path]:
        """Return the folders of the cache that no text of a workspace gets into."""
        cache = platformdirs.user_cache_path("kbtui").resolve()
        return [cache / "models", cache / COMPILED]

    def _places(self, secret: Secret) -> Iterator[PurgedPlace]:
        counts: Counter[str] = Counter()
        for file in self._files():
            try:
                inside = _count(file, secret)
            except OSError:
                self._skipped[file] = "can't be read, and was not looked at"
                inside = 0
            counts[self._name(file)] += inside + secret.count(os.fsencode(file.name))
        for folder in self._folders():
            counts[self._name(folder)] += secret.count(os.fsencode(folder.name))
        yield from (PurgedPlace(name, count) for name, count in counts.items() if count)

    def _not_ours(self, secret: Secret) -> list[str]:
        """Return where the secret is, or may be, in places that aren't kbtui's to change."""
        found = []
        with suppress(OSError):
            if _count(config_file(), secret):
                found.append(f"{config_file()}: your own settings")
        root = self._workspace.root
        if secret.is_in(os.fsencode(root)):
            found.append("the path of the workspace itself has it: move the folder")
        if self._workspace.in_place:
            for file in self._attachments():
                with suppress(OSError):
                    name = os.fsencode(file.relative_to(root))
                    if not is_conflict_copy(file.name) and (
                        _count(file, secret) or secret.count(name)
                    ):
                        found.append(f"{self._name(file)}: a file of your own, and no note")
        return [*found, *(f"{self._name(each)}: {why}" for each, why in self._skipped.items())]

    def _why_left(self, place: PurgedPlace) -> str:
        file = self._workspace.root / place.name
        why = _BINARY_REASON if _is_binary_file(file) else _ID_REASON
        return f"{place.name}: {counted(place.count, 'time')} ({why})"

    def _name(self, file: Path) -> str:
        root = self._workspace.root
        return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)

    # Cleaning --------------------------------------------------------------------------------

    def _delete_binaries(self, secret: Secret) -> None:
        for file in list(self._files()):
            with storage_errors(f"Can't delete {file}"):
                if _is_binary_file(file) and _count(file, secret):
                    self._note_removal(file, file.read_bytes())
                    file.unlink()

    def _clean_file(self, file: Path, secret: Secret, renamed: Callable[[bytes], bytes]) -> None:
        name = secret.name_without(os.fsencode(file.name))
        try:
            count = _count(file, secret)
        except OSError:
            return  # it will be reported as skipped
        with storage_errors(f"Can't write {file}"):
            if file.is_symlink():
                if count:
                    target = secret.without(os.fsencode(file.readlink()))
                    file.unlink()
                    file.symlink_to(os.fsdecode(target))
            elif count and self._is_derived(file, secret):
                file.unlink()
                return
            elif file.suffix == ".jsonl" and file.is_relative_to(self._workspace.sessions):
                # An app may append to it right now.
                rewrite(file, lambda data: self._rewritten_log(file, data, secret, renamed))
            elif count and not _is_binary_file(file):
                data = file.read_bytes()
                self._note_removal(file, data, secret.without(data))
                with FileBatch(file.parent) as batch:
                    batch.write(file.name, secret.without(data), 0o600)
                    batch.sync()
            if name != os.fsencode(file.name):
                if not file.is_symlink():  # those aren't synced
                    self._note_removal(file, file.read_bytes())
                file.rename(_free_path(file.with_name(os.fsdecode(name))))

    def _rewritten_log(
        self, file: Path, data: bytes, secret: Secret, renamed: Callable[[bytes], bytes]
    ) -> bytes:
        new = renamed(_redacted(data, secret))
        if new != data:
            self._note_removal(file, data, new)
        return new

    def _rename_folder(self, folder: Path, secret: Secret) -> None:
        """Rename a folder without the secret, merging it into an existing one."""
        name = secret.name_without(os.fsencode(folder.name))
        if name == os.fsencode(folder.name) or not folder.is_dir():
            return
        new = folder.with_name(os.fsdecode(name))
        with storage_errors(f"Can't rename {folder}"):
            for file in folder.rglob("*"):
                if file.is_file() and not file.is_symlink():
                    self._note_removal(file, file.read_bytes())
            if not new.exists():
                folder.rename(new)
                return
            for item in sorted(folder.iterdir()):
                item.rename(_free_path(new / item.name))
            folder.rmdir()

    def _note_removal(self, file: Path, before: bytes, after: bytes | None = None) -> None:
        """Put down for the next sync that a document or conversation changes, or goes."""
        workspace = self._workspace
        if any(file.is_relative_to(place) for place in (workspace.docs, workspace.sessions)):
            path = workspace.path_of(file.relative_to(workspace.root).as_posix())
            Removals(workspace).note(path, before, after)

    def _is_derived(self, file: Path, secret: Secret) -> bool:
        """Return whether a file is derived data of any workspace, and may be deleted."""
        if file.is_relative_to(platformdirs.user_cache_path("kbtui").resolve()):
            return True
        state = platformdirs.user_state_path("kbtui", appauthor=False).resolve()
        return file.parent == state and not secret.without(file.read_bytes().strip()).strip(_MARK)

    def _drop_derived(self) -> None:
        """Delete indexes and caches, which are rebuilt when needed."""
        folder = self._workspace.cache
        with storage_errors("Can't clear the cache"):
            indexes = Path(tempfile.gettempdir()).glob("kbtui-*")
            for item in (*folder.iterdir(), *filter(_is_temporary_index, indexes)):
                if item.is_dir() and not item.is_symlink():
                    shutil.rmtree(item)
                else:
                    item.unlink(missing_ok=True)


def _redacted(log: bytes, secret: Secret) -> bytes:
    """Return a log without the secret, keeping the offsets of forgotten passages valid."""
    return (secret.of_same_length if b'"forget"' in log else secret).without(log)


def _is_editor_copy(place: Path) -> bool:
    """Return whether this is a copy for an external editor, or the folder with only that."""
    with suppress(OSError):
        if _EDITOR_COPY.fullmatch(place.name) and place.lstat().st_uid == os.geteuid():
            if place.suffix == ".md":
                return stat.S_ISREG(place.lstat().st_mode)
            inner = list(place.iterdir()) if not place.is_symlink() else []
            return len(inner) == 1 and inner[0].suffix == ".md"
    return False


def _is_temporary_index(place: Path) -> bool:
    """Return whether this is a temporary index of a process that may have been killed."""
    with suppress(OSError):
        return bool(_TEMPORARY_INDEX.fullmatch(place.name)) and place.lstat().st_uid == os.geteuid()
    return False


def _is_binary_file(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return not file.is_symlink() and is_binary(stream.read(_CHUNK_BYTES))
    except OSError:
        return False


def _count(file: Path, secret: Secret) -> int:
    """Count the secret in a file, read in chunks, or in a symlink's target."""
    if file.is_symlink():
        return secret.count(os.fsencode(file.readlink()))
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        return 0
    with stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= _CHUNK_BYTES or (size <= _MAX_BINARY_BYTES and is_binary(stream.peek(8192))):
            return secret.count_inside(stream.read())
        count, rest = 0, b""
        while piece := stream.read(_CHUNK_BYTES):
            count += secret.count(rest + piece)
            rest = (rest + piece)[1 - secret.longest :]
            if secret.is_in(rest):
                rest = b""
        return count


def _free_path(file: Path) -> Path:
    number, free = 1, file
    while free.exists():
        number += 1
        free = file.with_stem(f"{file.stem}-{number}")
    return free
