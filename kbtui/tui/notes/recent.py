"""The list of recent changes below the tree."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import ClassVar

from textual.content import Content

from kbtui.clock import local_day
from kbtui.history.change import Actor, Commit
from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.actors import committer
from kbtui.presentation.commit_summary import is_upkeep, summarize
from kbtui.presentation.notes import Names, all_names
from kbtui.presentation.times import format_day
from kbtui.text import shorten
from kbtui.tui.messages import OpenHistory
from kbtui.tui.notes.said import draw_said, read_said
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.kinds import draw_pieces
from kbtui.tui.widgets.row_list import RowList

_MAX_CHANGES = 50
_ACTOR_CHARACTERS = 12


class RecentChanges(RowList[Commit], can_focus=False):
    """A list of the latest commits; a click shows one in the history."""

    DEFAULT_CSS = """
    RecentChanges {
        height: 1fr; margin-top: 1; border-top: solid $border-blurred;
        border-title-color: $text-muted;
    }
    """
    CLICK_SELECTS: ClassVar[bool] = True
    empty = "Nothing was written yet."

    def __init__(self, kb: KnowledgeBase, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._kb = kb
        self._names = Names()
        self._said: dict[str, str] = {}
        self.border_title = " Recent changes "

    def on_mount(self) -> None:
        self.read()

    @latest("log")
    async def read(self) -> None:
        """Read the latest commits from the history."""
        self._names, commits = await asyncio.to_thread(self._read_log)
        self.show(commits, 0)

    def _read_log(self) -> tuple[Names, list[Commit]]:
        log = (commit for commit in self._kb.history.log() if not is_upkeep(commit))
        commits = [*islice(log, _MAX_CHANGES)]
        history, known = self._kb.history, self._said
        self._said = {
            each.id: known[each.id] if each.id in known else read_said(history, each)
            for each in commits
        }
        return all_names(self._kb.library.infos(), self._kb.sessions), commits

    def _row_state(self, index: int) -> str:
        """Highlight only the hovered row: no key acts on rows."""
        return "rows--hover" if index == self._hover else ""

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        commit = self.items[index]
        moment = commit.time.astimezone()
        is_today = moment.date() == local_day()
        when = f"{moment:%H:%M}" if is_today else format_day(moment.date())
        said = self._said.get(commit.id, "")
        summary = draw_pieces(summarize(commit, self._names).pieces)
        line = Content.assemble(
            (f" {when:>6}  ", ".rows--muted"),
            (
                shorten(committer(commit), _ACTOR_CHARACTERS),
                ".rows--second" if commit.actor is Actor.YOU else ".rows--accent",
            ),
            " ",
            *([draw_said(said)] if said else summary),
        )
        return [line.truncate(width - 1, ellipsis=True)]

    def on_row_list_selected(self, event: RowList.Selected) -> None:
        event.stop()
        if self.item is not None:
            self.post_message(OpenHistory(commit=self.item.id))
