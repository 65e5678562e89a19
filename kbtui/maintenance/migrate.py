"""Bring older workspaces up to date when they are opened: done once, and cheap to skip."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.knowledge.shipped_skills import install_skills
from kbtui.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.history.history import History
    from kbtui.workspace.layout import Workspace

log = logging.getLogger(__name__)


def bring_up_to_date(workspace: Workspace, history: History) -> list[str]:
    """Convert old sessions, migrate an old HISTORY.md, and install the shipped skills.

    What can't be done now, for instance because somebody else is writing, is tried again the next
    time.

    Returns:
        What a person should know, one sentence each.
    """
    notices: list[str] = []
    for step in (_convert_sessions, _migrate_archive, _install_skills):
        notices += _tried(step, workspace, history)
    return notices


def _tried(
    step: Callable[[Workspace, History], list[str]], workspace: Workspace, history: History
) -> list[str]:
    try:
        return step(workspace, history)
    except KbtuiError as error:
        log.warning("tried again at the next start: %s", error)
        return []


def _convert_sessions(workspace: Workspace, _history: History) -> list[str]:
    if next(workspace.sessions.glob("[!.]*.json"), None) is None:
        return []
    from kbtui.importers.nanobot_sessions import convert_sessions

    done = convert_sessions(workspace)
    count = sum(each.session is not None for each in done)
    notices = [f"{each.file}: {problem}" for each in done for problem in each.problems]
    if count:
        plural = "s are" if count > 1 else " is"
        notices.insert(0, f"{count} old session{plural} converted; the originals are beside them.")
    return notices


def _migrate_archive(workspace: Workspace, history: History) -> list[str]:
    memory = workspace.memory
    if not (memory / "HISTORY.md").is_file() or (memory / "history.jsonl").is_file():
        return []
    from kbtui.memory.records.archive import Archive

    count = Archive(workspace, history).migrate()
    if not count:
        return []
    archived = counted(count, "entry", "entries")
    return [f"HISTORY.md is now an archive of {archived}; a copy is in HISTORY.md.bak."]


def _install_skills(workspace: Workspace, history: History) -> list[str]:
    install_skills(workspace, history)
    return []
