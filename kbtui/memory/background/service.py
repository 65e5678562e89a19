"""Memory as the program's faces use it: what makes it, and what a person can ask of it.

The faces hold one of these, made by the composition root when it is first asked for. Making it
starts nothing; `start` brings the keeper to life.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError
from kbtui.memory.background.pipeline import Pipeline
from kbtui.memory.consolidation.consolidator import Outcome, Trigger
from kbtui.memory.recall.forget import Forgetting
from kbtui.memory.recall.remember import Remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.history.history import History
    from kbtui.knowledge.library import Library
    from kbtui.memory.records.archive import Archive
    from kbtui.memory.records.ledger import Audit
    from kbtui.models.roles import ModelRegistry
    from kbtui.search.search_index import SearchIndex
    from kbtui.sessions.store import SessionStore
    from kbtui.settings import Settings
    from kbtui.workspace.layout import Workspace

log = logging.getLogger(__name__)
CLOSE_SECONDS = 5.0


def _now() -> datetime:
    return datetime.now(UTC)


class Memory(Pipeline):
    """Everything that makes and keeps memory.

    Attributes:
        remembering: Keeps what a person says outright.
        forgetting: Finds and removes what a person wants forgotten.
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
        clock: Callable[[], datetime] | None = None,
        count_consolidated: Callable[[Archive], object] = lambda _archive: None,
    ) -> None:
        clock = clock or _now
        super().__init__(workspace, history, library, search, sessions, registry, settings, clock)
        self._workspace = workspace
        self._count_consolidated = count_consolidated
        self._sessions = sessions
        self._settings = settings
        self.remembering = Remembering(workspace, history, self.tombstones)
        self.forgetting = Forgetting(workspace, history, library, sessions, self.tombstones)

    def start(self) -> None:
        """Work in the background from now on."""
        if not self._workspace.writable:
            return
        self.count_old()
        self.keeper.start()

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Finish what was begun, for a while at most; what isn't done is done at another start."""
        self.keeper.close(timeout)

    def count_old(self) -> None:
        """Enter into the archive what nanobot had condensed; later, if that fails now."""
        try:
            self._count_consolidated(self.archive)
        except ConflictError as error:
            log.info("old sessions are entered later: %s", error)

    def audit(self) -> Audit:
        """What became of every message."""
        return self.ledger.account()

    def unfinished(self) -> list[str]:
        """The sessions of which something isn't archived yet, the oldest first."""
        infos = sorted(self._sessions.list(), key=lambda info: info.updated)
        return [info.id for info in infos if self.ledger.pending(info.id) is not None]

    async def consolidate_if_due(self, session: str, seconds: float) -> Outcome | None:
        """Condense a session if it is time to, for programs that end soon.

        Args:
            session: Its id.
            seconds: How long it may take; the rest is left for later.

        Returns:
            What became of it; None where it wasn't due, or took too long.
        """
        if not self._settings.memory.consolidate or not self._workspace.writable:
            return None
        await asyncio.to_thread(self.count_old)
        trigger = await asyncio.to_thread(self.consolidator.trigger, session)
        if trigger is None:
            return None
        try:
            async with asyncio.timeout(seconds):
                return await self.consolidator.run(
                    session, everything=trigger is Trigger.IDLE, trigger=trigger
                )
        except TimeoutError:
            log.info("condensing %s took too long; it is done later", session)
            return None
