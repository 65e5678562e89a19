"""What files are called, with the edits of a run on top, and which of them Dream may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.knowledge.entry import parse_entry
from kbtui.knowledge.statements import normalise
from kbtui.knowledge.templates import ENTRY_TYPES
from kbtui.memory.dream.linking import is_entry
from kbtui.memory.edits.memory_file import MEMORY
from kbtui.memory.records.extraction import Draft
from kbtui.text import MAX_SLUG, clean_line, fold, slugify
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from datetime import date

    from kbtui.knowledge.entry import Entry
    from kbtui.knowledge.library import Library
    from kbtui.memory.dream.overlay import View
    from kbtui.memory.edits.subjects import Subjects

NOTES = ("SOUL.md", "USER.md", MEMORY)
_NAMES = {name.lower(): path for path in NOTES for name in (path, path.rpartition("/")[2])}
_NAMES |= {name.removesuffix(".md"): path for name, path in _NAMES.items()}


class Names:
    """Finds files by what a model calls them."""

    def __init__(self, library: Library, subjects: Subjects, view: View) -> None:
        self._library = library
        self._subjects = subjects
        self._view = view

    def file(self, ref: str) -> str:
        """The path of a file that Dream may change: an entry, MEMORY.md, USER.md or SOUL.md.

        Raises:
            NotFoundError: nothing is called so.
            UsageError: several are, or it is none of those, or a machine must leave it alone.
        """
        name = clean_line(ref)
        path = _NAMES.get(name.lower()) or self._find(name)
        info = self._library.info(path)
        if not (self.is_note(path) or is_entry(path)):
            raise UsageError(
                f"{path} is not for Dream to change.",
                "Entries under knowledge/ are, and MEMORY.md, USER.md and SOUL.md.",
            )
        data = self._view.data(path)
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
        return self.parse(path, self._view.text(path) or "")

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
            for path, data in self._view.edits.items()
            if data is not None and is_entry(path) and wanted in _names(path, data)
        ]
        if len(made) == 1:
            return self.entry(made[0])
        info = self._subjects.find(draft)
        if info is None or not self._view.exists(info.path):
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
            if not self._view.exists(path) and not self.taken(path):
                return path
            number += 1

    def taken(self, path: str) -> bool:
        """Whether a file with a name that differs only in case is there."""
        return files.twin(self._view.root, path) is not None or any(
            other.casefold() == path.casefold() and data is not None
            for other, data in self._view.edits.items()
        )

    def _find(self, name: str) -> str:
        name = name.strip("[]")
        for path in (name, f"knowledge/{name}", f"{name}.md", f"knowledge/{name}.md"):
            known = path in self._view.edits or self._library.info(path) is not None
            if known and is_entry(path) and self._view.exists(path):
                return path
        made = [
            path
            for path, data in self._view.edits.items()
            if data is not None and is_entry(path) and normalise(name) in _names(path, data)
        ]
        path = made[0] if len(made) == 1 else self._library.find_path(name)
        if not self._view.exists(path):
            raise NotFoundError(f"There is no {short_name(path)} any more.")
        return path


def _names(path: str, data: bytes) -> set[str]:
    """What an entry is called, normalised."""
    entry = parse_entry(path, data)
    names = (entry.title, entry.slug.replace("-", " "), *entry.aliases, short_name(path))
    return {normalise(name) for name in names} | {fold(entry.slug)}
