"""`Services`: the services of one workspace, for code that needs several of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kbtui.history.history import History
from kbtui.knowledge.library.library import Library
from kbtui.memory.records.archive import Archive
from kbtui.models.roles import ModelRegistry
from kbtui.search.search_index import SearchIndex
from kbtui.sessions.store import SessionStore
from kbtui.settings import Settings
from kbtui.views.view import Audience, NewerLines, View
from kbtui.workspace.layout import Workspace


@dataclass(frozen=True, slots=True)
class Services:
    """The services of one open workspace."""

    workspace: Workspace
    settings: Settings
    history: History
    library: Library
    search: SearchIndex
    sessions: SessionStore
    models: ModelRegistry
    archive: Archive
    find_newer: Callable[[], NewerLines]

    @property
    def newer(self) -> NewerLines:
        """The lines that hold instead of older ones, which few commands ask for."""
        return self.find_newer()

    def seen_by(self, audience: Audience) -> View:
        """Return the workspace as an audience may see it."""
        return View(self, audience)

    @property
    def for_memory(self) -> View:
        """The workspace as memory may tell of it, readable by any model."""
        return self.seen_by(Audience.MODEL_ELSEWHERE)
