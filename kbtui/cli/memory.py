"""Memory from a script: remember, forget, consolidate, audit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.output import note, say, say_json, say_line, say_styled
from kbtui.errors import UsageError

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.consolidation.consolidator import Outcome
    from kbtui.memory.recall.forget import ForgetPlan
    from kbtui.memory.records.ledger import Audit
    from kbtui.workspace.layout import Layout


@click.command()
@click.argument("text", nargs=-1, required=True)
@pass_place
def remember(place: Place, text: tuple[str, ...]) -> None:
    """Keep a fact in MEMORY.md, which every prompt holds."""
    with place.opened() as kb:
        kept = kb.memory.remembering.remember(" ".join(text))
    say(f"{kb.workspace.file('memory/MEMORY.md')}:{kept.line} {kept.fact}")
    if kept.commit is None:
        note("That is known already.")
    if kept.warning:
        note(f"kbtui: {kept.warning}")


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--yes", "is_sure", is_flag=True, help="Don't ask.")
@pass_place
def forget(place: Place, text: tuple[str, ...], is_sure: bool) -> int:
    """Take out what memory and entries say about something."""
    with place.opened() as kb:
        plan = kb.memory.forgetting.plan(" ".join(text))
        _print_plan(plan, kb.workspace)
        if not is_sure and not _is_agreed(plan):
            note("Nothing was changed.")
            return 1
        done = kb.memory.forgetting.forget(plan)
    for commit in done.commits:
        note(f"Take it back with: kbtui undo {commit[:10]}")
    for sentence in done.left:
        note(sentence)
    if plan.is_empty:
        note("It stands nowhere; it won't be written from now on either.")
        return 1
    return 0


def _print_plan(plan: ForgetPlan, layout: Layout) -> None:
    for match in plan.matches:
        file = layout.file(match.path)
        place = f"{file}:{match.line}" if match.line else f"{file} (summary)"
        say_line(say_styled(place, fg="cyan"), "  ", say_styled(match.text))
    for sentence in plan.notes:
        note(sentence)


def _is_agreed(plan: ForgetPlan) -> bool:
    if plan.is_empty:
        return True
    stdin = sys.stdin
    if stdin is None or not stdin.isatty():
        raise UsageError("Nobody can be asked here.", "Look at the list, then add --yes.")
    return click.confirm("Forget that?", err=True)


@click.command()
@click.argument("session", required=False)
@json_option
@pass_place
def consolidate(place: Place, session: str | None, as_json: bool) -> int:
    """Condense one conversation, or all that wait."""
    import asyncio

    with place.opened() as kb:
        kb.memory.count_old()
        chosen = [_session_id(kb, session)] if session else kb.memory.unfinished()
        outcomes = []
        for each in chosen:
            before = kb.session_tokens(each)
            outcome = asyncio.run(kb.memory.consolidate(each))
            outcomes.append((outcome, max(0, before - kb.session_tokens(each))))
    if as_json:
        say_json([_outcome_shape(outcome, freed) for outcome, freed in outcomes])
    else:
        for outcome, freed in outcomes:
            _print_outcome(outcome, freed)
        if not outcomes:
            note("Nothing waits to be condensed.")
    return next((each.error.exit_code for each, _ in outcomes if each.error is not None), 0)


def _session_id(kb: KnowledgeBase, ref: str) -> str:
    with kb.sessions.open(ref) as opened:
        return opened.id


def _outcome_shape(outcome: Outcome, freed: int) -> dict[str, object]:
    return {
        "session": outcome.session,
        "kind": outcome.kind,
        "messages": list(outcome.messages) if outcome.messages else None,
        "cursor": outcome.cursor,
        "commit": outcome.commit,
        "proposals": list(outcome.proposals),
        "notice": outcome.notice,
        "freed_tokens": freed,
    }


def _print_outcome(outcome: Outcome, freed: int) -> None:
    said: str = outcome.kind
    if outcome.messages is not None:
        first, last = outcome.messages
        said = f"{said}: messages {first} to {last}, {freed:,} tokens of its prompt freed"
    say_line(say_styled(outcome.session, fg="cyan"), "  ", say_styled(said))
    if outcome.notice:
        note(f"kbtui: {outcome.notice}")
    if outcome.error is not None and outcome.error.hint:
        note(f"  {outcome.error.hint}")


@click.command()
@click.option("--dropped", "with_texts", is_flag=True, help="List by text what was left out.")
@json_option
@pass_place
def audit(place: Place, with_texts: bool, as_json: bool) -> int:
    """Account for every message.

    Exits with 1 if one is unaccounted for.
    """
    with place.opened() as kb:
        found = kb.memory.audit()
        dropped = kb.memory.left_out() if with_texts else []
    if as_json:
        listed = {"left_out": [each.as_json() for each in dropped]} if with_texts else {}
        say_json({**found.as_json(), **listed})
    else:
        _print_audit(found)
        for each in dropped:
            say_line(say_styled(f"{each.session}:{each.message}", fg="cyan"), f"  {each.reason}: ")
            say(f"  {each.text}")
    return int(found.unaccounted > 0)


def _print_audit(found: Audit) -> None:
    say(f"{found.sessions:>8,} sessions")
    for name in ("messages", "archived", "dropped", "pending", "unaccounted"):
        say(f"{getattr(found, name):>8,} {name}")
    say(f"{found.in_entries:>8,} in entries")
    for account in found.accounts:
        for first, last in account.unaccounted:
            note(f"kbtui: {account.session}: messages {first} to {last} are unaccounted for.")
        for problem in account.problems:
            note(f"kbtui: {account.session}: {problem}")
    for problem in found.problems:
        note(f"kbtui: {problem}")
