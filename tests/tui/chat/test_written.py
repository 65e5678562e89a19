"""Cards of what a turn wrote: which lines they show, how they are framed, and when they strike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.content import Content

from kbtui.agent.events import TurnChange
from kbtui.history.change import Actor, Origin
from kbtui.tui.chat.conversation.cards import ToolItem
from kbtui.tui.chat.conversation.written import (
    MAX_CARDS,
    MAX_LINES,
    WrittenNote,
    card_lines,
    read_written,
    undone_commits,
)
from tests.tui.shell import running

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.history.history import History

PATH = "knowledge/people/alice.md"
NOTE = """---
type: person
created: 2026-11-24
tags: []
owner: Bob
---
# Alice

Leads the frontend.
"""


@pytest.fixture
async def history(tmp_path: Path):
    async with running(tmp_path / "kb") as shell:
        yield shell.app.kb.history


def _write(history: History, text: str, path: str = PATH) -> TurnChange:
    with history.change(Actor.AGENT, "Write it", Origin(turn="t1")) as change:
        change.write(path, text)
    assert change.result is not None
    return TurnChange(change.result.id, (path,))


def _frame(written: WrittenNote, width: int = 40, *, undone: bool = False, title: str = "Alice"):
    return card_lines(written, Content(title), width, undone=undone)


def test_a_new_note_shows_its_text_and_its_properties_without_upkeep(history) -> None:
    (card,) = read_written(history, [_write(history, NOTE)])
    assert (card.path, card.kind, card.more) == (PATH, "added", 0)
    assert card.lines == (("+", "owner  Bob"), ("+", "Leads the frontend."))


def test_a_correction_shows_what_went_and_what_came(history) -> None:
    _write(history, NOTE)
    (card,) = read_written(history, [_write(history, NOTE.replace("frontend", "backend"))])
    assert card.kind == "modified"
    assert card.lines == (("-", "Leads the frontend."), ("+", "Leads the backend."))


def test_of_a_long_note_the_rest_is_counted(history) -> None:
    text = "# Long\n" + "".join(f"Line {number}.\n" for number in range(20))
    (card,) = read_written(history, [_write(history, text)])
    assert len(card.lines) == MAX_LINES
    assert card.more == 20 - MAX_LINES
    assert "and 15 more lines" in _frame(card)[-2].text


def test_a_commit_that_is_gone_makes_no_card(history) -> None:
    assert read_written(history, [TurnChange("0" * 40, (PATH,))]) == ()


def test_an_undone_commit_is_known_as_such_until_its_undo_is_undone(history) -> None:
    written = _write(history, NOTE)
    history.undo_turn("t1")
    assert undone_commits(history, {written.commit}) == {written.commit}
    history.undo(next(iter(history.log())).id)
    assert undone_commits(history, {written.commit}) == set()


@pytest.mark.parametrize("width", [10, 24, 40, 100])
@pytest.mark.parametrize("title", ["Alice", "東京の会議 🚀" * 9, "[bold]\x1b[31m" * 5])
def test_each_line_of_a_card_is_as_wide_as_its_frame(width: int, title: str) -> None:
    lines = (("+", "漢字" * 60), ("-", "short"), ("+", "[red]a[/]"))
    for line in _frame(WrittenNote(PATH, "modified", lines, 3), width, title=title):
        assert Content(line.text).cell_length == max(24, width)


def test_an_undone_card_says_so_and_offers_no_undo() -> None:
    text = "\n".join(line.text for line in _frame(WrittenNote(PATH, "added", ()), undone=True))
    assert "undone" in text
    assert "u undoes" not in text


def test_links_say_the_titles_of_what_they_lead_to(history) -> None:
    text = "# Mast\n\n- Ask [[people/alice]] about **it**\n"
    (card,) = read_written(history, [_write(history, text, "knowledge/topics/mast.md")])
    assert card.lines == (("+", "Ask Alice about it"),)


def test_notes_beyond_the_cards_are_counted_and_none_is_passed_over(history) -> None:
    paths = tuple(f"knowledge/people/p{number}.md" for number in range(5))
    with history.change(Actor.AGENT, "Write them", Origin(turn="t1")) as change:
        for path in paths:
            change.write(path, "# One\n\nText.\n")
    made = (TurnChange(change.result.id, paths),)
    item = ToolItem(tool="write_entry", ok=True, changes=made, written=read_written(history, made))
    text = "\n".join(line.text for line in item.lines(60))
    assert text.count("new ─╮") == MAX_CARDS
    assert "and 2 more notes" in text
