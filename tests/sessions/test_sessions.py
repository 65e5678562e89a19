"""Session logs: whole, private, and never shorter than they were."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import weakref
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ConflictError, NotFoundError, StorageError, UsageError
from kbtui.importers.sources import nanobot_condensed
from kbtui.knowledge_base import KnowledgeBase
from kbtui.models.port import ToolCall
from kbtui.sessions.store import SessionStore
from kbtui.workspace.layout import Workspace
from kbtui.workspace.opening import create_workspace

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(tmp_path / "notes")


@pytest.fixture
def store(workspace: Workspace) -> SessionStore:
    return SessionStore(workspace)


def lines_of(workspace: Workspace, session_id: str) -> list[dict[str, object]]:
    text = (workspace.sessions / f"{session_id}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_what_was_said_is_there_after_a_restart(workspace: Workspace, store: SessionStore) -> None:
    session = store.create("tui")
    session.append("user", "Who owns it? 日本語", turn="t1")
    calls = [ToolCall("c1", "read_entry", '{"entry": "alice"}')]
    session.append("assistant", "", tool_calls=calls, turn="t1")
    session.append("tool", "Alice.", tool_call_id="c1", name="read_entry", turn="t1")
    session.append("assistant", "Alice [1].", turn="t1", meta={"citations": [1]})
    before = session.messages
    store.close()
    again = SessionStore(workspace).open(session.id)
    assert again.messages == before
    assert [message.id for message in again.messages] == [1, 2, 3, 4]
    assert again.messages[1].tool_calls == tuple(calls)
    assert again.messages[3].meta == {"citations": [1]}
    assert again.channel == "tui"


def test_a_closed_session_is_kept_in_no_memory(store: SessionStore) -> None:
    session = store.create("tui")
    gone = weakref.ref(session)
    session.close()
    del session
    store.create("tui")
    assert gone() is None


def test_an_id_that_another_session_of_the_second_has_is_not_given_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = iter(["00aa", "00aa", "00ab"])
    monkeypatch.setattr("kbtui.sessions.store.secrets.token_hex", lambda _: next(ends))
    store = SessionStore(workspace, lambda: datetime(2026, 11, 21, 22, 30, tzinfo=UTC))
    first, second = store.create("cli"), store.create("cli")
    assert (first.id[-4:], second.id[-4:]) == ("00aa", "00ab")


def test_ids_begin_with_the_channel_and_the_time() -> None:
    moment = datetime(2026, 11, 21, 22, 30, tzinfo=UTC)
    local = moment.astimezone().strftime("%Y%m%d-%H%M%S")
    workspace = create_workspace(Path(os.environ["HOME"]) / "notes")
    assert SessionStore(workspace, lambda: moment).create("tui").id.startswith(f"tui_{local}-")


def test_logs_and_their_folder_are_private(workspace: Workspace, store: SessionStore) -> None:
    session = store.create()
    session.append("user", "hello")
    file = workspace.sessions / f"{session.id}.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(workspace.sessions.stat().st_mode) == 0o700


def test_secrets_are_not_stored(workspace: Workspace, store: SessionStore) -> None:
    session = store.create()
    session.append("user", f"my key is {KEY}")
    call = ToolCall("c1", "write_entry", json.dumps({"body": KEY}))
    session.append("assistant", "noted", tool_calls=[call])
    assert KEY not in (workspace.sessions / f"{session.id}.jsonl").read_text("utf-8")
    assert KEY not in session.messages[0].content
    json.loads(session.messages[1].tool_calls[0].arguments)


def test_nor_are_they_in_what_is_kept_beside_a_message(
    workspace: Workspace, store: SessionStore
) -> None:
    session = store.create("tui")
    meta = {"summary": f"doesn't contain '{KEY}'", "citations": [{"title": KEY, "lines": [1, 2]}]}
    stored = session.append("tool", "Error", meta=meta)
    assert KEY not in (workspace.sessions / f"{session.id}.jsonl").read_text()
    assert stored.meta["citations"][0]["lines"] == [1, 2]


@pytest.mark.parametrize("number", [10**15, -3, 0, True, "7", 2.5])
def test_an_id_that_cannot_be_one_is_given_again(
    workspace: Workspace, store: SessionStore, number: object
) -> None:
    session = store.create("tui")
    session.append("user", "hello")
    session.close()
    file = workspace.sessions / f"{session.id}.jsonl"
    line = {"id": number, "role": "user", "content": "odd"}
    file.write_text(f"{file.read_text()}{json.dumps(line)}\n")
    assert [message.id for message in store.read(session.id)] == [1, 2]


def test_the_title_is_the_first_thing_said_until_it_is_renamed(store: SessionStore) -> None:
    session = store.create()
    assert session.title == "New session"
    session.append("user", "What did we decide about the analytics database,\nand who owns it now?")
    assert session.title == "What did we decide about the analytics database, and who…"
    session.rename("Analytics\x1b[31m database")
    assert session.title == "Analytics[31m database"
    assert store.read_log(session.id).shown_title == session.title
    session.rename("")
    assert session.title.startswith("What did we decide")


def test_a_rewind_takes_back_but_the_log_keeps_and_ids_go_on(
    workspace: Workspace, store: SessionStore
) -> None:
    session = store.create()
    for text in ("one", "two", "three"):
        session.append("user", text)
    session.rewind(1)
    assert [message.content for message in session.messages] == ["one"]
    assert session.append("user", "another").id == 4
    store.close()
    again = SessionStore(workspace).open(session.id)
    assert [(m.id, m.content) for m in again.messages] == [(1, "one"), (4, "another")]
    assert "three" in (workspace.sessions / f"{session.id}.jsonl").read_text()
    with pytest.raises(NotFoundError):
        again.rewind(3)
    again.rewind(0)
    assert again.messages == ()


def test_a_torn_line_is_set_aside_and_told_and_the_rest_goes_on(
    workspace: Workspace, store: SessionStore
) -> None:
    session = store.create()
    session.append("user", "whole")
    store.close()
    file = workspace.sessions / f"{session.id}.jsonl"
    whole = file.read_bytes()
    torn = b'{"id": 2, "role": "user", "cont'
    file.write_bytes(whole + torn)
    again = SessionStore(workspace).open(session.id)
    assert "set aside" in again.notices[0]
    again.append("user", "next")
    assert [(m.id, m.content) for m in again.messages] == [(1, "whole"), (2, "next")]
    assert file.read_bytes().startswith(whole)
    (aside,) = workspace.sessions.glob("*.torn-*")
    assert aside.read_bytes() == torn


def test_a_broken_line_in_the_middle_is_passed_over_and_told(
    workspace: Workspace, store: SessionStore
) -> None:
    session = store.create()
    session.append("user", "one")
    store.close()
    file = workspace.sessions / f"{session.id}.jsonl"
    with file.open("ab") as log:
        log.write(
            b'\x00\xff garbage\n{"role": "user", "content": "two"}\n[1]\n{"role": "martian"}\n'
        )
    again = SessionStore(workspace).open(session.id)
    assert [(m.id, m.content) for m in again.messages] == [(1, "one"), (2, "two")]
    assert "3, 5" in again.notices[0]


def test_a_session_is_open_in_one_process_at_a_time(
    workspace: Workspace, store: SessionStore
) -> None:
    session = store.create()
    session.append("user", "mine")
    script = (
        "import sys; from pathlib import Path; from kbtui.workspace.opening import open_workspace;"
        "from kbtui.sessions.store import SessionStore; from kbtui.errors import ConflictError;"
        "store = SessionStore(open_workspace(Path(sys.argv[1])))\n"
        "try: store.open(sys.argv[2]).append('user', 'theirs')\n"
        "except ConflictError as error: print(error); print(len(store.read(sys.argv[2])), len(store.list()))"
    )

    def other() -> str:
        command = [sys.executable, "-c", script, str(workspace.root), session.id]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout

    refused, counts = other().splitlines()
    assert f"process {os.getpid()}" in refused
    assert "/new" in refused
    assert counts == "1 1", "reading and listing still work there"
    session.close()
    assert other() == ""
    assert [m.content for m in store.open(session.id).messages] == ["mine", "theirs"]


def test_opening_twice_gives_the_same_session(store: SessionStore) -> None:
    session = store.create()
    assert store.open(session.id) is session
    session.close()
    with pytest.raises(ConflictError, match="closed"):
        session.append("user", "too late")
    reopened = store.open(session.id)
    assert reopened is not session
    reopened.append("user", "fine")


def test_sessions_are_found_by_id_beginning_of_it_and_title(store: SessionStore) -> None:
    kitchen = store.create("cli", id="kitchen")
    garden = store.create("tui", title="The garden")
    assert store.open("kitchen") is kitchen
    assert store.open("kit") is kitchen
    assert store.open("the GARDEN") is garden
    with pytest.raises(NotFoundError, match="cellar"):
        store.open("cellar")
    store.create("cli", id="kitten")
    named = store.create("cli", id="other", title="Kit")
    assert store.open("kit") is named
    named.rename("Another")
    with pytest.raises(UsageError, match=r"kitchen.*kitten|kitten.*kitchen"):
        store.open("kit")
    with pytest.raises(ConflictError):
        store.create("cli", id="kitchen")


@pytest.mark.parametrize(
    "name",
    ["../outside", "/etc/passwd", ".hidden", "a/b", "x\x00y", "a\nb", " ", "x" * 300, "end."],
)
def test_a_name_that_would_leave_the_folder_is_refused(
    workspace: Workspace, store: SessionStore, name: str
) -> None:
    with pytest.raises(UsageError):
        store.create("cli", id=name)
    with pytest.raises(NotFoundError):
        store.open(name)
    assert list(workspace.sessions.iterdir()) == []


def test_the_list_shows_what_changed_and_the_last_spoken_first(workspace: Workspace) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)

    def clock() -> datetime:
        nonlocal now
        now += timedelta(minutes=1)
        return now

    store = SessionStore(workspace, clock)
    first = store.create("tui")
    second = store.create("cli")
    first.append("user", "hello from the first")
    second.append("user", "hello from the second")
    first.append("assistant", "and again")
    assert [(i.id, i.messages, i.title) for i in store.list()] == [
        (first.id, 2, "hello from the first"),
        (second.id, 1, "hello from the second"),
    ]
    assert SessionStore(workspace).list() == store.list()
    second.rename("Renamed")
    assert {i.title for i in store.list()} == {"hello from the first", "Renamed"}
    assert store.latest("cli") is second
    assert store.latest() is first
    assert store.latest("mail") is None
    store.delete(second.id)
    assert [i.id for i in store.list()] == [first.id]
    with pytest.raises(NotFoundError):
        store.open(second.id)


@pytest.mark.parametrize(
    "damage", [b"", b"\x00\xff", b"[]", b'{"version": 1, "sessions": {"x": 3}}']
)
def test_a_damaged_list_is_made_again(
    workspace: Workspace, store: SessionStore, damage: bytes
) -> None:
    store.create().append("user", "hello")
    before = store.list()
    (workspace.cache / "sessions.json").write_bytes(damage)
    assert SessionStore(workspace).list() == before


def test_the_list_does_not_read_logs_that_have_not_changed(
    workspace: Workspace, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        store.create().append("user", "hello")
    store.list()
    read: list[Path] = []
    from kbtui.sessions import log_records

    real = log_records.each_record
    monkeypatch.setattr(log_records, "each_record", lambda file: read.append(file) or real(file))
    again = SessionStore(workspace)
    assert len(again.list()) == 5
    assert read == []


def test_the_log_of_an_older_program_is_read(workspace: Workspace, store: SessionStore) -> None:
    old = [
        {"_type": "metadata", "created_at": "2026-01-02T03:04:05", "last_consolidated": 0},
        {
            "role": "user",
            "content": "What's my favorite color?",
            "timestamp": "2026-01-02T03:05:00",
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "I don't know."}],
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "grep", "arguments": "{}"}}
            ],
        },
    ]
    file = workspace.sessions / "telegram_12345.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in old))
    session = store.open("telegram_12345")
    assert [(m.id, m.role, m.content) for m in session.messages] == [
        (1, "user", "What's my favorite color?"),
        (2, "assistant", "I don't know."),
    ]
    assert session.messages[0].time.year == 2026
    assert session.messages[1].tool_calls == (ToolCall("c", "grep", "{}"),)
    assert session.append("user", "It's blue.").id == 3


def test_a_session_of_five_thousand_messages_opens_at_its_end(
    workspace: Workspace, store: SessionStore
) -> None:
    line = {
        "time": "2026-01-02T03:05:00+00:00",
        "role": "user",
        "content": "some words of a usual length " * 8,
    }
    file = workspace.sessions / "long.jsonl"
    file.write_text("".join(json.dumps({"id": n, **line}) + "\n" for n in range(1, 5001)))
    assert store.open("long").messages[-1].id == 5000


def test_a_read_only_workspace_says_so(workspace: Workspace, store: SessionStore) -> None:
    session = store.create()
    session.append("user", "hello")
    store.close()
    reader = SessionStore(Workspace(workspace.root, writable=False))
    assert len(reader.read(session.id)) == 1
    for attempt in (reader.create, lambda: reader.open(session.id)):
        with pytest.raises(StorageError, match="read-only"):
            attempt()


def test_a_full_disk_loses_nothing_and_the_session_goes_on(
    workspace: Workspace, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.create()
    session.append("user", "one")
    file = workspace.sessions / f"{session.id}.jsonl"
    before = file.read_bytes()
    real = os.fsync

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError):
        session.append("user", "two")
    assert file.read_bytes() == before
    assert len(session.messages) == 1
    monkeypatch.setattr(os, "fsync", real)
    assert session.append("user", "two").id == 2
    assert lines_of(workspace, session.id)[-1]["content"] == "two"


def test_one_that_cannot_be_read_is_said_and_stops_none_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnowledgeBase.open(tmp_path / "notes", create=True) as kb:
        for name in ("closed", "open"):
            kb.sessions.create("test", id=name).append("user", "It is about walruses.")
        closed = kb.workspace.sessions / "closed.jsonl"
    real = os.access
    monkeypatch.setattr(os, "access", lambda at, mode: at != closed and real(at, mode))
    refuse = _refuse(closed, nanobot_condensed.first_of)
    monkeypatch.setattr(nanobot_condensed, "first_of", refuse)
    with KnowledgeBase.open(tmp_path / "notes") as kb:
        kb.memory.count_old()
        audit = kb.memory.audit()
        assert (audit.sessions, audit.problems[0]) == (
            1,
            "closed can't be read: permission denied.",
        )
        assert any("closed can't be read" in problem.text for problem in kb.checking.run())
        assert kb.memory.unfinished() == ["open"]


def _refuse(closed: Path, real: Callable[[Path], object]) -> Callable[[Path], object]:
    def first_of(file: Path) -> object:
        if file == closed:
            raise StorageError("Can't read it: permission denied.")
        return real(file)

    return first_of


def test_a_folder_that_cannot_be_read_is_said_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnowledgeBase.open(tmp_path / "notes", create=True) as kb:
        kb.sessions.create("test", id="one").append("user", "It is about walruses.")
        folder = kb.workspace.sessions
    real = os.access
    monkeypatch.setattr(os, "access", lambda at, mode: at != folder and real(at, mode))
    with KnowledgeBase.open(tmp_path / "notes") as kb:
        assert any(f"{folder} can't be read" in notice for notice in kb.notices)
        assert "sessions can't be read: permission denied." in kb.memory.audit().problems
