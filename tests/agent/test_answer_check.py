"""While a model answers, its sentences are compared with the lines that it was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.agent.events import DIFFERS, AnswerDiffers
from kbtui.memory.recall.differing import AnswerCheck
from tests.agent.conftest import ask, model_at
from tests.scripted_server import Reply, ScriptedServer, call

if TYPE_CHECKING:
    import pytest

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

RENT = "The rent of the flat in Mainz is 870 euros"


async def test_an_answer_that_differs_is_told_and_no_word_of_it_changes(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, RENT)
    answer = "Your rent in Mainz is 890 euros [1]. Shall I note something?"
    with ScriptedServer([Reply(answer)]) as server:
        told = await ask(kb, session, "What is the rent in Mainz?", model_at(server))
    (difference,) = told.finished.differs
    assert (difference.kind, difference.said, difference.text) == ("number", "890", RENT)
    assert (difference.n, difference.path) == (0, f"sessions/{session.id}.jsonl")
    assert kb.sessions.read(session.id)[difference.line - 1].content == RENT
    assert told.finished.text == answer
    assert [each.difference for each in told.events if isinstance(each, AnswerDiffers)] == [
        difference
    ]
    stored = kb.sessions.read(session.id)[-1]
    assert stored.content == answer
    (kept,) = stored.meta[DIFFERS]
    assert (kept["path"], kept["line"]) == (difference.path, difference.line)
    assert kept["text"] == "", "the line may be forgotten later"


async def test_a_line_of_the_notes_counts_whether_it_has_a_number_or_not(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, RENT)
    with kb.sessions.create("test") as other, ScriptedServer([Reply("It is 890 euros.")]) as server:
        told = await ask(kb, other, "What is the rent of the flat in Mainz?", model_at(server))
    (difference,) = told.finished.differs
    assert difference.text == RENT
    assert difference.path.startswith("memory/")


async def test_a_right_answer_is_told_nothing_of(kb: KnowledgeBase, session: Session) -> None:
    await ask(kb, session, RENT)
    with ScriptedServer([Reply("It is 870 € a month [1].")]) as server:
        told = await ask(kb, session, "What is the rent in Mainz?", model_at(server))
    assert told.finished.differs == ()
    assert not told.finished.is_unfounded
    assert DIFFERS not in kb.sessions.read(session.id)[-1].meta


async def test_only_the_last_reply_is_compared_and_with_what_a_tool_found(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, RENT)
    replies = [
        Reply(
            "Your rent in Mainz is 910 euros, let me look.",
            tool_calls=[call("search", query="rent")],
        ),
        Reply("Your rent in Mainz is 870 euros."),
    ]
    with ScriptedServer(replies) as server:
        told = await ask(kb, session, "What is the rent in Mainz?", model_at(server))
    assert told.finished.differs == ()


async def test_an_answer_of_which_nothing_stands_in_the_notes_is_unfounded(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, RENT)
    with ScriptedServer([Reply("Lake Baikal in Siberia is the deepest lake on Earth.")]) as server:
        told = await ask(kb, session, "Which lake is the deepest?", model_at(server))
    assert told.finished.is_unfounded


async def test_an_answer_is_never_lost_by_its_check(
    kb: KnowledgeBase, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: AnswerCheck, _text: str = "") -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(AnswerCheck, "feed", broken)
    monkeypatch.setattr(AnswerCheck, "finish", broken)
    await ask(kb, session, RENT)
    with ScriptedServer([Reply("Your rent in Mainz is 890 euros.")]) as server:
        told = await ask(kb, session, "What is the rent in Mainz?", model_at(server))
    assert told.finished.text == "Your rent in Mainz is 890 euros."
    assert told.finished.differs == ()


async def test_where_nothing_could_be_looked_up_nothing_is_called_unfounded(
    kb: KnowledgeBase, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise OSError("the index is damaged")

    monkeypatch.setattr("kbtui.agent.recall.Quoting.about", broken)
    with ScriptedServer([Reply("Lake Baikal in Siberia is the deepest lake on Earth.")]) as server:
        told = await ask(kb, session, "Which lake is the deepest?", model_at(server))
    assert not told.finished.is_unfounded
