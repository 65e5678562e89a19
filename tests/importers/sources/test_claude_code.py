"""Sessions of Claude Code: what was said, and nothing of what the program added."""

from __future__ import annotations

import gzip
import json
import sys
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, Skipped
from kbtui.importers.reading import OF_A_SUBAGENT
from kbtui.importers.sources.claude_code import SOURCE

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.importers.port import Item


def line(kind: str, content: Any, uuid: str, parent: str = "", **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **more.pop("message", {})}
    shape = {"type": kind, "uuid": uuid, "parentUuid": parent or None, "sessionId": "s-1"}
    return {**shape, "timestamp": "2026-05-01T10:00:00Z", "message": message, **more}


def said(content: str, uuid: str = "u1", **more: Any) -> dict[str, Any]:
    return line("user", content, uuid, **more)


def put(file: Path, *lines: Any) -> Path:
    file.write_text(
        "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines)
    )
    return file


def only(items: list[Item]) -> ImportedConversation:
    assert [type(each) for each in items] == [ImportedConversation]
    return items[0]  # type: ignore[return-value]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "count"), [("sample_session.jsonl", 4), ("sample_session.json", 13)]
)
def test_real_sessions_are_read_without_tools_and_thinking(
    name: str, count: int, read: Any, data_dir: Path
) -> None:
    found = only(read(SOURCE, data_dir / "exports/claude-code/simonw" / name))
    text = "\n".join(each.text for each in found.messages)
    assert len(found.messages) == count
    assert found.created == min(each.time for each in found.messages if each.time)
    assert "written successfully" not in text
    assert "The user wants" not in text


def test_lines_of_one_reply_become_one_message(tmp_path: Path, read: Any) -> None:
    piece = {"message": {"id": "msg_1"}}
    lines = [
        said("Fix it"),
        line("assistant", [{"type": "thinking", "thinking": "hm"}], "a1", "u1", **piece),
        line("assistant", [{"type": "text", "text": "First."}], "a2", "a1", **piece),
        line("assistant", [{"type": "text", "text": "First."}], "a2", "a1", **piece),
        line("assistant", [{"type": "text", "text": "Second."}], "a3", "a2", **piece),
    ]
    found = only(read(SOURCE, put(tmp_path / "x.jsonl", *lines)))
    assert [each.text for each in found.messages] == ["Fix it", "First.\n\nSecond."]
    assert found.messages[0].time == datetime(2026, 5, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "hidden",
    [
        said("caveat", "h", isMeta=True),
        said("a subagent's order", "h", isSidechain=True),
        said("This session is being continued", "h", isCompactSummary=True),
        said("<system-reminder>be good</system-reminder>", "h"),
        said("<local-command-stdout>ok</local-command-stdout>", "h"),
        said("<command-name>/clear</command-name><command-args></command-args>", "h"),
        said("<task-notification>done</task-notification>", "h"),
        said("[Request interrupted by user for tool use]", "h"),
        line("user", [{"type": "tool_result", "content": "x"}, {"type": "text", "text": "y"}], "h"),
        line("assistant", [{"type": "tool_use", "input": {"a": "x"}}], "h"),
        line("assistant", [{"type": "text", "text": "API Error"}], "h", isApiErrorMessage=True),
        line("assistant", "No response requested.", "h", message={"model": "<synthetic>"}),
        {"type": "system", "content": "hidden", "uuid": "h"},
    ],
)
def test_words_that_nobody_said_are_left_out(
    hidden: dict[str, Any], tmp_path: Path, read: Any
) -> None:
    found = only(read(SOURCE, put(tmp_path / "x.jsonl", said("Hello"), hidden)))
    assert [each.text for each in found.messages] == ["Hello"]


def test_reminders_inside_a_message_are_cut_out_and_arguments_of_commands_stay(
    tmp_path: Path, read: Any
) -> None:
    command = "<command-name>/review</command-name>\n<command-args>the parser</command-args>"
    lines = [said("Now <system-reminder>secret</system-reminder>go"), said(command, "u2")]
    found = only(read(SOURCE, put(tmp_path / "x.jsonl", *lines)))
    assert [each.text for each in found.messages] == ["Now go", "/review the parser"]


def test_a_message_said_again_replaces_its_branch(tmp_path: Path, read: Any) -> None:
    lines = [
        said("Start", "u1"),
        line("assistant", "Yes?", "a1", "u1"),
        line("user", "Use tabs", "u2", "a1"),
        line("assistant", "Tabs it is", "a2", "u2"),
        line("user", "Use spaces", "u3", "a1"),
        line("assistant", "Spaces it is", "a3", "u3"),
    ]
    found = only(read(SOURCE, put(tmp_path / "x.jsonl", *lines)))
    assert [each.text for each in found.messages] == ["Start", "Yes?", "Use spaces", "Spaces it is"]
    assert found.branches == 1


def test_a_folder_of_projects_gives_a_conversation_a_session(tmp_path: Path, read: Any) -> None:
    (tmp_path / "-home-me-app").mkdir()
    put(tmp_path / "-home-me-app/one.jsonl", said("One", sessionId="one"))
    put(tmp_path / "-home-me-app/two.jsonl", said("Two", sessionId="two"))
    put(tmp_path / "history.jsonl", {"display": "something", "project": "/"})
    put(tmp_path / "agent-7.jsonl", said("order", isSidechain=True))
    *talks, subagent = sorted(read(SOURCE, tmp_path), key=lambda each: isinstance(each, Skipped))
    assert {each.id for each in talks} == {"one", "two"}
    assert subagent == Skipped("agent-7.jsonl", OF_A_SUBAGENT)


def test_the_title_is_the_one_given_to_this_conversation(tmp_path: Path, read: Any) -> None:
    lines = [
        {"type": "summary", "summary": "Of another one", "leafUuid": "elsewhere"},
        {"type": "summary", "summary": "Greeting", "leafUuid": "u1"},
        said("Hello"),
    ]
    assert only(read(SOURCE, put(tmp_path / "x.jsonl", *lines))).title == "Greeting"
    lines += [
        {"type": "ai-title", "aiTitle": "By AI"},
        {"type": "custom-title", "customTitle": "Mine"},
    ]
    assert only(read(SOURCE, put(tmp_path / "x.jsonl", *lines))).title == "Mine"


@pytest.mark.parametrize(
    "bad",
    ['{"type": "user", "mess', "[]", "\x00\x01", "[" * 100_000, '"text"'],
    ids=["cut off", "a list", "binary", "nested", "a string"],
)
def test_a_bad_line_is_told_of_and_the_rest_is_read(bad: str, tmp_path: Path, read: Any) -> None:
    file = put(tmp_path / "x.jsonl", said("Hello"), bad, line("assistant", "Hi", "a1", "u1"), bad)
    skipped, found = read(SOURCE, file)
    assert isinstance(skipped, Skipped)
    assert (skipped.place, "1 more line" in skipped.why) == ("x.jsonl, line 2", True)
    assert [each.text for each in found.messages] == ["Hello", "Hi"]


def test_nulls_everywhere_break_nothing(tmp_path: Path, read: Any) -> None:
    nothing = dict.fromkeys(said("x"), None)
    odd = [
        {**nothing, "type": "user"},
        {**nothing, "type": "assistant", "message": {"content": [None, {"type": "text"}]}},
        said("x", "u9", timestamp="never", parentUuid="u1"),
        {"type": "summary"},
        {**said("x"), "type": {"a": None}},
    ]
    found = only(read(SOURCE, put(tmp_path / "x.jsonl", said("Hel\x1b[2Jlo \ud800"), *odd)))
    assert found.messages[0].text == "Hel[2Jlo ?"


@pytest.mark.parametrize("text", ["", "not json", '{"type": "user"}', "[[[[", '{"loglines": 3}'])
def test_other_files_are_not_recognised(text: str, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(text)
    with OpenedExport(file) as opened:
        assert not SOURCE.recognises(opened)


def test_claude_code_lines_that_compact_or_fork_writes_again_count_once(
    tmp_path: Path, read: Any
) -> None:
    own = "bbbbbbbb-0000-4000-8000-000000000002"
    lines = [
        said("The key is in the shed.", uuid="u1"),
        line("assistant", "Noted.", "a1", "u1", message={"id": "m1"}),
        line("assistant", "In the shed.", "a2", "a1", message={"id": "m1"}),
    ]
    more = [said("And the bin?", uuid="u2", parent="a2", sessionId=own)]
    found = only(read(SOURCE, put(tmp_path / f"{own}.jsonl", *lines, *lines, *more)))
    assert [each.text for each in found.messages] == [
        "The key is in the shed.",
        "Noted.\n\nIn the shed.",
        "And the bin?",
    ]
    assert found.id == own
    assert found.branches == 0


def test_claude_code_logs_packed_with_gzip_are_read(tmp_path: Path, read: Any) -> None:
    file = put(tmp_path / "one.jsonl", said("Hello"))
    packed = tmp_path / "two.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    found = only(read(SOURCE, packed))
    assert [each.text for each in found.messages] == ["Hello"]


def test_logs_packed_with_zstd_are_read_as_far_as_they_are_whole(tmp_path: Path, read: Any) -> None:
    shown = [sha256(bytes(number)).hexdigest() for number in range(4000)]
    lines = [said(text, uuid=text) for text in shown]
    data = b"".join(f"{json.dumps(each)}\n".encode() for each in lines)
    packed = zstd.compress(data[: len(data) // 2]) + zstd.compress(data[len(data) // 2 :])
    file = tmp_path / "one.jsonl.zst"
    file.write_bytes(packed)
    assert len(only(read(SOURCE, file)).messages) == 4000
    file.write_bytes(packed[: len(packed) * 3 // 4])
    cut, found = read(SOURCE, file)
    assert isinstance(cut, Skipped)
    assert cut.lost
    assert 2000 <= len(found.messages) < 4000


def test_history_written_again_under_new_ids_counts_once(tmp_path: Path, read: Any) -> None:
    def history(mark: str) -> list[Any]:
        asked = said("How wide?", f"u{mark}", timestamp="2026-05-01T10:00:00.123Z")
        reply = line("assistant", "Two.", f"a{mark}", f"u{mark}", message={"id": "m"})
        return [asked, reply]

    last = said("And deep?", "u3", parentUuid="a2", timestamp="2026-05-01T10:05:00.000Z")
    found = only(read(SOURCE, put(tmp_path / "a.jsonl", *history("1"), *history("2"), last)))
    assert [each.text for each in found.messages] == ["How wide?", "Two.", "And deep?"]


def queue(operation: str, content: Any = None, **more: Any) -> dict[str, Any]:
    shape = {"type": "queue-operation", "operation": operation, "sessionId": "s-1"}
    return {**shape, "timestamp": "2026-05-01T10:00:01Z", "content": content, **more}


def attached(prompt: Any, **more: Any) -> dict[str, Any]:
    shape = {"type": "attachment", "timestamp": "2026-05-01T10:00:02Z", "uuid": "a1"}
    return {**shape, "attachment": {"type": "queued_command", "prompt": prompt, **more}}


WAITING = "Mind the nest."


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ([queue("enqueue", WAITING), queue("remove", reason="absorbed_mid_turn")], 1),
        ([queue("enqueue", WAITING)], 1),
        ([queue("enqueue", WAITING), queue("dequeue"), said(WAITING, "u2", parentUuid="u1")], 1),
        ([queue("enqueue", WAITING), queue("enqueue", "Go."), said(f"{WAITING}\nGo.", "u2")], 1),
        ([queue("enqueue", WAITING), attached(WAITING, commandMode="prompt")], 1),
        ([attached(WAITING)], 1),
        ([attached([{"type": "text", "text": WAITING}, {"type": "image", "source": {}}])], 1),
        ([queue("enqueue", [{"type": "text", "text": WAITING}])], 1),
        ([queue("enqueue", WAITING), queue("popAll", WAITING)], 0),
        ([queue("enqueue", WAITING), queue("popAll")], 0),
        ([attached(WAITING, commandMode="task-notification")], 0),
        (
            [
                queue("enqueue", "/compact"),
                queue("enqueue", "<task-notification>x</task-notification>"),
            ],
            0,
        ),
    ],
)
def test_a_prompt_that_waited_in_the_queue_comes_once(
    lines: list[Any], count: int, tmp_path: Path, read: Any
) -> None:
    reply = line("assistant", "It hovers.", "b1", "u1", message={"id": "m1"})
    talk = only(read(SOURCE, put(tmp_path / "a.jsonl", said("Why?"), *lines, reply)))
    texts = [each.text for each in talk.messages]
    assert sum(text.count(WAITING) for text in texts) == count
    assert (texts[0], texts[-1], len(texts)) == ("Why?", "It hovers.", 2 + count)


def test_a_prompt_that_waits_is_kept_when_others_were_said(tmp_path: Path, read: Any) -> None:
    lines = [said("Why?"), *(queue("enqueue", each) for each in ("One.", "Two.", "Three."))]
    lines += [said("One.\nTwo.", "u2", parentUuid="u1"), queue("enqueue", "Four.")]
    talk = only(read(SOURCE, put(tmp_path / "a.jsonl", *lines)))
    assert [each.text for each in talk.messages] == ["Why?", "Three.", "One.\nTwo.", "Four."]


def test_a_short_prompt_that_waits_is_not_taken_for_a_part_of_a_word(
    tmp_path: Path, read: Any
) -> None:
    lines = [said("Why?"), queue("enqueue", "ok"), said("Look here.", "u2", parentUuid="u1")]
    talk = only(read(SOURCE, put(tmp_path / "a.jsonl", *lines)))
    assert [each.text for each in talk.messages] == ["Why?", "ok", "Look here."]
