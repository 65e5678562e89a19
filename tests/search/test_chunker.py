from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from kbtui.search.index.chunker import ChunkLimits, is_indexed, passage_key, read_document
from kbtui.search.index.markdown import estimate

LIMITS = ChunkLimits()
SMALL = ChunkLimits(tokens=64, overlap=16)


def chunks(text: str, limits: ChunkLimits = LIMITS, path: str = "knowledge/topics/x.md"):
    return read_document(path, text.encode("utf-8", "surrogatepass"), limits).chunks


def test_sections_that_fit_together_are_one_chunk_that_knows_their_headings() -> None:
    (chunk,) = chunks("# Auth\n\nIntro.\n\n## Context\n\nWhy.\n\n## Decision\n\nThis.\n")
    assert chunk.lines == (1, 11)
    assert chunk.headings == ((1, "Auth"), (5, "Auth > Context"), (9, "Auth > Decision"))


def test_sections_that_do_not_fit_together_are_chunks_of_their_own() -> None:
    long = "Some words about it. " * 12
    found = chunks(f"# A\n\n{long}\n\n# B\n\n{long}\n", SMALL)
    assert {chunk.headings[0][1] for chunk in found} == {"A", "B"}
    assert all(len(chunk.headings) == 1 for chunk in found)


def test_a_heading_stays_with_what_it_stands_over() -> None:
    fence = "```\n" + "code\n" * 100 + "```"
    (chunk,) = chunks(f"# Title\n\n## Code\n\n{fence}\n", SMALL)
    assert chunk.text.startswith("# Title")
    assert chunk.text.endswith("```")


@pytest.mark.parametrize(
    "front",
    [
        "# Alice\n\n",
        "Alice\n=====\n\n",
        "[![build](https://ci.example/b.svg)](https://ci.example) ![cover](c.png)\n\n",
        "- [Home](home.md) | [[People]]\n- Up: [[Index]]\n\n",
        "%% made by\nthe template %%\n<!-- version 3 -->\n\n",
        "{{date}} #person\n\n---\n",
        "# Alice\n\n[[People]]\n\n",
    ],
)
def test_a_passage_begins_behind_what_stands_in_front_of_the_text(front: str) -> None:
    (chunk,) = chunks(f"---\ntitle: Alice\n---\n{front}She owns the login service.\n")
    assert chunk.passage_texts() == ["Alice\nShe owns the login service."]
    assert chunk.text.endswith("service.")


@pytest.mark.parametrize(
    "text",
    [
        "[[Home]]\n[[People]]",
        "%% never closed",
        "See [[Home]] first.",
        "# Another title",
        "**Now**",
    ],
)
def test_what_is_a_notes_text_stays_its_text(text: str) -> None:
    (chunk,) = chunks(f"---\ntitle: Alice\n---\n{text}\n")
    assert chunk.passage_texts()[0].endswith(text)


def test_definitions_of_links_are_no_text() -> None:
    (chunk,) = chunks(
        "She owns the login service.\n\n"
        '[//begin]: # "links"\n[sso]: ../login/sso.md "Single sign-on"\n[//end]: # (end)\n'
    )
    assert [text.partition("\n")[2] for text in chunk.passage_texts()] == [
        "She owns the login service."
    ]
    assert "Single sign-on" in chunk.text


@pytest.mark.parametrize("text", ["[^1]: said by Alice", "[Alice]: I'd rather not", "[x]:"])
def test_footnotes_and_speakers_are_text(text: str) -> None:
    (chunk,) = chunks(f"It is so.\n\n{text}\n")
    assert chunk.passage_texts()[0].endswith(text)


def test_sections_of_some_length_are_chunks_of_their_own() -> None:
    text = "Some words about it. " * 15
    found = chunks(f"# Trip\n\n## Tents\n\n{text}\n\n## Food\n\n{text}\n\n## Fuel\n\nGas.\n")
    assert [chunk.headings[-1][1] for chunk in found] == ["Trip > Tents", "Trip > Fuel"]
    assert found[1].headings[0][1] == "Trip > Food"


def test_a_long_section_is_cut_with_an_overlap() -> None:
    sentences = [f"Sentence number {i} says something." for i in range(60)]
    found = chunks("# A\n\n" + " ".join(sentences) + "\n", SMALL)
    assert len(found) > 3
    for before, after in pairwise(found):
        shared = re.findall(r"number (\d+)", before.text)[-1]
        assert f"number {shared} says" in after.text


def test_a_fence_is_never_cut_however_long() -> None:
    fence = "~~~python\n" + "\n".join(f"line_{i} = {i}" for i in range(400)) + "\n~~~"
    text = f"# A\n\nBefore. {'More. ' * 60}\n\n{fence}\n\nAfter. {'More. ' * 60}\n"
    found = chunks(text, SMALL)
    assert sum(fence in chunk.text for chunk in found) == 1
    assert sum("line_200 =" in chunk.text for chunk in found) == 1


def test_a_fence_that_is_never_closed_is_ordinary_text() -> None:
    found = chunks("```\n" + "words and more words\n" * 400, SMALL)
    assert len(found) > 10


def test_table_rows_are_never_cut() -> None:
    row = "| " + " | ".join("cell with words" for _ in range(40)) + " |"
    table = "\n".join(["| a | b |", "|---|---|", *[row] * 20])
    for chunk in chunks(f"# T\n\n{table}\n", SMALL):
        assert all(line.endswith("|") for line in chunk.text.splitlines() if line.startswith("|"))


def test_a_heading_inside_a_fence_is_code() -> None:
    (chunk,) = chunks("# A\n\n```sh\n# not a heading\n```\n")
    assert chunk.headings == ((1, "A"),)


def test_underlined_headings_are_headings() -> None:
    (chunk,) = chunks("Title\n=====\n\nText.\n\nPart\n----\n\nMore.\n")
    assert [path for _, path in chunk.headings] == ["Title", "Title > Part"]


def test_a_passage_says_first_where_it_stands() -> None:
    (chunk,) = chunks("---\ntitle: Auth\n---\n# Context\n\nWhy we did it.\n")
    assert chunk.passage_texts() == ["Auth > Context\n# Context\n\nWhy we did it."]
    assert chunk.lines == (4, 6)


def test_passages_are_short_enough_for_the_model_and_leave_nothing_out() -> None:
    text = "# A\n\n" + "\n\n".join(f"Paragraph {i}. " + "Words follow. " * 30 for i in range(30))
    for chunk in chunks(text):
        assert all(estimate(chunk.text[p.start : p.end]) <= 190 for p in chunk.passages)
        joined = "".join(chunk.text[p.start : p.end] for p in chunk.passages)
        # The title's own heading is what stands before each of them.
        assert "".join(joined.split()) == "".join(chunk.text.removeprefix("# A").split())
        assert {p.context for p in chunk.passages} == {"A\n"}


def test_what_is_all_frontmatter_is_still_found() -> None:
    (chunk,) = chunks("---\ntitle: Bass on Top\nartist: Paul Chambers\n---\n")
    assert "Paul Chambers" in chunk.text
    assert chunk.lines == (2, 3)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"---\n---\n", b"\xef\xbb\xbf"])
def test_a_note_without_text_is_still_found_by_its_title(data: bytes) -> None:
    document = read_document("knowledge/Docker.md", data, LIMITS)
    (chunk,) = document.chunks
    assert (chunk.text, chunk.passage_texts()) == ("", ["Docker\n"])
    assert document.properties.title == "Docker"


def test_an_empty_document_has_no_chunks_and_no_problem() -> None:
    document = read_document("docs/a.txt", b"", LIMITS)
    assert (document.chunks, document.problem) == ((), "")


def test_utf_16_is_text_and_a_picture_is_not() -> None:
    text = read_document("docs/a.txt", "Grüße".encode("utf-16"), LIMITS)
    assert text.chunks[0].text == "Grüße"
    picture = read_document("docs/a.bin2", b"\x89PNG\0\0\0", LIMITS)
    assert picture.problem == "it is not text"


def test_line_endings_do_not_shift_lines() -> None:
    unix = chunks("# A\n\none\n\ntwo\n")
    assert chunks("# A\r\n\r\none\r\n\r\ntwo\r\n") == unix


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("knowledge/topics/docker.md", True),
        ("knowledge/INDEX.md", False),
        ("knowledge/topics/INDEX.md", False),
        ("knowledge/picture.png", False),
        ("knowledge/a.conflict-20261121.md", False),
        ("memory/MEMORY.md", True),
        ("memory/2026-03-25.md", True),
        ("memory/history.jsonl", True),
        ("memory/history-laptop-1.jsonl", True),
        ("memory/HISTORY.md", False),
        ("memory/tombstones.jsonl", False),
        ("memory/cursors.json", False),
        ("sessions/tui_1.jsonl", True),
        ("sessions/tui_1.jsonl.torn-20261121", False),
        ("docs/nanobot/README", True),
        ("docs/nanobot/main.py", True),
        ("docs/nanobot/logo.png", False),
        ("docs/nanobot/report.pdf", False),
    ],
)
def test_what_is_indexed_is_told_by_the_path(path: str, expected: bool) -> None:
    assert is_indexed(path) is expected


def test_chunks_do_not_depend_on_what_stands_far_away() -> None:
    text = "# A\n\n" + "\n\n".join(f"## S{i}\n\n" + f"Word{i} and more. " * 40 for i in range(8))
    before = {passage_key(t) for chunk in chunks(text) for t in chunk.passage_texts()}
    after = {passage_key(t) for chunk in chunks(text + "\nAdded.\n") for t in chunk.passage_texts()}
    assert len(before - after) <= 1


_LINES = st.lists(
    st.sampled_from(
        [
            "", "# Head", "### Deep", "text of a paragraph.", "- item", "```", "~~~", "| a | b |",
            "|---|---|", "Title", "=====", "    indented", "word " * 200, "漢字" * 300, "x" * 3000,
            "---",
        ]
    ),
    max_size=40,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(_LINES)
def test_every_line_of_any_text_is_in_a_chunk_and_lines_are_exact(lines: list[str]) -> None:
    text = "\n".join(lines)
    document = read_document("docs/x.md", text.encode(), SMALL)
    covered: set[int] = set()
    body = text[document.properties.offset :]
    skipped = text[: document.properties.offset].count("\n")
    for chunk in document.chunks:
        first, last = chunk.lines
        covered.update(range(first, last + 1))
        whole = "\n".join(text.split("\n")[first - 1 : last])
        assert chunk.text in whole
        assert chunk.passages
    wanted = {i for i, line in enumerate(text.split("\n"), 1) if line.strip() and i > skipped}
    assert not body.strip() or wanted <= covered


@settings(max_examples=100, deadline=None)
@given(
    st.binary(max_size=400), st.sampled_from(["docs/a.txt", "knowledge/a.md", "sessions/a.jsonl"])
)
def test_no_bytes_can_break_the_chunker(data: bytes, path: str) -> None:
    read_document(path, data, LIMITS)


def test_a_time_in_code_is_no_line_of_a_journal() -> None:
    text = "# Day\n\n```\n- 09:14 in code\n```\n\n- 10:00 said\n"
    found = read_document("memory/2026-11-20.md", text.encode(), ChunkLimits())
    assert [chunk.text for chunk in found.chunks] == [
        "# Day\n\n```\n- 09:14 in code\n```",
        "- 10:00 said",
    ]


def test_what_notes_repeat_of_a_conversation_that_was_not_condensed_is_not_indexed() -> None:
    day = (
        "# 2026-11-28\n\n- 09:28 The heat pump was serviced.\n\n"
        "## Flush at 20:55 (session: tui_1) [RAW]\n\n- user: The heat pump hums.\n"
        "- assistant: Okay.\n\n## Flush at 21:10 (session: tui_2)\n\n- user: manual of the pump\n"
    )
    texts = [chunk.text for chunk in chunks(day, path="memory/2026-11-28.md")]
    assert "serviced" in texts[0]
    assert not any("hums" in text or "RAW" in text for text in texts)
    assert any("manual of the pump" in text for text in texts), "a line that a model made"
    session = (
        "# Session Memory: 2026-11-28 20:55\n\n- **Session**: tui_1\n\n## Summary\n\n"
        "[RAW] No summary could be made; what was said stands below.\n\n## Key Messages\n\n"
        "user: The heat pump hums.\nassistant: Okay.\n\nMine: ask Ilka.\n"
    )
    (chunk,) = chunks(session, path="memory/2026-11-28-pump.md")
    assert "Mine: ask Ilka." in chunk.text
    assert "hums" not in chunk.text
    assert "hums" in chunks(session)[0].text, "an entry is a person's"
