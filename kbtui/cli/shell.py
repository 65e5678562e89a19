"""The bridges to other programs: completion for shells, the history for git."""

from __future__ import annotations

import os
import shutil
import subprocess

import click

from kbtui.cli.context import Place, pass_place
from kbtui.cli.output import say
from kbtui.errors import NotFoundError, UsageError

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


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("arguments", metavar="ARGS...", nargs=-1, type=click.UNPROCESSED)
@pass_place
def git(place: Place, arguments: tuple[str, ...]) -> int:
    """Run git on the history, such as: kbtui git log -p."""
    program = shutil.which("git")
    if program is None:
        raise NotFoundError("git is not installed.", "kbtui itself needs none: see `kbtui log`.")
    with place.opened() as kb:
        if kb.history.head() is None:
            raise NotFoundError("There is no commit yet.")
        root, repository = kb.workspace.root, kb.workspace.repository
        # The history has no index of its own; git gets one in the cache.
        index = kb.workspace.cache / "git-index"
    environment = {
        **os.environ,
        "GIT_DIR": str(repository),
        "GIT_WORK_TREE": str(root),
        "GIT_INDEX_FILE": str(index),
    }
    subprocess.run(
        [program, "read-tree", "HEAD"],
        env=environment,
        cwd=root,
        check=False,
        stderr=subprocess.DEVNULL,
    )
    # What the history doesn't keep (conversations, documents) isn't forgotten, it is elsewhere.
    command = [program, "-c", "status.showUntrackedFiles=no", *arguments]
    return subprocess.run(command, env=environment, cwd=root, check=False).returncode
