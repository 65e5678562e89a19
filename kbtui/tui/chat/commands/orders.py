"""Carries out what a message without a model ordered, after one question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from kbtui.errors import StoppedError, UsageError
from kbtui.history.change import Change, is_import
from kbtui.knowledge_base import KnowledgeBase
from kbtui.offline.orders import Order
from kbtui.presentation.notes import Names, name_of
from kbtui.text import clean_line
from kbtui.tui.chat.commands.forgetting import confirm_and_forget
from kbtui.tui.chat.conversation.items import LinkItem, NoticeItem, Target
from kbtui.tui.chat.host import ChatHost
from kbtui.tui.diff.confirm import Question, make_change
from kbtui.tui.diff.undo_conflict import confirm_and_undo
from kbtui.tui.widgets.kinds import draw_sentence

_ASKS_ALWAYS = -1
_BACK = "The history can take it back (F4)."


async def carry_out(host: ChatHost, kb: KnowledgeBase, order: Order) -> None:
    """Ask whether to do what was ordered, and do it.

    Raises:
        KbtuiError: It can't be done.
    """
    try:
        match order.kind:
            case "forget" | "erase":
                await _forget(host, kb, order.about)
            case "rename":
                await _rename(host, kb, order.about, order.names[0][1])
            case "delete":
                await _delete(host, kb, order.about)
            case "undo":
                await _undo_last(host, kb)
    except StoppedError as stopped:
        host.say(stopped.message)


async def _forget(host: ChatHost, kb: KnowledgeBase, about: str) -> None:
    forgotten = await confirm_and_forget(host.app, kb, about)
    if forgotten is not None:
        host.tell(forgotten)


async def _rename(host: ChatHost, kb: KnowledgeBase, path: str, new: str) -> None:
    now = [path]

    def gather(sink: Callable[[Change], object]) -> None:
        now.append(kb.library.rename(path, new, sink=sink).path)

    title = f"Rename {clean_line(name_of(path))} to {clean_line(new)}"
    text = "{files} would be rewritten: the note, and the links to it, which follow."
    question = Question(title, text, "renames it", unasked=_ASKS_ALWAYS)
    if await make_change(host.app, kb.history, gather, question) is not None:
        host.tell(LinkItem(label="renamed", to=Target(now[-1]), note=_BACK))


async def _delete(host: ChatHost, kb: KnowledgeBase, path: str) -> None:
    title = f"Delete {clean_line(name_of(path))}"
    text = "{files} would be changed: the note goes, and links to it become plain text."
    question = Question(title, text, "deletes it", unasked=_ASKS_ALWAYS)
    delete = partial(kb.library.delete, path)
    if await make_change(host.app, kb.history, delete, question) is not None:
        host.tell(NoticeItem(title="Deleted", text=f"{clean_line(name_of(path))}. {_BACK}"))


async def _undo_last(host: ChatHost, kb: KnowledgeBase) -> None:
    last = await asyncio.to_thread(kb.history.last_change)
    if is_import(last.origin.batch):
        raise UsageError("The last change is an import.", "/import undo takes it back as a whole.")
    what = draw_sentence(last, await asyncio.to_thread(_names, kb)).plain
    done = await confirm_and_undo(
        host.app, kb.history, what, partial(kb.history.undo, last.id), unasked=_ASKS_ALWAYS
    )
    if done is not None:
        host.tell(NoticeItem(title="Undone", text=done.subject))


def _names(kb: KnowledgeBase) -> Names:
    return Names(kb.library.infos())
