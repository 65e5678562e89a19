"""Commands on memory: add, remember, forget, consolidate, audit, dream and its log."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import WorkspaceOption, json_option, pass_place
from kbtui.cli.history import (
    LogPrinter,
    conflicts_shown,
    prefer_option,
    print_diffs,
    print_patch,
    resolved,
)
from kbtui.cli.output import (
    commit_shape,
    note,
    picked,
    say,
    say_commit,
    say_json,
    say_line,
    say_styled,
)
from kbtui.cli.text_input import MOST_OF_FACT, GivenText, TextCommand, text_argument
from kbtui.clock import follow_zone
from kbtui.errors import UsageError
from kbtui.text import clean_line, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.history.queries.diff import FileDiff
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.background.service import (
        Audit,
        CondensingOutcome,
        CorrectionPlan,
        DreamReport,
        ForgetPlan,
        Memory,
        SaidBy,
    )
    from kbtui.workspace.layout import Layout


@click.command(cls=TextCommand)
@text_argument()
@pass_place
def remember(place: WorkspaceOption, text: GivenText) -> None:
    """Keep a fact in MEMORY.md, which is part of every prompt.

    Without TEXT, and for `-`, standard input is read.
    """
    fact = text.read("remember", most=MOST_OF_FACT)
    with place.opened() as kb:
        kept = kb.memory.remembering.remember(fact)
    say(f"{kb.workspace.file('memory/MEMORY.md')}:{kept.line} {kept.fact}")
    if kept.commit is None:
        note("That is known already.")
    if kept.warning:
        note(f"kbtui: {kept.warning}")


@click.command(cls=TextCommand)
@text_argument()
@pass_place
def add(place: WorkspaceOption, text: GivenText) -> None:
    """Note something in today's journal, as it stands.

    It asks nothing, neither you nor a model: for a hotkey or a script. Without TEXT, and for `-`,
    standard input is read.
    """
    from kbtui.history.change import Origin

    said = text.read("note")
    with place.opened() as kb:
        noted = kb.keeping.note(said, Origin())
    first = said.strip().partition("\n")[0]
    say(f"{kb.workspace.file(noted.path)}:{noted.line} {clean_line(first)}")
    if not noted.changes:
        note("That is noted already.")
    if noted.notice:
        note(f"kbtui: {noted.notice}")


@click.command(cls=TextCommand)
@text_argument()
@click.option("--yes", "is_sure", is_flag=True, help="Don't ask.")
@pass_place
def forget(place: WorkspaceOption, text: GivenText, is_sure: bool) -> int:
    """Remove what memory and entries say about something.

    Without TEXT, and for `-`, standard input is read; then it can't ask, and needs --yes.
    """
    said = text.read("forget", most=MOST_OF_FACT)
    with place.opened() as kb:
        plan = kb.memory.forgetting.plan(said)
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
        where = "Nothing else says it" if done.left else "It stands nowhere"
        note(f"{where}; it won't be written from now on either.")
        return 1
    return 0


def _print_plan(plan: ForgetPlan, layout: Layout) -> None:
    for match in plan.matches:
        file = layout.file(match.path)
        place = f"{file}:{match.line}" if match.line else f"{file} ({match.key})"
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
@click.argument("old")
@click.argument("new")
@click.option(
    "--place", "chosen", type=int, multiple=True, metavar="N", help="Only this place of the list."
)
@click.option("--dry-run", is_flag=True, help="List the places, and change nothing.")
@click.option("--yes", "is_sure", is_flag=True, help="Don't ask.")
@json_option
@pass_place
def correct(
    place: WorkspaceOption,
    old: str,
    new: str,
    chosen: tuple[int, ...],
    dry_run: bool,
    is_sure: bool,
    as_json: bool,
) -> int | None:
    """Correct a statement in every place that repeats it.

    OLD is what was so, NEW what is so, as whole sentences that differ in the value. Notes,
    MEMORY.md, decisions, summaries and tasks get the new value; a line of the journal is struck out
    and points to it. What is about something else is left alone.
    """
    with place.opened() as kb:
        plan = kb.memory.correcting.plan(old, new)
        places = [each for each in plan.places if not each.follows]
        picked_places = [places[number - 1] for number in chosen if 0 < number <= len(places)]
        if len(picked_places) != len(chosen):
            raise UsageError(f"The list has the places 1 to {len(places)}.", "See --dry-run.")
        if dry_run and as_json:
            say_json(_correction_shape(plan, kb.workspace))
            return None
        if not as_json:
            _print_correction(plan, kb.workspace)
        if dry_run or not places:
            return 1 if not places else None
        if not is_sure and not _corrects(len(picked_places or places)):
            note("Nothing was changed.")
            return 1
        ids = [each.id for each in picked_places or places]
        commit = kb.memory.correcting.correct(plan, ids)
        say_commit(commit, kb, as_json=as_json, way_back="To have it back")
    return None


def _print_correction(plan: CorrectionPlan, layout: Layout) -> None:
    for sign, text, said in (("-", plan.old, plan.old_said), ("+", plan.new, plan.new_said)):
        note(f"{sign} {clean_line(text)}{_said_shown(said, layout)}")
    number = 0
    for each in plan.places:
        where = layout.file(each.path)
        where += f":{each.line}" if each.line else f" ({each.key})"
        if each.follows:
            say_line("     ", say_styled(where, fg="cyan"), "  follows by itself")
            continue
        number += 1
        say_line(f"{number:>4} ", say_styled(where, fg="cyan"), f"  {each.kind}")
        say_line("     - ", say_styled(clean_line(each.before)))
        after = "(struck out, with a pointer)" if each.kind == "journal" else each.after
        say_line("     + ", say_styled(clean_line(after)))
    if not number:
        note("No place repeats it.")


def _said_shown(said: SaidBy | None, layout: Layout) -> str:
    if said is None:
        return ""
    day = f", {said.said.day}" if said.said is not None else ""
    return f"  ({said.who}{day}, {layout.file(said.path)}:{said.line})"


def _corrects(count: int) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"Nobody can be asked here whether to correct {counted(count, 'place')}.",
            "Look at the list, then add --yes.",
        )
    return click.confirm(f"Correct {counted(count, 'place')}?", err=True)


def _correction_shape(plan: CorrectionPlan, layout: Layout) -> dict[str, object]:
    return {
        **picked(plan, "old new"),
        "values": [list(pair) for pair in plan.values],
        "places": [
            {**picked(each, "line kind before after key"), "path": layout.file(each.path)}
            for each in plan.places
        ],
    }


@click.command()
@click.argument("session", required=False)
@click.option(
    "--all", "by_model", is_flag=True, help="Include what is archived and no model condensed."
)
@click.option("--yes", "is_sure", is_flag=True, help="Don't ask, even if it costs money.")
@click.option("--if-due", is_flag=True, hidden=True)
@json_option
@pass_place
def consolidate(
    place: WorkspaceOption,
    session: str | None,
    by_model: bool,
    is_sure: bool,
    if_due: bool,
    as_json: bool,
) -> int:
    """Condense one conversation, or all that are waiting."""
    import asyncio

    with place.opened() as kb:
        if if_due and session:  # started detached by `condense_if_due`
            asyncio.run(kb.memory.consolidate_if_due(session, _DETACHED_SECONDS))
            return 0
        kb.memory.count_old()
        if by_model and not _is_cost_agreed(kb.memory, is_sure=is_sure):
            return 1
        chosen = [kb.sessions.find(session)] if session else kb.memory.unfinished(by_model=by_model)
        outcomes = [asyncio.run(kb.memory.consolidate(each, by_model=by_model)) for each in chosen]
    if as_json:
        say_json([_outcome_shape(outcome) for outcome in outcomes])
    else:
        _print_outcomes(outcomes)
    return next((each.error.exit_code for each in outcomes if each.error is not None), 0)


def _is_cost_agreed(memory: Memory, *, is_sure: bool) -> bool:
    """Return whether no paid model would be used, or the user agrees to its cost.

    Raises:
        UsageError: There is no model, or no terminal to ask on.
    """
    from kbtui.settings import OFFLINE

    unread = memory.unread()
    if unread is None:
        return True
    if unread.cost.model == OFFLINE:
        raise UsageError("No model is configured.", "kbtui setup, or /model in the app, adds one.")
    note(f"{unread.cost.model}: {unread.describe()}, {unread.cost.describe(unread.tokens)}.")
    if is_sure or not unread.cost.is_paid:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("Nobody can be asked whether it may cost that.", "Add --yes.")
    return click.confirm("Have that condensed?", err=True)


def _outcome_shape(outcome: CondensingOutcome) -> dict[str, object]:
    return picked(outcome, "session kind messages cursor commit proposals notice")


def _print_outcomes(outcomes: Sequence[CondensingOutcome]) -> None:
    for outcome in outcomes:
        _print_outcome(outcome)
    if not outcomes:
        note("Nothing waits to be condensed.")


def _print_outcome(outcome: CondensingOutcome) -> None:
    status: str = outcome.kind
    if outcome.messages is not None:
        first, last = outcome.messages
        status = f"{status}: messages {first} to {last}"
    say_line(say_styled(outcome.session, fg="cyan"), "  ", say_styled(status))
    if outcome.notice:
        note(f"kbtui: {outcome.notice}")
    elif outcome.error is not None:  # a notice already includes the error
        note(f"kbtui: {outcome.error}")


@click.command()
@click.option("--dropped", "with_texts", is_flag=True, help="List what no memory says.")
@json_option
@pass_place
def audit(place: WorkspaceOption, with_texts: bool, as_json: bool) -> int:
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
    for name, count, what in found.sums:
        say(f"{count:>8,} {name.ljust(13)} {what}".rstrip())
    for account in found.accounts:
        for first, last in account.unaccounted:
            note(f"kbtui: {account.session}: messages {first} to {last} are unaccounted for.")
        for problem in account.problems:
            note(f"kbtui: {account.session}: {problem}")
        for line in account.not_grounded:
            say_line(say_styled(account.session, fg="cyan"), "  not grounded: ", say_styled(line))
    for line in found.by_dream:
        say_line(say_styled("Dream", fg="cyan"), "  not grounded: ", say_styled(line))
    for problem in found.problems:
        note(f"kbtui: {problem}")


_SPAN = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[mhd]?)")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "": "hours"}
_POLL_SECONDS = 60.0
_MAX_LISTED = 10
_DETACHED_SECONDS = 900.0


class _Interval(click.ParamType):  # type: ignore[type-arg]
    """A time such as 30m, 2h or 1d."""

    name = "every"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = _SPAN.fullmatch(str(value).strip().lower())
        span = timedelta(**{_UNITS[found["unit"]]: float(found["number"])}) if found else None
        if not span:
            self.fail(f"{value!r} is no time; write it as 30m, 2h or 1d.", param, ctx)
        return span


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--every", metavar="TIME", type=_Interval(), help="Keep running, every 30m, 2h, 1d.")
@json_option
@pass_place
def dream(place: WorkspaceOption, dry_run: bool, every: timedelta | None, as_json: bool) -> int:
    """Update memory with what is new in the archive."""
    import asyncio

    with place.opened() as kb:
        if every is not None:
            return asyncio.run(_dream_repeatedly(kb, every, dry_run=dry_run, as_json=as_json))
        report = asyncio.run(kb.memory.dream.run(dry_run=dry_run))
    return _print(report, kb.workspace, as_json=as_json)


@click.command("dream-log")
@click.argument("rev", required=False)
@click.option("-n", "limit", metavar="N", type=click.IntRange(1), help="List the last N changes.")
@json_option
@pass_place
def dream_log(place: WorkspaceOption, rev: str | None, limit: int | None, as_json: bool) -> None:
    """Show Dream's last change, or a given one."""
    from kbtui.history.queries.diff import as_patch

    with place.opened() as kb:
        if limit is not None and rev is None:
            _list(kb, limit, as_json=as_json)
            return
        change = kb.memory.dream_log.show(rev)
        idle = kb.memory.dream_log.idle()
        write = LogPrinter(kb, by_days=False)
    if as_json:
        say_json(
            {
                **commit_shape(change.commit, kb.workspace),
                "patch": as_patch(change.diffs, kb.workspace.file),
            }
        )
        return
    write(change.commit)
    print_diffs(change.diffs, kb.workspace)
    note(f"Take it back with: kbtui dream-restore {change.commit.id[:10]}")
    if rev is None:
        note(f"Since then: {idle}")


def _list(kb: KnowledgeBase, limit: int, *, as_json: bool) -> None:
    commits = kb.memory.dream_log.log(limit)
    if as_json:
        say_json([commit_shape(commit, kb.workspace) for commit in commits])
        return
    write = LogPrinter(kb, by_days=False)
    for commit in commits:
        write(commit)


@click.command("dream-restore")
@click.argument("rev", required=False)
@click.option("--all", "whole", is_flag=True, help="Go back to before it: later changes go too.")
@click.option("--only", is_flag=True, hidden=True, expose_value=False)  # the default by now
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--yes", "is_sure", is_flag=True, help="Don't ask.")
@prefer_option
@json_option
@pass_place
def dream_restore(
    place: WorkspaceOption,
    rev: str | None,
    whole: bool,
    dry_run: bool,
    is_sure: bool,
    prefer: str | None,
    as_json: bool,
) -> int | None:
    """Take back a change by Dream.

    What was written since stays, in the same files too. With --all everything durable becomes what
    it was before the change, after a look at it. Either can be undone. Without REV it lists the
    changes there are.
    """
    with place.opened() as kb, conflicts_shown(kb.workspace):
        dream_log = kb.memory.dream_log
        if rev is None:
            _list(kb, _MAX_LISTED, as_json=as_json)
            note("Name one of them: kbtui dream-restore REV")
            return 2
        if dry_run:
            print_diffs(dream_log.preview(rev, whole=whole), kb.workspace)
            return None
        if not whole:
            commit = resolved(lambda decided: dream_log.restore(rev, decisions=decided), prefer)
        elif is_sure or _goes_back(dream_log.preview(rev, whole=True), kb.workspace):
            commit = dream_log.restore_all(rev)
        else:
            note("Nothing was changed.")
            return 1
        say_commit(commit, kb, as_json=as_json, way_back="To have it back")
    return None


def _goes_back(diffs: Sequence[FileDiff], layout: Layout) -> bool:
    """List what would change; return whether the person agrees, or there is nothing to ask.

    Raises:
        UsageError: There is no terminal to ask on.
    """
    for diff in diffs:
        does = {"added": "comes back", "deleted": "goes"}.get(diff.kind, "becomes what it was")
        say_line(say_styled(layout.file(diff.path), fg="cyan"), f"  {does}")
    if not diffs:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"Nobody can be asked here whether {counted(len(diffs), 'file')} may go back.",
            "Look at the list, or at --dry-run, then add --yes.",
        )
    return click.confirm(f"Let {counted(len(diffs), 'file')} go back?", err=True)


async def _dream_repeatedly(
    kb: KnowledgeBase, every: timedelta, *, dry_run: bool, as_json: bool
) -> int:
    """Run Dream at the interval `every` if there is news, until interrupted."""
    import asyncio

    due = datetime.now(UTC)
    while True:
        follow_zone()
        if datetime.now(UTC) >= due and await asyncio.to_thread(kb.memory.dream.has_news):
            due = datetime.now(UTC) + every
            _print(await kb.memory.dream.run(dry_run=dry_run), kb.workspace, as_json=as_json)
        await asyncio.sleep(min(_POLL_SECONDS, every.total_seconds()))


def _print(report: DreamReport, layout: Layout, *, as_json: bool) -> int:
    from kbtui.history.queries.diff import as_patch

    status = report.error.exit_code if report.error is not None else 0
    if as_json:
        say_json(_shape(report, layout))
        return status
    if report.kind == "dry-run":
        print_patch(as_patch(report.diffs, layout.file))
    for suggestion in report.suggestions:
        note(f"Left to you{f' ({suggestion.id})' if suggestion.id else ''}: {suggestion.why}")
        if report.kind == "dry-run":
            print_patch(as_patch(suggestion.diffs, layout.file))
    if report.error is not None:
        note(f"kbtui: {report.text}")
    else:
        say(report.text)
    if report.commit is not None and report.diffs:
        note(f"Take it back with: kbtui undo {report.commit[:10]}")
    return status


def _shape(report: DreamReport, layout: Layout) -> dict[str, Any]:
    from kbtui.history.queries.diff import as_patch

    return {
        **picked(report, "kind entries remaining commit model steps cost_usd text"),
        "paths": [layout.file(diff.path) for diff in report.diffs],
        "patch": as_patch(report.diffs, layout.file),
        "proposals": [
            {
                "id": each.id,
                "reason": each.why,
                "paths": [layout.file(diff.path) for diff in each.diffs],
            }
            for each in report.suggestions
        ],
    }
