"""Provenance: traces a line to the messages that it was made of.

The trace goes through the commit that wrote the line, which names its source: a turn of a session,
a slice of one that the archive condensed, or, for Dream, the archive entries that it had read. If
the trace ends early, it says what is known, and why there is no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from rapidfuzz import fuzz, process

from kbtui.errors import NotFoundError
from kbtui.history.change import Actor, Commit, Origin
from kbtui.knowledge.format.facts import normalise, plain_fact
from kbtui.memory.edits.memory_file import line_key
from kbtui.memory.records.claims import claims_in
from kbtui.memory.records.cursors import Cursors
from kbtui.memory.records.ranges import holds
from kbtui.text import counted, shorten
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace, is_recorded, short_name

if TYPE_CHECKING:
    from kbtui.history.history import History, LineOrigin
    from kbtui.history.queries.diff import DiffLine, FileDiff
    from kbtui.memory.records.archive import Archive, ArchiveEntry
    from kbtui.sessions.store import SessionMessage, SessionStore
    from kbtui.views.view import View

_Item = TypeVar("_Item")
_MIN_WORD_LENGTH = 3
_MAX_REWORDINGS = 8
_MIN_SHARE = 0.6  # share of the best match's common words
_NO_MORE = "The entry was private when it was written, so no more is told of it."


@dataclass(frozen=True, slots=True)
class Why:
    """Where a line comes from.

    Attributes:
        origin: Who wrote it last; its `commit` is None if it isn't recorded yet.
        commit: That commit, with its reason.
        note: What is known, and why there is no more, in a sentence or two.
        session: The conversation that it was made of, even if deleted, with its `title`.
        messages: The messages of the turn or slice that the line was made of.
        telling: The ids of the messages that share the most words with the line.
        archives: The archive entries about it, likeliest first.
        before: The origins of the lines that Dream reworded into it, newest first.
    """

    path: str
    line: int
    text: str
    origin: LineOrigin
    commit: Commit | None = None
    note: str = ""
    session: str | None = None
    title: str = ""
    messages: tuple[SessionMessage, ...] = ()
    telling: frozenset[int] = frozenset()
    archives: tuple[ArchiveEntry, ...] = ()
    before: tuple[LineOrigin, ...] = ()

    @property
    def archive(self) -> ArchiveEntry | None:
        """The archive entry that the line most likely comes from."""
        return self.archives[0] if self.archives else None

    @property
    def moved_from(self) -> str:
        """The file that the line was first written to, if it is another one."""
        return self.origin.path if self.origin.path not in {"", self.path} else ""


@dataclass(frozen=True, slots=True)
class AuthorShare:
    """The share of an actor, or of an `author`, in a file, and the time range."""

    actor: Actor
    lines: int
    commits: int
    first: datetime | None
    last: datetime | None
    author: str | None = None


class Provenance:
    """Traces lines of one workspace."""

    def __init__(
        self, workspace: Workspace, history: History, archive: Archive, sessions: SessionStore
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._archive = archive
        self._sessions = sessions
        self._cursors = Cursors(workspace, history)

    def why(self, path: str, line: int, at: str | None = None) -> Why:
        """Trace a line, counted from 1; `at` is a revision, by default the current file.

        Raises:
            NotFoundError: There is no such file, line or revision, or the history doesn't keep it.
        """
        text, origins = self._blamed(path, at)
        if not 1 <= line <= len(origins):
            count = counted(len(origins), "line")
            raise NotFoundError(f"{short_name(path)} has no line {line}; it has {count}.")
        said = text.split("\n")[line - 1].rstrip("\r")
        return self._trace(Why(path, line, said, origins[line - 1]), _MAX_REWORDINGS)

    def _trace(self, why: Why, rewordings: int) -> Why:
        """Trace a line to its sources, through at most `rewordings` edits by Dream."""
        if why.origin.commit is None:
            return replace(why, note="You wrote it; it isn't recorded yet.")
        commit = self._history.commit(why.origin.commit)
        why = replace(why, commit=commit, note=account_of(commit))
        if commit.actor is Actor.DREAM:
            return self._trace_dream(why, commit, rewordings)
        source = commit.origin
        archives = tuple(self._archive_entries(source, why.text)) if source.session else ()
        return self._with_messages(replace(why, archives=archives), source)

    def authors(self, path: str, at: str | None = None) -> tuple[AuthorShare, ...]:
        """Return who wrote how much of a file, largest share first; raises as `why`."""
        _, origins = self._blamed(path, at)
        counts = Counter((origin.actor, origin.origin.author) for origin in origins)
        return tuple(_share(*each, origins) for each, _ in counts.most_common())

    def _blamed(self, path: str, at: str | None) -> tuple[str, Sequence[LineOrigin]]:
        path = files.checked_path(path)
        if not is_recorded(path):
            raise NotFoundError(
                f"The history doesn't keep {path}, so nobody knows who wrote it.",
                "It keeps entries, memory/, skills/ and the files about you and the agent.",
            )
        if at is not None:
            text = files.text_of(self._history.read(path, at))
            return text, self._history.blame(path, at)
        text = files.text_of(files.read_bytes(self._workspace, path))
        return text, self._history.blame(path, text=text)

    # From a commit to messages ---------------------------------------------------------------

    def _trace_dream(self, why: Why, commit: Commit, rewordings: int) -> Why:
        """Trace a line by Dream to the archive entries it had read that share words with it.

        A line that Dream only reworded is traced from the previous wording.
        """
        read = self._entries_read(commit)
        before = self._previous_line(why.origin, commit) if rewordings else None
        if before is not None and not _adds_words(why.text, before.text, read):
            first = self._trace(before, rewordings - 1)
            lead = f"Dream reworded it; before, it said “{shorten(plain_fact(before.text), 100)}”."
            note = f"{lead} {first.note}"
            return replace(
                first,
                path=why.path,
                line=why.line,
                text=why.text,
                origin=why.origin,
                commit=commit,
                note=note,
                before=(before.origin, *first.before),
            )
        archives = _likeliest(why.text, read, lambda entry: entry.content)
        note = why.note
        if not read:
            note += " What it had read isn't in the archive any more."
        elif not archives:
            count = counted(len(read), "archive entry", "archive entries")
            note += f" It had read {count}, in which no word of this line stands: it made the line"
            note += " of what the files said."
        source = commit.origin
        if archives:
            source = replace(source, session=archives[0].session, messages=archives[0].messages)
        return self._with_messages(replace(why, archives=tuple(archives), note=note), source)

    def _previous_line(self, origin: LineOrigin, commit: Commit) -> Why | None:
        """Return the similar line that a line replaced, or None if it is a new one."""
        if commit.parent is None:
            return None
        diffs = self._history.changes_of(commit.id)
        diff = next((each for each in diffs if each.path == origin.path), None)
        line = _most_similar(diff, origin.line) if diff is not None else None
        if diff is None or line is None:
            return None
        path = diff.old_path or diff.path
        known = self._history.blame(path, commit.parent)
        number = line.old or 0
        return Why(path, number, line.text, known[number - 1]) if number <= len(known) else None

    def _with_messages(self, why: Why, source: Origin) -> Why:
        if source.session is None:
            return why
        # Check the whole id, as the store would also accept a prefix of another one's.
        if not (self._workspace.sessions / f"{source.session}.jsonl").is_file():
            gone = f"{why.note} The conversation {source.session} isn't there any more."
            return replace(why, session=source.session, note=gone)
        log = self._sessions.read_log(source.session)
        said = [each for each in log.messages if _is_source(each, source)]
        note = "" if said or not source.messages else " What was said there was taken back since."
        return replace(
            why,
            session=source.session,
            title=log.shown_title,
            messages=tuple(said),
            telling=frozenset(m.id for m in _likeliest(why.text, said, lambda m: m.content)),
            note=why.note + note,
        )

    def _archive_entries(self, source: Origin, text: str) -> Iterable[ArchiveEntry]:
        entries = self._archive.entries()
        found = [entry for entry in entries if entry.is_of(source.session, source.messages)]
        exact = [entry for entry in found if entry.cursor == source.cursor]
        return exact or _likeliest(text, found, lambda entry: entry.content) or found

    def _entries_read(self, commit: Commit) -> list[ArchiveEntry]:
        """Return the archive entries that a run of Dream had read, by its cursors."""
        before = self._cursors.at(commit.parent) if commit.parent else {}
        after = self._cursors.at(commit.id)
        return [
            entry
            for entry in self._archive.entries(before)
            if entry.cursor <= after.get(entry.origin, 0)
        ]


def _is_source(message: SessionMessage, source: Origin) -> bool:
    """Return whether a message was said in the turn, or the range, of an origin."""
    in_turn = source.turn is not None and message.turn == source.turn
    in_range = source.messages is not None and holds([source.messages], message.id)
    return message.is_said and (in_turn or in_range)


class ShownProvenance:
    """Traces lines as far as the audience of a view may know."""

    def __init__(self, provenance: Provenance, view: View) -> None:
        self._provenance = provenance
        self._view = view

    def why(self, path: str, line: int) -> Why:
        """Trace a line like `Provenance.why`, for a path that the view has."""
        view, sessions = self._view, self._view.sessions
        why = self._provenance.why(path, line)
        if why.text.strip() not in map(str.strip, view.text(path).split("\n")):
            raise NotFoundError(f"{short_name(path)} has no line {line}.")
        if not all(map(view.history.may_tell_of, (why.origin, *why.before))):
            return replace(why, commit=None, title="", messages=(), archives=(), note=_NO_MORE)
        if sessions.hides_any(why.session):
            why = replace(why, title="")
        if sessions.shown(why.messages) != why.messages:
            note = f"{why.note} What was said there drew on a private entry, so it isn't shown."
            why = replace(why, messages=(), archives=(), note=note)
        archives = [
            each for each in why.archives if not sessions.hides(each.session, each.messages)
        ]
        return replace(why, archives=tuple(archives))


def _removed_at(diff: FileDiff, line: int) -> list[DiffLine]:
    """Return the lines removed where a line was added, with nothing unchanged in between."""
    for hunk in diff.hunks:
        block: list[DiffLine] = []
        for each in (*hunk.lines, None):
            if each is not None and each.kind != " ":
                block.append(each)
                continue
            if any(other.kind == "+" and other.new == line for other in block):
                return [other for other in block if other.kind == "-"]
            block = []
    return []


def _adds_words(text: str, before: str, read: Iterable[ArchiveEntry]) -> bool:
    """Return whether a line has words from the entries read that the previous line lacked."""
    fresh = _words_of_line(text) - _words_of_line(before)
    return any(fresh & _words(entry.content) for entry in read)


def _likeliest(text: str, items: Iterable[_Item], text_of: Callable[[_Item], str]) -> list[_Item]:
    """Return the items that share the most words with a line, or nearly as many, best first."""
    wanted = _words_of_line(text)
    scores = [(len(wanted & _words(text_of(each))), each) for each in items]
    best = max((score for score, _ in scores), default=0)
    near = [pair for pair in scores if pair[0] and pair[0] >= best * _MIN_SHARE]
    return [each for _, each in sorted(near, key=lambda pair: -pair[0])]


def _words_of_line(line: str) -> set[str]:
    """Return the words of a line, also without the marks of Markdown: ``#tag`` and ``tag``."""
    return _words(" ".join((line, *(each.text for each in claims_in(line)))))


def _words(text: str) -> set[str]:
    return {word for word in normalise(plain_fact(text)).split() if len(word) >= _MIN_WORD_LENGTH}


def account_of(commit: Commit) -> str:
    """Return a sentence on how a line of this commit was written."""
    author = commit.origin.author
    return f"{author} wrote it." if author else commit.actor.account


def _share(actor: Actor, author: str | None, origins: Sequence[LineOrigin]) -> AuthorShare:
    theirs = [each for each in origins if (each.actor, each.origin.author) == (actor, author)]
    times = [origin.time for origin in theirs if origin.time is not None]
    commits = {origin.commit for origin in theirs if origin.commit is not None}
    first, last = min(times, default=None), max(times, default=None)
    return AuthorShare(actor, len(theirs), len(commits), first, last, author)


def _most_similar(diff: FileDiff, number: int) -> DiffLine | None:
    """Return the line most similar to an added one, among those that it replaced."""
    gone = [line for line in _removed_at(diff, number) if line.old]
    if not gone:
        return None
    text = next(line.text for hunk in diff.hunks for line in hunk.lines if line.new == number)
    keys = [line_key(line.text) for line in gone]
    alike = process.extractOne(
        line_key(text), keys, scorer=fuzz.token_sort_ratio, score_cutoff=55.0
    )
    return None if alike is None else gone[alike[2]]
