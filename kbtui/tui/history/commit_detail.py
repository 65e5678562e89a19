"""One commit: its message, and its differences, compared in a thread."""

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
from kbtui.text import clean_line
from kbtui.tui.diff.diff_view import DiffView
from kbtui.tui.diff.lines import HunkPlace
from kbtui.tui.notes.why import description
from kbtui.tui.terminal.background import latest, run_latest

_SELECTED_SECONDS = 0.04
"""Seconds that a commit stays selected until it is read: a cursor may only run over it."""
_QUIET_SECONDS = 0.15
_CONTEXT_LINES = 3
_MAX_CONTEXT_LINES = 99
_FINE_STEP_LINES = 5


class CommitDetail(Vertical):
    """Shows the commit that was asked for last, the file `path` first."""

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
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.border_title = "What changed"
        self.diff = DiffView(id="history-diff")
        self._history = history
        self._path = path
        self._read_names = names
        self._around = _CONTEXT_LINES
        self._shown: tuple[Commit, tuple[FileDiff, ...]] | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="history-what")
        yield self.diff

    @latest("diff")
    async def show(self, commit: Commit) -> None:
        """Show a commit, unless another one is asked for at once."""
        await asyncio.sleep(_SELECTED_SECONDS)
        self.diff.names = await asyncio.to_thread(self._read_names)
        self.query_one("#history-what", Static).update(description(commit, self.diff.names))
        await self._read(commit)

    def show_nothing(self) -> None:
        """There is no commit to show."""
        self._shown = None
        self.query_one("#history-what", Static).update(Content())
        self.diff.show_text("")

    def change_context(self, commit: Commit, by: int) -> None:
        """Show more unchanged lines around each changed place of a commit, or fewer."""
        step = by * (1 if self._around + min(by, 0) < _FINE_STEP_LINES else _FINE_STEP_LINES)
        self._around = max(0, min(_MAX_CONTEXT_LINES, self._around + step))
        run_latest(self, "diff", self._read, commit, keep=True)

    def place_in(self, commit: Commit) -> ShownPlace | None:
        """The changed place that the person is at; None until that of this commit is shown."""
        at = self.diff.hunk
        if self._shown is None or at is None:
            return None
        shown, diffs = self._shown
        fits = shown.id == commit.id and self.diff.drawn is diffs
        return ShownPlace(shown, diffs, at) if fits else None

    async def _read(self, commit: Commit, *, keep: bool = False) -> None:
        """Read what it changed; with `keep` it is drawn where the person stands."""
        work = asyncio.to_thread(diffs_of, self._history, commit, self._path, self._around)
        reading = asyncio.create_task(work)
        done, _ = await asyncio.wait({reading}, timeout=_QUIET_SECONDS)
        if not done and not keep:
            self.diff.show_text("Reading the change …")
        try:
            diffs = await reading
        except KbtuiError as error:
            self.diff.show_text(clean_line(str(error)))
            return
        self._shown = commit, diffs
        hidden = hidden_files(commit)
        note = f"… and {hidden:,} more files" if hidden else ""
        self.diff.show(diffs, keep=keep, note=note)


_USUAL = 3
_ACCOUNTS = {"memory/tombstones.jsonl", "memory/cursors.json"}
MAX_FILES = 200
"""Files of one commit that are compared; an import may hold 10,000, which takes long."""


def diffs_of(
    history: HistoryReader, commit: Commit, path: str | None, context: int
) -> tuple[FileDiff, ...]:
    """The differences that a commit made, the asked path first.

    What kbtui keeps by itself, as the catalogue, isn't among them where anything else changed: it
    says what the entries say.
    """
    diffs = _changes(history, commit, path)
    if not is_catalogue(path or ""):
        diffs = tuple(diff for diff in diffs if not is_catalogue(diff.path)) or diffs
    if context != _USUAL:
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
        if (number := _first_number(hunk, "+")) is not None:
            return diff.path, number, commit.id
        if commit.parent is None or (number := _first_number(hunk, "-")) is None:
            return None
        return diff.old_path or diff.path, number, commit.parent


def _first_number(hunk: Hunk, kind: str) -> int | None:
    """The number of the first line that was added or removed, and says something."""
    said = (line for line in hunk.lines if line.kind == kind and line.text.strip())
    return next((line.new if kind == "+" else line.old for line in said), None)


def hunk_number(history: HistoryReader, place: ShownPlace) -> int | None:
    """Which hunk of its file (as `History.undo` counts) is shown in a place.

    With more context than usual several may be shown as one: then there is no answer.
    """
    path = place.at.path
    diffs = (diff for diff in _changes(history, place.commit, path) if diff.path == path)
    hunks = [_changed_lines(hunk) for diff in diffs for hunk in diff.hunks]
    shown = _changed_lines(place.hunk) if place.hunk is not None else None
    return hunks.index(shown) + 1 if shown in hunks else None


def _changed_lines(hunk: Hunk) -> set[tuple[str, int | None, int | None]]:
    return {(line.kind, line.old, line.new) for line in hunk.lines if line.kind != " "}
