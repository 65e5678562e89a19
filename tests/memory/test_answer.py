"""What a model may hand back: whole and well-typed, or nothing at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kbtui.errors import ModelAnswerError
from kbtui.knowledge.entries.entry import ENTRY_TYPES
from kbtui.knowledge.format.facts import Fact
from kbtui.memory.consolidation.answer import SAVE_MEMORY, Answer, read_answer
from kbtui.memory.records.usable_answers import usable_text
from kbtui.models.schema import check_arguments

ENTRY = "[2026-03-06 10:00] User shared personal preferences. Confirmed favorite color is blue."
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
    assert read_answer(wrap(json.dumps(NEW))) == read_answer(json.dumps(NEW))


def test_harmless_slips_are_put_right() -> None:
    value = {
        "summary": ENTRY + "\x1b[31m\ud83d",
        "notes": "Likes tea",
        "facts": [
            "Likes tea",
            {"text": "A friend", "type": "people", "subject": " Alice ", "importance": "2"},
            {"text": "Daily", "type": "meeting", "subject": "Standup"},
            {"text": "(empty)", "type": "topic", "subject": ""},
        ],
        "corrections": None,
    }
    found = read_answer(json.dumps(value))
    assert "\x1b" not in found.summary
    found.summary.encode()
    assert found.notes == ("Likes tea",)
    assert [(fact.kind, fact.subject or fact.text, fact.importance) for fact in found.facts] == [
        ("fact", "Likes tea", 1),
        ("person", "Alice", 2),
        ("topic", "Standup", 1),
    ]


def changed(**changes: Any) -> str:
    return json.dumps({**NEW, **changes})


BAD = {
    "nothing": "",
    "blanks": "  \n",
    "prose": "Sure! I have saved the memory for you.",
    "no object": "[]",
    "a number": "42",
    "null": "null",
    "an empty object": "{}",
    "half a JSON": json.dumps(NEW)[:120],
    "two objects": json.dumps(NEW) * 2,
    "deep nesting": "[" * 100_000,
    "the schema": json.dumps(SAVE_MEMORY.parameters),
    "another tool": json.dumps({"name": "write_entry", "arguments": {"title": "x"}}),
    "an error object": json.dumps({"error": {"message": "overloaded"}}),
    "an older form without its summary": json.dumps({"memory_update": "- Likes tea"}),
    "a number as summary": changed(summary=42),
    "an empty summary": changed(summary=" "),
    "a bare date": changed(summary="[2026-03-06 10:00]"),
    "a placeholder": changed(summary="(empty)"),
    "the description": changed(summary="A paragraph (2-5 sentences) summarizing key events"),
    "an echo of the prompt": changed(
        summary="Process this conversation and call the save_memory tool with ..."
    ),
    "an echo of the transcript": changed(
        summary="[2026-03-06 10:00] USER: hi\n[2026-03-06 10:01] ASSISTANT [tools: x]: yes"
    ),
    "a refusal": changed(summary="I'm sorry, but I can't assist with that request."),
    "an apology": changed(summary="As an AI language model, I have no memory."),
    "an error text": changed(summary="Error: 429 Too Many Requests"),
    "a gateway's page": changed(summary="<html><body>502 Bad Gateway</body></html>"),
    "a proxy's words": changed(summary="upstream connect error or disconnect/reset"),
    "facts without a text that is one": changed(facts=[{"text": 5}]),
    "facts as numbers": changed(facts=[1]),
    "facts as an object": changed(facts={"a": 1}),
    "a refusal as a fact": changed(facts=["I cannot help with that."]),
    "an endless fact": changed(facts=["x" * 5000]),
    "a thousand facts": changed(facts=[f"fact no {n} here" for n in range(999)]),
    "an echo as a fact": changed(facts=["## Conversation to Process"]),
    "corrections as text": changed(corrections="x"),
    "a correction without new": changed(corrections=[{"old": "x"}]),
    "a correction of numbers": changed(corrections=[{"old": 1, "new": 2}]),
    "a type that is a list": changed(facts=[{"text": "x y", "type": ["topic"]}]),
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


facts = st.fixed_dictionaries(
    {},
    optional={
        "text": loose(st.text(max_size=20)),
        "type": loose(st.sampled_from(["user", *ENTRY_TYPES, "people"])),
        "subject": loose(st.text(max_size=8)),
        "message": loose(st.integers(0, 9)),
        "importance": loose(st.integers(0, 9)),
    },
)
corrections = st.fixed_dictionaries({"old": st.text(), "new": loose(st.text())})
answers = st.fixed_dictionaries(
    {},
    optional={
        "summary": loose(st.just(ENTRY)),
        "title": loose(st.text(max_size=8)),
        "notes": loose(st.lists(st.text(max_size=10))),
        "facts": loose(st.lists(loose(facts), max_size=3)),
        "corrections": loose(st.lists(corrections)),
    },
)


def is_well_formed(found: Answer) -> bool:
    texts = [found.summary, found.title, *found.notes]
    for fact in found.facts:
        texts += [fact.text, fact.subject, fact.replaces]
    for text in texts:
        text.encode()
    return (
        all(isinstance(text, str) for text in texts)
        and bool(found.summary)
        and all(fact.text or fact.replaces for fact in found.facts)
        and all(fact.kind in ENTRY_TYPES for fact in found.facts)
        and all("\n" not in fact.text for fact in found.facts)
    )


@given(answers.map(json.dumps) | st.text(max_size=60) | json_values.map(json.dumps))
def test_whatever_comes_back_it_is_taken_well_formed_or_refused(arguments: str) -> None:
    try:
        found = read_answer(arguments)
    except ModelAnswerError:
        return
    assert is_well_formed(found)


@given(st.integers(0, len(json.dumps(NEW)) - 1))
def test_an_answer_cut_anywhere_is_refused(end: int) -> None:
    with pytest.raises(ModelAnswerError):
        read_answer(json.dumps(NEW)[:end])
