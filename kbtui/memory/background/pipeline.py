"""Everything that makes memory of conversations, wired together for one workspace."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kbtui.memory.background.budget import Allowance
from kbtui.memory.background.dream_factory import make_dream
from kbtui.memory.background.dream_job import DREAMING, DreamJob
from kbtui.memory.background.models import BackgroundModels
from kbtui.memory.background.session_job import SessionWork
from kbtui.memory.background.worker import Keeper
from kbtui.memory.consolidation.consolidator import Consolidator
from kbtui.memory.consolidation.flusher import MemoryFlusher
from kbtui.memory.consolidation.page_writer import MemoryWriter
from kbtui.memory.consolidation.pending import Pending
from kbtui.memory.consolidation.session_notes import SessionMemoryWriter
from kbtui.memory.dream.log import DreamLog
from kbtui.memory.edits.editor import Editor
from kbtui.memory.edits.subjects import Subjects
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.archive import Archive
from kbtui.memory.records.ledger import Ledger
from kbtui.memory.records.lock import MemoryLock
from kbtui.memory.records.tombstones import Tombstones

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.history.history import History
    from kbtui.knowledge.library import Library
    from kbtui.memory.background.budget import MeteredModel
    from kbtui.memory.dream.report import DreamProgress
    from kbtui.models.roles import ModelRegistry
    from kbtui.search.search_index import SearchIndex
    from kbtui.sessions.store import SessionStore
    from kbtui.settings import Settings
    from kbtui.workspace.layout import Workspace


class Pipeline:
    """The parts that make memory. Building them starts nothing.

    Attributes:
        archive: What was condensed.
        ledger: What became of every message.
        tombstones: What must not be remembered again.
        inbox: What a person must decide on.
        editor: Writes facts into files, for whoever has some.
        pending: What isn't condensed yet.
        lock: One writer of memory at a time, over all processes.
        allowance: What background work may cost.
        models: The models that it may use.
        consolidator: Condenses conversations.
        flusher: Takes the notes of the day.
        session_notes: Writes the file of an ended session.
        dream: Curates the lasting files by what is new in the archive.
        dream_log: What it did.
        keeper: Runs all that in the background, once it is started.
    """

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        library: Library,
        search: SearchIndex | None,
        sessions: SessionStore,
        registry: ModelRegistry,
        settings: Settings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        memory = settings.memory
        self.archive = Archive(workspace, history)
        self.tombstones = Tombstones(workspace, history)
        self.ledger = Ledger(sessions, self.archive, history, self.tombstones)
        history.add_companion(self.tombstones.companion)
        self.inbox = Inbox(workspace, history, self.tombstones)
        self.pending = Pending(workspace, library, self.archive, self.tombstones)
        self.lock = MemoryLock(workspace)
        self.allowance = Allowance(settings.budget.daily_usd)
        self.models = BackgroundModels(registry, settings, self.allowance)
        subjects = Subjects(library, search)
        self.editor = Editor(workspace, history, library, self.inbox, self.tombstones, subjects)
        writer = MemoryWriter(
            workspace,
            history,
            library,
            self.archive,
            self.inbox,
            self.tombstones,
            subjects,
        )

        def model() -> MeteredModel:
            return self.models.get("consolidate")

        self.consolidator = Consolidator(
            self.pending, library, writer, self.lock, model, settings, clock
        )
        self.flusher = MemoryFlusher(
            workspace, history, self.pending, self.tombstones, self.lock, model, memory.flush
        )
        self.session_notes = SessionMemoryWriter(
            workspace, history, self.pending, self.lock, model, memory.session_notes
        )
        work = SessionWork(self.pending, self.consolidator, self.flusher, self.session_notes)
        self.keeper = Keeper(sessions, work, self.consolidator, self.allowance, memory, clock)
        self.dream = make_dream(self, workspace, history, library, search, settings, clock)
        self.dream_log = DreamLog(history)
        self.keeper.add_job(
            DreamJob(self.dream, history, settings.dream.interval_hours, clock, self.dreaming)
        )

    def dreaming(self, progress: DreamProgress) -> None:
        """Let the keeper tell how far a run of Dream's is; for ``Dream.run(on_progress=...)``."""
        self.keeper.progressed(DREAMING, progress.text, progress.step, progress.steps)
