"""Several machines, one knowledge base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.output import ProgressLine, note, say, say_json

if TYPE_CHECKING:
    from kbtui.maintenance.sync import Synced


@click.command()
@click.argument("remote", required=False)
@click.option(
    "--replace",
    "replace_theirs",
    is_flag=True,
    help="After a purge: replace the other history, even where it has gone on.",
)
@json_option
@pass_place
def sync(place: Place, remote: str | None, replace_theirs: bool, as_json: bool) -> None:
    """Sync with another machine.

    REMOTE is a folder, https://, ssh:// or git@HOST:PATH; it is remembered. Where both sides
    changed the same line, yours stays, and theirs waits in the inbox.
    """
    with place.opened() as kb:
        progress = ProgressLine()
        try:
            done = kb.syncing.run(remote, tell=progress, replace_theirs=replace_theirs)
        finally:
            progress.end()
    if as_json:
        say_json(_shape(done))
        return
    say(done.summary)
    for text in done.report.notes:
        note(text)
    if done.proposals:
        note(f"Both sides changed the same in {_places(done)}. Decide with: kbtui inbox")


def _places(done: Synced) -> str:
    from kbtui.workspace.layout import short_name

    return ", ".join(short_name(clash.path) for clash in done.report.clashes)


def _shape(done: Synced) -> dict[str, Any]:
    report = done.report
    return {
        "remote": report.remote,
        "received": report.received,
        "sent": report.sent,
        "merge": report.merge.id if report.merge else None,
        "conflicts": [clash.path for clash in report.clashes],
        "proposals": list(done.proposals),
        "notes": list(report.notes),
        "replaced": report.replaced,
    }
