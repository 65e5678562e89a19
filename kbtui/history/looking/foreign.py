"""A git repository that isn't ours, opened to be looked at; nothing is written into it."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, NoReturn

from kbtui.errors import NotFoundError, UnreadableError, UsageError
from kbtui.history.looking.log import CommitLog
from kbtui.history.looking.reading import HistoryReader
from kbtui.history.objects.branch import Branch
from kbtui.history.objects.repository import Repository
from kbtui.workspace.durable import storage_errors

if TYPE_CHECKING:
    from pathlib import Path

_REF = re.compile(r"refs/(?:[^./\x00-\x20~^:?*\[\\][^\x00-\x20~^:?*\[\\/]*/?)+")
_OBJECTS = re.compile(r"^\s*(objectformat|refstorage)\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)
_KNOWN = {"sha1", "files"}
_MAX_LINKS = 5


class _ForeignBranch(Branch):
    """Whatever HEAD points to: a branch of any name, one without a commit yet, or a commit."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._root = folder

    def _read(self) -> str | None:
        text = self._text("HEAD")
        for _ in range(_MAX_LINKS):
            if text is None or not text.startswith("ref:"):
                return text
            name = text.removeprefix("ref:").strip()
            if not _REF.fullmatch(name):
                return text
            text = self._text(name) or self._packed(name)
        return text

    def _text(self, name: str) -> str | None:
        with storage_errors(f"Can't read {self._root}"):
            try:
                return (self._root / name).read_text("ascii", "replace").strip()
            except FileNotFoundError:
                return None

    def _packed(self, name: str) -> str | None:
        for line in (self._text("packed-refs") or "").splitlines():
            identifier, _, packed = line.partition(" ")
            if packed == name:
                return identifier
        return None


class _ForeignRepository(Repository):
    """Somebody's repository."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.branch = _ForeignBranch(folder)


class ForeignHistory(HistoryReader):
    """Somebody's history; whatever would write says that it doesn't."""

    def _refuse(self, *_args: object, **_more: object) -> NoReturn:
        raise UsageError(
            "This is another repository's history: it is only looked at.",
            "y copies the id of a commit, Y its patch.",
        )

    undo = undo_turn = undo_batch = _refuse
    restore = restore_preview = restore_before = restore_before_preview = _refuse


def open_foreign(folder: Path) -> ForeignHistory:
    """Open a git repository for reading, bare or with a working tree.

    Its commits are listed in a table in the user's cache; nothing is written beside them.

    Raises:
        NotFoundError: There is no repository.
        UnreadableError: It is of a kind that isn't read here.
    """
    from platformdirs import user_cache_path

    place = next(
        (each for each in (folder, folder / ".git") if _is_repository(each)),
        None,
    )
    if place is None:
        raise NotFoundError(
            f"{folder} is no git repository.", "Name a folder that holds one, bare or not."
        )
    _check_kind(place)
    name = hashlib.sha256(os.fsencode(place.resolve())).hexdigest()[:16]
    repository = _ForeignRepository(place)
    return ForeignHistory(
        repository, CommitLog(user_cache_path("kbtui") / f"git-{name}", repository)
    )


def _is_repository(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir()


def _check_kind(folder: Path) -> None:
    with storage_errors(f"Can't read {folder}"):
        try:
            config = (folder / "config").read_text("utf-8", "replace")
        except FileNotFoundError:
            return
    for key, value in _OBJECTS.findall(config):
        if value.lower() not in _KNOWN:
            raise UnreadableError(
                f"{folder} keeps its history in a form that isn't read here ({key} = {value}).",
                "Clone it with `git clone --bare --ref-format=files` from a repository with SHA-1"
                " ids, and open that.",
            )
