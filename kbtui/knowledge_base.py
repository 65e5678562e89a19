"""The composition root: opens a workspace and wires the packages together.

The app, the command line and every other front end hold a `KnowledgeBase` and nothing else. Opening
one starts no thread; `start` adds the background services of a long-running front end. Services
that not every command needs are imported and created on first access.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kbtui.clock import local_now
from kbtui.errors import ConflictError, KbtuiError, NotFoundError, StorageError
from kbtui.history.history import History, OutsideEdits
from kbtui.knowledge.library.library import Library
from kbtui.logs import start_logging
from kbtui.settings import Settings, load_settings
from kbtui.workspace.files import why_closed
from kbtui.workspace.opening import (
    can_become_workspace,
    check_first_opening,
    create_workspace,
    find_workspace,
    note_opened,
    open_workspace,
)
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from kbtui.agent.agent import Agent
    from kbtui.agent.keeping import Keeping
    from kbtui.history.change import Change, Changed
    from kbtui.maintenance.check import Checking
    from kbtui.maintenance.doctor import DoctorFinding
    from kbtui.maintenance.sync import Syncing
    from kbtui.memory.background.service import Memory
    from kbtui.memory.consolidation.due import Due
    from kbtui.memory.recall.agenda import Agenda
    from kbtui.memory.recall.names import NameIndex
    from kbtui.memory.recall.newer import Newer
    from kbtui.memory.recall.provenance import Provenance
    from kbtui.memory.recall.remembered import Remembering
    from kbtui.memory.records.archive import Archive, Tombstones
    from kbtui.memory.records.journal import Journal
    from kbtui.memory.services import Services
    from kbtui.models.roles import ModelRegistry
    from kbtui.search.detached import DetachedWorker
    from kbtui.search.search_index import SearchIndex
    from kbtui.sessions.store import SessionStore
    from kbtui.views.view import Audience, View
    from kbtui.workspace.layout import Workspace

log = logging.getLogger(__name__)


class KnowledgeBase:
    """An open workspace and its services.

    `notices` are sentences for the user about problems found so far; `on_notice` is called with
    each new one, in the thread that found it.
    """

    def __init__(
        self, workspace: Workspace, settings: Settings, clock: Callable[[], datetime] = local_now
    ) -> None:
        self._clock = clock
        self.workspace = workspace
        self.settings = settings
        self.notices: list[str] = []
        self.on_notice: Callable[[str], None] = lambda _notice: None
        self._undoes = False
        largest = int(settings.sync.attachment_megabytes * 2**20)
        self._scanner = Scanner(workspace, largest=largest)
        self.history = History(workspace, self._scanner, clock)
        self.library = Library(
            workspace,
            self.history,
            self._scanner,
            private_paths=settings.privacy.private_paths,
            now=clock,
        )
        self._outside = OutsideEdits(
            lambda: self._adopt(timeout=5.0, whole=True), self.history.tidy, self._log_problem
        )
        self._opened = ExitStack()  # closes services in reverse order of their creation
        self._opened.callback(self.library.close)
        self._opened.callback(self._outside.close)

    def seen_by(self, audience: Audience) -> View:
        """Return the workspace restricted to what an audience may see."""
        from kbtui.views.view import View

        return View(self, audience)

    @cached_property
    def search(self) -> SearchIndex:
        """The search index of entries, memory, documents and sessions."""
        from kbtui.search.search_index import PrivacyFilter, SearchIndex

        search = SearchIndex(
            self.workspace,
            self._scanner,
            self.settings.search,
            self.settings.models.embed,
            tree_at=self._texts_at,
            privacy=PrivacyFilter(
                self.workspace,
                self.library.is_private,
                lambda session: bool(self.due.pending.conversation(session).withheld),
            ),
            start_detached=self.detached_worker.start,
        )
        self.history.subscribe(lambda changed: search.refresh(changed.all_paths))
        self._opened.callback(search.close)
        return search

    @cached_property
    def detached_worker(self) -> DetachedWorker:
        """The background process that prepares semantic search and outlives a command."""
        from kbtui.search.detached import DetachedWorker

        return DetachedWorker(self.workspace, self.settings.search, self.settings.models.embed)

    @cached_property
    def sessions(self) -> SessionStore:
        """The store of conversations."""
        from kbtui.sessions.store import SessionStore

        sessions = SessionStore(self.workspace, self._utc)
        self._opened.callback(sessions.close)
        return sessions

    @cached_property
    def models(self) -> ModelRegistry:
        """The chat models by role."""
        from kbtui.models.roles import ModelRegistry

        return ModelRegistry(self.settings)

    @cached_property
    def archive(self) -> Archive:
        """The archive of condensed conversations."""
        from kbtui.memory.records.archive import Archive

        return Archive(self.workspace, self.history)

    @cached_property
    def services(self) -> Services:
        """The services as one object, for code that needs several of them."""
        from kbtui.memory.services import Services

        return Services(
            self.workspace,
            self.settings,
            self.history,
            self.library,
            self.search,
            self.sessions,
            self.models,
            self.archive,
            lambda: self.newer,
        )

    @cached_property
    def newer(self) -> Newer:
        """The lines that hold instead of older ones."""
        from kbtui.memory.recall.newer import Newer

        newer = Newer(
            self.workspace,
            self.history,
            self.sessions,
            self._clock,
            self.search.pause.wait,
        )
        self.history.subscribe(lambda _changed: newer.wake())
        self._opened.callback(newer.close)
        return newer

    @cached_property
    def agent(self) -> Agent:
        """The agent, which runs turns of conversation."""
        from kbtui.agent.agent import Agent

        agent = Agent(self.services)
        agent.find_editor = lambda: self.memory.editor
        agent.find_names = lambda: self.names
        agent.paid = self._count_cost
        agent.find_keeping = lambda: self.keeping
        return agent

    @cached_property
    def keeping(self) -> Keeping:
        """The store of what the user states, without a model."""
        from kbtui.agent.keeping import Keeping

        return Keeping(self.library, self.journal, self._remembering, self._clock)

    def _count_cost(self, usd: float) -> None:
        self.memory.budget.record_conversation(usd)

    @cached_property
    def journal(self) -> Journal:
        """The journal of the user's statements by day."""
        from kbtui.memory.records.journal import Journal

        return Journal(
            self.workspace,
            self.history,
            self.library,
            self.tombstones,
            in_daily_notes={"daily": True, "own": False}.get(self.settings.memory.journal),
        )

    def agenda(self) -> Agenda:
        """Read all open tasks and dated lines, private ones included; run in a thread."""
        from kbtui.memory.recall.agenda import agenda_of

        return agenda_of(self.library, self.journal)

    @cached_property
    def names(self) -> NameIndex:
        """The index of names in the user's statements."""
        from kbtui.memory.recall.names import NameIndex

        return NameIndex(self.workspace, self.library, self.journal)

    @cached_property
    def tombstones(self) -> Tombstones:
        """What was forgotten."""
        from kbtui.memory.records.archive import Tombstones

        return Tombstones(self.workspace, self.history)

    @cached_property
    def _remembering(self) -> Remembering:
        from kbtui.memory.recall.remembered import Remembering

        most_tokens = self.settings.context.memory_tokens
        return Remembering(self.workspace, self.history, self.tombstones, most_tokens)

    @cached_property
    def due(self) -> Due:
        """What is due to be condensed."""
        from kbtui.memory.consolidation.due import Due, Pending

        pending = Pending(self.workspace, self.services.for_memory, self.archive, self.tombstones)
        return Due(pending, self.settings, self._utc, self.agent.session_room)

    @cached_property
    def memory(self) -> Memory:
        """The memory service: background work, remembering, forgetting, the inbox."""
        from kbtui.memory.background.service import Memory

        memory = Memory(self.services, self.due, self._remembering, self._utc, self._count_old)
        self._opened.callback(memory.close)
        return memory

    def has_due(self, session: str) -> bool:
        """Return whether a session, or an abandoned one, is due to be condensed.

        It takes a fraction of what creating the memory service does.
        """
        if not self.settings.memory.consolidate or not self.workspace.writable:
            return False
        self._count_old()
        if self.due.trigger(session) is not None:
            return True
        return any(each != session for each in self.due.abandoned(self.sessions))

    def _count_old(self) -> None:
        """Record in the archive what nanobot had condensed; retried later if that fails now."""
        from kbtui.importers.sources.nanobot_condensed import count_consolidated

        try:
            count_consolidated(self.workspace, self.history, self.archive)
        except ConflictError as error:
            log.info("old sessions are entered later: %s", error)

    def _utc(self) -> datetime:
        return self._clock().astimezone(UTC)

    @cached_property
    def syncing(self) -> Syncing:
        """Synchronization with other machines."""
        from kbtui.maintenance.sync import Syncing

        return Syncing(
            self.workspace,
            self.history,
            self.library,
            lambda: self.memory.inbox,
            self._scanner.too_large,
            self.settings.sync,
            self.archive,
        )

    @cached_property
    def checking(self) -> Checking:
        """The integrity check."""
        from kbtui.maintenance.check import Checking

        memory = self.memory
        return Checking(
            self.workspace,
            self.history,
            self.library,
            self._scanner,
            memory.inbox,
            memory.tombstones,
            memory.audit,
        )

    @cached_property
    def provenance(self) -> Provenance:
        """The provenance of lines; it doesn't need the memory service."""
        from kbtui.memory.recall.provenance import Provenance

        return Provenance(self.workspace, self.history, self.archive, self.sessions)

    @classmethod
    def open(
        cls,
        root: Path | None = None,
        *,
        create: bool = False,
        overrides: Mapping[str, Any] | None = None,
        starts: bool = False,
        clock: Callable[[], datetime] = local_now,
    ) -> Self:
        """Open a workspace: recover from a crash, then record outside edits.

        Args:
            root: The folder; None finds it as the command line does.
            create: Create the workspace if it doesn't exist.
            overrides: Settings that override all sources.
            starts: Whether `start` will be called. If so, outside edits of a workspace in place are
                recorded there, and thousands of new notes don't delay the opening; until then the
                door records each file before changing it.
            clock: Returns the current time, timezone-aware; the demo sets it to write a past.

        Raises:
            WorkspaceError: There is no workspace, or it can't be used.
            WorkspaceGoneError: There was one, of which only the folder is left.
            ConfigurationError: A setting is invalid.
        """
        is_init = root is not None and create
        place = root if root is not None and create else find_workspace(root)
        if not is_init and can_become_workspace(place):
            check_first_opening(place)
        workspace = (
            create_workspace(place)
            if create or can_become_workspace(place)
            else open_workspace(place)
        )
        settings = load_settings(workspace.root, overrides=overrides)
        start_logging(settings.log.level)
        note_opened(workspace)
        kb = cls(workspace, settings, clock)
        kb._prepare(adopts_later=starts and workspace.in_place)
        return kb

    def load(self) -> None:
        """Create all services in this thread, so that the event loop never has to."""
        from kbtui.agent.tools.toolbox import own_tools

        _ = self.agent, self.memory, self.newer, own_tools()

    def start(self) -> None:
        """Start the background services: indexing, watching files, outside edits, memory."""
        self._outside.start()
        self.search.on_outside_edit = self._outside.hint
        self.search.start()
        self.newer.start()
        self.memory.start()

    def subscribe(self, listener: Callable[[Changed], None]) -> Callable[[], None]:
        """Call `listener` after each commit, in the writing thread; return an unsubscriber."""
        return self.history.subscribe(listener)

    def doctor(self) -> list[DoctorFinding]:
        """Return a report of what is installed, reachable, indexed, and broken."""
        from kbtui.maintenance.doctor import examine

        return examine(
            self.workspace,
            self.settings,
            self.history,
            self.library,
            self.search,
            self.models,
            {self.workspace.file(path): why for path, why in self.library.left_out().items()},
            self._scanner.too_large(),
        )

    def close(self) -> None:
        """Stop the background services and flush pending writes."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _adopt(self, timeout: float = 0.2, *, whole: bool = False) -> None:
        """Record outside edits and note files that can't be; raises as `History.adopt`."""
        self.history.adopt(timeout=timeout, whole=whole)
        if left_out := self.library.left_out():
            path, why = next(iter(left_out.items()))
            more = f", and {len(left_out) - 1} more" if len(left_out) > 1 else ""
            self._note(
                f"Left out of the history: {self.workspace.file(path)} ({why}){more}."
                " `kbtui check` tells what to do."
            )

    def _prepare(self, *, adopts_later: bool) -> None:
        """Reconcile history and files before anything is read or written."""
        if why := why_closed(self.workspace.sessions):
            self._note(f"The conversations in {self.workspace.sessions} can't be read: {why}.")
        if not self.workspace.writable:
            self._note("The workspace is read-only: nothing can be changed.")
            return
        from kbtui.maintenance.migrate import bring_up_to_date, keep_old_index

        is_new = self.history.head() is None
        self._try(self.history.open)
        self._try(lambda: keep_old_index(self.workspace))
        if not adopts_later:
            self._try(self._adopt)
        self.history.add_companion(self._add_tombstones)
        self.history.subscribe(self._restore_forgotten)

        def bring() -> None:
            for notice in bring_up_to_date(self.workspace, self.history, is_new=is_new):
                self._note(notice)

        self._try(bring)

    def _try(self, work: Callable[[], object]) -> None:
        """Run a step of opening, turning errors into notices so that reading always works.

        If the history is damaged or the disk is full, later writes fail at the door.
        """
        try:
            work()
        except (ConflictError, NotFoundError) as problem:
            self._log_problem(problem)
        except StorageError as problem:
            log.warning("%s", problem)
            self._note(f"Only reading works now. {problem}")

    def _add_tombstones(self, change: Change) -> None:
        """Bury facts that an undo or a restore removes, so that they aren't written again."""
        if change.is_restoration:
            self._undoes = self.tombstones.companion(change)

    def _restore_forgotten(self, changed: Changed) -> None:
        """Restore session logs if an undo reverted a `forget`."""
        if not self._undoes:
            return
        self._undoes = False
        commit = self.history.commit(changed.commit)
        for session in self.tombstones.restore_sessions(commit, self.sessions):
            self.search.refresh([f"sessions/{session}.jsonl"])

    def _log_problem(self, problem: KbtuiError) -> None:
        log.warning("%s", problem)
        self._note(str(problem))

    def _note(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)
            self.on_notice(notice)

    def _texts_at(self, rev: str) -> Iterator[tuple[str, bytes]]:
        commit = self.history.resolve(rev)
        for path, blob in self.history.tree(commit).items():
            yield path, self.history.read_blob(blob)
