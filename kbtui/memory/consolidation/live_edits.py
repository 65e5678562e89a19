"""Edits and proposals that were made while a conversation went on.

Who condenses the conversation must not write it again: not what stands in an entry already, not
what the agent or the user took out since, and not what waits for the user's decision.
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
from kbtui.memory.edits.keeping import Written
from kbtui.memory.edits.memory_file import MEMORY
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.ranges import overlap
from kbtui.memory.records.tombstones import is_stated
from kbtui.workspace import files

_MOST_STATEMENTS = 12
# A commit of more files is no edit of the user's, but a folder that came or went.
_MOST_FILES = 50
_MOST_OTHERS = 100
_LIVE = frozenset({Actor.AGENT, Actor.YOU})
_KEYS = ("type", "created", "updated", "related", "tags", "aliases", "sources", "summary")


@dataclass(frozen=True, slots=True)
class LiveEdits:
    """All of that for one page, by file.

    `removed` is when each statement was taken out, by what `normalise` makes of it; `waiting` are
    those that are only proposed.
    """

    files: tuple[Written, ...] = ()
    removed: Mapping[str, datetime] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()

    @property
    def written(self) -> tuple[Written, ...]:
        """The files without what is only proposed."""
        waiting = set(self.waiting)
        return tuple(
            replace(each, statements=tuple(s for s in each.statements if s not in waiting))
            for each in self.files
        )

    def is_removed(self, fact: str, said: Iterable[tuple[datetime, str]]) -> bool:
        """True if a fact was taken out, and the user hasn't said it again since."""
        when = self.removed.get(normalise(fact))
        if when is None:
            return False
        return not is_stated(fact, ((time, text) for time, text in said if time > when))


def live_edits(history: History, inbox: Inbox, page: Page) -> LiveEdits:
    """Look for what was done with entries and MEMORY.md while a page was said, and since."""
    came: defaultdict[str, dict[str, None]] = defaultdict(dict)
    went: defaultdict[str, dict[str, None]] = defaultdict(dict)
    last: dict[str, datetime | None] = {}  # when a statement went, None if it came
    for time, is_of_page, is_new, path, statement in _changes(history, page):
        key = normalise(statement)
        if is_new:
            last.setdefault(key, None)
            if is_of_page:
                came[path][statement] = None
        elif key not in last:
            last[key] = time
            went[path][statement] = None
    waiting = list(_proposed(inbox, page))
    for path, statement in waiting:
        came[path][statement] = None
    files = tuple(
        Written(path, tuple(came[path])[:_MOST_STATEMENTS], tuple(went[path])[:_MOST_STATEMENTS])
        for path in sorted(came.keys() | went.keys())
    )
    removed = {key: time for key, time in last.items() if time is not None}
    return LiveEdits(files, removed, tuple(dict.fromkeys(each for _, each in waiting)))


def _changes(history: History, page: Page) -> Iterator[tuple[datetime, bool, bool, str, str]]:
    """Each statement that came or went since a page began, the newest first.

    When it did, if for the page, if it came, in which file, and it.
    """
    for commit, is_of_page in _commits(history, page):
        diffs = [diff for diff in history.changes_of(commit.id) if _is_memory(diff.path)]
        for kind in "+-":
            for path, statement in _stated(diffs, kind):
                yield commit.time, is_of_page, kind == "+", path, statement


def _commits(history: History, page: Page) -> Iterator[tuple[Commit, bool]]:
    """What was done since a page began, the newest first: it has the last word.

    True: for the page. Else it is an edit of the user's, which has only taken something out.
    """
    others = 0
    # Commits know whole seconds only.
    for commit in history.log(since=page.messages[0].time - timedelta(seconds=2)):
        if commit.actor in _LIVE and _overlaps(commit.origin, page):
            yield commit, True
        elif commit.actor is Actor.YOU and others < _MOST_OTHERS and _is_edit(commit):
            others += 1
            yield commit, False


def _is_edit(commit: Commit) -> bool:
    """True for an edit by hand; what an undo takes out, tombstones know of."""
    if commit.origin.undoes is not None:
        return False
    return len(commit.paths) <= _MOST_FILES and any(_is_memory(each.path) for each in commit.paths)


def _overlaps(origin: Origin, page: Page) -> bool:
    return origin.session == page.session and overlap(origin.messages, page.range)


def _is_memory(path: str) -> bool:
    return path == MEMORY or (path.startswith("knowledge/") and not path.endswith("INDEX.md"))


def _stated(diffs: Iterable[FileDiff], kind: str) -> Iterator[tuple[str, str]]:
    """The statements of lines that a commit added (``+``) to files, or took out (``-``)."""
    for diff in diffs:
        if not diff.binary:
            lines = [line.text for hunk in diff.hunks for line in hunk.lines if line.kind == kind]
            yield from ((diff.path, each) for each in statements(_without_frontmatter(lines)))


def _proposed(inbox: Inbox, page: Page) -> Iterator[tuple[str, str]]:
    """The statements that the agent wants to write and nobody has decided on."""
    for proposal in inbox.list():
        if proposal.actor is not Actor.AGENT or not _overlaps(proposal.origin, page):
            continue
        for edit in proposal.edits:
            if edit.wanted is not None and _is_memory(edit.path):
                known = set(statements(files.text_of(edit.base)))
                told = statements(files.text_of(edit.wanted))
                yield from ((edit.path, each) for each in told if each not in known)


def _without_frontmatter(lines: list[str]) -> str:
    """Lines without those of a new entry's frontmatter, which state nothing."""
    text = "\n".join(lines)
    if text.startswith("---\n") and "\n---\n" in text[4:]:
        return text[4:].partition("\n---\n")[2]
    keys = tuple(f"{key}:" for key in _KEYS)
    return "\n".join(line for line in lines if not line.startswith(keys))
