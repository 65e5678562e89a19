"""From elsewhere to a message of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.sessions.store import Claim
from kbtui.tui.messages import OpenMessage
from tests.tui.shell import running

if TYPE_CHECKING:
    from pathlib import Path

MANY = 120


@pytest.fixture
async def shell(tmp_path: Path):
    async with running(tmp_path / "kb") as shell:
        yield shell


def _talk(shell, count: int = MANY) -> None:
    with shell.chat.kb.sessions.create("tui", id="talk") as talk:
        for number in range(1, count + 1):
            talk.append("user" if number % 2 else "assistant", f"This is message {number}.")


async def test_a_message_is_opened_and_selected_however_long_ago(shell) -> None:
    _talk(shell)
    message = 12
    shell.app.main.post_message(OpenMessage("talk", message))
    transcript = shell.transcript
    await shell.until(lambda: transcript.cursor and transcript.cursor.message == message)
    await shell.until(lambda: f"This is message {message}." in shell.text)
    assert transcript.has_focus
    assert shell.chat.conversation.session.id == "talk"


async def test_what_was_taken_back_is_said(shell) -> None:
    _talk(shell, 8)
    with shell.chat.kb.sessions.open("talk") as talk:
        talk.rewind(4)
    shell.app.main.post_message(OpenMessage("talk", 6))
    await shell.notified("taken back")
    assert shell.transcript.cursor.message == 4


async def test_a_session_that_is_open_elsewhere_is_read_in_the_notes(shell) -> None:
    _talk(shell, 8)
    claim = Claim.take(shell.chat.kb.workspace.machine / "sessions", "talk")
    try:
        shell.app.main.post_message(OpenMessage("talk", 6))
        notes = shell.app.main.notes
        await shell.until(lambda: notes.current_path == "sessions/talk.jsonl")
    finally:
        claim.release()
