"""Whether kbtui can sync with a git repository in a folder, and which of its branches are in use.

git's newer formats (SHA-256 ids, reftables, whatever extension comes next) and copies that aren't
whole look like any repository from afar, and would break a sync in its middle. They are told here,
before anything is read from there or written.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.errors import RefusedHistoryError, RemoteError
from kbtui.history.objects.branch import NAME
from kbtui.text import clean_line

if TYPE_CHECKING:
    from dulwich.config import StackedConfig
    from dulwich.repo import Repo

_BUNDLE = b"git bundle\n"
_ID_LENGTH = 40
_TAKES_ALL = (b"ignore", b"warn", b"false")
"""What `receive.denyCurrentBranch` says where a branch that is checked out may be written."""
_UNFINISHED = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
"""Where git keeps the branch that a worktree returns to."""


def check_repository(place: Path, shown: str) -> None:
    """Check that a folder's repository has a format that kbtui reads and writes.

    Raises:
        RemoteError: It hasn't, or there is none.
    """
    from dulwich.errors import NotGitRepository
    from dulwich.repo import InvalidWorktreeConfiguration, UnsupportedExtension, UnsupportedVersion

    try:
        _check_refs(place, shown)
        with contextlib.closing(_open(place)) as opened:
            _is_bare(opened)  # or that this can't be said would break a sync in its middle
            _check_ids(opened, shown)
            _check_tip(opened, shown)
    except NotGitRepository as error:
        raise RemoteError(
            f"There is no repository at {shown}.", "Check the address, or make it."
        ) from error
    except UnsupportedExtension as error:
        name = clean_line(str(error))[:60]
        raise _unusable(
            shown, f"uses git's extension {name}, which kbtui doesn't know", _MAKE_ANOTHER
        ) from error
    except UnsupportedVersion as error:
        raise _unusable(
            shown, "has a newer format of git's than kbtui knows", _MAKE_ANOTHER
        ) from error
    except (InvalidWorktreeConfiguration, ValueError) as error:
        raise _unusable(
            shown, f"has settings that git refuses: {clean_line(str(error))[:120]}", _LOOK
        ) from error


def check_id(identifier: bytes, shown: str) -> None:
    """Check that an object's id, as a server names it in hexadecimal, is one of SHA-1.

    Raises:
        RemoteError: It isn't.
    """
    if len(identifier) != _ID_LENGTH:
        raise other_ids(shown)


def other_ids(shown: str) -> RemoteError:
    """Return the error for a repository whose ids aren't those of SHA-1."""
    return _unusable(shown, "keeps SHA-256 ids, which kbtui's history can't use", _MAKE_ANOTHER)


def incomplete(place: Path, shown: str) -> RefusedHistoryError | None:
    """Return the error for a repository that says itself that it isn't whole, else None."""
    with contextlib.suppress(Exception), contextlib.closing(_open(place)) as opened:
        folder, settings = Path(opened.commondir()), opened.get_config()
        if opened.get_shallow():
            return shallow(shown)
        remotes = [each for each in settings.sections() if each[0].lower() == b"remote"]
        if any(settings.get_boolean(each, b"promisor", False) for each in remotes):
            return _cut(
                shown,
                "is a partial copy (git clone --filter)",
                "Fetch the rest there with `git fetch --refetch`",
            )
        for missing in _missing_alternates(folder / "objects"):
            return _cut(
                shown,
                f"borrows from {clean_line(str(missing))}, which isn't there",
                "Is that disk connected? Copy what is borrowed there with `git repack -a -d`",
            )
    return None


def shallow(shown: str) -> RefusedHistoryError:
    """Return the error for a shallow copy that lacks what is needed here."""
    return _cut(
        shown,
        "is a shallow copy (git clone --depth)",
        "Complete it there with `git fetch --unshallow`",
    )


def is_bundle(place: Path) -> bool:
    """Return whether a path is a file that ``git bundle`` made."""
    with contextlib.suppress(OSError), place.open("rb") as file:
        return file.readline(40).endswith(_BUNDLE)
    return False


def has_checked_out(place: Path, branch: bytes) -> bool:
    """Return whether a branch's files lie in some worktree, and would stay behind it.

    The next commit there would take back what was sent. As in git, a repository may say that it
    doesn't mind; that its files follow is beyond kbtui. A worktree in the middle of a rebase holds
    the branch that it returns to.
    """
    from dulwich.errors import NotGitRepository

    try:
        found = _open(place)
    except (NotGitRepository, OSError):  # pulled out meanwhile, which sending says
        return False
    with contextlib.closing(found) as opened:
        if _said(opened.get_config_stack()).lower() in _TAKES_ALL:
            return False
        return any(branch in _branches(opened, each) for each in _worktrees(opened))


def _open(place: Path) -> Repo:
    from dulwich.repo import Repo

    return Repo(os.fspath(place))


def _check_ids(opened: Repo, shown: str) -> None:
    if opened.object_format.oid_length * 2 != _ID_LENGTH:
        raise other_ids(shown)


def _check_refs(place: Path, shown: str) -> None:
    """Check how branches are kept, before dulwich opens reftables, which writes there."""
    from dulwich.config import ConfigFile

    with contextlib.suppress(OSError, KeyError):
        settings = ConfigFile.from_path(_common_folder(place) / "config", expand_includes=False)
        if settings.get((b"extensions",), b"refStorage").lower() != b"files":
            raise _unusable(
                shown,
                "keeps its branches in reftables, which kbtui can't write",
                "Change it there with `git refs migrate --ref-format=files`.",
            )


def _check_tip(opened: Repo, shown: str) -> None:
    """Check that our branch's newest commit is there, as dulwich drops a branch without."""
    from dulwich.errors import FileFormatException
    from dulwich.refs import Ref

    try:
        tip = opened.refs.as_dict().get(Ref(NAME.encode()))
        is_there = tip is None or tip in opened.object_store
    except (AssertionError, FileFormatException, ValueError) as error:  # it is no id
        raise RemoteError(
            f"{shown} is damaged: what its branches point to can't be read.",
            f"Nothing was sent. {_LOOK}",
        ) from error
    if tip is not None and not is_there:
        known = incomplete(Path(opened.path), shown)
        raise known or RemoteError(
            f"{shown} is damaged: its branch {NAME.rpartition('/')[2]} names the commit"
            f" {tip[:10].decode()}, which isn't there.",
            f"Nothing was sent. {_LOOK}",
        )


_LOOK = "Look at it with git: `git fsck` there says more."
_MAKE_ANOTHER = "Make another with `git init --bare --object-format=sha1`, and sync with that."


def _unusable(shown: str, why: str, hint: str) -> RemoteError:
    return RemoteError(f"{shown} {why}.", f"Nothing was sent. {hint}")


def _cut(shown: str, why: str, hint: str) -> RefusedHistoryError:
    return RefusedHistoryError(
        f"{shown} {why}: it lacks a part of the history that isn't here either.",
        f"Nothing was taken over. {hint}, or sync with the repository that it was copied from.",
    )


def _missing_alternates(objects: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for line in (objects / "info" / "alternates").read_bytes().splitlines():
            path = objects / os.fsdecode(line)
            if line and not line.startswith(b"#") and not path.is_dir():
                yield path


def _said(settings: StackedConfig) -> bytes:
    with contextlib.suppress(KeyError):
        return settings.get((b"receive",), b"denyCurrentBranch")
    return b""


def _common_folder(place: Path) -> Path:
    """Return the folder of a repository's settings, of which a worktree only has the path."""
    link = place / ".git"
    folder = link if link.exists() else place
    if folder.is_file():
        folder = place / os.fsdecode(folder.read_bytes().removeprefix(b"gitdir:").strip())
    with contextlib.suppress(OSError):
        return folder / os.fsdecode((folder / "commondir").read_bytes().strip())
    return folder


def _worktrees(opened: Repo) -> Iterator[Path]:
    """Yield git's folders of the worktrees whose files are there, the main one's first."""
    folder = Path(opened.commondir())
    if not _is_bare(opened):
        yield folder
    for link in folder.glob("worktrees/*/gitdir"):
        with contextlib.suppress(OSError):
            place = link.parent / os.fsdecode(link.read_bytes().strip())
            if place.exists():
                yield link.parent


def _is_bare(opened: Repo) -> bool:
    is_named_so = Path(opened.commondir()).name != ".git"
    return bool(opened.get_config().get_boolean((b"core",), b"bare", is_named_so))


def _branches(opened: Repo, worktree: Path) -> Iterator[bytes]:
    """Yield the branches that a worktree is on, or returns to."""
    from dulwich.refs import Ref

    for name in ("HEAD", *_UNFINISHED):
        with contextlib.suppress(OSError):
            text = (worktree / name).read_bytes().strip()
            branch = text.removeprefix(b"ref:").strip()
            yield branch if branch.startswith(b"refs/") else b"refs/heads/" + branch
            if name == "HEAD" and branch.startswith(b"refs/"):
                yield from opened.refs.follow(Ref(branch))[0]
