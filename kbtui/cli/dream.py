"""Dream from a script: once or every few hours, what it did, and the way back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.history import print_commit, print_patch
from kbtui.cli.output import note, say, say_json
from kbtui.cli.undoing import print_conflicts, print_diffs, say_commit
from kbtui.errors import UndoConflictError, UsageError

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.dream.report import DreamReport

_SPAN = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[mhd]?)")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "": "hours"}
_LOOK_EVERY = 60.0
_LISTED = 10


class _Every(click.ParamType):  # type: ignore[type-arg]
    """A time such as 30m, 2h or 1d."""

    name = "every"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = _SPAN.fullmatch(str(value).strip().lower())
        span = timedelta(**{_UNITS[found["unit"]]: float(found["number"])}) if found else None
        if not span:
            self.fail(f"{value!r} is no time; write it as 30m, 2h or 1d.", param, ctx)
        return span


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")
@click.option("--every", metavar="TIME", type=_Every(), help="Go on: again every 30m, 2h, 1d.")
@json_option
@pass_place
def dream(place: Place, dry_run: bool, every: timedelta | None, as_json: bool) -> int:
    """Curate memory with what is new in the archive."""
    import asyncio

    with place.opened() as kb:
        if every is not None:
            return asyncio.run(_again_and_again(kb, every, dry_run=dry_run, as_json=as_json))
        report = asyncio.run(kb.memory.dream.run(dry_run=dry_run))
    return _print(report, as_json=as_json)


@click.command("dream-log")
@click.argument("rev", required=False)
@click.option("-n", "limit", metavar="N", type=click.IntRange(1), help="List its last N changes.")
@json_option
@pass_place
def dream_log(place: Place, rev: str | None, limit: int | None, as_json: bool) -> None:
    """Show Dream's last change, or the one named."""
    from kbtui.cli.shapes import commit_shape
    from kbtui.history.looking.diff import as_patch

    with place.opened() as kb:
        if limit is not None and rev is None:
            _list(kb, limit, as_json=as_json)
            return
        change = kb.memory.dream_log.show(rev)
        idle = kb.memory.dream_log.idle()
    if as_json:
        say_json({**commit_shape(change.commit, kb.workspace), "patch": as_patch(change.diffs)})
        return
    print_commit(change.commit)
    print_diffs(change.diffs)
    note(f"Go back to before it with: kbtui dream-restore {change.commit.id[:10]}")
    if rev is None:
        note(f"Since then: {idle}")


def _list(kb: KnowledgeBase, limit: int, *, as_json: bool) -> None:
    from kbtui.cli.shapes import commit_shape

    commits = kb.memory.dream_log.log(limit)
    if as_json:
        say_json([commit_shape(commit, kb.workspace) for commit in commits])
    for commit in () if as_json else commits:
        print_commit(commit)


@click.command("dream-restore")
@click.argument("rev", required=False)
@click.option("--only", is_flag=True, help="Undo only this change; later ones stay.")
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")
@json_option
@pass_place
def dream_restore(
    place: Place, rev: str | None, only: bool, dry_run: bool, as_json: bool
) -> int | None:
    """Go back to before a change of Dream's.

    Everything durable becomes what it was; that, too, can be undone. Without REV it lists the
    changes there are.
    """
    if only and dry_run:
        raise UsageError(
            "--dry-run shows what going back to before the change would do, not undoing it alone.",
            "`kbtui dream-log REV` shows what the change did.",
        )
    with place.opened() as kb:
        if rev is None:
            _list(kb, _LISTED, as_json=as_json)
            note("Name one of them: kbtui dream-restore REV")
            return 2
        change = kb.memory.dream_log.show(rev)
        if dry_run:
            print_diffs(kb.memory.dream_log.preview(rev))
            return None
        try:
            commit = kb.history.undo(change.commit.id) if only else kb.memory.dream_log.restore(rev)
        except UndoConflictError as error:
            print_conflicts(error, kb.workspace)
            raise
    if commit is None:
        note("It is that already.")
    else:
        say_commit(commit, kb.workspace, as_json=as_json)
    return None


async def _again_and_again(
    kb: KnowledgeBase, every: timedelta, *, dry_run: bool, as_json: bool
) -> int:
    """Dream whenever it is due and something is new; ends with Ctrl+C."""
    import asyncio

    due = datetime.now(UTC)
    while True:
        if datetime.now(UTC) >= due and await asyncio.to_thread(kb.memory.dream.has_news):
            due = datetime.now(UTC) + every
            _print(await kb.memory.dream.run(dry_run=dry_run), as_json=as_json)
        await asyncio.sleep(min(_LOOK_EVERY, every.total_seconds()))


def _print(report: DreamReport, *, as_json: bool) -> int:
    from kbtui.history.looking.diff import as_patch

    status = report.error.exit_code if report.error is not None else 0
    if as_json:
        say_json(_shape(report, as_patch(report.diffs)))
        return status
    if report.kind == "dry-run":
        print_patch(as_patch(report.diffs))
    for suggestion in report.suggestions:
        note(f"Left to you{f' ({suggestion.id})' if suggestion.id else ''}: {suggestion.why}")
        if report.kind == "dry-run":
            print_patch(as_patch(suggestion.diffs))
    if report.error is not None:
        note(f"kbtui: {report.text}")
    else:
        say(report.text)
    if report.commit is not None and report.diffs:
        note(f"Take it back with: kbtui undo {report.commit[:10]}")
    return status


def _shape(report: DreamReport, patch: str) -> dict[str, Any]:
    return {
        "kind": report.kind,
        "entries": report.entries,
        "remaining": report.remaining,
        "commit": report.commit,
        "paths": [diff.path for diff in report.diffs],
        "patch": patch,
        "proposals": [
            {"id": each.id, "reason": each.why, "paths": [diff.path for diff in each.diffs]}
            for each in report.suggestions
        ],
        "model": report.model,
        "steps": report.steps,
        "cost_usd": report.cost_usd,
        "text": report.text,
    }
