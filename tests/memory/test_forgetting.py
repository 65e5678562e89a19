"""Forgetting: what stood everywhere is found nowhere afterwards, save where the plan says so."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from kbtui.agent.context import assemble
from kbtui.agent.events import TurnFinished
from kbtui.errors import UsageError
from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.recall.mentions import masks_of, mentions, spans_saying, without, words_of
from kbtui.models.litellm_model import LiteLLMModel
from kbtui.models.port import ToolCall
from kbtui.search.index.chunker import session_messages
from kbtui.sessions.log_records import FORGOTTEN_MARK, TITLE, Mask
from tests.memory.plants import BLOCKS, BODIES, INVENTION, WORD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kbtui.sessions.store import Session

FACT = "My favorite color is turquoise."
SCOPES = ("all", "knowledge", "memory", "sessions", "knowledge,memory,sessions,docs")


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    overrides = {"search": {"semantic": False}, "models": {"chat": {"model": "offline"}}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as opened:
        yield opened


def plant(kb: KnowledgeBase) -> Session:
    """Put the fact into every place that kbtui reads from."""
    root = kb.workspace.root
    kb.library.create("person", "Kim", body="Kim paints walls. Kim's favorite color is turquoise.")
    kb.library.create(
        "preference",
        "Favorite color",
        body="Turquoise, since 2019.",
        summary="The favorite color is turquoise.",
    )
    kb.library.create(
        "topic",
        "Painting",
        body="How walls are painted.",
        summary="Painting walls in the favorite color, turquoise",
    )
    (root / "memory/MEMORY.md").write_text(f"# Facts\n\n- {FACT}\n- I live in Oslo.\n")
    (root / "USER.md").write_text(f"I paint.\n{FACT}\n")
    (root / "memory/2026-11-20.md").write_text(f"## Flush at 10:00\n\n- {FACT}\n- Paint is dear.\n")
    (root / "memory/2026-11-20-paint.md").write_text(
        "# Session Memory\n\n## Key Messages\n\n"
        "assistant: What's your favorite color?\nuser: Turquoise.\n"
    )
    kb.history.adopt(settle=0)
    session = kb.sessions.create("test")
    session.append("user", f"{FACT} I live in Oslo.")
    session.append("assistant", "Noted: your favorite color is turquoise.")
    session.append("user", "Ask me something.")
    session.append("assistant", "What's your favorite color?")
    session.append("user", "Turquoise of course.")
    call = ToolCall("c1", "edit_entry", json.dumps({"entry": "MEMORY.md", "append": FACT}))
    session.append("assistant", "", tool_calls=[call])
    session.append("tool", f"MEMORY.md says:\n{FACT}\nand more", tool_call_id="c1", name="grep")
    session.append("assistant", "Done.")
    with kb.history.change(Actor.CONSOLIDATOR, "Condensed.") as change:
        kb.archive.stage(
            change,
            f"They spoke about walls. {FACT}",
            session=session.id,
            messages=(1, 2),
            timestamp="2026-11-20 10:00",
        )
    kb.memory.inbox.add(
        Actor.DREAM,
        "A line for Kim.",
        {"knowledge/topics/painting.md": f"# Painting\n\nHow walls are painted.\n{FACT}\n"},
    )
    kb.search.sync()
    return session


def found_in(kb: KnowledgeBase, session: Session) -> list[str]:
    """Everywhere that the fact can be read."""
    kb.search.refresh_now()
    kb.search.sync()
    places = []
    for scope in SCOPES:
        for query in ("turquoise", "favorite color", FACT):
            hits = kb.search.search(query, scope).hits
            places += [f"{scope}: {hit.path}" for hit in hits if "turquoise" in str(hit).lower()]
    model = LiteLLMModel("openai/x", "http://127.0.0.1:9/v1")
    prompt = assemble(kb, session, "What's up?", model=model)
    places += [part.name for part in prompt.parts if "turquoise" in part.text.lower()]
    places += [
        f"prompt: {message}" for message in prompt.messages if "turquoise" in str(message).lower()
    ]
    conversation = kb.memory.pending.conversation(session.id)
    text = "".join(conversation.line(message) for message in conversation.messages)
    places += ["condensing"] if "turquoise" in text.lower() else []
    for each in kb.memory.inbox.waiting():
        places += ["inbox"] if "turquoise" in str(each.places).lower() else []
    for file in kb.workspace.root.rglob("*"):
        is_ours = not {"sessions", ".kbtui"} & set(file.relative_to(kb.workspace.root).parts)
        if is_ours and file.is_file() and b"urquoise" in file.read_bytes():
            places.append(str(file))
    return places


def answered(kb: KnowledgeBase) -> str:
    async def ask() -> str:
        told = ""
        session = kb.sessions.create("test")
        async for event in kb.agent.turn(session, "What is the color that I like best?"):
            told += str(event)
        return told

    return asyncio.run(ask())


def test_what_was_planted_everywhere_is_found_nowhere_afterwards(kb: KnowledgeBase) -> None:
    session = plant(kb)
    assert len(found_in(kb, session)) > 10
    done = kb.memory.forgetting.forget(kb.memory.forgetting.plan("my favorite color"))
    assert found_in(kb, session) == []
    assert "turquoise" not in answered(kb).lower()
    assert "knowledge/preferences/favorite-color.md" in done.entries
    said = " ".join(done.left)
    for place in ("The log of 1 conversation", "old versions", "kbtui purge"):
        assert place in said


def test_what_stands_beside_it_stays(kb: KnowledgeBase) -> None:
    session = plant(kb)
    kb.memory.forgetting.forget(kb.memory.forgetting.plan("my favorite color"))
    root = kb.workspace.root
    assert "Kim paints walls." in (root / "knowledge/people/kim.md").read_text()
    assert "- I live in Oslo." in (root / "memory/MEMORY.md").read_text()
    assert "Paint is dear." in (root / "memory/2026-11-20.md").read_text()
    assert "They spoke about walls." in (root / "memory/HISTORY.md").read_text()
    (entry,) = kb.archive.entries()
    assert (entry.content, entry.cursor, entry.messages) == ("They spoke about walls.", 1, (1, 2))
    assert session.messages[0].content == f"{FORGOTTEN_MARK} I live in Oslo."
    log = (kb.workspace.sessions / f"{session.id}.jsonl").read_text()
    assert FACT in log, "the log keeps what was said"


@pytest.mark.parametrize("kind", BODIES)
def test_it_goes_out_of_every_kind_of_markdown_and_the_rest_stays(kind: str) -> None:
    said = INVENTION if kind in BLOCKS else WORD
    text = f"---\ntags: [work]\n---\n# Alice\n\nBefore.\n\n{BODIES[kind]}\n\nAfter.\n"
    found = mentions(text.encode(), [words_of(said)])
    rest = without(text.encode(), found).decode()
    assert WORD not in rest.casefold()
    assert rest.startswith("---\ntags: [work]\n---\n# Alice\n\nBefore.\n")
    assert rest.endswith("\nAfter.\n")


@pytest.mark.parametrize(
    ("head", "left"),
    [
        ("bank: Evilbank", ""),
        ("tags: [work, evilbank]", "tags: [work]\n"),
        ("aliases:\n- Al\n- Al of Evilbank", "aliases:\n- Al\n"),
        ("bank: >\n  the one called\n  Evilbank", ""),
        ("banks:\n- name: Evilbank\n- name: Other", "banks:\n- name: Other\n"),
    ],
)
def test_it_goes_out_of_the_properties_and_the_others_stay(head: str, left: str) -> None:
    text = f"---\ntype: person\n{head}\n---\n# Alice\n\nOwns it.\n"
    (found,) = mentions(text.encode(), [words_of(WORD)])
    assert found.key == head.partition(":")[0]
    rest = without(text.encode(), [found]).decode()
    assert rest == f"---\ntype: person\n{left}---\n# Alice\n\nOwns it.\n"


def test_a_word_of_properties_that_every_entry_has_forgets_none_of_them() -> None:
    assert mentions(b"---\ntags: [work]\n---\n# A\n\nB\n", [words_of("tags")]) == []


def test_it_isnt_condensed_and_the_ledger_says_why(kb: KnowledgeBase) -> None:
    session = kb.sessions.create("test")
    for text in (FACT, "Nice.", "I live in Oslo, by the fjord."):
        session.append("user", text)
        session.append("assistant", "I see.")
    kb.memory.forgetting.forget(kb.memory.forgetting.plan("my favorite color"))
    asyncio.run(kb.memory.consolidate(session.id))
    assert "turquoise" not in kb.archive.entries()[0].content.lower()
    (account,) = kb.memory.audit().accounts
    assert (1, "forgotten") in account.dropped


def test_a_mask_holds_for_whoever_opens_the_session_later(kb: KnowledgeBase) -> None:
    session = kb.sessions.create("test")
    session.append("user", "One. Two. Three.")
    kb.sessions.mask(session.id, [Mask(1, ((5, 9),))])
    kb.sessions.mask(session.id, [Mask(1, ((0, 4),))])
    now = f"{FORGOTTEN_MARK} {FORGOTTEN_MARK} Three."
    assert session.messages[0].content == now
    session.close()
    kb.sessions.mask(session.id, [Mask(1, ((24, 30),))])
    assert kb.sessions.read(session.id)[0].content.count(FORGOTTEN_MARK) == 3


def test_nothing_that_is_named_is_nothing_to_forget(kb: KnowledgeBase) -> None:
    with pytest.raises(UsageError):
        kb.memory.forgetting.plan("  ")
    assert kb.memory.forgetting.plan("zebra crossings").is_empty


@pytest.mark.parametrize(
    ("text", "asked", "told"),
    [
        ("I live here. My favorite color is blue. Bye.", "", ["My favorite color is blue."]),
        ("It's blue. Remember that.", "What's my favorite color?", ["It's blue."]),
        ("It's blue.", "", []),
        ("My favorite color?\nBlue!", "", ["My favorite color?", "Blue!"]),
    ],
)
def test_the_sentences_that_say_it_are_found(text: str, asked: str, told: list[str]) -> None:
    spans = spans_saying(text, [words_of("favorite color blue")], asked)
    assert [text[first:last] for first, last in spans] == told


def test_a_line_of_the_journal_says_what_was_said_and_not_when(kb: KnowledgeBase) -> None:
    note = kb.workspace.root / "memory/2026-11-21.md"
    note.write_text("# A day\n\n- 09:14 My brother keeps bees. It rains.\n- 09:20 Bees!\n")
    session = kb.sessions.create("test")
    session.append("user", "Did you know that my brother keeps bees at home?")
    kb.memory.forgetting.forget(kb.memory.forgetting.plan("brother bees"))
    assert note.read_text() == "# A day\n\n- 09:14 It rains.\n- 09:20 Bees!\n"
    assert kb.memory.tombstones.buried("My brother keeps bees.")


def test_an_answer_is_masked_together_with_its_question(kb: KnowledgeBase) -> None:
    session = kb.sessions.create("test")
    session.append("assistant", "Your favorite color?")
    session.append("user", "Blue.")
    session.append("user", "Blue.")
    masks = masks_of(kb.sessions.read_log(session.id), [words_of("favorite color blue")])
    assert [mask.message for mask in masks] == [2]


def test_undoing_it_brings_the_messages_back_and_undoing_that_takes_them_away(
    kb: KnowledgeBase,
) -> None:
    session = plant(kb)
    said = [message.content for message in session.messages]
    done = kb.memory.forgetting.forget(kb.memory.forgetting.plan("my favorite color"))
    assert [message.content for message in session.messages] != said
    undone = kb.history.undo(done.commits[0])
    assert [message.content for message in session.messages] == said
    assert kb.memory.tombstones.forgotten(session.id) == []
    assert not kb.memory.tombstones.buried("my favorite color")
    kb.search.refresh_now()
    hits = kb.search.search("turquoise", "sessions").hits
    assert any("turquoise" in str(hit).lower() for hit in hits)
    kb.history.undo(undone.id)
    assert "turquoise" not in str(session.messages).lower()
    assert "turquoise" not in str(kb.sessions.read(session.id)).lower()


def test_what_another_forgetting_masks_stays_masked(kb: KnowledgeBase) -> None:
    session = kb.sessions.create("test")
    session.append("user", "One. Two. Three. Four.")
    kb.sessions.mask(session.id, [Mask(1, ((5, 9),))], by="a")
    kb.sessions.mask(session.id, [Mask(1, ((0, 4), (17, 23)))], by="b")
    assert (
        session.messages[0].content == f"{FORGOTTEN_MARK} {FORGOTTEN_MARK} {FORGOTTEN_MARK} Four."
    )
    kb.sessions.unmask(session.id, "a")
    now = f"{FORGOTTEN_MARK} Two. {FORGOTTEN_MARK} Four."
    assert session.messages[0].content == now
    assert kb.sessions.read(session.id)[0].content == now
    assert session_messages("sessions/x.jsonl", session_log(kb, session))[1][0].text == now
    kb.sessions.unmask(session.id, "b")
    assert session.messages[0].content == "One. Two. Three. Four."


def test_words_of_a_title_come_back_unless_another_was_given_since(kb: KnowledgeBase) -> None:
    session = kb.sessions.create("test", title="One. Two.")
    kb.sessions.mask(session.id, [Mask(TITLE, ((0, 4),))], by="a")
    kb.sessions.mask(session.id, [Mask(TITLE, ((12, 16),))], by="b")
    assert session.title == f"{FORGOTTEN_MARK} {FORGOTTEN_MARK}"
    assert session_messages("sessions/x.jsonl", session_log(kb, session))[0] == ""
    kb.sessions.unmask(session.id, "a")
    now = f"One. {FORGOTTEN_MARK}"
    assert session.title == kb.sessions.read_log(session.id).title == now
    assert session_messages("sessions/x.jsonl", session_log(kb, session))[0] == "One."
    session.rename("Three. Four.")
    kb.sessions.mask(session.id, [Mask(TITLE, ((0, 6),))], by="c")
    kb.sessions.unmask(session.id, "b")
    assert session.title == f"{FORGOTTEN_MARK} Four."
    assert kb.sessions.read_log(session.id).title == session.title


def session_log(kb: KnowledgeBase, session: Session) -> str:
    return (kb.workspace.sessions / f"{session.id}.jsonl").read_text()


async def test_an_answer_goes_with_the_question_it_was_remembered_with_everywhere(
    kb: KnowledgeBase,
) -> None:
    session = kb.sessions.create("test")
    for said in ("What's my favorite color?", "It's blue. Remember that.", "I live in Oslo."):
        async with aclosing(kb.agent.turn(session, said)) as events:
            async for _ in events:
                pass
    plan = kb.memory.forgetting.plan("my favorite color")
    assert [match.text for match in plan.matches] == ["What's my favorite color? It's blue."]
    kb.memory.forgetting.forget(plan)
    kb.search.refresh_now()
    kb.search.sync()
    for scope in SCOPES:
        for query in ("blue", "favorite color"):
            assert "blue" not in str(kb.search.search(query, scope).hits).lower()
    finished = None
    async with aclosing(
        kb.agent.turn(kb.sessions.create("test"), "What's my favorite color?")
    ) as e:
        async for event in e:
            finished = event
    assert isinstance(finished, TurnFinished)
    assert "blue" not in finished.text
    conversation = kb.memory.pending.conversation(session.id)
    said = "".join(conversation.line(message) for message in conversation.messages)
    assert "blue" not in said
    assert "Oslo" in said


async def test_an_order_to_forget_what_nobody_said_is_told_that_it_stands_nowhere(
    kb: KnowledgeBase,
) -> None:
    session = kb.sessions.create("test")
    for said in ("delete everything about peanuts", "I live in Oslo.", "forget about peanuts"):
        async with aclosing(kb.agent.turn(session, said)) as events:
            async for _ in events:
                pass
    plan = kb.memory.forgetting.plan("peanuts")
    assert plan.is_empty
    assert plan.notes == []
    kb.memory.forgetting.forget(plan)
    assert "peanut" not in "".join(
        each.content for each in kb.sessions.read_log(session.id).messages
    )


async def test_what_was_said_before_an_order_to_forget_it_is_counted(kb: KnowledgeBase) -> None:
    session = kb.sessions.create("test")
    for said in ("Do peanuts go with rice?", "delete everything about peanuts"):
        async with aclosing(kb.agent.turn(session, said)) as events:
            async for _ in events:
                pass
    plan = kb.memory.forgetting.plan("peanuts")
    assert not plan.is_empty
    assert plan.messages
