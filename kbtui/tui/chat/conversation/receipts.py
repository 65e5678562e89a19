"""Receipts: what was kept of a message, in its own row instead of a card and an answer.

A statement that went into a day's page or into MEMORY.md is read back from the row it was typed
in; a note of its own gets a card (`cards`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kbtui.presentation.notes import day_of_note
from kbtui.sessions import KEEP, SEARCH
from kbtui.text import clean_line
from kbtui.tui.chat.conversation.cards import ToolItem
from kbtui.tui.chat.conversation.items import AnswerItem, Item, Receipt, UserItem
from kbtui.workspace.layout import MEMORY

_TIME = re.compile(r"\d\d:\d\d\Z")


def receipt_of(tool: ToolItem) -> Receipt | None:
    """Return the receipt of a call that kept a message, or None if a card has to say more."""
    if tool.tool != KEEP or not tool.ok:
        return None
    if not tool.paths and tool.summary.startswith("known"):
        return Receipt("", known=tool.summary)
    if len(tool.paths) != 1:
        return None
    (path,) = tool.paths
    if path != MEMORY and day_of_note(path) is None:
        return None
    time = _TIME.search(tool.summary)
    is_task = tool.summary.startswith("a task")
    return Receipt(path, time[0] if time else "", is_task=is_task, undone=tool.undone)


def is_own_words(tool: str, query: object, said: str) -> bool:
    """Return whether a call searches for the very words of the message it answers."""
    return tool == SEARCH and isinstance(query, str) and clean_line(query) == clean_line(said)


def after_receipt(answer: str, sentence: str) -> str:
    """Return what an answer says besides the sentence that a receipt stands for."""
    return answer.removeprefix(sentence).lstrip("\n") if answer.startswith(sentence) else answer


def fold(items: Sequence[Item]) -> list[Item]:
    """Return the items of stored turns with their receipts, as they were shown at first."""
    shown: list[Item] = []
    said, sentence = UserItem(), ""
    for item in items:
        match item:
            case UserItem():
                said, sentence = item, ""
            case ToolItem() if (receipt := receipt_of(item)) is not None:
                said.receipt, sentence = receipt, item.output
                continue
            case ToolItem() if item.ok and is_own_words(item.tool, item.query, said.text):
                continue
            case AnswerItem() if sentence:
                item.text = after_receipt(item.text, sentence)
                if not item.text:
                    continue
        shown.append(item)
    return shown
