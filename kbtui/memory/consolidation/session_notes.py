"""The file that a session leaves behind when it ends (seed 001, phase 1).

``memory/YYYY-MM-DD-slug.md``: a summary of the last messages by a forced ``create_session_memory``,
and what was said, shortened. Where the model fails the file holds the excerpt alone.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from kbtui.errors import ModelAnswerError, ModelError
from kbtui.history.change import Actor, Origin
from kbtui.memory.consolidation.ask import ask_tool
from kbtui.memory.consolidation.offline import session_memory_of
from kbtui.memory.consolidation.prompts import CREATE_SESSION_MEMORY, notes_prompt
from kbtui.memory.records.committing import committed
from kbtui.memory.records.dates import absolute_dates, local
from kbtui.memory.records.usable_answers import usable_text
from kbtui.models.schema import ArgumentError, parse_arguments
from kbtui.models.tokens import cut_to_tokens
from kbtui.settings import OFFLINE
from kbtui.text import shorten, slugify
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from kbtui.history.change import Change
    from kbtui.history.history import History
    from kbtui.memory.consolidation.pending import Pending
    from kbtui.memory.records.lock import MemoryLock
    from kbtui.memory.records.transcript import Conversation
    from kbtui.models.port import ChatModel
    from kbtui.sessions.store import SessionMessage
    from kbtui.settings import SessionNotesSettings
    from kbtui.workspace.layout import Workspace

log = logging.getLogger(__name__)
MAX_SLUG = 40
_EXCERPT_WIDTH = 200
_SPOKEN = frozenset({"user", "assistant"})
_RAW = "[RAW] No summary could be made; what was said stands below."


@dataclass(frozen=True, slots=True)
class SessionNotes:
    """The file that was written."""

    path: str
    commit: str
    is_raw: bool = False


class SessionMemoryWriter:
    """Writes one file for each ended session.

    Args:
        workspace: Where the files go.
        history: The door, and what was written before.
        pending: Reads sessions.
        lock: One at a time, over all processes.
        model: Gives the model of the role ``consolidate``; may raise a `ModelError`.
        settings: Whether, and of how many messages.
    """

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        pending: Pending,
        lock: MemoryLock,
        model: Callable[[], ChatModel],
        settings: SessionNotesSettings,
    ) -> None:
        self._root = workspace.root
        self._history = history
        self._pending = pending
        self._lock = lock
        self._model = model
        self._settings = settings

    async def write_session_memory(self, session: str) -> SessionNotes | None:
        """Summarise what was said since the session ended last, and write the file.

        Args:
            session: Its id.

        Returns:
            The file; None where the session is too short to be worth one.

        Raises:
            BudgetError: a limit on what background work may cost.
            WorkspaceBusyError: another process is at it.
            StorageError: the file system refused.
        """
        if not self._settings.enabled:
            return None
        async with self._lock.hold():
            conversation = await asyncio.to_thread(self._pending.conversation, session)
            messages = await asyncio.to_thread(self._fresh, conversation)
            users = sum(message.role == "user" for message in messages)
            if not messages or users < self._settings.min_user_messages:
                return None
            chosen = messages[-self._settings.max_messages :]
            slug, summary, model = await self._summary(conversation, chosen)
            return await asyncio.to_thread(self._write, conversation, chosen, slug, summary, model)

    def _fresh(self, conversation: Conversation) -> list[SessionMessage]:
        """What was said since the last file of this session."""
        spoken = [
            message
            for message in conversation.messages
            if message.role in _SPOKEN
            and conversation.shown(message)
            # What answers took from private entries must not get where other models read.
            and (message.role == "user" or message.id not in conversation.private)
        ]
        if not spoken:
            return []
        last = 0
        since = spoken[0].time - timedelta(seconds=2)
        for commit in self._history.log(actor=Actor.SESSION_MEMORY, since=since):
            if commit.origin.session == conversation.id and commit.origin.messages:
                last = commit.origin.messages[1]
                break
        return [message for message in spoken if message.id > last]

    async def _summary(
        self, conversation: Conversation, chosen: list[SessionMessage]
    ) -> tuple[str, str, str]:
        """Slug, summary and the model's name; an empty summary where the model fails."""
        name = ""
        try:
            model = await asyncio.to_thread(self._model)
            name = model.name
            if name == OFFLINE:
                slug, summary = session_memory_of(conversation, chosen)
                return slug, summary, name
            text = "".join(conversation.line(message) for message in chosen)
            text = cut_to_tokens(text, model.context_window // 2)
            slug, summary = await ask_tool(
                model, notes_prompt(text), CREATE_SESSION_MEMORY, read_session_memory
            )
        except ModelError as error:
            log.info("the notes of %s are raw: %s", conversation.id, error.message)
            return slugify(_first_words(chosen), MAX_SLUG), "", name
        return slug, summary, model.name

    def _write(
        self,
        conversation: Conversation,
        chosen: list[SessionMessage],
        slug: str,
        summary: str,
        model: str,
    ) -> SessionNotes:
        ended = local(chosen[-1].time)
        text = render(conversation, chosen, ended, absolute_dates(summary, ended.date()))

        def work(change: Change) -> str:
            path = self._free_path(f"{ended:%Y-%m-%d}-{slug}")
            change.write(path, text, expecting=None)
            return path

        span = (chosen[0].id, chosen[-1].id)
        origin = Origin(session=conversation.id, messages=span, model=model or None)
        path, commit = committed(
            self._history,
            self._root,
            Actor.SESSION_MEMORY,
            f"What the session {conversation.id} was about.",
            origin,
            work,
        )
        return SessionNotes(path, commit.id if commit else "", is_raw=not summary)

    def _free_path(self, name: str) -> str:
        number = 1
        while True:
            path = f"memory/{name}{f'-{number}' if number > 1 else ''}.md"
            if not files.exists(self._root, path) and files.twin(self._root, path) is None:
                return path
            number += 1


def read_session_memory(arguments: str) -> tuple[str, str]:
    """Slug and summary out of the arguments of ``create_session_memory``.

    Raises:
        ModelAnswerError: they can't be used; the message says why.
    """
    try:
        value = parse_arguments(arguments, CREATE_SESSION_MEMORY.parameters)
    except ArgumentError as error:
        raise ModelAnswerError(error.message) from None
    summary = usable_text(value["summary"], "summary")
    return slugify(value["slug"], MAX_SLUG), _below_title(summary)


def render(
    conversation: Conversation, chosen: list[SessionMessage], ended: datetime, summary: str
) -> str:
    """The file, as seed 001 has it; without a summary it says so."""
    said = "\n".join(
        f"{message.role}: {shorten(conversation.spoken(message), _EXCERPT_WIDTH)}"
        for message in chosen
    )
    return f"""# Session Memory: {ended:%Y-%m-%d %H:%M}

- **Session**: {conversation.id}
- **Date**: {ended:%Y-%m-%d %H:%M:%S}

## Summary

{summary or _RAW}

## Key Messages

{said}
"""


def _below_title(summary: str) -> str:
    """A summary whose headings stand below the file's own."""
    lines = [
        f"#{line}" if line.startswith("## ") else f"##{line}" if line.startswith("# ") else line
        for line in summary.splitlines()
    ]
    return "\n".join(lines)


def _first_words(messages: list[SessionMessage]) -> str:
    said = next((message.content for message in messages if message.role == "user"), "")
    return shorten(said, MAX_SLUG) or "session"
