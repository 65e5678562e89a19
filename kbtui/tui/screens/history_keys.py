"""What each key of the history does."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual.screen import Screen

from kbtui.tui.actions.registry import bindings
from kbtui.tui.history.commit_detail import CommitDetail
from kbtui.tui.history.commit_list import CommitList

if TYPE_CHECKING:
    from textual.binding import BindingType

    from kbtui.history.objects.commit import Commit
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.diff.diff_view import DiffView
    from kbtui.tui.history.commit_actions import HistoryDeeds
    from kbtui.tui.history.commit_diffs import ShownPlace


class HistoryKeys(Screen[None]):
    """The parts of the history, and the actions of the registry that are about them.

    Attributes:
        kb: Whose history it is.
        path: The file whose history it is; None for all of it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("history")]

    def __init__(self, kb: KnowledgeBase, path: str | None) -> None:
        super().__init__()
        self.kb = kb
        self.path = path

    # Parts

    @property
    def list(self) -> CommitList:
        """The commits."""
        return self.query_one("#history-list", CommitList)

    @property
    def detail(self) -> CommitDetail:
        """The selected commit."""
        return self.query_one("#history-detail", CommitDetail)

    @property
    def diff(self) -> DiffView:
        """What it changed."""
        return self.detail.diff

    @property
    def place(self) -> ShownPlace | None:
        """The changed place that the person is at; None until the selected commit's are shown."""
        commit = self.list.commit
        return self.detail.place_in(commit) if commit is not None else None

    @cached_property
    def deeds(self) -> HistoryDeeds:
        """What is done with commits; made when first needed."""
        from kbtui.tui.history.commit_actions import HistoryDeeds

        return HistoryDeeds(self)

    def show_commit(self, commit: Commit) -> None:
        """Read the log anew, with a commit selected."""
        raise NotImplementedError

    # Moving

    def action_down(self) -> None:
        """Next change, or the next line of the difference that has the screen."""
        if self.has_class("-full"):
            self.diff.scroll_relative(y=1, animate=False)
        else:
            self.list.action_cursor_down()

    def action_up(self) -> None:
        """Previous change, or line."""
        if self.has_class("-full"):
            self.diff.scroll_relative(y=-1, animate=False)
        else:
            self.list.action_cursor_up()

    def action_open(self) -> None:
        """Give the difference the whole screen."""
        if self.list.commit is not None:
            self.add_class("-full")
            self.diff.focus()

    def action_back(self) -> None:
        """Return to the list, or close the history."""
        if self.has_class("-full"):
            self.remove_class("-full")
            self.list.focus()
        else:
            self.dismiss(None)

    # The difference

    def action_next_hunk(self) -> None:
        """Go to the next changed place."""
        self.diff.go_to_hunk(1)

    def action_previous_hunk(self) -> None:
        """Go to the changed place before."""
        self.diff.go_to_hunk(-1)

    def action_less_context(self) -> None:
        """Show fewer unchanged lines."""
        self._change_context(-1)

    def action_more_context(self) -> None:
        """Show more unchanged lines."""
        self._change_context(1)

    def _change_context(self, by: int) -> None:
        commit = self.list.commit
        if commit is not None:
            self.detail.change_context(commit, by)

    def action_side_by_side(self) -> None:
        """Show before and after beside each other, or one below the other."""
        self.diff.toggle_side_by_side()

    # Doing

    def action_copy(self) -> None:
        """Copy the commit's id."""
        self.deeds.copy_id()

    def action_copy_patch(self) -> None:
        """Copy what the commit changed, as a patch."""
        self.deeds.copy_patch()

    def action_undo(self) -> None:
        """Undo exactly this change."""
        self.deeds.undo()

    def action_undo_hunk(self) -> None:
        """Undo only the changed place that is shown."""
        self.deeds.undo_hunk()

    def action_undo_group(self) -> None:
        """Undo the whole turn or batch that the change belongs to."""
        self.deeds.undo_group()

    def action_why(self) -> None:
        """Show what the changed place was made from."""
        self.deeds.why()

    def action_restore(self) -> None:
        """Bring a file back to how it was after this change."""
        self.deeds.restore()

    def action_restore_all(self) -> None:
        """Bring everything back to how it was before this change."""
        self.deeds.restore_all()

    def action_time_travel(self) -> None:
        """Look at everything as it was after this change."""
        self.deeds.time_travel()
