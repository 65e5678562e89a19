"""Short corrections: which line they correct, in five languages, and in the lists of newer lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.comparing.corrections import corrects
from kbtui.memory.comparing.same_thing import is_newer
from kbtui.memory.recall.newer import _last_said
from kbtui.views.view import Audience
from tests.agent.conftest import ask

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = (Path(__file__).parent / "corrections.tsv").read_text().splitlines()


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    overrides = {"search": {"semantic": False}, "models": {"chat": {"model": "offline"}}}
    with KnowledgeBase.open(tmp_path / "kb", create=True, overrides=overrides) as opened:
        yield opened


async def say(kb: KnowledgeBase, *messages: str) -> str:
    session = kb.sessions.create("test")
    try:
        told = [(await ask(kb, session, each)).finished.text for each in messages]
    finally:
        session.close()
    return told[-1]


@pytest.mark.parametrize("row", ROWS)
def test_a_correction_names_only_as_much_as_is_needed(row: str) -> None:
    wanted, old, new = row.split("\t")
    assert corrects(new, old) == (wanted == "yes")


@pytest.mark.parametrize(
    "text", ["no", "no, ", "not", "wait, wait, wait", "no " * 200, "not not not 4"]
)
def test_words_of_correction_alone_correct_nothing(text: str) -> None:
    assert not corrects(text, "The meeting is on Friday at 4")
    assert not corrects("The meeting is on Friday at 4", text)


async def test_it_is_of_the_last_line_that_it_may_mean_and_stands_first(kb: KnowledgeBase) -> None:
    old = ["The budget meeting is on Monday at 9", "The release meeting is on Thursday at 10"]
    new = "no, the meeting is on Friday"
    assert not any(is_newer(new, each) for each in old)
    answer = await say(kb, *old, new, "when is the release meeting?")
    assert answer.index("Friday") < answer.index("Thursday")
    newer = kb.seen_by(Audience.MODEL_ELSEWHERE).newer(old)
    assert {of: line.text for of, line in newer.items()} == {old[1]: new}


def test_of_lines_said_within_a_second_those_of_one_file_have_an_order() -> None:
    """A commit knows the second; by it a message of a moment before stands behind."""
    budget, release, message = (58.980, 3, 6, True), (58.990, 4, 7, True), (58.991, 1, 2, False)
    assert _last_said([budget, release, message]) == 7
    assert _last_said([budget, release, (70.0, 1, 2, False)]) == 2
    assert _last_said([message, (58.995, 3, 8, False)]) == 8


async def test_what_says_by_itself_what_holds_corrects_nothing_else(kb: KnowledgeBase) -> None:
    old = ["The rent in Mainz is 870 euros", "The rent in Trier is 640 euros"]
    await say(kb, *old, "sorry, the rent in Mainz is 910 euros")
    newer = kb.seen_by(Audience.MODEL_ELSEWHERE).newer(old)
    assert [*newer] == [old[0]]
