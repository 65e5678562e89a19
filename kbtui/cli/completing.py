"""What the shell offers after Tab: names of entries, out of the cache, without opening much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError

if TYPE_CHECKING:
    from pathlib import Path

    import click

_MOST = 200


def entry_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The names of entries that begin with, or whose slug begins with, what was typed."""
    from kbtui.knowledge.shelf import Shelf
    from kbtui.workspace.layout import find_workspace, open_workspace
    from kbtui.workspace.scan import Scanner

    named: Path | None = ctx.find_root().params.get("workspace")
    try:
        workspace = open_workspace(find_workspace(named))
        infos = Shelf(workspace, Scanner(workspace)).infos()
    except KbtuiError:
        return []
    typed = incomplete.casefold()
    names = [
        info.name
        for info in infos
        if info.name.casefold().startswith(typed) or info.slug.casefold().startswith(typed)
    ]
    return names[:_MOST]


def entry_types(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The types of entries."""
    from kbtui.knowledge.templates import ENTRY_TYPES

    return [name for name in ENTRY_TYPES if name.startswith(incomplete)]


def setting_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The names of settings."""
    from kbtui import settings

    return [name for name in settings.setting_names() if name.startswith(incomplete)]
