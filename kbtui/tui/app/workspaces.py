"""Switching to another workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from textual.app import App

from kbtui.errors import KbtuiError
from kbtui.presentation.times import format_time
from kbtui.text import clean_line
from kbtui.tui.widgets.dialogs import pick
from kbtui.tui.widgets.row_list import Choice
from kbtui.tui.widgets.title_row import folder_text
from kbtui.workspace.opening import (
    KnownWorkspace,
    belongs_to_other_program,
    can_become_workspace,
    find_workspace,
    known_workspaces,
    open_workspace,
)


async def choose(app: App[None], here: Path | None, typed: str) -> Path | None:
    """Let the user choose a workspace; return None if they cancel.

    Args:
        app: The app to show the dialog in.
        here: The root of the open workspace.
        typed: A folder, or part of a known workspace's path, to skip the dialog; may be empty.
    """
    known = await asyncio.to_thread(known_workspaces)
    others = [each for each in known if each.is_there and each.path != here]
    if not typed:
        choices = [_to_choice(each) for each in others]
        typed = await pick(app, "Go to which workspace?", choices, new="a folder") or ""
    return await asyncio.to_thread(_resolve, typed, others) if typed else None


def _resolve(typed: str, others: Sequence[KnownWorkspace]) -> Path:
    """Return the folder `typed`, or the only known workspace whose path contains it."""
    named = Path(typed).expanduser().absolute()
    matches = [each.path for each in others if typed.casefold() in str(each.path).casefold()]
    return matches[0] if len(matches) == 1 and not named.is_dir() else named


def opening_problem(folder: Path) -> str:
    """Return why `folder` can't be opened, or "" if it can."""
    try:
        place = find_workspace(folder)
        if not can_become_workspace(place):
            open_workspace(place)
    except KbtuiError as error:
        return str(error)
    return ""


def vault_notice(opened: Path) -> str:
    """Return a notice if the app was started in a vault that isn't the workspace it opened."""
    try:
        here = Path.cwd()
        if opened in (here, *here.parents) or not (
            belongs_to_other_program(here) and can_become_workspace(here)
        ):
            return ""
    except OSError:
        return ""
    return (
        f"The notes of this folder, {clean_line(here.name)}, aren't open: this is your own"
        " workspace. /workspaces . uses them where they lie."
    )


def _to_choice(known: KnownWorkspace) -> Choice[str]:
    return Choice(folder_text(known.path), format_time(known.used), str(known.path))
