"""What was kept of a message stands in its own row, and a quote names its source in its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.agent.events import (
    Citation,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnChange,
    TurnFinished,
)
from kbtui.models.port import ToolCall
from kbtui.sessions import KEEP, SEARCH
from kbtui.sessions.store import SessionMessage
from kbtui.tui.chat.conversation.conversation import replay
from kbtui.tui.chat.conversation.items import AnswerItem, LinkItem, Receipt, Target, UserItem
from kbtui.tui.chat.conversation.receipts import fold
from tests.tui.shell import running

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime.now().astimezone()
TODAY = f"memory/{NOW:%Y-%m-%d}.md"
YESTERDAY = f"memory/{NOW - timedelta(days=1):%Y-%m-%d}.md"
SAID = "Priya is the new designer"
QUOTE = f"From your notes:\n\n> {SAID} [1] · *today 20:33*"
JOURNAL = LinkItem(label="[1]", to=Target(TODAY, 7))
CITED = [{"n": 1, "path": TODAY, "lines": [7, 7], "title": "Today"}]


@pytest.fixture
async def shell(tmp_path: Path):
    async with running(tmp_path / "kb") as shell:
        yield shell


def _plain(item, width: int) -> list[str]:
    return [line.text for line in item.lines(width)]


def _message(id: int, role: str, content: str, **more) -> SessionMessage:
    return SessionMessage(id=id, role=role, content=content, time=NOW, turn="t", **more)


def _kept(summary: str = "noted 20:33", path: str = TODAY) -> SessionMessage:
    changes = [{"commit": "c1", "paths": [path]}]
    meta = {"summary": summary, "changes": changes}
    return _message(3, "tool", "Noted.", tool_call_id="k", meta=meta)


def _turn(kept: SessionMessage, answer: str = "Noted.") -> list[SessionMessage]:
    call = ToolCall("k", KEEP, '{"text": "it"}')
    return [
        _message(1, "user", SAID),
        _message(2, "assistant", "", tool_calls=(call,)),
        kept,
        _message(4, "assistant", answer),
    ]


def test_a_stored_statement_is_one_row_with_its_receipt_at_the_right_end() -> None:
    (row,) = fold(replay(_turn(_kept())))
    (line,) = _plain(row, 60)
    assert line.startswith(f"> {SAID}  ")
    assert line.endswith("  ✓ today 20:33 · u")
    assert len(line) == 60


def test_what_was_known_before_is_one_row_too() -> None:
    sentence = "It stands in today's journal already (20:33)."
    known = replace(_kept("known since 20:33"), content=sentence)
    known.meta["changes"] = []
    (row,) = fold(replay(_turn(known, sentence)))
    (line,) = _plain(row, 60)
    assert line.endswith("  ✓ known since 20:33")
    assert row.target is None


@pytest.mark.parametrize(
    ("summary", "path", "receipt"),
    [
        ("a task 20:33", TODAY, "✓ task, today 20:33 · u"),
        ("noted 09:05", YESTERDAY, "✓ yesterday 09:05 · u"),
        ("remembered", "memory/MEMORY.md", "✓ remembered · u"),
    ],
)
def test_a_receipt_says_where_and_when(summary: str, path: str, receipt: str) -> None:
    (row,) = fold(replay(_turn(_kept(summary, path))))
    assert _plain(row, 70)[-1].endswith(receipt)


def test_a_receipt_gets_shorter_and_then_a_row_of_its_own() -> None:
    row = UserItem(text=SAID, receipt=Receipt(TODAY, "20:33"))
    assert _plain(row, 40) == [f"> {SAID}    ✓ 20:33 u"]
    assert _plain(row, 30)[1].strip() == "✓ today 20:33 · u"
    row.receipt = Receipt(TODAY, "20:33", undone=True)
    row.changed()
    assert _plain(row, 60)[-1].endswith("undone · today 20:33")


def test_a_note_of_its_own_keeps_its_card_and_its_sentence() -> None:
    items = fold(replay(_turn(_kept("Use Nix created", "knowledge/decisions/use-nix.md"))))
    assert [type(item).__name__ for item in items] == ["UserItem", "ToolItem", "AnswerItem"]


def test_what_an_answer_says_besides_is_still_said() -> None:
    row, answer = fold(replay(_turn(_kept(), f"Noted.\n\n{QUOTE}")))
    assert isinstance(row, UserItem)
    assert row.receipt is not None
    assert answer.text == QUOTE


def test_a_quote_and_its_source_are_one_row_where_they_fit() -> None:
    answer = AnswerItem(text=QUOTE, cites=(JOURNAL,))
    (line,) = _plain(answer, 100)
    assert line.endswith(f"{SAID} [1] · today 20:33 · {JOURNAL.name.plain}")
    wrapped = _plain(answer, 50)
    assert wrapped[-1] == f"  [1] {JOURNAL.name.plain}"
    assert answer.target == JOURNAL.to


def test_equal_sources_are_named_once() -> None:
    again = LinkItem(label="[2]", to=Target(TODAY, 9))
    text = f"{QUOTE}\n\n> She starts on Monday [2]"
    lines = _plain(AnswerItem(text=text, cites=(JOURNAL, again)), 100)
    assert sum(JOURNAL.name.plain in line for line in lines) == 1


def test_an_answer_in_its_own_words_keeps_its_sources_below() -> None:
    said = _message(2, "assistant", f"{SAID} [1].", meta={"citations": CITED})
    items = replay([_message(1, "user", "who?"), said])
    assert [type(item) for item in items[1:]] == [AnswerItem, LinkItem]


def test_a_question_and_its_quote_take_two_rows_and_no_words_of_a_search() -> None:
    search = ToolCall("s", SEARCH, '{"query": "who is Priya?"}')
    items = fold(
        replay(
            [
                _message(1, "user", "who is Priya?"),
                _message(2, "assistant", "", tool_calls=(search,)),
                _message(3, "tool", "1 line", tool_call_id="s", meta={"summary": "1 line"}),
                _message(4, "assistant", QUOTE, meta={"citations": CITED}),
            ]
        )
    )
    question, answer = items
    assert len(_plain(question, 120)) + answer.gap_after(question) + len(_plain(answer, 120)) == 2


async def test_while_it_runs_it_is_shown_as_it_is_stored(shell) -> None:
    kept = TurnChange("c1", (TODAY,))
    shell.agent.script = [
        ToolStarted("k", KEEP, {"text": SAID}),
        ToolFinished("k", KEEP, True, "noted 20:33", "Noted.", changes=(kept,)),
        TextDelta("No"),
        TextDelta("ted."),
        TurnFinished("Noted.", "", ""),
    ]
    await shell.say(SAID)
    (row,) = shell.transcript.items
    assert row.receipt == Receipt(TODAY, "20:33")
    assert "Noted." not in shell.text
    opened: list[str] = []
    shell.app.main.notes.open_entry = lambda path, line=None, edit=False: opened.append(path)
    await shell.press("shift+tab", "enter")
    await shell.until(lambda: opened == [TODAY])


async def test_enter_asks_which_of_several_sources_to_open(shell) -> None:
    cited = tuple(Citation(n, f"memory/2026-03-0{n}.md", 7, 7, "", "") for n in (1, 2))
    text = "From your notes:\n\n> Priya draws [1]\n\n> Priya sings [2]"
    shell.agent.script = [TextDelta(text), TurnFinished(text, "", "", citations=cited)]
    await shell.say("what does Priya do?")
    opened: list[tuple[str, int]] = []
    shell.app.main.notes.open_entry = lambda path, line=None, edit=False: opened.append(
        (path, line)
    )
    await shell.press("shift+tab", "enter")
    await shell.until(lambda: len(shell.app.screen_stack) == 2)
    await shell.press("down", "enter")
    await shell.until(lambda: opened == [("memory/2026-03-02.md", 7)])


def test_where_the_day_of_the_journal_does_not_fit_it_is_the_journal_of_the_line() -> None:
    answer = AnswerItem(text=QUOTE, cites=(JOURNAL,))
    whole = _plain(answer, 100)
    assert "the journal of" in whole[0]
    short = _plain(answer, len(whole[0].rstrip()) - 1)
    assert len(short) == 1
    assert short[0].rstrip().endswith("· the journal")
    assert len(_plain(answer, len(short[0].rstrip()) - 1)) > 1
