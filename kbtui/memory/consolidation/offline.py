"""Condensing without a model: the functions of `kbtui.offline` on pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.memory.consolidation.answer import Answer
from kbtui.offline.condensing import Message, facts_of, history_entry, notes_of, slug_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbtui.memory.consolidation.page import Page
    from kbtui.memory.records.transcript import Conversation
    from kbtui.sessions.store import SessionMessage


def answer_of(page: Page) -> Answer:
    """The remains of a page: its summary, what its user messages state, and their notes."""
    said = _messages(page.conversation, filter(page.shows, page.messages))
    return Answer(history_entry(said), tuple(facts_of(said)), tuple(notes_of(said)), slug_of(said))


def _messages(conversation: Conversation, messages: Iterable[SessionMessage]) -> list[Message]:
    judged = {each.turn for each in conversation.messages if each.meta.get("judged")}
    return [
        Message(
            each.id, each.role, conversation.spoken(each), bool(each.turn) and each.turn in judged
        )
        for each in messages
        if each.role in ("user", "assistant")
    ]
