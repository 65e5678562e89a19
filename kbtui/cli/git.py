"""The bridge to git: the history, looked at with a real git."""

from __future__ import annotations

import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import click

from kbtui.cli.context import Place, pass_place
from kbtui.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

_READING = (
    *("annotate", "apply", "archive", "blame", "bundle", "cat-file", "count-objects", "describe"),
    *("diff", "diff-tree", "for-each-ref", "format-patch", "fsck", "grep", "help", "log"),
    *("ls-files", "ls-tree", "merge-base", "name-rev", "rev-list", "rev-parse", "shortlog", "show"),
    *("show-branch", "show-ref", "status", "var", "verify-pack", "version", "whatchanged"),
)
_OPTIONS_WITH_VALUE = frozenset({"-c", "-C", "--git-dir", "--work-tree", "--namespace"})
# Nothing that stands in the history's own folder, in the user's or in the system's settings runs.
_PLAIN = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "status.showUntrackedFiles=no"),
    *("-c", "gc.auto=0"),
)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--yes", is_flag=True, help="Let git change the history as well.")
@click.argument("arguments", metavar="ARGS...", nargs=-1, type=click.UNPROCESSED)
@pass_place
def git(place: Place, yes: bool, arguments: tuple[str, ...]) -> int:
    """Run git on the history, such as: kbtui git log -p.

    Commands that leave the history alone run as they are; others need --yes before them.
    """
    program = shutil.which("git")
    if program is None:
        raise NotFoundError("git is not installed.", "kbtui itself needs none: see `kbtui log`.")
    if not yes:
        _check_reads(arguments)
    with place.opened() as kb:
        if kb.history.head() is None:
            raise NotFoundError("There is no commit yet.")
        root, repository = kb.workspace.root, kb.workspace.repository
        # The history has no index of its own; git gets one in the cache.
        index = kb.workspace.cache / "git-index"
    environment = _environment(root, repository, index)
    subprocess.run(
        [program, *_PLAIN, "read-tree", "HEAD"],
        env=environment,
        cwd=root,
        check=False,
        stderr=subprocess.DEVNULL,
    )
    return _run([program, *_PLAIN, *arguments], environment, root)


def _run(command: list[str], environment: dict[str, str], root: Path) -> int:
    """Run a program that has the terminal; how it ended, as a shell says it.

    An interrupt is its own affair and its pager's: who left here would leave them behind.
    """
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        status = subprocess.run(command, env=environment, cwd=root, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)
    return status if status >= 0 else 128 - status


def _environment(root: Path, repository: Path, index: Path) -> dict[str, str]:
    from kbtui.history.objects.lineage import plain_environment

    return {
        **plain_environment(),
        "GIT_DIR": str(repository),
        "GIT_WORK_TREE": str(root),
        "GIT_INDEX_FILE": str(index),
    }


def _check_reads(arguments: tuple[str, ...]) -> None:
    """Refuse what could rewrite the history, or lead elsewhere."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option.partition("=")[0] in _OPTIONS_WITH_VALUE | {"--exec-path", "--config-env"}:
            raise UsageError(
                f"`git {option}` would lead git away from this history or change its settings.",
                "If that is meant: kbtui git --yes ...",
            )
    if rest and rest[0] not in _READING:
        raise UsageError(
            f"`git {rest[0]}` may change the history, and kbtui wouldn't know.",
            "Undo, restore and purge are kbtui's own. If git shall do it: kbtui git --yes ...",
        )
    writes = next((each for each in rest if each.startswith(("--output", "--ext-diff"))), None)
    if writes is not None:
        raise UsageError(f"`{writes}` writes or runs something.", "Use your shell: ... > FILE")
