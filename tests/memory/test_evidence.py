"""Evidence: the message that says what a proposal would write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kbtui.history.places import Proposal
    from kbtui.memory.background.service import Evidence

MEMORY = "memory/MEMORY.md"
OLD = "- Lives in Bonn\n- Likes tea\n"
NEW = "- Lives in Graz\n- Likes tea\n- Has a cat called Tom\n"


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    overrides = {"search": {"semantic": False}, "models": {"chat": {"model": "offline"}}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as opened:
        with opened.history.change(Actor.YOU, "wrote") as change:
            change.write(MEMORY, OLD)
        yield opened


def talk(kb: KnowledgeBase, *said: str) -> str:
    session = kb.sessions.create("test")
    for text in said:
        session.append("user", text)
        session.append("assistant", f"So {text}")
    return session.id


def proposed(kb: KnowledgeBase, origin: Origin, actor: Actor = Actor.CONSOLIDATOR) -> Proposal:
    return kb.memory.inbox.add(actor, "It says so now.", {MEMORY: NEW}, origin=origin)


def said_of(kb: KnowledgeBase, proposal: Proposal) -> list[tuple[str, str]]:
    """What each place would write, with the message that says so."""
    plan = kb.memory.inbox.plan(proposal.id)
    found = kb.memory.evidence().of_plan(plan)

    def message(evidence: Evidence | None) -> str:
        return evidence.message.content if evidence is not None else ""

    return [("".join(each.theirs).strip(), message(found.get(each.key))) for each in plan.places]


def test_each_place_has_the_message_that_says_what_it_would_write(kb: KnowledgeBase) -> None:
    session = talk(kb, "I moved to Graz last week", "We got a cat, Tom", "Nice weather")
    proposal = proposed(kb, Origin(session=session, messages=(1, 6)))
    assert said_of(kb, proposal) == [
        ("- Lives in Graz", "I moved to Graz last week"),
        ("- Has a cat called Tom", "We got a cat, Tom"),
    ]


def test_only_what_the_user_said_in_the_messages_it_was_made_from_counts(
    kb: KnowledgeBase,
) -> None:
    session = talk(kb, "I moved to Graz last week", "We got a cat, Tom")
    proposal = proposed(kb, Origin(session=session, messages=(2, 4)))
    assert said_of(kb, proposal) == [
        ("- Lives in Graz", ""),
        ("- Has a cat called Tom", "We got a cat, Tom"),
    ]


def test_a_deletion_has_the_message_about_what_it_would_take_out(kb: KnowledgeBase) -> None:
    session = talk(kb, "I gave up tea", "Nice weather")
    proposal = kb.memory.inbox.add(
        Actor.CONSOLIDATOR,
        "No more.",
        {MEMORY: "- Lives in Bonn\n"},
        origin=Origin(session=session, messages=(1, 4)),
    )
    assert said_of(kb, proposal) == [("", "I gave up tea")]


def test_a_proposal_of_dreams_is_traced_through_the_archive(kb: KnowledgeBase) -> None:
    session = talk(kb, "I moved to Graz last week", "Nice weather")
    with kb.history.change(Actor.CONSOLIDATOR, "Condensed.") as change:
        kb.archive.stage(
            change,
            "- The user lives in Graz now",
            session=session,
            messages=(1, 2),
            timestamp="2026-11-20 10:00",
        )
    (entry,) = kb.archive.entries()
    proposal = proposed(kb, Origin(cursor=entry.cursor), Actor.DREAM)
    assert said_of(kb, proposal)[0] == ("- Lives in Graz", "I moved to Graz last week")


def test_what_was_forgotten_is_no_evidence(kb: KnowledgeBase) -> None:
    session = talk(kb, "I moved to Graz last week")
    proposal = proposed(kb, Origin(session=session, messages=(1, 2)))
    plan = kb.memory.forgetting.plan("moved to Graz")
    kb.sessions.mask(session, dict(plan.masks)[session], by="")
    assert all(message == "" for _, message in said_of(kb, proposal))


def test_proposals_without_a_message_that_says_so_come_last(kb: KnowledgeBase) -> None:
    bare = proposed(kb, Origin(session="gone", messages=(1, 2)))
    session = talk(kb, "Our boiler is from 2019")
    told = kb.memory.inbox.add(
        Actor.CONSOLIDATOR,
        "New.",
        {"knowledge/topics/boiler.md": "# Boiler\n\nThe boiler is from 2019.\n"},
        origin=Origin(session=session, messages=(1, 2)),
    )
    plans = kb.memory.inbox.waiting()
    assert [plan.proposal.id for plan in plans] == [bare.id, told.id]
    ordered = kb.memory.evidence().ordered(plans)
    assert [plan.proposal.id for plan in ordered] == [told.id, bare.id]
