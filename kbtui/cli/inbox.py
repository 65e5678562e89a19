"""`kbtui inbox`: decide on proposals, which are changes waiting for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import WorkspaceOption, json_option, pass_place
from kbtui.cli.entries import edited_copy
from kbtui.cli.history import print_patch
from kbtui.cli.output import (
    TAKE_BACK,
    note,
    picked,
    say,
    say_commit,
    say_json,
    say_line,
    say_styled,
)
from kbtui.text import clean_line, counted, moment, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kbtui.history.places import Plan, Proposal
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.background.service import Evidence
    from kbtui.presentation.notes import Names
    from kbtui.workspace.layout import Layout

_MAX_SAID = 300
_hunks = click.option(
    "--hunk", "hunks", multiple=True, metavar="N", help="Only this place, numbered as in `show`."
)


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def inbox(ctx: click.Context, as_json: bool) -> None:
    """Decide on the changes waiting for you."""
    if ctx.invoked_subcommand is None:
        _list(ctx.ensure_object(WorkspaceOption), as_json=as_json)


@inbox.result_callback()
def _status(status: int | None, **_options: Any) -> int:
    return status or 0


@inbox.command("list")
@json_option
@pass_place
def list_command(place: WorkspaceOption, as_json: bool) -> None:
    """List what is waiting."""
    _list(place, as_json=as_json)


@inbox.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_place
def show(place: WorkspaceOption, id_: str, as_json: bool) -> None:
    """Show what a proposal would change in the current files.

    Of a conflict the lines that stand there now are marked with -, those proposed with +.
    """
    from kbtui.history.queries.diff import as_patch
    from kbtui.memory.background.service import plan_diff

    with place.opened() as kb:
        plan = kb.memory.inbox.plan(id_)
        sentence = _plan_sentence(plan, _names(kb, [plan]))
        said = kb.memory.evidence().of_plan(plan)
    patch = as_patch(plan_diff(plan), kb.workspace.file)
    if as_json:
        say_json({**_shape(plan, kb.workspace), "patch": patch, "hunks": _hunk_shapes(plan, said)})
        return
    note(sentence)
    _print_evidence(plan, said)
    print_patch(patch)
    if not plan.places:
        note("All of it stands in the files already.")
    elif plan.conflicts:
        count = len(plan.conflicts)
        note(
            f"{count} of {len(plan.places)} conflict:"
            f" `kbtui inbox edit {plan.proposal.id} --hunk N` says what shall stand there,"
            " `accept --hunk N --theirs` takes what is proposed."
        )


def _print_evidence(plan: Plan, said: Mapping[str, Evidence]) -> None:
    """Print which message says what each place would write; once if it is one for all."""
    lines = [_evidence_line(said.get(place.key)) for place in plan.places]
    several = len(set(lines)) > 1
    for number, line in enumerate(lines if several else lines[:1], 1):
        note(f"Place {number}: {line}" if several else line)


def _evidence_line(said: Evidence | None) -> str:
    if said is None:
        return "No message that was found says so."
    text = shorten(clean_line(said.message.content), _MAX_SAID)
    return f"You said ({moment(said.message.time)}, {said.session}:{said.message.id}): {text}"


@inbox.command()
@click.argument("id_", metavar="ID")
@_hunks
@click.option("--theirs", is_flag=True, help="Resolve conflicts in favour of the proposal.")
@json_option
@pass_place
def accept(
    place: WorkspaceOption, id_: str, hunks: tuple[str, ...], theirs: bool, as_json: bool
) -> None:
    """Make the change, or parts of it.

    Exits with 5, and changes nothing, if a place conflicts with what was changed since.
    """
    with place.opened() as kb:
        commit = kb.memory.inbox.accept(id_, hunks=hunks or None, theirs=theirs)
        if commit is not None:
            say_commit(commit, kb, as_json=as_json, way_back=TAKE_BACK)
        elif as_json:
            say_json(None)
        else:
            note("It stood there already.")


@inbox.command()
@click.argument("id_", metavar="ID")
@_hunks
@json_option
@pass_place
def reject(place: WorkspaceOption, id_: str, hunks: tuple[str, ...], as_json: bool) -> None:
    """Reject a proposal, or parts of it.

    What they say isn't proposed again.
    """
    with place.opened() as kb:
        proposal = kb.memory.inbox.reject(id_, hunks=hunks or None)
    if as_json:
        say_json(_proposal_shape(proposal, kb.workspace))
    elif hunks:
        say(f"{len(hunks)} of {proposal.id} {'is' if len(hunks) == 1 else 'are'} rejected.")
    else:
        say(f"{proposal.id} is rejected.")


@inbox.command()
@click.argument("id_", metavar="ID")
@click.option("--hunk", metavar="N", help="Which place; not needed if there is only one.")
@json_option
@pass_place
def edit(place: WorkspaceOption, id_: str, hunk: str | None, as_json: bool) -> None:
    """Edit in your editor what a place should say.

    `accept` makes it then. In a conflict both sides are there, between marks. A file that is to be
    deleted goes when the text is empty.
    """
    from kbtui.errors import UsageError

    with place.opened() as kb:
        inbox = kb.memory.inbox
        plan = inbox.plan(id_)
        if hunk is None and len(plan.places) != 1:
            raise UsageError(
                f"{plan.proposal.id} has {len(plan.places)} places.", "Say which: --hunk N."
            )
        name = plan.places[0].key if hunk is None else hunk
        draft = inbox.draft(plan.proposal.id, name)
        with edited_copy(draft.text, draft.path.rpartition("/")[2]) as text:
            changed = text != draft.text
            if changed:
                inbox.edit(plan.proposal.id, name, text, seen=draft.seen)
        left = next((p for p in inbox.list() if p.id == plan.proposal.id), None)
    if as_json:
        say_json(_proposal_shape(left, kb.workspace) if left is not None else None)
    elif not changed:
        note("Nothing was changed.")
    elif left is None:
        say(f"Nothing of {plan.proposal.id} is left.")
    else:
        say(f"Your text is proposed now; kbtui inbox accept {left.id}")


def _list(place: WorkspaceOption, *, as_json: bool) -> None:
    with place.opened() as kb:
        if kb.workspace.writable:
            kb.memory.inbox.settle()
        plans = kb.memory.evidence().ordered(kb.memory.inbox.waiting())
        problems = kb.memory.inbox.problems()
        names = _names(kb, plans)
    if as_json:
        say_json([_shape(plan, kb.workspace) for plan in plans])
    for plan in () if as_json else plans:
        when = moment(plan.proposal.created)
        conflicts = f"  ({counted(len(plan.conflicts), 'conflict')})" if plan.conflicts else ""
        sentence = say_styled(_plan_sentence(plan, names))
        say_line(say_styled(plan.proposal.id, fg="yellow"), f"  {when}  ", sentence, conflicts)
    for path in problems:
        note(f"kbtui: {path} can't be read.")
    if not plans and not as_json:
        note("Nothing waits.")


def _names(kb: KnowledgeBase, plans: Sequence[Plan]) -> Names:
    from kbtui.presentation.notes import names_of
    from kbtui.presentation.proposals import paths_of

    return names_of(kb.library, (path for plan in plans for path in paths_of(plan)))


def _plan_sentence(plan: Plan, names: Names) -> str:
    from kbtui.presentation.actors import actor_name
    from kbtui.presentation.proposals import format_files, reason_of

    who = actor_name(plan.proposal.actor, plan.proposal.origin)
    return f"{who} would change {format_files(plan, names)}: {reason_of(plan, names)}"


def _shape(plan: Plan, layout: Layout) -> dict[str, Any]:
    shape = _proposal_shape(plan.proposal, layout)
    return {**shape, "places": len(plan.places), "conflicts": len(plan.conflicts)}


def _proposal_shape(proposal: Proposal, layout: Layout) -> dict[str, Any]:
    origin = proposal.origin
    return {
        "id": proposal.id,
        "created": proposal.created.isoformat(),
        "actor": proposal.actor.value,
        "reason": proposal.reason,
        "paths": [layout.file(path) for path in proposal.paths],
        "session": origin.session,
        "messages": list(origin.messages) if origin.messages else None,
    }


def _hunk_shapes(plan: Plan, said: Mapping[str, Evidence]) -> list[dict[str, Any]]:
    numbers = {place.key: number for number, place in enumerate(plan.places, 1)}
    return [
        {
            "n": numbers[place.key],
            "key": place.key,
            "path": file.path,
            "state": place.state,
            "why": place.why,
            "line": place.first + 1,
            "now": "".join(place.ours),
            "proposed": "".join(place.theirs),
            "evidence": _evidence_shape(said.get(place.key)),
        }
        for file in plan.files
        for place in file.places
    ]


def _evidence_shape(said: Evidence | None) -> dict[str, Any] | None:
    if said is None:
        return None
    shape = picked(said.message, "id time content")
    return {"session": said.session, **shape, "time": said.message.time.isoformat()}
