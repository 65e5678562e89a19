"""What a commit does to each of its paths: kinds, renames, counts, and lines that moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.history.looking.diff import count_lines, find_renames
from kbtui.history.looking.moves import MOST_FILES, Rewritten, find_moves_between
from kbtui.history.objects.commit import PathChange, is_derived
from kbtui.workspace import files

if TYPE_CHECKING:
    from kbtui.history.looking.moves import Moved

Edits = dict[str, "bytes | None"]


def _blob(data: bytes | None) -> str | None:
    return None if data is None else files.blob_id(data)


def path_changes(before: Edits, after: Edits) -> tuple[PathChange, ...]:
    """What a commit does to each path, renames paired; contents by path before and after."""
    added = {p: data for p, data in after.items() if data is not None and before[p] is None}
    gone = {p: old for p, data in after.items() if data is None and (old := before[p]) is not None}
    renames = find_renames(added, gone)
    changes = []
    for path in sorted(after):
        old, new = before[path], after[path]
        if path in renames.values():
            continue
        if path in renames:
            counts = count_lines(before[renames[path]], new)
            changes.append(PathChange(path, "renamed", renames[path], *counts, _blob(new)))
        else:
            kind = "deleted" if new is None else "added" if old is None else "modified"
            counts = count_lines(old, new)
            changes.append(PathChange(path, kind, None, *counts, _blob(new)))  # type: ignore[arg-type]
    return tuple(changes)


def moves_of(before: Edits, after: Edits, paths: tuple[PathChange, ...]) -> tuple[Moved, ...]:
    """Which lines went from one file to another; nothing in what follows from other files."""
    written = [path for path in paths if path.path.endswith(".md") and not is_derived(path.path)]
    losing = {path.path for path in written if path.removed}
    gaining = {path.path for path in written if path.added}
    if not losing or not gaining or len(losing | gaining) == 1 or len(written) > MOST_FILES:
        return ()
    changed = [path for path in written if path.path in losing | gaining]
    return find_moves_between(
        Rewritten(
            path.path,
            path.old_path or path.path,
            files.decode(before.get(path.old_path or path.path) or b"").text,
            files.decode(after[path.path] or b"").text,
        )
        for path in changed
    )
