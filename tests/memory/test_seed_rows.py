"""The seeds, row by row: one test for each row of the table in the design, named after it.

What a row says in detail is tested where its part is; here each row is shown to work in a whole
workspace, opened as the program opens it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.agent.context import assemble
from kbtui.agent.tools.toolbox import Toolbox
from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.sessions.window import session_window
from tests.memory.memory_room import SEED, call_save, call_slice, entry, scripted
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kbtui.sessions.store import Session

MEMORY = "memory/MEMORY.md"
BY_WORDS = {"search": {"semantic": False}}
DEADLINE_SECONDS = 120.0


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with opened(tmp_path / "notes") as kb:
        yield kb


def opened(root: Path, **overrides: Any) -> KnowledgeBase:
    return KnowledgeBase.open(root, create=True, overrides={**BY_WORDS, **overrides})


def talk(kb: KnowledgeBase, times: int = 1) -> Session:
    session = kb.sessions.create("tui")
    for number in range(times):
        for _, role, text in SEED:
            session.append(role, text if number == 0 else f"{text} ({number})")  # type: ignore[arg-type]
    return session


def condensed(kb: KnowledgeBase, session: Session, **options: Any) -> Any:
    return asyncio.run(kb.memory.consolidator.run(session.id, **{"everything": True, **options}))


def read(kb: KnowledgeBase, path: str) -> str:
    return (kb.workspace.root / path).read_text("utf-8")


def prompt(kb: KnowledgeBase, text: str = "hello") -> str:
    return "\n".join(message.content for message in assemble(kb, None, text).messages)


def until(condition: Callable[[], object]) -> None:
    """Wait for what another thread does."""
    ticker = threading.Event()
    for _ in range(int(DEADLINE_SECONDS / 0.01)):
        if condition():
            return
        ticker.wait(0.01)
    raise AssertionError("it never came to be")


# Seeds 000 and 002 ---------------------------------------------------------------------------


def test_session_rolling_window_by_messages_and_by_tokens(tmp_path: Path) -> None:
    with opened(tmp_path / "notes", context={"memory_window": 8}) as kb:
        session = talk(kb, 2)
        by_messages = session_window(session.messages, most_messages=4, most_tokens=9999)
        by_tokens = session_window(session.messages, most_messages=99, most_tokens=40)
        assert 0 < len(by_messages.messages) <= 4
        assert 0 < len(by_tokens.messages) < 16
        outcome = condensed(kb, session, everything=False)
        assert outcome.messages is not None
        assert outcome.messages[1] <= 12, "half of the window is kept"
        assert len(kb.sessions.read(session.id)) == 16, "the log is never trimmed"


def test_consolidation_is_automatic_asynchronous_and_never_blocks_a_turn(tmp_path: Path) -> None:
    with opened(tmp_path / "notes", context={"memory_window": 8}) as kb:
        session = talk(kb, 2)
        threads: list[str] = []
        kb.memory.worker.subscribe(lambda _: threads.append(threading.current_thread().name))
        kb.memory.start()
        kb.memory.worker.turn_ended(session.id)
        until(lambda: kb.memory.archive.covered(session.id))
        assert set(threads) == {"worker"}


def test_forced_save_memory_is_one_call_with_three_outputs(
    tmp_path: Path, server: ScriptedServer
) -> None:
    made = entry("preference", "Favorite color", "The favorite color is blue.")
    server.enqueue(
        Reply(tool_calls=[call_save("They spoke of blue.", ["Knows Python"], [], [made])])
    )
    with opened(tmp_path / "notes", **scripted(server)) as kb:
        condensed(kb, talk(kb))
        assert "They spoke of blue." in read(kb, "memory/HISTORY.md")
        known = "- What programming languages do I know? Python, JavaScript, and Go.\n"
        assert known in read(kb, MEMORY)
        assert "blue" in kb.library.find("Favorite color").body
        assert len(server.prompts) == 1
        assert server.prompts[0].body["tool_choice"]["function"]["name"] == "save_memory"
        assert kb.memory.audit().pending == 0


def test_new_archives_in_the_background_and_loses_nothing_when_that_fails(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.enqueue(Reply(status=401, text="no"))
    with opened(tmp_path / "notes", **scripted(server)) as kb:
        session = talk(kb)
        kb.memory.start()
        kb.memory.worker.session_closed(session.id)
        kb.sessions.create("tui").append("user", "The next one begins at once.")
        until(lambda: server.prompts and kb.memory.worker.status().waiting)
        assert kb.memory.ledger.pending(session.id) == (1, 8)
        assert len(kb.sessions.read(session.id)) == 8
        assert kb.memory.audit().unaccounted == 0


def test_memory_is_in_every_prompt_and_history_is_searchable_and_migrated(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "knowledge").mkdir(parents=True)
    (root / "memory").mkdir()
    (root / "memory/HISTORY.md").write_text("[2026-01-02 10:00] Spoke of walruses.\n\n")
    with opened(root) as kb:
        assert kb.memory.archive.entries()[0].content == "Spoke of walruses."
        assert (root / "memory/HISTORY.md.bak").exists()
        kb.memory.remembering.remember("I prefer tea")
        assert "I prefer tea" in prompt(kb)
        assert kb.search.search("walruses", "memory").hits


def test_sessions_are_persisted_lazily_loaded_and_old_ones_converted(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "knowledge").mkdir(parents=True)
    (root / "sessions").mkdir()
    old = {
        "key": "cli:direct",
        "created_at": "2026-01-02T10:00:00",
        "messages": [{"role": "user", "content": "Hello from before"}],
    }
    (root / "sessions/cli_direct.json").write_text(json.dumps(old))
    with opened(root) as kb:
        (info,) = kb.sessions.list()
        assert kb.sessions.read(info.id)[0].content == "Hello from before"
        assert any("converted" in notice for notice in kb.notices)
        talk(kb)
    with opened(root) as again:
        assert "memory" not in vars(again)
        assert len(again.sessions.list()) == 2


# Seed 001 ------------------------------------------------------------------------------------


def test_a_session_that_ends_leaves_a_file_of_its_last_messages(kb: KnowledgeBase) -> None:
    session = talk(kb)
    notes = asyncio.run(kb.memory.session_notes.write_session_memory(session.id))
    assert notes is not None
    text = read(kb, notes.path)
    for part in ("# Session Memory:", f"- **Session**: {session.id}", "## Summary"):
        assert part in text
    assert "## Key Messages" in text
    short = kb.sessions.create("tui")
    short.append("user", "Hello")
    assert asyncio.run(kb.memory.session_notes.write_session_memory(short.id)) is None


def test_what_is_condensed_is_noted_once_in_the_file_of_the_day(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.enqueue(Reply(tool_calls=[call_slice(notes=["Spoke of blue."])]))
    with opened(tmp_path / "notes", **scripted(server)) as kb:
        session = talk(kb)
        condensed(kb, session)
        day = datetime.now(UTC).astimezone().date().isoformat()
        text = read(kb, f"memory/{day}.md")
        assert text.count(f"(session: {session.id})") == 1
        assert "## Flush at " in text
        assert "- What's my favorite color? It's blue.\n" in text
        condensed(kb, session)
        assert read(kb, f"memory/{day}.md") == text


def test_memory_and_docs_are_indexed_in_scopes_of_their_own(kb: KnowledgeBase) -> None:
    kb.memory.remembering.remember("I prefer zebra stripes")
    docs = kb.workspace.docs / "atlas"
    docs.mkdir(parents=True)
    (docs / "guide.md").write_text("# Guide\n\nZebra crossings are marked.\n")
    kb.search.sync()
    assert [hit.path for hit in kb.search.search("zebra", "memory").hits] == [MEMORY]
    assert [hit.path for hit in kb.search.search("zebra", "docs/atlas").hits] == [
        "docs/atlas/guide.md"
    ]
    chosen = kb.settings.search
    assert (chosen.vector_weight, chosen.text_weight) == (0.7, 0.3)
    assert (chosen.chunk_tokens, chosen.chunk_overlap) == (512, 64)
    assert chosen.sync_interval_seconds == 60


def test_memory_and_documents_are_searched_by_a_tool_of_the_agent() -> None:
    assert "search" in {spec.name for spec in Toolbox().specs}


# Seed 003 ------------------------------------------------------------------------------------


def test_the_oldest_safe_slice_goes_into_the_archive_with_a_cursor(tmp_path: Path) -> None:
    from kbtui.models.port import ToolCall

    with opened(tmp_path / "notes", context={"memory_window": 4}) as kb:
        session = kb.sessions.create("tui")
        for number in range(4):
            session.append("user", f"I use tool number {number}.")
            call = ToolCall(f"c{number}", "grep", "{}")
            session.append("assistant", "", tool_calls=(call,))
            session.append("tool", "found", tool_call_id=f"c{number}", name="grep")
            session.append("assistant", "Noted.")
        outcome = condensed(kb, session, everything=False)
        assert outcome.messages is not None
        first, last = outcome.messages
        after = {each.id: each for each in session.messages}.get(last + 1)
        assert (first, outcome.cursor) == (1, 1)
        assert last < 16
        assert after is not None
        assert after.role != "tool", "a call was parted from its result"


def test_dream_curates_in_small_edits(kb: KnowledgeBase) -> None:
    note = "---\ntype: person\n---\n# Alice\n\n- Owns [[ops/billing]]\n"
    with kb.history.change(Actor.CONSOLIDATOR, "archived") as change:
        change.write("knowledge/people/alice.md", note)
        change.write("knowledge/topics/billing.md", "# Billing\n\nRuns nightly.\n")
        kb.memory.archive.stage(
            change,
            "- Alice owns billing",
            session="s",
            messages=(1, 2),
            timestamp="2026-03-06 10:00",
        )
    report = asyncio.run(kb.memory.dream.run())
    assert report.kind == "changed"
    assert "- Owns [[topics/billing]]\n" in kb.library.find("Alice").text
    assert kb.memory.dream.has_news(), "without a model nothing was read"
    settings = kb.settings.dream
    assert (settings.interval_hours, settings.max_batch_size) == (2, 20)


def test_dream_log_and_dream_restore_show_and_take_back(kb: KnowledgeBase) -> None:
    with kb.history.change(Actor.DREAM, "tidied") as change:
        change.write("USER.md", "# User\n\n- Works on Atlas\n")
    assert change.result is not None
    shown = kb.memory.dream_log.show()
    assert shown.commit.id == change.result.id
    assert [diff.path for diff in shown.diffs] == ["USER.md"]
    assert [diff.path for diff in kb.memory.dream_log.preview(change.result.id)] == ["USER.md"]
    kb.memory.dream_log.restore(change.result.id)
    assert not (kb.workspace.root / "USER.md").exists()


def test_everything_durable_but_sessions_is_recorded(kb: KnowledgeBase) -> None:
    kb.library.create("topic", "Docker", body="Containers.")
    condensed(kb, talk(kb))
    paths = set(kb.history.tree("HEAD"))
    assert {"memory/history.jsonl", "memory/HISTORY.md"} <= paths
    assert any(path.startswith("knowledge/") for path in paths)
    assert not any(path.startswith("sessions/") for path in paths)


# Seed 004 ------------------------------------------------------------------------------------


def test_the_tree_with_its_lean_index_is_in_the_prompt_and_entries_on_demand(
    kb: KnowledgeBase,
) -> None:
    kb.library.create("topic", "Docker", body="Containers, at length.\n\nA hidden detail.")
    assert "docker" in read(kb, "knowledge/INDEX.md")
    whole = prompt(kb, "docker")
    assert "docker" in whole
    assert "A hidden detail." not in whole


def test_entries_are_extracted_before_messages_leave_the_window(
    tmp_path: Path, server: ScriptedServer
) -> None:
    fact = {"text": "My favorite color is blue.", "type": "preference", "subject": "Favorite color"}
    server.enqueue(Reply(tool_calls=[call_slice(facts=[{**fact, "message": 3}])]))
    with opened(tmp_path / "notes", **scripted(server)) as kb:
        condensed(kb, talk(kb))
        color = kb.library.find("Favorite color")
        assert color.type == "preference"
        (commit, *_) = kb.history.log(color.path)
        assert commit.actor is Actor.CONSOLIDATOR
        assert commit.origin.messages == (1, 8)


def test_knowledge_evolves_over_time_and_its_past_can_be_read(kb: KnowledgeBase) -> None:
    made = kb.library.get(
        kb.library.create("decision", "Database", day=datetime(2026, 1, 2, tzinfo=UTC).date()).path
    )
    before = kb.history.resolve("HEAD")
    assert "## Evolution" in made.text
    text = made.text.rstrip() + "\n- 2026-02-03: PostgreSQL instead.\n"
    kb.library.write(made.path, text, expecting=made.blob, actor=Actor.AGENT, reason="changed")
    assert kb.library.get(made.path).updated != made.created
    assert "PostgreSQL" not in kb.history.read(made.path, before).decode()


def test_the_prompt_has_every_part_within_its_budget(kb: KnowledgeBase) -> None:
    (kb.workspace.root / "SOUL.md").write_text("Be brief.\n")
    kb.memory.remembering.remember("I prefer tea")
    day = datetime.now(UTC).astimezone().date().isoformat()
    (kb.workspace.memory / f"{day}.md").write_text("Walked the dog.\n")
    kb.library.create("topic", "Docker", body="Containers.")
    parts = {part.name: part for part in assemble(kb, talk(kb), "hello").parts}
    assert "Be brief." in parts["bootstrap"].text
    assert "tea" in parts["MEMORY.md"].text
    assert "Walked the dog." in parts["notes"].text
    assert "docker" in parts["index"].text
    assert "Only a tool call writes" in parts["skills"].text
    assert parts["session"].tokens > 0
    limits = kb.settings.context
    assert parts["index"].tokens <= limits.index_tokens
    assert parts["MEMORY.md"].tokens <= limits.memory_tokens


def test_background_work_has_a_model_of_its_own(tmp_path: Path, server: ScriptedServer) -> None:
    with opened(tmp_path / "notes", **scripted(server)) as kb:
        assert kb.models.chat().name == "offline"
        assert kb.memory.models.get("consolidate").name == "openai/scripted"
        assert kb.memory.models.get("dream").name == "offline"
