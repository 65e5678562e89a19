"""Which files of a workspace the agent may look at: never sessions, settings or machine files."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from kbtui.agent.tools.base import RefusedError
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.layout import BOOTSTRAP_FILES

if TYPE_CHECKING:
    from collections.abc import Sequence

AREAS = ("knowledge", "memory", "docs", "skills", *BOOTSTRAP_FILES)


def checked_area(path: str, roots: Sequence[str] = ()) -> str:
    """Check that the agent may look at a path.

    Args:
        path: The path.
        roots: Folders of the user's own that may be looked at as well.

    Raises:
        UnsafePathError: it leads outside.
        RefusedError: it lies in no area for the agent.
    """
    path = files.checked_path(path.strip())
    above = {path, *map(str, PurePosixPath(path).parents)} - {"."}
    if above.isdisjoint([*AREAS, *roots]):
        raise RefusedError(
            f"{clean_line(path)} is not for the agent to read.",
            f"Look under {', '.join(AREAS[:4])}, or in {', '.join(AREAS[4:])}.",
        )
    return path
