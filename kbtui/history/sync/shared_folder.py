"""A repository in a folder that other machines and git programs write to as well.

Each writer leaves a mark there while it writes; what dead writers left is removed, and writes are
made durable.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from kbtui.errors import KbtuiError, NotFoundError, RemoteError
from kbtui.history.objects.branch import NAME
from kbtui.history.objects.lineage import everything
from kbtui.history.objects.pack_folder import PackFolder
from kbtui.history.objects.packing import pack_commits, pack_objects, packs_to_merge
from kbtui.history.objects.repository import Repository
from kbtui.history.sync.compatibility import (
    check_repository,
    has_checked_out,
    incomplete,
    is_bundle,
)
from kbtui.text import clean_line
from kbtui.workspace.durable import is_alive, storage_errors, sync_folder

MAX_PACKS = 20
"""The number of packs in a folder above which they are merged, since readers open them all."""
UNVERSIONED = b"refs/heads/kbtui-beside"
"""The branch of unversioned files, documents and conversations; see `unversioned`."""
_GRACE = 600.0  # seconds, after which unfinished files count as abandoned
_MARK = "kbtui-writes-"
_PRUNES = "kbtui-prunes"
_LEFTOVERS = (
    *("*.lock", "info/*.lock", "refs/heads/*.lock", "objects/pack/*.lock", "objects/??/*.lock"),
    *("objects/pack/tmp*", "objects/??/tmp*", "objects/tmp*"),
)
_INITIAL_FILES = {"branches", "refs", "hooks", "info", "objects", "HEAD", "description", "config"}
_PROBE = ".probe-permissions"


class SharedFolder:
    """One such folder; `shown` is its name in messages."""

    def __init__(self, place: Path, shown: str) -> None:
        self._place = place
        self._shown = shown

    def prepare(self, *, is_known: bool = False) -> None:
        """Create a bare repository in an empty or missing folder.

        Nothing is created if it `is_known`, since an unplugged stick leaves an empty folder.

        Raises:
            RemoteError: The folder contains something else, or a repository that kbtui can't use,
                or the disk isn't there.
        """
        from dulwich.repo import Repo

        place = self._place
        with storage_errors(f"Can't look at {place}"):
            self.remove_half_made()
            if (place / "objects").is_dir() or (place / ".git").exists():
                check_repository(place, self._shown)
                return
            if is_bundle(place):
                raise RemoteError(
                    f"{self._shown} is a bundle: a file with a copy of a history, to which nothing"
                    " can be sent.",
                    f"Make a repository of it with `git clone --bare {place.name}`, and sync with"
                    " that.",
                )
            taken = place.exists() and (not place.is_dir() or any(place.iterdir()))
            if is_known:
                raise RemoteError(
                    f"{place} is gone: what was synced with it before isn't there.",
                    f"Is the disk connected? To start over there, say `kbtui sync {place}`.",
                )
            if taken or not place.parent.is_dir():
                raise RemoteError(
                    f"{place} is no place to sync with: there is no history there.",
                    "Is the disk connected? A new place has to be an empty folder.",
                )
        with storage_errors(f"Can't make a history in {place}"):
            place.mkdir(exist_ok=True)
            main = NAME.removeprefix("refs/heads/").encode()
            with contextlib.closing(Repo.init_bare(place, default_branch=main)) as made:
                config = made.get_config()
                config.set((b"core",), b"fsync", b"all")
                config.write_to_path()

    def remove_half_made(self) -> None:
        """Empty the folder if the creation of a repository there was interrupted."""
        place = self._place
        names = {item.name for item in place.iterdir()} - {_PROBE} if place.is_dir() else set()
        made = {name.removesuffix(".lock") for name in names}
        if not names or "config" in names or not made <= _INITIAL_FILES:
            return
        inside = list(place.rglob("*"))
        if any(item.is_file() and item.parent != place for item in inside):
            return
        for item in reversed(inside):
            item.rmdir() if item.is_dir() else item.unlink()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Mark this process as writing there for the block, and remove what dead writers left.

        git's locks are empty files that don't name their owner. Locks that can only belong to a
        dead process of this machine are removed at once, others when they are too old to belong to
        a live one.
        """
        folder = self._repository()
        if folder is None:
            yield
            return
        mark = folder / f"{_MARK}{platform.node()}-{os.getpid()}"
        with contextlib.suppress(OSError):  # in a read-only folder there is nothing to send
            mark.touch()
            self.clear(folder, mark)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                mark.unlink()

    def clear(self, folder: Path, own: Path) -> None:
        """Remove what dead writers left in the repository's folder.

        `own` is this process's mark.
        """
        marks = [mark for mark in folder.glob(f"{_MARK}*") if mark != own]
        dead = [mark for mark in marks if _is_dead(mark)]
        now = own.stat().st_mtime  # by the clock of the files' timestamps
        for path in [*_leftovers(folder), *marks]:
            with contextlib.suppress(FileNotFoundError):
                is_theirs = path in dead or (len(dead) == len(marks) > 0)
                # Timestamps in the future come from a wrong clock.
                if is_theirs or abs(now - path.stat().st_mtime) > _GRACE:
                    path.unlink()

    def is_checked_out(self, branch: bytes) -> bool:
        """Return whether the files of a branch lie in some worktree, and would stay behind it."""
        return has_checked_out(self._place, branch)

    def incomplete(self) -> KbtuiError | None:
        """Return the error for a repository that isn't whole, or None if it doesn't say so."""
        return incomplete(self._place, self._shown)

    def settle(self) -> None:
        """Sync what was written to disk, since sticks get unplugged.

        Another program may tidy up there at the same time, so missing files are fine.
        """
        with storage_errors(f"Can't write {self._place}"):
            folder = self._repository() or self._place
            for place in (folder / "objects" / "pack", (folder / NAME).parent):
                with contextlib.suppress(FileNotFoundError):
                    for file in _newest(place):
                        _sync_file(file)
                    sync_folder(place)

    def join_packs(self) -> None:
        """Merge small packs if there are many, since each sync adds one.

        Replaced packs stay for a while, because other machines may be reading them. A user's own
        repository is left to git.
        """
        folder, is_bare, others, _ = self._inspect()
        packs = PackFolder(folder)
        counts = packs.counts()
        is_indexed = (folder / "objects" / "pack" / "multi-pack-index").exists()
        if len(counts) <= MAX_PACKS or not is_bare or others or is_indexed:
            return
        with _alone(folder) as lock:
            doubled = packs.doubled(counts, lock.stat().st_mtime)
            packs.remove([name for name, age in doubled.items() if age > _GRACE])
            rest = {name: count for name, count in counts.items() if name not in doubled}
            small = packs_to_merge(rest, 0)
            if len(rest) > MAX_PACKS and len(small) > 1:
                with contextlib.closing(Repository(folder)) as remote:
                    packed = {each for name in small for each in packs.objects(name)}
                    remote.write_pack(*pack_objects(remote, packed))

    def prune(self, purged: frozenset[str]) -> str:
        """Delete what is still kept of purged commits; return why it may remain, if it does."""
        folder, is_bare, others, unversioned = self._inspect()
        with contextlib.closing(Repository(folder)) as remote:
            begun = folder / _PRUNES
            if not begun.exists() and not any(commit in remote for commit in purged):
                return ""
            if others or not is_bare:
                names = ", ".join(
                    clean_line(each.decode("utf-8", "replace")) for each in others[:5]
                )
                why = f" ({names})" if names else ""
                return (
                    f"{self._shown} is a repository of your own{why}, and may keep what was purged"
                    " until you have removed it there."
                )
            try:
                with _alone(folder):
                    begun.touch()
                    count, records = pack_commits(remote, everything(remote, *unversioned))
                    remote.keep_only(remote.write_pack(count, records))
                    shutil.rmtree(folder / "logs", ignore_errors=True)
                    for name in ("ORIG_HEAD", "FETCH_HEAD"):
                        (folder / name).unlink(missing_ok=True)
                    begun.unlink()
            except FileExistsError:
                return (
                    f"Somebody is writing to {self._shown}: sync again to remove there what was"
                    " purged."
                )
            except NotFoundError as error:
                return f"{self._shown} may keep what was purged: {error.message}"
        return ""

    def _repository(self) -> Path | None:
        """Return the folder of the repository, or None if there is none yet."""
        from dulwich.errors import NotGitRepository

        with contextlib.suppress(NotGitRepository):
            return self._inspect()[0] if self._place.is_dir() else None
        return None

    def _inspect(self) -> tuple[Path, bool, Sequence[bytes], list[str]]:
        """Return (folder of the repository, whether it is bare, foreign refs, unversioned tip).

        The last is a list of the newest commit of the unversioned files, if there is any.
        """
        from dulwich.repo import Repo

        with contextlib.closing(Repo(self._place)) as opened:  # handles worktrees and submodules
            others = sorted(set(opened.refs.allkeys()) - {b"HEAD", NAME.encode(), UNVERSIONED})
            unversioned = [
                sha.decode() for name, sha in opened.get_refs().items() if name == UNVERSIONED
            ]
            return Path(opened.commondir()), opened.bare, others, unversioned


def _leftovers(folder: Path) -> list[Path]:
    """Return the files that an interrupted writer leaves."""
    left = [path for pattern in _LEFTOVERS for path in folder.glob(pattern)]
    packs = folder.glob("objects/pack/*.pack")
    # git ignores packs without an index.
    return left + [pack for pack in packs if not pack.with_suffix(".idx").exists()]


def _is_dead(mark: Path) -> bool:
    """Return whether a mark belongs to a process of this machine that has ended."""
    number = mark.name.removeprefix(f"{_MARK}{platform.node()}-")
    return number != mark.name and number.isdecimal() and not is_alive(int(number))


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """Lock the branch of a repository; yield the lock file.

    Raises:
        FileExistsError: Somebody else holds the lock.
    """
    lock = folder / f"{NAME}.lock"
    os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield lock
    finally:
        lock.unlink(missing_ok=True)


def _newest(folder: Path) -> list[Path]:
    moments: dict[Path, float] = {}
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            moments[file] = file.stat().st_mtime
    return sorted(moments, key=moments.__getitem__)[-3:]


def _sync_file(file: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
