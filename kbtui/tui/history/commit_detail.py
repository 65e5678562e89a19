"""The detail view of one commit: its message and its diffs, computed in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.change import Commit
from kbtui.history.history import HistoryReader
from kbtui.history.queries.diff import FileDiff, Hunk, diff_file
from kbtui.presentation.notes import Names
from kbtui.text import clean_line, counted
from kbtui.tui.diff.diff_view import DiffView
from kbtui.tui.diff.lines import HunkPlace
from kbtui.tui.notes.why import description
from kbtui.tui.terminal.background import latest, run_latest

_DEBOUNCE_SECONDS = 0.04
"""The debounce before the selected commit is read, as the cursor may only pass over it."""
_LOADING_DELAY_SECONDS = 0.15
_CONTEXT_LINES = 3
_MAX_CONTEXT_LINES = 99
_FINE_STEP_LINES = 5


class CommitDetail(Vertical):
    """The view of the commit requested last, with the file `path` first."""

    DEFAULT_CSS = """
    CommitDetail {
        #history-what { height: auto; max-height: 6; padding: 0 1; }
        #history-diff { height: 1fr; }
    }
    """

    def __init__(
        self,
        history: HistoryReader,
        path: str | None,
        *,
        names: Callable[[], Names],
        classes: str | None = None,
    ) -> None:
        super().__init__(classes=classes)
        self.border_title = "What changed"
        self.diff = DiffView(id="history-diff")
        self._history = history
        self._path = path
        self._read_names = names
        self._context_lines = _CONTEXT_LINES
        self._shown: tuple[Commit, tuple[FileDiff, ...]] | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="history-what")
        yield self.diff

    @latest("diff")
    async def show(self, commit: Commit) -> None:
        """Show a commit, unless another one is requested right after."""
        await asyncio.sleep(_DEBOUNCE_SECONDS)
        self.diff.names = await asyncio.to_thread(self._read_names)
        self.query_one("#history-what", Static).update(description(commit, self.diff.names))
        await self._read(commit)

    def show_nothing(self) -> None:
        """Clear the view."""
        self._shown = None
        self.query_one("#history-what", Static).update(Content())
        self.diff.show_text("")

    def change_context(self, commit: Commit, by: int) -> None:
        """Show more or fewer unchanged lines around each hunk of a commit."""
        step = by * (1 if self._context_lines + min(by, 0) < _FINE_STEP_LINES else _FINE_STEP_LINES)
        self._context_lines = max(0, min(_MAX_CONTEXT_LINES, self._context_lines + step))
        run_latest(self, "diff", self._read, commit, keep=True)

    def place_in(self, commit: Commit) -> ShownPlace | None:
        """Return the current place in the diff, or None until the diff of `commit` is shown."""
        at = self.diff.hunk
        if self._shown is None or at is None:
            return None
        shown, diffs = self._shown
        fits = shown.id == commit.id and self.diff.drawn is diffs
        return ShownPlace(shown, diffs, at) if fits else None

    async def _read(self, commit: Commit, *, keep: bool = False) -> None:
        """Read and show the diffs of a commit; `keep` keeps the scroll position."""
        work = asyncio.to_thread(diffs_of, self._history, commit, self._path, self._context_lines)
        reading = asyncio.create_task(work)
        done, _ = await asyncio.wait({reading}, timeout=_LOADING_DELAY_SECONDS)
        if not done and not keep:
            self.diff.show_text("Reading the change …")
        try:
            diffs = await reading
        except KbtuiError as error:
            self.diff.show_text(clean_line(str(error)))
            return
        self._shown = commit, diffs
        hidden = hidden_files(commit)
        note = f"… and {counted(hidden, 'more file')}" if hidden else ""
        self.diff.show(diffs, keep=keep, note=note)


_STORED_CONTEXT_LINES = 3
_MAINTAINED_FILES = {"memory/tombstones.jsonl", "memory/cursors.json"}
MAX_FILES = 200
"""The most files compared in one commit; an import may have 10,000, which takes long."""


def diffs_of(
    history: HistoryReader, commit: Commit, path: str | None, context: int
) -> tuple[FileDiff, ...]:
    """Return the diffs of a commit, that of `path` first.

    Files that kbtui maintains, such as the catalogue, are left out if anything else changed: they
    only repeat what the entries say.
    """
    diffs = _changes(history, commit, path)
    if not is_catalogue(path or ""):
        diffs = tuple(diff for diff in diffs if not is_catalogue(diff.path)) or diffs
    if context != _STORED_CONTEXT_LINES:
        diffs = tuple(_with_context(history, commit, diff, context) for diff in diffs)
    return tuple(
        sorted(
            diffs,
            key=lambda diff: (
                path not in {diff.path, diff.old_path},
                diff.path,
            ),
        )
    )


def hidden_files(commit: Commit) -> int:
    """Return how many files of a commit `diffs_of` leaves out."""
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
    """Return whether kbtui maintains this file itself: INDEX.md, tombstones and read cursors."""
    return path in _MAINTAINED_FILES or (
        path.startswith("knowledge/") and path.endswith("INDEX.md")
    )


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
    """A hunk on the screen, with its commit."""

    commit: Commit
    diffs: tuple[FileDiff, ...]
    at: HunkPlace

    @property
    def diff(self) -> FileDiff | None:
        """The diff of the file that the hunk belongs to."""
        return next((diff for diff in self.diffs if diff.path == self.at.path), None)

    @property
    def hunk(self) -> Hunk | None:
        """The hunk itself, or None if it isn't in `diffs`."""
        diff = self.diff
        return diff.hunks[self.at.number] if diff and self.at.number < len(diff.hunks) else None

    @property
    def first_line(self) -> tuple[str, int, str] | None:
        """The path, line number and commit id of the first changed line, or None."""
        commit, diff, hunk = self.commit, self.diff, self.hunk
        if diff is None or hunk is None:
            return None
        if (number := _first_line_number(hunk, "+")) is not None:
            return diff.path, number, commit.id
        if commit.parent is None or (number := _first_line_number(hunk, "-")) is None:
            return None
        return diff.old_path or diff.path, number, commit.parent


def _first_line_number(hunk: Hunk, kind: str) -> int | None:
    """Return the number of the first added or removed line that isn't blank."""
    lines = (line for line in hunk.lines if line.kind == kind and line.text.strip())
    return next((line.new if kind == "+" else line.old for line in lines), None)


def hunk_number(history: HistoryReader, place: ShownPlace) -> int | None:
    """Return the number of a shown hunk within its file, as `History.undo` counts, from 1.

    None if it isn't one of them: with more context than usual, several hunks are shown as one.
    """
    path = place.at.path
    diffs = (diff for diff in _changes(history, place.commit, path) if diff.path == path)
    hunks = [_changed_lines(hunk) for diff in diffs for hunk in diff.hunks]
    shown = _changed_lines(place.hunk) if place.hunk is not None else None
    return hunks.index(shown) + 1 if shown in hunks else None


def _changed_lines(hunk: Hunk) -> set[tuple[str, int | None, int | None]]:
    return {(line.kind, line.old, line.new) for line in hunk.lines if line.kind != " "}
