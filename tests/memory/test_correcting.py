"""Correcting everywhere: each place that tells the old value of the same thing, and no other."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ConflictError, UsageError
from kbtui.history.change import Actor
from kbtui.knowledge.format.facts import plain_fact
from kbtui.knowledge_base import KnowledgeBase
from tests.memory.correcting_weeks import (
    CHANGED,
    FLAT,
    HELD,
    HELD_CHANGED,
    INDEX,
    MAINZ,
    MEMORY,
    WEEK,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kbtui.memory.background.service import CorrectionPlan

TODAY = datetime(2026, 11, 28, 12).astimezone()


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    overrides = {"search": {"semantic": False}, "models": {"chat": {"model": "offline"}}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as opened:
        opened.memory.correcting._clock = lambda: TODAY
        yield opened


@pytest.fixture
def week(kb: KnowledgeBase) -> KnowledgeBase:
    write(kb, WEEK)
    kb.library.flush()
    return kb


def write(kb: KnowledgeBase, texts: dict[str, str], actor: Actor = Actor.YOU) -> None:
    with kb.history.change(actor, "wrote") as change:
        for path, text in texts.items():
            change.write(path, text)


def text(kb: KnowledgeBase, path: str) -> str:
    return (kb.workspace.root / path).read_text()


def told(plan: CorrectionPlan) -> list[tuple[str, str]]:
    return sorted((each.path, plain_fact(each.before).removeprefix("[ ] ")) for each in plan.places)


@pytest.mark.parametrize("name", CHANGED)
def test_every_place_of_a_changed_value_in_a_week_is_listed_and_none_wrong(
    week: KnowledgeBase, name: str
) -> None:
    old, new, places = CHANGED[name]
    assert told(week.memory.correcting.plan(old, new)) == sorted(places)


@pytest.mark.parametrize("name", HELD_CHANGED)
def test_every_place_in_a_week_of_another_life_is_listed_and_none_wrong(
    kb: KnowledgeBase, name: str
) -> None:
    write(kb, HELD)
    kb.library.flush()
    old, new, places = HELD_CHANGED[name]
    assert told(kb.memory.correcting.plan(old, new)) == sorted(places)


def test_all_places_become_one_commit_with_pointers_and_evolution(week: KnowledgeBase) -> None:
    correcting = week.memory.correcting
    commit = correcting.correct(correcting.plan(*MAINZ))
    assert commit is not None
    assert "The rent of the flat in Mainz is 910 euros" in commit.body
    assert "- The rent of the flat in Mainz is 910 euros\n" in text(week, MEMORY)
    assert "- The rent of the flat in Trier is 870 euros\n" in text(week, MEMORY)
    flat = text(week, FLAT)
    assert "summary: The flat in Mainz, rent 910 euros\n" in flat
    assert "Rent: 910 euros, due on the 3rd.\n" in flat
    assert "- [ ] Transfer the rent of 910 euros\n- [x] Transferred the rent of 870 euros" in flat
    assert "> The landlord writes that the rent is 870 euros." in flat
    assert "rent = 870\n" in flat
    assert "The deposit was 870 euros too." in flat
    assert "mainz-flat: The flat in Mainz, rent 910 euros" in text(week, INDEX)
    day = text(week, "memory/2026-11-21.md")
    assert "- ~~09:14 The rent of the flat in Mainz is 870 euros~~ → [[" in day
    assert "- 09:20 Piet said that the rent of the flat in Mainz is 870 euros\n" in day
    again = correcting.plan(*MAINZ)
    assert again.places == ()

    decided = correcting.plan(*CHANGED["server"][:2])
    correcting.correct(decided)
    server = text(week, "knowledge/decisions/2026-10-server.md")
    assert "## Decision\n\nThe web server runs on Debian 12.\n" in server
    assert "## Evolution\n- 2026-11-28, until then: The web server runs on Debian 11." in server


def test_a_pointer_leads_to_the_line_of_the_journal_that_said_the_new_value(
    week: KnowledgeBase,
) -> None:
    write(week, {"memory/2026-11-27.md": f"# 2026-11-27\n\n- 19:05 {MAINZ[1]}\n"})
    correcting = week.memory.correcting
    plan = correcting.plan(*MAINZ)
    assert plan.old_said is not None
    assert plan.new_said is not None
    assert (plan.old_said.path, plan.new_said.path) == (
        "memory/2026-11-21.md",
        "memory/2026-11-27.md",
    )
    correcting.correct(plan)
    day = text(week, "memory/2026-11-21.md")
    assert f"- ~~09:14 {MAINZ[0]}~~ → 2026-11-27 19:05\n" in day


def test_only_the_chosen_places_are_corrected(week: KnowledgeBase) -> None:
    correcting = week.memory.correcting
    plan = correcting.plan(*MAINZ)
    correcting.correct(plan, [each.id for each in plan.places if each.path == MEMORY])
    assert "910" in text(week, MEMORY)
    assert "910" not in text(week, FLAT)
    assert "910" not in text(week, "memory/2026-11-21.md")


def test_a_correction_can_be_undone_after_later_edits(week: KnowledgeBase) -> None:
    before = {path: text(week, path) for path in (MEMORY, FLAT, "memory/2026-11-21.md")}
    correcting = week.memory.correcting
    commit = correcting.correct(correcting.plan(*MAINZ))
    assert commit is not None
    write(week, {MEMORY: text(week, MEMORY) + "- I own a canoe\n"})
    week.history.undo(commit.id)
    assert text(week, MEMORY) == before[MEMORY] + "- I own a canoe\n"
    assert text(week, "memory/2026-11-21.md") == before["memory/2026-11-21.md"]
    assert "910" not in text(week, FLAT)


def test_a_line_that_somebody_edits_meanwhile_stays_and_nothing_is_done(
    week: KnowledgeBase,
) -> None:
    correcting = week.memory.correcting
    plan = correcting.plan(*MAINZ)
    now = text(week, MEMORY).replace("in Mainz is 870", "in Mainz was 860")
    write(week, {MEMORY: now})
    with pytest.raises(ConflictError, match="changed meanwhile"):
        correcting.correct(plan)
    assert text(week, MEMORY) == now
    assert "870" in text(week, FLAT)


def test_lines_above_a_place_may_come_and_go(week: KnowledgeBase) -> None:
    correcting = week.memory.correcting
    plan = correcting.plan(*MAINZ)
    write(week, {MEMORY: "# Mine\n\n- first\n\n" + text(week, MEMORY)})
    correcting.correct(plan)
    assert "- The rent of the flat in Mainz is 910 euros\n" in text(week, MEMORY)


def test_the_value_of_something_else_in_code_or_in_a_link_is_no_place(kb: KnowledgeBase) -> None:
    write(
        kb,
        {
            "knowledge/topics/port.md": (
                "---\ntype: topic\n---\n# Port\n\n"
                "The port of billing is 5432.\n\n"
                "The port of billing is `5432`.\n\n"
                "The port of search is 5432.\n\n"
                "[The port of billing](http://127.0.0.1:5432/)\n\n"
                "~~The port of billing is 5432~~\n\n"
                "Is the port of billing 5432?\n\n"
                "“The port of billing is 5432,” she wrote.\n\n"
                "The port of billing was 5432 until last year.\n\n"
                "- 2026-01-02: The port of billing is 5432\n"
            )
        },
    )
    plan = kb.memory.correcting.plan("The port of billing is 5432", "The port of billing is 6543")
    assert [each.before for each in plan.places if not each.follows] == [
        "The port of billing is 5432."
    ]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("The rent is 870 euros", "the rent is 870 euros.", "Both say the same"),
        ("870 euros", "910 euros", "not of what"),
        ("The rent is 870 euros", "Our holiday in Spain was rainy", "can't be told|not of what"),
    ],
)
def test_what_cannot_be_told_is_refused_in_words(
    kb: KnowledgeBase, old: str, new: str, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        kb.memory.correcting.plan(old, new)


def test_five_hundred_places_are_corrected_at_once(kb: KnowledgeBase) -> None:
    lines = "".join(f"- {n}: the rent of the Mainz flat is 870 euros\n" for n in range(100))
    write(
        kb,
        {
            f"knowledge/topics/t{n}.md": f"---\ntype: topic\n---\n# T{n}\n\n{lines}"
            for n in range(5)
        },
    )
    plan = kb.memory.correcting.plan(
        "The rent of the Mainz flat is 870 euros", "The rent of the Mainz flat is 910 euros"
    )
    assert sum(not each.follows for each in plan.places) == 500
    assert kb.memory.correcting.correct(plan) is not None
    assert "870" not in text(kb, "knowledge/topics/t4.md")


def test_a_line_that_names_nothing_is_of_what_the_title_above_it_says(
    week: KnowledgeBase,
) -> None:
    plan = week.memory.correcting.plan("Rent: 870 euros", "Rent: 910 euros", "Mainz flat")
    assert told(plan) == sorted(CHANGED["rent"][2])


def test_another_word_in_the_place_of_one_that_names_the_thing_is_another_thing(
    kb: KnowledgeBase,
) -> None:
    write(
        kb,
        {
            MEMORY: "- The rent of the barn is 870 euros\n- Rent: 870 euros\n- Flat: 870 euros rent\n"
        },
    )
    plan = kb.memory.correcting.plan(
        "The rent of the flat is 870 euros", "The rent of the flat is 910 euros"
    )
    assert [each.line for each in plan.places] == [2, 3]
