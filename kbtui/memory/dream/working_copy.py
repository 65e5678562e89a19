"""What Dream works at: files with the edits so far, what they are called, and who wrote them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, UnreadableError
from kbtui.memory.dream import guards
from kbtui.memory.dream.linking import Links
from kbtui.memory.dream.names import Names
from kbtui.memory.dream.overlay import View, shown_text
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from kbtui.history.change import Actor
    from kbtui.knowledge.library import Library
    from kbtui.memory.dream.operations import Operation
    from kbtui.memory.dream.overlay import Edits
    from kbtui.memory.edits.authorship import Authorship
    from kbtui.memory.edits.subjects import Subjects
    from kbtui.memory.records.tombstones import Tombstones


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stays the same over a run.

    Attributes:
        root: The workspace's folder.
        library: The entries.
        subjects: Finds the entry about a subject.
        authorship: Who wrote each line.
        tombstones: What must not be written again.
        said: What the user said in the conversations at hand, and when.
    """

    root: Path
    library: Library
    subjects: Subjects
    authorship: Authorship
    tombstones: Tombstones
    said: Sequence[tuple[datetime, str]] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """What became of an operation.

    Attributes:
        paths: The files that it changed, or would change; none: everything stood so already.
        proposed: Why it is left to a person; empty: it is done.
    """

    paths: tuple[str, ...] = ()
    proposed: str = ""


@dataclass(slots=True)
class Proposed:
    """Operations that a person must decide on, together, as they change the same files."""

    why: str
    paths: set[str]
    operations: list[Operation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Wish:
    """A proposal: the new texts of some files (None: gone), and what they were made from."""

    why: str
    texts: Mapping[str, str | None]
    before: Mapping[str, bytes | None]


class Desk:
    """The files of one run.

    Args:
        around: What stays the same.
        careful: Leave to a person what takes facts away: the run ended before it was finished.

    Attributes:
        view: The files with the edits so far.
        operations: What was done or proposed, in order, to be done again on other files.
        proposed: What a person must decide on.
    """

    def __init__(self, around: Surroundings, *, careful: bool = False) -> None:
        self._around = around
        self.careful = careful
        self.view = View(around.root)
        self.library = around.library
        self.links = Links(around.library, self.view)
        self.names = Names(around.library, around.subjects, self.view)
        self.operations: list[Operation] = []
        self.proposed: list[Proposed] = []
        self._said: set[str] = set()

    def perform(self, operation: Operation) -> Done:
        """Do one thing, if it may be done; keep it as a proposal if a person must say so.

        Raises:
            KbtuiError: it can't be done, or must not; nothing is changed.
        """
        edits = self._work(operation)
        if not edits:
            return Done()
        guards.check(self, edits, self._around)
        why = guards.reason_to_ask(self, edits)
        if why is None:
            self.view.apply(edits)
            self._said |= edits.keys() - self.links.repaired
        elif operation.optional:
            return Done()
        else:
            self._propose(operation, why, edits)
        self.operations.append(operation)
        return Done(tuple(sorted(edits)), why or "")

    def again(self, *, careful: bool = False) -> Desk:
        """Do everything again on the files as they are now; what can't be done any more isn't."""
        desk = Desk(self._around, careful=careful)
        for path in self.view.before:  # what was looked at counts as known
            desk.view.original(path)
        for operation in self.operations:
            try:
                desk.perform(operation)
            except KbtuiError:
                continue
        return desk

    @property
    def repaired(self) -> set[str]:
        """The files in which nothing but links has changed."""
        return self.view.changed.keys() - self._said

    def wishes(self) -> list[Wish]:
        """What a person must decide on, made from the files as they are on disk."""
        return [self._wish(each) for each in self.proposed]

    def authors(self, path: str) -> Sequence[Actor]:
        """Who wrote each line of a file as it is on disk."""
        text = shown_text(self.view.original(path))
        return self._around.authorship.authors(path, text) if text else ()

    def _work(self, operation: Operation) -> Edits:
        self.links.repaired.clear()
        try:
            edits = operation.work(self)
        except UnicodeError as error:
            raise UnreadableError("That holds bytes that are no text.") from error
        return {path: data for path, data in edits.items() if data != self.view.data(path)}

    def _propose(self, operation: Operation, why: str, edits: Edits) -> None:
        for group in self.proposed:
            if group.paths & edits.keys():
                group.operations.append(operation)
                group.paths |= edits.keys()
                return
        self.proposed.append(Proposed(why, set(edits), [operation]))

    def _wish(self, group: Proposed) -> Wish:
        """A proposal with nothing but its own edits.

        Where it builds on what was done in this run, that is part of it.
        """
        desk = Desk(self._around)
        try:
            for operation in group.operations:
                desk.view.apply(desk._work(operation))
        except KbtuiError:
            desk = Desk(self._around)
            desk.view.apply(self.view.edits)
            for operation in group.operations:
                desk.view.apply(desk._work(operation))
        texts = {
            path: None if data is None else files.decode(data).text
            for path, data in desk.view.changed.items()
            if path in group.paths
        }
        return Wish(group.why, texts, desk.view.before)
