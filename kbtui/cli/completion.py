"""Completion in shells: the script, and what is offered after Tab, out of the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kbtui.cli.output import say
from kbtui.errors import KbtuiError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

COMPLETION_VARIABLE = "_KBTUI_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")
_MOST = 200


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Write the script for completion in a shell.

    In bash: eval "$(kbtui completion bash)"
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:
        raise UsageError(f"There is no completion for {shell}.")
    root = ctx.find_root().command
    complete = maker(root, {}, "kbtui", COMPLETION_VARIABLE)
    # `source()` would look for the shell itself, which may be on another machine.
    say(complete.source_template % complete.source_vars())


def entry_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The names of entries that begin with, or whose slug begins with, what was typed."""
    from kbtui.knowledge.entry_index import EntryIndex
    from kbtui.workspace.opening import find_workspace, open_workspace
    from kbtui.workspace.scan import Scanner

    named: Path | None = ctx.find_root().params.get("workspace")
    try:
        workspace = open_workspace(find_workspace(named))
        infos = EntryIndex(workspace, Scanner(workspace)).infos()
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
