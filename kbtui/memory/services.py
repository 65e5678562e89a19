"""`Services`: the services of one workspace, for code that needs several of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kbtui.history.history import History
from kbtui.knowledge.library.library import Library
from kbtui.memory.records.archive import Archive, is_record
from kbtui.models.roles import ModelRegistry
from kbtui.search.search_index import SearchIndex
from kbtui.sessions.store import SessionStore
from kbtui.settings import Settings
from kbtui.views.view import Audience, NewerLines, View
from kbtui.workspace.layout import BOOTSTRAP_FILES, MEMORY, Workspace


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
    def notes(self) -> list[str]:
        """The paths of all that tells people something: MEMORY.md, notes of days, entries."""
        self.library.refresh()
        folder = self.workspace.memory
        names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.md"))
        kept = [f"memory/{name}" for name in names if "/." not in f"/{name}"]
        entries = [info.path for info in self.library.infos() if info.problem is None]
        notes = [path for path in kept if not is_record(path)]
        return [*dict.fromkeys([MEMORY, *BOOTSTRAP_FILES, *notes, *entries])]

    @property
    def for_memory(self) -> View:
        """The workspace as memory may tell of it, readable by any model."""
        return self.seen_by(Audience.MODEL_ELSEWHERE)
