"""Everything as it was at a commit: tree, entries, links and search, read-only."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from textual import on
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from kbtui.errors import KbtuiError
from kbtui.text import clean_line
from kbtui.tui.commit_text import when_text
from kbtui.tui.history.past import PastKnowledge
from kbtui.tui.history.past_pane import PastPane
from kbtui.tui.messages import AskAbout, OpenEntry, OpenHistory, OpenSearch, tell, tell_error
from kbtui.tui.terminal.background import InTurn, run_latest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.app import ComposeResult

    from kbtui.history.objects.commit import Commit
    from kbtui.knowledge_base import KnowledgeBase


class TimeTravelScreen(Screen[None]):
    """Shows the notes of a commit; `R` brings an entry of it back."""

    DEFAULT_CSS = """
    TimeTravelScreen {
        #past-banner { height: auto; padding: 0 1; background: $warning-muted; color: $text; }
        #past { height: 1fr; }
    }
    """

    def __init__(self, kb: KnowledgeBase, commit: Commit, path: str | None = None) -> None:
        """Show the state after `commit`, perhaps with an entry open."""
        super().__init__()
        self._kb = kb
        self._commit = commit
        self._path = path
        self._past: PastKnowledge | None = None
        self._turns = InTurn(self, "do")

    def compose(self) -> ComposeResult:
        """Where in time we are, and the notes."""
        yield Static(self._banner(), id="past-banner")
        yield PastPane(id="past")
        yield Footer()

    def _banner(self) -> Content:
        commit = self._commit
        return Content.assemble(
            (f"AS IT WAS {when_text(commit).removeprefix('on ')}", "bold"),
            f"  {commit.id[:10]}  {clean_line(commit.subject)[:60]}  ",
            ("read-only · T or Esc: back to now", "bold"),
        )

    @property
    def notes(self) -> PastPane:
        """The notes of then."""
        return self.query_one(PastPane)

    def on_mount(self) -> None:
        """Read the commit."""
        run_latest(self, "past", self._open)

    async def _open(self) -> None:
        try:
            past = await asyncio.to_thread(PastKnowledge, self._kb, self._commit)
            blobs = await asyncio.to_thread(lambda: past.library.blobs)
        except KbtuiError as error:
            tell_error(self, error)
            self.dismiss(None)
            return
        self._past = past
        # It has all of a knowledge base that the readers of notes ask for.
        self.notes.knowledge_ready(cast("KnowledgeBase", past))
        if self._path in blobs:
            self.notes.open_entry(str(self._path))
        else:
            self.notes.focus_tree()

    # What the notes ask for

    @on(OpenSearch)
    def _search(self, event: OpenSearch) -> None:
        """Search in what was there then."""
        event.stop()
        if self._past is None:
            return
        from kbtui.tui.search.search import SearchScreen

        self.app.push_screen(SearchScreen(cast("KnowledgeBase", self._past), event.query))

    @on(OpenEntry)
    def _open_entry(self, event: OpenEntry) -> None:
        event.stop()
        self.notes.open_entry(event.path, event.line)

    @on(AskAbout)
    def _refuse(self, event: AskAbout) -> None:
        event.stop()
        self.notes.refuse()

    @on(OpenHistory)
    def _history(self, event: OpenHistory) -> None:
        event.stop()
        from kbtui.tui.history.history import HistoryScreen

        self.app.push_screen(HistoryScreen(self._kb, event.path, event.commit))

    @on(PastPane.Wanted)
    def _wanted(self, event: PastPane.Wanted) -> None:
        event.stop()
        if event.what == "now":
            self.dismiss(None)
        elif event.path is None:
            tell(self, "Choose an entry first.")
        else:
            work = self._restore if event.what == "restore" else self._compare
            self._turns.run(self._guarded, work, event.path)

    async def _guarded(self, work: Callable[[str], Awaitable[None]], path: str) -> None:
        try:
            await work(path)
        except KbtuiError as error:
            tell_error(self, error)

    async def _compare(self, path: str) -> None:
        """Show what became of an entry since."""
        from kbtui.tui.diff.confirm import ConfirmScreen

        name = _name(path)
        diffs = await asyncio.to_thread(self._kb.history.diff, self._commit.id, None, [path])
        if not diffs:
            tell(self, f"{name} is the same today.")
            return
        text = f"From {when_text(self._commit).removeprefix('on ')} to now."
        await self.app.push_screen_wait(ConfirmScreen(f"{name} since then", text, {}, diffs))

    async def _restore(self, path: str) -> None:
        """Show what restoring an entry would change, then do it."""
        from kbtui.tui.diff.confirm import ConfirmScreen

        history, name = self._kb.history, _name(path)
        preview = await asyncio.to_thread(history.restore_preview, path, self._commit.id)
        if not preview:
            tell(self, f"{name} is as it was then already.")
            return
        text = f"It becomes what it was {when_text(self._commit)}. That is a change of its own."
        screen = ConfirmScreen(f"Restore {name}?", text, {"enter": "restores it"}, preview)
        if await self.app.push_screen_wait(screen) is None:
            return
        await asyncio.to_thread(history.restore, path, self._commit.id)
        tell(self, f"{name} is as it was {when_text(self._commit)}.")


def _name(path: str) -> str:
    return clean_line(path.removeprefix("knowledge/").removesuffix(".md"))


async def travel(screen: Screen[None], kb: KnowledgeBase, moment: str) -> None:
    """Show everything as it was at a date, a time or a revision; asks where none is given."""
    from kbtui.tui.widgets.dialogs import TextDialog

    wanted: str | None = moment.strip()
    if not wanted:
        wanted = await screen.app.push_screen_wait(
            TextDialog("Back to when?", "", "A date like 2026-11-21, a time, a commit, HEAD~1.")
        )
    if not wanted:
        return
    try:
        commit = await asyncio.to_thread(kb.history.commit, wanted)
    except KbtuiError as error:
        tell_error(screen, error)
        return
    screen.app.push_screen(TimeTravelScreen(kb, commit))
