"""The facade of the edit engine: opens working copies, and performs the edits of tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kbtui.errors import NotFoundError
from kbtui.history.change import Change, Commit, Origin
from kbtui.memory.edits.entry_updates import LOOSE as LOOSE, is_said as is_said
from kbtui.memory.edits.grounding import Ground as Ground, ground_of as ground_of
from kbtui.memory.edits.operations import (
    delete_entry as delete_entry,
    edit_entry as edit_entry,
    rename_entry as rename_entry,
    write_entry as write_entry,
)
from kbtui.memory.edits.subjects import (
    named_entries as named_entries,
    names_of_user as names_of_user,
)
from kbtui.memory.edits.working_copy import (
    Author as Author,
    EditServices,
    Operation as Operation,
    WorkingCopy,
)
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.claims import claims_in as claims_in
from kbtui.memory.records.committing import attempts
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

        A change that waits isn't in the inbox yet. If the author has proposed something before,
        from the same `origin`, it is computed as if that were accepted. `reviewed`: a person
        decides on all of it.

        Raises:
            NotFoundError: The file to change isn't there.
            UsageError: It can't be done, or is forbidden.
            ConflictError: The files kept changing; nothing is written. Otherwise as `committed`.
        """
        history, why = self.services.history, ""
        waiting: Mapping[str, str | None] = {}
        if not reviewed:
            try:
                for attempt in attempts(history, self.workspace, author.actor, "", origin):
                    with attempt as change:
                        copy = self.open(author)
                        done = copy.perform(operation)
                        edited = EditResult(done.path, done.former, left_out=tuple(copy.left_out))
                        change.reason = reason(edited)
                        if not done.proposed:
                            copy.stage(change)
            except NotFoundError:
                waiting = self.inbox.proposed_by(author.actor, origin)
                if not waiting:
                    raise
                why = "it goes on with what waits already"
            else:
                if not done.proposed:
                    return replace(edited, commit=change.result)
                why = done.proposed
        waiting = waiting or self.inbox.proposed_by(author.actor, origin)
        if reviewed or waiting:
            self.services.library.refresh()
            decided = replace(author, asked=None, ground=None)
            copy = WorkingCopy(self.services, decided, waiting=waiting)
            done = copy.perform(operation)
        edited = EditResult(done.path, done.former, why=why)
        taken: list[Change] = []
        with history.change(author.actor, reason(edited), origin, taken.append) as change:
            copy.stage(change, done.edits or None)
        return replace(edited, waits=taken[0] if taken else None)
