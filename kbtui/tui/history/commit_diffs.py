"""The differences of a commit as the history shows them; reads, so call it in threads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kbtui.errors import NotFoundError
from kbtui.history.looking.diff import diff_file

if TYPE_CHECKING:
    from kbtui.history.looking.diff import FileDiff, Hunk
    from kbtui.history.looking.reading import HistoryReader
    from kbtui.history.objects.commit import Commit
    from kbtui.tui.diff.lines import HunkPlace

_USUAL = 3
_ACCOUNTS = {"memory/tombstones.jsonl", "memory/cursors.json"}
MAX_FILES = 200
"""Files of one commit that are compared; an import may hold 10,000, which takes long."""


def diffs_of(
    history: HistoryReader, commit: Commit, path: str | None, context: int
) -> tuple[FileDiff, ...]:
    """The differences that a commit made, the asked path first.

    What kbtui keeps by itself, as the catalogue, comes last, and without its lines where anything
    else changed: they say what the entries above say.
    """
    diffs = _changes(history, commit, path)
    if not all(is_catalogue(diff.path) for diff in diffs) and not is_catalogue(path or ""):
        diffs = tuple(
            replace(diff, hunks=()) if is_catalogue(diff.path) else diff for diff in diffs
        )
    if context != _USUAL:
        diffs = tuple(_with_context(history, commit, diff, context) for diff in diffs)
    return tuple(
        sorted(
            diffs,
            key=lambda diff: (
                path not in {diff.path, diff.old_path},
                is_catalogue(diff.path),
                diff.path,
            ),
        )
    )


def hidden_files(commit: Commit) -> int:
    """How many files of a commit `diffs_of` leaves out."""
    return max(0, len(commit.paths) - MAX_FILES)


def _changes(history: HistoryReader, commit: Commit, path: str | None) -> tuple[FileDiff, ...]:
    if not hidden_files(commit):
        return history.changes_of(commit.id)
    chosen = sorted(commit.paths, key=lambda change: path not in {change.path, change.old_path})
    paths = [
        name
        for change in chosen[:MAX_FILES]
        for name in (change.path, change.old_path)
        if name is not None
    ]
    return history.diff(commit.parent, commit.id, paths)


def is_catalogue(path: str) -> bool:
    """True of a file that kbtui keeps by itself: INDEX.md, tombstones, how far was read."""
    return path in _ACCOUNTS or (path.startswith("knowledge/") and path.endswith("INDEX.md"))


def _with_context(history: HistoryReader, commit: Commit, diff: FileDiff, context: int) -> FileDiff:
    if not diff.hunks:
        return diff

    def data(path: str, at: str | None) -> bytes:
        try:
            return history.read(path, at) if at is not None else b""
        except NotFoundError:
            return b""

    old = data(diff.old_path or diff.path, commit.parent) if diff.old_blob else None
    new = data(diff.path, commit.id) if diff.new_blob else None
    return replace(diff, hunks=diff_file(diff.path, old, new, context=context).hunks)


class ShownPlace(NamedTuple):
    """A changed place as it is on the screen, and whose it is."""

    commit: Commit
    diffs: tuple[FileDiff, ...]
    at: HunkPlace

    @property
    def diff(self) -> FileDiff | None:
        """The difference of its file."""
        return next((diff for diff in self.diffs if diff.path == self.at.path), None)

    @property
    def hunk(self) -> Hunk | None:
        """The hunk that stands in this place."""
        diff = self.diff
        return diff.hunks[self.at.number] if diff and self.at.number < len(diff.hunks) else None

    @property
    def first_line(self) -> tuple[str, int, str] | None:
        """The file, the line and the commit in which its first changed line stands."""
        commit, diff, hunk = self.commit, self.diff, self.hunk
        if diff is None or hunk is None:
            return None
        for line in hunk.lines:
            if line.kind == "+" and line.new is not None and line.text.strip():
                return diff.path, line.new, commit.id
        for line in hunk.lines:
            if line.kind == "-" and line.old is not None and commit.parent is not None:
                return diff.old_path or diff.path, line.old, commit.parent
        return None


def hunk_number(history: HistoryReader, place: ShownPlace) -> int | None:
    """Which hunk of its file (as `History.undo` counts) is shown in a place.

    With more context than usual several may be shown as one: then there is no answer.
    """
    commit, path = place.commit, place.at.path
    shown = place.hunk
    real = next((diff for diff in _changes(history, commit, path) if diff.path == path), None)
    if shown is None or real is None:
        return None
    wanted = {(line.kind, line.old, line.new) for line in shown.lines if line.kind != " "}
    found = [
        number
        for number, hunk in enumerate(real.hunks, 1)
        if any((line.kind, line.old, line.new) in wanted for line in hunk.lines)
    ]
    if len(found) != 1:
        return None
    changed = sum(line.kind != " " for line in real.hunks[found[0] - 1].lines)
    return found[0] if changed == len(wanted) else None
