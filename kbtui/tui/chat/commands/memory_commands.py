"""Slash commands of memory, such as ``/remember``, ``/forget``, ``/dream`` and ``/sync``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from kbtui.clock import local_day
from kbtui.errors import NotFoundError, StoppedError, UndoConflictError, UsageError
from kbtui.history.sync.sync import parse_address
from kbtui.knowledge.library.library import retag
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.background.service import CondensingOutcome, DreamChange, DreamReport
from kbtui.presentation.commit_summary import told
from kbtui.settings import changed_config
from kbtui.text import clean_line, counted, moment
from kbtui.tui.chat.commands.forgetting import confirm_and_forget
from kbtui.tui.chat.commands.importing import import_command
from kbtui.tui.chat.commands.memory_screen import MemoryScreen
from kbtui.tui.chat.commands.reports import audit_report
from kbtui.tui.chat.conversation.items import LinkItem, NoticeItem, Target, failure
from kbtui.tui.chat.host import STOP, ChatHost, CommandFunction
from kbtui.tui.diff.confirm import confirm
from kbtui.tui.diff.restoring import restore_before
from kbtui.tui.diff.undo_conflict import confirm_and_undo
from kbtui.tui.messages import OpenHistory, OpenToday
from kbtui.tui.widgets.dialogs import PageScreen, pick
from kbtui.tui.widgets.progress import progress_reporter
from kbtui.tui.widgets.row_list import Choice
from kbtui.workspace.layout import MEMORY

_DRY_RUN = "--dry-run"
_ALL = "--all"

# Facts


async def _remember(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    kept = await asyncio.to_thread(kb.memory.remembering.remember, argument)
    label = "known already" if kept.commit is None else "remembered"
    place = Target(MEMORY, kept.line)
    host.tell(LinkItem(label=label, to=place, note=kept.fact))
    if kept.warning:
        host.say(kept.warning, "warning")


async def _journal(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    journal = kb.journal
    if argument not in ("", "own", "daily"):
        raise UsageError(f"/journal knows no {clean_line(argument)!r}.", "/journal own, or daily")
    if argument:
        await asyncio.to_thread(_save_journal_setting, argument)
        journal.in_daily_notes = argument == "daily"
    in_daily = journal.in_daily_notes and kb.library.in_place
    place = "your daily notes, under “Journal”" if in_daily else "notes by day of its own"
    host.say(f"What you state is kept in {place}.")


def _save_journal_setting(where: str) -> None:
    with changed_config() as document:
        document.setdefault("memory", {})["journal"] = where


async def _forget(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    try:
        forgotten = await confirm_and_forget(host.app, kb, argument)
    except StoppedError as stopped:
        host.say(stopped.message)
        return
    if forgotten is not None:
        host.tell(forgotten)


async def show_memory(host: ChatHost, kb: KnowledgeBase, _argument: str) -> None:
    """Show the parts of the next prompt, and the lines of memory."""
    session, draft = host.conversation.session, host.prompt.full_text
    host.app.push_screen(MemoryScreen(kb, session, draft, host.context_window))


# Long-running commands


async def _compact(host: ChatHost, kb: KnowledgeBase, _argument: str) -> None:
    session = host.conversation.session
    if session is None or not session.messages:
        host.say("There is nothing to condense yet.")
        return
    if kb.memory.worker.status().state == "stopped":
        raise UsageError("Nothing is condensed while the workspace is read-only.")
    text = (
        f"What of its {counted(len(session.messages), 'message')} isn't archived yet goes into the "
        "archive, and what it says into memory and notes. Its log stays as it is. "
        "/background shows how far it is and stops it."
    )
    host.tell(NoticeItem(title="Condensing this conversation", text=text))
    future = kb.memory.worker.condense(session.id, everything=True)
    outcome = await asyncio.wrap_future(future)
    if outcome.messages is not None:
        first, last = outcome.messages
        title = f"Messages {first} to {last} are condensed into the archive"
        details = _outcome_text(outcome)
        host.tell(NoticeItem(title=title, text=details))
    elif outcome.error is not None:
        host.tell(failure(outcome.error))
    else:
        host.say("Everything said here is in the archive already.")


def _outcome_text(outcome: CondensingOutcome) -> str:
    """Describe what condensing has written."""
    lines = [outcome.notice] if outcome.notice else []
    if outcome.commit is not None:
        lines.append("The history can take it back (F4).")
    if outcome.proposals:
        lines.append(f"{counted(len(outcome.proposals), 'change')} for you in the inbox (F6).")
    return "\n".join(lines)


async def _dream(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    if argument not in ("", _DRY_RUN):
        raise UsageError(f"/dream knows no {clean_line(argument)!r}.", f"/dream {_DRY_RUN}")
    if kb.memory.worker.status().state == "stopped":
        raise UsageError("Dream doesn't run while the workspace is read-only.")
    dry = argument == _DRY_RUN
    dream, progress = kb.memory.dream, kb.memory.dreaming
    future = kb.memory.worker.submit("dream", lambda: dream.run(dry_run=dry, on_progress=progress))
    report = await asyncio.wrap_future(future)
    if dry and (report.diffs or report.suggestions):
        await _show_dream(host, report)
    elif report.error is not None:
        host.tell(failure(report.error))
    else:
        more = "/dream-log shows it." if report.diffs and not dry else ""
        host.tell(NoticeItem(title=report.text, text=more))


async def _sync(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    if argument == STOP:
        if not host.syncing.running:
            raise UsageError("No sync is running.")
        host.syncing.stop()
        return
    address = parse_address(argument) if argument else kb.syncing.remembered
    if address is not None and not host.syncing.running:
        text = (
            "What was changed here goes there, and what was changed there comes here. Where both "
            f"changed the same line, yours stays and theirs waits in the inbox. /sync {STOP} ends "
            "it."
        )
        host.tell(NoticeItem(title=f"Syncing with {address.shown}", text=text))
    result = await host.syncing.run(
        lambda tell, stopped: kb.syncing.run(
            argument or None, tell=tell, stopped=stopped, count=progress_reporter(tell)
        )
    )
    lines = list(result.report.notes)
    if result.proposals:
        count = len(result.proposals)
        waits = "1 place was" if count == 1 else f"{count} places were"
        lines.append(f"{waits} changed on both sides: yours stands, theirs is in the inbox (F6).")
    host.tell(NoticeItem(title=result.summary, text="\n".join(lines)))


async def _show_dream(host: ChatHost, report: DreamReport) -> None:
    proposed = [diff for each in report.suggestions for diff in each.diffs]
    text = "\n".join([report.text, *(each.why for each in report.suggestions)])
    await confirm(host, "Dream, without writing", text, {}, [*report.diffs, *proposed])


async def _dream_log(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    change = await asyncio.to_thread(kb.memory.dream_log.show, argument or None, "/dream")
    if not argument:
        idle = await asyncio.to_thread(kb.memory.dream_log.idle)
        host.tell(NoticeItem(title=change.commit.body, text=f"Since then: {idle}"))
    host.post_message(OpenHistory(commit=change.commit.id))


async def _dream_restore(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    """Take back a change by Dream, or go back to the state before it."""
    words = argument.split()
    rev = next((word for word in words if word != _ALL), "") or await _choose_dream(host, kb)
    if not rev:
        return
    change = await asyncio.to_thread(kb.memory.dream_log.show, rev, "/dream")
    answer = "b" if _ALL in words else await _ask_how_far(host, kb, change)
    if answer == "b":
        commit = await restore_before(host, kb.history, change.commit)
        if commit is not None:
            host.tell(
                NoticeItem(title="Restored", text=await asyncio.to_thread(told, kb.library, commit))
            )
    elif answer == "y":
        undo = partial(kb.memory.dream_log.restore, change.commit.id)
        did = await asyncio.to_thread(told, kb.library, change.commit)
        done = await confirm_and_undo(host.app, kb.history, did, undo)
        if done is not None:
            host.tell(NoticeItem(title="Undone", text=did))


async def _ask_how_far(host: ChatHost, kb: KnowledgeBase, change: DreamChange) -> str | None:
    """Ask whether to take back a change alone or everything since; show what the former does."""
    did = await asyncio.to_thread(told, kb.library, change.commit)
    text = f"{did}, {moment(change.commit.time)}.\n"
    try:
        diffs = await asyncio.to_thread(kb.memory.dream_log.preview, change.commit.id)
        text += "Only this change is taken back, as shown below; what was written since stays."
    except UndoConflictError as error:
        diffs = change.diffs
        text += f"It did what is shown below. {error.message} You will be asked about each."
    choices = {"y": "takes it back", "b": "goes back to before it; shows it first"}
    return await confirm(host, "Take back a change of Dream's", text, choices, diffs)


async def _choose_dream(host: ChatHost, kb: KnowledgeBase) -> str | None:
    commits = await asyncio.to_thread(kb.memory.dream_log.log)
    if not commits:
        raise NotFoundError("Dream has changed nothing yet.", "/dream lets it.")
    choices = [
        Choice(await asyncio.to_thread(told, kb.library, each), moment(each.time), each.id)
        for each in commits
    ]
    return await pick(host.app, "Which change of Dream's?", choices)


# Reports, today's note and tags


async def _audit(host: ChatHost, kb: KnowledgeBase, _argument: str) -> None:
    text = await asyncio.to_thread(audit_report, kb)
    host.app.push_screen(PageScreen("What became of every message", text))


async def _today(host: ChatHost, kb: KnowledgeBase, _argument: str) -> None:
    own = kb.library.daily_note(local_day())
    if own is not None:
        await asyncio.to_thread(kb.journal.begin_page, local_day(), own[0])
    host.post_message(OpenToday())


async def _tag(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    path = host.shown_entry()
    if path is None:
        raise UsageError("No note is open to be tagged.", "Open one first, with F5.")
    tags = await asyncio.to_thread(retag, kb.library, path, argument.split())
    host.say("Tags: " + (", ".join(f"#{tag}" for tag in tags) or "none"))


COMMANDS: Mapping[str, CommandFunction] = {
    "/remember": _remember,
    "/forget": _forget,
    "/memory": show_memory,
    "/compact": _compact,
    "/dream": _dream,
    "/dream-log": _dream_log,
    "/dream-restore": _dream_restore,
    "/sync": _sync,
    "/import": import_command,
    "/audit": _audit,
    "/journal": _journal,
    "/today": _today,
    "/tag": _tag,
}
"""The function of each command of the context ``memory``."""
