"""Taking back what was changed: undo, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kbtui.cli.completion import entry_names
from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.entries import recorded_path
from kbtui.cli.history import print_patch
from kbtui.cli.output import note, say, say_json
from kbtui.errors import UndoConflictError, UsageError
from kbtui.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kbtui.history.looking.diff import FileDiff
    from kbtui.history.merging.line_merge import Conflict, Resolution
    from kbtui.history.objects.commit import Commit
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.workspace.layout import Layout

_ROUNDS = 5


@click.command()
@click.argument("rev", required=False)
@click.option("--hunk", metavar="N", type=click.IntRange(1), help="Only the Nth hunk of it.")
@click.option("--path", "paths", metavar="PATH", multiple=True, help="Only this file of it.")
@click.option("--turn", metavar="ID", help="Undo all that one turn of conversation changed.")
@click.option("--batch", metavar="ID", help="Undo all of one import, or of one run of Dream's.")
@click.option(
    "--prefer",
    type=click.Choice(["now", "before"]),
    help="Where a line was changed again: keep what stands there now, or what was before.",
)
@json_option
@pass_place
def undo(
    place: Place,
    rev: str | None,
    hunk: int | None,
    paths: tuple[str, ...],
    turn: str | None,
    batch: str | None,
    prefer: str | None,
    as_json: bool,
) -> None:
    """Take back exactly one change; later ones stay."""
    if sum(name is not None for name in (rev, turn, batch)) != 1:
        raise UsageError(
            "Undo needs one change.",
            "Name it by its id from `kbtui log`, or by --turn ID or --batch ID.",
        )
    if rev is None and (hunk is not None or paths):
        raise UsageError(
            "--hunk and --path take a part of one commit, not of a turn or a batch.",
            "Name the commit by its id: `kbtui log` lists those of a turn one below the other.",
        )
    with place.opened() as kb:
        work = _undo_of(kb, rev, paths, hunk, turn, batch)
        try:
            commit = _preferring(work, prefer) if prefer else work({})
        except UndoConflictError as error:
            print_conflicts(error, kb.workspace)
            raise
    say_commit(commit, kb.workspace, as_json=as_json)


def _undo_of(
    kb: KnowledgeBase,
    rev: str | None,
    paths: tuple[str, ...],
    hunk: int | None,
    turn: str | None,
    batch: str | None,
) -> Callable[[Mapping[Conflict, Resolution]], Commit]:
    if turn is not None:
        return lambda decisions: kb.history.undo_turn(turn, decisions=decisions)
    if batch is not None:
        return lambda decisions: kb.history.undo_batch(batch, decisions=decisions)
    named = [recorded_path(kb, ref) for ref in paths]
    return lambda decisions: kb.history.undo(rev or "", paths=named, hunk=hunk, decisions=decisions)


def _preferring(work: Callable[[Mapping[Conflict, Resolution]], Commit], prefer: str) -> Commit:
    """Decide every conflict alike; deciding some may bring up others."""
    from kbtui.history.merging.line_merge import Side

    side = Side.OURS if prefer == "now" else Side.THEIRS
    decisions: dict[Conflict, Resolution] = {}
    for _ in range(_ROUNDS):
        try:
            return work(decisions)
        except UndoConflictError as error:
            decisions |= dict.fromkeys(error.conflicts, side)
    return work(decisions)


def print_conflicts(error: UndoConflictError, layout: Layout) -> None:
    """Show both sides of each place, to a person."""
    for conflict in error.conflicts:
        file = layout.file(conflict.path)
        place = f"{file}:{conflict.line}" if conflict.line else file
        note(f"--- {place}")
        for title, text in (("now", conflict.ours), ("before", conflict.theirs)):
            shown = clean(text).rstrip("\n").replace("\n", "\n          ") or "(nothing)"
            note(f"  {title:>6}: {shown}")
    note("Settle it with --prefer now, --prefer before, or place by place in the app (F4, u).")


@click.command()
@click.argument("path", required=False, shell_complete=entry_names)
@click.option("--at", metavar="REV", help="A commit id, HEAD~1, a date.")
@click.option("--to-before", metavar="REV", help="Everything durable as it was before this change.")
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")
@json_option
@pass_place
def restore(
    place: Place,
    path: str | None,
    at: str | None,
    to_before: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make an entry, or everything, what it was.

    --at makes one entry what it was at a revision, --to-before all of them before a change.
    """
    if (path is None) != (at is None) or (at is None) == (to_before is None):
        raise UsageError(
            "Restore needs an entry and a revision, or a change to go back to before.",
            "Try: kbtui restore ENTRY --at REV, or kbtui restore --to-before REV",
        )
    with place.opened() as kb:
        if to_before is not None:
            if dry_run:
                print_diffs(kb.history.restore_before_preview(to_before))
                return
            commit = kb.history.restore_before(to_before)
        else:
            rev = kb.history.resolve(at or "")
            name = recorded_path(kb, path or "", rev)
            if dry_run:
                print_diffs(kb.history.restore_preview(name, rev))
                return
            commit = kb.history.restore(name, rev)
    if commit is None:
        note("It is that already.")
    else:
        say_commit(commit, kb.workspace, as_json=as_json)


def print_diffs(diffs: Iterable[FileDiff]) -> None:
    """Write differences as a patch."""
    from kbtui.history.looking.diff import as_patch

    print_patch(as_patch(diffs))


def say_commit(commit: Commit, layout: Layout, *, as_json: bool) -> None:
    """Name the commit that was made."""
    if as_json:
        from kbtui.cli.shapes import commit_shape

        say_json(commit_shape(commit, layout))
    else:
        say(f"{commit.id[:10]} {commit.subject}")
