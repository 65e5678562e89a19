"""``/forget``: finds what is remembered about something, and takes it out for good.

What is taken out is buried, so that no machine writes it again, and the messages that said it are
left out when their conversation is condensed. The archive and the log of changes keep what was
said: they record what happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.history.change import Actor, Origin
from kbtui.knowledge.statements import statements
from kbtui.memory.recall.mentions import Mention, mentions, said_in, without, words_of
from kbtui.memory.records.archive import is_record
from kbtui.memory.records.committing import committed
from kbtui.memory.records.ranges import ranges_of
from kbtui.memory.records.tombstones import Source
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.history.change import Change
    from kbtui.history.history import History
    from kbtui.knowledge.library import Library
    from kbtui.memory.records.tombstones import Tombstones
    from kbtui.sessions.store import SessionStore
    from kbtui.workspace.layout import Workspace

_NOTES = ("memory/MEMORY.md", "USER.md", "SOUL.md")
_LEAST_WORDS = 2


@dataclass(frozen=True, slots=True)
class Match:
    """A line of a file that says what is to be forgotten; line 0 is an entry's summary."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What forgetting something would do.

    Attributes:
        text: What the person said.
        matches: What would be taken out.
        entries: The entries of which nothing would be left; they are deleted.
        sources: The messages that said it.
    """

    text: str
    matches: tuple[Match, ...]
    entries: tuple[str, ...]
    sources: tuple[Source, ...]

    @property
    def messages(self) -> int:
        """How many messages said it."""
        return sum(last - first + 1 for first, last in (each.messages for each in self.sources))

    @property
    def is_empty(self) -> bool:
        """Whether it was neither written nor said anywhere."""
        return not self.matches and not self.sources


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was done: the commits, the files changed, the entries deleted."""

    commits: tuple[str, ...]
    paths: tuple[str, ...]
    entries: tuple[str, ...]


class Forgetting:
    """Finds and removes; nothing is done before `forget`."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        library: Library,
        sessions: SessionStore,
        tombstones: Tombstones,
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._library = library
        self._sessions = sessions
        self._tombstones = tombstones

    def plan(self, text: str) -> ForgetPlan:
        """Look for all that says something, everywhere that is read from.

        Raises:
            UsageError: it names nothing to look for.
        """
        wanted = words_of(text)
        if not wanted:
            raise UsageError("There is nothing to forget.", "Say what: /forget my favorite color")
        matches: list[Match] = []
        empty: list[str] = []
        for path, data in self._files():
            found = mentions(data, wanted)
            matches += [Match(path, each.line, each.text) for each in found]
            if found and path.startswith("knowledge/") and not _says_anything(data, found):
                empty.append(path)
        facts = [words_of(match.text) for match in matches]
        if not facts and len(wanted) >= _LEAST_WORDS:
            facts = [wanted]
        sources = tuple(self._sources(facts)) if facts else ()
        return ForgetPlan(text, tuple(matches), tuple(empty), sources)

    def forget(self, plan: ForgetPlan) -> Forgotten:
        """Do what a plan says; lines that were changed since are looked at anew.

        Raises:
            ConflictError: the files kept changing; nothing is done.
            StorageError: the file system refused.
        """
        wanted = words_of(plan.text)
        paths = dict.fromkeys(match.path for match in plan.matches)
        facts = [plan.text, *(match.text for match in plan.matches)]

        def work(change: Change) -> None:
            for path in paths:
                data = self._read(path)
                if data is None or path in plan.entries:
                    continue
                rest = without(data, mentions(data, wanted))
                if rest != data:
                    change.write(path, rest, expecting=files.blob_id(data))
            self._tombstones.bury(change, facts, plan.sources, drop_messages=True)

        _, commit = committed(
            self._history,
            self._workspace.root,
            Actor.YOU,
            "You asked to forget it.",
            Origin(),
            work,
        )
        commits = [commit.id] if commit is not None else []
        commits += [self._library.delete(path).id for path in plan.entries]
        return Forgotten(tuple(commits), tuple(paths), plan.entries)

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Everything that is read from: notes, daily notes, entries that can be rewritten."""
        self._library.refresh()
        notes = sorted(self._workspace.memory.glob("[!.]*.md"))
        daily = [f"memory/{file.name}" for file in notes]
        entries = [info.path for info in self._library.infos() if info.problem is None]
        for path in dict.fromkeys([*_NOTES, *daily, *entries]):
            data = None if is_record(path) else self._read(path)
            if data is not None:
                yield path, data

    def _read(self, path: str) -> bytes | None:
        try:
            return files.read_bytes(self._workspace.root, path)
        except NotFoundError:
            return None

    def _sources(self, facts: list[frozenset[str]]) -> Iterator[Source]:
        for info in self._sessions.list():
            try:
                messages = self._sessions.read(info.id)
            except KbtuiError:
                continue
            for each in ranges_of(said_in(messages, facts)):
                yield Source(info.id, each)


def _says_anything(data: bytes, gone: list[Mention]) -> bool:
    rest = without(data, gone)
    return bool(statements(rest.decode("utf-8", "replace")))
