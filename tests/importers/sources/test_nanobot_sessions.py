"""Sessions of nanobot are read, converted once, and never condensed a second time."""

from __future__ import annotations

import json
import stat
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from kbtui.errors import UnreadableError
from kbtui.importers.sources.nanobot import convert_sessions, read_old_session
from kbtui.importers.sources.nanobot_condensed import count_consolidated
from kbtui.memory.background.service import Ledger
from kbtui.memory.records.tombstones import Tombstones
from kbtui.sessions.store import SessionStore

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.history.history import History
    from kbtui.memory.records.archive import Archive
    from kbtui.workspace.layout import Workspace

KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "grep", "arguments": '{"pattern": "x"}'},
}
OLD: dict[str, Any] = {
    "key": "telegram:123456789",
    "messages": [
        {"role": "user", "content": "Hello", "timestamp": "2026-03-06T10:00:00"},
        {
            "role": "assistant",
            "content": "Hi! How can I help?",
            "timestamp": "2026-03-06T10:00:01",
            "tools_used": ["grep"],
            "reasoning_content": f"They gave me {KEY}.",
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "42", "tool_call_id": "c1", "name": "grep"},
        {
            "role": "user",
            "content": [{"type": "text", "text": f"key {KEY}"}, {"type": "image_url"}],
        },
    ],
    "last_consolidated": 2,
    "created_at": "2026-03-06T10:00:00",
    "updated_at": "2026-03-06T10:00:01",
}


@pytest.fixture
def old(workspace: Workspace) -> Path:
    file = workspace.sessions / "telegram_123456789.json"
    file.write_text(json.dumps(OLD))
    return file


def test_the_seeds_json_session_is_converted_with_a_backup(workspace: Workspace, old: Path) -> None:
    (done,) = convert_sessions(workspace)
    assert (done.file, done.session, done.problems) == (old.name, "telegram_123456789", ())
    assert not old.exists()
    assert json.loads(old.with_suffix(".json.bak").read_text()) == OLD
    log = workspace.sessions / "telegram_123456789.jsonl"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    store = SessionStore(workspace)
    (info,) = store.list()
    assert (info.title, info.messages, info.channel) == ("Hello", 5, "telegram")
    assert info.created == datetime(2026, 3, 6, 10).astimezone()
    messages = store.read(info.id)
    assert [message.id for message in messages] == [1, 2, 3, 4, 5]
    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "assistant",
        "tool",
        "user",
    ]
    assert messages[1].meta == {
        "tools_used": ["grep"],
        "reasoning_content": "They gave me [redacted: OpenAI key].",
    }
    assert (messages[2].tool_calls[0].name, messages[3].tool_call_id) == ("grep", "c1")
    assert messages[4].content == "key [redacted: OpenAI key]"
    assert messages[4].time == messages[1].time, "one without a time has that of the one before"


def test_a_converted_session_goes_on(workspace: Workspace, old: Path) -> None:
    convert_sessions(workspace)
    with SessionStore(workspace).open("telegram_123456789") as session:
        assert session.append("user", "more").id == 6
    assert convert_sessions(workspace) == []


def test_a_crash_before_the_original_is_put_aside_converts_nothing_twice(
    workspace: Workspace, old: Path
) -> None:
    convert_sessions(workspace)
    log = workspace.sessions / "telegram_123456789.jsonl"
    with SessionStore(workspace).open(log.stem) as session:
        session.append("user", "more")
    before = log.read_bytes()
    old.write_text(json.dumps(OLD))
    (again,) = convert_sessions(workspace)
    assert again.session == log.stem
    assert log.read_bytes() == before
    assert sorted(file.name for file in workspace.sessions.iterdir()) == [
        "telegram_123456789.json.bak",
        "telegram_123456789.json.bak2",
        "telegram_123456789.jsonl",
    ]


def test_a_log_of_that_name_is_never_overwritten(workspace: Workspace, old: Path) -> None:
    log = workspace.sessions / "telegram_123456789.jsonl"
    log.write_text('{"_type": "metadata", "key": "telegram:123456789"}\n')
    (done,) = convert_sessions(workspace)
    assert done.session == "telegram_123456789-2"
    assert "metadata" in log.read_text()


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b'{"messages": 3}', b"\xff\xfe\x00", b"[" * 100_000]
)
def test_what_is_no_session_stays_and_is_reported(workspace: Workspace, data: bytes) -> None:
    file = workspace.sessions / "x.json"
    file.write_bytes(data)
    (done,) = convert_sessions(workspace)
    assert done.session is None
    assert "x.json" in done.problems[0]
    assert file.read_bytes() == data


def test_items_that_are_no_messages_are_reported_and_stay_in_the_backup(
    workspace: Workspace, old: Path
) -> None:
    strange = [3, None, {"role": "narrator"}, {"role": ["user"]}, {"content": "no role"}]
    values = [*strange, *OLD["messages"]]
    old.write_text(json.dumps({**OLD, "messages": values}))
    (done,) = convert_sessions(workspace)
    assert len(done.problems) == 5
    assert len(SessionStore(workspace).read("telegram_123456789")) == 5


def test_what_nanobot_condensed_is_not_condensed_again(
    workspace: Workspace, history: History, archive: Archive, sessions: SessionStore, old: Path
) -> None:
    convert_sessions(workspace)
    ledger = Ledger(sessions, archive, history, Tombstones(archive.workspace, history))
    assert ledger.pending("telegram_123456789") == (1, 5)
    assert count_consolidated(workspace, history, archive) == 1
    assert ledger.pending("telegram_123456789") == (3, 5)
    assert count_consolidated(workspace, history, archive) == 0
    assert ledger.account().unaccounted == 0


def test_nanobots_jsonl_is_read_and_counted_as_far_as_it_wrote_it(
    workspace: Workspace, history: History, archive: Archive, sessions: SessionStore
) -> None:
    metadata = {
        "_type": "metadata",
        "key": "cli:direct",
        "created_at": "2026-03-06T10:00:00",
        "updated_at": "2026-03-06T10:00:01",
        "metadata": {},
        "last_consolidated": 99,
    }
    lines = [metadata, *OLD["messages"]]
    log = workspace.sessions / "cli_direct.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with sessions.open("cli_direct") as session:
        assert len(session.messages) == 5
        session.append("user", "said to us")
    assert count_consolidated(workspace, history, archive) == 1
    assert archive.covered("cli_direct") == [(1, 5)]
    assert Ledger(sessions, archive, history, Tombstones(archive.workspace, history)).pending(
        "cli_direct"
    ) == (6, 6)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {
            "messages": st.lists(
                json_values
                | st.fixed_dictionaries(
                    {"role": st.sampled_from(["user", "assistant", "tool"])},
                    optional={
                        "content": json_values,
                        "timestamp": json_values | st.just("2026-03-06T10:00:00"),
                        "tool_calls": json_values,
                        "media": json_values,
                    },
                ),
                max_size=5,
            )
        },
        optional={"key": json_values, "created_at": json_values, "last_consolidated": json_values},
    )
)
def test_any_json_reads_to_messages_in_order(value: dict[str, Any]) -> None:
    session = read_old_session(json.dumps(value).encode(), "x.json")
    assert [message.id for message in session.messages] == [*range(1, len(session.messages) + 1)]
    assert len(session.messages) + len(session.problems) == len(value["messages"])
    assert 0 <= session.consolidated <= len(session.messages)
    assert all(message.time.tzinfo for message in session.messages)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_session_or_refused(data: bytes) -> None:
    with pytest.raises(UnreadableError):
        read_old_session(data, "x.json")
