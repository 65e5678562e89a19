"""What a model may hand back: whole and well-typed, or nothing at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.errors import ModelAnswerError
from kbtui.knowledge.entries.templates import ENTRY_TYPES
from kbtui.knowledge.format.facts import Fact
from kbtui.memory.consolidation.answer import SAVE_MEMORY, Answer, read_answer
from kbtui.memory.records.usable_answers import usable_text
from kbtui.models.schema import check_arguments

ENTRY = "[2026-03-06 10:00] User shared personal preferences. Confirmed favorite color is blue."
FULL: dict[str, Any] = {
    "history_entry": ENTRY,
    "memory_update": {
        "facts": ["Favorite color: blue", "- Favorite colour: Blue", "(empty)"],
        "corrections": [{"old": "Lives in Bonn", "new": "Lives in Graz"}],
    },
    "knowledge_entries": [
        {
            "type": "preference",
            "title": "Favorite color",
            "summary": "Blue.",
            "body": "---\ntype: x\n---\n# Favorite color\n\nThe user's favorite color is blue.",
            "tags": ["#color"],
            "related": ["[[people/alice]]"],
        }
    ],
}


NEW: dict[str, Any] = {
    "summary": ENTRY,
    "title": "Colors and Bonn",
    "notes": ["- Talked about colors", "(empty)"],
    "facts": [
        {"text": "- Favorite color: blue", "type": "user", "subject": "", "message": 2},
        {"text": "Alice owns billing", "type": "people", "subject": "Alice", "message": 4},
        {"text": "(empty)", "type": "topic", "subject": "x"},
    ],
    "corrections": [
        {"old": "Lives in Bonn", "new": "Lives in Graz"},
        {"old": "The stand-up is at 9", "new": "The stand-up is at 10", "subject": "Stand-up"},
    ],
}


def test_a_whole_answer_is_taken() -> None:
    assert read_answer(json.dumps(NEW)) == Answer(
        ENTRY,
        (
            Fact("Favorite color: blue", "fact", message=2, place="memory"),
            Fact("Alice owns billing", "person", "Alice", message=4),
            Fact("Lives in Graz", "fact", replaces="Lives in Bonn", place="memory"),
            Fact("The stand-up is at 10", "topic", "Stand-up", replaces="The stand-up is at 9"),
        ),
        ("Talked about colors",),
        "Colors and Bonn",
    )


def test_the_seeds_form_is_taken() -> None:
    assert read_answer(json.dumps(FULL)) == Answer(
        ENTRY,
        (
            Fact("Lives in Graz", "fact", replaces="Lives in Bonn", place="memory", importance=3),
            Fact("Favorite color: blue", "fact", place="memory", importance=3),
            Fact(
                "The user's favorite color is blue.",
                "preference",
                "Favorite color",
                related=("people/alice",),
                tags=("color",),
                summary="Blue.",
                importance=3,
            ),
        ),
        is_old=True,
    )


@pytest.mark.parametrize("subject", ["decision", "Decisions", "topic"])
def test_a_subject_that_is_only_the_name_of_a_kind_is_none(subject: str) -> None:
    text = "We decided to go with Hetzner instead of AWS"
    told = {**NEW, "facts": [{"text": text, "type": "decision", "subject": subject}]}
    (fact, *_) = [each for each in read_answer(json.dumps(told)).facts if each.text == text]
    assert fact.subject == ""


def test_the_example_fits_the_schema_that_models_are_given() -> None:
    assert check_arguments(
        {**NEW, "facts": NEW["facts"][1:2]} | {"facts": []}, SAVE_MEMORY.parameters
    )


@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: f"```json\n{text}\n```",
        lambda text: f"<think>\nhm {{}}\n</think>\n{text}",
        lambda text: f"  {text}\n",
        json.dumps,
        lambda text: json.dumps([json.loads(text)]),
        lambda text: json.dumps({"name": "save_memory", "arguments": json.loads(text)}),
        lambda text: json.dumps({"name": "save_memory", "parameters": text}),
    ],
)
def test_wrappings_of_small_models_are_taken_off(wrap: Any) -> None:
    assert read_answer(wrap(json.dumps(FULL))) == read_answer(json.dumps(FULL))


def test_the_seeds_full_text_form_is_accepted() -> None:
    update = "# User Preferences\n\n- Favorite color: blue"
    found = read_answer(json.dumps({"history_entry": ENTRY, "memory_update": update}))
    assert found.memory == update
    assert found.facts == ()
    for nothing in ("(empty)", "", "None"):
        answer = json.dumps({"history_entry": ENTRY, "memory_update": nothing})
        assert read_answer(answer).memory is None


def test_harmless_slips_are_put_right() -> None:
    value = {
        "history_entry": ENTRY + "\x1b[31m\ud83d",
        "memory_update": json.dumps({"facts": "Likes tea", "corrections": None}),
        "knowledge_entries": [
            {"type": "people", "title": " Alice ", "summary": "A friend", "tags": "a, #b"},
            {"type": "meeting", "title": "Standup", "summary": "Daily"},
            {"type": "topic", "title": "", "summary": "", "body": "(empty)"},
        ],
    }
    found = read_answer(json.dumps(value))
    assert "\x1b" not in found.summary
    found.summary.encode()
    assert [(fact.kind, fact.subject or fact.text, fact.tags) for fact in found.facts] == [
        ("fact", "Likes tea", ()),
        ("person", "Alice", ("a", "b")),
        ("topic", "Standup", ()),
    ]


def changed(**changes: Any) -> str:
    return json.dumps({**FULL, **changes})


BAD = {
    "nothing": "",
    "blanks": "  \n",
    "prose": "Sure! I have saved the memory for you.",
    "no object": "[]",
    "a number": "42",
    "null": "null",
    "an empty object": "{}",
    "half a JSON": json.dumps(FULL)[:120],
    "two objects": json.dumps(FULL) * 2,
    "deep nesting": "[" * 100_000,
    "the schema": json.dumps(SAVE_MEMORY.parameters),
    "another tool": json.dumps({"name": "write_entry", "arguments": {"title": "x"}}),
    "an error object": json.dumps({"error": {"message": "overloaded"}}),
    "no history entry": json.dumps({"memory_update": "x"}),
    "a number as history entry": changed(history_entry=42),
    "an empty history entry": changed(history_entry=" "),
    "a bare date": changed(history_entry="[2026-03-06 10:00]"),
    "a placeholder": changed(history_entry="(empty)"),
    "the description": changed(history_entry="A paragraph (2-5 sentences) summarizing key events"),
    "an echo of the prompt": changed(
        history_entry="Process this conversation and call the save_memory tool with ..."
    ),
    "an echo of the transcript": changed(
        history_entry="[2026-03-06 10:00] USER: hi\n[2026-03-06 10:01] ASSISTANT [tools: x]: yes"
    ),
    "a refusal": changed(history_entry="I'm sorry, but I can't assist with that request."),
    "an apology": changed(history_entry="As an AI language model, I have no memory."),
    "an error text": changed(history_entry="Error: 429 Too Many Requests"),
    "a gateway's page": changed(history_entry="<html><body>502 Bad Gateway</body></html>"),
    "a proxy's words": changed(history_entry="upstream connect error or disconnect/reset"),
    "facts as objects": changed(memory_update={"facts": [{"fact": "x"}]}),
    "facts as numbers": changed(memory_update={"facts": [1]}),
    "facts as an object": changed(memory_update={"facts": {"a": 1}}),
    "a refusal as a fact": changed(memory_update={"facts": ["I cannot help with that."]}),
    "an endless fact": changed(memory_update={"facts": ["x" * 5000]}),
    "a thousand facts": changed(memory_update={"facts": [f"fact no {n} here" for n in range(999)]}),
    "corrections as text": changed(memory_update={"corrections": "x"}),
    "a correction without new": changed(memory_update={"corrections": [{"old": "x"}]}),
    "a correction of numbers": changed(memory_update={"corrections": [{"old": 1, "new": 2}]}),
    "a memory update as list": changed(memory_update=["x"]),
    "a memory update that is half a JSON": changed(memory_update='{"facts": ["x"'),
    "an echoed memory": changed(memory_update="# M\n## Conversation to Process\nUSER: hi"),
    "entries as an object": changed(knowledge_entries={"title": "x"}),
    "entries as texts": changed(knowledge_entries=["people/alice"]),
    "an entry without a title": changed(knowledge_entries=[{"type": "topic", "summary": "s"}]),
    "a title that is a list": changed(knowledge_entries=[{"title": ["x"], "summary": "s"}]),
    "an entry that refuses": changed(
        knowledge_entries=[{"title": "X", "body": "I'm sorry, I cannot help with that."}]
    ),
    "a body that is a number": changed(knowledge_entries=[{"title": "X", "body": 3}]),
    "too much": " " * 1_000_001,
    "no summary": json.dumps({**NEW, "summary": None}),
    "a placeholder as summary": json.dumps({**NEW, "summary": "(empty)"}),
    "facts that are numbers": json.dumps({**NEW, "facts": [1, 2]}),
    "a fact whose text is a list": json.dumps({**NEW, "facts": [{"text": ["x"]}]}),
    "201 facts": json.dumps({**NEW, "facts": [{"text": f"fact {n}"} for n in range(201)]}),
    "notes that are an object": json.dumps({**NEW, "notes": {"a": 1}}),
    "a subject that is a list": json.dumps({**NEW, "facts": [{"text": "x y", "subject": []}]}),
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD.keys())
def test_anything_else_is_refused_in_words(arguments: str) -> None:
    with pytest.raises(ModelAnswerError) as refused:
        read_answer(arguments)
    assert 10 < len(refused.value.message) < 300


@pytest.mark.parametrize(
    "text",
    [
        "User debugged a 500 Internal Server Error in nginx and found the upstream was down.",
        "Error handling in the parser was discussed.",
        "Connection refused errors on port 5432 were traced to a firewall.",
        "[2026-03-06 10:00] Sorry state of the tests was discussed; a fix is planned.",
        "User can't help on Friday. [2026-03-06] is the deadline.",
        "No new facts came up; the user asked about the weather in Bonn.",
        "Unknown callers rang twice.",
        "404 Media was recommended as a source.",
    ],
)
def test_talk_about_errors_and_refusals_is_no_error(text: str) -> None:
    assert usable_text(text) == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)


def loose(good: Any) -> Any:
    return good | json_values


entries = st.fixed_dictionaries(
    {},
    optional={
        "type": loose(st.sampled_from([*ENTRY_TYPES, "people"])),
        "title": loose(st.text(max_size=8)),
        "summary": loose(st.text(max_size=8)),
        "body": loose(st.text(max_size=20)),
        "tags": loose(st.lists(st.text(max_size=4))),
        "related": loose(st.lists(st.text(max_size=4))),
    },
)
answers = st.fixed_dictionaries(
    {},
    optional={
        "history_entry": loose(st.just(ENTRY)),
        "memory_update": loose(
            st.fixed_dictionaries(
                {},
                optional={
                    "facts": loose(st.lists(st.text(max_size=10))),
                    "corrections": loose(
                        st.lists(st.fixed_dictionaries({"old": st.text(), "new": loose(st.text())}))
                    ),
                },
            )
        ),
        "knowledge_entries": loose(st.lists(loose(entries), max_size=3)),
    },
)


def is_well_formed(found: Answer) -> bool:
    texts = [found.summary, found.title, found.memory or "", *found.notes]
    for fact in found.facts:
        texts += [fact.text, fact.subject, fact.summary, fact.replaces, *fact.tags, *fact.related]
    for text in texts:
        text.encode()
    return (
        all(isinstance(text, str) for text in texts)
        and bool(found.summary)
        and all(fact.text or fact.replaces for fact in found.facts)
        and all(fact.kind in ENTRY_TYPES for fact in found.facts)
        and all("\n" not in fact.text for fact in found.facts if fact.place == "memory")
    )


@given(answers.map(json.dumps) | st.text(max_size=60) | json_values.map(json.dumps))
def test_whatever_comes_back_it_is_taken_well_formed_or_refused(arguments: str) -> None:
    try:
        found = read_answer(arguments)
    except ModelAnswerError:
        return
    assert is_well_formed(found)


@given(st.integers(0, len(json.dumps(FULL)) - 1))
def test_an_answer_cut_anywhere_is_refused(end: int) -> None:
    with pytest.raises(ModelAnswerError):
        read_answer(json.dumps(FULL)[:end])
