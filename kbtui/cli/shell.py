"""The bridge to shells: completion."""

from __future__ import annotations

import click

from kbtui.cli.output import say
from kbtui.errors import UsageError

COMPLETION_VARIABLE = "_KBTUI_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


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
