"""A fact stands in a prompt once: the notes and the summary leave out what the rest says."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.agent.context import assemble
from kbtui.agent.deduplicate import Known
from kbtui.history.change import Actor
from kbtui.models.litellm_model import LiteLLMModel, ModelOptions
from kbtui.offline.lines import without_struck

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

NOTE = "memory/2026-11-21.md"
NOW = datetime(2026, 11, 21, 18, 0, tzinfo=UTC)
LATER, EARLIER = NOW.timestamp() + 3_600, NOW.timestamp() - 3_600


def write(kb: KnowledgeBase, path: str, text: str, when: float = NOW.timestamp()) -> None:
    file = kb.workspace.root / path
    file.write_text(text)
    os.utime(file, (when, when))


def part(kb: KnowledgeBase, name: str, session: Session | None = None, room: int = 50_000) -> str:
    context = kb.settings.context.model_copy(update={"session_tokens": room})
    kb.settings = kb.settings.model_copy(update={"context": context})
    model = LiteLLMModel(
        "openai/x", "http://127.0.0.1:1", options=ModelOptions(context_window=100_000)
    )
    prompt = assemble(kb, session, "Hi", model=model, now=lambda: NOW)
    return next(each.text for each in prompt.parts if each.name == name)


def test_what_memory_says_is_no_note_as_well(kb: KnowledgeBase) -> None:
    write(kb, "memory/MEMORY.md", "- The rent of the flat is 900 euros.\n")
    write(kb, NOTE, "- The flat's rent is 900 euros\n- Walked to the harbour\n")
    told = part(kb, "notes")
    assert "Walked to the harbour" in told
    assert "rent" not in told


def test_what_the_catalogue_says_is_no_note_as_well(kb: KnowledgeBase) -> None:
    kb.library.create("fact", "Pump", body="The pump of the greenhouse takes 24 volts.")
    write(kb, NOTE, "- The greenhouse pump takes 24 volts\n- Walked to the harbour\n")
    assert "volts" not in part(kb, "notes")


def test_of_notes_that_say_nothing_else_nothing_is_left(kb: KnowledgeBase) -> None:
    write(kb, "memory/MEMORY.md", "- The rent of the flat is 900 euros.\n")
    write(kb, NOTE, "# 2026-11-21\n\n- The flat's rent is 900 euros\n")
    assert part(kb, "notes") == ""


@pytest.mark.parametrize(("when", "shown"), [(LATER, False), (EARLIER, True)])
def test_a_value_that_was_corrected_later_is_not_shown(
    kb: KnowledgeBase, when: float, *, shown: bool
) -> None:
    write(kb, "memory/MEMORY.md", "- The rent of the flat is 900 euros.\n", when)
    write(kb, NOTE, "- The rent of the flat is 850 euros\n- Walked to the harbour\n")
    assert ("850" in part(kb, "notes")) is shown


def test_what_is_struck_out_is_not_shown(kb: KnowledgeBase) -> None:
    write(kb, NOTE, "- 09:14 ~~The kiln fires at noon.~~ → 2026-11-21 10:02\n- 10:02 At one.\n")
    told = part(kb, "notes")
    assert "noon" not in told
    assert "- 10:02 At one." in told


def test_nothing_but_what_is_struck_out_is_taken_from_a_text() -> None:
    text = "# Day\n\n- a ~~b~~ c\n- ~~gone~~\n\n    code\n"
    assert without_struck(text) == "# Day\n\n- a       c\n\n    code\n"


def test_a_note_made_of_what_the_prompt_holds_of_a_conversation_waits_until_it_left(
    kb: KnowledgeBase, session: Session
) -> None:
    session.append("user", "By the way, our cat Mia is afraid of the harbour.")
    session.append("assistant", "Poor Mia.")
    write(kb, NOTE, "- The cat Mia is afraid of the harbour\n", datetime.now(UTC).timestamp() + 1)
    assert part(kb, "notes", session) == ""
    assert "Mia" in part(kb, "notes", kb.sessions.create("other"))


def test_what_is_said_later_changes_nothing_about_the_notes(
    kb: KnowledgeBase, session: Session
) -> None:
    write(kb, NOTE, "- The cat Mia is afraid of the harbour\n")
    before = part(kb, "notes", session)
    session.append("user", "Why is the cat Mia afraid of the harbour?")
    assert part(kb, "notes", session) == before != ""


def test_the_summary_of_a_conversations_beginning_leaves_out_what_memory_says(
    kb: KnowledgeBase, session: Session
) -> None:
    for number in range(1, 21):
        session.append("user", f"question {number} " + "talk " * 30)
        session.append("assistant", f"reply {number} " + "talk " * 30)
    write(kb, "memory/MEMORY.md", "- The rent of the flat is 900 euros.\n")
    summary = "They spoke about zebras. The flat's rent is 900 euros."
    with kb.history.change(Actor.CONSOLIDATOR, "Condensed.") as change:
        kb.archive.stage(change, summary, session=session.id, messages=(1, 30), timestamp=NOW)
    told = part(kb, "earlier", session, room=1_000)
    assert "They spoke about zebras." in told
    assert "900" not in told


@pytest.mark.parametrize(
    ("known", "line", "said"),
    [
        ("The rent is 900 euros.", "Rent: 900 euros", True),
        ("The rent of Alice's flat is 900 euros.", "Bob moved to Rome", False),
        ("Alice likes tea.", "Alice likes tea and plays the violin", False),
        ("Mia is 3 years old.", "Mia weighs 4 kilos", False),
    ],
)
def test_a_line_is_known_if_one_other_says_nearly_all_of_it(
    known: str, line: str, *, said: bool
) -> None:
    knows = Known()
    knows.add(known, 0.0)
    assert (knows.without(f"- {line}\n", 0.0) == "") is said
