"""Edits and proposals made while a conversation went on.

Consolidation must not write them again: neither what an entry already has, nor what the agent or
the user removed since, nor what waits for the user's decision.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kbtui.history.change import Actor, Commit, Origin
from kbtui.history.history import History
from kbtui.history.queries.diff import FileDiff
from kbtui.knowledge.format.facts import normalise, statements
from kbtui.memory.consolidation.page import Page
from kbtui.memory.edits.keeping import FileStatements
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.ranges import overlap
from kbtui.memory.records.tombstones import is_stated
from kbtui.workspace import files
from kbtui.workspace.layout import MEMORY

_MAX_STATEMENTS = 12
# A commit with more files isn't the user's edit, but a folder that was added or removed.
_MAX_FILES = 50
_MAX_OTHERS = 100
_LIVE = frozenset({Actor.AGENT, Actor.YOU})
_KEYS = ("type", "created", "updated", "related", "tags", "aliases", "sources", "summary")


@dataclass(frozen=True, slots=True)
class LiveEdits:
    """The live edits of a page, by file.

    `removed` has the time each statement was removed, by its `normalise` key; `waiting` are
    statements that are only proposed.
    """

    files: tuple[FileStatements, ...] = ()
    removed: Mapping[str, datetime] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()

    @property
    def written(self) -> tuple[FileStatements, ...]:
        """The files without statements that are only proposed."""
        waiting = set(self.waiting)
        return tuple(
            replace(each, statements=tuple(s for s in each.statements if s not in waiting))
            for each in self.files
        )

    def is_removed(self, fact: str, said: Iterable[tuple[datetime, str]]) -> bool:
        """Return whether a fact was removed and the user hasn't stated it again since."""
        when = self.removed.get(normalise(fact))
        if when is None:
            return False
        return not is_stated(fact, ((time, text) for time, text in said if time > when))


def live_edits(history: History, inbox: Inbox, page: Page) -> LiveEdits:
    """Collect the edits of entries and MEMORY.md during a page and since."""
    added: defaultdict[str, dict[str, None]] = defaultdict(dict)
    gone: defaultdict[str, dict[str, None]] = defaultdict(dict)
    last: dict[str, datetime | None] = {}  # removal time of a statement; None: added
    for time, is_of_page, is_new, path, statement in _changes(history, page):
        key = normalise(statement)
        if is_new:
            last.setdefault(key, None)
            if is_of_page:
                added[path][statement] = None
        elif key not in last:
            last[key] = time
            gone[path][statement] = None
    waiting = list(_proposed(inbox, page))
    for path, statement in waiting:
        added[path][statement] = None
    files = tuple(
        FileStatements(
            path,
            tuple(added[path])[:_MAX_STATEMENTS],
            tuple(gone[path])[:_MAX_STATEMENTS],
        )
        for path in sorted(added.keys() | gone.keys())
    )
    removed = {key: time for key, time in last.items() if time is not None}
    return LiveEdits(files, removed, tuple(dict.fromkeys(each for _, each in waiting)))


def _changes(history: History, page: Page) -> Iterator[tuple[datetime, bool, bool, str, str]]:
    """Yield each statement added or removed since a page began, newest first.

    A tuple of the time, whether it belongs to the page, whether it was added, file and statement.
    """
    for commit, is_of_page in _commits(history, page):
        diffs = [diff for diff in history.changes_of(commit.id) if _is_memory(diff.path)]
        for kind in "+-":
            for path, statement in _statements_in(diffs, kind):
                yield commit.time, is_of_page, kind == "+", path, statement


def _commits(history: History, page: Page) -> Iterator[tuple[Commit, bool]]:
    """Yield the commits since a page began, newest first, as the newest one decides.

    Each with True if it belongs to the page; else it is an edit by the user, which can only remove.
    """
    others = 0
    # Commit times have whole seconds.
    for commit in history.log(since=page.messages[0].time - timedelta(seconds=2)):
        if commit.actor in _LIVE and _overlaps(commit.origin, page):
            yield commit, True
        elif commit.actor is Actor.YOU and others < _MAX_OTHERS and _is_edit(commit):
            others += 1
            yield commit, False


def _is_edit(commit: Commit) -> bool:
    """Return whether a commit is a manual edit; tombstones cover what an undo removes."""
    if commit.origin.undoes is not None:
        return False
    return len(commit.paths) <= _MAX_FILES and any(_is_memory(each.path) for each in commit.paths)


def _overlaps(origin: Origin, page: Page) -> bool:
    return origin.session == page.session and overlap(origin.messages, page.range)


def _is_memory(path: str) -> bool:
    return path == MEMORY or (path.startswith("knowledge/") and not path.endswith("INDEX.md"))


def _statements_in(diffs: Iterable[FileDiff], kind: str) -> Iterator[tuple[str, str]]:
    """Yield the statements in the lines that a commit added (``+``) or removed (``-``)."""
    for diff in diffs:
        if not diff.binary:
            lines = [line.text for hunk in diff.hunks for line in hunk.lines if line.kind == kind]
            yield from ((diff.path, each) for each in statements(_without_frontmatter(lines)))


def _proposed(inbox: Inbox, page: Page) -> Iterator[tuple[str, str]]:
    """Yield the statements that the agent has proposed and nobody has decided on."""
    for proposal in inbox.list():
        if proposal.actor is not Actor.AGENT or not _overlaps(proposal.origin, page):
            continue
        for edit in proposal.edits:
            if edit.wanted is not None and _is_memory(edit.path):
                known = set(statements(files.text_of(edit.base)))
                proposed = statements(files.text_of(edit.wanted))
                yield from ((edit.path, each) for each in proposed if each not in known)


def _without_frontmatter(lines: list[str]) -> str:
    """Strip the frontmatter of a new entry, which states nothing."""
    text = "\n".join(lines)
    if text.startswith("---\n") and "\n---\n" in text[4:]:
        return text[4:].partition("\n---\n")[2]
    keys = tuple(f"{key}:" for key in _KEYS)
    return "\n".join(line for line in lines if not line.startswith(keys))
