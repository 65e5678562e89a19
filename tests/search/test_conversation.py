from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kbtui.search.index.chunk_rows import lexical_document, row_of
from kbtui.search.index.chunker import ChunkLimits, IndexedDocument, read_document

if TYPE_CHECKING:
    from tests.search.helpers import Desk

LIMITS = ChunkLimits()
PATH = "sessions/tui_20261121-ab12.jsonl"


def session(*records: dict[str, Any] | str) -> IndexedDocument:
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    return read_document(PATH, ("\n".join(lines) + "\n").encode(), LIMITS)


def message(number: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    time = f"2026-03-25T14:{number:02d}:00+00:00"
    return {"id": number, "time": time, "role": role, "content": content, **more}


def test_each_message_is_a_chunk_that_knows_speaker_day_and_place() -> None:
    document = session(
        {"kind": "session", "title": "Dogs"},
        message(1, "user", "What is my dog called?", name="Kim"),
        message(2, "assistant", "Rex."),
    )
    first, second = document.chunks
    assert document.properties.title == "Dogs"
    assert (first.session, first.messages, first.lines) == ("tui_20261121-ab12", (1, 1), (2, 2))
    assert first.headings == ((2, "Kim, 25 March 2026"),)
    assert second.updated == "2026-03-25"


def test_an_answer_is_embedded_with_the_question_before_it() -> None:
    document = session(
        message(1, "user", "What is my dog called?"), message(2, "assistant", "Rex.")
    )
    (said,) = document.chunks[1].passage_texts()
    assert said == "What is my dog called?\nassistant, 25 March 2026: Rex."


def test_what_was_taken_back_or_is_not_speech_is_not_found() -> None:
    document = session(
        message(1, "user", "Keep this."),
        message(2, "assistant", "Drop this."),
        {"kind": "rewind", "to_message": 1},
        message(3, "tool", "Tool noise."),
        message(4, "assistant", ""),
        message(5, "assistant", "And this."),
    )
    assert [chunk.text for chunk in document.chunks] == ["Keep this.", "And this."]


def test_the_last_title_wins_and_the_first_words_stand_in_for_one() -> None:
    named = session({"kind": "session", "title": "A"}, {"kind": "title", "title": "B"})
    assert named.properties.title == "B"
    assert session(message(1, "user", "Hello there")).properties.title == "Hello there"


def test_torn_and_foreign_lines_are_passed_over() -> None:
    document = session("{not json", "[1, 2]", "null", message(7, "user", "Still here."), '{"id": 8')
    assert [chunk.messages for chunk in document.chunks] == [(7, 7)]


def test_lists_where_there_should_be_words_are_passed_over() -> None:
    odd = [{"kind": []}, {"role": ["user"], "content": "No."}, {"kind": "remember", "by": []}]
    document = session(*odd, {**message(1, "user", "Still here."), "time": "0001-01-01"})
    assert [chunk.text for chunk in document.chunks] == ["Still here."]


def test_a_mask_of_no_title_leaves_none_when_it_is_withdrawn() -> None:
    masked = {"kind": "forget", "message": 0, "spans": [[2, 4]], "by": "a"}
    document = session(message(1, "user", "Hello"), masked, {"kind": "remember", "by": "b"})
    assert document.properties.title == "Hello"


def test_content_in_parts_is_read_by_its_text_parts() -> None:
    parts = [{"type": "text", "text": "See this"}, {"type": "image_url"}, "odd"]
    assert session(message(1, "user", parts)).chunks[0].text == "See this"


def test_a_long_message_is_cut_and_keeps_its_number() -> None:
    document = session(message(1, "assistant", "A sentence of some words. " * 300))
    assert len(document.chunks) > 2
    assert {chunk.messages for chunk in document.chunks} == {(1, 1)}


def test_half_a_surrogate_pair_can_be_stored() -> None:
    document = session('{"id": 1, "role": "user", "content": "broken \\ud800 emoji"}')
    document.chunks[0].text.encode()


def test_the_archive_is_read_by_record() -> None:
    record = {"cursor": 3, "timestamp": "2026-03-25 14:30", "content": "Chose SQLite."}
    record |= {"session": "tui_1", "messages": [4, 9]}
    document = read_document("memory/history.jsonl", json.dumps(record).encode(), LIMITS)
    (chunk,) = document.chunks
    assert (chunk.text, chunk.session, chunk.messages) == ("Chose SQLite.", "tui_1", (4, 9))
    assert chunk.updated == "2026-03-25"


def test_what_the_archive_only_says_was_asked_is_no_hit() -> None:
    asked = {"cursor": 1, "content": "The user said: how do I bleed a radiator? which key fits?"}
    told = {"cursor": 2, "content": "The user said: how do I bleed it? The 5 mm key fits."}
    lines = "\n".join(json.dumps(each) for each in (asked, told))
    document = read_document("memory/history.jsonl", lines.encode(), LIMITS)
    assert [chunk.lines for chunk in document.chunks] == [(2, 2)]


def test_the_archive_does_not_repeat_a_conversation_that_was_kept_whole() -> None:
    condensed = {"cursor": 1, "content": "They spoke of the heat pump."}
    whole = {
        "cursor": 2,
        "content": "[RAW] 1 message\n[2026-03-06 10:00] USER: the heat pump hums",
        "raw": True,
    }
    lines = [condensed, {**whole, "session": "tui_1"}, {**whole, "cursor": 3}]
    data = "".join(json.dumps(each) + "\n" for each in lines).encode()
    found = read_document("memory/history.jsonl", data, ChunkLimits())
    assert [chunk.lines[0] for chunk in found.chunks] == [1, 3], "the last one has no conversation"


def test_a_record_of_the_archive_answers_for_its_own_conversation_only(desk: Desk) -> None:
    told = [("a", "Bought a kayak."), ("b", "The roof leaks."), ("a", "Sold the tent.")]
    records = [
        {"cursor": n, "content": text, "session": session, "messages": [1, 2]}
        for n, (session, text) in enumerate(told, 1)
    ]
    desk.write("memory/history.jsonl", "".join(json.dumps(each) + "\n" for each in records))
    found = desk.index().search("kayak").hits
    assert [hit.lines for hit in found] == [(1, 1)]


def test_an_archive_shares_no_score_between_conversations() -> None:
    told = [{"cursor": n, "content": f"Said {n}.", "session": f"s{n // 2}"} for n in range(4)]
    data = "".join(json.dumps(each) + "\n" for each in told).encode()
    document = read_document("memory/history.jsonl", data, LIMITS)
    files = [lexical_document(row_of(document, c, 1, 1)).numbers for c in document.chunks]
    assert files[0] == files[1] != files[2] == files[3]
    assert [chunk.context.strip() for chunk in document.chunks] == [
        "Said 1.",
        "Said 0.",
        "Said 3.",
        "Said 2.",
    ]
