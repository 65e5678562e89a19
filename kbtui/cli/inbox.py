"""The inbox: changes that a machine wanted to make, and a person decides on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.history import print_patch
from kbtui.cli.output import note, say, say_json, say_line, say_styled

if TYPE_CHECKING:
    from kbtui.memory.inbox import Proposal


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def inbox(ctx: click.Context, as_json: bool) -> int:
    """Decide on changes that wait for you."""
    if ctx.invoked_subcommand is None:
        return _list(ctx.ensure_object(Place), as_json=as_json)
    return 0


@inbox.result_callback()
def _status(status: int | None, **_options: Any) -> int:
    return status or 0


@inbox.command("list")
@json_option
@pass_place
def list_command(place: Place, as_json: bool) -> int:
    """List what waits.

    Exits with 1 if nothing does.
    """
    return _list(place, as_json=as_json)


@inbox.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_place
def show(place: Place, id_: str, as_json: bool) -> None:
    """Show what a proposal would change."""
    from kbtui.memory.proposal_diff import proposal_diff

    with place.opened() as kb:
        from kbtui.history.diff import as_patch

        proposal = kb.memory.inbox.get(id_)
        patch = as_patch(proposal_diff(proposal))
    if as_json:
        say_json({**_shape(proposal), "patch": patch})
        return
    note(proposal.reason)
    print_patch(patch)


@inbox.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_place
def accept(place: Place, id_: str, as_json: bool) -> None:
    """Make the whole change."""
    with place.opened() as kb:
        commit = kb.memory.inbox.accept(id_)
    if as_json:
        from kbtui.cli.shapes import commit_shape

        say_json(commit_shape(commit) if commit is not None else None)
    elif commit is None:
        note("It stood there already.")
    else:
        say(f"{commit.id[:10]} {commit.subject}")


@inbox.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_place
def reject(place: Place, id_: str, as_json: bool) -> None:
    """Put a proposal away; what it says isn't proposed again."""
    with place.opened() as kb:
        proposal = kb.memory.inbox.reject(id_)
    if as_json:
        say_json(_shape(proposal))
    else:
        say(f"{proposal.id} is rejected.")


def _list(place: Place, *, as_json: bool) -> int:
    with place.opened() as kb:
        proposals = kb.memory.inbox.list()
        problems = kb.memory.inbox.problems()
    if as_json:
        say_json([_shape(proposal) for proposal in proposals])
    for proposal in () if as_json else proposals:
        when = proposal.created.astimezone().strftime("%Y-%m-%d %H:%M")
        say_line(
            say_styled(proposal.id, fg="yellow"),
            f"  {when}  ",
            say_styled(proposal.actor.value.ljust(12), fg="cyan"),
            "  ",
            say_styled(proposal.reason),
        )
    for path in problems:
        note(f"kbtui: {path} can't be read.")
    if not proposals and not as_json:
        note("Nothing waits.")
    return 0 if proposals else 1


def _shape(proposal: Proposal) -> dict[str, Any]:
    origin = proposal.origin
    return {
        "id": proposal.id,
        "created": proposal.created.isoformat(),
        "actor": proposal.actor.value,
        "reason": proposal.reason,
        "paths": list(proposal.paths),
        "session": origin.session,
        "messages": list(origin.messages) if origin.messages else None,
    }
