from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kbtui.search.index.chunker import is_question
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
    asked = "why did the zookeeper paint his ferry"
    assert index.search(asked, "all").hits
    assert not index.search(asked, "all", relevant_only=True).hits


@pytest.mark.parametrize("text", ["ok", "thanks a lot", "hello"])
def test_small_talk_asks_for_nothing(desk: Desk, text: str) -> None:
    desk.write("sessions/s.jsonl", said(("user", "Hello, thanks a lot, the tent is ok")))
    index = desk.index()
    assert index.search(text, "all").hits
    assert not index.search(text, "all", relevant_only=True).hits


def test_words_of_asking_count_nothing(talk: Desk) -> None:
    index = talk.index()
    (told, *_), (often, *_), (bare, *_) = (
        index.search(query, "all").hits
        for query in ("what did I say about Gozo?", "how many Gozo again?", "about Gozo?")
    )
    assert told.relevance == often.relevance == bare.relevance > 0.9


@pytest.mark.parametrize(
    "asked",
    ["when's the ferry to Gozo", "who\N{RIGHT SINGLE QUOTATION MARK}s for the ferry to Gozo"],
)
def test_contractions_are_no_missing_words_or_names(talk: Desk, asked: str) -> None:
    assert talk.index().search(asked, "all", relevant_only=True).hits


def test_the_user_of_whom_a_model_asks_is_no_missing_name(talk: Desk) -> None:
    assert talk.index().search("what is the user's ferry to Gozo", "all", relevant_only=True).hits


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
        said(("assistant", "Your vet: Oak Street 4"), ("user", "The vet in Oak Street, no 5")),
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
        ("Did they call? When do they come?", True),
        ("I moved to Lisbon. Where is the vet?", False),
        ("How kind.", False),
        ("\N{CJK UNIFIED IDEOGRAPH-4F60}\N{FULLWIDTH QUESTION MARK}", True),
    ],
)
def test_what_only_asks_is_told_from_what_states(text: str, *, asks: bool) -> None:
    assert is_question(text) is asks


def test_a_fact_is_found_once_with_its_other_places(desk: Desk) -> None:
    desk.write("knowledge/topics/gozo.md", "# Trip\n\n- The ferry to Gozo leaves at nine\n")
    desk.write("memory/MEMORY.md", "# Memory\n\n- 2026-11-22: the ferry to Gozo leaves at nine.\n")
    desk.write("sessions/s.jsonl", said(("user", "By the way, the ferry to Gozo leaves at nine!")))
    (hit,) = desk.index().search("ferry to Gozo", "all").hits
    assert hit.path == "knowledge/topics/gozo.md"
    assert {place.path: place.line for place in hit.also} == {
        "memory/MEMORY.md": 3,
        "sessions/s.jsonl": 1,
    }
    assert {place.session for place in hit.also} == {None, "s"}


@pytest.mark.parametrize(
    "other",
    [
        "The ferry to Gozo doesn't leave, and never at nine",
        "It is not true that the ferry to Gozo leaves at nine",
        "The ferry to Gozo leaves at ten",
        "Does the ferry to Gozo leave at nine?",
        "The ferry to Gozo leaves at nine, and Ann meets us there with both cars and the tent",
    ],
)
def test_what_is_merely_similar_stays_apart(desk: Desk, other: str) -> None:
    desk.write("knowledge/topics/gozo.md", "# Trip\n\nThe ferry to Gozo leaves at nine\n")
    desk.write("sessions/s.jsonl", said(("user", other)))
    hits = desk.index().search("ferry to Gozo", "all").hits
    assert len(hits) == 2
    assert not any(hit.also for hit in hits)


def test_what_only_a_private_entry_says_is_not_joined_with_what_isnt(desk: Desk) -> None:
    fact = "The ferry to Gozo leaves at nine\n"
    desk.write("knowledge/topics/gozo.md", f"---\nprivate: true\n---\n# Trip\n\n{fact}")
    desk.write("memory/2026-11-22.md", f"# Ferry\n\n{fact}")
    assert len(desk.index().search("ferry to Gozo").hits) == 2


def test_two_entries_that_say_the_same_are_two_hits(desk: Desk) -> None:
    for name in ("gozo", "malta"):
        desk.write(f"knowledge/topics/{name}.md", "# Trip\n\nThe ferry to Gozo leaves at nine\n")
    assert len(desk.index().search("ferry to Gozo").hits) == 2


def test_the_first_hits_are_the_same_for_any_limit_where_some_are_joined(desk: Desk) -> None:
    for n in range(12):
        fact = f"The ferry number {n} to Gozo leaves at nine"
        desk.write(f"knowledge/topics/n{n}.md", f"# Trip {n}\n\n{fact}\n")
        desk.write(f"memory/2026-11-{n + 10}.md", f"# Day\n\n{fact}.\n")
    index = desk.index()
    whole = index.search("ferry gozo", limit=50).hits
    for limit in (1, 3, 10, 20):
        assert index.search("ferry gozo", limit=limit).hits == whole[:limit]


def test_what_a_session_says_from_a_message_on_is_left_out(talk: Desk) -> None:
    index = talk.index()
    found = index.search("ferry gozo", "all", before=("s", 2)).hits
    assert [hit.messages for hit in found] == [(1, 1)]
    assert not index.search("ferry gozo", "all", before=("s", 1)).hits
