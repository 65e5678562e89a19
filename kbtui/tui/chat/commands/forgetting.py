"""``/forget``: shows the matching lines, asks for confirmation, and removes them."""

from __future__ import annotations

from textual.dom import DOMNode

from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.background.service import ForgetPlan
from kbtui.text import clean_line, counted
from kbtui.tui.chat.conversation.items import NoticeItem
from kbtui.tui.diff.confirm import confirm, run_with_progress
from kbtui.workspace.layout import short_name


async def confirm_and_forget(node: DOMNode, kb: KnowledgeBase, text: str) -> NoticeItem | None:
    """Show the lines that match and forget them if the person agrees; None if they decline.

    Raises:
        StoppedError: The person stopped it.
        KbtuiError: It failed.
    """
    title = f"Forget {clean_line(text)}"
    plan = await run_with_progress(
        node, title, "Looking where it stands …", lambda _: kb.memory.forgetting.plan(text)
    )
    if await confirm(node, f"{title}?", _plan_text(plan), {"y": "forgets it"}) is None:
        return None
    done = await run_with_progress(
        node, title, "Taking it out …", lambda _: kb.memory.forgetting.forget(plan), writes=True
    )
    sentences = []
    if plan.matches:
        places = ", ".join(short_name(path) for path in done.paths)
        sentences.append(f"{counted(len(plan.matches), 'line')} taken out of {places}.")
    if done.commits:
        sentences.append("The history can bring it back (F4).")
    return NoticeItem(title="Forgotten", text=" ".join([*sentences, *done.left]))


def _plan_text(plan: ForgetPlan) -> str:
    """Describe what would be removed, for the confirmation."""
    lines = []
    if plan.matches:
        files = len({match.path for match in plan.matches})
        lines.append(
            f"{counted(len(plan.matches), 'line')} in {counted(files, 'file')} would be taken out; "
            "the history can bring them back (F4).\n"
        )
    for match in plan.matches:
        place = f"{match.path}:{match.line}" if match.line else f"{match.path} ({match.key})"
        lines.append(f"{clean_line(place)}\n  {clean_line(match.text)}")
    lines += plan.notes
    if plan.is_empty:
        lines.append("It stands nowhere. It won't be written from now on either.")
    return "\n".join(lines)
