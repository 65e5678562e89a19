"""Condensing without a model: the functions of `kbtui.offline` on pages and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.memory.records.extraction import Draft, Extraction
from kbtui.offline.condensing import Message, facts_of, history_entry, notes_of, slug_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbtui.memory.consolidation.page import Page
    from kbtui.memory.records.transcript import Conversation
    from kbtui.sessions.store import SessionMessage


def extraction_of(page: Page) -> Extraction:
    """What a page leaves behind: its summary, and what its user messages state."""
    said = _messages(page.conversation, filter(page.shows, page.messages))
    facts = facts_of(said)
    return Extraction(
        history_entry(said),
        tuple(fact.text for fact in facts if fact.place == "memory"),
        drafts=tuple(
            Draft(fact.kind, fact.subject, "", fact.text, fact.tags, fact.related)
            for fact in facts
            if fact.place == "entry"
        ),
    )


def notes_of_page(page: Page) -> list[str]:
    """The notes of the day that a page gives."""
    return notes_of(_messages(page.conversation, filter(page.shows, page.messages)))


def session_memory_of(
    conversation: Conversation, chosen: Iterable[SessionMessage]
) -> tuple[str, str]:
    """Slug and summary of the end of a session."""
    said = _messages(conversation, chosen)
    bullets = "\n".join(f"- {line}" for line in notes_of(said))
    return slug_of(said), "\n\n".join(filter(None, [history_entry(said), bullets]))


def _messages(conversation: Conversation, messages: Iterable[SessionMessage]) -> list[Message]:
    judged = {each.turn for each in conversation.messages if each.meta.get("judged")}
    return [
        Message(
            each.id, each.role, conversation.spoken(each), bool(each.turn) and each.turn in judged
        )
        for each in messages
        if each.role in ("user", "assistant")
    ]
