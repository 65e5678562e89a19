"""The pieces of a conversation as lines."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic

import pytest

from kbtui.agent.events import Citation, TurnChange
from kbtui.models.port import ToolCall
from kbtui.presentation.notes import INTO, Names
from kbtui.sessions.store import SessionMessage
from kbtui.tui.chat.conversation.cards import (
    ReasoningItem,
    ToolItem,
    argument_details,
    argument_line,
    change_items,
    note_about,
)
from kbtui.tui.chat.conversation.conversation import replay
from kbtui.tui.chat.conversation.flow_view import Flow
from kbtui.tui.chat.conversation.items import (
    AnswerItem,
    LinkItem,
    NoticeItem,
    PendingItem,
    Target,
    UserItem,
    citation_items,
    settled,
)

WIDTH = 40
ANSWER = """\
# Title

A paragraph with **bold** text that is long enough to be wrapped.

- one
- two
  continued

  a second paragraph

1. first

2. second

```python
x = 1

y = 2
```

| a | b |
| - | - |
| 1 | 2 |

> quoted

> quoted on

Last words.
"""


def plain(item) -> list[str]:
    return [line.content.plain for line in item.lines(WIDTH)]


@pytest.mark.parametrize("size", [1, 3, 7, 50, 1000])
def test_a_streamed_answer_looks_in_the_end_as_if_it_had_come_at_once(size: int) -> None:
    streamed = AnswerItem(streaming=True)
    for at in range(0, len(ANSWER), size):
        streamed.add(ANSWER[at : at + size])
        streamed.lines(WIDTH)
    streaming = plain(streamed)
    streamed.finish()
    whole = plain(AnswerItem(text=ANSWER))
    assert plain(streamed) == whole
    # Even before, only blank lines between loose blocks may differ.
    assert [line for line in streaming if line.strip()] == [line for line in whole if line.strip()]


def test_only_what_is_finished_is_settled() -> None:
    assert settled("one\n\ntwo", 0) == len("one\n\n")
    assert settled("one\n\n- two", 0) == 0
    assert settled("- one\n\n  more\n\nafter", 0) == len("- one\n\n  more\n\n")
    assert settled("```\na\n\nb\n", 0) == 0
    assert settled("```\na\n\nb\n```\n\nc", 0) == len("```\na\n\nb\n```\n\n")
    assert settled("one\n\n", 0) == 0
    assert settled("- ```\n  a\n\n  b\n\nc", 0) == len("- ```\n  a\n\n  b\n\n")
    assert settled("````\n```\n\nb", 0) == 0


def test_no_line_is_wider_than_it_may_be() -> None:
    items = [
        AnswerItem(text=ANSWER),
        UserItem(text="a question that is longer than forty characters wide", queued=True),
        ToolItem(tool="write_entry", summary="decisions/2026-11-a-very-long-name created", ok=True),
        LinkItem(label="[1]", to=Target("knowledge/decisions/2026-11-a-very-long-name-indeed.md")),
        NoticeItem(title="A title that is longer than the line", text="and a text " * 9),
    ]
    for item in items:
        assert max(line.content.cell_length for line in item.lines(WIDTH)) <= WIDTH


@pytest.mark.parametrize(
    "item",
    [
        UserItem(text="\x1b[31mred\x1b[0m [@click=app.quit]x[/]"),
        AnswerItem(text="\x1b[31mred\x1b[0m [@click=app.quit]x[/]"),
        ReasoningItem(text="\x1b[31mred\x1b[0m [@click=app.quit]x[/]", expanded=True),
        ToolItem(tool="\x1b[2J", arguments="[@click=app.quit]\x07", summary="\x9b1m"),
        ToolItem(tool="x", output="\x1b]52;c;aGk=\x07[@click=app.quit]", expanded=True),
        LinkItem(label="[1]", to=Target("\x1b[2J[@click=app.quit]x[/].md"), note="\u202eevil"),
        NoticeItem(title="\x1b[2J", text="[@click=app.quit]\u202e"),
    ],
)
def test_what_comes_from_outside_neither_steers_the_terminal_nor_is_markup(item) -> None:
    for line in item.lines(WIDTH):
        text = line.content.plain
        assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in text)
        assert "\u202e" not in text
        spans = [str(span.style) for span in line.content.spans]
        assert not any("click" in span for span in spans)


def test_a_tool_that_is_about_a_note_says_its_title_and_no_path() -> None:
    path = "knowledge/people/mira-okafor.md"
    for named in ("people/mira-okafor", "people/mira-okafor.md", path):
        assert note_about("read", {"path": named}) == path
    tool = ToolItem(tool="read", about=path, ok=True, summary="people/mira-okafor, 22 lines")
    assert plain(tool) == ["▸ read ● Mira okafor · 22 lines"]
    tool = ToolItem(tool="edit_entry", about=path, ok=False, summary="not there")
    assert plain(tool) == ["▸ ✗ change ● Mira okafor · not there"]
    assert not note_about("read", {"path": "Mira"})
    assert not note_about("somebody's", {"path": "a/b"})


def test_a_tool_is_one_line_until_it_is_expanded() -> None:
    tool = ToolItem(tool="search", arguments='"auth"', details="query: auth")
    assert plain(tool) == ['▸ … searched for "auth"']
    tool.ok, tool.summary, tool.output = True, "4 hits", "1. one\n2. two"
    tool.changed()
    assert plain(tool) == ['▸ searched for "auth" · 4 hits']
    tool.expanded = True
    tool.changed()
    assert plain(tool) == [
        '▾ searched for "auth" · 4 hits',
        "    query: auth",
        "    1. one",
        "    2. two",
    ]


def test_a_huge_output_is_cut_where_it_is_shown_but_copied_whole() -> None:
    tool = ToolItem(tool="x", output="\n".join(str(n) for n in range(5000)), expanded=True, ok=True)
    lines = plain(tool)
    assert len(lines) < 300
    assert "4,800 more lines" in lines[-1]
    assert tool.source.endswith("4999")


def test_what_a_tool_wrote_can_be_opened_without_the_catalogue() -> None:
    path = "knowledge/people/alice.md"
    tool = ToolItem(tool="w", changes=(TurnChange("c", (path, "knowledge/INDEX.md")),))
    assert tool.target == Target(path)
    assert [link.target for link in change_items(tool)] == [Target(path)]
    only_index = ToolItem(tool="w", changes=(TurnChange("c", ("knowledge/INDEX.md",)),))
    assert only_index.target == Target("knowledge/INDEX.md")


def test_a_citation_names_the_note_and_the_section() -> None:
    cited = Citation(1, "knowledge/people/alice-brown.md", 14, 16, "Alice Brown > Role")
    (item,) = citation_items([cited], "t", Names())
    assert plain(item) == [f"  [1] ● Alice brown {INTO}Role"]
    assert item.target == Target("knowledge/people/alice-brown.md", 14)


def test_a_citation_says_the_place_in_a_document_and_no_file_name_twice() -> None:
    slide = Citation(1, "docs/talk.pptx", 3, 3, "talk.pptx", "slide 2 > Budget")
    memory = Citation(2, "memory/MEMORY.md", 3, 3, "MEMORY.md")
    first, second = citation_items([slide, memory], "t", Names())
    assert plain(first)[0].endswith(f"{INTO}slide 2{INTO}Budget")
    assert plain(second)[0].rstrip().endswith("Memory")


def test_arguments_fit_into_a_line_and_long_ones_stay_in_the_details() -> None:
    arguments = {"query": "auth", "limit": 5, "body": "x" * 200, "tags": ["a", "b"]}
    assert argument_line(arguments) == '"auth" limit=5'
    assert "x" * 200 in argument_details(arguments)
    assert 'tags: ["a", "b"]' in argument_details(arguments)


@pytest.mark.parametrize("text", ["", "{}", "null", "[1]", "{broken", "[" * 100_000])
def test_arguments_of_any_shape_can_be_shown(text: str) -> None:
    assert isinstance(ToolCall("1", "search", text).shown, dict)


def test_of_a_streaming_answer_only_the_lines_that_changed_are_drawn_again() -> None:
    flow, answer = Flow(), AnswerItem(streaming=True)
    flow.items = [UserItem(text="why"), answer]
    answer.add("Settled for good.\n\nAlso settled.\n\nThe end grows")
    flow.lay_out(0, 40)
    before = list(flow.lines)
    answer.add(" and grows")
    first = flow.lay_out(1, 40)
    assert flow.lines[first].text != before[first].text
    assert first == len(before) - 1


def test_calls_to_which_a_server_gave_one_id_are_shown_each() -> None:
    calls = (ToolCall("call_0", "search", "{}"), ToolCall("call_0", "read_entry", "{}"))
    now = datetime.now(UTC)
    shown = replay([SessionMessage(1, now, "assistant", "", tool_calls=calls)])
    assert [each.tool for each in shown if isinstance(each, ToolItem)] == ["search", "read_entry"]


def test_what_is_pending_neither_turns_nor_counts_without_animation() -> None:
    turning = PendingItem(since=monotonic() - 100).lay_out(60)
    still = PendingItem(since=monotonic() - 100, still=True).lay_out(60)
    assert "thinking 100 s" in turning[0].text
    assert still[0].text == "thinking · Esc stops"
