"""``/import`` in the app: it looks first, asks, runs beside the chat, and can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from textual import events
from textual.widgets import Static

from kbtui.importers import engine
from kbtui.tui.app.background_work import BackgroundScreen
from kbtui.tui.chat.commands.importing import dropped_path
from kbtui.tui.chat.conversation.items import NoticeItem
from kbtui.tui.diff.confirm import ConfirmScreen
from kbtui.tui.history.history import HistoryScreen
from tests.importers.exports import claude, written
from tests.tui.at_rest import Door
from tests.tui.notes_support import text_of
from tests.tui.shell import running

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen


@pytest.fixture
def export(tmp_path: Path) -> Path:
    talks = [
        claude("a", "How do I descale a kettle?", "Boil a litre of water with citric acid."),
        claude("b", "Remember that my kettle is a Fellow.", "Noted."),
    ]
    return written(tmp_path / "my exports" / "conversations.json", talks)


def _asked(screen: Screen[object]) -> str:
    return "".join(str(each.content) for each in screen.query(Static))


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("/tmp/a b.zip", "/tmp/a b.zip"),
        ("'/tmp/a b.zip'", "/tmp/a b.zip"),
        ('"/tmp/a b.zip" ', "/tmp/a b.zip"),
        ("/tmp/a\\ b.zip", "/tmp/a b.zip"),
        ("file:///tmp/a%20b.zip", "/tmp/a b.zip"),
        ("/tmp/a\n/tmp/b", None),
        ("it's a word", None),
        ("a/b is a fraction", None),
        ("'/tmp/a' '/tmp/b'", None),
        ("'unclosed", None),
    ],
)
def test_the_ways_in_which_terminals_type_a_dropped_path(typed: str, path: str | None) -> None:
    assert dropped_path(typed) == (None if path is None else Path(path))


async def test_a_pasted_path_is_offered_looked_at_imported_and_taken_back(
    tmp_path: Path, export: Path
) -> None:
    async with running(tmp_path / "notes") as shell:
        shell.prompt.post_message(events.Paste(f"'{export}'"))
        await shell.until(lambda: shell.prompt.text.startswith("/import "))
        await shell.press("enter")
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.until(lambda: "2 conversations, 4 messages" in _asked(shell.app.screen))
        await shell.press("y")
        await shell.until(lambda: "Claude.ai: 2 conversations; 4 messages" in shell.text)
        sessions = tmp_path / "notes" / "sessions"
        assert len(list(sessions.glob("claude_*.jsonl"))) == 2

        await shell.say("/import undo", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.press("y")
        await shell.until(lambda: "Taken back: 2 conversations" in shell.text)
        assert not list(sessions.glob("claude_*.jsonl"))


async def test_the_history_takes_an_import_back_with_its_conversations(
    tmp_path: Path, export: Path
) -> None:
    docs = [{"uuid": "d", "filename": "Plan", "content": "Text"}]
    written(export.parent / "projects.json", [{"uuid": "p", "name": "Plans", "docs": docs}])
    async with running(tmp_path / "notes") as shell:
        with engine.OpenedExport(export.parent) as opened:
            for source in engine.sources_of(opened):
                engine.run(shell.app.kb.services, opened, source)
        sessions = tmp_path / "notes" / "sessions"
        assert len([*sessions.glob("claude_*.jsonl")]) == 2
        await shell.press("f4")
        await shell.until(lambda: isinstance(shell.app.screen, HistoryScreen))
        await shell.until(lambda: "brought in" in text_of(shell.app.screen.rows))
        await shell.press("A")
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        assert "go for good" in _asked(shell.app.screen)
        assert len([*sessions.glob("claude_*.jsonl")]) == 2
        await shell.press("y")
        await shell.until(lambda: not [*sessions.glob("claude_*.jsonl")])
        assert not [*(tmp_path / "notes").rglob("Plan*.md")]


async def test_nothing_comes_in_where_the_question_is_left(tmp_path: Path, export: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        await shell.say(f"/import {export}", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.press("escape")
        await shell.until(lambda: not isinstance(shell.app.screen, ConfirmScreen))
        assert not list((tmp_path / "notes" / "sessions").glob("claude_*"))


async def test_a_file_that_is_no_export_is_refused_by_name(tmp_path: Path) -> None:
    other = written(tmp_path / "other.json", {"a": 1})
    async with running(tmp_path / "notes") as shell:
        await shell.say(f"/import {other}", wait=False)
        await shell.until(lambda: "other.json" in shell.text.replace("\n▎ ", ""))


async def test_an_import_is_one_of_the_tasks_and_can_be_stopped_there(
    tmp_path: Path, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, bring = Door(), engine.run

    def slow(services, opened, source, watch: Callable[[int, int, str], None]):
        watch(7, 10, "Talk a")
        door.wait()
        return bring(services, opened, source, watch)

    monkeypatch.setattr(engine, "run", slow)
    async with running(tmp_path / "notes") as shell:
        await shell.say(f"/import {export}", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.press("y")
        await shell.until(lambda: "importing ▰▰▰▰▰▰▱▱" in shell.chat.importing.text)
        await shell.say("/background", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, BackgroundScreen))
        tasks = shell.app.screen.choices
        await shell.until(lambda: "Import: " in text_of(tasks))
        await shell.press("x")
        door.open()
        await shell.until(lambda: "Nothing runs" in text_of(tasks))
        await shell.press("escape")
        await shell.until(lambda: "The import was stopped" in shell.text)


async def test_a_document_is_kept_after_a_question(tmp_path: Path) -> None:
    file = tmp_path / "kettle.txt"
    file.write_text("Descale the kettle in May.\n")
    async with running(tmp_path / "notes") as shell:
        await shell.say(f"/import {file}", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.press("y")
        await shell.until(lambda: "kettle.txt" in shell.text)
        kept = list((tmp_path / "notes" / "docs").rglob("kettle.txt"))
        assert [each.read_text() for each in kept] == ["Descale the kettle in May.\n"]


async def test_a_folder_with_parts_of_an_export_brings_each_part_once(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    written(folder / "conversations.json", [claude("a", "Which tea?", "Assam.")])
    part = written(tmp_path / "conversations.json", [claude("b", "Which cup?", "The blue one.")])
    with ZipFile(folder / "conversations-001.zip", "w") as packed:
        packed.write(part, "conversations.json")
    async with running(tmp_path / "notes") as shell:
        await shell.say(f"/import {folder}", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.press("y")
        await shell.until(lambda: "/sessions shows" in shell.text)
        titles = [item.title for item in shell.transcript.items if isinstance(item, NoticeItem)]
        reports = [title for title in titles if title.startswith("Claude.ai: ")]
        assert reports == ["Claude.ai: 1 conversation; 2 messages."] * 2


@pytest.fixture
def broken(export: Path) -> Path:
    """The same export, with an element that can't be read."""
    export.write_text(export.read_text("utf-8")[:-1] + ', {"uuid": tru}]', "utf-8")
    return export


async def test_a_partial_import_says_in_the_app_what_is_missing(
    tmp_path: Path, broken: Path
) -> None:
    async with running(tmp_path / "notes") as shell:
        await shell.say(f"/import {broken}", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
        await shell.press("y")
        await shell.until(lambda: "Claude.ai: 2 conversations; 4 messages" in shell.text)
        await shell.until(lambda: "1 part of this export" in shell.text)
