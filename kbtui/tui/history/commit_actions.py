"""What the history screen does with a commit; imported when the first of it is asked for."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.text import clean_line, counted
from kbtui.tui.commit_text import when_text
from kbtui.tui.diff.undo_conflict import undo_settled
from kbtui.tui.messages import leave_for, tell, tell_error
from kbtui.tui.terminal.background import InTurn, run_latest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from textual.message import Message

    from kbtui.history.merging.conflict import Conflict, Resolution
    from kbtui.history.objects.commit import Commit
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.history.commit_diffs import ShownPlace
    from kbtui.tui.screens.history_keys import HistoryKeys

    Undoing = Callable[[Mapping[Conflict, Resolution]], Commit]


class HistoryDeeds:
    """Copies, undoes, restores, travels: each asks what it needs and says what it did."""

    def __init__(self, screen: HistoryKeys) -> None:
        self._screen = screen
        self._turns = InTurn(screen, "do")

    @property
    def _kb(self) -> KnowledgeBase:
        return self._screen.kb

    def _run(self, work: Callable[[Commit], Awaitable[None]]) -> None:
        """Do something with the selected commit that may fail, one thing at a time."""
        commit = self._screen.list.commit
        if commit is not None:
            self._turns.run(self._guarded, work, commit)

    def _run_copy(self, work: Callable[[Commit], Awaitable[None]]) -> None:
        """Copy something of the selected commit, beside what is being done."""
        commit = self._screen.list.commit
        if commit is not None:
            run_latest(self._screen, "copy", self._guarded, work, commit)

    async def _guarded(self, work: Callable[[Commit], Awaitable[None]], commit: Commit) -> None:
        try:
            await work(commit)
        except KbtuiError as error:
            tell_error(self._screen, error)

    # Copying

    def copy_id(self) -> None:
        """Copy the commit's id."""
        self._run_copy(self._copy_id)

    async def _copy_id(self, commit: Commit) -> None:
        from kbtui.tui.notes.notes_actions import copy_text

        await copy_text(self._screen, commit.id)

    def copy_patch(self) -> None:
        """Copy what the commit changed, as a patch that git takes."""
        self._run_copy(self._copy_patch)

    async def _copy_patch(self, commit: Commit) -> None:
        from kbtui.history.looking.diff import as_patch
        from kbtui.tui.notes.notes_actions import copy_text

        diffs = await asyncio.to_thread(self._kb.history.changes_of, commit.id)
        await copy_text(self._screen, as_patch(diffs))

    # Undoing

    def undo(self) -> None:
        """Undo exactly this change."""
        self._run(self._undo)

    async def _undo(self, commit: Commit) -> None:
        history = self._kb.history
        await self._undone(lambda decided: history.undo(commit.id, decisions=decided))

    async def _undone(self, undo: Undoing) -> None:
        done = await undo_settled(self._screen, undo)
        if done is None:
            return
        text = f"Undone: {clean_line(done.subject)}. The undo is a change of its own."
        tell(self._screen, text)
        self._screen.show_commit(done)

    def undo_hunk(self) -> None:
        """Undo only the changed place that is shown."""
        place = self._screen.place
        if place is not None:
            self._run(partial(self._undo_hunk, place))

    async def _undo_hunk(self, place: ShownPlace, commit: Commit) -> None:
        from kbtui.tui.history.commit_diffs import hunk_number

        history = self._kb.history
        number = await asyncio.to_thread(hunk_number, history, place)
        if number is None:
            text = "Several places are shown as one: { shows less around each."
            tell(self._screen, text, "warning")
            return
        undo = partial(history.undo, commit.id, paths=(place.at.path,), hunk=number)
        await self._undone(lambda decided: undo(decisions=decided))

    def undo_group(self) -> None:
        """Undo the whole turn or batch that the change belongs to."""
        self._run(self._undo_group)

    async def _undo_group(self, commit: Commit) -> None:
        turn, batch = commit.origin.turn, commit.origin.batch
        history = self._kb.history
        if turn:
            await self._undone(lambda decided: history.undo_turn(turn, decisions=decided))
        elif batch:
            await self._undone(lambda decided: history.undo_batch(batch, decisions=decided))
        else:
            tell(self._screen, "This change stands for itself, with no others.")

    # Asking

    def why(self) -> None:
        """Show where the first line of the shown place comes from, be it new or gone."""
        place = self._screen.place
        found = _first_line(place) if place is not None else None
        if found is not None:
            from kbtui.tui.notes.why import WhyScreen

            self._screen.app.push_screen(WhyScreen(self._kb, *found), self._go_on)

    def _go_on(self, there: Message | None) -> None:
        """Leave the history, and what it covers, for where that leads."""
        if there is not None:
            leave_for(self._screen, there)

    # Going back

    def restore(self) -> None:
        """Bring a file back to how it was after this change."""
        self._run(self._restore)

    async def _restore(self, commit: Commit) -> None:
        path = await self._which_path(commit)
        if path is None:
            return
        at = _last_with(path, commit)
        preview = await asyncio.to_thread(self._kb.history.restore_preview, path, at)
        name = clean_line(path.removeprefix("knowledge/").removesuffix(".md"))
        if not preview:
            tell(self._screen, f"{name} is as it was then already.")
            return
        from kbtui.tui.diff.confirm import ConfirmScreen

        screen = ConfirmScreen(
            f"Restore {name}?",
            f"It becomes what it was {when_text(commit)}. That is a change of its own.",
            {"enter": "restores it"},
            preview,
        )
        if await self._screen.app.push_screen_wait(screen) is None:
            return
        done = await asyncio.to_thread(self._kb.history.restore, path, at)
        if done is not None:
            tell(self._screen, f"{name} is as it was {when_text(commit)}.")
            self._screen.show_commit(done)

    async def _which_path(self, commit: Commit) -> str | None:
        screen = self._screen
        paths = [change.path for change in commit.paths]
        if screen.path in paths:
            return screen.path
        if screen.place is not None and screen.has_class("-full"):
            return screen.place.at.path
        entries = [path for path in paths if not path.endswith("INDEX.md")] or paths
        if len(entries) <= 1:
            return entries[0] if entries else None
        from kbtui.tui.widgets.dialogs import PickDialog
        from kbtui.tui.widgets.row_list import Choice

        choices = [Choice(path.removeprefix("knowledge/"), "", path) for path in entries]
        chosen: str | None = await screen.app.push_screen_wait(
            PickDialog("Restore which file?", choices)
        )
        return chosen

    def restore_all(self) -> None:
        """Bring everything durable back to how it was before this change."""
        self._run(self._restore_all)

    async def _restore_all(self, commit: Commit) -> None:
        from kbtui.tui.diff.confirm import ConfirmScreen

        history = self._kb.history
        preview = await asyncio.to_thread(history.restore_before_preview, commit.id)
        if not preview:
            tell(self._screen, "Everything is as it was before that already.")
            return
        count = counted(len(preview), "file")
        screen = ConfirmScreen(
            "Back to before this change?",
            f"{clean_line(commit.subject)} ({when_text(commit)})\n"
            f"{count} would become what they were before it; later changes go too. What was "
            "edited by hand is recorded first, and this can be undone.",
            {"enter": "goes back"},
            preview,
        )
        if await self._screen.app.push_screen_wait(screen) is None:
            return
        done = await asyncio.to_thread(history.restore_before, commit.id)
        if done is not None:
            tell(self._screen, f"Back to before {commit.id[:10]}: {clean_line(done.subject)}")
            self._screen.show_commit(done)

    def time_travel(self) -> None:
        """Look at everything as it was after this change."""
        self._run(self._time_travel)

    async def _time_travel(self, commit: Commit) -> None:
        from kbtui.tui.history.time_travel import TimeTravelScreen

        entries = [c.path for c in commit.paths if not c.path.endswith("INDEX.md")]
        path = self._screen.path or next(iter(entries), None)
        self._screen.app.push_screen(TimeTravelScreen(self._kb, commit, path))


def _last_with(path: str, commit: Commit) -> str:
    """The commit to restore a file from: where this one deleted it, the one before."""
    deleted = any(change.path == path and change.kind == "deleted" for change in commit.paths)
    return commit.parent if deleted and commit.parent is not None else commit.id


def _first_line(place: ShownPlace) -> tuple[str, int, str] | None:
    """The file, the line and the commit in which the first changed line of a place stands."""
    commit, diff, hunk = place.commit, place.diff, place.hunk
    if diff is None or hunk is None:
        return None
    for line in hunk.lines:
        if line.kind == "+" and line.new is not None and line.text.strip():
            return diff.path, line.new, commit.id
    for line in hunk.lines:
        if line.kind == "-" and line.old is not None and commit.parent is not None:
            return diff.old_path or diff.path, line.old, commit.parent
    return None
