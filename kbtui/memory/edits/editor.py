"""The facade of the edit engine: opens working copies, and performs the edits of tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from kbtui.errors import NotFoundError
from kbtui.history.change import Change, Commit, Origin
from kbtui.memory.edits.entry_updates import LOOSE as LOOSE, is_said as is_said
from kbtui.memory.edits.grounding import Ground as Ground, ground_of as ground_of
from kbtui.memory.edits.operations import delete_entry as delete_entry, rename_entry as rename_entry
from kbtui.memory.edits.subjects import names_of_user as names_of_user
from kbtui.memory.edits.tool_edits import (
    Edit as Edit,
    edit_entry as edit_entry,
    write_entry as write_entry,
)
from kbtui.memory.edits.working_copy import (
    Author as Author,
    EditServices,
    Operation as Operation,
    WorkingCopy,
)
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.claims import claims_in as claims_in
from kbtui.memory.records.committing import committed
from kbtui.workspace.layout import Workspace


@dataclass(frozen=True, slots=True)
class EditResult:
    """The outcome of an edit.

    `path` is the file's name now and `former` its previous name; `commit` is what was written, if
    anything; `waits` is the change that a person must decide on, and `why`. `left_out` are tags,
    names and summaries that weren't written, as nobody had said them.
    """

    path: str
    former: str = ""
    commit: Commit | None = None
    waits: Change | None = None
    why: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(eq=False)
class Editor:
    """Edits entries, MEMORY.md and daily notes; proposals go to `inbox`."""

    workspace: Workspace
    services: EditServices
    inbox: Inbox

    def open(self, author: Author) -> WorkingCopy:
        """Return a working copy of the files as they are now."""
        self.services.library.refresh()
        return WorkingCopy(self.services, author)

    def write(
        self,
        operation: Operation,
        author: Author,
        origin: Origin,
        reason: Callable[[EditResult], str],
        *,
        reviewed: bool = False,
    ) -> EditResult:
        """Perform a tool's operation as one commit, unless a person must decide on it.

        A change that waits isn't in the inbox yet; it is computed as if everything that the author
        proposed before, from the same `origin`, were accepted. `reviewed`: a person decides on all
        of it.

        Raises:
            NotFoundError: The file to change isn't there.
            UsageError: It can't be done, or is forbidden.
            ConflictError: The files kept changing; nothing is written. Otherwise as `committed`.
        """
        history, waiting = self.services.history, self.inbox.proposed_by(author.actor, origin)
        why = ""
        if not reviewed:
            work = partial(self._edited, operation, author, reason, {})
            try:
                edited, commit = committed(history, self.workspace, author.actor, "", origin, work)
            except NotFoundError:
                if not waiting:
                    raise
                why = "it goes on with what waits already"
            else:
                if not edited.why:
                    return replace(edited, commit=commit)
                why = edited.why
        decided = replace(author, asked=None, ground=None)
        taken: list[Change] = []
        with history.change(author.actor, "", origin, taken.append) as change:
            edited = self._edited(operation, decided, reason, waiting, change)
        return replace(edited, waits=taken[0] if taken else None, why=why)

    def _edited(
        self,
        operation: Operation,
        author: Author,
        reason: Callable[[EditResult], str],
        waiting: Mapping[str, str | None],
        change: Change,
    ) -> EditResult:
        """Put an edit into a running change, unless a person must decide on it."""
        self.services.library.refresh()
        copy = WorkingCopy(self.services, author, waiting=waiting)
        former = copy.file(operation.ref) if operation.ref else ""
        done = copy.perform(operation)
        path = done.made[0] if done.made else former
        edited = EditResult(path, former, why=done.proposed, left_out=tuple(copy.left_out))
        change.reason = reason(edited)
        if not done.proposed:
            copy.stage(change)
        return edited
