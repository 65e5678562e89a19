"""The engine: once is as twice, nothing is half there, and all of it can be taken back."""

from __future__ import annotations

import asyncio
import json
import random
import tracemalloc
import weakref
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import NotFoundError, StoppedError, StorageError, UsageError
from kbtui.history.change import new_batch_id
from kbtui.history.door import Door
from kbtui.importers import engine
from kbtui.importers.batches import batches
from kbtui.importers.engine import (
    Report,
    find_source,
    left_over,
    preview,
    run,
    sources_of,
    take_back,
)
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedMessage, Source
from kbtui.importers.remembering import Remembered, batches_of, remember
from kbtui.knowledge.entries.entry import _parsed
from kbtui.knowledge.format.body import body_of
from kbtui.knowledge_base import KnowledgeBase
from kbtui.models.port import Reply as Answered, ToolCall, Usage
from kbtui.sessions import TAINT
from kbtui.sessions.log_records import Mask
from kbtui.workspace import durable
from kbtui.workspace.opening import WorkspaceLock, create_workspace
from tests.importers.exports import chatgpt, claude, claude_message, node, written
from tests.memory.memory_room import call_slice
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROOT = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with opened_base(tmp_path / "notes") as found:
        yield found


def opened_base(root: Path, **overrides: Any) -> KnowledgeBase:
    quick = {"search": {"semantic": False}, **overrides}
    return KnowledgeBase.open(root, create=True, overrides=quick)


def bring(kb: KnowledgeBase, path: Path, watch: Callable[..., None] = lambda *_: None) -> Report:
    with OpenedExport(path) as opened:
        source = find_source(opened)
        assert source is not None
        return run(kb.services, opened, source, watch)


def logs(kb: KnowledgeBase) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in kb.workspace.sessions.glob("*")}


def said(kb: KnowledgeBase) -> dict[str, list[str]]:
    """The messages of every session, by title."""
    return {
        info.title: [each.content for each in kb.sessions.read(info.id)]
        for info in kb.sessions.list()
    }


def state(kb: KnowledgeBase) -> dict[str, bytes]:
    """Every durable file of the workspace."""
    root = kb.workspace.root
    files = (each for each in root.rglob("*") if each.is_file() and ".kbtui" not in each.parts)
    return {each.relative_to(root).as_posix(): each.read_bytes() for each in files}


def branch(*names: str) -> list[dict[str, Any]]:
    """Messages called after their names, each the answer to the one before."""
    parents = [ROOT, *names]
    return [
        {**claude_message(n, name), "uuid": name, "parent_message_uuid": parent}
        for n, (name, parent) in enumerate(zip(names, parents, strict=False), 1)
    ]


def test_a_conversation_is_let_go_of_before_the_next_one_is_read(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    alive: list[bool] = []

    def read(_opened: OpenedExport) -> Iterator[ImportedConversation]:
        for number in range(3):
            named = Counter({"file": 1})
            known = weakref.ref(named)
            said = (ImportedMessage("user", f"Words {number}"),)
            yield ImportedConversation(f"{number}", "", None, None, said, named=named)
            del named, said
            alive.append(known() is not None)

    source = Source("Made up", "made-up", lambda _opened: True, read)
    with OpenedExport(written(tmp_path / "a.json", [])) as opened:
        assert len(run(kb.services, opened, source).sessions) == 3
    assert alive == [False] * 3


def test_a_message_takes_little_more_than_itself_while_it_is_written(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    many = 5000

    def read(_opened: OpenedExport) -> Iterator[ImportedConversation]:
        said = tuple(ImportedMessage("user", f"Words {number}") for number in range(many))
        tracemalloc.start()
        yield ImportedConversation("1", "", None, None, said)

    source = Source("Made up", "made-up", lambda _opened: True, read)
    with OpenedExport(written(tmp_path / "a.json", [])) as opened:
        assert run(kb.services, opened, source).messages == many
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 600 * many


def test_a_session_keeps_dates_title_and_link(kb: KnowledgeBase, tmp_path: Path) -> None:
    bring(kb, written(tmp_path / "a.json", [claude("c1", "Hi", "Marmalade")]))
    (info,) = kb.sessions.list()
    assert (info.title, info.channel, info.messages) == ("Talk c1", "claude", 2)
    assert info.url == "https://claude.ai/chat/c1"
    assert info.untouched
    assert info.created.isoformat() == "2024-03-05T09:00:00+00:00"
    assert info.updated.isoformat() == "2024-03-05T09:02:00+00:00"
    hits = kb.search.search("marmalade", scope="sessions", wait=True).hits
    assert {each.session for each in hits} == {info.id}


def test_secrets_and_control_characters_stay_out(kb: KnowledgeBase, tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "aB3dE5gH7jK9" * 7 + "-AAAA"
    bring(kb, written(tmp_path / "a.json", [claude("c1", f"\x1b[31mKey {key}\u202e\ud83d\x00")]))
    ((text,),) = said(kb).values()
    assert key not in text
    assert not {"\x1b", "\u202e", "\x00"} & set(text)


def test_equal_messages_and_titles_are_kept_apart(kb: KnowledgeBase, tmp_path: Path) -> None:
    talks = [claude(id_, "ok", "ok", "ok", name="Same") for id_ in ("c1", "c2")]
    for talk in talks:
        for message in talk["chat_messages"]:
            message["uuid"] = None
    file = written(tmp_path / "a.json", talks)
    assert bring(kb, file).messages == 6
    assert bring(kb, file).messages == 0


def test_of_overlapping_exports_the_newest_wins(kb: KnowledgeBase, tmp_path: Path) -> None:
    old = claude("c1", chat_messages=branch("a", "b", "old"), updated_at="2024-03-05T10:00:00Z")
    new = claude("c1", chat_messages=branch("a", "b", "new"), updated_at="2024-03-06T10:00:00Z")
    written(tmp_path / "x/conversations-000.json", [new])
    written(tmp_path / "x/conversations-001.json", [old])
    report = bring(kb, tmp_path / "x")
    assert said(kb) == {"Talk c1": ["a", "b", "new"]}
    assert "newer" in report.skipped[0].why


def test_another_branch_takes_the_place_of_the_first_and_the_log_keeps_both(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    bring(kb, written(file, [claude("c1", chat_messages=branch("a", "b", "c", "d"))]))
    before = logs(kb)
    changed = claude(
        "c1", chat_messages=branch("a", "b", "e", "f"), updated_at="2024-04-01T00:00:00Z"
    )
    with OpenedExport(written(file, [changed])) as opened:
        source = find_source(opened)
        assert source is not None
        assert preview(kb.services, opened, source).grown == 1
    report = bring(kb, file)
    assert [(each.kind, each.messages) for each in report.sessions] == [("changed", 2)]
    assert said(kb) == {"Talk c1": ["a", "b", "e", "f"]}
    assert b'"content":"d"' in b"".join(logs(kb).values())
    assert bring(kb, file).sessions == []
    take_back(kb.services, report.batch, lambda: kb.history.undo_batch(report.batch))
    assert logs(kb) == before


def test_what_grew_there_stands_apart_where_the_session_was_gone_on_with_here(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    first = bring(kb, written(file, [claude("c1", "a", "b")]))
    with kb.sessions.open(first.sessions[0].session) as session:
        session.append("user", "said here")
    assert not kb.sessions.list()[0].untouched
    for texts in (("a", "b", "c"), ("a", "b", "c", "d")):
        more = claude("c1", *texts, updated_at=f"2024-04-0{len(texts)}T00:00:00Z")
        bring(kb, written(file, [more]))
        bring(kb, file)
    assert said(kb) == {
        "Talk c1": ["a", "b", "said here"],
        "Talk c1 (went on in Claude.ai)": ["c", "d"],
    }
    done = take_back(kb.services, first.batch, lambda: kb.history.undo_batch(first.batch))
    assert done is not None
    assert [each.outcome for each in done[1]] == ["kept"]
    assert "gone on with" in done[1][0].why


def test_a_session_that_is_open_elsewhere_is_left_and_said(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    report = bring(kb, written(file, [claude("c1", "a")]))
    more = claude("c1", "a", "b", updated_at="2024-04-01T00:00:00Z")
    with kb.sessions.open(report.sessions[0].session):
        (left,) = bring(kb, written(file, [more])).skipped
        assert "open in another window" in left.why
    assert bring(kb, file).messages == 1


def _exports(folder: Path, count: int = 60) -> Path:
    talks = [claude(f"c{n}", *(f"text {n} {m}" for m in range(n % 4 + 1))) for n in range(count)]
    written(folder / "conversations.json", talks)
    docs = [{"uuid": f"d{n}", "filename": f"{n}.md", "content": f"Text {n}"} for n in range(30)]
    written(
        folder / "projects.json", [{"uuid": "p", "name": "P", "is_private": True, "docs": docs}]
    )
    return folder


def test_stopped_anywhere_and_gone_on_with_is_as_imported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.importers.engine._MAX_SESSIONS", 7)
    monkeypatch.setattr("kbtui.importers.notes._MAX_NOTES", 4)
    export = _exports(tmp_path / "x")
    with opened_base(tmp_path / "once") as kb:
        bring(kb, export)
        wanted = said(kb)
        entries = {key for key in state(kb) if key.startswith("knowledge/")}
    chance = random.Random(4)
    with opened_base(tmp_path / "often") as kb:
        stops = 0
        while stops < 50:
            left = chance.randrange(40)

            def stop(*_: Any) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise StoppedError("stopped")

            try:
                bring(kb, export, stop)
            except StoppedError:
                stops += 1
            else:
                stops += 1
        report = bring(kb, export)
        assert said(kb) == wanted
        assert {key for key in state(kb) if key.startswith("knowledge/")} == entries
        batches = batches_of(kb.services, [export])
        assert len(batches) <= 2
        for batch in batches:
            take_back(kb.services, batch.id, lambda b=batch.id: kb.history.undo_batch(b))  # type: ignore[misc]
        assert said(kb) == {}
        assert report.skipped == []


def test_a_full_disk_stops_it_with_a_word_and_it_goes_on_later(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.importers.engine._MAX_SESSIONS", 10)
    export = _exports(tmp_path / "x")
    real, room = durable.write_all, [25]

    def full(file: int, data: bytes) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(28, "No space left on device")
        real(file, data)

    monkeypatch.setattr(durable, "write_all", full)
    with pytest.raises(StorageError, match="no space left") as stopped:
        bring(kb, export)
    assert "goes on where it stopped" in stopped.value.hint
    monkeypatch.setattr(durable, "write_all", real)
    bring(kb, export)
    assert len(kb.sessions.list()) == 60
    assert not list(kb.workspace.sessions.glob("*.tmp"))


def test_an_entry_that_was_changed_here_is_never_written_over(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    def project(text: str) -> Path:
        doc = {"uuid": "d1", "filename": "Plan", "content": text}
        value = [{"uuid": "p", "name": "P", "is_private": True, "docs": [doc]}]
        return written(tmp_path / "projects.json", value)

    (path,) = bring(kb, project("First")).entries
    assert bring(kb, project("First")).known == 1
    assert bring(kb, project("Second")).entries == [path]
    file = kb.workspace.place(path)
    file.write_text(file.read_text() + "\nMine.\n")
    kb.history.adopt(settle=0.0)
    report = bring(kb, project("Third"))
    assert report.entries == []
    assert "changed here" in report.skipped[0].why
    assert "Second" in file.read_text()
    assert "Mine." in file.read_text()


def _remember(kb: KnowledgeBase, export: Path, usd: float | None = None) -> Remembered:
    wanted = batches_of(kb.services, [export])
    return asyncio.run(remember(kb.services, kb.memory, wanted, usd=usd))


def _by(server: ScriptedServer) -> dict[str, Any]:
    role = {"model": "openai/scripted", "api_base": server.url, "api_key": "sesame"}
    return {"models": {"import": role, "retries": 0}}


def test_a_model_condenses_under_the_batch_and_all_of_it_is_taken_back(tmp_path: Path) -> None:
    fact = {"text": "Anna lives in Bergen.", "type": "person", "subject": "Anna", "message": 1}
    reply = Reply(tool_calls=[call_slice("They spoke of Anna.", facts=[fact])])
    export = written(
        tmp_path / "a.json", [claude("c1", "My sister Anna lives in Bergen.", "Nice.")]
    )
    with ScriptedServer([reply]) as server, opened_base(tmp_path / "notes", **_by(server)) as kb:
        kb.memory.remembering.remember("I like tea.")
        before = state(kb)
        report = bring(kb, export)
        done = _remember(kb, export)
        assert (done.sessions, done.left, done.notice) == (1, 0, "")
        assert done.entries == ["knowledge/people/anna.md"]
        text = kb.workspace.place("knowledge/people/anna.md").read_text()
        assert "created: 2024-03-05" in text
        assert "2024-03-05" in kb.workspace.place("memory/history.jsonl").read_text()
        assert not kb.memory.dream.has_news()
        assert _remember(kb, export).sessions == 0
        take_back(kb.services, report.batch, lambda: kb.history.undo_batch(report.batch))
        assert state(kb) == before
        bring(kb, export)
        assert _remember(kb, export).sessions == 1
        assert "Anna" in kb.workspace.place("memory/history.jsonl").read_text()
        assert "Bergen" in kb.workspace.place("knowledge/people/anna.md").read_text()


def test_what_was_said_long_ago_corrects_nothing_that_is_newer(tmp_path: Path) -> None:
    first = claude("c1", "My sister Anna lives in Bergen.", "Nice.", day="2024-03-05")
    later = claude("c2", "My sister Anna lives in Oslo now.", "Nice.", day="2020-01-01")
    for each in later["chat_messages"]:
        each["created_at"] = "2020-01-01T09:00:00Z"
    with opened_base(tmp_path / "notes") as kb:
        for name, talk in (("a", first), ("b", later)):
            export = written(tmp_path / f"{name}.json", [talk])
            bring(kb, export)
            _remember(kb, export)
        told = b"\n".join(state(kb).values()).decode()
        assert "Bergen" in told.replace("sessions/", "")
        entries = [data.decode() for key, data in state(kb).items() if key.startswith("knowledge/")]
        assert not any("Oslo" in each and "Bergen" not in each for each in entries)


def test_memory_that_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    talks = [claude(f"c{n}", f"I work at firm {n}.", "Nice.") for n in range(4)]
    export = written(tmp_path / "a.json", talks)
    reply = Reply(tool_calls=[call_slice("They spoke.")])
    with ScriptedServer([reply]) as server, opened_base(tmp_path / "notes", **_by(server)) as kb:
        bring(kb, export)

        def watch(done: int, _of: int, _what: str) -> None:
            if done == 2:
                raise StoppedError("stopped")

        wanted = batches_of(kb.services, [export])
        with pytest.raises(StoppedError):
            asyncio.run(remember(kb.services, kb.memory, wanted, watch=watch))
        assert len(server.prompts) == 2
        assert _remember(kb, export).sessions == 2
        assert len(server.prompts) == 4


class _Paid:
    """A model that is paid for and answers nothing."""

    name = "some/model"
    is_local = False
    context_window = 32_000
    asked = 0

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def complete(self, *_: Any, **__: Any) -> Answered:
        self.asked += 1
        arguments = json.dumps({"summary": "They spoke.", "facts": [], "notes": []})
        told = ToolCall("1", "save_memory", arguments)
        return Answered("", (told,), "tool_calls", Usage(100, 10, 0.5))


def test_a_budget_ends_it_and_another_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = [claude(f"c{n}", f"I work at firm {n}.", "Nice.") for n in range(4)]
    export = written(tmp_path / "a.json", talks)
    with opened_base(tmp_path / "notes") as kb:
        paid = _Paid()
        monkeypatch.setattr(kb.models, "chat", lambda _role="chat": paid)
        bring(kb, export)
        done = _remember(kb, export, usd=1.0)
        assert (done.sessions, done.left, done.usd) == (2, 2, 1.0)
        assert "$1.00 of $1.00" in done.notice
        assert _remember(kb, export, usd=5.0).sessions == 2
        assert paid.asked == 4


def test_ten_thousand_short_conversations_come_in_lots(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = [chatgpt(f"c{n}", node("a", None, "user", f"number {n}")) for n in range(500)]
    lots: list[int] = []
    real = durable.FileBatch.write_together

    def counted(self: Any, files: dict[str, bytes], *args: Any) -> None:
        lots.append(len(files))
        real(self, files, *args)

    monkeypatch.setattr(durable.FileBatch, "write_together", counted)
    bring(kb, written(tmp_path / "a.json", talks))
    assert len(kb.sessions.list()) == 500
    assert len([each for each in lots if each > 1]) <= 4


def test_every_line_of_a_log_says_what_logs_say(kb: KnowledgeBase, tmp_path: Path) -> None:
    report = bring(kb, written(tmp_path / "a.json", [claude("c1", "a", "b")]))
    file = kb.workspace.sessions / f"{report.sessions[0].session}.jsonl"
    kinds = [json.loads(line).get("kind") for line in file.read_text().splitlines()]
    assert kinds == ["session", "import", None, None]
    assert file.stat().st_mode & 0o777 == 0o600
    assert kb.memory.audit().unaccounted == 0


def test_what_was_forgotten_of_it_is_no_hindrance_to_taking_it_back(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    report = bring(kb, written(tmp_path / "a.json", [claude("c1", "The door is green.", "Nice.")]))
    kb.sessions.mask(report.sessions[0].session, [Mask(1, ((0, 8),))])
    done = take_back(kb.services, report.batch, lambda: kb.history.undo_batch(report.batch))
    assert done is not None
    assert [each.outcome for each in done[1]] == ["removed"]


def test_notes_wait_for_who_writes_longer_than_a_change_does(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        file = tmp_path / f"x/note {number}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"# Note {number}\n")
    held = ExitStack()
    held.enter_context(WorkspaceLock(kb.workspace).hold())
    real, tries = Door.entered, list[float]()

    def entered(door: Door, timeout: float = 5.0) -> Any:
        tries.append(timeout)
        if len(tries) == 3:
            held.close()
        return real(door, 0.0)

    monkeypatch.setattr(Door, "entered", entered)
    assert len(bring(kb, tmp_path / "x").entries) == 3
    assert len(tries) >= 3


def test_a_folder_in_place_keeps_its_notes_and_takes_sessions_in(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Mine.md").write_text("# Mine\n")
    create_workspace(vault, in_place=True)
    project = {"uuid": "p", "name": "P", "is_private": True,
               "docs": [{"uuid": "d", "filename": "Plan", "content": "Text"}]}  # fmt: skip
    written(tmp_path / "x/a.json", [claude("c1", "a")])
    written(tmp_path / "x/b.json", [project])
    with KnowledgeBase.open(vault, overrides={"search": {"semantic": False}}) as kb:
        before = {each.name for each in vault.iterdir()}
        report = bring(kb, tmp_path / "x")
        assert [kb.workspace.file(path) for path in report.entries] == [
            "references/claude/p/plan.md"
        ]
        assert bring(kb, tmp_path / "x").known == 2
        take_back(kb.services, report.batch, lambda: kb.history.undo_batch(report.batch))
        assert {each.name for each in vault.iterdir()} == before
        assert said(kb) == {}


def test_of_many_notes_each_is_parsed_once(tmp_path: Path) -> None:
    _parsed.cache_clear()
    folder = tmp_path / "vault"
    folder.mkdir()
    for number in range(1_350):  # more lots than one, and more entries than an index at once
        (folder / f"Note {number}.md").write_text(f"# Note {number}\n\nText of {number}.\n")
    with opened_base(tmp_path / "notes") as kb:
        assert len(bring(kb, folder).entries) == 1_350
        assert len(kb.library.infos()) == 1_350
    parsed = _parsed.cache_info().misses
    assert parsed < 1_350 * 1.25, f"{parsed} times for 1,350 notes"


@pytest.mark.parametrize("end", ["---", "..."])
def test_a_note_keeps_its_properties_however_they_end(
    kb: KnowledgeBase, tmp_path: Path, end: str
) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "Tea.md").write_text(f"---\ncolor: green\n{end}\nWords.\n")
    (path,) = bring(kb, folder).entries
    assert kb.library.get(path).frontmatter["color"] == "green"
    assert "color" not in body_of(kb.library.get(path).text)


def test_of_two_files_that_get_one_name_neither_is_lost_unsaid(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "note.md").write_text("# Note\n\nWords.\n")
    (folder / "a*.png").write_bytes(b"first")
    (folder / "a?.png").write_bytes(b"second")
    report = bring(kb, folder)
    (there,) = kb.workspace.knowledge.rglob("*.png")
    assert there.read_bytes() == b"first"
    assert [each.place for each in report.skipped] == ["a?.png"]


def test_notes_whose_names_differ_in_case_alone_come_in_under_two_names(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    for name in ("Tea.md", "tea.md", "TÜR.md", "tür.md"):
        (folder / name).write_text(f"Words of {name}.\n")
    report = bring(kb, folder)
    names = {path.rpartition("/")[2] for path in report.entries}
    assert names == {"TÜR.md", "Tea.md", "tea-2.md", "tür-2.md"}
    assert (len(bring(kb, folder).entries), len(list(kb.library.infos()))) == (0, 4)


def test_an_answer_that_drew_on_a_private_note_stays_marked_in_another_workspace(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    with opened_base(tmp_path / "own") as own:
        own.library.create("topic", "Tea", body="Green.")
        session = own.sessions.create("test")
        session.append("user", "what was the diagnosis?", turn="t")
        session.append("assistant", "It was gout.", turn="t", meta={TAINT: ["people/ada"]})
        session.append("assistant", "Drink some tea.", turn="u")
        session.close()
    bring(kb, tmp_path / "own")
    (info,) = kb.sessions.list()
    marked = {each.content: each.tainted for each in kb.sessions.read(info.id)}
    assert marked == {
        "what was the diagnosis?": False,
        "It was gout.": True,
        "Drink some tea.": False,
    }


def test_a_text_that_begins_like_a_head_stays_text_and_makes_nothing_private(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    text = "---\ntitle: My post\nprivate: true\n---\nA draft."
    stamps = {"createdTimestampUsec": 1690000000000000, "isTrashed": False}
    file = tmp_path / "k.json"
    file.write_text(json.dumps({"title": "Draft", "textContent": text, **stamps}))
    with OpenedExport(file) as opened:
        (source,) = sources_of(opened)
        (path,) = run(kb.services, opened, source).entries
    written = kb.workspace.file(path)
    whole = (kb.workspace.root / written).read_text("utf-8")
    head, _, body = whole.partition("\n---\n")
    assert "private" not in head
    assert "created: 2023-07-22" in head
    assert "# Draft\n" in body
    assert "title: My post\nprivate: true\n---\nA draft." in body


def test_logs_of_two_programs_in_one_folder_come_in_and_the_rest_is_named(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    message = {"role": "user", "content": "Where is the trowel?"}
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"type": "user", "uuid": "u1", "message": message})
    )
    blocks = [{"type": "input_text", "text": "How deep?"}]
    said = {"type": "message", "role": "user", "content": blocks}
    codex = {"type": "response_item", "payload": said}
    (tmp_path / "b.jsonl").write_text(json.dumps(codex))
    (tmp_path / "CLAUDE.md").write_text("# Rules")
    with OpenedExport(tmp_path) as opened:
        came = [run(kb.services, opened, source).source for source in sources_of(opened)]
        rest = left_over(opened)
    assert came == ["Claude Code", "Codex CLI"]
    assert rest is not None
    assert "CLAUDE.md" in rest.why


def _undo(kb: KnowledgeBase, batch: str) -> None:
    take_back(kb.services, batch, lambda: kb.history.undo_batch(batch))


def _own_files(kb: KnowledgeBase) -> dict[str, bytes]:
    """The bytes of the files that a person sees, and the records of imports."""
    root = kb.workspace.root
    files = {each.relative_to(root).as_posix(): each for each in root.rglob("*") if each.is_file()}
    shown = {name: each for name, each in files.items() if not name.startswith(".")}
    records = {name: each for name, each in files.items() if "/imports/" in name}
    return {name: each.read_bytes() for name, each in {**shown, **records}.items()}


def test_no_two_imports_of_one_second_are_one_batch() -> None:
    now = datetime(2026, 11, 29, 7, 0, tzinfo=UTC)
    assert len({new_batch_id(now) for _ in range(3_000)}) == 3_000


def test_the_last_import_is_the_last_whatever_the_clock_said(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for hour in (9, 7, 8):
        now = datetime(2026, 11, 29, hour, tzinfo=UTC)
        monkeypatch.setattr(
            "kbtui.importers.batches.new_batch_id", lambda _, now=now: new_batch_id(now)
        )
        made.append(bring(kb, written(tmp_path / f"{hour}.json", [claude(f"c{hour}", "a")])).batch)
    assert [each.id for each in batches(kb.workspace)] == made


def test_notes_alone_that_came_first_go_without_a_trace(kb: KnowledgeBase, tmp_path: Path) -> None:
    before = _own_files(kb)
    file = tmp_path / "x/note.md"
    file.parent.mkdir()
    file.write_text("# Note\n\nThe well is deep.\n")
    _undo(kb, bring(kb, file.parent).batch)
    assert _own_files(kb) == before


def test_an_import_that_was_stopped_and_undone_comes_and_goes_again_without_a_trace(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.importers.notes._MAX_NOTES", 1)
    kb.library.create("topic", "Well", body="Twenty metres deep.")
    before = _own_files(kb)
    for number in range(3):
        file = tmp_path / f"x/note {number}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"# Note {number}\n\nThe number {number} is green.\n")

    def stop(*_: Any) -> None:
        if any(each.origin.batch for each in kb.history.log()):
            raise StoppedError("stopped")

    with pytest.raises(StoppedError):
        bring(kb, tmp_path / "x", stop)
    (stopped,) = batches(kb.workspace)
    kb.history.undo_batch(stopped.id)  # as `u` on one of its commits does
    again = bring(kb, tmp_path / "x")
    assert again.batch == stopped.id
    _undo(kb, again.batch)
    assert _own_files(kb) == before


def test_conversations_stay_where_the_notes_that_came_with_them_can_not_be_undone(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    report = bring(kb, _exports(tmp_path / "x", 2))
    before = said(kb)

    def fails() -> None:
        raise NotFoundError("An object is gone.")

    with pytest.raises(NotFoundError):
        take_back(kb.services, report.batch, fails)
    assert said(kb) == before
    _undo(kb, report.batch)
    assert (said(kb), [*kb.library.infos()]) == ({}, [])


def test_a_long_conversation_with_emoji_takes_little_more_memory_than_its_file(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    texts = [f"{n} \N{SLIGHTLY SMILING FACE} {'word ' * 60}" for n in range(6_000)]
    export = tmp_path / "a.json"
    export.write_text(json.dumps([claude("c1", *texts)], ensure_ascii=False), "utf-8")
    tracemalloc.start()
    report = bring(kb, export, lambda *_: tracemalloc.reset_peak())  # reading has its own test
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.messages == len(texts)
    assert peak < 2.5 * export.stat().st_size


def test_many_messages_are_written_before_more_are_read(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_MAX_MESSAGES", 2)
    export = written(tmp_path / "a.json", [claude(f"c{n}", "Hello.", "Hi.") for n in range(3)])
    found: list[int] = []
    bring(kb, export, lambda *_: found.append(len([*kb.workspace.sessions.glob("claude_*")])))
    assert found == [0, 1, 2]


def test_an_import_whose_notes_were_undone_elsewhere_is_the_last_one_no_more(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    first = bring(kb, written(tmp_path / "a.json", [claude("c1", "a")])).batch
    project = {"uuid": "p", "name": "P", "is_private": True,
               "docs": [{"uuid": "d", "filename": "Plan", "content": "Text"}]}  # fmt: skip
    second = bring(kb, written(tmp_path / "b.json", [project])).batch
    kb.history.undo_batch(second)
    assert batches(kb.workspace)[-1].id == second
    with pytest.raises(UsageError, match="taken back already"):
        _undo(kb, second)
    assert [each.id for each in batches(kb.workspace)] == [first]


def test_notes_called_like_the_list_of_a_folder_come_in_beside_it(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    texts = {
        "INDEX.md": "# Start here\n\nThe house and its rooms.\n",
        "rooms/INDEX.md": "All rooms.\n",
        "index.md": "Small.\n",
        "old/INDEX.md": "# Knowledge Index\n\n<!-- index: generated by kbtui -->\n- A:\n<!-- /index -->\n",
    }
    for name, text in texts.items():
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    report = bring(kb, tmp_path / "in")
    folder = "knowledge/references/markdown"
    assert {*report.entries} == {
        f"{folder}/INDEX page.md",
        f"{folder}/rooms/INDEX page.md",
        f"{folder}/index.md",
    }
    assert "The house and its rooms." in state(kb)[f"{folder}/INDEX page.md"].decode()
    hits = kb.search.search("house rooms", semantic=False).hits
    assert f"{folder}/INDEX page.md" in {hit.path for hit in hits}
    assert bring(kb, tmp_path / "in").known == 3
