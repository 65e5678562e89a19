"""A text is quoted by sentences and items, never by lines of a file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from kbtui.offline.language import language_of
from kbtui.offline.lines import lines_of, sentences

if TYPE_CHECKING:
    from types import FrameType

_LANGUAGE_OF = language_of.__code__


def said(text: str) -> list[str]:
    return [line.text for line in lines_of(text)]


def test_a_wrapped_paragraph_is_read_as_sentences() -> None:
    text = "The boiler man said the\npressure is low. Dr. Fang came\non the 3. March with St. John."
    assert said(text) == [
        "The boiler man said the pressure is low.",
        "Dr. Fang came on the 3. March with St. John.",
    ]


def test_what_says_nothing_is_not_quoted() -> None:
    text = (
        "---\ntitle: x\n---\n# Head\n\n%% hidden %%\n<!-- hidden\ntoo -->\n[![badge](a)](b)\n"
        "owner:\ndue:: {{date}}\n<% tp.date %>\n---\n[home]: http://x\n#tag #other\n"
        "```\ncode()\n```\n\n2026-11-23: recorded\n\nA word."
    )
    assert said(text) == ["A word."]


def test_what_is_struck_out_is_not_quoted_and_its_sentence_goes_on() -> None:
    text = (
        "- ~~09:14 old~~ → 2026-11-23 09:20\n- 09:20 new\n\n"
        "## Then\n\n~~It was so.~~ → 2026-11-23 It is."
    )
    assert said(text) == ["new", "It is."]


def test_what_was_said_at_one_time_is_one_however_many_lines_it_has() -> None:
    (line, after) = lines_of("- 09:14 Vendors:\n  - flowers\n\n  - cake\n- 09:15 next\n")
    assert (line.text, line.time, line.first, line.last) == (
        "Vendors: - flowers - cake",
        "09:14",
        1,
        4,
    )
    assert after.text == "next"


def test_items_tasks_rows_and_callouts_are_lines_of_their_own() -> None:
    text = "- one\n- [ ] two\n  goes on\n1. three\n\n| a | b |\n|---|---|\n| c | d |\n\n> [!note] Mind\n> the gap."
    assert said(text) == ["one", "two goes on", "three", "a | b", "c | d", "Mind the gap."]


def test_places_are_those_of_the_text() -> None:
    text = "# T\n\nThat was one. Two is\nhere.\n"
    for line in lines_of(text):
        assert line.text in text[line.start : line.end].replace("\n", " ")
    assert [(line.first, line.last, line.heading) for line in lines_of(text)] == [
        (3, 3, "T"),
        (3, 4, "T"),
    ]


def test_a_script_without_blanks_is_cut_at_its_own_marks() -> None:
    assert said("父は魚を食べません。母は食べます。") == ["父は魚を食べません。", "母は食べます。"]


def test_the_marks_that_close_a_heading_are_not_part_of_it() -> None:
    for typed in ("# Trip to C# ##", "# Trip to C#  ", "#  Trip to C#"):
        found = [line.heading for line in lines_of(f"{typed}\n\nA sentence stands here.\n")]
        assert found == ["Trip to C#"]


def test_a_comment_that_is_not_closed_hides_nothing() -> None:
    said = [line.text for line in lines_of("<!-- a --> Words.\n\nMore. <!-- c\n\nLast.\n")]
    assert said == ["Words.", "More.", "<!-- c", "Last."]


def test_what_leads_to_a_list_is_no_empty_field() -> None:
    assert said("Packing list:\n\n- boots\n- map\n") == ["Packing list:", "boots", "map"]
    assert said("- Owner:\n- Due:\n\nStatus:\n\nA word.") == ["A word."]


def test_an_item_that_leads_to_a_list_is_no_empty_field() -> None:
    assert said("- Packing for the tour:\n  - boots\n  - map\n- Due:\n") == [
        "Packing for the tour:",
        "boots",
        "map",
    ]


def test_what_stands_in_a_quote_is_read_as_it_would_be_outside() -> None:
    text = "> It holds:\n>\n> - one\n> - two goes\n>   on\n>\n> Then it\n> ends. Really."
    assert said(text) == ["It holds:", "one", "two goes on", "Then it ends.", "Really."]


def test_what_is_past_is_read_with_its_marks_where_it_is_asked_for() -> None:
    text = "- ~~09:14 old~~ → 2026-11-23 09:20\n- 09:20 new\n"
    found = [(line.time, line.text) for line in lines_of(text, struck_too=True)]
    assert found == [("09:14", "~~old~~ → 2026-11-23 09:20"), ("09:20", "new")]


def test_a_line_of_nothing_but_dates_costs_by_its_length() -> None:
    seen = 0

    def count(frame: FrameType, event: str, _arg: object) -> None:
        nonlocal seen
        if event == "call" and frame.f_code is _LANGUAGE_OF:
            seen += sum(map(len, frame.f_locals["texts"]))

    text = "we paid 3. March " * 500
    sys.setprofile(count)
    try:
        assert sentences(text) == [text.strip()]
    finally:
        sys.setprofile(None)
    assert seen < 50 * len(text)


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("i live in oslo. my sister lives in bergen.", 2),
        ("I met Ada. rename bob to rob.", 2),
        ("it costs approx. ten euros incl. tax. ok", 2),
        ("siehe z. b. die liste.", 1),
        ("the key is with Carla from no. 17, not on thursdays", 1),
        ("he said no. two came", 2),
        ("wir kommen am 3. tag der messe.", 1),
    ],
)
def test_a_message_typed_without_capitals_is_read_as_sentences(message: str, parts: int) -> None:
    assert len(sentences(message)) == parts
    assert sentences("It costs 20 Eur. per month.", edited=True) == ["It costs 20 Eur. per month."]


def test_footnotes_and_rows_without_outer_bars_are_lines_of_their_own() -> None:
    text = (
        "a | b\n--|--\n\nc.\n[^1]: One. Two.\n[^2]: Three.\n\n| x | y |\n|---|---|\n| z\\|w | 5 |\n"
    )
    assert [line.text for line in lines_of(text)] == [
        "a | b",
        "c.",
        "One.",
        "Two.",
        "Three.",
        "x | y",
        "z\\ | w | 5",
    ]


def test_a_fence_ends_with_its_item_and_an_excerpt_may_begin_indented() -> None:
    text = "- ```\n  code\nSaid.\n\n      - Nested.\n\n<div>\n\nAlso said.\n"
    assert [line.text for line in lines_of(text)] == ["Said.", "Nested.", "Also said."]


def test_a_timed_item_has_what_is_indented_below_it_and_no_more() -> None:
    text = "- 09:14 One.\n  More.\n\n  - Nested.\n- Two.\n- 09:20 Three.\n\n> Four.\n"
    assert [line.text for line in lines_of(text)] == [
        "One. More. - Nested.",
        "Two.",
        "Three.",
        "Four.",
    ]


def test_a_callout_without_a_title_is_quoted_without_its_marker() -> None:
    assert [line.text for line in lines_of("> [!warning]\n> Said. Also said.\n")] == [
        "Said.",
        "Also said.",
    ]


def test_a_timed_item_is_one_whatever_its_lines_look_like() -> None:
    text = "- 09:14 a\n  ===\n\n  ```\n  code\n  ```\n\n  ***\n\n- 09:20 b\n  ```\n  code\n\n c\n"
    assert [line.text for line in lines_of(text)] == [
        "a === ``` code ``` ***",
        "b ``` code",
        "c",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The mark is `%%`.\n\nThe door is red.\n\nIt ends with `%%`.\n",
        "Write `<!--` to begin.\n\nThe door is red.\n\nWrite `-->` to end.\n",
        "Write `~~` here. The door is red. Write `~~` there.\n",
        "```\n%%\n```\n\nThe door is red.\n\n```\n%%\n```\n",
    ],
)
def test_signs_in_code_hide_nothing(text: str) -> None:
    assert "The door is red." in [line.text for line in lines_of(text)]


def test_a_comment_behind_code_is_none_of_the_text() -> None:
    text = "The mark is `%%`. %% not this %% The door is red.\n"
    assert [line.text for line in lines_of(text)] == ["The mark is `%%`.", "The door is red."]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_properties_are_no_text_whatever_ends_their_lines(end: str) -> None:
    text = end.join(["---", "said:", "- It is red.", "---", "It is blue.", ""])
    assert [line.text for line in lines_of(text)] == ["It is blue."]
    assert [line.text for line in lines_of(f"---{end}---{end}It is blue.")] == ["It is blue."]
