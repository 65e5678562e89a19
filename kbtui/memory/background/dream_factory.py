"""Puts Dream together out of the parts that make memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kbtui.memory.dream.dream import Dream
from kbtui.memory.dream.reading import Reader
from kbtui.memory.dream.working_copy import Surroundings
from kbtui.memory.dream.writing import Writer
from kbtui.memory.edits.authorship import Authorship
from kbtui.memory.edits.subjects import Subjects
from kbtui.memory.records.cursors import Cursors

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from kbtui.history.history import History
    from kbtui.knowledge.library import Library
    from kbtui.memory.background.models import BackgroundModels
    from kbtui.memory.consolidation.pending import Pending
    from kbtui.memory.inbox.inbox import Inbox
    from kbtui.memory.records.archive import Archive
    from kbtui.memory.records.lock import MemoryLock
    from kbtui.memory.records.tombstones import Tombstones
    from kbtui.search.search_index import SearchIndex
    from kbtui.settings import Settings
    from kbtui.workspace.layout import Workspace


class Parts(Protocol):
    """What Dream shares with whatever else makes memory."""

    archive: Archive
    tombstones: Tombstones
    inbox: Inbox
    pending: Pending
    lock: MemoryLock
    models: BackgroundModels


def make_dream(
    parts: Parts,
    workspace: Workspace,
    history: History,
    library: Library,
    search: SearchIndex | None,
    settings: Settings,
    clock: Callable[[], datetime],
) -> Dream:
    """Make the Dream of a workspace; that starts nothing."""
    cursors = Cursors(workspace, history)
    around = Surroundings(
        workspace.root, library, Subjects(library, search), Authorship(history), parts.tombstones
    )
    return Dream(
        Reader(history, library, parts.archive, cursors, search),
        Writer(workspace, history, library, parts.archive, cursors, parts.inbox),
        around,
        parts.pending,
        parts.lock,
        lambda: parts.models.get("dream"),
        settings,
        clock,
    )
