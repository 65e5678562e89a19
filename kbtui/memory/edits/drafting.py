"""Makes edits out of what was extracted: MEMORY.md and entries, and what a person must decide on.

Additions are made; whatever would lose a quarter of a file, or change or remove a line that the
user wrote, is only proposed (rule 3). What was forgotten isn't written again (rule 6), and what the
agent wrote itself while it was said isn't written twice (decision 13).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.knowledge.statements import normalise, plain_fact, statements
from kbtui.knowledge.templates import ENTRY_TYPES
from kbtui.memory.edits.authorship import Authorship
from kbtui.memory.edits.memory_file import (
    MEMORY,
    MemoryEdit,
    apply_facts,
    apply_rewrite,
    review_reason,
)
from kbtui.memory.edits.merging import LOOSE, STRICT, grown_entry, is_said, new_entry
from kbtui.memory.records.dates import absolute_dates
from kbtui.memory.records.extraction import Correction, Draft
from kbtui.text import MAX_SLUG, slugify
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date, datetime

    from kbtui.history.change import Actor
    from kbtui.history.history import History
    from kbtui.knowledge.library import Library
    from kbtui.memory.edits.subjects import Subjects
    from kbtui.memory.records.extraction import Extraction
    from kbtui.memory.records.tombstones import Tombstones
    from kbtui.workspace.layout import Workspace


@dataclass(slots=True)
class Edits:
    """The new text of each file, what each was before, and what is only proposed.

    `proposals` hold (reason, new text) by path, each made from the file as it is.
    """

    texts: dict[str, str] = field(default_factory=dict)
    before: dict[str, bytes | None] = field(default_factory=dict)
    proposals: dict[str, tuple[str, str]] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Said:
    """When something was said, and what the user said then.

    `written` are the files that the agent has written meanwhile, `refuse` tells what else must not
    be written.
    """

    day: date
    said: Sequence[tuple[datetime, str]] = ()
    written: Sequence[WrittenFile] = ()
    refuse: Callable[[str], bool] = field(default=lambda _fact: False)


class WrittenFile(Protocol):
    """A file that somebody has written meanwhile, with what was stated there."""

    @property
    def path(self) -> str:
        """Which one."""
        ...

    @property
    def statements(self) -> Sequence[str]:
        """What was written."""
        ...


class Drafting:
    """Turns one extraction into edits of the files as they are now; writes nothing."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        library: Library,
        subjects: Subjects,
        tombstones: Tombstones,
    ) -> None:
        self._root = workspace.root
        self._authorship = Authorship(history)
        self._library = library
        self._subjects = subjects
        self._tombstones = tombstones

    def edits(self, page: Said, extraction: Extraction) -> Edits:
        """Work out what an extraction changes."""
        work = _Work(page, extraction)
        self._memory(work)
        allowed = [self._allowed(work, draft) for draft in _joined(extraction.drafts)]
        placed = [(draft, self._place(work, draft)) for draft in allowed if draft is not None]
        for draft, path in placed:
            if path is not None:
                self._entry(work, draft, path)
        work.edits.texts = {
            path: text
            for path, text in work.edits.texts.items()
            if text != _text(work.edits.before[path])
        }
        return work.edits

    # MEMORY.md -------------------------------------------------------------------------------

    def _memory(self, work: _Work) -> None:
        text = self._read(work, MEMORY)
        if text is None:
            work.edits.notices.append(f"{MEMORY} isn't UTF-8 text, so nothing was added to it.")
            return
        authors = self._authors(MEMORY, text)
        facts = [absolute_dates(fact, work.page.day) for fact in work.extraction.facts]
        corrections = [
            Correction(each.old, absolute_dates(each.new, work.page.day))
            for each in work.extraction.corrections
        ]

        def applied(chosen: Sequence[Correction], more: Sequence[str] = ()) -> MemoryEdit:
            return apply_facts(text, more, chosen, refuse=work.refuse(self._tombstones))

        def risk(edit: MemoryEdit) -> str | None:
            return review_reason(text, edit.text, authors)

        safe = [each for each in corrections if risk(applied([each])) is None]
        if risk(applied(safe)) is not None:
            safe = []
        risky = [each for each in corrections if each not in safe]
        work.edits.texts[MEMORY] = applied(safe, facts).text
        asked = applied(risky)
        if risky and (why := risk(asked)):
            work.edits.proposals[MEMORY] = (why, asked.text)
        if work.extraction.full_memory is not None:
            self._rewrite(work, text, authors)

    def _rewrite(self, work: _Work, text: str, authors: Sequence[Actor | None]) -> None:
        """Take the seed's older form, a whole memory, as edits."""
        rewritten = absolute_dates(work.extraction.full_memory or "", work.page.day)
        edit = apply_rewrite(text, rewritten, refuse=work.refuse(self._tombstones))
        why = review_reason(text, edit.text, authors)
        if why:
            work.edits.proposals[MEMORY] = (why, edit.text)
        else:
            work.edits.texts[MEMORY] = edit.text

    # Entries ---------------------------------------------------------------------------------

    def _place(self, work: _Work, draft: Draft) -> str | None:
        """Where a draft goes; None: the agent has written it already."""
        if self._written_elsewhere(work, draft):
            return None
        info = self._subjects.find(draft)
        path = info.path if info else None
        if path is None or self._read(work, path) is None:
            path = self._free_path(work, draft)
            work.edits.before[path] = None
            work.made[normalise(draft.title)] = path
        return path

    def _entry(self, work: _Work, draft: Draft, path: str) -> None:
        related = [name for name in self._related(work, draft) if name != short_name(path)]
        if work.edits.before[path] is not None:
            self._grow(work, path, draft, related)
        elif path in work.edits.texts:
            text = work.edits.texts[path]
            work.edits.texts[path] = grown_entry(text, draft, work.page.day, related=related)
        else:
            work.edits.texts[path] = new_entry(draft, work.page.day, related)

    def _grow(self, work: _Work, path: str, draft: Draft, related: Sequence[str]) -> None:
        """Update an entry as far as no line of the user's changes; propose the rest."""
        before = self._read(work, path) or ""
        text = work.edits.texts.get(path, before)
        authors = self._authors(path, before)
        likeness = LOOSE if any(each.path == path for each in work.page.written) else STRICT

        def grown(*, add: bool = True, correct: bool = True, head: bool = False) -> str:
            return grown_entry(
                text,
                draft,
                work.page.day,
                related=related,
                add=add,
                correct=correct,
                head=head,
                likeness=likeness,
            )

        for new in (grown(head=True), grown()):
            if review_reason(before, new, authors) is None:
                work.edits.texts[path] = new
                return
        work.edits.texts[path] = grown(correct=False)
        corrected = grown(add=False)
        if why := review_reason(before, corrected, authors):
            work.edits.proposals[path] = (why, corrected)

    def _allowed(self, work: _Work, draft: Draft) -> Draft | None:
        """A draft with absolute dates and without what was forgotten; None: nothing is left."""
        refuse = work.refuse(self._tombstones)

        def buried(line: str) -> bool:
            said = plain_fact(line)
            return bool(said) and (refuse(said) or refuse(f"{draft.title}: {said}"))

        body = absolute_dates(draft.body, work.page.day)
        summary = absolute_dates(draft.summary, work.page.day)
        body = "\n".join(line for line in body.splitlines() if not buried(line))
        summary = "" if buried(summary) else summary
        told = statements(body)
        if not told and (not summary or draft.body):
            return None
        tags = [slugify(tag) if " " in tag else tag for tag in draft.tags]
        return replace(draft, body=body, summary=summary, tags=tuple(tags))

    def _written_elsewhere(self, work: _Work, draft: Draft) -> bool:
        """Whether the agent has written all of a draft already, under whatever title."""
        told = statements(draft.body or draft.summary)
        entries = [each for each in work.page.written if each.path.startswith("knowledge/")]
        known = [statement for each in entries for statement in each.statements]
        return bool(told) and all(is_said(each, known, LOOSE) for each in told)

    def _related(self, work: _Work, draft: Draft) -> list[str]:
        """The entries that a draft names, as far as they exist or are being made."""
        found: dict[str, None] = {}
        for name in draft.related:
            path = work.made.get(normalise(name.rpartition("/")[2].replace("-", " ")))
            if path is None:
                try:
                    path = self._library.find_path(name)
                except KbtuiError:  # a name that means nothing here, or several things
                    continue
            if path.startswith("knowledge/"):
                found.setdefault(short_name(path))
        return list(found)

    def _free_path(self, work: _Work, draft: Draft) -> str:
        """A path that no file has; names that differ only in case are the same on many disks."""
        prefix = f"{work.page.day:%Y-%m}-" if draft.type == "decision" else ""
        folder = f"knowledge/{ENTRY_TYPES[draft.type]}"
        number = 1
        while True:
            suffix = f"-{number}" if number > 1 else ""
            slug = slugify(draft.title, MAX_SLUG - len(prefix) - len(suffix))
            path = f"{folder}/{prefix}{slug}{suffix}.md"
            taken = path in work.made.values() or files.exists(self._root, path)
            if not taken and files.twin(self._root, path) is None:
                return path
            number += 1

    # Files -----------------------------------------------------------------------------------

    def _read(self, work: _Work, path: str) -> str | None:
        """A file's text as it is; empty where there is none, None where it isn't UTF-8."""
        if path not in work.edits.before:
            try:
                work.edits.before[path] = files.read_bytes(self._root, path)
            except NotFoundError:
                work.edits.before[path] = None
        return _text(work.edits.before[path])

    def _authors(self, path: str, text: str) -> Sequence[Actor | None]:
        return self._authorship.authors(path, text) if text else ()


@dataclass(slots=True)
class _Work:
    """One extraction on its way to edits; `made` are the paths of new entries by title."""

    page: Said
    extraction: Extraction
    edits: Edits = field(default_factory=Edits)
    made: dict[str, str] = field(default_factory=dict)

    def refuse(self, tombstones: Tombstones) -> Callable[[str], bool]:
        """What must not be written: forgotten, taken out meanwhile, or asked about already."""
        said = self.page.said

        def refused(fact: str) -> bool:
            return tombstones.buried(fact, said=said) or self.page.refuse(fact)

        return refused


def _text(data: bytes | None) -> str | None:
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError:
        return None


def _joined(drafts: Sequence[Draft]) -> list[Draft]:
    """Drafts of the same subject as one."""
    by_subject: dict[tuple[str, str], Draft] = {}
    for draft in drafts:
        key = (draft.type, normalise(draft.title))
        known = by_subject.get(key)
        if known is None:
            by_subject[key] = draft
            continue
        body = "\n".join(part for part in (known.body or known.summary, draft.body) if part)
        by_subject[key] = replace(
            known,
            body=body,
            tags=tuple(dict.fromkeys((*known.tags, *draft.tags))),
            related=tuple(dict.fromkeys((*known.related, *draft.related))),
        )
    return list(by_subject.values())
