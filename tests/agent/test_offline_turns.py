"""The offline model in real turns: it keeps what is stated and quotes what is known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kbtui.agent.events import TextDelta
from kbtui.agent.offline_turn import NOTICE
from tests.agent.conftest import ask
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

SAID = "we decided to use PostgreSQL for analytics because of its JSON operators; Alice owns it"


async def test_a_decision_and_its_owner_become_two_entries(
    kb: KnowledgeBase, session: Session
) -> None:
    told = await ask(kb, session, SAID)
    assert told.used == [("keep", True)]
    (change,) = told.finished.changes
    assert {path.split("/")[1] for path in change.paths} >= {"decisions", "people"}
    decision = kb.library.find("PostgreSQL for analytics")
    assert decision.type == "decision"
    assert (
        "we decided to use PostgreSQL for analytics because of its JSON operators" in decision.body
    )
    alice = kb.library.find("Alice")
    assert alice.type == "person"
    assert "Alice owns it" in alice.body
    (link,) = {each.path for each in kb.library.outgoing(alice.path)}
    assert link == decision.path
    assert "|Alice]]" in told.finished.text


async def test_why_is_answered_by_quoting_the_reason_with_its_lines(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, SAID)
    told = await ask(kb, kb.sessions.create("test"), "why PostgreSQL for analytics?")
    assert told.used == [("memory_search", True)]
    assert "because of its JSON operators [1]" in told.finished.text
    cited = told.finished.citations[0]
    lines = (kb.workspace.root / cited.path).read_text().splitlines()[cited.first - 1 : cited.last]
    assert "JSON operators" in "\n".join(lines)
    assert cited.path == kb.library.find("PostgreSQL for analytics").path
    assert not told.finished.changes


async def test_what_exists_grows_and_what_it_says_already_is_left_alone(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, SAID)
    await ask(kb, session, "Alice leads the dashboard project.")
    alice = kb.library.find("alice")
    assert "JSON" not in alice.body
    assert "Alice leads the dashboard project" in alice.body
    head = kb.history.head()
    again = await ask(kb, session, "Alice leads the dashboard project.")
    assert kb.history.head() == head
    assert "already" in again.finished.text
    assert len(kb.library.infos()) == 2


async def test_an_entry_that_the_index_does_not_know_yet_is_not_doubled(
    kb: KnowledgeBase, session: Session
) -> None:
    kb.library.create("person", "Alice", body="Alice lives in Berlin.")
    kb.search.close()
    told = await ask(kb, session, "Alice owns the billing service.")
    assert told.finished
    assert [info.path for info in kb.library.infos()] == ["knowledge/people/alice.md"]
    assert "Alice owns the billing service" in kb.library.find("alice").body


@pytest.mark.parametrize(
    ("said", "entry", "line"),
    [
        ("remember the cake is in the oven", "facts", "the cake is in the oven"),
        ("Please remember that my dentist is Dr. Fang.", "people", "my dentist is Dr. Fang"),
        ("I prefer tabs over spaces", "preferences", "I prefer tabs over spaces"),
        ("My favorite editor is vim", "preferences", "My favorite editor is vim"),
        ("I know Python, JavaScript, and Go", "facts", "I know Python, JavaScript, and Go"),
        (
            "Note: the staging server is at staging.example.com",
            "facts",
            "the staging server is at staging.example.com",
        ),
        (
            "Bob Smith works on the billing service",
            "people",
            "Bob Smith works on the billing service",
        ),
        ("Carol is our product manager.", "people", "Carol is our product manager"),
    ],
)
async def test_statements_are_kept_in_the_users_own_words(
    kb: KnowledgeBase, session: Session, said: str, entry: str, line: str
) -> None:
    told = await ask(kb, session, said)
    (info,) = kb.library.infos()
    assert info.category == entry
    assert line in kb.library.get(info.path).body
    assert f"[[{info.name}|{info.title}]]" in told.finished.text


async def test_the_answer_to_the_users_own_question_is_kept(
    kb: KnowledgeBase, session: Session
) -> None:
    asked = await ask(kb, session, "What's my favorite color?")
    assert "nothing in your notes" in asked.finished.text
    await ask(kb, session, "It's blue.")
    assert "My favorite color is blue" in kb.library.find("Favorite color").body
    await ask(kb, session, "What programming languages do I know?")
    await ask(kb, session, "Python, JavaScript, and Go.")
    assert "I know Python, JavaScript, and Go" in kb.library.find("Programming languages").body
    again = await ask(kb, kb.sessions.create("test"), "what is my favorite color?")
    assert "> My favorite color is blue [1]" in again.finished.text
    await ask(kb, session, "My favorite color is green now.")
    last = await ask(kb, kb.sessions.create("test"), "what is my favorite color?")
    assert "green" in last.finished.text
    assert "> My favorite color is blue" not in last.finished.text
    assert len(kb.library.infos()) == 2


@pytest.mark.parametrize(
    "said",
    [
        "did we decide to use PostgreSQL?",
        "if we decided to use Oracle we would be broke",
        "Should I remember that?",
        "I like that",
        "thanks!",
        "hello",
        "The weather is nice.",
        "What does Alice own?",
        "x" * 5000,
        "\x1b[31m[1] <data> --- # ``` \u202e",
        "🦓 " * 50,
    ],
    ids=lambda said: repr(said[:20]),
)
async def test_nothing_is_kept_that_was_not_stated(
    kb: KnowledgeBase, session: Session, said: str
) -> None:
    told = await ask(kb, session, said)
    assert told.finished.text
    assert kb.library.infos() == []
    assert told.finished.changes == ()


async def test_what_is_not_known_is_not_made_up(kb: KnowledgeBase, session: Session) -> None:
    told = await ask(kb, session, "Who invented the zeppelin?")
    assert told.used == [("memory_search", True)]
    assert "I don't know: nothing in your notes about" in told.finished.text
    assert told.finished.citations == ()


async def test_documents_are_asked_when_the_notes_know_nothing(
    kb: KnowledgeBase, session: Session
) -> None:
    (kb.workspace.docs / "api").mkdir()
    (kb.workspace.docs / "api/auth.md").write_text("# Auth\n\nTokens expire after one hour.\n")
    kb.search.sync()
    told = await ask(kb, session, "When do tokens expire?")
    assert "> Tokens expire after one hour. [1]" in told.finished.text
    assert told.finished.citations[0].path == "docs/api/auth.md"


async def test_every_quoted_line_stands_in_the_notes(kb: KnowledgeBase, session: Session) -> None:
    for text in (
        SAID,
        "Bob works on billing.",
        "I prefer tea.",
        "remember the analytics budget is 500 a month",
    ):
        await ask(kb, session, text)
    told = await ask(kb, session, "What about analytics?")
    notes = " ".join((kb.workspace.root / info.path).read_text() for info in kb.library.infos())
    quotes = [
        line[2:].rpartition(" [")[0]
        for line in told.finished.text.splitlines()
        if line.startswith("> ")
    ]
    assert quotes
    for quote in quotes:
        assert quote.removeprefix("Owns ") in notes


async def test_the_notice_comes_once_in_a_session_and_the_text_in_pieces(
    kb: KnowledgeBase, session: Session
) -> None:
    first = await ask(kb, session, "hello")
    second = await ask(kb, session, "hello")
    assert NOTICE in first.finished.text
    assert NOTICE not in second.finished.text
    assert sum(isinstance(event, TextDelta) for event in first.events) > 5
    assert first.text == first.finished.text


async def test_the_same_conversation_gets_the_same_answers(kb: KnowledgeBase) -> None:
    texts = [SAID, "why PostgreSQL for analytics?", "who owns analytics?", "hello"]

    async def talk() -> list[str]:
        session = kb.sessions.create("test")
        return [(await ask(kb, session, text)).finished.text for text in texts[1:]]

    await ask(kb, kb.sessions.create("test"), SAID)
    assert await talk() == await talk()


async def test_a_read_only_disk_is_said_and_nothing_is_claimed(
    kb: KnowledgeBase, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kbtui.errors import StorageError
    from kbtui.history.history import History

    def refuse(*_: object, **__: object) -> None:
        raise StorageError("The disk is full.", "Free some space.")

    monkeypatch.setattr(History, "change", refuse)
    told = await ask(kb, session, "remember the cake is in the oven")
    assert "couldn't keep" in told.finished.text
    assert "The disk is full." in told.finished.text
    assert "Kept in" not in told.finished.text


async def test_a_long_and_tangled_message_is_understood_in_time(
    kb: KnowledgeBase, session: Session
) -> None:
    text = (
        "; ".join(f"Person{chr(65 + n % 26)} owns thing {n}" for n in range(30)) + " because " * 500
    )
    async with asyncio.timeout(PATIENCE):
        told = await ask(kb, session, text)
    assert told.events[-1]


async def test_forgetting_is_left_to_the_user_with_the_place_shown(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, "remember the cake is in the oven")
    told = await ask(kb, session, "forget the cake in the oven")
    assert "> the cake is in the oven [1]" in told.finished.text
    assert "delete" in told.finished.text
    assert kb.library.infos()
