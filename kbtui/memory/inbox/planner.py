"""Plans proposals: reads what the files say now, and finds those that were renamed meanwhile."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, NotFoundError, UnreadableError, UnsafePathError
from kbtui.history.looking.diff import find_renames
from kbtui.memory.inbox.plan import Current, Plan, PlannedFile, plan_file, plan_rename
from kbtui.workspace import files

if TYPE_CHECKING:
    from kbtui.history.history import History
    from kbtui.memory.inbox.proposal import Proposal, ProposedEdit
    from kbtui.workspace.layout import Workspace

_MOST_RENAMES = 20
_LOOKED_AT = 5


class Planner:
    """Plans for one workspace; reads files, so it is called in threads."""

    def __init__(self, workspace: Workspace, history: History) -> None:
        self._workspace = workspace
        self._history = history

    def plan(self, proposal: Proposal) -> Plan:
        """Merge every place of a proposal into the files as they are."""
        edits = {edit.path: edit for edit in proposal.edits}
        renames = _renames(proposal)
        moved_away = set(renames.values())
        planned: list[PlannedFile] = []
        for path, edit in edits.items():
            if path in renames:
                old = edits[renames[path]]
                planned.append(
                    plan_rename((old, self._current(old)), (edit, self._there(edit.path)))
                )
            elif path not in moved_away:
                planned.append(plan_file(edit, self._current(edit)))
        return Plan(proposal, tuple(planned))

    def read(self, path: str) -> bytes | None:
        """What a file holds; None where there is none."""
        try:
            return files.read_bytes(self._workspace, path)
        except NotFoundError:
            return None

    def _there(self, path: str) -> Current:
        try:
            return Current(path, self.read(path))
        except (UnsafePathError, UnreadableError) as error:
            return Current(path, None, error.message.rstrip("."))

    def _current(self, edit: ProposedEdit) -> Current:
        """The file that an edit means, under the name that it has now."""
        now = self._there(edit.path)
        if now.data is not None or now.problem or edit.base_text is None:
            return now
        path = self._renamed(edit.path)
        return self._there(path) if path is not None else now

    def _renamed(self, path: str) -> str | None:
        """What a file that is gone is called now; None when it was deleted."""
        name: str | None = path
        for _ in range(_MOST_RENAMES):
            name = self._next_name(name or path)
            if name is None or files.exists(self._workspace, name):
                return name
        return None

    def _next_name(self, path: str) -> str | None:
        try:
            for commit in islice(self._history.log(path), _LOOKED_AT):
                for change in commit.paths:
                    if change.old_path == path:
                        return change.path
                    if change.path == path and change.kind == "deleted":
                        return None
        except KbtuiError:
            return None
        return None


def _renames(proposal: Proposal) -> dict[str, str]:
    """Which new file of a proposal is an old one under another name: {new: old}."""
    added = {
        edit.path: edit.text.encode("utf-8", "replace")
        for edit in proposal.edits
        if edit.base_text is None and edit.text
    }
    gone = {
        edit.path: edit.base_text.encode("utf-8", "replace")
        for edit in proposal.edits
        if edit.text is None and edit.base_text
    }
    return find_renames(added, gone) if added and gone else {}
