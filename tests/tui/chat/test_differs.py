"""An answer that differs from a line of the notes says so, and `w` shows that line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.agent.events import DIFFERS, AnswerDiffers, TextDelta, TextRevoked, TurnFinished
from kbtui.memory.recall.differing import Difference
from kbtui.sessions.store import SessionMessage
from kbtui.tui.chat.conversation.conversation import replay
from kbtui.tui.chat.conversation.items import AnswerItem, DiffersItem
from tests.tui.shell import running

if TYPE_CHECKING:
    from pathlib import Path

LINE = "The rent of the flat in Mainz is 870 euros"
ANSWER = "Your rent in Mainz is 890 euros [2]."
OTHER = Difference("number", "890", 2, "knowledge/facts/mainz.md", 8, LINE)
NOT_IN_NOTES = "not in your notes"


@pytest.fixture
async def shell(tmp_path: Path):
    async with running(tmp_path / "kb") as shell:
        yield shell


async def test_the_remark_stands_below_the_answer_and_w_shows_the_line(shell) -> None:
    shell.agent.script = [
        TextDelta(ANSWER),
        AnswerDiffers(OTHER),
        TurnFinished(ANSWER, "", "", differs=(OTHER,)),
    ]
    await shell.say("what is the rent?")
    assert [type(each) for each in shell.transcript.items[1:]] == [AnswerItem, DiffersItem]
    assert "≠ differs from [2] · another number · w shows the line" in shell.text
    assert LINE not in shell.text
    await shell.press("shift+tab", "k", "w")  # on the answer
    await shell.until(lambda: LINE in shell.text)
    await shell.press("j", "w")  # on the remark
    await shell.until(lambda: LINE not in shell.text)
    opened = []
    shell.app.main.notes.open_entry = lambda path, line=None, edit=False: opened.append(
        (path, line)
    )
    await shell.press("o")
    await shell.until(lambda: opened == [("knowledge/facts/mainz.md", 8)])


async def test_the_remark_on_what_turned_out_to_be_thinking_goes(shell) -> None:
    shell.agent.script = [
        TextDelta(ANSWER),
        AnswerDiffers(OTHER),
        TextRevoked(),
        TextDelta("It is 870 euros [2]."),
        TurnFinished("It is 870 euros [2].", "", ""),
    ]
    await shell.say("what is the rent?")
    assert "differs" not in shell.text


async def test_only_the_selected_answer_says_that_it_is_not_in_the_notes(shell) -> None:
    answer = "Lake Baikal is the deepest lake."
    shell.agent.script = [TextDelta(answer), TurnFinished(answer, "", "", is_unfounded=True)]
    await shell.say("which lake is the deepest?")
    assert NOT_IN_NOTES not in shell.text
    await shell.press("shift+tab")
    await shell.until(lambda: NOT_IN_NOTES in shell.text)
    await shell.press("k")
    await shell.until(lambda: NOT_IN_NOTES not in shell.text)


async def test_without_a_remark_w_does_nothing(shell) -> None:
    shell.agent.script = [TextDelta("Yes."), TurnFinished("Yes.", "", "")]
    await shell.say("is it?")
    await shell.press("shift+tab", "w")
    assert shell.transcript.check_action("differs", ()) is False


def test_a_stored_answer_keeps_the_place_and_not_the_line() -> None:
    stored = {
        "kind": "denial",
        "said": "",
        "n": 0,
        "path": "sessions/a.jsonl",
        "line": 3,
        "text": "",
    }
    message = SessionMessage(
        id=2,
        role="assistant",
        content="No.",
        time=datetime.now(UTC),
        turn="t",
        meta={DIFFERS: [stored]},
    )
    answer, remark = replay([message])
    assert isinstance(answer, AnswerItem)
    (line,) = remark.lines(70)
    assert line.text.startswith("  ≠ differs from what you said · the opposite")
    assert remark.target is not None
    assert (remark.target.path, remark.target.line) == ("sessions/a.jsonl", 3)
    damaged = SessionMessage(
        id=2, role="assistant", content="No.", time=datetime.now(UTC), meta={DIFFERS: [{"x": 1}]}
    )
    assert len(replay([damaged])) == 1
