"""Going back: all durable files as they were before a change (design 10, 14).

What accounts for what happened stays as it is: archive, tombstones. How far Dream had read goes
back with the rest, so that it may think again about what it is shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import UsageError
from kbtui.history.objects.commit import is_derived

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.history.objects.commit import Commit
    from kbtui.history.objects.repository import Repository

RESTORED = "Restored from "
"""How the reason of every restore begins."""

_CURSORS = "memory/cursors.json"
_ARCHIVE = re.compile(r"memory/(?:history|HISTORY)[^/]*")


@dataclass(frozen=True, slots=True)
class Rewind:
    """The way back to before a change: the blob ids of each file, as it is and as it was.

    Files that don't differ are left out; one that isn't there on a side is missing on it.
    """

    reason: str
    now: Mapping[str, str]
    then: Mapping[str, str]

    @property
    def paths(self) -> list[str]:
        """Every file that differs."""
        return sorted(self.now.keys() | self.then.keys())


def rewind(repository: Repository, commit: Commit, now: Mapping[str, str]) -> Rewind:
    """Work out what to change so that everything is as it was before a commit.

    Args:
        repository: Where the older state is kept.
        commit: The change in question.
        now: The blob id of every file as it stands in the working tree.

    Raises:
        UsageError: Nothing was recorded before it.
    """
    if commit.parent is None:
        raise UsageError(
            f"{commit.id[:10]} is the first commit: there is nothing before it.",
            "Choose a later one from `kbtui log`.",
        )
    then = repository.files(commit.parent)
    differing = {
        path
        for path in now.keys() | then.keys()
        if now.get(path) != then.get(path) and not is_exempt(path)
    }
    return Rewind(
        f"{RESTORED}{commit.parent[:10]}: everything as it was before {commit.id[:10]}"
        f" ({commit.subject}).",
        {path: blob for path, blob in now.items() if path in differing},
        {path: blob for path, blob in then.items() if path in differing},
    )


def is_exempt(path: str) -> bool:
    """Whether a file doesn't go back: it accounts for what happened, or follows from others."""
    if _ARCHIVE.fullmatch(path):
        return True
    return is_derived(path) and path != _CURSORS
