"""What Dream works at: files with the edits so far, what they are called, and who wrote them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, NotFoundError, UnreadableError, UsageError
from kbtui.knowledge.entry import parse_entry
from kbtui.knowledge.templates import ENTRY_TYPES
from kbtui.memory.dream import guards
from kbtui.memory.dream.linking import Links, is_entry
from kbtui.memory.dream.view import View, shown_text
from kbtui.memory.extraction import Draft
from kbtui.memory.facts import normalise
from kbtui.memory.memory_file import MEMORY
from kbtui.text import MAX_SLUG, clean_line, fold, slugify
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime
    from pathlib import Path

    from kbtui.history.change import Actor
    from kbtui.knowledge.entry import Entry
    from kbtui.knowledge.library import Library
    from kbtui.memory.authorship import Authorship
    from kbtui.memory.dream.operations import Operation
    from kbtui.memory.dream.view import Edits
    from kbtui.memory.subjects import Subjects
    from kbtui.memory.tombstones import Tombstones

NOTES = ("SOUL.md", "USER.md", MEMORY)
_NAMES = {name.lower(): path for path in NOTES for name in (path, path.rpartition("/")[2])}
_NAMES |= {name.removesuffix(".md"): path for name, path in _NAMES.items()}


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
        self.operations: list[Operation] = []
        self.proposed: list[Proposed] = []

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
        elif operation.optional:
            return Done()
        else:
            self._propose(operation, why, edits)
        self.operations.append(operation)
        return Done(tuple(sorted(edits)), why or "")

    def again(self, *, careful: bool = False) -> Desk:
        """Do everything again on the files as they are now; what can't be done any more isn't."""
        desk = Desk(self._around, careful=careful)
        for operation in self.operations:
            try:
                desk.perform(operation)
            except KbtuiError:
                continue
        return desk

    def proposals(self) -> list[tuple[str, dict[str, str | None]]]:
        """The reason and the new texts of each proposal, made from the files as they are."""
        return [(each.why, self._texts(each)) for each in self.proposed]

    # Names -----------------------------------------------------------------------------------

    def file(self, ref: str) -> str:
        """The path of a file that Dream may change: an entry, MEMORY.md, USER.md or SOUL.md.

        Raises:
            NotFoundError: nothing is called so.
            UsageError: several are, or it is none of those, or a machine must leave it alone.
        """
        name = clean_line(ref)
        path = _NAMES.get(name.lower()) or self._find(name)
        info = self.library.info(path)
        if not (self.is_note(path) or is_entry(path)):
            raise UsageError(
                f"{path} is not for Dream to change.",
                "Entries under knowledge/ are, and MEMORY.md, USER.md and SOUL.md.",
            )
        data = self.view.data(path)
        if (info is not None and info.private) or (data and parse_entry(path, data).private):
            raise UsageError(f"{short_name(path)} is private: leave it alone.")
        if data is not None and (problem := parse_entry(path, data).problem):
            raise UsageError(f"{short_name(path)} can't be changed by a machine.", problem)
        return path

    def entry(self, ref: str) -> str:
        """The path of an entry; raises as `file`."""
        path = self.file(ref)
        if self.is_note(path):
            raise UsageError(f"{short_name(path)} is not an entry.")
        return path

    @staticmethod
    def is_note(path: str) -> bool:
        """Whether a file is one of those that are in every prompt."""
        return path in NOTES

    def named(self, ref: str) -> str | None:
        """The path of an entry by any of its names; None: it means nothing, or several things."""
        try:
            path = self._find(clean_line(ref))
        except KbtuiError:
            return None
        return path if is_entry(path) else None

    def parsed(self, path: str) -> Entry:
        """An entry as it is with the edits."""
        return self.parse(path, self.view.text(path) or "")

    @staticmethod
    def parse(path: str, text: str) -> Entry:
        """Read a text as an entry."""
        return parse_entry(path, text.encode("utf-8", "replace"))

    def draft_for(self, path: str, body: str) -> Draft:
        """What is to be added to an entry."""
        entry = self.parsed(path)
        return Draft(entry.type or "topic", entry.title, "", body)

    def subject(self, draft: Draft) -> str | None:
        """The entry about the subject of a draft; None: there is none.

        Raises:
            UsageError: there is one that a machine must leave alone.
        """
        wanted = normalise(draft.title)
        made = [
            path
            for path, data in self.view.edits.items()
            if data is not None and is_entry(path) and wanted in _names(path, data)
        ]
        if len(made) == 1:
            return self.entry(made[0])
        info = self._around.subjects.find(draft)
        if info is None or not self.view.exists(info.path):
            return None
        return self.entry(info.path)

    def free_path(self, draft: Draft, day: date) -> str:
        """A path that no file has, nor any that differs only in case."""
        prefix = f"{day:%Y-%m}-" if draft.type == "decision" else ""
        folder = f"knowledge/{ENTRY_TYPES[draft.type]}"
        number = 1
        while True:
            suffix = f"-{number}" if number > 1 else ""
            slug = slugify(draft.title, MAX_SLUG - len(prefix) - len(suffix))
            path = f"{folder}/{prefix}{slug}{suffix}.md"
            if not self.view.exists(path) and not self.taken(path):
                return path
            number += 1

    def taken(self, path: str) -> bool:
        """Whether a file with a name that differs only in case is there."""
        return files.twin(self._around.root, path) is not None or any(
            other.casefold() == path.casefold() and data is not None
            for other, data in self.view.edits.items()
        )

    def authors(self, path: str) -> Sequence[Actor]:
        """Who wrote each line of a file as it is on disk."""
        text = shown_text(self.view.original(path))
        return self._around.authorship.authors(path, text) if text else ()

    def _find(self, name: str) -> str:
        name = name.strip("[]")
        for path in (name, f"knowledge/{name}", f"{name}.md", f"knowledge/{name}.md"):
            known = path in self.view.edits or self.library.info(path) is not None
            if known and is_entry(path) and self.view.exists(path):
                return path
        made = [
            path
            for path, data in self.view.edits.items()
            if data is not None and is_entry(path) and normalise(name) in _names(path, data)
        ]
        path = made[0] if len(made) == 1 else self.library.find_path(name)
        if not self.view.exists(path):
            raise NotFoundError(f"There is no {short_name(path)} any more.")
        return path

    # Operations ------------------------------------------------------------------------------

    def _work(self, operation: Operation) -> Edits:
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

    def _texts(self, group: Proposed) -> dict[str, str | None]:
        """The texts of a proposal: the files as they are on disk, with nothing but its own edits.

        Where it builds on what was done in this run, that is part of it.
        """
        desk = Desk(self._around)
        try:
            for operation in group.operations:
                desk.view.apply(desk._work(operation))
        except KbtuiError:
            desk.view = View(self._around.root)
            desk.view.apply(self.view.edits)
            desk.links = Links(self.library, desk.view)
            for operation in group.operations:
                desk.view.apply(desk._work(operation))
        return {
            path: None if data is None else files.decode(data).text
            for path, data in desk.view.changed.items()
            if path in group.paths
        }


def _names(path: str, data: bytes) -> set[str]:
    """What an entry is called, normalised."""
    entry = parse_entry(path, data)
    names = (entry.title, entry.slug.replace("-", " "), *entry.aliases, short_name(path))
    return {normalise(name) for name in names} | {fold(entry.slug)}
