"""How much a commit adds to the history after packing, beside ``git gc`` on the same objects.

Packed are the history before and the one after, each by both: by kbtui once as it does when packs
are rolled up into one, and once with a pack of its own for what is new, as it does in between.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

from tests.benchmarks.report import Table

if TYPE_CHECKING:
    from pathlib import Path

BAR = 0.6


class Growth:
    """Keeps copies of a history before and after some commits, and packs them both ways.

    Args:
        repository: The history, which is left as it is.
        folder: Where copies may lie.
    """

    def __init__(self, repository: Path, folder: Path) -> None:
        self._repository = repository
        self._folder = folder
        self._copy("before")

    def measure(self, commits: int) -> dict[str, Any]:
        """Sizes in bytes a commit; called after `commits` were made."""
        self._copy("after")
        loose = (_size(self._folder / "after") - _size(self._folder / "before")) / commits
        started = time.perf_counter()
        ours = (self._pack("after") - self._pack("before")) / commits
        seconds = time.perf_counter() - started
        between = (self._add("after") - self._add("before")) / commits
        theirs = (self._gc("after") - self._gc("before")) / commits
        return {
            "commits": commits,
            "loose": loose,
            "ours": ours,
            "between": between,
            "git": theirs,
            "seconds": seconds,
        }

    def _copy(self, name: str) -> None:
        shutil.copytree(self._repository, self._folder / name)

    def _pack(self, name: str) -> int:
        from kbtui.history.objects.pack_folder import PackRecord
        from kbtui.history.objects.packing import Packing
        from kbtui.history.objects.repository import Repository
        from kbtui.history.objects.trees import git_object

        copy = self._folder / f"{name}-ours"
        shutil.copytree(self._folder / name, copy)
        repository = Repository(copy)
        # One object more: a history that is one pack already would be left as it was written.
        more = git_object(b"blob", b"one more\n")
        repository.write_pack(1, [PackRecord(more.id, more.kind, more.data)])
        Packing(repository, enough=0, whole=True).run()
        repository.close()
        if len(list((copy / "objects" / "pack").glob("*.pack"))) != 1:
            raise AssertionError("not everything was packed into one")
        return _size(copy)

    def _add(self, name: str) -> int:
        from kbtui.history.objects.pack_folder import PackFolder
        from kbtui.history.objects.packing import Packing
        from kbtui.history.objects.repository import Repository

        copy = self._folder / f"{name}-between"
        shutil.copytree(self._folder / name, copy)
        for pack in PackFolder(copy).counts():
            (copy / "objects" / "pack" / f"{pack}.keep").touch()
        repository = Repository(copy)
        Packing(repository, enough=0).run()
        repository.close()
        return _size(copy)

    def _gc(self, name: str) -> int:
        copy = self._folder / f"{name}-git"
        shutil.copytree(self._folder / name, copy)
        subprocess.run(
            ["git", "--git-dir", copy, "gc", "-q", "--prune=now"], check=True, capture_output=True
        )
        return _size(copy)


def _size(repository: Path) -> int:
    objects = repository / "objects"
    return sum(file.stat().st_size for file in objects.rglob("*") if file.is_file())


def table(found: dict[str, Any]) -> Table:
    """The figures for people."""
    made = Table(
        f"growth of the history, a commit of {found['commits']:,}", ["how", "bytes", "ratio", "bar"]
    )
    made.row("loose, as written", found["loose"], None, None)
    made.row("packed by kbtui", found["ours"], found["ours"] / found["git"], BAR)
    made.row("in a pack of its own", found["between"], found["between"] / found["git"], None)
    made.row("git gc", found["git"], None, None)
    return made


def figures(found: dict[str, Any]) -> dict[str, Any]:
    """The figures for scripts."""
    return {
        "growth_bytes": {name: found[name] for name in ("loose", "ours", "between", "git")},
        "growth_ratio": {"value": found["ours"] / found["git"], "bar": BAR},
    }
