"""The switcher: which of the workspaces that are known here to go to."""

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
from kbtui.tui.widgets.title_row import folder_said
from kbtui.workspace.opening import (
    KnownWorkspace,
    belongs_to_other_program,
    can_become_workspace,
    find_workspace,
    known_workspaces,
    open_workspace,
)


async def choose(app: App[None], here: Path | None, typed: str) -> Path | None:
    """Ask for a workspace; None where nobody wants another one.

    Args:
        app: Who asks.
        here: The one that is open.
        typed: A folder or a part of a known one's path, so that nobody need be asked.
    """
    known = await asyncio.to_thread(known_workspaces)
    others = [each for each in known if each.is_there and each.path != here]
    if not typed:
        choices = [_choice(each) for each in others]
        typed = await pick(app, "Go to which workspace?", choices, new="a folder") or ""
    return await asyncio.to_thread(_meant, typed, others) if typed else None


def _meant(typed: str, others: Sequence[KnownWorkspace]) -> Path:
    """The folder of that name, else the one known workspace whose path has it in it."""
    named = Path(typed).expanduser().absolute()
    near = [each.path for each in others if typed.casefold() in str(each.path).casefold()]
    return near[0] if len(near) == 1 and not named.is_dir() else named


def openable(folder: Path) -> str:
    """What is wrong with going there, in a sentence; empty where nothing is."""
    try:
        place = find_workspace(folder)
        if not can_become_workspace(place):
            open_workspace(place)
    except KbtuiError as error:
        return str(error)
    return ""


def passed_over(opened: Path) -> str:
    """What to say where somebody starts in another program's vault, and it isn't what is opened."""
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


def _choice(known: KnownWorkspace) -> Choice[str]:
    return Choice(folder_said(known.path), format_time(known.used), str(known.path))
