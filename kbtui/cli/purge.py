"""A leaked secret out of everything."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import Place as Where
from kbtui.cli.context import json_option, pass_place
from kbtui.cli.output import note, say, say_json
from kbtui.errors import UsageError

if TYPE_CHECKING:
    from kbtui.maintenance.purge import Purged, Purging

_SHOWN = 20


@click.command()
@click.argument("text", required=False)
@click.option("--dry-run", is_flag=True, help="Show where it stands, and change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--count", type=int, help="How often it stands there; needed for a common word.")
@click.option("--delete-binaries", is_flag=True, help="Delete files that can't be rewritten.")
@json_option
@pass_place
def purge(
    place: Where,
    text: str | None,
    dry_run: bool,
    yes: bool,
    count: int | None,
    delete_binaries: bool,
    as_json: bool,
) -> int:
    """Remove a secret from history, notes, conversations, logs.

    Without TEXT it is asked for, or read from standard input, so that it needn't stand in your
    shell's history. Close the app first. Exits with 1 if it stands nowhere, or still somewhere.
    """
    from kbtui.workspace.secret import Secret

    secret = Secret(text if text is not None else _asked())
    purging = _opened(place)
    if dry_run or not (yes or as_json or not sys.stdin.isatty()):
        found = purging.find(secret)
        _show(found, as_json=as_json and dry_run)
        if dry_run or not (found.found or found.objects):
            return 0 if found.found or found.objects else 1
        click.confirm("Remove it for good?", abort=True, err=True)
    done = purging.run(secret, _tell, confirmed=count, delete_binaries=delete_binaries)
    return _report(done, as_json=as_json)


def _opened(place: Where) -> Purging:
    """The history alone: nothing that would keep what it has read in a cache."""
    from kbtui.history.history import History
    from kbtui.maintenance.purge import Purging
    from kbtui.workspace.opening import find_workspace, open_workspace
    from kbtui.workspace.scan import Scanner

    workspace = open_workspace(find_workspace(place.named))
    history = History(workspace, Scanner(workspace))
    history.open()
    return Purging(workspace, history)


def _asked() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("What is to be removed", hide_input=True, err=True))
    text = sys.stdin.read().rstrip("\r\n")
    if not text:
        raise UsageError("There is nothing to remove.", "Give the secret on standard input.")
    return text


def _report(done: Purged, *, as_json: bool) -> int:
    nowhere = not done.found and not done.objects
    if as_json:
        say_json(_shape(done))
    elif nowhere:
        note("It stands nowhere.")
    else:
        say(
            f"Removed from {done.objects:,} objects of the history ({done.commits:,} commits"
            f" written anew) and {len(done.found):,} files."
        )
    if not nowhere:
        note("Change the key or password itself: it may have been seen.")
    if done.epoch is not None:
        note(
            "If you sync: `kbtui sync` now replaces the history there, and clears it out of a"
            " folder. Other machines have to start from a new workspace; theirs still have the"
            " secret, and so may a server, forks and backups."
        )
    for line in done.left:
        note(f"kbtui: Not removed: {line}")
    return 1 if nowhere or any("not looked at" not in line for line in done.left) else 0


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        note(f"{text} ...")


def _show(found: Purged, *, as_json: bool) -> None:
    if as_json:
        say_json(_shape(found))
        return
    for each in found.found[:_SHOWN]:
        say(f"{each.count:>5}  {each.name}")
    if len(found.found) > _SHOWN:
        say(f"       and {len(found.found) - _SHOWN:,} more files")
    if found.objects:
        say(f"{found.objects:>5}  objects of the history")
    if not found.found and not found.objects:
        note("It stands nowhere.")


def _shape(done: Purged) -> dict[str, Any]:
    return {
        "files": [{"path": each.name, "count": each.count} for each in done.found],
        "objects": done.objects,
        "commits": done.commits,
        "epoch": done.epoch,
        "left": list(done.left),
    }
