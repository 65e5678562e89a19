"""The commands of memory: remember, forget, dream and what shows or undoes what they did."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.text import clean_line
from kbtui.tui.chat.items import LinkItem, NoticeItem, Target, failure
from kbtui.tui.chat.sync_command import SyncCommand
from kbtui.tui.messages import Notify, OpenEntry, OpenHistory

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.dream.report import DreamReport
    from kbtui.memory.recall.forget import ForgetPlan
    from kbtui.tui.actions.registry import Action
    from kbtui.tui.chat.chat_pane import ChatPane

_DRY = "--dry-run"


class MemoryCommands:
    """Carries out the actions of the context ``memory`` for the pane of the chat."""

    def __init__(self, pane: ChatPane) -> None:
        self._pane = pane
        self.syncing = SyncCommand(pane)

    def run(self, action: Action, argument: str = "") -> None:
        """Carry out an action; one that wants words gets them in the prompt first."""
        kb = self._pane.kb
        if kb is None:
            self._say("The workspace is still being opened; try again in a moment.", "warning")
        elif action.usage.startswith("<") and not argument:
            self._pane.prompt.replace_text(f"{action.slash} ")
            self._pane.focus_prompt()
        else:
            work = getattr(self, f"_{action.method}")(kb, argument)
            self._pane.run_worker(self._told(work), group="memory")

    async def _told(self, work: Coroutine[None, None, None]) -> None:
        """Do something; what goes wrong is said in the conversation."""
        try:
            await work
        except KbtuiError as error:
            self._pane.tell(failure(error))

    def _say(self, text: str, severity: str = "information") -> None:
        self._pane.post_message(Notify(text, severity))  # type: ignore[arg-type]

    # Facts

    async def _remember(self, kb: KnowledgeBase, argument: str) -> None:
        kept = await asyncio.to_thread(kb.memory.remembering.remember, argument)
        label = "known already" if kept.commit is None else "remembered"
        place = Target("memory/MEMORY.md", kept.line)
        self._pane.tell(LinkItem(label=label, to=place, note=kept.fact))
        if kept.warning:
            self._say(kept.warning, "warning")

    async def _forget(self, kb: KnowledgeBase, argument: str) -> None:
        from kbtui.tui.diff.confirm import ConfirmScreen

        plan = await asyncio.to_thread(kb.memory.forgetting.plan, argument)
        screen = ConfirmScreen("Forget this?", _plan_text(plan), {"enter": "forgets it"})
        if await self._pane.app.push_screen_wait(screen) is None:
            return
        done = await asyncio.to_thread(kb.memory.forgetting.forget, plan)
        count = len(plan.matches)
        taken = f"{count} line{'s' * (count != 1)} taken out. " if count else ""
        undo = (
            "The history can bring it back (F4); `kbtui purge` takes it out of there as well."
            if done.commits
            else ""
        )
        self._pane.tell(NoticeItem(title="Forgotten", text=f"{taken}{undo}"))

    # The slow ones

    async def _compact(self, kb: KnowledgeBase, _argument: str) -> None:
        session = self._pane.conversation.session
        if session is None or not session.messages:
            self._say("There is nothing to condense yet.")
            return
        if kb.memory.keeper.status().state == "stopped":
            raise UsageError("Nothing is condensed while the workspace is read-only.")
        future = kb.memory.keeper.condense(session.id, everything=True)
        outcome = await asyncio.wrap_future(future)
        if outcome.messages is not None:
            first, last = outcome.messages
            title = f"Messages {first} to {last} are condensed into the archive"
            self._pane.tell(NoticeItem(title=title, text=outcome.notice))
        elif outcome.error is not None:
            self._pane.tell(failure(outcome.error))
        else:
            self._say("Everything said here is in the archive already.")

    async def _dream(self, kb: KnowledgeBase, argument: str) -> None:
        if argument not in ("", _DRY):
            raise UsageError(f"/dream knows no {clean_line(argument)!r}.", f"/dream {_DRY}")
        if kb.memory.keeper.status().state == "stopped":
            raise UsageError("Dream doesn't run while the workspace is read-only.")
        dry = argument == _DRY
        dream, told = kb.memory.dream, kb.memory.dreaming
        future = kb.memory.keeper.submit("dream", lambda: dream.run(dry_run=dry, on_progress=told))
        report = await asyncio.wrap_future(future)
        if dry and (report.diffs or report.suggestions):
            await self._show_dream(report)
        elif report.error is not None:
            self._pane.tell(failure(report.error))
        else:
            more = "/dream-log shows it." if report.diffs and not dry else ""
            self._pane.tell(NoticeItem(title=report.text, text=more))

    async def _sync(self, kb: KnowledgeBase, argument: str) -> None:
        await self.syncing.run(kb, argument)

    async def _show_dream(self, report: DreamReport) -> None:
        from kbtui.tui.diff.confirm import ConfirmScreen

        proposed = [diff for each in report.suggestions for diff in each.diffs]
        text = "\n".join([report.text, *(each.why for each in report.suggestions)])
        await self._pane.app.push_screen_wait(
            ConfirmScreen("Dream, without writing", text, {}, [*report.diffs, *proposed])
        )

    async def _dream_log(self, kb: KnowledgeBase, argument: str) -> None:
        change = await asyncio.to_thread(kb.memory.dream_log.show, argument or None)
        self._pane.post_message(OpenHistory(commit=change.commit.id))

    async def _dream_restore(self, kb: KnowledgeBase, argument: str) -> None:
        """Go back to before a change of Dream's; or, beside it, undo only that one."""
        from kbtui.tui.diff.confirm import ConfirmScreen

        rev = argument or await self._choose_dream(kb)
        if not rev:
            return
        change = await asyncio.to_thread(kb.memory.dream_log.show, rev)
        diffs = await asyncio.to_thread(kb.memory.dream_log.preview, rev)
        when = change.commit.time.astimezone().strftime("%Y-%m-%d %H:%M")
        text = (
            f"{change.commit.subject} ({when})\n"
            "b: everything durable becomes what it was before, as shown below; later changes go "
            "too.\no: only this change of Dream's is undone; later ones stay."
        )
        choices = {"b": "back to before it", "o": "only this change"}
        screen = ConfirmScreen("Restore", text, choices, diffs)
        answer = await self._pane.app.push_screen_wait(screen)
        if answer is None:
            return
        if answer == "b":
            commit = await asyncio.to_thread(kb.memory.dream_log.restore, change.commit.id)
            done = commit.subject if commit is not None else "It is all so already."
            self._pane.tell(NoticeItem(title="Restored", text=done))
        else:
            await self._undo(kb, change.commit.id)

    async def _undo(self, kb: KnowledgeBase, commit: str) -> None:
        """Undo one change; where a line was changed again, the person decides."""
        from kbtui.tui.diff.undo_conflict import undo_settled

        done = await undo_settled(
            self._pane, lambda decided: kb.history.undo(commit, decisions=decided)
        )
        if done is not None:
            self._pane.tell(NoticeItem(title="Undone", text=done.subject))

    async def _choose_dream(self, kb: KnowledgeBase) -> str | None:
        from kbtui.tui.widgets.choice_list import Choice
        from kbtui.tui.widgets.dialogs import PickDialog

        commits = await asyncio.to_thread(kb.memory.dream_log.log)
        if not commits:
            raise NotFoundError("Dream has changed nothing yet.", "/dream lets it.")
        choices = [
            Choice(
                f"{commit.id[:10]}  {commit.subject}",
                commit.time.astimezone().strftime("%Y-%m-%d %H:%M"),
                commit.id,
            )
            for commit in commits
        ]
        chosen: str | None = await self._pane.app.push_screen_wait(
            PickDialog("Which change of Dream's?", choices)
        )
        return chosen

    # Looking and sorting

    async def _audit(self, kb: KnowledgeBase, _argument: str) -> None:
        from kbtui.tui.chat.reports import audit_report
        from kbtui.tui.widgets.page import PageScreen

        text = await asyncio.to_thread(audit_report, kb)
        self._pane.app.push_screen(PageScreen("What became of every message", text))

    async def _today(self, kb: KnowledgeBase, _argument: str) -> None:
        from kbtui.memory.recall.today import todays_note

        day = datetime.now().astimezone().date()
        path = await asyncio.to_thread(todays_note, kb.workspace, kb.history, day)
        self._pane.post_message(OpenEntry(path))

    async def _tag(self, kb: KnowledgeBase, argument: str) -> None:
        from kbtui.knowledge.tagging import retag

        path = self._pane.shown_entry()
        if path is None:
            raise UsageError("No entry is open to be tagged.", "Open one first, with F5.")
        tags = await asyncio.to_thread(retag, kb.library, path, argument.split())
        self._say("Tags: " + (", ".join(f"#{tag}" for tag in tags) or "none"))


def _plan_text(plan: ForgetPlan) -> str:
    """What would be taken out, for a person to agree to."""
    lines = []
    for match in plan.matches:
        place = f"{match.path}:{match.line}" if match.line else f"{match.path} (summary)"
        lines.append(f"{clean_line(place)}\n  {clean_line(match.text)}")
    lines += [f"Nothing is left of {path}: it is deleted." for path in plan.entries]
    if plan.messages:
        count = "A message" if plan.messages == 1 else f"{plan.messages} messages"
        lines.append(f"{count} said so; memory passes that over.")
    if plan.is_empty:
        lines.append("It stands nowhere. It won't be written from now on either.")
    return "\n".join(lines)
