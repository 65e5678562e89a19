"""A repository in a folder that other machines, and git programs, write to as well.

Whoever writes says so there; what dead ones left is removed, and what was written is made durable.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from kbtui.errors import NotFoundError, RemoteError
from kbtui.history.objects.branch import NAME
from kbtui.history.objects.lineage import everything
from kbtui.history.objects.pack_folder import PackFolder
from kbtui.history.objects.packing import pack_commits, pack_objects, packs_to_merge
from kbtui.history.objects.repository import Repository
from kbtui.text import clean_line
from kbtui.workspace.durable import is_alive, storage_errors, sync_folder

MANY = 20
"""The most packs in a folder: whoever reads there opens them all."""
BESIDE = b"refs/heads/kbtui-beside"
"""The branch of what travels beside the notes, documents and conversations; see `beside`."""
_GRACE = 600.0  # seconds, after which what was begun in a folder counts as left behind
_MARK = "kbtui-writes-"
_PRUNES = "kbtui-prunes"
_LEFT_BEHIND = (
    *("*.lock", "info/*.lock", "refs/heads/*.lock", "objects/pack/*.lock", "objects/??/*.lock"),
    *("objects/pack/tmp*", "objects/??/tmp*", "objects/tmp*"),
)
_MADE = {"branches", "refs", "hooks", "info", "objects", "HEAD", "description", "config"}
_PROBE = ".probe-permissions"


class SharedFolder:
    """One such folder; `shown` is what it is called where it is told of."""

    def __init__(self, place: Path, shown: str) -> None:
        self._place = place
        self._shown = shown

    def prepare(self, *, is_known: bool = False) -> None:
        """Make an empty or missing folder a repository that others can sync with as well.

        Where one that `is_known` was nothing is made: an empty folder is what a stick leaves.

        Raises:
            RemoteError: There is something else, or the disk isn't there.
        """
        from dulwich.repo import Repo

        place = self._place
        with storage_errors(f"Can't look at {place}"):
            self.take_back_half_made()
            if (place / "objects").is_dir() or (place / ".git").exists():
                return
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

    def take_back_half_made(self) -> None:
        """Empty the folder where somebody was cut off while making it a repository."""
        place = self._place
        names = {item.name for item in place.iterdir()} - {_PROBE} if place.is_dir() else set()
        made = {name.removesuffix(".lock") for name in names}
        if not names or "config" in names or not made <= _MADE:
            return
        inside = list(place.rglob("*"))
        if any(item.is_file() and item.parent != place for item in inside):
            return
        for item in reversed(inside):
            item.rmdir() if item.is_dir() else item.unlink()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Say that this process writes there for the block, having removed what dead ones left.

        Locks of git are empty files that tell no owner. Those that can only be a dead process's of
        this machine go at once, others when they are too old for anybody's who lives.
        """
        folder = self._repository()
        if folder is None:
            yield
            return
        mark = folder / f"{_MARK}{platform.node()}-{os.getpid()}"
        with contextlib.suppress(OSError):  # where nothing can be written there is nothing to send
            mark.touch()
            self.clear(folder, mark)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                mark.unlink()

    def clear(self, folder: Path, own: Path) -> None:
        """Remove what dead writers left in the repository's folder; `own` is this one's mark."""
        marks = [mark for mark in folder.glob(f"{_MARK}*") if mark != own]
        dead = [mark for mark in marks if _is_dead(mark)]
        now = own.stat().st_mtime  # by the clock that tells the age of all files there
        left = [path for pattern in _LEFT_BEHIND for path in folder.glob(pattern)]
        packs = folder.glob("objects/pack/*.pack")
        left += [pack for pack in packs if not pack.with_suffix(".idx").exists()]  # git sees none
        for path in [*left, *marks]:
            with contextlib.suppress(FileNotFoundError):
                is_theirs = path in dead or (len(dead) == len(marks) > 0)
                # What comes from the future is of a clock that was wrong.
                if is_theirs or abs(now - path.stat().st_mtime) > _GRACE:
                    path.unlink()

    def settle(self) -> None:
        """Make what was written durable: sticks are pulled out.

        Another program may tidy up there at the same time: what is gone needs no sync.
        """
        with storage_errors(f"Can't write {self._place}"):
            folder = self._repository() or self._place
            for place in (folder / "objects" / "pack", (folder / NAME).parent):
                with contextlib.suppress(FileNotFoundError):
                    for file in _newest(place):
                        _sync_file(file)
                    sync_folder(place)

    def join_packs(self) -> None:
        """Write the small packs as one, where there are many: each sync brings one.

        Those that it replaces stay for a while, as other machines may be reading them. A repository
        that is somebody's own is left to git.
        """
        folder, is_bare, others, _ = self._looked_at()
        packs = PackFolder(folder)
        counts = packs.counts()
        is_indexed = (folder / "objects" / "pack" / "multi-pack-index").exists()
        if len(counts) <= MANY or not is_bare or others or is_indexed:
            return
        with _alone(folder) as lock:
            doubled = packs.doubled(counts, lock.stat().st_mtime)
            packs.remove([name for name, age in doubled.items() if age > _GRACE])
            rest = {name: count for name, count in counts.items() if name not in doubled}
            small = packs_to_merge(rest, 0)
            if len(rest) > MANY and len(small) > 1:
                with contextlib.closing(Repository(folder)) as remote:
                    packed = {each for name in small for each in packs.objects(name)}
                    remote.write_pack(*pack_objects(remote, packed))

    def prune(self, purged: frozenset[str]) -> str:
        """Throw away what is still kept of purged commits; why that may be there still."""
        folder, is_bare, others, beside = self._looked_at()
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
                    count, records = pack_commits(remote, everything(remote, *beside))
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
        """Where the repository is; None: there is none yet."""
        from dulwich.errors import NotGitRepository

        with contextlib.suppress(NotGitRepository):
            return self._looked_at()[0] if self._place.is_dir() else None
        return None

    def _looked_at(self) -> tuple[Path, bool, Sequence[bytes], list[str]]:
        """Where the repository is, whether it is bare, its branches and tags that aren't ours.

        The last is the newest commit of what travels beside the notes, if there is any.
        """
        from dulwich.repo import Repo

        with contextlib.closing(Repo(self._place)) as opened:  # knows worktrees and submodules
            others = sorted(set(opened.refs.allkeys()) - {b"HEAD", NAME.encode(), BESIDE})
            beside = [sha.decode() for name, sha in opened.get_refs().items() if name == BESIDE]
            return Path(opened.commondir()), opened.bare, others, beside


def _is_dead(mark: Path) -> bool:
    """True if a process of this machine left a mark, and has ended."""
    number = mark.name.removeprefix(f"{_MARK}{platform.node()}-")
    return number != mark.name and number.isdecimal() and not is_alive(int(number))


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """Keep all others from moving the branch of a repository; gives the lock.

    Raises:
        FileExistsError: Somebody else does that.
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
