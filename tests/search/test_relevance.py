from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kbtui.search.index.conversation import is_question
from tests.search.helpers import paths

if TYPE_CHECKING:
    from tests.search.helpers import Desk


def said(*messages: tuple[str, str]) -> str:
    return "".join(
        json.dumps({"id": n, "role": role, "content": text}) + "\n"
        for n, (role, text) in enumerate(messages, 1)
    )


@pytest.fixture
def talk(desk: Desk) -> Desk:
    desk.write(
        "sessions/s.jsonl",
        said(
            ("user", "The ferry to Gozo leaves at nine"),
            ("assistant", "Noted: the ferry to Gozo leaves at nine"),
            ("user", "when does the ferry to Gozo leave?"),
        ),
    )
    return desk


def test_a_question_that_nothing_answers_has_no_relevant_hits(talk: Desk) -> None:
    index = talk.index()
    asked = "which blood type does the zookeeper have, and does he leave his ferry?"
    assert index.search(asked, "all").hits
    assert not index.search(asked, "all", relevant_only=True).hits


def test_a_question_that_something_answers_has_relevant_hits(talk: Desk) -> None:
    index = talk.index()
    result = index.search("when does the ferry to Gozo leave?", "all", relevant_only=True)
    assert all(hit.is_relevant for hit in result.hits)
    assert result.hits


def test_statements_only_leaves_out_kbtui_and_questions(talk: Desk) -> None:
    index = talk.index()
    result = index.search("ferry Gozo", "all", statements_only=True)
    assert [(hit.speaker, hit.messages) for hit in result.hits] == [("user", (1, 1))]


def test_what_kbtui_said_stands_behind_what_it_was_told(desk: Desk) -> None:
    desk.write(
        "sessions/s.jsonl",
        said(("assistant", "The vet is in Oak Street"), ("user", "The vet is in Oak Street")),
    )
    result = desk.index().search("vet oak street", "all")
    assert [hit.speaker for hit in result.hits] == ["user", "assistant"]


def test_a_filter_finds_what_one_side_said(talk: Desk) -> None:
    result = talk.index().search("ferry by:assistant", "all")
    assert [hit.speaker for hit in result.hits] == ["assistant"]


def test_an_entry_may_end_with_a_question(desk: Desk) -> None:
    desk.write("knowledge/topics/a.md", "# Ferry\n\nWhen does the ferry leave?\n")
    result = desk.index().search("ferry", statements_only=True)
    assert paths(result) == ["knowledge/topics/a.md"]


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("where do i park again", True),
        ("whats the extension for pharmacy", True),
        ("Did they call? When do they come?", True),
        ("I moved to Lisbon. Where is the vet?", False),
        ("When we were in Paris it rained", False),
        ("what i need is milk", False),
        ("How kind.", False),
        ("\N{CJK UNIFIED IDEOGRAPH-4F60}\N{FULLWIDTH QUESTION MARK}", True),
    ],
)
def test_what_only_asks_is_told_from_what_states(text: str, *, asks: bool) -> None:
    assert is_question(text) is asks
