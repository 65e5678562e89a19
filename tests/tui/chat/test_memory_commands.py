"""The commands of memory in the app: what they write, show and ask."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from kbtui.history.change import Actor
from kbtui.memory.background.service import DreamProgress, WorkerEvent
from kbtui.search.results import IndexStatus
from kbtui.tui.actions.registry import actions, parse_command
from kbtui.tui.app.background_work import BackgroundScreen
from kbtui.tui.app.status_line import StatusLine
from kbtui.tui.diff.confirm import ConfirmScreen
from kbtui.tui.diff.undo_conflict import UndoConflictScreen
from kbtui.tui.history.history import HistoryScreen
from kbtui.tui.widgets import dialogs
from kbtui.tui.widgets.dialogs import KeyDialog, PageScreen
from tests.tui.notes_support import text_of
from tests.tui.shell import running, said

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MEMORY = "memory/MEMORY.md"


def _dreamt(kb: Any, text: str) -> str:
    with kb.history.change(Actor.DREAM, "tidied up") as change:
        change.write("USER.md", text)
    assert change.result is not None
    return str(change.result.id)


async def test_remember_keeps_a_fact_and_a_hash_is_short_for_it(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        await shell.say("/remember I prefer tea", wait=False)
        await shell.until(lambda: "remembered" in shell.text)
        await shell.say("# My cat is called Tom", wait=False)
        await shell.until(lambda: "Tom" in shell.text)
        kept = (tmp_path / "notes" / MEMORY).read_text()
        assert "- I prefer tea\n" in kept
        assert "- My cat is called Tom\n" in kept
        assert shell.agent.asked == []


def test_a_longer_text_that_begins_with_a_hash_is_a_message() -> None:
    assert parse_command("# Plan\n\n- one") is None
    assert parse_command("## Plan") is None
    command = parse_command("#buy milk")
    assert command is not None
    assert (command.action.slash, command.argument) == ("/remember", "buy milk")


async def test_forget_asks_first_and_takes_out_what_it_showed(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        kb = shell.app.kb
        kb.memory.remembering.remember("I prefer tea")
        await shell.say("/forget tea", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.press("escape")
        assert "tea" in (tmp_path / "notes" / MEMORY).read_text()
        await shell.say("/forget tea", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        asked = text_of(shell.app.screen.query_one("#confirm-text Static"))
        assert "1 line in 1 file would be taken out" in asked
        await shell.press("enter")
        assert isinstance(shell.app.screen, ConfirmScreen), "a hasty Enter agrees to nothing"
        await shell.press("y")
        await shell.until(lambda: "1 line taken out of MEMORY.md" in shell.text)
        assert "tea" not in (tmp_path / "notes" / MEMORY).read_text()
        assert kb.memory.tombstones.buried("The user prefers tea")


async def test_a_command_that_wants_words_gets_them_in_the_prompt(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        remember = next(each for each in actions("memory") if each.method == "remember")
        await shell.app.run_action_of(remember)
        await shell.until(lambda: shell.prompt.text == "/remember ")


async def test_dream_log_shows_the_change_and_dream_restore_takes_back_only_that_one(
    tmp_path: Path,
) -> None:
    async with running(tmp_path / "notes") as shell:
        kb = shell.app.kb
        await shell.say("/dream-log", wait=False)
        await shell.until(lambda: "Dream has changed nothing yet" in shell.text)
        first = _dreamt(kb, "# User\n\n- Works on Atlas\n")
        kb.memory.remembering.remember("I prefer tea")
        await shell.say("/dream-log", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, HistoryScreen))
        screen = shell.app.screen
        await shell.until(lambda: screen.rows.commit is not None)
        assert screen.rows.commit.id == first
        await shell.press("escape")
        await shell.say(f"/dream-restore {first[:10]}", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.press("y")
        await shell.until(lambda: "Undone" in shell.text)
        assert not (tmp_path / "notes" / "USER.md").exists()
        assert "tea" in (tmp_path / "notes" / MEMORY).read_text()


async def test_undoing_only_a_change_of_dreams_asks_where_a_line_was_changed_again(
    tmp_path: Path,
) -> None:
    async with running(tmp_path / "notes") as shell:
        kb = shell.app.kb
        _dreamt(kb, "# User\n\n- Works on Atlas\n")
        second = _dreamt(kb, "# User\n\n- Works on Borealis\n")
        with kb.history.change(Actor.YOU, "corrected") as change:
            change.write("USER.md", "# User\n\n- Works on Cygnus\n")
        file = tmp_path / "notes" / "USER.md"

        async def undo(*keys: str) -> None:
            await shell.say(f"/dream-restore {second}", wait=False)
            await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
            assert "changed again" in str(shell.app.screen.text)
            await shell.press("y")
            await shell.until(lambda: isinstance(shell.app.screen, UndoConflictScreen))
            await shell.press(*keys)

        await undo("escape")
        await shell.until(lambda: not isinstance(shell.app.screen, UndoConflictScreen))
        assert file.read_text() == "# User\n\n- Works on Cygnus\n"
        assert "Undone" not in shell.text
        await undo("t", "enter")
        await shell.until(lambda: "Undone" in shell.text)
        assert file.read_text() == "# User\n\n- Works on Atlas\n"


async def test_tasks_shows_the_steps_of_dream_and_stops_it(tmp_path: Path) -> None:
    async with running(tmp_path) as shell:
        memory = shell.app.kb.memory
        stopped = threading.Event()

        async def dream() -> None:
            memory.dreaming(DreamProgress("reading", "Dream reads 12 lines, 1 of 3", 1, 3))
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        memory.worker.submit("dream", dream)
        status = shell.app.main.query_one("#status")
        await shell.until(lambda: "Dream reads 12 lines" in status.render().plain)
        await shell.say("/background", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, BackgroundScreen))
        tasks = shell.app.screen.choices
        await shell.until(lambda: "Dream reads 12 lines, 1 of 3" in text_of(tasks))
        await shell.press("x")
        await shell.until(stopped.is_set)
        await shell.until(lambda: "Nothing runs" in text_of(tasks))
        await shell.press("escape")
        await shell.until(lambda: "Dream" not in status.render().plain)


async def test_the_first_reading_of_a_big_folder_is_told_by_a_bar(tmp_path: Path) -> None:
    async with running(tmp_path) as shell:
        status = shell.app.screen.query_one(StatusLine)
        await shell.until(lambda: status._stop_listening is not None)
        status._stop_listening()  # the app's own index has less to tell
        status._index_changed(IndexStatus("syncing", reading=(5_000, 10_000)))
        await shell.until(lambda: "reading files ▰▰▰▰▱▱▱▱" in status.render().plain)
        status._index_changed(IndexStatus("ready"))
        await shell.until(lambda: "reading" not in status.render().plain)


async def test_tasks_pauses_reading_for_meaning_and_lets_it_go_on(tmp_path: Path) -> None:
    async with running(tmp_path) as shell:
        search = shell.app.kb.search
        search.status = lambda: IndexStatus("embedding", message="Reading for meaning: 7 %")
        await shell.say("/background", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, BackgroundScreen))
        tasks = shell.app.screen.choices
        await shell.until(lambda: "Reading for meaning: 7 %" in text_of(tasks))
        await shell.press("x")
        await shell.until(lambda: "7 %, paused" in text_of(tasks))
        assert search.pause.stopped
        await shell.press("x")
        await shell.until(lambda: "paused" not in text_of(tasks))
        assert not search.pause.stopped


async def test_dream_restore_goes_back_to_before_the_change(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        first = _dreamt(shell.app.kb, "# User\n\n- Works on Atlas\n")
        shell.app.kb.memory.remembering.remember("I prefer tea")
        await shell.say(f"/dream-restore {first}", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.press("b")
        await shell.until(lambda: "go too" in str(getattr(shell.app.screen, "text", "")))
        await shell.press("y")
        await shell.until(lambda: "Restored" in shell.text)
        assert not (tmp_path / "notes" / "USER.md").exists()
        assert not (tmp_path / "notes" / MEMORY).exists()


async def test_dream_restore_all_asks_at_once_whether_everything_goes_back(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        first = _dreamt(shell.app.kb, "# User\n\n- Works on Atlas\n")
        shell.app.kb.memory.remembering.remember("I prefer tea")
        await shell.say(f"/dream-restore --all {first}", wait=False)
        await shell.until(lambda: "go too" in str(getattr(shell.app.screen, "text", "")))
        await shell.press("escape")
        await shell.until(lambda: not isinstance(shell.app.screen, ConfirmScreen))
        assert (tmp_path / "notes" / MEMORY).exists()
        await shell.say(f"/dream-restore {first} --all", wait=False)
        await shell.until(lambda: "go too" in str(getattr(shell.app.screen, "text", "")))
        await shell.press("y")
        await shell.until(lambda: "Restored" in shell.text)
        assert not (tmp_path / "notes" / MEMORY).exists()


async def test_audit_accounts_for_what_was_said(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", script=said("Hello.")) as shell:
        await shell.say("Hello there, kitchen table")
        await shell.say("/audit", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, PageScreen))
        assert "pending" in shell.app.screen.text.plain


async def test_compact_condenses_the_session_now(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", script=said("I see.")) as shell:
        await shell.say("My favorite color is blue.")
        await shell.until(lambda: shell.app.kb.memory.worker.status().state != "stopped")
        await shell.say("/compact", wait=False)
        await shell.until(lambda: "Condensing this conversation" in shell.text)
        await shell.until(lambda: "are condensed into the archive" in shell.text)
        await shell.until(lambda: "history can take it back" in shell.text)
        assert (tmp_path / "notes" / "memory/HISTORY.md").exists()


async def test_a_new_session_leaves_the_old_one_to_be_condensed(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", script=said("I see.")) as shell:
        await shell.say("My favorite color is blue.")
        await shell.say("/new", wait=False)
        notes = tmp_path / "notes"
        await shell.until((notes / "memory/history.jsonl").exists)
        await shell.until(lambda: any("blue" in file.read_text() for file in notes.rglob("*.md")))


async def test_todays_note_is_begun_and_opened(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        await shell.say("/today", wait=False)
        notes = shell.app.main.notes
        await shell.until(lambda: (notes.current_path or "").startswith("memory/20"))


async def test_today_begins_no_note_where_its_owner_has_none_of_days(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Plan.md").write_text("# Plan\n")
    async with running(vault) as shell:
        await shell.say("/today", wait=False)
        notes = shell.app.main.notes
        await shell.until(lambda: (notes.current_path or "").startswith("memory/20"))
        await shell.until(lambda: notes.view.document.title == "Today")
        assert not shell.app.kb.journal.days()


async def test_tag_changes_the_entry_that_is_open(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", entries=1) as shell:
        path = "knowledge/topics/topic-0.md"
        shell.app.main.notes.open_entry(path)
        await shell.until(lambda: shell.app.main.notes.current_path == path)
        await shell.press("f2")
        await shell.say("/tag work #home", wait=False)
        await shell.until(lambda: shell.app.kb.library.tags() == {"work": 1, "home": 1})
        await shell.say("/tag -work", wait=False)
        await shell.until(lambda: shell.app.kb.library.tags() == {"home": 1})


async def test_what_the_worker_is_at_is_in_the_status_line(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        worker = shell.app.kb.memory.worker
        status = shell.app.main.query_one(StatusLine)
        session = shell.app.kb.sessions.create("tui")
        session.rename("The boiler")
        worker._emit(WorkerEvent("started", "consolidate", session.id, "Condensing"))
        await shell.until(lambda: "Condensing: The boiler" in status.render().plain)
        worker._emit(WorkerEvent("progress", "consolidate", session.id, "Condensing", 1, 2))
        await shell.until(lambda: "▰▰▰▰▱▱▱▱ Condensing: The boiler" in status.render().plain)
        worker._emit(WorkerEvent("finished", "consolidate", "s"))
        await shell.until(lambda: "Condensing" not in status.render().plain)
        worker._emit(WorkerEvent("notice", "consolidate", "s", "Two messages are kept whole."))
        await shell.notified("Two messages are kept whole.")


async def test_a_paid_model_is_asked_about_and_the_answer_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialogs, "QUIET_SECONDS", 0)
    async with running(tmp_path / "notes") as shell:
        memory = shell.app.kb.memory
        memory.worker._emit(WorkerEvent("consent", "consolidate", model="openai/costly"))
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        await shell.press("n")
        await shell.until(lambda: memory.budget.consent_to("openai/costly") is False)


async def test_what_is_being_written_never_agrees_to_a_paid_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialogs, "QUIET_SECONDS", 1e9)
    async with running(tmp_path / "notes") as shell:
        memory = shell.app.kb.memory
        await shell.press("y")
        memory.worker._emit(WorkerEvent("consent", "consolidate", model="openai/costly"))
        await shell.press(*"es, yn")
        assert shell.prompt.text == "yes, yn", "it waits while somebody writes"
        shell.app.typed_at = -1e9
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        await shell.press(*"yny")
        assert isinstance(shell.app.screen, KeyDialog), "nor do letters that come after it"
        assert memory.budget.consent_to("openai/costly") is None
        monkeypatch.setattr(dialogs, "QUIET_SECONDS", 0)
        await shell.press("n")
        await shell.until(lambda: memory.budget.consent_to("openai/costly") is False)
